"""Minimise a certificate itself by projections on its linear part, and merge clusters by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, cast

import numpy as np

from gingham.arrays import Floats
from gingham.cells import CellModel, TableLoss
from gingham.cells.losses import TABLE, Need, refuse_unmet
from gingham.certificates.bounds import LossDistribution, effective_loss, find
from gingham.certificates.prices import labels_by_type, log_binomial, of_posterior
from gingham.core.problem import Posterior, Problem
from gingham.data import Alphabet, Sample
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, mark_interrupted
from gingham.fitting.merging import ladder, prune
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant

DELTA = 0.05
STEP = 1e-4  # of the shares of the losses, by which a bound is differentiated


@dataclass(frozen=True)
class Certified:
    """Descend on a certificate itself, for a table loss on one grid.

    A bound is a function of the distribution of the loss and of the complexity. Linearised at the present posterior it
    is P0's trade-off with β = 1 and a table of its own (`local_table`), which Algorithm 1 minimises, with nĪ for the
    partition part of KL; then it is linearised anew. For log-wealth at its best ν the table is exact, −ln(1 − ℓ/ν)
    (docs/theory/log_wealth). The best posterior on the way is kept.

    ``merge`` goes on by merging clusters one pair at a time, down to a single cell, and returns the size with the
    lowest certificate. The bound holds for all sizes at once (the number of clusters is paid in the prior), so this
    choice costs nothing more.
    """

    needs: ClassVar[tuple[Need, ...]] = (TABLE,)

    inner: Projection = field(default_factory=lambda: Projection(Constant()))
    merge: bool = False
    n_rounds: int = 20
    bound: str = "log-wealth"  # any bound for all posteriors

    @property
    def max_iter(self) -> int:
        return self.inner.max_iter

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        (sample,), (cell,) = problem.samples, problem.cells
        refuse_unmet("objective='certificate'", self.needs, (cell,))
        best = solution = self._descend(problem, start, report, checkpoint)
        lowest = certificate(solution.posterior, sample, cell, self.bound)
        if self.merge and not solution.interrupted:
            for coarser in self._coarser(problem, solution, checkpoint):
                if coarser.interrupted:
                    best = mark_interrupted(best)
                    break
                value = certificate(coarser.posterior, sample, cell, self.bound)
                if value < lowest:
                    lowest, best = value, replace(solution, posterior=coarser.posterior)
            else:
                best = self._descend(problem, prune(best.posterior), report, checkpoint.stage("size found"))
        return replace(best, posterior=prune(best.posterior), objective=problem.objective(best.posterior))

    def _descend(
        self, problem: Problem, posterior: Posterior, report: Report | None, checkpoint: Checkpoint
    ) -> Solution:
        (sample,), (cell,) = problem.samples, problem.cells
        lowest, best = certificate(posterior, sample, cell, self.bound), posterior
        for number in range(self.n_rounds):
            stage = checkpoint.stage(f"linearised {number + 1}")
            solution = self.inner.solve(*linearised(problem, posterior, self.bound), report, stage)
            posterior = replace(solution.posterior, cells=(cell,))
            value = certificate(posterior, sample, cell, self.bound)
            gained = lowest - value
            if gained > 0:
                lowest, best = value, posterior
            if solution.interrupted or gained < 1e-6:
                break
        return replace(solution, posterior=best)

    def _coarser(self, problem: Problem, solution: Solution, checkpoint: Checkpoint) -> Iterator[Solution]:
        """Ever coarser checkerboards: merge the cheapest pair, let items settle, repeat."""
        (cell,) = problem.cells
        settle = replace(self.inner, max_iter=5)
        posterior = prune(solution.posterior)
        while max(posterior.n_clusters) > 1:
            local, posterior = linearised(problem, posterior, self.bound)
            posterior = merge_cheapest(local, posterior)
            stage = checkpoint.stage(f"merged to {' x '.join(map(str, posterior.n_clusters))}")
            settled = settle.solve(local, posterior, checkpoint=stage)
            posterior = replace(settled.posterior, cells=(cell,))
            yield replace(settled, posterior=posterior)


def linearised(problem: Problem, posterior: Posterior, bound: str) -> tuple[Problem, Posterior]:
    """The trade-off that descends on a bound near a posterior, and the posterior in its terms."""
    (sample,), (cell,) = problem.samples, problem.cells
    table = TableLoss(cast(Alphabet, cell.alphabet), local_table(posterior, sample, cell, bound))
    return replace(problem, cells=(table,), betas=(1.0,)), replace(posterior, cells=(table,))


def local_table(posterior: Posterior, sample: Sample, cell: CellModel, bound: str) -> Floats:
    """τ(ℓ) = (∂B/∂p(ℓ)) / (N ∂B/∂KL) of every entry of the loss table: N·E τ + KL falls as the bound B does."""
    theorem = find(bound)
    scaled = cast(Floats, cell.table) / cell.range
    distribution, price, n = facts(posterior, sample, cell, theorem.price)
    now = theorem.function(distribution, price, n, DELTA)
    if theorem.name == "log-wealth":
        return effective_loss(scaled, now.parameters["nu"])
    values = np.unique(scaled)
    weights = np.array([float(distribution.weights[distribution.values == v].sum()) for v in values])

    def at(shares: Floats, complexity: float) -> float:
        return theorem.function(LossDistribution.of(values, shares, values), complexity, n, DELTA).value

    base = at(weights, price)
    more = max(1.0, 1e-3 * price)
    per_nat = max((at(weights, price + more) - base) / more, 1e-300)
    slopes = np.array([(at((1 - STEP) * weights + STEP * unit, price) - base) / STEP for unit in np.eye(len(values))])
    table = slopes[np.searchsorted(values, scaled)] / (per_nat * n)
    return table - table.min()  # a constant changes nothing


def facts(posterior: Posterior, sample: Sample, cell: CellModel, kind: str) -> tuple[LossDistribution, float, int]:
    """The distribution of the scaled loss, KL(Q‖P) and N: all that a bound needs."""
    distribution = posterior.loss_law(sample)
    support = None if cell.table is None else np.unique(cell.table) / cell.range
    names = [f"{i}" for i in range(posterior.structure.n_modes)]
    price = of_posterior(dict(zip(names, posterior.assign)), posterior.answers[0], cell.n_answers or 1, kind=kind)
    return (
        LossDistribution.of(distribution.values / cell.range, distribution.weights, support),
        price.total,
        int(sample.n_observations),
    )


def certificate(posterior: Posterior, sample: Sample, cell: CellModel, bound: str = "log-wealth") -> float:
    """A bound of a posterior in the loss's own unit."""
    theorem = find(bound)
    return theorem.function(*facts(posterior, sample, cell, theorem.price), DELTA).value * cell.range


def merge_cheapest(problem: Problem, posterior: Posterior) -> Posterior:
    """Merge the pair of clusters, of any mode, whose union raises the objective least."""
    labels = labels_by_type(posterior.answers[0], problem.cells[0].n_answers or 1)

    def saved(mode: int) -> float:
        n, m = posterior.assign[mode].shape
        return sum(labels.values()) / m + log_binomial(n + m - 1, m - 1) - log_binomial(n + m - 2, m - 2)

    *_, last = islice(ladder(problem, posterior, saved=saved), 2)
    return last.posterior
