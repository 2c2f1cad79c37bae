"""Divergences and their inverses, entropies, Shtarkov sums, and the law of a sum of coins. All in nats."""

from __future__ import annotations

from math import exp, inf, log, log1p
from typing import overload

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln, xlogy

from gingham.arrays import Floats
from gingham.errors import GinghamError

_HALVINGS = 70  # of an interval of length at most 1: far below the spacing of floats near 1


def entropy(p: Floats, axis: int = -1) -> Floats:
    """H(p) = −Σ p ln p along one axis."""
    return -xlogy(p, p).sum(axis=axis)


def information(assign: Floats) -> float:
    """n Ī(X; C) = Σ_x Σ_c q(c|x) ln [q(c|x)/qbar(c)], items weighted uniformly. Assignments are (n, m)."""
    mass = assign.mean(axis=0)
    return max(0.0, float(xlogy(assign, assign).sum() - len(assign) * xlogy(mass, mass).sum()))


def relative_entropy(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """KL(p‖q) = Σ p ln (p/q) of two distributions on one finite set; infinite where q misses p."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if (q[p > 0] <= 0).any():
        return inf
    return max(0.0, float((xlogy(p, p) - xlogy(p, np.where(p > 0, q, 1.0))).sum()))


@overload
def kl(p: float, q: float) -> float: ...
@overload
def kl(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats: ...
def kl(p: npt.ArrayLike, q: npt.ArrayLike) -> float | Floats:
    """Divergence of two coins, kl(p‖q) = p ln (p/q) + (1 − p) ln ((1 − p)/(1 − q))."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    result = _kl_at(p, q - p)
    return float(result) if result.ndim == 0 else result


def _kl_at(p: Floats, gap: Floats) -> Floats:
    """kl(p‖p + gap). Taking the gap, not q, keeps the inverse exact when the two coins are close."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        head = np.where(p > 0, -p * np.log1p(np.clip(gap / p, -1.0, 1e300)), 0.0)
        tail = np.where(p < 1, -(1 - p) * np.log1p(np.clip(-gap / (1 - p), -1.0, 1e300)), 0.0)
    return np.maximum(head + tail, 0.0)


@overload
def kl_upper(p: float, epsilon: float) -> float: ...
@overload
def kl_upper(p: npt.ArrayLike, epsilon: npt.ArrayLike) -> Floats: ...
def kl_upper(p: npt.ArrayLike, epsilon: npt.ArrayLike) -> float | Floats:
    """max {q ≥ p : kl(p‖q) ≤ ε}, the inverse of P0 eq. (4); never rounded below the true value.

    Parameters
    ----------
    p : float or ndarray in [0, 1]
    epsilon : float or ndarray ≥ 0, may be infinite
    """
    return _kl_inverse(p, epsilon, +1)


def _kl_number(p: float, gap: float) -> float:
    """kl(p‖p + gap) of two numbers, many times faster than on arrays."""
    up = gap / p if p > 0 else 0.0
    down = -gap / (1 - p) if p < 1 else 0.0
    if up <= -1 or down <= -1:
        return inf
    return max(-p * log1p(min(up, 1e300)) - (1 - p) * log1p(min(down, 1e300)), 0.0)


@overload
def kl_lower(p: float, epsilon: float) -> float: ...
@overload
def kl_lower(p: npt.ArrayLike, epsilon: npt.ArrayLike) -> Floats: ...
def kl_lower(p: npt.ArrayLike, epsilon: npt.ArrayLike) -> float | Floats:
    """min {q ≤ p : kl(p‖q) ≤ ε}; never rounded above the true value."""
    return _kl_inverse(p, epsilon, -1)


def _kl_inverse(p: npt.ArrayLike, epsilon: npt.ArrayLike, sign: int) -> float | Floats:
    if np.ndim(p) == 0 and np.ndim(epsilon) == 0:
        return _kl_inverse_number(float(p), float(epsilon), sign)  # type: ignore[arg-type]  # both are numbers
    p, epsilon = np.broadcast_arrays(np.asarray(p, np.float64), np.asarray(epsilon, np.float64))
    if p.size <= 4:  # number by number is faster
        each = [_kl_inverse_number(float(a), float(b), sign) for a, b in zip(p.ravel(), epsilon.ravel())]
        return np.array(each).reshape(p.shape)
    _check_inverse(bool(((p >= 0) & (p <= 1)).all()), bool((epsilon >= 0).all()))
    inside = np.zeros(p.shape)  # a gap that the ball surely contains
    outside = np.where(sign > 0, 1 - p, p)  # one beyond which it does not reach
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        fits = _kl_at(p, sign * middle) <= epsilon
        inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
    result = np.clip(p + sign * outside, 0.0, 1.0)
    return float(result) if result.ndim == 0 else result


def _kl_inverse_number(p: float, epsilon: float, sign: int) -> float:
    _check_inverse(0 <= p <= 1, epsilon >= 0)
    inside, outside = 0.0, 1 - p if sign > 0 else p
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if _kl_number(p, sign * middle) <= epsilon:
            inside = middle
        else:
            outside = middle
    return min(max(p + sign * outside, 0.0), 1.0)


def _check_inverse(p_fits: bool, epsilon_fits: bool) -> None:
    if not p_fits:
        raise GinghamError("kl_upper and kl_lower need p between 0 and 1.")
    if not epsilon_fits:
        raise GinghamError("kl_upper and kl_lower need ε ≥ 0.")


def ball_maximum(weights: Floats, values: Floats, epsilon: float, ceiling: float | None = None) -> float:
    """sup {Σ p v : KL(p̂‖p) ≤ ε} = min_{ν ≥ max v} ν − e^{−ε} exp(Σ p̂ ln(ν − v)).

    Every ν ≥ ``ceiling`` (max v by default) gives a valid upper bound, so an inexact minimum is safe.

    Parameters
    ----------
    weights : ndarray of shape (K,)
        p̂.
    values : ndarray of shape (K,)
        v; include values that p̂ never takes, for p may take them.
    """
    weights, values = np.asarray(weights, np.float64), np.asarray(values, np.float64)
    top = float(values.max()) if ceiling is None else ceiling
    width = top - float(values.min())
    if width <= 0 or not np.isfinite(epsilon):
        return top
    seen = weights > 0
    weights, gaps = weights[seen], top - values[seen]

    def dual(excess: Floats) -> Floats:
        """ν − e^{−ε} exp(Σ p̂ ln(ν − v)) at ν = top + excess."""
        with np.errstate(divide="ignore"):
            return top + excess - np.exp(np.log(excess[:, None] + gaps[None, :]) @ weights - epsilon)

    # The dual is convex in ν: scan on a logarithmic scale, then close in on the best point.
    scan = np.concatenate([[0.0], width * np.geomspace(1e-12, 1e6, 55)])
    for _ in range(9):
        costs = np.nan_to_num(dual(scan), nan=top)
        best = int(np.argmin(costs))
        value = float(costs[best])
        scan = np.linspace(scan[max(best - 1, 0)], scan[min(best + 1, len(scan) - 1)], 17)
    return min(value, top)


def ball_maxima(weights: Floats, values: Floats, epsilon: float) -> Floats:
    """`ball_maximum` of every row of ``values`` (S, K), shape (S,)."""
    weights, values = np.asarray(weights, np.float64), np.asarray(values, np.float64)
    at_once = max(1, 2_000_000 // (56 * max(values.shape[1], 1)))
    if len(values) > at_once:
        parts = [values[i : i + at_once] for i in range(0, len(values), at_once)]
        return np.concatenate([ball_maxima(weights, part, epsilon) for part in parts])
    top = values.max(axis=1)
    width = top - values.min(axis=1)
    if not np.isfinite(epsilon):
        return np.asarray(top)
    seen = weights > 0
    gaps = (top[:, None] - values[:, seen])[:, None, :]
    scan = width[:, None] * np.concatenate([[0.0], np.geomspace(1e-12, 1e6, 55)])
    steps, rows, value = np.linspace(0.0, 1.0, 17), np.arange(len(values)), top
    for _ in range(9):
        with np.errstate(divide="ignore"):
            inner = np.exp(np.log(scan[:, :, None] + gaps) @ weights[seen] - epsilon)
        costs = np.nan_to_num(top[:, None] + scan - inner, nan=np.inf)
        best = costs.argmin(axis=1)
        value = costs[rows, best]
        low, high = scan[rows, np.maximum(best - 1, 0)], scan[rows, np.minimum(best + 1, scan.shape[1] - 1)]
        scan = low[:, None] + (high - low)[:, None] * steps
    return np.asarray(np.where(width > 0, np.minimum(value, top), top))


def ln_xi(n: int) -> float:
    """ln ξ(N), ξ(N) = Σ_k C(N, k) (k/N)^k (1 − k/N)^{N−k}: Maurer's exact constant for ½ ln 4N.

    The sum equals Σ_k Π_{j<k} (1 − j/N) (one plus Ramanujan's Q), whose terms fall like e^{−k²/2N},
    so about 9√N terms suffice; the rest is bounded by a geometric series and included.
    """
    n = whole(n)
    last = min(n, int(9.0 * n**0.5) + 10)
    steps = np.log1p(-np.arange(1, last) / n) if last > 1 else np.zeros(0)
    terms = np.exp(np.concatenate([[0.0, 0.0], np.cumsum(steps)]))  # k = 0, 1, …, last
    rest = 0.0 if last >= n else float(terms[-1]) * (n / last)
    return log(float(terms.sum()) + rest)


def ln_shtarkov(size: int, n: int) -> float:
    """ln C(K, N) = ln Σ_{types of N symbols} multinomial · Π (k_i/N)^{k_i} ≥ ln E e^{N KL(p̂‖p)}.

    C(1) = 1, C(2) = ξ(N), C(k + 2) = C(k + 1) + (N/k) C(k), carried on as ratios. P0's Theorem 3 has
    (K − 1) ln(N + 1) in its place.
    """
    n = whole(n)
    if size < 1:
        raise GinghamError(f"A distribution needs at least one value, not {size}.")
    if size == 1:
        return 0.0
    total = ln_xi(n)
    ratio = exp(total)
    for k in range(1, size - 1):
        ratio = 1.0 + n / (k * ratio)
        total += log(ratio)
    return total


def poisson_binomial(probabilities: Floats) -> Floats:
    """Laws of sums of independent coins, by divide and conquer.

    Parameters
    ----------
    probabilities : ndarray of shape (n, m)
        Column c holds the success probabilities of the n coins of sum c.

    Returns
    -------
    ndarray of shape (m, n + 1)
        Row c: P(N_c = 0), …, P(N_c = n).
    """
    q = np.asarray(probabilities, dtype=np.float64)
    n, m = q.shape
    if n == 0:
        return np.ones((m, 1))
    block = 32  # coins put together one by one; longer sums are convolved in pairs by Fourier transform
    n_blocks = 1 << max(0, (-(-n // block) - 1).bit_length())
    padded = np.zeros((n_blocks * block, m))
    padded[:n] = q
    coins = padded.reshape(n_blocks, block, m).transpose(1, 2, 0)[..., None]  # (block, m, n_blocks, 1)
    laws = np.zeros((m, n_blocks, block + 1))
    laws[..., 0] = 1.0
    for j in range(block):
        moved = coins[j] * laws[..., :-1]
        laws *= 1 - coins[j]
        laws[..., 1:] += moved
    while laws.shape[1] > 1:
        length = 2 * (laws.shape[2] - 1)  # highest count of a pair
        period = next_fast_len(length + 1, real=True)
        spectrum = rfft(laws, n=period, axis=2)
        laws = irfft(spectrum[:, 0::2] * spectrum[:, 1::2], n=period, axis=2)[..., : length + 1]
        np.maximum(laws, 0.0, out=laws)
        # High counts that are out of reach, and the transform's noise there, are cut off. That makes
        # E ln N! smaller and the divergence larger, never the other way round.
        reachable = np.flatnonzero(laws.max(axis=(0, 1)) > 1e-14)
        laws = laws[..., : reachable[-1] + 1]
    width = min(laws.shape[2], n + 1)
    result: Floats = np.zeros((m, n + 1))
    result[:, :width] = laws[:, 0, :width]
    return result / np.maximum(result.sum(axis=1, keepdims=True), 1.0)


def expected_log_factorials(assign: Floats) -> Floats:
    """E ln N_c! for each cluster, N_c the number of items drawn into it, Poisson-binomial(q(c|·)).

    Parameters
    ----------
    assign : ndarray of shape (n, m)

    Returns
    -------
    ndarray of shape (m,)
    """
    q = np.asarray(assign, dtype=np.float64)
    m = q.shape[1]
    result = np.empty(m)
    certain = q == 1.0
    uncertain = (q > 0.0) & ~certain
    n_sure, n_open = certain.sum(axis=0), uncertain.sum(axis=0)
    # Clusters of about equal support go together, so that hard posteriors cost nothing.
    order = np.argsort(n_open, kind="stable")
    start = 0
    while start < m:
        longest = int(n_open[order[start]])
        stop = start + 1
        while stop < m and n_open[order[stop]] <= max(64, 1.3 * longest) and stop - start < 64:
            stop += 1
        group = order[start:stop]
        depth = int(n_open[group].max())
        coins = np.zeros((depth, len(group)))
        for j, c in enumerate(group):
            coins[: n_open[c], j] = q[uncertain[:, c], c]
        counts = n_sure[group][:, None] + np.arange(depth + 1)[None, :]
        result[group] = (poisson_binomial(coins) * gammaln(counts + 1.0)).sum(axis=1)
        start = stop
    return result


def log_binomial(n: float, k: float) -> float:
    """ln C(n, k)."""
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def whole(n: float) -> int:
    """A sample size as a whole number of at least one."""
    if not (float(n).is_integer() and n >= 1):
        raise GinghamError(f"A certificate needs a whole number of at least one tuple, not N={n}.")
    return int(n)
