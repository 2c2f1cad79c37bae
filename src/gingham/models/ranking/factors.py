"""Factors of items: implicit alternating least squares. They make the item clusters, and a member of the ranking."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.engine.threads import one_blas_thread
from gingham.models.ranking.baskets import Baskets, Taken
from gingham.models.ranking.kernels import solve_rows
from gingham.storage import savable

ALPHA = 10.0  # how much more a taken pair weighs than one that was not
STEPS = 3  # of conjugate gradients in a half-sweep, begun at the last solution
EXACT_STEPS = 60  # where a solution is wanted, not a step towards one


@savable
@dataclass(frozen=True, eq=False)
class Factors:
    """score(u, i) = x_u · y_i, with x_u the least-squares answer to the user's basket alone.

    x_u = (1 + α) A_u⁻¹ Σ_{j ∈ N(u)} y_j with A_u = Y'Y + α Σ_{j ∈ N(u)} y_j y_j' + penalty I, so a score is a sum over
    the items of the basket: y_i' (1 + α) A_u⁻¹ y_j is the share of item j.

    Attributes
    ----------
    items : float32 array of shape (n_items, n_factors), the y_i
    penalty : float
    """

    items: Floats
    penalty: float

    def users(self, baskets: Baskets) -> Floats:
        """x_u of each basket, shape (n_users, n_factors)."""
        start = np.zeros((baskets.n_users, self.items.shape[1]), dtype=np.float32)
        return solve_rows(baskets.taken, self.items, self.penalty, ALPHA, start, EXACT_STEPS)

    def scores(self, baskets: Baskets) -> Floats:
        with one_blas_thread():
            scores: Floats = self.users(baskets) @ self.items.T
        return scores

    def shares(self, basket: Ints, targets: Ints) -> Floats:
        """What each item of one basket adds to the score of each target, shape (items of the basket, targets)."""
        mine, theirs = (self.items[some].astype(np.float64) for some in (basket, targets))
        shares: Floats = (1.0 + ALPHA) * mine @ np.linalg.solve(self._square + ALPHA * mine.T @ mine, theirs.T)
        return shares

    @cached_property
    def _square(self) -> Floats:
        """Y'Y + penalty I, which all users share."""
        y = self.items.astype(np.float64)
        square: Floats = y.T @ y + self.penalty * np.eye(y.shape[1])
        return square


def fit_factors(
    baskets: Taken,
    n_factors: int,
    penalty: float,
    sweeps: int,
    rng: np.random.Generator,
    start: Factors | None = None,
) -> Factors:
    """Alternating least squares from small random items, or from ``start`` and small random further factors.

    minimises Σ_{u,i} (1 + α 1[taken]) (1[taken] − x_u·y_i)² + penalty (Σ|x_u|² + Σ|y_i|²)   (Hu, Koren, Volinsky 2008)
    """
    items = (0.01 * rng.standard_normal((baskets.n_items, n_factors))).astype(np.float32)
    if start is not None:
        shared = min(n_factors, start.items.shape[1])
        items[:, :shared] = start.items[:, :shared]
    return Factors(baskets.swept(items, sweeps, penalty, ALPHA, STEPS), float(penalty))
