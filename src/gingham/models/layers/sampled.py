"""Chains of sampled layers: draw offsets, clusters and cells in turn, keep every sweep after the burn-in.

One chain is a committee with a member per sweep. Priors are in units of the labels' variance. Several chains may run
side by side on a GPU (`TorchChains`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.engine.place import BACKENDS
from gingham.errors import GinghamError
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint
from gingham.lazy import lazy_module
from gingham.models.layers.baskets import LOWEST, Basket
from gingham.models.layers.baskets_fit import padded
from gingham.models.layers.data import EMPTY, LayerData, first_positions, strides_of
from gingham.models.layers.model import NO_IMPORTANCE, Draws, with_unseen
from gingham.storage import State

if TYPE_CHECKING:
    from gingham.models.layers import baskets_kernels as basket_kernel
    from gingham.models.layers import kernels as kernel
else:
    basket_kernel = lazy_module("gingham.models.layers.baskets_kernels")
    kernel = lazy_module("gingham.models.layers.kernels")

OFFSET_VARIANCE = 0.2  # of offsets at the start, as a share of the labels' variance
CELL_VARIANCE = 0.04  # of cells: the start, and the prior with the weight of four cells
CELL_PRIOR = 4.0
SETTLE = 2  # sweeps with offsets only
MOST_BYTES = 2**30  # of all kept draws: where there would be more, fewer sweeps are kept
WORTHWHILE = 2 * 10**7  # tuples times layers from which moving the data to a GPU pays
PER_DRAW = ("means", "offsets", "labels", "cells")
CHANGED = (
    "noise", "mean", "offsets", "labels", "cells", "offset_variance", "cell_variance", "residual", "n_sweeps",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How many layers, and how many clusters of each mode in every layer."""

    n_layers: int
    n_clusters: tuple[int, ...]
    offsets: bool = True

    @property
    def n_cells(self) -> int:
        return prod(self.n_clusters)


class Pairs:
    """Tuples of two modes as `gingham.models.layers.baskets_kernels` want them: grouped by the mode with more items.

    A layer of two modes is a basket layer whose sources, the items of the other mode, are their own only tokens.
    """

    def __init__(self, data: LayerData, shape: Shape) -> None:
        target = int(np.argmax(data.n_items))
        self.modes = (1 - target, target)
        self.n_items = tuple(data.n_items[mode] for mode in self.modes)
        self.n_clusters = tuple(shape.n_clusters[mode] for mode in self.modes)
        group = data.groups[target]
        self.indptr = group.indptr
        self.rows = None if target == 0 else group.order  # tuples stand grouped by the first mode
        self.sources = group.others[0].astype(np.uint32)
        self.targets = np.repeat(np.arange(self.n_items[1], dtype=np.uint32), np.diff(group.indptr))
        self.weights = None if data.weights is None else data.weights[group.order].astype(np.float32)
        self.itself = Basket.itself(self.n_items[0])
        rows, width = (padded(m) for m in self.n_clusters)
        self.cells: Floats = np.zeros((rows, width), dtype=np.float32)
        self.table, self.stats, self.work = np.zeros((3, self.n_items[0] * 2 * width), dtype=np.float32)
        self.none: Floats = np.zeros((0, 0), dtype=np.float32)
        self.uniforms = [np.empty(n, dtype=np.float32) for n in self.n_items]  # new memory costs more than numbers


