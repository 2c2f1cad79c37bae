"""Where pages have their figures from, benchmarks/results/*.json: ``python docs/measured.py`` renews those in the text.

Scripts beside this one renew whole tables and paragraphs, see `renewed`. A single figure stands in a page with its
origin, ``<span data-from="file:key/key:format">.92</span>``, of which readers see the figure alone, see `with_figures`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def results(name: str) -> Any:
    """The results of a benchmark."""
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    if not path.exists():
        raise FileNotFoundError(f"`{name}.json` has not been measured yet.")
    return json.loads(path.read_text(encoding="utf-8"))["results"]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The lines of a Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join('–' if cell is None else str(cell) for cell in row)} |"


def write_tables(folder: Path, tables: Mapping[str, Callable[[], Iterable[str]]]) -> None:
    """One file per table, which a page includes."""
    folder.mkdir(exist_ok=True)
    for name, lines in tables.items():
        try:
            text = "\n".join(lines()).rstrip()
        except FileNotFoundError as missing:
            text = str(missing)
        (folder / f"{name}.inc").write_text(text + "\n", encoding="utf-8")


def write_page_tables(folder: Path) -> None:
    """The tables of results.md and validation.md."""
    for name in ("claims", "comparisons", "graph_results", "layer_results", "scale_results", "validation"):
        write_tables(folder, import_module(name).TABLES)
    import_module("claims").draw_claims(folder)


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
