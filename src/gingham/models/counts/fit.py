"""From a matrix of counts to blocks: one start, hard moves or the concave-convex procedure."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.cells import Mass
from gingham.core.problem import Objective, Problem
from gingham.data import Mode, Sample
from gingham.errors import GinghamError
from gingham.fitting.checkpoint import once
from gingham.fitting.loop import Trace
from gingham.fitting.parallel_starts import Tell, nobody, side_by_side
from gingham.fitting.starts import from_labels
from gingham.fitting.sweep import Sweep
from gingham.kernels.sweep import make_board
from gingham.models.counts.concave import Concave
from gingham.models.counts.starts import COUNT_STARTS, draw_ahead, start_labels

SOLVERS = ("sweep", "concave")
Size = tuple[int, int | None]  # clusters of rows and of columns


@dataclass(frozen=True, eq=False)
class Blocks:
    """Clusters of rows and columns of a matrix of counts, and how they were found.

    Attributes
    ----------
    labels : (row labels, column labels)
    assigns : (row memberships, column memberships) or None
        Soft memberships where the solver gives them.
    shape : (row clusters, column clusters)
    """

    labels: tuple[Ints, Ints]
    assigns: tuple[Floats, Floats] | None
    shape: tuple[int, int]
    objective: Objective
    trace: Trace
    converged: bool
    interrupted: bool


@dataclass(frozen=True)
class CountSolver:
    """All settings of a fit; β = ∞ leaves cluster sizes free (information alone counts)."""

    beta: float = np.inf
    solver: str = "sweep"
    start: Any = "merged"
    max_iter: int = 100
    tol: float = 1e-3
    backend: str = "auto"

    def fit(
        self,
        counts: sparse.csr_array,
        n_clusters: Size,
        rng: np.random.Generator,
        report: Callable[[int, float, Objective], None] | None = None,
    ) -> Blocks:
        """Blocks of one start."""
        if self.solver not in SOLVERS:
            raise GinghamError(f"solver={self.solver!r} is unknown; choose one of {', '.join(SOLVERS)}.")
        if not self.beta > 0:
            raise GinghamError(f"beta={self.beta} must be positive (np.inf leaves cluster sizes free).")
        rows, columns = self._start(counts, n_clusters, rng)
        shape = (n_clusters[0], counts.shape[1] if n_clusters[1] is None else n_clusters[1])
        if self.solver == "concave":
            return self._concave(counts, (rows, columns), shape, report)
        moving = (0,) if n_clusters[1] is None else (0, 1)
        entries = counts.tocoo()
        board = make_board("mass", entries.coords, (rows, columns), shape, moving, weights=entries.data)
        free = np.isinf(self.beta)
        sweep = Sweep(float(not free), self.tol, self.max_iter, self.backend, int(rng.integers(2**31)))
        total = float(counts.sum())
        descent = sweep.descend(board, moving, 1.0 if free else self.beta, -float(xlogy(total, total)), report)
        return Blocks(
            (board.labels_of(0).copy(), board.labels_of(1).copy()),
            None,
            shape,
            descent.trace.objectives[-1],
            descent.trace,
            descent.converged,
            descent.interrupted,
        )

    def fits(
        self, counts: sparse.csr_array, sizes: Sequence[Size], rng: np.random.Generator, tell: Tell = nobody
    ) -> Generator[Blocks, None, None]:
        """Blocks of several starts, as `fit` finds them one after the other; side by side where that can be.

        Every start draws from the one generator, so a start that begins before another has ended begins with the
        generator as that one is expected to leave it. Where it is left elsewhere (a draw among equals), what began
        too early is done again. In the end the generator is where the last start that was taken has left it.
        """
        begins = self._ahead(counts, sizes, rng)
        expected = [generator.bit_generator.state for generator in begins]
        jobs = (partial(self.fit, counts, size, generator) for size, generator in zip(sizes, begins))
        early = side_by_side(jobs, len(begins), tell)
        done, last = 0, rng
        try:
            for blocks in early:
                last = begins[done]
                done += 1
                yield blocks
                if done < len(begins) and last.bit_generator.state != expected[done]:
                    early.close()
            late = (partial(self.fit, counts, size, last) for size in sizes[done:])
            yield from side_by_side(late, 1, lambda start, *facts: tell(done + start, *facts))
        finally:
            early.close()
            rng.bit_generator.state = last.bit_generator.state

    def _ahead(
        self, counts: sparse.csr_array, sizes: Sequence[Size], rng: np.random.Generator
    ) -> list[np.random.Generator]:
        """The generators that the first starts begin with, as many as are known beforehand."""
        begins = [rng]
        for size in sizes[:-1] if self.solver == "sweep" else ():
            ahead = deepcopy(begins[-1])
            if isinstance(self.start, str) and not draw_ahead(self.start, counts, size, ahead):
                break
            ahead.integers(2**31)  # the seed of the sweeps
            begins.append(ahead)
        return begins

    def _start(self, counts: sparse.csr_array, n_clusters: Size, rng: np.random.Generator) -> tuple[Ints, Ints]:
        if isinstance(self.start, str):
            name = self.start
            found = once(lambda: {"labels": start_labels(name, counts, n_clusters, rng)}, rng)["labels"]
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
        counts: sparse.csr_array,
        labels: tuple[Ints, Ints],
        shape: tuple[int, int],
        report: Callable[[int, float, Objective], None] | None,
    ) -> Blocks:
        if np.isinf(self.beta):
            raise GinghamError("solver='concave' gives soft memberships at a finite beta=; β = ∞ is solver='sweep'.")
        if len(labels[1]) == shape[1] > 1000:
            raise GinghamError("solver='concave' needs column clusters: n_clusters=(rows, columns).")
        problem = Problem.grid(count_sample(counts), Mass(), self.beta)
        start = from_labels(problem, labels, shape)
        solution = Concave(tol=max(self.tol * 1e-3, 1e-9), max_iter=self.max_iter, backend=self.backend).solve(
            problem, start, report
        )
        found = solution.posterior
        return Blocks(
            (found.labels[0], found.labels[1]),
            (found.assign[0], found.assign[1]),
            shape,
            solution.objective,
            solution.trace,
            solution.converged,
            solution.interrupted,
        )


def count_sample(counts: sparse.csr_array) -> Sample:
    """The co-occurrences as weighted tuples without labels; all rows and columns are items."""
    entries = counts.tocoo()
    modes = tuple(Mode(name, np.arange(n)) for name, n in zip(("row", "column"), counts.shape))
    codes = tuple(np.asarray(c, dtype=np.int32) for c in entries.coords)
    return Sample(modes, codes, weights=np.asarray(entries.data, dtype=np.float64))


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
