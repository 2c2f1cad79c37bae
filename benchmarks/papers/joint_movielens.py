"""Shared matrices (P0 eqs. 46-48) on MovieLens-100K: ratings, genres of movies and attributes of viewers.

The split hides the ratings of 20 % of the movies down to three and holds out 10 % of the others' ratings.
MAE of the median prediction, of one fit (mean over restarts) and of their committee (mean of the label
laws). β of the properties and the rule for cold movies were chosen on splits made inside the training part
of seed 0. "ratings_cold_start" places cold movies without properties: what the rule alone does.
"""

from __future__ import annotations

import csv
import gzip
import re
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, clock, data_file, load, previous, write

FIGURES = {
    "MAE of movies with few ratings (ratings alone)": "mean/ratings/one_fit_mae_few",
    "(with properties)": "mean/joint_cold_start/one_fit_mae_few",
}
FULL = ["", "--certificates"]
RATINGS, MOVIES, VIEWERS = ("viewer", "movie"), ("movie", "property"), ("viewer", "attribute")
YEARS = [0, 1940, 1960, 1975, 1985, 1993, 1995, 1996, 1997, 2100]
AGES = [0, 18, 25, 35, 45, 56, 200]
ARMS = ("ratings", "ratings_cold_start", "joint", "joint_cold_start")
SETTINGS = {
    "n_clusters": [20, 20],
    "beta_ratings": 0.7,
    "beta_movies": 0.5,
    "beta_viewers": 0.3,
    "max_iter": 60,
    "tol": 1e-6,
    "start": "means",
    "kept": 3,
    "hidden_movies": 336,
    "restarts": 6,
}


def table(folder, file):
    with gzip.open(data_file(folder, file), "rt") as stream:
        return list(csv.DictReader(stream))


def between(value, cuts):
    return [low <= value < high for low, high in pairwise(cuts)]


def properties(folder, genres):
    """Movies × (19 genres, 9 spans of years), zeros and ones."""
    rows = []
    for item in table(folder, "ml100k_items.csv.gz"):
        years = re.findall(r"(19\d\d)", " ".join(str(value) for value in item.values()))
        rows.append(between(int(years[-1]) if years else 1995, YEARS))
    return np.hstack([genres, np.array(rows)]).astype(int)


def attributes(folder):
    """Viewers × (2 sexes, 6 ages, 21 occupations), zeros and ones."""
    users = table(folder, "ml100k_users.csv.gz")
    jobs = sorted({user["occupation"] for user in users})
    return np.array(
        [
            [user["gender"] == "M", user["gender"] == "F", *between(int(user["age"]), AGES)]
            + [user["occupation"] == job for job in jobs]
            for user in users
        ]
    ).astype(int)


def entries(matrix):
    at = np.indices(matrix.shape).reshape(2, -1).T
    return at, matrix.ravel()


def split(movies, seed):
    rng = np.random.default_rng(seed)
    cold = np.zeros(movies.max() + 1, bool)
    cold[rng.choice(len(cold), SETTINGS["hidden_movies"], replace=False)] = True
    order = rng.permutation(len(movies))
    place = np.empty(len(movies), int)  # of each rating among its movie's, in random order
    seen = np.zeros(len(cold), int)
    for e in order:
        place[e] = seen[movies[e]]
        seen[movies[e]] += 1
    train = np.where(cold[movies], place < SETTINGS["kept"], rng.random(len(movies)) < 0.9)
    return np.flatnonzero(train), np.flatnonzero(~train)


def median_label(law):
    return 1 + (np.cumsum(law, axis=1) < 0.5 * (1 - 1e-12)).sum(axis=1)


def options(parser):
    parser.add_argument("--only", type=int, nargs="*", help="seeds; 0 to 4 by default")
    parser.add_argument("--certificates", action="store_true", help="only the certificates of a random split")


