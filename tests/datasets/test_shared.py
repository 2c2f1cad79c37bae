"""Planted relations and views are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.datasets import planted_relations, planted_views
from gingham.errors import GinghamError


def test_relations_have_the_planted_risk():
    data = planted_relations(n_tuples=20_000, noise=0.2)
    for (first, second), (X, y) in data.relations.items():
        a, b = data.labels[first][X[:, 0]], data.labels[second][X[:, 1]]
        wrong = np.mean((a + b) % 3 != y)
        assert wrong == pytest.approx(data.risk, abs=0.02)


def test_shared_clusters_are_found():
    data = planted_relations({"viewer": 40, "movie": 30, "genre": 9}, n_tuples=3000)
    sizes = {"viewer": 3, "movie": 3, "genre": 3}
    model = gg.JointCoClustering(sizes, loss="zero-one", beta=3.0, n_init=4, random_state=0).fit(data.relations)
    assert adjusted_rand_score(data.labels["movie"], model.assign_["movie"].argmax(1)) > 0.8


def test_views_share_their_clusters():
    data = planted_views(spread=0.2)
    for view in data.views:
        found = KMeans(3, n_init=5, random_state=0).fit_predict(view)
        assert adjusted_rand_score(data.labels, found) > 0.9


def test_impossible_wishes_are_refused():
    with pytest.raises(GinghamError, match="'genre'"):
        planted_relations({"viewer": 5, "movie": 5}, {"viewer": 2, "movie": 2})
    with pytest.raises(GinghamError):
        planted_relations(noise=0.9)
    with pytest.raises(GinghamError):
        planted_views(sizes=(3,))