class Chain:
    """The state of one chain; `sweep` moves it on. ``noise`` (σ²) may be changed between sweeps."""

    def __init__(self, data: LayerData, shape: Shape, noise: float, rng: np.random.Generator) -> None:
        self.data, self.shape, self.noise, self.rng = data, shape, noise, rng
        self.first = data.first
        self.strides = strides_of(shape.n_clusters)
        self.unit = data.weights is None
        self.weights: Floats = np.ones(1) if data.weights is None else data.weights
        n_positions = sum(n + 1 for n in data.n_items)
        self.mean = data.mean
        self.offsets: Floats = np.zeros(n_positions)
        self.labels: Ints = np.zeros((shape.n_layers, n_positions), dtype=np.uint8)
        for start, n, m in zip(self.first, data.n_items, shape.n_clusters):
            self.labels[:, start : start + n] = rng.integers(m, size=(shape.n_layers, n))
            self.labels[:, start + n] = with_unseen(m) - 1  # the cluster of an unseen item
        self.cells: Floats = np.zeros((shape.n_layers, shape.n_cells), dtype=np.float32)
        self.offset_variance = [OFFSET_VARIANCE * data.variance] * data.n_modes
        self.cell_variance: Floats = np.full(shape.n_layers, CELL_VARIANCE * data.variance)
        self.residual: Floats = (data.labels - self.mean).astype(np.float32)
        self.n_sweeps = 0
        two = data.n_modes == 2 and shape.n_layers > 0 and all(side is None for side in data.sides)
        self.pairs = Pairs(data, shape) if two else None

    @classmethod
    def resume(
        cls, data: LayerData, shape: Shape, noise: float, rng: np.random.Generator, draws: Draws, at: int
    ) -> Chain:
        """A chain that goes on from one of the kept draws, whose items are those of the data."""
        chain = cls(data, shape, noise, rng)
        chain.mean, chain.n_sweeps = float(draws.means[at]), SETTLE
        chain.offsets[:] = draws.offsets[at]
        chain.labels[:] = draws.labels[at]
        for layer in range(shape.n_layers):
            chain.cells[layer] = draws.checkerboard(at, layer)[1].ravel()
            chain.cell_variance[layer] = chain._cell_variance(chain.cells[layer])
        for mode, (start, n) in enumerate(zip(chain.first, data.n_items)):
            chain.offset_variance[mode] = chain._offset_variance(chain.offsets[start : start + n])
        known = replace(
            draws, **{name: getattr(draws, name)[at : at + 1] for name in PER_DRAW}, importance=NO_IMPORTANCE
        )
        chain.residual = (data.labels - known.predict(data.codes).mean).astype(np.float32)
        return chain

    def state(self) -> State:
        """All that sweeps change, for a checkpoint."""
        return {**{name: deepcopy(getattr(self, name)) for name in CHANGED}, "random": self.rng.bit_generator.state}

    def restore(self, state: State) -> None:
        for name in CHANGED:
            setattr(self, name, state[name])
        self.rng.bit_generator.state = state["random"]

    def sweep(self) -> None:
        if self.shape.offsets:
            self._draw_offsets()
        if self.n_sweeps >= SETTLE or not self.shape.offsets:
            if self.pairs is not None:
                self._draw_pairs(self.pairs)
            else:
                for layer in range(self.shape.n_layers):
                    self._draw_layer(layer)
        self.n_sweeps += 1

    def _draw_pairs(self, pairs: Pairs) -> None:
        """All layers of two modes: one pass over the tuples a layer."""
        data, n_target = self.data, pairs.n_items[1]
        (source, target), (m_source, m_target) = pairs.modes, pairs.n_clusters
        residual = self.residual if pairs.rows is None else self.residual[pairs.rows]
        before = np.zeros(n_target, dtype=np.uint8)
        pairs.table[:] = 0
        for layer in range(self.shape.n_layers):
            labels = self.labels[layer]
            mine = [labels[self.first[mode] : self.first[mode] + data.n_items[mode]] for mode in (source, target)]
            cells = self.cells[layer].reshape(self.shape.n_clusters)
            pairs.cells[:m_source, :m_target] = cells if source == 0 else cells.T
            shares = [
                np.log((np.bincount(own, minlength=m) + 1.0) / (len(own) + m)) for own, m in zip(mine, pairs.n_clusters)
            ]
            target_share = np.full(pairs.cells.shape[1], LOWEST, dtype=np.float32)
            target_share[:m_target] = shares[1]
            for room in reversed(pairs.uniforms):
                self.rng.random(dtype=np.float32, out=room)
            basket_kernel.draw_layer(
                pairs.indptr, pairs.targets, pairs.sources, residual, pairs.weights, pairs.table, before, mine[1],
                1.0 / self.noise, target_share, pairs.uniforms[1], pairs.stats,
                *pairs.itself.by_token, pairs.none, pairs.itself.scale, mine[0], shares[0].astype(np.float32),
                pairs.uniforms[0], self.cell_variance[layer],
                self.rng.standard_normal((2, m_target, m_source)), pairs.cells, pairs.work,
            )  # fmt: skip
            drawn = pairs.cells[:m_source, :m_target]
            self.cells[layer] = (drawn if source == 0 else drawn.T).ravel()
            self.cell_variance[layer] = self._cell_variance(self.cells[layer])
            before = mine[1]
        basket_kernel.finish_layers(pairs.targets, pairs.sources, residual, pairs.table, pairs.cells.shape[1], before)
        if pairs.rows is not None:
            self.residual[pairs.rows] = residual

    def _draw_offsets(self) -> None:
        data = self.data
        for mode, (start, n) in enumerate(zip(self.first, data.n_items)):
            offsets = self.offsets[start : start + n]
            kernel.draw_offsets(
                data.codes[mode], self.weights, self.unit, self.residual, 1.0 / self.noise,
                1.0 / self.offset_variance[mode], self.rng.standard_normal(n), offsets,
            )  # fmt: skip
            self.offset_variance[mode] = self._offset_variance(offsets)
        change = float(np.average(self.residual, weights=data.weights))
        self.mean += change
        self.residual -= np.float32(change)

    def _draw_layer(self, layer: int) -> None:
        data, labels = self.data, self.labels[layer]
        counts, sums = np.empty(self.shape.n_cells), np.empty(self.shape.n_cells)
        kernel.put_back(
            data.codes, self.first, labels, self.strides, self.cells[layer], self.weights, self.unit,
            self.residual, counts, sums,
        )  # fmt: skip
        cells = self._draw_cells(layer, counts, sums).reshape(self.shape.n_clusters)
        for mode in range(data.n_modes):
            cells = self._draw_mode(layer, mode, cells)
        self.cells[layer] = cells.ravel()
        kernel.take_out(data.codes, self.first, labels, self.strides, self.cells[layer], self.residual)
        self.cell_variance[layer] = self._cell_variance(cells)

    def _offset_variance(self, offsets: Floats) -> float:
        squares = float(np.square(offsets).sum())  # not by BLAS, whose other threads would wait at the cost of a core
        return (squares + 0.08 * self.data.variance) / (len(offsets) + 1)

    def _cell_variance(self, cells: Floats) -> float:
        prior = CELL_PRIOR * CELL_VARIANCE * self.data.variance
        return float((np.sum(cells.astype(np.float64) ** 2) + prior) / (cells.size + CELL_PRIOR))

    def _draw_mode(self, layer: int, mode: int, cells: Floats) -> Floats:
        """New clusters of one mode's items, then new cells (m_1, …, m_d)."""
        data, group, labels = self.data, self.data.groups[mode], self.labels[layer]
        n, m, start = data.n_items[mode], self.shape.n_clusters[mode], int(self.first[mode])
        mine = labels[start : start + n]
        members = np.bincount(mine, minlength=m)
        side = data.sides[mode]
        scores = EMPTY if side is None else side.scores(np.eye(m)[mine])
        others = [m_j for j, m_j in enumerate(self.shape.n_clusters) if j != mode]
        facing = np.ascontiguousarray(np.moveaxis(cells, mode, 0).reshape(m, -1))
        counts, sums = np.empty(facing.shape), np.empty(facing.shape)
        kernel.draw_labels(
            group.indptr, group.others, group.order, np.delete(self.first, mode), strides_of(others),
            self.weights, self.unit, self.residual, facing, 1.0 / self.noise,
            np.log((members + 1.0) / (n + m)), scores, self.rng.random(n), start, labels, counts, sums,
        )  # fmt: skip
        drawn = self._draw_cells(layer, counts, sums)
        return np.moveaxis(drawn.reshape(m, *others), 0, mode)

    def _draw_cells(self, layer: int, counts: Floats, sums: Floats) -> Floats:
        """F ~ N(Σr/σ²/p, 1/p), p = n/σ² + 1/τ²."""
        precision = counts / self.noise + 1.0 / self.cell_variance[layer]
        return sums / self.noise / precision + self.rng.standard_normal(counts.shape) / np.sqrt(precision)

    def draw(self) -> Draws:
        """The present state as one draw."""
        return one_draw(self.data.n_items, self.shape, self.mean, self.offsets, self.labels, self.cells)


