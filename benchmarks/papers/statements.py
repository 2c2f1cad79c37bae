"""The papers' statements that nobody would certify with: what the coverage study measures beside those of the package.

P0: Seldin and Tishby 2010. P3: Pelckmans and Hardoon.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats
from gingham.certificates.bounds import log_inverse, whole
from gingham.certificates.divergence import entropy, kl_upper
from gingham.certificates.papers import Statement, phi, psi, renyi
from gingham.certificates.prices import partition_papers
from gingham.errors import RefusedCertificate


def theorem11(
    assigns: Sequence[Floats], n: int, delta: float, names: Sequence[str] | None = None
) -> tuple[Statement, tuple[Statement, ...]]:
    """P0 Theorem 11, eqs. (28) and (29): radii of the balls around the distributions of cells and of items."""
    n, d = whole(n), len(assigns)
    titles = names or [f"mode {i}" for i in range(d)]
    n_cells = int(np.prod([q.shape[1] for q in assigns]))
    terms: dict[str, float] = {}
    for title, q in zip(titles, assigns):
        terms.update({f"{title}: {name}": nats for name, nats in partition_papers(q).items()})
    terms["(M-1)·ln(N+1)"] = (n_cells - 1) * log(n + 1)
    terms["ln (d+1)/δ"] = log(d + 1) + log_inverse(delta)
    cells = Statement(sum(terms.values()) / n, terms, "P0 Theorem 11, eq. (28)")
    items = []
    for q in assigns:
        own = {"(n-1)·ln(N+1)": (len(q) - 1) * log(n + 1), "ln (d+1)/δ": log(d + 1) + log_inverse(delta)}
        items.append(Statement(sum(own.values()) / n, own, "P0 Theorem 11, eq. (29)"))
    return cells, tuple(items)


def theorem12(
    assigns: Sequence[Floats],
    cells: Floats,
    items: Sequence[Floats],
    n: int,
    delta: float,
    names: Sequence[str] | None = None,
) -> Statement:
    """P0 Theorem 12, eq. (36), for hard posteriors: the code length of the smoothed density, nats.

    Parameters
    ----------
    assigns : arrays (n_i, m_i), every entry 0 or 1
    cells : array (m_1, …, m_d), p̂(c)
    items : arrays (n_i,), p̂(x_i)
    names : of the modes, for the terms; their numbers by default

    For soft posteriors the last inequality of the printed proof is false; use ``certify(bound='density')``.
    """
    if not all(np.isin(q, (0.0, 1.0)).all() for q in assigns):
        raise RefusedCertificate(
            "P0's Theorem 12 does not hold for soft memberships (the last step of its proof is false there). "
            "Harden the posterior, or use certify(bound='density'), which holds for all."
        )
    radius, item_radii = theorem11(assigns, n, delta, names)
    axes = range(cells.ndim)
    marginals = [cells.sum(axis=tuple(j for j in axes if j != i)) for i in axes]
    multi_information = sum(float(entropy(m)) for m in marginals) - float(-xlogy(cells, cells).sum())
    terms = {
        "-I(C1;…;Cd)": -multi_information,
        "ln M·√(ε/2)": log(cells.size) * sqrt(radius.value / 2),
        "φ(ε)": phi(radius.value),
    }
    for title, p, ball in zip(names or [f"mode {i}" for i in axes], items, item_radii):
        terms[f"{title}: H(x)"] = float(entropy(np.asarray(p)))
        terms[f"{title}: 2√(ε/2)·ln n"] = 2 * sqrt(ball.value / 2) * log(len(p))
        terms[f"{title}: φ+ψ"] = phi(ball.value) + psi(ball.value)
    return Statement(
        sum(terms.values()), terms, "P0 Theorem 12, eq. (36)", "Hard posteriors only; the items were fixed beforehand."
    )


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
