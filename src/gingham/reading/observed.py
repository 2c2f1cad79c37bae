"""Observed: what a model hands over to be read, its data and its clusters, without the model itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Mode
from gingham.reading.measures import Measure, measure_named


@dataclass(frozen=True, eq=False)
class Relation:
    """Entries in which sides meet: one row each.

    Attributes
    ----------
    sides : tuple of int
        Positions of the sides; twice the same one for a graph.
    codes : tuple of int arrays of shape (N,)
    measure : {"lift", "difference", "labels"}
        Counts, numbers, or names.
    values : array of shape (N,) or None
        Numbers, or codes of labels; None for counts.
    weights : array of shape (N,) or None
        Counts, or how often each entry was observed.
    label : str
        What was observed.
    labels : tuple of str
        Names of the labels.
    both_ways : bool
        Whether an entry (a, b) stands for (b, a) too: an undirected graph.
    centred : bool
        Whether numbers are deviations already, so that no averages are taken out of them.
    """

    sides: tuple[int, ...]
    codes: tuple[Ints, ...]
    measure: str
    values: AnyArray | None = None
    weights: Floats | None = None
    label: str = "label"
    labels: tuple[str, ...] = ()
    both_ways: bool = False
    centred: bool = False

    @property
    def n_entries(self) -> int:
        return len(self.codes[0])

    @property
    def weight(self) -> Floats:
        """The weight of every entry, (N,)."""
        return np.ones(self.n_entries) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    @property
    def rule(self) -> Measure:
        return measure_named(self.measure)

    @property
    def n_statistics(self) -> int:
        return {"lift": 1, "difference": 2}.get(self.measure, len(self.labels))

    def take(self, rows: AnyArray) -> Relation:
        """Some of the entries, by a mask or by places."""
        return replace(
            self,
            codes=tuple(code[rows] for code in self.codes),
            values=None if self.values is None else self.values[rows],
            weights=None if self.weights is None else self.weights[rows],
        )

    def pair(self, first: int, second: int) -> Pair:
        """The entries as those of two of its positions."""
        rows, columns, weight, values = self.codes[first], self.codes[second], self.weight, self.values
        if self.both_ways:
            rows, columns = np.concatenate([rows, columns]), np.concatenate([columns, rows])
            weight = np.concatenate([weight, weight])
            values = None if values is None else np.concatenate([values, values])
        return Pair(rows, columns, weight, values, self.measure, self.n_statistics)

    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of its positions."""
        d = len(self.sides)
        return [(i, j) for i in range(d) for j in range(i + 1, d)]


class Pair(NamedTuple):
    """Entries of two sides, statistics of their blocks, rows and columns."""

    rows: Ints
    columns: Ints
    weight: Floats
    values: AnyArray | None
    measure: str
    n_statistics: int

    def turned(self) -> Pair:
        return self._replace(rows=self.columns, columns=self.rows)

    def sums(self, rows: Ints, columns: Ints, shape: tuple[int, int], squared: bool = False) -> Floats:
        """Sums over blocks (m_1, m_2, K) from the cluster of each row and each column.

        ``squared`` weights, and squares of numbers, give the second moments that standard errors need.
        """
        at = rows[self.rows].astype(np.int64) * shape[1] + columns[self.columns]
        weight = self.weight**2 if squared else self.weight
        n = shape[0] * shape[1]
        if self.measure == "lift":
            return np.asarray(np.bincount(at, weight, n), dtype=np.float64).reshape(*shape, 1)
        values = np.asarray(self.values)
        if self.measure == "difference":
            total = np.bincount(at, weight * values, n)
            return np.stack([np.bincount(at, weight, n), total], axis=-1, dtype=np.float64).reshape(*shape, 2)
        k = self.n_statistics
        return np.asarray(np.bincount(at * k + values, weight, n * k), dtype=np.float64).reshape(*shape, k)

    def matrix(self, shape: tuple[int, int], statistic: int | None = None) -> sparse.csr_array:
        """A statistic of every pair of items, sparse: weights by default, of one label where one is named."""
        weight, rows, columns = self.weight, self.rows, self.columns
        if self.measure == "difference" and statistic == 1:
            weight = weight * np.asarray(self.values)
        elif self.measure == "labels" and statistic is not None:
            mine = np.asarray(self.values) == statistic
            weight, rows, columns = weight[mine], rows[mine], columns[mine]
        return sparse.csr_array(sparse.coo_array((weight, (rows, columns)), shape=shape))


class Refit(NamedTuple):
    """What a model learns from some of the entries: clusters of every side, and what it predicts of the others."""

    clusters: tuple[Ints | None, ...]
    predictions: Floats | None = None


@dataclass(frozen=True, eq=False)
class Observed:
    """The data of a model and its clusters.

    Attributes
    ----------
    modes : tuple of Mode
        The sides, with the ids of their items.
    relations : tuple of Relation
        The first is the one to show first, and the one whose entries are held out.
    clusters : tuple of int arrays or None
        The fine clusters of every side; None where the model has none, or none to read: numbers are read by what their
        averages leave over, and the reading finds clusters of that.
    given : tuple of bool
        Whether the number of clusters of each side was given by the user.
    refit : callable, optional
        (mask of the entries to learn from) → Refit: the same model on a part of the first relation.
    prediction : str
        Why the model has the size that it has.
    error : float or None
        The model's error on data it has not seen, where that is known without fitting it again.
    titles : mapping from the position of a side to names of its items
    notes : tuple of str
    finer : bool
        Whether clusters of what averages leave over begin with smaller blocks.
    """

    modes: tuple[Mode, ...]
    relations: tuple[Relation, ...]
    clusters: tuple[Ints | None, ...]
    given: tuple[bool, ...] = ()
    refit: Callable[[Bools], Refit] | None = None
    prediction: str = ""
    error: float | None = None
    titles: Mapping[int, AnyArray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    finer: bool = False

    @property
    def n_sides(self) -> int:
        return len(self.modes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(mode.n_items for mode in self.modes)

    def with_first(self, relation: Relation) -> Observed:
        """The same with another first relation."""
        return replace(self, relations=(relation, *self.relations[1:]))
