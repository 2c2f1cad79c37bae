"""A summary as pictures: the named checkerboard with its trees, and the observed matrix in the order of the groups."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gingham.arrays import Floats
from gingham.data import Sample
from gingham.plots.board import INK, axes_or_new, draw_matrix, picture
from gingham.summary.values import Observed, Side, Summary, counted

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, LinearSegmentedColormap

GREY = "#7b8794"
DIVERGING = ("#6f9fc2", "#a9c6dc", "#dbe7ef", "#f8f6f1", "#f5cdb8", "#dd7a5c", "#a33224")
ROOT = 0.5  # power of a cluster's mass that the side of its box grows with
LEGENDS = {
    "lift": "how often, compared with chance",
    "difference": "compared with the averages",
    "labels": "share of the commonest label",
}
NEAREST, DEEP = 5, 24  # points between the board and its trees, and of the trees
NAME_WIDTH = 30  # letters of a line of a row's name


def named_board(
    summary: Summary, *, size: Sequence[int] | int | None = None, table: int = 0, ax: Axes | None = None
) -> Axes:
    """The blocks of two sides with the names of their groups, sizes, and the trees that join them.

    Parameters
    ----------
    summary : Summary
        ``model.summary_``.
    size : one int a side, optional
        Groups to show; the readable number by default.
    table : int
        Which two sides, where there are more.
    """
    board = summary.board(size, table)
    at = summary.sized(size)
    left, right = (summary.sides[i] for i in summary.tables[table].sides)
    k = [at[i] for i in summary.tables[table].sides]
    if ax is None:
        wide, high = max(6.5, 4.2 + 1.35 * k[1]), max(4.0, 2.6 + 0.85 * k[0])
        ax = axes_or_new(None, figsize=(wide, high))
    colours, strengths = diverging(), board.strengths
    heights, widths = (_lengths([c.mass for c in clusters]) for clusters in (board.rows, board.columns))
    y, x = (np.concatenate([[0.0], np.cumsum(part)]) for part in (heights, widths))
    for i in range(k[0]):
        for j in range(k[1]):
            strength = float(strengths[i, j])
            face = colours(0.5 + 0.5 * strength)
            ax.fill_between([x[j] + 0.004, x[j + 1] - 0.004], y[i] + 0.006, y[i + 1] - 0.006, color=face, linewidth=0)
            text = board.text(i, j)
            ax.text((x[j] + x[j + 1]) / 2, (y[i] + y[i + 1]) / 2, text.replace(" ", "\n", 1), ha="center", va="center",
                    color="white" if strength > 0.6 else GREY if text == "·" else INK)  # fmt: skip
    ax.set_xlim(0, 1)
    ax.set_ylim(1, 0)
    middle = [(edges[1:] + edges[:-1]) / 2 for edges in (y, x)]
    ax.set_yticks(middle[0], [_label(c.name, c.size, left.name, NAME_WIDTH) for c in board.rows])
    label_values = [max(9, int(90 * width)) for width in widths]
    names = [_label(c.name, c.size, right.name, n) for c, n in zip(board.columns, label_values)]
    ax.set_xticks(middle[1], names)
    ax.xaxis.tick_top()
    ax.tick_params(length=0, labelsize="small", labelcolor=INK)
    for spine in ax.spines.values():
        spine.set_visible(False)
    _tree(ax, left, k[0], middle[0], upright=False)
    if right is not left:
        _tree(ax, right, k[1], middle[1], upright=True)
    ax.set_title(f"{left.name} ↓   {right.name} →", loc="left", fontsize="small", color=GREY)
    ax.set_xlabel(
        f"{LEGENDS[board.measure]}; groups that join first are most alike",
        fontsize="small",
        color=GREY,
        labelpad=NEAREST + DEEP + 5,
    )
    return ax


def diverging() -> LinearSegmentedColormap:
    """Blue below, white as expected, red above."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("gingham-diverging", DIVERGING)


def _lengths(masses: Sequence[float]) -> Floats:
    """Sides of boxes that grow with the mass of a cluster, none too small to be written in."""
    root = np.maximum(np.array(masses, dtype=np.float64), 1e-12) ** ROOT
    root = np.maximum(root / root.sum(), 0.6 / len(root))
    return np.asarray(root / root.sum())


def _label(name: str, size: int, side: str, width: int) -> str:
    lines = textwrap.wrap(name, width, break_long_words=False, max_lines=4, placeholder=" …")
    return "\n".join([*lines, counted(size, side)])


def _tree(ax: Axes, side: Side, k: int, middle: Floats, upright: bool) -> None:
    """Brackets outside the board: to its right for rows, below it for columns."""
    nodes = side.nodes(k)
    place = {node: (float(middle[number]), 0.0) for number, node in enumerate(nodes)}
    start = side.n_leaves - k
    for step, (a, b) in enumerate(side.merges[start:].tolist(), start=1):
        depth = step / max(k - 1, 1)
        (p, low), (q, other) = place[a], place[b]
        for at, begin in ((p, low), (q, other)):
            _line(ax, (begin, depth), (at, at), upright)
        _line(ax, (depth, depth), (p, q), upright)
        place[side.n_leaves + start + step - 1] = ((p + q) / 2, depth)


def _line(ax: Axes, depth: tuple[float, float], along: tuple[float, float], upright: bool) -> None:
    """A line outside the board, as far from it in points as its depth says, however large the board is."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    away = [(NEAREST + DEEP * d) / 72 for d in depth]  # inches
    edges: Any = ax.transAxes  # affine, which its type does not say
    corner = ax.figure.dpi_scale_trans + ScaledTranslation(0 if upright else 1, 0, edges)
    where = blended_transform_factory(*((ax.transData, corner) if upright else (corner, ax.transData)))
    ends = (along, [-inches for inches in away]) if upright else (away, along)
    ax.plot(*ends, color=GREY, linewidth=1.2, clip_on=False, solid_capstyle="round", transform=where)


def ordered_matrix(
    model: Any,
    *,
    reorder: bool = True,
    lines: bool = True,
    cmap: str | Colormap | None = None,
    max_pixels: int = 1000,
    ax: Axes | None = None,
) -> Axes:
    """The observed matrix of a fitted model, in the order of its summary's groups, with lines between them."""
    summary: Summary = model.summary_
    observed = model._observed()
    sample, sides = observed_matrix(observed), observed.relations[0].sides[:2]
    orders, ends = [], []
    for at in sides:
        labels = summary.sides[at].labels(summary.size[at])
        orders.append(summary.sides[at].listed(summary.sides[at].n_items))
        ends.append(np.cumsum(np.bincount(labels)))
    zeros = observed.relations[0].measure == "lift"
    image = picture(sample, (orders[0], orders[1]) if reorder else None, max_pixels, zeros)
    return draw_matrix(image, sample.modes, ends if reorder and lines else (), cmap, ax)


def observed_matrix(observed: Observed) -> Sample:
    """Observations of the first two sides: labels as they are, or counts."""
    relation = observed.relations[0]
    pair = relation.plain().pair(0, 1)
    values = pair.weight if pair.values is None else np.asarray(pair.values, dtype=np.float64)
    return Sample(tuple(observed.modes[side] for side in relation.sides[:2]), pair.codes, values)
