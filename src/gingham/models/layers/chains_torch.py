"""Sampled chains on a GPU: when that pays, and the draws they leave."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError
from gingham.kernels.project import BACKENDS
from gingham.models.layers.data import LayerData
from gingham.models.layers.model import Draws, spare
from gingham.models.layers.sampled import CELL_PRIOR, CELL_VARIANCE, OFFSET_VARIANCE, SETTLE, Shape, one_draw

WORTHWHILE = 2 * 10**7  # tuples times layers from which moving the data to a GPU pays


def use_torch(backend: str, data: LayerData, shape: Shape) -> bool:
    """Whether chains run through torch: when asked for, or when there is a GPU and the data is large enough."""
    if backend not in BACKENDS:
        raise GinghamError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    served = data.n_modes == 2 and all(side is None for side in data.sides)
    if backend == "torch":
        if find_spec("torch") is None:
            raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
        if not served:
            raise GinghamError("backend='torch' samples layers of two modes without side information; use 'auto'.")
        return True
    small = data.n_rows * max(shape.n_layers, 1) < WORTHWHILE
    if backend != "auto" or not served or small or find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


class Chains:
    """Several chains side by side on the device, with the face of `sampled.Chain`."""

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
            labels[:, start + n] = spare(m) - 1  # the cluster of an unseen item
        cells = state.cells[:, chain].reshape(shape.n_layers, -1).cpu().numpy()
        return one_draw(self.data.n_items, shape, float(state.means[chain]), offsets, labels, cells)


def run_chains(
    data: LayerData, shape: Shape, noise: float, seeds: Sequence[np.random.SeedSequence], n_sweeps: int, burn_in: int
) -> list[Draws]:
    """The draws of all chains, one a sweep after the burn-in."""
    chains = Chains(data, shape, noise, [whole(seed) for seed in seeds])
    kept: list[list[Draws]] = [[] for _ in seeds]
    for sweep in range(n_sweeps):
        chains.sweep()
        if sweep >= burn_in:
            for at, draws in enumerate(kept):
                draws.append(chains.draw(at))
    return [Draws.join(draws) for draws in kept]


def whole(seed: np.random.SeedSequence) -> int:
    """The seed of a device's generator."""
    return int(seed.generate_state(1)[0])
