"""β without being told: the unit of the labels, the seed and the order of the rows do not matter."""

from __future__ import annotations

import numpy as np
import pytest

import gingham as gg
from gingham.cells import Absolute, Logarithmic, Quadratic, ZeroOne
from gingham.data import Alphabet, Sample
from gingham.selection.auto import beta_of_item_means


def board(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(60, size=n), rng.integers(40, size=n)])
    y = np.array([[5, 1, 3], [2, 4, 1]])[X[:, 0] % 2, X[:, 1] % 3]
    return X, np.where(rng.random(n) < 0.2, rng.integers(1, 6, n), y)


def test_the_unit_of_the_labels_does_not_matter_where_sizes_are_given():
    # β = 1 for everything merged all clusters where labels lie between 0 and 1.
    X, y = board()
    settings = {"loss": "quadratic", "random_state": 0}
    stars = gg.CoClusteringRegressor((2, 3), **settings).fit(X, y)
    shares = gg.CoClusteringRegressor((2, 3), **settings).fit(X, y / 100)
    assert shares.beta_ == pytest.approx(stars.beta_ * 1e4)
    assert [list(q) for q in shares.labels_] == [list(q) for q in stars.labels_]
    assert max(shares.posterior_.information) > 0.5
    assert "item means" in str(shares.selection_)


def test_neither_the_seed_nor_the_order_nor_repetitions_matter():
    X, y = board()
    order = np.random.default_rng(1).permutation(len(y))
    cell = Quadratic()
    once = beta_of_item_means(Sample.of(X.T, y.astype(float)), cell)[0]
    assert beta_of_item_means(Sample.of(X[order].T, y[order].astype(float)), cell)[0] == pytest.approx(once, rel=1e-12)
    twice = beta_of_item_means(Sample.of(np.vstack([X, X]).T, np.r_[y, y].astype(float)), cell)[0]
    weighted = beta_of_item_means(Sample.of(X.T, y.astype(float), np.full(len(y), 2.0)), cell)[0]
    assert twice == pytest.approx(weighted, rel=1e-12)
    betas = {gg.CoClusteringRegressor((2, 3), random_state=seed, max_iter=2).fit(X, y).beta_ for seed in range(3)}
    assert len(betas) == 1


def test_noise_of_known_size():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(20, size=20000), rng.integers(20, size=20000)])
    gauss = X[:, 0] + rng.normal(0, 2.0, 20000)
    assert beta_of_item_means(Sample.of(X.T, gauss), Quadratic())[0] == pytest.approx(1 / (2 * 4), rel=0.1)
    label_values = Alphabet.of(np.arange(4), given=True)
    wrong = np.where(rng.random(20000) < 0.4, (X[:, 0] + 1) % 4, X[:, 0] % 4)  # two of five answers are wrong
    labelled = Sample.of(X.T, wrong, alphabet=label_values)
    assert beta_of_item_means(labelled, ZeroOne(label_values))[0] == pytest.approx(1 / 0.4, rel=0.1)
    assert beta_of_item_means(labelled, Logarithmic(label_values))[0] == 1.0
    assert np.isfinite(beta_of_item_means(labelled, Absolute(label_values))[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_tiny_data_have_a_beta(n):
    X, y = board(n)
    assert np.isfinite(gg.CoClusteringRegressor(2, random_state=0).fit(X, y).beta_)
    assert np.isfinite(gg.CoClusteringClassifier(2, random_state=0).fit(X, y.astype(str)).beta_)
