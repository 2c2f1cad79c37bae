"""Items that nobody has seen: drawn from the prior's own urn, at no price, by enumeration of all partitions."""

from itertools import product
from math import comb, factorial, log

import numpy as np
import pytest

import gingham as gg
from gingham.cells import Absolute, Quadratic
from gingham.certificates.prices import partition_exact
from gingham.core.problem import Posterior, Structure
from gingham.core.tree import Tree, TreePosterior
from gingham.data import Alphabet, Mode, Moments, OneHot, Sample

STARS = Alphabet.of((1, 2, 3), given=True)


def prior(partition, m):
    """P(partition of items into m clusters): the sizes are all alike, then the arrangements."""
    n, sizes = len(partition), np.bincount(partition, minlength=m)
    ways = factorial(n) / np.prod([float(factorial(size)) for size in sizes])
    return 1 / (m * (m + 1)) / comb(n + m - 1, m - 1) / ways


def partitions(q, more):
    """Every partition of the items of q and ``more`` unseen ones, with its probability under the extended Q."""
    n, m = q.shape
    for partition in product(range(m), repeat=n + more):
        seen = np.prod([q[x, c] for x, c in enumerate(partition[:n])])
        yield partition, seen * prior(partition, m) / prior(partition[:n], m)


def graph(seed=0, n=3, m=2):
    rng = np.random.default_rng(seed)
    structure = Structure((Mode("node", np.arange(n)),), ((0, 0),))
    return Posterior(structure, (Absolute(STARS),), (rng.dirichlet(np.ones(m), n),), (rng.integers(0, 3, (m, m)),))


@pytest.mark.parametrize("m", [1, 2, 3])
def test_extending_q_by_the_urn_costs_nothing(m):
    q = np.random.default_rng(m).dirichlet(np.ones(m), 3)
    paid = sum(partition_exact(q).values())
    for more in (0, 1, 2):
        every = [(p, mass) for p, mass in partitions(q, more) if mass > 0]
        assert sum(mass for _, mass in every) == pytest.approx(1.0)
        assert sum(mass * log(mass / prior(p, m)) for p, mass in every) == pytest.approx(paid)


def test_an_unseen_item_of_a_grid_falls_as_the_urn_says():
    rng = np.random.default_rng(0)
    modes = (Mode("a", np.arange(3)), Mode("b", np.arange(2)))
    assign = (rng.dirichlet(np.ones(2), 3), rng.dirichlet(np.ones(3), 2))
    posterior = Posterior(Structure.grid(modes), (Quadratic(),), assign, (rng.random((2, 3)),))
    for q, row in zip(assign, posterior.unseen_rows):
        distribution = np.zeros(q.shape[1])
        for partition, mass in partitions(q, 1):
            distribution[partition[-1]] += mass
        np.testing.assert_allclose(row, distribution)
    expected = posterior.unseen_rows[0] @ posterior.answers[0] @ assign[1][1]
    assert posterior.predict([np.array([-1]), np.array([1])])[0] == pytest.approx(expected)


@pytest.mark.parametrize("m", [2, 3])
def test_pairs_of_a_graph_are_drawn_from_one_urn(m):
    posterior = graph(m=m)
    expected = np.zeros((3, m, m))  # (x, unseen), (unseen, x), (unseen, unseen)
    for partition, mass in partitions(posterior.assign[0], 2):
        node, *others = partition[1], *partition[3:]
        for at, (a, c) in enumerate([(node, others[0]), (others[0], node), others]):
            expected[at, a, c] += mass
    codes = [np.array([1, -1, -1]), np.array([-1, 1, -1])]
    distributions = posterior.cell_distributions(codes).reshape(3, m, m)
    np.testing.assert_allclose(distributions, expected)
    row = posterior.unseen_rows[0]
    assert np.abs(distributions[2] - np.outer(row, row)).max() > 0.01  # two independent draws would be something else


def some_sample(posterior, seed=1, size=40, alphabet=STARS, least=-1):
    rng = np.random.default_rng(seed)
    columns = posterior.structure.columns()
    codes = [rng.integers(least, mode.n_items, size).astype(np.int32) for mode in columns]
    if len(columns) == 2 and columns[0] is columns[1]:
        codes[1] = np.where((codes[0] == codes[1]) & (codes[0] >= 0), (codes[1] + 1) % columns[0].n_items, codes[1])
    labels = rng.integers(0, 3, size).astype(np.int32)
    weights = rng.integers(1, 4, size).astype(float)
    return Sample(columns, tuple(codes), labels + 1.0, alphabet, labels if alphabet else None, weights)


def tree(tied=()):
    rng = np.random.default_rng(3)
    modes = [Mode("w", np.arange(4))] * 3 if tied else [Mode(f"leaf {j}", np.arange(3 + j)) for j in range(3)]
    structure, widths = Tree.build(modes, (2, 2, 2), ((0, 1, 2),), tied)
    assign = tuple(rng.dirichlet(np.ones(m), mode.n_items) for mode, m in zip(structure.modes, widths))
    return TreePosterior(structure, (Absolute(STARS),), assign, (rng.integers(0, 3, (2, 2)),))


def grid():
    rng = np.random.default_rng(4)
    modes = (Mode("a", np.arange(5)), Mode("b", np.arange(4)))
    assign = (rng.dirichlet(np.ones(2), 5), rng.dirichlet(np.ones(3), 4))
    return Posterior(Structure.grid(modes), (Absolute(STARS),), assign, (rng.integers(0, 3, (2, 3)),))


@pytest.mark.parametrize("posterior", [grid(), graph(m=3, n=6), tree(), tree(tied=((0, 1, 2),))])
@pytest.mark.parametrize("features", [OneHot(3), Moments(2)])
def test_statistics_of_tuples_with_unseen_items_are_sums_over_tuples(posterior, features):
    sample = some_sample(posterior, size=200)
    assert sample.has_unseen
    t = features.evaluate(sample.labels, sample.label_codes) * sample.weights[:, None]
    shape = posterior.answers[0].shape
    each_cell = np.eye(int(np.prod(shape))).reshape(*shape, -1)
    distributions = posterior.expectation(sample.codes, each_cell, 0)
    expected = (distributions.T @ t).reshape(*shape, features.size)
    np.testing.assert_allclose(posterior.statistics(sample, 0, features), expected)
    gibbs = np.einsum("ec,ec->", posterior.predict_distribution(sample.codes) @ posterior.cells[0].table.T,
                      np.eye(3)[sample.label_codes] * sample.weights[:, None])  # fmt: skip
    assert posterior.gibbs_loss(sample) == pytest.approx(gibbs / sample.n_observations)


def test_nobody_learns_from_items_without_a_number():
    with pytest.raises(gg.GinghamError, match="cannot learn from them"):
        some_sample(grid()).rows(0, OneHot(3))
