"""How much each draw counts for an item that was folded in."""

from __future__ import annotations

import numpy as np
import pytest

import gingham as gg
from gingham.models.layers import fold_in as folding
from gingham.models.layers.data import Grouped
from gingham.models.layers.model import Draws


def grouped(items) -> Grouped:
    order = np.argsort(items, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(items))])
    return Grouped(indptr, np.zeros((1, len(items)), np.int32), order.astype(np.int32))


@pytest.fixture
def drawn():
    """Residuals of 40 draws on 15 tuples of three items."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 15)) + rng.normal(size=15), rng.integers(3, size=15)


def test_importance_are_those_of_the_formula(drawn) -> None:
    residuals, items = drawn
    found = folding.importance_of(residuals, 0.0, grouped(items), None, 0.7)
    for x in range(3):
        mine = residuals[:, items == x]
        deviations = mine.mean(axis=0) - mine
        noise = 0.7 * (1 + folding.CAUTION / 40) * np.eye(mine.shape[1])
        covariance = np.cov(deviations.T, bias=True) + noise
        np.testing.assert_allclose(found[:, x], deviations @ np.linalg.solve(covariance, mine.mean(axis=0)), atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-4)


def test_weight_two_is_a_tuple_twice(drawn) -> None:
    residuals, items = drawn
    weights = np.where(np.arange(15) % 2, 1.0, 2.0)
    twice = np.repeat(np.arange(15), weights.astype(int))
    np.testing.assert_allclose(
        folding.importance_of(residuals, 0.0, grouped(items), weights, 0.7),
        folding.importance_of(residuals[:, twice], 0.0, grouped(items[twice]), None, 0.7),
        atol=1e-5,
    )


def test_gaussian_draws_give_the_posterior_mean() -> None:
    """Draws of θ ~ N(0, I), tuples y = Hθ + noise: the reweighted mean of θ is its mean given y."""
    rng = np.random.default_rng(0)
    draws, H = rng.normal(size=(40_000, 3)), rng.normal(size=(5, 3))
    y = H @ np.array([1.0, -1.0, 0.5])
    importance = folding.importance_of(y - draws @ H.T, 0.0, grouped(np.zeros(5, int)), None, 0.5)
    exact = np.linalg.solve(H.T @ H / 0.5 + np.eye(3), H.T @ y / 0.5)
    np.testing.assert_allclose((1 + importance[:, 0]) @ draws / len(draws), exact, atol=0.03)


def test_what_the_other_items_explain_is_not_explained_again(drawn) -> None:
    residuals, items = drawn
    first = folding.importance_of(residuals, 0.0, grouped(np.zeros(15, int)), None, 0.01)
    again = folding.importance_of(residuals, first, grouped(items), None, 0.01)
    alone = folding.importance_of(residuals, 0.0, grouped(items), None, 0.01)
    assert np.sum(again**2) < 0.5 * np.sum(alone**2)


@pytest.fixture(scope="module")
def grown():
    """Layers that were folded in two users, and then a third."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(30, size=1200), rng.integers(20, size=1200)])
    y = np.where((X[:, 0] + X[:, 1]) % 2, 4.0, 2.0) + rng.choice([-1, 0, 1], 1200)
    old = X[:, 0] < 27
    model = gg.LayeredCoClusteringRegressor(2, 3, n_chains=1, n_sweeps=30, n_pilots=0, baskets=None, random_state=0)
    model.fit(X[old], y[old])
    for later in ((X[:, 0] == 27) | (X[:, 0] == 28), X[:, 0] == 29):
        before = model.model_
        model.fold_in(X[later], y[later])
    return X, before, model


def test_only_new_items_reweight_the_draws(grown) -> None:
    _, before, model = grown
    importance = model.model_.importance
    np.testing.assert_array_equal(np.flatnonzero(importance.any(axis=0)), [27, 28, 29])
    np.testing.assert_array_equal(importance[:, 27:29], before.importance[:, 27:29])


def test_importance_stand_in_model_files(grown) -> None:
    X, _, model = grown
    again = Draws.from_file(model.model_.to_file())
    codes = X[:200].T
    np.testing.assert_array_equal(again.predict(codes).mean, model.model_.predict(codes).mean)
    fitted = gg.LayeredCoClusteringRegressor(1, 2, n_chains=1, n_sweeps=22, n_pilots=0, baskets=None).fit(X, X[:, 0])
    assert fitted.model_.to_file()["importance"].size == 0


def test_importance_of_another_shape_are_refused(grown) -> None:
    state = grown[2].model_.to_file()
    with pytest.raises(gg.GinghamError, match=r"importance of shape"):
        Draws.from_file({**state, "importance": state["importance"][:, :5]})


def test_blocks_hold_every_new_item_once() -> None:
    rng = np.random.default_rng(0)
    fresh, codes = rng.random(50) < 0.5, rng.integers(50, size=400)
    codes = codes[fresh[codes]]
    blocks = list(folding._blocks(fresh, codes, 60))
    assert len(blocks) > 2
    np.testing.assert_array_equal(np.sum(blocks, axis=0), fresh)
    assert max(np.isin(codes, np.flatnonzero(block)).sum() for block in blocks) < 100
    assert list(folding._blocks(np.zeros(5, bool), np.zeros(0, int), 60)) == []
