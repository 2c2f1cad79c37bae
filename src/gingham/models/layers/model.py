"""Layered models as values: kept draws of a chain, or soft layers; both predict a mean and a spread."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError
from gingham.lazy import lazy_module
from gingham.models.layers.data import first_positions, strides_of
from gingham.storage import State, fields_of, savable

if TYPE_CHECKING:
    from gingham.models.layers import kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.kernels")

Codes = Sequence[Ints] | Ints  # codes of each mode: d arrays (N,), or one of shape (d, N)

WORTHWHILE = 5 * 10**7  # cells from which a GPU looks them up in less time than it takes to send the draws
NO_IMPORTANCE: Floats = np.zeros((0, 0), dtype=np.float32)


class Prediction(NamedTuple):
    """Mean prediction of each tuple and the variance between the predictors that were averaged."""

    mean: Floats
    variance: Floats


@savable
@dataclass(frozen=True, eq=False)
class Draws:
    """Kept draws of sampled chains: S models y ≈ μ + Σ_j b_j(x_j) + Σ_t F_t[c_1t(x_1), …, c_dt(x_d)].

    Each mode has one more item and one more cluster at the end, which stand for an unseen item: its offset
    is 0 and its cells are the average over clusters. For an item that was folded in, a draw counts as much
    more as the draw explains its tuples better: predictions are Σ_s (1 + Σ_j a_s(x_j)) p_s / S.
    """

    n_items: tuple[int, ...]  # without the extra ones, as n_clusters
    n_clusters: tuple[int, ...]
    means: Floats  # μ, (S,)
    offsets: Floats  # (S, P) float16 where its range serves, P = Σ (n_j + 1)
    labels: Ints  # (S, T, P) uint8
    cells: Floats  # (S, T, Π (m_j + 1)) float32; a mode with a single cluster needs no extra one
    # a_s(x), (S, P) float32: 0 for items that were fitted; (0, 0) when none was folded in
    importance: Floats = field(default_factory=lambda: NO_IMPORTANCE)

    def to_file(self) -> State:
        # Successive draws agree for most items: stored as changes (modulo 256), the file shrinks by half.
        changes = self.labels.copy()
        changes[1:] -= self.labels[:-1]
        return {**fields_of(self), "labels": changes}

    @classmethod
    def from_file(cls, state: State) -> Self:
        draws = cls(**{**state, "labels": state["labels"].cumsum(axis=0, dtype=state["labels"].dtype)})
        if draws.labels.ndim != 3 or draws.labels.shape[2] != sum(n + 1 for n in draws.n_items):
            raise GinghamError(f"The model file is damaged: its layers have labels of shape {draws.labels.shape}.")
        for name in ("offsets", "importance"):
            array = getattr(draws, name)
            if array.size and array.shape != (len(draws.labels), draws.labels.shape[2]):
                raise GinghamError(f"The model file is damaged: its layers have {name} of shape {array.shape}.")
        return draws

    @property
    def n_draws(self) -> int:
        return len(self.means)

    def predict(self, codes: Codes) -> Prediction:
        """Mean and variance over the draws (all alike in the variance); code −1 is an unseen item."""
        # An unseen item (−1) stands at the position after the last.
        placed = np.stack([np.where(code < 0, n, code) for code, n in zip(codes, self.n_items)]).astype(np.int32)
        total, squares, reweighted = np.zeros((3, placed.shape[1]))
        here: Any = kernel
        if on_device(placed.shape[1] * prod(self.labels.shape[:2])):
            here = import_module("gingham.models.layers.kernels_torch")
        here.predict_draws(
            placed, first_positions(self.n_items), self.labels, self.strides, self.cells,
            self.offsets.astype(np.float32), self.means, self.importance, total, squares, reweighted,
        )  # fmt: skip
        mean = total / self.n_draws
        return Prediction(mean + reweighted / self.n_draws, np.maximum(squares / self.n_draws - mean**2, 0.0))

    @property
    def strides(self) -> Ints:
        return strides_of([with_unseen(m) for m in self.n_clusters])

    def checkerboard(self, draw: int, layer: int) -> tuple[tuple[Ints, ...], Floats]:
        """Labels of each mode's items and the cells (m_1, …, m_d) of one layer of one draw."""
        cells = self.cells[draw, layer].reshape([with_unseen(m) for m in self.n_clusters])
        labels = tuple(
            self.labels[draw, layer, start : start + n].astype(np.int64)
            for start, n in zip(first_positions(self.n_items), self.n_items)
        )
        return labels, cells[tuple(slice(m) for m in self.n_clusters)].astype(np.float64)

    def mean_offsets(self) -> tuple[Floats, ...]:
        """b_j averaged over the draws, one array per mode."""
        mean = self.offsets.mean(axis=0, dtype=np.float64)
        return tuple(mean[start : start + n] for start, n in zip(first_positions(self.n_items), self.n_items))

    @staticmethod
    def join(chains: Sequence[Draws]) -> Draws:
        """All chains as one, before anything is folded in: every draw counts alike."""
        stack = lambda name: np.concatenate([getattr(chain, name) for chain in chains])  # noqa: E731
        return Draws(
            chains[0].n_items, chains[0].n_clusters, stack("means"), stack("offsets"), stack("labels"), stack("cells")
        )


def on_device(n_cells: int) -> bool:
    """Whether that many cells are looked up by torch: on a GPU that is awake, if they are many, or without numba."""
    torch = sys.modules.get("torch")
    awake = torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()
    return (awake and n_cells > WORTHWHILE) or find_spec("numba") is None


@savable
@dataclass(frozen=True, eq=False)
class SoftLayers:
    """y ≈ μ + Σ_j b_j(x_j) + Σ_t F_t with soft memberships: one monotone fit."""

    mean: float
    offsets: tuple[Floats, ...]  # (n_j,) per mode
    assign: tuple[tuple[Floats, ...], ...]  # (n_j, m_j) per mode, of every layer
    cells: tuple[Floats, ...]  # (m_1, …, m_d) of every layer

    def predict(self, codes: Codes) -> Floats:
        """Mean prediction of each tuple; code −1 is an unseen item, drawn from the masses."""
        out: Floats = np.full(len(codes[0]), self.mean)
        for b, code in zip(self.offsets, codes):
            out += np.append(b, 0.0)[code]
        for assign, cells in zip(self.assign, self.cells):
            out += expected([np.vstack([q, q.mean(axis=0)]) for q in assign], cells, codes)
        return out


def expected(assign: Sequence[Floats], cells: Floats, codes: Codes) -> Floats:
    """Σ_c Π_j q_j(c_j|x_j) F[c_1, …, c_d] for each tuple, (N,)."""
    n = len(codes[0])
    met = assign[0] @ cells.reshape(len(cells), prod(cells.shape[1:]))
    if len(assign) == 1:
        return met[codes[0], 0]
    if len(assign) == 2:
        out = np.zeros(n)
        # Negative codes (unseen items) count from the end; the kernel wants them counted from the front.
        first, second = (np.where(c < 0, len(q) + c, c).astype(np.int32) for q, c in zip(assign, codes))
        kernel.add_soft(first, second, met, assign[1], out)
        return out
    part = met[codes[0]]
    for q, code in zip(assign[1:], codes[1:]):
        part = np.einsum("em,emr->er", q[code], part.reshape(n, q.shape[1], -1))
    return part[:, 0]


def with_unseen(m: int) -> int:
    """Clusters of a mode with the one that stands for unseen items."""
    return m + 1 if m > 1 else 1