def certificates(X, y, movies, viewers, seed):
    """Log-wealth certificates of a random 80/20 split, 13 × 6: ratings alone, and all relations together."""
    train = np.random.default_rng(seed).random(len(y)) < 0.8
    relations = {RATINGS: (X[train], y[train]), MOVIES: movies, VIEWERS: viewers}
    found = {}
    for arm, given in (("ratings", {RATINGS: relations[RATINGS]}), ("joint", relations)):
        model = gg.JointCoClustering(
            {"viewer": 13, "movie": 6, "property": None, "attribute": None},
            beta={RATINGS: 0.2, MOVIES: 0.1, VIEWERS: 0.1},
            alphabet={RATINGS: range(1, 6), MOVIES: (0, 1), VIEWERS: (0, 1)},
            random_state=seed,
        ).fit(given)
        # The properties are a complete table: there is nothing to certify about them but what was seen.
        listed = {name: len(model.items_[name]) for name in ("property", "attribute") if name in model.items_}
        kept = model.certify(given, delta=0.05, population=listed)[RATINGS]
        test = model.sample(RATINGS, X[~train], y[~train]) if arm == "joint" else None
        found[arm] = {"certificate": kept.value, "share_of_delta": kept.delta, "train_gibbs_mae": kept.empirical}
        if test is not None:
            found[arm]["test_gibbs_mae"] = model.posterior_.gibbs_loss(test)
    return found


def main():
    warnings.simplefilter("ignore", gg.UnseenItemsWarning)
    args = arguments(__doc__.splitlines()[0], "joint_movielens", options)
    data = load(args.data, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"].astype(int)
    movies, viewers = entries(properties(args.data, data["genres"])), entries(attributes(args.data))
    results = {"seeds": {}} | previous(args)
    seeds, restarts = range(args.seed, args.seed + 5), SETTINGS["restarts"]
    if args.quick:
        seeds, restarts = seeds[:1], 1
    if args.certificates:
        results["certificates_random_split"] = certificates(X, y, movies, viewers, args.seed)
        print(results["certificates_random_split"])
        write(args, SETTINGS, results)
        return
    for seed in args.only if args.only is not None else seeds:
        train, test = split(X[:, 1], seed)
        few = np.bincount(X[train, 1], minlength=X[:, 1].max() + 1)[X[test, 1]] <= 5
        found = {"test_ratings": len(test), "of_movies_with_at_most_5": int(few.sum())}
        for arm in ARMS:
            relations = {RATINGS: (X[train], y[train])}
            if arm.startswith("joint"):
                relations |= {MOVIES: movies, VIEWERS: viewers}
            laws, times = [], {}
            with clock(times):
                for restart in range(restarts):
                    model = gg.JointCoClustering(
                        {"viewer": 20, "movie": 20, "property": None, "attribute": None},
                        beta={RATINGS: 0.7, MOVIES: 0.5, VIEWERS: 0.3},
                        alphabet={RATINGS: range(1, 6)},
                        cold_start=arm.endswith("cold_start"),
                        max_iter=60,
                        random_state=restart,
                    ).fit(relations)
                    laws.append(model.predict_distribution(RATINGS, X[test]))
            one = [np.abs(median_label(law) - y[test]) for law in laws]
            together = np.abs(median_label(np.mean(laws, axis=0)) - y[test])
            found[arm] = {
                "one_fit_mae": float(np.mean(one)),
                "one_fit_mae_few": float(np.mean([e[few].mean() for e in one])),
                "one_fit_mae_many": float(np.mean([e[~few].mean() for e in one])),
                "committee_mae": float(together.mean()),
                "committee_mae_few": float(together[few].mean()),
                "committee_mae_many": float(together[~few].mean()),
                **times,
            }
            print(seed, arm, found[arm], flush=True)
        results["seeds"][str(seed)] = found
        done = results["seeds"].values()
        results["mean"] = {
            arm: {key: float(np.mean([f[arm][key] for f in done])) for key in found[arm]} for arm in ARMS
        }
        results["gain_for_movies_with_at_most_5"] = {
            f"{arm}_{who}": results["mean"]["ratings"][f"{who}_mae_few"] - results["mean"][arm][f"{who}_mae_few"]
            for arm in ARMS[1:]
            for who in ("one_fit", "committee")
        }
        write(args, {**SETTINGS, "restarts": restarts}, results)


if __name__ == "__main__":
    main()
