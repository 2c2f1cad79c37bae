"""The data as a picture, in the order of its clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gingham.core.posterior import Posterior
from gingham.core.tree import TreePosterior
from gingham.data import Sample
from gingham.plots.arrange import arrange, picture
from gingham.plots.style import INK, UNSEEN, axes_or_new, colormap

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


def checkerboard(
    posterior: Posterior,
    sample: Sample,
    *,
    reorder: bool = True,
    lines: bool = True,
    positions: tuple[int, int] = (0, 1),
    relation: int = 0,
    cmap: str | Colormap | None = None,
    max_pixels: int = 1000,
    ax: Axes | None = None,
) -> Axes:
    """The observed matrix; with ``reorder`` by clusters, with lines between them.

    Parameters
    ----------
    posterior : Posterior
        ``model.posterior_``.
    sample : Sample
        ``model.sample(X, y)``: what is drawn, training data or other.
    reorder : bool
        False shows items in the order of their ids, for a picture of before.
    positions : pair of int
        Which two modes, when there are more.

    Returns
    -------
    Axes
    """
    if isinstance(posterior, TreePosterior):  # a grid at its roots
        posterior, sample = posterior.at_root(sample, named=True)
    ax = axes_or_new(ax)
    layout = arrange(posterior, positions, relation)
    image = picture(sample, layout.items if reorder else None, positions, max_pixels)
    shape = tuple(sample.shape[position] for position in positions)
    ax.set_facecolor(UNSEEN)
    ax.imshow(
        np.ma.masked_invalid(image),
        cmap=colormap() if cmap is None else cmap,
        aspect="auto",
        interpolation="nearest",
        extent=(0, shape[1], shape[0], 0),
    )
    if reorder and lines:
        for bounds, n, draw in zip(layout.bounds, shape, (ax.axhline, ax.axvline)):
            for bound in np.unique(bounds)[:-1]:
                if bound < n:
                    draw(bound, color=INK, linewidth=0.5, alpha=0.8)
    factor = posterior.structure.factors[relation]
    names = [posterior.structure.modes[factor[position]].name for position in positions]
    ax.set_ylabel(names[0])
    ax.set_xlabel(names[1])
    return ax
