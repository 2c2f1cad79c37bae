"""LayeredCoClusteringRegressor without basket layers, its parameters, and scikit-learn's contract."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.models.layers import Sampler

SMALL = {"n_layers": 2, "sampler": Sampler(2, 12, 6)}


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


def ratings(seed=0, n=(70, 60)):
    """Stars 1 to 5 from a 3×3 taste, names for users, numbers for films."""
    rng = np.random.default_rng(seed)
    users, films = rng.integers(n[0], size=2500), rng.integers(n[1], size=2500)
    taste, kind = np.arange(n[0]) % 3, np.arange(n[1]) % 3
    table = np.array([[5, 3, 1], [1, 5, 3], [3, 1, 5]])
    y = np.clip(np.rint(table[taste[users], kind[films]] + rng.normal(0, 0.7, 2500)), 1, 5)
    X = np.empty((2500, 2), dtype=object)
    X[:, 0], X[:, 1] = [f"user {u}" for u in users], films
    return X, y


@pytest.fixture(scope="module")
def fitted():
    X, y = ratings()
    model = gg.LayeredCoClusteringRegressor(3, 4, baskets=0, sampler=Sampler(2, 40), random_state=0)
    return model.fit(X[:2000], y[:2000]), X, y


def test_item_layers_alone_predict_near_the_truth(fitted) -> None:
    model, X, y = fitted
    mean, label = model.predict(X[2000:]), model.predict(X[2000:], rule="label")
    assert {layer.kind for layer in model.layers_} == {"item"}
    assert np.sqrt(np.mean((mean - y[2000:]) ** 2)) < 0.8  # noise and rounding alone: 0.65
    assert set(np.unique(label)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert np.mean(np.abs(label - y[2000:])) < np.mean(np.abs(mean - y[2000:]))
    assert mean.min() >= 1
    assert mean.max() <= 5
    assert 0.3 < model.noise_ < 0.9


def test_more_item_layers_stand_in_for_basket_layers() -> None:
    X, y = ratings()
    model = gg.LayeredCoClusteringRegressor(baskets=0, sampler=Sampler(1, 4), random_state=0).fit(X, y)
    assert str(model.selection_).startswith("7 item layers, 1 chains of 4 sweeps")  # 4 and the 3 of 2,500 rows
    one_mode = gg.LayeredCoClusteringRegressor(sampler=Sampler(1, 4), random_state=0).fit(X[:, :1], y)
    assert str(one_mode.selection_).startswith("offsets only")


def test_same_seed_same_result_whatever_the_threads_and_the_row_order() -> None:
    X, y = ratings()
    settings = {**SMALL, "random_state": 3}
    one = gg.LayeredCoClusteringRegressor(**settings, n_jobs=1).fit(X, y).predict(X[:50])
    two = gg.LayeredCoClusteringRegressor(**settings, n_jobs=2).fit(X[::-1], y[::-1]).predict(X[:50])
    np.testing.assert_array_equal(one, two)


def test_layers_are_readable(fitted) -> None:
    model, _, _ = fitted
    layer = model.layers_[0]
    assert layer.strength >= model.layers_[-1].strength
    assert layer.cells.shape == (4, 4)
    assert [mode.name for mode in layer.modes] == [mode.name for mode in model.modes_]
    assert sum(len(layer.items(0, c)) for c in range(4)) == 70
    assert str(layer).count("\n") == 5
    assert [len(b) for b in model.draws_.mean_offsets()] == [70, 60]


def test_an_effect_of_three_items_needs_a_checkerboard_of_all_modes() -> None:
    """Layers are between two modes: where a label depends on the parity of three, they predict the mean."""
    rng = np.random.default_rng(0)
    X = rng.integers(12, size=(3000, 3))
    y = (X.sum(axis=1) % 2 + rng.normal(0, 0.1, 3000)).round(3)
    train, test = slice(0, 2400), slice(2400, None)
    layers = gg.LayeredCoClusteringRegressor(2, 2, baskets=0, sampler=Sampler(1, 20), random_state=0)
    grid = gg.CoClusteringRegressor(2, loss="quadratic", offsets=False, n_init=10, random_state=0)
    error = [np.std(m.fit(X[train], y[train]).predict(X[test]) - y[test]) for m in (layers, grid)]
    assert error[0] > 0.45
    assert error[1] < 0.2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_clusters": 300}, "254"),
        ({"side": {"film": ([1], [[1]])}}, "film"),
        ({"side": {1: ([1, 1], [[1], [0]])}}, "distinct"),
        ({"side": {1: ([1, 2], [[7], [0]])}}, "from 0 to 1"),
        ({"side": {1: (["a", "b"], [[1], [0]])}}, "another type"),
        ({"side": {1: ([1, 2], [[1], [0]]), "column": ([1, 2], [[1], [0]])}}, "two tables"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(settings, message) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(400, size=900), rng.integers(400, size=900)])
    with pytest.raises(gg.GinghamError, match=message):
        gg.LayeredCoClusteringRegressor(**settings).fit(X, rng.integers(5, size=900))


def test_labels_need_a_finite_set(fitted) -> None:
    model, X, _ = fitted
    with pytest.raises(gg.GinghamError, match="rule"):
        model.predict(X, rule="median")
    continuous = gg.LayeredCoClusteringRegressor(**SMALL).fit(X, np.random.default_rng(0).normal(size=len(X)))
    with pytest.raises(gg.GinghamError, match="alphabet"):
        continuous.predict(X, rule="label")


def test_settings_of_the_sampler_are_cloned_and_saved(fitted, tmp_path) -> None:
    model, X, _ = fitted
    assert clone(model).sampler == model.sampler == Sampler(2, 40)
    model.save(tmp_path / "m.gingham")
    back = gg.load(tmp_path / "m.gingham")
    assert back.sampler == model.sampler
    assert str(back.selection_) == str(model.selection_)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))


def test_the_surface_is_small() -> None:
    assert len(inspect.signature(gg.LayeredCoClusteringRegressor).parameters) <= 12


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_labels_on_any_scale(scale):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (600, 2))
    y = X.sum(axis=1) + rng.normal(0, 0.5, len(X))
    model = gg.LayeredCoClusteringRegressor(1, (2, 2), sampler=Sampler(1), random_state=0)
    predicted = model.fit(X, y * scale).predict(X) / scale
    assert np.isfinite(predicted).all()
    assert np.abs(predicted - y).mean() < 1
