"""The pilot: a short chain on most of the data says how large errors on the rest are, and where labels change.

The noise must come from held-out tuples: a chain's own residuals shrink as it over-fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from gingham.arrays import Floats
from gingham.data import Sample
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint
from gingham.models.layers import chains_torch as device
from gingham.models.layers.data import LayerData, SideTable
from gingham.models.layers.sampled import Chain, Shape
from gingham.storage import State

NOISE = 0.67  # σ² before anything is known, as a share of the labels' variance
SHARE = 0.1  # of the tuples that a pilot holds out
N_SWEEPS, BURN_IN = 80, 10


class PilotRun(NamedTuple):
    """Held-out labels of one pilot with the mean prediction of its chain and the variance between draws."""

    labels: Floats
    predictions: Floats
    variances: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Pilot:
    """What the held-out tuples say.

    Attributes
    ----------
    error : float
        σ², held-out mean square error of a chain's mean prediction; β = 1/(2σ²).
    scatter : float
        σ² without the part that the draws' own variance explains: what the predictive intervals add.
    cuts : ndarray of shape (|Y| − 1,) or None
        Where one label gives way to the next, so that absolute error is least.
    """

    error: float
    scatter: float
    cuts: Floats | None


def run_pilot(
    sample: Sample,
    sides: tuple[SideTable | None, ...],
    shape: Shape,
    seed: np.random.SeedSequence,
    backend: str = "auto",
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> PilotRun | None:
    """One chain on a random 90 % whose noise follows its error on the rest; None when there are too few tuples."""

    def compute() -> State:
        run = _piloted(sample, sides, shape, seed, backend)
        return {"run": None if run is None else run._asdict()}

    found = checkpoint.result(compute)["run"]
    return None if found is None else PilotRun(**found)


def _piloted(
    sample: Sample,
    sides: tuple[SideTable | None, ...],
    shape: Shape,
    seed: np.random.SeedSequence,
    backend: str,
) -> PilotRun | None:
    rng = np.random.default_rng(seed)
    held = rng.random(sample.n_rows) < SHARE
    if held.sum() < 2 or (~held).sum() < 2 or sample.labels is None:
        return None
    data = LayerData.of(sample.take(~held), sides)
    rest = sample.take(held)
    labels: Floats = np.asarray(rest.labels)
    weights: Floats = np.ones(len(labels)) if rest.weights is None else rest.weights
    if weights.sum() <= 0:
        return None
    floor = 1e-6 * data.variance
    noise = NOISE * data.variance
    chain: Chain | device.Chains
    if device.use_torch(backend, data, shape):
        chain = device.Chains(data, shape, noise, [device.whole(seed)])
    else:
        chain = Chain(data, shape, noise, rng)
    total, squares = np.zeros(len(labels)), np.zeros(len(labels))
    for sweep in range(N_SWEEPS):
        chain.sweep()
        if sweep >= BURN_IN:
            drawn = chain.draw().predict(rest.codes).mean
            total += drawn
            squares += drawn**2
            running = total / (sweep - BURN_IN + 1)
            chain.noise = max(float(np.average((labels - running) ** 2, weights=weights)), floor)
    n_kept = N_SWEEPS - BURN_IN
    predictions = total / n_kept
    return PilotRun(labels, predictions, np.maximum(squares / n_kept - predictions**2, 0.0), weights)


def pool_pilots(runs: list[PilotRun | None], sample: Sample, alphabet: Floats | None) -> Pilot:
    """The noise and the cut points from all held-out tuples together."""
    found = [run for run in runs if run is not None]
    variance = LayerData.of(sample).variance
    if not found:
        middle = None if alphabet is None else (alphabet[1:] + alphabet[:-1]) / 2.0
        return Pilot(NOISE * variance, NOISE * variance, middle)
    labels, predictions, variances, weights = (np.concatenate(parts) for parts in zip(*found))
    error = max(float(np.average((labels - predictions) ** 2, weights=weights)), 1e-6 * variance)
    scatter = max(error - float(np.average(variances, weights=weights)), 0.1 * error)
    cuts = None if alphabet is None else cut_points(predictions, labels, weights, alphabet)
    return Pilot(error, scatter, cuts)


def cut_points(predictions: Floats, labels: Floats, weights: Floats, alphabet: Floats) -> Floats:
    """Thresholds between neighbouring labels: where P(y ≤ label | prediction) is one half, by logistic regression.

    Predicting the median of the law of y given the prediction makes the absolute error least.
    """
    cuts = (alphabet[1:] + alphabet[:-1]) / 2.0
    for at, label in enumerate(alphabet[:-1]):
        below = labels <= label
        if min(below.sum(), (~below).sum()) < 10:  # too rare to learn: the midpoint stays
            continue
        fitted = LogisticRegression(C=1e3).fit(predictions[:, None], below, sample_weight=weights)
        slope = float(fitted.coef_[0, 0])
        if slope < 0:
            cuts[at] = -float(fitted.intercept_[0]) / slope
    return np.maximum.accumulate(cuts)
