"""`project` and `sweep` in plain numpy: slow and obviously right. Every engine must equal them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.engine.project import Rows
from gingham.engine.sweep import TIE, Board, board_cost, size_cost, too_many_moves


def project(rows: Rows, assigns: Sequence[Floats], start: int = 0, stop: int | None = None) -> Floats:
    """Add each observation's share to its item's row of the result, one observation at a time."""
    stop = rows.n_items if stop is None else stop
    out: Floats = np.zeros((stop - start, rows.n_features, prod(q.shape[1] for q in assigns)))
    for x in range(start, stop):
        for e in range(rows.indptr[x], rows.indptr[x + 1]):
            product = np.ones(1)
            for j, q in enumerate(assigns):
                product = np.outer(product, q[rows.others[j, e]]).ravel()
            weight = 1.0 if rows.weights is None else rows.weights[e]
            if rows.labels is not None:
                out[x - start, rows.labels[e]] += weight * product
            elif rows.features is not None:
                out[x - start] += weight * np.outer(rows.features[e], product)
    return out


def sum_rows(
    lanes: int,
    sums: Floats,
    at: int,
    table: Floats,
    shift: int,
    stride: int,
    codes: Ints,
    scale: Floats | None,
    start: int,
    stop: int,
) -> None:
    """What `sum_rows` does, in numpy; all arrays are flat."""
    for e in range(start, stop):
        row = table[codes[e] * stride + shift :][:lanes]
        sums[at : at + lanes] += row if scale is None else scale[e - start] * row


def sweep(board: Board, order: Ints, beta: float = 1.0, price: float = 1.0, at_once: int = 1) -> Ints:
    """The whole objective is counted anew for every cluster an item could join."""
    moving = [int(mode) for mode in np.unique(board.mode_of[order])]
    chosen = np.empty(len(order), dtype=np.int64)
    one_by_one = False
    for begin in range(0, len(order), at_once):
        batch = order[begin : begin + at_once]
        before = board.labels[batch]
        wanted = [-1 if one_by_one else best_cluster(board, int(x), moving, beta, price) for x in batch]
        for x, want in zip(batch, wanted):
            if want != board.labels[x]:
                put(board, int(x), best_cluster(board, int(x), moving, beta, price))
        chosen[begin : begin + at_once] = board.labels[batch]
        one_by_one = too_many_moves(before, board.labels[batch])
    return chosen


def best_cluster(board: Board, x: int, moving: list[int], beta: float, price: float) -> int:
    """Where the objective is lowest; the board is left as it was."""
    here = int(board.labels[x])
    costs = []
    for cluster in range(int(board.widths[board.mode_of[x]])):
        put(board, x, cluster)
        costs.append(beta * board_cost(board) + price * size_cost(board, moving))
    put(board, x, here)
    best = here
    for cluster, cost in enumerate(costs):
        if cost < costs[best] - TIE:
            best = cluster
    return best


def put(board: Board, x: int, cluster: int) -> None:
    """Move one item and its observations' statistics into a cluster."""
    mode, here = int(board.mode_of[x]), int(board.labels[x])
    for e in range(board.indptr[x], board.indptr[x + 1]):
        fine, coarse = int(board.marks[e]) * board.mark_stride, int(board.coarse_base[mode])
        for other in board.others[:, e]:
            fine += int(board.labels[other] * board.fine_stride[board.mode_of[other]])
            if board.kind == "log":
                coarse += int(board.labels[other] * board.coarse_stride[board.mode_of[other]])
        for sign, place in ((-1, here), (1, cluster)):
            at = fine + place * int(board.fine_stride[mode])
            if board.kind == "moments":
                board.fine[at : at + 3] += sign * board.weights[e] * board.features[e]
            else:
                add(board.fine, at, sign * board.weights[e])
            if board.kind in ("mass", "log"):
                add(board.coarse, int(coarse + place * board.coarse_stride[mode]), sign * board.weights[e])
    first = board.first_cluster[mode]
    board.sizes[first + here] -= 1
    board.sizes[first + cluster] += 1
    board.labels[x] = cluster


def add(table: AnyArray, at: int, amount: float) -> None:
    """table[at] += amount, where what rounding leaves of an emptied count is nothing."""
    left = table[at] + amount
    table[at] = left if left > 1e-9 else 0
