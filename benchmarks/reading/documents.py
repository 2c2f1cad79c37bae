"""Readings of documents and ratings: sizes over five seeds, agreement with the known classes, names.

Documents × words with `CoOccurrenceClustering` of 80 × 80 clusters (as many as there are items allow), read at the
size that keeps half of the held-out gain; MovieLens by tastes. NMI and ARI are of the readable document groups.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, write

SETS = ("cstr", "classic3", "webace", "20news_binary_vocab", "reuters21578")
SMALL = ("cstr", "classic3", "webace")
FINE = 80
FIGURES = {
    "readable size": "documents/*/sizes",
    "NMI at the readable size": "documents/*/nmi",
    "sizes of MovieLens": "ratings/sizes",
}


def documents(folder: str, name: str, seeds: int) -> dict[str, object]:
    counts = sparse.csr_array(sparse.load_npz(Path(folder) / f"docs_{name}.npz"))
    known = np.load(Path(folder) / f"docs_{name}_labels.npz", allow_pickle=True)
    full = np.asarray(counts.sum(axis=1)).ravel() > 0
    counts, classes = sparse.csr_array(counts[full]), np.asarray(known["labels"])[full]
    words = known["terms"] if "terms" in known else [f"w{j}" for j in range(counts.shape[1])]
    names = {"document": [f"d{i}" for i in range(counts.shape[0])], "word": [str(word) for word in words]}
    began, sizes, nmi, ari, told = time.process_time(), [], [], [], []
    for seed in range(seeds):
        model = gg.CoOccurrenceClustering(FINE, n_init=1, random_state=seed).fit(counts, names=names)
        model.n_clusters = "auto"  # so that the rule chooses the size to read at
        reading = gg.read(model, random_state=seed)
        labels = reading.sides[0].labels(reading.size[0])
        sizes.append(list(reading.size))
        nmi.append(round(float(normalized_mutual_info_score(classes, labels)), 3))
        ari.append(round(float(adjusted_rand_score(classes, labels)), 3))
        told = [cluster.name for cluster in reading.sides[0].cut(reading.size[0])]
    return {
        "classes": len(np.unique(classes)), "sizes": sizes, "nmi": nmi, "ari": ari, "names of the last": told,
        "cpu seconds a fit and reading": round((time.process_time() - began) / seeds, 1),
    }  # fmt: skip


def ratings(folder: str, seeds: int) -> dict[str, object]:
    data = load(folder, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]), data["vals"]
    model = gg.CoClusteringRegressor((13, 6), alphabet=range(1, 6), random_state=0).fit(X, y)
    model.n_clusters = "auto"
    began, sizes, shares = time.process_time(), [], []
    for seed in range(seeds):
        reading = gg.read(model, random_state=seed)
        sizes.append(list(reading.size))
        averages = next(score.value for score in reading.errors.scores if score.name == "both averages")
        shares.append(round(float(reading.curve.max()) / averages**2, 4))
    return {
        "sizes": sizes, "share of what averages leave over": shares,
        "cpu seconds a reading": round((time.process_time() - began) / seeds, 1),
    }  # fmt: skip


def main() -> None:
    args = arguments(__doc__, name="reading_documents")
    seeds = 2 if args.quick else 5
    results: dict[str, object] = {"ratings": ratings(args.data, seeds), "documents": {}}
    settings = {"seeds": seeds, "fine clusters a side": FINE}
    for name in SMALL if args.quick else SETS:
        results["documents"][name] = documents(args.data, name, seeds if name in SMALL else min(seeds, 3))
        write(args, settings=settings, results=results)


if __name__ == "__main__":
    main()
