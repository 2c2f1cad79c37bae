"""Hard moves in numba: an item's own counts are gathered once and every cluster is scored from them."""

# mypy: allow-untyped-defs
from __future__ import annotations

import math

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.engine.logarithm import ln, x_ln_x, x_ln_x_of
from gingham.engine.sweep import TABLE, TIE, Board, Visit, effort_of, move_in_batches, n_features

u8 = np.uint64
FEW = 8  # clusters


def sweep(board: Board, order: Ints, beta: float, price: float, at_once: int) -> Ints:
    """See `gingham.engine.sweep.sweep`."""
    if len(board.cells):
        visit = _visit_single_mode(board, order, beta, price)
    elif board.kind in ("mass", "log"):
        visit = _visit_entropy(board, order, beta, price)
    else:
        visit = _visit_statistics(board, beta, price)
    return move_in_batches(visit, order, at_once, board.labels, effort_of(board, order))


def _visit_entropy(board: Board, order: Ints, beta: float, price: float) -> Visit:
    covered, table = _entropy_table(board, order)
    # Where the tuples of other items find each item's cluster in the tables; follows the moves.
    fine_at = board.labels * board.fine_stride[board.mode_of]
    coarse_at = board.labels * board.coarse_stride[board.mode_of] * (board.kind == "log")

    def visit(items: Ints, evaluate_only: bool, chosen: Ints) -> None:
        _entropy(
            items, board.indptr, board.others, board.weights, board.marks,
            board.mode_of, board.widths, board.labels, board.sizes, board.first_cluster, fine_at, coarse_at,
            board.fine, board.fine_stride, board.mark_stride,
            board.coarse, board.coarse_stride, board.coarse_base, board.kind == "log",
            table, covered, beta, price, evaluate_only, chosen,
        )  # fmt: skip

    return visit


def _visit_statistics(board: Board, beta: float, price: float) -> Visit:
    cells, stride = board.fine.reshape(-1, n_features(board)), board.fine_stride // n_features(board)

    def visit(items: Ints, evaluate_only: bool, chosen: Ints) -> None:
        _statistics(
            items, board.indptr, board.others, board.weights, board.marks, board.features,
            board.mode_of, board.widths, board.labels, board.sizes, board.first_cluster,
            cells, stride, board.coef, board.kind == "table", beta, price, evaluate_only, chosen,
        )  # fmt: skip

    return visit


def _entropy_table(board: Board, order: Ints) -> tuple[bool, Floats]:
    """Whether x ln x of every fine entry can be looked up throughout the sweep, and the table."""
    if board.fine.dtype != np.int32:
        return False, np.zeros(0)
    modes = np.unique(board.mode_of[order])
    if len(modes) == 1 and board.fine_stride[modes[0]] == 1:
        # Only the clusters of one mode exchange counts: their sum bounds each entry for good.
        width = int(board.widths[modes[0]])
        largest = int(board.fine.reshape(-1, width).sum(axis=1).max(initial=0))
        if board.kind == "log" and board.coarse_stride[modes[0]] == 1:
            largest = max(largest, int(board.coarse.reshape(-1, width).sum(axis=1).max(initial=0)))
    else:
        largest = int(board.fine.sum())
    # A cluster is scored as if the item's counts came on top of what it has, its own cluster too: twice the bound.
    return 2 * largest < TABLE, x_ln_x(min(1 << (2 * largest + 1).bit_length(), TABLE))


