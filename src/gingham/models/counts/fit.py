"""From a matrix of counts to blocks: starts, hard moves or the concave-convex procedure; how many clusters a side."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import takewhile
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.cells import Mass
from gingham.cells.losses import DENSITIES, Need, refuse_unmet
from gingham.certificates import certify
from gingham.core.problem import Objective, Posterior, Problem
from gingham.data import Mode, Sample
from gingham.engine.place import Work, goes_to_device
from gingham.engine.sweep import make_board
from gingham.engine.threads import side_by_side
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Callback, Report, Restart, Solution, Trace, best_of, completed, ignore_progress
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Down, Schedule
from gingham.fitting.starts import from_labels, with_best_answers
from gingham.fitting.sweep import Sweep
from gingham.models.counts.starts import COUNT_STARTS, block_table, start_labels
from gingham.storage import State

SOLVERS = ("sweep", "concave")
SIZES = (2, 5, 10, 20, 40, 80, 120, 160, 240)
CRITERIA = ("held-out", "certificate")
GridSize = tuple[int, int | None]  # clusters of rows and of columns


@dataclass(frozen=True, eq=False)
class CountBlocks:
    """Clusters of rows and columns of a matrix of counts, and how they were found."""

    labels: tuple[Ints, Ints]  # (row labels, column labels)
    # (row memberships, column memberships) or None: soft memberships where the solver gives them
    assigns: tuple[Floats, Floats] | None
    shape: tuple[int, int]  # (row clusters, column clusters)
    objective: Objective
    trace: Trace
    converged: bool
    interrupted: bool
    table: Floats | None = None  # counts of the blocks of soft memberships, where they are known

    def memberships(self, side: int) -> Floats:
        """q(c|x) of the rows (0) or of the columns (1)."""
        return np.eye(self.shape[side])[self.labels[side]] if self.assigns is None else self.assigns[side]


@dataclass(frozen=True)
class Concave:
    """q(c|x) ∝ qbar(c) exp(β N Σ_others p̂(x, others) ln lift(c, others)), mode by mode, then new lifts.

    −N·I(C_1; …; C_d) is concave in each mode's memberships and Σ n Ī convex: the step minimises the
    tangent of the one plus the other exactly, so β(−N·I) + Σ n Ī never rises at constant β. With mass
    cells, whose costs are the tangent's coefficients, this is the projection step.

    A start in which all items are alike stays there; starts are firm (.9 on one cluster) and β comes down
    from 5β.
    """

    needs: ClassVar[tuple[Need, ...]] = (DENSITIES,)

    schedule: Schedule = field(default_factory=Down)
    tol: float = 1e-7
    max_iter: int = 200
    backend: str = "auto"
    firmness: float = 0.9

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        refuse_unmet("The concave-convex solver", self.needs, problem.cells)
        if start.is_hard:
            soft = [self.firmness * q + (1 - self.firmness) / q.shape[1] for q in start.assign]
            frozen = problem.structure.frozen
            soft = [start.assign[i] if i in frozen else q for i, q in enumerate(soft)]
            start = with_best_answers(problem, soft)
        projection = Projection(self.schedule, self.tol, self.max_iter, self.backend)
        return projection.solve(problem, start, report, checkpoint)


@dataclass(frozen=True)
class CountSolver:
    """All settings of a fit; β = ∞ leaves cluster sizes free (information alone counts)."""

    beta: float = np.inf
    solver: str = "sweep"
    start: str | Sequence[Ints] = "merged"
    max_iter: int = 100
    tol: float = 1e-3
    backend: str = "auto"

    def fit(
        self,
        counts: sparse.csr_array,
        n_clusters: GridSize,
        rng: np.random.Generator,
        report: Report | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> CountBlocks:
        """Blocks of one start."""
        if self.solver not in SOLVERS:
            raise GinghamError(f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}.")
        if not self.beta > 0:
            raise GinghamError(f"beta={self.beta} must be positive (np.inf leaves cluster sizes free).")
        sample = self._sample(counts, n_clusters) if self.solver == "concave" else None
        rows, columns = self._start(counts, n_clusters, rng, checkpoint.stage("start"), sample)
        sweeps = checkpoint.stage("sweeps")
        shape = (n_clusters[0], counts.shape[1] if n_clusters[1] is None else n_clusters[1])
        if sample is not None:
            return self._concave(sample, (rows, columns), shape, report, sweeps)
        moving = (0,) if n_clusters[1] is None else (0, 1)
        entries = counts.tocoo()
        board = make_board("mass", entries.coords, (rows, columns), shape, moving, weights=entries.data)
        free = np.isinf(self.beta)
        sweep = Sweep(float(not free), self.tol, self.max_iter, int(rng.integers(2**31)))
        total = float(counts.sum())
        beta, constant = 1.0 if free else self.beta, -float(xlogy(total, total))
        run = sweep.descend(board, moving, beta, constant, report, sweeps)
        labels = (board.labels_of(0).copy(), board.labels_of(1).copy())
        last = run.trace.objectives[-1]
        return CountBlocks(labels, None, shape, last, run.trace, run.converged, run.interrupted)

    def fit_sizes(
        self,
        counts: sparse.csr_array,
        sizes: Sequence[GridSize],
        rng: np.random.Generator,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Generator[CountBlocks, None, None]:
        """Blocks of several sizes, each from a seed of its own, side by side where each keeps one core busy."""
        jobs = [
            partial(self.fit, counts, size, own, checkpoint=checkpoint.stage(f"size {size[0]}, {size[1]}"))
            for size, own in zip(sizes, rng.spawn(len(sizes)))
        ]
        return side_by_side(jobs, len(sizes) if self.one_core else 1, ignore_progress)

    def best(
        self,
        counts: sparse.csr_array,
        n_clusters: GridSize,
        n_init: int,
        rng: np.random.Generator,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> CountBlocks:
        """The blocks of lowest objective among several starts; an interruption keeps the best so far."""

        def solve(restart: Restart) -> CountBlocks:
            return self.fit(counts, n_clusters, restart.rng, restart.report, restart.checkpoint)

        return best_of(
            solve, n_init, rng, max_iter=self.max_iter, callback=callback, checkpoint=checkpoint, one_core=self.one_core
        )

    @property
    def one_core(self) -> bool:
        """Whether a start keeps one core busy."""
        return self.solver == "sweep"

    def _sample(self, counts: sparse.csr_array, n_clusters: GridSize) -> Sample:
        """The counts as tuples, on the device where the fit is faster there."""
        sample, (rows, columns) = count_sample(counts), n_clusters
        if columns is not None and goes_to_device(self.backend, Work(counts.nnz, sample.shape, (rows, columns), 1, 50)):
            return sample.placed()
        return sample

    def _start(
        self,
        counts: sparse.csr_array,
        n_clusters: GridSize,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
        sample: Sample | None = None,
    ) -> tuple[Ints, Ints]:
        if isinstance(self.start, str):
            name = self.start

            def make() -> State:
                if sample is not None and sample.on_device:
                    from gingham.models.counts import starts_torch

                    if name in starts_torch.ON_DEVICE:
                        return {"labels": starts_torch.start_labels(name, sample.placed(), n_clusters, rng)}  # type: ignore[arg-type]
                return {"labels": start_labels(name, counts, n_clusters, rng)}

            stage = checkpoint.result(make, rng)
            found = stage["labels"]
            return found[0].copy(), found[1].copy()
        labels = []
        for given, n, m, side in zip(self.start, counts.shape, n_clusters, ("rows", "columns")):
            given = np.arange(n) if m is None else np.asarray(given)
            if given.shape != (n,) or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= (m or n):
                raise GinghamError(
                    f"start= for {side} needs {n} whole numbers from 0 to {(m or n) - 1}; "
                    f"or a name: {', '.join(COUNT_STARTS)}."
                )
            labels.append(given.astype(np.int64))
        return labels[0], labels[1]

    def _concave(
        self,
        sample: Sample,
        labels: tuple[Ints, Ints],
        shape: tuple[int, int],
        report: Report | None,
        checkpoint: Checkpoint,
    ) -> CountBlocks:
        if np.isinf(self.beta):
            raise GinghamError("solver='concave' gives soft memberships at a finite beta=; β = ∞ is solver='sweep'.")
        if len(labels[1]) == shape[1] > 1000:
            raise GinghamError("solver='concave' needs column clusters: n_clusters=(rows, columns).")
        problem = Problem.grid(sample, Mass(), self.beta)
        start = from_labels(problem, labels, shape)
        concave = Concave(tol=max(self.tol * 1e-3, 1e-9), max_iter=self.max_iter, backend=self.backend)
        solution = concave.solve(problem, start, report, checkpoint)
        (rows, columns), (own, other) = solution.posterior.labels, solution.posterior.assign
        return CountBlocks(
            (rows, columns), (own, other), shape, solution.objective, solution.trace, solution.converged,
            solution.interrupted, solution.posterior.statistics(sample)[..., 0],
        )  # fmt: skip


def count_sample(counts: sparse.csr_array) -> Sample:
    """The co-occurrences as weighted tuples without labels; all rows and columns are items."""
    entries = counts.tocoo()
    modes = tuple(Mode(name, np.arange(n)) for name, n in zip(("row", "column"), counts.shape))
    codes = tuple(np.asarray(c, dtype=np.int32) for c in entries.coords)
    return Sample(modes, codes, weights=np.asarray(entries.data, dtype=np.float64))


def without_entries(
    counts: sparse.csr_array, share: float, rng: np.random.Generator
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Split counts entry by entry: each pair goes to the second part, with all its counts, with probability ``share``.

    Never count by count: where a word is repeated in a document, one count that stays would give the pair away, and
    fine blocks would gain on independent data.
    """
    gone = rng.random(counts.nnz) < share
    first, second = counts.copy(), counts.copy()
    first.data, second.data = np.where(gone, 0.0, counts.data), np.where(gone, counts.data, 0.0)
    for part in (first, second):
        part.eliminate_zeros()
    return first, second


