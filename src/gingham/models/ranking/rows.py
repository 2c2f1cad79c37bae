"""The rows of a table as baskets: which pairs were taken, and which were seen but not wanted."""

from __future__ import annotations

import numpy as np

from gingham.arrays import ArrayLike, Floats
from gingham.data import Mode
from gingham.data.adapt import Columns
from gingham.data.sample import MOST_WEIGHT, checked_weights
from gingham.errors import GinghamError
from gingham.models.ranking.baskets import Baskets, Taken


class PairRows:
    """Pairs (user, item) of this process, in memory or in files, and their weights.

    Attributes
    ----------
    modes : users and items
    """

    def __init__(self, columns: Columns, weights: Floats | None) -> None:
        self.columns, self.weights = columns.columns, weights
        users, items = (Mode.of(column, name) for column, name in zip(*columns))
        self.modes = users, items

    def baskets(self, modes: tuple[Mode, Mode], least: float) -> tuple[Taken, Baskets | None]:
        """What was taken, and what was refused."""
        users, items = (mode.encode(column) for mode, column in zip(modes, self.columns))
        shape = modes[0].n_items, modes[1].n_items
        refuses = self.weights is not None and bool((self.weights < 0).any())
        refused = Baskets.counted(users, items, self.weights, 0, shape) if refuses else None
        return Baskets.counted(users, items, self.weights, least, shape), refused


def degrees(y: object, sample_weight: ArrayLike | None, n_rows: int, with_labels: bool = False) -> Floats | None:
    """The weight of each row, below 0 for what was not wanted: weights times labels, where one of them is negative.

    ``with_labels`` says that one is, in another part of the table.
    """
    weights: Floats | None = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape == (n_rows,) and np.isfinite(weights).all() and (weights < 0).any():
        checked_weights(np.abs(weights), n_rows)
    else:
        weights = checked_weights(weights, n_rows)
    labels = None if y is None else np.asarray(y)
    if labels is None or labels.dtype.kind not in "if" or labels.shape != (n_rows,):
        return weights
    if not (with_labels or (labels < 0).any()):
        return weights
    if not np.isfinite(labels).all() or np.abs(labels).sum() > MOST_WEIGHT:
        raise GinghamError("Labels of pairs are degrees: they must be finite, and their sum below 2**53.")
    return np.asarray(labels.astype(np.float64) * (1.0 if weights is None else weights))
