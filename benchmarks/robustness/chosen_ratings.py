"""Ratings that people chose against ratings of things shown at random: what certificates say on Coat, and what is true.

290 people rated 24 coats of their choice and 16 that were shown at random. A model learns from half of the chosen
ratings and is certified on the other half: as it stands, which speaks of ratings that people choose, and for the whole
catalogue by the propensities that come with the data, for several factors Γ by which these may be wrong. The coats
shown at random say what is true of the catalogue.

    python benchmarks/robustness/chosen_ratings.py --data DATA
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, write
from gingham.certificates import Propensity, selection_effect

ONLY_FULL = "the whole takes a few seconds"
FIGURES = {
    "certified of ratings that people choose": "ordinary/promised",
    "true of coats shown at random": "at random/loss",
    "labels less predictions, at random less chosen": "effect by coats shown at random/observed",
}
DELTA, GAMMAS = 0.05, (1.0, 1.5, 2.0)


def main() -> None:
    args = arguments(__doc__ or "", "chosen_ratings")
    coat, rng = load(args.data, "coat.npz"), np.random.default_rng(args.seed)
    chosen, shown = coat["self_selected"], coat["random"]
    X, away = np.argwhere(chosen > 0), np.argwhere((shown > 0) & (chosen == 0))
    y, truth = chosen[tuple(X.T)].astype(float), shown[tuple(away.T)].astype(float)
    order = rng.permutation(len(y))
    first, second = order[: len(y) // 2], order[len(y) // 2 :]
    model = gg.CoClusteringRegressor(alphabet=range(1, 6), random_state=args.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[first], y[first])
        guess, at_random = (np.clip(model.predict(rows, rule="mean"), 1, 5) for rows in (X[second], away))
    labels, p = y[second], coat["propensities"].astype(float)
    stated: dict[str, Any] = {"loss": "absolute", "label_bounds": (1, 5), "delta": DELTA}
    ordinary = gg.certify_predictions(labels, guess, **stated)
    misses = np.abs(truth - at_random)
    watch = ordinary.watch(alpha=0.01).add(rng.permutation(misses))
    results: dict[str, Any] = {
        "rows": {"learned from": len(first), "tested on": len(second), "shown at random": len(truth)},
        "ordinary": {"promised": ordinary.value, "observed": ordinary.empirical,
                     "says": [one.text for one in ordinary.assumptions]},
        "at random": {"loss": float(misses.mean()), "promise ended after rows": watch.ended,
                      "labels less predictions": float((truth - at_random).mean())},
        "chosen": {"labels less predictions": float((labels - guess).mean())},
        "by propensities": {},
    }  # fmt: skip
    for gamma in GAMMAS:
        propensity = Propensity(p[tuple(X[second].T)], float(p.min()), gamma)
        one = gg.certify_predictions(labels, guess, propensity=propensity, **stated)
        results["by propensities"][f"Γ = {gamma:g}"] = {"promised": one.value, "estimated": one.empirical}
    by_weights = selection_effect(
        labels, guess, label_bounds=(1, 5), propensity=Propensity(p[tuple(X[second].T)], float(p.min())), delta=DELTA
    )
    by_random = selection_effect(labels, guess, label_bounds=(1, 5), at_random=(truth, at_random), delta=DELTA)
    for name, effect in (("by propensities", by_weights), ("by coats shown at random", by_random)):
        results[f"effect {name}"] = {**vars(effect), "proved": effect.proved}
    for name, one in results.items():
        print(name, one)
    write(args, settings={"delta": DELTA}, results=results)


if __name__ == "__main__":
    main()
