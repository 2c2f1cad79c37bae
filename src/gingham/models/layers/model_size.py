"""How many layers, how many clusters in each, how much side tables count: pilots compared on one held-out part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gingham.data import Sample
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint
from gingham.models.layers.data import SideTable
from gingham.models.layers.pilot import PilotRun, run_pilot
from gingham.models.layers.sampled import Shape

LAYERS = (1, 2, 4, 6, 10, 15, 22, 33)
CLUSTERS = (2, 3, 5, 8, 12, 18, 27)
WEIGHTS = (0.125, 0.25, 0.5, 1.0, 2.0)
MOST_CELLS = 2**13  # of a layer that is tried; a given size may be larger
FEWEST = 1000  # rows below which a held-out tenth cannot tell sizes apart
MOST = 5_000_000  # rows above which the comparison would take longer than its gain is worth


class Size(NamedTuple):
    """What a user may leave open by saying "auto"."""

    n_layers: Any
    n_clusters: Any
    side_weight: Any


MIDDLE = Size(10, 8, 0.5)  # stands where nothing is compared; the search begins around it


class Key(NamedTuple):
    """A size as the sample has it: one number of clusters per mode, none above the number of items."""

    n_layers: int
    n_clusters: tuple[int, ...]
    side_weight: float


@dataclass(frozen=True)
class Choice:
    """The size that was chosen, and why.

    Attributes
    ----------
    n_layers : int
    n_clusters : tuple of int
    side_weight : float
    tried : tuple of (n_layers, n_clusters, side_weight, held-out mean square error), in the order of the search
    reason : str
    """

    n_layers: int
    n_clusters: tuple[int, ...]
    side_weight: float
    tried: tuple[tuple[int, tuple[int, ...], float, float], ...]
    reason: str

    def __str__(self) -> str:
        return self.reason


class Search(NamedTuple):
    """The winner with its own pilot run (None when nothing was compared) and the choice to show."""

    shape: Shape
    sides: tuple[SideTable | None, ...]
    run: PilotRun | None
    choice: Choice


def middle_clusters(n_modes: int) -> int:
    """8 clusters of each mode, fewer where many modes meet."""
    return max(1, min(MIDDLE.n_clusters, int(4096 ** (1.0 / n_modes))))


def choose_size(
    sample: Sample,
    sides: tuple[SideTable | None, ...],
    given: Size,
    expand: Callable[[Any], tuple[int, ...]],
    offsets: bool,
    seed: np.random.SeedSequence | None,
    parallel: Callable[[Sequence[Callable[[], Any]]], list[Any]],
    backend: str = "auto",
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> Search:
    """Settle what is "auto" in ``given`` by the error on one held-out tenth, one quantity after the other.

    Nothing is compared without a seed, with too few rows or too many: the middle of each ladder stands.

    Parameters
    ----------
    expand : what ``n_clusters`` means for this sample, one number per mode
    parallel : runs calls side by side
    """
    middle = MIDDLE._replace(n_clusters=middle_clusters(sample.n_modes))
    auto = [isinstance(value, str) for value in given]
    size = Size(*(m if free else g for free, m, g in zip(auto, middle, given)))
    auto[2] = auto[2] and any(side is not None for side in sides)
    runs: dict[Key, PilotRun | None] = {}

    def key(size: Size) -> Key:
        return Key(int(size.n_layers), expand(size.n_clusters), float(size.side_weight))

    def compare(sizes: list[Size]) -> list[float]:
        new = list(dict.fromkeys(k for k in map(key, sizes) if k not in runs))
        if seed is not None:  # the same for every size: all are judged on the same held-out tuples
            calls = [
                partial(
                    run_pilot,
                    sample,
                    weighted(sides, k.side_weight),
                    Shape(*k[:2], offsets),
                    seed,
                    backend,
                    checkpoint.stage(f"size {k.n_layers}, {k.n_clusters}, {k.side_weight:g}"),
                )
                for k in new
            ]
            runs.update(zip(new, parallel(calls)))
        return [_error(runs[key(size)]) for size in sizes]

    why = "as given"
    if any(auto) and (seed is None or not FEWEST <= sample.n_rows <= MOST):
        why = "nothing was compared: too few rows, too many, or no pilots"
    elif any(auto):
        tried_clusters = [m for m in CLUSTERS if m**sample.n_modes <= MOST_CELLS] or [1]
        for at, ladder in enumerate((LAYERS, tried_clusters, WEIGHTS)):
            if auto[at]:
                rungs = [size._replace(**{Size._fields[at]: rung}) for rung in ladder]
                begin = min(range(len(ladder)), key=lambda i: abs(ladder[i] - middle[at]))
                size = rungs[climb(len(rungs), begin, lambda which: compare([rungs[i] for i in which]))]  # noqa: B023
        held = max((len(run.labels) for run in runs.values() if run is not None), default=0)
        why = f"the least error of {len(runs)} sizes on {held:,} held-out tuples"
    won = key(size)
    tried = tuple((*k, _error(run)) for k, run in runs.items())
    reason = f"{won.n_layers} layers of {' × '.join(map(str, won.n_clusters))} clusters: {why}."
    choice = Choice(*won, tried, reason)
    return Search(Shape(*won[:2], offsets), weighted(sides, won.side_weight), runs.get(won), choice)


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


def _error(run: PilotRun | None) -> float:
    if run is None:
        return float("inf")
    return float(np.average((run.labels - run.predictions) ** 2, weights=run.weights))
