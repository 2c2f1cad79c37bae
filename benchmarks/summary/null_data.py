"""Data without structure: how often a summary says so, fitted with nothing set and with many clusters asked for.

Independent counts with bursts, shuffled ratings, ratings that are sums of a person's and a film's average, a random
graph, a random graph with hubs; and, so that silence is not the cheap answer, planted blocks of the same size.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, previous, write

FIGURES = {
    "draws in which nothing was found, of all": "null/*/*/said nothing",
    "draws in which planted blocks were found": "planted/*/*/said something",
}


def skewed(n: int, rng: np.random.Generator) -> np.ndarray:
    """Shares of items, a few common and most rare."""
    share = 1.0 / (1.0 + np.arange(n)) ** 0.8 * rng.uniform(0.5, 1.5, n)
    return share / share.sum()


def counts(rng: np.random.Generator, planted: bool) -> sparse.csr_array:
    """Documents × words; a pair that occurs is repeated three times on average."""
    n, m = 400, 300
    rows, columns = skewed(n, rng), skewed(m, rng)
    chance = np.outer(rows, columns) * 12_000
    if planted:
        chance *= np.where((np.arange(n)[:, None] % 3) == (np.arange(m) % 3), 2.2, 0.4)
    return sparse.csr_array((rng.poisson(chance) > 0) * rng.geometric(1 / 3, (n, m)))


def pairs(rng: np.random.Generator) -> np.ndarray:
    """Who rated what: 300 people × 200 films, 8000 ratings."""
    flat = rng.choice(300 * 200, 8000, replace=False, p=np.outer(skewed(300, rng), skewed(200, rng)).ravel())
    return np.column_stack(np.divmod(flat, 200))


def ratings(rng: np.random.Generator, additive: bool, planted: bool) -> tuple[np.ndarray, np.ndarray]:
    X = pairs(rng)
    y = 3.5 + 0.5 * rng.standard_normal(300)[X[:, 0]] + 0.5 * rng.standard_normal(200)[X[:, 1]]
    if planted and not additive:
        y = np.full(len(X), 3.5)  # blocks and nothing else
    if planted:
        y = y + np.where(X[:, 0] % 2 == X[:, 1] % 2, 0.4, -0.4)
    y = np.clip(np.round(y + 0.9 * rng.standard_normal(len(y))), 1, 5)
    return X, y if additive or planted else rng.permutation(y)


def graph(rng: np.random.Generator, hubs: bool, planted: bool) -> sparse.csr_array:
    n = 200
    weight = rng.pareto(2.5, n) + 0.3 if hubs else np.ones(n)
    weight /= weight.mean()
    chance = np.minimum(np.outer(weight, weight) * 0.06, 1.0)
    if planted:
        chance = np.minimum(chance * np.where(np.arange(n)[:, None] % 2 == np.arange(n) % 2, 1.6, 0.4), 1.0)
    edges = np.triu(rng.random((n, n)) < chance, 1)
    return sparse.csr_array((edges | edges.T).astype(float))


def fits(size: int | str, seed: int) -> dict[str, Callable[..., object]]:
    stars = {"alphabet": range(1, 6), "random_state": seed}
    given = {} if size == "auto" else {"n_clusters": size}
    return {
        "independent counts": lambda rng, planted: (
            gg.CoOccurrenceClustering(random_state=seed, **given).fit(counts(rng, planted))
        ),
        "shuffled ratings": lambda rng, planted: (
            gg.CoClusteringRegressor(**stars, **given).fit(*ratings(rng, False, planted))
        ),
        "additive ratings": lambda rng, planted: (
            gg.CoClusteringRegressor(**stars, **given).fit(*ratings(rng, True, planted))
        ),
        "random graph": lambda rng, planted: (
            gg.GraphClustering(random_state=seed, **given).fit(graph(rng, False, planted))
        ),
        "random graph with hubs": lambda rng, planted: (
            gg.GraphClustering(random_state=seed, **given).fit(graph(rng, True, planted))
        ),
    }  # fmt: skip


def measured(name: str, n_draws: int, seed: int, planted: bool, size: int | str) -> dict[str, object]:
    said, sizes, began = 0, [], time.process_time()
    for draw in range(n_draws):
        rng = np.random.default_rng([seed, draw, planted])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that nothing was found is what is counted here
            summary = gg.summarize(fits(size, seed + draw)[name](rng, planted))
        said += summary.found
        sizes.append(" × ".join(map(str, summary.size_by_rule)))
    key = "said something" if planted else "said nothing"
    return {
        "draws": n_draws, key: said if planted else n_draws - said, "sizes": sorted(set(sizes)),
        "cpu seconds a draw": round((time.process_time() - began) / n_draws, 1),
    }  # fmt: skip


def main() -> None:
    args = arguments(__doc__, name="summary_null")
    n_draws = 3 if args.quick else 50
    results = {} if args.quick else previous(args)
    cases = (("null", "nothing set", "auto", n_draws), ("planted", "nothing set", "auto", min(n_draws, 10)),
             ("null", "20 clusters a side", 20, min(n_draws, 10)))  # fmt: skip
    for what, label, size, draws in cases:
        found = results.setdefault(what, {}).setdefault(label, {})
        for name in fits(size, args.seed):
            if name not in found:
                found[name] = measured(name, draws, args.seed, what == "planted", size)
                print(what, label, name, found[name], flush=True)
                write(args, settings={"draws": n_draws}, results=results)


if __name__ == "__main__":
    main()
