"""Hard moves: the board (every item in one cluster, statistics that follow each move), and `sweep`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.engine.threads import in_blocks
from gingham.errors import GinghamError

TABLE = 2**20  # x ln x is looked up for counts below this
TIE = 1e-9  # a move must gain more than this: rounding must not move items to and fro
BATCHES, SMALL = 16, 2**22  # batches of a sweep, and effort for which they are not worth it
TOO_MANY = 0.25  # share of a batch; evaluating costs half a visit on two cores, so it pays up to twice this share
LEAST_PART = 2  # two blocks a thread: a batch is short, more would cost more than they even out
LOOK_UP = 16  # multiply-adds that take as long as scoring one observation in one cluster


class Board(NamedTuple):
    """A hard partition of all items with what is needed to score a move. `sweep` changes it in place.

    Items of all modes are numbered through: item x of mode i is ``first_item[i] + x``. An observation stands
    once under each moving mode, sorted by that mode's items. Tables are flat: the cell of an observation under
    its item is Σ_j at[item_j] over the other modes (their label times their stride) plus
    label · stride of its own mode.

    ``entropy`` kinds ("mass", "log") cost Σ_coarse φ − Σ_fine φ with φ(x) = x ln x: for "mass" fine
    entries are the cells and coarse ones the clusters of each mode (−N·I of the clusters, up to a
    constant); for "log" fine entries are label counts of cells and coarse ones the cells (N·H(Y|cell)).
    The other kinds ("table", "moments") keep K statistics a cell and cost min_θ ⟨coef(θ), S⟩.
    """

    kind: str
    # observations, grouped by item
    indptr: Ints  # (n + 1,)
    others: Ints  # (d − 1, E): numbers of the other items
    weights: AnyArray  # (E,) int32 for counts, else float64
    marks: Ints  # (E,) label codes, zeros for "mass" and "moments"
    features: Floats  # (E, K) for "moments", else (0, 1)
    # partition
    mode_of: Ints  # (n,)
    first_item: Ints  # (d + 1,)
    widths: Ints  # (d,) clusters of each mode
    labels: Ints  # (n,)
    sizes: Ints  # (Σ m,) items in each cluster
    first_cluster: Ints  # (d + 1,)
    # statistics
    fine: AnyArray  # flat; (cells · K,) with cells varying fastest, or cells alone
    fine_stride: Ints  # (d,)
    mark_stride: int
    coarse: AnyArray
    coarse_stride: Ints  # (d,)
    coarse_base: Ints  # (d,)
    coef: Floats  # (K, answers) for "table"
    # where one mode alone moves and no item has two observations in one cell, for entropy kinds; else empty
    cells: Ints  # (E,) row of each observation in the fine table, whose columns are the clusters
    coarse_cells: Ints  # (E,) the same in the coarse table of "log"

    def labels_of(self, mode: int) -> Ints:
        return self.labels[self.first_item[mode] : self.first_item[mode + 1]]

    @property
    def n_modes(self) -> int:
        return len(self.widths)


def make_board(
    kind: str,
    codes: Sequence[Ints],
    labels: Sequence[Ints],
    n_clusters: Sequence[int],
    moving: Sequence[int],
    *,
    weights: Floats | None = None,
    marks: Ints | None = None,
    features: Floats | None = None,
    n_features: int = 1,
    coef: Floats | None = None,
) -> Board:
    """Lay out observations and count statistics.

    Parameters
    ----------
    kind : {"mass", "log", "table", "moments"}
    codes : d arrays of shape (N,)
        Item codes of each mode.
    labels : d arrays of shape (n_i,)
        Cluster of each item.
    moving : modes whose items may move; the others are frozen.
    weights, marks, features
        Per observation, as the kind needs them.
    """
    d, n_rows = len(codes), len(codes[0])
    first_item = np.concatenate([[0], np.cumsum([len(c) for c in labels])]).astype(np.int64)
    widths = np.asarray(n_clusters, dtype=np.int64)
    first_cluster = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    weights = np.ones(n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
    whole = kind in ("mass", "log") and _whole(weights[:64]) and _whole(weights) and weights.sum() < 2**31
    number: type[np.int32 | np.float64] = np.int32 if whole else np.float64
    orders = [_by_item(codes[mode]) for mode in moving]
    counts = np.zeros(first_item[-1], dtype=np.int64)
    others = np.empty((d - 1, len(moving) * n_rows), dtype=np.int32)
    for i, (mode, order) in enumerate(zip(moving, orders)):
        for row, j in zip(others[:, i * n_rows : (i + 1) * n_rows], (j for j in range(d) if j != mode)):
            np.add(np.asarray(codes[j])[order], first_item[j], out=row, casting="unsafe")
        counts[first_item[mode] : first_item[mode + 1]] = np.bincount(codes[mode], minlength=len(labels[mode]))
    # Frozen modes vary slowest, so that the clusters of a moving mode lie side by side.
    axes = [*(j for j in range(d) if j not in moving), *moving]
    cell_stride = np.zeros(d, dtype=np.int64)
    step = 1
    for j in reversed(axes):
        cell_stride[j] = step
        step *= int(widths[j])
    n_cells = step
    flat = np.concatenate([np.asarray(c) for c in labels]).astype(np.int64) if d else np.zeros(0, np.int64)
    sizes = np.concatenate([np.bincount(c, minlength=m) for c, m in zip(labels, widths)]).astype(np.int64)
    placed = [_placed(np.asarray(label, dtype=np.int64), code) for label, code in zip(labels, codes)]
    if len(moving) == 1:  # its clusters lie side by side, in the cells of the others
        m = int(widths[moving[0]])
        rest = _places(placed, np.where(np.arange(d) == moving[0], 0, cell_stride // m))
        at: Ints = rest * m + placed[moving[0]]
    else:
        at = _places(placed, cell_stride)
    if kind == "mass":
        fine = np.bincount(at, weights, minlength=n_cells)
        table, places = fine.reshape([int(widths[j]) for j in axes]), [axes.index(j) for j in range(d)]
        coarse = np.concatenate([table.sum(axis=tuple(i for i in range(d) if i != own)) for own in places])
        coarse_stride, coarse_base, mark_stride = np.ones(d, np.int64), first_cluster[:-1].copy(), 0
        fine_stride = cell_stride
    elif kind == "log":
        # One table (cells of frozen modes, labels, cells of moving modes) keeps clusters side by side.
        inner = prod(int(widths[j]) for j in moving)
        mark_stride = inner
        fine_stride = np.where(np.isin(np.arange(d), list(moving)), cell_stride, cell_stride * n_features)
        spread = _places(placed, fine_stride) + np.asarray(marks, dtype=np.int64) * mark_stride
        fine = np.bincount(spread, weights, minlength=n_cells * n_features)
        coarse = np.bincount(at, weights, minlength=n_cells)
        coarse_stride, coarse_base = cell_stride, np.zeros(d, np.int64)
    elif kind in ("table", "moments"):
        rows = np.eye(n_features)[marks] if kind == "table" else np.asarray(features, dtype=np.float64)
        fine = np.column_stack([np.bincount(at, weights * column, minlength=n_cells) for column in rows.T]).ravel()
        fine_stride, mark_stride = cell_stride * n_features, 1
        coarse, coarse_stride, coarse_base = np.zeros(1), np.zeros(d, np.int64), np.zeros(d, np.int64)
    else:
        raise GinghamError(f"Hard moves of kind {kind!r} are unknown.")
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cells: Ints = np.zeros(0, dtype=np.int64)
    coarse_cells = cells
    if kind in ("mass", "log") and len(moving) == 1:
        rest_at = rest[orders[0]]
        if kind == "mass" and _rising(rest_at, indptr):
            cells = rest_at
        elif kind == "log" and _rising(rest_at, indptr):
            cells, coarse_cells = spread[orders[0]] // m, rest_at
    return Board(
        kind=kind,
        indptr=indptr,
        others=others,
        weights=_arranged(weights.astype(number), orders),
        marks=np.zeros(others.shape[1], np.int32) if marks is None else _arranged(marks.astype(np.int32), orders),
        features=_arranged(np.asarray(features, np.float64), orders) if kind == "moments" else np.zeros((0, 1)),
        mode_of=np.repeat(np.arange(d), np.diff(first_item)).astype(np.int32),
        first_item=first_item,
        widths=widths,
        labels=flat,
        sizes=sizes,
        first_cluster=first_cluster,
        fine=fine.astype(number),
        fine_stride=fine_stride,
        mark_stride=int(mark_stride),
        coarse=coarse.astype(number),
        coarse_stride=coarse_stride,
        coarse_base=coarse_base,
        coef=np.zeros((1, 1)) if coef is None else np.ascontiguousarray(coef, dtype=np.float64),
        cells=cells,
        coarse_cells=coarse_cells,
    )


def _whole(numbers: Floats) -> bool:
    return bool((numbers == np.floor(numbers)).all())


def _by_item(codes: Ints) -> slice | Ints:
    """An index that sorts observations by their items; nothing is copied where they are sorted."""
    if bool((codes[1:] >= codes[:-1]).all()):
        return slice(None)
    small = int(codes.min()) >= 0 and int(codes.max()) < 2**16  # these are sorted by their digits
    return np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")


def _arranged(values: AnyArray, orders: Sequence[slice | Ints]) -> AnyArray:
    """Values of the observations in each of the orders, one order after the other."""
    return values[orders[0]] if len(orders) == 1 else np.concatenate([values[:0], *(values[o] for o in orders)])


def _placed(labels: Ints, codes: Ints) -> Ints:
    """The cluster of every observation's item; items that are each a cluster by themselves are not looked up."""
    if len(labels) and labels[-1] == len(labels) - 1 and bool((labels == np.arange(len(labels))).all()):
        return np.asarray(codes, dtype=np.int64)
    return labels[codes]


