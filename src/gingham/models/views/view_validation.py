"""How much ridge, and how many components? Objects that were not seen decide: do their views find one another?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.model_selection import KFold

from gingham.arrays import Floats, Ints
from gingham.data.views import Matrix
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.models.views.fit import Method, Settings, max_components, mean_correlations, represent, solve
from gingham.models.views.representations import Kernel
from gingham.models.views.retrieval import component_weights, mean_over_views

RIDGES = (0.01, 0.1, 0.3, 1.0, 10.0)
MOST_COMPONENTS = 300  # tried when their number is to be found


@dataclass(frozen=True, eq=False)
class RidgeChoice:
    """The ridge by which held-out objects find their mates best, and how many components correlate with it."""

    ridges: tuple[float, ...]  # per view
    n_components: int
    candidates: tuple[tuple[float, ...], ...]  # the ridges that were tried
    # ρ of each component on held-out objects, averaged over pairs of views and folds, (n_candidates, most_components)
    correlations: Floats
    # MRR of held-out mates, averaged likewise, for each of the numbers of components in ``counts``
    counts: tuple[int, ...]
    mates: Floats


def choose(
    views: Sequence[Matrix],
    kernels: Sequence[Kernel],
    candidates: Sequence[tuple[float, ...]],
    n_components: int | None,
    settings: Settings,
    method: Method,
    cv: int,
    weighting: float,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> RidgeChoice:
    """Try every ridge on ``cv`` folds and take the one by which held-out objects find their mates best.

    Correlations would choose too little ridge: they do not see that a query's mate must beat all other documents. They
    say how many components there are: one counts by how far its held-out correlation exceeds 2/√n, what chance alone
    may give, and more are taken while they add to that total. A number that is given is kept.
    """
    n = views[0].shape[0]
    if not 2 <= cv <= n // 2:
        raise GinghamError(
            f"Choosing ridge or n_components needs 2 to n/2 folds with 2 objects or more each: cv={cv}, {n} objects. "
            "Give both ridge and n_components, or more objects."
        )

    def fold(train: Ints, test: Ints) -> dict[str, Floats]:
        """ρ and MRR on the test objects for every candidate ridge, by the number of components."""
        inside = [_part(view, kernel, train, train) for view, kernel in zip(views, kernels)]
        outside = [_part(view, kernel, test, train) for view, kernel in zip(views, kernels)]
        representations = represent(inside, kernels, settings)
        tried = min(n_components or MOST_COMPONENTS, max_components(representations))
        rows, mates = [], []
        for ridges in candidates:
            shared = solve(representations, ridges, tried, settings, method)
            scores = [score(view) for score, view in zip(shared.functions, outside)]
            rows.append(mean_correlations(scores))
            weighted = [each * component_weights(shared.strengths, weighting) for each in scores]
            mates.append([mean_over_views([each[:, :k] for each in weighted]) for k in ladder(tried)])
        return {"held": np.stack(rows), "mates": np.array(mates)}

    split = KFold(cv, shuffle=True, random_state=settings.seed).split(np.empty(n))
    folds = [
        checkpoint.stage(f"fold {number + 1}").result(partial(fold, train, test))
        for number, (train, test) in enumerate(split)
    ]
    width = min(each["held"].shape[1] for each in folds)  # a smaller fold may have fewer components
    mean = np.mean([each["held"][:, :width] for each in folds], axis=0)
    ladders = [ladder(each["held"].shape[1]) for each in folds]
    counts = tuple(k for k in ladders[0] if all(k in other for other in ladders))
    mates = np.mean([each["mates"][:, np.isin(tried, counts)] for each, tried in zip(folds, ladders)], axis=0)
    best = int(np.argmax(mates[:, -1] if n_components is not None else mates.max(axis=1)))
    found = n_components or int(np.argmax(np.cumsum(mean[best] - 2.0 / np.sqrt(n)))) + 1
    return RidgeChoice(candidates[best], found, tuple(candidates), mean, counts, mates)


def ladder(most: int) -> tuple[int, ...]:
    """1, 2, 4, … and the most: the numbers of components at which retrieval is measured."""
    return (*(2**step for step in range(most.bit_length()) if 2**step < most), most)


def _part(view: Matrix, kernel: Kernel, rows: Ints, columns: Ints) -> Matrix:
    """Some objects of a view; a precomputed kernel keeps the training objects' columns only."""
    return view[rows][:, columns] if kernel.precomputed else view[rows]
