"""Soft density co-clustering by the concave-convex procedure, which P0 §4.2 calls open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gingham.cells.needs import DENSITIES, Need, refuse_unmet
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.fitting.loop import Report, Solution
from gingham.fitting.projection import Projection
from gingham.fitting.schedule import Down, Schedule
from gingham.fitting.starts import with_best_answers


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

    def solve(self, problem: Problem, start: Posterior, report: Report | None = None) -> Solution:
        refuse_unmet("The concave-convex solver", self.needs, problem.cells)
        if start.is_hard:
            soft = [self.firmness * q + (1 - self.firmness) / q.shape[1] for q in start.assign]
            frozen = problem.structure.frozen
            soft = [start.assign[i] if i in frozen else q for i, q in enumerate(soft)]
            start = with_best_answers(problem, soft)
        projection = Projection(self.schedule, self.tol, self.max_iter, self.backend)
        return projection.solve(problem, start, report)
