"""CellModel: features → statistics → answer, coef, envelope; range and convexity as facts."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from gingham.arrays import Anything, Floats
from gingham.data.features import Features


class CellModel(ABC):
    """A cost that is linear in a few statistics of the labels: cost(y; θ) = ⟨coef(θ), t(y)⟩.

    Statistics have the features on the last axis, shape (…, K); the leading axes are cells.
    A new loss or family is one subclass that states the facts below and answers two questions:
    the best answer for given statistics, and the coefficients of an answer.

    Attributes
    ----------
    features : Features
        t(y): one-hot labels or moments.
    range : float
        Largest possible loss of one tuple, in the loss's own unit; ``inf`` when unbounded.
    convex : bool
        Whether the loss is convex in the (numeric) prediction, so that Jensen's inequality carries a
        Gibbs guarantee over to the mean prediction.
    n_answers : int or None
        How many different answers a cell can give; None for a continuum.
    moves : {"mass", "log", "table", "moments"} or None
        How hard moves score a cell; None where they cannot.
    ordered : bool
        Whether labels count as numbers, so that near labels are alike.
    """

    features: Features
    range: float
    convex: bool
    n_answers: int | None
    ordered: bool = False
    moves: str | None = None

    @abstractmethod
    def answer(self, statistics: Floats, fallback: Floats | None = None) -> Anything:
        """θ* = argmin_θ ⟨coef(θ), S⟩ of each cell; empty cells answer as ``fallback`` statistics do.

        Returns shape (…) (a label index or a number) or (…, |Y|) (a distribution).
        """

    @abstractmethod
    def coef(self, answer: Anything) -> Floats:
        """Coefficients of given answers, shape (…, K)."""

    @abstractmethod
    def values(self, answer: Anything) -> Floats:
        """Numeric predictions of given answers, shape (…)."""

    @abstractmethod
    def distribution(self, answer: Anything) -> Floats | None:
        """Predicted label distributions of given answers, (…, |Y|); None without an alphabet."""

    def loss(self, answer: Anything, statistics: Floats) -> Floats:
        """Total loss of answers on cells with the given statistics: ⟨coef(θ), S⟩."""
        result: Floats = np.einsum("...k,...k->...", self.coef(answer), statistics)
        return result

    def envelope(self, statistics: Floats) -> Floats:
        """min_θ ⟨coef(θ), S⟩, the least possible loss of each cell."""
        return self.loss(self.answer(statistics), statistics)


def filled(statistics: Floats, fallback: Floats | None) -> Floats:
    """Statistics in which empty cells stand for the fallback (all cells together by default)."""
    total = statistics.reshape(-1, statistics.shape[-1]).sum(0) if fallback is None else fallback
    empty = statistics.sum(-1) <= 0
    return np.where(empty[..., None], total, statistics)