@njit(inline="always")
def _phi(table, x):
    """x ln x, looked up where the table reaches (counts), computed elsewhere."""
    if x < len(table):
        return table[int(x)]
    return x * math.log(x) if x > 0 else 0.0


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _entropy(
    order, indptr, others, weights, marks, mode_of, widths, labels, sizes, first_cluster, fine_at, coarse_at,
    fine, fine_stride, mark_stride, coarse, coarse_stride, coarse_base, coarse_follows,
    table, covered, beta, price, evaluate_only, chosen,
):  # fmt: skip
    """Cost Σ_coarse φ − Σ_fine φ, φ(x) = x ln x.

    Equivalent to ``argmin_c beta * (xlogy(coarse, coarse).sum() − xlogy(fine, fine).sum()) + price * sizes_cost``
    with the item's counts moved to cluster c.
    """
    n_others = len(others)
    longest = 0
    for x in order:
        longest = max(longest, indptr[x + 1] - indptr[x])
    zero = weights[:0].sum()  # of the weights' own type
    own_fine = np.zeros(len(fine), weights.dtype)  # the item's counts, in cluster 0's place
    own_coarse = np.zeros(len(coarse), weights.dtype)
    fine_seen, coarse_seen = np.empty(longest, np.int64), np.empty(longest + 1, np.int64)
    score = np.empty(widths.max())
    for step in range(len(order)):
        x = order[step]
        mode, here = mode_of[x], labels[x]
        m, stride, wide = widths[mode], fine_stride[mode], coarse_stride[mode]
        first = first_cluster[mode]
        n_fine = n_coarse = 0
        for e in range(indptr[x], indptr[x + 1]):
            if weights[e] == 0:
                continue
            f, g = np.int64(marks[e]) * mark_stride, coarse_base[mode]
            for j in range(n_others):
                f += fine_at[others[j, e]]
                g += coarse_at[others[j, e]]
            if own_fine[f] == 0:
                fine_seen[n_fine] = f
                n_fine += 1
            own_fine[f] += weights[e]
            if own_coarse[g] == 0:
                coarse_seen[n_coarse] = g
                n_coarse += 1
            own_coarse[g] += weights[e]
        score[:m] = 0.0
        stays = 0.0  # the score of the item's own cluster, whose counts are without the item's
        for i in range(n_coarse):
            g = coarse_seen[i]
            own = own_coarse[g]
            left = _without(coarse[g + here * wide], own)
            stays += _phi(table, left + own) - _phi(table, left)
            if covered and coarse_follows and stride == 1 and wide == 1:
                totals = coarse[g : g + m]
                raised = table[np.uint64(own) :]
                for c in range(m):
                    before_all = np.uint64(totals[c])
                    score[c] += raised[before_all] - table[before_all]
            else:
                for c in range(m):
                    before = coarse[g + c * wide]
                    score[c] += _phi(table, before + own) - _phi(table, before)
        for i in range(n_fine):
            f = fine_seen[i]
            own = own_fine[f]
            left = _without(fine[f + here * stride], own)
            if covered and stride == 1:
                cells = fine[f : f + m]
                shifted = table[np.uint64(own) :]
                stays -= shifted[np.uint64(left)] - table[np.uint64(left)]
                for c in range(m):
                    before = np.uint64(cells[c])
                    score[c] -= shifted[before] - table[before]
            elif stride == 1 and len(table) == 0:
                weights_here = fine[f : f + m]
                before, after = float(left), float(left) + own
                stays -= after * ln(after) - before * ln(before)
                for c in range(m):
                    before = float(weights_here[c])
                    after = before + own
                    score[c] -= after * ln(after) - before * ln(before)
            else:
                stays -= _phi(table, left + own) - _phi(table, left)
                for c in range(m):
                    before = fine[f + c * stride]
                    score[c] -= _phi(table, before + own) - _phi(table, before)
        score[here] = stays
        for c in range(m):
            size = float(sizes[first + c] - (c == here))
            score[c] = beta * score[c]
            if price != 0.0:
                score[c] -= price * (_phi(table, size + 1.0) - _phi(table, size))
        best = here
        for c in range(m):
            if score[c] < score[best] - TIE:
                best = c
        chosen[step] = best
        moves = best != here and not evaluate_only
        for i in range(n_fine):
            f = fine_seen[i]
            if moves:
                fine[f + here * stride] = _without(fine[f + here * stride], own_fine[f])
                fine[f + best * stride] += own_fine[f]
            own_fine[f] = zero
        for i in range(n_coarse):
            g = coarse_seen[i]
            if moves:
                coarse[g + here * wide] = _without(coarse[g + here * wide], own_coarse[g])
                coarse[g + best * wide] += own_coarse[g]
            own_coarse[g] = zero
        if moves:
            sizes[first + here] -= 1
            sizes[first + best] += 1
            labels[x] = best
            fine_at[x] = best * stride
            if coarse_follows:
                coarse_at[x] = best * wide


