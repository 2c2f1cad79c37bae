"""LayeredCoClusteringRegressor: predictions, intervals, labels, side information, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import gingham as gg

SMALL = {"n_layers": 2, "n_chains": 2, "n_sweeps": 12, "burn_in": 6, "n_pilots": 1}


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


@parametrize_with_checks(
    [
        gg.LayeredCoClusteringRegressor(**SMALL),
        gg.LayeredCoClusteringRegressor(**{**SMALL, "solver": "projection", "n_sweeps": 3, "n_pilots": 0}),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


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
    model = gg.LayeredCoClusteringRegressor(3, 4, n_chains=2, n_sweeps=40, n_pilots=1, random_state=0)
    return model.fit(X[:2000], y[:2000]), X, y


def test_means_and_labels_are_near_the_truth(fitted) -> None:
    model, X, y = fitted
    mean, label = model.predict(X[2000:]), model.predict(X[2000:], rule="label")
    assert np.sqrt(np.mean((mean - y[2000:]) ** 2)) < 0.8  # noise and rounding alone: 0.65
    assert set(np.unique(label)) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert np.mean(np.abs(label - y[2000:])) < np.mean(np.abs(mean - y[2000:]))
    assert mean.min() >= 1
    assert mean.max() <= 5
    assert 0.3 < model.noise_ < 0.9


def test_intervals_cover_at_their_level() -> None:
    X, y = ratings()
    y = y + np.random.default_rng(1).uniform(-0.5, 0.5, len(y))
    model = gg.LayeredCoClusteringRegressor(3, 4, n_chains=1, n_sweeps=40, n_pilots=1, random_state=0)
    model.fit(X[:2000], y[:2000])
    for level in (0.5, 0.9):
        low, high = model.predict_interval(X[2000:], level).T
        assert np.mean((low <= y[2000:]) & (y[2000:] <= high)) == pytest.approx(level, abs=0.1)
    with pytest.raises(gg.GinghamError, match="level"):
        model.predict_interval(X, 1.0)


@pytest.mark.parametrize("solver", ["sampled", "projection"])
def test_same_seed_same_result_whatever_the_threads_and_the_row_order(solver) -> None:
    X, y = ratings()
    settings = {**SMALL, "solver": solver, "random_state": 3}
    one = gg.LayeredCoClusteringRegressor(**settings, n_jobs=1).fit(X, y).predict(X[:50])
    two = gg.LayeredCoClusteringRegressor(**settings, n_jobs=2).fit(X[::-1], y[::-1]).predict(X[:50])
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("solver", ["sampled", "projection"])
def test_a_file_keeps_every_prediction(solver, tmp_path) -> None:
    X, y = ratings()
    model = gg.LayeredCoClusteringRegressor(**SMALL, solver=solver, random_state=0).fit(X, y)
    model.save(tmp_path / "m.gingham")
    back = gg.load(tmp_path / "m.gingham")
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    np.testing.assert_array_equal(back.predict(X, rule="label"), model.predict(X, rule="label"))
    np.testing.assert_array_equal(back.predict_interval(X), model.predict_interval(X))


def test_layers_are_readable(fitted) -> None:
    model, _, _ = fitted
    layer = model.layers_[0]
    assert layer.strength >= model.layers_[-1].strength
    assert layer.cells.shape == (4, 4)
    assert sum(len(layer.items(0, c)) for c in range(4)) == 70
    assert str(layer).count("\n") == 5
    assert [len(b) for b in model.offsets_] == [70, 60]


def test_soft_members_trace_falls_after_the_schedule() -> None:
    X, y = ratings()
    model = gg.LayeredCoClusteringRegressor(3, 3, solver="projection", n_chains=1, n_pilots=0, random_state=0)
    trace = model.fit(X, y).traces_[0]
    assert np.all(np.diff(trace[10:]) <= 1e-9 * trace[11:])


def test_side_information_places_new_films() -> None:
    X, y = ratings()
    old = X[:, 1].astype(int) < 50
    genres = np.eye(3)[np.arange(60) % 3]
    plain = gg.LayeredCoClusteringRegressor(2, 3, n_sweeps=40, n_chains=1, n_pilots=1, random_state=0)
    informed = gg.LayeredCoClusteringRegressor(
        2, 3, n_sweeps=40, n_chains=1, n_pilots=1, random_state=0, side={1: (np.arange(60), genres)}, side_weight=1.0
    )
    error = [np.mean((m.fit(X[old], y[old]).predict(X[~old]) - y[~old]) ** 2) for m in (plain, informed)]
    assert error[1] < 0.6 * error[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "magic"}, "solver"),
        ({"n_sweeps": 10, "burn_in": 10}, "burn_in"),
        ({"noise": -1.0}, "noise"),
        ({"n_layers": -1}, "n_layers"),
        ({"n_layers": "many"}, "n_layers"),
        ({"n_clusters": 300}, "254"),
        ({"n_clusters": "many"}, "n_clusters"),
        ({"side_weight": -1.0}, "side_weight"),
        ({"side": {"film": ([1], [[1]])}}, "film"),
        ({"side": {1: ([1, 1], [[1], [0]])}}, "distinct"),
        ({"side": {1: ([1, 2], [[7], [0]])}}, "yes or no"),
        ({"side": {1: (["a", "b"], [[1], [0]])}}, "another type"),
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


def test_size_is_chosen_from_the_training_data_alone() -> None:
    """One layer of 3 × 3 is the truth: the search leaves the middle of the ladder and says what it tried."""
    X, y = ratings()
    settings = {"n_chains": 1, "n_sweeps": 30, "n_pilots": 1, "baskets": None, "random_state": 0}
    model = gg.LayeredCoClusteringRegressor(**settings).fit(X, y)
    choice = model.selection_
    tried = {row[:2]: row[3] for row in choice.tried}
    assert {(n, (8, 8)) for n in (6, 10, 15)} <= set(tried)
    assert tried[choice.n_layers, choice.n_clusters] == min(tried.values())
    assert choice.n_layers < 10
    assert len(model.layers_) == choice.n_layers
    again = gg.LayeredCoClusteringRegressor(**settings, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(again.predict(X[:50]), model.predict(X[:50]))
    few = gg.LayeredCoClusteringRegressor(**settings).fit(X[:900], y[:900])
    assert (few.selection_.n_layers, few.selection_.n_clusters, few.selection_.tried) == (10, (8, 8), ())


@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_labels_on_any_scale(scale):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 20, (600, 2))
    y = X.sum(axis=1) + rng.normal(0, 0.5, len(X))
    model = gg.LayeredCoClusteringRegressor(1, (2, 2), n_chains=1, random_state=0)
    predicted = model.fit(X, y * scale).predict(X) / scale
    assert np.isfinite(predicted).all()
    assert np.abs(predicted - y).mean() < 1
