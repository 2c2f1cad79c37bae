"""``gingham fit``: a model of a table, of whatever kind."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from gingham.cli import console, options
from gingham.cli.signals import SIGNALS
from gingham.errors import GinghamError

if TYPE_CHECKING:
    import polars as pl

    from gingham.models.tables import LabelledTable, Relation


class FitCommand(TyperCommand):
    """Its help lists the kinds of models that there are."""

    def get_help(self, ctx: Any) -> str:  # a context of click, or of the one that some versions of typer bring
        from gingham.models.kinds import kinds

        option = next(option for option in self.params if option.name == "model")
        option.help = f"{', '.join(kinds())}."  # type: ignore[attr-defined]
        return super().get_help(ctx)


def fit(
    file: options.File,
    axes: options.Ids,
    label: options.Label = None,
    model: Annotated[str, typer.Option(help="Kind of model.")] = "coclustering",
    merges: Annotated[
        str | None, typer.Option(help="Of a tree: 0,1,6;2,3,6 merges axes 0 and 1 into 6 clusters…; or auto.")
    ] = None,
    out: options.OutModel = Path("model.gingham"),
    weight: Annotated[str | None, typer.Option(help="Column with counts.")] = None,
    clusters: Annotated[
        str | None,
        typer.Option(help="Clusters per axis: 13,6; of a joint model also movie=20,genre=none. By size if absent."),
    ] = None,
    loss: options.Loss = None,
    beta: Annotated[
        float | None, typer.Option(help="Trade-off per unit of loss; from held-out rows if absent.")
    ] = None,
    alphabet: Annotated[
        str | None, typer.Option(help="All possible labels, 1..5 or a,b,c. Certificates want it stated.")
    ] = None,
    bounds: options.Bounds = None,
    relation: Annotated[
        list[str] | None, typer.Option("--relation", "-r", help="Of a joint model: a further table, AXES=LABEL:FILE.")
    ] = None,
    cold_start: Annotated[
        bool, typer.Option("--cold-start", help="Of a joint model: place items with few tuples anew.")
    ] = False,
    objective: Annotated[
        str | None, typer.Option(help="tradeoff (the default), or certificate to minimise the certificate.")
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(
            help="projection (soft, the default), or sweep: hard moves; with --loss log, a description length."
        ),
    ] = None,
    starts: Annotated[int | None, typer.Option(help="Starts; the best is kept. By kind if absent.", min=1)] = None,
    max_iter: Annotated[int | None, typer.Option(help="Most sweeps of one start. By kind if absent.", min=1)] = None,
    holdout: Annotated[
        float | None, typer.Option(help="Share set aside to measure the error, 0 for none; .1 of labelled rows.")
    ] = None,
    info: Annotated[
        list[str] | None,
        typer.Option(help="What is known of the items of an axis, for names and facts: movie=movies.csv."),
    ] = None,
    reading: Annotated[
        bool, typer.Option(help="Find readable groups and their names, and keep them in the file.")
    ] = True,
    seed: options.Seed = 0,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Co-cluster a table of tuples and save the model."""
    from gingham.cli.checkpoint import checkpoint_of, forget, identity, need_own

    relations = [parse_relation(one) for one in relation or []]
    about = dict(parse_info(one) for one in info or [])
    inputs = [file, *(source for _, _, source in relations), *about.values()]
    options.need_files(out, tables=inputs)
    kept = checkpoint_of(out)
    options.need_files(kept, tables=inputs)
    if not resume:
        need_own(kept)
    with console.phases(quiet or json) as phase:
        phase.begin(f"reading {file}")
        from gingham.cli.table_files import read_table
        from gingham.fitting.checkpoint import kept_in
        from gingham.models.tables import KEPT_TEXT, FitOptions, FitTask, tables_of_kind, with_ids

        tables = tables_of_kind(model)
        if relations and not tables.has_relations:
            raise GinghamError("--relation adds a table to a joint model: add --model joint.")
        if len({ids for ids, _, _ in relations}) < len(relations):
            raise GinghamError("--relation names the same columns of ids twice; one table for each.")
        names, interval = options.column_names(axes, "--axes"), options.parse_bounds(bounds)
        wanted = FitOptions(
            axes=names, label=label, model=model, weight=weight, merges=merges, clusters=clusters, loss=loss,
            beta=beta, alphabet=alphabet, bounds=interval, objective=objective, solver=solver, n_init=starts,
            max_iter=max_iter, holdout=holdout, seed=seed, cold_start=cold_start, drop_missing=drop_missing,
        )  # fmt: skip
        tables.check(wanted)
        table = with_ids(read_table(file, format, tables.id_axes(wanted).__contains__), tables.id_axes(wanted))
        further: dict[Relation, LabelledTable] = {
            ids: (other, with_ids(read_table(name, is_id=ids.__contains__), ids)) for ids, other, name in relations
        }
        if resume and not kept.exists():
            console.say_note("There is no checkpoint; the fit begins at its beginning.")
        phase.begin("starting")
        began = time.perf_counter()
        named = {label, weight, *names, *(part for name in names for part in name.split(";"))}  # views have semicolons
        prints = [columns_of(table, named)]
        prints += [columns_of(other, {*ids, title}) for ids, (title, other) in further.items()]
        key = identity({"tables": prints, "relations": [(ids, title) for ids, title, _ in relations], **asdict(wanted)})
        with SIGNALS.told(), kept_in(kept, key, resume, checkpoint_every) as (checkpoint, known):
            if known is not None:
                console.say_note(f"Going on after {known} sweeps.")
            task = FitTask(table, wanted, {"callback": phase.sweep, "checkpoint": checkpoint}, further)
            fitted = tables.fit(task)
        if reading and not fitted.model.interrupted_:
            phase.begin("naming groups")
            try:
                fitted.model.made_readable({axis: read_table(name) for axis, name in about.items()} or None)
            except GinghamError as refusal:
                if about:
                    raise
                console.say_note(f"The file has no named groups. {refusal}")
        phase.begin("saving")
        fitted.model.save(out, {**fitted.notes, **KEPT_TEXT})
    if fitted.model.interrupted_:  # what there is was saved, and the checkpoint stays
        console.say_note("The model so far was saved; the same command with --resume goes on.")
    else:
        forget(kept)
    facts = {**fitted.facts, "seconds": round(time.perf_counter() - began, 2), "file": str(out)}
    console.show(facts, json, f"Co-clustering of {file}")


def columns_of(table: pl.DataFrame, names: set[str | None]) -> list[tuple[str, str, str]]:
    """Name, type and fingerprint of the columns that take part in a fit."""
    from gingham.models.tables import fingerprint

    used = [column for column in table.get_columns() if column.name in names and not column.dtype.is_nested()]
    return [(column.name, str(column.dtype), fingerprint(table, [column.name])) for column in used]


def parse_info(listed: str) -> tuple[str, str]:
    """Axis and file from AXIS=FILE."""
    axis, sign, file = listed.partition("=")
    if not (axis.strip() and sign and file.strip()):
        raise GinghamError(f"--info {listed!r} must read AXIS=FILE, movie=movies.csv say.")
    return axis.strip(), file.strip()


def parse_relation(listed: str) -> tuple[Relation, str, str]:
    """Id columns, label column and file from AXES=LABEL:FILE."""
    axes, sign, rest = listed.partition("=")
    label, colon, file = rest.partition(":")
    if not (axes and sign and label and colon and file):
        raise GinghamError(f"--relation {listed!r} must read AXES=LABEL:FILE, viewer,movie=rating:ratings.csv say.")
    return tuple(name.strip() for name in axes.split(",")), label, file
