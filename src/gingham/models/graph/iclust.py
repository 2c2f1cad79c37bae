"""Iclust (Slonim et al. 2005): clusters of similar items, the related work that P1 starts from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective, Problem, information_terms
from gingham.data.graphs import PairSample
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint, Constant, Report, Solution, fixed_point
from gingham.models.graph.adjacency import weighted_pairs
from gingham.models.graph.solvers import Damping, answered, pair_sample


@dataclass(frozen=True)
class Iclust:
    """Maximise ⟨s⟩ − T Ī, ⟨s⟩ = Σ_c qbar(c) Σ_{x,y} q(x|c) q(y|c) w_xy, with T = 1/β of the problem.

    q(c|x) ∝ qbar(c) exp{β [2 s(c; x) − s(c)]}, all nodes at once, damped in the log domain and halved
    until the objective rises, so that it never falls. Pairs that were not observed count with the mean
    weight. Only weights within clusters matter; what clusters say of each other does not, and a ring of
    disassortative clusters is invisible to it. The block answers are fitted afterwards, so that predictions
    and certificates are on the scale of every other model.
    """

    tol: float = 1e-7
    max_iter: int = 200
    smallest_step: float = 1e-4

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        sample = pair_sample(problem, "Iclust", positions=2)
        weights, rest = similarity(sample)
        beta, damping = problem.betas[0], Damping(self.smallest_step)

        def objective(posterior: Posterior) -> Objective:
            q = posterior.assign[0]
            return Objective(
                (-len(q) * float(mean_similarity(q, weights, rest)),), information_terms(posterior), (beta,)
            )

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            q, before = posterior.assign[0], objective(posterior)
            with np.errstate(divide="ignore"):
                target = np.log(posterior.mass[0]) + beta * _gradient(q, weights, rest)

            def attempt(q: Floats) -> tuple[Posterior, Objective]:
                moved = replace(posterior, assign=(q,))
                return moved, objective(moved)

            return damping.move(q, target, attempt, lambda after: after.total < before.total) or (posterior, before)

        solution = fixed_point(sweep, start, Constant(), self.tol, self.max_iter, report, checkpoint, damping.memory)
        return replace(solution, posterior=answered(problem, solution.posterior)[0])


def similarity(sample: PairSample) -> tuple[sparse.csr_array, float]:
    """Weights of the listed pairs less that of all others, symmetric, and the weight of the others."""
    pairs = weighted_pairs(sample)
    rest = 0.0 if sample.complete else float(pairs.values.mean())
    n = sample.n_nodes
    return sparse.csr_array((pairs.values - rest, pairs.others, pairs.indptr), shape=(n, n)), rest


def mean_similarity(assign: Floats, weights: sparse.csr_array, rest: float = 0.0) -> float:
    """⟨s⟩, the expected weight of two nodes drawn from one cluster, which is drawn by its mass."""
    within = _within(assign, weights, rest)
    mass = assign.sum(axis=0)
    return float((within / np.maximum(mass, 1e-300)).sum() / len(assign))


def _within(assign: Floats, weights: sparse.csr_array, rest: float) -> Floats:
    """Σ_{x ≠ y} q(c|x) q(c|y) w_xy of each cluster, shape (m,)."""
    mass = assign.sum(axis=0)
    return (assign * (weights @ assign)).sum(axis=0) + rest * (mass**2 - (assign**2).sum(axis=0))


def _gradient(assign: Floats, weights: sparse.csr_array, rest: float) -> Floats:
    """n ∂⟨s⟩/∂q(c|x) = 2 s(c; x) − s(c), shape (n, m)."""
    mass = np.maximum(assign.sum(axis=0), 1e-300)
    near = (weights @ assign + rest * (mass - assign)) / mass
    return 2.0 * near - _within(assign, weights, rest) / mass**2
