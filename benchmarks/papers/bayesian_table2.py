"""P2 Table 2: purity of row and column clusters on simulated 80 × 100 tables with 4 × 5 blocks.

Ten data sets for each family; blocks have different parameters. Starts: 5 % of the entries of each block
tell their clusters (as in the paper), and starts without any labels.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import arguments, write
from gingham import BayesianCoClustering

FIGURES = {"worst purity of rows": "*/worst_purity/0", "of columns": "*/worst_purity/1"}
STARTS = ("5 % of entries", "singular", "spectral", "random")
PARAMETERS = {
    "gaussian": np.arange(20.0),
    "bernoulli": np.linspace(0.02, 0.98, 20),
    "poisson": np.arange(1.0, 21.0),
}
DRAW = {
    "gaussian": lambda rng, theta: rng.normal(theta, 1.0),
    "bernoulli": lambda rng, theta: (rng.random(theta.shape) < theta).astype(int),
    "poisson": lambda rng, theta: rng.poisson(theta),
}
PAPER = {"gaussian": (1.0, 1.0), "bernoulli": (0.995833, 0.985833), "poisson": (1.0, 1.0)}


def simulate(family: str, seed: int):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(np.repeat(np.arange(4), 20)), rng.permutation(np.repeat(np.arange(5), 20))
    theta = rng.permutation(PARAMETERS[family]).reshape(4, 5)
    labels = DRAW[family](rng, theta[rows][:, columns])
    X = np.argwhere(np.ones((80, 100), bool))
    block = rows[X[:, 0]] * 5 + columns[X[:, 1]]
    clusters = np.full((8000, 2), -1)
    for b in range(20):
        inside = np.flatnonzero(block == b)
        picked = rng.choice(inside, len(inside) // 20, replace=False)
        clusters[picked] = [b // 5, b % 5]
    return X, labels.ravel(), rows, columns, clusters


def purity(found: np.ndarray, truth: np.ndarray) -> float:
    return sum(np.bincount(truth[found == c]).max() for c in np.unique(found)) / len(truth)


def main() -> None:
    args = arguments("P2 Table 2: purity on simulated data.", "bayesian_table2")
    results = {}
    n_sets, starts = (1, STARTS[:2]) if args.quick else (10, STARTS)
    for family in PARAMETERS:
        for approximation, alpha in (("shared", 1.0), ("per_entry", 0.5)):
            for start in starts:
                scores = []
                for seed in range(n_sets):
                    X, y, rows, columns, clusters = simulate(family, args.seed + seed)
                    known = clusters if start.startswith("5") else None
                    model = BayesianCoClustering(
                        (4, 5), family, approximation, alpha, start="random" if known is not None else start,
                        n_init=1 if known is not None else 3, max_iter=200, random_state=args.seed + seed,
                    ).fit(X, y, clusters=known)  # fmt: skip
                    truth = (rows, columns)
                    scores.append(
                        [m(a, b) for m in (purity, adjusted_rand_score, normalized_mutual_info_score)
                         for a, b in zip(model.labels_, truth)]
                    )  # fmt: skip
                mean = np.mean(scores, axis=0)
                key = f"{family}, {approximation} alpha {alpha}, start {start}"
                results[key] = {
                    "purity": mean[:2], "ari": mean[2:4], "nmi": mean[4:],
                    "worst_purity": np.min(scores, axis=0)[:2], "paper_purity": PAPER[family],
                }  # fmt: skip
                print(key, np.round(100 * mean[:2], 2))
    settings = {"data_sets": n_sets, "grid": "4x5 on 80x100", "n_init": "3, highest bound; 1 with known entries"}
    write(args, settings, results)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
