"""A checkerboard at its best: the order of its clusters and items, its picture, and both modes on one map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.problem import Posterior
from gingham.data import Mode, Sample
from gingham.errors import GinghamError

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, LinearSegmentedColormap

UNSEEN = "#d9d9de"  # where nothing was observed
INK = "#22303c"
ACCENT = "#c8553d"
COOL = "#2f6690"
COLOURS = ("#fbf8f2", "#f0c9b4", "#d9775c", "#a8352f", "#45101c")  # from white thread to red check


def axes_or_new(ax: Axes | None, **options: Any) -> Axes:
    """The given Axes, or those of a new figure with these options."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise GinghamError("Pictures need matplotlib: install gingham[plot].") from None
    made: Axes = plt.subplots(layout="constrained", **options)[1]
    return made


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


def arrange(posterior: Posterior) -> Arrangement:
    """Clusters in the order of the first singular vectors of the centred cell values, so that like cells meet."""
    table, masses, assigns = two_modes(posterior)
    rows, _, columns = singular_vectors(table - float(masses[0] @ table @ masses[1]), masses)
    means = (table @ masses[1], masses[0] @ table)
    clusters, items, bounds = [], [], []
    for score, mean, mass, assign in zip((rows[:, 0], columns[:, 0]), means, masses, assigns):
        # The sign is free: rows with low answers come first, columns likewise.
        score = score if np.dot(mass * score, mean) >= 0 else -score
        order = np.argsort(score, kind="stable")
        at = np.argsort(order)[assign.argmax(axis=1)]
        clusters.append(order)
        items.append(np.lexsort((assign @ score, at)))
        bounds.append(np.cumsum(np.bincount(at, minlength=len(order))))
    return Arrangement((clusters[0], clusters[1]), (items[0], items[1]), (bounds[0], bounds[1]))


def two_modes(posterior: Posterior) -> tuple[Floats, list[Floats], list[Floats]]:
    """Numeric answers of the cells of the first two modes, further ones averaged by mass; masses and memberships."""
    factor = posterior.structure.factors[0]
    if len(factor) < 2:
        raise GinghamError(f"A checkerboard needs two modes; this relation has {len(factor)}.")
    table = np.asarray(posterior.cells[0].values(posterior.answers[0]), dtype=np.float64)
    for mode in factor[:1:-1]:
        table = table @ posterior.mass[mode]
    return table, [posterior.mass[mode] for mode in factor[:2]], [posterior.assign[mode] for mode in factor[:2]]


def singular_vectors(table: Floats, masses: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """Left vectors, values and right vectors of a table whose clusters count by their masses."""
    rows, columns = (np.sqrt(np.maximum(mass, 1e-12)) for mass in masses)
    left, scale, right = np.linalg.svd(rows[:, None] * table * columns, full_matrices=False)
    return left / rows[:, None], scale, right.T / columns[:, None]


def picture(
    sample: Sample, items: tuple[Ints, Ints] | None = None, max_pixels: int = 1000, zeros: bool = False
) -> Floats:
    """The mean label under each pixel, rows and columns in the given order; NaN where nothing was observed.

    At most ``max_pixels`` pixels a side: several items share a pixel when there are more of them. With ``zeros``
    what is not listed counts as zero, so that a pixel shows the mean over all its pairs.
    """
    at, shared = [], []
    for side, n in enumerate(sample.shape[:2]):
        rank = np.arange(n) if items is None else np.argsort(items[side])
        pixels = rank * min(n, max_pixels) // max(n, 1)
        at.append(pixels[sample.codes[side]])
        shared.append(np.bincount(pixels))
    shape = (len(shared[0]), len(shared[1]))
    flat = at[0] * shape[1] + at[1]
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    total = np.bincount(flat, weights * labels, shape[0] * shape[1]).reshape(shape)
    if zeros:
        return np.asarray(total / np.outer(*shared))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(total / np.bincount(flat, weights, shape[0] * shape[1]).reshape(shape))


def checkerboard(
    model: Any,
    sample: Sample | None = None,
    *,
    reorder: bool = True,
    lines: bool = True,
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
    """
    if sample is None:
        from gingham.plots.named import ordered_matrix

        return ordered_matrix(model, reorder=reorder, lines=lines, cmap=cmap, max_pixels=max_pixels, ax=ax)
    posterior: Posterior = getattr(model, "posterior_", model)
    posterior, sample = posterior.at_root(sample, named=True)  # a tree is a grid at its roots
    layout = arrange(posterior)
    image = picture(sample, layout.items if reorder else None, max_pixels)
    modes = [posterior.structure.modes[mode] for mode in posterior.structure.factors[0][:2]]
    return draw_matrix(image, modes, layout.bounds if reorder and lines else (), cmap, ax)


def draw_matrix(
    image: Floats,
    modes: Sequence[Mode],
    bounds: Sequence[Ints] = (),
    cmap: str | Colormap | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A picture of two modes, with lines after the last item of every cluster where ``bounds`` say where that is."""
    ax = axes_or_new(ax)
    ax.set_facecolor(UNSEEN)
    shape = [mode.n_items for mode in modes]
    ax.imshow(np.ma.masked_invalid(image), cmap=colormap() if cmap is None else cmap, aspect="auto",
              interpolation="nearest", extent=(0, shape[1], shape[0], 0))  # fmt: skip
    for ends, n, draw in zip(bounds, shape, (ax.axhline, ax.axvline)):
        for end in np.unique(ends[ends < n]).tolist():
            draw(end, color=INK, linewidth=0.5, alpha=0.8)
    ax.set_ylabel(modes[0].name)
    ax.set_xlabel(modes[1].name)
    return ax


def coembedding(posterior: Posterior, *, max_points: int = 2000, ax: Axes | None = None) -> Axes:
    """Items of two modes in the plane: an item and the partners it gets high answers from lie in one direction.

    The places are singular vectors of the cells without main effects, weighted by the masses of the clusters, as in
    correspondence analysis. Circles are items of the first mode, squares of the second, colours are clusters. At most
    ``max_points`` items of a mode are drawn, evenly spread over the list.
    """
    ax = axes_or_new(ax)
    table, masses, assigns = two_modes(posterior)
    centred = table - masses[0] @ table - (table @ masses[1])[:, None] + masses[0] @ table @ masses[1]
    left, scale, right = singular_vectors(centred, masses)
    modes = [posterior.structure.modes[mode] for mode in posterior.structure.factors[0][:2]]
    for vectors, assign, mode, marker in zip((left, right), assigns, modes, "os"):
        chosen = np.unique(np.linspace(0, len(assign) - 1, min(len(assign), max_points)).astype(int))
        places = np.zeros((len(vectors), 2))
        k = min(2, vectors.shape[1])
        places[:, :k] = vectors[:, :k] * np.sqrt(scale[:k])
        points = np.asarray(assign, dtype=np.float64) @ places
        x, y = points[chosen].T / (np.abs(points).max() or 1.0)
        ax.scatter(x, y, c=assign[chosen].argmax(axis=1) % 20, cmap="tab20", vmin=0, vmax=19, marker=marker, s=16,
                   alpha=0.7, label=mode.name)  # fmt: skip
    ax.axhline(0, color="0.85", linewidth=0.8, zorder=0)
    ax.axvline(0, color="0.85", linewidth=0.8, zorder=0)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.legend(loc="best", fontsize="small")
    return ax
