"""Item-to-item ridge (EASE) whose prior knows the clusters: items of one cluster are drawn to act alike.

    argmin_B Σ_u w_u |x_u − x_u B|² + tr(B' K⁻¹ B)   with diag(B) = 0,
    K = D^−½ (I + ρ Z Z') D^−½,   D = diag λ_i,   Z the 0/1 table items × clusters.

With G = Σ w_u x_u' x_u and P = (G + K⁻¹)⁻¹ the answer is B = I − P K⁻¹ − P diag(γ), γ_i = (1 − (P K⁻¹)_ii) / P_ii
(γ are the multipliers that keep the diagonal at 0). For ρ = 0 and λ_i = λ, w_u = 1 that is EASE.
"""

from __future__ import annotations

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.models.ranking import device
from gingham.models.ranking.baskets import Baskets, Tables, Taken, membership

USER_WEIGHT = -0.6  # users weigh |N(u)|^USER_WEIGHT: heavy users say less an item
GROWTH = 0.4  # the ridge grows with popularity to this power
BLOCK = 2048  # items at a time, where all items × all users would be too many


def ridge_of(baskets: Taken, strength: float) -> Floats:
    """The ridge λ_i of each item, shape (n_items,).

    λ_i = strength · g · ((pop_i + 1)/(p + 1))^GROWTH, with p and g the popularity and the diagonal of G as a typical
    *interaction* sees them (averages weighted by popularity): many items that nobody takes then change neither.
    """
    popularity = baskets.popularity
    (diagonal,) = baskets.added(_diagonal)
    share = popularity / popularity.sum()
    typical = float(share @ popularity)
    return strength * float(share @ diagonal) * ((popularity + 1.0) / (typical + 1.0)) ** GROWTH


def _diagonal(part: Baskets) -> Tables:
    weights = part.power(USER_WEIGHT)[part.owners]
    return (np.bincount(part.taken.indices, weights, part.n_items).astype(np.float64),)


def primal(baskets: Taken, labels: Ints, strength: float, rho: float, backend: str) -> Floats:
    """B as one table, float32, shape (n_items, n_items).

    K⁻¹ = D^½ (I − Z diag(ρ/(1 + ρ n_c)) Z') D^½ is never written out.
    """
    ridge = ridge_of(baskets, strength)
    sizes = np.bincount(labels)
    system = baskets.gram(USER_WEIGHT, backend)
    at = np.diag_indices(len(system))
    system[at] += ridge.astype(np.float32)
    root, shrink = np.sqrt(ridge).astype(np.float32), (rho / (1.0 + rho * sizes)).astype(np.float32)
    if rho:
        for c, mine in enumerate(np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])):
            system[np.ix_(mine, mine)] -= shrink[c] * np.outer(root[mine], root[mine])
    inverse = device.inverse(system, backend)  # P
    # P K⁻¹ = P D − (P D^½ Z) diag(ρ/(1 + ρ n_c)) Z' D^½, and P is symmetric: rows may stand for columns.
    diagonal = inverse[at].astype(np.float64)
    product = diagonal * ridge  # of P K⁻¹, the diagonal
    grouped = None
    if rho:
        sums = np.asarray((membership(labels, len(sizes)).T @ (inverse * root[:, None])).T)  # P D^½ Z, (m, k)
        product -= sums[np.arange(len(labels)), labels] * shrink[labels] * root
        grouped = sums * shrink
    column = (ridge + (1.0 - product) / diagonal).astype(np.float32)  # of P: the ridge and γ
    inverse *= -column
    if grouped is not None:
        for a in range(0, len(inverse), BLOCK):
            inverse[a : a + BLOCK] += grouped[a : a + BLOCK][:, labels] * root
    inverse[at] = 0.0
    return inverse
