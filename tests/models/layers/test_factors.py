"""The mean latent answer as an additive part and thin factors, against what rows are answered."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import gingham as gg
from gingham.models.layers import Sampler
from gingham.models.layers.draws import LayerDraws
from gingham.models.layers.factors import mean_factors
from gingham.models.layers.problem import BASKET, ITEM, Basket, LayerPlan

SMALL = {"n_layers": 2, "sampler": Sampler(2, 20, 10), "baskets": 2, "random_state": 0}


def ratings(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"user": rng.integers(40, size=n), "film": rng.integers(30, size=n)})
    table = np.array([[5, 3, 1], [1, 5, 3], [3, 1, 5]])
    return X, np.clip(np.rint(table[X["user"] % 3, X["film"] % 3] + rng.normal(0, 0.6, n)), 1, 5)


def product(factors, codes):
    u, i = codes
    inner = np.einsum("er,er->e", factors.left[u], factors.right[i])
    return factors.base + factors.rows[u] + factors.columns[i] + inner


@pytest.fixture(scope="module")
def fitted():
    X, y = ratings()
    return gg.LayeredCoClusteringRegressor(**SMALL).fit(X, y), X


def test_factors_are_the_latent_mean_of_fitted_pairs(fitted):
    model, X = fitted
    pairs = X.drop_duplicates()
    codes = [mode.encode(pairs[mode.name].to_numpy()) for mode in model.modes_]
    latent = sum(model.contributions(pairs).values())
    factors = mean_factors(model.draws_, rank=30)
    off = product(factors, codes) - latent
    assert np.sqrt(np.mean(off**2)) < 0.04 * latent.std()  # a thousandth of the squares may be left out
    assert factors.left.shape[1] < 30
    for values in (factors.left, factors.right):
        np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)


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
    np.testing.assert_allclose(product(mean_factors(model.draws_, 40), codes), latent, atol=2e-5)


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
    factors = mean_factors(draws, rank=8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert factors.left.shape == (n, 8)
    assert peak < n * m * 8 / 10


def test_more_than_two_modes_are_refused():
    rng = np.random.default_rng(0)
    X = rng.integers(6, size=(300, 3))
    model = gg.LayeredCoClusteringRegressor(**SMALL).fit(X, X.sum(axis=1).astype(float))
    with pytest.raises(gg.GinghamError, match="3 modes have no summary"):
        mean_factors(model.draws_)