@njit(inline="always")
def _without(count, own):
    """What rounding leaves of nothing is nothing."""
    left = count - own
    return left if left > 1e-9 else count - count


@njit(cache=True, nogil=True)
def _envelope(statistics, own, coef, is_table):
    """min_θ ⟨coef(θ), S + own⟩ of one cell."""
    if not is_table:
        count = statistics[0] + own[0]
        first = statistics[1] + own[1]
        return statistics[2] + own[2] - (first * first / count if count > 1e-12 else 0.0)
    least = np.inf
    for a in range(coef.shape[1]):
        loss = 0.0
        for k in range(coef.shape[0]):
            loss += coef[k, a] * (statistics[k] + own[k])
        least = min(least, loss)
    return least


@njit(cache=True, nogil=True, boundscheck=False)
def _statistics(
    order, indptr, others, weights, marks, features, mode_of, widths, labels, sizes, first_cluster,
    cells, stride, coef, is_table, beta, price, evaluate_only, chosen,
):  # fmt: skip
    """Cost Σ_cells min_θ ⟨coef(θ), S⟩; statistics ``cells`` (n_cells, K).

    Equivalent to ``argmin_c beta * envelopes(kind, cells, coef).sum() + price * sizes_cost``
    with the item's statistics moved to cluster c.
    """
    n_others, n_statistics = len(others), cells.shape[1]
    longest = 0
    for x in order:
        longest = max(longest, indptr[x + 1] - indptr[x])
    own = np.zeros(cells.shape)
    known = np.zeros(len(cells), np.bool_)
    seen = np.empty(longest, np.int64)
    nothing, left = np.zeros(n_statistics), np.zeros(n_statistics)
    empty = np.zeros(0)
    score = np.empty(widths.max())
    for step in range(len(order)):
        x = order[step]
        mode, here = mode_of[x], labels[x]
        m, first = widths[mode], first_cluster[mode]
        n_seen = 0
        for e in range(indptr[x], indptr[x + 1]):
            cell = 0
            for j in range(n_others):
                other = others[j, e]
                cell += labels[other] * stride[mode_of[other]]
            if not known[cell]:
                known[cell] = True
                seen[n_seen] = cell
                n_seen += 1
            if is_table:
                own[cell, marks[e]] += weights[e]
            else:
                for k in range(n_statistics):
                    own[cell, k] += weights[e] * features[e, k]
        for c in range(m):
            total = 0.0
            for i in range(n_seen):
                at = cells[seen[i] + c * stride[mode]]
                if c == here:
                    for k in range(n_statistics):
                        left[k] = at[k] - own[seen[i], k]
                    at = left
                total += _envelope(at, own[seen[i]], coef, is_table) - _envelope(at, nothing, coef, is_table)
            size = float(sizes[first + c] - (c == here))
            score[c] = beta * total - price * (_phi(empty, size + 1.0) - _phi(empty, size))
        best = here
        for c in range(m):
            if score[c] < score[best] - TIE:
                best = c
        chosen[step] = best
        moves = best != here and not evaluate_only
        for i in range(n_seen):
            for k in range(n_statistics):
                if moves:
                    cells[seen[i] + here * stride[mode], k] -= own[seen[i], k]
                    cells[seen[i] + best * stride[mode], k] += own[seen[i], k]
                own[seen[i], k] = 0.0
            known[seen[i]] = False
        if moves:
            sizes[first + here] -= 1
            sizes[first + best] += 1
            labels[x] = best


