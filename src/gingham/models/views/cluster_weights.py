"""How much weight does each given cluster deserve? The quadratic programs of P3 §2.1 and §3.1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gingham.arrays import Bools, Floats
from gingham.errors import GinghamError


def simplex_weights(costs: Floats, prior: Floats, penalty: float) -> Floats:
    """argmin_s penalty·Σ s_j²/(m P_j) + Σ s_j cost_j over s ≥ 0, Σ s = 1: P3 (14), exactly.

    With a uniform prior the first term is penalty·‖s‖²; with another it is the bound of Proposition 1,
    KL(Q‖P) ≤ ln Σ Q²/P. (P3 prints the norm without its square.) The solution is s_j = m P_j (ν − cost_j)₊/(2·penalty)
    with ν such that the weights sum to one; an infinite cost excludes a cluster.

    Parameters
    ----------
    costs : ndarray of shape (m,)
    prior : ndarray of shape (m,)
        P, positive, sum one.
    penalty : float
        Large: near the prior; small: only the cheapest clusters.
    """
    width = len(prior) * prior / (2.0 * penalty)
    order = np.argsort(costs, kind="stable")
    order = order[np.isfinite(costs[order])]
    if not len(order):
        raise GinghamError("No cluster is left to give weight to: lower min_coverage, or allow contradictions.")
    cost, slope = costs[order], width[order]
    levels = (1.0 + np.cumsum(slope * cost)) / np.cumsum(slope)  # ν if the cheapest k clusters have weight
    level = levels[np.flatnonzero(levels > cost)[-1]]
    weights = np.zeros_like(costs)
    weights[order] = slope * np.maximum(level - cost, 0.0)
    return weights / weights.sum()


def contradiction(memberships: Sequence[Bools], every_pair: bool) -> Floats:
    """P̂(f_c(x) ≠ g_c(y)) of every pairwise cluster, P3 (25): the share of objects on which the views disagree.

    One view only: the share of objects outside the cluster. Flattened to (m,), rows of the first view first.
    """
    first = memberships[0]
    if len(memberships) == 1:
        outside: Floats = 1.0 - first.mean(axis=0)
        return outside
    if every_pair:
        a, b = (m.astype(np.float64) for m in memberships)
        table: Floats = (a.sum(axis=0)[:, None] + b.sum(axis=0) - 2.0 * (a.T @ b)) / len(a)
        return np.clip(table, 0.0, 1.0).ravel()
    agree = np.all([m == first for m in memberships[1:]], axis=0)
    apart: Floats = 1.0 - agree.mean(axis=0)
    return apart


def coverage(memberships: Sequence[Bools], every_pair: bool) -> Floats:
    """P̂(f_c = g_c = 1) of every pairwise cluster: the share of objects that it explains in all views."""
    if every_pair and len(memberships) == 2:
        a, b = (m.astype(np.float64) for m in memberships)
        table: Floats = (a.T @ b) / len(a)
        return table.ravel()
    inside: Floats = np.all(np.stack(memberships), axis=0).mean(axis=0)
    return inside
