"""One node after another on a graph, in numba: soft memberships, hard moves, sums over blocks.

The tests (graph_reference) have the same in plain numpy, and the compiled loops move in lockstep with it.

Entries are grouped by node (compressed rows): entry e of node x says that x and ``others[e]`` form a pair
of kind ``slots[e]`` with value ``values[e]``. An undirected pair is an entry of both its nodes. In hard moves
``chosen`` gets the cluster of each visited node; nothing else changes where nodes ``evaluate_only``, so that threads
may share all tables then. Where ``partner`` (k,) is not empty, a node of cluster a may only go to ``partner[a]``.

A visit costs the node's edges and, for each cluster it has edges to, one multiply-add per cluster: never clusters².
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import math

import numpy as np
from numba import njit

from gingham.engine.logarithm import ln

QUADRATIC, BERNOULLI = 0, 1
TRIED, FEW = 2, 4  # clusters, the best by a linear estimate, that a node looks at exactly; all where there are FEW
RENEWED = 4  # times the number of clusters: moves after which that estimate is renewed
TIE = 1e-9  # a move must gain more than this: rounding must not move nodes to and fro


@njit(cache=True, boundscheck=False)
def block_sums(indptr, others, values, labels, k):
    """Sums of values over ordered pairs of nodes in each pair of clusters, shape (k, k).

    Equivalent to ``np.add.at(sums, (labels[np.repeat(np.arange(n), np.diff(indptr))], labels[others]), values)``.
    """
    sums = np.zeros((k, k))
    for x in range(len(indptr) - 1):
        row = sums[labels[x]]
        for e in range(indptr[x], indptr[x + 1]):
            row[labels[others[e]]] += values[e]
    return sums


@njit(cache=True, boundscheck=False)
def around(nodes, indptr, others):
    """The given nodes and all that they have entries with, in order.

    Equivalent to ``np.unique(np.concatenate([nodes, *(others[indptr[x] : indptr[x + 1]] for x in nodes)]))``.
    """
    near = np.zeros(len(indptr) - 1, np.bool_)
    for x in nodes:
        near[x] = True
        for e in range(indptr[x], indptr[x + 1]):
            near[others[e]] = True
    return np.flatnonzero(near)


@njit(cache=True, boundscheck=False)
def soft_nodes(order, indptr, others, slots, values, present, absent, complete, beta, assign, mass):
    """q(c|x) ∝ mass(c) exp(−β cost(x, c)) for one node after another, ``assign`` and ``mass`` updated in place.

    cost(x, c) = Σ_e values_e Σ_b q(b|others_e) present[slots_e, c, b] + Σ_b (mass_b − q(b|x)) absent[c, b],
    the second sum when ``complete``. Equivalent to ``graph_reference.soft_nodes``.
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


