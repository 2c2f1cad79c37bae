"""Sums, scores and merges of profiles of counts equal their dense numpy lines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import xlogy

from gingham.engine import threads
from gingham.fitting.merging import merge_tree
from gingham.models.counts.profile_kernels import all_merge_losses, merge_down, seed_scores
from gingham.models.counts.starts import SEED_SMOOTHING, block_table, column_table, nearest_profiles, own_scores
from gingham.summary.values import code_length

SMOOTHING = 0.2


@pytest.fixture(params=[0, 1], ids=["counts", "weights"])
def counts(request: pytest.FixtureRequest) -> sparse.csr_array:
    rng = np.random.default_rng(request.param)
    dense = rng.poisson(0.7, (12, 9)) * (rng.random((12, 9)) if request.param else 1.0)
    dense[3], dense[:, 5] = 0.0, 0.0
    return sparse.csr_array(dense)


def overall_of(counts: sparse.csr_array) -> np.ndarray:
    return np.asarray(counts.sum(axis=0)) / counts.sum()


def test_tables_of_counts_equal_their_numpy_lines(counts: sparse.csr_array) -> None:
    rng = np.random.default_rng(2)
    rows, columns = rng.integers(0, 4, 12), rng.integers(0, 3, 9)
    expected = np.eye(4)[rows].T @ counts.toarray() @ np.eye(3)[columns]
    assert np.allclose(block_table(counts, (rows, columns), (4, 3)), expected)
    assert np.allclose(column_table(counts, rows, 4), counts.toarray().T @ np.eye(4)[rows])


def test_nearest_profiles_equal_their_numpy_line(counts: sparse.csr_array) -> None:
    labels = np.random.default_rng(3).integers(0, 5, 12)
    labels[labels == 4] = 0  # a cluster without items
    table, overall = counts.toarray().T @ np.eye(5)[labels], overall_of(counts)
    profiles = table / np.maximum(table.sum(axis=0), 1e-300)
    with np.errstate(invalid="ignore"):
        logs = np.log((1 - SMOOTHING) * profiles / overall[:, None] + SMOOTHING)
    scores = counts.toarray() @ np.nan_to_num(logs)
    found, best = nearest_profiles(counts, table, overall, SMOOTHING)
    assert np.array_equal(found, scores.argmax(axis=1))
    assert np.allclose(best, scores.max(axis=1))


def test_seed_and_own_scores_equal_their_numpy_lines(counts: sparse.csr_array) -> None:
    dense, overall = counts.toarray(), overall_of(counts)
    mass = dense.sum(axis=1)
    seen = overall > 0
    profiles = dense[:, seen] / np.maximum(mass, 1e-300)[:, None]
    logs = np.log((1 - SEED_SMOOTHING) * profiles / overall[seen] + SEED_SMOOTHING)
    seeds = np.array([4, 0, 7])
    found = seed_scores(counts, sparse.csr_array(counts.T), seeds, mass, overall, SEED_SMOOTHING)
    assert np.allclose(found, logs[seeds] @ dense[:, seen].T)
    assert np.allclose(own_scores(counts, mass, overall), (dense[:, seen] * logs).sum(axis=1))


def test_merge_losses_equal_their_numpy_line() -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 4, (9, 6)).astype(float)
    table[:, 4] = 0.0
    mass = table.sum(axis=0)
    own = xlogy(table, table).sum(axis=0) - xlogy(mass, mass)
    every = all_merge_losses(table, mass)
    for i in range(6):
        sums, total = table + table[:, [i]], mass + mass[i]
        expected = own[i] + own - xlogy(sums, sums).sum(axis=0) + xlogy(total, total)
        assert np.allclose(np.delete(every[i], i), np.delete(expected, i))
    assert np.array_equal(every, every.T)
    assert np.isinf(np.diag(every)).all()


@pytest.mark.parametrize("k", [1, 3, 9, 30])
def test_merging_goes_the_way_of_its_plain_loop(k: int) -> None:
    rng = np.random.default_rng(k)
    table = rng.gamma(0.5, size=(40, 30)) * (rng.random((40, 30)) < 0.7)

    plain = merge_tree([(code_length, table.T)]).groups(k)  # a merge loses N times the Jensen-Shannon divergence
    assert np.array_equal(merge_down(table, k), plain)
    assert len(np.unique(plain)) == k


def test_threads_change_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(0.3, (50, 37)) * rng.random((50, 37)))
    labels = rng.integers(0, 11, 50)
    table = counts.toarray().T @ np.eye(11)[labels]
    found = []
    for n in (1, 2, 3):
        monkeypatch.setattr(threads, "available_threads", lambda n=n: n)
        found.append(all_merge_losses(table, table.sum(axis=0)))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
