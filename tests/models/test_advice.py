"""Fits say where they may not be what was meant; what is all right passes in silence."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.models.layers import Sampler
from gingham.summary.values import Errors


def pairs(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, 30, n), rng.integers(0, 20, n)]), rng


def regressor(**more: object) -> gg.CoClusteringRegressor:
    return gg.CoClusteringRegressor(2, beta=1.0, max_iter=5, random_state=0, **more)


@pytest.mark.filterwarnings("error::gingham.errors.AdviceWarning")
def test_ratings_pass_in_silence():
    X, rng = pairs()
    y = np.clip(3 + np.where(X[:, 0] % 2 == X[:, 1] % 2, 1.5, -1.5) + rng.normal(0, 0.5, len(X)), 1, 5).round()
    model = regressor(alphabet=range(1, 6)).fit(X, y)
    assert model.summary_.found
    assert model.summary_.advice == ()


@pytest.mark.parametrize("kind", ["grid", "layers", "tree", "bayesian"])
def test_labels_that_count_are_said(kind):
    X, rng = pairs()
    y = np.floor(np.exp(rng.normal(3, 1.5, len(X))))
    model = {
        "grid": regressor(),
        "layers": gg.LayeredCoClusteringRegressor(1, 2, baskets=0, sampler=Sampler(1, 3, 1, noise=1.0)),
        "tree": gg.TreeCoClustering((2, 2), loss="quadratic", max_iter=3, random_state=0),
        "bayesian": gg.BayesianCoClustering(2, family="gaussian", max_iter=3, random_state=0),
    }[kind]  # fmt: skip
    with pytest.warns(gg.AdviceWarning, match="look like counts"):
        model.fit(X, y)


@pytest.mark.filterwarnings("error::gingham.errors.AdviceWarning")
def test_a_family_for_counts_is_told_nothing():
    X, rng = pairs()
    gg.BayesianCoClustering(2, family="poisson", max_iter=3, random_state=0).fit(
        X, np.floor(np.exp(rng.normal(1, 1.5, len(X))))
    )


def test_one_row_an_item_is_said():
    X, rng = pairs()
    X[:, 0] = np.arange(len(X))
    with pytest.warns(gg.AdviceWarning, match="'order' has 600 ids in 600 rows"):
        regressor().fit(pl.DataFrame(X, schema=["order", "product"]), rng.integers(1, 6, len(X)))


def test_one_count_a_row_is_said():
    with pytest.warns(gg.AdviceWarning, match="'row' has 60 ids in 60 rows"):
        gg.CoOccurrenceClustering(2, random_state=0).fit(np.tile(np.eye(6, dtype=int), (10, 1)))


def test_nothing_found_and_no_better_than_a_baseline_is_said():
    X, rng = pairs(1500)
    model = regressor(alphabet=range(1, 6)).fit(X, rng.integers(1, 6, len(X)))
    with pytest.warns(gg.AdviceWarning) as said:
        summary = gg.summarize(model)
    sentences = [str(one.message) for one in said]
    assert not summary.found
    assert any(sentence.startswith("No structure") for sentence in sentences)
    assert any("is not better than" in sentence for sentence in sentences) == (not summary.errors.useful)
    # The attribute says it once; asking again is silent.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(gg.AdviceWarning):
            model.summary_  # noqa: B018


def test_a_useless_model_is_named_beside_the_baseline():
    X, rng = pairs()
    summary = regressor(alphabet=range(1, 6)).fit(X, rng.integers(1, 6, len(X))).summary_
    from dataclasses import replace

    errors = Errors("quadratic", "root mean square error", {"this model": 816.0, "one constant": 679.0}, 60.0, "")
    assert "is not better than one constant: root mean square error 816" in replace(summary, errors=errors).advice[0]
    better = replace(errors, scores={"this model": 600.0, "one constant": 679.0})
    assert not any("not better" in sentence for sentence in replace(summary, errors=better).advice)
