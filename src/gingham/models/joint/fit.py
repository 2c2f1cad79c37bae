"""Several relations that share modes (P0 eqs. 46-48), some of which may meet a mode twice."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import softmax

from gingham.arrays import Floats
from gingham.core.posterior import Posterior, check_table
from gingham.core.problem import Objective, Problem, information_terms
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint, Down, Report, Schedule, Solution, fixed_point
from gingham.fitting.projection import coef_by_mode, half_step
from gingham.kernels.project import project_cost

HALVINGS = 12  # of a damped step, before it is given up


@dataclass(frozen=True)
class Joint:
    """Block descent on Σ_r β_r N_r L̂_r + Σ_modes n Ī, one mode after the other.

    A mode that stands at most once in every relation is minimised exactly (the costs of its relations
    add up). A mode that stands twice in a relation takes a damped step, kept only when the objective
    falls. So at constant β the objective never rises, whatever the structure.
    """

    schedule: Schedule = field(default_factory=Down)
    tol: float = 1e-6
    max_iter: int = 200
    backend: str = "auto"

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        structure = problem.structure
        for relation, cell in enumerate(problem.cells):
            check_table([q.shape[1] for q in start.factor(relation)], cell.features.size)
        moving = [m for m in range(structure.n_modes) if m not in structure.frozen and structure.uses(m)]
        repeated = {m for factor in structure.factors for m in factor if factor.count(m) > 1}

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            losses = dict.fromkeys(range(len(problem.samples)), 0.0)
            for mode in moving:
                step = damped_step if mode in repeated else half_step
                posterior, changed = step(problem, posterior, mode, factor, self.backend)
                losses |= changed
            return posterior, Objective(
                tuple(losses[r] for r in range(len(problem.samples))), information_terms(posterior), problem.betas
            )

        return fixed_point(sweep, start, self.schedule, self.tol, self.max_iter, report, checkpoint)


def mode_cost(problem: Problem, posterior: Posterior, mode: int, backend: str = "auto") -> Floats:
    """Σ_r β_r N_r ∂L̂_r/∂q(c|x), shape (n, m), over all places at which the mode stands."""
    cost = np.zeros(posterior.assign[mode].shape)
    for relation, position in problem.structure.uses(mode):
        rows = problem.samples[relation].rows(position, problem.cells[relation].features)
        others = [q for j, q in enumerate(posterior.factor(relation)) if j != position]
        coef = coef_by_mode(posterior, relation, position)
        cost += problem.betas[relation] * project_cost(rows, others, coef, backend)
    return cost


def damped_step(
    problem: Problem, posterior: Posterior, mode: int, factor: float = 1.0, backend: str = "auto"
) -> tuple[Posterior, dict[int, float]]:
    """Move one mode along its gradient step in the log domain, halving it until the objective falls.

    Where a mode meets itself the loss is not linear in its memberships, and the full step may overshoot
    (P1's parallel update oscillates). Returns the new posterior and N_r L̂_r of its relations.
    """
    relations = sorted({relation for relation, _ in problem.structure.uses(mode)})

    def settled(q: Floats) -> tuple[Posterior, dict[int, float], float]:
        """The posterior with these memberships and best answers, its losses, and what of F depends on them."""
        assign = list(posterior.assign)
        assign[mode] = q
        answers, losses = list(posterior.answers), {}
        moved = replace(posterior, assign=tuple(assign))
        for relation in relations:
            cell = problem.cells[relation]
            cells = moved.statistics(problem.samples[relation], relation, backend=backend)
            answers[relation] = cell.answer(cells)
            losses[relation] = float(cell.loss(answers[relation], cells).sum())
        moved = replace(moved, answers=tuple(answers))
        total = factor * sum(problem.betas[r] * loss for r, loss in losses.items()) + information_terms(moved)[mode]
        return moved, losses, total

    old = posterior.assign[mode]
    stay = settled(old)
    with np.errstate(divide="ignore"):  # a dead cluster stays dead
        target = softmax(np.log(posterior.mass[mode]) - factor * mode_cost(problem, posterior, mode, backend), axis=1)
        log_old, log_target = np.log(old), np.log(target)
    step = 1.0
    for _ in range(HALVINGS):
        q = target if step == 1.0 else softmax((1.0 - step) * log_old + step * log_target, axis=1)
        moved, losses, total = settled(q)
        if total <= stay[2]:
            return moved, losses
        step /= 2.0
    return stay[0], stay[1]
