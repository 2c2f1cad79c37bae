"""Chains of sampled layers that live on a GPU, several side by side. Imports with torch and numpy alone.

Two modes. The state of B chains is kept in tensors with B in front; residuals (B, N) stay on the device, and a
layer costs two histogram passes and two updates of the residuals over all tuples. Histograms are summed in runs
of fixed order, so a seed gives the same bits every time; random numbers come from the device's own generator.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gingham.arrays import Floats, Ints
from gingham.engine.project_torch import DeviceRows, device_name, device_rows, tall_product, triton_kernels

PREDICTED = 2**22  # tuples that are predicted together


class DeviceChains:
    """The draws of `gingham.models.layers.sampled.Chain`, for B chains at once.

    Codes, labels and weights are those of N tuples of two modes; ``noise`` is σ², ``scales`` those of the priors, see
    `gingham.models.layers.sampled.TorchChains`.
    """

    def __init__(
        self,
        codes: Sequence[Ints],
        labels: Floats,
        weights: Floats | None,
        n_items: Sequence[int],
        n_clusters: Sequence[int],
        n_layers: int,
        noise: float,
        seeds: Sequence[int],
        scales: dict[str, float],
        offsets: bool = True,
        device: str | None = None,
    ) -> None:
        self.device = torch.device(device or device_name())
        put = lambda a, kind: torch.as_tensor(np.ascontiguousarray(a)).to(self.device, kind)  # noqa: E731
        self.codes = [put(code, torch.int32) for code in codes]
        self.weights = None if weights is None else put(weights, torch.float32)
        self.n_items, self.n_clusters = tuple(n_items), tuple(n_clusters)
        self.noise, self.scales, self.has_offsets = noise, scales, offsets
        n_chains, n_tuples = len(seeds), len(labels)
        self.generators = [torch.Generator(self.device).manual_seed(int(seed)) for seed in seeds]
        y = put(labels, torch.float64)
        total = float(n_tuples if self.weights is None else self.weights.sum(dtype=torch.float64))
        mean = float((y if self.weights is None else y * self.weights).sum()) / total
        self.total = total
        self.means = torch.full((n_chains,), mean, dtype=torch.float64, device=self.device)
        self.residual = (y - mean).float().repeat(n_chains, 1)
        self.offsets = [torch.zeros(n_chains, n, device=self.device) for n in n_items]
        self.offset_variance = [[scales["offset"]] * n_chains for _ in n_items]
        self.cells = torch.zeros(n_layers, n_chains, *n_clusters, device=self.device)
        self.cell_variance = torch.full((n_layers, n_chains, 1, 1), scales["cell"], device=self.device)
        self.labels = [
            torch.stack(
                [
                    torch.randint(0, m, (n_layers, n), generator=g, device=self.device, dtype=torch.uint8)
                    for g in self.generators
                ],
                dim=1,
            )
            for n, m in zip(n_items, n_clusters)
        ]  # (T, B, n) of each mode
        order = torch.arange(n_tuples, device=self.device, dtype=torch.int64 if n_tuples > 2**31 - 1 else torch.int32)
        self.layouts = [
            device_rows(
                self.codes[mode], [self.codes[1 - mode], order], None, None, None, n_items[mode], 1, [1, 1],
                [n_items[1 - mode], n_tuples],
            )
            for mode in range(2)
        ]  # fmt: skip
        one = None if self.weights is None else self.weights.double()
        self.counts = [torch.bincount(c.long(), one, minlength=n).double() for c, n in zip(self.codes, n_items)]
        self.n_sweeps = 0

    # one sweep

    def sweep(self, settle: int = 2) -> None:
        """Offsets, then (after ``settle`` sweeps) every layer."""
        if self.has_offsets:
            for mode in range(2):
                self.draw_offsets(mode, [self._normal(b, self.n_items[mode]) for b in range(len(self.generators))])
            weighted = self.residual if self.weights is None else self.residual * self.weights
            change = weighted.sum(1, dtype=torch.float64) / self.total
            self.means += change
            self.residual -= change.float()[:, None]
        if self.n_sweeps >= settle or not self.has_offsets:
            for layer in range(len(self.cells)):
                self._draw_layer(layer)
        self.n_sweeps += 1

    def draw_offsets(self, mode: int, normals: Sequence[Tensor]) -> None:
        """b ~ N(Σ w(r + b)/σ²/p, 1/p), p = Σw/σ² + 1/τ²; residuals follow."""
        n = self.n_items[mode]
        none = torch.zeros(len(normals), self.n_items[1 - mode], dtype=torch.uint8, device=self.device)
        heard = histograms(self.layouts[mode], none, self.residual, self.weights, 1)[:, :, 1, 0].double()
        for b, normal in enumerate(normals):
            old = self.offsets[mode][b].double()
            precision = self.counts[mode] / self.noise + 1.0 / self.offset_variance[mode][b]
            new = (heard[:, b] + self.counts[mode] * old) / self.noise / precision + normal.double() / precision.sqrt()
            change = (new - old).float()
            self.residual[b] -= change[self.codes[mode].long()]
            self.offsets[mode][b] = new.float()
            self.offset_variance[mode][b] = float((new @ new + self.scales["offset_prior"]) / (n + 1))

    def _draw_layer(self, layer: int) -> None:
        add_cells(self.residual, self.codes, [labels[layer] for labels in self.labels], self.cells[layer], 1.0)
        for mode in range(2):
            m, rest = self.n_clusters[mode], self.n_clusters[1 - mode]
            items = histograms(
                self.layouts[mode], self.labels[1 - mode][layer], self.residual, self.weights, rest
            )  # (n, B, 2, rest): tuples and residuals by the other mode's clusters
            if mode == 0:  # the cells of the clusters as they are
                self.cells[layer] = self._draw_cells(layer, table(self.labels[0][layer], items, m))
            facing = self.cells[layer] if mode == 0 else self.cells[layer].transpose(1, 2)
            uniforms = torch.stack([self._uniform(b, self.n_items[mode]) for b in range(len(self.generators))])
            self.labels[mode][layer] = draw_labels(items, facing, self.labels[mode][layer], self.noise, uniforms)
            cells = table(self.labels[mode][layer], items, m)
            self.cells[layer] = self._draw_cells(layer, cells if mode == 0 else cells.transpose(2, 3))
        add_cells(self.residual, self.codes, [labels[layer] for labels in self.labels], self.cells[layer], -1.0)
        squares = (self.cells[layer] ** 2).sum((1, 2), keepdim=True)
        size = self.cells[layer][0].numel()
        self.cell_variance[layer] = (squares + self.scales["cell_prior"] * self.scales["cell"]) / (
            size + self.scales["cell_prior"]
        )

    def _draw_cells(self, layer: int, statistics: Tensor) -> Tensor:
        """F ~ N(Σr/σ²/p, 1/p), p = n/σ² + 1/τ²; statistics (B, 2, m_1, m_2)."""
        precision = statistics[:, 0] / self.noise + 1.0 / self.cell_variance[layer]
        normal = torch.stack([self._normal(b, *statistics.shape[2:]) for b in range(len(self.generators))])
        return statistics[:, 1] / self.noise / precision + normal / precision.sqrt()

    def _normal(self, chain: int, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generators[chain], device=self.device)

    def _uniform(self, chain: int, n: int) -> Tensor:
        return torch.rand(n, generator=self.generators[chain], device=self.device)


def histograms(tuples: DeviceRows, labels: Tensor, residual: Tensor, weights: Tensor | None, width: int) -> Tensor:
    """(n, B, 2, width): Σ w and Σ w r of every item's tuples by the cluster of the item at their other end."""
    (block,) = tuples.blocks
    index, order = tuples.others
    n_chains = residual.shape[0]
    out = torch.zeros(block.n_rows + block.n_partials, n_chains, 2, width, device=residual.device)
    if triton_kernels is not None and residual.is_cuda:
        triton_kernels.residual_histograms(block, index, order, labels.contiguous(), residual, weights, width, out)
        return out[: block.n_rows]
    item = torch.repeat_interleave(block.target, (block.end - block.begin).long())
    for b in range(n_chains):
        flat = item * 2 * width + labels[b][index.long()].long()
        r = residual[b][order.long()]
        w = torch.ones_like(r) if weights is None else weights[order.long()]
        chain = torch.zeros(out.shape[0] * 2 * width, device=residual.device)
        chain.index_add_(0, flat, w).index_add_(0, flat + width, w * r)
        out[:, b] = chain.view(-1, 2, width)
    for row, begin, end in zip(block.fold_row.tolist(), block.fold_begin.tolist(), block.fold_end.tolist()):
        out[row] = out[block.n_rows + begin : block.n_rows + end].sum(0)
    return out[: block.n_rows]


