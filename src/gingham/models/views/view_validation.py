"""How much ridge, and how many components? What correlates in objects that were not seen decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.model_selection import KFold

from gingham.arrays import Floats, Ints
from gingham.data.views import Matrix
from gingham.errors import GinghamError
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint
from gingham.models.views.fit import Method, Settings, max_components, mean_correlations, represent, solve
from gingham.models.views.representations import Kernel

RIDGES = (0.01, 0.1, 1.0, 10.0)
MOST_COMPONENTS = 300  # tried when their number is to be found


@dataclass(frozen=True, eq=False)
class RidgeChoice:
    """Ridge and number of components with the largest total of held-out correlations."""

    ridges: tuple[float, ...]  # per view
    n_components: int
    candidates: tuple[tuple[float, ...], ...]  # the ridges that were tried
    # ρ of each component on held-out objects, averaged over pairs of views and folds, (n_candidates, most_components)
    correlations: Floats


def choose(
    views: Sequence[Matrix],
    kernels: Sequence[Kernel],
    candidates: Sequence[tuple[float, ...]],
    n_components: int | None,
    settings: Settings,
    method: Method,
    cv: int,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> RidgeChoice:
    """Try every ridge on ``cv`` folds and take what correlates best outside of the training part.

    A component counts by how far its held-out correlation exceeds 2/√n, what chance alone may give: more of them
    are taken while they add to that total. A number that is given is kept and the ridge alone is chosen.
    """
    n = views[0].shape[0]
    if not 2 <= cv <= n // 2:
        raise GinghamError(
            f"Choosing ridge or n_components needs 2 to n/2 folds with 2 objects or more each: cv={cv}, {n} objects. "
            "Give both ridge and n_components, or more objects."
        )

    def fold(train: Ints, test: Ints) -> dict[str, Floats]:
        """ρ on the test objects for every candidate ridge, shape (n_candidates, tried components)."""
        inside = [_part(view, kernel, train, train) for view, kernel in zip(views, kernels)]
        outside = [_part(view, kernel, test, train) for view, kernel in zip(views, kernels)]
        representations = represent(inside, kernels, settings)
        tried = min(n_components or MOST_COMPONENTS, max_components(representations))
        rows = []
        for ridges in candidates:
            shared = solve(representations, ridges, tried, settings, method)
            rows.append(mean_correlations([score(view) for score, view in zip(shared.functions, outside)]))
        return {"held": np.stack(rows)}

    split = KFold(cv, shuffle=True, random_state=settings.seed).split(np.empty(n))
    folds = [
        checkpoint.stage(f"fold {number + 1}").result(partial(fold, train, test))["held"]
        for number, (train, test) in enumerate(split)
    ]
    width = min(held.shape[1] for held in folds)  # a smaller fold may have fewer components
    mean = np.mean([held[:, :width] for held in folds], axis=0)
    if n_components is not None:
        best = int(np.argmax(mean.sum(axis=1)))
        return RidgeChoice(candidates[best], n_components, tuple(candidates), mean)
    gains = np.cumsum(mean - 2.0 / np.sqrt(n), axis=1)
    row, last = divmod(int(np.argmax(gains)), width)
    return RidgeChoice(candidates[row], last + 1, tuple(candidates), mean)


def _part(view: Matrix, kernel: Kernel, rows: Ints, columns: Ints) -> Matrix:
    """Some objects of a view; a precomputed kernel keeps the training objects' columns only."""
    return view[rows][:, columns] if kernel.precomputed else view[rows]
