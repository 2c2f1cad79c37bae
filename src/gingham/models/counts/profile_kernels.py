"""Profiles of items over the other side of a matrix of counts, compiled: tallies, nearest profiles, seeds, merging.

Matrices come as the three arrays of a CSR array. Tables of clusters are (columns, clusters), so that loops over
clusters run over neighbours in memory.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from gingham.arrays import Floats, Ints
from gingham.engine.logarithm import ln, x_ln_x_of
from gingham.engine.threads import in_blocks
from gingham.fitting.merging import merge

u8 = np.uint64
WORK, LOG_WORK = 8, 32  # multiply-adds that take as long as an addition in a random place, as a logarithm


def block_sums(matrix: csr_array, row_at: Ints, column_at: Ints, n_cells: int) -> Floats:
    """Counts of blocks, flat: the count at (x, y) goes to ``row_at[x] + column_at[y]``, shape (n_cells,)."""
    out = np.zeros(n_cells)
    _block_sums(matrix.indptr, matrix.indices, matrix.data, row_at, column_at, out)
    return out


@njit(cache=True, nogil=True, boundscheck=False)
def _block_sums(indptr, indices, data, row_at, column_at, out):
    """Equivalent to ``np.add.at(out, row_at[coo.row] + column_at[coo.col], coo.data)``."""
    for x in range(len(indptr) - 1):
        first = row_at[x]
        for e in range(indptr[x], indptr[x + 1]):
            out[first + column_at[indices[e]]] += data[e]


def move_counts(matrix: csr_array, before: Ints, after: Ints, table: Floats) -> None:
    """Move the counts of rows whose label has changed, in a table (columns, clusters) of all labels' counts."""
    _move_counts(matrix.indptr, matrix.indices, matrix.data, before, after, table)


@njit(cache=True, nogil=True, boundscheck=False)
def _move_counts(indptr, indices, data, before, after, table):
    """Equivalent to ``table += counts.T @ (np.eye(k)[after] − np.eye(k)[before])``."""
    for x in range(len(before)):
        old, new = before[x], after[x]
        if old != new:
            for e in range(indptr[x], indptr[x + 1]):
                table[indices[e], old] -= data[e]
                table[indices[e], new] += data[e]


def cluster_counts(matrix: csr_array, labels: Ints, k: int) -> Floats:
    """Counts of each row in each cluster of columns, shape (rows, k)."""
    out = np.zeros((matrix.shape[0], k))

    def run(a: int, b: int) -> None:
        _cluster_counts(matrix.indptr, matrix.indices, matrix.data, labels, a, b, out)

    in_blocks(run, matrix.indptr, 0, matrix.shape[0], WORK * matrix.nnz)
    return out


@njit(cache=True, nogil=True, boundscheck=False)
def _cluster_counts(indptr, indices, data, labels, start, stop, out):
    """Equivalent to ``out[start:stop] = counts[start:stop] @ np.eye(k)[labels]``."""
    for x in range(start, stop):
        for e in range(indptr[x], indptr[x + 1]):
            out[x, labels[indices[e]]] += data[e]


