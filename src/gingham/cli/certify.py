"""``gingham certify``: what is guaranteed of a model, or of clusters that another program found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, need_table


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
    from gingham.certificates.bounds import checked_delta
    from gingham.cli.table_files import open_model
    from gingham.cli.tables import guarantees
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
        of_labels = guarantees.of_labels(file or model, listed(labels or ""), label, axes, loss, format, request)
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
        guarantees.keep(first, save, model, predictor_is_kept=save_predictor is not None)
    if save_predictor is not None:
        guarantees.keep_predictor(first, save_predictor, opened)
    mixed = None if mix is None else guarantees.of_mix(first, mix, opened, format, str(strata))
    if json:
        also = {} if mixed is None else {"mix": mixed.to_dict()}
        console.print_json({name.replace(" ", "_"): one.to_dict() for name, one in certificates.items()} | also)
        return
    guarantees.show(certificates, opened, request, None if strata is None else first, verbose)
    if mixed is not None:
        console.say_note(
            f"In the mix of {mix} the {unit_of(mixed.loss)} is at most {guarantees.in_its_unit(mixed, mixed.value)}, "
            "where losses within strata stay as they were."
        )
    if candidates > 1:
        console.say_note(f"δ = {delta:g} is shared among {candidates:,} candidates, of which this is one.")


def listed(names: str) -> list[str]:
    """Names of files from "users.csv,movies.csv"."""
    return [name for name in names.split(",") if name]
