"""Layered fits of 10 and 20 million ratings on one GPU: three chains, seconds and error beside the noise.

Planted ratings of 430,000 users and 27,000 items with heavy tails: offsets of both sides, three checkerboards of 6 × 6
cells, and noise of a known size, which no predictor can go below. ``--cpu FILE`` fits the same problem of 200,000
ratings with ten seeds on this machine's cores and stores the predictions; given that file, a run on a GPU fits it with
ten seeds, too, and asks by a permutation test whether the two sets of predictions have the same law.
``--only`` names sizes in millions; ``--backend compiled`` measures the cores instead.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import common
import gingham as gg
from gingham.models.layers import Sampler

FIGURES = {
    "seconds of a fit of 20 million ratings, three chains": "fits/20/fit_s",
    "error over the noise": "fits/*/rmse_over_noise",
    "p of equal laws on GPU and CPU": "same_law/p",
}
ONLY_FULL = "it needs a GPU"
USERS, ITEMS, NOISE = 430_000, 27_000, 0.85
SEEDS = range(10)


def planted(n: int, seed: int, users: int = USERS, items: int = ITEMS) -> tuple[np.ndarray, np.ndarray]:
    """Pairs with heavy-tailed popularity on both sides, and their ratings."""
    rng = np.random.default_rng(seed)
    sides = []
    for size, tail in ((users, 0.6), (items, 0.9)):
        weight = np.arange(1, size + 1, dtype=float) ** -tail
        drawn = np.searchsorted(np.cumsum(weight) / weight.sum(), rng.random(n)).clip(max=size - 1)
        sides.append(rng.permutation(size)[drawn])
    truth = np.random.default_rng(1)  # the same board for every sample
    y = np.full(n, 3.5)
    for size, ids in zip((users, items), sides):
        y += 0.35 * truth.standard_normal(size)[ids]
    for _ in range(3):
        labels = [truth.integers(0, 6, size)[ids] for size, ids in zip((users, items), sides)]
        y += 0.3 * truth.standard_normal((6, 6))[labels[0], labels[1]]
    return np.column_stack(sides), y + NOISE * rng.standard_normal(n)


def fitted(X: np.ndarray, y: np.ndarray, seed: int, backend: str, chains: int = 3) -> gg.LayeredCoClusteringRegressor:
    model = gg.LayeredCoClusteringRegressor(
        6, 8, baskets=0, backend=backend, n_jobs=chains, sampler=Sampler(n_chains=chains), random_state=seed
    )
    return model.fit(X, y)


def one_size(millions: int, backend: str) -> dict:
    n = millions * 10**6
    X, y = planted(n + 10**6, 0)
    began = time.perf_counter(), time.process_time()
    model = fitted(X[:n], y[:n], 0, backend)
    fit_s, cpu_s = time.perf_counter() - began[0], time.process_time() - began[1]
    began = time.perf_counter(), 0.0
    error = float(np.sqrt(np.mean((model.predict(X[n:]) - y[n:]) ** 2)))
    row = {"ratings": n, "layers": 6, "clusters": 8, "chains": 3, "chosen": str(model.selection_), "fit_s": fit_s}
    row |= {"fit_cpu_s": cpu_s, "predict_million_s": time.perf_counter() - began[0], "rmse": error}
    row |= {"rmse_over_noise": error / NOISE, "constant_rmse": float(np.std(y[n:]))}
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        row["gpu_memory_gib"] = sys.modules["torch"].cuda.max_memory_allocated() / 2**30
    return row


def predictions(backend: str) -> np.ndarray:
    """Of 500 held-out pairs, one row a seed: small enough for a core, large enough to be told apart."""
    X, y = planted(200_500, 7, 4000, 1500)
    return np.array([fitted(X[:-500], y[:-500], seed, backend, 1).predict(X[-500:]) for seed in SEEDS])


def same_law(one: np.ndarray, other: np.ndarray, rounds: int = 2000) -> dict:
    """Permutation test of the distance between the mean predictions of two groups of seeds."""
    rng = np.random.default_rng(0)
    both = np.vstack([one, other])

    def distance(first: np.ndarray) -> float:
        return float(((both[first].mean(axis=0) - both[~first].mean(axis=0)) ** 2).mean())

    groups = np.arange(len(both)) < len(one)
    seen = distance(groups)
    drawn = [distance(rng.permutation(groups)) for _ in range(rounds)]
    return {"p": (1 + sum(d >= seen for d in drawn)) / (1 + rounds), "seeds": [len(one), len(other)]}


def main() -> None:
    def options(parser):
        parser.add_argument("--cpu", type=Path, help="predictions of the cores: written without a GPU, read with one")
        parser.add_argument("--only", nargs="*", type=int, default=[10, 20], help="sizes in millions")
        parser.add_argument("--backend", default="torch", choices=["torch", "compiled"])

    args = common.arguments(__doc__ or "", "speed_gpu_layers", options)
    if args.backend == "compiled" and args.cpu:
        np.save(args.cpu, predictions("compiled"))
        return
    results: dict = common.previous(args)
    fitted(*planted(200_000, 3, 4000, 1500), 0, args.backend)  # kernels are compiled here
    for millions in args.only:
        key = str(millions) if args.backend == "torch" else f"{millions}, cores"
        results.setdefault("fits", {})[key] = one_size(millions, args.backend)
        print(key, results["fits"][key], flush=True)
        common.write(args, {"noise": NOISE, "users": USERS, "items": ITEMS}, results, ["torch"])
    if args.cpu:
        results["same_law"] = same_law(predictions(args.backend), np.load(args.cpu))
        print(results["same_law"])
    common.write(args, {"noise": NOISE, "users": USERS, "items": ITEMS}, results, ["torch"])


if __name__ == "__main__":
    main()
