"""Committee: averaging, cross-fitting, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gingham as gg
from gingham.models.layers import Sampler


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


@pytest.fixture(scope="module")
def stars():
    """A 4×4 checkerboard of stars with a third of the labels moved by one."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(60, size=1800), rng.integers(50, size=1800)])
    table = np.array([[1, 4, 2, 5], [5, 2, 4, 1], [2, 5, 1, 3], [4, 1, 5, 2]])
    y = table[X[:, 0] % 4, X[:, 1] % 4] + rng.choice([-1, 0, 0, 0, 1], 1800)
    return X, np.clip(y, 1, 5)


MEMBER = {
    "n_clusters": (6, 6),
    "beta": 1.0,
    "alphabet": range(1, 6),
    "start": "random",
    "max_iter": 25,
    "offsets": False,
}


def test_the_average_is_better_than_its_members(stars) -> None:
    X, y = stars
    train, test = slice(0, 1300), slice(1300, None)
    model = gg.Committee(gg.CoClusteringRegressor(**MEMBER), 8, random_state=0).fit(X[train], y[train])
    errors = [np.mean(np.abs(m.predict(X[test], rule="median") - y[test])) for m in model.members_]
    committee = np.mean(np.abs(model.predict(X[test], rule="median") - y[test]))
    assert len(set(errors)) > 1
    assert committee < np.mean(errors)
    distribution = model.predict_distribution(X[test])
    np.testing.assert_allclose(distribution.sum(axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(model.predict(X[test]), distribution @ np.arange(1, 6), atol=1e-5)
    assert set(model.predict(X[test], rule="mode")) <= {1, 2, 3, 4, 5}


def test_same_seed_same_committee_in_processes(stars) -> None:
    X, y = stars
    fits = [
        gg.Committee(gg.CoClusteringRegressor(**MEMBER), 2, n_jobs=n, random_state=1).fit(X, y).predict(X[:40])
        for n in (1, 2)
    ]
    np.testing.assert_array_equal(*fits)


def test_cross_members_do_not_see_their_fold(stars) -> None:
    X, y = stars
    model = gg.Committee(gg.CoClusteringRegressor(**MEMBER), 3, cross=True, random_state=0).fit(X, y)
    assert np.bincount(model.folds_).tolist() == [600, 600, 600]
    for fold, member in enumerate(model.members_):
        mine = model.folds_ == fold
        np.testing.assert_allclose(member.predict(X[mine]), model.fold_predictions_[mine], atol=1e-5)
        again = gg.CoClusteringRegressor(**MEMBER, random_state=member.random_state).fit(X[~mine], y[~mine])
        np.testing.assert_allclose(again.predict(X[mine]), model.fold_predictions_[mine], atol=1e-5)


def test_layered_members_average_means_and_cuts(stars) -> None:
    X, y = stars
    layered = gg.LayeredCoClusteringRegressor(2, 4, alphabet=range(1, 6), sampler=Sampler(n_chains=1, n_sweeps=30))
    model = gg.Committee(layered, 2, cross=True, random_state=0).fit(X, y)
    mean = np.mean([m.predict(X) for m in model.members_], axis=0)
    np.testing.assert_allclose(model.predict(X), mean)
    assert set(model.predict(X, rule="label")) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    distribution = np.mean([m.predict_distribution(X) for m in model.members_], axis=0)
    np.testing.assert_allclose(model.predict_distribution(X), distribution)
    assert set(model.predict(X, rule="median")) <= {1.0, 2.0, 3.0, 4.0, 5.0}


def test_bad_requests_are_refused_with_a_sentence(stars) -> None:
    X, y = stars
    with pytest.raises(gg.GinghamError, match="n_members"):
        gg.Committee(n_members=0).fit(X, y)
    with pytest.raises(gg.GinghamError, match="folds"):
        gg.Committee(n_members=5, cross=True).fit(X[:3], y[:3])
    grid = gg.CoClusteringRegressor(**{**MEMBER, "max_iter": 2})
    with pytest.raises(gg.GinghamError, match="rule"):
        gg.Committee(grid, 1).fit(X, y).predict(X, rule="best")
    with pytest.raises(gg.GinghamError, match="cut points"):
        gg.Committee(grid, 1).fit(X, y).predict(X, rule="label")


def test_a_committee_of_trees():
    X = [(u, i) for u in range(8) for i in range(8)]
    y = [5 if (u < 4) == (i < 4) else 1 for u, i in X]
    model = gg.Committee(gg.TreeCoClustering(leaves=2, random_state=0), n_members=2, random_state=0).fit(X, y)
    assert len(model.members_) == 2
    np.testing.assert_array_equal(model.predict(X, rule="median"), y)
