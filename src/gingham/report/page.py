"""One self-contained HTML page about a model. Data stand in it as text, never as markup."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from gingham.arrays import Floats, Ints
from gingham.certificates import Certificate
from gingham.errors import GinghamError
from gingham.files import atomic
from gingham.report.summary import Predictor, summarize
from gingham.summary.values import Observed

SCRIPTS = ("core.js", "board.js", "details.js", "views.js", "main.js")


def render(summary: dict[str, object]) -> str:
    """The page as text. It loads nothing from anywhere."""
    script = "\n".join(asset(name) for name in SCRIPTS)
    return filled("page.html", title=summary["title"], script=script, data=embedded_json(summary))


def write(summary: dict[str, object], path: str | os.PathLike[str]) -> None:
    """Write the page; the file appears whole or not at all."""
    write_text(render(summary), path)


def asset(name: str) -> str:
    return (files("gingham.report") / "assets" / name).read_text(encoding="utf-8")


def filled(template: str, **values: object) -> str:
    """A template of the assets with its values and the style of all pages."""
    try:
        from jinja2 import Environment, FunctionLoader
    except ImportError:
        raise GinghamError("The report needs jinja2: install gingham[report].") from None
    pages = Environment(autoescape=True, loader=FunctionLoader(asset))
    return pages.get_template(template).render(**values, style=asset("page.css"))


def write_text(page: str, path: str | os.PathLike[str]) -> None:
    """Write a page; the file appears whole or not at all."""
    with atomic(path) as stream:
        stream.write(page.encode("utf-8", "replace"))


def embedded_json(value: object) -> str:
    """JSON that may stand inside a script element: no character in it can end the element or start a comment."""
    text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def finite(value: object) -> object:
    """Numbers that JSON does not know become null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): finite(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    if hasattr(value, "tolist"):  # numpy
        return finite(value.tolist())
    return value


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
    summary = model.summary_
    observed: Observed | None
    try:
        observed = model._observed()
    except GinghamError:  # a model from a file: the page then shows what its summary holds
        observed = None
    if model._errors is not None:
        summary = replace(summary, errors=model._errors)
    summary = summarize(
        summary, observed, predictor(model), title=title or f"What {type(model).__name__} found", label=label,
        certificates=certificates, trivial=trivial,
    )  # fmt: skip
    write(summary, path)


def predictor(model: Any) -> Predictor:
    """What a model, or one beside its table, predicts of rows of codes."""

    def predict(codes: Sequence[Ints], label: object) -> tuple[Floats, Floats]:
        found = model._predict_codes(0, codes, label)
        return found.score, found.uncertainty

    return predict
