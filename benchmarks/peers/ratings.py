"""Rating prediction: gingham and its peers on the same splits, three measures.

    python benchmarks/peers/ratings.py --data FOLDER --splits u1,u2 --methods "layered;peers" --peers-python PYTHON

Splits: u1 … u5 (official MovieLens-100K), random0, random1, … (80/20 of MovieLens-100K), ml1m (80/20 of
MovieLens-1M). Results are added to the JSON file as they come, so that a run can be done in parts. So can one long fit
of layers: with ``--checkpoint FILE`` it stops after ``--pause`` seconds (exit code 3) and goes on in the next run.

RMSE and "mae" are of real-valued predictions, clipped to [1, 5]; "label" is the mean absolute error of
predictions in whole stars: rounded for peers (they have nothing else), by learned cut points for layers, the
median of the averaged label distribution for committees.

Sizes, side weight, noise and cut points of "layered" and "genres" and the start, size and β of "committee" are chosen
inside each training part (``chosen`` in the JSON says what); how many chains, sweeps and members are averaged is a
matter of time and fixed. "fixed" and "soft" have sizes set beforehand, peers the settings in their names.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from ratings_committee import STARS, chosen_committee
from ratings_peers import METHODS as PEERS

import gingham as gg
from common import arguments, left_out, load, peer_option, previous, write
from parts import in_parts

FIGURES = {
    "RMSE over the best peer's": "summary/ratio_to_best_peer/*/rmse",
    "MAE": "summary/ratio_to_best_peer/*/mae",
    "MAE of whole stars": "summary/ratio_to_best_peer/*/label",
}
FULL = ["", "--splits ml1m --methods 'layered;fixed;peers'"]
SMALL = "fixed;Surprise CoClustering 3×3 (defaults);LensKit item-kNN (20 neighbours)"
OURS = {
    "layered": "LayeredCoClusteringRegressor (nothing set)",
    "genres": "LayeredCoClusteringRegressor with genres",
    "fixed": "LayeredCoClusteringRegressor, 10 layers of 8×8",
    "committee": "Committee of 20 grids, absolute loss",
    "auto": "CoClusteringRegressor, nothing set",
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", default="u1,u2,u3,u4,u5")
    parser.add_argument(
        "--methods",
        default=";".join([*OURS, "peers"]),
        help="separated by ';': any of these, 'peers' for all, or a peer by name",
    )
    parser.add_argument("--checkpoint", type=Path, help="file in which one fit of layers is kept between runs")
    parser.add_argument("--pause", type=int, default=200, help="seconds after which such a fit stops")
    peer_option(parser, "lenskit", "--peers-python")


def split_of(folder: Any, name: str) -> tuple[Any, Any, Any]:
    """Training tuples, test tuples, and genres of the movies (None on ML-1M)."""
    data = load(folder, "ml1m.npz" if name == "ml1m" else "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(float)
    if name.startswith("u"):
        train, test = data[f"{name}_base_idx"], data[f"{name}_test_idx"]
    else:
        order = np.random.default_rng(int(name.removeprefix("random") or 0) if name != "ml1m" else 0).permutation(
            len(y)
        )
        cut = int(0.8 * len(y))
        train, test = order[:cut], order[cut:]
    return (X[train], y[train]), (X[test], y[test]), data.get("genres")


def model_of(method: str, train: Any, genres: Any, seed: int) -> tuple[Any, dict[str, Any]]:
    """The model to fit, and what was chosen before."""
    common: dict[str, Any] = {"alphabet": STARS, "random_state": seed}
    if method == "committee":
        return chosen_committee(*train, seed)
    if method == "genres":
        common["side"] = {1: (np.arange(len(genres)), genres)}
    if method == "fixed":
        return gg.LayeredCoClusteringRegressor(10, 8, **common), {}
    return (gg.CoClusteringRegressor if method == "auto" else gg.LayeredCoClusteringRegressor)(**common), {}


def measures(mean: Any, label: Any, y: Any) -> dict[str, float]:
    mean = np.clip(mean, 1, 5)
    return {
        "rmse": float(np.sqrt(np.mean((mean - y) ** 2))),
        "mae": float(np.mean(np.abs(mean - y))),
        "rounded": float(np.mean(np.abs(np.floor(mean + 0.5) - y))),
        "label": float(np.mean(np.abs(label - y))),
    }


def run_ours(
    method: str, train: Any, test: Any, genres: Any, seed: int, file: Path | None = None, pause: int = 0
) -> dict[str, Any]:
    start = time.process_time()
    model, chosen = model_of(method, train, genres, seed)
    searched = time.process_time()
    with in_parts(file, f"{method}, {len(train[1])} rows, seed {seed}", pause) as (before, checkpoint):
        model.fit(*train, checkpoint=checkpoint)
    fitted = time.process_time()
    label = model.predict(test[0], rule="label" if hasattr(model, "cuts_") else "median")
    mean = model.predict(test[0])
    found = measures(mean, label, test[1])
    found |= {"fit_cpu_s": before + fitted - start, "predict_cpu_s": (time.process_time() - fitted) / 2}
    if chosen:
        found |= {"chosen": chosen, "search_cpu_s": searched - start}
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        found["file_mb"] = (Path(folder) / "model").stat().st_size / 1e6
    if hasattr(model, "noise_"):
        low, high = model.predict_interval(test[0], 0.9).T
        found |= {"noise": model.noise_, "cuts": model.cuts_, "n_chains": model.draws_.n_chains}
        found["chosen"] = str(model.selection_)
        found["coverage_90"] = float(np.mean((low <= test[1]) & (test[1] <= high)))
    return found


def run_peer(method: str, train: Any, test: Any, seed: int, python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "split.npz", Path(folder) / "out.npz"
        np.savez(
            source, train_users=train[0][:, 0], train_items=train[0][:, 1], train_labels=train[1],
            test_users=test[0][:, 0], test_items=test[0][:, 1],
        )  # fmt: skip
        script = Path(__file__).with_name("ratings_peers.py")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, script, method, source, target, str(seed)], check=True, env=environment)
        with np.load(target) as out:
            predictions = np.clip(out["predictions"], 1, 5)
            found = measures(predictions, np.floor(predictions + 0.5), test[1])
            found |= {"fit_cpu_s": float(out["fit_s"]), "predict_cpu_s": float(out["predict_s"])}
            return {**found, "version": str(out["version"])}


def summary(by_split: dict[str, Any]) -> dict[str, Any]:
    """Means over the official splits, and each of our measures divided by the best peer's."""
    official = {s: r for s, r in by_split.items() if s.startswith("u")}
    methods = {m for r in official.values() for m in r}
    complete = [m for m in sorted(methods) if all(m in r for r in official.values())]
    keys = ("rmse", "mae", "label", "fit_cpu_s")
    means = {m: {k: float(np.mean([r[m][k] for r in official.values()])) for k in keys} for m in complete}
    peers = [m for m in complete if m in PEERS]
    ratios = {}
    if peers:
        best = {k: min(means[m][k] for m in peers) for k in keys[:3]}
        ratios = {m: {k: means[m][k] / best[k] for k in best} for m in complete if m not in PEERS}
    found = {"splits": sorted(official), "means": means, "ratio_to_best_peer": ratios}
    large = by_split.get("ml1m", {})
    rivals = [m for m in large if m in PEERS]
    for ours in (m for m in large if m in OURS.values()):
        place = found.setdefault("ml1m", {}).setdefault(ours, {})
        place["rank"] = {k: 1 + sum(large[m][k] < large[ours][k] for m in rivals) for k in keys[:3]}
        place["among"] = 1 + len(rivals)
    return found


