"""What the page calls things: a rating is observed, an edge is there, a word is counted."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """Words for one kind of data."""

    observed: str = "observed"  # before the value under a pixel, and where there is none
    unseen: str = "not observed"
    tuples: str = "tuples"  # what a cell and an item count: tuples, pairs, edges
    counted: str = "tuples"
    answers: str = "answers"  # between a cell and its number: "answers" 4.2, "has lift" 2.5
    mean: str = "observed mean"  # before the observed number of a cell or an item
    # headings of an item's predictions, and of what it gets from each cluster
    best: str = "Highest predictions, not observed yet"
    profile: str = "Prediction"


RATINGS = Words()
NAMES = Words(mean="observed mostly", best="Surest predictions, not observed yet")
EDGES = Words("edge", "no edge", "pairs", "edges", "predicts", best="Likeliest edges that are not there")
PAIRS = Words("weight", tuples="pairs", counted="pairs", answers="predicts")
COUNTS = Words(
    "counted", "counted 0", "counts", "counts", "has lift", "mean of a pair", "Expected most of what was not counted",
    "Lift",
)  # fmt: skip
SCORES = Words("value", tuples="values", counted="values", answers="has mean", profile="Mean")