def _places(placed: Sequence[Ints], strides: Ints) -> Ints:
    """Σ_j stride_j · label_j of every observation, from the labels of its items (N,)."""
    at: Ints | None = None
    for label, stride in zip(placed, strides):
        if stride:
            step = label if stride == 1 else label * stride
            at = step if at is None else at + step
    return np.zeros(len(placed[0]), dtype=np.int64) if at is None else at


def _rising(cells: Ints, indptr: Ints) -> bool:
    """Whether the cells of each item's observations rise from observation to observation: then no two are the same."""
    rises = cells[1:] > cells[:-1]
    begins = indptr[1:-1]
    rises[begins[(begins > 0) & (begins < len(cells))] - 1] = True  # an item's first
    return bool(rises.all())


def board_cost(board: Board) -> float:
    """Σ over cells of the least possible loss, from the statistics on the board.

    For "mass" that is N ln N − N·I-like: Σ_modes Σ φ(masses) − Σ φ(cells) = −N·I + (d − 1)·φ(N).
    """
    if board.kind in ("mass", "log"):
        return float(xlogy(board.coarse, board.coarse).sum() - xlogy(board.fine, board.fine).sum())
    return float(envelopes(board.kind, board.fine.reshape(-1, n_features(board)), board.coef).sum())


def n_features(board: Board) -> int:
    return len(board.coef) if board.kind == "table" else board.features.shape[1]


