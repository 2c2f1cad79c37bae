"""Where co-occurrence begins: seeds spread over profiles, batch steps, and merging from a finer partition."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints
from gingham.errors import one_of
from gingham.lazy import lazy_module
from gingham.models.counts.tensor import Counts, beside

if TYPE_CHECKING:
    from gingham.models.counts import profile_kernels
else:
    profile_kernels = lazy_module("gingham.models.counts.profile_kernels")

COUNT_STARTS = ("merged", "profiles", "random")
SEED_SMOOTHING = 0.3  # share of the overall profile in a seed's profile: one item's profile is mostly zeros
STEP_SMOOTHING = 0.1  # the same for clusters, which have seen more
TRIALS = 3  # candidates per seed, of which the best is kept
FINE_STEPS, FINE_BLOCK_STEPS = 2, 5  # before merging; 5 and 30 keep no more information in the end
TINY = 1e-300


def start_labels(
    start: str, counts: Counts, n_clusters: Sequence[int | None], rng: np.random.Generator
) -> tuple[Ints, ...]:
    """Clusters of every side to begin with; None for the column clusters of a matrix leaves every column by itself.

    Of more than two sides each is clustered by how often its items occur with those of the others.
    """
    if len(counts.shape) > 2:
        return tuple(_row_start(start, beside(counts, side), m or 1, rng) for side, m in enumerate(n_clusters))
    n_rows, n_columns = counts.shape
    rows, columns = n_clusters
    k = n_rows if rows is None else rows
    if columns is None:
        return _row_start(start, counts, k, rng), np.arange(n_columns)
    if start == "random":
        return rng.integers(0, k, n_rows), rng.integers(0, columns, n_columns)
    if start == "merged":
        fine = (finer(k, n_rows), finer(columns, n_columns))
        if fine == (k, columns):
            return start_labels("profiles", counts, n_clusters, rng)
        row_labels, column_labels = _profile_start("profiles", counts, fine, rng, FINE_BLOCK_STEPS)
        row_labels = profile_kernels.merge_down(block_table(counts, (row_labels, column_labels), fine).T, k)[row_labels]
        table = block_table(counts, (row_labels, column_labels), (k, fine[1]))
        column_labels = profile_kernels.merge_down(table, columns)[column_labels]
        return block_steps(counts, row_labels, column_labels, (k, columns))
    return _profile_start(start, counts, (k, columns), rng)


def _profile_start(
    start: str, counts: sparse.csr_array, shape: tuple[int, int], rng: np.random.Generator, n_steps: int = 30
) -> tuple[Ints, Ints]:
    """Rows first, columns by how they meet the rows' clusters, then both in turn."""
    rows = _row_start(start, counts, shape[0], rng)
    profiles = as_profiles(column_table(counts, rows, shape[0]))
    columns = profile_steps(profiles, profile_seeds(profiles, shape[1], rng), shape[1], 10, 1e-3)
    return block_steps(counts, rows, columns, shape, n_steps)


def _row_start(start: str, counts: sparse.csr_array, k: int, rng: np.random.Generator) -> Ints:
    n_rows = counts.shape[0]
    if start == "random":
        return rng.integers(0, k, n_rows)
    if start == "profiles":
        return profile_steps(counts, profile_seeds(counts, k, rng), k, 5)
    one_of("start", start, COUNT_STARTS, ", or give labels")
    fine = finer(k, n_rows)
    if fine == k:
        return _row_start("profiles", counts, k, rng)
    labels = profile_steps(counts, profile_seeds(counts, fine, rng), fine, FINE_STEPS)
    merged = profile_kernels.merge_down(column_table(counts, labels, fine), k)
    return profile_steps(counts, merged[labels], k, 10)


