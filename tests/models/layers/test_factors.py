"""The mean latent answer as an additive part and thin factors, against what rows are answered."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest

import gingham as gg
from gingham.models.layers import Sampler
from gingham.models.layers.draws import LayerDraws
from gingham.models.layers.factors import interaction_factors
from gingham.models.layers.problem import BASKET, ITEM, Basket, LayerPlan

SMALL = {"n_layers": 2, "sampler": Sampler(2, 20, 10), "baskets": 2, "random_state": 0}


def ratings(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"user": rng.integers(40, size=n), "film": rng.integers(30, size=n)})
    table = np.array([[5, 3, 1], [1, 5, 3], [3, 1, 5]])
    return X, np.clip(np.rint(table[X["user"] % 3, X["film"] % 3] + rng.normal(0, 0.6, n)), 1, 5)


def product(factors, codes):
    base, users, items, left, right = factors
    u, i = codes
    return base + users[u] + items[i] + np.einsum("er,er->e", left[u], right[i])


def every_pair(model):
    X = pd.DataFrame([(u, i) for u in model.items_[0] for i in model.items_[1]], columns=["user", "film"])
    return X, [mode.encode(X[mode.name].to_numpy()) for mode in model.modes_]


@pytest.fixture(scope="module")
def fitted():
    X, y = ratings()
    return gg.LayeredCoClusteringRegressor(**SMALL).fit(X, y), X


@pytest.mark.parametrize("joins", [False, True])
def test_factors_are_the_latent_mean_of_fitted_pairs_or_of_all_others(fitted, joins):
    model, X = fitted
    pairs, codes = every_pair(model)
    latent = sum(model.contributions(pairs).values())
    seen = pd.MultiIndex.from_frame(pairs).isin(pd.MultiIndex.from_frame(X))
    factors = model.interaction_factors(rank=30, joins=joins)
    off = (product(factors, codes) - latent)[seen != joins]
    assert np.sqrt(np.mean(off**2)) < 0.04 * latent.std()  # a thousandth of the squares may be left out
    assert factors.left.shape[1] < 30
    for values in (factors.users, factors.items, factors.left, factors.right):
        np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)


def test_the_joining_term_is_all_that_is_left_out(fitted, monkeypatch):
    model, X = fitted
    monkeypatch.setattr("gingham.models.layers.factors.SHARE", 1.0 - 1e-13)
    pairs, codes = every_pair(model)
    latent = sum(model.contributions(pairs).values())
    seen = pd.MultiIndex.from_frame(pairs).isin(pd.MultiIndex.from_frame(X))
    without, joined = (product(model.interaction_factors(30, joins=joins), codes) for joins in (False, True))
    got = np.where(seen, without, joined)
    assert np.abs(without - latent)[~seen].max() > 0.01 < np.abs(joined - latent)[seen].max()
    np.testing.assert_allclose(got, latent, atol=2e-5)  # kernels add in single precision


def test_side_tokens_windows_of_time_and_items_without_labels(monkeypatch):
    X, y = ratings(600)
    side = {"film": pd.DataFrame({"film": range(32), "genre": [f"g{i % 3}" for i in range(32)]})}
    time = np.random.default_rng(1).integers(0, 10**7, len(X))
    model = gg.LayeredCoClusteringRegressor(**SMALL, side=side).fit(X, y, time=time)
    model.fold_in(pd.DataFrame({"user": ["new"] * 4, "film": range(4)}))
    monkeypatch.setattr("gingham.models.layers.factors.SHARE", 1.0 - 1e-13)
    pairs = X.drop_duplicates()
    codes = [mode.encode(pairs[mode.name].to_numpy()) for mode in model.modes_]
    latent = sum(model.contributions(pairs).values())
    np.testing.assert_allclose(product(model.interaction_factors(40), codes), latent, atol=2e-5)


def test_factors_that_do_not_suffice_are_told(fitted):
    with pytest.warns(gg.GinghamWarning, match=r"1 factors keep \d\d\.\d% of the squared interaction; raise rank="):
        fitted[0].interaction_factors(rank=1)


def test_no_matrix_of_all_pairs_is_formed():
    rng = np.random.default_rng(0)
    n, m, k, n_draws = 12_000, 9_000, 3, 4
    pairs = rng.integers(n, size=60_000), rng.integers(m, size=60_000)
    baskets = Basket.of_pairs(*pairs, n, m), Basket.itself(n)
    layers = LayerPlan(BASKET, 0, 1, 0, k, k, True), LayerPlan(ITEM, 0, 1, 1, k, k, False)
    draws = LayerDraws(
        (n, m), baskets, layers, None, 1.0, np.zeros(n_draws, dtype=np.int64), np.zeros(n_draws),
        np.zeros((n_draws, n + m), dtype=np.float32), np.ones((n_draws, 2)),
        rng.integers(k, size=(n_draws, m + m + m + n), dtype=np.uint8),
        rng.normal(size=(n_draws, 2 * k * k)).astype(np.float32), np.zeros((n_draws, 0)),
    )  # fmt: skip
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GinghamWarning)
        factors = interaction_factors(draws, rank=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert factors.left.shape == (n, 8)
    assert peak < n * m * 8 / 10


def test_more_than_two_modes_are_refused():
    rng = np.random.default_rng(0)
    X = rng.integers(6, size=(300, 3))
    model = gg.LayeredCoClusteringRegressor(**SMALL).fit(X, X.sum(axis=1).astype(float))
    with pytest.raises(gg.GinghamError, match="two modes; this one has 3"):
        model.interaction_factors()
