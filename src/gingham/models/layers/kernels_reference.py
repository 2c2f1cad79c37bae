"""The layer kernels in plain numpy: slow, obviously right. See `gingham.models.layers.kernels` for the meaning."""

from __future__ import annotations

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints


def cells_of(codes: Ints, first: Ints, labels: Ints, strides: Ints) -> Ints:
    """The flat cell of each tuple, (N,)."""
    at: Ints = np.zeros(codes.shape[1], dtype=np.int64)
    for code, start, stride in zip(codes, first, strides):
        at = at + labels[start + code].astype(np.int64) * stride
    return at


def put_back(
    codes: Ints, first: Ints, labels: Ints, strides: Ints, cells: Floats, weights: Floats, unit: bool,
    residual: Floats, counts: Floats, sums: Floats,
) -> None:  # fmt: skip
    at = cells_of(codes, first, labels, strides)
    residual += cells[at].astype(residual.dtype)
    w = np.ones(len(residual)) if unit else weights
    counts[:] = np.bincount(at, w, minlength=len(counts))
    sums[:] = np.bincount(at, w * residual, minlength=len(sums))


def take_out(codes: Ints, first: Ints, labels: Ints, strides: Ints, cells: Floats, residual: Floats) -> None:
    residual -= cells[cells_of(codes, first, labels, strides)].astype(residual.dtype)


def draw_labels(
    indptr: Ints, others: Ints, order: Ints, starts: Ints, strides: Ints, weights: Floats, unit: bool,
    residual: Floats, cells: Floats, precision: float, log_prior: Floats, side: Floats,
    uniforms: Floats, here: int, labels: Ints, counts: Floats, sums: Floats,
) -> None:  # fmt: skip
    m, rest = cells.shape
    at = cells_of(others, starts, labels, strides)
    w = np.ones(len(residual))[order] if unit else weights[order]
    counts[:] = 0.0
    sums[:] = 0.0
    for x in range(len(indptr) - 1):
        mine = slice(indptr[x], indptr[x + 1])
        seen = np.bincount(at[mine], w[mine], minlength=rest)
        heard = np.bincount(at[mine], w[mine] * residual[order[mine]], minlength=rest)
        logit = log_prior - 0.5 * precision * (cells**2 @ seen - 2.0 * cells @ heard)
        if len(side):
            logit = logit + side[x]
        weight = np.exp(logit - logit.max())
        k = int(min(np.searchsorted(np.cumsum(weight), uniforms[x] * weight.sum()), m - 1))
        labels[here + x] = k
        counts[k] += seen
        sums[k] += heard


def draw_offsets(
    items: Ints, weights: Floats, unit: bool, residual: Floats, precision: float, prior_precision: float,
    normals: Floats, offsets: Floats,
) -> None:  # fmt: skip
    n = len(offsets)
    w = np.ones(len(residual)) if unit else weights
    count = np.bincount(items, w, minlength=n)
    total = np.bincount(items, w * residual, minlength=n) + count * offsets
    p = precision * count + prior_precision
    drawn = precision * total / p + normals / np.sqrt(p)
    residual -= (drawn - offsets)[items].astype(residual.dtype)
    offsets[:] = drawn


def predict_draws(
    codes: Ints, first: Ints, labels: Ints, strides: Ints, cells: Floats, offsets: Floats, means: Floats,
    importance: Floats, total: Floats, squares: Floats, reweighted: Floats,
) -> None:  # fmt: skip
    for s in range(len(labels)):
        p: AnyArray = means[s] + sum(offsets[s][start + code].astype(float) for start, code in zip(first, codes))
        for layer, answers in zip(labels[s], cells[s]):
            p = p + answers[cells_of(codes, first, layer, strides)]
        total += p
        squares += p**2
        if len(importance):
            reweighted += p * sum(importance[s][start + code] for start, code in zip(first, codes))


def add_soft(first_codes: Ints, second_codes: Ints, met: Floats, assign: Floats, out: Floats) -> None:
    out += np.einsum("ec,ec->e", met[first_codes], assign[second_codes])
