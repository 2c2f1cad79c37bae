"""Planted data are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.datasets import planted_counts, planted_grid
from gingham.errors import GinghamError


def test_planted_risk_is_the_risk_of_the_planted_checkerboard():
    data = planted_grid(n_observations=60_000, noise=0.3, seed=1)
    cells = tuple(label[data.X[:, j]] for j, label in enumerate(data.labels))
    assert np.mean(data.answers[cells] != data.y) == pytest.approx(data.risk, abs=0.01)


def test_planted_clusters_are_found():
    data = planted_grid((60, 50), (3, 3), 6000, n_labels=4, noise=0.1, seed=2)
    model = gg.CoClusteringClassifier(3, beta=3.0, alphabet=range(4), n_init=4, random_state=0).fit(data.X, data.y)
    for found, planted in zip(model.labels_, data.labels):
        assert adjusted_rand_score(found, planted) > 0.95


def test_three_modes():
    data = planted_grid((9, 8, 7), (3, 2, 2), 500)
    assert data.X.shape == (500, 3)
    assert data.answers.shape == (3, 2, 2)


def test_planted_information_is_that_of_the_density():
    data = planted_counts(seed=3)
    assert data.counts.sum() == 20_000
    p = data.density
    outer = p.sum(1)[:, None] * p.sum(0)[None, :]
    assert (p * np.log(p / outer)).sum() == pytest.approx(data.information)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_items": (5, 5), "n_clusters": (2,)},
        {"n_items": (5,), "n_clusters": (6,)},
        {"noise": 0.95},
        {"n_labels": 1},
        {"n_items": (), "n_clusters": ()},
    ],
)
def test_impossible_wishes_are_refused(wrong):
    with pytest.raises(GinghamError):
        planted_grid(**wrong)
