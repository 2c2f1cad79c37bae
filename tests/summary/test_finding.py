"""The first line of a page and of a fit is the clearest block, in words."""

from __future__ import annotations

import numpy as np
import pytest

import gingham as gg
from gingham.datasets import load_films, planted_graph
from gingham.summary.finding import finding


def test_numbers_are_compared_with_averages():
    import polars as pl

    ratings, films = map(pl.DataFrame, load_films())
    model = gg.CoClusteringRegressor((3, 4), alphabet=range(1, 6), random_state=0)
    model.fit(ratings.select("viewer", "film"), ratings["rating"], item_info={"film": films})
    said = finding(model.summary_, "rating")
    assert said.split()[1:5] == ["viewers", "rate", "12", "action"] or "documentary films" in said
    assert said.endswith(("higher than averages predict.", "lower than averages predict."))
    assert finding(model.summary_, "price").startswith("The mean price of ")


def test_counts_and_links_are_compared_with_chance():
    counts = np.random.default_rng(0).poisson(np.kron([[3, 1], [1, 3]], np.ones((20, 15))))
    said = finding(gg.CoOccurrenceClustering(random_state=0).fit(counts).summary_)
    assert said == "20 rows and 15 columns occur together 1.6 times as often as chance predicts."
    graph = planted_graph(200, 4, inside=15, outside=2).adjacency
    assert "nodes are linked to each other" in finding(gg.GraphClustering(random_state=0).fit(graph).summary_)


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_names_are_compared_with_their_shares(noise):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (3000, 2))
    y = np.where(rng.random(3000) < noise, rng.choice(["no", "yes"], 3000), np.where(X.sum(axis=1) % 2, "yes", "no"))
    said = finding(gg.CoClusteringClassifier(2, random_state=0).fit(X, y).summary_, "vote")
    if noise < 1:
        assert said.startswith("Of the votes of 1")
        assert "overall." in said
    else:
        assert said == ""  # there is no structure
