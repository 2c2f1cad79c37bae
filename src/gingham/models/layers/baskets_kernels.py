"""The draws of basket layers in numba: one pass over the rows a layer, one over its baskets. One thread a chain.

`gingham.models.layers.baskets_reference` has the same draws in plain numpy, and says what they are. Here

* rows are grouped by target, so residuals and codes of sources are read in order, and what a layer has to take out of
  the residuals is taken out while the next layer reads them;
* clusters are padded to multiples of four, tables are flat and indices unsigned (a signed index is first compared with
  zero), and sums over the rows of a target stay in registers;
* random numbers come from outside.

A source's row in ``table`` holds what the layer before pulls at each cluster of targets, then what this layer does; its
row in ``stats`` holds Σ w and Σ w r of its rows by the cluster of their targets.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import ndtr

FAST = {"nogil": True, "boundscheck": False, "error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}}
f4, u8 = np.float32, np.uint64
LOWEST = np.float32(-1e30)  # log share of a cluster that is only padding

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
    q = p - 0.5
    r = q * q
    above = (-3.969683028665376e01 * r + 2.209460984245205e02) * r - 2.759285104469687e02
    above = ((above * r + 1.383577518672690e02) * r - 3.066479806614716e01) * r + 2.506628277459239
    below = (-5.447609879822406e01 * r + 1.615858368580409e02) * r - 1.556989798598866e02
    below = ((below * r + 6.680131188771972e01) * r - 1.328068155288572e01) * r + 1.0
    return above * q / below


@njit(inline="always", **FAST)
def pick(scores, uniform):
    """A cluster by its log weights, which are overwritten. Equivalent to inverting the cumulated weights."""
    top = scores[0]
    for k in range(1, len(scores)):
        top = max(top, scores[k])
    total = f4(0)
    for k in range(len(scores)):
        scores[k] = math.exp(scores[k] - top)
        total += scores[k]
    left = uniform * total
    k = 0
    while k < len(scores) - 1 and left > scores[k]:
        left -= scores[k]
        k += 1
    return k


# a layer


@njit(**FAST)
def draw_targets(
    indptr, sources, residual, weights, table, before, labels, log_share, precision, uniforms, stats
):  # fmt: skip
    """Draw every target's cluster; the residuals are left without this layer, ``stats`` are those of the new clusters.

    P(c(q) = k) ∝ exp(log_share_k + ½ precision Σ_e w g_xk (2r − g_xk)), r the residual without this layer.

    Equivalent to ``residual += now[x, labels[q]] - before[x, before[q]]; labels = picks; stats = bincounts``.

    Parameters
    ----------
    sources : (N,) uint32, rows grouped by target
    weights : (N,) float32, or None
    table : (n_sources · 2W,) float32
    before : (n_targets,) uint8, the targets' clusters in the layer before
    stats : (n_sources · 2W,) float32, written
    """
    width = len(log_share)
    row = u8(2 * width)
    scores = np.empty(width, f4)
    half = f4(0.5 * precision)
    stats[:] = 0
    for q in range(len(indptr) - 1):
        start, stop = u8(indptr[q]), u8(indptr[q + 1])
        last, old = u8(before[q]), u8(labels[q]) + u8(width)
        for block in range(0, width, 4):
            lane = u8(width + block)
            s0, s1, s2, s3 = f4(0), f4(0), f4(0), f4(0)
            e = start
            while e < stop:
                x = u8(sources[e]) * row
                if block == 0:
                    r = residual[e] - table[x + last] + table[x + old]
                    residual[e] = r
                else:
                    r = residual[e]
                r = r + r
                g0, g1 = table[x + lane], table[x + lane + u8(1)]
                g2, g3 = table[x + lane + u8(2)], table[x + lane + u8(3)]
                if weights is None:
                    s0 += g0 * (r - g0)
                    s1 += g1 * (r - g1)
                    s2 += g2 * (r - g2)
                    s3 += g3 * (r - g3)
                else:
                    w = weights[e]
                    s0 += w * g0 * (r - g0)
                    s1 += w * g1 * (r - g1)
                    s2 += w * g2 * (r - g2)
                    s3 += w * g3 * (r - g3)
                e += u8(1)
            scores[block] = log_share[block] + half * s0
            scores[block + 1] = log_share[block + 1] + half * s1
            scores[block + 2] = log_share[block + 2] + half * s2
            scores[block + 3] = log_share[block + 3] + half * s3
        k = pick(scores, uniforms[q])
        labels[q] = k
        e = start
        while e < stop:
            at = u8(sources[e]) * row + u8(k)
            if weights is None:
                stats[at] += f4(1)
                stats[at + u8(width)] += residual[e]
            else:
                stats[at] += weights[e]
                stats[at + u8(width)] += weights[e] * residual[e]
            e += u8(1)


@njit(**FAST)
def take_out(indptr, sources, residual, table, width, labels):
    """What a layer pulls, in the first half of the table's rows, leaves the residuals.

    Equivalent to ``residual -= table.reshape(-1, 2 * width)[sources, labels[target]]``.
    """
    row = u8(2 * width)
    for q in range(len(indptr) - 1):
        k = u8(labels[q])
        e, stop = u8(indptr[q]), u8(indptr[q + 1])
        while e < stop:
            residual[e] -= table[u8(sources[e]) * row + k]
            e += u8(1)


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
def draw_cells(contents, scale, tokens, stats, precision, variance, normals, cells):
    """Every column of the cells from its normal law, of precision·Σ_x n_xc p pᵀ + 1/variance with p = scale·contents.

    ``normals`` (target clusters, token clusters) are not padded; padding of ``cells`` stays as it is.
    """
    m_target, m_token = normals.shape
    width = cells.shape[1]
    itself = len(contents) == 0
    squares = np.zeros((m_token, m_token, m_target))
    sums = np.zeros((m_token, m_target))
    for x in range(len(scale)):
        at = u8(2 * width) * u8(x)
        if itself:
            a = tokens[x]
            for c in range(m_target):
                squares[a, a, c] += stats[at + u8(c)]
                sums[a, c] += stats[at + u8(width + c)]
            continue
        for a in range(m_token):
            v = np.float64(scale[x] * contents[x, a])
            if v == 0:
                continue
            for c in range(m_target):
                sums[a, c] += v * stats[at + u8(width + c)]
            for b in range(a + 1):
                vb = v * np.float64(scale[x] * contents[x, b])
                if vb != 0:
                    for c in range(m_target):
                        squares[a, b, c] += vb * stats[at + u8(c)]
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


@njit(**FAST)
def draw_tokens(indptr, holders, contents, scale, stats, table, cells, precision, log_share, uniforms, work, labels):
    """Draw the cluster of every token, one after the other; contents of baskets follow.

    P(d(j) = k) ∝ exp(log_share_k + ½ precision Σ_c D_c (2B_c − A_c D_c)), D = G_k − G_old, A = Σ_x a² n_x and
    B = Σ_x a (S − n g)_x over the sources x that hold token j. ``work`` keeps a² n and a (S − n g) of every source, the
    latter up to date; ``table`` holds g of these cells in the first half of its rows.
    """
    width, m_token = cells.shape[1], len(log_share)
    row = u8(2 * width)
    itself = len(contents) == 0
    for x in range(len(scale)):
        at, a = row * u8(x), scale[x]
        for c in range(width):
            n, g = stats[at + u8(c)], table[at + u8(c)]
            work[at + u8(c)] = a * a * n
            work[at + u8(width + c)] = a * (stats[at + u8(width + c)] - n * g)
    total = np.empty(2 * width, f4)
    scores = np.empty(m_token, f4)
    half = f4(0.5 * precision)
    for j in range(len(indptr) - 1):
        start, stop = u8(indptr[j]), u8(indptr[j + 1])
        old = labels[j]
        for block in range(0, 2 * width, 8):
            t0, t1, t2, t3, t4, t5, t6, t7 = f4(0), f4(0), f4(0), f4(0), f4(0), f4(0), f4(0), f4(0)
            p = start
            while p < stop:
                at = u8(holders[p]) * row + u8(block)
                t0 += work[at]
                t1 += work[at + u8(1)]
                t2 += work[at + u8(2)]
                t3 += work[at + u8(3)]
                t4 += work[at + u8(4)]
                t5 += work[at + u8(5)]
                t6 += work[at + u8(6)]
                t7 += work[at + u8(7)]
                p += u8(1)
            total[block], total[block + 1], total[block + 2], total[block + 3] = t0, t1, t2, t3
            total[block + 4], total[block + 5], total[block + 6], total[block + 7] = t4, t5, t6, t7
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
        p = start
        while p < stop:
            x = u8(holders[p])
            contents[x, old] -= f4(1)
            contents[x, k] += f4(1)
            at = x * row
            for c in range(width):
                v = cells[k, c] - cells[old, c]
                work[at + u8(width + c)] -= work[at + u8(c)] * v
            p += u8(1)


@njit(cache=True, **FAST)
def draw_layer(
    indptr, sources, residual, weights, table, before, labels, precision, target_share, target_uniforms, stats,
    token_indptr, holders, contents, scale, tokens, token_share, token_uniforms, variance, normals, cells, work,
):  # fmt: skip
    """A layer's targets, cells, tokens and cells again.

    The residuals are left without this layer, and what it pulls stands in the first half of the table's rows.
    """
    fill(contents, scale, tokens, cells, table, 1)
    draw_targets(
        indptr, sources, residual, weights, table, before, labels, target_share, precision, target_uniforms, stats
    )
    draw_cells(contents, scale, tokens, stats, precision, variance, normals[0], cells)
    fill(contents, scale, tokens, cells, table, 0)
    draw_tokens(
        token_indptr,
        holders,
        contents,
        scale,
        stats,
        table,
        cells,
        precision,
        token_share,
        token_uniforms,
        work,
        tokens,
    )
    draw_cells(contents, scale, tokens, stats, precision, variance, normals[1], cells)
    fill(contents, scale, tokens, cells, table, 0)


@njit(cache=True, **FAST)
def finish_layers(indptr, sources, residual, table, width, labels):
    """After the last layer of a mode: what it pulls leaves the residuals."""
    take_out(indptr, sources, residual, table, width, labels)


# offsets, latent answers, cut points


@njit(cache=True, **FAST)
def draw_offsets(indptr, residual, weights, precision, prior_precision, normals, offsets):
    """Offsets of groups of neighbouring rows; the residuals follow.

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