@njit(cache=True, nogil=True, boundscheck=False)
def hard_nodes(
    order, indptr, others, slots, values, present, absent, complete, beta, price, labels, sizes, partner,
    evaluate_only, chosen,
):  # fmt: skip
    """Each node in turn to the cluster of least β cost + price · Δ(n H(sizes)), answers fixed.

    ``present[s, b, c]`` and ``absent[b, c]`` are what a pair costs a node in c with one in b. Equivalent to
    ``graph_reference.hard_nodes``.
    """
    n_slots, k = present.shape[0], present.shape[1]
    seen = np.zeros(n_slots * k)
    touched, n_touched = np.empty(n_slots * k, np.int64), 0
    is_touched = np.zeros(n_slots * k, np.bool_)
    cost, rest = np.zeros(k), np.zeros(k)  # rest: what pairs with all nodes would cost, were none listed
    if complete:
        for b in range(k):
            for c in range(k):
                rest[c] += sizes[b] * absent[b, c]
    for step in range(len(order)):
        x = order[step]
        current = labels[x]
        n_touched = 0
        for e in range(indptr[x], indptr[x + 1]):
            at = slots[e] * k + labels[others[e]]
            if not is_touched[at]:
                is_touched[at] = True
                touched[n_touched] = at
                n_touched += 1
            seen[at] += values[e]
        for c in range(k):
            cost[c] = rest[c] - absent[current, c] if complete else 0.0
        for t in range(n_touched):
            at = touched[t]
            row, own = present[at // k, at % k], seen[at]
            for c in range(k):
                cost[c] += own * row[c]
            seen[at] = 0.0
            is_touched[at] = False
        best, least, stay = current, np.inf, 0.0
        for c in range(k):
            if len(partner) > 0 and c != current and c != partner[current]:
                continue
            size = sizes[c] - 1.0 if c == current else sizes[c]
            total = beta * cost[c] - price * (_xlogx(size + 1.0) - _xlogx(size))
            if c == current:
                stay = total
            if total < least:
                least, best = total, c
        if least >= stay - TIE:
            best = current
        chosen[step] = best
        if not evaluate_only and best != current:
            labels[x] = best
            sizes[current] -= 1.0
            sizes[best] += 1.0
            if complete:
                for c in range(k):
                    rest[c] += absent[best, c] - absent[current, c]


@njit(inline="always", error_model="numpy")
def _xlogx(x):
    return x * ln(x) if x > 1e-12 else 0.0


@njit(inline="always", error_model="numpy")
def _rest(m, s):
    """(s − m) ln(1 − m/s): what the pairs of a block that have no weight add to its fit."""
    r = s - m
    return r * ln(r / s) if r > 1e-12 else 0.0


@njit(inline="always", error_model="numpy")
def _fit(m, s, kind):
    """Minus the least loss of a block with s pairs of total weight m (constants left out); larger is better."""
    if s < 1e-9:
        return 0.0
    if kind == QUADRATIC:
        return m * m / s
    return _xlogx(m) - m * ln(s) + _rest(m, s)


@njit(inline="always", error_model="numpy")
def _rise(m, s, more, kind):
    """What ``more`` weight adds to the fit of a block with s pairs of total weight m, which stay as many."""
    if s < 1e-9:
        return 0.0
    if kind == QUADRATIC:
        return (2.0 * m + more) * more / s
    return _xlogx(m + more) - _xlogx(m) + _xlogx(s - m - more) - _xlogx(s - m)


@njit(inline="always", error_model="numpy")
def _slope(m, s, step, kind):
    """What a unit of weight adds to the fit: by a whole ``step`` where edges are counted, for ln is steep at 0."""
    if kind == QUADRATIC:
        return 2.0 * m / s if s >= 1e-9 else 0.0
    rest = max(s - m, 0.0)
    return (_xlogx(m + step) - _xlogx(m) - _xlogx(rest + step) + _xlogx(rest)) / step


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def estimates(weight, pairs, sizes, complete, kind, slope, dilution, join, leave):
    """Renew what `hard_sweep` estimates gains from. Equivalent to ``graph_reference.estimates``.

    ``slope[b, c]``: what a unit of weight between a node of c and one of b adds to the fit. Where all pairs were
    observed, ``join[c]`` and ``leave[c]``: what a node without edges adds by joining c, and what one in c does
    there. Otherwise ``dilution[b, c]``: what a listed pair of weight 0 between c and b adds.
    """
    k = len(sizes)
    part = np.empty(k)
    for c in range(k):
        w, size = weight[c], sizes[c]
        if not complete:
            p = pairs[c]
            for b in range(k):
                slope[c, b] = _slope(w[b], p[b], 1.0, kind)
                dilution[c, b] = _fit(w[b], p[b] + 1.0, kind) - _fit(w[b], p[b], kind)
            slope[c, c] = _slope(w[c], p[c], 2.0, kind)
            dilution[c, c] = 0.5 * (_fit(w[c], p[c] + 2.0, kind) - _fit(w[c], p[c], kind))
            join[c] = leave[c] = 0.0
            continue
        for b in range(k):
            slope[c, b] = _slope(w[b], size * sizes[b], 1.0, kind)
        within = size * (size - 1.0)
        slope[c, c] = _slope(w[c], within, 2.0, kind)
        more, fewer = size + 1.0, max(size - 1.0, 0.0)
        now = _fit(w[c], within, kind)
        own_join = 0.5 * (_fit(w[c], size * more, kind) - now)
        own_leave = 0.5 * (now - _fit(w[c], fewer * (size - 2.0), kind))
        for b in range(k):
            part[b] = _emptier(w[b], size, more, sizes[b], kind)
        part[c] = own_join
        join[c] = _sum(part)
        for b in range(k):
            if fewer > 0.0:
                part[b] = -_emptier(w[b], size, fewer, sizes[b], kind)
            else:  # nothing is left of the block
                part[b] = _fit(w[b], size * sizes[b], kind)
        part[c] = own_leave
        leave[c] = _sum(part)


@njit(inline="always", error_model="numpy")
def _emptier(m, size, then, other, kind):
    """Change of the fit of a block of weight m between clusters of ``size`` and ``other`` nodes, the first resized."""
    before, after = size * other, then * other
    if kind == QUADRATIC:
        return (m * m / after if after >= 1e-9 else 0.0) - (m * m / before if before >= 1e-9 else 0.0)
    scale = ln(max(size, 1.0) / max(then, 1.0))
    return m * scale + _rest(m, after) - _rest(m, before)


@njit(inline="always")
def _sum(part):
    """Σ part, in four sums side by side: one after the other each addition waits for the last."""
    k = len(part)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = k - k % 4
    for i in range(0, whole, 4):
        a += part[i]
        b += part[i + 1]
        c += part[i + 2]
        d += part[i + 3]
    for i in range(whole, k):
        a += part[i]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True, boundscheck=False, fastmath={"nnan", "nsz", "reassoc"})
