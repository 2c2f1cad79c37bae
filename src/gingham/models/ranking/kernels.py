"""The four loops of ranking, each beside its numpy line: Gram tables, scores, factors of rows, places of hidden items.

A row of the result belongs to one thread, and its sum has one order, so the number of threads changes no bit.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
from numba import njit
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints
from gingham.engine.threads import in_blocks, one_blas_thread

TILE = 512  # columns that are summed at a time: their part of the table stays in the cache


def _aligned(array: AnyArray) -> AnyArray:
    """The array where its numbers may lie: those of a message do not, and compiled code would round in another way."""
    return np.require(array, requirements=["C", "ALIGNED"])


def grams(left: sparse.csr_array, right: sparse.csr_array, *weights: Floats) -> tuple[Floats, ...]:
    """Equivalent to ``(left.T @ diags(w) @ right).toarray()`` for one or two vectors of weights, float64.

    Two at once cost little more than one. Their shape is (left columns, right columns).
    """
    turned = sparse.csc_array(left)
    out = tuple(np.zeros((left.shape[1], right.shape[1])) for _ in weights)
    rows = np.repeat(np.arange(left.shape[0]), np.diff(left.indptr))
    work = np.concatenate([[0], np.cumsum(np.bincount(left.indices, np.diff(right.indptr)[rows], left.shape[1]))])
    kernel = _gram if len(weights) == 1 else _grams
    parts = [_aligned(a) for own in (turned, right) for a in (own.indptr, own.indices, own.data)]

    def run(first: int, last: int) -> None:
        kernel(*parts, *(np.asarray(w, dtype=np.float64) for w in weights), first, last, *out)

    in_blocks(run, work.astype(np.int64), 0, left.shape[1], int(work[-1]))
    return out


@njit(cache=True, nogil=True)
def _gram(starts, users, values, indptr, indices, data, weights, first, last, out):
    total = np.zeros(out.shape[1])
    for i in range(first, last):
        total[:] = 0.0
        for e in range(starts[i], starts[i + 1]):
            u = users[e]
            w = weights[u] * values[e]
            for at in range(indptr[u], indptr[u + 1]):
                total[indices[at]] += w * data[at]
        for j in range(len(total)):
            out[i, j] = total[j]


@njit(cache=True, nogil=True)
def _grams(starts, users, values, indptr, indices, data, weights, more, first, last, out, second):
    total = np.zeros((out.shape[1], 2))
    for i in range(first, last):
        total[:] = 0.0
        for e in range(starts[i], starts[i + 1]):
            u = users[e]
            v, w = weights[u] * values[e], more[u] * values[e]
            for at in range(indptr[u], indptr[u + 1]):
                j, x = indices[at], data[at]
                total[j, 0] += v * x
                total[j, 1] += w * x
        for j in range(len(total)):
            out[i, j] = total[j, 0]
            second[i, j] = total[j, 1]


def times(baskets: sparse.csr_array, table: Floats) -> Floats:
    """Equivalent to ``baskets @ table``, float32, shape (rows of baskets, columns of table)."""
    out = np.empty((baskets.shape[0], table.shape[1]), dtype=np.float32)

    def run(first: int, last: int) -> None:
        _times(baskets.indptr, baskets.indices, baskets.data, table, first, last, out)

    in_blocks(run, baskets.indptr, 0, baskets.shape[0], baskets.nnz * table.shape[1])
    return out


@njit(cache=True, nogil=True, fastmath={"contract"})
def _times(indptr, indices, data, table, first, last, out):
    m = table.shape[1]
    total = np.empty(TILE, np.float32)
    for a in range(0, m, TILE):
        b = min(a + TILE, m)
        for u in range(first, last):
            total[:] = 0.0
            e, high = indptr[u], indptr[u + 1]
            while e + 3 < high:  # four rows of the table at a time: the sum is loaded and stored once for all
                one, two = table[indices[e], a:b], table[indices[e + 1], a:b]
                three, four = table[indices[e + 2], a:b], table[indices[e + 3], a:b]
                v, w, x, y = data[e], data[e + 1], data[e + 2], data[e + 3]
                for j in range(b - a):
                    total[j] += v * one[j] + w * two[j] + x * three[j] + y * four[j]
                e += 4
            while e < high:
                row, value = table[indices[e], a:b], data[e]
                for j in range(b - a):
                    total[j] += value * row[j]
                e += 1
            for j in range(b - a):
                out[u, a + j] = total[j]


def solve_rows(
    taken: sparse.csr_array, other: Floats, penalty: float, alpha: float, start: Floats, steps: int, tol: float = 1e-10
) -> Floats:
    """One side of implicit least squares: x_u = argmin Σ_j (1 + α 1[j taken]) (1[j taken] − x·y_j)² + penalty |x|².

    Conjugate gradients from ``start`` (n, f), at most ``steps``, ended when the squared residual is ``tol`` of what
    it would be at 0. Equivalent, with steps enough, to a row ``solve(Y'Y + α Y_u'Y_u + penalty I, (1 + α) Y_u'1)``.
    """
    other, starts, indices = _aligned(other), _aligned(taken.indptr), _aligned(taken.indices)
    with one_blas_thread():
        square = (other.T @ other).astype(np.float32)
    square[np.diag_indices(len(square))] += np.float32(penalty)
    out = np.array(start, dtype=np.float32, order="C")

    def run(first: int, last: int) -> None:
        _solve_rows(starts, indices, other, square, np.float32(alpha), first, last, steps,
                    np.float32(tol), out)  # fmt: skip

    f = other.shape[1]
    work = np.concatenate([[0], np.cumsum(np.diff(taken.indptr) * 2 + f)]).astype(np.int64)
    in_blocks(run, work, 0, taken.shape[0], int(work[-1]) * f * steps)
    return out


# Sums stand in loops that write nothing: in others the compiler takes the order of the sum from where arrays lie.
@njit(cache=True, nogil=True, fastmath=True)
def _solve_rows(indptr, indices, other, square, alpha, first, last, steps, tol, out):
    f = other.shape[1]
    one = np.float32(1.0)
    left, way, moved = np.empty(f, np.float32), np.empty(f, np.float32), np.empty(f, np.float32)
    for u in range(first, last):
        x = out[u]
        low, high = indptr[u], indptr[u + 1]
        if low == high:
            x[:] = 0.0
            continue
        whole = np.float32(0.0)  # the squared residual at 0
        for a in range(f):
            left[a] = 0.0
        for e in range(low, high):
            y = other[indices[e]]
            for a in range(f):
                left[a] += (one + alpha) * y[a]
        for a in range(f):
            whole += left[a] * left[a]
        for b in range(f):
            for a in range(f):
                left[a] -= x[b] * square[b, a]
        for e in range(low, high):
            y = other[indices[e]]
            dot = np.float32(0.0)
            for a in range(f):
                dot += y[a] * x[a]
            dot *= alpha
            for a in range(f):
                left[a] -= dot * y[a]
        way[:] = left
        size = np.float32(0.0)
        for a in range(f):
            size += left[a] * left[a]
        for _ in range(steps):
            if size <= tol * whole:
                break
            for a in range(f):
                moved[a] = 0.0
            for b in range(f):
                for a in range(f):
                    moved[a] += way[b] * square[b, a]
            for e in range(low, high):
                y = other[indices[e]]
                dot = np.float32(0.0)
                for a in range(f):
                    dot += y[a] * way[a]
                dot *= alpha
                for a in range(f):
                    moved[a] += dot * y[a]
            bend = np.float32(0.0)
            for a in range(f):
                bend += way[a] * moved[a]
            if bend <= 0.0:  # so small that nothing is left of it
                break
            step = size / bend
            for a in range(f):
                x[a] += step * way[a]
                left[a] -= step * moved[a]
            new = np.float32(0.0)
            for a in range(f):
                new += left[a] * left[a]
            for a in range(f):
                way[a] = left[a] + (new / size) * way[a]
            size = new


def places(scores: Floats, seen: sparse.csr_array, hidden: sparse.csr_array) -> Ints:
    """The place (from 0) of each hidden item among the items its user has not taken; one a stored entry of ``hidden``.

    Equivalent to ``np.argsort(-row, kind="stable")`` without the seen ones: of equal scores the first column is first.
    """
    out = np.empty(hidden.nnz, dtype=np.int64)

    def run(first: int, last: int) -> None:
        _places(scores, seen.indptr, seen.indices, hidden.indptr, hidden.indices, first, last, out)

    in_blocks(run, hidden.indptr, 0, hidden.shape[0], hidden.nnz * scores.shape[1])
    return out


@njit(cache=True, nogil=True)
def _places(scores, seen_starts, seen, starts, hidden, first, last, out):
    m = scores.shape[1]
    for u in range(first, last):
        row = scores[u]
        for e in range(starts[u], starts[u + 1]):
            i = hidden[e]
            mine = row[i]
            before = 0
            for j in range(m):
                before += row[j] > mine
            for j in range(i):
                before += row[j] == mine
            for at in range(seen_starts[u], seen_starts[u + 1]):
                j = seen[at]
                before -= row[j] > mine or (row[j] == mine and j < i)
            out[e] = before


def best(scores: Floats, n: int) -> Ints:
    """The columns of the n highest finite scores of each row, best first; −1 where there are fewer; (rows, n).

    Equivalent to ``np.argsort(-scores, kind="stable")[:, :n]``: of equal scores the first column is first.
    """
    out = np.full((len(scores), n), -1, dtype=np.int64)

    def run(first: int, last: int) -> None:
        _best(scores, first, last, out)

    in_blocks(run, np.arange(len(scores) + 1), 0, len(scores), scores.size)
    return out


@njit(cache=True, nogil=True)
def _best(scores, first, last, out):
    n = out.shape[1]
    kept = np.empty(n, scores.dtype)
    for u in range(first, last):
        row = scores[u]
        count = 0
        for j in range(len(row)):
            s = row[j]
            if not np.isfinite(s) or (count == n and s <= kept[n - 1]):
                continue
            if count < n:
                count += 1
            at = count - 1
            while at > 0 and kept[at - 1] < s:
                kept[at] = kept[at - 1]
                out[u, at] = out[u, at - 1]
                at -= 1
            kept[at] = s
            out[u, at] = j


@njit(cache=True, nogil=True)
def exchanges(scores, groups, n_groups, most, needed, least, first, last, out):
    """Lists of the rows first:last of ``scores``: greedy under a limit per group, then the cheapest exchanges.

    ``most`` items of a group may be listed (−1 is no group); until ``least`` of the ``needed`` ones are, the pair whose
    exchange costs least changes places. Best score first; of equal scores the first item.
    """
    n, m = out.shape[1], scores.shape[1]
    used = np.zeros(n_groups + 1, np.int64)  # the last entry counts items of no group, which nothing limits
    chosen = np.zeros(m, np.bool_)
    for u in range(first, last):
        row = scores[u]
        used[:] = 0
        chosen[:] = False
        size = has = 0
        while size < n:  # greedy: the best item whose group has room
            at = -1
            for j in range(m):
                if chosen[j] or not np.isfinite(row[j]) or (at >= 0 and row[j] <= row[at]):
                    continue
                if groups[j] < 0 or used[groups[j]] < most:
                    at = j
            if at < 0:
                break
            chosen[at] = True
            used[groups[at]] += 1
            out[u, size] = at
            size += 1
            has += needed[at]
        while has < least:  # the cheapest exchange of an item that is not needed for one that is
            gain, inside, outside = -np.inf, -1, -1
            free = -1  # place of the worst item that is not needed, whatever its group
            for a in range(size):
                i = out[u, a]
                if not needed[i] and (free < 0 or row[i] <= row[out[u, free]]):
                    free = a
            if free < 0:
                break
            for j in range(m):
                if chosen[j] or not needed[j] or not np.isfinite(row[j]):
                    continue
                g = groups[j]
                a = free
                if g >= 0 and used[g] >= most:  # only an item of its own group makes room
                    a = -1
                    for b in range(size):
                        i = out[u, b]
                        if groups[i] == g and not needed[i] and (a < 0 or row[i] <= row[out[u, a]]):
                            a = b
                    if a < 0:
                        continue
                if row[j] - row[out[u, a]] > gain:
                    gain, inside, outside = row[j] - row[out[u, a]], j, a
            if inside < 0:
                break
            i = out[u, outside]
            chosen[i], chosen[inside] = False, True
            used[groups[i]] -= 1
            used[groups[inside]] += 1
            out[u, outside] = inside
            has += 1
        for a in range(1, size):  # best score first; of equal scores the first item
            i = out[u, a]
            b = a
            while b > 0 and (row[out[u, b - 1]] < row[i] or (row[out[u, b - 1]] == row[i] and out[u, b - 1] > i)):
                out[u, b] = out[u, b - 1]
                b -= 1
            out[u, b] = i
