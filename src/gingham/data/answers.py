"""Answers to questions as text: which of them are none, which are numbers, and which lie on a common scale."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gingham.arrays import AnyArray, Floats

NO_ANSWER = (
    "", "na", "n/a", "nan", "null", "no answer", "not answered", "prefer not to say", "prefer not to answer",
    "refused", "don't know", "dont know", "do not know",
)  # fmt: skip
STEPS = 12  # different numbers from which on a question is a measurement, which has so many steps
SCALES = [
    [word.strip() for word in words.split(",")]
    for words in (
        "strongly disagree, disagree, mostly disagree, somewhat disagree, slightly disagree, "
        "neither agree nor disagree, neutral, undecided, slightly agree, somewhat agree, mostly agree, agree, "
        "strongly agree",
        "never, almost never, rarely, seldom, sometimes, occasionally, often, usually, very often, almost always, "
        "always",
        "very dissatisfied, dissatisfied, somewhat dissatisfied, neither satisfied nor dissatisfied, neutral, "
        "somewhat satisfied, satisfied, very satisfied",
        "very unlikely, unlikely, somewhat unlikely, neutral, somewhat likely, likely, very likely",
        "very poor, poor, fair, average, good, very good, excellent",
        "not at all, slightly, a little, somewhat, moderately, quite a bit, very, very much, extremely",
        "very low, low, medium, moderate, high, very high",
    )
]  # in rising order


def answers_of(values: Iterable[object]) -> AnyArray:
    """Answers as text, without spaces around them; whole numbers without a point. Those that are missing are empty."""
    return np.array([_as_text(value) for value in values], dtype=str)


def _as_text(value: object) -> str:
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.12g}"
    return "" if value is None else str(value).strip()


def as_numbers(answers: AnyArray) -> Floats | None:
    """Answers as numbers, None where one is not."""
    try:
        found = answers.astype(np.float64)
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def in_order(answers: AnyArray) -> AnyArray | None:
    """Different answers in rising order, where they are numbers or words of a common scale; None where they are not."""
    numbers = as_numbers(answers)
    if numbers is not None:
        return answers[np.argsort(numbers)]
    words = [answer.casefold() for answer in answers.tolist()]
    scale = next((scale for scale in SCALES if set(words) <= set(scale)), None)
    return None if scale is None else answers[np.argsort([scale.index(word) for word in words])]


def steps_of(numbers: Floats) -> Floats:
    """Numbers that stand for those near them, as many for each."""
    return np.unique(np.quantile(numbers, (np.arange(STEPS) + 0.5) / STEPS, method="nearest"))
