"""One chain of draws on the cores.

A chain makes the draws that tests/models/layers/reference.py defines, in the layout of `gingham.models.layers.kernels`.
Rows are kept grouped by the items of each target mode, so residuals move from one order to the next twice per sweep
rather than once per layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.engine.files import by_blocks, gathered, room
from gingham.lazy import lazy_module
from gingham.models.layers.positions import PositionPlan, Positions, Prior
from gingham.models.layers.problem import BASKET, ChainState, LayerPlan, LayerProblem, inner_cuts
from gingham.storage import State

if TYPE_CHECKING:
    from gingham.models.layers import kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.kernels")

LOWEST = -1e30  # log share of padding, which is never drawn
ADAPT = 5  # sweeps of the burn-in after which the step sizes of the cut points are adjusted


@dataclass(frozen=True, eq=False)
class Order:
    """The rows grouped by one mode's items."""

    indptr: Ints  # (n_items + 1,) int64
    targets: Ints  # (N,) uint32, this mode's own codes
    sources: dict[int, Ints]  # codes of the source modes of layers that have this target, (N,) uint32
    weights: Floats | None  # (N,) float32
    from_last: Ints  # each row's position in the previous order: of the mode before, or (mode 0) of the last mode


class PositionRows(NamedTuple):
    """The rows of the positions of a mode's items, in the order of the mode."""

    indptr: Ints  # (n_positions + 1,) int64
    rows: Ints  # (N,) uint32, those of each position together
    others: Ints  # (N,) uint32, the positions of the other mode that they meet

    @classmethod
    def of(cls, own: Ints, others: Ints, n: int) -> PositionRows:
        rows = np.argsort(own, kind="stable").astype(np.uint32)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(own, minlength=n))])
        return cls(indptr.astype(np.int64), rows, gathered(others, rows, np.uint32))


