"""The evidence bound on 400 random problems: how far it ever fell; and the updates against brute force.

Problems: all families, items without entries, weights, frozen columns, learned concentrations, both
approximations. Brute force: every entry's joint distribution by a softmax over all cells.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import digamma, softmax

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "models" / "bayesian"))

from test_variational import brute_bound, densities, random_problem, start_of

from common import arguments, write
from gingham.cells.families import FAMILIES
from gingham.models.bayesian.fit import APPROXIMATIONS, Variational

FIGURES = {
    "largest relative fall of the bound": "*/largest relative fall",
    "gap to brute force": "brute force/largest gap of the bound",
}


def falls(approximation: str, n_problems: int, rng: np.random.Generator) -> dict:
    worst, sweeps = 0.0, 0
    for trial in range(n_problems):
        problem = random_problem(
            rng, list(FAMILIES)[trial % 4], n=int(rng.integers(3, 40)), frozen=trial % 5 == 4,
            weighted=trial % 3 == 0, pseudo=float(rng.choice([0.1, 1.0, 5.0])),
        )  # fmt: skip
        alpha = float(rng.choice([0.05, 0.5, 2.0]))
        solver = Variational(approximation, learn_concentration=trial % 2 == 0, max_iter=25, tol=0.0)
        totals = solver.solve(problem, start_of(problem, rng, (alpha, 2 * alpha))).trace.totals
        worst = max(worst, float((np.diff(totals) / np.abs(totals).max()).max()))
        sweeps += len(totals)
    return {"problems": n_problems, "sweeps": sweeps, "largest relative fall": worst}


def against_brute_force(rng: np.random.Generator) -> dict:
    """Largest difference of expected counts and of the bound after one per-entry step."""
    counts_gap = bound_gap = 0.0
    for name in FAMILIES:
        for _ in range(10):
            problem = random_problem(rng, name, weighted=True)
            sample, start = problem.samples[0], start_of(problem, rng)
            logs = [digamma(g) - digamma(g.sum(1, keepdims=True)) for g in start.gamma]
            energy = logs[0][sample.codes[0]][:, :, None] + logs[1][sample.codes[1]][:, None, :]
            joint = softmax(energy + densities(problem, start.answers[0]), axis=(1, 2))
            solution = Variational(max_iter=1).solve(problem, start)
            for axis, got in enumerate(solution.posterior.counts):
                want = np.zeros_like(got)
                np.add.at(want, sample.codes[axis], sample.weights[:, None] * joint.sum(2 - axis))
                counts_gap = max(counts_gap, float(np.abs(got - want).max()))
            bound_gap = max(bound_gap, abs(-solution.objective.total - brute_bound(problem, solution.posterior, joint)))
    return {"problems": 40, "largest gap of counts": counts_gap, "largest gap of the bound": bound_gap}


def main() -> None:
    args = arguments("The evidence bound never falls; updates equal brute force.", "bayesian_bound")
    rng = np.random.default_rng(args.seed)
    results = {name: falls(name, 12 if args.quick else 200, rng) for name in APPROXIMATIONS}
    results["brute force"] = against_brute_force(rng)
    print(results)
    write(args, {"sweeps_per_problem": 25}, results)


if __name__ == "__main__":
    main()
