"""The papers' statements that nobody would certify with, reproduced: what the coverage study measures.

P0: Seldin and Tishby 2010. P3: Pelckmans and Hardoon.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, sqrt

import numpy as np

from gingham.arrays import Floats
from gingham.certificates.bounds import whole
from gingham.certificates.divergence import entropy, kl_upper
from gingham.certificates.papers import Statement, phi, psi
from gingham.certificates.prices import partition_papers
from gingham.errors import RefusedCertificate


def theorem2(complexity: float, size: int, n: int, delta: float) -> Statement:
    """P0 Theorem 2: KL(p̂_Q(z)‖p_Q(z)) ≤ ε = [KL + (|Z| − 1) ln(N + 1) + ln 1/δ]/N."""
    n = whole(n)
    terms = {"KL(Q‖P)": complexity, "(|Z|-1)·ln(N+1)": (size - 1) * log(n + 1), "ln 1/δ": -log(delta)}
    return Statement(sum(terms.values()) / n, terms, "P0 Theorem 2, eq. (2)")


def theorem5(size: int, n: int, delta: float) -> Statement:
    """P0 Theorem 5 (law of large numbers): KL(p̂‖p) ≤ ε = [(|X| − 1) ln(N + 1) + ln 1/δ]/N."""
    return Statement(theorem2(0.0, size, n, delta).value, theorem2(0.0, size, n, delta).terms, "P0 Theorem 5")


@dataclass(frozen=True)
class Smoothed:
    """What P0's Theorem 6 says of a smoothed distribution."""

    gamma: float
    upper: float
    lower: float


def theorem6(p_hat: Floats, epsilon: float) -> Smoothed:
    """P0 Theorem 6: with γ = √(ε/2)/|Z| the code length of the smoothed p̂ lies within (16) and (15).

    Read under KL(p̂‖p) ≤ ε for the law itself (or E_Q KL(p̂_h‖p_h) ≤ ε for (14)).
    """
    root = sqrt(epsilon / 2)
    size = len(p_hat)
    h = float(entropy(np.asarray(p_hat, dtype=np.float64)))
    upper = h + root * log(size) + phi(epsilon)
    lower = h - root * log(size) - psi(epsilon)
    return Smoothed(root / size, upper, lower)


def theorem11_joint(assigns: Sequence[Floats], n: int, delta: float) -> Statement:
    """P0 Theorem 11, eq. (31), as printed. Its proof multiplies expectations of dependent variables."""
    n, d = whole(n), len(assigns)
    n_cells = int(np.prod([q.shape[1] for q in assigns]))
    n_items = sum(len(q) for q in assigns)
    terms = {f"mode {i}": sum(partition_papers(q).values()) for i, q in enumerate(assigns)}
    terms["[M+Σn-d-1]·ln(N+1)"] = (n_cells + n_items - d - 1) * log(n + 1)
    terms["ln 1/δ"] = -log(delta)
    return Statement(
        sum(terms.values()) / n, terms, "P0 Theorem 11, eq. (31)", "The printed proof has a gap: no guarantee."
    )


def renyi(posterior: Floats, prior: Floats) -> float:
    """P3 Proposition 1: ln Σ Q²/P, which is never below KL(Q‖P) (the Rényi divergence of order 2)."""
    q, p = np.asarray(posterior, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    if (p[q > 0] <= 0).any():
        return inf
    return log(float((q[q > 0] ** 2 / p[q > 0]).sum()))


def explanatory_power(weights: Floats, memberships: Floats, prior: Floats, delta: float) -> Statement:
    """P3 Theorem 1 with Proposition 1: an upper bound on E_Q P(X in the drawn cluster).

    Parameters
    ----------
    weights, prior : arrays of shape (K,)
        Q and P over the given clusters.
    memberships : array of shape (n, K)
        Whether (or how much, in [0, 1]) each object belongs to each cluster.
    """
    n = whole(len(memberships))
    if n < 8:
        raise RefusedCertificate("P3's Theorem 1 needs n ≥ 8 objects.")
    empirical = float(np.mean(memberships @ weights))
    terms = {"Rényi ln ΣQ²/P": renyi(weights, prior), "ln 1/δ": -log(delta), "ln 2√n": log(2 * sqrt(n))}
    value = kl_upper(min(max(empirical, 0.0), 1.0), sum(terms.values()) / n)
    return Statement(value, terms, "P3 Theorem 1 with Proposition 1")
