"""The demo's picture: the matrix before and after, and digits original, with holes and filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cli.demo_data import tuples
from gingham.errors import GinghamError
from gingham.plots.board import INK, UNSEEN, checkerboard, colormap

DIGITS = range(10)  # images that are shown: they happen to be the digits 0 to 9
ROWS = ("original", "60 % hidden", "filled in")


def draw(path: Path, readable: Any, digits: AnyArray, visible: AnyArray, filled: Floats, names: list[str]) -> None:
    """Write the picture; ``readable`` is the coarse model whose clusters order the matrix."""
    try:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise GinghamError("The demo draws pictures and needs matplotlib: install gingham[plot].") from None
    figure = plt.figure(figsize=(12, 3.4), facecolor="white")
    sides = figure.add_gridspec(
        1, 2, width_ratios=(1, 2.45), left=0.005, right=0.995, bottom=0.07, top=0.91, wspace=0.06
    )
    boards = sides[0].subgridspec(1, 2, wspace=0.06)
    holes = np.where(visible, digits, np.nan)
    for at, (values, title) in enumerate(((holes, "1797 digits, 60 % hidden"), (filled, "filled in, by clusters"))):
        ax = figure.add_subplot(boards[at])
        X, y = tuples(values, np.isfinite(values), names)
        sample = readable.sample(X, np.rint(y).astype(int))
        checkerboard(readable.posterior_, sample, reorder=at == 1, ax=ax)
        ax.set_title(title, color=INK, fontsize=10)
        ax.set_xlabel("64 pixels", color=INK)
        ax.set_ylabel("")
        _bare(ax)
    grid = sides[1].subgridspec(3, len(DIGITS), wspace=0.05, hspace=0.05)
    for column, image in enumerate(DIGITS):
        for row, pixels in enumerate((digits[image], holes[image], filled[image])):
            ax = figure.add_subplot(grid[row, column])
            ax.set_facecolor(UNSEEN)
            ax.imshow(np.ma.masked_invalid(pixels.reshape(8, 8)), cmap=colormap(), vmin=0, vmax=16)
            _bare(ax)
            if column == 0:
                ax.set_ylabel(ROWS[row], color=INK, fontsize=10)
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
    plt.close(figure)


def _bare(ax: Any) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
