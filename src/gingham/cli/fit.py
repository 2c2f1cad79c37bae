"""``gingham fit``: a model of a table, of whatever kind."""

from __future__ import annotations

import hashlib
import json as json_text
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from shlex import quote
from time import perf_counter
from typing import TYPE_CHECKING, Any

import gingham
from gingham.cli import console, findings, options
from gingham.cli.options import parse_info, parse_relation
from gingham.cli.signals import SIGNALS
from gingham.errors import GinghamError, GinghamWarning
from gingham.files import checkpoint_of, forget_checkpoint

if TYPE_CHECKING:
    import polars as pl

    from gingham.cli.tables.adapter import FitTask
    from gingham.cli.tables.arguments import FitOptions
    from gingham.summary.look import Look
    from gingham.summary.values import WideTable


FEW_ROWS = 20_000
# What only a single checkerboard knows: with one of these, labels that are numbers are not left to layers of them.
OF_ONE_BOARD = ("clusters", "loss", "beta", "objective", "solver", "n_init", "max_iter")


def fit(
    file: options.File,
    axes: options.Ids = None,
    label: options.Label = None,
    weight: options.Weight = None,
    wide: options.Wide = False,
    alphabet: options.Alphabet = None,
    ordered: options.Ordered = False,
    bounds: options.Bounds = None,
    relation: options.Relations = None,
    time: options.Time = None,
    side: options.Side = None,
    info: options.Info = None,
    drop_missing: options.DropMissing = False,
    missing: options.MissingLabel = None,
    format: options.Format = None,
    model: options.Model = "auto",
    clusters: options.Clusters = None,
    loss: options.Loss = None,
    effort: options.Effort = None,
    merges: options.Merges = None,
    degree_correction: options.DegreeCorrection = None,
    directed: options.Directed = None,
    seed: options.Seed = 0,
    out: options.OutFit = Path("model.gingham"),
    summary: options.WithSummary = True,
    json: options.Json = False,
    quiet: options.Quiet = False,
    holdout: options.Holdout = None,
    beta: options.Beta = None,
    objective: options.Objective = None,
    solver: options.Solver = None,
    cold_start: options.ColdStart = False,
    starts: options.Starts = None,
    max_iter: options.MaxIter = None,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
) -> None:
    """Fit a model to a table and save it. What is not given is decided from the data.

    gingham look shows beforehand how the columns would be understood.

    Examples
    --------
    gingham fit ratings.csv
    gingham fit ratings.csv --axes user,movie --label rating
    gingham fit ratings.csv --axes user,movie --label rating --clusters 13,6 --loss absolute --beta 1 --alphabet
        1..5 --out model.gingham
    gingham fit edges.csv --model graph --axes from,to --clusters 10
    gingham fit ratings.csv --model joint --axes user,movie --label rating -r movie,genre=has:genres.csv
    zcat votes.csv.gz | gingham fit - --axes member,bill --label vote --json
    """
    with console.phases(quiet or json) as phase:
        phase.begin(f"reading {file}")
        from gingham.cli.tables.arguments import FitOptions, column_names, parse_bounds

        wanted = FitOptions(
            axes=() if axes is None else column_names(axes, "--axes"), label=label, model=model, weight=weight,
            merges=merges, clusters=clusters, loss=loss, effort=effort, beta=beta, alphabet=alphabet,
            ordered=ordered, bounds=parse_bounds(bounds), objective=objective, solver=solver, n_init=starts,
            max_iter=max_iter, holdout=holdout, seed=seed, cold_start=cold_start, drop_missing=drop_missing,
            missing=missing, time=time, degree_correction=degree_correction, directed=directed,
        )  # fmt: skip
        task, folded = read_task(file, format, wanted, wide, relation or [])
        task = replace(task, side=facts_about(task, side or [], "--side"))
        facts_of = facts_about(task, info or []) if summary else {}
        began = perf_counter()
        fitted, facts = fit_with_checkpoint(task, out, resume, checkpoint_every, phase)
        if summary and not fitted.interrupted_:
            phase.begin("naming groups")
            try:
                with small_products(task.table.height), warnings.catch_warnings():
                    if not json:  # the end of this command says it
                        warnings.filterwarnings("ignore", "No structure was found")
                    fitted._made_readable(facts_of or None)
            except GinghamError as refusal:
                console.say_note(f"The model file contains no named groups. {refusal}")
        phase.begin("saving")
        fitted._record = replace(fitted._record, wide=folded, missing=missing, looks=looks(fitted, out))
        fitted.save(out)
        sure = findings.guarantee(task, fitted)
    if fitted.interrupted_:  # what there is was saved, and the checkpoint stays
        console.say_note("The model so far was saved. Repeat the command with --resume to continue.")
    else:
        forget_checkpoint(checkpoint_of(out))
    facts |= {"seconds": round(perf_counter() - began, 2), "file": str(out)}
    findings.show(fitted, facts, sure, file, json)


