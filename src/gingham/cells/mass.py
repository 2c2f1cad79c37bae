"""The density of the cell itself: how much more often its clusters meet than by chance."""

from __future__ import annotations

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cells.base import CellModel, namespace
from gingham.data.features import Moments

LEAST = 1e-300  # lift of a cell that no tuple reaches: its cost is large and finite


class Mass(CellModel):
    """ℓ(c) = −ln lift(c), lift(c_1, …, c_d) = p(c_1, …, c_d)/Π_i p(c_i), for tuples without labels.

    The loss of the best answers is −I(C_1; …; C_d), the gain over independence (P0 §3.4): the code length
    of a tuple is Σ H(X_i) − I(C_1; …; C_d). It is concave in each mode's memberships, so its tangent lies
    above it, and the projection step on the tangent never raises the objective (the soft algorithm that
    P0 §4.2 calls open).
    """

    features = Moments(0)
    range = np.inf
    convex = False
    n_answers = None
    needs_alphabet = False
    moves = "mass"
    device_arrays = ()

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> AnyArray:
        """Lifts of all cells, shape (m_1, …, m_d); statistics have shape (m_1, …, m_d, 1)."""
        xp = namespace(statistics)
        p = statistics[..., 0] / xp.clip(statistics.sum(), LEAST, None)
        expected = xp.ones_like(p)
        for axis in range(p.ndim):
            others = tuple(j for j in range(p.ndim) if j != axis)
            expected = expected * (p.sum(axis=others, keepdims=True) if others else p)
        lift = xp.where(expected > 0, p / xp.where(expected > 0, expected, 1.0), 0.0)
        return xp.clip(lift, LEAST, None)

    def coef(self, answer: AnyArray) -> Floats:
        result: Floats = -namespace(answer).log(answer)[..., None]
        return result

    def values(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64)

    def distribution(self, answer: AnyArray) -> None:
        return None
