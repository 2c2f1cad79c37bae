"""Cold starts on MovieLens-100K: users of whom only a basket is known, movies of which only genres and year are.

    python benchmarks/peers/baskets_cold.py --data FOLDER --peers-python PYTHON

A tenth of the users (movies) loses all its labels. `users`: half of what each has rated is known as pairs without
labels, the other half is asked. `movies`: nothing of them is known but the table of movies; all of their ratings are
asked. Beside layers: averages (mean, and the offset of the side that is known, shrunk as 5 ratings), and myFM with the
same baskets and tables. Means over three draws of the tenth.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from baskets import bounds_of, measures, run_myfm, split_of, warm_up

import gingham as gg
from common import arguments, left_out, peer_option, previous, write

FIGURES = {"RMSE, users by basket": "mean/users/*/rmse", "RMSE, movies by genre": "mean/movies/*/rmse"}
SEEDS = (1, 2, 3)
SHRUNK = 5.0
RANK = "8"  # the one that is chosen on most splits of peers_baskets.json


def options(parser: argparse.ArgumentParser) -> None:
    peer_option(parser, "myfm", "--peers-python")


def cold(split: dict[str, Any], who: str, seed: int) -> dict[str, Any]:
    """The split with a tenth of the users or movies for testing; ``given`` are pairs without labels."""
    rng = np.random.default_rng(seed)
    mode = split["users" if who == "users" else "items"]
    chosen = np.isin(mode, rng.permutation(int(mode.max()) + 1)[: (int(mode.max()) + 1) // 10])
    given = chosen & (rng.random(len(chosen)) < 0.5) if who == "users" else np.zeros(len(chosen), dtype=bool)
    parts = {"train": ~chosen, "test": chosen & ~given, "given": given}
    return {**split, **{name: np.flatnonzero(rows) for name, rows in parts.items()}}


def averages(split: dict[str, Any], who: str) -> dict[str, float]:
    """The mean and the offset of the other side."""
    mode = split["items" if who == "users" else "users"]
    y, train = split["labels"], split["train"]
    mean = y[train].mean()
    size = int(mode.max()) + 1
    counts = np.bincount(mode[train], minlength=size)
    offsets = np.bincount(mode[train], y[train] - mean, minlength=size) / (counts + SHRUNK)
    guess = mean + offsets[mode[split["test"]]]
    return measures(guess, None, y[split["test"]], bounds_of(split))


def ours(split: dict[str, Any], who: str, with_side: bool, seed: int) -> dict[str, float]:
    X = pl.DataFrame({"user": split["users"], "movie": split["items"]})
    side = dict(zip(("user", "movie"), split["side"])) if with_side else None
    y, train, test = split["labels"], split["train"], split["test"]
    start = time.process_time()
    model = gg.LayeredCoClusteringRegressor(alphabet=np.unique(y), side=side, random_state=seed)
    model.fit(X[train], y[train])
    if who == "users":
        model.fold_in(X[split["given"]])
    mean, label = model.predict(X[test]), model.predict(X[test], rule="label")
    spent = time.process_time() - start
    low, high = model.predict_interval(X[test], 0.9).T
    covered = float(np.mean((low <= y[test]) & (y[test] <= high)))
    return {**measures(mean, label, y[test], bounds_of(split)), "cpu_s": spent, "coverage_90": covered}


def main() -> None:
    args = arguments(__doc__ or "", "peers_baskets_cold", options)
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)
    warm_up()
    if not args.peers_python:
        left_out("myfm")
    whole = split_of(args.data, "u1")
    results: dict[str, Any] = previous(args)
    for seed in SEEDS[:1] if args.quick else SEEDS:
        for who in ("users", "movies"):
            split = cold(whole, who, seed)
            people, movies = whole["side"]
            # New users come without a table, for everybody: what is asked is how far a basket goes.
            asked = np.unique(split["users"][split["test"]]).tolist() if who == "users" else []
            split["side"] = (people.filter(~pl.col("user").is_in(asked)), movies)
            done = results.setdefault(f"draw {seed}", {}).setdefault(who, {})
            jobs: dict[str, Any] = {
                "averages": partial(averages, split, who),
                "ours, baskets": partial(ours, split, who, False, seed),
                "ours, baskets + side": partial(ours, split, who, True, seed),
            }
            if args.peers_python:
                for method in ("myFM ids + implicit", "myFM ids + implicit + side"):
                    jobs[method] = partial(run_myfm, method, split, seed, args.peers_python, RANK)
            for name, job in jobs.items():
                if name not in done:
                    done[name] = job()
                    print(seed, who, name, done[name], flush=True)
                    write(args, {"seeds": list(SEEDS)}, results)
    draws = [row for name, row in results.items() if name.startswith("draw")]
    results["mean"] = {
        who: {
            name: {
                key: float(np.mean([one[who][name][key] for one in draws]))
                for key, value in draws[0][who][name].items()
                if isinstance(value, float)
            }
            for name in draws[0][who]
        }
        for who in ("users", "movies")
    }
    write(args, {"seeds": list(SEEDS)}, results)
    for who, rows in results["mean"].items():
        for name, row in rows.items():
            print(f"{who:7} {name:28}", {k: round(v, 4) for k, v in row.items()})


if __name__ == "__main__":
    main()
