"""Trees: the sums by brute force, the objective never rises, a tree of singletons is the flat grid."""

from itertools import product

import numpy as np
import pytest

from gingham.cells import Absolute, Logarithmic, Quadratic, ZeroOne
from gingham.core.problem import Posterior, Problem, Tree
from gingham.core.tree import TreePosterior, unique_rows
from gingham.data import Alphabet, Mode, Sample
from gingham.errors import GinghamError
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.models.tree.messages import Messages

ALPHABET = Alphabet.of([0, 1, 2], given=True)
CELLS = [ZeroOne(ALPHABET), Absolute(ALPHABET), Logarithmic(ALPHABET), Quadratic(ALPHABET)]


def some_sample(rng, modes, n_rows, weights=None):
    codes = tuple(rng.integers(0, mode.n_items, n_rows).astype(np.int32) for mode in modes)
    labels = rng.integers(0, 3, n_rows)
    return Sample(tuple(modes), codes, labels.astype(float), ALPHABET, labels.astype(np.int32), weights)


def some_posterior(rng, tree, widths, cell, sample):
    assign = tuple(
        np.eye(m) if at in tree.frozen else rng.dirichlet(np.full(m, 0.5), mode.n_items)
        for at, (mode, m) in enumerate(zip(tree.modes, widths))
    )
    return TreePosterior(tree, (cell,), assign, (np.zeros(0),)).refit(sample)


