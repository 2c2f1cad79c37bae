"""Single items: memberships, nearest items, predictions, and places on the map of both modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from gingham.arrays import Floats, Ints
from gingham.data import Mode, Sample

NEIGHBOURS = 6
PREDICTIONS = 6
MEMBERSHIPS = 4


@dataclass(frozen=True, eq=False)
class Shown:
    """One mode as the page shows it.

    Attributes
    ----------
    chosen : int array of shape (n_shown,)
        Codes of the items that the page knows by name.
    mode : Mode
    assign : array of shape (n_items, n_clusters)
    profile : array of shape (n_items, m_other)
        What an item gets from each cluster of the other mode.
    points : array of shape (n_items, 2)
    """

    chosen: Ints
    mode: Mode
    assign: Floats
    profile: Floats
    points: Floats


def shown_items(sample: Sample, position: int, max_items: int) -> Ints:
    """Codes of the items with the most data, in the order of their ids."""
    counts = sample.counts(position)
    if len(counts) <= max_items:
        return np.arange(len(counts))
    return np.sort(np.argsort(-counts, kind="stable")[:max_items])


def items(own: Shown, other: Shown, sample: Sample, position: int, other_position: int) -> dict[str, Any]:
    """Columns of facts on the shown items of one mode."""
    chosen = own.chosen
    counts = sample.counts(position)[chosen]
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    sums = np.bincount(sample.codes[position], weights * labels, minlength=own.mode.n_items)[chosen]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(counts > 0, sums / counts, np.nan)
    assign = np.asarray(own.assign[chosen], dtype=np.float64)
    best = np.argsort(-assign, axis=1, kind="stable")[:, :MEMBERSHIPS]
    share = np.take_along_axis(assign, best, axis=1)
    return {
        "names": [str(name) for name in own.mode.items[chosen].tolist()],
        "count": [int(c) if c == int(c) else float(c) for c in counts],
        "mean": rounded(means),
        "clusters": best.tolist(),
        "shares": rounded(share, 3),
        "profile": rounded(own.profile[chosen]),
        "near": neighbours(own).tolist(),
        "best": predictions(own, other, sample, position, other_position),
        "x": rounded(own.points[chosen, 0]),
        "y": rounded(own.points[chosen, 1]),
    }


def neighbours(own: Shown) -> Ints:
    """Places of the items with the most similar profiles, nearest first, shape (n_shown, ≤ NEIGHBOURS)."""
    points = own.profile[own.chosen]
    k = min(NEIGHBOURS, len(points) - 1)
    if k < 1:
        return np.zeros((len(points), 0), dtype=np.int64)
    found = NearestNeighbors(n_neighbors=k + 1).fit(points).kneighbors(points, return_distance=False)
    # Leave the item itself out, wherever ties have put it.
    rest = [[int(p) for p in row if p != at][:k] for at, row in enumerate(found)]
    return np.asarray(rest, dtype=np.int64)


def predictions(own: Shown, other: Shown, sample: Sample, position: int, other_position: int) -> list[list[Any]]:
    """For each item, [place, prediction] of the highest predictions among partners it was not observed with."""
    place = np.full(own.mode.n_items, -1)
    place[own.chosen] = np.arange(len(own.chosen))
    partner = np.full(other.mode.n_items, -1)
    partner[other.chosen] = np.arange(len(other.chosen))
    rows, columns = place[sample.codes[position]], partner[sample.codes[other_position]]
    inside = (rows >= 0) & (columns >= 0)
    rows, columns = rows[inside], columns[inside]
    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    assign = np.asarray(other.assign[other.chosen], dtype=np.float64).T
    result: list[list[Any]] = []
    k = min(PREDICTIONS, assign.shape[1])
    for start in range(0, len(own.chosen), 500):
        stop = min(start + 500, len(own.chosen))
        scores = own.profile[own.chosen[start:stop]] @ assign
        seen = slice(*np.searchsorted(rows, [start, stop]))
        scores[rows[seen] - start, columns[seen]] = -np.inf
        top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        for row, places in zip(scores, top):
            best = places[np.argsort(-row[places], kind="stable")]
            result.append([[int(p), float(f"{row[p]:.4g}")] for p in best if np.isfinite(row[p])])
    return result


def rounded(values: Any, digits: int = 4) -> Any:
    """Nested lists of short numbers; NaN becomes None."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in array.tolist()]
