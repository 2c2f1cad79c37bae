"""The page of a timeline: groups over time as an alluvial picture, who moved, and what the groups are called."""

from __future__ import annotations

import os

from gingham.report.page import filled, write_text
from gingham.summary.timeline import COLOURS, Timeline, alluvial

STEP, HEIGHT, BOX, TOP = 120, 360, 16, 14  # of the picture, in its own units
MOST_MOVED = 60  # that are listed


def summarize(line: Timeline, side: str | None = None, title: str = "Groups over time") -> dict[str, object]:
    """All that the page shows, as plain values."""
    at = line.side(side)
    boxes, flows = alluvial(line, side)

    def x(column: int) -> float:
        return 30.0 + STEP * column

    def band(column: int, left: tuple[float, float], right: tuple[float, float]) -> str:
        a, b = x(column) + BOX, x(column + 1)
        middle = (a + b) / 2
        l0, l1, r0, r1 = (TOP + HEIGHT * value for value in (*left, *right))
        return (
            f"M{a:.1f},{l0:.1f}C{middle:.1f},{l0:.1f} {middle:.1f},{r0:.1f} {b:.1f},{r0:.1f}"
            f"L{b:.1f},{r1:.1f}C{middle:.1f},{r1:.1f} {middle:.1f},{l1:.1f} {a:.1f},{l1:.1f}Z"
        )

    groups: dict[int, list[tuple[str, str, int]]] = {}
    for box in boxes:
        groups.setdefault(box.identity, []).append((line.periods[box.column].name, box.name, box.size))
    moved = line.moved(side)
    kinds = [
        (period.name, str(one), one.verdict)
        for period in line.periods
        for one in (period.changes.changes if period.changes else ())
        if one.side == line.side_names[at] and one.kind != "moved"
    ]
    return {
        "title": title,
        "side": line.side_names[at],
        "periods": [{"name": period.name, "x": x(column) + BOX / 2} for column, period in enumerate(line.periods)],
        "width": x(len(line.periods)) - STEP + 60,
        "height": TOP + HEIGHT + 30,
        "boxes": [
            {
                "x": x(box.column), "y": TOP + HEIGHT * box.low, "height": max(HEIGHT * (box.high - box.low), 1.0),
                "colour": COLOURS[box.identity % len(COLOURS)], "number": box.identity + 1, "size": box.size,
                "name": box.name,
            }
            for box in boxes
        ],
        "flows": [
            {
                "path": band(flow.column, flow.left, flow.right), "colour": COLOURS[flow.identity % len(COLOURS)],
                "opacity": flow.opacity, "size": flow.size, "proven": "; ".join(flow.proven),
            }
            for flow in flows
        ],
        "groups": [
            {
                "number": number + 1, "colour": COLOURS[number % len(COLOURS)], "name": own[-1][1],
                "from": own[0][0], "to": own[-1][0], "sizes": ", ".join(f"{n:,}" for _, _, n in own),
            }
            for number, own in sorted(groups.items())
        ],
        "moved": [
            {"period": period, "who": ", ".join(one.items), "before": one.before, "after": one.after,
             "verdict": one.verdict, "p": f"{one.p:.2g}"}
            for period, one in moved[:MOST_MOVED]
        ],
        "n_moved": len(moved),
        "others": kinds,
    }  # fmt: skip


def write(
    line: Timeline, path: str | os.PathLike[str], side: str | None = None, title: str = "Groups over time"
) -> None:
    """Write the page; the file appears whole or not at all."""
    write_text(filled("timeline.html", **summarize(line, side, title)), path)
