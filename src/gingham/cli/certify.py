"""``gingham certify``: what is guaranteed of a model, or of clusters that another program found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes

if TYPE_CHECKING:
    from gingham.certificates import Certificate
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
        str | None, typer.Option(help="With --labels: the columns with ids. For a joint model: the relation.")
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
        typer.Option(
            help="Earlier fits, tested on all rows after their own, that make progressive tests tighter.", min=0
        ),
    ] = 0,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the order of progressive tests; by default the one that the fit has drawn. Another one is "
            "another candidate, which costs a share of δ.",
            min=0,
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            help="Among how many models, settings or seeds these certificates decide: each costs its share of δ.",
            min=1,
        ),
    ] = 1,
    save: Annotated[
        Path | None, typer.Option(help="File to write the first certificate to, for gingham verify."), Writes()
    ] = None,
    save_predictor: Annotated[
        Path | None, typer.Option(help="File to write the predictor to that the progressive tests certify."), Writes()
    ] = None,
    label: options.OtherLabel = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Guarantee the loss of a model on new data, from the data it was fitted on.

    First by progressive tests: the model is fitted anew on a growing part of the rows and tested on those that come
    next, which certifies the predictor made of these fits (--save-predictor keeps it). Then the model itself: on its
    training rows; and the same model fitted without some rows, on those, which are recognised. All certificates that
    are shown hold together. Views and features are certified on objects and features that the fit has not seen.
    """
    if labels is None and file is None:
        raise GinghamError("Name the table after the model, or give clusters from elsewhere with --labels.")
    from gingham.certificates import Certificate
    from gingham.certificates.confidence import checked_delta
    from gingham.cli.table_files import open_model
    from gingham.cli.tables.arguments import CertificateRequest, column_names, parse_bounds, parse_population
    from gingham.models.base import Saved
    from gingham.models.fit_record import FitRecord
    from gingham.summary.measure import side_by_side

    items, ends = parse_population(population), parse_bounds(bounds)
    checked_delta(delta)
    request = CertificateRequest(
        delta / candidates, bound, predictor, alphabet, ends, progressive, seed, items, references
    )
    if labels is not None or file is None:
        if progressive or references or save or save_predictor:
            raise GinghamError(
                "Clusters from elsewhere are not fitted anew: leave --progressive, --references and --save out."
            )
        found = certificate_of_labels(file or model, listed(labels or ""), label, axes, loss, format, request)
        if json:
            console.print_json(found.to_dict())
        else:
            console.paragraphs(found.explain())
        return
    relation = None if axes is None else column_names(axes, "--axes")
    opened = open_model(model, file, format, label, drop_missing, relation)
    certificates = opened.certificates(request)
    first = next(iter(certificates.values()))
    if save is not None:
        if not isinstance(first, Certificate):
            raise GinghamError("This certificate has a form of its own, which gingham verify does not read: --json.")
        first.save(save)
        if save_predictor is None and isinstance(getattr(first, "model", None), Saved):
            console.say_note(
                f"{save} speaks of the predictor that the progressive tests made, not of {model}. gingham verify needs "
                "it: keep it with --save-predictor predictor.gingham. --no-progressive certifies the model itself."
            )
    if save_predictor is not None:
        certified = getattr(first, "model", None)
        if not isinstance(certified, Saved):
            raise GinghamError("--save-predictor keeps what progressive tests certify, and there are none.")
        certified.record_ = replace(opened.model.record_ or FitRecord(), measured=None)
        certified.save(save_predictor)
    if json:
        console.print_json({name.replace(" ", "_"): one.to_dict() for name, one in certificates.items()})
        return
    if seed is not None:
        console.say_note(f"The seed {seed} of the order of the tests was chosen by you, and not drawn by the fit.")
    try:
        constants = opened.without_groups(certificates, request)
    except GinghamError:  # a constant has no certificate then, and the others stand alone
        constants = {}
    losses = {name: one for name, one in certificates.items() if isinstance(one, Certificate)}
    for unit, lines in side_by_side(opened.model.errors_, losses, constants).items():
        rows = [[line.name, *(shown(v) for v in (line.measured, line.n_rows, line.guaranteed))] for line in lines]
        console.grid(unit, ["", "measured", "on rows", "guaranteed at most"], rows)
    if candidates > 1:
        console.say_note(f"δ = {delta:g} is shared among {candidates:,} candidates, of which this is one.")
    if len(certificates) > 1:
        together = (
            f"{len(certificates)} certificates, which hold together with confidence {100 * (1 - request.delta):g} %: "
        )
        console.paragraphs(together + "each has its share of δ.")
    for name, one in certificates.items():
        console.heading(f"From the {name}")
        console.paragraphs(one.explain())


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
        raise GinghamError("Say which column holds the labels (--label) and what they can be (--alphabet 1..5).")
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
