"""``gingham certify``: what is guaranteed of a model, or of clusters that another program found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, need_table

if TYPE_CHECKING:
    from gingham.certificates import Certificate
    from gingham.cli.tables.adapter import Opened
    from gingham.cli.tables.arguments import CertificateRequest


def certify(
    model: Annotated[str, typer.Argument(help="Model file; with --labels, the table itself."), Reads()],
    file: Annotated[
        str | None, typer.Argument(help="Table: CSV, TSV, Parquet, NDJSON; - is standard input."), Reads()
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Clusters from another program: one file (item, cluster) per axis, separated by commas."),
        Reads(names=lambda given: listed(given)),
    ] = None,
    axes: Annotated[
        str | None, typer.Option(help="With --labels: the columns of ids. For a joint model: the relation.")
    ] = None,
    loss: Annotated[str, typer.Option(help="With --labels: absolute, zero-one, quadratic, log.")] = "absolute",
    delta: options.Delta = 0.05,
    bound: Annotated[
        str, typer.Option(help="log-wealth, type-kl, kl, split-kl, bernstein, theorem-7 ...")
    ] = "log-wealth",
    predictor: Annotated[str, typer.Option(help="gibbs (randomised) or mean.")] = "gibbs",
    alphabet: options.OtherAlphabet = None,
    bounds: options.Bounds = None,
    population: options.Population = None,
    progressive: options.Progressive = None,
    references: Annotated[
        int,
        typer.Option(help="Number of reference fits that make progressive tests tighter.", min=0),
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the order of progressive tests. The default was drawn by the fit; another seed counts as "
            "another candidate and costs a share of δ.",
            min=0,
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            help="Number of models, settings or seeds that you compare with these certificates; they share δ.",
            min=1,
        ),
    ] = 1,
    strata: options.Strata = None,
    mix: Annotated[
        str | None,
        typer.Option(help="With --strata: table of rows without labels; certifies the error for their mix of strata."),
        Reads(need_table),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="File for the first certificate that gingham verify can check."),
        Writes(),
    ] = None,
    save_predictor: Annotated[
        Path | None, typer.Option(help="File for the predictor that the progressive tests certify."), Writes()
    ] = None,
    label: options.OtherLabel = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Explain every certificate term by term.")] = False,
    json: options.Json = False,
) -> None:
    """Bound the error of a model on new data.

    The rows that gingham fit held out certify the same model fitted without them. The model itself is certified on its
    training rows where a theorem covers it. --progressive refits the model on a growing part of the rows and tests it
    on the next ones; this certifies a predictor that consists of these fits (--save-predictor). All certificates that
    are printed hold simultaneously. Views and features are certified on held-out objects and features.

    Examples
    --------
    gingham certify model.gingham ratings.csv
    gingham certify model.gingham ratings.csv --delta .01 --bound theorem-7 --population 943,1682 --json
    gingham certify --labels users.csv,movies.csv ratings.csv --label rating --alphabet 1..5
    """
    if labels is None and file is None:
        raise GinghamError("Name the table after the model, or give clusters of another program with --labels.")
    if mix is not None and strata is None:
        raise GinghamError("--mix needs strata: add --strata known/new or --strata COLUMN.")
    from gingham.certificates.confidence import checked_delta
    from gingham.cli.table_files import open_model
    from gingham.cli.tables.arguments import CertificateRequest, column_names, parse_bounds, parse_population
    from gingham.summary.measure import unit_of

    items, ends = parse_population(population), parse_bounds(bounds)
    checked_delta(delta)
    if progressive is None and save_predictor is not None:
        progressive = True
    request = CertificateRequest(
        delta / candidates, bound, predictor, alphabet, ends, progressive, seed, items, references, strata
    )
    if labels is not None or file is None:
        if progressive or references or strata or save or save_predictor:
            raise GinghamError(
                "Clusters from another program cannot be refitted: leave --progressive, --references, --strata and "
                "--save out."
            )
        of_labels = certificate_of_labels(file or model, listed(labels or ""), label, axes, loss, format, request)
        if json:
            console.print_json(of_labels.to_dict())
        else:
            console.paragraphs(of_labels.explain())
        return
    opened = open_model(
        model, file, format, label, drop_missing, None if axes is None else column_names(axes, "--axes")
    )
    certificates = opened.certificates(request)
    # The means of several folds keep nothing that could be checked again.
    first: Any = next((one for one in certificates.values() if getattr(one, "record", None) is not None), None)
    if strata is not None and first is None:
        raise GinghamError("This model has no certificate with strata: leave --strata and --mix out.")
    if save is not None:
        keep(first, save, model, predictor_is_kept=save_predictor is not None)
    if save_predictor is not None:
        keep_predictor(first, save_predictor, opened)
    mixed = None if mix is None else of_mix(first, mix, opened, format, str(strata))
    if json:
        also = {} if mixed is None else {"mix": mixed.to_dict()}
        console.print_json({name.replace(" ", "_"): one.to_dict() for name, one in certificates.items()} | also)
        return
    show(certificates, opened, request, None if strata is None else first, verbose)
    if mixed is not None:
        console.say_note(
            f"In the mix of {mix} the {unit_of(mixed.loss)} is at most {in_its_unit(mixed, mixed.value)}, where losses "
            "within strata stay as they were."
        )
    if candidates > 1:
        console.say_note(f"δ = {delta:g} is shared among {candidates:,} candidates, of which this is one.")


def keep(certificate: Any, path: Path, model: str, predictor_is_kept: bool) -> None:
    """Save a certificate that can be checked; refuse another."""
    from gingham.certificates import Certificate
    from gingham.models.base import Saved

    if not isinstance(certificate, Certificate):
        raise GinghamError(
            "gingham verify cannot check certificates of this form, so none is saved. --json prints their numbers, and "
            "--progressive makes one that can be checked where a model predicts labels."
        )
    certificate.save(path)
    if isinstance(certificate.model, Saved) and not predictor_is_kept:
        console.say_note(
            f"{path} covers the predictor that the progressive tests made, not {model}. gingham verify needs it: keep "
            "it with --save-predictor predictor.gingham. --no-progressive certifies the model itself."
        )


def keep_predictor(certificate: Any, path: Path, opened: Opened) -> None:
    """Save the predictor that progressive tests certify."""
    from gingham.models.base import Saved
    from gingham.models.fit_record import FitRecord

    certified = getattr(certificate, "model", None)
    if not isinstance(certified, Saved):
        raise GinghamError(
            "--save-predictor saves the predictor of the progressive tests, but no progressive tests were run."
        )
    certified._record = replace(opened.model._record or FitRecord(), measured=None)
    certified.save(path)


def of_mix(certificate: Any, file: str, opened: Opened, format: str | None, strata: str) -> Certificate:
    """The certificate for the mix of strata of a table without labels."""
    from gingham.cli.table_files import table_for
    from gingham.cli.tables.labels import rows_of_mix

    found: Certificate = certificate.for_mix(rows_of_mix(opened.model, table_for(opened.model, file, format), strata))
    return found


def show(
    certificates: dict[str, Any], opened: Opened, request: CertificateRequest, stratified: Any, verbose: bool
) -> None:
    """What is guaranteed, beside what was measured and beside one constant; then the strata and the premises."""
    from gingham.certificates import Certificate
    from gingham.summary.measure import side_by_side

    sure = f"{100 * (1 - request.delta):g} %"
    if request.seed is not None:
        console.say_note(
            f"The seed {request.seed} of the order of the tests was chosen by you and not drawn by the fit."
        )
    try:
        constants = opened.without_groups(certificates, request)
    except GinghamError:  # a constant has no certificate then, and the others stand alone
        constants = {}
    losses = {name: one for name, one in certificates.items() if isinstance(one, Certificate)}
    name, one = next(iter(certificates.items()))
    console.paragraphs(in_a_sentence(name, one, constants, sure) if name in losses else one.explain().split("\n")[0])
    for unit, lines in side_by_side(opened.model._errors, losses, constants).items():
        rows = [[line.name, *(shown(v) for v in (line.measured, line.n_rows, line.guaranteed))] for line in lines]
        console.grid(unit, ["", "measured", "on rows", "guaranteed at most"], rows)
    if stratified is not None and stratified.strata is not None:
        table = [
            [part.name, *(in_its_unit(stratified, value) for value in (part.empirical, part.value)),
             shown(part.n_observations)]
            for part in stratified.strata.parts
        ]  # fmt: skip
        heads = ["stratum", "measured", "guaranteed at most", "on rows"]
        console.grid("Strata, which hold simultaneously with the certificates above", heads, table)
    if len(certificates) > 1:
        console.paragraphs(
            f"{len(certificates)} certificates hold simultaneously with confidence {sure}: they share δ."
        )
    if verbose:
        for name, one in certificates.items():
            console.heading(f"From the {name}")
            console.paragraphs(one.explain())
        return
    given = [claim.text for claim in getattr(one, "assumptions", ()) if claim.status == "given"]
    console.paragraphs("\n".join(["It assumes:", *(f"  {text}" for text in given)] if given else []))
    console.paragraphs("--verbose explains every certificate.")


def in_its_unit(certificate: Certificate, value: float | None) -> str:
    """A loss of a certificate in the measure in which it is shown."""
    from gingham.summary.measure import in_unit

    return shown(None if value is None else in_unit(value, certificate.loss))


def in_a_sentence(name: str, certificate: Certificate, constants: dict[str, float], sure: str) -> str:
    """The guarantee with its unit, beside that of a constant."""
    from gingham.summary.measure import unit_of

    beside = f"; for one constant it is {in_its_unit(certificate, constants[name])}" if name in constants else ""
    return (
        f"With {sure} confidence the {unit_of(certificate.loss)} on new data from the same source is at most "
        f"{in_its_unit(certificate, certificate.value)} (from the {name}){beside}."
    )


def listed(names: str) -> list[str]:
    """Names of files from "users.csv,movies.csv"."""
    return [name for name in names.split(",") if name]


def shown(value: float | None) -> str:
    """A number of a table, or a dash."""
    return "–" if value is None else console.text(value)


def certificate_of_labels(
    file: str,
    cluster_files: list[str],
    label: str | None,
    axes: str | None,
    loss: str,
    format: str | None,
    request: CertificateRequest,
) -> Certificate:
    """A certificate for clusters given as files with two columns, item and cluster, one file per axis.

    ``axes`` are the columns of ``file`` with the ids, separated by commas; the first columns by default.
    """
    import polars as pl

    from gingham.certificates import certify as certify_clusters
    from gingham.cli.tables.arguments import parse_alphabet
    from gingham.cli.tables.columns import id_column
    from gingham.data.table_files import read_table

    if label is None or request.alphabet is None:
        raise GinghamError("Name the column of labels (--label) and the possible labels (--alphabet 1..5).")
    table = read_table(file, format, lambda name: name != label)
    columns = axes.split(",") if axes else [c for c in table.columns if c != label][: len(cluster_files)]
    for column in (*columns, label):
        if column not in table.columns:
            raise GinghamError(f"{file!r} has no column {column!r}; it has {', '.join(table.columns)}.")
    if len(columns) != len(cluster_files):
        shown = f"{len(columns)} axes ({', '.join(columns)})"
        raise GinghamError(f"{len(cluster_files)} files of clusters were given for {shown}.")
    return certify_clusters(
        [_clusters(name) for name in cluster_files],
        table.select(id_column(table[column]).cast(pl.String) for column in columns),
        table[label].to_numpy(),
        loss=loss,
        alphabet=parse_alphabet(request.alphabet, False),
        delta=request.delta,
        bound=request.bound,
        predictor=request.predictor,
        population=request.population,
    )


def _clusters(file: str) -> dict[object, str]:
    """Item → cluster from the first two columns of a table; items are what they are written as."""
    from gingham.cli.tables.columns import id_column
    from gingham.data.table_files import read_table

    table = read_table(file, is_id=lambda name: True)
    if table.width < 2:
        raise GinghamError(f"{file!r} needs two columns, item and cluster.")
    items, clusters = ([str(value) for value in id_column(column).to_list()] for column in table.get_columns()[:2])
    if len(set(items)) < len(items):
        raise GinghamError(f"{file!r} names an item twice.")
    return dict(zip(items, clusters))