def one_draw(
    n_items: tuple[int, ...], shape: Shape, mean: float, offsets: Floats, labels: Ints, cells: Floats
) -> Draws:
    """One draw from offsets (P,), labels (T, P) and cells (T, Π m_j), the P positions as in `Draws`."""
    places = list(zip(first_positions(n_items), n_items, shape.n_clusters))
    filled = []
    for layer, mine in zip(cells, labels):
        shares = [np.bincount(mine[start : start + n], minlength=m) / n for start, n, m in places]
        filled.append(with_average(layer.reshape(shape.n_clusters), shares).ravel())
    return Draws(
        n_items=n_items,
        n_clusters=shape.n_clusters,
        means=np.array([mean]),
        offsets=offsets[None].astype(offset_type(offsets)),
        labels=labels[None].copy(),
        cells=np.array(filled, dtype=np.float32).reshape(
            1, shape.n_layers, prod(with_unseen(m) for m in shape.n_clusters)
        ),
    )


def offset_type(offsets: Floats) -> type[np.floating[Any]]:
    """Half precision, which has three digits from 6e-5 to 65,504; single for labels on another scale."""
    largest = float(np.abs(offsets).max(initial=0.0))
    return np.float16 if largest == 0 or 0.01 < largest < 6e4 else np.float32


