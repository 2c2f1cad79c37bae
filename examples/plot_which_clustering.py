"""
Which clustering is right?
==========================

A bag of blocks can be sorted by shape or by colour. Neither is right as such: it depends on what comes next. If the
blocks are to be packed into boxes, shape matters and colour does not. Once the task is said, clusterings can be
compared by what they promise for it: here, by the certified error of predicting whether a block fits into a box.
"""

import matplotlib.pyplot as plt
import numpy as np

import gingham as gg

rng = np.random.default_rng(0)
n_blocks, n_boxes, n_trials = 200, 30, 6000
shape, colour = rng.integers(0, 3, n_blocks), rng.integers(0, 3, n_blocks)
opening = rng.integers(0, 3, n_boxes)

blocks, boxes = rng.integers(0, n_blocks, n_trials), rng.integers(0, n_boxes, n_trials)
fits = (shape[blocks] == opening[boxes]).astype(int)
fits = np.where(rng.random(n_trials) < 0.05, 1 - fits, fits)  # one trial in twenty goes wrong
X = np.column_stack([blocks, boxes])

# %%
# The same boxes, three ways to sort the blocks. ``certify`` takes clusters from anywhere.

choices = {"by shape": shape, "by colour": colour, "all alike": np.zeros(n_blocks, dtype=int)}
errors = {}
for name, clusters in choices.items():
    certificate = gg.certify([clusters, opening], X, fits, loss="zero-one", alphabet=(0, 1))
    errors[name] = certificate.empirical, certificate.value
    print(f"{name:10s}  observed error {certificate.empirical:.3f}, certified {certificate.value:.3f}")

# %%
# And the clustering that gingham finds for the task, without being told shapes or colours:

model = gg.CoClusteringClassifier(n_clusters=(4, 4), alphabet=(0, 1), beta=4.0, random_state=0).fit(X, fits)
certificate = gg.certify(model, X, fits)
errors["found"] = certificate.empirical, certificate.value
print(f"found       observed error {certificate.empirical:.3f}, certified {certificate.value:.3f}")

# %%
# Only a clustering that suits the task promises anything.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
places = np.arange(len(errors))
ax.barh(places - 0.2, [seen for seen, _ in errors.values()], height=0.4, color="#6f9fc2", label="observed error")
ax.barh(
    places + 0.2, [promised for _, promised in errors.values()], height=0.4, color="#a33224", label="certified error"
)
ax.set_yticks(places, list(errors))
ax.invert_yaxis()
ax.legend()
