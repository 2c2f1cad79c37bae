"""Four modes of real data: two-mode grid, flat four-mode grid and trees, in test loss and certificate.

MovieLens-100K as (viewer, movie, hour, weekday) → rating. One random 80/20 split, absolute loss. β is chosen for
every model by its own certificate on the training part (δ = .05; the certificate holds for all β at once, so
the choice is free).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, load, previous, write

FIGURES = {
    "certificate (grid, trees, flat)": "movielens/models/*/certificate",
    "test MAE of Gibbs": "movielens/models/*/test_gibbs_mae",
}
BETAS = (0.2, 0.5)
SWEEPS = 30


def movielens(folder):
    data = load(folder, "ml100k.npz")
    hour, weekday = (data["timestamps"] // 3600) % 24, (data["timestamps"] // 86400 + 4) % 7
    X = np.column_stack([data["rows"], data["cols"], hour, weekday])
    return X, data["vals"].astype(int), range(1, 6), (13, 6, 3, 2)


def models(sizes):
    """Name → (columns, leaf clusters, merges)."""
    everything = (0, 1, 2, 3)
    return {
        "constant": ((0, 1), (1, 1), ()),
        "two-mode grid": ((0, 1), sizes[:2], ()),
        "flat four-mode grid": (everything, sizes, ()),
        "tree ((0 1) (2 3))": (everything, sizes, ((0, 1, sizes[0]), (2, 3, 2))),
        "tree (0 1 (2 3))": (everything, sizes, ((2, 3, 2),)),
        "tree ((0 2) (1 3))": (everything, sizes, ((0, 2, sizes[0]), (1, 3, sizes[1]))),
    }


def main():
    sets = {"movielens": movielens}

    def options(parser):
        parser.add_argument("--sets", nargs="*", default=list(sets))
        parser.add_argument("--models", nargs="*", type=int)

    args = arguments(__doc__.splitlines()[0], "four_modes", options)
    results = previous(args)
    betas = BETAS[1:] if args.quick else BETAS
    for name in args.sets:
        X, y, alphabet, sizes = sets[name](args.data)
        rng = np.random.default_rng(args.seed)
        train = rng.random(len(y)) < 0.8
        if args.quick:
            train &= rng.random(len(y)) < 0.1
        found = results.setdefault(name, {"train": int(train.sum()), "test": int((~train).sum()), "models": {}})
        chosen = list(models(sizes).items())[: 4 if args.quick else None]
        for title, (columns, leaves, merges) in [chosen[i] for i in args.models] if args.models else chosen:
            best = None
            times = {}
            with clock(times):
                for beta in betas:
                    model = gg.TreeCoClustering(
                        leaves, merges, loss="absolute", beta=beta, alphabet=alphabet, n_init=1, max_iter=SWEEPS,
                        random_state=args.seed,
                    ).fit(X[train][:, columns], y[train])  # fmt: skip
                    certificate = gg.certify(model, X[train][:, columns], y[train])
                    if best is None or certificate.value < best[1].value:
                        best = (model, certificate, beta)
            model, certificate, beta = best
            Z = X[~train][:, columns]
            known = np.all([np.isin(Z[:, j], model.items_[j]) for j in range(len(columns))], axis=0)
            found["models"][title] = {
                "beta": beta,
                "test_gibbs_mae": -model.score(Z[known], y[~train][known]),
                "test_median_mae": float(np.abs(model.predict(Z[known], rule="median") - y[~train][known]).mean()),
                "certificate": certificate.value,
                "nats": certificate.complexity,
                "root_cells": int(np.prod(model.answers_.shape)),
                **times,
            }
            print(name, title, found["models"][title], flush=True)
            write(args, {"betas": betas, "sweeps": SWEEPS, "delta": 0.05, "loss": "absolute"}, results)


if __name__ == "__main__":
    main()
