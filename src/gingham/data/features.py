"""Which few numbers t(y) of a label a cell model needs (every cost is ⟨coef, t(y)⟩)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.errors import GinghamError


class Features(ABC):
    """t(y), K numbers of a label; statistics are their sums over tuples.

    Attributes
    ----------
    one_hot : bool
        Whether t(y) is one-hot, so that kernels can use label codes instead of K numbers a tuple.
    size : int
        K.
    """

    one_hot: ClassVar[bool]
    size: int

    @abstractmethod
    def of_labels(self, numbers: Floats) -> Floats:
        """t(y) for every label of an alphabet with these numbers, shape (|Y|, K)."""

    @abstractmethod
    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        """t(y_e) for every tuple, dense, shape (…, K)."""

    @abstractmethod
    def count(self, statistics: AnyArray) -> AnyArray:
        """Number of tuples behind statistics (…, K), shape (…)."""


@dataclass(frozen=True)
class OneHot(Features):
    """t(y) = one-hot(y) over an alphabet of ``size`` labels: the statistics are label histograms."""

    one_hot: ClassVar[bool] = True
    size: int

    def of_labels(self, numbers: Floats) -> Floats:
        return np.eye(self.size)

    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        if label_codes is None:
            raise GinghamError("This cell model needs labels on an alphabet.")
        return np.eye(self.size)[label_codes]

    def count(self, statistics: AnyArray) -> AnyArray:
        return statistics.sum(-1)


@dataclass(frozen=True)
class Moments(Features):
    """t(y) = (1, y, …, y^degree): the statistics are power sums; degree 0 counts only."""

    one_hot: ClassVar[bool] = False
    degree: int

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.degree + 1

    def of_labels(self, numbers: Floats) -> Floats:
        return self.evaluate(numbers)

    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        """Powers of the labels, shape (N, degree + 1)."""
        if labels is None:
            raise GinghamError("This cell model needs numeric labels.")
        return np.vander(np.asarray(labels, dtype=np.float64), self.size, increasing=True)

    def count(self, statistics: AnyArray) -> AnyArray:
        return statistics[..., 0]


def evaluate(features: Features, labels: Floats | None, label_codes: Ints | None) -> Floats:
    """t(y_e) for every tuple, dense, shape (N, K); for tests and small data."""
    return features.evaluate(labels, label_codes)