def envelopes(kind: str, statistics: Floats, coef: Floats) -> Floats:
    """min_θ ⟨coef(θ), S⟩ of each row of statistics (cells, K)."""
    if kind == "table":
        return (statistics @ coef).min(axis=1)
    count, first, second = statistics.T
    return second - np.divide(first**2, count, out=np.zeros(len(count)), where=count > 0)


def size_cost(board: Board, moving: Sequence[int]) -> float:
    """Σ_i n_i H(cluster sizes) over the moving modes: n Ī of a hard partition."""
    total = 0.0
    for mode in moving:
        sizes = board.sizes[board.first_cluster[mode] : board.first_cluster[mode + 1]]
        total += float(xlogy(sizes.sum(), sizes.sum()) - xlogy(sizes, sizes).sum())
    return total


def effort_of(board: Board, items: Ints) -> Ints:
    """Observations times clusters that a visit to each of the items scores."""
    return np.diff(board.indptr)[items] * board.widths[board.mode_of[items]]


def sweep(board: Board, order: Ints, beta: float = 1.0, price: float = 1.0, at_once: int = 1) -> Ints:
    """Take each item out of its cluster and put it where β·cost + price·Σ n H(sizes) is lowest.

    Parameters
    ----------
    board : Board
        Changed in place.
    order : int array
        Numbers of the items to visit (see `Board`), all of moving modes.
    at_once : int
        Items that are evaluated together, on all cores; those that would move are then visited again, one after
        the other. A batch after one of which too many moved is visited one by one. The result does not depend on
        the number of threads.

    Returns
    -------
    int array of shape (len(order),)
        The cluster each visited item was put into. An item stays where it is unless a move gains more
        than TIE; among equals the lowest cluster wins.

    Notes
    -----
    Equivalent to, for each item of ``order``: ``labels[x] = argmin_c objective(labels with x in c)``; with
    ``at_once`` > 1 for those items of each batch of which that is true before the batch moves.
    """
    from gingham.engine import sweep_compiled  # compiled code is loaded where it is used

    return sweep_compiled.sweep(board, np.asarray(order, np.int64), beta, price, at_once)


