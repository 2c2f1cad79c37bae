"""The ratings as the layer solvers want them: tuples in one order, grouped by each mode, side tables beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.data import Sample
from gingham.models.layers.side import SideTable

EMPTY = np.zeros((0, 0))


class Grouped(NamedTuple):
    """Tuples grouped by the items of one mode; ``order`` says where each stands in the common order."""

    indptr: Ints  # (n + 1,) int64
    others: Ints  # (d − 1, N) int32
    order: Ints  # (N,) int32 or int64


@dataclass(frozen=True, eq=False)
class LayerData:
    """Weighted tuples with numeric labels, in the layout of `gingham.models.layers.kernels`."""

    n_items: tuple[int, ...]
    codes: Ints  # (d, N) int32
    labels: Floats  # (N,)
    weights: Floats | None
    groups: tuple[Grouped, ...]
    sides: tuple[SideTable | None, ...]

    @classmethod
    def of(cls, sample: Sample, sides: Sequence[SideTable | None] | None = None) -> LayerData:
        if sample.labels is None:
            raise ValueError("layers need numeric labels")
        codes = np.stack(sample.codes).astype(np.int32)
        # Grouped by the first mode once and for all: its pass then reads residuals in order.
        order = np.argsort(codes[0], kind="stable")
        codes = np.ascontiguousarray(codes[:, order])
        return cls(
            n_items=sample.shape,
            codes=codes,
            labels=sample.labels[order],
            weights=None if sample.weights is None else sample.weights[order],
            groups=tuple(_grouped(codes, j, n) for j, n in enumerate(sample.shape)),
            sides=tuple(sides) if sides is not None else (None,) * sample.n_modes,
        )

    @property
    def n_modes(self) -> int:
        return len(self.n_items)

    @property
    def n_rows(self) -> int:
        return self.codes.shape[1]

    @property
    def first(self) -> Ints:
        return first_positions(self.n_items)

    @cached_property
    def mean(self) -> float:
        return float(np.average(self.labels, weights=self.weights))

    @cached_property
    def variance(self) -> float:
        """Variance of the labels, the scale of every prior; 1 when they are all equal."""
        variance = float(np.average((self.labels - self.mean) ** 2, weights=self.weights))
        return variance if variance > 0 else 1.0


def first_positions(n_items: Sequence[int]) -> Ints:
    """Position of each mode's first item when all modes stand in one row, one unseen item after each mode."""
    return np.concatenate([[0], np.cumsum([n + 1 for n in n_items])[:-1]]).astype(np.int64)


def strides_of(shape: Sequence[int]) -> Ints:
    """Steps of a C-ordered array of that shape, in elements."""
    return np.concatenate([np.cumprod(np.asarray(shape[::-1]))[::-1][1:], [1]]).astype(np.int64)


def _grouped(codes: Ints, mode: int, n_items: int) -> Grouped:
    order = np.argsort(codes[mode], kind="stable")
    indptr = np.zeros(n_items + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes[mode], minlength=n_items), out=indptr[1:])
    others = np.ascontiguousarray(np.delete(codes, mode, axis=0)[:, order])
    return Grouped(indptr, others, order.astype(np.int32 if len(order) < 2**31 else np.int64))
