"""
Good generalisation is not stability
====================================

Points on a ring have no preferred clusters: rotate the borders and nothing changes. Two fits on two samples cut the
ring in different places, so the clustering is unstable; yet both predict new distances equally well, and their
certificates agree. What generalises is the prediction, not the position of the borders.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

import gingham as gg

rng = np.random.default_rng(0)
n_points, n_pairs, n_levels = 150, 4000, 6
angle = rng.uniform(0, 2 * np.pi, n_points)
radius = 1 + 0.1 * rng.standard_normal(n_points)
points = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def pairs(seed):
    """Pairs of points and their distance, on a scale of six levels."""
    draw = np.random.default_rng(seed)
    X = draw.integers(0, n_points, (n_pairs, 2))
    distance = np.linalg.norm(points[X[:, 0]] - points[X[:, 1]], axis=1)
    return X, np.minimum((distance / 2.6 * n_levels).astype(int), n_levels - 1)


fits = []
for seed in (1, 2):
    X, y = pairs(seed)
    model = gg.CoClusteringRegressor(5, beta=1.0, alphabet=range(n_levels), offsets=False, random_state=seed).fit(X, y)
    fits.append((model, gg.certify(model, X, y).value))

# %%
# The borders differ, the guarantees do not.

X_new, y_new = pairs(3)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, (model, value) in zip(axes, fits):
    labels = model.labels_[0]
    loss = model.posterior_.gibbs_loss(model.sample(X_new, y_new))
    ax.scatter(*points[model.items_[0]].T, c=labels, cmap="tab10", s=14)
    ax.set_title(f"loss on new pairs {loss:.2f}, certified {value:.2f}")
    ax.set_aspect("equal")
    ax.set_axis_off()

first, second = (model.labels_[0] for model, _ in fits)
print(f"agreement of the two clusterings (1 is equal): {adjusted_rand_score(first, second):.2f}")
