"""Both modes of a checkerboard on one map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gingham.core.posterior import Posterior
from gingham.plots.arrange import embedding
from gingham.plots.style import axes_or_new

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes


def coembedding(
    posterior: Posterior,
    *,
    positions: tuple[int, int] = (0, 1),
    relation: int = 0,
    max_points: int = 2000,
    ax: Axes | None = None,
) -> Axes:
    """Items of two modes in the plane: an item and the partners it gets high answers from lie in one direction.

    Circles are items of the first mode, squares of the second, colours are clusters. At most
    ``max_points`` items of a mode are drawn, evenly spread over the list.
    """
    ax = axes_or_new(ax)
    factor = posterior.structure.factors[relation]
    for points, position, marker in zip(embedding(posterior, positions, relation), positions, "os"):
        mode = factor[position]
        chosen = np.unique(np.linspace(0, len(points) - 1, min(len(points), max_points)).astype(int))
        scale = np.abs(points).max() or 1.0
        labels = posterior.assign[mode][chosen].argmax(axis=1) % 20
        ax.scatter(
            points[chosen, 0] / scale,
            points[chosen, 1] / scale,
            c=labels,
            cmap="tab20",
            vmin=0,
            vmax=19,
            marker=marker,
            s=16,
            alpha=0.7,
            label=posterior.structure.modes[mode].name,
        )
    ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    ax.axvline(0, color="0.85", linewidth=0.8, zorder=0)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.legend(loc="best", fontsize="small")
    return ax
