"""``gingham fit``: a model of a table, of whatever kind."""

from __future__ import annotations

import hashlib
import json as json_text
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import gingham
from gingham.cli import console, options
from gingham.cli.signals import SIGNALS
from gingham.errors import GinghamError
from gingham.files import checkpoint_of, forget_checkpoint

if TYPE_CHECKING:
    import polars as pl

    from gingham.cli.tables.adapter import FitTask

FEW_ROWS = 20_000


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
    missing: options.MissingLabels = None,
    format: options.Format = None,
    model: options.Model = "auto",
    clusters: options.Clusters = None,
    loss: options.Loss = None,
    effort: options.Effort = None,
    members: options.Members = None,
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
        from gingham.cli import findings
        from gingham.cli.tables.adapter import facts_about, read_task
        from gingham.cli.tables.arguments import FitOptions, column_names, parse_bounds

        wanted = FitOptions(
            axes=() if axes is None else column_names(axes, "--axes"), label=label, model=model, weight=weight,
            merges=merges, clusters=clusters, loss=loss, effort=effort, beta=beta, alphabet=alphabet,
            ordered=ordered, bounds=parse_bounds(bounds), objective=objective, solver=solver, n_init=starts,
            n_members=members, max_iter=max_iter, holdout=holdout, seed=seed, cold_start=cold_start,
            drop_missing=drop_missing, missing=tuple(missing or ()), time=time,
            degree_correction=degree_correction, directed=directed,
        )  # fmt: skip
        task, folded = read_task(file, format, wanted, wide, relation or [])
        about = facts_about(task, info or []) if summary else {}
        task = replace(task, side=facts_about(task, side or [], "--side"), info=about)
        began = perf_counter()
        fitted, facts = fit_with_checkpoint(task, out, resume, checkpoint_every, phase)
        if summary and not fitted.interrupted_:
            phase.begin("naming groups")
            try:
                with small_products(task.table.height), warnings.catch_warnings():
                    if not json:  # the end of this command says it
                        warnings.filterwarnings("ignore", "No structure was found")
                    fitted._made_readable(about or None)
            except GinghamError as refusal:
                console.say_note(f"The model file contains no named groups. {refusal}")
        phase.begin("saving")
        fitted._record = replace(fitted._record, wide=folded, missing=wanted.missing, looks=looks(fitted, out))
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


def columns_of(table: pl.DataFrame, names: set[str | None]) -> list[tuple[str, str, str]]:
    """Name, type and fingerprint of the columns that take part in a fit."""
    from gingham.cli.tables.columns import fingerprint

    used = [column for column in table.get_columns() if column.name in names and not column.dtype.is_nested()]
    return [(column.name, str(column.dtype), fingerprint(table, [column.name])) for column in used]


def identity(facts: dict[str, Any]) -> str:
    """Equal for equal facts of a fit: its data, with types and weights, and its options."""
    written = json_text.dumps([gingham.__version__, facts], sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()
