"""The papers' statements that nobody would certify with, reproduced: what the coverage study measures.

P0: Seldin and Tishby 2010. P3: Pelckmans and Hardoon.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from gingham.arrays import Floats
from gingham.certificates.bounds import whole
from gingham.certificates.divergence import kl_upper
from gingham.certificates.papers import Statement, renyi
from gingham.certificates.prices import partition_papers
from gingham.errors import RefusedCertificate


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
