"""Every kind of model × every question: each cell is run, and works or says in a sentence why it cannot."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from sklearn.base import is_classifier

import gingham as gg
from gingham import plots
from model_examples import discovered, examples

EXAMPLES = {type(example.model).__name__: example for example in reversed(examples())}
KINDS = tuple(sorted(discovered()))
METHODS = ("describe", "to_frame", "recommend", "similar", "explain", "plot", "report", "_repr_html_")
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "summaries.md"

# questions that a kind has no method for: explanatory clustering has no clusters of items
LACKING = {(method, "ExplanatoryClustering") for method in METHODS if method not in ("describe", "_repr_html_")}
# where a question has no meaning for a kind: what it says
REFUSED = {
    ("recommend", "PairwiseClusterAnalysis"): "does not predict pairs of items",
    ("recommend", "KernelCCA"): "does not predict pairs of items",
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    return {kind: EXAMPLES[kind].fit() for kind in KINDS}


def first_of(model, side=0):
    return model.summary_.sides[side].items.tolist()[0]


def asked(model, method, tmp_path):
    """What a model answers to a question."""
    # The partners of people in a survey are answers, and whether they give them is the label.
    names = is_classifier(model) and type(model).__name__ != "SurveyCoClustering"
    label = {"label": model.classes_[-1]} if names else {}
    if method == "recommend":
        return model.recommend(first_of(model), 3, backend="polars", **label)
    if method == "similar":
        side = 1 if type(model).__name__ == "BasketRanker" else 0
        return model.similar(first_of(model, side), 3, backend="polars")
    if method == "explain":
        return model.explain(first_of(model))
    if method == "report":
        model.report(tmp_path / "page.html")
        return (tmp_path / "page.html").read_text("utf-8")
    if method == "plot":
        return model.plot()
    return getattr(model, method)() if method == "_repr_html_" else getattr(model, method)(backend="polars")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_cell(fitted, kind, method, tmp_path):
    model = fitted[kind]
    if (method, kind) in LACKING:
        assert not hasattr(model, method)
        return
    if (method, kind) in REFUSED:
        with pytest.raises(gg.GinghamError, match=REFUSED[method, kind]):
            asked(model, method, tmp_path)
        return
    answer = asked(model, method, tmp_path)
    if method in ("describe", "to_frame", "recommend", "similar"):
        assert isinstance(answer, pl.DataFrame)
        assert answer.height >= 1
    if method == "recommend":
        assert {"place", "item", "score"} <= set(answer.columns)
    elif method == "to_frame":
        assert answer["cluster"].min() == 1
        assert answer["membership"].is_between(0, 1).all()
    elif method == "_repr_html_":
        assert "fitted" in answer
    elif method == "explain":
        assert "group" in str(answer)
    elif method == "plot":
        plt.close(answer.figure)
    elif method == "report":
        assert "</html>" in answer


def test_every_refusal_is_of_a_cell():
    assert all(method in METHODS and kind in KINDS for method, kind in REFUSED)


def test_the_page_names_what_is_lacking():
    """- `Kind` and `Kind` have no `method`, `method` …"""
    lines = re.findall(r"^- (.*) ha(?:s|ve) no (.*)\.$", PAGE.read_text("utf-8"), re.M)
    shown = {
        (m, k)
        for kinds, methods in lines
        for k in re.findall(r"`(\w+)`", kinds)
        for m in re.findall(r"`(\w+)`", methods)
    }
    assert shown == LACKING | set(REFUSED)


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"user": rng.integers(0, 40, 1500), "film": [f"f{m}" for m in rng.integers(0, 30, 1500)]})
    odd = X["film"].str.slice(1).cast(pl.Int64).to_numpy() % 2
    y = np.where(X["user"].to_numpy() % 2 == odd, 5.0, 1.0) + 0.3 * rng.normal(size=1500)
    return gg.CoClusteringRegressor(2, loss="quadratic", beta=2.0, random_state=0).fit(X, y), X


def test_recommendations_are_the_best_unseen_and_ties_share_a_place(ratings):
    model, X = ratings
    found = model.recommend(0, 30, backend="polars")
    seen = set(X.filter(pl.col("user") == 0)["film"])
    assert not seen & set(found["item"])
    assert (found["score"].diff().drop_nulls() <= 1e-9).all()
    like = found.filter(pl.col("place") == 1)
    assert like["tied"].unique().to_list() == [like.height]
    assert found["uncertainty"].is_between(0.05, 1.0).all()
    assert int(found["item"][0][1:]) % 2 == 0
    assert seen & set(model.recommend(0, 30, exclude_seen=False, backend="polars")["item"])
    assert model.recommend("f3", 5, backend="polars")["item"].to_numpy().astype(int).tolist()[0] % 2 == 1


def test_alike_are_items_of_the_same_planted_group(ratings):
    found = ratings[0].similar("f4", 10, backend="polars")
    assert all(int(item[1:]) % 2 == 0 for item in found["item"])
    assert "f4" not in found["item"].to_list()


def test_an_explanation_says_why(ratings):
    why = ratings[0].explain((0, "f4"))
    assert why.prediction == pytest.approx(5.0, abs=0.3)
    assert 0.1 < why.uncertainty < 0.6
    assert len(why.places) == 2
    assert all(value > 3 for _, value in why.comparable)
    assert "Comparable, and observed" in str(why)
    with pytest.raises(gg.GinghamError, match="A row has 2 ids"):
        ratings[0].explain((0, "f4", 1))
    with pytest.raises(gg.GinghamError, match="not among the items"):
        ratings[0].explain((0, "nobody"))


def test_what_was_seen_can_be_handed_over(ratings, tmp_path):
    model, X = ratings
    model.summary_  # noqa: B018
    model.save(tmp_path / "m.gingham")
    loaded = gg.load(tmp_path / "m.gingham")
    with pytest.warns(gg.GinghamWarning, match="seen=X"):
        loaded.recommend(0, 3)
    assert loaded.recommend(0, 5, seen=X, backend="polars").equals(model.recommend(0, 5, backend="polars"))


def test_names_from_data_are_text_in_a_card():
    rng = np.random.default_rng(1)
    words = [f"<script>{w}</script>" for w in "abcdefghij"]
    counts = rng.poisson(np.where(np.arange(30)[:, None] % 2 == np.arange(10) % 2, 4.0, 0.5))
    model = gg.CoOccurrenceClustering(2, random_state=0).fit(counts, names={"d": range(30), "<img>": words})
    card = model._repr_html_()
    assert "<script>a" not in card
    assert "<img" not in card
    assert card.count("<script") == 1  # scikit-learn's own, of its view of parameters
    assert "text/html" in model._repr_mimebundle_()


def test_an_unfitted_model_has_the_usual_diagram():
    assert "fitted" not in gg.CoOccurrenceClustering()._repr_html_()[:200]
    assert "text/html" in gg.CoOccurrenceClustering()._repr_mimebundle_()


def test_the_matrix_is_drawn_without_a_sample(ratings):
    ax = plots.checkerboard(ratings[0])
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("user", "film")
    plt.close(ax.figure)


def test_a_pickled_model_does_not_carry_the_data(ratings):
    import pickle

    copy = pickle.loads(pickle.dumps(ratings[0]))
    with pytest.raises(gg.GinghamError, match="not available"):
        gg.summarize(copy)
