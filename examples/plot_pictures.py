"""
Pictures of a fit
=================

Every picture takes a value and returns matplotlib Axes.
"""

import matplotlib.pyplot as plt

import gingham as gg
from gingham.datasets import planted_grid
from gingham.plots import checkerboard, coembedding, contingency, information_plane, waterfall

data = planted_grid((120, 80), (4, 3), 5000, noise=0.2, seed=1)
fits = {
    beta: gg.CoClusteringRegressor((6, 6), beta=beta, alphabet=range(5), random_state=0).fit(data.X, data.y)
    for beta in (0.1, 0.3, 1.0, 3.0)
}
model = fits[1.0]
sample = model.sample(data.X, data.y)

# %%
# The checkerboard, the map of both modes, the found clusters against the planted ones, and loss against information.

figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
checkerboard(model.posterior_, sample, ax=axes[0, 0])
coembedding(model.posterior_, ax=axes[0, 1])
contingency(data.labels[0], model.labels_[0], names=("planted", "found"), ax=axes[1, 0])
information_plane({beta: fit.posterior_ for beta, fit in fits.items()}, sample, ax=axes[1, 1])

# %%
# The certificate as a waterfall: from the loss that was observed to the loss that is guaranteed.

waterfall(gg.certify(model, data.X, data.y))
