"""Weighted edges and weighted sets of nodes (P0 footnote 7, P1 footnote 3): what the weights add.

Planted sets of three nodes with a weight that depends on the clusters of the nodes: `GraphClustering` with the weights,
the same sets without them, and the pairs that the sets are made of with their mean weight, as any program for graphs
would take them. Pairs likewise. Measured is the adjusted Rand index with the planted clusters.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, write

FIGURES = {"sets with weights": "sets/with weights", "their pairs": "sets/as pairs", "without": "sets/without weights"}
NODES, CLUSTERS, SPREAD = 60, 3, 0.3


def drawn(size: int, n_sets: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sets of nodes, their weights, and the cluster of each node: weights depend on the clusters within a set."""
    rng = np.random.default_rng(seed)
    sets = np.unique(np.sort([rng.choice(NODES, size, replace=False) for _ in range(n_sets)], axis=1), axis=0)
    labels = np.arange(NODES) % CLUSTERS
    centre = rng.random((CLUSTERS,) * size)
    key = tuple(np.sort(labels[sets], axis=1).T)
    return sets, np.clip(centre[key] + SPREAD * rng.standard_normal(len(sets)), 0, 1), labels


def agreement(labels: np.ndarray, edges: list[Any], seed: int, **more: Any) -> float:
    settings = {"loss": "quadratic", "bounds": (0, 1)} if more.get("weight") is not None else {}
    model = gg.GraphClustering(CLUSTERS, n_init=3, random_state=seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(edges, nodes=range(NODES), **more)
    return float(adjusted_rand_score(labels, model.labels_))


def main() -> None:
    args = arguments(__doc__ or "", "graph_weighted_sets")
    rows: dict[str, dict[str, list[float]]] = {"sets": {}, "pairs": {}}
    for seed in range(args.seed, args.seed + (1 if args.quick else 10)):
        for name, size, n_sets in (("sets", 3, 1500), ("pairs", 2, 600)):
            sets, weights, labels = drawn(size, n_sets, seed)
            edges = [tuple(row) for row in sets.tolist()]
            found = {
                "with weights": agreement(labels, edges, seed, hyperedges=True, weight=weights, pairs="listed"),
                "without weights": agreement(labels, edges, seed, hyperedges=True),
            }
            if size > 2:
                i, j = np.triu_indices(size, 1)
                pairs, at = np.unique(sets[:, np.stack([i, j], axis=1)].reshape(-1, 2), axis=0, return_inverse=True)
                mean = np.bincount(at.ravel(), np.repeat(weights, len(i))) / np.bincount(at.ravel())
                ends = [tuple(row) for row in pairs.tolist()]
                found["as pairs"] = agreement(labels, ends, seed, weight=mean, pairs="listed")
            for way, value in found.items():
                rows[name].setdefault(way, []).append(value)
    results = {name: {way: float(np.mean(values)) for way, values in ways.items()} for name, ways in rows.items()}
    print(results)
    write(args, {"nodes": NODES, "clusters": CLUSTERS, "spread": SPREAD}, results)


if __name__ == "__main__":
    main()
