"""The committee of plain grids, its start, size and β chosen inside a training part.

A tenth of the training part is held out; start, number of clusters and β are settled one after the other, each by
the least error of the committee's median there, with a small committee. Each ladder is entered at its middle and
followed while its end is best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import gingham as gg

STARS = np.arange(1, 6)
LADDERS: dict[str, tuple[Any, ...]] = {
    "start": ("means", "spectral", "random"),
    "clusters": (20, 30, 45, 60, 90),
    "beta": (0.5, 0.7, 1.0, 1.4, 2.0),
}
SMALL, FULL = 10, 20  # members while choosing, members of the committee that is tested


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


def committee(setting: dict[str, Any], n_members: int, seed: int) -> gg.Committee:
    grid = gg.CoClusteringRegressor(
        setting["clusters"], beta=setting["beta"], start=setting["start"], alphabet=STARS,
        solver=gg.fitting.Projection(gg.fitting.Down(3.0, 20)), max_iter=30,
    )  # fmt: skip
    return gg.Committee(grid, n_members, random_state=seed)


def chosen_committee(X: Any, y: Any, seed: int) -> tuple[gg.Committee, dict[str, Any]]:
    """The committee to fit on the whole training part, and what was tried on the way."""
    seen, held = train_test_split(np.arange(len(y)), test_size=0.1, random_state=seed)
    setting = {name: ladder[len(ladder) // 2] for name, ladder in LADDERS.items()}
    tried: dict[str, float] = {}

    def error(setting: dict[str, Any]) -> float:
        key = ", ".join(f"{name} {value}" for name, value in setting.items())
        if key not in tried:
            model = committee(setting, SMALL, seed).fit(X[seen], y[seen])
            tried[key] = float(np.mean(np.abs(model.predict(X[held], rule="median") - y[held])))
        return tried[key]

    for name, ladder in LADDERS.items():
        rungs = [{**setting, name: value} for value in ladder]
        setting = rungs[climb(len(rungs), len(rungs) // 2, lambda which: [error(rungs[i]) for i in which])]  # noqa: B023
    return committee(setting, FULL, seed), {"chosen": setting, "tried": tried}
