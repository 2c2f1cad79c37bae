"""Profiles of items over the other side of a matrix of counts, compiled: tallies, nearest profiles, seeds, merging.

Matrices come as the three arrays of a CSR array. Tables of clusters are (columns, clusters), so that loops over
clusters run over neighbours in memory.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.kernels.logarithm import ln


def block_sums(matrix: Any, row_at: Ints, column_at: Ints, n_cells: int) -> Floats:
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


def nearest_profiles(matrix: Any, table: Floats, overall: Floats, smoothing: float) -> tuple[Ints, Floats, Floats]:
    """The cluster whose smoothed profile codes each row best, the nats gained over the overall profile, a new table.

    Parameters
    ----------
    table : ndarray of shape (columns, clusters)
        Counts of each cluster.
    overall : ndarray of shape (columns,)
        The overall profile; sums to 1.
    """
    mass = table.sum(axis=0)
    scale = np.divide(1.0 - smoothing, mass, out=np.zeros(len(mass)), where=mass > 0)
    labels, best, after = np.empty(matrix.shape[0], np.int64), np.empty(matrix.shape[0]), np.zeros(table.shape)
    _nearest(matrix.indptr, matrix.indices, matrix.data, table, overall, scale, smoothing, labels, best, after)
    return labels, best, after


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _nearest(indptr, indices, data, table, overall, scale, smoothing, labels, best, after):
    """Equivalent to ``scores = counts @ np.log(scale * table / overall[:, None] + smoothing)``, argmax and max.

    And ``after = counts.T @ np.eye(clusters)[labels]``.
    """
    k = table.shape[1]
    logs = np.empty(table.shape)
    for y in range(len(overall)):
        if overall[y] > 0:
            share = 1.0 / overall[y]
            for c in range(k):
                logs[y, c] = ln(scale[c] * table[y, c] * share + smoothing)
    scores = np.empty(k)
    for x in range(len(indptr) - 1):
        for c in range(k):
            scores[c] = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            y, count = indices[e], data[e]
            for c in range(k):
                scores[c] += count * logs[y, c]
        at = 0
        for c in range(1, k):
            if scores[c] > scores[at]:
                at = c
        labels[x], best[x] = at, scores[at]
        for e in range(indptr[x], indptr[x + 1]):
            after[indices[e], at] += data[e]


def seed_scores(matrix: Any, turned: Any, seeds: Ints, mass: Floats, overall: Floats, smoothing: float) -> Floats:
    """Nats every row gains when coded by the smoothed profiles of some rows, not by the overall one.

    Parameters
    ----------
    turned : CSR array
        The matrix transposed.
    seeds : rows whose profiles are tried
    mass : ndarray of shape (rows,)

    Returns
    -------
    ndarray of shape (len(seeds), rows)
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


def own_scores(matrix: Any, mass: Floats, overall: Floats, smoothing: float) -> Floats:
    """Nats every row gains when coded by its own smoothed profile, not by the overall one, shape (rows,)."""
    out: Floats = _own_scores(matrix.indptr, matrix.indices, matrix.data, mass, overall, smoothing)
    return out


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _own_scores(indptr, indices, data, mass, overall, smoothing):
    """Equivalent to ``(counts * np.log((1 − s) * counts / mass[:, None] / overall + s)).sum(1)``."""
    out = np.zeros(len(mass))
    for x in range(len(mass)):
        for e in range(indptr[x], indptr[x + 1]):
            out[x] += data[e] * ln((1.0 - smoothing) * data[e] / (mass[x] * overall[indices[e]]) + smoothing)
    return out


def merge_losses(table: Floats, i: int, first: int = 0) -> Floats:
    """What N·I loses when cluster i of a table of counts (columns, clusters) joins each one from ``first`` on."""
    losses: Floats = _merge_losses(table, i, first, table.sum(axis=0))
    return losses


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _merge_losses(table, i, first, mass):
    """Equivalent to ``(own[i] + own − phi(table + table[:, [i]]).sum(0) + phi(mass + mass[i]))[first:]``.

    Here own = phi(table).sum(0) − phi(mass) and phi(x) = x ln x. Columns in which cluster i is empty cancel.
    """
    n = table.shape[1] - first
    out = np.empty(n)
    a = mass[i]
    for r in range(n):
        b = mass[first + r]
        out[r] = (a + b) * ln(a + b) - a * ln(a) - b * ln(b)
    for y in range(table.shape[0]):
        a = table[y, i]
        if a > 0:
            own = a * ln(a)
            for r in range(n):
                b = table[y, first + r]
                out[r] += own + b * ln(b) - (a + b) * ln(a + b)
    return out
