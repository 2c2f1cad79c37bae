"""The page of a fitted model by itself: its reading, the data it remembers, and what it predicts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from gingham.arrays import Floats, Ints
from gingham.certificates import Certificate
from gingham.errors import GinghamError
from gingham.reading.observed import Observed
from gingham.report.page import write
from gingham.report.summary import Predictor, summarize


def write_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    label: str | None = None,
    certificates: Mapping[str, Certificate | Mapping[str, object]] | None = None,
    trivial: Mapping[str, float] | None = None,
) -> None:
    """Write one self-contained page about a fitted model.

    Parameters
    ----------
    model : fitted model of any family
    path : file to write
    title : str, optional
    label : str, optional
        What was observed, "rating" say.
    certificates : mapping from name to Certificate, optional
        Guarantees to show: ``{"training rows": gg.certify(model, X, y)}``.
    trivial : mapping from the same names to numbers, optional
        What is guaranteed of a predictor that knows no groups.
    """
    reading = model.reading_
    observed: Observed | None
    try:
        observed = model.observed()
    except GinghamError:  # a model from a file: the page then shows what its reading holds
        observed = None
    summary = summarize(
        reading, observed, predictor(model), title=title or f"What {type(model).__name__} found", label=label,
        certificates=certificates, trivial=trivial,
    )  # fmt: skip
    write(summary, path)


def predictor(model: Any) -> Predictor:
    """What a model, or one beside its table, predicts of rows of codes."""

    def predict(codes: Sequence[Ints], label: object) -> tuple[Floats, Floats]:
        found = model.predict_codes(0, codes, label)
        return found.score, found.uncertainty

    return predict