def add_cells(residual: Tensor, codes: Sequence[Tensor], labels: Sequence[Tensor], cells: Tensor, sign: float) -> None:
    """residual[b, e] += sign · F_b[c_1(x_1), c_2(x_2)]."""
    if triton_kernels is not None and residual.is_cuda:
        triton_kernels.add_cells(residual, codes, [part.contiguous() for part in labels], cells.contiguous(), sign)
        return
    for b in range(len(residual)):
        first, second = (part[b][code.long()].long() for part, code in zip(labels, codes))
        residual[b] += sign * cells[b][first, second]


def table(labels: Tensor, items: Tensor, m: int) -> Tensor:
    """(B, 2, m, rest): the items' histograms added up by their own clusters."""
    members = one_hot(labels, m)  # (B, n, m)
    n, n_chains, two, rest = items.shape
    facing = items.permute(1, 0, 2, 3).reshape(n_chains, n, two * rest)
    return tall_product(members, facing).view(n_chains, m, two, rest).transpose(1, 2)


def draw_labels(items: Tensor, cells: Tensor, labels: Tensor, noise: float, uniforms: Tensor) -> Tensor:
    """New clusters (B, n) of one mode: P(k) ∝ (n_k + 1) exp(−(Σ seen F_k² − 2 Σ heard F_k)/2σ²), by inversion.

    ``items`` (n, B, 2, rest), ``cells`` (B, m, rest), ``labels`` the present clusters (B, n).
    """
    m, n = cells.shape[1], labels.shape[1]
    seen, heard = items[:, :, 0].transpose(0, 1), items[:, :, 1].transpose(0, 1)  # (B, n, rest)
    answers = cells.transpose(1, 2).to(items.dtype)
    cost = torch.bmm(seen, answers**2) - 2.0 * torch.bmm(heard, answers)
    members = one_hot(labels, m).sum(1, keepdim=True)
    logits = torch.log((members + 1.0) / (n + m)) - cost / (2.0 * noise)
    weight = torch.exp(logits - logits.max(2, keepdim=True).values)
    below = weight @ torch.ones(m, m, dtype=weight.dtype, device=weight.device).triu()  # cumsum is slow on short rows
    return (below < uniforms[:, :, None] * below[:, :, -1:]).sum(2).clamp(max=m - 1).to(torch.uint8)


