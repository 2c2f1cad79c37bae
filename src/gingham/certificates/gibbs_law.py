"""GibbsLaw: how often the randomised predictor makes which loss on the sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gingham.arrays import Floats
from gingham.errors import GinghamError


@dataclass(frozen=True, eq=False)
class GibbsLaw:
    """The empirical law of the Gibbs loss: E_Q (1/N) Σ_e [ℓ(h, e) = value].

    All bounds on one posterior see the sample only through this law. Values are on the scale of the
    theorems: at most 1, and at least 0 unless they are differences of losses.

    Attributes
    ----------
    values : ndarray of shape (K,)
    weights : ndarray of shape (K,)
        Non-negative, with sum 1.
    support : ndarray or None
        All values a loss can possibly take, known before the sample was seen; None for a continuum.
    """

    values: Floats
    weights: Floats
    support: Floats | None = None

    @classmethod
    def of(cls, values: Any, weights: Any, support: Any = None) -> GibbsLaw:
        """Flatten, check and normalise (weights may be counts); equal values are merged."""
        values = np.asarray(values, dtype=np.float64).ravel()
        weights = np.asarray(weights, dtype=np.float64).ravel()
        if values.shape != weights.shape or values.size == 0:
            raise GinghamError("A law needs as many weights as values, and at least one.")
        if not (np.isfinite(values).all() and np.isfinite(weights).all() and (weights >= 0).all()):
            raise GinghamError("A law needs finite values and finite weights that are not negative.")
        if values.max() > 1 + 1e-12:
            raise GinghamError(f"A loss of {values.max():.6g} exceeds 1; divide losses by their range first.")
        total = weights.sum()
        if total <= 0:
            raise GinghamError("All weights of the law are zero.")
        distinct, at = np.unique(values, return_inverse=True)
        merged = np.bincount(at.ravel(), weights, minlength=len(distinct)) / total
        return cls(
            np.minimum(distinct, 1.0),
            merged,
            None if support is None else np.unique(np.asarray(support, dtype=np.float64)),
        )

    @property
    def mean(self) -> float:
        """L̂(Q), the empirical Gibbs loss."""
        return float(self.weights @ self.values)

    @property
    def lowest(self) -> float:
        """The smallest value that can occur (that has occurred, on a continuum)."""
        return float(self.values.min() if self.support is None else self.support.min())

    def log_mean(self, offsets: Floats, sign: int) -> Floats:
        """E ln(offset + sign·X) for each offset, shape (len(offsets),)."""
        seen = self.weights > 0
        values, weights = self.values[seen], self.weights[seen]
        result: Floats = np.zeros(len(offsets))
        for start in range(0, len(values), 2**16):  # a few values at a time keep the table small
            part = slice(start, start + 2**16)
            result += np.log(offsets[:, None] + sign * values[None, part]) @ weights[part]
        return result

    def on_support(self) -> tuple[Floats, Floats]:
        """Values and weights over everything that can occur; refused on a continuum."""
        if self.support is None:
            raise GinghamError("This bound needs a loss that takes finitely many known values.")
        at = np.searchsorted(self.support, self.values)
        at = np.clip(at, 0, len(self.support) - 1)
        lower = np.maximum(at - 1, 0)
        closer = np.abs(self.support[lower] - self.values) < np.abs(self.support[at] - self.values)
        at = np.where(closer, lower, at)
        if np.abs(self.support[at] - self.values).max() > 1e-9:
            raise GinghamError("A loss occurred that is not among the values said to be possible.")
        weights: Floats = np.bincount(at, self.weights, minlength=len(self.support)).astype(np.float64)
        return self.support, weights


def mixture(laws: list[GibbsLaw]) -> GibbsLaw:
    """The law of a predictor that first draws one of several members, all alike (a committee)."""
    if not laws:
        raise GinghamError("A committee needs at least one member.")
    supports = [law.support for law in laws]
    known = [s for s in supports if s is not None]
    return GibbsLaw.of(
        np.concatenate([law.values for law in laws]),
        np.concatenate([law.weights for law in laws]),
        np.concatenate(known) if len(known) == len(laws) else None,
    )
