"""Ids of another kind than those of the fit, texts beside numbers say: what was known stays known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gingham as gg
from gingham.models.layers import Sampler

RNG = np.random.default_rng(0)
USERS, FILMS = RNG.integers(0, 40, 1500), RNG.integers(0, 30, 1500)
X = pd.DataFrame({"user": USERS, "film": FILMS})
Y = np.clip(np.rint(3 + 1.5 * np.where((USERS % 2) == (FILMS % 2), 1, -1) + RNG.normal(0, 0.4, 1500)), 1, 5)
NEW = pd.DataFrame({"user": ["anna"] * 20, "film": np.arange(20)})
LABELS = np.where(np.arange(20) % 2 == 0, 5.0, 1.0)
LAYERS = {"n_layers": 2, "sampler": Sampler(1, 15, 5), "random_state": 0}
GRID = gg.CoClusteringRegressor((3, 3), alphabet=range(1, 6), random_state=0)
MODELS = {
    "grid": GRID,
    "committee": gg.Committee(GRID, 2, random_state=0),
    "layers": gg.LayeredCoClusteringRegressor(baskets=0, **LAYERS),
    "baskets": gg.LayeredCoClusteringRegressor(baskets=2, **LAYERS),
}


@pytest.mark.parametrize("kind", MODELS)
def test_new_items_with_texts_as_ids_beside_numbers(kind, tmp_path):
    model = MODELS[kind].fit(X, Y)
    before = model.predict(X)
    model.fold_in(NEW, LABELS)
    np.testing.assert_allclose(model.predict(X), before, atol=1e-6)
    found = model.predict(NEW)
    assert found[::2].mean() > found[1::2].mean() + 1
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(gg.load(tmp_path / "m").predict(NEW), found)


@pytest.mark.parametrize("kind", ["grid", "layers"])
def test_later_rows_with_texts_as_ids_beside_numbers(kind):
    model = MODELS[kind].fit(X, Y)
    before = model.predict(X)
    model.partial_fit(NEW, LABELS)
    assert np.corrcoef(model.predict(X), before)[0, 1] > 0.95
    with pytest.warns(gg.UnseenItemsWarning):
        model.predict(pd.DataFrame({"user": ["0"], "film": [0]}))  # a text is no number


def test_relations_that_name_the_same_items_in_two_ways():
    """Viewers are numbers in one relation, and some are texts in another."""
    other = pd.DataFrame({"user": [*range(40), "anna"], "country": np.array(["x", "y"])[np.arange(41) % 2]})
    model = gg.JointCoClustering({"user": 2, "film": 2, "country": None}, random_state=0)
    model.fit({("user", "film"): (X, Y), ("user", "country"): (other, np.ones(41))})
    users = next(mode for mode in model.posterior_.structure.modes if mode.name == "user")
    assert users.n_items == 41
    assert (users.encode(np.arange(40)) >= 0).all()
