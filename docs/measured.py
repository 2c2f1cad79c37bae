"""Where pages have their figures from, benchmarks/results/*.json: ``python docs/measured.py`` renews those in the text.

Scripts beside this one renew whole tables and paragraphs, see `renewed`. A single figure stands in a page with its
origin, ``<span data-from="file:key/key:format">.92</span>``, of which readers see the figure alone, see `with_figures`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def results(name: str) -> Any:
    """What a benchmark found; nothing where it was not run."""
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["results"] if path.exists() else {}


def renewed(page: str, name: str, script: str, lines: Iterable[str]) -> str:
    """A page with fresh lines between the marks of that name and script."""
    begin, end = f"<!-- {name}: python docs/{script}.py -->", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"The page needs one place for {name!r}: {begin} and {end}")
    before, rest = page.split(begin)
    return before + begin + "\n\n" + "\n".join(lines).rstrip() + "\n\n" + end + rest.split(end)[1]


FIGURE = re.compile(r'<span data-from="(\w+):([^"]+):([^":]*)">[^<]*</span>')
FIGURES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if FIGURE.search(page.read_text(encoding="utf-8"))]


def figure(name: str, path: str, form: str) -> str:
    """One figure of a result file, as a page shows it."""
    value = results(name)
    for key in path.split("/"):
        value = value[int(key)] if isinstance(value, list) else value[key]
    shown = format(value, form)
    return shown.replace("0.", ".", 1) if re.match(r"-?0\.\d", shown) else shown


def with_figures(page: str) -> str:
    """A page with fresh figures in its text."""

    def fresh(found: re.Match[str]) -> str:
        name, path, form = found.groups()
        return f'<span data-from="{name}:{path}:{form}">{figure(name, path, form)}</span>'

    return FIGURE.sub(fresh, page)


if __name__ == "__main__":
    for each in FIGURES:
        each.write_text(with_figures(each.read_text(encoding="utf-8")), encoding="utf-8")
