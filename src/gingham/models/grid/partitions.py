"""A grid fitted to a table in partitions on a dask cluster."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gingham import storage
from gingham.arrays import AnyArray
from gingham.cells import CellModel
from gingham.core.problem import Objective, Posterior, Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import id_columns
from gingham.data.fit_rows import FitRows
from gingham.data.partitioned import PartitionedTable, drawn, encoded, facts_of, modes_of
from gingham.data.sample import joined_ids
from gingham.engine.dask_worker import Future, submit
from gingham.engine.partition_sums import State
from gingham.engine.partitions import Descent, Partitions, ScatteredSums
from gingham.engine.sums import Sums
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, iterate, settled, solution_of
from gingham.fitting.schedules import Constant, Schedule

GROUP_TUPLES = 20_000_000  # of partitions that are swept as one


@dataclass(frozen=True, eq=False)
class ScatteredProblem(Problem):
    """A grid whose observations are in partitions; it has no samples, only their sums."""

    scattered: ScatteredSums

    def sums(self, relation: int) -> Sums:
        return self.scattered


def problem_of(
    data: Partitions, modes: Sequence[Mode], cell: CellModel, beta: float, alphabet: Alphabet | None
) -> ScatteredProblem:
    """What starts need to know of partitioned observations."""
    sums = ScatteredSums(data, cell, None if alphabet is None else alphabet.numbers)
    return ScatteredProblem(Structure.grid(tuple(modes)), (), (cell,), (beta,), sums)


@dataclass(frozen=True, eq=False)
class ScatteredProjection:
    """`Projection` over the partitions of a `ScatteredProblem`: the same descent from the same start."""

    data: Partitions
    schedule: Schedule = field(default_factory=Constant)
    tol: float = 1e-6
    max_iter: int = 200

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        (cell,), (beta,) = problem.cells, problem.betas
        first = State(start.assign[1:], start.answers[0], start.mass, (0.0,) * self.data.n_modes, 0.0)
        descent = Descent(self.data, cell, first, self.max_iter)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            loss, information = descent.sweep(beta * factor)
            return posterior, Objective((loss,), information, (beta,))

        def restored(kept: storage.State) -> Posterior:
            descent.restore(kept)
            return start

        run = iterate(
            sweep, start, self.schedule, to_file=lambda _: descent.kept(), from_file=restored,
            terminate=partial(settled, schedule=self.schedule, tol=self.tol), max_iter=self.max_iter, report=report,
            checkpoint=checkpoint,
        )  # fmt: skip
        solution = solution_of(run, start)
        ends = descent.end()
        if ends is None:
            return solution
        rows, final = self.data.memberships(ends)
        return replace(
            solution, posterior=Posterior(problem.structure, (cell,), (rows, *final.others), (final.answers,))
        )


class Rows(NamedTuple):
    """The observations of a table, encoded in their partitions, and the frames that they were read from."""

    data: Partitions
    modes: list[Mode]
    alphabet: Alphabet | None
    cell: CellModel
    n_observations: float
    n_rows: int
    learned: list[Future[FitRows]]  # sketches of the rows of each partition
    frames: list[Future[Any]]

    def release(self) -> FitRows:
        """The sketch of all rows; frames are let go, and read again if a worker is lost."""
        first, *others = self.data.client.gather(self.learned)
        self.frames.clear()
        return first.with_rows(*others)


def read(table: PartitionedTable, model: Any) -> Rows:
    """The rows of a table in partitions; the model says what labels and cells it has."""
    client = table.client
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # messages are as large as they are
        frames, n_groups = table.frames()
    known = [submit(client, facts_of, frame, table.names, model.alphabet is not None) for frame in frames]
    facts = client.gather(known)
    modes, items = modes_of(facts)
    labels = np.unique(np.concatenate([fact.labels for fact in facts if fact.n_rows]))
    alphabet = model._alphabet(labels)
    cell = model._cell(alphabet, labels)
    groups = groups_of([fact.n_rows for fact in facts], n_groups)
    parts: list[Any] = []
    for group in groups:
        frames_and_facts = [futures[at] for futures in (frames, known) for at in group]
        numbers = not cell.features.one_hot
        parts.append(submit(client, encoded, table.names, modes[1:], alphabet, numbers, *frames_and_facts))
    learned = [submit(client, Sample.fit_rows, part) for part in parts]
    places = [modes[0].encode(joined_ids([items[at] for at in group])) for group in groups]
    data = Partitions(client, parts, places, len(modes))
    n_observations, n_rows = float(sum(fact.n_observations for fact in facts)), sum(fact.n_rows for fact in facts)
    return Rows(data, modes, alphabet, cell, n_observations, n_rows, learned, frames)


def few_rows(rows: Rows, table: PartitionedTable, n: int, seed: int) -> tuple[Any, AnyArray, AnyArray | None]:
    """X, y and weights of about n rows, drawn from all partitions."""
    return drawn(rows.data.client, rows.frames, table.names, n / max(1, rows.n_rows), seed)


def sample_of_few(rows: Rows, X: Any, y: AnyArray, weight: AnyArray | None) -> Sample:
    """Drawn rows as a sample."""
    names = [mode.name for mode in rows.modes]
    return Sample.of(id_columns(X).columns, np.asarray(y), weight, names=names, alphabet=rows.alphabet)


def groups_of(n_rows: Sequence[int], n_groups: int) -> list[AnyArray]:
    """Consecutive partitions that are swept as one: a task costs more than many observations, so few and large ones."""
    wanted = max(n_groups, -(-sum(n_rows) // GROUP_TUPLES))
    groups = np.array_split(np.arange(len(n_rows)), min(wanted, len(n_rows)))
    return [group for group in groups if len(group)]