def random_case(seed):
    """A random tree (leaves shared in every third case), sample, cell model and β."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 5))
    tied = seed % 3 == 0
    sizes = np.full(d, rng.integers(3, 9)) if tied else rng.integers(3, 9, d)
    leaves = np.full(d, rng.integers(1, 5)) if tied else rng.integers(1, 5, d)
    modes = [Mode(f"m{j}", np.arange(n)) for j, n in enumerate(sizes)]
    modes = [modes[0]] * d if tied else modes
    left, merges = list(range(d)), []
    for i in range(int(rng.integers(0, 4))):
        below = rng.choice(left, min(len(left), int(rng.integers(1, 4))), replace=False).tolist()
        merges.append((*below, int(rng.integers(1, 5))))
        left = [node for node in left if node not in below] + [d + i]
    tree, widths = Tree.build(modes, leaves.tolist(), merges, [tuple(range(d))] if tied else [])
    weights = rng.integers(1, 4, 80).astype(float) if seed % 2 else None
    sample = some_sample(rng, modes, 80, weights)
    cell = CELLS[seed % 4]
    problem = Problem(tree, (sample,), (cell,), (float(rng.choice([0.05, 0.3, 1.0, 3.0, 10.0])),))
    return problem, some_posterior(rng, tree, widths, cell, sample)


def test_statistics_and_predictions_are_the_sums_of_equation_50():
    rng = np.random.default_rng(0)
    modes = [Mode(f"m{j}", np.arange(n)) for j, n in enumerate((3, 4, 2, 3))]
    tree, widths = Tree.build(modes, (2, 3, 2, 2), [(0, 1, 2), (2, 3, 3)])
    sample = some_sample(rng, modes, 25)
    posterior = some_posterior(rng, tree, widths, ZeroOne(ALPHABET), sample)
    *q, r1, r2 = posterior.assign
    r1, r2 = r1.reshape(2, 3, 2), r2.reshape(2, 2, 3)
    expected = np.zeros((2, 3, 3))
    distribution = np.zeros((25, 3))
    for e in range(25):
        x = [code[e] for code in sample.codes]
        for c1, c2, c3, c4, d1, d2 in product(range(2), range(3), range(2), range(2), range(2), range(3)):
            p = q[0][x[0], c1] * q[1][x[1], c2] * q[2][x[2], c3] * q[3][x[3], c4] * r1[c1, c2, d1] * r2[c3, c4, d2]
            expected[d1, d2, sample.label_codes[e]] += p
            distribution[e, posterior.answers[0][d1, d2]] += p
    np.testing.assert_allclose(posterior.statistics(sample), expected, atol=1e-12)
    np.testing.assert_allclose(posterior.predict_distribution(sample.codes), distribution, atol=1e-12)


def test_unseen_items_fall_as_the_urn_says_at_every_leaf():
    posterior = random_case(1)[1]
    d = posterior.structure.n_leaves
    unseen = posterior.predict([np.array([-1])] * d)[0]
    first = [np.array([0])] * d
    flat = TreePosterior(
        posterior.structure,
        posterior.cells,
        tuple(
            np.tile((q.sum(0) + 1) / sum(q.shape), (len(q), 1)) if at in posterior.structure.tables[:d] else q
            for at, q in enumerate(posterior.assign)
        ),
        posterior.answers,
    )
    assert unseen == pytest.approx(flat.predict(first)[0])


@pytest.mark.parametrize("seed", range(24))
def test_objective_never_rises_and_is_the_one_reported(seed):
    problem, start = random_case(seed)
    solution = Messages(tol=0.0, max_iter=12).solve(problem, start)
    totals = np.concatenate([[problem.objective(start).total], solution.trace.totals])
    assert np.diff(totals).max() <= 1e-11 * max(1.0, abs(totals[0]))
    assert problem.objective(solution.posterior).total == pytest.approx(totals[-1], rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("merges", [[(0, None), (1, None), (2, None)], [(0, 2, None)], [(0, 1, 2, None)]])
def test_singleton_merges_equal_the_flat_grid(merges):
    rng = np.random.default_rng(3)
    modes = [Mode(f"m{j}", np.arange(n)) for j, n in enumerate((6, 7, 5))]
    cell, sizes = Absolute(ALPHABET), (3, 2, 3)
    tree, widths = Tree.build(modes, sizes, merges)
    sample = some_sample(rng, modes, 150)
    start = some_posterior(rng, tree, widths, cell, sample)
    flat = Problem.grid(sample, cell, 1.0)
    flat_start = Posterior(flat.structure, (cell,), start.assign[:3], (np.zeros(0),)).refit(sample)
    order = [0, 1, 2] if merges != [(0, 2, None)] else None
    by_tree = Messages(tol=0.0, max_iter=60).solve(Problem(tree, (sample,), (cell,), (1.0,)), start)
    by_grid = Projection(Constant(), tol=0.0, max_iter=60).solve(flat, flat_start)
    if order:  # modes are visited in the same order, so every sweep agrees
        # With tol=0 the last rounding error decides when a solver stops: one may make a sweep that changes nothing.
        common = min(len(by_tree.trace.totals), len(by_grid.trace.totals))
        assert common > 1
        np.testing.assert_allclose(by_tree.trace.totals[:common], by_grid.trace.totals[:common], rtol=1e-10)
        assert by_tree.trace.totals[-1] == pytest.approx(by_grid.trace.totals[-1], rel=1e-10)
        for a, b in zip(by_tree.posterior.assign, by_grid.posterior.assign):
            np.testing.assert_allclose(a, b, atol=1e-10)
    assert by_tree.posterior.gibbs_loss(sample) == pytest.approx(
        Posterior(flat.structure, (cell,), by_tree.posterior.assign[:3], (np.zeros(0),))
        .refit(sample)
        .gibbs_loss(sample),
        abs=1e-10,
    )


def test_unique_rows_is_numpys():
    rows = np.random.default_rng(0).integers(0, 3, (50, 3))
    distinct, inverse = unique_rows(rows)
    expected, where = np.unique(rows, axis=0, return_inverse=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(inverse, where.ravel())


def test_a_grid_is_refused():
    problem, start = random_case(1)
    with pytest.raises(GinghamError, match="projection solver"):
        Messages().solve(problem, start.at_root(problem.samples[0])[0])
