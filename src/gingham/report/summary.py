"""summarize: a fitted checkerboard as a dictionary of plain values, all that the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gingham.arrays import Floats
from gingham.certificates import Certificate
from gingham.core.posterior import Posterior
from gingham.core.tree_posterior import TreePosterior
from gingham.data import Sample
from gingham.data.graphs import PairSample
from gingham.errors import GinghamError
from gingham.kernels.project import row_blocks
from gingham.models.vocabulary import EDGES, NAMES, PAIRS, RATINGS, Words
from gingham.plots.arrange import cell_table, embedding
from gingham.report.board import board
from gingham.report.clusters import cells, clusters
from gingham.report.items import Predictor, Shown, items, shown_items

MAX_ITEMS = 4000  # items of a mode that the page knows by name
MAX_POINTS = 1500  # points of a mode on the map


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
    profiles = [
        profile(posterior, positions, relation, laws[0]),
        profile(posterior, positions[::-1], relation, laws[1]),
    ]
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
    factor = posterior.structure.factors[relation]
    table = posterior.cells[relation].distribution(posterior.answers[relation])
    if table is None:
        raise GinghamError("Labels that are names need cells that predict their distribution.")
    for axis in reversed(range(len(factor))):
        if axis not in positions:
            table = np.tensordot(table, posterior.mass[factor[axis]], axes=([axis], [0]))
    return table if positions[0] < positions[1] else np.swapaxes(table, 0, 1)


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
