"""A path of β: losses and certificate against the trade-off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gingham.plots.style import axes_or_new
from gingham.selection import BetaPath

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes

LINES = (
    ("certificate", "certificate"),
    ("cv_loss", "held out (Gibbs)"),
    ("cv_prediction", "held out (prediction)"),
    ("loss", "training (Gibbs)"),
)


def path(found: BetaPath, *, ax: Axes | None = None) -> Axes:
    """Losses and certificate of every point of a path; ``found.plot()`` draws the information below them."""
    ax = axes_or_new(ax)
    table = found.table
    for name, label in LINES:
        if np.isfinite(table[name]).any():
            ax.plot(table["beta"], table[name], marker="o", markersize=4, label=label)
    ax.set_xscale("log")
    ax.set_xlabel("β")
    ax.set_ylabel("loss")
    ax.legend()
    return ax
