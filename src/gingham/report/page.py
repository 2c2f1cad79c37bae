"""render: the summary as one self-contained HTML page. Data stand in it as text, never as markup."""

from __future__ import annotations

import json
import math
import os
from importlib.resources import files

from gingham.errors import GinghamError
from gingham.storage import atomic

SCRIPTS = ("dom.js", "charts.js", "board.js", "panels.js", "main.js")


def render(summary: dict[str, object]) -> str:
    """The page as text. It loads nothing from anywhere."""
    try:
        from jinja2 import Environment
    except ImportError:
        raise GinghamError("The report needs jinja2: install gingham[report].") from None
    assets = files("gingham.report") / "assets"
    template = Environment(autoescape=True).from_string((assets / "page.html").read_text(encoding="utf-8"))
    return template.render(
        title=summary["title"],
        style=(assets / "page.css").read_text(encoding="utf-8"),
        script="\n".join((assets / name).read_text(encoding="utf-8") for name in SCRIPTS),
        data=embedded_json(summary),
    )


def write(summary: dict[str, object], path: str | os.PathLike[str]) -> None:
    """Write the page; the file appears whole or not at all."""
    page = render(summary)
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
