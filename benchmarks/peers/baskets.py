"""Basket layers beside myFM, LensKit and Surprise on the same splits: error, CPU seconds, with and without time.

    python benchmarks/peers/baskets.py --data FOLDER --splits u1,u2 --methods "ours;myFM ids" --peers-python PYTHON

Splits: u1 … u5 (official MovieLens-100K); "later" (its first 80 % in the order of time, then the rest: what a service
would see); ml1m-90-SEED and ml1m-80-SEED; jester-80-SEED; cold-users-SEED (a tenth of MovieLens-100K's users: half of
their pairs are known without labels, nothing else of them, and the other half is asked) and cold-movies-SEED (a tenth
of the movies, of which only genres and year are known). Results are added to the JSON file as they come, and what is
there is not measured again (``--again`` does).

All settings are chosen inside each training part: ours by the model itself, ranks of myFM on a tenth of it (the rank of
the model with time is that of the same model without; on MovieLens-1M and Jester it is that of the first split). Whole
stars are the median of a law where a model has one (ours, ordinal myFM); for all others cut points are learned on a
tenth of the training part that the model does without, in the same way for each. CPU seconds are those of the fit and
the predictions, user and system, of all threads; what was spent on choosing settings stands apart as ``search_cpu_s``
(ours has none). A peer that needs more than ``--limit`` CPU seconds is stopped, and its row says so.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, data_file, left_out, load, peer_option, previous, write
from gingham.models.layers import Sampler

FIGURES = {
    "RMSE over the best peer's": "summary/*/rmse over the best peer",
    "MAE of whole stars over the best peer's": "summary/*/label over the best peer",
}
OURS = {
    "ours": {},
    "ours + side": {"side": True},
    "ours + side + time": {"side": True, "time": True},
    "ours, fast": {"effort": "fast"},
    "ours + side, fast": {"side": True, "effort": "fast"},
    "ours, best": {"effort": "best"},
    "ours + side, best": {"side": True, "effort": "best"},
    "ours + side + time, best": {"side": True, "time": True, "effort": "best"},
    "ours, plain layers": {"baskets": None},
}
PLAIN = "CoClusteringRegressor()"  # one checkerboard with nothing set but the alphabet
MYFM = (
    "myFM ids",
    "myFM ids + implicit",
    "myFM ids + implicit + side",
    "myFM ordinal, ids + implicit + side",
    "myFM ordinal, ids + implicit",
    "myFM ordinal, ids + implicit + side + time",
)
OTHERS = (
    "LensKit item-kNN (20 neighbours)",
    "Surprise SVD (100 factors, 60 epochs, reg .1)",
    "Surprise SVD++ (defaults)",
)
MOST_LABELS = 20  # more of them count as a continuum
AVERAGES = "averages"  # the mean, and the offset of the side that is known, shrunk as by five ratings
SHRUNK = 5.0
WIDTHS = tuple(8.0**k for k in range(8))  # seconds, for myFM; ours are found from the data


def cut_points(predictions: Any, labels: Any, weights: Any, alphabet: Any) -> Any:
    """Thresholds between neighbouring labels: where P(y ≤ label | prediction) is one half, by logistic regression.

    Predicting the median of the distribution of y given the prediction makes the absolute error least.
    """
    cuts = (alphabet[1:] + alphabet[:-1]) / 2.0
    for at, label in enumerate(alphabet[:-1]):
        below = labels <= label
        if min(below.sum(), (~below).sum()) < 10:  # too rare to learn: the midpoint stays
            continue
        from sklearn.linear_model import LogisticRegression  # takes a second to import

        fitted = LogisticRegression(C=1e3).fit(predictions[:, None], below, sample_weight=weights)
        slope = float(fitted.coef_[0, 0])
        if slope < 0:
            cuts[at] = -float(fitted.intercept_[0]) / slope
    return np.maximum.accumulate(cuts)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--splits", default="u1,u2,u3,u4,u5,later")
    parser.add_argument("--methods", default=";".join(["ours + side", "ours + side + time", PLAIN, *MYFM, *OTHERS]))
    parser.add_argument("--rank", default="", help="of myFM, instead of choosing it")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    parser.add_argument("--limit", type=int, default=1500, help="CPU seconds after which a peer is stopped")
    peer_option(parser, "myfm", "--peers-python")


def read_csv(folder: Any, name: str) -> list[dict[str, str]]:
    with gzip.open(data_file(folder, name), "rt") as stream:
        return list(csv.DictReader(stream))


def side_of(folder: Any, name: str, genres: Any) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """What is known of users and of movies, as anybody would have it in two tables."""
    if name.startswith("jester"):
        return None
    stem = "ml1m" if name.startswith("ml1m") else "ml100k"
    people, movies = read_csv(folder, f"{stem}_users.csv.gz"), read_csv(folder, f"{stem}_items.csv.gz")
    columns = [c for c in people[0] if c != "row"]
    users = pl.DataFrame({"user": [int(row["row"]) for row in people], **{c: [r[c] for r in people] for c in columns}})
    users = users.with_columns(pl.col(c).cast(pl.Int64) for c in columns if c == "age")
    years = [re.search(r"\((\d{4})\)", row["title"]) for row in movies]
    found = {
        "movie": [int(row["col"]) for row in movies],
        "year": [None if y is None else int(y.group(1)) for y in years],
    }
    if genres is not None:
        found["genres"] = ["|".join(f"g{g}" for g in np.flatnonzero(row)) for row in genres]
    elif "genres" in movies[0]:
        found["genres"] = [row["genres"] for row in movies]
    return users, pl.DataFrame(found)


def split_of(folder: Any, name: str) -> dict[str, Any]:
    """Users, items, labels, times (None without), and which rows are for training and for testing."""
    file = "jester1.npz" if name.startswith("jester") else "ml1m.npz" if name.startswith("ml1m") else "ml100k.npz"
    data = load(folder, file)
    users, items, labels = data["rows"].astype(np.int64), data["cols"].astype(np.int64), data["vals"].astype(float)
    times = data["timestamps"].astype(float) if "timestamps" in data else None
    train = test = np.zeros(0, dtype=np.int64)
    if name.startswith("u"):
        train, test = data[f"{name}_base_idx"], data[f"{name}_test_idx"]
    elif name == "later":
        order = np.argsort(times, kind="stable")
        train, test = np.split(order, [int(0.8 * len(order))])
    elif not name.startswith("cold"):
        _, share, seed = name.split("-")
        order = np.random.default_rng(int(seed)).permutation(len(labels))
        if name.startswith("jester"):
            order = order[:400_000]  # of 1.8 million: peers take hours for all
        train, test = np.split(order, [int(int(share) / 100 * len(order))])
    shape = tuple(int(n) for n in data["shape"])
    side = side_of(folder, name, data.get("genres"))
    more = {}
    if name.startswith("cold"):
        _, who, seed = name.split("-")
        rng, mode = np.random.default_rng(int(seed)), users if who == "users" else items
        size = int(mode.max()) + 1
        new = np.isin(mode, rng.permutation(size)[: size // 10])
        given = new & (rng.random(len(new)) < 0.5) if who == "users" else np.zeros(len(new), dtype=bool)
        train, test, more = np.flatnonzero(~new), np.flatnonzero(new & ~given), {"given": np.flatnonzero(given)}
        if who == "users" and side is not None:  # new users come without a table: how far does a basket go?
            side = (side[0].filter(~pl.col("user").is_in(np.unique(users[new]).tolist())), side[1])
    return {
        **more, "users": users, "items": items, "labels": labels, "times": times, "train": np.asarray(train),
        "test": np.asarray(test), "shape": shape, "side": side,
    }  # fmt: skip


def measures(mean: Any, label: Any, y: Any, bounds: tuple[float, float]) -> dict[str, float]:
    mean = np.clip(mean, *bounds)
    gap = mean - y
    found = {"rmse": float(np.sqrt(np.mean(gap**2))), "mae": float(np.mean(np.abs(gap))), "bias": float(np.mean(gap))}
    return found if label is None else {**found, "label": float(np.mean(np.abs(label - y)))}


def bounds_of(split: dict[str, Any]) -> tuple[float, float]:
    return float(split["labels"].min()), float(split["labels"].max())


def run_ours(method: str, split: dict[str, Any], seed: int) -> dict[str, Any]:
    settings = dict(OURS[method])
    with_side, with_time = settings.pop("side", False), settings.pop("time", False)
    X = pl.DataFrame({"user": split["users"], "movie": split["items"]})
    if with_side and split["side"] is not None:
        settings["side"] = dict(zip(("user", "movie"), split["side"]))
    label_values = np.unique(split["labels"])
    few = len(label_values) <= MOST_LABELS
    model = gg.LayeredCoClusteringRegressor(alphabet=label_values if few else None, random_state=seed, **settings)
    train, test, y = split["train"], split["test"], split["labels"]
    times = {name: split["times"][rows] for name, rows in (("train", train), ("test", test))} if with_time else {}
    start, begun = time.process_time(), time.perf_counter()
    model.fit(X[train], y[train], time=times.get("train"))
    if len(split.get("given", ())):
        model.fold_in(X[split["given"]])
    fitted = time.process_time()
    dated = {"time": times["test"]} if with_time else {}
    mean = model.predict(X[test], **dated)
    predicted = time.process_time()
    label = model.predict(X[test], rule="label", **dated) if few else None
    found = measures(mean, label, y[test], bounds_of(split))
    low, high = model.predict_interval(X[test], 0.9, **dated).T
    found |= {
        "cpu_s": predicted - start, "fit_cpu_s": fitted - start, "wall_s": time.perf_counter() - begun,
        "coverage_90": float(np.mean((low <= y[test]) & (y[test] <= high))), "noise": model.noise_,
        "width_90": float(np.mean(high - low)), "chosen": str(model.selection_),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        found["file_mb"] = (Path(folder) / "model").stat().st_size / 1e6
    return found


def run_plain(split: dict[str, Any], seed: int) -> dict[str, Any]:
    X = pl.DataFrame({"user": split["users"], "movie": split["items"]})
    label_values, train, test, y = np.unique(split["labels"]), split["train"], split["test"], split["labels"]
    few = len(label_values) <= MOST_LABELS
    model = gg.CoClusteringRegressor(alphabet=label_values if few else None, random_state=seed)
    start = time.process_time()
    mean = model.fit(X[train], y[train]).predict(X[test])
    spent = time.process_time() - start
    label = model.predict(X[test], rule="median") if few else None
    sizes = " × ".join(str(len(np.unique(labels))) for labels in model.labels_)
    return {**measures(mean, label, y[test], bounds_of(split)), "cpu_s": spent, "chosen": f"{sizes} clusters"}


def warm_up() -> None:
    """Compiled code is loaded before any clock runs."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(20, size=(500, 2)), rng.integers(1, 6, 500).astype(float)
    gg.CoClusteringRegressor(random_state=0).fit(X, y)
    for labels in (y, y + rng.normal(size=500)):
        model = gg.LayeredCoClusteringRegressor(sampler=Sampler(1, 20, 15), random_state=0)
        model.fit(X, labels, time=np.arange(500.0)).predict_interval(X)


