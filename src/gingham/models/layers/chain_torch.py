"""Chains with their rows on a GPU, which make the same draws as `gingham.models.layers.chain.Chain`.

Rows, residuals, latent answers, clusters and contents of baskets stay on the device. Small arrays (shares of clusters,
cells, cut points, variances) are drawn on the host by the chain's own generator, as on a core; random numbers per row
and per item come from the device's generator. With the same numbers both make the same draws, up to rounding.

Tokens are drawn one after another, because a source holds many of them. One kernel visits them in order and sums over
the sources that hold each; chains have streams of their own, so these kernels run side by side. Sums have a fixed
order, so a seed gives the same bits every time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gingham.arrays import Floats, Ints
from gingham.engine.project_torch import (
    DeviceRows,
    device_name,
    device_rows,
    project_block,
    to_device,
    triton_kernels,
)
from gingham.models.layers.chain import Chain
from gingham.models.layers.draws import LayerDraws, PredictionRows, with_unknown
from gingham.models.layers.positions import PositionPlan, Positions, Prior
from gingham.models.layers.problem import ITEM, Basket, ChainState, LayerPlan, LayerProblem
from gingham.storage import State

ROWS = 2**24  # per step where 64-bit numbers are computed for each row
EDGE = 1e-10  # probabilities are kept this far from 0 and 1 before they are turned into latent answers


@dataclass(frozen=True, eq=False)
class DeviceBasket:
    """Tokens of sources and sources of tokens; not made for item layers."""

    scale: Tensor  # (n_sources,) |N(x)|^(−½)
    by_source: DeviceRows
    by_token: DeviceRows
    indptr: Tensor  # (n_tokens + 1,) where each token's sources begin among the holders
    holders: Tensor  # (n,) int32

    @classmethod
    def of(cls, basket: Basket) -> DeviceBasket:
        sources, tokens = to_device(basket.sources), to_device(basket.tokens)
        sizes = basket.n_sources, basket.n_tokens
        order = torch.sort(tokens, stable=True).indices
        counts = torch.bincount(tokens, minlength=basket.n_tokens)
        return cls(
            to_device(basket.scale),
            device_rows(sources, [tokens], None, None, None, sizes[0], 1, [1], [sizes[1]]),
            device_rows(tokens, [sources], None, None, None, sizes[1], 1, [1], [sizes[0]]),
            torch.cat([counts.new_zeros(1), counts.cumsum(0)]),
            sources[order].to(torch.int32),
        )


@dataclass(frozen=True, eq=False)
class DevicePositions:
    """The rows of the positions of a mode's items; see `gingham.models.layers.chain.PositionRows`."""

    own: Tensor  # (N,) int64
    others: Tensor  # (N,) int64
    order: Tensor  # (N,) int64, rows of the same position together
    ends: Tensor  # (n_positions + 1,)

    @classmethod
    def of(cls, own: Ints, others: Ints, n: int) -> DevicePositions:
        code = to_device(own.astype(np.int64))
        counts = torch.bincount(code, minlength=n)
        order = torch.sort(code, stable=True).indices
        ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(code, to_device(others.astype(np.int64)), order, ends)


