"""The demo's picture: the matrix before and after, and digits original, with holes and filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gingham.arrays import Anything, Floats
from gingham.errors import GinghamError
from gingham.plots.checkerboard import checkerboard
from gingham.plots.style import INK, UNSEEN

N_DIGITS = 14
ROWS = ("original", "60 % hidden", "filled in")


def draw(
    folder: Path, model: Any, digits: Anything, visible: Anything, filled: Floats, X: Anything, y: Anything
) -> None:
    """Write ``digits.png``."""
    try:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt
    except ImportError:
        raise GinghamError("The demo draws pictures and needs matplotlib: install gingham[plot].") from None
    figure = plt.figure(figsize=(12, 5.2), facecolor="white")
    sides = figure.add_gridspec(
        1, 2, width_ratios=(1.15, 2.1), left=0.045, right=0.99, bottom=0.07, top=0.9, wspace=0.1
    )
    boards = sides[0].subgridspec(1, 2, wspace=0.12)
    sample = model.sample(X, y)
    for at, (reorder, title) in enumerate(((False, "40 % of the pixels"), (True, "reordered by clusters"))):
        ax = figure.add_subplot(boards[at])
        checkerboard(model.posterior_, sample, reorder=reorder, ax=ax, cmap="magma_r")
        ax.set_title(title, color=INK, fontsize=11)
        ax.set_xlabel("64 pixels", color=INK)
        ax.set_ylabel("1797 images" if at == 0 else "", color=INK)
        ax.set_xticks([])
        ax.set_yticks([])
    grid = sides[1].subgridspec(3, N_DIGITS, wspace=0.08, hspace=0.08)
    holes = np.where(visible, digits, np.nan)
    for column, image in enumerate(_examples(len(digits))):
        for row, pixels in enumerate((digits[image], holes[image], filled[image])):
            ax = figure.add_subplot(grid[row, column])
            ax.set_facecolor(UNSEEN)
            ax.imshow(np.ma.masked_invalid(pixels.reshape(8, 8)), cmap="magma_r", vmin=0, vmax=16)
            ax.set_xticks([])
            ax.set_yticks([])
            for spine in ax.spines.values():
                spine.set_visible(False)
            if column == 0:
                ax.set_ylabel(ROWS[row], color=INK, fontsize=11)
    figure.savefig(folder / "digits.png", dpi=110)
    plt.close(figure)


def _examples(n_images: int) -> Anything:
    """Images spread over the data."""
    return np.linspace(3, n_images - 1, N_DIGITS).astype(int)
