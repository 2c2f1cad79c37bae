"""Clusters with their members and what characterises them, and the table of cells."""

from __future__ import annotations

import numpy as np

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.data import OneHot, Sample
from gingham.data.graphs import PairSample
from gingham.data.modes import Moments
from gingham.plots.arrange import arrange, cell_table
from gingham.report.items import Shown, rounded

MEMBERS = 12
MARKS = 3
MAX_SIDE = 60  # cells a side that the page shows as a table


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
