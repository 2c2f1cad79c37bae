"""Two clusterings against each other, and posteriors in the plane of loss and information."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.metrics.cluster import contingency_matrix

from gingham.core.posterior import Posterior
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.plots.style import ACCENT, COOL, axes_or_new, colormap

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes


def contingency(
    first: npt.ArrayLike, second: npt.ArrayLike, *, names: tuple[str, str] = ("first", "second"), ax: Axes | None = None
) -> Axes:
    """How many items each pair of clusters shares; columns in the order that puts large numbers on the diagonal."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape or first.ndim != 1:
        raise GinghamError(f"Two flat arrays of one length are needed, not of shapes {first.shape} and {second.shape}.")
    table = contingency_matrix(first, second)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(-table)
    order = [*columns[np.argsort(rows)], *(c for c in range(table.shape[1]) if c not in set(columns))]
    ax = axes_or_new(ax)
    ax.imshow(table[:, order], cmap=colormap(), aspect="auto")
    half = table.max() / 2
    for (row, column), count in np.ndenumerate(table[:, order]):
        ax.text(column, row, str(count), ha="center", va="center", color="white" if count > half else "black")
    ax.set_yticks(range(table.shape[0]), [str(v) for v in np.unique(first)])
    ax.set_xticks(range(table.shape[1]), [str(np.unique(second)[c]) for c in order])
    ax.set_ylabel(names[0])
    ax.set_xlabel(names[1])
    return ax


def information_plane(
    posteriors: Sequence[Posterior] | Mapping[object, Posterior], sample: Sample, *, ax: Axes | None = None
) -> Axes:
    """Loss on a sample against Σ n_i Ī_i / N, the information a tuple pays for; a path of β goes left to right.

    A mapping's keys (values of β, say) are written at the points.
    """
    named = dict(posteriors) if isinstance(posteriors, Mapping) else dict(enumerate(posteriors))
    if not named:
        raise GinghamError("There is no posterior to draw.")
    price = [sum(len(q) * i for q, i in zip(p.assign, p.information)) / sample.n_tuples for p in named.values()]
    loss = [p.gibbs_loss(sample) for p in named.values()]
    ax = axes_or_new(ax)
    ax.plot(price, loss, color=COOL, marker="o", markerfacecolor=ACCENT, markeredgecolor="white")
    if isinstance(posteriors, Mapping):
        for name, x, y in zip(named, price, loss):
            ax.annotate(
                f"{name:g}" if isinstance(name, float) else str(name), (x, y), (4, 4), textcoords="offset points"
            )
    ax.set_xlabel("information, nats per tuple")
    ax.set_ylabel("loss")
    return ax
