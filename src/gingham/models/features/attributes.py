"""A new attribute of clustered instances: its values from a few of them, and how many clusters serve new attributes.

An attribute may follow fine clusters or coarse ones. Its values are predicted by all prunings of the tree of merged
clusters at once, each weighted by how well it explains the values that are known (the context-tree average): a node
stays whole with prior probability ½, else its two children are asked. The values of a cluster have a Dirichlet prior of
weight 1 around those of all clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.errors import GinghamError
from gingham.fitting.merging import MergeTree
from gingham.models.features.entries import Entries, ValueTable

MOST_CLUSTERS = 50  # tried when their number is to be found
FOLDS = 3  # of features, each set aside once
WHOLE = np.log(0.5)  # prior probability that a node of the tree is one cluster


@dataclass(frozen=True, eq=False)
class AttributePrediction:
    """What a few instances tell about an attribute of all.

    Attributes
    ----------
    values : array of shape (n_instances,)
        The most probable value; for instances whose value was given, that value.
    probabilities : array of shape (n_instances, n_classes)
    classes : array of shape (n_classes,)
        The values that were given.
    """

    values: AnyArray
    probabilities: Floats
    classes: AnyArray


def averaged_over_prunings(tree: MergeTree, labels: Ints, values: Ints, n_values: int) -> Floats:
    """P(value) in every leaf of the tree given the (leaf, value) of some instances, shape (n_leaves, n_values).

    Each value is that of an instance at least.
    """
    entries = Entries(np.arange(len(labels)), np.zeros_like(labels), values, (len(labels), 1), n_values)
    table = ValueTable.of(entries, labels, tree.n_leaves).grown(tree)
    prior = (np.bincount(values, minlength=n_values) + 1.0 / n_values) / (len(values) + 1.0)
    alone = table.evidence(prior)
    total, whole = alone.copy(), np.ones(len(alone))
    nodes = [(tree.n_leaves + t, a, b) for t, (a, b) in enumerate(tree.merges.tolist())]
    for node, a, b in nodes:
        total[node] = np.logaddexp(WHOLE + alone[node], np.log1p(-np.exp(WHOLE)) + total[a] + total[b])
        whole[node] = np.exp(WHOLE + alone[node] - total[node])
    own = (table.counts + prior) / (table.counts.sum(axis=1, keepdims=True) + 1.0)
    above = np.zeros_like(own)  # averaged so far
    reach = np.ones(len(own))  # posterior probability that a node is split off
    for node, a, b in reversed(nodes):
        above[[a, b]] = above[node] + reach[node] * whole[node] * own[node]
        reach[[a, b]] = reach[node] * (1.0 - whole[node])
    return np.asarray((above + reach[:, None] * own)[: tree.n_leaves])


def number_of_clusters(
    entries: Entries, cluster: Callable[[Entries, int, np.random.Generator], Ints], rng: np.random.Generator
) -> int:
    """The number of clusters that describes features set aside in the fewest nats.

    What a cluster's values are is learned from them one by one, so that each cluster has its price. Instances are
    clustered finely on the other features, and the clusters merged along their tree.
    """
    n, d = entries.shape
    if d < 2:
        raise GinghamError("n_clusters='auto' holds out features and needs at least two: give a number.")
    most = max(1, min(MOST_CLUSTERS, n // 2))
    fold = rng.permutation(d) % min(FOLDS, d)
    nats = np.zeros(most)  # for 1, …, most clusters
    for held in range(min(FOLDS, d)):
        aside = fold[entries.columns] == held
        if aside.all() or not aside.any():
            continue
        learned = entries.only(~aside)
        labels = cluster(learned, most, rng)
        tree = ValueTable.of(learned, labels, most).tree()
        each = ValueTable.of(entries.only(aside), labels, most).grown(tree).evidence()
        gains = [each[most + t] - each[a] - each[b] for t, (a, b) in enumerate(tree.merges.tolist())]
        nats += (each[:most].sum() + np.cumsum([0.0, *gains]))[::-1]
    return int(np.argmax(nats)) + 1


def error_of_attribute(column: Entries, labels: Ints, tree: MergeTree, known: Ints) -> tuple[float, float]:
    """Share of wrong values where they are not known: by the clusters, and by the most frequent known value.

    ``known`` are positions of entries of a table with one feature.
    """
    classes, given = np.unique(column.values[known], return_inverse=True)
    chances = averaged_over_prunings(tree, labels[column.rows[known]], given, len(classes))
    asked = np.setdiff1d(np.arange(len(column.rows)), known)
    guesses = classes[chances.argmax(axis=1)][labels[column.rows[asked]]]
    frequent = classes[np.bincount(given).argmax()]
    truth = column.values[asked]
    return float(np.mean(guesses != truth)), float(np.mean(truth != frequent))
