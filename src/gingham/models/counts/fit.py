"""From a matrix of counts to blocks: starts, hard moves or the concave-convex procedure; how many clusters a side."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.cells import Mass
from gingham.certificates import certify
from gingham.core.problem import Objective, Problem
from gingham.data import Mode, Sample
from gingham.engine.sweep import make_board
from gingham.engine.threads import side_by_side
from gingham.errors import GinghamError, one_of
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Callback, Report, Restart, Trace, best_of, completed, ignore_progress
from gingham.fitting.projection import Projection
from gingham.fitting.starts import from_labels
from gingham.fitting.sweep import Sweep
from gingham.models.counts.starts import COUNT_STARTS, block_table, start_labels
from gingham.models.counts.tensor import Counts, CountsT, side_names
from gingham.summary.values import smoothed_lift

SOLVERS = ("sweep", "concave")
SIZES = (2, 5, 10, 20, 40, 80, 120, 160, 240)
CRITERIA = ("held-out", "certificate")
GridSize = tuple[int | None, ...]  # clusters of each side; None leaves the columns of a matrix by themselves
FIRMNESS = 0.9  # of the start of soft memberships
MOST_CELLS = 2**24  # of a table whose size is chosen


@dataclass(frozen=True, eq=False)
class CountBlocks:
    """Clusters of every side of some counts, and how they were found."""

    labels: tuple[Ints, ...]  # by side, rows first, and so is all that follows
    assigns: tuple[Floats, ...] | None  # soft memberships where the solver gives them
    shape: tuple[int, ...]  # numbers of clusters
    objective: Objective
    trace: Trace
    converged: bool
    interrupted: bool
    table: Floats | None = None  # counts of the blocks of soft memberships, where they are known

    def memberships(self, side: int) -> Floats:
        """q(c|x) of the rows (0) or of the columns (1)."""
        return np.eye(self.shape[side])[self.labels[side]] if self.assigns is None else self.assigns[side]


@dataclass(frozen=True)
class CountSolver:
    """All settings of a fit; β = ∞ leaves cluster sizes free (information alone counts).

    "concave" is the projection with mass cells, whose costs are the coefficients of the tangent of −N·I. That is
    concave in each mode's memberships and Σ n Ī is convex, so that at constant β the step, which minimises the tangent
    plus Σ n Ī, never raises β(−N·I) + Σ n Ī. Items that are all alike would stay so: starts are firm, and β comes down.
    """

    beta: float = np.inf
    solver: str = "sweep"
    start: str | Sequence[Ints] = "merged"
    max_iter: int = 100
    tol: float = 1e-3

    def fit(
        self,
        counts: Counts,
        n_clusters: GridSize,
        rng: np.random.Generator,
        report: Report | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> CountBlocks:
        """Blocks of one start."""
        one_of("solver", self.solver, SOLVERS)
        if not self.beta > 0:
            raise GinghamError(f"beta={self.beta} must be positive (np.inf leaves cluster sizes free).")
        labels = self._start(counts, n_clusters, rng, checkpoint.stage("start"))
        sweeps = checkpoint.stage("sweeps")
        shape = tuple(n if m is None else m for m, n in zip(n_clusters, counts.shape))
        if self.solver == "concave":
            return self._concave(count_sample(counts), labels, shape, report, sweeps)
        moving = tuple(side for side, m in enumerate(n_clusters) if m is not None)
        entries = counts.tocoo()
        board = make_board("mass", entries.coords, labels, shape, moving, weights=entries.data)
        free = np.isinf(self.beta)
        sweep = Sweep(float(not free), self.tol, self.max_iter, int(rng.integers(2**31)))
        total = float(counts.data.sum())
        beta, constant = 1.0 if free else self.beta, -float(xlogy(total, total)) * (len(shape) - 1)
        run = sweep.descend(board, moving, beta, constant, report, sweeps)
        labels = tuple(board.labels_of(side).copy() for side in range(len(shape)))
        last = run.trace.objectives[-1]
        return CountBlocks(labels, None, shape, last, run.trace, run.converged, run.interrupted)

    def fit_sizes(
        self,
        counts: Counts,
        sizes: Sequence[GridSize],
        rng: np.random.Generator,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Generator[CountBlocks, None, None]:
        """Blocks of several sizes, each from a seed of its own, side by side where each keeps one core busy."""
        jobs = [
            partial(self.fit, counts, size, own, checkpoint=checkpoint.stage(f"size {', '.join(map(str, size))}"))
            for size, own in zip(sizes, rng.spawn(len(sizes)))
        ]
        return side_by_side(jobs, len(sizes) if self.one_core else 1, ignore_progress)

    def best(
        self,
        counts: Counts,
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
        """Whether a start uses a single core, so that several can run side by side."""
        return self.solver == "sweep"

    def _start(
        self, counts: Counts, n_clusters: GridSize, rng: np.random.Generator, checkpoint: Checkpoint
    ) -> tuple[Ints, ...]:
        if isinstance(self.start, str):
            name = self.start
            found = checkpoint.result(lambda: {"labels": start_labels(name, counts, n_clusters, rng)}, rng)
            return tuple(labels.copy() for labels in found["labels"])
        labels = []
        for given, n, m, side in zip(self.start, counts.shape, n_clusters, side_names(len(counts.shape))):
            given = np.arange(n) if m is None else np.asarray(given)
            if given.shape != (n,) or given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= (m or n):
                raise GinghamError(
                    f"start= for {side} needs {n} integers from 0 to {(m or n) - 1}; or a name: "
                    f"{', '.join(COUNT_STARTS)}."
                )
            labels.append(given.astype(np.int64))
        return tuple(labels)

    def _concave(
        self,
        sample: Sample,
        labels: tuple[Ints, ...],
        shape: tuple[int, ...],
        report: Report | None,
        checkpoint: Checkpoint,
    ) -> CountBlocks:
        if np.isinf(self.beta):
            raise GinghamError("solver='concave' gives soft memberships at a finite beta=; β = ∞ is solver='sweep'.")
        if len(labels[1]) == shape[1] > 1000:
            raise GinghamError("solver='concave' needs column clusters: n_clusters=(rows, columns).")
        problem = Problem.grid(sample, Mass(), self.beta)
        solver = Projection(tol=max(self.tol * 1e-3, 1e-9), max_iter=self.max_iter)
        solution = solver.solve(problem, from_labels(problem, labels, shape, FIRMNESS), report, checkpoint)
        posterior = solution.posterior
        return CountBlocks(
            posterior.labels, posterior.assign, shape, solution.objective, solution.trace, solution.converged,
            solution.interrupted, posterior.statistics(sample)[..., 0],
        )  # fmt: skip


def count_sample(counts: Counts) -> Sample:
    """The co-occurrences as weighted observations without labels; all rows and columns are items."""
    entries = counts.tocoo()
    modes = tuple(Mode(name, np.arange(n)) for name, n in zip(side_names(len(counts.shape)), counts.shape))
    codes = tuple(np.asarray(c, dtype=np.int32) for c in entries.coords)
    return Sample(modes, codes, weights=np.asarray(entries.data, dtype=np.float64))


def without_entries(counts: CountsT, share: float, rng: np.random.Generator) -> tuple[CountsT, CountsT]:
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


def choose_n_clusters(
    criterion: str,
    counts: Counts,
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
    one_of("criterion", criterion, CRITERIA)
    if criterion == "certificate" and not (counts.data == np.floor(counts.data)).all():
        raise GinghamError(
            "criterion='certificate' needs integer counts, because each counts as so many independent draws: give"
            " n_clusters=, or criterion='held-out'."
        )
    # Fine partitions need no merging: seeds on profiles are as good and cheaper.
    quick = replace(solver, start="profiles", max_iter=min(solver.max_iter, 8), tol=max(solver.tol, 5e-3))
    d = len(counts.shape)
    candidates = list(takewhile(lambda size: size <= min(counts.shape) // 2 and size**d <= MOST_CELLS, sizes))

    def lowest(
        solver: CountSolver, counts: Counts, cost: Callable[[CountBlocks], float], one: float
    ) -> tuple[int, dict[int, float]]:
        """The cheapest size, and all costs; a single cluster, which costs ``one``, is among the candidates."""
        costs, rises = {1: one}, 0
        with closing(solver.fit_sizes(counts, [(size,) * d for size in candidates], rng, checkpoint)) as found:
            for size, blocks in zip(candidates, found):
                costs[size] = cost(completed(blocks))
                rises = rises + 1 if costs[size] > min(costs.values()) else 0
                if rises == 2:
                    break
        return min(costs, key=costs.__getitem__), costs

    if criterion == "certificate":
        length = partial(certified_length, counts=counts)
        one = length(completed(quick.fit(counts, (1,) * d, rng, checkpoint=checkpoint.stage("size 1"))))
        return lowest(quick, counts, length, one)
    kept, held_out = without_entries(counts, 0.1, rng)
    if not held_out.nnz or not kept.nnz:
        return 1, {1: 0.0}
    quick = replace(quick, solver="sweep")
    size, losses = lowest(quick, kept, lambda blocks: -held_out_gain(blocks, kept, held_out), 0.0)
    return size, {tried: 0.0 - nats for tried, nats in losses.items()}


def held_out_gain(blocks: CountBlocks, counts: Counts, held_out: sparse.csr_array) -> float:
    """Nats a held-out token costs less than under independence: mean ln lift of its block."""
    table = block_table(counts, blocks.labels, blocks.shape)
    entries = held_out.tocoo()
    at = tuple(labels[code] for labels, code in zip(blocks.labels, entries.coords))
    lift = smoothed_lift(table)[at]
    return float(entries.data @ np.log(lift) / entries.data.sum())


def certified_length(blocks: CountBlocks, counts: Counts, delta: float = 0.05) -> float:
    """The certified code length of new tokens, nats (docs/theory/density).

    It holds for all partitions into any number of clusters at once: the price ln m(m + 1) of each side is
    the union over the sizes, so choosing among them costs nothing more.
    """
    assigns = [blocks.memberships(side) for side in range(len(blocks.shape))]
    return certify(assigns, count_sample(counts), bound="density", delta=delta).value
