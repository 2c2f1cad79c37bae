"""What differs: two models by the groups they serve, and groups over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gingham.certificates.audit import Audit
from gingham.plots.board import ACCENT, COOL, INK, UNSEEN, axes_or_new
from gingham.summary.timeline import COLOURS, Timeline
from gingham.summary.timeline import alluvial as laid_out

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes

WIDTH = 0.14  # of a group's box, where periods stand 1 apart
MOST_PARTS = 16  # that are drawn, from both ends
SHORT = 34  # letters of a name


def comparison(found: Audit, *, ax: Axes | None = None) -> Axes:
    """The difference on all rows and in every part, with what is certified: left of the line the first is better."""
    parts = [(f"{name}: {one.part}", one) for name, own in found.parts.items() for one in own]
    if len(parts) > MOST_PARTS:
        parts = parts[: MOST_PARTS // 2] + parts[-MOST_PARTS // 2 :]
    rows = [("everywhere", found.differences[0]), *parts]
    ax = axes_or_new(ax, figsize=(7, 1.2 + 0.3 * len(rows)))
    for at, (_, one) in enumerate(rows):
        colour = UNSEEN if one.better is None else ACCENT if one.better == one.first else COOL
        ax.plot([one.low, one.high], [at, at], color=colour, lw=3, solid_capstyle="butt")
        ax.plot(one.observed, at, "o", color=INK, ms=4)
    ax.axvline(0, color=INK, lw=0.8)
    names = [name if len(name) <= SHORT else name[: SHORT - 1] + "…" for name, _ in rows]
    ax.set_yticks(range(len(rows)), names)
    ax.invert_yaxis()
    whole = found.differences[0]
    ax.set_xlabel(f"{found.measure}: left {whole.first} is better, right {whole.second}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def alluvial(
    line: Timeline, side: str | None = None, *, colours: Sequence[str] = COLOURS, ax: Axes | None = None
) -> Axes:
    """Groups of every period as boxes, and the items that two periods share as bands between them.

    Bands of items that are proven to have moved are dark and named; other moves are pale.
    """
    boxes, flows = laid_out(line, side)
    ax = axes_or_new(ax, figsize=(max(7, 0.9 * len(line.periods)), 4.5))
    at = np.linspace(0, 1, 30)
    bend = at**2 * (3 - 2 * at)
    for flow in sorted(flows, key=lambda flow: (not flow.stays, bool(flow.proven))):
        low, high = (a + (b - a) * bend for a, b in zip(flow.left, flow.right))
        x = flow.column + WIDTH / 2 + at * (1 - WIDTH)
        ax.fill_between(x, low, high, color=colours[flow.identity % len(colours)], alpha=flow.opacity, lw=0)
        if flow.proven:
            middle = float(low[15] + high[15]) / 2
            ax.annotate(
                "\n".join(name if len(name) <= SHORT else name[: SHORT - 1] + "…" for name in flow.proven),
                (flow.column + 0.5, middle), (0, 26), textcoords="offset points", ha="center", va="bottom", color=INK,
                fontsize="small", arrowprops={"arrowstyle": "-", "color": INK, "lw": 0.8},
                bbox={"facecolor": "w", "edgecolor": "none", "alpha": 0.85, "pad": 1.5},
            )  # fmt: skip
    for box in boxes:
        ax.bar(box.column, box.high - box.low, WIDTH, box.low, color=colours[box.identity % len(colours)])
        middle = (box.low + box.high) / 2
        ax.annotate(str(box.identity + 1), (box.column, middle), ha="center", va="center", color="w", fontsize="small")
        if box.column == len(line.periods) - 1:
            name = box.name if len(box.name) <= SHORT else box.name[: SHORT - 1] + "…"
            ax.annotate(f"{name}\n{box.size:,}", (box.column, middle), (10, 0), textcoords="offset points", va="center",
                        color=INK, fontsize="small", annotation_clip=False)  # fmt: skip
    ax.set_xticks(range(len(line.periods)), [period.name for period in line.periods])
    ax.tick_params(length=0)
    ax.set_yticks([])
    ax.set_title(f"{line.side_names[line.side(side)]}: groups over time")
    ax.spines[:].set_visible(False)
    return ax
