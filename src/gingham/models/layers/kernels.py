"""The draws of a chain in numba: one pass over the rows per layer, and one over its baskets. One thread per chain.

The reference in tests/models/layers has the same draws in plain numpy. Here

* rows are grouped by target, so residuals and codes of sources are read in order, and a layer leaves the residuals
  while the next layer reads them;
* clusters are padded to multiples of four, tables are flat and indices unsigned (a signed index is first compared with
  zero), and sums over the rows of a target stay in registers;
* random numbers come from outside.

A source's row in ``table`` holds what the last layer adds for each cluster of targets, then what this layer adds; its
row in ``stats`` holds Σ w and Σ w r of its rows by the cluster of their targets.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import ndtr

from gingham.engine.project_compiled import sum_rows

FAST = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}}
f4, u8 = np.float32, np.uint64

# Φ between −REACH and REACH in steps of 1/STEPS, with its slope: cubics through them are right to 4e-9
STEPS, REACH = 32, 8.5
GRID = np.arange(-REACH, REACH + 1.5 / STEPS, 1.0 / STEPS)
PHI = np.ascontiguousarray(np.column_stack([ndtr(GRID), np.exp(-0.5 * GRID**2) / math.sqrt(2.0 * math.pi) / STEPS]))


@njit(inline="always", **FAST)
def cdf(x, phi):
    """Equivalent to ``scipy.special.ndtr(x)``, to 4e-9; ``phi`` is the table above."""
    place = (min(max(x, -8.4), 8.4) + REACH) * STEPS
    at = int(place)
    t = place - at
    y0, s0, y1, s1 = phi[at, 0], phi[at, 1], phi[at + 1, 0], phi[at + 1, 1]
    a, b = s0 - (y1 - y0), (y1 - y0) - s1
    return y0 + t * ((y1 - y0) + (1.0 - t) * ((1.0 - t) * a + t * b))


@njit(inline="always", **FAST)
def central(p):
    """`ppf` between .02425 and .97575."""
    q = p - 0.5
    r = q * q
    above = (-3.969683028665376e01 * r + 2.209460984245205e02) * r - 2.759285104469687e02
    above = ((above * r + 1.383577518672690e02) * r - 3.066479806614716e01) * r + 2.506628277459239
    below = (-5.447609879822406e01 * r + 1.615858368580409e02) * r - 1.556989798598866e02
    below = ((below * r + 6.680131188771972e01) * r - 1.328068155288572e01) * r + 1.0
    return above * q / below


@njit(inline="always", **FAST)
def ppf(p):
    """Equivalent to ``scipy.special.ndtri(p)`` for 0 < p < 1, to a relative 1.2e-9 (Acklam's rational functions)."""
    if p < 0.02425 or p > 0.97575:
        q = math.sqrt(-2.0 * math.log(min(p, 1.0 - p)))
        above = -7.784894002430293e-03 * q - 3.223964580411365e-01
        above = ((above * q - 2.400758277161838) * q - 2.549732539343734) * q + 4.374664141464968
        above = above * q + 2.938163982698783
        below = (7.784695709041462e-03 * q + 3.224671290700398e-01) * q + 2.445134137142996
        below = (below * q + 3.754408661907416) * q + 1.0
        return above / below if p < 0.5 else -above / below
    return central(p)


@njit(inline="always", **FAST)
def power_of_e(x):
    """Equivalent to ``np.exp(x)`` for x ≤ 0 in float32, to a relative 4e-6, without a call.

    e^x = 2^i · 2^f with 0 ≤ f < 1 and a polynomial for 2^f.
    """
    t = max(x * f4(1.4426950408889634), f4(-126.0))
    i = math.floor(t)
    f = t - f4(i)
    p = f4(1.8775767e-3) * f + f4(8.9893397e-3)
    p = (p * f + f4(5.5826318e-2)) * f + f4(2.4015361e-1)
    p = (p * f + f4(6.9315308e-1)) * f + f4(9.9999994e-1)
    return p * np.int32((np.int32(i) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(inline="always", **FAST)
def pick(scores, uniform):
    """A cluster by its log weights, which are overwritten. Equivalent to inverting the cumulated weights."""
    top = scores[0]
    for k in range(1, len(scores)):
        top = max(top, scores[k])
    total = f4(0)
    for k in range(len(scores)):
        scores[k] = power_of_e(scores[k] - top)
        total += scores[k]
    left = uniform * total
    below, chosen = f4(0), 0
    for k in range(len(scores) - 1):  # all are looked at: where the search would stop cannot be guessed
        below += scores[k]
        chosen += left > below
    return chosen


@njit(**FAST)
def pick_block(part, scores, top, left, below, log_share, half, uniforms, labels):
    """Clusters of some targets by log_share + half · part, (targets, W) flat, which becomes 0.

    Equivalent to `pick` of each; here targets stand side by side in the registers. The others are room.
    """
    width, n = len(log_share), len(labels)
    for k in range(width):
        share = log_share[k]
        at = k
        for i in range(n):
            scores[k, i] = share + half * part[at]
            at += width
    part[: n * width] = 0
    for i in range(n):
        top[i] = scores[0, i]
        below[i] = 0
    for k in range(1, width):
        for i in range(n):
            top[i] = max(top[i], scores[k, i])
    for k in range(width):
        for i in range(n):
            scores[k, i] = power_of_e(scores[k, i] - top[i])
            below[i] += scores[k, i]
    for i in range(n):
        left[i] = uniforms[i] * below[i]
        below[i] = 0
        labels[i] = 0
    for k in range(width - 1):
        for i in range(n):
            below[i] += scores[k, i]
            labels[i] += left[i] > below[i]


# a layer


@njit(inline="always", **FAST)
def add_grouped(moved, scores, at, table, row, lane, before, label, sources, residual, weights, start, stop):
    """Add w g (2r − g) of the rows start:stop, which have one target, to four of its scores.

    ``g`` is the source's row of the table from ``lane`` on. With ``moved`` the residuals change first: the last layer
    is taken out, and this one comes back. Sums are four numbers rather than an array, so that they stay in registers.
    """
    s0, s1, s2, s3 = scores[at], scores[at + u8(1)], scores[at + u8(2)], scores[at + u8(3)]
    half = row // u8(2)
    for e in range(start, stop):
        mine = u8(sources[e]) * row
        r = residual[e]
        if moved:
            r = r - table[mine + before] + table[mine + label + half]
            residual[e] = r
        w = f4(1) if weights is None else weights[e]
        r2 = r + r
        g0, g1 = table[mine + lane], table[mine + lane + u8(1)]
        g2, g3 = table[mine + lane + u8(2)], table[mine + lane + u8(3)]
        s0 += w * g0 * (r2 - g0)
        s1 += w * g1 * (r2 - g1)
        s2 += w * g2 * (r2 - g2)
        s3 += w * g3 * (r2 - g3)
    scores[at], scores[at + u8(1)], scores[at + u8(2)], scores[at + u8(3)] = s0, s1, s2, s3


@njit(inline="always", **FAST)
def add_mixed(
    moved, scores, stride, shift, table, row, lane, before, labels, targets, base, sources, residual, weights,
    start, stop,
):  # fmt: skip
    """The same where ``targets`` says whose the rows are, from ``base`` on."""
    half = row // u8(2)
    for e in range(start, stop):
        q = u8(targets[e])
        mine = u8(sources[e]) * row
        r = residual[e]
        if moved:
            r = r - table[mine + u8(before[q])] + table[mine + u8(labels[q]) + half]
            residual[e] = r
        w = f4(1) if weights is None else weights[e]
        at, r2 = (q - base) * stride + shift, r + r
        g = mine + lane
        g0, g1, g2, g3 = table[g], table[g + u8(1)], table[g + u8(2)], table[g + u8(3)]
        s0, s1, s2, s3 = scores[at], scores[at + u8(1)], scores[at + u8(2)], scores[at + u8(3)]
        s0, s1, s2, s3 = (
            s0 + w * g0 * (r2 - g0), s1 + w * g1 * (r2 - g1), s2 + w * g2 * (r2 - g2), s3 + w * g3 * (r2 - g3),
        )  # fmt: skip
        scores[at], scores[at + u8(1)], scores[at + u8(2)], scores[at + u8(3)] = s0, s1, s2, s3


@njit(inline="always", **FAST)
def add_to_rows(table, row, lane, step, factors, factor_lane, codes, start, stop):
    """Add ``step``, times ``factors`` of the same code where given, to four numbers of the rows of some codes."""
    c0, c1, c2, c3 = step[0], step[1], step[2], step[3]
    for e in range(start, stop):
        code = u8(codes[e]) * row
        at = code + lane
        t0, t1, t2, t3 = table[at], table[at + u8(1)], table[at + u8(2)], table[at + u8(3)]
        if factors is None:
            t0, t1, t2, t3 = t0 + c0, t1 + c1, t2 + c2, t3 + c3
        else:
            f = code + factor_lane
            f0, f1, f2, f3 = factors[f], factors[f + u8(1)], factors[f + u8(2)], factors[f + u8(3)]
            t0, t1, t2, t3 = t0 + c0 * f0, t1 + c1 * f1, t2 + c2 * f2, t3 + c3 * f3
        table[at], table[at + u8(1)], table[at + u8(2)], table[at + u8(3)] = t0, t1, t2, t3


BLOCK, BLOCK_ROWS, SHORT = 256, 4096, 12  # targets at a time, their rows at most, rows of a target that has few


@njit(**FAST)
def draw_targets(
    indptr, targets, sources, residual, weights, table, before, labels, n_clusters, log_share, precision, uniforms,
    stats,
):  # fmt: skip
    """Draw every target's cluster, one of ``n_clusters``; ``stats`` are those of the new clusters.

    The residuals are left without this layer.

    P(c(q) = k) ∝ exp(log_share_k + ½ precision Σ_e w g_xk (2r − g_xk)), r the residual without this layer.

    Equivalent to ``residual += now[x, labels[q]] - before[x, before[q]]; labels = picks; stats = bincounts``.

    Parameters
    ----------
    targets, sources : (N,) uint32, rows grouped by target
    weights : (N,) float32, or None
    table : (n_sources · 2W,) float32
    before : (n_targets,) uint8, the targets' clusters in the layer before
    stats : (n_sources · 2W,) float32, written
    """
    width, n = len(log_share), len(indptr) - 1
    room = -(-n_clusters // 4) * 4
    row, stride, step = u8(2 * width), u8(width), u8(room)
    part, scores = np.zeros(BLOCK * room, f4), np.empty((room, BLOCK), f4)
    top, left, below = np.empty(BLOCK, f4), np.empty(BLOCK, f4), np.empty(BLOCK, f4)
    half = f4(0.5 * precision)
    share = log_share[:room]
    share[n_clusters:] = -1e30
    stats[:] = 0
    first = 0
    while first < n:
        last = first + 1
        while last < n and last - first < BLOCK and indptr[last + 1] - indptr[first] <= BLOCK_ROWS:
            last += 1
        begin, end = u8(indptr[first]), u8(indptr[last])
        few = end - begin <= u8(SHORT * (last - first))
        for shift in range(0, room, 4):
            moved, lane = shift == 0, u8(width + shift)
            if few:
                add_mixed(
                    moved, part, step, u8(shift), table, row, lane, before, labels, targets, u8(first), sources,
                    residual, weights, begin, end,
                )  # fmt: skip
            else:
                for q in range(first, last):
                    add_grouped(
                        moved, part, u8(room * (q - first) + shift), table, row, lane, u8(before[q]),
                        u8(labels[q]), sources, residual, weights, u8(indptr[q]), u8(indptr[q + 1]),
                    )  # fmt: skip
        pick_block(part, scores, top, left, below, share, half, uniforms[first:last], labels[first:last])
        for e in range(begin, end):
            at = u8(sources[e]) * row + u8(labels[targets[e]])
            w = f4(1) if weights is None else weights[e]
            stats[at] += w
            stats[at + stride] += w * residual[e]
        first = last


@njit(**FAST)
def fill(contents, scale, tokens, cells, table, place):
    """What every source pulls at each cluster of targets, into one half (``place`` 0 or 1) of the table's rows.

    Equivalent to ``table.reshape(n, 2, W)[:, place] = scale[:, None] * contents @ cells``; without contents a source is
    its own only token, and the rows are ``cells[tokens]``.
    """
    width = cells.shape[1]
    itself = len(contents) == 0
    for x in range(len(scale)):
        at = u8(2 * width) * u8(x) + u8(place * width)
        if itself:
            for c in range(width):
                table[at + u8(c)] = cells[tokens[x], c]
            continue
        for c in range(width):
            table[at + u8(c)] = 0
        for a in range(contents.shape[1]):
            v = scale[x] * contents[x, a]
            if v != 0:
                for c in range(width):
                    table[at + u8(c)] += v * cells[a, c]


@njit(**FAST)
def cell_sums(contents, scale, tokens, stats, squares, sums):
    """Add Σ_x n_xc p pᵀ to ``squares`` and Σ_x S_xc p to ``sums``, p = scale·contents, S_xc = Σ w r.

    ``squares`` is (token clusters, token clusters, target clusters), its second index at most the first. Where every
    source has one token it is diagonal: (token clusters, 1, target clusters).
    """
    m_token, m_target = sums.shape
    row = u8(len(stats) // max(len(scale), 1))
    width = row // u8(2)
    if len(contents) == 0:
        for x in range(len(scale)):
            at, a = row * u8(x), tokens[x]
            for c in range(m_target):
                squares[a, 0, c] += stats[at + u8(c)]
                sums[a, c] += stats[at + width + u8(c)]
        return
    for x in range(len(scale)):
        at = row * u8(x)
        for a in range(m_token):
            v = np.float64(scale[x] * contents[x, a])
            if v == 0:
                continue
            for c in range(m_target):
                sums[a, c] += v * stats[at + width + u8(c)]
            for b in range(a + 1):
                vb = v * np.float64(scale[x] * contents[x, b])
                if vb != 0:
                    for c in range(m_target):
                        squares[a, b, c] += vb * stats[at + u8(c)]


@njit(**FAST)
def cells_from(squares, sums, precision, variance, normals, cells):
    """Every column of the cells from its normal distribution, of precision precision·squares + 1/variance.

    ``normals`` (target clusters, token clusters) are not padded; padding of ``cells`` stays as it is.
    """
    m_token, m_target = sums.shape
    if squares.shape[1] == 1:
        for a in range(m_token):
            for c in range(m_target):
                root = math.sqrt(precision * squares[a, 0, c] + 1.0 / variance)
                cells[a, c] = (precision * sums[a, c] / root + normals[c, a]) / root
        return
    lower = np.zeros((m_token, m_token))
    z = np.zeros(m_token)
    for c in range(m_target):  # L Lᵀ is the precision; L z = h plus normals; Lᵀ g = z
        for a in range(m_token):
            for b in range(a + 1):
                t = precision * squares[a, b, c] + (1.0 / variance if a == b else 0.0)
                for k in range(b):
                    t -= lower[a, k] * lower[b, k]
                lower[a, b] = math.sqrt(t) if a == b else t / lower[b, b]
        for a in range(m_token):
            t = precision * sums[a, c]
            for k in range(a):
                t -= lower[a, k] * z[k]
            z[a] = t / lower[a, a]
        for a in range(m_token):
            z[a] += normals[c, a]
        for a in range(m_token - 1, -1, -1):
            t = z[a]
            for k in range(a + 1, m_token):
                t -= lower[k, a] * z[k]
            z[a] = t / lower[a, a]
            cells[a, c] = z[a]


@njit(cache=True, **FAST)
def draw_cells(contents, scale, tokens, stats, precision, variance, normals, cells):
    """The cells from all their sources, see `cell_sums` and `cells_from`."""
    m_target, m_token = normals.shape
    squares = np.zeros((m_token, 1 if len(contents) == 0 else m_token, m_target))
    sums = np.zeros((m_token, m_target))
    cell_sums(contents, scale, tokens, stats, squares, sums)
    cells_from(squares, sums, precision, variance, normals, cells)


@njit(cache=True, **FAST)
def prepare_tokens(scale, stats, table, work):
    """a² n and a (S − n g) of every source into ``work``; the first half of the table's rows holds g of its cells."""
    row = u8(len(work) // max(len(scale), 1))
    width = row // u8(2)
    for x in range(len(scale)):
        at, a = row * u8(x), scale[x]
        for c in range(width):
            n, g = stats[at + u8(c)], table[at + u8(c)]
            work[at + u8(c)] = a * a * n
            work[at + width + u8(c)] = a * (stats[at + width + u8(c)] - n * g)


@njit(cache=True, **FAST)
def draw_tokens(indptr, holders, contents, cells, precision, log_share, uniforms, work, labels):
    """Draw the cluster of every token, one after the other; contents of baskets follow.

    P(d(j) = k) ∝ exp(log_share_k + ½ precision Σ_c D_c (2B_c − A_c D_c)), D = G_k − G_old, A = Σ_x a² n_x and
    B = Σ_x a (S − n g)_x over the sources x that hold token j. ``work`` keeps both of every source, see
    `prepare_tokens`, the latter up to date.
    """
    width, m_token = cells.shape[1], len(log_share)
    row = u8(2 * width)
    itself = len(contents) == 0
    flat, step = contents.reshape(-1), np.empty(4, f4)
    total = np.empty(2 * width, f4)
    scores = np.empty(m_token, f4)
    half = f4(0.5 * precision)
    for j in range(len(indptr) - 1):
        start, stop = indptr[j], indptr[j + 1]
        old = labels[j]
        total[:] = 0
        for shift in range(0, 2 * width, 8):
            sum_rows(8, total, shift, work, shift, 2 * width, holders, None, start, stop)
        for k in range(m_token):
            t = f4(0)
            for c in range(width):
                v = cells[k, c] - cells[old, c]
                t += v * (f4(2) * total[width + c] - total[c] * v)
            scores[k] = log_share[k] + half * t
        k = pick(scores, uniforms[j])
        if k == old:
            continue
        labels[j] = k
        if itself:
            continue  # nobody else holds it
        first, last = u8(start), u8(stop)
        for block in range(0, width, 4):
            for c in range(4):
                step[c] = cells[old, block + c] - cells[k, block + c]
            from_lane, to_lane = u8(block), u8(width + block)
            add_to_rows(work, row, to_lane, step, work, from_lane, holders, first, last)
        for block in range(0, contents.shape[1], 4):
            for c in range(4):
                step[c] = f4(block + c == k) - f4(block + c == old)
            add_to_rows(flat, u8(contents.shape[1]), u8(block), step, None, u8(0), holders, first, last)


@njit(cache=True, **FAST)
def draw_layer(
    indptr, targets, sources, residual, weights, table, before, labels, n_clusters, precision, target_share,
    target_uniforms, stats, token_indptr, holders, contents, scale, tokens, token_share, token_uniforms, variance,
    normals, cells, work,
):  # fmt: skip
    """A layer's targets, cells, tokens and cells again.

    The residuals are left without this layer, and what it pulls stands in the first half of the table's rows. Returns
    the sum of the cells' squares. Shares need not be normalised.
    """
    fill(contents, scale, tokens, cells, table, 1)
    draw_targets(
        indptr, targets, sources, residual, weights, table, before, labels, n_clusters, target_share, precision,
        target_uniforms, stats,
    )  # fmt: skip
    draw_cells(contents, scale, tokens, stats, precision, variance, normals[0], cells)
    fill(contents, scale, tokens, cells, table, 0)
    prepare_tokens(scale, stats, table, work)
    draw_tokens(token_indptr, holders, contents, cells, precision, token_share, token_uniforms, work, tokens)
    draw_cells(contents, scale, tokens, stats, precision, variance, normals[1], cells)
    fill(contents, scale, tokens, cells, table, 0)
    squares = 0.0
    for a in range(normals.shape[2]):
        for c in range(normals.shape[1]):
            squares += np.float64(cells[a, c]) ** 2
    return squares


@njit(cache=True, **FAST)
def finish_layers(targets, sources, residual, table, width, labels):
    """After the last layer of a mode: what it pulls, in the first half of the table's rows, leaves the residuals.

    Equivalent to ``residual -= table.reshape(-1, 2 * width)[sources, labels[targets]]``.
    """
    row = u8(2 * width)
    for e in range(len(residual)):
        residual[e] -= table[u8(sources[e]) * row + u8(labels[targets[e]])]


# a layer whose rows lie in parts: sums of a part, and what is drawn from the sums of all parts


@njit(cache=True, **FAST)
def score_targets(targets, sources, residual, weights, table, width, before, labels, scores):
    """Add Σ_e w g_xk (2r − g_xk) of the rows of each target to ``scores``, (n_targets, W) float64; rows in any order.

    The residuals change first, as in `draw_targets`: the last layer is taken out, and this one comes back.
    """
    row, half = u8(2 * width), u8(width)
    for e in range(len(residual)):
        q, mine = targets[e], u8(sources[e]) * row
        r = residual[e] - table[mine + u8(before[q])] + table[mine + half + u8(labels[q])]
        residual[e] = r
        w = f4(1) if weights is None else weights[e]
        for c in range(width):
            g = table[mine + half + u8(c)]
            scores[q, c] += w * g * (r + r - g)


@njit(cache=True, **FAST)
def pick_targets(scores, n_clusters, log_share, precision, uniforms, labels):
    """Each target's cluster by its sums of `score_targets`, as `draw_targets` draws it."""
    part = np.empty(n_clusters, f4)
    for q in range(len(labels)):
        for k in range(n_clusters):
            part[k] = log_share[k] + f4(0.5 * precision * scores[q, k])
        labels[q] = pick(part, uniforms[q])


@njit(cache=True, **FAST)
def add_stats(targets, sources, residual, weights, labels, width, stats):
    """Add Σ w and Σ w r of each source's rows by the cluster of their targets to ``stats``."""
    row, half = u8(2 * width), u8(width)
    for e in range(len(residual)):
        at = u8(sources[e]) * row + u8(labels[targets[e]])
        w = f4(1) if weights is None else weights[e]
        stats[at] += w
        stats[at + half] += w * residual[e]


@njit(cache=True, **FAST)
def move_tokens(sources, tokens, first, changes, old, new, contents, work):
    """Contents and work of a part's sources after some tokens were drawn, given the entries of baskets with these.

    ``changes`` are G_old − G_new of the tokens from ``first`` on, ``old`` and ``new`` their clusters.
    """
    width = changes.shape[1]
    for e in range(len(tokens)):
        i = tokens[e] - first
        if old[i] != new[i]:
            at = u8(2 * width) * u8(sources[e])
            contents[sources[e], old[i]] -= f4(1)
            contents[sources[e], new[i]] += f4(1)
            for c in range(width):
                work[at + u8(width + c)] += work[at + u8(c)] * changes[i, c]


@njit(cache=True, **FAST)
def sum_tokens(sources, tokens, first, work, sums, pairs):
    """What a part's sources say of some tokens, given the entries of baskets with these, ordered by source.

    Adds A and B of `draw_tokens` to ``sums``, (tokens, 2W), and Σ_x a² n_x over the sources that hold two of the tokens
    to ``pairs``, (tokens, tokens, W), the second before the first: by so much a change of one lowers B of the other.
    """
    n, width = sums.shape[0], sums.shape[1] // 2
    row, beside = u8(2 * width), u8(n * width)
    sums, pairs = sums.reshape(-1), pairs.reshape(-1)
    begin = 0
    for e in range(len(tokens)):
        if sources[e] != sources[begin]:
            begin = e
        i, at = u8(tokens[e] - first), row * u8(sources[e])
        for block in range(0, 2 * width, 4):
            to, lane = i * row + u8(block), at + u8(block)
            s0, s1, s2, s3 = sums[to], sums[to + u8(1)], sums[to + u8(2)], sums[to + u8(3)]
            s0, s1, s2, s3 = s0 + work[lane], s1 + work[lane + u8(1)], s2 + work[lane + u8(2)], s3 + work[lane + u8(3)]
            sums[to], sums[to + u8(1)], sums[to + u8(2)], sums[to + u8(3)] = s0, s1, s2, s3
        for block in range(0, width, 4):
            lane = at + u8(block)
            n0, n1, n2, n3 = work[lane], work[lane + u8(1)], work[lane + u8(2)], work[lane + u8(3)]
            for o in range(begin, e):
                to = i * beside + u8(tokens[o] - first) * u8(width) + u8(block)
                t0, t1, t2, t3 = pairs[to], pairs[to + u8(1)], pairs[to + u8(2)], pairs[to + u8(3)]
                t0, t1, t2, t3 = t0 + n0, t1 + n1, t2 + n2, t3 + n3
                pairs[to], pairs[to + u8(1)], pairs[to + u8(2)], pairs[to + u8(3)] = t0, t1, t2, t3


@njit(cache=True, **FAST)
def draw_summed_tokens(sums, pairs, cells, precision, log_share, uniforms, labels):
    """Draw the clusters of some tokens, one after the other, from what all sources say of them, see `sum_tokens`.

    The same draws as `draw_tokens`: what a token's change does to a later one's B follows from the sources of both.
    """
    width, m_token = cells.shape[1], len(log_share)
    scores, total = np.empty(m_token, f4), np.empty(width)
    changes = np.zeros((len(labels), width), f4)
    half = 0.5 * precision
    for j in range(len(labels)):
        old = labels[j]
        total[:] = sums[j, width:]
        for i in range(j):
            for c in range(width):
                total[c] += pairs[j, i, c] * changes[i, c]
        for k in range(m_token):
            t = 0.0
            for c in range(width):
                v = np.float64(cells[k, c] - cells[old, c])
                t += v * (2.0 * total[c] - sums[j, c] * v)
            scores[k] = log_share[k] + f4(half * t)
        k = pick(scores, uniforms[j])
        labels[j] = k
        for c in range(width):
            changes[j, c] = cells[old, c] - cells[k, c]
    return changes


# offsets, latent answers, cut points


@njit(cache=True, **FAST)
def draw_offsets(indptr, residual, weights, precision, prior_precision, normals, offsets):
    """Offsets of a mode's items, or of windows of time, rows grouped by them; the residuals follow.

    b ~ N(precision·Σ w (r + b)/p, 1/p), p = precision·Σ w + prior_precision.
    """
    for x in range(len(indptr) - 1):
        count, total = 0.0, 0.0
        for e in range(indptr[x], indptr[x + 1]):
            if weights is None:
                total += residual[e]
            else:
                total += weights[e] * residual[e]
                count += weights[e]
        if weights is None:
            count = float(indptr[x + 1] - indptr[x])
        p = precision * count + prior_precision
        drawn = f4(precision * (total + count * offsets[x]) / p + normals[x] / math.sqrt(p))
        change = drawn - offsets[x]
        offsets[x] = drawn
        for e in range(indptr[x], indptr[x + 1]):
            residual[e] -= change


ROWS = 512  # at a time, so that what is worked out of them stays near and in vector registers


@njit(inline="always", **FAST)
def inner(left, right, n):
    """Equivalent to ``left[:n] @ right[:n]``."""
    total = f4(0)
    for i in range(n):
        total += left[i] * right[i]
    return total


@njit(cache=True, **FAST)
def draw_positions(
    indptr, rows, others, residual, weights, features, precision, precisions, shift, labels, normals, own
):  # fmt: skip
    """Positions ``own`` (n, d), whose observations stand together in ``rows``; the residuals follow.

    x ~ N(A⁻¹h, A⁻¹), A = precision·Σ w g gᵀ + Λ, h = precision·Σ w (r + g·x) g + shift, where g is the row of
    ``features`` (others, d) of what an observation meets, and Λ = precisions[labels].
    """
    d = own.shape[1]
    gram, lower, right, z, change = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d), np.empty(d, f4)
    g, wanted = np.empty((d, ROWS), f4), np.empty(ROWS, f4)
    weighted = g if weights is None else np.empty((d, ROWS), f4)
    for item in range(len(own)):
        gram[:], right[:] = 0, 0
        for start in range(indptr[item], indptr[item + 1], ROWS):
            n = min(ROWS, indptr[item + 1] - start)
            for i in range(n):
                e, other = u8(rows[start + i]), u8(others[start + i])
                t = residual[e]
                for a in range(d):
                    g[a, i] = features[other, a]
                    t += features[other, a] * own[item, a]
                wanted[i] = t
                if weights is not None:
                    for a in range(d):
                        weighted[a, i] = weights[e] * g[a, i]
            for a in range(d):
                right[a] += inner(weighted[a], wanted, n)
                for b in range(a + 1):
                    gram[a, b] += inner(weighted[a], g[b], n)
        prior = precisions[labels[item]]
        for a in range(d):  # L Lᵀ is the precision; L z = h plus normals; Lᵀ x = z
            for b in range(a + 1):
                t = precision * gram[a, b] + prior[a, b]
                for c in range(b):
                    t -= lower[a, c] * lower[b, c]
                lower[a, b] = math.sqrt(t) if a == b else t / lower[b, b]
            t = precision * right[a] + shift[item, a]
            for c in range(a):
                t -= lower[a, c] * z[c]
            z[a] = t / lower[a, a]
        for a in range(d):
            z[a] += normals[item, a]
        for a in range(d - 1, -1, -1):
            t = z[a]
            for c in range(a + 1, d):
                t -= lower[c, a] * z[c]
            z[a] = t / lower[a, a]
            change[a] = f4(z[a]) - own[item, a]
            own[item, a] = f4(z[a])
        for place in range(indptr[item], indptr[item + 1]):
            other, moved = u8(others[place]), f4(0)
            for a in range(d):
                moved += features[other, a] * change[a]
            residual[u8(rows[place])] -= moved


@njit(cache=True, **FAST)
def nearness(points, means, lower, out):
    """Equivalent to ``out += -0.5 * (((points[:, None] - means) @ lower) ** 2).sum(2)``, for each cluster."""
    n, d = points.shape
    for i in range(n):
        for k in range(len(means)):
            total = 0.0
            for b in range(d):
                t = 0.0
                for a in range(b, d):
                    t += (points[i, a] - means[k, a]) * lower[k, a, b]
                total += t * t
            out[i, k] -= 0.5 * total


@njit(cache=True, **FAST)
def draw_latent(label_codes, latent, residual, weights, sd, cuts, uniforms, phi):
    """Latent answers between the cut points of their labels; the effect, latent − residual, stays.

    Equivalent to ``ndtri(ndtr(low) + (ndtr(high) - ndtr(low)) * uniforms)``, moved to the mean by √w under weights.
    """
    bounds = np.empty(len(cuts) + 2)
    bounds[0], bounds[-1], bounds[1:-1] = -1e30, 1e30, cuts
    chance, place = np.empty(ROWS), np.empty(ROWS)
    for start in range(0, len(latent), ROWS):
        some = slice(start, min(start + ROWS, len(latent)))
        own, z, r, u = label_codes[some], latent[some], residual[some], uniforms[some]
        for i in range(len(z)):
            f = np.float64(z[i]) - np.float64(r[i])
            below, above = cdf((bounds[own[i]] - f) / sd, phi), cdf((bounds[own[i] + 1] - f) / sd, phi)
            chance[i] = min(max(below + (above - below) * np.float64(u[i]), 1e-10), 1.0 - 1e-10)
        for i in range(len(z)):
            place[i] = central(chance[i])
        for i in range(len(z)):
            if not 0.02425 <= chance[i] <= 0.97575:
                place[i] = ppf(chance[i])
        if weights is not None:
            for i in range(len(z)):
                w = weights[start + i]
                if w == 1:
                    continue
                if w == 0:  # does not count: it keeps what it has
                    place[i] = np.float64(r[i]) / sd
                    continue
                f = np.float64(z[i]) - np.float64(r[i])
                low, high = (bounds[own[i]] - f) / sd, (bounds[own[i] + 1] - f) / sd
                inside = max(cdf(high, phi) - cdf(low, phi), 1e-12)
                slopes = math.exp(-0.5 * min(low * low, 1e3)) - math.exp(-0.5 * min(high * high, 1e3))
                middle = slopes / math.sqrt(2.0 * math.pi) / inside
                place[i] = middle + (place[i] - middle) / math.sqrt(w)
        for i in range(len(z)):
            f = np.float64(z[i]) - np.float64(r[i])
            r[i] = f4(sd * place[i])
            z[i] = f4(f + sd * place[i])


@njit(cache=True, **FAST)
def cut_gains(label_codes, latent, residual, weights, sd, cuts, proposed, phi):
    """Σ_e w ln P(y | proposed)/P(y | cuts) for each cut that moves, (K − 1,); no two neighbours may move at a time."""
    last = len(cuts)
    bounds, moved = np.empty(last + 2), np.empty(last + 2)
    bounds[0], bounds[-1], bounds[1:-1] = -1e30, 1e30, cuts
    moved[:] = bounds
    moved[1:-1] = proposed
    touched = np.zeros(last + 1, np.uint8)  # label_codes with a bound that moves; only one of the two does
    for k in range(last + 1):
        touched[k] = bounds[k] != moved[k] or bounds[k + 1] != moved[k + 1]
    rows, effects, ratios = np.empty(ROWS, np.uint32), np.empty(ROWS), np.empty(ROWS)
    sums, product = np.zeros(last + 1), np.ones(last + 1)  # of each label; logarithms are taken of products
    for start in range(0, len(latent), ROWS):
        some = slice(start, min(start + ROWS, len(latent)))
        own, z, r = label_codes[some], latent[some], residual[some]
        n = 0
        for i in range(len(z)):
            rows[n] = i
            n += touched[own[i]]
        for j in range(n):
            effects[j] = np.float64(z[rows[j]]) - np.float64(r[rows[j]])
        for j in range(n):
            k, f = own[rows[j]], effects[j]
            now = cdf((bounds[k + 1] - f) / sd, phi) - cdf((bounds[k] - f) / sd, phi)
            then = cdf((moved[k + 1] - f) / sd, phi) - cdf((moved[k] - f) / sd, phi)
            ratios[j] = max(then, 1e-12) / max(now, 1e-12)
        if weights is not None:
            for j in range(n):
                w = weights[start + rows[j]]
                if w != 1:
                    sums[own[rows[j]]] += w * math.log(ratios[j])
                    ratios[j] = 1.0
        for j in range(n):
            product[own[rows[j]]] *= ratios[j]
            if j % 16 == 15 or j == n - 1:  # before a product leaves the range of numbers
                for k in range(last + 1):
                    sums[k] += math.log(product[k])
                    product[k] = 1.0
    gains = np.zeros(last)
    for at in range(last):
        if proposed[at] != cuts[at]:
            gains[at] = sums[at] + sums[at + 1]
    return gains


# predictions


@njit(cache=True, **FAST)
def add_pulls(sources, source_of, asked, joins, indptr, tokens, itself, clusters, targets, cells, out):
    """Add what a layer pulls at every row that is asked.

    Equivalent to ``(Σ_j cells[clusters[j], c] + joining) / √(basket size)`` with c = targets[asked]; where a target
    joins, it counts as one more token of the basket (an average one where it is unknown). Where a source is its own
    only token (``itself``) and unknown (−1), the last row of the cells stands for it.
    """
    last, width = cells.shape[0] - 1, cells.shape[1]
    pulls = np.zeros((len(sources), width), f4)
    sizes = np.zeros(len(sources), f4)
    for i in range(len(sources)):
        x = sources[i]
        if itself:
            k = last if x < 0 else np.int64(clusters[x])
            for c in range(width):
                pulls[i, c] = cells[k, c]
            sizes[i] = 1
        elif x >= 0:
            for p in range(indptr[x], indptr[x + 1]):
                k = clusters[tokens[p]]
                for c in range(width):
                    pulls[i, c] += cells[k, c]
            sizes[i] = indptr[x + 1] - indptr[x]
    for e in range(len(source_of)):
        i, c = source_of[e], targets[asked[e]]
        pull, size = pulls[i, c], sizes[i]
        if joins[e]:
            pull += cells[last if asked[e] == len(clusters) else np.int64(clusters[asked[e]]), c]
            size += f4(1)
        if size > 0:
            out[e] += pull / math.sqrt(size)


@njit(cache=True, **FAST)
def add_products(left, right, out):
    """Equivalent to ``out += einsum("er,er->e", left, right)`` of rows ``left = (table, at)`` and ``right``."""
    (first, i), (second, j) = left, right
    for e in range(len(out)):
        a, b, total = first[i[e]], second[j[e]], f4(0)
        for r in range(first.shape[1]):
            total += a[r] * b[r]
        out[e] += total


@njit(cache=True, **FAST)
def add_below(effects, sd, cuts, phi, below):
    """Equivalent to ``below += ndtr((cuts - effects[:, None]) / sd[:, None])``."""
    for e in range(len(effects)):
        for k in range(len(cuts)):
            below[e, k] += cdf((cuts[k] - effects[e]) / sd[e], phi)
