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
from typing import NamedTuple

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.engine.logarithm import ln

QUADRATIC, BERNOULLI, EXACT, DEGREES = 0, 1, 2, 3
TRIED, FEW = 2, 4  # clusters, the best by a linear estimate, that a node looks at exactly; all where there are FEW
RENEWED = 4  # times the number of clusters: moves after which that estimate is renewed
TIE = 1e-9  # a move must gain more than this: rounding must not move nodes to and fro
SLACK = 8.0  # nats by which the likelihood may speak against a move that the exact code is asked about
LEAST = 1e-3  # nats that a move must save of the exact code: differences of large logarithms are rounded


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
def estimates(kind, complete, tables):
    """Renew what `hard_sweep` estimates gains from. Equivalent to ``graph_reference.estimates``.

    ``slope[b, c]``: what a unit of weight between a node of c and one of b adds to the fit. Where all pairs were
    observed, ``join[c]`` and ``leave[c]``: what a node without edges adds by joining c, and what one in c does
    there. Otherwise ``dilution[b, c]``: what a listed pair of weight 0 between c and b adds.
    """
    weight, pairs, sizes, slope, dilution, join, leave, _, _, _, _, unit = tables
    k = len(sizes)
    part = np.empty(k)
    for c in range(k):
        w, size = weight[c], sizes[c]
        if kind == DEGREES:
            for b in range(k):
                slope[b, c] = _log_slope(weight[b, c], 2.0 * unit if b == c else unit)
            continue
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
    """The index of the first maximum; comparisons may be made in any order, so that the loop is vectorised."""
    most = score[0]
    for c in range(1, len(score)):
        most = max(most, score[c])
    for c in range(len(score)):
        if score[c] == most:
            return c
    return 0


