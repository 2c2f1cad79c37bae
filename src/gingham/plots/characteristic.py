"""The words (items) that characterise each cluster, as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gingham.plots.style import ACCENT, INK, axes_or_new

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes


def characteristic(table: Mapping[str, npt.ArrayLike], cluster: int, ax: Axes | None = None) -> Axes:
    """Contributions to the information of one cluster's top columns, largest on top.

    Parameters
    ----------
    table : what ``CoOccurrenceClustering.characteristic()`` returns
    cluster : int
    """
    ax = axes_or_new(ax)
    mine = np.flatnonzero(np.asarray(table["cluster"]) == cluster)[::-1]
    names = [str(name) for name in np.asarray(table["column"])[mine]]
    ax.barh(range(len(mine)), np.asarray(table["contribution"])[mine], color=ACCENT, height=0.7)
    ax.set_yticks(range(len(mine)), names, color=INK)
    ax.set_xlabel("contribution to the information (nats)")
    ax.set_title(f"cluster {cluster}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax
