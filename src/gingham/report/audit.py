"""The page of an audit: what is certified of each model, which is better, and where. Data stand in it as text."""

from __future__ import annotations

import os
from typing import Any

from gingham.certificates import Audit
from gingham.report.page import filled, write_text
from gingham.summary.measure import in_unit, unit_of

WIDTH, HEIGHT, EDGE = 640, 180, 40  # of the picture of time


def summarize(found: Audit, title: str) -> dict[str, object]:
    """All that the page shows, as plain values."""
    return {
        "title": title,
        "n_rows": found.n_rows,
        "confidence": f"{100 * (1 - found.delta):g}",
        "winner": found.winner,
        "n_models": len(found.models),
        "tables": found.tables(unit_of, in_unit),
        "lines": _lines(found),
        "assumptions": [{"status": one.status, "text": one.text} for one in found.assumptions],
    }


def write(found: Audit, path: str | os.PathLike[str], title: str) -> None:
    """Write the page; the file appears whole or not at all."""
    write_text(filled("audit.html", **summarize(found, title)), path)


def _lines(found: Audit) -> list[dict[str, Any]]:
    """The loss in each part of time as points of lines."""
    if not found.changes:
        return []
    top = max(max(one.parts) for one in found.changes) or 1.0
    lines = []
    for number, one in enumerate(found.changes):
        steps = (WIDTH - 2 * EDGE) / max(len(one.parts) - 1, 1)
        points = [(EDGE + steps * at, HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * v / top) for at, v in enumerate(one.parts)]
        lines.append({
            "name": one.name, "number": number, "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points),
            "top": f"{top:.3g}",
        })  # fmt: skip
    return lines
