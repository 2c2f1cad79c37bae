"""Pilots: short chains on most of the data say how large errors on the rest are, where labels change, which size fits.

The noise must come from held-out tuples: a chain's own residuals shrink as it over-fits. Numbers of layers and
clusters, and how much side tables count, are compared by pilots with one held-out part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from gingham.arrays import Floats
from gingham.data import Sample
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.starts import Sizes
from gingham.models.layers.data import LayerData
from gingham.models.layers.sampled import Chain, Shape, TorchChains, torch_seed, use_torch
from gingham.models.layers.side import SideTable
from gingham.storage import State

NOISE = 0.67  # σ² before anything is known, as a share of the labels' variance
SHARE = 0.1  # of the tuples that a pilot holds out
N_SWEEPS, BURN_IN = 80, 10
LAYERS = (1, 2, 4, 6, 10, 15, 22, 33)
CLUSTERS = (2, 3, 5, 8, 12, 18, 27)
WEIGHTS = (0.125, 0.25, 0.5, 1.0, 2.0)
MOST_CELLS = 2**13  # of a layer that is tried; a given size may be larger
FEWEST = 1000  # rows below which a held-out tenth cannot tell sizes apart
ENOUGH = 1_000_000  # rows on which sizes are compared, where there are more: fewer find too small a size
ALONE = 300_000  # rows of which a tenth says enough: a second pilot would hold out another one
MOST = 5_000_000  # rows above which the comparison would take longer than its gain is worth


class PilotRun(NamedTuple):
    """Held-out labels of one pilot with the mean prediction of its chain and the variance between draws."""

    labels: Floats
    predictions: Floats
    variances: Floats
    weights: Floats

    @property
    def error(self) -> float:
        """Mean square error of the held-out labels."""
        return float(np.average((self.labels - self.predictions) ** 2, weights=self.weights))


@dataclass(frozen=True, eq=False)
class Pilot:
    """What the held-out tuples say."""

    error: float  # σ², held-out mean square error of a chain's mean prediction; β = 1/(2σ²)
    scatter: float  # σ² without the part that the draws' own variance explains: what the predictive intervals add
    cuts: Floats | None  # (|Y| − 1,): where one label gives way to the next, so that absolute error is least


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
    chain: Chain | TorchChains
    if use_torch(backend, data, shape):
        chain = TorchChains(data, shape, noise, [torch_seed(seed)])
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
        from sklearn.linear_model import LogisticRegression  # takes a second to import

        fitted = LogisticRegression(C=1e3).fit(predictions[:, None], below, sample_weight=weights)
        slope = float(fitted.coef_[0, 0])
        if slope < 0:
            cuts[at] = -float(fitted.intercept_[0]) / slope
    return np.maximum.accumulate(cuts)


class Size(NamedTuple):
    """How large a layered model is; what a user leaves open is "auto"."""

    n_layers: Sizes | float
    n_clusters: Sizes | float
    side_weight: Sizes | float


MIDDLE = Size(10, 8, 0.5)  # stands where nothing is compared; the search begins around it


@dataclass(frozen=True)
class SizeChoice:
    """The size that was chosen, and why."""

    n_layers: int
    n_clusters: tuple[int, ...]  # one per mode
    side_weight: float
    tried: tuple[tuple[int, tuple[int, ...], float, float], ...]  # sizes in order, with their held-out square error
    reason: str
    own_clusters: bool = False  # whether the items of a mode have clusters of their own

    def __str__(self) -> str:
        return self.reason


def choose_layers(
    sample: Sample,
    sides: tuple[SideTable | None, ...],
    given: Size,
    expand: Callable[[Sizes], tuple[int, ...]],
    offsets: bool,
    seed: np.random.SeedSequence | None,
    parallel: Callable[[Sequence[Callable[[], PilotRun | None]]], list[PilotRun | None]],
    backend: str = "auto",
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[SizeChoice, PilotRun | None]:
    """Settle what is "auto" in ``given`` by the error on one held-out tenth, one quantity after the other.

    Nothing is compared without a seed, with too few rows or too many: the middle of each ladder stands. Where there are
    more rows than enough, all those of some items of the first mode are looked at.

    Parameters
    ----------
    expand : what ``n_clusters`` means for this sample, one number per mode
    parallel : runs calls side by side

    Returns
    -------
    The choice, and the winner's own pilot run (None when nothing was compared, or not on all rows).
    """
    # 8 clusters of each mode, fewer where many modes meet
    middle = MIDDLE._replace(n_clusters=max(1, min(8, int(4096 ** (1.0 / sample.n_modes)))))
    auto = [isinstance(value, str) for value in given]
    size = Size(*(m if free else g for free, m, g in zip(auto, middle, given)))
    auto[2] = auto[2] and any(side is not None for side in sides)
    runs: dict[tuple[int, tuple[int, ...], float], PilotRun | None] = {}
    some = sample
    if seed is not None and ENOUGH < sample.n_rows <= MOST:
        kept = np.random.default_rng(seed).random(sample.shape[0]) < ENOUGH / sample.n_rows
        some = sample.take(kept[sample.codes[0]])

    def key(size: Size) -> tuple[int, tuple[int, ...], float]:
        """A size as the sample has it: no mode has more clusters than items."""
        return int(cast(int, size.n_layers)), expand(cast(Sizes, size.n_clusters)), float(cast(float, size.side_weight))

    def error(run: PilotRun | None) -> float:
        return float("inf") if run is None else run.error

    def compare(sizes: list[Size]) -> list[float]:
        new = list(dict.fromkeys(k for k in map(key, sizes) if k not in runs))
        if seed is not None:  # the same for every size: all are judged on the same held-out tuples
            calls = [
                partial(
                    run_pilot,
                    some,
                    weighted(sides, weight),
                    Shape(layers, clusters, offsets),
                    seed,
                    backend,
                    checkpoint.stage(f"size {layers}, {clusters}, {weight:g}"),
                )
                for layers, clusters, weight in new
            ]
            runs.update(zip(new, parallel(calls)))
        return [error(runs[key(size)]) for size in sizes]

    why = "as given"
    if any(auto) and (seed is None or not FEWEST <= sample.n_rows <= MOST):
        why = "nothing was compared: too few rows, too many, or no pilots"
    elif any(auto):
        tried_clusters = [m for m in CLUSTERS if m**sample.n_modes <= MOST_CELLS] or [1]
        for at, ladder in enumerate((LAYERS, tried_clusters, WEIGHTS)):
            if auto[at]:
                rungs = [size._replace(**{Size._fields[at]: rung}) for rung in ladder]
                begin = int(np.argmin(np.abs(np.subtract(ladder, middle[at]))))
                size = rungs[climb(len(rungs), begin, lambda which: compare([rungs[i] for i in which]))]  # noqa: B023
        held = max((len(run.labels) for run in runs.values() if run is not None), default=0)
        why = f"the least error of {len(runs)} sizes on {held:,} held-out tuples"
    won = key(size)
    tried = tuple((*k, error(run)) for k, run in runs.items())
    reason = f"{won[0]} layers of {' × '.join(map(str, won[1]))} clusters: {why}."
    return SizeChoice(*won, tried, reason), runs.get(won) if some is sample else None


def climb(n_rungs: int, begin: int, errors_of: Callable[[list[int]], list[float]]) -> int:
    """The best rung of a ladder: first one and its neighbours, then further while the last on a side is the best."""
    window = list(range(max(begin - 1, 0), min(begin + 2, n_rungs)))
    errors = dict(zip(window, errors_of(window)))
    while True:
        best = min(errors, key=lambda i: errors[i])
        further = best + 1 if best == max(errors) else best - 1 if best == min(errors) else -1
        if not 0 <= further < n_rungs or further in errors:
            return best
        errors[further] = errors_of([further])[0]


def weighted(sides: tuple[SideTable | None, ...], weight: float) -> tuple[SideTable | None, ...]:
    """Side tables that count by the given weight."""
    return tuple(None if side is None else side._replace(weight=weight) for side in sides)
