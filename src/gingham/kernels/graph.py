"""numba: one node after another on a graph, softly or by hard moves; `graph_reference` is the same in plain numpy.

Entries are grouped by node (compressed rows): entry e of node x says that x and ``others[e]`` form a pair
of kind ``slots[e]`` with value ``values[e]``. An undirected pair is an entry of both its nodes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import xlogy

from gingham.arrays import Floats, Ints

QUADRATIC, BERNOULLI = 0, 1


@njit(cache=True, boundscheck=False)
def soft_nodes(order, indptr, others, slots, values, present, absent, complete, beta, assign, mass):  # type: ignore[no-untyped-def]
    """q(c|x) ∝ mass(c) exp(−β cost(x, c)) for one node after another, ``assign`` and ``mass`` updated in place.

    cost(x, c) = Σ_e values_e Σ_b q(b|others_e) present[slots_e, c, b] + Σ_b (mass_b − q(b|x)) absent[c, b],
    the second sum when ``complete``. Equivalent to ``graph_reference.soft_nodes``.
    """
    n_slots, k = present.shape[0], present.shape[1]
    seen = np.zeros((n_slots, k))
    score = np.zeros(k)
    for x in order:
        seen[:] = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            row = seen[slots[e]]
            q = assign[others[e]]
            v = values[e]
            for b in range(k):
                row[b] += v * q[b]
        top = -np.inf
        for c in range(k):
            cost = 0.0
            for s in range(n_slots):
                for b in range(k):
                    cost += seen[s, b] * present[s, c, b]
            if complete:
                for b in range(k):
                    cost += (mass[b] - assign[x, b]) * absent[c, b]
            score[c] = math.log(mass[c]) - beta * cost if mass[c] > 0.0 else -np.inf
            top = max(top, score[c])
        total = 0.0
        for c in range(k):
            score[c] = math.exp(score[c] - top)
            total += score[c]
        for c in range(k):
            q_new = score[c] / total
            mass[c] = max(mass[c] + q_new - assign[x, c], 0.0)
            assign[x, c] = q_new


@njit(cache=True, boundscheck=False)
def hard_nodes(order, indptr, others, slots, values, present, absent, complete, beta, price, labels, sizes):  # type: ignore[no-untyped-def]
    """Each node in turn to the cluster of least β cost + price · Δ(n H(sizes)), answers fixed; returns the moves.

    Equivalent to ``graph_reference.hard_nodes``.
    """
    n_slots, k = present.shape[0], present.shape[1]
    seen = np.zeros((n_slots, k))
    moves = 0
    for x in order:
        current = labels[x]
        seen[:] = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            seen[slots[e], labels[others[e]]] += values[e]
        sizes[current] -= 1.0
        best, least, stay = current, np.inf, 0.0
        for c in range(k):
            cost = 0.0
            for s in range(n_slots):
                for b in range(k):
                    cost += seen[s, b] * present[s, c, b]
            if complete:
                for b in range(k):
                    cost += sizes[b] * absent[c, b]
            cost = beta * cost - price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
            if c == current:
                stay = cost
            if cost < least:
                least, best = cost, c
        if least >= stay - 1e-9:
            best = current
        sizes[best] += 1.0
        labels[x] = best
        moves += best != current
    return moves


@njit(cache=True, inline="always")
def _xlogx(x):  # type: ignore[no-untyped-def]
    return x * math.log(x) if x > 1e-12 else 0.0


@njit(cache=True, inline="always")
def _fit(m, s, kind):  # type: ignore[no-untyped-def]
    """Minus the least loss of a block with s pairs of total weight m (constants left out); larger is better."""
    if s < 1e-9:
        return 0.0
    if kind == QUADRATIC:
        return m * m / s
    return _xlogx(m) + _xlogx(s - m) - _xlogx(s)


@njit(cache=True, boundscheck=False)
def hard_sweep(order, indptr, others, values, complete, kind, beta, price, labels, weight, pairs, sizes):  # type: ignore[no-untyped-def]
    """Each node in turn to the cluster where β Σ_blocks fit + price · Σ_c size ln size is highest; returns the moves.

    Undirected. Answers follow every move, because the fit of a block is that of its best answer.
    ``weight[a, b]`` and ``pairs[a, b]`` are block sums over ordered pairs (so twice the sums within a
    block), ``sizes`` the nodes of each cluster; all are updated in place. When ``complete``, every two
    nodes form a pair, listed or not. Equivalent to ``graph_reference.hard_sweep``.

    ``bare[c, b]`` is what a node without edges would change in block (c, b) by joining c, and ``bares``
    its row sums: a node differs from that only in the clusters it has edges to.
    """
    k = len(sizes)
    fits, bare = np.zeros((k, k)), np.zeros((k, k))
    for a in range(k):
        for b in range(k):
            fits[a, b] = _fit(weight[a, b], pairs[a, b], kind)
    for c in range(k):
        for b in range(k):
            bare[c, b] = _bare(weight, pairs, sizes, fits, c, b, complete, kind)
    bares = np.zeros(k)
    to_weight, to_pairs, touched = np.zeros(k), np.zeros(k), np.empty(k, np.int64)
    is_touched = np.zeros(k, np.bool_)
    moves = 0
    for x in order:
        current = labels[x]
        n_touched = 0
        for e in range(indptr[x], indptr[x + 1]):
            b = labels[others[e]]
            if not is_touched[b]:
                is_touched[b] = True
                touched[n_touched] = b
                n_touched += 1
            to_weight[b] += values[e]
            to_pairs[b] += 1.0
        _transfer(x, current, -1.0, touched, n_touched, to_weight, to_pairs, complete, weight, pairs, sizes)
        _refresh(weight, pairs, sizes, fits, bare, current, complete, kind)
        for c in range(k):  # from scratch: running sums would drift
            total = 0.0
            for b in range(k):
                total += bare[c, b]
            bares[c] = total
        best, highest, stay = current, -np.inf, 0.0
        for c in range(k):
            gain = bares[c]
            for t in range(n_touched):
                b = touched[t]
                more = sizes[b] if complete else to_pairs[b]
                if b == c:
                    fit = _fit(weight[c, c] + 2.0 * to_weight[c], pairs[c, c] + 2.0 * more, kind)
                    gain += 0.5 * (fit - fits[c, c]) - bare[c, c]
                else:
                    gain += _fit(weight[c, b] + to_weight[b], pairs[c, b] + more, kind) - fits[c, b] - bare[c, b]
            gain = beta * gain + price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
            if c == current:
                stay = gain
            if gain > highest:
                highest, best = gain, c
        if highest <= stay + 1e-9:
            best = current
        _transfer(x, best, 1.0, touched, n_touched, to_weight, to_pairs, complete, weight, pairs, sizes)
        _refresh(weight, pairs, sizes, fits, bare, best, complete, kind)
        for t in range(n_touched):
            b = touched[t]
            is_touched[b] = False
            to_weight[b] = 0.0
            to_pairs[b] = 0.0
        labels[x] = best
        moves += best != current
    return moves


@njit(cache=True, boundscheck=False)
def _transfer(x, cluster, sign, touched, n_touched, to_weight, to_pairs, complete, weight, pairs, sizes):  # type: ignore[no-untyped-def]
    """Take a node out of a cluster (sign −1) or put it in (+1)."""
    if sign < 0:
        sizes[cluster] -= 1.0
    for t in range(n_touched):
        b = touched[t]
        weight[cluster, b] += sign * to_weight[b]
        weight[b, cluster] += sign * to_weight[b]
        if not complete:
            pairs[cluster, b] += sign * to_pairs[b]
            pairs[b, cluster] += sign * to_pairs[b]
    if complete:
        for b in range(len(sizes)):
            pairs[cluster, b] += sign * sizes[b]
            pairs[b, cluster] += sign * sizes[b]
    if sign > 0:
        sizes[cluster] += 1.0


@njit(cache=True, inline="always")
def _bare(weight, pairs, sizes, fits, c, b, complete, kind):  # type: ignore[no-untyped-def]
    if not complete or sizes[b] == 0.0:
        return 0.0
    if b == c:
        return 0.5 * (_fit(weight[c, c], pairs[c, c] + 2.0 * sizes[c], kind) - fits[c, c])
    return _fit(weight[c, b], pairs[c, b] + sizes[b], kind) - fits[c, b]


@njit(cache=True, boundscheck=False)
def _refresh(weight, pairs, sizes, fits, bare, cluster, complete, kind):  # type: ignore[no-untyped-def]
    """Renew what depends on one cluster."""
    for b in range(len(sizes)):
        fit = _fit(weight[cluster, b], pairs[cluster, b], kind)
        fits[cluster, b] = fit
        fits[b, cluster] = fit
    for b in range(len(sizes)):
        bare[cluster, b] = _bare(weight, pairs, sizes, fits, cluster, b, complete, kind)
        bare[b, cluster] = _bare(weight, pairs, sizes, fits, b, cluster, complete, kind)


@njit(cache=True, boundscheck=False)
def degree_sweep(order, indptr, others, values, degree, price, labels, weight, sizes, shares):  # type: ignore[no-untyped-def]
    """Hard moves that raise ½ Σ_ab W_ab ln W_ab − Σ_a κ_a ln κ_a + price · Σ_c size ln size; returns the moves.

    The likelihood of a block model in which i and j are joined in proportion to degree_i · degree_j
    (Karrer and Newman 2011), W the block sums over ordered pairs, κ (``shares``) the sums of degrees. Only
    clusters that a node has edges to change with it. Equivalent to ``graph_reference.degree_sweep``.
    """
    k = len(sizes)
    to_weight, touched = np.zeros(k), np.empty(k, np.int64)
    moves = 0
    for x in order:
        current = labels[x]
        n_touched = 0
        for e in range(indptr[x], indptr[x + 1]):
            b = labels[others[e]]
            if to_weight[b] == 0.0:
                touched[n_touched] = b
                n_touched += 1
            to_weight[b] += values[e]
        for t in range(n_touched):
            b = touched[t]
            weight[current, b] -= to_weight[b]
            weight[b, current] -= to_weight[b]
        sizes[current] -= 1.0
        shares[current] -= degree[x]
        best, highest, stay = current, -np.inf, 0.0
        for c in range(k):
            gain = _xlogx(shares[c]) - _xlogx(shares[c] + degree[x])
            gain += price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
            for t in range(n_touched):
                b = touched[t]
                w = weight[c, b]
                if b == c:
                    gain += 0.5 * (_xlogx(w + 2.0 * to_weight[b]) - _xlogx(w))
                else:
                    gain += _xlogx(w + to_weight[b]) - _xlogx(w)
            if c == current:
                stay = gain
            if gain > highest:
                highest, best = gain, c
        if highest <= stay + 1e-9:
            best = current
        for t in range(n_touched):
            b = touched[t]
            weight[best, b] += to_weight[b]
            weight[b, best] += to_weight[b]
            to_weight[b] = 0.0
        sizes[best] += 1.0
        shares[best] += degree[x]
        labels[x] = best
        moves += best != current
    return moves


def block_fit(weight: Floats, pairs: Floats, kind: int) -> Floats:
    """Minus the least loss of each block (constants left out), as the sweep counts it; any shape."""
    if kind == QUADRATIC:
        return np.divide(weight**2, pairs, out=np.zeros_like(weight), where=pairs > 1e-9)
    rest = np.maximum(pairs - weight, 0.0)
    fit: Floats = xlogy(weight, weight) + xlogy(rest, rest) - xlogy(pairs, pairs)
    return fit


def block_sums(indptr: Ints, others: Ints, values: Floats, labels: Ints, k: int) -> Floats:
    """Sums of values over ordered pairs of nodes in each pair of clusters, shape (k, k)."""
    at = np.repeat(labels, np.diff(indptr)).astype(np.int64) * k + labels[others]
    return np.bincount(at, values, minlength=k * k).reshape(k, k).astype(np.float64)