class Tables(NamedTuple):
    """What a sweep knows of a partition, updated in place with every move; arrays that a kind does not need are empty.

    ``weight[a, b]`` and ``pairs[a, b]`` are block sums over ordered pairs (so twice the sums within a block). Where all
    pairs were observed, ``pairs`` follow from the sizes and are not stored.
    """

    weight: Floats  # (k, k)
    pairs: Floats  # (k, k)
    sizes: Floats  # (k,): nodes of each cluster
    slope: Floats  # (k, k), and so is dilution; see `estimates`
    dilution: Floats
    join: Floats  # (k,), and so is leave
    leave: Floats
    n_moved: Ints  # (1,): moves since the estimates were made
    codes: Floats  # EXACT, (k, k): see `block_codes`
    degree: Floats  # DEGREES, (n,)
    shares: Floats  # DEGREES, (k,): sums of degrees
    unit: float  # DEGREES: the mean weight of an edge


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def hard_sweep(
    order, indptr, others, values, kind, complete, beta, price, labels, tables, partner, evaluate_only, chosen
):
    """Each node in turn to a cluster where β Σ_blocks fit + price · Σ_c size ln size is higher, if there is one.

    Undirected. Answers follow every move, because the fit of a block is that of its best answer. When ``complete``,
    every two nodes form a pair, listed or not. Which clusters are worth a look is estimated linearly in the node's
    edges, see `estimates`; the TRIED best are looked at edge by edge.

    - QUADRATIC, BERNOULLI: a move is made only where the objective itself rises. After RENEWED · k moves estimates are
      renewed.
    - EXACT: 0/1 graphs of which all pairs were observed, coded by `partition.ExactBernoulli` and the sizes. The
      likelihood leaves out half a logarithm or so of each block, which moves nodes of many small blocks. Only clusters
      that it puts less than SLACK behind the node's own are coded.
    - DEGREES: i and j are joined in proportion to degree_i · degree_j (Karrer and Newman 2011). The objective is
      ½ Σ_ab W_ab ln W_ab − Σ_a κ_a ln κ_a + price · Σ_c size ln size, W the block sums, κ the sums of degrees. Only
      clusters that a node has edges to change with it.

    Equivalent to ``graph_reference.hard_sweep``.
    """
    weight, pairs, sizes, slope, dilution, join, leave, n_moved, codes, degree, shares, unit = tables
    k, by_degree, d = len(sizes), kind == DEGREES, 0.0
    own, count, part = np.zeros(k), np.zeros(k), np.empty(k)
    score, alone, log_share = np.empty(k, np.float32), np.empty(k, np.float32), np.zeros(k, np.float32)
    for c in range(k):
        alone[c] = _gain_alone(c, beta, price, join, sizes)
        if by_degree:
            log_share[c] = math.log(shares[c] + unit)
    touched, is_touched = np.empty(k, np.int64), np.zeros(k, np.bool_)
    for step in range(len(order)):
        x = order[step]
        current = labels[x]
        n_touched = _tally(x, indptr, others, values, labels, own, count, touched, is_touched)
        near, size = touched[:n_touched], sizes[current]
        if by_degree:
            d = degree[x]
            most = _degree_gain(current, current, -1.0, near, own, weight, shares, d)
        else:
            most = leave[current] + _edges(current, -1.0, near, own, count, weight, pairs, sizes, complete, kind, part)
        most = beta * most + price * (_xlogx(size) - _xlogx(size - 1.0))
        best, least = current, -LEAST
        if len(partner) > 0:
            n_tried = 1 if partner[current] != current else 0
        else:
            n_tried = k - 1 if k <= FEW else TRIED
            per_share = np.float32(d)
            for c in range(k):
                score[c] = alone[c] - per_share * log_share[c]
            for b in near:
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
            if by_degree:
                gain = _degree_gain(c, current, 1.0, near, own, weight, shares, d)
            else:
                gain = _edges(c, 1.0, near, own, count, weight, pairs, sizes, complete, kind, part)
            gain = beta * gain + _gain_alone(c, beta, price, join, sizes)
            if kind == EXACT:
                if gain > most - SLACK:
                    change = _exact_change(current, c, own, weight, sizes, codes, part)
                    if change < least:
                        best, least = c, change
            elif gain > most + TIE:
                best, most = c, gain
        if best != current and not evaluate_only:
            if kind == QUADRATIC or kind == BERNOULLI:  # noqa: SIM109 - quicker than an observation
                if complete:
                    gain = _gain_complete(current, best, near, own, weight, sizes, kind, part)
                else:
                    gain = _gain_listed(current, best, near, own, count, weight, pairs, kind, part)
                gain *= beta
                gain += price * (_xlogx(sizes[best] + 1.0) - _xlogx(sizes[best]) + _xlogx(size - 1.0) - _xlogx(size))
                if gain <= TIE:
                    best = current
            if best != current:
                labels[x] = best
                n_moved[0] += 1
                for c, sign in ((current, -1.0), (best, 1.0)):
                    _transfer(c, sign, near, own, count, complete or by_degree, weight, pairs)
                    sizes[c] += sign
                    alone[c] = _gain_alone(c, beta, price, join, sizes)
                    if by_degree:
                        shares[c] += sign * d
                        log_share[c] = math.log(max(shares[c], 0.0) + unit)
                if by_degree:
                    for b in near:
                        for c in (current, best):
                            slope[b, c] = slope[c, b] = _log_slope(max(weight[b, c], 0.0), 2 * unit if b == c else unit)
                elif n_moved[0] == RENEWED * k:
                    n_moved[0] = 0
                    estimates(kind, complete, tables)
                    for c in range(k):
                        alone[c] = _gain_alone(c, beta, price, join, sizes)
                if kind == EXACT:
                    _renew_codes(current, weight, sizes, codes)
                    _renew_codes(best, weight, sizes, codes)
        chosen[step] = best
        _clear(near, own, count, is_touched)


