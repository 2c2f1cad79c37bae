"""Committee guarantees: the mixture costs the mean KL; folds are averaged."""

from __future__ import annotations

import numpy as np
import pytest

import gingham as gg
from gingham.certificates import certify_predictions


@pytest.fixture(scope="module")
def stars():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(40, size=1500), rng.integers(30, size=1500)])
    y = np.array([[1, 4], [5, 2]])[X[:, 0] % 2, X[:, 1] % 2] + rng.choice([0, 0, 1, -1], 1500)
    return X, np.clip(y, 1, 5)


def test_mixture_lies_between_its_members(stars) -> None:
    X, y = stars
    grid = gg.CoClusteringRegressor(4, beta=0.5, alphabet=range(1, 6), start="random", max_iter=10)
    model = gg.Committee(grid, 4, random_state=0).fit(X, y)
    members = [gg.certify(m, X, y) for m in model.members_]
    found = gg.certify(model, X, y)
    values = [c.value for c in members]
    assert min(values) <= found.value <= max(values)
    assert found.empirical == pytest.approx(np.mean([c.empirical for c in members]))
    # Not a nat for choosing among the members.
    assert found.complexity == pytest.approx(np.mean([c.complexity for c in members]), rel=1e-4)


def test_folds_average_the_bounds_of_members_on_unseen_folds(stars) -> None:
    X, y = stars
    grid = gg.CoClusteringRegressor(4, beta=0.5, alphabet=range(1, 6), max_iter=10)
    model = gg.Committee(grid, 3, cross=True, random_state=0).fit(X, y)
    found = gg.certify_folds(model, y, alphabet=range(1, 6), delta=0.06)
    by_hand = []
    for k in range(3):
        fold = model.folds_ == k
        by_hand.append(
            certify_predictions(model.members_[k].predict(X[fold]), y[fold], label_bounds=(1, 5), delta=0.02).value
        )
    assert found.value == pytest.approx(np.mean(by_hand), abs=1e-5)
    assert found.value > found.empirical
    assert found.delta == 0.06
    with pytest.raises(gg.GinghamError, match="cross=True"):
        gg.certify_folds(gg.Committee(grid, 2).fit(X, y), y, alphabet=range(1, 6))
    with pytest.raises(gg.GinghamError, match="convex"):
        gg.certify_folds(model, y, loss="zero-one", alphabet=range(1, 6))
    with pytest.raises(gg.GinghamError, match="rows"):
        gg.certify_folds(model, y[:5], alphabet=range(1, 6))
