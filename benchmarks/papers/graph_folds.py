"""Cross-validated loss of a graph clustering, on the pairs it may see and on no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def folds(sample: Any, n_folds: int, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """Each fold's training and held-out pairs, out of the listed ones."""
    part = np.random.default_rng(seed).permutation(sample.n_rows) % n_folds
    for fold in range(n_folds):
        yield sample.take(np.flatnonzero(part != fold)), sample.take(np.flatnonzero(part == fold))


def cross_validated(sample: Any, fit: Callable[[Any, float], Any], n_folds: int = 5, seed: int = 0) -> float:
    """Mean Gibbs loss of held-out pairs.

    ``fit(train, share)`` is the whole procedure, its start included. Its β is to be divided by the share of the pairs
    that a fold trains on: the trade-off is β N L̂ + n Ī, so a fold with fewer pairs would else be another problem.
    """
    total = 0.0
    for train, held_out in folds(sample, n_folds, seed):
        posterior = fit(train, train.n_observations / sample.n_observations)
        total += posterior.gibbs_loss(held_out) * held_out.n_observations
    return total / sample.n_observations
