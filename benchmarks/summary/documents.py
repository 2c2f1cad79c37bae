"""Summaries of documents and ratings: sizes over five seeds, agreement with the known classes, names.

Documents × words with `CoOccurrenceClustering` of 80 × 80 clusters (as many as the items allow), read at the size that
keeps half of the held-out gain; MovieLens by tastes, with titles and what is known of people and films. NMI and ARI are
of the readable document groups. Beside them what a prototype of the method had found before it was built.
"""

from __future__ import annotations

import gzip
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, data_file, load, previous, write

PROTOTYPE = {  # readable size, NMI, ARI
    "cstr": ([3, 3], 0.76, 0.76),
    "classic3": ([3, 4], 0.97, 0.98),
    "webace": ([6, 7], 0.58, 0.46),
    "reuters21578": ([5, 6], 0.54, 0.56),
    "20newsgroups": ([8, 10], 0.57, 0.27),
    "20news_binary_vocab": None,  # the same posts with their words, for names
}
SMALL = ("cstr", "classic3")
FINE = 80
FIGURES = {
    "readable size": "documents/*/sizes",
    "NMI at the readable size": "documents/*/nmi",
    "sizes of MovieLens": "ratings/sizes",
}


def read_once(counts: sparse.csr_array, names: dict[str, list[str]], seed: int) -> gg.Summary:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GinghamWarning)
        model = gg.CoOccurrenceClustering(FINE, n_init=1, random_state=seed).fit(counts, names=names)
        model.n_clusters = "auto"  # so that the rule chooses the size to read at
        return gg.summarize(model, random_state=seed)


def document(folder: str, name: str, seed: int, found: dict[str, object]) -> None:
    """Add what one seed gives to what was found before."""
    counts = sparse.csr_array(sparse.load_npz(data_file(folder, f"docs_{name}.npz")))
    known = load(folder, f"docs_{name}_labels.npz")
    full = np.asarray(counts.sum(axis=1)).ravel() > 0
    counts, classes = sparse.csr_array(counts[full]), np.asarray(known["labels"])[full]
    words = known["terms"] if "terms" in known else [f"w{j}" for j in range(counts.shape[1])]
    names = {"document": [f"d{i}" for i in range(counts.shape[0])], "word": [str(word) for word in words]}
    began = time.process_time()
    summary = read_once(counts, names, seed)
    labels = summary.sides[0].labels(summary.size[0])
    found["classes"] = len(np.unique(classes))
    found.setdefault("sizes", []).append(list(summary.size))
    found.setdefault("nmi", []).append(round(float(normalized_mutual_info_score(classes, labels)), 3))
    found.setdefault("ari", []).append(round(float(adjusted_rand_score(classes, labels)), 3))
    found.setdefault("cpu_s", []).append(round(time.process_time() - began, 1))
    if "terms" in known:
        found["names"] = {
            side.name: [cluster.name for cluster in side.cut(size)] for side, size in zip(summary.sides, summary.size)
        }
    if PROTOTYPE[name] is not None:
        size, nmi, ari = PROTOTYPE[name]
        found["prototype"] = {"size": size, "nmi": nmi, "ari": ari}


def rating(folder: str, seed: int, found: dict[str, object]) -> None:
    data = load(folder, "ml100k.npz")
    about = {}
    for side, file, key in (("person", "ml100k_users.csv.gz", "row"), ("film", "ml100k_items.csv.gz", "col")):
        with gzip.open(data_file(folder, file)) as stream:
            about[side] = pl.read_csv(stream.read()).rename({key: side})
    about["film"] = about["film"].drop("release_date")
    X = pl.DataFrame({"person": data["rows"], "film": data["cols"]})
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GinghamWarning)
        model = gg.CoClusteringRegressor((13, 6), alphabet=range(1, 6), random_state=seed).fit(X, data["vals"])
        model.n_clusters = "auto"
        summary = gg.summarize(model, item_info=about, random_state=seed)
    averages = summary.errors.scores["both averages"]
    found.setdefault("sizes", []).append(list(summary.size))
    found.setdefault("share of what averages leave over", []).append(round(float(summary.curve.max()) / averages**2, 4))
    found.setdefault("cpu_s", []).append(round(time.process_time() - began, 1))
    found["names"] = {
        side.name: [told(cluster) for cluster in side.cut(k)] for side, k in zip(summary.sides, summary.size)
    }
    found["prototype"] = {"size": "3 or 4 a side", "share of what averages leave over": 0.02}


def told(cluster: object) -> str:
    """Name, what is rated lower, and facts of a group."""
    against = f" − {', '.join(cluster.against)}" if cluster.against else ""
    facts = "; ".join(str(fact) for fact in cluster.facts[:4])
    return f"{cluster.name}{against}{'; ' + facts if facts else ''}"


def summary(found: dict[str, object]) -> dict[str, object]:
    """What the seeds have in common: sizes from … to …, the most that a side moves away from its middle, medians."""
    sizes = np.array(found["sizes"])
    low, high, middle = sizes.min(axis=0), sizes.max(axis=0), np.median(sizes, axis=0)
    shown = " × ".join(str(a) if a == b else f"{a}–{b}" for a, b in zip(low, high))
    medians = {name: float(np.median(found[name])) for name in ("nmi", "ari") if name in found}
    return {"size": shown, "seeds": len(sizes), "moves by": float(np.abs(sizes - middle).max()), **medians}


def main() -> None:
    args = arguments(
        __doc__, "summary_documents", lambda parser: parser.add_argument("--only", help="one set, or ratings")
    )
    seeds = 1 if args.quick else 5
    results = {} if args.quick else previous(args)
    settings = {"seeds": seeds, "fine clusters a side": FINE}
    every = results.setdefault("documents", {})
    for name in SMALL if args.quick else PROTOTYPE:
        if args.only not in (None, name):
            continue
        found = every.setdefault(name, {})
        for seed in range(len(found.get("sizes", [])), seeds if PROTOTYPE[name] else 1):
            document(args.data, name, seed, found)
            found["summary"] = summary(found)
            print(name, seed, found["sizes"][-1], found["nmi"][-1], found["cpu_s"][-1], flush=True)
            write(args, settings=settings, results=results)
    found = results.setdefault("ratings", {}) if args.only in (None, "ratings") else {}
    for seed in range(len(found.get("sizes", [])), seeds if args.only in (None, "ratings") else 0):
        rating(args.data, seed, found)
        found["summary"] = summary(found)
        print("ratings", seed, found["sizes"][-1], flush=True)
        write(args, settings=settings, results=results)


if __name__ == "__main__":
    main()