def nearest_profiles(matrix: csr_array, table: Floats, overall: Floats, smoothing: float) -> tuple[Ints, Floats]:
    """The cluster whose smoothed profile codes each row best, and the nats gained over the overall profile.

    ``table`` (columns, clusters) are the counts of each cluster; ``overall`` (columns,) sums to 1.
    """
    mass = table.sum(axis=0)
    scale = np.divide(1.0 - smoothing, mass, out=np.zeros(len(mass)), where=mass > 0)
    n_rows, (n_columns, k) = matrix.shape[0], table.shape
    labels, best = np.empty(n_rows, np.int64), np.empty(n_rows)
    logs = np.zeros((n_columns, -(-k // 4) * 4))

    def log(a: int, b: int) -> None:
        _profile_logs(table, overall, scale, smoothing, a, b, logs)

    def choose(a: int, b: int) -> None:
        _nearest(matrix.indptr, matrix.indices, matrix.data, logs, k, a, b, labels, best)

    in_blocks(log, np.arange(n_columns + 1), 0, n_columns, LOG_WORK * table.size)
    in_blocks(choose, matrix.indptr, 0, n_rows, matrix.nnz * k)
    return labels, best


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _profile_logs(table, overall, scale, smoothing, start, stop, logs):
    """Equivalent to ``logs = np.log(scale * table / overall[:, None] + smoothing)``, columns start to stop."""
    for y in range(start, stop):
        if overall[y] > 0:
            share = 1.0 / overall[y]
            for c in range(table.shape[1]):
                logs[y, c] = ln(scale[c] * table[y, c] * share + smoothing)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", fastmath={"contract"})
def _nearest(indptr, indices, data, logs, k, start, stop, labels, best):
    """Equivalent to ``scores = counts @ logs[:, :k]``, argmax and max, rows start to stop.

    Four clusters at a time, in variables of their own: sums in an array would be loaded and stored for every count. And
    places are unsigned: whether one is negative is not asked then.
    """
    width, flat = logs.shape[1], logs.reshape(-1)
    scores = np.empty(width)
    for x in range(start, stop):
        for c in range(0, width, 4):
            s0 = s1 = s2 = s3 = 0.0
            for e in range(u8(indptr[x]), u8(indptr[x + 1])):
                at, count = u8(indices[e]) * u8(width) + u8(c), data[e]
                s0 += count * flat[at]
                s1 += count * flat[at + u8(1)]
                s2 += count * flat[at + u8(2)]
                s3 += count * flat[at + u8(3)]
            scores[c], scores[c + 1], scores[c + 2], scores[c + 3] = s0, s1, s2, s3
        first = 0
        for c in range(1, k):
            if scores[c] > scores[first]:
                first = c
        labels[x], best[x] = first, scores[first]


def seed_scores(
    matrix: csr_array, turned: csr_array, seeds: Ints, mass: Floats, overall: Floats, smoothing: float
) -> Floats:
    """Nats every row gains when coded by the smoothed profiles of some rows, not by the overall one, (seeds, rows).

    ``turned`` is the matrix transposed, ``mass`` (rows,) its sums over columns.
    """
    out = np.empty((len(seeds), len(mass)))
    mine, theirs = (matrix.indptr, matrix.indices, matrix.data), (turned.indptr, turned.indices, turned.data)
    _seed_scores(*mine, *theirs, seeds, mass, overall, smoothing, out)
    return out


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _seed_scores(indptr, indices, data, t_indptr, t_indices, t_data, seeds, mass, overall, smoothing, out):
    """Equivalent to ``np.log((1 − s) * p[seeds] / overall + s) @ counts.T`` with p = counts / mass.

    A column that a seed lacks has ln s, so only the seed's own columns are visited.
    """
    floor = np.log(smoothing)
    for i in range(len(seeds)):
        seed = seeds[i]
        for x in range(len(mass)):
            out[i, x] = floor * mass[x]
        for e in range(indptr[seed], indptr[seed + 1]):
            y = indices[e]
            raised = np.log((1.0 - smoothing) * data[e] / mass[seed] / overall[y] + smoothing) - floor
            for f in range(t_indptr[y], t_indptr[y + 1]):
                out[i, t_indices[f]] += t_data[f] * raised


def own_scores(matrix: csr_array, mass: Floats, overall: Floats, smoothing: float) -> Floats:
    """Nats every row gains when coded by its own smoothed profile, not by the overall one, shape (rows,)."""
    return _own_scores(matrix.indptr, matrix.indices, matrix.data, mass, overall, smoothing)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", fastmath={"reassoc", "contract"})
def _own_scores(indptr, indices, data, mass, overall, smoothing):
    """Equivalent to ``(counts * np.log((1 − s) * counts / mass[:, None] / overall + s)).sum(1)``."""
    out = np.zeros(len(mass))
    for x in range(len(mass)):
        total = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            total += data[e] * ln((1.0 - smoothing) * data[e] / (mass[x] * overall[indices[e]]) + smoothing)
        out[x] = total
    return out


def merge_down(table: Floats, k: int) -> Ints:
    """Merge the clusters of a table (columns, clusters) to k, each time at the least loss of N·I; shape (clusters,)."""
    table = np.array(table, dtype=np.float64, order="C")
    known, mass = x_ln_x_of(table), table.sum(axis=0)
    in_place = list(range(len(mass)))  # the cluster in each place: those that are left stand side by side in memory
    place = np.arange(len(mass))

    def losses(a: int, others: Ints) -> Floats:
        out = np.empty(len(in_place))
        _merge_losses(table, known, mass, place[a], 0, out)
        return out[place[others]]

    def join(a: int, b: int) -> None:
        last = in_place.pop()
        _join(table, known, mass, place[a], place[b], place[last])
        if last != b:
            place[last], in_place[place[b]] = place[b], last

    return merge(all_merge_losses(table, mass), losses, join, k).groups(k)


def all_merge_losses(table: Floats, mass: Floats) -> Floats:
    """What N·I loses when two clusters of a table of counts (columns, clusters) become one, +inf on the diagonal.

    ``mass`` (clusters,) are the sums over the columns; shape (clusters, clusters).
    """
    n = table.shape[1]
    out, known = np.full((n, n), np.inf), x_ln_x_of(table)

    def run(a: int, b: int) -> None:
        for i in range(a, b):
            _merge_losses(table, known, mass, i, i + 1, out[i, i + 1 :])

    later = np.concatenate([[0], np.cumsum(np.arange(n)[::-1])])
    in_blocks(run, later, 0, n, LOG_WORK * len(table) * int(later[-1]))
    return np.minimum(out, out.T)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _merge_losses(table, known, mass, i, first, out):
    """Equivalent to ``out = (own[i] + own − phi(table + table[:, [i]]).sum(0) + phi(mass + mass[i]))[first:]``.

    Here own = phi(table).sum(0) − phi(mass) and phi(x) = x ln x, ``known`` of the table. Columns in which cluster i is
    empty cancel.
    """
    a = mass[i]
    for r in range(len(out)):
        b = mass[first + r]
        out[r] = (a + b) * ln(a + b) - a * ln(a) - b * ln(b)
    for y in range(table.shape[0]):
        a = table[y, i]
        if a > 0:
            own = known[y, i]
            for r in range(len(out)):
                both = a + table[y, first + r]
                out[r] += own + known[y, first + r] - both * ln(both)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _join(table, known, mass, a, b, last):
    """Equivalent to ``table[:, a] += table[:, b]; table[:, b] = table[:, last]``; ``known`` and ``mass`` follow."""
    total = 0.0
    for y in range(table.shape[0]):
        both = table[y, a] + table[y, b]
        table[y, a], known[y, a] = both, both * ln(both)
        table[y, b], known[y, b] = table[y, last], known[y, last]
        total += both
    mass[a] = total
    mass[b] = mass[last]
