"""Shared matrices: the objective never rises, repeated modes included; costs are derivatives."""

from dataclasses import replace

import numpy as np
import pytest

from gingham.cells import Absolute, Logarithmic, Quadratic, ZeroOne
from gingham.core.problem import Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.fitting.projection import Projection, mode_cost
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import make_start

ALPHABET = Alphabet.of([0, 1, 2], given=True)
CELLS = [ZeroOne(ALPHABET), Absolute(ALPHABET), Logarithmic(ALPHABET), Quadratic(ALPHABET)]


def random_problem(seed, repeats):
    rng = np.random.default_rng(seed)
    modes = tuple(Mode(f"m{i}", np.arange(rng.integers(3, 9))) for i in range(rng.integers(3, 5)))
    frozen = (len(modes) - 1,) if seed % 3 == 0 else ()
    factors, samples, cells, betas = [], [], [], []
    for relation in range(int(rng.integers(1, 4))):
        factor = tuple(int(m) for m in rng.choice(len(modes), int(rng.integers(2, 4)), replace=repeats))
        factors.append(factor)
        places = tuple(modes[m] for m in factor)
        codes = tuple(rng.integers(0, mode.n_items, 60).astype(np.int32) for mode in places)
        labels = rng.integers(0, 3, 60)
        weights = rng.integers(1, 4, 60).astype(float) if relation % 2 else None
        samples.append(Sample(places, codes, labels.astype(float), ALPHABET, labels.astype(np.int32), weights))
        cells.append(CELLS[int(rng.integers(4))])
        betas.append(float(rng.choice([0.05, 0.3, 1.0, 4.0])))
    problem = Problem(Structure(modes, tuple(factors), frozen), tuple(samples), tuple(cells), tuple(betas))
    sizes = [mode.n_items if at in frozen else int(rng.integers(1, 5)) for at, mode in enumerate(modes)]
    return problem, make_start("random", problem, sizes, rng), rng


@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_objective_never_rises_and_is_the_one_reported(seed, repeats):
    problem, start, _ = random_problem(seed, repeats)
    used = {m for factor in problem.structure.factors for m in factor}
    if not used - set(problem.structure.frozen):
        pytest.skip("nothing moves")
    settled = start
    for relation, sample in enumerate(problem.samples):
        settled = settled.refit(sample, relation)
    solution = Projection(Constant(), tol=0.0, max_iter=10).solve(problem, settled)
    totals = np.concatenate([[problem.objective(settled).total], solution.trace.totals])
    assert np.diff(totals).max() <= 1e-11 * max(1.0, abs(totals[0]))
    moved = [r for r, f in enumerate(problem.structure.factors) if set(f) - set(problem.structure.frozen)]
    if len(moved) == len(problem.samples):
        assert problem.objective(solution.posterior).total == pytest.approx(totals[-1], rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_mode_cost_is_the_derivative_of_the_losses(seed):
    problem, posterior, rng = random_problem(seed, repeats=True)
    mode = problem.structure.factors[0][0]
    cost = mode_cost(problem, posterior, mode)
    direction = rng.standard_normal(cost.shape)

    def loss(step):
        assign = list(posterior.assign)
        assign[mode] = assign[mode] + step * direction
        objective = problem.objective(replace(posterior, assign=tuple(assign)))
        return float(np.dot(objective.betas, objective.losses))

    assert (loss(1e-5) - loss(-1e-5)) / 2e-5 == pytest.approx(float((cost * direction).sum()), rel=1e-5, abs=1e-4)
