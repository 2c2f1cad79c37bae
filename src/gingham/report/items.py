"""Single items: memberships, nearest items, predictions, and places on the map of both modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from gingham.arrays import Floats, Ints
from gingham.data import Mode, Sample

NEIGHBOURS = 6
PREDICTIONS = 6
CANDIDATES = 24  # partners that the model itself is asked about
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
        What an item gets from each cluster of the other mode (the position of a label, where labels are names).
    points : array of shape (n_items, 2)
    laws : array of shape (m, m_other, |Y|) or None
        Where labels are names: how probable each is in each cell.
    """

    chosen: Ints
    mode: Mode
    assign: Floats
    profile: Floats
    points: Floats
    laws: Floats | None = None


Predictor = Callable[[Ints, Ints], Floats]  # predictions for pairs of codes, of the own and of the other mode


def shown_items(sample: Sample, position: int, max_items: int) -> Ints:
    """Codes of the items with the most data, in the order of their ids."""
    counts = sample.counts(position)
    if len(counts) <= max_items:
        return np.arange(len(counts))
    return np.sort(np.argsort(-counts, kind="stable")[:max_items])


def items(
    own: Shown,
    other: Shown,
    sample: Sample,
    position: int,
    other_position: int,
    predict: Predictor | None = None,
    zeros: bool = False,
) -> dict[str, object]:
    """Columns of facts on the shown items of one mode; ``predict`` is the model's own word on pairs."""
    chosen = own.chosen
    counts = sample.counts(position)[chosen]
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    sums = np.bincount(sample.codes[position], weights * labels, minlength=own.mode.n_items)[chosen]
    means: Floats
    if zeros:
        means = sums / max(sample.shape[other_position], 1)
    elif own.laws is not None and sample.label_codes is not None:
        means = commonest(sample, position, sample.label_codes, (own.mode.n_items, own.laws.shape[2]))[chosen]
    else:
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
        "best": predictions(own, other, sample, position, other_position, predict),
        "x": rounded(own.points[chosen, 0]),
        "y": rounded(own.points[chosen, 1]),
    }


def commonest(sample: Sample, position: int, labels: Ints, shape: tuple[int, int]) -> Floats:
    """The commonest label of each item, as its position in the alphabet; NaN where there is none."""
    flat = sample.codes[position].astype(np.int64) * shape[1] + labels
    table = np.bincount(flat, sample.weights, minlength=shape[0] * shape[1]).reshape(shape)
    return np.where(table.sum(axis=1) > 0, table.argmax(axis=1), np.nan)


def neighbours(own: Shown) -> Ints:
    """Places of the items with the most similar profiles, nearest first, shape (n_shown, ≤ NEIGHBOURS).

    Where labels are names, profiles have no distances, and memberships are compared.
    """
    points = own.profile[own.chosen] if own.laws is None else np.asarray(own.assign[own.chosen], dtype=np.float64)
    k = min(NEIGHBOURS, len(points) - 1)
    if k < 1:
        return np.zeros((len(points), 0), dtype=np.int64)
    found = NearestNeighbors(n_neighbors=k + 1).fit(points).kneighbors(points, return_distance=False)
    # Leave the item itself out, wherever ties have put it.
    rest = [[int(p) for p in row if p != at][:k] for at, row in enumerate(found)]
    return np.asarray(rest, dtype=np.int64)


def predictions(
    own: Shown, other: Shown, sample: Sample, position: int, other_position: int, predict: Predictor | None = None
) -> list[list[list[float]]]:
    """For each item, [place, prediction] of the highest predictions among partners it was not observed with.

    Where labels are names, [place, label, probability] of the surest ones. With ``predict`` the candidates that
    the cells put first are ordered anew by the model's own predictions.
    """
    place = np.full(own.mode.n_items, -1)
    place[own.chosen] = np.arange(len(own.chosen))
    partner = np.full(other.mode.n_items, -1)
    partner[other.chosen] = np.arange(len(other.chosen))
    rows, columns = place[sample.codes[position]], partner[sample.codes[other_position]]
    inside = (rows >= 0) & (columns >= 0)
    rows, columns = rows[inside], columns[inside]
    if own.mode is other.mode:  # nobody meets himself
        alone = np.arange(len(own.chosen))
        rows, columns = np.concatenate([rows, alone]), np.concatenate([columns, alone])
    order = np.argsort(rows, kind="stable")
    rows, columns = rows[order], columns[order]
    assign = np.asarray(other.assign[other.chosen], dtype=np.float64).T
    result: list[list[list[float]]] = []
    k = min(PREDICTIONS if predict is None else CANDIDATES, assign.shape[1])
    step = 500 if own.laws is None else max(1, 500 // own.laws.shape[2])
    for start in range(0, len(own.chosen), step):
        stop = min(start + step, len(own.chosen))
        labels: Ints | None = None
        scores: Floats
        if own.laws is None:
            scores = own.profile[own.chosen[start:stop]] @ assign
        else:
            scores, labels = _surest(own.assign[own.chosen[start:stop]], own.laws, assign)
        seen = slice(*np.searchsorted(rows, [start, stop]))
        scores[rows[seen] - start, columns[seen]] = -np.inf
        top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        if predict is not None and labels is None:
            _rescore(scores, top, own.chosen[start:stop], other.chosen, predict)
        for at, (row, places) in enumerate(zip(scores, top)):
            best = [int(p) for p in places[np.argsort(-row[places], kind="stable")] if np.isfinite(row[p])]
            names = [[]] * len(best) if labels is None else [[int(labels[at, p])] for p in best]
            result.append([[p, *name, float(f"{row[p]:.4g}")] for p, name in zip(best[:PREDICTIONS], names)])
    return result


def _surest(assign: Floats, laws: Floats, partners: Floats) -> tuple[Floats, Ints]:
    """Probability and position of the most probable label of each pair, two arrays (n, n_partners)."""
    m, m_other, size = laws.shape
    own = np.asarray(assign, dtype=np.float64) @ laws.reshape(m, m_other * size)
    law = np.einsum("njy,jp->nyp", own.reshape(len(own), m_other, size), partners, optimize=True)
    return law.max(axis=1), law.argmax(axis=1)


def _rescore(scores: Floats, top: Ints, own: Ints, other: Ints, predict: Predictor) -> None:
    """Put the model's own predictions in the place of the candidates' scores."""
    rows = np.repeat(np.arange(len(top)), top.shape[1])
    columns = top.ravel()
    open_pairs = np.isfinite(scores[rows, columns])
    rows, columns = rows[open_pairs], columns[open_pairs]
    if len(rows):
        scores[rows, columns] = predict(own[rows], other[columns])


def rounded(values: Floats, digits: int = 4) -> list[object]:
    """Nested lists of short numbers; NaN becomes None."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in array.tolist()]
