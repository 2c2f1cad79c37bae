"""Exchange moves against the definition of their objective, and against trying every move."""

import numpy as np

from gingham.models.tree.exchange_kernels import exchange


def some_stage(rng):
    """Two tables of pairs, both sides of one clustering, and a triple that also meets a second one."""
    n, k = 8, 3
    labels = np.concatenate([rng.integers(0, k, n), rng.integers(0, 2, 4)])
    n_clusters = np.array([k] * n + [2] * 4)
    groups = np.array([0] * n + [1] * 4)
    pairs = rng.integers(0, n, (40, 2))
    triples = np.column_stack([rng.integers(0, n, (20, 2)), n + rng.integers(0, 4, 20)])
    items = np.vstack([np.column_stack([pairs, np.full(40, -1)]), triples])
    slots = np.repeat([0, 1], [40, 20])
    weights = rng.integers(1, 5, 60).astype(float)
    offsets = np.array([0, k * k, k * k + k * k * 2])
    strides = np.array([[k, 1, 0], [2 * k, 2, 1]])
    return labels, n_clusters, groups, items, slots, weights, offsets, strides


def xlogx(v):
    return float(np.where(v > 0, v * np.log(np.where(v > 0, v, 1.0)), 0.0).sum())


def by_definition(labels, groups, items, slots, weights, size_weight):
    total = size_weight * sum(xlogx(np.bincount(labels[groups == g])) for g in range(2))
    for slot, order in ((0, 2), (1, 3)):
        rows = slots == slot
        shape = (3, 3, 2)[:order]
        table = np.zeros(shape)
        np.add.at(table, tuple(labels[items[rows, k]] for k in range(order)), weights[rows])
        margins = [table.sum(axis=tuple(j for j in range(order) if j != k)) for k in range(order)]
        total += xlogx(table) - sum(xlogx(m) for m in margins)
    return total


def test_objective_is_its_definition_and_no_single_move_improves_it():
    rng = np.random.default_rng(0)
    for _ in range(10):
        labels, n_clusters, groups, items, slots, weights, offsets, strides = some_stage(rng)
        order = rng.permutation(12)
        found, value, sweeps = exchange(
            labels, n_clusters, groups, items, slots, weights, offsets, strides, 0.7, order, 50
        )
        assert sweeps < 50
        now = by_definition(found, groups, items, slots, weights, 0.7)
        np.testing.assert_allclose(value, now)
        assert now >= by_definition(labels, groups, items, slots, weights, 0.7) - 1e-9
        for item in range(12):
            for c in range(n_clusters[item]):
                moved = found.copy()
                moved[item] = c
                assert by_definition(moved, groups, items, slots, weights, 0.7) <= now + 1e-6
