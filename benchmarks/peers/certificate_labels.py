"""Whose clusters come with the best guarantee? Labels of scikit-learn's methods and of gingham through certify_labels.

MovieLens-100K, random 80/20 splits. scikit-learn's methods want a full matrix: missing ratings are filled with the
movie's mean (k-means) or left zero (spectral co-clustering wants counts). Each method may choose its number of
clusters by the certificate, which costs nothing (it holds for all partitions at once).
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralCoclustering

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from gingham import CoClusteringRegressor, certify

FIGURES = {
    "certificate (gingham, soft)": "*/gingham, soft, certificate as objective/certificate",
    "(gingham, hard)": "*/gingham, hardened/certificate",
    "(k-means)": "*/k-means on rows and columns/certificate",
    "(spectral)": "*/spectral co-clustering/certificate",
    "(one cluster)": "*/one cluster/certificate",
}
STARS = (1, 2, 3, 4, 5)
SIZES = (2, 3, 4, 6)


def filled(rows: np.ndarray, columns: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """The ratings with missing ones at the movie's shrunken mean, rows centred."""
    mean = y.mean()
    counts = np.bincount(columns, minlength=shape[1])
    means = (np.bincount(columns, y, minlength=shape[1]) + 5 * mean) / (counts + 5)
    matrix = np.tile(means, (shape[0], 1))
    matrix[rows, columns] = y
    return matrix


def methods(X: np.ndarray, y: np.ndarray, shape: tuple[int, int], seed: int) -> dict[str, list[list[np.ndarray]]]:
    """Candidate labels (rows, columns) of each method."""
    dense = filled(X[:, 0], X[:, 1], y.astype(float), shape)
    raw = np.zeros(shape)
    raw[X[:, 0], X[:, 1]] = y
    raw += 1e-3  # rows or columns without a rating would have no direction
    by_rows = {k: KMeans(k, n_init=3, random_state=seed).fit(dense).labels_ for k in SIZES}
    by_columns = {k: KMeans(k, n_init=3, random_state=seed).fit(dense.T).labels_ for k in SIZES}
    rng = np.random.default_rng(seed)
    found = {
        "one cluster": [[np.zeros(shape[0], int), np.zeros(shape[1], int)]],
        "random": [[rng.integers(0, 2, shape[0]), rng.integers(0, 2, shape[1])]],
        "k-means on rows and columns": [[by_rows[a], by_columns[b]] for a, b in product(SIZES, SIZES)],
        "spectral co-clustering": [],
        "gingham, hardened": [],
    }
    for k in SIZES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spectral = SpectralCoclustering(k, random_state=seed).fit(raw)
        found["spectral co-clustering"].append([spectral.row_labels_, spectral.column_labels_])
    return found


def main() -> None:
    args = common.arguments(__doc__.splitlines()[0], name="certificate_labels")
    data = common.load(args.data, "ml100k.npz")
    X, y = np.column_stack([data["rows"], data["cols"]]).astype(int), data["vals"].astype(int)
    shape = tuple(int(n) for n in data["shape"])
    results: dict[str, object] = {}
    for seed in (1,) if args.quick else (1, 2, 3):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
        table: dict[str, object] = {}
        candidates = methods(X[train], y[train], shape, seed)
        settings = {"alphabet": STARS, "start": "means", "random_state": 0}
        for size in ((4, 3), (6, 4), (6, 6)):
            model = CoClusteringRegressor(size, beta=0.3, **settings).fit(X[train], y[train])
            labels = [np.zeros(n, int) for n in shape]
            for whole, mode, mine in zip(labels, model.posterior_.structure.modes, model.labels_):
                whole[mode.items] = mine  # items never rated stay in cluster 0
            candidates["gingham, hardened"].append(labels)
        for name, options in candidates.items():
            certificates = [certify(labels, X[train], y[train], alphabet=STARS) for labels in options]
            best = min(certificates, key=lambda c: c.value)
            loss = best.posterior.predict(X[test].T, "median")
            table[name] = {
                "certificate": best.value,
                "observed": best.empirical,
                "gain over every constant": certify(best.posterior, X[train], y[train], bound="gain").value,
                "n_clusters": list(best.posterior.n_clusters),
                "test": float(np.abs(loss - y[test]).mean()),
                "candidates": len(options),
            }
        model = CoClusteringRegressor("auto", objective="certificate", **settings).fit(X[train], y[train])
        soft = certify(model, X[train], y[train])
        table["gingham, soft, certificate as objective"] = {
            "certificate": soft.value,
            "observed": soft.empirical,
            "gain over every constant": certify(model, X[train], y[train], bound="gain").value,
            "n_clusters": list(model.n_clusters_),
        }
        results[f"seed {seed}"] = table
        for name, row in table.items():
            print(seed, f"{name:<42} {row['certificate']:.4f} observed {row['observed']:.4f}", flush=True)
        common.write(args, {"sizes": SIZES, "delta": 0.05}, results)


if __name__ == "__main__":
    main()