@dataclass(frozen=True, eq=False)
class DeviceLayout:
    """The rows of a problem on the device, shared by all chains."""

    problem: LayerProblem
    width: int  # the largest number of target clusters
    codes: tuple[Tensor, ...]  # int32, of each mode
    rows: dict[tuple[int, int], DeviceRows]  # grouped by the first mode, with the codes of the second and the row
    baskets: tuple[DeviceBasket | None, ...]
    label_codes: Tensor  # (N,) uint8, empty for the gaussian likelihood
    positions: dict[int, DevicePositions]  # of both modes that have positions

    @classmethod
    def of(cls, problem: LayerProblem) -> DeviceLayout:
        codes = tuple(to_device(code) for code in problem.codes)
        d, n = problem.n_modes, problem.n_rows
        order = torch.arange(n, device=codes[0].device, dtype=torch.int64 if n > 2**31 - 1 else torch.int32)
        rows = {}
        for mode in range(d):
            others = [j for j in range(d) if j != mode]
            size = (problem.n_items[mode], 1, [1] * d, [problem.n_items[j] for j in others] + [n])
            every = device_rows(codes[mode], [*(codes[j] for j in others), order], None, None, None, *size)
            for j, other in zip([*others, mode], [*every.others[:-1], every.others[-1]]):
                rows[mode, j] = replace(every, others=(other, every.others[-1]))
        used = {layer.basket for layer in problem.layers}
        baskets = tuple(
            DeviceBasket.of(basket) if at in used and not basket.is_itself else None
            for at, basket in enumerate(problem.baskets)
        )
        width = max([4, *(layer.n_target_clusters for layer in problem.layers)])
        met, plan = {}, problem.positions
        if plan is not None:
            source, target = problem.position_codes
            n_source, n_target = problem.n_items[plan.source] * plan.n_periods, problem.n_items[plan.target]
            met[plan.source] = DevicePositions.of(source, target, n_source)
            met[plan.target] = DevicePositions.of(target, source, n_target)
        layout = cls(problem, width, codes, rows, baskets, to_device(problem.label_codes.astype(np.uint8)), met)
        if codes[0].is_cuda:
            torch.cuda.synchronize()  # chains read it on streams of their own
        return layout

    def begin(self, problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> DeviceChain:
        """A chain on these rows; the problem may have other phases of its time windows."""
        return DeviceChain(problem, state, rng, self)


class DeviceChain(Chain):
    """One chain on the device. Between sweeps ``state`` holds its draw except for the latent answers."""

    layout: DeviceLayout  # type: ignore[assignment]

    def __init__(
        self, problem: LayerProblem, state: ChainState, rng: np.random.Generator, layout: DeviceLayout
    ) -> None:
        self.stream = torch.cuda.Stream() if device_name() == "cuda" else None
        self._generator: torch.Generator | None = None
        super().__init__(problem, state, rng, layout)  # type: ignore[arg-type]

    @contextmanager
    def _on_stream(self) -> Iterator[None]:
        with torch.cuda.stream(self.stream):  # None: the current stream
            yield

    def _load_state(self, state: ChainState) -> None:
        problem, self.state = self.problem, state
        self.accepted: Ints = np.zeros(len(state.cuts), dtype=np.int64)
        with self._on_stream():
            self.targets = [to_device(labels) for labels in state.targets]
            self.tokens = [to_device(labels) for labels in state.tokens]
            self.offsets = [to_device(b) for b in state.offsets]
            self.ends = [to_device(ends) for ends in problem.window_ends]
            self.held = [self._contents(t) for t in range(len(problem.layers))]
            self.latent = to_device(state.latent).float()
            self.residual: Tensor = (self.latent.double() - self._effect()).float()
            self._count_rows(problem.weights)

    def _to_file(self) -> State:
        device = self._random.get_state().numpy()  # first: starting it may draw a number from the host's generator
        with self._on_stream():
            self.state.latent = self.latent.cpu().numpy()
            return {**super()._to_file(), "device": device}

    def _residual_now(self) -> Floats:
        return np.array(self.residual.cpu().numpy())  # a copy, where the device is the host

    def restore(self, kept: State) -> None:
        super().restore(kept)
        with self._on_stream():
            self.residual = to_device(kept["residual"])
        self._generator = torch.Generator(self.layout.codes[0].device)
        self._generator.set_state(torch.from_numpy(kept["device"]))

    # what follows from the state

    def _count_rows(self, weights: Floats | None) -> None:
        with self._on_stream():
            self.weights = None if weights is None else to_device(weights).float()
            every = self.weights
            sizes = [
                torch.bincount(code, every if every is None else every.double(), minlength=n).double()
                for code, n in zip(self.layout.codes, self.problem.n_items)
            ]
            self.sizes = sizes + [segment_sums(every, ends) for ends in self.ends]

    def effects(self) -> Floats:
        with self._on_stream():
            at = to_device(self.left_out)
            return (self.latent[at] - self.residual[at]).double().cpu().numpy()

    def add_below(self, effects: Floats, below: Floats) -> None:
        with self._on_stream():
            cuts = to_device(self.state.cuts)
            for start in range(0, len(effects), ROWS // 8):
                some = slice(start, start + ROWS // 8)
                z = (cuts - to_device(effects[some])[:, None]) / np.sqrt(self.state.noise)
                below[some] += torch.special.ndtr(z).cpu().numpy()

    def _contents(self, t: int) -> Tensor | None:
        """How many tokens of each cluster a source holds, (n_sources, m); None where it is its own only token."""
        layer = self.problem.layers[t]
        basket = self.layout.baskets[layer.basket]
        if basket is None:
            return None
        return basket_sums(basket.by_source, members(self.tokens[t], layer.n_token_clusters))

    def _pull(self, t: int) -> Tensor:
        """What the layer pulls at each cluster of targets, (n_sources, W)."""
        layer, contents = self.problem.layers[t], self.held[t]
        cells = to_device(np.ascontiguousarray(self.state.cells[t], dtype=np.float32))
        basket = self.layout.baskets[layer.basket]
        if contents is None or basket is None:
            return cells.index_select(0, self.tokens[t].int())
        return basket.scale[:, None] * (contents @ cells)

    def _effect(self) -> Tensor:
        """f of every row from scratch, (N,) float64."""
        problem, codes = self.problem, self.layout.codes
        f = torch.full((problem.n_rows,), self.state.mean, dtype=torch.float64, device=codes[0].device)
        for b, code in zip(self.offsets, codes):
            f += b.index_select(0, code)
        for b, ends in zip(self.offsets[problem.n_modes :], self.ends):
            f += torch.repeat_interleave(b, ends.diff())
        for t, layer in enumerate(problem.layers):
            add_pulls(f, codes[layer.source], codes[layer.target], self._pull(t), self.targets[t], 1.0)
        plan, points = problem.positions, self.state.positions
        if plan is not None and points is not None:
            rows = self.layout.positions[plan.source]
            add_products(f, (to_device(points.sources), rows.own), (to_device(points.targets), rows.others), 1.0)
        return f

    # one sweep

    def sweep(self, adapt: bool = False) -> None:
        with self._on_stream():
            super().sweep(adapt)
            state = self.state
            for kept, now in (
                (state.targets, self.targets),
                (state.tokens, self.tokens),
                (state.offsets, self.offsets),
            ):
                for t, one in enumerate(now):
                    kept[t] = one.cpu().numpy()

    def _reorder(self, mode: int) -> None:
        """Rows stay in the order of the problem."""

    def _mean_square(self) -> float:
        return float(self.residual.square().mean(dtype=torch.float64))

    def _draw_offsets(self, kind: int) -> None:
        problem, state = self.problem, self.state
        window, old = kind - problem.n_modes, self.offsets[kind].double()
        residual, weights = self.residual, self.weights
        if window < 0:
            other = 1 if kind == 0 and problem.n_modes > 1 else 0
            none = torch.zeros(max(problem.n_items), dtype=torch.uint8, device=old.device)
            rows = self.layout.rows[kind, other]
            sums = histograms(rows, none, residual, weights, 1)[:, 1, 0].double()
        else:
            sums = segment_sums(residual if weights is None else weights * residual, self.ends[window])
        precision = self.sizes[kind] / state.noise + 1.0 / state.offset_variances[kind]
        mean = (sums + self.sizes[kind] * old) / state.noise / precision
        new = (mean + self._normals(len(old)).double() / precision.sqrt()).float()
        change = new - self.offsets[kind]
        if window < 0:
            residual -= change.index_select(0, self.layout.codes[kind])
        else:
            residual -= torch.repeat_interleave(change, self.ends[window].diff())
        self.offsets[kind] = new
        self._draw_offset_variance(kind, float(new.double().square().sum()), len(new))

    def _totals(self) -> tuple[float, float]:
        residual, weights = self.residual, self.weights
        if weights is None:
            return float(self.problem.n_rows), float(residual.sum(dtype=torch.float64))
        return float(weights.sum(dtype=torch.float64)), float((weights * residual).sum(dtype=torch.float64))

    def _draw_layers(self, mode: int) -> None:
        state = self.state
        mine = self._layers_with(mode)
        if not mine:
            return
        shares, normals, freedom = self._random_numbers(mine)
        for at, (t, layer) in enumerate(mine):
            self._draw_layer(t, layer, shares[at], normals[at])
            self._draw_cell_variance(t, float(np.square(state.cells[t], dtype=np.float64).sum()), freedom[at])

    def _draw_layer(self, t: int, layer: LayerPlan, shares: Floats, normals: Floats) -> None:
        """A layer's targets, cells, tokens and cells again."""
        layout, half = self.layout, 0.5 / self.state.noise
        source, target = layout.codes[layer.source], layout.codes[layer.target]
        m_token, width = layer.n_token_clusters, layer.n_target_clusters
        target_share, token_share = to_device(shares[0, :width]), to_device(shares[1, :m_token])
        normals = normals[:, :width, :m_token]
        pull = self._pull(t)
        add_pulls(self.residual, source, target, pull, self.targets[t], 1.0)
        scores = target_scores(layout.rows[layer.target, layer.source], pull, self.residual, self.weights)
        scores = target_share + half * scores
        self.targets[t] = pick(scores, self._uniforms(0, len(scores)))
        stats = histograms(
            layout.rows[layer.source, layer.target], self.targets[t], self.residual, self.weights, width
        )  # (n_sources, 2, W): Σ w and Σ w r of a source's rows by the cluster of their targets
        self._draw_cells(t, stats, normals[0])
        self._draw_tokens(t, stats, token_share, half)
        self._draw_cells(t, stats, normals[1])
        add_pulls(self.residual, source, target, self._pull(t), self.targets[t], -1.0)

    def _draw_positions(self, mode: int, plan: PositionPlan, points: Positions) -> None:
        super()._draw_positions(mode, plan, points)
        if mode == plan.target:
            self.offsets[mode] = to_device(self.state.offsets[mode])

    def _draw_points(self, mode: int, features: Floats, prior: Prior, own: Floats) -> Floats:
        rows, precision = self.layout.positions[mode], 1.0 / self.state.noise
        met, old = to_device(np.ascontiguousarray(features)), to_device(np.ascontiguousarray(own))
        n, d = own.shape
        wanted = self.residual.clone()
        add_products(wanted, (met, rows.others), (old, rows.own), 1.0)
        columns = [column.index_select(0, rows.others)[rows.order] for column in met.T]
        w = torch.ones_like(wanted) if self.weights is None else self.weights
        w, wanted = w[rows.order], wanted[rows.order]
        gram = torch.zeros(n, d, d, dtype=torch.float64, device=wanted.device)
        right = torch.zeros(n, d, dtype=torch.float64, device=wanted.device)
        for a in range(d):  # column by column: N numbers at a time
            weighted = w * columns[a]
            right[:, a] = segment_sums(weighted * wanted, rows.ends)
            for b in range(a + 1):
                gram[:, a, b] = gram[:, b, a] = segment_sums(weighted * columns[b], rows.ends)
        lower = torch.linalg.cholesky(precision * gram + to_device(prior.precisions)[to_device(prior.labels)])
        shift, normals = precision * right + to_device(prior.shift), self._normals(n * d).view(n, d).double()
        z = torch.linalg.solve_triangular(lower, shift[:, :, None], upper=False) + normals[:, :, None]
        drawn = torch.linalg.solve_triangular(lower.mT, z, upper=True)[:, :, 0].float()
        add_products(self.residual, (met, rows.others), (drawn - old, rows.own), -1.0)
        return np.array(drawn.cpu().numpy())

    def _draw_cells(self, t: int, stats: Tensor, normals: Floats) -> None:
        """Column c of G ~ N(A⁻¹h, A⁻¹), A = Σ_x n_xc p pᵀ/σ² + 1/τ, h = Σ_x S_xc p/σ², p = scale·contents."""
        layer, state, contents = self.problem.layers[t], self.state, self.held[t]
        basket, m = self.layout.baskets[layer.basket], layer.n_token_clusters
        prior = 1.0 / state.cell_variances[t]
        if contents is None or basket is None:  # every source has one token: the precision is diagonal
            own = members(self.tokens[t], m)
            counts, totals = ((own.T @ stats[:, i]).double().cpu().numpy() for i in (0, 1))
            root = np.sqrt(counts / state.noise + prior)
            state.cells[t] = ((totals / state.noise / root + normals.T) / root).astype(np.float32)
            return
        p = (basket.scale[:, None] * contents).double()
        counts, sums = stats[:, 0].double(), stats[:, 1].double()
        squares = ((p[:, :, None] * p[:, None, :]).flatten(1).T @ counts).view(m, m, -1).permute(2, 0, 1)
        both = torch.cat([squares.flatten(1), (p.T @ sums).T], dim=1).cpu().numpy() / state.noise
        precision = both[:, : m * m].reshape(-1, m, m) + prior * np.eye(m)
        lower = np.linalg.cholesky(precision)
        z = np.linalg.solve(lower, both[:, m * m :, None]) + normals[:, :, None]
        state.cells[t] = np.linalg.solve(lower.transpose(0, 2, 1), z)[:, :, 0].T.astype(np.float32)

    def _draw_tokens(self, t: int, stats: Tensor, log_share: Tensor, half: float) -> None:
        """P(d(j) = k) as in `gingham.models.layers.kernels.draw_tokens`; without baskets tokens are independent."""
        layer = self.problem.layers[t]
        basket, labels = self.layout.baskets[layer.basket], self.tokens[t]
        cells, uniforms = to_device(self.state.cells[t]), self._uniforms(1, len(labels))
        counts, sums = stats[:, 0], stats[:, 1]
        if basket is None:
            self.tokens[t] = pick(log_share + half * (2.0 * sums @ cells.T - counts @ cells.T**2), uniforms)
            return
        counts = basket.scale[:, None] ** 2 * counts
        sums = basket.scale[:, None] * (sums - stats[:, 0] * self._pull(t))
        draw_tokens(basket, counts.contiguous(), sums.contiguous(), cells, log_share, half, uniforms, labels)
        self.held[t] = self._contents(t)

    def _cut_gains(self, proposed: Floats) -> Floats:
        state, codes = self.state, self.layout.label_codes
        gains = np.zeros(len(state.cuts))
        moved = np.flatnonzero(proposed != state.cuts)
        touched = {int(label) for at in moved for label in (at, at + 1)}
        sums = dict.fromkeys(touched, 0.0)
        sd = float(np.sqrt(state.noise))
        then, now = (np.concatenate([[-1e30], cuts, [1e30]]) for cuts in (proposed, state.cuts))
        for start in range(0, len(codes), ROWS):
            some = slice(start, start + ROWS)
            own, f = codes[some], (self.latent[some] - self.residual[some]).double()
            for label in touched:
                rows = torch.nonzero(own == label).ravel()
                effect = f[rows]
                mass = [
                    interval(effect, bounds[label], bounds[label + 1], sd).clamp(min=1e-12) for bounds in (then, now)
                ]
                ratio = torch.log(mass[0] / mass[1])
                if self.weights is not None:
                    ratio *= self.weights[some][rows]
                sums[label] += float(ratio.sum())
        for at in moved:
            gains[at] = sums[int(at)] + sums[int(at) + 1]
        return gains

    def _draw_latent(self) -> None:
        sd = float(np.sqrt(self.state.noise))
        bounds = to_device(np.concatenate([[-1e30], self.state.cuts, [1e30]]))
        for start in range(0, len(self.latent), ROWS):
            some = slice(start, start + ROWS)
            own = self.layout.label_codes[some].int()
            f = (self.latent[some] - self.residual[some]).double()
            low, high = ((bounds.index_select(0, own + side) - f) / sd for side in (0, 1))
            below, above = torch.special.ndtr(low), torch.special.ndtr(high)
            uniforms = self._uniforms(2, len(f)).double()
            place = torch.special.ndtri((below + (above - below) * uniforms).clamp(EDGE, 1.0 - EDGE))
            if self.weights is not None:
                w = self.weights[some].double()
                inside = (above - below).clamp(min=1e-12)
                slopes = torch.exp(-0.5 * low.square().clamp(max=1e3)) - torch.exp(-0.5 * high.square().clamp(max=1e3))
                middle = slopes / np.sqrt(2.0 * np.pi) / inside
                moved = middle + (place - middle) / w.clamp(min=1e-12).sqrt()
                place = torch.where(w == 1, place, torch.where(w == 0, self.residual[some].double() / sd, moved))
            self.residual[some] = (sd * place).float()
            self.latent[some] = (f + sd * place).float()

    # random numbers for every row or item

    @property
    def _random(self) -> torch.Generator:
        if self._generator is None:
            seed = int(self.rng.integers(2**62))
            self._generator = torch.Generator(self.layout.codes[0].device).manual_seed(seed)
        return self._generator

    def _uniforms(self, which: int, n: int) -> Tensor:
        return torch.rand(n, generator=self._random, device=self._random.device)

    def _normals(self, n: int) -> Tensor:
        return torch.randn(n, generator=self._random, device=self._random.device)


class DeviceLayerRows(NamedTuple):
    """`gingham.models.layers.draws.LayerRows` on the device."""

    sources: Tensor
    source_of: Tensor
    targets: Tensor
    joins: Tensor


class DevicePredictionRows:
    """Rows to predict, on the device; see `PredictionRows.effect` and `LayerDraws.predictive`."""

    def __init__(self, draws: LayerDraws, rows: PredictionRows) -> None:
        self.draws, self.rows = draws, rows
        self.points = None if rows.points is None else tuple(to_device(at.astype(np.int64)) for at in rows.points)
        put = cache(lambda key: to_device(arrays[key]))  # layers share most arrays
        arrays = {id(a): a for layer in rows.layers for a in layer}
        self.codes = [to_device(code) for code in rows.codes]
        self.layers = [DeviceLayerRows(*(put(id(a)) for a in layer)) for layer in rows.layers]
        baskets = {layer.basket: draws.baskets[layer.basket] for layer in draws.layers if layer.kind != ITEM}
        self.baskets = {at: self._rows(basket) for at, basket in baskets.items()}
        self.sizes = {at: to_device(np.diff(basket.indptr)).float() for at, basket in baskets.items()}

    @staticmethod
    def _rows(basket: Basket) -> DeviceRows:
        tables = to_device(basket.sources), [to_device(basket.tokens)]
        return device_rows(*tables, None, None, None, basket.n_sources, 1, [1], [basket.n_tokens])

    def effect(self, s: int) -> Tensor:
        """f of every row in one draw, without time windows, (N,) float64."""
        draws = self.draws
        f = torch.full((len(self.codes[0]),), float(draws.means[s]), dtype=torch.float64, device=self.codes[0].device)
        for mode, code in enumerate(self.codes):
            offsets = to_device(np.append(draws.offsets_of(s, mode), np.float32(0)))
            f += offsets.index_select(0, code % len(offsets))  # −1 is the last
        for t in range(len(self.layers)):
            f += self._pulled(s, t)
        points = draws.points(s)
        if points is not None and self.points is not None:
            tables = to_device(np.ascontiguousarray(points.sources)), to_device(points.targets)
            add_products(f, (tables[0], self.points[0]), (tables[1], self.points[1]), 1.0)
        return f

    def _pulled(self, s: int, t: int) -> Tensor:
        """The effect of one layer in one draw; see `gingham.models.layers.kernels.add_pulls`."""
        draws, rows, layer = self.draws, self.layers[t], self.draws.layers[t]
        labels = draws.tokens(s, t)
        table, targets = with_unknown(draws.cells_of(s, t), draws.targets(s, t), labels)
        cells, tokens, clusters = to_device(table), to_device(labels), to_device(targets)
        last = len(table) - 1
        at = clusters.index_select(0, rows.targets).long()
        sources = rows.sources.long()
        if layer.kind == ITEM:
            own = torch.cat([tokens, tokens.new_full((1,), last)]).long()  # −1 is the last
            return cells[own[sources], :].index_select(0, rows.source_of).gather(1, at[:, None])[:, 0]
        held = basket_sums(self.baskets[layer.basket], members(tokens, last + 1))
        known = (sources >= 0).float()
        pulls = known[:, None] * (held @ cells)[sources.clamp(min=0)]
        sizes = known * self.sizes[layer.basket][sources.clamp(min=0)]
        pull = pulls.index_select(0, rows.source_of).gather(1, at[:, None])[:, 0]
        size = sizes.index_select(0, rows.source_of)
        if layer.joins:
            more = torch.cat([tokens, tokens.new_full((1,), last)]).long()  # an unknown target is an average one
            joins = rows.joins.float()
            pull = pull + joins * cells[more[rows.targets.long()], at]
            size = size + joins
        return torch.where(size > 0, pull / size.clamp(min=1.0).sqrt(), 0.0)

    def sums(self, windows: Sequence[tuple[Floats, Floats]], cuts: Floats) -> tuple[Floats, Floats]:
        """Σ f, (N,), and Σ P(y ≤ value), (N, cuts), over the draws; ``windows`` has offsets and variances per chain."""
        draws, n = self.draws, len(self.codes[0])
        total = torch.zeros(n, dtype=torch.float64, device=self.codes[0].device)
        below = torch.zeros(n, cuts.shape[1], dtype=torch.float64, device=total.device)
        dated = [[to_device(part) for part in pair] for pair in windows] if draws.windows is not None else None
        for s in range(draws.n_draws):
            f = self.effect(s)
            spread = torch.full_like(f, draws.noise)
            if dated is not None:
                add, more = dated[draws.chains[s]]
                f += add
                spread += more
            total += f
            if not cuts.shape[1]:
                continue
            for mode, code in enumerate(self.codes):  # of items without labels
                offsets = to_device(np.append(draws.offsets_of(s, mode), np.float32(0)))
                unknown = offsets.index_select(0, code % len(offsets)) == 0
                spread += torch.where(unknown, float(draws.variances[s, mode]), 0.0)
            if self.points is not None:
                spread += to_device(self.rows.points_variance(draws, s))
            sd = spread.sqrt_()
            for k in range(cuts.shape[1]):
                below[:, k] += torch.special.ndtr((float(cuts[s, k]) - f) / sd)
        return total.cpu().numpy(), below.cpu().numpy()


def add_products(out: Tensor, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor], sign: float) -> None:
    """out[e] += sign · (a row of one table) · (a row of another)."""
    for a, b in zip(left[0].T, right[0].T):
        out += sign * a.index_select(0, left[1]) * b.index_select(0, right[1])


def members(labels: Tensor, m: int) -> Tensor:
    """One row per item, 1 at its cluster, (n, m) float32."""
    return (labels[:, None] == torch.arange(m, device=labels.device, dtype=torch.uint8)).float()


def basket_sums(rows: DeviceRows, values: Tensor) -> Tensor:
    """Sums over what each holds, (n, width), of values (others, width)."""
    parts = [project_block(rows, block, [values.contiguous()])[:, 0] for block in rows.blocks]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def segment_sums(values: Tensor | None, ends: Tensor) -> Tensor:
    """Sums of rows that stand side by side, float64; the number of rows where no values are given."""
    if values is None:
        return ends.diff().double()
    return torch.segment_reduce(values, "sum", lengths=ends.diff(), unsafe=True).double()


def interval(f: Tensor, low: float, high: float, sd: float) -> Tensor:
    """P(low < z ≤ high) of z ~ N(f, sd²)."""
    return torch.special.ndtr((high - f) / sd) - torch.special.ndtr((low - f) / sd)


def pick(scores: Tensor, uniforms: Tensor) -> Tensor:
    """A cluster for each row by its log weights (n, m), by inverting the cumulated weights."""
    m = scores.shape[1]
    weight = torch.exp(scores - scores.max(1, keepdim=True).values)
    below = weight @ torch.ones(m, m, device=weight.device).triu()  # cumsum is slow on short rows
    return (uniforms[:, None] * below[:, -1:] > below[:, :-1]).sum(1).to(torch.uint8)


def add_pulls(f: Tensor, sources: Tensor, targets: Tensor, pull: Tensor, labels: Tensor, sign: float) -> None:
    """f[e] += sign · pull[source, cluster of the target]."""
    if triton_kernels is not None and f.is_cuda and f.dtype == torch.float32:
        triton_kernels.add_pulls(f, sources, targets, pull, labels, sign)
        return
    for start in range(0, len(f), ROWS):
        some = slice(start, start + ROWS)
        at = sources[some].long() * pull.shape[1] + labels.index_select(0, targets[some]).long()
        f[some] += sign * pull.reshape(-1).index_select(0, at)


def target_scores(rows: DeviceRows, pull: Tensor, residual: Tensor, weights: Tensor | None) -> Tensor:
    """Σ_e w g_k (2r − g_k) over the rows of each target, (n, W); g is what their sources pull at cluster k."""
    (block,) = rows.blocks
    index, order = rows.others
    width = pull.shape[1]
    out = torch.zeros(block.n_rows + block.n_partials, width, device=pull.device)
    if triton_kernels is not None and pull.is_cuda:
        triton_kernels.pull_scores(block, index, order, pull.contiguous(), residual, weights, out)
        return out[: block.n_rows]
    item = torch.repeat_interleave(block.target, (block.end - block.begin).long())
    g = pull.index_select(0, index)
    gain = g * (2.0 * residual[order.long()][:, None] - g)
    if weights is not None:
        gain *= weights[order.long()][:, None]
    out.index_add_(0, item, gain)
    for row, begin, end in zip(block.fold_row.tolist(), block.fold_begin.tolist(), block.fold_end.tolist()):
        out[row] = out[block.n_rows + begin : block.n_rows + end].sum(0)
    return out[: block.n_rows]


def histograms(rows: DeviceRows, labels: Tensor, residual: Tensor, weights: Tensor | None, width: int) -> Tensor:
    """Σ w and Σ w r of every item's rows by the cluster of the item at their other end, (n, 2, width)."""
    (block,) = rows.blocks
    index, order = rows.others
    out = torch.zeros(block.n_rows + block.n_partials, 1, 2, width, device=residual.device)
    if triton_kernels is not None and residual.is_cuda:
        parts = labels[None].contiguous(), residual[None]
        triton_kernels.residual_histograms(block, index, order, *parts, weights, width, out)
        return out[: block.n_rows, 0]
    out = out[:, 0]
    item = torch.repeat_interleave(block.target, (block.end - block.begin).long())
    flat = item * 2 * width + labels[index.long()].long()
    w = torch.ones_like(residual) if weights is None else weights
    w, wr = w[order.long()], (w * residual)[order.long()]
    out.view(-1).index_add_(0, flat, w).index_add_(0, flat + width, wr)
    for row, begin, end in zip(block.fold_row.tolist(), block.fold_begin.tolist(), block.fold_end.tolist()):
        out[row] = out[block.n_rows + begin : block.n_rows + end].sum(0)
    return out[: block.n_rows]


def draw_tokens(
    basket: DeviceBasket, counts: Tensor, sums: Tensor, cells: Tensor, log_share: Tensor, half: float, uniforms: Tensor,
    labels: Tensor,
) -> None:  # fmt: skip
    """Draw the cluster of every token, one after the other, into ``labels``.

    P(d(j) = k) ∝ exp(log_share_k + half Σ_c D_c (2B_c − A_c D_c)), D = G_k − G_old, A = Σ_x seen_x and B = Σ_x heard_x
    over the sources x that hold token j; ``sums`` is kept up to date.
    """
    total = basket_sums(basket.by_token, counts)
    if triton_kernels is not None and counts.is_cuda:
        triton_kernels.draw_tokens(
            basket.indptr, basket.holders, total, counts, sums, cells, log_share, half, uniforms, labels
        )
        return
    ends: Sequence[int] = basket.indptr.tolist()
    for j, now in enumerate(labels.tolist()):
        holders = basket.holders[ends[j] : ends[j + 1]].long()
        step = cells - cells[now]
        scores = log_share + half * (step * (2.0 * sums[holders].sum(0) - total[j] * step)).sum(1)
        new = int(pick(scores[None], uniforms[j : j + 1])[0])
        if new != now:
            labels[j] = new
            sums[holders] -= counts[holders] * step[new]