def _top(score):
    """The first place of the largest; whatever the order of comparisons, the result is the same."""
    most = score[0]
    for c in range(1, len(score)):
        most = max(most, score[c])
    for c in range(len(score)):
        if score[c] == most:
            return c
    return 0


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def hard_sweep(
    order, indptr, others, values, complete, kind, beta, price, labels, weight, pairs, sizes,
    slope, dilution, join, leave, n_moved, partner, evaluate_only, chosen,
):  # fmt: skip
    """Each node in turn to a cluster where β Σ_blocks fit + price · Σ_c size ln size is higher, if there is one.

    Undirected. Answers follow every move, because the fit of a block is that of its best answer. ``weight[a, b]`` and
    ``pairs[a, b]`` are block sums over ordered pairs (so twice the sums within a block), ``sizes`` the nodes of each
    cluster; all are updated in place. When ``complete``, every two nodes form a pair, listed or not, and ``pairs``,
    which then follow from the sizes, are not looked at.

    Which clusters are worth a look is estimated from `estimates`, linear in the node's edges; the TRIED best are
    looked at edge by edge, and a move is made only where the objective itself rises. After ``n_moved`` (1,) of
    RENEWED · k moves estimates are renewed. Equivalent to ``graph_reference.hard_sweep``.
    """
    k = len(sizes)
    own, count, part = np.zeros(k), np.zeros(k), np.empty(k)
    score, alone = np.empty(k, np.float32), np.empty(k, np.float32)
    for c in range(k):
        alone[c] = _gain_alone(c, beta, price, join, sizes)
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
            own[b] += values[e]
            count[b] += 1.0
        size = sizes[current]
        most = _edges_out(current, touched[:n_touched], own, count, weight, pairs, sizes, complete, kind, part)
        most = beta * (leave[current] + most) + price * (_xlogx(size) - _xlogx(size - 1.0))
        best = current
        if len(partner) > 0:
            n_tried = 1 if partner[current] != current else 0
        else:
            n_tried = k - 1 if k <= FEW else TRIED
            for c in range(k):
                score[c] = alone[c]
            for t in range(n_touched):
                b = touched[t]
                row, units = slope[b], np.float32(beta * own[b])
                for c in range(k):
                    score[c] += units * row[c]
                if not complete:
                    row, units = dilution[b], np.float32(beta * count[b])
                    for c in range(k):
                        score[c] += units * row[c]
            score[current] = -np.inf
        for _ in range(n_tried):
            if len(partner) > 0:
                c = partner[current]
            else:
                c = _top(score)
                score[c] = -np.inf
            gain = _edges_in(c, touched[:n_touched], own, count, weight, pairs, sizes, complete, kind, part)
            gain = beta * gain + _gain_alone(c, beta, price, join, sizes)
            if gain > most + TIE:
                best, most = c, gain
        chosen[step] = best
        if best != current and not evaluate_only:
            if complete:
                gain = _gain_complete(current, best, touched[:n_touched], own, weight, sizes, kind, part)
            else:
                gain = _gain_listed(current, best, touched[:n_touched], own, count, weight, pairs, kind, part)
            gain *= beta
            gain += price * (_xlogx(sizes[best] + 1.0) - _xlogx(sizes[best]) + _xlogx(size - 1.0) - _xlogx(size))
            if gain > TIE:
                _transfer(current, -1.0, touched, n_touched, own, count, complete, weight, pairs)
                _transfer(best, 1.0, touched, n_touched, own, count, complete, weight, pairs)
                sizes[current] -= 1.0
                sizes[best] += 1.0
                labels[x] = best
                n_moved[0] += 1
                alone[current] = _gain_alone(current, beta, price, join, sizes)
                alone[best] = _gain_alone(best, beta, price, join, sizes)
                if n_moved[0] == RENEWED * k:
                    n_moved[0] = 0
                    estimates(weight, pairs, sizes, complete, kind, slope, dilution, join, leave)
                    for c in range(k):
                        alone[c] = _gain_alone(c, beta, price, join, sizes)
            else:
                chosen[step] = current
        for t in range(n_touched):
            b = touched[t]
            is_touched[b] = False
            own[b] = 0.0
            count[b] = 0.0