def finer(k: int, n_items: int) -> int:
    """About 3k + 4 clusters to merge from, where there are items enough."""
    return max(k, min(3 * k + 4, n_items // 4)) if k > 1 else k


def as_profiles(table: Floats) -> sparse.csr_array:
    """A dense table as a sparse one in which every number is listed, zeros too: nothing is searched for."""
    n, k = table.shape
    return sparse.csr_array((table.ravel(), np.tile(np.arange(k), n), np.arange(0, n * k + 1, k)), shape=table.shape)


def block_table(counts: Counts, labels: Sequence[Ints], shape: Sequence[int]) -> Floats:
    """Counts of each block, shape (m_1, …, m_d)."""
    if len(shape) > 2:
        at = np.ravel_multi_index(tuple(of[code] for of, code in zip(labels, counts.coords)), shape)
        return np.bincount(at, counts.data, prod(shape)).reshape(shape).astype(np.float64, copy=False)
    rows, columns = labels
    return profile_kernels.block_sums(counts, rows * shape[1], columns, prod(shape)).reshape(shape)


def column_table(counts: sparse.csr_array, rows: Ints, k: int) -> Floats:
    """Counts of each row cluster in each column, shape (columns, k): the clusters side by side in memory."""
    n_columns = counts.shape[1]
    return profile_kernels.block_sums(counts, rows, np.arange(n_columns) * k, n_columns * k).reshape(n_columns, k)


def profile_seeds(counts: sparse.csr_array, k: int, rng: np.random.Generator) -> Ints:
    """k-means++ seeding of row profiles by Kullback-Leibler divergence; returns the nearest seed of each row, (n,).

    The distance of a row x to a seed is Σ_y n(x, y) ln[s_x(y)/s_seed(y)], where the profiles s are smoothed by the
    overall one. It grows with the counts of the row, so that rows with many counts are likely to become seeds.
    """
    n_rows = counts.shape[0]
    mass, overall = _masses(counts)
    turned = sparse.csr_array(counts.T)
    highest = own_scores(counts, mass, overall)

    def scores(rows: Ints) -> Floats:
        return profile_kernels.seed_scores(counts, turned, rows, mass, overall, SEED_SMOOTHING)

    nearest = scores(_drawn(mass, 1, rng))[0]
    labels = np.zeros(n_rows, dtype=np.int64)
    for seed in range(1, k):
        found = scores(_drawn(np.maximum(highest - nearest, 0.0), TRIALS, rng))
        best = found[int(np.maximum(found, nearest).sum(axis=1).argmax())]
        labels[best > nearest] = seed
        nearest = np.maximum(nearest, best)
    return labels


def own_scores(counts: sparse.csr_array, mass: Floats, overall: Floats) -> Floats:
    """Nats that every row gains when coded by its own smoothed profile, not by the overall one, shape (rows,)."""
    rows = np.repeat(np.arange(len(mass)), np.diff(counts.indptr))
    lift = counts.data / np.maximum(mass[rows] * overall[counts.indices], TINY)
    nats = counts.data * np.log((1.0 - SEED_SMOOTHING) * lift + SEED_SMOOTHING)
    return np.bincount(rows, nats, len(mass)).astype(np.float64, copy=False)


def _drawn(chances: Floats, n: int, rng: np.random.Generator) -> Ints:
    """Draw n numbers with unnormalised chances, all alike where all chances are 0; with fewer checks than `choice`."""
    below = chances.cumsum()
    if not below[-1] > 0:
        return rng.integers(0, len(chances), n)
    return np.searchsorted(below / below[-1], rng.random(n), side="right")


def _masses(counts: sparse.csr_array) -> tuple[Floats, Floats]:
    """The mass of each row, and the overall profile of the columns."""
    rows = counts.sum(axis=1)
    return rows, counts.sum(axis=0) / max(rows.sum(), TINY)


def profile_steps(
    counts: sparse.csr_array, labels: Ints, k: int, n_steps: int, smoothing: float = STEP_SMOOTHING
) -> Ints:
    """Batch steps: every row to the cluster whose smoothed profile codes it best; (n,)."""
    mass, overall = _masses(counts)
    for _ in range(n_steps):
        table = column_table(counts, labels, k)
        new = refilled(*nearest_profiles(counts, table, overall, smoothing), mass, k)
        changed = int(np.count_nonzero(new != labels))
        labels = new
        if changed < 1e-3 * len(labels):
            break
    return labels


def nearest_profiles(counts: sparse.csr_array, table: Floats, overall: Floats, smoothing: float) -> tuple[Ints, Floats]:
    """The cluster whose smoothed profile codes each row best, and the nats gained over the overall profile.

    ``table`` (columns, clusters) are the counts of each cluster; ``overall`` (columns,) sums to 1.
    """
    mass = np.maximum(table.sum(axis=0), TINY)
    logs = np.log((1.0 - smoothing) / mass * table / np.maximum(overall, TINY)[:, None] + smoothing)
    scores = counts @ logs
    best = scores.argmax(axis=1)
    return best, scores[np.arange(len(best)), best]


def block_steps(
    counts: sparse.csr_array, rows: Ints, columns: Ints, shape: Sequence[int], n_steps: int = 30
) -> tuple[Ints, Ints]:
    """Batch steps of information-theoretic co-clustering, rows and columns in turn."""
    sides = (counts, sparse.csr_array(counts.T))
    masses = [counts.sum(axis=1), counts.sum(axis=0)]
    labels = [rows, columns]
    for _ in range(n_steps):
        n_changed = 0
        for axis, side in enumerate(sides):
            n, m = side.shape[0], shape[1 - axis]
            every = np.arange(n)
            mine = profile_kernels.block_sums(side, every * m, labels[1 - axis], n * m).reshape(n, m)
            member = sparse.csr_array((np.ones(n), (labels[axis], every)), shape=(shape[axis], n))
            table = member @ mine
            a, b = table.sum(axis=1, keepdims=True), table.sum(axis=0)
            logs = np.log(table + 1e-6 * a * b / b.sum() + TINY) - np.log(a + TINY) - np.log(b + TINY)
            scores = mine @ logs.T
            best = scores.argmax(axis=1)
            new = refilled(best, scores[every, best], masses[axis], shape[axis])
            n_changed += int(np.count_nonzero(new != labels[axis]))
            labels[axis] = new
        if n_changed <= 1e-4 * sum(map(len, labels)):
            break
    return labels[0], labels[1]


def refilled(labels: Ints, gains: Floats, mass: AnyArray, k: int) -> Ints:
    """The labels with each empty cluster given the item that its own cluster explains worst.

    ``gains`` (n,) are the nats an item gains in its cluster.
    """
    sizes = np.bincount(labels, minlength=k)
    empty = np.flatnonzero(sizes == 0)
    if not len(empty) or len(labels) < k:
        return labels
    labels = labels.copy()
    explained = gains / np.maximum(mass, 1e-9)
    for cluster in empty:
        worst = int(np.argmin(np.where(sizes[labels] > 1, explained, np.inf)))
        sizes[labels[worst]] -= 1
        labels[worst], sizes[cluster] = cluster, 1
    return labels
