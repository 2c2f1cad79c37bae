"""render: the summary as one self-contained HTML page. Data stand in it as text, never as markup."""

from __future__ import annotations

import json
import math
import os
from importlib.resources import files

from gingham.errors import GinghamError
from gingham.files import atomic

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
        from jinja2 import Environment
    except ImportError:
        raise GinghamError("The report needs jinja2: install gingham[report].") from None
    return Environment(autoescape=True).from_string(asset(template)).render(**values, style=asset("page.css"))


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
