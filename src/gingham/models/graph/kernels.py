"""One node after another on a graph, in numba: soft memberships, hard moves, sums over blocks.

`kernels_reference` is the same in plain numpy.

Entries are grouped by node (compressed rows): entry e of node x says that x and ``others[e]`` form a pair
of kind ``slots[e]`` with value ``values[e]``. An undirected pair is an entry of both its nodes. In hard moves
``chosen`` gets the cluster of each visited node; nothing else changes where nodes ``evaluate_only``.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import math

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.kernels.compile import njit
from gingham.kernels.logarithm import ln

QUADRATIC, BERNOULLI = 0, 1


def block_sums(indptr: Ints, others: Ints, values: Floats, labels: Ints, k: int) -> Floats:
    """Sums of values over ordered pairs of nodes in each pair of clusters, shape (k, k)."""
    at = np.repeat(labels, np.diff(indptr)).astype(np.int64) * k + labels[others]
    return np.bincount(at, values, minlength=k * k).reshape(k, k).astype(np.float64)


@njit(cache=True, boundscheck=False)
def soft_nodes(order, indptr, others, slots, values, present, absent, complete, beta, assign, mass):
    """q(c|x) ∝ mass(c) exp(−β cost(x, c)) for one node after another, ``assign`` and ``mass`` updated in place.

    cost(x, c) = Σ_e values_e Σ_b q(b|others_e) present[slots_e, c, b] + Σ_b (mass_b − q(b|x)) absent[c, b],
    the second sum when ``complete``. Equivalent to ``kernels_reference.soft_nodes``.
    """
    n_slots, k = present.shape[0], present.shape[1]
    seen = np.zeros((n_slots, k))
    score, rest = np.zeros(k), np.zeros(k)
    for x in order:
        seen[:] = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            row = seen[slots[e]]
            q = assign[others[e]]
            v = values[e]
            for b in range(k):
                row[b] += v * q[b]
        for b in range(k):
            rest[b] = mass[b] - assign[x, b]
        top = -np.inf
        for c in range(k):
            cost = cost_in(c, seen, present, rest, absent, complete)
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


@njit(cache=True, nogil=True, boundscheck=False)
def hard_nodes(
    order, indptr, others, slots, values, present, absent, complete, beta, price, labels, sizes, evaluate_only, chosen
):
    """Each node in turn to the cluster of least β cost + price · Δ(n H(sizes)), answers fixed.

    Equivalent to ``kernels_reference.hard_nodes``.
    """
    n_slots, k = present.shape[0], present.shape[1]
    if evaluate_only:
        sizes = sizes.copy()
    seen = np.zeros((n_slots, k))
    for step in range(len(order)):
        x = order[step]
        current = labels[x]
        seen[:] = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            seen[slots[e], labels[others[e]]] += values[e]
        sizes[current] -= 1.0
        best, least, stay = current, np.inf, 0.0
        for c in range(k):
            cost = beta * cost_in(c, seen, present, sizes, absent, complete) - price * (
                _xlogx(sizes[c] + 1.0) - _xlogx(sizes[c])
            )
            if c == current:
                stay = cost
            if cost < least:
                least, best = cost, c
        if least >= stay - 1e-9:
            best = current
        chosen[step] = best
        sizes[current if evaluate_only else best] += 1.0
        if not evaluate_only:
            labels[x] = best


@njit(cache=True, nogil=True, boundscheck=False)
def cost_in(c, seen, present, rest, absent, complete):
    """What a node costs in cluster c: its pairs, by slot and cluster of the other node, and those it does not have."""
    cost = 0.0
    for s in range(seen.shape[0]):
        for b in range(seen.shape[1]):
            cost += seen[s, b] * present[s, c, b]
    if complete:
        for b in range(seen.shape[1]):
            cost += rest[b] * absent[c, b]
    return cost


@njit(inline="always")
def _highest(gain, current):
    """The cluster of the highest gain, the lowest of equals; the current one unless that is lower by more than 1e-9."""
    best = current
    for c in range(len(gain)):
        if gain[c] > gain[best]:
            best = c
    return best if gain[best] > gain[current] + 1e-9 else current


@njit(inline="always", error_model="numpy")
def _xlogx(x):
    return x * ln(x) if x > 1e-12 else 0.0


@njit(inline="always", error_model="numpy")
def _fit(m, s, kind):
    """Minus the least loss of a block with s pairs of total weight m (constants left out); larger is better."""
    if kind == QUADRATIC:
        return m * m / s if s >= 1e-9 else 0.0
    return _xlogx(m) + _xlogx(s - m) - _xlogx(s) if s >= 1e-9 else 0.0


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def hard_sweep(
    order, indptr, others, values, complete, kind, beta, price, labels, weight, pairs, sizes, evaluate_only, chosen
):
    """Each node in turn to the cluster where β Σ_blocks fit + price · Σ_c size ln size is highest.

    Undirected. Answers follow every move, because the fit of a block is that of its best answer.
    ``weight[a, b]`` and ``pairs[a, b]`` are block sums over ordered pairs (so twice the sums within a
    block), ``sizes`` the nodes of each cluster; all are updated in place. When ``complete``, every two
    nodes form a pair, listed or not. Equivalent to ``kernels_reference.hard_sweep``.

    ``bare[b, c]`` is what a node without edges would change in block (c, b) by joining c, and ``gain`` begins
    with its sums over b: a node differs from that only in the clusters it has edges to. Loops over c are the
    inner ones, along rows, so that they run in vector registers.
    """
    k = len(sizes)
    if evaluate_only:  # other threads look as well
        weight, pairs, sizes = weight.copy(), pairs.copy(), sizes.copy()
    fits, bare = np.zeros((k, k)), np.zeros((k, k))
    for a in range(k):
        for b in range(k):
            fits[a, b] = _fit(weight[a, b], pairs[a, b], kind)
    for c in range(k):
        for b in range(k):
            bare[b, c] = _bare(weight, pairs, sizes, fits, c, b, complete, kind)
    gain, to_weight, to_pairs = np.zeros(k), np.zeros(k), np.zeros(k)
    touched, is_touched = np.empty(k, np.int64), np.zeros(k, np.bool_)
    kept = np.empty((5, k))  # what taking a node out changes, as it was
    for step in range(len(order)):
        x = order[step]
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
        for b in range(k):
            kept[0, b], kept[1, b], kept[2, b] = weight[current, b], pairs[current, b], fits[current, b]
            kept[3, b], kept[4, b] = bare[current, b], bare[b, current]
        _transfer(current, -1.0, touched, n_touched, to_weight, to_pairs, complete, weight, pairs, sizes)
        _refresh(weight, pairs, sizes, fits, bare, current, complete, kind)
        gain[:] = 0.0
        for b in range(k):  # from scratch: running sums would drift
            for c in range(k):
                gain[c] += bare[b, c]
        for t in range(n_touched):
            b = touched[t]
            own = to_weight[b]
            more = sizes[b] if complete else to_pairs[b]
            within = _fit(weight[b, b] + 2.0 * own, pairs[b, b] + 2.0 * more, kind)
            within = gain[b] + (0.5 * (within - fits[b, b]) - bare[b, b])
            for c in range(k):
                gain[c] += _fit(weight[b, c] + own, pairs[b, c] + more, kind) - fits[b, c] - bare[b, c]
            gain[b] = within
        for c in range(k):
            gain[c] = beta * gain[c] + price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
        best = chosen[step] = _highest(gain, current)
        if evaluate_only or best == current:
            for b in range(k):
                weight[current, b] = weight[b, current] = kept[0, b]
                pairs[current, b] = pairs[b, current] = kept[1, b]
                fits[current, b] = fits[b, current] = kept[2, b]
                bare[current, b] = kept[3, b]
            for b in range(k):
                bare[b, current] = kept[4, b]
            sizes[current] += 1.0
        else:
            _transfer(best, 1.0, touched, n_touched, to_weight, to_pairs, complete, weight, pairs, sizes)
            _refresh(weight, pairs, sizes, fits, bare, best, complete, kind)
            labels[x] = best
        for t in range(n_touched):
            b = touched[t]
            is_touched[b] = False
            to_weight[b] = 0.0
            to_pairs[b] = 0.0


@njit(cache=True, nogil=True, boundscheck=False)
def _transfer(cluster, sign, touched, n_touched, to_weight, to_pairs, complete, weight, pairs, sizes):
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


@njit(inline="always", error_model="numpy")
def _bare(weight, pairs, sizes, fits, c, b, complete, kind):
    if not complete or sizes[b] == 0.0:
        return 0.0
    if b == c:
        return 0.5 * (_fit(weight[c, c], pairs[c, c] + 2.0 * sizes[c], kind) - fits[c, c])
    return _fit(weight[c, b], pairs[c, b] + sizes[b], kind) - fits[c, b]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _refresh(weight, pairs, sizes, fits, bare, cluster, complete, kind):
    """Renew what depends on one cluster."""
    for b in range(len(sizes)):
        fits[cluster, b] = _fit(weight[cluster, b], pairs[cluster, b], kind)
    for b in range(len(sizes)):
        fits[b, cluster] = fits[cluster, b]
    if not complete:
        return
    size = sizes[cluster]
    for b in range(len(sizes)):
        # Tables are symmetric: both are read along the row.
        joined = _fit(weight[cluster, b], pairs[cluster, b] + size, kind) - fits[cluster, b]
        bare[cluster, b] = joined if size != 0.0 else 0.0
    for b in range(len(sizes)):
        bare[b, cluster] = _bare(weight, pairs, sizes, fits, cluster, b, complete, kind)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def degree_sweep(order, indptr, others, values, degree, price, labels, weight, sizes, shares, evaluate_only, chosen):
    """Hard moves that raise ½ Σ_ab W_ab ln W_ab − Σ_a κ_a ln κ_a + price · Σ_c size ln size.

    The likelihood of a block model in which i and j are joined in proportion to degree_i · degree_j
    (Karrer and Newman 2011), W the block sums over ordered pairs, κ (``shares``) the sums of degrees. Only
    clusters that a node has edges to change with it. Equivalent to ``kernels_reference.degree_sweep``.
    """
    k = len(sizes)
    if evaluate_only:  # other threads look as well
        weight, sizes, shares = weight.copy(), sizes.copy(), shares.copy()
    gain, to_weight, kept = np.zeros(k), np.zeros(k), np.empty(k)
    touched, is_touched = np.empty(k, np.int64), np.zeros(k, np.bool_)
    for step in range(len(order)):
        x = order[step]
        current = labels[x]
        n_touched = 0
        for e in range(indptr[x], indptr[x + 1]):
            b = labels[others[e]]
            if not is_touched[b]:  # a pair of weight 0 is a pair
                is_touched[b] = True
                touched[n_touched] = b
                n_touched += 1
            to_weight[b] += values[e]
        share = shares[current]
        for t in range(n_touched):
            kept[t] = weight[current, touched[t]]
        for t in range(n_touched):
            b = touched[t]
            weight[current, b] -= to_weight[b]
            weight[b, current] -= to_weight[b]
        sizes[current] -= 1.0
        shares[current] -= degree[x]
        for c in range(k):
            gain[c] = _xlogx(shares[c]) - _xlogx(shares[c] + degree[x])
            gain[c] += price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
        for t in range(n_touched):
            b = touched[t]
            own = to_weight[b]
            within = gain[b] + 0.5 * (_xlogx(weight[b, b] + 2.0 * own) - _xlogx(weight[b, b]))
            for c in range(k):
                gain[c] += _xlogx(weight[b, c] + own) - _xlogx(weight[b, c])
            gain[b] = within
        best = chosen[step] = _highest(gain, current)
        stays = evaluate_only or best == current
        for t in range(n_touched):
            b = touched[t]
            if stays:
                weight[current, b] = weight[b, current] = kept[t]
            else:
                weight[best, b] += to_weight[b]
                weight[b, best] += to_weight[b]
            is_touched[b] = False
            to_weight[b] = 0.0
        if stays:
            sizes[current] += 1.0
            shares[current] = share
        else:
            sizes[best] += 1.0
            shares[best] += degree[x]
            labels[x] = best
