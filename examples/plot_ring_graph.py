"""
A graph whose clusters avoid themselves
=======================================

In this graph every cluster is joined with its two neighbours on a ring and hardly with itself. Methods that look for
dense communities see nothing here; blocks that predict edges do. The number of clusters is found by description
length, and the gain over "every pair alike" is certified.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.datasets import planted_graph

graph = planted_graph(600, 6, inside=80, outside=5, kind="ring", seed=0)
edges = graph.adjacency > 0  # booleans: there is an edge or there is none, and no other weight is possible
model = gg.GraphClustering(loss="quadratic", random_state=0).fit(edges)
print(model.n_clusters_, "clusters, adjusted Rand index", round(adjusted_rand_score(graph.labels, model.labels_), 3))

# %%
# What is guaranteed: the excess of the quadratic loss over the best constant on new pairs. Below zero, clusters help.

gain = gg.certify(model, model.sample(edges), bound="gain")
print("observed", round(gain.empirical, 4), "guaranteed", round(gain.value, 4))

# %%
# The adjacency matrix as it came, and with the nodes in order of their clusters along the ring.

ring = [0]
while len(ring) < model.n_clusters_:
    left = [c for c in range(model.n_clusters_) if c not in ring]
    ring.append(max(left, key=lambda c: model.answers_[ring[-1], c]))
order = np.argsort(np.argsort(ring)[model.labels_], kind="stable")
figure, axes = plt.subplots(1, 2, figsize=(8, 4))
for axis, matrix, title in zip(
    axes, (graph.adjacency, graph.adjacency[order][:, order]), ("as it came", "in order of clusters")
):
    axis.spy(matrix, markersize=0.3)
    axis.set_title(title)
    axis.set_xticks([])
    axis.set_yticks([])
figure.tight_layout()
