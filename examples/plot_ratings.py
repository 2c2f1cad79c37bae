"""
A checkerboard of ratings
=========================

Two kinds of viewers, three kinds of movies, ratings with noise, most of them missing: the reordered matrix shows the
blocks, the cells answer, and the certificate says how far to trust them.
"""

import matplotlib.pyplot as plt
import numpy as np

import gingham as gg
from gingham.plots import checkerboard

rng = np.random.default_rng(0)
n_viewers, n_movies, n_ratings = 120, 90, 4000
viewers, movies = rng.integers(0, n_viewers, n_ratings), rng.integers(0, n_movies, n_ratings)
taste = np.array([[5, 2, 4], [1, 4, 3]])
y = np.clip(taste[viewers % 2, movies % 3] + rng.integers(-1, 2, n_ratings), 1, 5)
X = np.column_stack([viewers, movies])

model = gg.CoClusteringRegressor((4, 5), "absolute", beta=1.0, alphabet=range(1, 6), offsets=False, random_state=0)
model.fit(X, y)

# %%
# Before and after.

sample = model.sample(X, y)
figure, (before, after) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
checkerboard(model.posterior_, sample, reorder=False, ax=before).set_title("as it came")
checkerboard(model.posterior_, sample, ax=after).set_title("by clusters")

# %%
# What it is worth.

print(gg.certify(model, X, y, delta=0.05).explain())