@njit(inline="always", error_model="numpy")
def _gain_alone(c, beta, price, join, sizes):
    """What a node without edges adds to the objective by joining c."""
    return beta * join[c] + price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _edges_in(c, touched, own, count, weight, pairs, sizes, complete, kind, part):
    """What the edges of a node add to the fit of c when it joins, beside what a node without edges would."""
    w, p, size = weight[c], pairs[0 if complete else c], sizes[c]
    for t in range(len(touched)):
        b = touched[t]
        times = 2.0 if b == c else 1.0  # pairs within a cluster are counted in both orders
        if complete:
            part[t] = _rise(w[b], (size + 1.0) * sizes[b], times * own[b], kind) / times
        else:
            after = _fit(w[b] + times * own[b], p[b] + times * count[b], kind)
            part[t] = (after - _fit(w[b], p[b], kind)) / times
    return _sum(part[: len(touched)])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _edges_out(a, touched, own, count, weight, pairs, sizes, complete, kind, part):
    """What the edges of a node add to the fit of its cluster a, beside what it would without edges."""
    w, p, size = weight[a], pairs[0 if complete else a], sizes[a]
    for t in range(len(touched)):
        b = touched[t]
        times = 2.0 if b == a else 1.0
        if complete:
            left = (size - 1.0) * (size - 2.0 if b == a else sizes[b])
            part[t] = -_rise(w[b], left, -times * own[b], kind) / times
        else:
            after = _fit(w[b] - times * own[b], p[b] - times * count[b], kind)
            part[t] = (_fit(w[b], p[b], kind) - after) / times
    return _sum(part[: len(touched)])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _gain_complete(a, c, touched, own, weight, sizes, kind, part):
    """What the fits of all blocks gain when a node goes from cluster a to c, where all pairs were observed.

    Of a Bernoulli block m ln m changes only where the node has edges, and −m ln(pairs) of all blocks together by what
    two sizes do; so the one logarithm of each block that is left is that of the pairs without weight.
    """
    k, size, other = len(sizes), sizes[a], sizes[c]
    source, target = weight[a], weight[c]
    if kind == QUADRATIC:
        for b in range(k):
            part[b] = _fit(source[b] - own[b], (size - 1.0) * sizes[b], kind) - _fit(source[b], size * sizes[b], kind)
            part[b] += _fit(target[b] + own[b], (other + 1.0) * sizes[b], kind)
            part[b] -= _fit(target[b], other * sizes[b], kind)
    else:
        less, more = ln(max(size - 1.0, 1.0)), ln(other + 1.0)
        thinner, wider, between = ln(size) - less, ln(max(other, 1.0)) - more, less - more
        for b in range(k):
            part[b] = source[b] * thinner + target[b] * wider + own[b] * between
            part[b] += _rest(source[b] - own[b], (size - 1.0) * sizes[b]) - _rest(source[b], size * sizes[b])
            part[b] += _rest(target[b] + own[b], (other + 1.0) * sizes[b]) - _rest(target[b], other * sizes[b])
        for b in touched:
            part[b] += _xlogx(source[b] - own[b]) - _xlogx(source[b])
            part[b] += _xlogx(target[b] + own[b]) - _xlogx(target[b])
    part[a] = _fit(source[a] - 2.0 * own[a], (size - 1.0) * (size - 2.0), kind)
    part[a] = 0.5 * (part[a] - _fit(source[a], size * (size - 1.0), kind))
    part[c] = _fit(target[c] + 2.0 * own[c], (other + 1.0) * other, kind)
    part[c] = 0.5 * (part[c] - _fit(target[c], other * (other - 1.0), kind))
    total = _fit(source[c] - own[c] + own[a], (size - 1.0) * (other + 1.0), kind)
    total -= _fit(source[c], size * other, kind)
    return total + _sum(part)


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _gain_listed(a, c, touched, own, count, weight, pairs, kind, part):
    """The same where only listed pairs were observed: blocks without any of the node's stay as they are."""
    source, source_pairs, target, target_pairs = weight[a], pairs[a], weight[c], pairs[c]
    for t in range(len(touched)):
        b = touched[t]
        if b == a or b == c:  # noqa: SIM109 - quicker than a tuple
            part[t] = 0.0
            continue
        change = _fit(source[b] - own[b], source_pairs[b] - count[b], kind) - _fit(source[b], source_pairs[b], kind)
        change += _fit(target[b] + own[b], target_pairs[b] + count[b], kind) - _fit(target[b], target_pairs[b], kind)
        part[t] = change
    out = _fit(source[a] - 2.0 * own[a], source_pairs[a] - 2.0 * count[a], kind)
    into = _fit(target[c] + 2.0 * own[c], target_pairs[c] + 2.0 * count[c], kind)
    total = 0.5 * (out - _fit(source[a], source_pairs[a], kind) + into - _fit(target[c], target_pairs[c], kind))
    total += _fit(source[c] - own[c] + own[a], source_pairs[c] - count[c] + count[a], kind)
    total -= _fit(source[c], source_pairs[c], kind)
    return total + _sum(part[: len(touched)])


