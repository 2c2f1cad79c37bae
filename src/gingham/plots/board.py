"""A checkerboard at its best: the order of its clusters and items, its picture, and both modes on one map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.problem import Posterior
from gingham.data import Sample
from gingham.errors import GinghamError

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, LinearSegmentedColormap

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


@dataclass(frozen=True, eq=False)
class Arrangement:
    """How two modes are laid out side by side."""

    clusters: tuple[Ints, Ints]  # clusters of the row and of the column mode, in the order shown
    # items in the order shown: by cluster, and within a cluster by their memberships in the others
    items: tuple[Ints, Ints]
    bounds: tuple[Ints, Ints]  # position after the last item of each cluster shown


def arrange(posterior: Posterior, positions: tuple[int, int] = (0, 1), relation: int = 0) -> Arrangement:
    """Clusters in the order of the first singular vectors of the centred cell values, so that like cells meet."""
    factor = posterior.structure.factors[relation]
    if len(factor) < 2 or max(positions) >= len(factor):
        raise GinghamError(f"A checkerboard needs two modes; this relation has {len(factor)}.")
    table = cell_table(posterior, positions, relation)
    masses = [posterior.mass[factor[position]] for position in positions]
    scores = _seriate(table, masses)
    clusters, items, bounds = [], [], []
    for position, score in zip(positions, scores):
        assign = posterior.assign[factor[position]]
        order = np.argsort(score, kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        at = rank[assign.argmax(axis=1)]
        clusters.append(order)
        items.append(np.lexsort((assign @ score, at)))
        bounds.append(np.cumsum(np.bincount(at, minlength=len(order))))
    return Arrangement((clusters[0], clusters[1]), (items[0], items[1]), (bounds[0], bounds[1]))


def cell_table(posterior: Posterior, positions: tuple[int, int] = (0, 1), relation: int = 0) -> Floats:
    """Numeric answers of the cells of two modes, shape (m_row, m_column); other modes averaged by mass."""
    values = np.asarray(posterior.cells[relation].values(posterior.answers[relation]), dtype=np.float64)
    return of_two_modes(posterior, values, positions, relation)


def of_two_modes(posterior: Posterior, table: Floats, positions: tuple[int, int], relation: int) -> Floats:
    """A table (m_1, …, m_d, …) of cells as (m_row, m_column, …); other modes averaged by mass."""
    factor = posterior.structure.factors[relation]
    for axis in reversed(range(len(factor))):
        if axis not in positions:
            table = np.tensordot(table, posterior.mass[factor[axis]], axes=([axis], [0]))
    return table if positions[0] < positions[1] else np.swapaxes(table, 0, 1)


def _seriate(table: Floats, masses: Sequence[Floats]) -> list[Floats]:
    """A number per cluster of each mode: by the mean answer where one direction says nothing more."""
    rows, columns = (np.sqrt(np.maximum(mass, 1e-12)) for mass in masses)
    centred = table - float(masses[0] @ table @ masses[1])
    left, _, right = np.linalg.svd(rows[:, None] * centred * columns[None, :], full_matrices=False)
    scores = [left[:, 0] / rows, right[0] / columns]
    # The sign is free: rows with low answers come first, columns likewise.
    means = [table @ masses[1], masses[0] @ table]
    return [s if np.dot(mass * s, m) >= 0 else -s for s, m, mass in zip(scores, means, masses)]


def picture(
    sample: Sample,
    items: tuple[Ints, Ints] | None = None,
    positions: tuple[int, int] = (0, 1),
    max_pixels: int = 1000,
    zeros: bool = False,
) -> Floats:
    """The mean label under each pixel, rows and columns in the given order; NaN where nothing was observed.

    At most ``max_pixels`` pixels a side: several items share a pixel when there are more of them. With ``zeros``
    what is not listed counts as zero, so that a pixel shows the mean over all its pairs.
    """
    shape = tuple(sample.shape[position] for position in positions)
    at, size, shared = [], [], []
    for side, position in enumerate(positions):
        rank = np.arange(shape[side])
        if items is not None:
            rank = np.empty(shape[side], dtype=np.int64)
            rank[items[side]] = np.arange(shape[side])
        n_pixels = min(shape[side], max_pixels)
        pixels = rank * n_pixels // max(shape[side], 1)
        at.append(pixels[sample.codes[position]])
        shared.append(np.bincount(pixels, minlength=n_pixels))
        size.append(n_pixels)
    flat = at[0] * size[1] + at[1]
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    count = np.bincount(flat, weights, minlength=size[0] * size[1])
    total = np.bincount(flat, weights * labels, minlength=size[0] * size[1])
    if zeros:
        count = np.outer(shared[0], shared[1]).ravel().astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (total / count).reshape(size[0], size[1])


def embedding(posterior: Posterior, positions: tuple[int, int], relation: int) -> tuple[Floats, Floats]:
    """Both modes on one map: an item and the items it gets high answers from lie in the same direction.

    The singular vectors of the centred cells, weighted by cluster masses, as in correspondence analysis.
    """
    factor = posterior.structure.factors[relation]
    table = cell_table(posterior, positions, relation)
    masses = [posterior.mass[factor[position]] for position in positions]
    rows, columns = (np.sqrt(np.maximum(mass, 1e-12)) for mass in masses)
    centred = table - (masses[0] @ table)[None, :] - (table @ masses[1])[:, None] + masses[0] @ table @ masses[1]
    left, scale, right = np.linalg.svd(rows[:, None] * centred * columns[None, :], full_matrices=False)
    places = []
    for side, (vectors, root) in enumerate(((left, rows), (right.T, columns))):
        coordinates = np.zeros((len(root), 2))
        k = min(2, vectors.shape[1])
        coordinates[:, :k] = vectors[:, :k] * np.sqrt(scale[:k]) / root[:, None]
        assign = np.asarray(posterior.assign[factor[positions[side]]], dtype=np.float64)
        places.append(assign @ coordinates)
    return places[0], places[1]


def checkerboard(
    model: Any,
    sample: Sample | None = None,
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
    model : fitted model of any family, or Posterior
        A model alone draws what it was fitted on, in the order of the groups of its summary.
    sample : Sample, optional
        With ``model.posterior_`` in the place of the model: ``model.sample(X, y)``, training data or other.
    reorder : bool
        False shows items in the order of their ids, for a picture of before.
    positions : pair of int
        Which two modes, when there are more.
    """
    if sample is None:
        from gingham.plots.named import ordered_matrix

        return ordered_matrix(model, reorder=reorder, lines=lines, cmap=cmap, max_pixels=max_pixels, ax=ax)
    posterior: Posterior = getattr(model, "posterior_", model)
    posterior, sample = posterior.at_root(sample, named=True)  # a tree is a grid at its roots
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