def thinned(
    counts: sparse.csr_array, share: float, rng: np.random.Generator
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Split counts token by token: each goes to the second part with probability ``share``."""
    second = counts.copy()
    second.data = rng.binomial(counts.data.astype(np.int64), share).astype(np.float64)
    first = sparse.csr_array(counts - second)
    for part in (first, second):
        part.eliminate_zeros()
    return first, second


def smoothed_lift(table: Floats, smoothing: float = 1.0) -> Floats:
    """p̃(c)/Π p(c_i), cells filled up with ``smoothing`` tuples each, spread as if modes were independent."""
    total = table.sum()
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / max(total, 1e-300) ** 2
    extra = smoothing * table.size
    p = (table + extra * expected) / (total + extra)
    return np.divide(p, expected, out=np.ones(p.shape), where=expected > 0)


def choose_n_clusters(
    criterion: str,
    counts: sparse.csr_array,
    solver: CountSolver,
    rng: np.random.Generator,
    sizes: Sequence[int] = SIZES,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[int, dict[int, float]]:
    """The number of clusters a side, and what every size that was tried is worth.

    Candidates grow until they have become worse twice. "held-out" values are nats that a tenth of the entries, held
    out, gains a count over independence (higher is better); "certificate" values are certified code lengths (lower is
    better).
    """
    if criterion not in CRITERIA:
        raise GinghamError(f"criterion={criterion!r} is unknown; choose one of {', '.join(CRITERIA)}.")
    if criterion == "certificate" and not (counts.data == np.floor(counts.data)).all():
        raise GinghamError(
            "criterion='certificate' takes every count for so many independent draws, and these are not whole numbers: "
            "give n_clusters=, or criterion='held-out'."
        )
    # Fine partitions need no merging: seeds on profiles are as good and cheaper.
    quick = replace(solver, start="profiles", max_iter=min(solver.max_iter, 8), tol=max(solver.tol, 5e-3))
    candidates = list(takewhile(lambda size: size <= min(counts.shape) // 2, sizes))

    def lowest(
        solver: CountSolver, counts: sparse.csr_array, cost: Callable[[CountBlocks], float], one: float
    ) -> tuple[int, dict[int, float]]:
        """The cheapest size, and all costs; a single cluster, which costs ``one``, is among the candidates."""
        costs, rises = {1: one}, 0
        with closing(solver.fit_sizes(counts, [(size, size) for size in candidates], rng, checkpoint)) as found:
            for size, blocks in zip(candidates, found):
                costs[size] = cost(completed(blocks))
                rises = rises + 1 if costs[size] > min(costs.values()) else 0
                if rises == 2:
                    break
        return min(costs, key=costs.__getitem__), costs

    if criterion == "certificate":
        length = partial(certified_length, counts=counts)
        one = length(completed(quick.fit(counts, (1, 1), rng, checkpoint=checkpoint.stage("size 1"))))
        return lowest(quick, counts, length, one)
    kept, held_out = without_entries(counts, 0.1, rng)
    if not held_out.nnz or not kept.nnz:
        return 1, {1: 0.0}
    quick = replace(quick, solver="sweep")
    size, losses = lowest(quick, kept, lambda blocks: -held_out_gain(blocks, kept, held_out), 0.0)
    return size, {tried: 0.0 - nats for tried, nats in losses.items()}


def held_out_gain(
    blocks: CountBlocks, counts: sparse.csr_array, held_out: sparse.csr_array, smoothing: float = 1.0
) -> float:
    """Nats a held-out token costs less than under independence: mean ln lift of its block."""
    rows, columns = blocks.labels
    table = block_table(counts, rows, columns, blocks.shape)
    entries = held_out.tocoo()
    lift = smoothed_lift(table, smoothing)[rows[entries.coords[0]], columns[entries.coords[1]]]
    return float(entries.data @ np.log(lift) / entries.data.sum())


def certified_length(blocks: CountBlocks, counts: sparse.csr_array, delta: float = 0.05) -> float:
    """The certified code length of new tokens, nats (docs/theory/density).

    It holds for all partitions into any number of clusters at once: the price ln m(m + 1) of each side is
    the union over the sizes, so choosing among them costs nothing more.
    """
    assigns = (blocks.memberships(0), blocks.memberships(1))
    return certify(assigns, count_sample(counts), bound="density", delta=delta).value
