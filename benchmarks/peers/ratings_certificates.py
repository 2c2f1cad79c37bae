"""Certificates of the rating predictors on random 80/20 splits of MovieLens-100K, beside their test losses.

    python benchmarks/peers/ratings_certificates.py --data FOLDER --splits 0,1,2 --parts holdout20,cross

holdout10, holdout20: the layered model on 90 or 80 % of the training part, certified on the rest of it, exactly as
it predicts.
cross: ten chains, each without its own tenth (its pilots too); their mean has seen all the training data.
mixture: a committee of ten 13×6 grids at β = .3, in sample.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, load, write

STARS = np.arange(1, 6)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", default="0,1,2")
    parser.add_argument("--parts", default="holdout10,holdout20,cross,mixture")


def entry(certificate: Any, test: float) -> dict[str, float]:
    return {"certificate": certificate.value, "observed": certificate.empirical, "test": test}


def holdout(train: Any, test: Any, seed: int, share: float = 0.1) -> dict[str, Any]:
    X, y = train
    cut = int((1 - share) * len(y))  # the training part is in random order
    model = gg.LayeredCoClusteringRegressor(alphabet=STARS, random_state=seed).fit(X[:cut], y[:cut])
    found = {}
    for rule in ("mean", "label"):
        held, new = model.predict(X[cut:], rule=rule), model.predict(test[0], rule=rule)
        certificate = gg.certify_predictions(held, y[cut:], label_bounds=(1, 5), predictor=rule)
        found[f"{rule} MAE"] = entry(certificate, float(np.mean(np.abs(new - test[1]))))
        if rule == "mean":
            square = gg.certify_predictions(held, y[cut:], loss="quadratic", label_bounds=(1, 5), predictor=rule)
            root = entry(square, float(np.mean((new - test[1]) ** 2)))
            found["mean RMSE"] = {key: float(np.sqrt(value)) for key, value in root.items()}
    return found


def cross(train: Any, test: Any, seed: int) -> dict[str, Any]:
    member = gg.LayeredCoClusteringRegressor(alphabet=STARS, n_chains=1, n_pilots=1)
    model = gg.Committee(member, 10, cross=True, random_state=seed).fit(*train)
    new = model.predict(test[0])
    square = gg.certify_folds(model, train[1], loss="quadratic", alphabet=STARS)
    root = entry(square, float(np.mean((new - test[1]) ** 2)))
    return {
        "mean MAE": entry(gg.certify_folds(model, train[1], alphabet=STARS), float(np.mean(np.abs(new - test[1])))),
        "mean RMSE": {key: float(np.sqrt(value)) for key, value in root.items()},
    }


def mixture(train: Any, test: Any, seed: int) -> dict[str, Any]:
    grid = gg.CoClusteringRegressor((13, 6), beta=0.3, alphabet=STARS)
    model = gg.Committee(grid, 10, random_state=seed).fit(*train)
    certificate = gg.certify(model, *train, predictor="mean")
    single = gg.certify(model.members_[0], *train, predictor="mean")
    mean, median = model.predict(test[0]), model.predict(test[0], rule="median")
    return {
        "mean MAE": entry(certificate, float(np.mean(np.abs(mean - test[1])))),
        "one member": single.value,
        "median MAE, not covered": float(np.mean(np.abs(median - test[1]))),
    }


PARTS = {"holdout10": holdout, "holdout20": partial(holdout, share=0.2), "cross": cross, "mixture": mixture}


def main() -> None:
    args = arguments(__doc__ or "", "peers_ratings_certificates", options)
    data = load(args.data, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(float)
    results: dict[str, Any] = json.loads(args.out.read_text())["results"] if args.out.exists() else {}
    for split in args.splits.split(","):
        order = np.random.default_rng(int(split)).permutation(len(y))
        cut = int(0.8 * len(y))
        train, test = (X[order[:cut]], y[order[:cut]]), (X[order[cut:]], y[order[cut:]])
        here = results.setdefault(f"random split {split}", {})
        for part in args.parts.split(","):
            found: dict[str, Any] = {}
            with clock(found, "all_"):
                found |= PARTS[part](train, test, args.seed)
            here[part] = found
            print(split, part, json.dumps(found), flush=True)
            write(args, {"delta": 0.05, "split": "random 80/20, seed is its number"}, results)


if __name__ == "__main__":
    main()
