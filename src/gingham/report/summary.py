"""summarize: a fitted checkerboard as a dictionary of plain values, all that the page shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gingham.arrays import Floats
from gingham.data import Sample
from gingham.plots.arrange import cell_table, embedding
from gingham.posterior import Posterior
from gingham.report.board import board
from gingham.report.clusters import cells, clusters
from gingham.report.items import Shown, items, shown_items
from gingham.trees import TreePosterior

MAX_ITEMS = 4000  # items of a mode that the page knows by name
MAX_POINTS = 1500  # points of a mode on the map


def summarize(
    posterior: Posterior,
    sample: Sample,
    *,
    title: str = "Co-clustering",
    label: str = "label",
    facts: Mapping[str, Any] | None = None,
    errors: Mapping[str, float] | None = None,
    certificates: Mapping[str, Any] | None = None,
    path: Sequence[Mapping[str, float]] | None = None,
    positions: tuple[int, int] = (0, 1),
    relation: int = 0,
    max_items: int = MAX_ITEMS,
) -> dict[str, Any]:
    """What a page shows of two modes of a model.

    Parameters
    ----------
    posterior, sample
        ``model.posterior_`` and the tuples to draw, ``model.sample(X, y)``.
    facts, errors : mappings
        Lines for the overview; errors are those on held-out data.
    certificates : mapping from name to Certificate
    path : sequence of mappings
        Rows of a β path.
    positions : pair of int
        The two modes that are laid out side by side, when there are more.
    max_items : int
        Items of a mode that can be searched by name: those with the most data.

    Returns
    -------
    dict
        Numbers, strings, lists and dictionaries only.
    """
    if isinstance(posterior, TreePosterior):  # a grid at its roots
        posterior, sample = posterior.at_root(sample, named=True)
    factor = posterior.structure.factors[relation]
    modes = [posterior.structure.modes[factor[position]] for position in positions]
    shown = [shown_items(sample, position, max_items) for position in positions]
    profiles = [profile(posterior, positions, relation), profile(posterior, positions[::-1], relation)]
    alphabet = sample.alphabet
    names = None if alphabet is None or alphabet.numeric else [str(value) for value in alphabet.values]
    sides = []
    points = embedding(posterior, positions, relation)
    for side in (0, 1):
        other = 1 - side
        position = positions[side]
        mode = modes[side]
        own = Shown(shown[side], mode, posterior.assign[factor[position]], profiles[side], points[side])
        opposite = Shown(
            shown[other], modes[other], posterior.assign[factor[positions[other]]], profiles[other], points[other]
        )
        sides.append(
            {
                "name": mode.name if modes[0] is not modes[1] or side == 0 else f"{mode.name} (again)",
                "n_items": mode.n_items,
                "n_shown": len(shown[side]),
                "n_clusters": posterior.n_clusters[factor[position]],
                "effective": round(posterior.effective_clusters[factor[position]], 2),
                "clusters": clusters(own, opposite, sample, position),
                "items": items(own, opposite, sample, position, positions[other]),
            }
        )
    return {
        "title": title,
        "label": label,
        "label_names": names,
        "facts": dict(facts or {}),
        "errors": {name: float(value) for name, value in (errors or {}).items()},
        "modes": sides,
        "board": board(posterior, sample, shown, positions, relation),
        "cells": cells(posterior, sample, positions, relation),
        "certificates": [certificate_facts(name, value) for name, value in (certificates or {}).items()],
        "path": [dict(row) for row in (path or [])],
        "max_points": MAX_POINTS,
    }


def profile(posterior: Posterior, positions: tuple[int, int], relation: int) -> Floats:
    """What each item of the first position gets from each cluster of the second, shape (n_items, m_other)."""
    assign = posterior.assign[posterior.structure.factors[relation][positions[0]]]
    return np.asarray(assign, dtype=np.float64) @ cell_table(posterior, positions, relation)


def certificate_facts(name: str, certificate: Any) -> dict[str, Any]:
    """A certificate with its explanation and, where bounds can be compared, the others."""
    facts: dict[str, Any] = {"name": name, **certificate.to_dict(), "explanation": certificate.explain()}
    rows = certificate.compare()
    facts["others"] = [{"bound": row.bound, "value": float(row.value)} for row in rows]
    return facts
