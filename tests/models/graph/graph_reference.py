"""Plain numpy counterparts of `kernels`: slow and obviously right; the compiled kernels move in lockstep."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, softmax, xlogy

from gingham.arrays import Floats, Ints
from gingham.models.graph.kernels import (
    DEGREES,
    EXACT,
    FEW,
    LEAST,
    QUADRATIC,
    RENEWED,
    SLACK,
    TIE,
    TRIED,
    Tables,
)


def soft_nodes(
    order: Ints, indptr: Ints, others: Ints, slots: Ints, values: Floats, present: Floats, absent: Floats,
    complete: bool, beta: float, assign: Floats, mass: Floats,
) -> None:  # fmt: skip
    """One softmax per node, sums from scratch; the masses are those of the moment."""
    for x in order:
        cost = np.zeros(assign.shape[1])
        for e in range(indptr[x], indptr[x + 1]):
            cost += values[e] * (present[slots[e]] @ assign[others[e]])
        if complete:
            cost += absent @ (mass - assign[x])
        with np.errstate(divide="ignore"):
            assign[x] = softmax(np.log(mass) - beta * cost)
        mass[:] = assign.sum(axis=0)


def hard_nodes(
    order: Ints, indptr: Ints, others: Ints, slots: Ints, values: Floats, present: Floats, absent: Floats,
    complete: bool, beta: float, price: float, labels: Ints, sizes: Floats, partner: Ints, evaluate_only: bool,
    chosen: Ints,
) -> None:  # fmt: skip
    """The cheapest cluster for each node at fixed answers."""
    for step, x in enumerate(order):
        here = int(labels[x])
        rest = sizes - np.eye(len(sizes))[here]
        cost = rest @ absent if complete else np.zeros(len(sizes))
        for e in range(indptr[x], indptr[x + 1]):
            cost = cost + values[e] * present[slots[e], labels[others[e]]]
        cost = beta * cost - price * (xlogy(rest + 1.0, rest + 1.0) - xlogy(rest, rest))
        if len(partner):
            cost[~np.isin(np.arange(len(sizes)), (here, partner[here]))] = np.inf
        best = int(np.argmin(cost))
        chosen[step] = best if cost[best] < cost[here] - TIE else here
        if not evaluate_only:
            labels[x] = chosen[step]
            sizes[:] = rest + np.eye(len(sizes))[chosen[step]]


def estimates(kind: int, complete: bool, tables: Tables) -> None:
    """What blocks would gain by a unit of weight and by a pair, clusters by a node without edges."""
    weight, pairs, sizes, slope, dilution, join, leave = tables[:7]
    if kind == DEGREES:
        step = tables.unit * (1.0 + np.eye(len(weight)))
        slope[:] = (_xlogx(weight + step) - _xlogx(weight)) / step
        return
    k = len(sizes)
    times = 1.0 + np.eye(k)  # pairs within a cluster are counted in both orders
    if complete:
        pairs = np.outer(sizes, sizes) - np.diag(sizes)
    if kind == QUADRATIC:
        slope[:] = np.divide(2.0 * weight, pairs, out=np.zeros_like(weight), where=pairs > 1e-9)
    else:
        rest = np.maximum(pairs - weight, 0.0)
        more = _xlogx(weight + times) - _xlogx(weight)
        slope[:] = (more - _xlogx(rest + times) + _xlogx(rest)) / times
    now = block_fit(weight, pairs, kind)
    dilution[:] = 0.0 if complete else (block_fit(weight, pairs + times, kind) - now) / times
    join[:] = leave[:] = 0.0
    if complete:
        others = np.tile(sizes, (k, 1))
        join[:] = ((block_fit(weight, pairs + times * others, kind) - now) / times).sum(axis=1)
        fewer = np.maximum(pairs - times * (others - np.eye(k)), 0.0)
        leave[:] = ((now - block_fit(weight, fewer, kind)) / times).sum(axis=1)


def hard_sweep(
    order: Ints, indptr: Ints, others: Ints, values: Floats, kind: int, complete: bool, beta: float, price: float,
    labels: Ints, tables: Tables, partner: Ints, evaluate_only: bool, chosen: Ints,
) -> None:  # fmt: skip
    """Clusters by the estimate, those few by the node's edges, and the best of them by the objective from scratch."""
    weight, pairs, sizes, slope, dilution, join, leave, n_moved, codes, degree, shares, unit = tables
    n, k = len(labels), len(sizes)
    listed, pair = _dense(indptr, others, values), _dense(indptr, others, np.ones(len(others)))
    everyone = 1.0 - np.eye(n) if complete else pair

    def sums(labels: Ints) -> tuple[Floats, Floats, Floats]:
        q = np.eye(k)[labels]
        return q.T @ listed @ q, q.T @ everyone @ q, q.sum(axis=0)

    def objective(labels: Ints) -> float:
        weight, pairs, sizes = sums(labels)
        if kind == EXACT:
            return -float(block_codes(weight, sizes)[np.triu_indices(k)].sum() - gammaln(sizes + 1.0).sum())
        growth = price * _xlogx(sizes).sum()
        if kind == DEGREES:
            return float(_xlogx(weight).sum() / 2.0 - _xlogx(np.bincount(labels, degree, k)).sum() + growth)
        return float(beta * block_fit(weight, pairs, kind).sum() / 2.0 + growth)

    board = weight, pairs, sizes, complete, kind
    for step, x in enumerate(order):
        here, q = int(labels[x]), np.eye(k)[labels]
        own, count = listed[x] @ q, pair[x] @ q
        growth = price * (_xlogx(sizes + 1.0) - _xlogx(sizes))
        score = beta * (join + own @ slope + (0.0 if complete else count @ dilution)) + growth
        if kind == DEGREES:
            score -= degree[x] * np.log(shares + unit)
        score[here] = -np.inf
        tried: Ints = np.argsort(-score, kind="stable")[: k - 1 if k <= FEW else TRIED]
        if len(partner):
            tried = partner[[here]][partner[[here]] != here]
        now = objective(labels)

        def rise(c: int, x: int = int(x), now: float = now) -> float:
            """What the objective gains when the node goes to c."""
            return objective(np.where(np.arange(n) == x, c, labels)) - now

        if kind == DEGREES:
            gains = {int(c): rise(c) for c in tried}
        else:
            shrink = price * (_xlogx(sizes[here]) - _xlogx(sizes[here] - 1.0))
            most = beta * (leave[here] + _edges(here, own, count, -1.0, *board)) + shrink
            gains = {
                int(c): beta * (join[c] + _edges(int(c), own, count, 1.0, *board)) + growth[c] - most for c in tried
            }
        if kind == EXACT:
            gains = {c: rise(c) - LEAST for c, gain in gains.items() if gain > -SLACK}
        best = here
        for c, gain in gains.items():
            if gain > (gains[best] if best != here else 0.0 if kind == EXACT else TIE):
                best = c
        if not evaluate_only and best != here and rise(best) <= TIE:
            best = here
        chosen[step] = best
        if evaluate_only or best == here:
            continue
        labels[x] = best
        weight[:], listed_pairs, sizes[:] = sums(labels)
        if not complete:
            pairs[:] = listed_pairs
        n_moved[0] += 1
        if kind == EXACT:
            codes[:] = block_codes(weight, sizes)
        if kind == DEGREES:
            shares[:] = np.bincount(labels, degree, k)
            estimates(kind, complete, tables)
        elif n_moved[0] == RENEWED * k:
            n_moved[0] = 0
            estimates(kind, complete, tables)


