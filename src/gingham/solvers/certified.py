"""Minimise the certificate itself: alternate the ν of log-wealth with projections, and merge clusters by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from gingham.cells import CellModel, TableLoss
from gingham.certificates import complexity
from gingham.certificates.bounds import GRID, effective_loss, log_wealth
from gingham.certificates.divergence import log_binomial
from gingham.certificates.law import GibbsLaw
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.posterior import Posterior
from gingham.problem import Objective, Problem
from gingham.solvers.coarsen import information_rises, loss_rises, prune
from gingham.solvers.loop import Solution
from gingham.solvers.projection import Projection
from gingham.solvers.schedule import Constant

DELTA = 0.05


@dataclass(frozen=True)
class Certified:
    """Descend on log-wealth, for a table loss on one grid (docs/theory/log_wealth).

    For fixed ν the bound is a monotone function of N·E_Q[−ln(1 − ℓ/ν)] + KL(Q‖P), which is P0's
    trade-off with β = 1 and that table; so Algorithm 1 minimises it, with nĪ for the partition part of
    KL. Between runs ν is set to its best value.

    Attributes
    ----------
    merge : bool
        Whether to go on by merging clusters one pair at a time, down to a single cell, and to return
        the size with the lowest certificate. The bound holds for all sizes at once (the number of
        clusters is paid in the prior), so this choice costs nothing more.
    """

    inner: Projection = field(default_factory=lambda: Projection(Constant()))
    merge: bool = False
    n_rounds: int = 20

    @property
    def max_iter(self) -> int:
        return self.inner.max_iter

    def solve(
        self,
        problem: Problem,
        start: Posterior,
        report: Callable[[int, float, Objective], None] | None = None,
    ) -> Solution:
        (sample,), (cell,) = problem.samples, problem.cells
        if not isinstance(cell, TableLoss):
            raise GinghamError(
                f"objective='certificate' needs a loss given by a table (absolute, zero-one, pinball), "
                f"not {type(cell).__name__}."
            )
        best = solution = self._descend(problem, start, report)
        lowest = certificate(solution.posterior, sample, cell)[0]
        if self.merge:
            for posterior in self._coarser(problem, solution):
                value = certificate(posterior, sample, cell)[0]
                if value < lowest:
                    lowest, best = value, replace(solution, posterior=posterior)
            best = self._descend(problem, prune(best.posterior), report)
        return replace(best, posterior=prune(best.posterior), objective=problem.objective(best.posterior))

    def _descend(
        self, problem: Problem, posterior: Posterior, report: Callable[[int, float, Objective], None] | None
    ) -> Solution:
        (sample,), (cell,) = problem.samples, problem.cells
        value, nu = certificate(posterior, sample, cell)
        for _ in range(self.n_rounds):
            solution = self.inner.solve(*at_nu(problem, posterior, nu), report)
            posterior = replace(solution.posterior, cells=(cell,))
            before, (value, nu) = value, certificate(posterior, sample, cell)
            if solution.interrupted or before - value < 1e-6:
                break
        return replace(solution, posterior=posterior)

    def _coarser(self, problem: Problem, solution: Solution) -> Iterator[Posterior]:
        """Ever coarser checkerboards: merge the cheapest pair, let items settle, repeat."""
        (sample,), (cell,) = problem.samples, problem.cells
        settle = replace(self.inner, max_iter=5)
        posterior = prune(solution.posterior)
        while max(posterior.n_clusters) > 1 and not solution.interrupted:
            _, nu = certificate(posterior, sample, cell)
            local, posterior = at_nu(problem, posterior, nu)
            posterior = merge_cheapest(local, posterior)
            posterior = replace(settle.solve(local, posterior).posterior, cells=(cell,))
            yield posterior


def at_nu(problem: Problem, posterior: Posterior, nu: float) -> tuple[Problem, Posterior]:
    """The trade-off that descends on log-wealth at one ν, and the posterior in its terms."""
    cell = problem.cells[0]
    table = TableLoss(cell.alphabet, effective_loss(cell.table / cell.range, nu))  # type: ignore[attr-defined]
    return replace(problem, cells=(table,), betas=(1.0,)), replace(posterior, cells=(table,))


def certificate(posterior: Posterior, sample: Sample, cell: CellModel) -> tuple[float, float]:
    """Log-wealth of a posterior in the loss's own unit, and the ν that attains it."""
    law = posterior.loss_law(sample)
    names = [f"{i}" for i in range(posterior.structure.n_modes)]
    price = complexity.of_posterior(dict(zip(names, posterior.assign)), posterior.answers[0], cell.n_answers or 1)
    bound = log_wealth(
        GibbsLaw.of(law.values / cell.range, law.weights), price.total, int(sample.n_tuples), DELTA, GRID
    )
    return bound.value * cell.range, bound.parameters["nu"]


def merge_cheapest(problem: Problem, posterior: Posterior) -> Posterior:
    """Merge the pair of clusters, of any mode, whose union raises the objective least."""
    statistics = posterior.statistics(problem.samples[0])
    labels = complexity.labels_by_type(posterior.answers[0], problem.cells[0].n_answers or 1)
    per_cell = sum(labels.values()) / posterior.answers[0].size
    best = (np.inf, 0, 0, 1)
    for mode, q in enumerate(posterior.assign):
        n, m = q.shape
        if m < 2:
            continue
        rise = problem.betas[0] * loss_rises(problem.cells[0], np.moveaxis(statistics, mode, 0)) + information_rises(q)
        saved = per_cell * posterior.answers[0].size / m + log_binomial(n + m - 1, m - 1)
        rise -= saved - log_binomial(n + m - 2, m - 2)
        np.fill_diagonal(rise, np.inf)
        a, b = np.unravel_index(np.argmin(rise), rise.shape)
        best = min(best, (float(rise[a, b]), mode, int(a), int(b)))
    return merge_pair(problem, posterior, *best[1:])


def merge_pair(problem: Problem, posterior: Posterior, mode: int, a: int, b: int) -> Posterior:
    """Clusters a and b of one mode as one; answers refitted."""
    assign = list(posterior.assign)
    q = assign[mode].copy()
    q[:, a] += q[:, b]
    assign[mode] = np.delete(q, b, axis=1)
    return replace(posterior, assign=tuple(assign)).refit(problem.samples[0])