@njit(cache=True, nogil=True, boundscheck=False)
def _transfer(cluster, sign, touched, n_touched, to_weight, to_pairs, complete, weight, pairs):
    """Take a node's pairs out of a cluster (sign −1) or put them in (+1)."""
    for t in range(n_touched):
        b = touched[t]
        weight[cluster, b] += sign * to_weight[b]
        weight[b, cluster] += sign * to_weight[b]
        if not complete:
            pairs[cluster, b] += sign * to_pairs[b]
            pairs[b, cluster] += sign * to_pairs[b]


@njit(inline="always", error_model="numpy")
def _log_slope(w, step):
    """What a unit adds to w ln w, by a whole ``step``."""
    return (_xlogx(w + step) - _xlogx(w)) / step


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def degree_sweep(
    order, indptr, others, values, degree, unit, price, labels, weight, sizes, shares, slope, partner,
    evaluate_only, chosen,
):  # fmt: skip
    """Hard moves that raise ½ Σ_ab W_ab ln W_ab − Σ_a κ_a ln κ_a + price · Σ_c size ln size.

    The likelihood of a block model in which i and j are joined in proportion to degree_i · degree_j
    (Karrer and Newman 2011), W the block sums over ordered pairs, κ (``shares``) the sums of degrees. Only
    clusters that a node has edges to change with it. As in `hard_sweep`, an estimate that is linear in the node's
    edges says which TRIED clusters are looked at; ``slope[b, c]`` is what a unit (the mean weight) between b and c
    adds, see `log_slopes`. Equivalent to ``graph_reference.degree_sweep``.
    """
    k = len(sizes)
    own, score = np.zeros(k), np.empty(k, np.float32)
    log_share, growth = np.empty(k, np.float32), np.empty(k, np.float32)
    for c in range(k):
        log_share[c] = math.log(shares[c] + unit)
        growth[c] = price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
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
            own[b] += values[e]
        d, share, size = degree[x], shares[current], sizes[current]
        most = _xlogx(share - d) - _xlogx(share) + price * (_xlogx(size) - _xlogx(size - 1.0))
        for t in range(n_touched):
            b = touched[t]
            w, times = weight[current, b], 2.0 if b == current else 1.0
            most += (_xlogx(w) - _xlogx(w - times * own[b])) / times
        best = current
        if len(partner) > 0:
            n_tried = 1 if partner[current] != current else 0
        else:
            n_tried = k - 1 if k <= FEW else TRIED
            per_share = np.float32(d)
            for c in range(k):
                score[c] = growth[c] - per_share * log_share[c]
            for t in range(n_touched):
                b = touched[t]
                row, units = slope[b], np.float32(own[b])
                for c in range(k):
                    score[c] += units * row[c]
            score[current] = -np.inf
        for _ in range(n_tried):
            if len(partner) > 0:
                c = partner[current]
            else:
                c = _top(score)
                score[c] = -np.inf
            gain = _xlogx(shares[c]) - _xlogx(shares[c] + d)
            gain += price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
            for t in range(n_touched):
                b = touched[t]
                w, times = weight[c, b], 2.0 if b == c else 1.0
                if b == current:
                    w -= own[c]  # what c has with it through this node goes with the node
                gain += (_xlogx(w + times * own[b]) - _xlogx(w)) / times
            if gain > most + TIE:
                best, most = c, gain
        chosen[step] = best
        moves = best != current and not evaluate_only
        if moves:
            labels[x] = best
            sizes[current] -= 1.0
            sizes[best] += 1.0
            shares[current] -= d
            shares[best] += d
            for c in (current, best):
                log_share[c] = math.log(max(shares[c], 0.0) + unit)
                growth[c] = price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))
        for t in range(n_touched):
            b = touched[t]
            if moves:
                weight[current, b] -= own[b]
                weight[b, current] -= own[b]
        for t in range(n_touched):
            b = touched[t]
            if moves:
                weight[best, b] += own[b]
                weight[b, best] += own[b]
        for t in range(n_touched):
            b = touched[t]
            if moves:
                for c in (current, best):
                    slope[b, c] = slope[c, b] = _log_slope(max(weight[b, c], 0.0), 2.0 * unit if b == c else unit)
            is_touched[b] = False
            own[b] = 0.0


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def log_slopes(weight, unit, slope):
    """The estimates of `degree_sweep` from scratch. Equivalent to ``graph_reference.log_slopes``."""
    k = len(weight)
    for b in range(k):
        for c in range(k):
            slope[b, c] = _log_slope(weight[b, c], 2.0 * unit if b == c else unit)


