"""How much each draw counts for an item that was folded in.

The draws know nothing of the new item's tuples. Those that explain them better become more probable: with Gaussian
draws, S of them, predictions p_s of the item's tuples, their mean p̄ and noise σ², the mean of whatever the draws
say becomes Σ_s (1 + a_s) p_s / S with a_s = (p_s − p̄)ᵀ (C + σ²I)⁻¹ (y − p̄) and C the draws' covariance. That is a
ridge regression of what is left of the labels on the draws' deviations.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import ridge_regression

from gingham.arrays import Floats
from gingham.models.layers.data import Grouped

# Covariances of few draws are noisy, and the tuples have placed the item already: σ² counts 1 + CAUTION/S times.
CAUTION = 300


def tilts_of(residuals: Floats, others: Floats | float, group: Grouped, weights: Floats | None, noise: float) -> Floats:
    """a_s(x), shape (S, n_new), of new items; over the draws they sum to 0.

    Parameters
    ----------
    residuals : (S, N) labels less each draw's predictions
    others : (S, N), the tilts of the tuples' other items
    group : the tuples grouped by the new items
    """
    n_draws, mean = len(residuals), residuals.mean(axis=0, dtype=np.float64)
    deviations = mean - residuals  # p_s − p̄
    left = mean - np.mean(others * deviations, axis=0)  # y less the prediction so far
    tilts = np.zeros((n_draws, len(group.indptr) - 1), dtype=np.float32)
    for x, (start, stop) in enumerate(zip(group.indptr[:-1], group.indptr[1:])):
        if start == stop:
            continue
        mine = group.order[start:stop]
        tilts[:, x] = n_draws * ridge_regression(
            deviations[:, mine].T,
            left[mine],
            alpha=noise * (n_draws + CAUTION),
            sample_weight=None if weights is None else weights[mine],
            solver="cholesky",
        )
    return tilts
