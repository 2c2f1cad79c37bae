"""CPU seconds of layered models: a sweep by rating and layer, MovieLens-1M, a million ratings by 430,000 users.

    python benchmarks/speed/layers.py --data FOLDER --only kernel,threads,plain,ml1m,cold_start

`kernel`: sweeps of one chain, all draws of a sweep together and the layers alone, in nanoseconds per rating, layer and
sweep; the best of some sweeps. `threads`: the same fit with one job and with two must predict the same bits. `plain`:
item layers on u1 of MovieLens-100K, means of three seeds; the rows of engines that are gone were measured once. `ml1m`:
item layers on four fifths of MovieLens-1M, 10 layers of 8 × 8 and with nothing set, beside the seconds of
peers_ratings.json, which were measured with two passes over the ratings per layer. `cold_start`: planted ratings in
which most users have one or two: popularity and activity fall as powers of the rank.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))


import gingham as gg
from common import RESULTS, arguments, load, previous, write
from gingham.data import Sample
from gingham.models.layers import Sampler
from gingham.models.layers.chain import Chain
from gingham.models.layers.design import CLUSTERS, EFFORTS, make_problem
from gingham.models.layers.problem import first_state

FIGURES = {
    "ns a rating, layer and sweep": "kernel/*/layers_ns",
    "the same for one thread and two": "threads/same",
    "ML-1M, 10 × (8 × 8), CPU s": "ml1m/10 layers of 8 × 8/fit_cpu_s",
    "nothing set": "ml1m/nothing set/fit_cpu_s",
    "a million ratings by 430,000 users, CPU s": "cold_start/*/fit_cpu_s",
}
PARTS = "kernel,threads,plain,ml1m,cold_start"
STARS = (1, 2, 3, 4, 5)
PLAIN = {"item layers, nothing set": {}, "10 item layers of 8 × 8": {"n_layers": 10, "n_clusters": 8}}
BEFORE = {
    "10 layers of 8 × 8": "LayeredCoClusteringRegressor, 10 layers of 8×8",
    "nothing set": "LayeredCoClusteringRegressor (nothing set)",
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default=PARTS)


def kernel(data: dict[str, Any], n_sweeps: int, seed: int) -> dict[str, float]:
    """The shortest sweep of one chain after it has settled."""
    sample = Sample.of([data["rows"], data["cols"]], data["vals"].astype(float))
    problem = make_problem(sample, None, np.array(STARS, float), {}, EFFORTS["default"], [CLUSTERS] * 2)
    rng = np.random.default_rng(seed)
    chain = Chain(problem, first_state(problem, 0.8, rng), rng)
    spent = {"sweep": [], "layers": []}
    draw_layers = chain._draw_layers
    inside = [0.0]

    def timed(mode: int) -> None:
        start = time.process_time()
        draw_layers(mode)
        inside[0] += time.process_time() - start

    chain._draw_layers = timed  # type: ignore[method-assign]
    for _ in range(n_sweeps):
        start, inside[0], enabled = time.process_time(), 0.0, chain.state.baskets_enabled
        chain.sweep()
        if enabled:
            spent["sweep"].append(time.process_time() - start)
            spent["layers"].append(inside[0])
    unit = 1e9 / (problem.n_rows * len(problem.layers))
    return {
        "ratings": problem.n_rows, "layers": len(problem.layers), "sweep_cpu_s": min(spent["sweep"]),
        "whole_ns": min(spent["sweep"]) * unit, "layers_ns": min(spent["layers"]) * unit,
        "median_whole_ns": float(np.median(spent["sweep"])) * unit,
    }  # fmt: skip


def threads(data: dict[str, Any]) -> dict[str, Any]:
    """Two chains one after the other and side by side."""
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(float)
    found = {}
    for jobs in (1, 2):
        model = gg.LayeredCoClusteringRegressor(
            alphabet=STARS, n_jobs=jobs, sampler=Sampler(n_chains=2, n_sweeps=25, burn_in=10), random_state=0
        )
        begin, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        found[jobs] = (model.predict(X[::7]), time.perf_counter() - begin, time.process_time() - cpu)
    return {
        "same": bool((found[1][0] == found[2][0]).all()),
        **{f"wall_s_{jobs}_jobs": one[1] for jobs, one in found.items()},
        **{f"cpu_s_{jobs}_jobs": one[2] for jobs, one in found.items()},
    }


def fitted(model: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> dict[str, Any]:
    start = time.process_time()
    model.fit(*train)
    done = time.process_time()
    error = np.clip(model.predict(test[0]), 1, 5) - test[1]
    spent = time.process_time() - done
    return {
        "rmse": float(np.sqrt(np.mean(error**2))), "mae": float(np.mean(np.abs(error))),
        "label": float(np.mean(np.abs(model.predict(test[0], rule="label") - test[1]))), "fit_cpu_s": done - start,
        "predict_cpu_s": spent, "chosen": str(model.selection_),
    }  # fmt: skip


def plain(name: str, seed: int) -> Any:
    settings: dict[str, Any] = {} if name == "nothing set" else {"n_layers": 10, "n_clusters": 8}
    return gg.LayeredCoClusteringRegressor(baskets=0, alphabet=STARS, random_state=seed, **settings)


def cold_start(n: int, n_users: int, seed: int) -> tuple[Any, Any]:
    """Planted stars: 5 × 5 tastes, offsets, noise; every user once, the rest by activity 1/rank^0.9."""
    rng = np.random.default_rng(seed)
    n_items = max(200, n_users // 25)
    activity, popularity = (np.arange(1, size + 1) ** -0.9 for size in (n_users, n_items))
    users = np.concatenate([np.arange(n_users), rng.choice(n_users, n - n_users, p=activity / activity.sum())])
    items = rng.choice(n_items, n, p=popularity / popularity.sum())
    taste = rng.normal(0, 0.6, (5, 5))
    bent = (rng.normal(0, 0.4, size) for size in (n_users, n_items))
    kinds = (rng.integers(5, size=size) for size in (n_users, n_items))
    (bu, bi), (cu, ci) = bent, kinds
    z = 3.5 + bu[users] + bi[items] + taste[cu[users], ci[items]] + rng.normal(0, 0.8, n)
    return np.column_stack([users, items]), np.clip(np.rint(z), 1, 5)


def main() -> None:
    args = arguments(__doc__ or "", "speed_layers", options)
    results: dict[str, Any] = previous(args)
    small = load(args.data, "ml100k.npz")
    parts = ("kernel", "threads") if args.quick else args.only.split(",")
    X, y = np.column_stack([small["rows"], small["cols"]])[:2000], small["vals"][:2000].astype(float)
    for baskets in ("auto", 0):  # compiled code is loaded before the clock runs
        gg.LayeredCoClusteringRegressor(
            2, 8 if baskets == 0 else "auto", baskets=baskets, sampler=Sampler(n_chains=1, n_sweeps=25)
        ).fit(X, y)

    def note(part: str, name: str, row: dict[str, Any]) -> None:
        results.setdefault(part, {})[name] = row
        print(part, name, row, flush=True)
        write(args, {"seed": args.seed}, results)

    if "kernel" in parts:
        for name in ("ml100k",) if args.quick else ("ml100k", "ml1m"):
            note("kernel", name, kernel(load(args.data, f"{name}.npz"), 25, args.seed))
    if "threads" in parts:
        results["threads"] = threads(small)
        print(results["threads"], flush=True)
        write(args, {"seed": args.seed}, results)
    if "plain" in parts:
        X, y = np.column_stack([small["rows"], small["cols"]]), small["vals"].astype(float)
        train, test = small["u1_base_idx"], small["u1_test_idx"]
        for name, settings in PLAIN.items():
            rows = []
            for seed in range(args.seed, args.seed + 3):
                model = gg.LayeredCoClusteringRegressor(baskets=0, alphabet=STARS, random_state=seed, **settings)
                rows.append(fitted(model, (X[train], y[train]), (X[test], y[test])))
            means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0] if key != "chosen"}
            note("plain", name, {**means, "chosen": rows[0]["chosen"]})
    if "ml1m" in parts:
        data = load(args.data, "ml1m.npz")
        X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(float)
        order = np.random.default_rng(0).permutation(len(y))  # the split of peers_ratings.json
        train, test = np.split(order, [int(0.8 * len(y))])
        for name, before in BEFORE.items():
            row = fitted(plain(name, args.seed), (X[train], y[train]), (X[test], y[test]))
            old = json.loads((RESULTS / "peers_ratings.json").read_text())["results"]["by_split"]["ml1m"][before]
            row |= {"rmse_before": old["rmse"], "fit_cpu_s_before": old["fit_cpu_s"]}
            note("ml1m", name, {**row, "cpu_over_before": row["fit_cpu_s"] / old["fit_cpu_s"]})
    if "cold_start" in parts:
        X, y = cold_start(1_000_000, 430_000, args.seed)
        test = np.random.default_rng(1).random(len(y)) < 0.05
        train, asked = (X[~test], y[~test]), (X[test], y[test])
        for name, model in (
            ("10 item layers of 8 × 8", plain("10 layers of 8 × 8", args.seed)),
            ("nothing set", gg.LayeredCoClusteringRegressor(alphabet=STARS, random_state=args.seed)),
        ):
            note("cold_start", name, fitted(model, train, asked))


if __name__ == "__main__":
    main()
