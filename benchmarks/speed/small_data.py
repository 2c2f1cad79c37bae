"""Layers of few ratings: time and error of the default effort, beside all basket layers and chains.

    python benchmarks/speed/small_data.py --data FOLDER

Random ratings of MovieLens-100K, with 20,000 others to predict; planted tables of 4 × 3 blocks; and planted tastes for
the one of two kinds of films that a person mostly met, where baskets tell who likes what. CPU seconds are medians.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, previous, write
from gingham.models.layers import Sampler

FIGURES = {
    "error of the default effort less that of all basket layers and chains": "*/difference",
    "its CPU seconds over theirs": "*/cpu_ratio",
}
ALL = {"baskets": 10, "sampler": Sampler(n_chains=6)}
SIZES = {1_000: 5, 3_000: 3, 10_000: 3}  # rows: how many data sets
TEST = 20_000


def movielens(data, n: int, seed: int):
    table = np.column_stack([data[name] for name in ("rows", "cols", "vals")])
    order = np.random.default_rng(seed).permutation(len(table))
    return table[order[:n]], table[order[n : n + TEST]]


def planted(data, n: int, seed: int):
    rng = np.random.default_rng(100 + seed)
    users, films = rng.integers(0, n // 16, n + TEST), rng.integers(0, n // 25, n + TEST)
    block = rng.uniform(1, 5, (4, 3))[users % 4, films % 3]
    stars = np.clip(np.round(block + rng.normal(0, 0.7, len(users))), 1, 5)
    table = np.column_stack([users, films, stars]).astype(int)
    return table[:n], table[n:]


def baskets(data, n: int, seed: int):
    rng = np.random.default_rng(200 + seed)
    users = np.repeat(np.arange(n // 5), 10)
    liked = rng.integers(2, size=n // 5)[users]
    films = 2 * rng.integers(60, size=len(users)) + np.where(rng.random(len(users)) < 0.8, liked, 1 - liked)
    stars = np.where(films % 2 != liked, 2, 4) + rng.integers(-1, 2, len(users))
    table = np.column_stack([users, films, stars])
    learned = np.tile(np.arange(10) < 5, n // 5)
    return table[learned], table[~learned]


def compared(make, data, n: int, seeds: range) -> dict:
    runs = {"default": [], "all": []}
    for seed in seeds:
        train, test = make(data, n, seed)
        for name, settings in (("default", {}), ("all", ALL)):
            start = time.process_time()
            model = gg.LayeredCoClusteringRegressor(**settings, random_state=seed).fit(train[:, :2], train[:, 2])
            spent = time.process_time() - start
            runs[name].append((float(np.sqrt(np.mean((model.predict(test[:, :2]) - test[:, 2]) ** 2))), spent))
    found = {
        name: {"rmse": np.mean(each, axis=0)[0], "each": [e for e, _ in each], "cpu_s": np.median(each, axis=0)[1]}
        for name, each in runs.items()
    }
    difference = found["default"]["rmse"] - found["all"]["rmse"]
    return {**found, "difference": difference, "cpu_ratio": found["default"]["cpu_s"] / found["all"]["cpu_s"]}


def main() -> None:
    args = arguments(__doc__, "speed_small_data")
    warnings.simplefilter("ignore")  # ids that were never seen: with so few ratings, most data sets have some
    data = load(args.data, "ml100k.npz")
    gg.LayeredCoClusteringRegressor(sampler=Sampler(n_sweeps=4), random_state=0).fit(
        *np.split(planted(data, 500, 0)[0], [2], axis=1)
    )
    results = previous(args)
    for n, n_sets in {1_000: 1}.items() if args.quick else SIZES.items():
        for make in (movielens, planted, baskets):
            results[f"{make.__name__}, {n:,} rows"] = found = compared(make, data, n, range(n_sets))
            print(make.__name__, n, found, flush=True)
            write(args, {"all": str(ALL), "data sets": n_sets}, results)


if __name__ == "__main__":
    main()