def looks(model: Any, out: Path) -> int:
    """How many models somebody has seen the held-out error of, fitted one after the other to this table and file.

    Whoever keeps the best of them has chosen by the rows that test it.
    """
    from numpy import array_equal

    from gingham.models.base import load

    record = model._record
    try:
        before = load(out)._record if out.exists() else None
    except GinghamError:
        before = None
    if before is None or before.measured is None or record.measured is None or before.fingerprint != record.fingerprint:
        return 1
    again = array_equal(before.measured.predictions, record.measured.predictions)
    return int(before.looks) + (not again)


def read_task(
    file: str, format: str | None, wanted: FitOptions, wide: bool, relations: list[str]
) -> tuple[FitTask, WideTable | None]:
    """The tables of a fit with all that was said and what the data decide; and how a wide one was unfolded."""
    from gingham.cli.tables.adapter import FitTask, check
    from gingham.cli.tables.columns import with_ids, with_logarithm, without_label
    from gingham.cli.tables.kinds import kind_named
    from gingham.data.table_files import content_of, read_table, unfolded

    others = [parse_relation(one) for one in relations]
    if len({ids for ids, _, _ in others}) < len(others):
        raise GinghamError("--relation names the same columns of ids twice; one table for each.")
    if wanted.axes and wanted.model != "auto":
        check(kind_named(wanted.model), wanted)  # what is wrong with it shows before the table is read
    content, found = content_of(file), None
    if wanted.model == "auto" or not wanted.axes or wide:
        table = with_logarithm(read_table(file, format, data=content), wanted.label)
        wanted, found = settled(table, wanted, wide, bool(others), (file, format))
    kind = kind_named(wanted.model)
    if others and not kind.has_relations:
        raise GinghamError("--relation adds a table to a joint model: add --model joint.")
    check(kind, wanted)
    table = read_table(file, format, wanted.axes.__contains__, content)
    folded = None if found is None else found.wide
    if folded is not None:
        table = unfolded(table, folded.axes, folded.label, folded.columns, folded.zeros, folded.steps)
    table = without_label(with_logarithm(table, wanted.label), wanted.label, wanted.missing)
    further = {
        names: (label, with_ids(read_table(other, is_id=names.__contains__), names)) for names, label, other in others
    }
    return FitTask(with_ids(table, wanted.axes), wanted, further=further), folded


def fit_with_checkpoint(
    task: FitTask, out: Path, resume: bool, every: float, phase: console.Phases
) -> tuple[Any, dict[str, Any]]:
    """The fitted model and its facts; Ctrl-C keeps what there is, and ``resume`` goes on from it."""
    from gingham.cli.tables.kinds import kind_named
    from gingham.fitting.checkpoints import kept_in

    kept, said = checkpoint_of(out), task.options
    if resume and not kept.exists():
        console.say_note("There is no checkpoint; the fit starts from the beginning.")
    phase.begin("starting")
    prints = [columns_of(task.table, {said.label, said.weight, said.time, *said.axes})]
    prints += [columns_of(table, {*table.columns}) for table in task.side.values()]
    prints += [columns_of(other, {*ids, title}) for ids, (title, other) in task.further.items()]
    relations = [(ids, title) for ids, (title, _) in task.further.items()]
    key = identity({"tables": prints, "relations": relations, **asdict(said)})
    kind = kind_named(said.model)
    with SIGNALS.interrupt_fit(), kept_in(kept, key, resume, every) as (checkpoint, known):
        if known is not None:
            console.say_note(f"Continuing after {known} sweeps.")
        task = replace(task, arguments={"callback": phase.sweep, "checkpoint": checkpoint})
        with small_products(task.table.height):
            found: tuple[Any, dict[str, Any]] = kind.tables.fit(kind, task)
    return found


def small_products(n_rows: int) -> AbstractContextManager[object]:
    """Matrix products of few rows on one thread: the others would wait for more at the cost of a core."""
    from gingham.engine.threads import one_blas_thread

    return one_blas_thread() if n_rows <= FEW_ROWS else nullcontext()


