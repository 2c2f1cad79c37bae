"""numba: one thread owns an item's row, so the result does not depend on the number of threads."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from gingham.arrays import Floats, Ints
from gingham.kernels.layout import Rows

N_BLOCKS = 64  # rows are dealt out in blocks of nearly equal numbers of tuples


def project(rows: Rows, assigns: tuple[Floats, ...], start: int, stop: int, out: Floats) -> None:
    """The same sums as the reference, in the same order within a row."""
    dtype = out.dtype
    unit = rows.weights is None
    weights = np.ones(1, dtype) if rows.weights is None else rows.weights.astype(dtype, copy=False)
    blocks = balanced_blocks(rows.indptr, start, stop)
    if len(assigns) == 1:
        factor = np.ascontiguousarray(assigns[0])
        if rows.labels is not None:
            _pair_one_hot(rows.indptr, rows.others[0], rows.labels, weights, unit, factor, start, blocks, out)
        elif rows.features is not None:
            features = rows.features.astype(dtype, copy=False)
            _pair_dense(rows.indptr, rows.others[0], features, weights, unit, factor, start, blocks, out)
        return
    widths = np.array([q.shape[1] for q in assigns], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([q.size for q in assigns])]).astype(np.int64)
    flat = np.concatenate([np.ravel(q) for q in assigns]) if assigns else np.ones(1, dtype)
    one_hot = rows.labels is not None
    labels = rows.labels if rows.labels is not None else np.zeros(1, np.int32)
    features = np.ones((1, 1), dtype) if rows.features is None else rows.features.astype(dtype, copy=False)
    _many(
        rows.indptr, rows.others, labels, features, one_hot, weights, unit,
        flat, offsets, widths, start, blocks, out,
    )  # fmt: skip


def balanced_blocks(indptr: Ints, start: int, stop: int) -> Ints:
    """Row boundaries (N_BLOCKS + 1,) between start and stop with about equal numbers of tuples."""
    targets = np.linspace(indptr[start], indptr[stop], N_BLOCKS + 1)
    cuts = np.searchsorted(indptr[start : stop + 1], targets) + start
    cuts[0], cuts[-1] = start, stop
    return np.maximum.accumulate(np.minimum(cuts, stop)).astype(np.int64)


@njit(cache=True, parallel=True, fastmath={"contract"}, boundscheck=False)
def _pair_one_hot(indptr, other, labels, weights, unit, factor, start, blocks, out):  # type: ignore[no-untyped-def]
    """Equivalent to ``np.add.at(out, (item − start, labels), weights[:, None] * factor[other])``."""
    m = factor.shape[1]
    for block in prange(len(blocks) - 1):
        for x in range(blocks[block], blocks[block + 1]):
            for e in range(indptr[x], indptr[x + 1]):
                row = out[x - start, labels[e]]
                q = factor[other[e]]
                if unit:
                    for c in range(m):
                        row[c] += q[c]
                else:
                    w = weights[e]
                    for c in range(m):
                        row[c] += w * q[c]


@njit(cache=True, parallel=True, fastmath={"contract"}, boundscheck=False)
def _pair_dense(indptr, other, features, weights, unit, factor, start, blocks, out):  # type: ignore[no-untyped-def]
    """Equivalent to ``np.add.at(out, item − start, w[:, None, None] * t[:, :, None] * factor[other][:, None])``."""
    m = factor.shape[1]
    for block in prange(len(blocks) - 1):
        for x in range(blocks[block], blocks[block + 1]):
            for e in range(indptr[x], indptr[x + 1]):
                q = factor[other[e]]
                for k in range(features.shape[1]):
                    t = features[e, k]
                    if not unit:
                        t *= weights[e]
                    row = out[x - start, k]
                    for c in range(m):
                        row[c] += t * q[c]


@njit(cache=True, parallel=True, fastmath={"contract"}, boundscheck=False)
def _many(  # type: ignore[no-untyped-def]
    indptr,
    others,
    labels,
    features,
    one_hot,
    weights,
    unit,
    flat,
    offsets,
    widths,
    start,
    blocks,
    out,
):
    """Any number of other modes: the outer product of their rows is built in a buffer per block."""
    d = len(widths)
    width = out.shape[2]
    for block in prange(len(blocks) - 1):
        product = np.empty(width, out.dtype)
        for x in range(blocks[block], blocks[block + 1]):
            for e in range(indptr[x], indptr[x + 1]):
                product[0] = out.dtype.type(1.0) if unit else weights[e]
                size = 1
                for j in range(d):
                    m = widths[j]
                    at = offsets[j] + others[j, e] * m
                    # From the back, so that an entry is read before its place is written.
                    for a in range(size - 1, -1, -1):
                        base = product[a]
                        for c in range(m - 1, -1, -1):
                            product[a * m + c] = base * flat[at + c]
                    size *= m
                if one_hot:
                    row = out[x - start, labels[e]]
                    for r in range(width):
                        row[r] += product[r]
                else:
                    for k in range(features.shape[1]):
                        t = features[e, k]
                        row = out[x - start, k]
                        for r in range(width):
                            row[r] += t * product[r]
