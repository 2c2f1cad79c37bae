"""Divergences, their inverses, and the largest means in their balls. All in nats."""

from __future__ import annotations

from math import inf, log1p
from typing import overload

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
