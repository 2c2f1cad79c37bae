"""New items folded in, new observations added."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.models.layers import Sampler


@pytest.fixture(scope="module")
def table():
    """A 3×3 checkerboard of stars; users u ≥ 50 and films from 40 on come later."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(60, size=3000), rng.integers(45, size=3000)])
    stars = np.array([[5, 3, 1], [1, 5, 3], [3, 1, 5]])
    y = np.clip(stars[X[:, 0] % 3, X[:, 1] % 3] + rng.choice([-1, 0, 0, 0, 1], 3000), 1, 5).astype(float)
    return X, y


def new_users(X):
    later = X[:, 0] >= 50
    given = later & (np.arange(len(X)) % 2 == 0)
    return ~later & (X[:, 1] < 40), given & (X[:, 1] < 40), later & ~given & (X[:, 1] < 40)


@pytest.mark.parametrize(
    "model",
    [
        gg.CoClusteringRegressor(3, beta=1.0, alphabet=range(1, 6), random_state=0),
        gg.CoClusteringRegressor(3, loss="quadratic", beta=1.0, alphabet=range(1, 6), random_state=0),
        gg.LayeredCoClusteringRegressor(2, 4, sampler=Sampler(1, 40), random_state=0),
        gg.Committee(gg.CoClusteringRegressor(3, beta=1.0, alphabet=range(1, 6)), 3, random_state=0),
    ],
)
def test_folded_users_are_predicted_like_fitted_ones(model, table) -> None:
    X, y = table
    old, given, test = new_users(X)
    folded = model.fit(X[old], y[old])
    before = folded.predict(X[old])
    with pytest.warns(gg.UnseenItemsWarning):
        blind = np.mean(np.abs(folded.predict(X[test]) - y[test]))
    folded.fold_in(X[given], y[given])
    np.testing.assert_allclose(folded.predict(X[old]), before, atol=1e-6)  # what was learned stays
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        error = np.mean(np.abs(folded.predict(X[test]) - y[test]))
    both = old | given
    refitted = np.mean(np.abs(model.fit(X[both], y[both]).predict(X[test]) - y[test]))
    assert error < 0.5 * blind
    assert error < refitted + 0.05


@pytest.mark.parametrize("layered", [False, True])
def test_users_and_films_new_at_once(table, layered) -> None:
    X, y = table
    old = (X[:, 0] < 50) & (X[:, 1] < 40)
    grid = gg.CoClusteringRegressor(3, beta=1.0, alphabet=range(1, 6), random_state=0)
    layers = gg.LayeredCoClusteringRegressor(2, 4, sampler=Sampler(1, 40), random_state=0)
    model = (layers if layered else grid).fit(X[old], y[old])
    given = ~old & (np.arange(len(X)) % 2 == 0)
    model.fold_in(X[given], y[given])
    test = ~old & ~given
    assert np.mean(np.abs(model.predict(X[test]) - y[test])) < 0.75
    assert [len(items) for items in model.items_] == [60, 45]


@pytest.mark.parametrize("layered", [False, True])
def test_a_growing_table_ends_near_one_fit(table, layered) -> None:
    X, y = table
    grid = gg.CoClusteringRegressor(3, beta=1.0, alphabet=range(1, 6), random_state=0)
    layers = gg.LayeredCoClusteringRegressor(2, 4, sampler=Sampler(2, 40), random_state=0)
    model = layers if layered else grid
    whole = clone(model).fit(X[:2700], y[:2700])
    parts = [np.flatnonzero(X[:900, 0] < 40), *np.array_split(np.arange(900, 2700), 2)]  # users come later
    for part in parts:
        model.partial_fit(X[part], y[part])
    error = [np.mean(np.abs(m.predict(X[2700:]) - y[2700:])) for m in (model, whole)]
    assert error[0] == pytest.approx(error[1], abs=0.05)
    assert error[0] < 0.5 * np.mean(np.abs(y[2700:] - np.median(y[:2700])))
    if layered:
        assert model.draws_.n_draws == whole.draws_.n_draws
        assert model.noise_ == pytest.approx(whole.noise_, rel=0.2)  # not that of the first, small part
    else:
        sample = whole.sample(X[:2700], y[:2700])
        assert model.posterior_.gibbs_loss(sample) == pytest.approx(whole.posterior_.gibbs_loss(sample), abs=0.05)


def test_layers_that_go_on_learn_from_old_users_too(table) -> None:
    """Folding in leaves old users as they were; going on lets them profit from what comes later."""
    X, y = table
    first, later = np.arange(200), np.arange(200, 2700)
    known = 2700 + np.flatnonzero(np.isin(X[2700:, 0], X[first, 0]))
    settings = {"sampler": Sampler(1, 40), "random_state": 0}
    model = gg.LayeredCoClusteringRegressor(2, 4, **settings, side={1: (np.arange(45), np.eye(3)[np.arange(45) % 3])})
    before = model.partial_fit(X[first], y[first]).predict(X[known])
    after = model.partial_fit(X[later], y[later]).predict(X[known])
    assert np.mean(np.abs(after - y[known])) < 0.9 * np.mean(np.abs(before - y[known]))
    # After fit the observations are not at hand: new items are folded in, old ones stay as they were.
    only = model.fit(X[first], y[first]).partial_fit(X[later], y[later]).predict(X[known])
    np.testing.assert_allclose(only, before, atol=1e-6)


def test_names_that_come_later_and_strings(table) -> None:
    model = gg.CoClusteringClassifier(2, beta=3.0, random_state=0)
    X = [("ann", "jaws"), ("ann", "heat"), ("bob", "jaws"), ("bob", "heat")]
    model.partial_fit(X, ["like", "like", "hate", "hate"], classes=["hate", "like", "so-so"])
    model.partial_fit([("abe", "jaws"), ("zoe", "heat")], ["hate", "like"])
    assert model.items_[0].tolist() == ["abe", "ann", "bob", "zoe"]
    assert model.predict([("abe", "heat"), ("zoe", "jaws")]).tolist() == ["hate", "like"]
