"""``gingham fit``: a model of a table, of whatever kind."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

import gingham
from gingham.cli import console, options
from gingham.cli.signals import SIGNALS
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, checkpoint_of, forget_checkpoint

if TYPE_CHECKING:
    import polars as pl

    from gingham.cli.tables.adapter import LabelledTable
    from gingham.cli.tables.arguments import FitOptions, Relation
    from gingham.summary.look import Look


class FitCommand(TyperCommand):
    """Its help says what each kind of model is for."""

    def get_help(self, ctx: Any) -> str:  # a context of click, or of the one that some versions of typer bring
        from gingham.cli.tables.kinds import KINDS

        option = next(option for option in self.params if option.name == "model")
        lines = [f"{name}: {kind.about}" for name, kind in KINDS.items()]
        option.help = "\n\n".join(["auto: chosen from the data.", *lines])  # type: ignore[attr-defined]
        return super().get_help(ctx)


# groups of options
of_data, of_model, of_output, advanced = (
    partial(typer.Option, rich_help_panel=panel) for panel in ("Data", "Model", "Output", "Advanced")
)
FEW_ROWS = 20_000
# What only a single checkerboard knows: with one of these, labels that are numbers are not left to layers of them.
OF_ONE_BOARD = ("clusters", "loss", "beta", "objective", "solver", "n_init", "max_iter")


def fit(
    file: options.File,
    axes: Annotated[
        str | None, of_data(help="Columns with ids, one per axis: user,movie. By default from the data.")
    ] = None,
    label: Annotated[
        str | None, of_data(help="Column to predict; not needed for a graph or for counts. By default from the data.")
    ] = None,
    weight: Annotated[str | None, of_data(help="Column with counts.")] = None,
    wide: Annotated[
        bool, of_data("--wide", help="The table is wide, for example one row per person and one column per question.")
    ] = False,
    alphabet: Annotated[str | None, of_data(help="All possible labels, 1..5 or a,b,c. Certificates need it.")] = None,
    bounds: Annotated[str | None, of_data(help="Smallest and largest possible value of measured labels: 0,1.")] = None,
    relation: Annotated[
        list[str] | None,
        of_data("--relation", "-r", help="For a joint model: another table, AXES=LABEL:FILE."),
        Reads(names=lambda given: [parse_relation(one)[2] for one in given]),
    ] = None,
    info: Annotated[
        list[str] | None,
        of_data(help="Table with names and facts about the items of an axis: movie=movies.csv."),
        Reads(names=lambda given: [parse_info(one)[1] for one in given]),
    ] = None,
    drop_missing: Annotated[bool, of_data("--drop-missing", help="Leave out rows with a missing value.")] = False,
    format: Annotated[
        str | None, of_data("--format", help="csv, tsv, parquet or ndjson; by default from the name of the file.")
    ] = None,
    model: Annotated[str, of_model(help="Kind of model.")] = "auto",
    clusters: Annotated[
        str | None,
        of_model(help="Clusters per axis: 13,6, or for a joint model movie=20,genre=none. By default from the data."),
    ] = None,
    loss: Annotated[
        str | None, of_model(help="absolute, quadratic, zero-one, log, pinball, …; by default from the labels.")
    ] = None,
    merges: Annotated[
        str | None, of_model(help="For a tree: 0,1,6;2,3,6 merges axes 0 and 1 into 6 clusters, and so on; or auto.")
    ] = None,
    degree_correction: Annotated[
        str | None,
        of_model(help="For a graph: auto (the default, chosen on held-out pairs), yes or no: nodes have own degrees."),
    ] = None,
    directed: Annotated[
        bool | None,
        of_model("--directed/--undirected", help="For a graph: whether the order of the two nodes of an edge matters."),
    ] = None,
    seed: Annotated[
        int, of_model(help="Seed of random numbers; the same seed gives the same model.", min=0, max=2**32 - 1)
    ] = 0,
    out: Annotated[Path, of_output("--out", "-o", help="Model file to write."), Writes(keeps_checkpoint=True)] = Path(
        "model.gingham"
    ),
    summary: Annotated[bool, of_output(help="Find readable groups and their names, and keep them in the file.")] = True,
    json: Annotated[bool, of_output("--json", help="Print one JSON object, for scripts.")] = False,
    quiet: Annotated[bool, of_output("--quiet", "-q", help="Show no progress bar.")] = False,
    holdout: Annotated[
        float | None,
        advanced(
            help="Share of the rows to set aside for measuring the error, 0 for none. By default a tenth of labelled "
            "rows, of at most 20,000 every fifth part in turn; the model that is saved is fitted on all rows."
        ),
    ] = None,
    beta: Annotated[
        float | None, advanced(help="Weight of the loss in the trade-off; by default chosen on held-out rows.")
    ] = None,
    objective: Annotated[
        str | None, advanced(help="tradeoff (the default), or certificate to minimise the certificate.")
    ] = None,
    solver: Annotated[
        str | None,
        advanced(
            help="projection (soft clusters, the default) or sweep (hard; with --loss log by description length)."
        ),
    ] = None,
    cold_start: Annotated[
        bool,
        advanced(
            "--cold-start", help="For a joint model: place items with few rows again at the end, by their properties."
        ),
    ] = False,
    starts: Annotated[
        int | None,
        advanced(help="Number of starts, of which the best is kept; the default depends on the model.", min=1),
    ] = None,
    max_iter: Annotated[
        int | None, advanced(help="Largest number of sweeps of one start; the default depends on the model.", min=1)
    ] = None,
    resume: Annotated[bool, advanced("--resume", help="Continue from the checkpoint of an interrupted run.")] = False,
    checkpoint_every: Annotated[float, advanced(help="Seconds between checkpoints.", min=0)] = 10.0,
) -> None:
    """Fit a model to a table and save it. What is not given is decided from the data.

    gingham look shows beforehand how the columns would be understood.
    """
    relations = [parse_relation(one) for one in relation or []]
    about = dict(parse_info(one) for one in info or [])
    kept = checkpoint_of(out)
    with console.phases(quiet or json) as phase:
        phase.begin(f"reading {file}")
        from gingham.cli.tables.adapter import FitTask, check, sides_of
        from gingham.cli.tables.arguments import FitOptions, column_names, parse_bounds
        from gingham.cli.tables.columns import with_ids
        from gingham.cli.tables.kinds import kind_named
        from gingham.data.table_files import content_of, read_table, unfolded
        from gingham.fitting.checkpoints import kept_in

        if len({ids for ids, _, _ in relations}) < len(relations):
            raise GinghamError("--relation names the same columns of ids twice; one table for each.")
        names, interval = None if axes is None else column_names(axes, "--axes"), parse_bounds(bounds)
        wanted = FitOptions(
            axes=names or (), label=label, model=model, weight=weight, merges=merges, clusters=clusters, loss=loss,
            beta=beta, alphabet=alphabet, bounds=interval, objective=objective, solver=solver, n_init=starts,
            max_iter=max_iter, holdout=holdout, seed=seed, cold_start=cold_start, drop_missing=drop_missing,
            degree_correction=degree_correction, directed=directed,
        )  # fmt: skip
        if names is not None and model != "auto":
            check(kind_named(model), wanted)  # what is wrong with it shows before the table is read
        content, found = content_of(file), None
        if model == "auto" or names is None or wide:
            wanted, found = settled(
                read_table(file, format, data=content), wanted, wide, bool(relations), (file, format)
            )
        kind = kind_named(wanted.model)
        if relations and not kind.has_relations:
            raise GinghamError("--relation adds a table to a joint model: add --model joint.")
        check(kind, wanted)
        ids_in = () if kind.data == "views" else wanted.axes  # columns of views are measurements
        table = read_table(file, format, ids_in.__contains__, content)
        folded = None if found is None else found.wide
        if folded is not None:
            table = unfolded(table, folded.axes, folded.label, folded.columns, folded.zeros)
        table = with_ids(table, ids_in)
        further: dict[Relation, LabelledTable] = {
            ids: (other, with_ids(read_table(name, is_id=ids.__contains__), ids)) for ids, other, name in relations
        }
        sides = sides_of(kind, FitTask(table, wanted, further=further)) if about and summary else {}
        facts_of = {side: facts_about(side, name, sides) for side, name in about.items() if summary}
        if resume and not kept.exists():
            console.say_note("There is no checkpoint; the fit starts from the beginning.")
        phase.begin("starting")
        began = time.perf_counter()
        names = wanted.axes
        named = {wanted.label, wanted.weight, *names, *(part for name in names for part in name.split(";"))}  # of views
        prints = [columns_of(table, named)]
        prints += [columns_of(other, {*ids, title}) for ids, (title, other) in further.items()]
        key = identity({"tables": prints, "relations": [(ids, title) for ids, title, _ in relations], **asdict(wanted)})
        with SIGNALS.interrupt_fit(), kept_in(kept, key, resume, checkpoint_every) as (checkpoint, known):
            if known is not None:
                console.say_note(f"Going on after {known} sweeps.")
            task = FitTask(table, wanted, {"callback": phase.sweep, "checkpoint": checkpoint}, further)
            with small_products(table.height):
                fitted, facts = kind.tables.fit(kind, task)
        if summary and not fitted.interrupted_:
            phase.begin("naming groups")
            try:
                with small_products(table.height):
                    fitted.made_readable(facts_of or None)
            except GinghamError as refusal:
                console.say_note(f"The file has no named groups. {refusal}")
        phase.begin("saving")
        fitted.record_ = replace(fitted.record_, wide=folded)
        fitted.save(out)
    if fitted.interrupted_:  # what there is was saved, and the checkpoint stays
        console.say_note("The model so far was saved; the same command with --resume goes on.")
    else:
        forget_checkpoint(kept)
    facts = {**facts, "seconds": round(time.perf_counter() - began, 2), "file": str(out)}
    measured = fitted.errors_
    if json and measured is not None:
        facts["errors"] = measured.to_dict()
    console.show(facts, json, f"Co-clustering of {file}")
    if measured is not None and not json:
        console.errors(measured)
    if summary and not json and file != "-" and not fitted.interrupted_:
        console.say_note(f"What was found, as a page: gingham report {quote(str(out))} {quote(str(file))}")


def small_products(n_rows: int) -> AbstractContextManager[object]:
    """Matrix products of few rows on one thread: the others would wait for more at the cost of a core."""
    from gingham.engine.threads import one_blas_thread

    return one_blas_thread() if n_rows <= FEW_ROWS else nullcontext()


def settled(
    table: pl.DataFrame, said: FitOptions, wide: bool, joint: bool, source: tuple[str, str | None]
) -> tuple[FitOptions, Look | None]:
    """The options with what the data decide of them, said in a sentence, and the look that decided."""
    from gingham.cli.tables.columns import need_columns, with_ids
    from gingham.cli.tables.kinds import kind_named
    from gingham.data.table_files import numbers_with_missing_words
    from gingham.summary.look import look

    if said.model == "auto" and said.axes and not wide:
        asked = "joint" if joint or said.cold_start else "tree" if said.merges is not None else ""
        if asked:
            return replace(said, model=asked), None
    if not wide:
        for names, option in ((said.axes, "--axes"), (said.label, "--label"), (said.weight, "--weight")):
            if names:
                need_columns(table, [names] if isinstance(names, str) else names, option)
        if said.label in said.axes:
            raise GinghamError(f"Column {said.label!r} is both an axis and the label.")
        table = with_ids(table, said.axes)
    table = table.with_columns(numbers_with_missing_words(column) for column in table.get_columns())
    found = look(
        table, source[1], axes=said.axes or None, label=said.label, weight=said.weight, wide=wide or None,
        file=source[0],
    )  # fmt: skip
    choice = found.choice
    if choice is None:
        raise GinghamError(f"{found.advice[-1]} Name the columns with --axes and --label.")
    settled = replace(said, axes=choice.axes, drop_missing=said.drop_missing, label=choice.label, weight=choice.weight)
    if said.model != "auto":
        if found.wide is not None:
            kind_said, cells = kind_named(said.model), found.wide.label
            settled = replace(settled, label=None, weight=cells)
            if "label" not in kind_said.unused:
                settled = replace(settled, label=cells, weight=None)
            if kind_said.needs_label:  # then a zero is a label as any other
                found = replace(found, wide=replace(found.wide, zeros=True))
        elif said.label is not None or said.weight is not None:
            settled = replace(settled, label=said.label, weight=said.weight)
        if not said.axes:
            console.say_note(f"Columns: {columns_said(settled)}.")
        return settled, found
    kind, reason = choice.kind, choice.reason
    own = [name for name in OF_ONE_BOARD if getattr(said, name) is not None]
    if kind == "layered" and own:
        option = {"n_init": "starts", "max_iter": "max-iter"}.get(own[0], own[0])
        kind, reason = "coclustering", f"Model: coclustering, one checkerboard, because --{option} speaks of one."
    console.say_note(reason if said.axes else f"{reason} Columns: {columns_said(settled)}.")
    if found.to_state and said.alphabet is None and said.bounds is None:
        console.say_note(found.to_state)
    return replace(settled, model=kind), found


def facts_about(side: str, file: str, sides: dict[str, list[object]]) -> pl.DataFrame:
    """A table about the items of a side, ids as they are written; how many of them it knows is said."""
    import numpy as np

    from gingham.cli.tables.columns import with_ids
    from gingham.data import Mode
    from gingham.data.table_files import content_of, read_table
    from gingham.summary.make_summary import id_column_of, matched
    from gingham.summary.values import plural

    if side not in sides:
        raise GinghamError(f"--info names a side {side!r}; there are {', '.join(map(repr, sides))}.")
    content = content_of(file)
    columns = read_table(file, data=content).columns
    ids = columns[id_column_of(columns, side)]
    table = with_ids(read_table(file, is_id=ids.__eq__, data=content), [ids])
    items = np.empty(len(sides[side]), dtype=object)
    items[:] = sides[side]
    codes = matched(table, Mode.of(items, side))
    known, many = len(np.unique(codes[codes >= 0])), f"{len(items):,} {plural(side)}"
    found = f"All {many} have" if known == len(items) else f"{known:,} of {many} have"
    rest = "." if known == len(items) else "; the others are shown by their ids."
    console.say_note(f"{found} a row in {file!r}{rest}")
    return table


def columns_said(said: FitOptions) -> str:
    """The columns of a fit as options."""
    parts = [f"--axes {','.join(said.axes)}", said.label and f"--label {said.label}"]
    return " ".join(part for part in (*parts, said.weight and f"--weight {said.weight}") if part)


def columns_of(table: pl.DataFrame, names: set[str | None]) -> list[tuple[str, str, str]]:
    """Name, type and fingerprint of the columns that take part in a fit."""
    from gingham.cli.tables.columns import fingerprint

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


def identity(facts: dict[str, Any]) -> str:
    """Equal for equal facts of a fit: its data, with types and weights, and its options."""
    return hashlib.sha256(json.dumps([gingham.__version__, facts], sort_keys=True, default=str).encode()).hexdigest()