@njit(cache=True, **FAST)
def draw_latent(letters, latent, residual, weights, sd, cuts, uniforms, phi):
    """Latent answers between the cut points of their labels; the effect, latent − residual, stays.

    Equivalent to ``ndtri(ndtr(low) + (ndtr(high) - ndtr(low)) * uniforms)``, moved to the mean by √w under weights.
    """
    last = len(cuts)
    for e in range(len(latent)):
        k = letters[e]
        f = np.float64(latent[e]) - np.float64(residual[e])
        low = (cuts[k - 1] - f) / sd if k > 0 else -9.0
        high = (cuts[k] - f) / sd if k < last else 9.0
        below = cdf(low, phi) if k > 0 else 0.0
        above = cdf(high, phi) if k < last else 1.0
        p = below + (above - below) * np.float64(uniforms[e])
        z = ppf(min(max(p, 1e-10), 1.0 - 1e-10))
        if weights is not None:
            slopes = (math.exp(-0.5 * low * low) if k > 0 else 0.0) - (
                math.exp(-0.5 * high * high) if k < last else 0.0
            )
            middle = slopes / math.sqrt(2.0 * math.pi) / max(above - below, 1e-12)
            z = middle + (z - middle) / math.sqrt(weights[e])
        residual[e] = f4(sd * z)
        latent[e] = f4(f + sd * z)


