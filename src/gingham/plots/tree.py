"""A tree of merges as a picture: what each node knows, and how much of it goes up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gingham.core.posterior import Posterior
from gingham.core.structure import Tree
from gingham.errors import GinghamError
from gingham.plots.style import INK, axes_or_new

if TYPE_CHECKING:  # pragma: no cover
    from matplotlib.axes import Axes


def tree(posterior: Posterior, *, ax: Axes | None = None) -> Axes:
    """Leaves below, cells above; lines as thick as the information Ī that passes (P0 §7.2).

    Parameters
    ----------
    posterior : TreePosterior
        ``model.posterior_`` of a TreeCoClustering.
    """
    structure = posterior.structure
    if not isinstance(structure, Tree):
        raise GinghamError("plots.tree draws a tree; for a grid use plots.checkerboard.")
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
