"""The summary says what the model says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gingham.report import summarize
from gingham.report.summary import shown_items


@pytest.fixture(scope="module")
def summary(fitted):
    model, sample, _, _ = fitted
    return summarize(model.posterior_, sample)


def test_summary_is_plain(summary):
    assert json.loads(json.dumps(summary)) == summary


def test_items_and_memberships(summary, fitted):
    model = fitted[0]
    mode = summary["modes"][0]
    assert mode["items"]["names"] == [str(item) for item in model.items_[0]]
    assert [c[0] for c in mode["items"]["clusters"]] == model.labels_[0].tolist()
    assert sum(cluster["size"] for cluster in mode["clusters"]) == mode["n_items"]


def test_predictions_are_the_models_and_not_observed(summary, fitted):
    model, _, X, _ = fitted
    observed = {(a, str(b)) for a, b in X}
    items, others = summary["modes"][0]["items"], summary["modes"][1]["items"]
    for name, best in zip(items["names"], items["best"]):
        for place, value in best:
            partner = others["names"][place]
            assert (name, partner) not in observed
            predicted = model.predict(np.array([[name, int(partner)]], dtype=object))[0]
            assert value == pytest.approx(predicted, rel=1e-3)


def test_neighbours_exclude_the_item(summary):
    for place, near in enumerate(summary["modes"][0]["items"]["near"]):
        assert place not in near
        assert near


def test_cells_agree_with_the_posterior(summary, fitted):
    model, sample, _, _ = fitted
    cells = summary["cells"]
    for i, row in enumerate(cells["rows"]):
        for j, column in enumerate(cells["columns"]):
            assert cells["answer"][i][j] == pytest.approx(model.answers_[row, column], rel=1e-3)
    assert np.sum(cells["count"]) == pytest.approx(sample.n_tuples, rel=1e-3)


def test_only_items_with_most_data_are_named(fitted):
    sample = fitted[1]
    chosen = shown_items(sample, 0, 10)
    counts = sample.counts(0)
    assert len(chosen) == 10
    assert counts[chosen].min() >= np.sort(counts)[-10]
    small = summarize(fitted[0].posterior_, sample, max_items=10)
    assert small["modes"][0]["n_shown"] == 10
    assert -1 in small["board"]["order"][0]