@njit(cache=True, **FAST)
def cut_gains(letters, latent, residual, weights, sd, cuts, proposed, phi):
    """Σ_e w ln P(y | proposed)/P(y | cuts) for each cut that moves, (K − 1,); no two neighbours may move at a time."""
    last = len(cuts)
    gains = np.zeros(last)
    product = np.ones(last)  # of ratios; its logarithm is taken before it leaves the range of numbers
    for e in range(len(latent)):
        k = letters[e]
        if k < last and proposed[k] != cuts[k]:
            at, own, new, other = k, cuts[k], proposed[k], (cuts[k - 1] if k > 0 else -math.inf)
            sign = 1.0
        elif k > 0 and proposed[k - 1] != cuts[k - 1]:
            at, own, new, other = k - 1, cuts[k - 1], proposed[k - 1], (cuts[k] if k < last else math.inf)
            sign = -1.0
        else:
            continue
        f = np.float64(latent[e]) - np.float64(residual[e])
        if other == -math.inf:
            edge = 0.0
        elif other == math.inf:
            edge = 1.0
        else:
            edge = cdf((other - f) / sd, phi)
        ratio = max(sign * (cdf((new - f) / sd, phi) - edge), 1e-12) / max(
            sign * (cdf((own - f) / sd, phi) - edge), 1e-12
        )
        if weights is None:
            product[at] *= ratio
            if not 1e-100 < product[at] < 1e100:
                gains[at] += math.log(product[at])
                product[at] = 1.0
        else:
            gains[at] += weights[e] * math.log(ratio)
    for at in range(last):
        gains[at] += math.log(product[at])
    return gains


# predictions


@njit(cache=True, **FAST)
def add_pulls(sources, source_of, asked, joins, indptr, tokens, itself, clusters, targets, cells, out):
    """Add what a layer pulls at every row that is asked.

    Equivalent to ``(Σ_j cells[clusters[j], c] + joining) / √(basket size)`` with c = targets[asked]; where a target
    joins, it counts as one more token of the basket. Where a source is its own only token (``itself``) and unknown (−1), the
    last row of the cells stands for it.
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
            pull += cells[clusters[asked[e]], c]
            size += f4(1)
        if size > 0:
            out[e] += pull / math.sqrt(size)


@njit(cache=True, **FAST)
def add_below(effects, sd, cuts, phi, below):
    """Equivalent to ``below += ndtr((cuts - effects[:, None]) / sd[:, None])``."""
    for e in range(len(effects)):
        for k in range(len(cuts)):
            below[e, k] += cdf((cuts[k] - effects[e]) / sd[e], phi)
