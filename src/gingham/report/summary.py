"""summarize: a fitted checkerboard as a dictionary of plain values, all that the page shows."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.neighbors import NearestNeighbors

from gingham.arrays import Floats, Ints
from gingham.certificates import Certificate
from gingham.core.posterior import Posterior
from gingham.core.tree import TreePosterior
from gingham.data import Mode, OneHot, Sample
from gingham.data.graphs import PairSample
from gingham.data.modes import Moments
from gingham.errors import GinghamError
from gingham.kernels.project import row_blocks
from gingham.models.vocabulary import EDGES, NAMES, PAIRS, RATINGS, Words
from gingham.plots.board import arrange, cell_table, embedding, of_two_modes, picture

MAX_ITEMS = 4000  # items of a mode that the page knows by name
MAX_POINTS = 1500  # points of a mode on the map
MAX_PIXELS = 2000  # pixels a side of the board; more items than that share pixels
MAX_SIDE = 60  # cells a side that the page shows as a table
MEMBERS, MARKS = 12, 3  # of a cluster: members, and clusters of the other mode that tell it apart
NEIGHBOURS, PREDICTIONS, MEMBERSHIPS = 6, 6, 4  # of an item
CANDIDATES = 24  # partners that the model itself is asked about


@dataclass(frozen=True, eq=False)
class Shown:
    """One mode as the page shows it."""

    chosen: Ints  # (n_shown,): codes of the items that the page knows by name
    mode: Mode
    assign: Floats  # (n_items, n_clusters)
    # (n_items, m_other): what an item gets from each cluster of the other mode (the position of a label, where
    # labels are names)
    profile: Floats
    points: Floats  # (n_items, 2)
    laws: Floats | None = None  # (m, m_other, |Y|) where labels are names: how probable each is in each cell


Predictor = Callable[[Ints, Ints], Floats]  # predictions for pairs of codes, of the own and of the other mode


def summarize(
    posterior: Posterior,
    sample: Sample,
    *,
    title: str = "Co-clustering",
    label: str = "label",
    facts: Mapping[str, object] | None = None,
    errors: Mapping[str, float] | None = None,
    certificates: Mapping[str, Certificate | Mapping[str, object]] | None = None,
    path: Sequence[Mapping[str, float]] | None = None,
    positions: tuple[int, int] = (0, 1),
    relation: int = 0,
    max_items: int = MAX_ITEMS,
    predict: Predictor | None = None,
    words: Words | None = None,
    cluster_names: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None),
    zeros: bool = False,
    notes: Sequence[str] = (),
    refusal: str = "",
) -> dict[str, object]:
    """What a page shows of two modes of a model.

    Parameters
    ----------
    posterior, sample
        ``model.posterior_`` and the tuples to draw, ``model.sample(X, y)``.
    facts, errors : mappings
        Lines for the overview; errors are those on held-out data.
    certificates : mapping from name to Certificate, or to the facts of another guarantee
    path : sequence of mappings
        Rows of a β path.
    positions : pair of int
        The two modes that are laid out side by side, when there are more.
    max_items : int
        Items of a mode that can be searched by name: those with the most data.
    predict : callable, optional
        The model's own predictions for codes of both modes, where it is more than this checkerboard.
    words : Words, optional
        What things are called; told by the data.
    cluster_names : pair of sequences, optional
        Names of the clusters of each mode; numbers by default.
    zeros : bool
        Whether what is not listed counts as zero (counts; graphs tell it themselves).
    notes : sequence of str
        Sentences for the overview.
    refusal : str
        Why there is no certificate, or no other.

    Returns
    -------
    dict
        Numbers, strings, lists and dictionaries only.
    """
    if isinstance(posterior, TreePosterior):  # a grid at its roots
        posterior, sample = posterior.at_root(sample, named=True)
    factor = posterior.structure.factors[relation]
    modes = [posterior.structure.modes[factor[position]] for position in positions]
    same = modes[0] is modes[1]
    pairs = isinstance(sample, PairSample)
    zeros = zeros or (isinstance(sample, PairSample) and sample.complete)
    drawn = both_ways(sample) if isinstance(sample, PairSample) and not sample.directed else sample
    alphabet = sample.alphabet
    named = alphabet is not None and not alphabet.numeric
    ways = (positions, positions[::-1])
    laws = [label_laws(posterior, at, relation) if named else None for at in ways]
    shown = [shown_items(drawn, position, max_items) for position in positions]
    profiles = [profile(posterior, at, relation, law) for at, law in zip(ways, laws)]
    sides = []
    points = embedding(posterior, positions, relation)
    views = [
        Shown(shown[side], modes[side], posterior.assign[factor[positions[side]]], profiles[side], points[side],
              laws[side])
        for side in (0, 1)
    ]  # fmt: skip
    for side, (own, other) in enumerate((views, views[::-1])):
        position, opposite = positions[side], positions[1 - side]
        own_word = predict if side == 0 or predict is None else turned(predict)
        sides.append(
            {
                "name": modes[side].name,
                "n_items": modes[side].n_items,
                "n_shown": len(shown[side]),
                "n_clusters": posterior.n_clusters[factor[position]],
                "effective": round(posterior.effective_clusters[factor[position]], 2),
                "cluster_names": None if cluster_names[side] is None else [str(n) for n in cluster_names[side] or ()],
                "clusters": clusters(own, other, drawn, position),
                "items": items(own, other, drawn, position, opposite, own_word, zeros),
            }
        )
    words = words or (EDGES if pairs and zeros else PAIRS if pairs else NAMES if named else RATINGS)
    return {
        "title": title,
        "label": label,
        "label_names": [str(value) for value in alphabet.values] if named and alphabet is not None else None,
        "facts": dict(facts or {}),
        "errors": {name: float(value) for name, value in (errors or {}).items()},
        "modes": sides,
        "same": same,
        "words": words._asdict(),
        "board": board(posterior, drawn, shown, positions, relation, zeros, zeros and not pairs),
        "cells": cells(posterior, sample, positions, relation, laws[0], zeros),
        "certificates": [certificate_facts(name, value) for name, value in (certificates or {}).items()],
        "refusal": refusal,
        "notes": list(notes),
        "path": [dict(row) for row in (path or [])],
        "max_points": MAX_POINTS,
    }


def both_ways(sample: PairSample) -> Sample:
    """Undirected pairs as they stand in a matrix: each of them twice."""
    left, right = sample.codes[:2]
    twice = [None if a is None else np.concatenate([a, a]) for a in (sample.labels, sample.label_codes, sample.weights)]
    codes = (np.concatenate([left, right]), np.concatenate([right, left]))
    return Sample(sample.modes[:2], codes, twice[0], sample.alphabet, twice[1], twice[2])


def turned(predict: Predictor) -> Predictor:
    """The same predictions for codes in the other order."""
    return lambda own, other: predict(other, own)


def label_laws(posterior: Posterior, positions: tuple[int, int], relation: int) -> Floats:
    """How probable each label is in each cell of two modes, (m_row, m_column, |Y|); others averaged by mass."""
    table = posterior.cells[relation].distribution(posterior.answers[relation])
    if table is None:
        raise GinghamError("Labels that are names need cells that predict their distribution.")
    return of_two_modes(posterior, table, positions, relation)


def profile(posterior: Posterior, positions: tuple[int, int], relation: int, laws: Floats | None = None) -> Floats:
    """What each item of the first position gets from each cluster of the second, shape (n_items, m_other).

    With ``laws`` (labels are names): the position of the most probable label.
    """
    assign = np.asarray(posterior.assign[posterior.structure.factors[relation][positions[0]]], dtype=np.float64)
    if laws is None:
        return assign @ cell_table(posterior, positions, relation)
    m, m_other, size = laws.shape
    found = np.empty((len(assign), m_other))
    for start, stop in row_blocks(len(assign), m_other * size):
        law = assign[start:stop] @ laws.reshape(m, m_other * size)
        found[start:stop] = law.reshape(-1, m_other, size).argmax(axis=2)
    return found


def certificate_facts(name: str, certificate: Certificate | Mapping[str, object]) -> dict[str, object]:
    """A certificate with its explanation and, where bounds can be compared, the others; facts as they are."""
    if isinstance(certificate, Mapping):
        return {"name": name, **certificate}
    facts: dict[str, object] = {"name": name, **certificate.to_dict(), "explanation": certificate.explain()}
    rows = certificate.compare()
    facts["others"] = [{"bound": row.bound, "value": float(row.value)} for row in rows]
    return facts


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


def clusters(own: Shown, other: Shown, sample: Sample, position: int) -> list[dict[str, object]]:
    """For each cluster: size, its surest members with much data, and where it differs from the rest."""
    assign = np.asarray(own.assign, dtype=np.float64)
    mass = assign.mean(axis=0)
    sizes = np.bincount(assign.argmax(axis=1), minlength=assign.shape[1])
    counts = sample.counts(position)
    weight = np.log1p(counts[own.chosen])
    share = assign / np.maximum(assign.sum(axis=0), 1e-300)
    other_mass = np.asarray(other.assign, dtype=np.float64).mean(axis=0)
    if own.laws is None:
        typical = share.T @ own.profile  # what a member gets, on average
        distance = typical - own.profile.mean(axis=0)
    else:
        typical = own.laws.argmax(axis=2)
        distance = np.abs(own.laws - np.tensordot(mass, own.laws, axes=(0, 0))).sum(axis=2) / 2  # total variation
    found = []
    for c in range(assign.shape[1]):
        score = assign[own.chosen, c] * weight
        members = np.argsort(-score, kind="stable")[:MEMBERS]
        belongs = [int(p) for p in members if assign[own.chosen[p]].argmax() == c]
        difference = np.where(other_mass > 1e-6, distance[c], 0.0)
        order = np.argsort(-np.abs(difference) * np.sqrt(other_mass), kind="stable")[:MARKS]
        found.append(
            {
                "size": int(sizes[c]),
                "mass": float(f"{mass[c]:.4g}"),
                "tuples": float(counts @ assign[:, c]),
                "members": belongs,
                "marks": [
                    {
                        "cluster": int(k),
                        "value": float(f"{typical[c, k]:.4g}"),
                        "difference": float(f"{difference[k]:.3g}"),
                    }
                    for k in order
                    if abs(difference[k]) > 1e-9
                ],
            }
        )
    return found


def cells(
    posterior: Posterior,
    sample: Sample,
    positions: tuple[int, int],
    relation: int,
    laws: Floats | None = None,
    zeros: bool = False,
) -> dict[str, object]:
    """Answer, amount of data and observed mean of each cell of two modes, clusters in the order shown.

    Where labels are names (``laws``), answer and mean are the most probable and the commonest label.
    """
    layout = arrange(posterior, positions, relation)
    table = cell_table(posterior, positions, relation) if laws is None else laws.argmax(axis=2).astype(np.float64)
    used = [
        [int(c) for c in order if posterior.mass[posterior.structure.factors[relation][p]][c] * n >= 0.5][:MAX_SIDE]
        for order, p, n in zip(layout.clusters, positions, (sample.shape[p] for p in positions))
    ]
    counts, means = _observed(posterior, sample, positions, relation, laws is not None)
    if zeros and not isinstance(sample, PairSample):  # a graph counts its absent pairs itself
        sizes = [posterior.mass[posterior.structure.factors[relation][p]] * sample.shape[p] for p in positions]
        means = counts / np.maximum(np.outer(sizes[0], sizes[1]), 1e-300)
    pick = np.ix_(used[0], used[1])
    shown = table[pick]
    return {
        "rows": used[0],
        "columns": used[1],
        "answer": rounded(shown),
        "count": rounded(counts[pick]),
        "mean": rounded(means[pick]),
        "low": float(shown.min()) if shown.size else 0.0,
        "high": float(shown.max()) if shown.size else 1.0,
    }


def _observed(
    posterior: Posterior, sample: Sample, positions: tuple[int, int], relation: int, named: bool
) -> tuple[Floats, Floats]:
    """Weight and mean (or commonest) label of each cell of two modes, both of shape (m_row, m_column)."""
    features = OneHot(sample.alphabet.size) if sample.alphabet is not None else Moments(1)
    statistics = posterior.statistics(sample, relation, features)
    others = tuple(axis for axis in range(statistics.ndim - 1) if axis not in positions)
    statistics = statistics.sum(axis=others)
    if positions[0] > positions[1]:
        statistics = np.swapaxes(statistics, 0, 1)
    if sample.alphabet is not None:
        counts = statistics.sum(-1)
        if named:
            return counts, np.where(counts > 0, statistics.argmax(-1), np.nan)
        sums = statistics @ sample.alphabet.numbers
    else:
        counts, sums = statistics[..., 0], statistics[..., 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        return counts, np.where(counts > 0, sums / counts, np.nan)


def board(
    posterior: Posterior,
    sample: Sample,
    shown: list[Ints],
    positions: tuple[int, int],
    relation: int,
    zeros: bool = False,
    logarithmic: bool = False,
) -> dict[str, object]:
    """Both pictures, the order of items, and the borders of clusters.

    ``zeros``: what is not listed counts as zero. ``logarithmic``: colours follow ln(1 + value), for counts.
    """
    layout = arrange(posterior, positions, relation)
    values = picture(sample, layout.items, positions, MAX_PIXELS, zeros)
    before = picture(sample, None, positions, MAX_PIXELS, zeros)
    if logarithmic:
        values, before = np.log1p(values), np.log1p(before)
    low, high = _range(values, before)
    return {
        "logarithmic": logarithmic,
        "holes": bool(np.isnan(before).any()),
        "rows": values.shape[0],
        "columns": values.shape[1],
        "low": low,
        "high": high,
        "reordered": png(values, low, high),
        "original": png(before, low, high),
        "clusters": [order.tolist() for order in layout.clusters],
        "bounds": [bounds.tolist() for bounds in layout.bounds],
        # for each place in the order: the place of the item in the page's list of items, −1 if it is not there
        "order": [_places(order, chosen, n) for order, chosen, n in zip(layout.items, shown, values.shape)],
        "plain": [_places(np.arange(len(o)), chosen, n) for o, chosen, n in zip(layout.items, shown, values.shape)],
    }


def _places(order: Ints, shown: Ints, n_pixels: int) -> list[int] | None:
    """Places in the list of items; None when several items share a pixel."""
    if len(order) > n_pixels:
        return None
    place = np.full(len(order), -1)
    place[shown] = np.arange(len(shown))
    return [int(p) for p in place[order]]


def _range(*images: Floats) -> tuple[float, float]:
    seen = np.concatenate([image[np.isfinite(image)] for image in images])
    return (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)


def png(values: Floats, low: float, high: float) -> str:
    """A data address of an 8-bit picture: 0 where nothing was observed, 1 to 255 from low to high."""
    try:
        from PIL import Image
    except ImportError:
        raise GinghamError("The report draws with Pillow: install gingham[report].") from None
    scaled = np.zeros(values.shape, dtype=np.uint8)
    seen = np.isfinite(values)
    width = high - low if high > low else 1.0
    scaled[seen] = 1 + np.rint(254 * (values[seen] - low) / width).astype(np.uint8)
    stream = io.BytesIO()
    Image.fromarray(scaled).save(stream, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
