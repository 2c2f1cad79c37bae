"""Random walks from the items of a basket to the people who have them and on to what else these have (RP3beta).

    table[j, i] ∝ pop_j⁻¹ (Σ_u |N(u)|⁻¹ x_uj x_ui) pop_i^−β,   0 for i = j

is the chance to come from item j over a random user who has it to item i, divided by the popularity of i to the power
β (Paudel, Christoffel, Newell and Bernstein, Updatable, accurate, diverse, and scalable recommendations, 2016). Where
most items are rare it predicts better than a ridge, which has too little to learn from.
"""

from __future__ import annotations

import numpy as np

from gingham.arrays import Floats
from gingham.models.ranking.baskets import Taken


def walks(baskets: Taken, backend: str) -> Floats:
    """Σ_u |N(u)|⁻¹ x_uj x_ui, float32 (n_items, n_items), 0 on the diagonal: what all values of β share."""
    table = baskets.gram(-1.0, backend)
    np.fill_diagonal(table, 0.0)
    return table


def walk_scores(table: Floats, popularity: Floats, beta: float) -> Floats:
    """The table of a walk for one β, float32; the rows of an average interaction sum to 1."""
    popular = np.maximum(popularity, 1.0)
    found: Floats = np.asarray(table / popular[:, None].astype(np.float32), dtype=np.float32)
    found /= (popular**beta).astype(np.float32)
    total = float(popularity @ found.sum(1, dtype=np.float64))
    return found * np.float32(popularity.sum() / total) if total > 0 else found
