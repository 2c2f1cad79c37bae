"""Values as pictures: certificates, watches, clusters and clusterings, trees of merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

from gingham.certificates import Certificate, Watch
from gingham.core.problem import Posterior
from gingham.core.tree import need_tree
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.plots.board import ACCENT, COOL, INK, UNSEEN, axes_or_new, colormap

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes


def waterfall(certificate: Certificate, *, ax: Axes | None = None) -> Axes:
    """From the observed loss up to the guarantee, one step per term.

    The gap between the two is dealt out in proportion to the nats of each term; deductions (negative
    terms) step down.
    """
    terms = {name: nats for name, nats in certificate.terms.items() if nats != 0}
    total = sum(terms.values())
    if not terms or total <= 0 or not np.isfinite(certificate.value):
        raise GinghamError("This certificate has no terms to draw.")
    ax = axes_or_new(ax)
    gap = certificate.value - certificate.empirical
    steps = np.array(list(terms.values())) / total * gap
    tops = certificate.empirical + np.cumsum(steps)
    bottoms = tops - steps
    rows = np.arange(len(terms) + 2)
    ax.barh(0, certificate.empirical, color=COOL)
    ax.barh(rows[1:-1], steps, left=bottoms, color=[ACCENT if s > 0 else UNSEEN for s in steps])
    ax.barh(rows[-1], certificate.value, color=INK)
    for row, (end, nats) in enumerate(zip(np.maximum(tops, bottoms), terms.values()), start=1):
        ax.annotate(f" {nats:,.1f}", (end, row), va="center", fontsize="small", color=INK)
    ax.annotate(f" {certificate.empirical:.4g}", (certificate.empirical, 0), va="center", color=INK)
    ax.annotate(f" {certificate.value:.4g}", (certificate.value, rows[-1]), va="center", color=INK, weight="bold")
    ax.set_yticks(rows, ["observed loss", *terms, "guarantee"])
    ax.invert_yaxis()
    ax.set_xlim(right=max(certificate.value, float(tops.max())) * 1.12)
    ax.set_xlabel(f"{certificate.loss} loss (numbers at the steps: nats)")
    ax.set_title(f"{certificate.bound}, confidence {100 * (1 - certificate.delta):g} %")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def evidence(watch: Watch, *, ax: Axes | None = None) -> Axes:
    """The evidence against a promise while rows arrived, and where it is proof."""
    ax = axes_or_new(ax)
    rows = [0, *(n for n, _ in watch.history)]
    ax.plot(rows, [0.0, *(logs / np.log(10) for _, logs in watch.history)], color=ACCENT)
    ax.axhline(-np.log10(watch.alpha), color=INK, linestyle="--", linewidth=1)
    ax.annotate("proof that the promise has ended", (0, -np.log10(watch.alpha)), va="bottom", color=INK)
    if watch.ended is not None:
        ax.axvline(watch.ended, color=INK, linewidth=1)
    ax.set_xlabel("rows")
    ax.set_ylabel("evidence against the promise (powers of ten)")
    ax.set_title(f"{watch.loss.name} loss at most {watch.facts['value']:.4g}: {watch.verdict}")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def contingency(
    first: npt.ArrayLike, second: npt.ArrayLike, *, names: tuple[str, str] = ("first", "second"), ax: Axes | None = None
) -> Axes:
    """How many items each pair of clusters shares; columns in the order that puts large numbers on the diagonal."""
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape or first.ndim != 1:
        raise GinghamError(f"Two flat arrays of one length are needed, not of shapes {first.shape} and {second.shape}.")
    table = contingency_matrix(first, second)
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
    """Plot the loss on a sample against Σ n_i Ī_i / N, the information per observation; β grows from left to right.

    A mapping's keys (values of β, say) are written at the points.
    """
    named = dict(posteriors) if isinstance(posteriors, Mapping) else dict(enumerate(posteriors))
    if not named:
        raise GinghamError("There is no posterior to draw.")
    price = [sum(len(q) * i for q, i in zip(p.assign, p.information)) / sample.n_observations for p in named.values()]
    loss = [p.gibbs_loss(sample) for p in named.values()]
    ax = axes_or_new(ax)
    ax.plot(price, loss, color=COOL, marker="o", markerfacecolor=ACCENT, markeredgecolor="white")
    if isinstance(posteriors, Mapping):
        for name, x, y in zip(named, price, loss):
            ax.annotate(
                f"{name:g}" if isinstance(name, float) else str(name), (x, y), (4, 4), textcoords="offset points"
            )
    ax.set_xlabel("information, nats per observation")
    ax.set_ylabel("loss")
    return ax


def tree(posterior: Posterior, *, ax: Axes | None = None) -> Axes:
    """Leaves below, cells above; lines as thick as the information Ī that passes (P0 §7.2).

    Parameters
    ----------
    posterior : TreePosterior
        ``model.posterior_`` of a TreeCoClustering.
    """
    structure = need_tree(posterior, "plots.tree draws a tree; for a grid use plots.checkerboard.").structure
    ax = axes_or_new(ax)
    across = {leaf: float(leaf) for leaf in range(structure.n_leaves)}
    height = dict.fromkeys(range(structure.n_leaves), 0)
    for i, children in enumerate(structure.children):
        node = structure.n_leaves + i
        across[node] = sum(across[child] for child in children) / len(children)
        height[node] = 1 + max(height[child] for child in children)
    top = 1 + max(height[root] for root in structure.roots)
    middle = sum(across[root] for root in structure.roots) / len(structure.roots)
    parents = {child: structure.n_leaves + i for i, children in enumerate(structure.children) for child in children}
    box = {"boxstyle": "round", "facecolor": "white", "edgecolor": INK}
    for node, mode in enumerate(structure.tables):
        parent = parents.get(node)
        end = (middle, top) if parent is None else (across[parent], height[parent])
        nats = posterior.information[mode]
        ax.plot(
            [across[node], end[0]], [height[node], end[1]], color=INK, alpha=0.5, linewidth=0.5 + 3.0 * nats, zorder=1
        )
        half = ((across[node] + end[0]) / 2, (height[node] + end[1]) / 2)
        ax.annotate(f"{nats:.2f}", half, ha="center", va="center", fontsize="small", color=INK)
        name = structure.modes[mode].name if node < structure.n_leaves else "merge"
        text = f"{name}\n{structure.modes[mode].n_items} in {posterior.n_clusters[mode]}"
        ax.text(across[node], height[node], text, ha="center", va="center", bbox=box, fontsize="small", zorder=2)
    cells = " × ".join(str(m) for m in posterior.answers[0].shape[: len(structure.roots)])
    ax.text(middle, top, f"{cells} cells", ha="center", va="center", bbox=box, fontsize="small", zorder=2)
    ax.set_xlim(-0.6, structure.n_leaves - 0.4)
    ax.set_ylim(-0.4, top + 0.4)
    ax.set_axis_off()
    return ax
