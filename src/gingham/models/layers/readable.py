"""Layers to be read: clusters in the order of their effect, with the items in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.data import Mode
from gingham.models.layers.model import Draws, SoftLayers


@dataclass(frozen=True, eq=False)
class Layer:
    """One checkerboard of the sum.

    Attributes
    ----------
    modes : tuple of Mode
    labels : tuple of arrays (n_items,), the cluster of each item
    cells : array (m_1, …, m_d), what the layer adds to the prediction
    strength : float
        Root mean square of the cells, each weighted by the items that meet in it.
    """

    modes: tuple[Mode, ...]
    labels: tuple[Ints, ...]
    cells: Floats
    strength: float

    def items(self, mode: int, cluster: int) -> AnyArray:
        """Ids in one cluster."""
        return self.modes[mode].items[self.labels[mode] == cluster]

    def __str__(self) -> str:
        """The checkerboard as text, one line per cluster of the first mode."""
        sizes = [np.bincount(c, minlength=m) for c, m in zip(self.labels, self.cells.shape)]
        lines = [f"layer of strength {self.strength:.3f}: " + " × ".join(mode.name for mode in self.modes)]
        if self.cells.ndim != 2:
            return lines[0]
        lines.append(" " * 14 + " ".join(f"{n:>6d}" for n in sizes[1]) + "   items a column")
        for n, row in zip(sizes[0], self.cells):
            lines.append(f"{n:>6d} items |" + " ".join(f"{value:+6.2f}" for value in row))
        return "\n".join(lines)


def readable(model: Draws | tuple[SoftLayers, ...], modes: Sequence[Mode]) -> tuple[Layer, ...]:
    """The layers of the last draw or the first member, strongest first."""
    if isinstance(model, Draws):
        boards = [model.checkerboard(model.n_draws - 1, t) for t in range(model.labels.shape[1])]
    else:
        boards = [(tuple(q.argmax(axis=1) for q in a), cells) for a, cells in zip(model[0].assign, model[0].cells)]
    layers = [_ordered(tuple(modes), labels, cells) for labels, cells in boards]
    return tuple(sorted(layers, key=lambda layer: -layer.strength))


def _ordered(modes: tuple[Mode, ...], labels: tuple[Ints, ...], cells: Floats) -> Layer:
    """Each mode's clusters sorted by what they add along the main direction of the checkerboard."""
    shares = [np.bincount(c, minlength=m) / len(c) for c, m in zip(labels, cells.shape)]
    new_labels = []
    for axis, label in enumerate(labels):
        flat = np.moveaxis(cells, axis, 0).reshape(cells.shape[axis], -1)
        main = np.linalg.svd(flat, full_matrices=False)[0][:, 0]
        order = np.argsort(main, kind="stable")
        cells = np.take(cells, order, axis=axis)
        shares[axis] = shares[axis][order]
        new_labels.append(np.argsort(order)[label])
    weights = np.ones(())
    for share in shares:
        weights = np.multiply.outer(weights, share)
    return Layer(modes, tuple(new_labels), cells, float(np.sqrt(np.sum(weights * cells**2))))
