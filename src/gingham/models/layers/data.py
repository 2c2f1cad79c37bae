"""The ratings as the layer solvers want them: tuples in one order, grouped by each mode, side tables beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.data import Mode, Sample
from gingham.data.adapt import Columns
from gingham.models.layers.side import GivenSide, SideCode, Sides, read_sides

EMPTY = np.zeros((0, 0))


class SideTable(NamedTuple):
    """Yes-or-no properties of a mode's items: a shared relation with frozen properties and Bernoulli cells."""

    properties: Floats  # (n_items, g) of 0 and 1; a row of zeros where nothing is known
    known: Bools  # (n_items,)
    weight: float  # by which its log-likelihood counts

    def log_odds(self, members: Floats) -> tuple[Floats, Floats, Floats]:
        """θ_kg = (count_kg + 2·mean_g + .01)/(n_k + 2.02) of each cluster (m, g), from memberships (n, m).

        Returns ln θ, ln(1 − θ) and the pseudo-counts of a yes, (g,); 2.02 minus these are those of a no.
        """
        members = members[self.known]
        properties = self.properties[self.known]
        prior = 2.0 * properties.mean(axis=0) + 0.01
        theta = (members.T @ properties + prior) / (members.sum(axis=0)[:, None] + 2.02)
        return np.log(theta), np.log1p(-theta), prior

    def scores(self, members: Floats) -> Floats:
        """w · Σ_g [G ln θ_kg + (1 − G) ln(1 − θ_kg)], (n_items, m): what each cluster says of each item."""
        yes, no, _ = self.log_odds(members)
        scores = self.weight * (self.properties @ (yes - no).T + no.sum(axis=1))
        return np.where(self.known[:, None], scores, 0.0)

    def cost(self, members: Floats) -> float:
        """−w times the log-likelihood of the properties and of the pseudo-counts, least over θ."""
        yes, no, prior = self.log_odds(members)
        fitted = float(np.sum(members * self.scores(members)))
        return -fitted - self.weight * float(np.sum(yes * prior + no * (2.02 - prior)))


def side_tables(columns: Columns, given: Sides) -> tuple[tuple[Mode, ...], tuple[SideTable | None, ...]]:
    """Modes that hold the items of the data and of the side tables, and the tables in their order (weight 1)."""
    modes, tables = modes_with_sides(columns, given)
    sides: list[SideTable | None] = [None] * len(modes)
    for table in tables:
        known = modes[table.at].encode(table.ids)
        numbers = table.numbers
        if numbers is None:
            code = SideCode.of(modes[table.at].name, table.values)
            held = code.read(table.values)
            numbers = np.zeros((len(table.ids), len(code.tokens)))
            numbers[held.items, held.tokens] = 1.0
        aligned = np.zeros((modes[table.at].n_items, numbers.shape[1]))
        aligned[known] = numbers
        sides[table.at] = SideTable(aligned, np.isin(np.arange(len(aligned)), known), 1.0)
    return modes, tuple(sides)


def modes_with_sides(columns: Columns, given: Sides) -> tuple[tuple[Mode, ...], list[GivenSide]]:
    """Modes that hold the items of the data and of the side tables, and these tables."""
    modes = [Mode.of(column, name) for column, name in zip(columns.columns, columns.names)]
    tables = read_sides(columns.names, modes, given)
    for table in tables:
        mode = modes[table.at]
        modes[table.at] = Mode.of(np.concatenate([mode.items, Mode.of(table.ids, mode.name).items]), mode.name)
    return tuple(modes), tables


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
