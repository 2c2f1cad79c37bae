"""Certificates of the rating predictors on random 80/20 splits of MovieLens-100K, beside their test losses.

    python benchmarks/peers/ratings_certificates.py --data FOLDER --splits 1,2,3 --parts holdout20,cross

holdout20: the layered model, nothing set, on 80 % of the training part, certified on the rest of it exactly as it
predicts. The share and the method (betting) were fixed before the splits were looked at; log-wealth stands beside.
holdout10: the same with 10 %.
cross: ten chains, each without its own tenth (its choice of sizes and its pilots too); their mean has seen all the
training data.
mixture: a committee of ten 13×6 grids at β = .3, in sample: the Gibbs predictor that draws a member, and the mean.
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
from common import arguments, clock, load, previous, write
from gingham.models.layers import Sampler
from gingham.selection.beta_path import _held_out

FIGURES = {
    "certificate of whole stars by holdout": "*/holdout20/label MAE/certificate",
    "test": "*/holdout20/label MAE/test",
    "certificate of a mixture": "*/mixture/Gibbs MAE/certificate",
    "test of it": "*/mixture/Gibbs MAE/test",
}
FULL = ["--parts holdout20,cross,mixture", "--parts holdout20 --splits 4,5,6"]
STARS = np.arange(1, 6)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", default="1,2,3")
    parser.add_argument("--parts", default="holdout10,holdout20,cross,mixture")


def entry(certificate: Any, test: float) -> dict[str, float]:
    return {"certificate": certificate.value, "observed": certificate.empirical, "test": test}


def holdout(train: Any, test: Any, seed: int, share: float = 0.2) -> dict[str, Any]:
    X, y = train
    cut = int((1 - share) * len(y))  # the training part is in random order
    model = gg.LayeredCoClusteringRegressor(alphabet=STARS, random_state=seed).fit(X[:cut], y[:cut])
    found: dict[str, Any] = {"chosen": str(model.selection_)}
    for rule in ("mean", "label"):
        held, new = model.predict(X[cut:], rule=rule), model.predict(test[0], rule=rule)
        for method in ("betting", "log-wealth"):
            options = {"label_bounds": (1, 5), "predictor": rule, "method": method}
            name = "" if method == "betting" else f", {method}"
            certificate = gg.certify_predictions(y[cut:], held, **options)
            found[f"{rule} MAE{name}"] = entry(certificate, float(np.mean(np.abs(new - test[1]))))
            if rule == "mean":
                square = gg.certify_predictions(y[cut:], held, loss="quadratic", **options)
                root = entry(square, float(np.mean((new - test[1]) ** 2)))
                found[f"mean RMSE{name}"] = {key: float(np.sqrt(value)) for key, value in root.items()}
    return found


def cross(train: Any, test: Any, seed: int) -> dict[str, Any]:
    member = gg.LayeredCoClusteringRegressor(alphabet=STARS, sampler=Sampler(n_chains=1))
    model = gg.Committee(member, 10, cross=True, random_state=seed).fit(*train)
    new = model.predict(test[0])
    square = gg.certify(model, y=train[1], loss="quadratic", alphabet=STARS, bound="folds")
    root = entry(square, float(np.mean((new - test[1]) ** 2)))
    return {
        "mean MAE": entry(
            gg.certify(model, y=train[1], alphabet=STARS, bound="folds"), float(np.mean(np.abs(new - test[1])))
        ),
        "mean RMSE": {key: float(np.sqrt(value)) for key, value in root.items()},
    }


def mixture(train: Any, test: Any, seed: int) -> dict[str, Any]:
    grid = gg.CoClusteringRegressor((13, 6), beta=0.3, alphabet=STARS)
    model = gg.Committee(grid, 10, random_state=seed).fit(*train)
    certificates = {p: gg.certify(model, *train, predictor=p) for p in ("gibbs", "mean")}
    singles = [gg.certify(member, *train) for member in model.members_]
    prices = [sum(c.terms.values()) for c in (certificates["gibbs"], *singles)]
    drawn = np.mean([_held_out(member, *test)[0] for member in model.members_])
    mean, median = model.predict(test[0]), model.predict(test[0], rule="median")
    return {
        "Gibbs MAE": entry(certificates["gibbs"], float(drawn)),
        "mean MAE": entry(certificates["mean"], float(np.mean(np.abs(mean - test[1])))),
        "one member, mean of ten": float(np.mean([c.value for c in singles])),
        "nats paid": prices[0],
        "nats paid by a member, mean of ten": float(np.mean(prices[1:])),
        "median MAE, not covered": float(np.mean(np.abs(median - test[1]))),
    }


PARTS = {"holdout10": partial(holdout, share=0.1), "holdout20": holdout, "cross": cross, "mixture": mixture}


def main() -> None:
    args = arguments(__doc__ or "", "peers_ratings_certificates", options)
    data = load(args.data, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(float)
    if args.quick:
        args.splits, args.parts = "1", "mixture"
    for split in args.splits.split(","):
        order = np.random.default_rng(int(split)).permutation(len(y))
        cut = int(0.8 * len(y))
        train, test = (X[order[:cut]], y[order[:cut]]), (X[order[cut:]], y[order[cut:]])
        for part in args.parts.split(","):
            found: dict[str, Any] = {}
            with clock(found, "all_"):
                found |= PARTS[part](train, test, args.seed)
            print(split, part, json.dumps(found), flush=True)
            results = previous(args)
            results.setdefault(f"random split {split}", {})[part] = found
            write(args, {"delta": 0.05, "split": "random 80/20, seed is its number"}, results)


if __name__ == "__main__":
    main()
