"""The one way in: read a fitted model, with the data it remembers or with data that is handed over."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

from gingham.errors import AdviceWarning
from gingham.reading.make_reading import ItemInfo, read_observed
from gingham.reading.observed import Observed
from gingham.reading.values import Reading


class Readable(Protocol):
    """A fitted model that says what was observed and which clusters it made of it."""

    def observed(self, *data: Any) -> Observed:
        """What is to be read: of the data of the fit, where none is handed over."""


def read(model: Readable, *data: Any, item_info: ItemInfo | None = None, random_state: int = 0) -> Reading:
    """A coarse, named reading of a fitted model: trees, a readable size, names, facts, errors compared with baselines.

    Parameters
    ----------
    model : fitted model of any family
    *data : what ``fit`` was given, X and y or a matrix or a graph
        Needed for a model that was loaded from a file without a reading, or that is to be read on other data; a model
        that has just been fitted remembers its own.
    item_info : mapping from the name of a side to a frame, optional
        A row an item: its first column (or the one named as the side) has the ids; a column of titles is used for
        names, all others for facts ("student 42 %, else 18 %").
    random_state : int
        Which entries are held out to choose the size.

    Returns
    -------
    Reading
        An `AdviceWarning` says where the model is not better than a baseline, or nothing was found on a side.

    Examples
    --------
    >>> import numpy as np, gingham as gg
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.kron([[3, 1], [1, 3]], np.ones((20, 15))))
    >>> model = gg.CoOccurrenceClustering(random_state=0).fit(counts)
    >>> reading = gg.read(model)
    >>> reading.size, reading.found
    ((2, 2), True)
    """
    reading = read_observed(model.observed(*data), item_info, random_state)
    for sentence in reading.advice:
        warnings.warn(sentence, AdviceWarning, stacklevel=2)
    return reading
