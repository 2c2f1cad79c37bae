"""numba: one thread owns an item's row, so the result does not depend on the number of threads."""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt
from numba import njit

from gingham.arrays import Floats
from gingham.kernels.project import Rows
from gingham.kernels.row_sums import RUN, add_run, padded
from gingham.kernels.threads import in_blocks
from gingham.kernels.tiles import Tiles, fill_tiles


def project(rows: Rows, assigns: tuple[Floats, ...], start: int, stop: int, out: Floats) -> None:
    """The same sums as the reference, in runs of RUN tuples."""
    prepared(rows, assigns, out.dtype)(start, stop, out)


def prepared(
    rows: Rows, assigns: tuple[Floats, ...], dtype: npt.DTypeLike, tiles: Tiles | None = None
) -> Callable[[int, int, Floats], None]:
    """`project` as a function of (start, stop, out), with the assignments laid out once for all calls.

    With ``tiles`` of these rows, start and stop are among its ``cuts``.
    """
    labels = np.empty(0, np.int32) if rows.labels is None else rows.labels
    features = np.empty((0, 1)) if rows.features is None else rows.features
    weights = np.empty(0) if rows.weights is None else rows.weights
    runs = rows.runs
    width = prod(q.shape[1] for q in assigns)
    run: Callable[[int, int, int, Floats], None]
    if len(assigns) == 1:
        table, stride = padded(assigns[0], dtype)
        if tiles is not None:
            return partial(fill_tiles, tiles, table, stride)
        other = rows.others[0]

        def run(base: int, a: int, b: int, out: Floats) -> None:
            if runs is None:
                _pair(rows.indptr, other, labels, features, weights, table, stride, base, a, b, out)
            else:
                _runs(runs, other, weights, table, stride, base, a, b, out)
    elif not assigns and runs is not None and rows.weights is None:  # one mode: its tuples are counted already
        return lambda start, stop, out: np.copyto(
            out.reshape(-1), np.diff(runs[start * out.shape[1] :][: out.size + 1])
        )
    else:
        widths = np.array([q.shape[1] for q in assigns], dtype=np.int64)
        offsets = np.cumsum([0, *(q.size for q in assigns)], dtype=np.int64)
        flat = np.concatenate([np.ones(0, dtype), *(np.ravel(q) for q in assigns)]).astype(dtype, copy=False)

        def run(base: int, a: int, b: int, out: Floats) -> None:
            _many(rows.indptr, rows.others, labels, features, weights, flat, offsets, widths, base, a, b, out)

    def fill(start: int, stop: int, out: Floats) -> None:
        work = int(rows.indptr[stop] - rows.indptr[start]) * width
        in_blocks(lambda a, b: run(start, a, b, out), rows.indptr, start, stop, work)

    return fill


@njit(cache=True, nogil=True, boundscheck=False)
def _runs(runs, other, weights, table, stride, base, start, stop, out):
    """One other mode, one-hot features, and where each (item, label) begins; no ``weights`` means one each.

    Equivalent to ``np.add.at(out, (item − base, labels), weights[:, None] * q[other])``.
    """
    n_features, width = out.shape[1], out.shape[2]
    direct = width == stride  # then sums are made where they belong
    sums = out.reshape(-1) if direct else np.empty(n_features * stride, out.dtype)
    scale = np.empty(RUN, out.dtype)
    for x in range(start, stop):
        at = (x - base) * n_features * stride if direct else 0
        sums[at : at + n_features * stride] = 0
        for k in range(n_features):
            e, last = runs[x * n_features + k], runs[x * n_features + k + 1]
            while e < last:
                end = min(e + RUN, last)
                if len(weights):
                    for i in range(end - e):
                        scale[i] = weights[e + i]
                    add_run(sums, at + k * stride, table, stride, other, scale, e, end)
                else:
                    add_run(sums, at + k * stride, table, stride, other, None, e, end)
                e = end
        if not direct:
            for k in range(n_features):
                for c in range(width):
                    out[x - base, k, c] = sums[k * stride + c]


@njit(cache=True, nogil=True, boundscheck=False)
def _pair(indptr, other, labels, features, weights, table, stride, base, start, stop, out):
    """One other mode; an array of length 0 stands for no labels, features or weights.

    Equivalent to ``np.add.at(out, (item − base, labels), weights[:, None] * q[other])`` for one-hot, and
    ``np.add.at(out, item − base, (weights[:, None] * features)[:, :, None] * q[other][:, None])`` for dense.
    """
    n_features, width = out.shape[1], out.shape[2]
    one_hot, unit = len(labels) > 0, len(weights) == 0
    sums = np.zeros(n_features * stride, out.dtype)
    scale = np.empty(RUN, out.dtype)
    for x in range(start, stop):
        sums[:] = 0
        e = indptr[x]
        while e < indptr[x + 1]:
            end = min(e + RUN, indptr[x + 1])
            if one_hot:
                label = labels[e]
                f = e + 1
                while f < end and labels[f] == label:
                    f += 1
                end = f
                if unit:
                    add_run(sums, label * stride, table, stride, other, None, e, end)
                else:
                    for i in range(end - e):
                        scale[i] = weights[e + i]
                    add_run(sums, label * stride, table, stride, other, scale, e, end)
            else:
                for k in range(n_features):
                    for i in range(end - e):
                        scale[i] = features[e + i, k] if unit else features[e + i, k] * weights[e + i]
                    add_run(sums, k * stride, table, stride, other, scale, e, end)
            e = end
        for k in range(n_features):
            for c in range(width):
                out[x - base, k, c] = sums[k * stride + c]


@njit(cache=True, nogil=True, boundscheck=False)
def _many(indptr, others, labels, features, weights, flat, offsets, widths, base, start, stop, out):
    """Any number of other modes, none included: an outer product per tuple, its last factor not stored.

    Equivalent to ``np.add.at(out, item − base, (weights[:, None] * features)[:, :, None] * product[:, None])``
    with ``product[e] = q_1[others[0, e]] ⊗ q_2[others[1, e]] ⊗ …``.
    """
    n_factors, n_features, width = len(widths), out.shape[1], out.shape[2]
    one_hot, unit = len(labels) > 0, len(weights) == 0
    last = widths[n_factors - 1] if n_factors else 1
    product = np.empty(max(width // last, 1), out.dtype)
    lone = np.ones(1, out.dtype)
    for x in range(start, stop):
        out[x - base] = 0
        for e in range(indptr[x], indptr[x + 1]):
            product[0] = 1.0 if unit else weights[e]
            size = 1
            for j in range(n_factors - 1):
                m = widths[j]
                at = offsets[j] + others[j, e] * m
                # From the back, so that an entry is read before its place is written.
                for a in range(size - 1, -1, -1):
                    share = product[a]
                    for c in range(m - 1, -1, -1):
                        product[a * m + c] = share * flat[at + c]
                size *= m
            q = lone
            if n_factors:
                at = offsets[n_factors - 1] + others[n_factors - 1, e] * last
                q = flat[at : at + last]
            for k in range(1 if one_hot else n_features):
                row = out[x - base, labels[e] if one_hot else k]
                for a in range(size):
                    share = product[a] if one_hot else out.dtype.type(features[e, k]) * product[a]
                    cells = row[a * last : (a + 1) * last]
                    for c in range(last):
                        cells[c] += share * q[c]