@dataclass(frozen=True, eq=False)
class Layout:
    """The rows of a problem in the orders that chains need, shared by all chains."""

    orders: tuple[Order, ...]
    widths: tuple[int, ...]  # of each layer's tables: its number of target clusters, padded to a multiple of four
    label_codes: Ints  # (N,) uint8, empty for the gaussian likelihood
    positions: dict[int, PositionRows]  # of both modes that have positions

    @classmethod
    def of(cls, problem: LayerProblem) -> Layout:
        codes = problem.codes
        kind = np.int32 if problem.n_rows < 2**31 else np.int64
        rows = [np.arange(problem.n_rows, dtype=kind)]  # the first mode's order is the order of the problem
        rows += [np.argsort(codes[j], kind="stable").astype(kind) for j in range(1, problem.n_modes)]
        orders = []
        for mode, mine in enumerate(rows):
            place = np.empty_like(mine)  # each row's position in the previous order
            place[rows[mode - 1]] = np.arange(problem.n_rows, dtype=kind)
            from_modes = {layer.source for layer in problem.layers if layer.target == mode}
            counts = np.bincount(codes[mode], minlength=problem.n_items[mode])
            orders.append(
                Order(
                    np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                    gathered(codes[mode], mine, np.uint32),
                    {j: gathered(codes[j], mine, np.uint32) for j in sorted(from_modes)},
                    None if problem.weights is None else gathered(problem.weights, mine, np.float32),
                    by_blocks(lambda at: place[mine[at]], problem.n_rows, codes),  # noqa: B023
                )
            )
        label_codes = problem.label_codes
        marks = by_blocks(lambda at: label_codes[at].astype(np.uint8), len(label_codes), label_codes)
        widths, plan, met = tuple(padded(layer.n_target_clusters) for layer in problem.layers), problem.positions, {}
        if plan is not None:
            source, target = problem.position_codes
            n_source, n_target = problem.n_items[plan.source] * plan.n_periods, problem.n_items[plan.target]
            here, there = rows[plan.source], rows[plan.target]
            met[plan.source] = PositionRows.of(source[here], target[here], n_source)
            met[plan.target] = PositionRows.of(target[there], source[there], n_target)
        return cls(tuple(orders), widths, marks, met)

    def begin(self, problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> Chain:
        """A chain on these rows; the problem may have other phases of its time windows."""
        return Chain(problem, state, rng, self)

    def with_weights(self, problem: LayerProblem, weights: Floats | None) -> Layout:
        """The same rows with other weights, (N,) in the order of the problem; 0 for rows that do not count."""
        orders, rows = [], np.arange(problem.n_rows)
        for mode, order in enumerate(self.orders):
            rows = gathered(rows, order.from_last) if mode else rows
            mine = None if weights is None else gathered(weights, rows, np.float32)
            orders.append(replace(order, weights=mine))
        return replace(self, orders=tuple(orders))


def padded(m: int) -> int:
    """The number of clusters, rounded up to fill vector registers."""
    return -(-m // 4) * 4


class Chain:
    """One chain. ``state`` holds its present draw and `sweep` makes the next; ``noise`` may be set between sweeps."""

    def __init__(
        self, problem: LayerProblem, state: ChainState, rng: np.random.Generator, layout: Layout | None = None
    ) -> None:
        self.problem, self.rng = problem, rng
        self.layout = Layout.of(problem) if layout is None else layout
        self._load_state(state)

    def _load_state(self, state: ChainState) -> None:
        """Continue from a state, and compute what follows from it."""
        problem, self.state = self.problem, state
        self.accepted: Ints = np.zeros(len(state.cuts), dtype=np.int64)
        self.none: Floats = np.zeros((0, 0), dtype=np.float32)
        baskets = [problem.baskets[layer.basket] for layer in problem.layers]
        self.contents = [
            self.none if basket.is_itself else basket.contents(labels, padded(layer.n_token_clusters))
            for basket, labels, layer in zip(baskets, state.tokens, problem.layers)
        ]
        self._load_cells(state)
        sizes = [problem.n_items[layer.source] * w for layer, w in zip(problem.layers, self.layout.widths)]
        most = [max(map(len, labels), default=0) for labels in (state.targets, state.tokens)]
        self.uniforms = [np.empty(size, dtype=np.float32) for size in (*most, problem.n_rows)]
        self.table, self.stats, self.work = np.zeros((3, 2 * max(sizes, default=0)), dtype=np.float32)
        latent = state.latent
        self.residual: Floats = by_blocks(
            lambda rows: (latent[rows] - self.effect(rows)).astype(np.float32), problem.n_rows, problem.codes
        )
        self.spare: Floats = room(problem.n_rows, np.float32, problem.codes)

    def _load_cells(self, state: ChainState) -> None:
        """Cells padded to the width of the tables; the state's cells are views of them."""
        self.cells = [np.zeros((padded(len(g)), padded(g.shape[1])), dtype=np.float32) for g in state.cells]
        for t, (padding, cells) in enumerate(zip(self.cells, state.cells)):
            padding[: len(cells), : cells.shape[1]] = cells
            state.cells[t] = padding[: len(cells), : cells.shape[1]]

    # checkpoints

    def _to_file(self) -> State:
        """All that sweeps change."""
        state = {part.name: deepcopy(getattr(self.state, part.name)) for part in fields(self.state)}
        state["cells"] = [np.ascontiguousarray(cells) for cells in state["cells"]]
        return {
            "state": state, "residual": self._residual_now(), "accepted": self.accepted.copy(),
            "random": self.rng.bit_generator.state,
        }  # fmt: skip

    def _residual_now(self) -> Floats:
        return self.residual.copy()

    def restore(self, kept: State) -> None:
        """Continue from the state that `to_file` returned for a chain of the same problem."""
        self.rng.bit_generator.state = kept["random"]
        self._load_state(ChainState(**kept["state"]))
        self.residual, self.accepted = kept["residual"].copy(), kept["accepted"].copy()

    # what follows from the state

    def effect(self, rows: slice = slice(None)) -> Floats:
        """f of some rows from scratch, of all by default."""
        problem, state = self.problem, self.state
        codes = problem.codes[:, rows]
        f: Floats = np.full(codes.shape[1], state.mean)
        for b, code in zip(state.offsets, codes):
            f += b[code]
        for b, ends in zip(state.offsets[problem.n_modes :], problem.window_ends):
            f += np.repeat(b, np.diff(ends))[rows]
        for t, layer in enumerate(problem.layers):
            basket = problem.baskets[layer.basket]
            if basket.is_itself:
                pull: Floats = self.cells[t][state.tokens[t]]
            else:
                pull = basket.scale[:, None] * (self.contents[t] @ self.cells[t])
            f += pull[codes[layer.source], state.targets[t][codes[layer.target]]]
        if (points := state.positions) is not None:
            source, target = (code[rows] for code in problem.position_codes)
            kernel.add_products((points.sources, source), (points.targets, target), f)
        return f

    def draw(self) -> ChainState:
        """The whole present draw."""
        return self.state

    def leave_out(self, held: Bools | None) -> None:
        """Draw without some rows from now on, (N,) marks in the order of the problem; with all where it is None."""
        self.left_out = np.zeros(0, dtype=np.int64) if held is None else np.flatnonzero(held)
        self._count_rows(self.problem.weights if held is None else np.where(held, 0.0, self.problem.counts))

    def _count_rows(self, weights: Floats | None) -> None:
        self.layout = self.layout.with_weights(self.problem, weights)

    def effects(self) -> Floats:
        """f of the rows that are left out, between sweeps."""
        return (self.state.latent[self.left_out] - self.residual[self.left_out]).astype(np.float64)

    def add_below(self, effects: Floats, below: Floats) -> None:
        """Add P(y ≤ value) of rows with these effects to ``below``, (rows, K − 1)."""
        sd = np.full(len(effects), np.sqrt(self.state.noise))
        kernel.add_below(effects, sd, self.state.cuts, kernel.PHI, below)

    @cached_property
    def _inner(self) -> Ints:
        return np.array(inner_cuts(self.problem), dtype=np.int64)

    # one sweep

    def sweep(self, adapt: bool = False) -> None:
        """Draw everything once; with ``adapt``, adjust the step sizes of the cut points to their acceptance rates."""
        problem, state = self.problem, self.state
        if state.draws_latent and problem.label_values is not None:
            self._draw_cuts(adapt)
            self._draw_latent()
        for mode in range(problem.n_modes):
            if mode:
                self._reorder(mode)
            if not self._has_points(mode):
                self._draw_offsets(mode)
            if mode == 0:
                for window in range(len(problem.windows)):
                    self._draw_offsets(problem.n_modes + window)
                self._draw_mean()
            if state.draws_layers:
                self._draw_layers(mode)
                if problem.positions is not None and state.positions is not None:
                    self._draw_positions(mode, problem.positions, state.positions)
        if problem.n_modes > 1:
            self._reorder(0)
        state.end_sweep(self._mean_square())

    def _reorder(self, mode: int) -> None:
        """Bring the residuals into the order of the next mode."""
        np.take(self.residual, self.layout.orders[mode].from_last, out=self.spare)
        self.residual, self.spare = self.spare, self.residual

    def _mean_square(self) -> float:
        return float(np.square(self.residual, dtype=np.float64).mean())

    def _draw_offsets(self, kind: int) -> None:
        problem, state, offsets = self.problem, self.state, self.state.offsets[kind]
        window = kind - problem.n_modes
        order = self.layout.orders[kind if window < 0 else 0]
        ends = order.indptr if window < 0 else problem.window_ends[window]
        precisions = 1.0 / state.noise, 1.0 / state.offset_variances[kind]
        normals = self.rng.standard_normal(len(offsets), dtype=np.float32)
        kernel.draw_offsets(ends, self.residual, order.weights, *precisions, normals, offsets)
        squares = float(np.square(offsets, dtype=np.float64).sum())  # not by BLAS, which would start threads of its own
        self._draw_offset_variance(kind, squares, len(offsets))

    def _draw_offset_variance(self, kind: int, squares: float, n: int) -> None:
        """v ~ (weight·scale + Σ b²)/χ²(weight + n)."""
        weight, scale = self.problem.priors.offset_weight, self.problem.offset_variance(kind)
        self.state.offset_variances[kind] = (weight * scale + squares) / float(self.rng.chisquare(weight + n))

    def _draw_mean(self) -> None:
        problem, state = self.problem, self.state
        count, total = self._totals()
        prior = 1.0 / (problem.priors.mean_variance * problem.scale)
        precision = count / state.noise + prior
        centre = ((total + count * state.mean) / state.noise + prior * problem.center) / precision
        new = float(centre + self.rng.standard_normal() / np.sqrt(precision))
        self._shift(new - state.mean)
        state.mean = new

    def _shift(self, change: float) -> None:
        """Take a change of the mean out of the residuals."""
        self.residual -= np.float32(change)

    def _totals(self) -> tuple[float, float]:
        """Σ w and Σ w r of all rows."""
        weights = self.layout.orders[0].weights
        if weights is None:
            return float(self.problem.n_rows), float(self.residual.sum(dtype=np.float64))
        return float(weights.sum(dtype=np.float64)), float((weights * self.residual).sum(dtype=np.float64))

    def _layers_with(self, target: int) -> list[tuple[int, LayerPlan]]:
        """The layers with this target mode that are drawn in this sweep."""
        layers = [(t, layer) for t, layer in enumerate(self.problem.layers) if layer.target == target]
        return [(t, layer) for t, layer in layers if self.state.baskets_enabled or layer.kind != BASKET]

    def _draw_layers(self, mode: int) -> None:
        problem, state, order, widths = self.problem, self.state, self.layout.orders[mode], self.layout.widths
        mine = self._layers_with(mode)
        if not mine:
            return
        shares, normals, freedom = self._random_numbers(mine)
        precision, residual = 1.0 / state.noise, self.residual
        weights, indptr, targets = order.weights, order.indptr, order.targets
        before: Ints = np.zeros(problem.n_items[mode], dtype=np.uint8)
        source, sources, width = mine[0][1].source, order.sources[mine[0][1].source], widths[mine[0][0]]
        self.table[:] = 0
        draw_layer, finish_layers = kernel.draw_layer, kernel.finish_layers
        for at, (t, layer) in enumerate(mine):
            if (layer.source, widths[t]) != (source, width):
                # The table has a row of this width per source: the last layer must leave the residuals first.
                finish_layers(targets, sources, residual, self.table, width, before)
                source, sources, before = layer.source, order.sources[layer.source], np.zeros_like(before)
                width = widths[t]
                self.table[:] = 0
            basket, labels, tokens = problem.baskets[layer.basket], state.targets[t], state.tokens[t]
            token_indptr, holders = basket.by_token
            used = basket.n_sources * 2 * width
            squares = draw_layer(
                indptr, targets, sources, residual, weights, self.table[:used], before, labels,
                layer.n_target_clusters, precision, shares[at, 0, :width], self._uniforms(0, len(labels)),
                self.stats[:used], token_indptr, holders, self.contents[t], basket.scale, tokens,
                shares[at, 1, : layer.n_token_clusters], self._uniforms(1, len(tokens)), state.cell_variances[t],
                normals[at, :, : layer.n_target_clusters, : layer.n_token_clusters], self.cells[t], self.work[:used],
            )  # fmt: skip
            before = labels
            self._draw_cell_variance(t, squares, freedom[at])
        finish_layers(targets, sources, residual, self.table, width, before)

    def _has_points(self, mode: int) -> bool:
        """Whether the offsets of a mode are drawn with the positions of its items."""
        plan = self.problem.positions
        return plan is not None and mode == plan.target and self.state.draws_layers

    def _draw_positions(self, mode: int, plan: PositionPlan, points: Positions) -> None:
        """Positions of a mode's items, and the offsets of targets, after what they depend on."""
        state, rng = self.state, self.rng
        if mode == plan.source:
            prior = points.draw_sources_prior(self._present, state.noise, state.settled, rng)
            points.sources = self._draw_points(mode, points.targets, prior, points.sources)
        if mode == plan.target:
            prior = points.draw_targets_prior(state.offsets[mode], state.noise, state.settled, rng)
            ones: Floats = np.ones(len(points.sources), dtype=np.float32)
            own = np.column_stack([state.offsets[mode], points.targets])
            own = self._draw_points(mode, np.column_stack([ones, points.sources]), prior, own)
            state.offsets[mode], points.targets = np.ascontiguousarray(own[:, 0]), np.ascontiguousarray(own[:, 1:])

    @cached_property
    def _present(self) -> Bools:
        """The periods in which each source has rows, (n_sources, periods)."""
        problem, plan = self.problem, self.problem.positions
        n, periods = (0, 1) if plan is None else (problem.n_items[plan.source], plan.n_periods)
        return np.bincount(problem.position_codes[0], minlength=n * periods).reshape(n, periods) > 0

    def _draw_points(self, mode: int, features: Floats, prior: Prior, own: Floats) -> Floats:
        rows, weights = self.layout.positions[mode], self.layout.orders[mode].weights
        normals = self.rng.standard_normal(own.shape, dtype=np.float32)
        kernel.draw_positions(
            *rows, self.residual, weights, features, 1.0 / self.state.noise, *prior, normals, own
        )  # fmt: skip
        return own

    def _draw_cell_variance(self, t: int, squares: float, chi2: float) -> None:
        """v ~ (weight·scale + Σ G²)/χ²(weight + cells), as of offsets."""
        priors = self.problem.priors
        prior = priors.cell_weight * priors.cell_variance * self.state.noise
        self.state.cell_variances[t] = (prior + squares) / chi2

    def _label_counts(self, t: int) -> Sequence[Ints]:
        """The numbers of targets and of tokens in each cluster of a layer."""
        layer, state = self.problem.layers[t], self.state
        sizes = layer.n_target_clusters, layer.n_token_clusters
        return [np.bincount(own, minlength=m) for own, m in zip((state.targets[t], state.tokens[t]), sizes)]

    def _random_numbers(self, mine: Sequence[tuple[int, LayerPlan]]) -> tuple[Floats, Floats, list[float]]:
        """Random numbers of some layers except uniforms: one call per kind, because calls cost more than numbers.

        Returns
        -------
        Logarithms of unnormalised shares of the clusters of targets and of tokens (layers, 2, most clusters), π ~
        Dirichlet(1 + counts), padded with log shares of clusters that are never drawn; normals (layers, 2, target
        clusters, token clusters); χ² for the variance of the cells.
        """
        rng = self.rng
        sizes = [(layer.n_target_clusters, layer.n_token_clusters) for _, layer in mine]
        counts = [own for t, _ in mine for own in self._label_counts(t)]
        logs = np.log(rng.standard_gamma(np.concatenate(counts) + 1.0))
        most = max(max(own) for own in sizes)
        shares = np.full((len(mine), 2, padded(most)), LOWEST, dtype=np.float32)
        shares.reshape(-1, shares.shape[2])[np.arange(shares.shape[2]) < np.array(sizes).reshape(-1, 1)] = logs
        normals = rng.standard_normal((len(mine), 2, max(m for m, _ in sizes), max(m for _, m in sizes)))
        freedom = rng.chisquare([self.problem.priors.cell_weight + m * k for m, k in sizes])
        return shares, normals, freedom.tolist()

    def _uniforms(self, which: int, n: int) -> Floats:
        """The next n uniforms, in one of three buffers: allocating memory costs more than drawing the numbers."""
        buffer: Floats = self.uniforms[which][:n]
        self.rng.random(dtype=np.float32, out=buffer)
        return buffer

    def _draw_cuts(self, adapt: bool) -> None:
        state = self.state
        for parity in (0, 1):
            chosen = self._inner[parity::2]
            if not len(chosen):
                continue
            proposed = state.cuts.copy()
            proposed[chosen] += state.steps[chosen] * self.rng.standard_normal(len(chosen))
            limits = np.log(self.rng.random(len(chosen)))
            inside = (state.cuts[chosen - 1] < proposed[chosen]) & (proposed[chosen] < state.cuts[chosen + 1])
            proposed[chosen[~inside]] = state.cuts[chosen[~inside]]
            gains = self._cut_gains(proposed)
            accepted = chosen[inside & (limits < gains[chosen])]
            state.cuts[accepted] = proposed[accepted]
            self.accepted[accepted] += 1
        if adapt and state.n_sweeps % ADAPT == ADAPT - 1:
            # Two of five proposals should be accepted.
            state.steps *= np.where(self.accepted > 0.4 * ADAPT, 1.3, np.where(self.accepted < 0.4 * ADAPT, 0.75, 1.0))
            self.accepted[:] = 0

    def _cut_gains(self, proposed: Floats) -> Floats:
        """Σ_e w ln P(y | proposed)/P(y | cuts) for each cut that moves, (K − 1,)."""
        state = self.state
        return kernel.cut_gains(
            self.layout.label_codes, state.latent, self.residual, self.layout.orders[0].weights,
            float(np.sqrt(state.noise)), state.cuts, proposed, kernel.PHI,
        )  # fmt: skip

    def _draw_latent(self) -> None:
        state = self.state
        kernel.draw_latent(
            self.layout.label_codes, state.latent, self.residual, self.layout.orders[0].weights,
            float(np.sqrt(state.noise)), state.cuts, self._uniforms(2, self.problem.n_rows), kernel.PHI,
        )  # fmt: skip