def main() -> None:
    args = arguments(__doc__ or "", "peers_ratings", options)
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)
    wanted = (SMALL if args.quick else args.methods).split(";")
    names = [m for m in wanted if m in OURS]
    if args.peers_python:
        names += [p for p in PEERS if "peers" in wanted or p in wanted]
    else:
        left_out("lenskit")
    for split in ("u1",) if args.quick else args.splits.split(","):
        train, test, genres = split_of(args.data, split)
        for name in names:
            if name in PEERS:
                found = run_peer(name, train, test, args.seed, args.peers_python)
            elif name == "genres" and genres is None:
                continue
            else:
                found = run_ours(name, train, test, genres, args.seed, args.checkpoint, args.pause)
            print(
                split,
                OURS.get(name, name),
                {k: round(v, 4) for k, v in found.items() if isinstance(v, float)},
                flush=True,
            )
            # Read again: another part of the run may have written in the meantime.
            results = previous(args) or {"by_split": {}}
            results["by_split"].setdefault(split, {})[OURS.get(name, name)] = found
            known = {*OURS.values(), *PEERS}  # what an older version of this script measured is dropped
            results["by_split"] = {
                at: {m: row for m, row in rows.items() if m in known} for at, rows in results["by_split"].items()
            }
            results["summary"] = summary(results["by_split"])
            write(args, {"measures": "rmse, mae: real-valued; label: whole stars", "clip": [1, 5]}, results)


if __name__ == "__main__":
    main()
