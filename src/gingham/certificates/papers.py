"""The papers' own statements, each with its terms and corrections.

P0: Seldin and Tishby 2010. P1: Seldin 2010 (graphs). P3: Pelckmans and Hardoon. P4: Krupka and Tishby 2005. P0's
Theorems 1, 7 and 13 and the tree bound (51) are certificates like any other (``bounds``); Theorems 11 and 12 and (31)
are reproduced in benchmarks/papers/statements.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil, exp, inf, log, sqrt

import numpy as np

from gingham.arrays import Floats
from gingham.certificates.bounds import log_inverse, whole
from gingham.certificates.divergence import entropy, kl_upper
from gingham.errors import GinghamError


@dataclass(frozen=True)
class Statement:
    """A bound as printed in a paper."""

    value: float
    terms: Mapping[str, float] = field(default_factory=dict)
    reference: str = ""
    caveat: str = ""  # what to keep in mind; empty when the statement holds as it stands


def theorem2(complexity: float, size: int, n: int, delta: float) -> Statement:
    """P0 Theorem 2: KL(p̂_Q(z)‖p_Q(z)) ≤ ε = [KL + (|Z| − 1) ln(N + 1) + ln 1/δ]/N."""
    n = whole(n)
    terms = {"KL(Q‖P)": complexity, "(|Z|-1)·ln(N+1)": (size - 1) * log(n + 1), "ln 1/δ": log_inverse(delta)}
    return Statement(sum(terms.values()) / n, terms, "P0 Theorem 2, eq. (2)")


def theorem5(size: int, n: int, delta: float) -> Statement:
    """P0 Theorem 5 (distribution of large numbers): KL(p̂‖p) ≤ ε = [(|X| − 1) ln(N + 1) + ln 1/δ]/N."""
    return replace(theorem2(0.0, size, n, delta), reference="P0 Theorem 5")


def psi(epsilon: float) -> float:
    """ψ(ε) = √(ε/2) ln[(1 + √(ε/2))/√(ε/2)] (P0 Theorem 6)."""
    root = sqrt(epsilon / 2)
    return root * log((1 + root) / root) if root > 0 else 0.0


def phi(epsilon: float) -> float:
    """φ(ε) = ψ(ε) + ln(1 + √(ε/2)) (P0 Theorem 6)."""
    return psi(epsilon) + log(1 + sqrt(epsilon / 2))


@dataclass(frozen=True)
class Smoothed:
    """What P0's Theorem 6 says of a smoothed distribution."""

    gamma: float
    upper: float
    lower: float


def theorem6(p_hat: Floats, epsilon: float) -> Smoothed:
    """P0 Theorem 6: with γ = √(ε/2)/|Z| the code length of the smoothed p̂ lies within (16) and (15).

    Read under KL(p̂‖p) ≤ ε for the distribution itself (or E_Q KL(p̂_h‖p_h) ≤ ε for (14)).
    """
    root = sqrt(epsilon / 2)
    size = len(p_hat)
    h = float(entropy(np.asarray(p_hat, dtype=np.float64)))
    upper = h + root * log(size) + phi(epsilon)
    lower = h - root * log(size) - psi(epsilon)
    return Smoothed(root / size, upper, lower)


def renyi(posterior: Floats, prior: Floats) -> float:
    """P3 Proposition 1: ln Σ Q²/P, which is never below KL(Q‖P) (the Rényi divergence of order 2)."""
    q, p = np.asarray(posterior, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if (p[q > 0] <= 0).any():
        return inf
    return log(float((q[q > 0] ** 2 / p[q > 0]).sum()))


def quantised(
    loss: float, partitions: float, n_cells: int, n: int, delta: float, step: float | None = None, labels: bool = True
) -> Statement:
    """P0 appendix B (``labels``: the labels are rounded too) or P1 eq. (15): quadratic loss in [0, 1].

    Parameters
    ----------
    loss : float
        L̂(Q) of the answers before rounding.
    partitions : float
        Σ_i (n_i Ī_i + m_i ln n_i), nats.
    n_cells : int
        M (P0), |C|² (P1).
    step : float
        Δ; the papers' rule of thumb 5M/N by default.
    """
    n = whole(n)
    step = min(5 * n_cells / n, 1.0) if step is None else step
    if not 0 < step <= 1:
        raise GinghamError(f"step={step} must lie in (0, 1].")
    correction = 2 * step + step**2 if labels else step + step**2 / 4
    terms = {
        "partitions": partitions,
        "answers -M·ln Δ": -n_cells * log(step),
        "½·ln 4N": 0.5 * log(4 * n),
        "ln 1/δ": log_inverse(delta),
    }
    value = kl_upper(min(loss + correction, 1.0), sum(terms.values()) / n) + correction
    name = "P0 appendix B" if labels else "P1 eq. (15)"
    return Statement(min(value, 1.0), {**terms, "correction (loss units)": correction}, name)


def lemma1(n_features: int, n_instances: int, n_clusters: int, delta: float) -> Statement:
    """P4 Lemma 1: |I_ob − I_un| ≤ ε for all clusterings, ε = ln k √((m ln k + ln 2/δ)/(2n))."""
    width = log(n_clusters)
    terms = {"m·ln k": n_instances * width, "ln 2/δ": log(2) + log_inverse(delta)}
    return Statement(width * sqrt(sum(terms.values()) / (2 * n_features)), terms, "P4 Lemma 1")


def p4_theorem1(n_features: int, n_clusters: int, alphabet: int, delta: float, missing: bool = False) -> Statement:
    """P4 Theorem 1: the smallest ε with 8 ln k · exp(−nε²/(8 ln²k) + m' ln k)/ε ≤ δ, m' = ⌈4 k|X|/ε⌉.

    m' must be whole, so it is rounded up (the paper does not). With missing values k|X| becomes
    k(|X| + 1) + 2k in the bias step.
    """
    return _p4(n_features, n_clusters, alphabet, delta, missing, 1.0, "P4 Theorem 1")


def p4_theorem2(n_features: int, n_clusters: int, alphabet: int, delta: float, missing: bool = False) -> Statement:
    """P4 Theorem 2: IobMax is within ε of the best clustering's unobserved information; Theorem 1 at ε/2."""
    return _p4(n_features, n_clusters, alphabet, delta, missing, 2.0, "P4 Theorem 2")


def _p4(n: int, k: int, alphabet: int, delta: float, missing: bool, factor: float, name: str) -> Statement:
    most = -log_inverse(delta)  # of the log of the failure probability
    if k < 2:
        return Statement(0.0, {}, name, "One cluster carries no information.")
    width = log(k)
    bias = k * (alphabet + 1) + 2 * k if missing else k * alphabet

    def log_failure(epsilon: float) -> float:
        drawn = ceil(4 * bias / epsilon)
        return log(8 * width) - n * epsilon**2 / (8 * width**2) + drawn * width - log(epsilon)

    low, high = 1e-9, 1.0
    while log_failure(high) > most:
        high *= 2
        if high > 1e9:
            raise GinghamError("No ε satisfies the bound.")  # pragma: no cover - quadratic wins in the end
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if log_failure(middle) <= most else (middle, high)
    value = factor * high
    caveat = f"Empty: information is at most ln {k} = {width:.3g} anyway." if value >= width else ""
    return Statement(
        value, {"drawn instances m'": float(ceil(4 * bias / high)), "δ": exp(log_failure(high))}, name, caveat
    )