@njit(cache=True, nogil=True, boundscheck=False)
def _tally(x, indptr, others, values, labels, own, count, touched, is_touched):
    """Add a node's entries to the sums and counts of each cluster; how many clusters it ``touched``."""
    n_touched = 0
    for e in range(indptr[x], indptr[x + 1]):
        b = labels[others[e]]
        if not is_touched[b]:  # a pair of weight 0 is a pair
            is_touched[b] = True
            touched[n_touched] = b
            n_touched += 1
        own[b] += values[e]
        count[b] += 1.0
    return n_touched


@njit(cache=True, nogil=True, boundscheck=False)
def _clear(near, own, count, is_touched):
    """Undo `_tally`."""
    for b in near:
        is_touched[b] = False
        own[b] = 0.0
        count[b] = 0.0


@njit(inline="always", error_model="numpy")
def _gain_alone(c, beta, price, join, sizes):
    """What a node without edges adds to the objective by joining c."""
    return beta * join[c] + price * (_xlogx(sizes[c] + 1.0) - _xlogx(sizes[c]))


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _edges(c, sign, near, own, count, weight, pairs, sizes, complete, kind, part):
    """What the edges of a node add to the fit of c when it joins (+1), or while it is in c (−1).

    What a node without edges would add is left out.
    """
    w, p, size = weight[c], pairs[0 if complete else c], sizes[c]
    for t in range(len(near)):
        b = near[t]
        times = 2.0 if b == c else 1.0  # pairs within a cluster are counted in both orders
        if complete:
            met = (size + sign) * (size - 2.0 if b == c and sign < 0.0 else sizes[b])
            part[t] = sign * _rise(w[b], met, sign * times * own[b], kind) / times
        else:
            after = _fit(w[b] + sign * times * own[b], p[b] + sign * times * count[b], kind)
            part[t] = sign * (after - _fit(w[b], p[b], kind)) / times
    return _sum(part[: len(near)])


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _degree_gain(c, current, sign, near, own, weight, shares, d):
    """What a node of degree d adds to ½ Σ W ln W − Σ κ ln κ by joining c (+1), or by being there (−1)."""
    gain = sign * (_xlogx(shares[c]) - _xlogx(shares[c] + sign * d))
    for b in near:
        w, times = weight[c, b], 2.0 if b == c else 1.0
        if b == current and c != current:
            w -= own[c]  # what c has with it through this node goes with the node
        gain += sign * (_xlogx(w + sign * times * own[b]) - _xlogx(w)) / times
    return gain


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
        if b == a or b == c:  # noqa: SIM109 - quicker than an observation
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
def _transfer(cluster, sign, near, to_weight, to_pairs, weight_alone, weight, pairs):
    """Take a node's pairs out of a cluster (sign −1) or put them in (+1)."""
    for b in near:
        weight[cluster, b] += sign * to_weight[b]
        weight[b, cluster] += sign * to_weight[b]
        if not weight_alone:
            pairs[cluster, b] += sign * to_pairs[b]
            pairs[b, cluster] += sign * to_pairs[b]


@njit(inline="always", error_model="numpy")
def _log_slope(w, step):
    """The increase of w ln w per unit of weight, over a step."""
    return (_xlogx(w + step) - _xlogx(w)) / step


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
    sizes, own, count = np.zeros(k), np.zeros(k), np.zeros(k)
    touched, is_touched = np.empty(k, np.int64), np.zeros(k, np.bool_)
    for x in range(len(labels)):
        a = labels[x]
        sizes[a] += 1.0
        near = touched[: _tally(x, indptr, others, values, labels, own, count, touched, is_touched)]
        for e in range(indptr[x], indptr[x + 1]):
            entries[a, labels[others[e]]] += values[e] * values[e]
        for b in near:
            total[a, b] += own[b]
            squares[a, b] += own[b] * own[b]
        _clear(near, own, count, is_touched)
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


@njit(cache=True, nogil=True, boundscheck=False, error_model="numpy")
def _exact_change(a, c, own, weight, sizes, codes, part):
    """Change of the code length of all blocks when a node with ``own`` edges to each cluster moves from a to c."""
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