def _visit_single_mode(board: Board, order: Ints, beta: float, price: float) -> Visit:
    """Where one mode alone moves and no item has two observations in one cell (sIB, IobMax).

    What an observation touches is then known beforehand and an item's counts need not be gathered. Nothing is written
    unless an item moves, so x ln x of the tables is kept beside them and a cell costs one logarithm.
    """
    mode = int(board.mode_of[order[0]]) if len(order) else 0
    first, m = int(board.first_cluster[mode]), int(board.widths[mode])
    fine, coarse = board.fine.reshape(-1, m), board.coarse
    coarse = coarse.reshape(-1, m) if board.kind == "log" else coarse[None, first : first + m]
    known, table = (x_ln_x_of(fine), x_ln_x_of(coarse)), _single_mode_table(board, m)
    rise = np.diff(table)  # φ(x + 1) − φ(x)

    def visit(items: Ints, evaluate_only: bool, chosen: Ints) -> None:
        _single_mode(
            items, board.indptr, board.weights, board.cells, board.coarse_cells, board.labels,
            board.sizes[first : first + m], fine, coarse, *known, board.kind == "log",
            table, rise, beta, price, evaluate_only, chosen,
        )  # fmt: skip

    return visit


def _single_mode_table(board: Board, m: int) -> Floats:
    """x ln x of all counts that a sweep of whole numbers can meet beside an item; empty where it is to be computed."""
    if board.fine.dtype != np.int32 or not len(board.weights):
        return np.zeros(0)
    # Clusters exchange counts among themselves: their sum bounds each for good.
    largest = int(board.fine.reshape(-1, m).sum(axis=1).max())
    if board.kind == "log":
        largest = max(largest, int(board.coarse.reshape(-1, m).sum(axis=1).max()))
    largest += int(board.weights.max())
    return x_ln_x(1 << largest.bit_length()) if largest < TABLE else np.zeros(0)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _single_mode(
    order, indptr, weights, cells, coarse_cells, labels, sizes, fine, coarse, fine_known, coarse_known,
    coarse_follows, table, rise, beta, price, evaluate_only, chosen,
):  # fmt: skip
    """Cost Σ_coarse φ − Σ_fine φ, φ(x) = x ln x; tables (rows, clusters), ``known`` their φ.

    Equivalent to ``argmin_c beta * (xlogy(coarse, coarse).sum() − xlogy(fine, fine).sum()) + price * sizes_cost``
    with the item's counts moved to cluster c.
    """
    # All is written out: a helper that is given arrays costs more per observation than what it would do.
    m, looked_up = len(sizes), len(table) > 0
    zero = weights[:0].sum()  # of the weights' own type
    score = np.empty(m)
    for step in range(len(order)):
        x = order[step]
        here = labels[x]
        for c in range(m):
            score[c] = 0.0
        mass, stays = zero, 0.0  # stays: the score of the item's own cluster
        by_cluster = not looked_up and not coarse_follows and m < FEW
        if by_cluster:
            mass, stays = _scores_by_cluster(indptr[x], indptr[x + 1], weights, cells, fine, fine_known, here, score)
        for e in range(indptr[x], indptr[x] if by_cluster else indptr[x + 1]):
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
        if evaluate_only or best == here:
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


@njit(nogil=True, boundscheck=False, error_model="numpy", fastmath={"reassoc", "contract"})
def _scores_by_cluster(start, stop, weights, cells, fine, known, here, score):
    """What `_single_mode` adds up of an item's weights, cluster by cluster: so few would not fill a vector register.

    Equivalent to ``score = (known[cells] − phi(fine[cells] + own[:, None])).sum(0)`` with φ(x) = x ln x; returns the
    item's mass and the score of its own cluster.
    """
    m, fine, known = u8(fine.shape[1]), fine.reshape(-1), known.reshape(-1)
    mass, stays = 0.0, 0.0
    for c in range(m):
        total = 0.0
        for e in range(u8(start), u8(stop)):
            at = u8(cells[e]) * m + c
            after = fine[at] + weights[e]
            total += known[at] - after * ln(after)
        score[c] = total
    for e in range(u8(start), u8(stop)):
        at = u8(cells[e]) * m + u8(here)
        left = fine[at] - weights[e]
        left = left if left > 1e-9 else 0.0
        mass += weights[e]
        stays += left * ln(left) - known[at]
    return mass, stays


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _move(totals, known, row, here, best, own):
    """Move a count from one cluster to another; what rounding leaves of nothing is nothing."""
    left = totals[row, here] - own
    totals[row, here] = left if left > 1e-9 else 0
    totals[row, best] += own
    less, more = np.float64(totals[row, here]), np.float64(totals[row, best])
    known[row, here], known[row, best] = less * ln(less), more * ln(more)