def _edges(
    c: int, own: Floats, count: Floats, sign: float, weight: Floats, pairs: Floats, sizes: Floats, complete: bool,
    kind: int,
) -> float:  # fmt: skip
    """What the edges of a node add to the fits of c, in which it is (sign −1) or is not (+1)."""
    is_c = np.eye(len(sizes))[c]
    times, fits = 1.0 + is_c, []
    before = sizes[c] * (sizes - is_c) if complete else pairs[c]
    if complete:
        before = before + sign * times * (sizes - (is_c if sign < 0 else 0.0))
    after = before if complete else pairs[c] + sign * times * count
    for w, p in ((weight[c], before), (weight[c] + sign * times * own, after)):
        fits.append(block_fit(w, np.maximum(p, 0.0), kind))
    return float(sign * ((fits[1] - fits[0]) / times)[count > 0].sum())


def block_codes(weight: Floats, sizes: Floats) -> Floats:
    """ln C(pairs, edges) + ln(pairs + 1) of every block, pairs within a cluster once."""
    once = 1.0 + np.eye(len(sizes))
    pairs, ones = (np.outer(sizes, sizes) - np.diag(sizes)) / once, weight / once
    return gammaln(pairs + 1.0) - gammaln(ones + 1.0) - gammaln(pairs - ones + 1.0) + np.log(pairs + 1.0)


def uneven_halves(indptr: Ints, others: Ints, values: Floats, labels: Ints, chance: Floats) -> Ints:
    """Sums of edges to each cluster, dense, node by node."""
    q = np.eye(len(chance))[labels]
    own = _dense(indptr, others, values) @ q
    squares = _dense(indptr, others, values**2) @ q
    upper = np.zeros(len(labels), dtype=np.int64)
    for a in range(len(chance)):
        mine = own[labels == a]
        if not len(mine):
            continue
        alone = squares[labels == a].sum(axis=0)
        spread = (mine**2).sum(axis=0) - mine.sum(axis=0) ** 2 / len(mine) - alone
        cut = int(np.argmax(spread * chance[a] / np.sqrt(alone + squares.sum() / len(values))))
        upper[labels == a] = mine[:, cut] * len(mine) > mine[:, cut].sum()
    return upper


def block_fit(weight: Floats, pairs: Floats, kind: int) -> Floats:
    """Minus the least loss of each block (constants left out), as the sweep counts it; any shape."""
    if kind == QUADRATIC:
        return np.divide(weight**2, pairs, out=np.zeros_like(weight), where=pairs > 1e-9)
    rest, some = np.maximum(pairs - weight, 0.0), np.maximum(pairs, 1e-9)
    return np.where(pairs > 1e-9, _xlogx(weight) - weight * np.log(some) + xlogy(rest, rest / some), 0.0)


def _xlogx(x: Floats) -> Floats:
    """x ln x, and 0 where rounding has left something below zero."""
    x = np.maximum(x, 0.0)
    return xlogy(x, x)


def _dense(indptr: Ints, others: Ints, values: Floats) -> Floats:
    n = len(indptr) - 1
    matrix = np.zeros((n, n))
    np.add.at(matrix, (np.repeat(np.arange(n), np.diff(indptr)), others), values)
    return matrix
