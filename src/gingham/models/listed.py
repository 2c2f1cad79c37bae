"""Observations as rows of ids: what every family can be fitted to again, whatever its data looked like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Bools, Floats, TableLike
from gingham.data.adapt import frame_of
from gingham.data.sample import default_names, joined_ids
from gingham.errors import GinghamError


class Listed(NamedTuple):
    """Observations, one row each.

    Attributes
    ----------
    ids : one array of ids per side
    names : of the sides
    labels, weights : arrays or None
    """

    ids: Sequence[AnyArray]
    names: Sequence[str]
    labels: AnyArray | None = None
    weights: Floats | None = None

    def with_rows(self, new: Listed) -> Listed:
        """These rows and further ones."""
        if len(self.ids) != len(new.ids):
            raise GinghamError(f"The new rows have {len(new.ids)} columns of ids, those of the fit {len(self.ids)}.")
        parts, weights = (self, new), None
        if any(part.weights is not None for part in parts):
            weights = np.concatenate([np.ones(len(p.ids[0])) if p.weights is None else p.weights for p in parts])
        if (self.labels is None) != (new.labels is None):
            raise GinghamError("The model was fitted to labels: the new rows need them too (y).")
        labels = None if self.labels is None else np.concatenate([self.labels, new.labels])
        ids = [joined_ids(columns) for columns in zip(self.ids, new.ids)]
        return Listed(ids, self.names, labels, weights)

    def take(self, rows: Bools) -> Listed:
        """Select some of the rows."""
        labels, weights = (None if kept is None else kept[rows] for kept in (self.labels, self.weights))
        return Listed([column[rows] for column in self.ids], self.names, labels, weights)

    def table(self) -> TableLike:
        """The ids as `fit` takes them: a frame with the names of the sides, an array where they have none."""
        if list(self.names) == default_names(len(self.names)):
            return np.column_stack([np.asarray(column, dtype=object) for column in self.ids])
        return frame_of({name: column.tolist() for name, column in zip(self.names, self.ids)})
