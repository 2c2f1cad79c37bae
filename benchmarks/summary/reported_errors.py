"""Ratings fitted with nothing set: the error that `gingham fit` reports beside one on rows it never saw; what is shown.

A random fifth of the ratings is set aside. The others go through ``gingham fit ratings.csv`` as a new user calls it;
its printed error (by cross-fitting, or on a tenth held out) is compared with that of the saved model on the fifth, and
the summary of the saved model says what is shown: verdict, size, fidelity, names. Coat ten times with other seeds, on
the same rows.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, data_file, load, previous, write
from gingham.summary.values import MODEL

SETS = {  # file, file of titles
    "Coat": ("coat", None),
    "MovieLens-100K": ("ml100k", "ml100k_items.csv.gz"),
    "Book-Crossing": ("bookcrossing", "bookcrossing_items.csv.gz"),
    "MovieTweetings": ("movietweetings100k", "movietweetings100k_items.csv.gz"),
    "Anime": ("anime5k", "anime5k_items.csv.gz"),
    "Jester": ("jester1", None),
}
NAMES = {"movietweetings100k": "imdb", "anime5k": "item_ids"}  # where columns are numbered, and titles go by other ids
SEEDS = 10  # of Coat
FIGURES = {
    "reported over tested root mean square error": "sets/*/reported over tested",
    "fidelity of what is shown": "sets/*/fidelity",
    "Coat, seeds: reported error": "seeds of Coat/reported",
}


def ratings(folder: str | None, name: str) -> pl.DataFrame:
    data = load(folder, f"{SETS[name][0]}.npz")
    if "self_selected" in data:
        rows, columns = np.nonzero(data["self_selected"])
        values = data["self_selected"][rows, columns]
    else:
        rows, columns, values = data["rows"], data["cols"], data["vals"]
    ids = data.get(NAMES.get(SETS[name][0], ""))
    items = columns if ids is None else ids[columns]
    return pl.DataFrame({"user": rows.astype(np.int64), "item": items.astype(np.int64), "rating": values})


def titles(folder: str | None, name: str) -> dict[str, pl.DataFrame]:
    file = SETS[name][1]
    if file is None:
        return {}
    with gzip.open(data_file(folder, file)) as stream:
        frame = pl.read_csv(stream.read(), infer_schema_length=None)
    return {"item": frame.select(pl.col(frame.columns[0]).cast(pl.Int64).alias("item"), title(frame).alias("title"))}


def title(frame: pl.DataFrame) -> pl.Expr:
    return pl.col("title" if "title" in frame.columns else "name")


def fitted(table: pl.DataFrame, seed: int, folder: Path) -> tuple[gg.LayeredCoClusteringRegressor, float]:
    """The model that the command line saves, and its wall seconds."""
    table.write_csv(folder / "ratings.csv")
    began = time.perf_counter()
    command = [sys.executable, "-m", "gingham", "fit", "ratings.csv", "--out", "m.gingham", "--seed", str(seed)]
    subprocess.run([*command, "--json", "--quiet"], cwd=folder, check=True, capture_output=True)
    return gg.load(folder / "m.gingham"), time.perf_counter() - began


def judged(table: pl.DataFrame, seed: int) -> tuple[dict[str, object], object, pl.DataFrame]:
    """The reported error beside that on the fifth set aside."""
    aside = np.random.default_rng(30).random(table.height) < 0.2
    train, test = table.filter(~aside), table.filter(aside)
    with tempfile.TemporaryDirectory() as folder:
        model, seconds = fitted(train, seed, Path(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # items that only the fifth has
        said = model.predict(test.select("user", "item"))
    tested = float(np.sqrt(np.mean((said - test["rating"].to_numpy()) ** 2)))
    errors = model._errors
    found = {
        "model": type(model).__name__,
        "rows": train.height,
        "reported": errors.model,
        "how": errors.how,
        "baselines": {name: value for name, value in errors.scores.items() if name != MODEL},
        "tested": tested,
        "reported over tested": errors.model / tested,
        "wall_s": round(seconds),
    }
    return found, model, train


def main() -> None:
    def only(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", help="one set, or seeds")

    args = arguments(__doc__, "summary_reported_errors", only)
    results = {} if args.quick else previous(args)
    settings = {"set aside": 0.2, "seeds of Coat": SEEDS}
    sets = results.setdefault("sets", {})
    for name in SETS:
        if args.only not in (None, name) or name in sets or (args.quick and name != "Coat"):
            continue
        found, model, train = judged(ratings(args.data, name), args.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.perf_counter()
            about = titles(args.data, name)
            summary = gg.summarize(
                model, train.select("user", "item"), train["rating"].to_numpy().astype(float), item_info=about
            )
            found |= {
                "found": summary.found,
                "verdict": summary.verdict,
                "why": summary.why,
                "size": list(summary.size),
                "fidelity": summary.fidelity,
                "names": {
                    side.name: [cluster.name for cluster in side.cut(k)] for side, k in zip(summary.sides, summary.size)
                },
                "summary_s": round(time.perf_counter() - began),
            }
        sets[name] = found
        print(name, found, flush=True)
        write(args, settings=settings, results=results)
    if args.only in (None, "seeds") and not args.quick:
        found = results.setdefault("seeds of Coat", {"reported": [], "tested": []})
        for seed in range(len(found["reported"]), SEEDS):
            one = judged(ratings(args.data, "Coat"), seed)[0]
            found["reported"].append(one["reported"])
            found["tested"].append(one["tested"])
            found["largest distance from their mean"] = {
                key: float(np.abs(np.array(found[key]) / np.mean(found[key]) - 1).max())
                for key in ("reported", "tested")
            }
            print("Coat", seed, one["reported"], one["tested"], flush=True)
            write(args, settings=settings, results=results)


if __name__ == "__main__":
    main()
