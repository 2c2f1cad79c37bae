"""Planted checkerboards: labelled tuples and counts with known clusters and known risk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError


class PlantedGrid(NamedTuple):
    """Tuples drawn from a checkerboard.

    Attributes
    ----------
    X : int array of shape (N, d)
    y : int array of shape (N,), labels 0, …, n_labels − 1
    labels : tuple of int arrays, the planted cluster of each item, one per mode
    answers : int array of shape (m_1, …, m_d), the planted label of each cell
    risk : float
        Expected zero-one loss of the planted checkerboard on new tuples: no predictor does better.
    """

    X: Ints
    y: Ints
    labels: tuple[Ints, ...]
    answers: Ints
    risk: float


class PlantedCounts(NamedTuple):
    """Co-occurrences drawn from a block density.

    Attributes
    ----------
    counts : int array of shape (n_1, n_2)
    labels : pair of int arrays
    density : array of shape (n_1, n_2), sums to one
    information : float
        Mutual information of the planted clusters, nats: the most that any clustering can keep.
    """

    counts: Ints
    labels: tuple[Ints, Ints]
    density: Floats
    information: float


def planted_grid(
    n_items: Sequence[int] = (200, 150),
    n_clusters: Sequence[int] = (4, 3),
    n_tuples: int = 10_000,
    *,
    n_labels: int = 5,
    noise: float = 0.2,
    seed: int = 0,
) -> PlantedGrid:
    """Tuples whose label is that of their cell, but with probability ``noise`` another one, all alike.

    Items are drawn uniformly, clusters of one mode have distinct answers, and the best possible
    zero-one risk is ``noise``.
    """
    if len(n_items) != len(n_clusters) or not n_items:
        raise GinghamError(f"n_items has {len(n_items)} entries and n_clusters {len(n_clusters)}: one each per mode.")
    if any(m < 1 or m > n for n, m in zip(n_items, n_clusters)):
        raise GinghamError(f"n_clusters={tuple(n_clusters)} must lie between 1 and n_items={tuple(n_items)}.")
    if not 0 <= noise <= (n_labels - 1) / n_labels or n_labels < 2:
        raise GinghamError(f"noise={noise} must be from 0 to (n_labels − 1)/n_labels, with at least two labels.")
    rng = np.random.default_rng(seed)
    labels = tuple(_balanced(n, m, rng) for n, m in zip(n_items, n_clusters))
    answers = _distinct_answers(tuple(n_clusters), n_labels, rng)
    X = np.column_stack([rng.integers(0, n, n_tuples) for n in n_items])
    clean = answers[tuple(label[X[:, j]] for j, label in enumerate(labels))]
    wrong = rng.random(n_tuples) < noise
    y = np.where(wrong, (clean + rng.integers(1, n_labels, n_tuples)) % n_labels, clean)
    return PlantedGrid(X, y, labels, answers, float(noise))


def planted_counts(
    n_items: tuple[int, int] = (120, 90),
    n_clusters: tuple[int, int] = (4, 3),
    n_tuples: int = 20_000,
    *,
    contrast: float = 8.0,
    seed: int = 0,
) -> PlantedCounts:
    """A table of counts: cells differ by factors up to ``contrast``, items within a cluster are alike.

    ``contrast`` = 1 makes both sides independent.
    """
    if not contrast >= 1:
        raise GinghamError(f"contrast={contrast} must be at least 1.")
    rng = np.random.default_rng(seed)
    labels = tuple(_balanced(n, m, rng) for n, m in zip(n_items, n_clusters))
    # Of many tables the most informative: a single draw may happen to be nearly independent.
    drawn = np.exp(rng.uniform(0, np.log(contrast), (50, *n_clusters)))
    shares = [np.bincount(label, minlength=m) / len(label) for label, m in zip(labels, n_clusters)]
    drawn *= shares[0][:, None] * shares[1][None, :]
    joint = max(drawn / drawn.sum(axis=(1, 2), keepdims=True), key=_information)
    density = (joint / (np.outer(*(np.bincount(label) for label in labels))))[np.ix_(labels[0], labels[1])]
    counts = rng.multinomial(n_tuples, density.ravel() / density.sum()).reshape(n_items)
    return PlantedCounts(counts, (labels[0], labels[1]), density, _information(joint))


def _information(joint: Floats) -> float:
    """Mutual information of a joint distribution, nats."""
    return float((joint * np.log(joint / (joint.sum(1)[:, None] * joint.sum(0)[None, :]))).sum())


def _balanced(n: int, m: int, rng: np.random.Generator) -> Ints:
    return rng.permutation(np.arange(n) % m)


def _distinct_answers(shape: tuple[int, ...], n_labels: int, rng: np.random.Generator) -> Ints:
    """Random answers in which no two clusters of a mode are alike, where that is possible."""
    answers = rng.integers(0, n_labels, shape)
    for _ in range(200):
        if all(
            len(np.unique(np.moveaxis(answers, axis, 0).reshape(m, -1), axis=0)) == m for axis, m in enumerate(shape)
        ):
            break
        answers = rng.integers(0, n_labels, shape)
    return answers
