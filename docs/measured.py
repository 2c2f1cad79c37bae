"""Where the scripts beside this one find figures, benchmarks/results/*.json, and how a page takes fresh lines."""

from __future__ import annotations

import json
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
