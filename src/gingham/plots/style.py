"""Colours and the blank Axes that all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gingham.errors import GinghamError

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap

UNSEEN = "#d9d9de"  # where nothing was observed
INK = "#22303c"
ACCENT = "#c8553d"
COOL = "#2f6690"
COLOURS = ("#fbf8f2", "#f0c9b4", "#d9775c", "#a8352f", "#45101c")  # from white thread to red check


def axes_or_new(ax: Axes | None) -> Axes:
    """The given Axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise GinghamError("Pictures need matplotlib: install gingham[plot].") from None
    return plt.subplots(layout="constrained")[1]


def colormap() -> LinearSegmentedColormap:
    """The colour map of a checkerboard."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("gingham", COLOURS)