@njit(cache=True, boundscheck=False)
def uneven_halves(indptr, others, values, labels, chance):
    """Whether each node has more than its cluster's mean of the edges that are least evenly spread there, shape (n,).

    For each cluster a and each b that its nodes have edges to, the spread of these sums over the nodes of a is
    compared with what it would be, were every edge dealt out by itself: D = Σ_x own² − (Σ_x own)²/size − Σ_e value².
    The b of highest D/√(Σ_e value²), times ``chance[a, b]``, is where a is cut. Equivalent to
    ``graph_reference.uneven_halves``.
    """
    k = len(chance)
    total, squares, entries = np.zeros((k, k)), np.zeros((k, k)), np.zeros((k, k))
    sizes, own = np.zeros(k), np.zeros(k)
    touched, is_touched = np.empty(k, np.int64), np.zeros(k, np.bool_)
    for x in range(len(labels)):
        a = labels[x]
        sizes[a] += 1.0
        n_touched = 0
        for e in range(indptr[x], indptr[x + 1]):
            b = labels[others[e]]
            if not is_touched[b]:
                is_touched[b] = True
                touched[n_touched] = b
                n_touched += 1
            own[b] += values[e]
            entries[a, b] += values[e] * values[e]
        for t in range(n_touched):
            b = touched[t]
            total[a, b] += own[b]
            squares[a, b] += own[b] * own[b]
            own[b] = 0.0
            is_touched[b] = False
    every = entries.sum() / max(len(values), 1)
    cut = np.zeros(k, np.int64)
    for a in range(k):
        most = -np.inf
        for b in range(k):
            spread = squares[a, b] - total[a, b] * total[a, b] / max(sizes[a], 1.0) - entries[a, b]
            spread *= chance[a, b] / math.sqrt(entries[a, b] + every)
            if spread > most:
                most, cut[a] = spread, b
    upper = np.zeros(len(labels), np.int64)
    for x in range(len(labels)):
        a = labels[x]
        mine = 0.0
        for e in range(indptr[x], indptr[x + 1]):
            if labels[others[e]] == cut[a]:
                mine += values[e]
        upper[x] = 1 if mine * sizes[a] > total[a, cut[a]] else 0
    return upper


