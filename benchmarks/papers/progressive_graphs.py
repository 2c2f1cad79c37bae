"""Graphs with few pairs: progressive validation through the pairs beside the certificate in sample and the truth.

Planted graphs of 60 nodes in three clusters, all 1,770 pairs listed once, quadratic loss between 0 and 1. The truth is
the expected loss of a member drawn by its share, on fresh draws of all pairs.

    python benchmarks/papers/progressive_graphs.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from gingham import GraphClustering, certify, certify_progressive

FIGURES = {
    "progressive": "mean/progressive",
    "its truth": "mean/truth of the members",
    "in sample": "mean/in sample",
}
NODES, CLUSTERS = 60, 3


def fit(model: GraphClustering, pairs: np.ndarray, weights: np.ndarray, counts: object = None) -> GraphClustering:
    return model.fit(np.column_stack([pairs, weights]), pairs="listed", nodes=np.arange(NODES))


def one(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLUSTERS, NODES)
    blocks = np.full((CLUSTERS, CLUSTERS), 0.15) + 0.6 * np.eye(CLUSTERS)
    pairs = np.array([(i, j) for i in range(NODES) for j in range(i)])
    chance = blocks[labels[pairs[:, 0]], labels[pairs[:, 1]]]
    weights = (rng.random(len(pairs)) < chance).astype(float)

    def truth(predicted: np.ndarray) -> float:
        return float(np.mean(chance * (1 - predicted) ** 2 + (1 - chance) * predicted**2))

    model = GraphClustering(CLUSTERS, loss="quadratic", bounds=(0, 1), random_state=0)
    certificate = certify_progressive(model, pairs, weights, loss="quadratic", fit=fit, random_state=seed)
    members = [truth(member.predict(pairs)) for member in certificate.model.members_]
    whole = fit(model, pairs, weights)
    listed = whole.sample(np.column_stack([pairs, weights]), pairs="listed")
    return {
        "progressive": certificate.value,
        "truth of the members": float(certificate.model.shares_ @ members),
        "truth of their mean": truth(certificate.model.predict(pairs)),
        "in sample": certify(whole, listed).value,
        "truth of the whole": truth(whole.predict(pairs)),
    }


def main() -> None:
    args = common.arguments("Progressive validation on planted graphs.", "progressive_graphs")
    runs = [one(args.seed + i) for i in range(3 if args.quick else 20)]
    results = {
        "mean": {key: float(np.mean([run[key] for run in runs])) for key in runs[0]},
        "failures": sum(run["progressive"] < run["truth of the members"] for run in runs),
        "graphs": runs,
    }
    common.write(args, settings={"nodes": NODES, "clusters": CLUSTERS, "graphs": len(runs)}, results=results)
    print(results["mean"], "failures", results["failures"])


if __name__ == "__main__":
    main()
