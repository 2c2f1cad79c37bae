"""The summary says what the summary and the model say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gingham.report import predictor, summarize


@pytest.fixture(scope="module")
def summary(fitted):
    model = fitted[0]
    return summarize(model.summary_, model._observed(), predictor(model), label="rating")


def test_summary_is_plain(summary):
    assert json.loads(json.dumps(summary)) == summary


def test_predictions_are_the_models_and_not_observed(summary, fitted):
    model, X, _ = fitted
    observed = {(str(a), str(b)) for a, b in X}
    items, others = summary["sides"][0]["items"], summary["sides"][1]["items"]
    told = 0
    for name, best in zip(items["names"], items["best"]):
        for place, value, _ in best:
            partner = others["names"][place]
            assert (name, partner) not in observed
            predicted = model.predict(np.array([[name, int(partner)]], dtype=object))[0]
            assert value == pytest.approx(predicted, rel=1e-3)
            told += 1
        values = [value for _, value, _ in best]
        assert values == sorted(values, reverse=True)
    assert told > 50


def test_the_first_recommendation_is_the_best_of_all(summary, fitted):
    model = fitted[0]
    items, others = summary["sides"][0]["items"], summary["sides"][1]["items"]
    found = model.recommend(items["names"][4], n=1, side=0, backend="polars")
    place, value, unsure = items["best"][4][0]
    assert found["score"][0] == pytest.approx(value, rel=1e-3)
    assert found["uncertainty"][0] == pytest.approx(unsure, rel=5e-2)
    assert 0 <= place < len(others["names"])


def test_neighbours_are_those_that_are_most_alike(summary, fitted):
    side = fitted[0].summary_.sides[0]
    listed = side.listed()
    for place, near in enumerate(summary["sides"][0]["items"]["near"]):
        assert place not in near
        likeness = fitted[0].summary_.likeness(0, int(listed[place]))
        likeness[listed[place]] = -np.inf
        assert likeness[listed[near[0]]] == pytest.approx(likeness.max(), abs=1e-6)


def test_plain_means_are_those_of_the_rows(summary, fitted):
    _, _, y = fitted
    table = summary["tables"][0]
    assert np.sum(table["means"]) == pytest.approx(y.sum())
    assert np.sum(np.array(table["sums"])[..., 0]) == pytest.approx(len(y))


def test_only_items_with_most_data_are_named(fitted):
    model = fitted[0]
    small = summarize(model.summary_, model._observed(), predictor(model), max_items=10)
    items = small["sides"][0]["items"]
    assert len(items["names"]) == len(items["near"]) == len(items["best"]) == len(items["x"]) == 10
    assert min(items["mass"]) >= np.sort(model.summary_.sides[0].mass)[-10]


def test_a_page_without_the_data_leaves_out_what_needs_them(fitted):
    page = summarize(fitted[0].summary_)
    assert page["picture"] is None
    assert "means" not in page["tables"][0]
    assert page["sides"][0]["items"]["best"] is None


def test_data_of_another_numbering_are_left_out(fitted):
    model, X, y = fitted
    fewer = type(model)((2, 2), alphabet=range(1, 6), beta=2.0, random_state=0).fit(X[X[:, 1] != 3], y[X[:, 1] != 3])
    assert summarize(model.summary_, fewer._observed())["picture"] is None