@njit(inline="always", error_model="numpy")
def _stirling(x):
    """ln (x + 3)! to about 1e-8: Stirling's series at x + 4, in vector registers."""
    y = x + 4.0
    r = 1.0 / y
    z = r * r
    series = r * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z / 1680)))
    return (y - 0.5) * ln(y) - y + 0.9189385332046727 + series


@njit(inline="always", error_model="numpy")
def _rising(x):
    """(x + 3)!/x!"""
    return (x + 1.0) * (x + 2.0) * (x + 3.0)


@njit(inline="always", error_model="numpy")
def _count_code(ones, pairs, exact):
    """Code length of a block: ln C(pairs, ones) (pairs + 1), or less ln edges! where degrees are given."""
    if exact:
        rest = pairs - ones
        less = ln(_rising(ones) * _rising(rest) / ((pairs + 2.0) * (pairs + 3.0)))  # one logarithm for all
        return _stirling(pairs) - _stirling(ones) - _stirling(rest) + less
    return ln(_rising(ones)) - _stirling(ones)


SLACK = 8.0  # nats by which the likelihood may speak against a move that the exact code is asked about
LEAST = 1e-3  # nats that a move must save of the exact code: differences of large logarithms are rounded


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def exact_sweep(
    order, indptr, others, values, labels, weight, sizes, codes, slope, join, leave, n_moved, evaluate_only, chosen
):  # fmt: skip
    """Each node in turn to a cluster where `partition.ExactBernoulli` and the sizes are coded in fewer nats.

    Undirected 0/1 graphs of which all pairs were observed. The likelihood of `hard_sweep` leaves out half a logarithm
    or so of each block, which moves nodes of many small blocks. It says which TRIED clusters are worth a look, and only
    those that it puts less than SLACK behind the node's own are coded: that costs one logarithm or so per cluster.
    ``codes`` (k, k), see `block_codes`, follow every move. Equivalent to ``graph_reference.exact_sweep``.
    """
    k = len(sizes)
    own, count, part = np.zeros(k), np.zeros(k), np.empty(k)
    score, alone = np.empty(k, np.float32), np.empty(k, np.float32)
    for c in range(k):
        alone[c] = _gain_alone(c, 1.0, 1.0, join, sizes)
    touched, is_touched = np.empty(k, np.int64), np.zeros(k, np.bool_)
    dilution = np.zeros((1, 1), np.float32)
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
            own[b] += values[e]
        size = sizes[current]
        stay = _edges_out(current, touched[:n_touched], own, count, weight, weight, sizes, True, BERNOULLI, part)
        stay += leave[current] + _xlogx(size) - _xlogx(size - 1.0)
        for c in range(k):
            score[c] = alone[c]
        for t in range(n_touched):
            row, units = slope[touched[t]], np.float32(own[touched[t]])
            for c in range(k):
                score[c] += units * row[c]
        score[current] = -np.inf
        best, least = current, -LEAST
        for _ in range(k - 1 if k <= FEW else TRIED):
            c = _top(score)
            score[c] = -np.inf
            gain = _edges_in(c, touched[:n_touched], own, count, weight, weight, sizes, True, BERNOULLI, part)
            if gain + _gain_alone(c, 1.0, 1.0, join, sizes) > stay - SLACK:
                change = _exact_change(current, c, own, weight, sizes, codes, part)
                if change < least:
                    best, least = c, change
        chosen[step] = best
        if best != current and not evaluate_only:
            _transfer(current, -1.0, touched, n_touched, own, count, True, weight, weight)
            _transfer(best, 1.0, touched, n_touched, own, count, True, weight, weight)
            sizes[current] -= 1.0
            sizes[best] += 1.0
            labels[x] = best
            n_moved[0] += 1
            for c in (current, best):
                alone[c] = _gain_alone(c, 1.0, 1.0, join, sizes)
                _renew_codes(c, weight, sizes, codes)
            if n_moved[0] == RENEWED * k:
                n_moved[0] = 0
                estimates(weight, weight, sizes, True, BERNOULLI, slope, dilution, join, leave)
                for c in range(k):
                    alone[c] = _gain_alone(c, 1.0, 1.0, join, sizes)
        for t in range(n_touched):
            is_touched[touched[t]] = False
            own[touched[t]] = 0.0


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _exact_change(a, c, own, weight, sizes, codes, part):
    """Change of all codes when a node with ``own`` edges to each cluster goes from cluster a to c."""
    fewer, more = sizes[a] - 1.0, sizes[c] + 1.0
    source, target, code_a, code_c = weight[a], weight[c], codes[a], codes[c]
    for b in range(len(sizes)):
        part[b] = _count_code(source[b] - own[b], fewer * sizes[b], True) - code_a[b]
        part[b] += _count_code(target[b] + own[b], more * sizes[b], True) - code_c[b]
    part[a] = _count_code(0.5 * source[a] - own[a], 0.5 * fewer * (fewer - 1.0), True) - code_a[a]
    part[c] = _count_code(0.5 * target[c] + own[c], 0.5 * more * (more - 1.0), True) - code_c[c]
    both = _count_code(source[c] - own[c] + own[a], fewer * more, True) - code_a[c]
    return both + _sum(part) + ln(sizes[a]) - ln(more)  # the last two: ln sizes!


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _renew_codes(a, weight, sizes, codes):
    """Code lengths of all blocks of one cluster."""
    w, row, size = weight[a], codes[a], sizes[a]
    for b in range(len(sizes)):
        row[b] = _count_code(w[b], size * sizes[b], True)
    row[a] = _count_code(0.5 * w[a], 0.5 * size * (size - 1.0), True)
    for b in range(len(sizes)):
        codes[b, a] = row[b]


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def block_codes(weight, sizes):
    """Code lengths of all blocks, (k, k), of block sums over ordered pairs of nodes, all of which were observed.

    Equivalent to ``ExactBernoulli().blocks`` of zeros and ones of each pair.
    """
    codes = np.empty((len(sizes), len(sizes)))
    for a in range(len(sizes)):
        _renew_codes(a, weight, sizes, codes)
    return codes


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def merge_changes(first, second, ones, pairs, exact):
    """Change of the blocks' code lengths when clusters first[p] and second[p] become one, shape (len(first),).

    Blocks (a, b) and (b, a) are one, and ``ones`` and ``pairs`` hold each pair of nodes once, within clusters too.
    ``exact``: see `partition.ExactBernoulli`; otherwise `partition.DegreeCorrected`, whose pairs do not matter.
    Equivalent to the blocks' part of ``BlockSums.gains``.
    """
    k = len(ones)
    now, part, change = np.empty((k, k)), np.empty(k), np.empty(len(first))
    for a in range(k):
        for b in range(k):
            now[a, b] = _count_code(ones[a, b], pairs[a, b], exact)
    for a in range(k):
        if not exact:
            now[a, a] -= ones[a, a] * 0.6931471805599453
    for p in range(len(first)):
        i, j = first[p], second[p]
        one_i, one_j, pair_i, pair_j, now_i, now_j = ones[i], ones[j], pairs[i], pairs[j], now[i], now[j]
        for b in range(k):
            part[b] = _count_code(one_i[b] + one_j[b], pair_i[b] + pair_j[b], exact) - now_i[b] - now_j[b]
        inside = one_i[i] + one_j[j] + one_i[j]
        part[i] = _count_code(inside, pair_i[i] + pair_j[j] + pair_i[j], exact) - now_i[i] - now_j[j] - now_i[j]
        if not exact:
            part[i] -= inside * 0.6931471805599453
        part[j] = 0.0
        total = 0.0
        for b in range(k):
            total += part[b]
        change[p] = total
    return change