def side_tokens(split: dict[str, Any]) -> dict[str, Any]:
    """The same tokens for myFM as the layers read."""
    from gingham.data.adapt import frame_values
    from gingham.models.layers.side import SideCode

    found: dict[str, Any] = {}
    for name, mode, table in zip(("user", "item"), ("user", "movie"), split["side"] or (None, None)):
        pairs, n = np.zeros((2, 0), dtype=np.int64), 0
        if table is not None:
            values = frame_values(table)
            ids = np.asarray(values.pop(mode))
            code = SideCode.of(mode, values)
            held = code.read(values)
            pairs, n = np.stack([ids[held.items], held.tokens]), len(code.tokens)
        found |= {f"{name}_tokens": pairs, f"{name}_n_tokens": n}
    return found


def window_codes(split: dict[str, Any], seed: int) -> Any:
    """Users in windows of time of some widths, shifted at random."""
    if split["times"] is None:
        return np.zeros((0, 0), dtype=np.int64)
    rng, since = np.random.default_rng(seed), split["times"] - split["times"].min()
    return np.stack([split["users"] * 10**10 + ((since + rng.uniform(0, w)) // w).astype(np.int64) for w in WIDTHS])


def known_rank(method: str, name: str, by_split: dict[str, Any]) -> str:
    """The rank that was chosen for the same model without time, or on the first split; "" where it is to be chosen."""
    kin = [(name, method.removesuffix(" + time"))] if method.endswith(" + time") else []
    kin += [(first, method) for first in ("ml1m-90-1", "jester-80-1") if name.startswith(first.split("-")[0])]
    for split, same in kin:
        row = by_split.get(split, {}).get(same)
        if row and "chosen" in row and (split, same) != (name, method):
            return str(row["chosen"]).removeprefix("rank ")
    return ""


def run_myfm(method: str, split: dict[str, Any], seed: int, python: str, rank: str, limit: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "split.npz", Path(folder) / "out.npz"
        names = ("users", "items", "labels", "train", "test", "shape", "given")
        plain = {name: split[name] for name in names if name in split}
        np.savez(source, **plain, **side_tokens(split), windows=window_codes(split, seed))
        _call(python, limit, "baskets_peers.py", method, source, target, seed, rank)
        with np.load(target) as out:
            found = _peer_measures(out["mean"], out["below"], out["held"], out["held_mean"], split)
            return {
                **found, "cpu_s": float(out["cpu_s"]), "search_cpu_s": float(out["search_s"]),
                "chosen": str(out["chosen"]), "version": str(out["version"]),
            }  # fmt: skip


def run_averages(split: dict[str, Any], who: str) -> dict[str, float]:
    mode = split["items" if who == "users" else "users"]
    y, train, size = split["labels"], split["train"], int(mode.max()) + 1
    mean = y[train].mean()
    counts = np.bincount(mode[train], minlength=size)
    offsets = np.bincount(mode[train], y[train] - mean, minlength=size) / (counts + SHRUNK)
    guess = mean + offsets[mode[split["test"]]]
    label = np.clip(np.rint(guess), *bounds_of(split))
    return {**measures(guess, label, y[split["test"]], bounds_of(split)), "cpu_s": 0.0}


def run_other(method: str, split: dict[str, Any], seed: int, python: str, limit: int) -> dict[str, Any]:
    """LensKit or Surprise: once on nine tenths of the training part, for the cut points, and once on all of it."""
    train, test = split["train"], split["test"]
    held = train[np.random.default_rng(seed).random(len(train)) < 0.1]
    (guesses, _), (mean, cpu) = (
        _other(method, split, rows, asked, seed, python, limit)
        for rows, asked in ((np.setdiff1d(train, held), held), (train, test))
    )
    found = _peer_measures(mean, np.zeros((len(test), 0)), held, guesses, split)
    return {**found, "cpu_s": cpu}


def _other(
    method: str, split: dict[str, Any], rows: Any, asked: Any, seed: int, python: str, limit: int
) -> tuple[Any, float]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "split.npz", Path(folder) / "out.npz"
        users, items = split["users"], split["items"]
        np.savez(
            source, train_users=users[rows], train_items=items[rows], train_labels=split["labels"][rows],
            test_users=users[asked], test_items=items[asked],
        )  # fmt: skip
        _call(python, limit, "ratings_peers.py", method, source, target, seed)
        with np.load(target) as out:
            return out["predictions"], float(out["fit_s"] + out["predict_s"])


class Unfinished(Exception):
    """A peer took longer than it may."""


def _call(python: str, limit: int, script: str, method: str, source: Path, target: Path, seed: int, *more: str) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    done = subprocess.run(
        [python, Path(__file__).with_name(script), method, source, target, str(seed), *more],
        env=environment,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise Unfinished
    done.check_returncode()


def _peer_measures(mean: Any, below: Any, held: Any, held_mean: Any, split: dict[str, Any]) -> dict[str, float]:
    y, label_values = split["labels"], np.unique(split["labels"])
    label = None
    if below.shape[1]:
        label = label_values[np.sum(below < 0.5, axis=1)]
    elif len(label_values) <= MOST_LABELS:
        cuts = cut_points(np.clip(held_mean, *bounds_of(split)), y[held], np.ones(len(held)), label_values)
        label = label_values[np.searchsorted(cuts, mean)]
    return measures(mean, label, y[split["test"]], bounds_of(split))


def run_peer(method: str, split: dict[str, Any], args: argparse.Namespace, rank: str) -> dict[str, Any]:
    try:
        if method in MYFM:
            return run_myfm(method, split, args.seed, args.peers_python, rank, args.limit)
        return run_other(method, split, args.seed, args.peers_python, args.limit)
    except Unfinished:
        return {"not finished within cpu_s": float(args.limit)}


def summary(by_split: dict[str, Any]) -> dict[str, Any]:
    """Means over the official splits and over the seeds of each other split, and ours over the best peer."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for name, rows in by_split.items():
        key = "u1-u5" if re.fullmatch(r"u\d", name) else name.rsplit("-", 1)[0] if "-" in name else name
        groups.setdefault(key, []).append(rows)
    found = {}
    for key, every in groups.items():
        methods = [m for m in every[0] if all("rmse" in rows.get(m, {}) for rows in every)]
        names = [k for k in ("rmse", "mae", "label", "cpu_s", "coverage_90") if any(k in every[0][m] for m in methods)]
        means = {
            m: {k: float(np.mean([rows[m][k] for rows in every])) for k in names if k in every[0][m]} for m in methods
        }
        part: dict[str, Any] = {"splits": len(every), "means": means}
        for suffix, group in (("", [m for m in methods if "time" not in m]), (", with time", methods)):
            ours, peers = [m for m in group if m in OURS], [m for m in group if m not in (*OURS, PLAIN)]
            for k in ("rmse", "mae", "label"):
                own, theirs = ([means[m][k] for m in some if k in means[m]] for some in (ours, peers))
                if own and theirs:
                    part[f"{k} over the best peer{suffix}"] = min(own) / min(theirs)
        found[key] = part
    return found


def main() -> None:
    args = arguments(__doc__ or "", "peers_baskets", options)
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)
    warm_up()
    wanted = ["ours + side, fast", "myFM ids"] if args.quick else args.methods.split(";")
    if not args.peers_python:
        left_out("myfm")
    for name in ("u1",) if args.quick else args.splits.split(","):
        split = split_of(args.data, name)
        few = len(np.unique(split["labels"])) <= MOST_LABELS
        for method in wanted:
            known = previous(args).get("by_split", {})
            if method in known.get(name, {}) and not args.again:
                continue
            if ("time" in method and split["times"] is None) or (
                method not in (*OURS, PLAIN, AVERAGES) and not args.peers_python
            ):
                continue
            if ("ordinal" in method and not few) or ("side" in method and split["side"] is None):
                continue
            if method == AVERAGES:
                found = run_averages(split, name.split("-")[1])
            elif method == PLAIN:
                found = run_plain(split, args.seed)
            elif method in OURS:
                found = run_ours(method, split, args.seed)
            else:
                found = run_peer(method, split, args, args.rank or known_rank(method, name, known))
            print(name, method, {k: round(v, 4) for k, v in found.items() if isinstance(v, float)}, flush=True)
            # Read again: another part of the run may have written in the meantime.
            results = previous(args) or {"by_split": {}}
            results["by_split"].setdefault(name, {})[method] = found
            results["summary"] = summary(results["by_split"])
            write(args, {"measures": "rmse, mae: real-valued; label: whole labels"}, results, ("polars",))


if __name__ == "__main__":
    main()