def settled(
    table: pl.DataFrame, said: FitOptions, wide: bool, joint: bool, source: tuple[str, str | None]
) -> tuple[FitOptions, Look | None]:
    """The options with what the data decide of them, said in a sentence, and the look that decided."""
    from gingham.cli.tables.columns import need_columns, with_ids
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
    for line in found.advice if said.missing is None else ():
        warnings.warn(line, GinghamWarning, stacklevel=2)
    chosen = replace(said, axes=choice.axes, label=choice.label, weight=choice.weight)
    if said.model != "auto":
        return of_kind(said, chosen, found)
    kind, reason = choice.kind, choice.reason
    own = [name for name in OF_ONE_BOARD if getattr(said, name) is not None]
    if kind == "layered" and own:
        option = {"n_init": "starts", "max_iter": "max-iter"}.get(own[0], own[0])
        kind, reason = (
            "coclustering",
            f"Model: coclustering, one checkerboard, because --{option} is an option of one checkerboard.",
        )
    console.say_note(reason if said.axes else f"{reason} Columns: {columns_said(chosen)}.")
    return replace(chosen, model=kind), found


def of_kind(said: FitOptions, chosen: FitOptions, found: Look) -> tuple[FitOptions, Look]:
    """The columns that a named kind of model takes of what was found."""
    from gingham.cli.tables.kinds import kind_named

    kind = kind_named(said.model)
    if found.wide is not None:
        cells = found.wide.label
        takes_label = "label" not in kind.unused
        chosen = replace(chosen, label=cells if takes_label else None, weight=None if takes_label else cells)
        if kind.needs_label:  # then a zero is a label as any other
            found = replace(found, wide=replace(found.wide, zeros=True))
    elif said.label is not None or said.weight is not None:
        chosen = replace(chosen, label=said.label, weight=said.weight)
    if not said.axes:
        console.say_note(f"Columns: {columns_said(chosen)}.")
    return chosen, found


def facts_about(task: FitTask, given: list[str], option: str = "--info") -> dict[str, pl.DataFrame]:
    """Tables about the items of sides, matched before the fit."""
    from gingham.cli.tables.adapter import sides_of
    from gingham.cli.tables.kinds import kind_named

    sides = sides_of(kind_named(task.options.model), task) if given else {}
    found = {}
    for side, file in (parse_info(one, option) for one in given):
        if side not in sides:
            raise GinghamError(f"{option} names the side {side!r}; there are {', '.join(map(repr, sides))}.")
        found[side] = table_about(side, file, sides[side])
    return found


def table_about(side: str, file: str, items: list[object]) -> pl.DataFrame:
    """A table about the items of a side, ids as they are written; how many of them it knows is said."""
    import numpy as np

    from gingham.cli.tables.columns import with_ids
    from gingham.data import Mode
    from gingham.data.table_files import content_of, read_table
    from gingham.summary.item_tables import id_column_of, matched
    from gingham.summary.values import plural

    content = content_of(file)
    columns = read_table(file, data=content).columns
    ids = columns[id_column_of(columns, side)]
    table = with_ids(read_table(file, is_id=ids.__eq__, data=content), [ids])
    of_side = np.empty(len(items), dtype=object)
    of_side[:] = items
    codes = matched(table, Mode.of(of_side, side))
    known, many = len(np.unique(codes[codes >= 0])), f"{len(items):,} {plural(side)}"
    begins = f"All {many} have" if known == len(items) else f"{known:,} of {many} have"
    rest = "." if known == len(items) else "; the other ids are shown as they are."
    console.say_note(f"{begins} a row in {file!r}{rest}")
    return table


def columns_said(said: FitOptions) -> str:
    """The columns of a fit as options."""
    parts = [f"--axes {quote(','.join(said.axes))}", said.label and f"--label {quote(said.label)}"]
    return " ".join(part for part in (*parts, said.weight and f"--weight {said.weight}") if part)


def columns_of(table: pl.DataFrame, names: set[str | None]) -> list[tuple[str, str, str]]:
    """Name, type and fingerprint of the columns that take part in a fit."""
    from gingham.cli.tables.columns import fingerprint

    used = [column for column in table.get_columns() if column.name in names and not column.dtype.is_nested()]
    return [(column.name, str(column.dtype), fingerprint(table, [column.name])) for column in used]


def identity(facts: dict[str, Any]) -> str:
    """Equal for equal facts of a fit: its data, with types and weights, and its options."""
    written = json_text.dumps([gingham.__version__, facts], sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()
