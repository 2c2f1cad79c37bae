"""
Clusters in two views
=====================

Clusters that two views agree on, in a background that agrees on nothing, with a certificate.

Run: ``python examples/clusters_in_two_views.py``
"""

import matplotlib.pyplot as plt
import numpy as np

import gingham as gg


def sample(n_background: int, size: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Three paired Gaussian clusters and a uniform background, two views of two numbers each."""
    rng = np.random.default_rng(seed)
    centres = [[(6, 6), (-6, -6), (6, -6)], [(-7, 0), (7, 0), (0, 7)]]
    labels = np.repeat([-1, 0, 1, 2], [n_background, size, size, size])
    views = [
        np.vstack([rng.uniform(-5, 5, (n_background, 2)), *(rng.normal(c, 0.8, (size, 2)) for c in places)])
        for places in centres
    ]
    return views, labels


def main() -> None:
    """Fit on one sample, certify on another."""
    views, _ = sample(200, 40, seed=0)
    model = gg.PairwiseClusterAnalysis(3, kernel="rbf", kernel_params={"gamma": 0.125}, ridge=1.0, background=1.5).fit(
        views
    )
    fresh, labels = sample(400, 80, seed=1)
    print("correlations, training sample:", np.round(model.correlations_, 2))
    print("correlations, fresh sample:   ", np.round(model.correlations(fresh), 2))

    # If we observe x, what can be said about y? Objects marked by the first view alone, and what they are.
    marked = model.scores(0, fresh[0]) >= 1.5 * model.spread_
    for cluster in range(3):
        kinds, counts = np.unique(labels[marked[:, cluster]], return_counts=True)
        print(f"component {cluster} marks", dict(zip(kinds.tolist(), counts.tolist())), "(−1: background)")

    axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")[1]
    strongest = np.where(marked.any(axis=1), marked.argmax(axis=1), -1)
    for view, ax in zip(fresh, axes):
        ax.scatter(*view[strongest < 0].T, s=8, color="0.8", label="not marked")
        for cluster in range(3):
            ax.scatter(*view[strongest == cluster].T, s=12, label=f"component {cluster}")
    axes[0].set_title("first view, which marks")
    axes[1].set_title("the same objects in the second view")
    axes[1].legend(loc="lower left")

    # The clusters were fixed on the first sample, so the second may certify them.
    memberships = model.memberships(fresh, threshold=1.5)
    weights = gg.ExplanatoryClustering(penalty=0.2, min_coverage=0.02).fit(memberships)
    print("\nweights of the clusters:", np.round(weights.weights_, 2))
    print(weights.certify(delta=0.05).explain())
    print(f"By P3's Theorem 1 the risk is at most {weights.certify(bound='theorem-1').risk.value:.3f}.")


if __name__ == "__main__":
    main()
