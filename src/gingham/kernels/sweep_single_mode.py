"""Hard moves in numba where one mode alone moves and no item has two tuples in one cell (sIB, IobMax).

What a tuple touches is then known beforehand and an item's counts need not be gathered. Nothing is written
unless an item moves, so x ln x of the tables is kept beside them and a cell costs one logarithm.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from functools import cache

import numpy as np
from numba import njit
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.kernels.batched_moves import Visit
from gingham.kernels.logarithm import ln
from gingham.kernels.sweep import TABLE, TIE, Board


def visit_alone(board: Board, order: Ints, beta: float, price: float) -> Visit:
    """How the items of a sweep are visited on a board where one mode moves."""
    mode = int(board.mode_of[order[0]]) if len(order) else 0
    first, m = int(board.first_cluster[mode]), int(board.widths[mode])
    fine, coarse = board.fine.reshape(-1, m), board.coarse
    coarse = coarse.reshape(-1, m) if board.kind == "log" else coarse[None, first : first + m]
    known, table = (_phi(fine), _phi(coarse)), lookup(board, m)
    rise = np.diff(table)  # φ(x + 1) − φ(x)

    def visit(items: Ints, only_look: bool, chosen: Ints) -> None:
        _alone(
            items, board.indptr, board.weights, board.cells, board.coarse_cells, board.labels,
            board.sizes[first : first + m], fine, coarse, *known, board.kind == "log",
            table, rise, beta, price, only_look, chosen,
        )  # fmt: skip

    return visit


def lookup(board: Board, m: int) -> Floats:
    """x ln x of all counts that a sweep of whole numbers can meet beside an item; empty where it is to be computed."""
    if board.fine.dtype != np.int32 or not len(board.weights):
        return np.zeros(0)
    # Clusters exchange counts among themselves: their sum bounds each for good.
    largest = int(board.fine.reshape(-1, m).sum(axis=1).max())
    if board.kind == "log":
        largest = max(largest, int(board.coarse.reshape(-1, m).sum(axis=1).max()))
    largest += int(board.weights.max())
    return x_ln_x(1 << largest.bit_length()) if largest < TABLE else np.zeros(0)


@cache
def x_ln_x(size: int) -> Floats:
    counts = np.arange(size, dtype=np.float64)
    return np.asarray(xlogy(counts, counts))


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _alone(
    order, indptr, weights, cells, coarse_cells, labels, sizes, fine, coarse, fine_known, coarse_known,
    coarse_follows, table, rise, beta, price, only_look, chosen,
):  # fmt: skip
    """Cost Σ_coarse φ − Σ_fine φ, φ(x) = x ln x; tables (rows, clusters), ``known`` their φ.

    Equivalent to ``argmin_c beta * (xlogy(coarse, coarse).sum() − xlogy(fine, fine).sum()) + price * sizes_cost``
    with the item's counts moved to cluster c.
    """
    # All is written out: a helper that is given arrays costs more a tuple than what it would do.
    m, looked_up = len(sizes), len(table) > 0
    zero = weights[:0].sum()  # of the weights' own type
    score = np.empty(m)
    for step in range(len(order)):
        x = order[step]
        here = labels[x]
        for c in range(m):
            score[c] = 0.0
        mass, stays = zero, 0.0  # stays: the score of the item's own cluster
        for e in range(indptr[x], indptr[x + 1]):
            own, row = weights[e], cells[e]
            mass += own
            left = fine[row, here] - own
            if looked_up and own == 1:  # most counts are one
                stays -= rise[np.uint64(left)]
                for c in range(m):
                    score[c] -= rise[np.uint64(fine[row, c])]
            elif looked_up:
                stays += table[np.uint64(left)] - fine_known[row, here]
                for c in range(m):
                    score[c] += fine_known[row, c] - table[np.uint64(fine[row, c] + own)]
            else:
                stays += (left * ln(left) if left > 1e-9 else 0.0) - fine_known[row, here]
                for c in range(m):
                    after = np.float64(fine[row, c] + own)
                    score[c] += fine_known[row, c] - after * ln(after)
            if coarse_follows:
                row = coarse_cells[e]
                left = coarse[row, here] - own
                if looked_up and own == 1:
                    stays += rise[np.uint64(left)]
                    for c in range(m):
                        score[c] += rise[np.uint64(coarse[row, c])]
                elif looked_up:
                    stays += coarse_known[row, here] - table[np.uint64(left)]
                    for c in range(m):
                        score[c] += table[np.uint64(coarse[row, c] + own)] - coarse_known[row, c]
                else:
                    stays += coarse_known[row, here] - (left * ln(left) if left > 1e-9 else 0.0)
                    for c in range(m):
                        after = np.float64(coarse[row, c] + own)
                        score[c] += after * ln(after) - coarse_known[row, c]
        if not coarse_follows and mass > 0:
            left = coarse[0, here] - mass
            stays += coarse_known[0, here] - (left * ln(left) if left > 1e-9 else 0.0)
            for c in range(m):
                after = np.float64(coarse[0, c] + mass)
                score[c] += after * ln(after) - coarse_known[0, c]
        score[here] = stays
        for c in range(m):
            score[c] *= beta
            if price != 0.0:
                size = np.float64(sizes[c] - (c == here))
                score[c] -= price * ((size + 1.0) * ln(size + 1.0) - size * ln(size))
        best = here
        for c in range(m):
            if score[c] < score[best] - TIE:
                best = c
        chosen[step] = best
        if only_look or best == here:
            continue
        for e in range(indptr[x], indptr[x + 1]):
            _move(fine, fine_known, cells[e], here, best, weights[e])
            if coarse_follows:
                _move(coarse, coarse_known, coarse_cells[e], here, best, weights[e])
        if not coarse_follows:
            _move(coarse, coarse_known, 0, here, best, mass)
        sizes[here] -= 1
        sizes[best] += 1
        labels[x] = best


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _move(totals, known, row, here, best, own):
    """Move a count from one cluster to another; what rounding leaves of nothing is nothing."""
    left = totals[row, here] - own
    totals[row, here] = left if left > 1e-9 else 0
    totals[row, best] += own
    less, more = np.float64(totals[row, here]), np.float64(totals[row, best])
    known[row, here], known[row, best] = less * ln(less), more * ln(more)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _phi(counts):
    """Equivalent to ``xlogy(counts, counts)``."""
    out = np.empty(counts.shape)
    for row in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            x = np.float64(counts[row, c])
            out[row, c] = x * ln(x)
    return out
