"""Which few numbers t(y) of a label a cell model needs (every cost is ⟨coef, t(y)⟩)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gingham.arrays import Floats, Ints


@dataclass(frozen=True)
class OneHot:
    """t(y) = one-hot(y) over an alphabet of ``size`` labels: the statistics are label histograms."""

    size: int


@dataclass(frozen=True)
class Moments:
    """t(y) = (1, y, …, y^degree): the statistics are power sums; degree 0 counts only."""

    degree: int

    @property
    def size(self) -> int:
        return self.degree + 1

    def evaluate(self, labels: Floats) -> Floats:
        """Powers of the labels, shape (N, degree + 1)."""
        return np.vander(np.asarray(labels, dtype=np.float64), self.size, increasing=True)


Features = OneHot | Moments


def evaluate(features: Features, labels: Floats | None, label_codes: Ints | None) -> Floats:
    """t(y_e) for every tuple, dense, shape (N, K); for tests and small data."""
    if isinstance(features, OneHot):
        if label_codes is None:
            raise ValueError("one-hot features need labels on an alphabet")
        return np.eye(features.size)[label_codes]
    if labels is None:
        raise ValueError("moments need labels")
    return features.evaluate(labels)
