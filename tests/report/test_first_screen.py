"""What the first screen says: plain words, right plurals, sensible digits, honest comparisons."""

from __future__ import annotations

import re

import numpy as np
import pytest

import gingham as gg
from gingham.report.first_screen import (
    data_words,
    guarantee_words,
    next_steps,
    noun_of,
    percent,
    prediction_words,
    short,
)
from gingham.summary.values import Errors


@pytest.mark.parametrize(
    ("value", "text"), [(0.93712, "0.937"), (12.345, "12.3"), (679.4, "679"), (81234.0, "81,234"), (3, "3")]
)
def test_numbers_have_sensible_digits(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.0631, "6.3 %"), (0.5, "50 %"), (0.00042, "0.042 %"), (1e-6, "less than 0.01 %"), (0, "0 %")]
)
def test_shares_have_sensible_digits(share, text):
    assert percent(share).replace("\N{NO-BREAK SPACE}", " ") == text
    assert " %" not in percent(share)  # a line must not begin with it


@pytest.mark.parametrize(
    ("label", "measure", "noun"),
    [("rating", "difference", "rating"), ("label", "difference", "entry"), ("taken", "lift", "pair"),
     ("x1", "lift", "count"), ("plays", "lift", "play"), ("entries", "difference", "entry"),
     ("class", "labels", "class")],
)  # fmt: skip
def test_observations_have_names_of_people(label, measure, noun):
    assert noun_of(label, measure) == noun


def test_the_data_in_a_sentence(fitted):
    model = fitted[0]
    said = data_words(model.summary_, model._observed(), "rating")
    assert re.match(r"30 \S+ × 24 \S+; 500 ratings from 1 to 5, \d\.\d+ on average, for \d+\s% of all pairs\.", said)


def test_edges_and_counts_in_a_sentence():
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.kron([[3, 1], [1, 3]], np.ones((10, 8))))
    model = gg.CoOccurrenceClustering((2, 2), random_state=0).fit(counts)
    said = data_words(model.summary_, model._observed(), "count")
    assert said.startswith(f"20 rows × 16 columns; {counts.sum():,} counts, in ")
    edges = [(i, j) for i in range(16) for j in range(i) if i % 2 == j % 2]
    graph = gg.GraphClustering(2, random_state=0).fit(np.array(edges))
    said = data_words(graph.summary_, graph._observed(), "edge")
    assert "; 56 edges, between 47\N{NO-BREAK SPACE}% of all pairs." in said


def summary_with(model, *scores: tuple[str, float]):
    from dataclasses import replace

    errors = Errors("quadratic", "root mean square error", dict(scores), 500.0, "a tenth, held out")
    return replace(model.summary_, errors=errors)


def test_a_model_that_is_worse_than_a_baseline_is_said_to_be(fitted):
    bad = summary_with(fitted[0], ("this model", 816.0), ("one constant", 679.0))
    said = prediction_words(bad, "plays")
    assert said["useful"] is False
    assert "816" in said["sentence"]
    assert "679" in said["sentence"]
    assert "Use that rule for prediction" in said["sentence"]
    good = prediction_words(summary_with(fitted[0], ("this model", 0.9), ("both averages", 1.0)), "rating")
    assert good["useful"] is True
    assert "10\N{NO-BREAK SPACE}% less" in good["sentence"]
    assert [bar["model"] for bar in good["bars"]] == [True, False]


def certificate(**facts):
    plain = {"value": 0.74, "delta": 0.05, "loss": "absolute", "bound": "log-wealth", "worst": 4.0, "trivial": 0.888}
    return {**plain, **facts}


def test_a_guarantee_is_compared_with_the_trivial_one():
    good = guarantee_words([certificate()], "", "rating")
    assert good["sentence"] == (
        "With 95 % confidence, predictions of new ratings like these are off by at most 0.74 on average."
    )
    assert good["better"] is True
    assert "0.888" in good["verdict"]
    bad = guarantee_words([certificate(value=0.937)], "", "rating")
    assert bad["better"] is False
    assert "no better than the trivial guarantee: 0.888" in bad["verdict"]


def test_of_several_guarantees_the_best_is_quoted_with_the_confidence_of_all():
    said = guarantee_words([certificate(value=0.9, delta=0.025), certificate(value=0.7, delta=0.025)], "", "rating")
    assert said["sentence"].startswith("With 95 % confidence")
    assert "0.7 on average" in said["sentence"]


def test_wrong_labels_gains_densities_and_refusals():
    assert "at most 12\N{NO-BREAK SPACE}% of predictions of new votes are wrong" in guarantee_words(
        [certificate(value=0.12, loss="zero-one", trivial=0.4)], "", "vote"
    )["sentence"]  # fmt: skip
    gain = guarantee_words([certificate(), certificate(bound="gain", value=-0.01)], "", "edge")
    assert gain["better"] is True
    assert guarantee_words([certificate(bound="gain", value=0.01)], "", "edge")["better"] is False
    density = guarantee_words([certificate(bound="density", value=8.0, trivial=9.0)], "", "count", np.log(8000))
    assert "a new count on average at least 2.7 times as probable as if all pairs were alike" in density["sentence"]
    assert "×0.99" in density["verdict"]
    assert density["better"] is True
    none = guarantee_words([], "Say --alphabet 1..5.", "rating")
    assert none["better"] is None
    assert none["verdict"] == "Say --alphabet 1..5."


def test_next_steps_can_be_pasted(fitted):
    summary = fitted[0].summary_
    steps = [command for _, command in next_steps(summary, ("my model.gingham", "a.csv"), certified=False)]
    assert steps[0] == "gingham certify 'my model.gingham' a.csv"
    assert steps[1] == "gingham describe 'my model.gingham' --out groups.csv"
    for _, command in next_steps(summary, None):
        assert "model." in command
        compile(command, "next", "eval")