def one_hot(labels: Tensor, m: int) -> Tensor:
    return (labels[:, :, None] == torch.arange(m, device=labels.device, dtype=torch.uint8)).float()


def predict_draws(codes, first, labels, strides, cells, offsets, means, importance, total, squares, reweighted):  # type: ignore[no-untyped-def]
    """Equivalent to `gingham.models.layers.kernels.predict_draws`, on the device where there is one."""
    device = torch.device(device_name())
    put = lambda a: torch.as_tensor(np.ascontiguousarray(a), device=device)  # noqa: E731
    labels, cells, offsets, importance = put(labels), put(cells), put(offsets), put(importance)
    for start in range(0, codes.shape[1], PREDICTED):
        rows = slice(start, start + PREDICTED)
        places = [put(code[rows]).long() + int(begin) for code, begin in zip(codes, first)]
        sums = torch.zeros(3, len(places[0]), dtype=torch.float64, device=device)
        for s, mean in enumerate(means.tolist()):
            drawn = torch.full((len(places[0]),), mean, dtype=torch.float32, device=device)
            for place in places:
                drawn += offsets[s][place]
            for t in range(labels.shape[1]):
                at = sum(labels[s, t][place].long() * int(stride) for place, stride in zip(places, strides))
                drawn += cells[s, t][at]
            drawn = drawn.double()
            sums[0] += drawn
            sums[1] += drawn**2
            for place in places if len(importance) else ():
                sums[2] += drawn * importance[s][place]
        for out, found in zip((total, squares, reweighted), sums.cpu().numpy()):
            out[rows] += found
