"""Draw docs/_static/house.svg, the rooms of gingham and the arrows between them: ``python docs/house.py``."""

from __future__ import annotations

from html import escape
from pathlib import Path

FLOORS = [  # from the top: everything imports downwards only
    [("cli/", "one file per command")],
    [("report/", "model → one page"), ("plots/", "value → picture")],
    [
        ("grid", "checkerboards"),
        ("committee", "averages"),
        ("layers", "sums of boards"),
        ("counts", "co-occurrence"),
        ("ranking", "what is next"),
        ("graph", "networks"),
        ("joint", "several tables"),
        ("tree", "many modes"),
        ("bayesian", "mixed"),
        ("views", "several views"),
        ("features", "unobserved"),
    ],
    [("summary/", "a fitted model for people: named groups, facts, errors; knows no model")],
    [
        ("selection/", "β and size, one function each"),
        ("datasets/", "planted, public"),
    ],
    [("fitting/", "one loop, starts, schedules, checkpoints, projection, sweep, merging")],
    [("certificates/", "what is guaranteed; knows no model")],
    [("core/", "structure, posterior, problem: frozen values")],
    [("cells/", "what a block predicts, what a mistake costs"), ("data/", "what was observed")],
    [("engine/", "sums over observations: on the cores, on a GPU, from files, on dask"), ("storage.py", "model files")],
]
WIDTH, HEIGHT, GAP, MARGIN = 920, 54, 12, 20
COLOURS = ["#fde8e4", "#fde8e4", "#e4effd", "#fde8e4", "#eef3e2", "#eef3e2", "#fdf5dc", "#f3eafa", "#f3eafa", "#ececec"]


def text(x: float, y: float, words: str, size: int, weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="middle" '
        f'font-family="sans-serif" fill="#222">{escape(words)}</text>'
    )


def picture() -> str:
    """The house as SVG."""
    height = MARGIN * 2 + len(FLOORS) * (HEIGHT + GAP) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">']
    parts.append("<title>The rooms of gingham; each imports only rooms below it</title>")
    parts.append(f'<rect width="{WIDTH}" height="{height}" fill="white"/>')
    y = float(MARGIN)
    for floor, colour in zip(FLOORS, COLOURS):
        families = len(floor) > 3
        if families:
            parts.append(
                text(WIDTH / 2, y + 12, "models/: base.py, and one folder per family; none imports another", 12)
            )
            y += 22
        room = (WIDTH - 2 * MARGIN - GAP * (len(floor) - 1)) / len(floor)
        for place, (name, words) in enumerate(floor):
            x = MARGIN + place * (room + GAP)
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{room:.1f}" height="{HEIGHT}" rx="6" '
                f'fill="{colour}" stroke="#888"/>'
            )
            parts.append(text(x + room / 2, y + 23, name, 13 if families else 15, "bold"))
            parts.append(text(x + room / 2, y + 42, words, 10 if families else 12))
        y += HEIGHT + GAP
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    (Path(__file__).parent / "_static" / "house.svg").write_text(picture(), encoding="utf-8")