def with_average(cells: Floats, shares: Sequence[Floats]) -> Floats:
    """Cells (m_1 + 1, …, m_d + 1): each mode gets a last cluster, the average of the others (one needs none)."""
    for axis, share in enumerate(shares):
        if len(share) == 1:
            continue
        average = np.expand_dims(np.tensordot(share, cells, axes=(0, axis)), axis)
        cells = np.concatenate([cells, average], axis=axis)
    return cells


def run_chain(
    data: LayerData,
    shape: Shape,
    noise: float,
    seed: np.random.SeedSequence,
    n_sweeps: int,
    burn_in: int,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    every: int = 1,
) -> list[Draws]:
    """The draws of one chain: of the last sweep, and after the burn-in of every so many before it."""
    return sample_draws(Chain(data, shape, noise, np.random.default_rng(seed)), n_sweeps, burn_in, checkpoint, every)


def keep_every(data: LayerData, shape: Shape, n_draws: int) -> int:
    """Each how many draws one is kept, so that they fit in memory and in a file: 1 but for very many items."""
    n_positions = sum(n + 1 for n in data.n_items)
    return min(n_draws, -(-n_draws * n_positions * (shape.n_layers + 2) // MOST_BYTES))


def sample_draws(
    chain: Chain, n_sweeps: int, burn_in: int, checkpoint: Checkpoint = NO_CHECKPOINT, every: int = 1
) -> list[Draws]:
    """The draws of the next sweeps after the burn-in, as `run_chain` keeps them; all chains are joined at once."""
    kept: list[Draws] = []
    begun, known = 0, checkpoint.known
    if known is not None:
        kept = [Draws(**draws) for draws in known["draws"]]
        begun = known["sweeps"]
        chain.restore(known["chain"])
    for sweep in range(begun, n_sweeps):
        chain.sweep()
        if sweep >= burn_in and (n_sweeps - 1 - sweep) % every == 0:
            kept.append(chain.draw())
        checkpoint.keep(partial(_so_far, chain, kept, sweep + 1), finished=sweep == n_sweeps - 1)
    return kept


def _so_far(chain: Chain, kept: Sequence[Draws], sweeps: int) -> State:
    """Where a chain stands, for a checkpoint."""
    names = [field.name for field in fields(Draws)]
    drawn = [{name: getattr(Draws.join(list(kept)), name) for name in names}] if kept else []
    return {"draws": drawn, "chain": chain.state(), "sweeps": sweeps}


def use_torch(backend: str, data: LayerData, shape: Shape) -> bool:
    """Whether chains run through torch: when asked for, or when there is a GPU and the data is large enough."""
    if backend not in BACKENDS:
        raise GinghamError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    fits = data.n_modes == 2 and all(side is None for side in data.sides)
    if backend == "torch":
        if find_spec("torch") is None:
            raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
        if not fits:
            raise GinghamError("backend='torch' samples layers of two modes without side information; use 'auto'.")
        return True
    if backend != "auto" or not fits or data.n_rows * max(shape.n_layers, 1) < WORTHWHILE or find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


class TorchChains:
    """Several chains side by side on the device, used like `Chain`."""

    def __init__(
        self, data: LayerData, shape: Shape, noise: float, seeds: Sequence[int], device: str | None = None
    ) -> None:
        from gingham.models.layers.kernels_torch import DeviceChains

        scales = {
            "offset": OFFSET_VARIANCE * data.variance,
            "offset_prior": 0.08 * data.variance,
            "cell": CELL_VARIANCE * data.variance,
            "cell_prior": CELL_PRIOR,
        }
        self.data, self.shape = data, shape
        self.state = DeviceChains(
            list(data.codes), data.labels, data.weights, data.n_items, shape.n_clusters, shape.n_layers, noise, seeds,
            scales, shape.offsets, device,
        )  # fmt: skip

    @property
    def noise(self) -> float:
        return self.state.noise

    @noise.setter
    def noise(self, value: float) -> None:
        self.state.noise = value

    def sweep(self) -> None:
        self.state.sweep(SETTLE)

    def draw(self, chain: int = 0) -> Draws:
        """The present state of one chain as one draw."""
        state, shape = self.state, self.shape
        n_positions = sum(n + 1 for n in self.data.n_items)
        offsets: Floats = np.zeros(n_positions)
        labels: Ints = np.empty((shape.n_layers, n_positions), dtype=np.uint8)
        for mode, (start, n, m) in enumerate(zip(self.data.first, self.data.n_items, shape.n_clusters)):
            offsets[start : start + n] = state.offsets[mode][chain].cpu().numpy()
            labels[:, start : start + n] = state.labels[mode][:, chain].cpu().numpy()
            labels[:, start + n] = with_unseen(m) - 1  # the cluster of an unseen item
        cells = state.cells[:, chain].reshape(shape.n_layers, -1).cpu().numpy()
        return one_draw(self.data.n_items, shape, float(state.means[chain]), offsets, labels, cells)


def run_chains(
    data: LayerData, shape: Shape, noise: float, seeds: Sequence[np.random.SeedSequence], n_sweeps: int, burn_in: int,
    every: int = 1,
) -> list[list[Draws]]:  # fmt: skip
    """The draws of all chains, kept as `run_chain` does."""
    chains = TorchChains(data, shape, noise, [torch_seed(seed) for seed in seeds])
    kept: list[list[Draws]] = [[] for _ in seeds]
    for sweep in range(n_sweeps):
        chains.sweep()
        if sweep >= burn_in and (n_sweeps - 1 - sweep) % every == 0:
            for at, draws in enumerate(kept):
                draws.append(chains.draw(at))
    return kept


def torch_seed(seed: np.random.SeedSequence) -> int:
    """The seed of a device's generator."""
    return int(seed.generate_state(1)[0])
