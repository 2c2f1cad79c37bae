"""Divergences, their inverses, and the largest means in their balls. All in nats."""

from __future__ import annotations

from math import inf, log1p

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from gingham.arrays import Floats
from gingham.errors import GinghamError

_HALVINGS = 70  # of an interval of length at most 1: far below the spacing of floats near 1


def entropy(p: Floats, axis: int = -1) -> Floats:
    """H(p) = −Σ p ln p along one axis."""
    return -xlogy(p, p).sum(axis=axis)


def relative_entropy(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """KL(p‖q) = Σ p ln (p/q) of two distributions on one finite set; infinite where q misses p."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if (q[p > 0] <= 0).any():
        return inf
    return max(0.0, float((xlogy(p, p) - xlogy(p, np.where(p > 0, q, 1.0))).sum()))


def kl(p: npt.ArrayLike, q: npt.ArrayLike) -> Floats:
    """Divergence of coins, kl(p‖q) = p ln (p/q) + (1 − p) ln ((1 − p)/(1 − q)), number by number."""
    found: Floats = np.vectorize(_kl_of_gap, otypes=[float])(p, np.subtract(q, p))
    return found[()]


def _kl_of_gap(p: float, gap: float) -> float:
    """kl(p‖p + gap). Taking the gap, not q, keeps the inverse exact when the two coins are close."""
    up = gap / p if p > 0 else 0.0
    down = -gap / (1 - p) if p < 1 else 0.0
    if up <= -1 or down <= -1:
        return inf
    return max(-p * log1p(min(up, 1e300)) - (1 - p) * log1p(min(down, 1e300)), 0.0)


def kl_upper(p: float, epsilon: float) -> float:
    """max {q ≥ p : kl(p‖q) ≤ ε}, the inverse of P0 eq. (4); never rounded below the true value."""
    return _kl_inverse(p, epsilon, +1)


def kl_lower(p: float, epsilon: float) -> float:
    """min {q ≤ p : kl(p‖q) ≤ ε}; never rounded above the true value."""
    return _kl_inverse(p, epsilon, -1)


def _kl_inverse(p: float, epsilon: float, sign: int) -> float:
    if not (0 <= p <= 1 and epsilon >= 0):
        raise GinghamError(f"kl_upper and kl_lower need p between 0 and 1 and ε ≥ 0, not {p} and {epsilon}.")
    inside, outside = 0.0, 1 - p if sign > 0 else p  # gaps that the ball contains, and beyond which it does not reach
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        fits = _kl_of_gap(p, sign * middle) <= epsilon
        inside, outside = (middle, outside) if fits else (inside, middle)
    return min(max(p + sign * outside, 0.0), 1.0)


def ball_maximum(weights: Floats, values: Floats, epsilon: float) -> float:
    """sup {Σ p v : KL(p̂‖p) ≤ ε} = min_{ν ≥ max v} ν − e^{−ε} exp(Σ p̂ ln(ν − v)).

    Every ν ≥ max v gives a valid upper bound, so an inexact minimum is safe.

    Parameters
    ----------
    weights : ndarray of shape (K,)
        p̂.
    values : ndarray of shape (K,)
        v; include values that p̂ never takes, for p may take them.
    """
    return float(ball_maxima(weights, np.asarray(values)[None, :], epsilon)[0])


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
