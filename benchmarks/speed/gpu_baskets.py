"""Basket layers of 20 million ratings on one GPU beside the same machine's cores: seconds and error.

Planted ratings of 138,000 users and 27,000 movies with heavy tails. Which movies a user meets depends on the user's
kind, and so does what it thinks of them: baskets tell something. Whole stars from 1 to 5, effort="fast", three chains.
``--only`` names sizes in millions, ``--cores`` those that are fitted on the cores, too; of all sizes a sweep of three
chains side by side is measured on both. ``--law``: 20,000 ratings are fitted with several seeds on the GPU and on a
core, and a permutation test asks whether both sets of predictions have the same law.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))


import common
import gingham as gg
from gingham.data import Sample
from gingham.models.layers import Sampler
from gingham.models.layers.chain import Chain
from gingham.models.layers.design import EFFORTS, make_problem
from gingham.models.layers.fit import layout_for
from gingham.models.layers.problem import LONGEST_WAIT, first_state

FIGURES = {
    "seconds of a fit of 20 million ratings, three chains": "fits/20/gpu/fit_s",
    "a sweep's seconds on the GPU over those on the cores": "fits/*/sweep/gpu_over_cores",
    "p of equal laws on GPU and core": "same_law/p",
}
ONLY_FULL = "it needs a GPU"
USERS, MOVIES, KINDS, TEST = 138_000, 27_000, 6, 200_000
SEEDS = range(12)


def planted(n: int, seed: int, users: int = USERS, movies: int = MOVIES) -> tuple[np.ndarray, np.ndarray]:
    """About n different pairs and their stars."""
    truth, rng = np.random.default_rng(1), np.random.default_rng(seed)
    user_kind, movie_kind = truth.integers(KINDS, size=users), np.sort(truth.integers(KINDS, size=movies))
    drawn_to = truth.dirichlet(np.full(KINDS, 0.7), KINDS)
    board = 0.7 * truth.standard_normal((KINDS, KINDS))
    offsets = 0.35 * truth.standard_normal(users), 0.35 * truth.standard_normal(movies)
    weight = truth.permutation(np.arange(1, users + 1, dtype=float) ** -0.5)
    u = np.searchsorted(np.cumsum(weight) / weight.sum(), rng.random(n)).clip(max=users - 1)
    met = (np.cumsum(drawn_to, axis=1)[user_kind[u]] < rng.random((n, 1))).sum(axis=1).clip(max=KINDS - 1)
    popular = truth.permutation(np.arange(1, movies + 1, dtype=float) ** -0.8)
    ends = np.concatenate([[0.0], np.cumsum(popular)])
    first = np.searchsorted(movie_kind, np.arange(KINDS + 1))
    low, high = ends[first[met]], ends[first[met + 1]]
    i = np.searchsorted(ends[1:], low + (high - low) * rng.random(n)).clip(max=movies - 1)
    pairs = np.unique(u.astype(np.int64) * movies + i)
    rng.shuffle(pairs)
    u, i = pairs // movies, pairs % movies
    z = 3.4 + offsets[0][u] + offsets[1][i] + board[user_kind[u], movie_kind[i]] + 0.8 * rng.standard_normal(len(u))
    return np.column_stack([u, i]).astype(np.int32), np.clip(np.round(z), 1.0, 5.0)


def one_fit(X: np.ndarray, y: np.ndarray, backend: str) -> dict:
    model = gg.LayeredCoClusteringRegressor(
        effort="fast", baskets=6, backend=backend, sampler=Sampler(n_chains=3), random_state=0
    )
    began = time.perf_counter(), time.process_time()
    model.fit(X[TEST:], y[TEST:])
    row = {"fit_s": time.perf_counter() - began[0], "fit_cpu_s": time.process_time() - began[1]}
    began = time.perf_counter(), 0.0
    error = float(np.sqrt(np.mean((model.predict(X[:TEST]) - y[:TEST]) ** 2)))
    return row | {"predict_s": time.perf_counter() - began[0], "rmse": error, "chosen": model.selection_.reason}


def sweeps(X: np.ndarray, y: np.ndarray, backend: str, n_sweeps: int = 3, n_chains: int = 3) -> float:
    """Seconds of a sweep of chains side by side, once all layers are drawn."""
    sample = Sample.of([X[TEST:, 0], X[TEST:, 1]], y[TEST:])
    problem = make_problem(sample, None, np.arange(1.0, 6.0), {}, EFFORTS["fast"], (4, 4))
    layout = layout_for(problem, backend)

    def begun(seed: int) -> Chain:
        rng = np.random.default_rng(seed)
        chain = layout.begin(problem, first_state(problem, 0.8, rng), rng)
        chain.state.n_sweeps, chain.state.baskets_enabled = LONGEST_WAIT, True
        return chain

    chains = [begun(seed) for seed in range(n_chains)]
    with ThreadPoolExecutor(n_chains) as pool:
        list(pool.map(lambda chain: chain.sweep(), chains))  # what is compiled, is compiled now
        began = time.perf_counter()
        list(pool.map(lambda chain: [chain.sweep() for _ in range(n_sweeps)], chains))
    return (time.perf_counter() - began) / n_sweeps


def one_size(millions: int, with_cores: bool) -> dict:
    X, y = planted(int(millions * 1.12e6) + TEST, 0)
    X, y = X[: millions * 10**6 + TEST], y[: millions * 10**6 + TEST]
    found: dict = {"ratings": len(y) - TEST}
    seconds = {"gpu": sweeps(X, y, "torch"), "cores": sweeps(X, y, "compiled")}
    found["sweep"] = seconds | {"gpu_over_cores": seconds["gpu"] / seconds["cores"]}
    print(millions, found, flush=True)
    found["gpu"] = one_fit(X, y, "torch")
    print(millions, found["gpu"], flush=True)
    if with_cores:
        found["cores"] = one_fit(X, y, "compiled")
        found["gpu_over_cores"] = found["gpu"]["fit_s"] / found["cores"]["fit_s"]
        print(millions, found["cores"], flush=True)
    return found


def predictions(backend: str) -> np.ndarray:
    """Of 300 held-out pairs, one row a seed."""
    X, y = planted(21_000, 7, 600, 300)

    def one(seed: int) -> np.ndarray:
        model = gg.LayeredCoClusteringRegressor(
            effort="fast",
            baskets=3,
            backend=backend,
            sampler=Sampler(n_chains=1, n_sweeps=30, noise=0.8),
            random_state=seed,
        )
        return model.fit(X[300:], y[300:]).predict(X[:300])

    return np.array([one(seed) for seed in SEEDS])


def same_law(one: np.ndarray, two: np.ndarray, n_permutations: int = 2000) -> dict:
    """Permutation test of the energy distance between two sets of predictions, (seeds, pairs) each."""
    pooled = np.concatenate([one, two])
    apart = np.sqrt(((pooled[:, None] - pooled[None]) ** 2).sum(axis=2))
    rng, n = np.random.default_rng(0), len(one)

    def energy(order: np.ndarray) -> float:
        a, b = order[:n], order[n:]
        return float(2 * apart[np.ix_(a, b)].mean() - apart[np.ix_(a, a)].mean() - apart[np.ix_(b, b)].mean())

    seen = energy(np.arange(len(pooled)))
    drawn = [energy(rng.permutation(len(pooled))) for _ in range(n_permutations)]
    p = (1 + sum(value >= seen for value in drawn)) / (1 + n_permutations)
    difference = float(np.abs(one.mean(axis=0) - two.mean(axis=0)).mean())
    return {"p": p, "mean difference of the means": difference, "spread of a prediction": float(one.std(axis=0).mean())}


def options(parser) -> None:
    parser.add_argument("--only", nargs="*", type=int, default=[20], help="millions of ratings")
    parser.add_argument("--cores", nargs="*", type=int, default=[], help="sizes fitted on the cores, too")
    parser.add_argument("--law", action="store_true", help="ask for equal laws, too")


def main() -> None:
    args = common.arguments(__doc__, "speed_gpu_baskets", options)
    import torch

    results = common.previous(args) or {"fits": {}}
    results["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    for millions in args.only:
        results["fits"][str(millions)] = one_size(millions, millions in args.cores)
        common.write(args, {"users": USERS, "movies": MOVIES, "chains": 3, "effort": "fast"}, results)
    if args.law:
        results["same_law"] = same_law(predictions("torch"), predictions("compiled"))
        print(results["same_law"])
        common.write(args, {"users": USERS, "movies": MOVIES, "chains": 3, "effort": "fast"}, results)


if __name__ == "__main__":
    main()
