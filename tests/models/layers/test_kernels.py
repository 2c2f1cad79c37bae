"""The compiled layer kernels equal their plain numpy twins."""

from __future__ import annotations

import numpy as np
import pytest

from gingham.data import Sample
from gingham.models.layers import kernels as compiled
from gingham.models.layers import kernels_reference as reference
from gingham.models.layers.data import LayerData, strides_of


def problem(shape, n_clusters, weighted, seed=0):
    rng = np.random.default_rng(seed)
    columns = [np.concatenate([np.arange(n), rng.integers(n, size=60)]) for n in shape]
    n = max(len(c) for c in columns)
    columns = [np.resize(c, n) for c in columns]
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    data = LayerData.of(Sample.of(columns, rng.normal(size=n), weights))
    labels = np.zeros(sum(s + 1 for s in shape), np.uint8)
    for start, size, m in zip(data.first, shape, n_clusters):
        labels[start : start + size] = rng.integers(m, size=size)
    return data, labels, rng


CASES = [((7, 9), (3, 4), False), ((7, 9), (3, 4), True), ((5, 6, 4), (2, 3, 2), True), ((8,), (3,), False)]


@pytest.mark.parametrize(("shape", "n_clusters", "weighted"), CASES)
def test_passes_equal_reference(shape, n_clusters, weighted) -> None:
    data, labels, rng = problem(shape, n_clusters, weighted)
    n_cells, strides = int(np.prod(n_clusters)), strides_of(n_clusters)
    cells = rng.normal(size=n_cells).astype(np.float32)
    weights = np.ones(1) if data.weights is None else data.weights
    results = []
    for kernel in (compiled, reference):
        residual = data.labels.astype(np.float32)
        counts, sums = np.empty(n_cells), np.empty(n_cells)
        args = (data.codes, data.first, labels, strides, cells)
        kernel.put_back(*args, weights, not weighted, residual, counts, sums)
        changed = residual.copy()
        kernel.take_out(*args, residual)
        offsets = np.zeros(shape[-1])
        normals = np.random.default_rng(1).normal(size=shape[-1])
        kernel.draw_offsets(data.codes[-1], weights, not weighted, residual, 1.3, 2.0, normals, offsets)
        results.append((changed, counts, sums, residual, offsets))
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    assert not np.allclose(results[0][0], data.labels)


@pytest.mark.parametrize(("shape", "n_clusters", "weighted"), CASES)
@pytest.mark.parametrize("with_side", [False, True])
def test_labels_and_their_statistics_equal_reference(shape, n_clusters, weighted, with_side) -> None:
    data, labels, rng = problem(shape, n_clusters, weighted)
    weights = np.ones(1) if data.weights is None else data.weights
    for mode, (n, m) in enumerate(zip(shape, n_clusters)):
        others = [k for j, k in enumerate(n_clusters) if j != mode]
        cells = rng.normal(size=(m, int(np.prod(others))))
        side = rng.normal(size=(n, m)) if with_side else np.zeros((0, 0))
        log_prior, uniforms = np.log(rng.dirichlet(np.ones(m))), rng.random(n)
        group = data.groups[mode]
        results = []
        for kernel in (compiled, reference):
            mine = labels.copy()
            counts, sums = np.empty(cells.shape), np.empty(cells.shape)
            kernel.draw_labels(
                group.indptr, group.others, group.order, np.delete(data.first, mode), strides_of(others), weights,
                not weighted, data.labels.astype(np.float32), cells, 0.7, log_prior, side, uniforms,
                int(data.first[mode]), mine, counts, sums,
            )  # fmt: skip
            results.append((mine, counts, sums))
        np.testing.assert_array_equal(results[0][0], results[1][0])
        np.testing.assert_allclose(results[0][1], results[1][1], atol=1e-5)
        np.testing.assert_allclose(results[0][2], results[1][2], atol=1e-4)
        assert results[0][1].sum() == pytest.approx(data.n_rows if data.weights is None else data.weights.sum())


def test_labels_are_drawn_with_the_right_probabilities() -> None:
    """One item, many uniforms: frequencies match the formula."""
    data = LayerData.of(Sample.of([np.zeros(4, int), np.arange(4)], np.array([1.0, 2.0, -1.0, 0.5])))
    cells = np.array([[0.5, -0.5], [1.0, 0.0], [-1.0, 1.0]])
    labels = np.array([0, 3, 0, 0, 1, 1, 2], np.uint8)  # item, its stand-in, four columns, their stand-in
    log_prior = np.log([0.5, 0.3, 0.2])
    seen, heard = np.array([2.0, 2.0]), np.array([3.0, -0.5])
    logit = log_prior - 0.5 * (cells**2 @ seen - 2 * cells @ heard)
    expected = np.exp(logit) / np.exp(logit).sum()
    group, found = data.groups[0], []
    for u in (np.arange(500) + 0.5) / 500:
        drawn = labels.copy()
        counts, sums = np.empty((3, 2)), np.empty((3, 2))
        compiled.draw_labels(
            group.indptr, group.others, group.order, data.first[1:], strides_of([2]), np.ones(1), True,
            data.labels.astype(np.float32), cells, 1.0, log_prior, np.zeros((0, 0)), np.array([u]), 0, drawn,
            counts, sums,
        )  # fmt: skip
        found.append(drawn[0])
    np.testing.assert_allclose(np.bincount(found, minlength=3) / 500, expected, atol=0.004)


def test_predictions_of_draws_equal_reference() -> None:
    rng = np.random.default_rng(0)
    first, codes = np.array([0, 6]), np.stack([rng.integers(6, size=30), rng.integers(5, size=30)]).astype(np.int32)
    labels = rng.integers(3, size=(4, 2, 11)).astype(np.uint8)
    cells = rng.normal(size=(4, 2, 9)).astype(np.float32)
    offsets, means = rng.normal(size=(4, 11)).astype(np.float32), rng.normal(size=4)
    for importance in (np.zeros((0, 0), np.float32), rng.normal(size=(4, 11)).astype(np.float32)):
        results = np.zeros((2, 3, 30))
        for kernel, sums in zip((compiled, reference), results):
            kernel.predict_draws(codes, first, labels, strides_of((3, 3)), cells, offsets, means, importance, *sums)
        np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-4)
        assert results[0, 2].any() == bool(len(importance))


def test_soft_sum_equals_reference() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(5, size=20).astype(np.int32), rng.integers(4, size=20).astype(np.int32)
    met, assign = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    ours, theirs = np.zeros(20), np.zeros(20)
    compiled.add_soft(first, second, met, assign, ours)
    reference.add_soft(first, second, met, assign, theirs)
    np.testing.assert_allclose(ours, theirs)
