"""Sums of checkerboards with hard clusters: draw labels and offsets, predict. numba, one thread a chain.

A layer's cells are kept flat. A tuple e falls in cell ``Σ_j labels[first_j + x_j(e)] · stride_j``, where the
items of all modes stand in one row, mode j from position ``first_j`` on. Random numbers come from outside,
so a chain is the same on every machine; the functions release the interpreter, so chains run side by side.
`gingham.models.layers.kernels_reference` has the same functions in plain numpy.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, boundscheck=False)
def put_back(codes, first, labels, strides, cells, weights, unit, residual, counts, sums):  # type: ignore[no-untyped-def]
    """Add a layer's prediction to the residuals; count the tuples of each cell and sum their residuals.

    Equivalent to ``residual += cells[at]; counts = bincount(at, w); sums = bincount(at, w * residual)``.
    """
    counts[:] = 0.0
    sums[:] = 0.0
    pair = codes.shape[0] == 2  # by far the commonest case, worth a line of its own
    for e in range(codes.shape[1]):
        if pair:
            at = labels[codes[0, e]] * strides[0] + labels[first[1] + codes[1, e]]
        else:
            at = 0
            for j in range(codes.shape[0]):
                at += labels[first[j] + codes[j, e]] * strides[j]
        residual[e] += cells[at]
        w = 1.0 if unit else weights[e]
        counts[at] += w
        sums[at] += w * residual[e]


@njit(cache=True, nogil=True, boundscheck=False)
def take_out(codes, first, labels, strides, cells, residual):  # type: ignore[no-untyped-def]
    """Equivalent to ``residual -= cells[at]``."""
    pair = codes.shape[0] == 2
    for e in range(codes.shape[1]):
        if pair:
            at = labels[codes[0, e]] * strides[0] + labels[first[1] + codes[1, e]]
        else:
            at = 0
            for j in range(codes.shape[0]):
                at += labels[first[j] + codes[j, e]] * strides[j]
        residual[e] -= cells[at]


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"contract", "reassoc"})
def draw_labels(  # type: ignore[no-untyped-def]
    indptr, others, order, starts, strides, weights, unit, residual, cells, precision, log_prior, side,
    uniforms, here, labels, counts, sums,
):  # fmt: skip
    """Draw the cluster of every item of one mode given the other modes' clusters.

    P(k) ∝ exp(log_prior_k + side_xk − (precision/2) Σ_e w_e [F_ke² − 2 F_ke r_e]), by inverting uniforms.

    Parameters
    ----------
    others : (d − 1, N) codes of the other modes, tuples grouped by this mode's items
    order : (N,) where each of these tuples stands in ``residual``
    starts, strides : (d − 1,) of the other modes
    cells : (m, rest) answers, this mode first
    side : (n, m), or (0, 0) for none
    here : position of this mode's first item in ``labels``
    counts, sums : (m, rest) statistics of the new labels, written
    """
    m, rest = cells.shape
    seen = np.empty(rest, np.float32)
    heard = np.empty(rest, np.float32)
    weight = np.empty(m, np.float32)
    half = np.float32(0.5 * precision)
    answers = cells.astype(np.float32)
    pair = others.shape[0] == 1
    counts[:] = 0.0
    sums[:] = 0.0
    for x in range(len(indptr) - 1):
        seen[:] = 0
        heard[:] = 0
        for p in range(indptr[x], indptr[x + 1]):
            if pair:
                at = np.int64(labels[starts[0] + others[0, p]])
            else:
                at = np.int64(0)
                for j in range(others.shape[0]):
                    at += labels[starts[j] + others[j, p]] * strides[j]
            r = residual[order[p]]
            if unit:
                seen[at] += np.float32(1)
                heard[at] += r
            else:
                w = np.float32(weights[order[p]])
                seen[at] += w
                heard[at] += w * r
        top = np.float32(-np.inf)
        for k in range(m):
            cost = np.float32(0)
            for c in range(rest):
                f = answers[k, c]
                cost += f * (seen[c] * f - np.float32(2) * heard[c])
            weight[k] = np.float32(log_prior[k]) - half * cost
            if side.shape[0] > 0:
                weight[k] += np.float32(side[x, k])
            top = max(top, weight[k])
        total = np.float32(0)
        for k in range(m):
            weight[k] = np.exp(weight[k] - top)
            total += weight[k]
        left = np.float32(uniforms[x]) * total
        k = 0
        while k < m - 1 and left > weight[k]:
            left -= weight[k]
            k += 1
        labels[here + x] = k
        for c in range(rest):
            counts[k, c] += seen[c]
            sums[k, c] += heard[c]


@njit(cache=True, nogil=True, boundscheck=False)
def draw_offsets(items, weights, unit, residual, precision, prior_precision, normals, offsets):  # type: ignore[no-untyped-def]
    """Draw the offset of every item of one mode: b ~ N(precision·Σ w (r + b)/p, 1/p), p = precision·Σ w + prior.

    The residuals are changed to match. ``items`` (N,) are the tuples' items, in any order: nothing loops over the
    tuples of an item, for most may have a single one. Equivalent to a ``bincount`` of the residuals and one line of
    arithmetic.
    """
    n = len(offsets)
    count, total = np.zeros(n), np.zeros(n)
    for e in range(len(residual)):
        x = items[e]
        w = 1.0 if unit else weights[e]
        count[x] += w
        total[x] += w * residual[e]
    for x in range(n):
        p = precision * count[x] + prior_precision
        drawn = precision * (total[x] + count[x] * offsets[x]) / p + normals[x] / np.sqrt(p)
        total[x] = drawn - offsets[x]
        offsets[x] = drawn
    for e in range(len(residual)):
        residual[e] -= np.float32(total[items[e]])


@njit(cache=True, nogil=True, boundscheck=False)
def predict_draws(codes, first, labels, strides, cells, offsets, means, importance, total, squares, reweighted):  # type: ignore[no-untyped-def]
    """Add every draw's prediction, its square, and its reweighted value, of each tuple: draws (S, …), tuples (d, N).

    Equivalent to ``p = means[s] + Σ_j offsets[s][x_j] + Σ_t cells[s, t][at]; total += p; squares += p²;
    reweighted += p Σ_j importance[s][x_j]``, the last only where importance (S, P) are not empty.
    """
    n_draws, n_layers = labels.shape[:2]
    d, n = codes.shape
    block = 4096  # a block's sums stay in cache while all draws pass over it
    drawn = np.empty(block, np.float32)
    for start in range(0, n, block):
        stop = min(start + block, n)
        for s in range(n_draws):
            for e in range(start, stop):
                b = np.float32(means[s])
                for j in range(d):
                    b += np.float32(offsets[s, first[j] + codes[j, e]])
                drawn[e - start] = b
            for t in range(n_layers):
                layer = labels[s, t]
                for e in range(start, stop):
                    at = 0
                    for j in range(d):
                        at += layer[first[j] + codes[j, e]] * strides[j]
                    drawn[e - start] += cells[s, t, at]
            for e in range(start, stop):
                p = np.float64(drawn[e - start])
                total[e] += p
                squares[e] += p * p
                if len(importance) > 0:
                    for j in range(d):
                        reweighted[e] += p * importance[s, first[j] + codes[j, e]]


@njit(cache=True, nogil=True, boundscheck=False)
def add_soft(first_codes, second_codes, met, assign, out):  # type: ignore[no-untyped-def]
    """Equivalent to ``out += np.einsum("ec,ec->e", met[first_codes], assign[second_codes])``."""
    for e in range(len(out)):
        i, j = first_codes[e], second_codes[e]
        for c in range(assign.shape[1]):
            out[e] += met[i, c] * assign[j, c]