class Visit(Protocol):
    """Visit items in their order and write the cluster each is to be in; nothing moves if they are only evaluated."""

    def __call__(self, items: Ints, evaluate_only: bool, chosen: Ints) -> None: ...


def move_in_batches(visit: Visit, order: Ints, at_once: int, labels: Ints, effort: Ints) -> Ints:
    """One visit to every item, batch by batch; returns the clusters, in the order of the visits.

    All of a batch are evaluated on the board as it is before the batch. Those that would move are then visited again,
    one after the other, each with what those before it left. So every move lowers the objective, and the result
    depends on ``at_once`` but not on the number of threads. After a batch of which too many moved, the next is
    visited one by one: what would be evaluated is soon out of date, and most of it would be visited twice.

    Parameters
    ----------
    order : (n,) items to visit
    at_once : items of a batch; 1 visits one after the other
    labels : cluster of every item, changed by ``visit``
    effort : (n,) observations times clusters that each visit scores
    """
    chosen = np.empty(len(order), dtype=np.int64)
    if at_once <= 1:
        visit(order, False, chosen)
        return chosen
    ends = np.concatenate([[0], np.cumsum(effort)])
    one_by_one = False
    for begin in range(0, len(order), at_once):
        end = min(begin + at_once, len(order))
        before = labels[order[begin:end]]
        if one_by_one:
            visit(order[begin:end], False, chosen[begin:end])
        else:
            work = int(ends[end] - ends[begin]) * LOOK_UP
            in_blocks(lambda a, b: visit(order[a:b], True, chosen[a:b]), ends, begin, end, work, LEAST_PART)
            going = begin + np.flatnonzero(chosen[begin:end] != before)
            found = np.empty(len(going), dtype=np.int64)
            visit(order[going], False, found)
            chosen[going] = found
        one_by_one = too_many_moves(before, chosen[begin:end])
    return chosen


def batch_size(effort: Ints) -> int:
    """How many items of a sweep are evaluated at once: one where all visits together take a few milliseconds.

    A sixteenth of the items keeps cores busy and what they see fresh: where descents end, and after how many
    sweeps, is the same on average. Says nothing of the machine, so that results are the same on all.
    """
    return 1 if int(effort.sum()) < SMALL else -(-len(effort) // BATCHES)


def too_many_moves(before: Ints, after: Ints) -> bool:
    """Whether so many of a batch moved that the next should be visited one by one."""
    return int(np.count_nonzero(before != after)) > TOO_MANY * len(before)
