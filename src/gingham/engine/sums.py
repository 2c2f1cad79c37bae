"""Sums over the observations of a relation, wherever they are: all that starts and answers ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.engine.project import Rows, project_cost, project_table

if TYPE_CHECKING:
    from gingham.engine.project_compiled import Tiles


class Features(Protocol):
    """What an engine needs to know of t(y), the numbers of a label."""

    @property
    def one_hot(self) -> bool: ...

    @property
    def size(self) -> int: ...


class Grouped(Protocol):
    """Observations grouped by the items of any position."""

    @property
    def n_modes(self) -> int: ...

    def rows(self, axis: int, features: Any) -> Rows: ...

    def tiles(self, axis: int, features: Any, row_bytes: int) -> Tiles | None: ...

    def completed(self, table: Floats, assigns: Sequence[Floats], features: Any) -> Floats: ...


class Sums(Protocol):
    """Sums over the tuples of a relation, wherever the observations are; t(y) are the features of its cells."""

    @property
    def features(self) -> Any: ...

    @property
    def numbers(self) -> Floats | None:
        """Label values where labels are on an alphabet."""

    def project(self, axis: int, assigns: Sequence[Floats], coef: Floats) -> Floats:
        """Σ_{observations e of item x} w_e Σ_kr coef[i, k·r] t_k(y_e) Π_j assigns_j[x_j, r_j], shape (n_items,
        len(coef)).

        ``assigns`` are those of the other positions; coef has shape (outputs, K · Π m_j).
        """

    def table(self, assigns: Sequence[Floats], backend: str = "compiled") -> Floats:
        """Σ_e w_e t(y_e) Π_j assigns_j[x_j, c_j], shape (m_1, …, m_d, K); observations on a device are summed there."""

    def squares(self) -> float:
        """Σ_e w_e y_e² where labels are numbers without an alphabet."""

    def drawn(self, items: Ints, places: Floats) -> Floats:
        """t(y), shape (n, K), of one tuple of each of the items of position 0.

        An item's observations lie in the order of their labels, each as wide as its weight; the observation at
        ``places``.
        """


@dataclass(frozen=True, eq=False)
class SumsOfRows:
    """The sums of one sample, or of one partition of it, on the cores."""

    sample: Grouped
    features: Any
    numbers: Floats | None = None

    def project(self, axis: int, assigns: Sequence[Floats], coef: Floats) -> Floats:
        return project_cost(self.sample.rows(axis, self.features), assigns, coef, "compiled")

    def table(self, assigns: Sequence[Floats], backend: str = "compiled") -> Floats:
        first, *others = assigns
        flat = project_table(self.sample.rows(0, self.features), others, first, backend)
        table = flat.reshape(first.shape[1], self.features.size, *(q.shape[1] for q in others))
        return self.sample.completed(np.moveaxis(table, 1, -1), tuple(assigns), self.features)

    def squares(self) -> float:
        rows = self.sample.rows(0, self.features)
        if rows.features is None or self.features.size < 2:
            return 0.0
        squares = rows.features[:, 1] ** 2
        return float(squares.sum() if rows.weights is None else squares @ rows.weights)

    def drawn(self, items: Ints, places: Floats) -> Floats:
        rows = self.sample.rows(0, self.features)
        found, one_hot = np.empty((len(items), self.features.size)), np.eye(self.features.size)
        if rows.labels is not None and rows.weights is None:
            ends = rows.indptr[items + 1]
            return one_hot[rows.labels[np.minimum(rows.indptr[items] + places.astype(np.int64), ends - 1)]]
        for at, (item, place) in enumerate(zip(items, places)):
            own = slice(rows.indptr[item], rows.indptr[item + 1])
            weights = np.ones(own.stop - own.start) if rows.weights is None else rows.weights[own]
            if rows.labels is not None:  # sorted within an item
                found[at] = one_hot[rows.labels[own][_reached(weights, place)]]
            elif rows.features is not None:
                features = rows.features[own]
                order = np.argsort(features[:, min(1, self.features.size - 1)], kind="stable")
                found[at] = features[order[_reached(weights[order], place)]]
        return found


def _reached(weights: Floats, place: float) -> int:
    """Which of some neighbouring stretches of these widths a place lies in."""
    return min(int(np.searchsorted(np.cumsum(weights), place, side="right")), len(weights) - 1)
