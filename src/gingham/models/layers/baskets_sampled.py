"""Chains of basket layers: the draws of `baskets_reference`, in the layout of `baskets_kernels`.

Rows are kept grouped by each mode that layers aim at; residuals move from one order to the next twice a sweep, not
once a layer. All numbers that a layer needs lie in arrays of fixed width, so layers and chains could be stacked.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.lazy import lazy_module
from gingham.models.layers.baskets import HABIT, SETTLE, BasketProblem, BasketState, LayerPlan, inner_cuts
from gingham.storage import State

if TYPE_CHECKING:
    from gingham.models.layers import baskets_kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.baskets_kernels")

ADAPT = 5  # sweeps of the burn-in after which the steps of the cut points are looked at


@dataclass(frozen=True, eq=False)
class Order:
    """The rows grouped by one mode's items."""

    indptr: Ints  # (n_items + 1,) int64
    targets: Ints  # (N,) uint32, this mode's own codes
    sources: dict[int, Ints]  # codes of the modes that layers look from, (N,) uint32
    weights: Floats | None  # (N,) float32
    from_last: Ints  # where each row stands in the order before: of the mode before, or (mode 0) the last one's


@dataclass(frozen=True, eq=False)
class Layout:
    """The rows of a problem as chains want them; made once for all chains."""

    orders: tuple[Order, ...]
    width: int  # of tables: the largest number of target clusters, padded to a multiple of four
    letters: Ints  # (N,) uint8, empty for the gaussian likelihood

    @classmethod
    def of(cls, problem: BasketProblem) -> Layout:
        codes = problem.codes
        kind = np.int32 if problem.n_rows < 2**31 else np.int64
        rows = [np.arange(problem.n_rows, dtype=kind)]  # the first mode's order is the order of the problem
        rows += [np.argsort(codes[j], kind="stable").astype(kind) for j in range(1, problem.n_modes)]
        orders = []
        for mode, mine in enumerate(rows):
            place = np.empty_like(mine)  # where each row of the problem stands in the order before this one
            place[rows[mode - 1]] = np.arange(problem.n_rows, dtype=kind)
            looked = {layer.source for layer in problem.layers if layer.target == mode}
            counts = np.bincount(codes[mode], minlength=problem.n_items[mode])
            orders.append(
                Order(
                    np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                    codes[mode][mine].astype(np.uint32),
                    {j: codes[j][mine].astype(np.uint32) for j in sorted(looked)},
                    None if problem.weights is None else problem.weights[mine].astype(np.float32),
                    place[mine],
                )
            )
        m = max([4, *(layer.n_target_clusters for layer in problem.layers)])
        letters = np.zeros(0) if problem.letters is None else problem.letter_codes
        return cls(tuple(orders), padded(m), letters.astype(np.uint8))

    def with_weights(self, problem: BasketProblem, weights: Floats) -> Layout:
        """The same rows with other weights, (N,) in the order of the problem; 0 for rows that do not count."""
        orders, rows = [], np.arange(problem.n_rows)
        for mode, order in enumerate(self.orders):
            rows = rows[order.from_last] if mode else rows
            orders.append(replace(order, weights=weights[rows].astype(np.float32)))
        return replace(self, orders=tuple(orders))


def padded(m: int) -> int:
    """Clusters that fill vector registers."""
    return -(-m // 4) * 4


class BasketChain:
    """One chain. ``state`` is what it has drawn; `sweep` moves it on; ``noise`` may be set between sweeps."""

    def __init__(
        self, problem: BasketProblem, state: BasketState, rng: np.random.Generator, layout: Layout | None = None
    ) -> None:
        self.problem, self.rng = problem, rng
        self.layout = Layout.of(problem) if layout is None else layout
        self._take(state)

    def _take(self, state: BasketState) -> None:
        """Begin with a state: what follows from it is worked out."""
        problem, self.state = self.problem, state
        self.accepted: Ints = np.zeros(len(state.cuts), dtype=np.int64)
        self.none: Floats = np.zeros((0, 0), dtype=np.float32)
        baskets = [problem.baskets[layer.basket] for layer in problem.layers]
        self.contents = [
            self.none if basket.is_itself else basket.contents(labels, padded(layer.n_token_clusters))
            for basket, labels, layer in zip(baskets, state.tokens, problem.layers)
        ]
        # Padded to the width of the tables; the state's cells are views of them.
        self.cells = [np.zeros((padded(len(g)), self.layout.width), dtype=np.float32) for g in state.cells]
        for room, cells in zip(self.cells, state.cells):
            room[: len(cells), : cells.shape[1]] = cells
        n = max([problem.n_items[layer.source] for layer in problem.layers], default=0)
        for t, (room, cells) in enumerate(zip(self.cells, state.cells)):
            state.cells[t] = room[: len(cells), : cells.shape[1]]
        most = [max(map(len, labels), default=0) for labels in (state.targets, state.tokens)]
        self.uniforms = [np.empty(size, dtype=np.float32) for size in (*most, problem.n_rows)]
        self.table, self.stats, self.work = np.zeros((3, n * 2 * self.layout.width), dtype=np.float32)
        self.residual: Floats = (state.latent - self.effect()).astype(np.float32)
        self.spare: Floats = np.empty_like(self.residual)
        self.counts = self.window_counts(problem.weights)

    # checkpoints

    def to_file(self) -> State:
        """All that sweeps change."""
        state = {part.name: deepcopy(getattr(self.state, part.name)) for part in fields(self.state)}
        state["cells"] = [np.ascontiguousarray(cells) for cells in state["cells"]]
        return {
            "state": state, "residual": self.residual.copy(), "accepted": self.accepted.copy(),
            "random": self.rng.bit_generator.state,
        }  # fmt: skip

    def restore(self, kept: State) -> None:
        """Go on from what `to_file` has said of a chain of the same problem."""
        self.rng.bit_generator.state = kept["random"]
        self._take(BasketState(**kept["state"]))
        self.residual, self.accepted = kept["residual"].copy(), kept["accepted"].copy()

    # what follows from the state

    def effect(self) -> Floats:
        """f of every row from scratch, (N,)."""
        problem, state = self.problem, self.state
        f: Floats = np.full(problem.n_rows, state.mean)
        for b, code in zip(state.offsets, problem.codes):
            f += b[code]
        for b, ends in zip(state.offsets[problem.n_modes :], problem.window_ends):
            f += np.repeat(b, np.diff(ends))
        for t, layer in enumerate(problem.layers):
            basket = problem.baskets[layer.basket]
            if basket.is_itself:
                pull: Floats = self.cells[t][state.tokens[t]]
            else:
                pull = basket.scale[:, None] * (self.contents[t] @ self.cells[t])
            f += pull[problem.codes[layer.source], state.targets[t][problem.codes[layer.target]]]
        return f

    @cached_property
    def _begins(self) -> Ints:
        """A bit for each width in the rows that begin a window, (N,)."""
        begins = np.zeros(self.problem.n_rows, dtype=np.uint8)
        for bit, ends in enumerate(self.problem.window_ends):
            begins[ends[:-1]] |= np.uint8(1 << bit)
        return begins

    def window_counts(self, weights: Floats | None) -> list[Floats]:
        """The weight of the rows of every window, for each width."""
        every = self.problem.window_ends
        totals = [np.diff(ends) if weights is None else np.add.reduceat(weights, ends[:-1]) for ends in every]
        return [total.astype(np.float32) for total in totals]

    @cached_property
    def _inner(self) -> Ints:
        return np.array(inner_cuts(self.problem), dtype=np.int64)

    # one sweep

    def sweep(self, adapt: bool = False) -> None:
        """All draws once; with ``adapt`` the steps of the cut points follow how many were accepted."""
        problem, state = self.problem, self.state
        settled = state.n_sweeps >= SETTLE
        if settled and problem.letters is not None:
            self._draw_cuts(adapt)
            self._draw_latent()
        for mode in range(problem.n_modes):
            order = self.layout.orders[mode]
            if mode:
                self._move(order)
            if problem.has_offsets:
                self._draw_offsets(mode)
            if mode == 0:
                for window in range(len(problem.windows)):
                    self._draw_offsets(problem.n_modes + window)
                self._draw_mean()
            if settled:
                self._draw_layers(mode)
        if problem.n_modes > 1:
            self._move(self.layout.orders[0])
        state.end_sweep(float(np.square(self.residual, dtype=np.float64).mean()))

    def _move(self, order: Order) -> None:
        """Residuals into the next order."""
        np.take(self.residual, order.from_last, out=self.spare)
        self.residual, self.spare = self.spare, self.residual

    def _draw_offsets(self, kind: int) -> None:
        problem, state = self.problem, self.state
        window, offsets = kind - problem.n_modes, state.offsets[kind]
        order = self.layout.orders[kind if window < 0 else 0]
        precisions = 1.0 / state.noise, 1.0 / state.offset_variances[kind]
        normals = self.rng.standard_normal(len(offsets), dtype=np.float32)
        if window < 0:
            kernel.draw_offsets(order.indptr, self.residual, order.weights, *precisions, normals, offsets)
        else:
            kernel.draw_windows(
                self._begins, window, self.residual, order.weights, self.counts[window], *precisions, normals, offsets,
                np.empty_like(offsets),
            )  # fmt: skip
        state.offset_variances[kind] = self._variance(
            offsets, problem.priors.offset_weight, problem.offset_variance(kind)
        )

    def _variance(self, values: Floats, weight: float, scale: float) -> float:
        """v ~ (weight·scale + Σ values²)/χ²(weight + n)."""
        squares = float(np.square(values, dtype=np.float64).sum())  # not by BLAS, which would wake other threads
        return (weight * scale + squares) / float(self.rng.chisquare(weight + values.size))

    def _draw_mean(self) -> None:
        problem, state = self.problem, self.state
        weights = self.layout.orders[0].weights
        if weights is None:
            count, total = float(problem.n_rows), float(self.residual.sum(dtype=np.float64))
        else:
            count, total = (float(a.sum(dtype=np.float64)) for a in (weights, weights * self.residual))
        prior = 1.0 / (problem.priors.mean_variance * problem.scale)
        precision = count / state.noise + prior
        centre = ((total + count * state.mean) / state.noise + prior * problem.center) / precision
        new = float(centre + self.rng.standard_normal() / np.sqrt(precision))
        self.residual -= np.float32(new - state.mean)
        state.mean = new

    def _draw_layers(self, mode: int) -> None:
        problem, state, order, width = self.problem, self.state, self.layout.orders[mode], self.layout.width
        layers = [(t, layer) for t, layer in enumerate(problem.layers) if layer.target == mode]
        mine = [(t, layer) for t, layer in layers if state.awake or layer.kind != HABIT]
        if not mine:
            return
        shares, normals, freedom = self._ahead(mine)
        precision, priors, residual = 1.0 / state.noise, problem.priors, self.residual
        weights, indptr, targets = order.weights, order.indptr, order.targets
        before: Ints = np.zeros(problem.n_items[mode], dtype=np.uint8)
        source, sources = mine[0][1].source, order.sources[mine[0][1].source]
        self.table[:] = 0
        draw_layer, finish_layers = kernel.draw_layer, kernel.finish_layers
        for at, (t, layer) in enumerate(mine):
            if layer.source != source:  # the table is by sources: what the layer before pulls must be taken out first
                finish_layers(targets, sources, residual, self.table, width, before)
                source, sources, before = layer.source, order.sources[layer.source], np.zeros_like(before)
                self.table[:] = 0
            basket, labels, tokens = problem.baskets[layer.basket], state.targets[t], state.tokens[t]
            token_indptr, holders = basket.by_token
            used = basket.n_sources * 2 * width
            squares = draw_layer(
                indptr, targets, sources, residual, weights, self.table[:used], before, labels, precision,
                shares[at, 0, :width], self._uniforms(0, len(labels)), self.stats[:used], token_indptr, holders,
                self.contents[t], basket.scale, tokens, shares[at, 1, : layer.n_token_clusters],
                self._uniforms(1, len(tokens)), state.cell_variances[t],
                normals[at, :, : layer.n_target_clusters, : layer.n_token_clusters], self.cells[t], self.work[:used],
            )  # fmt: skip
            before = labels
            # v ~ (weight·scale + Σ G²)/χ²(weight + cells), as of offsets
            prior = priors.cell_weight * priors.cell_variance * state.noise
            state.cell_variances[t] = (prior + squares) / freedom[at]
        finish_layers(targets, sources, residual, self.table, width, before)

    def _ahead(self, mine: Sequence[tuple[int, LayerPlan]]) -> tuple[Floats, Floats, list[float]]:
        """Random numbers that some layers need beside uniforms: one call a kind, for calls cost more than they do.

        Returns
        -------
        Logarithms of unnormalised shares of the clusters of targets and of tokens (layers, 2, most clusters), π ~
        Dirichlet(1 + counts), padded with what is never drawn; normals (layers, 2, target clusters, token clusters);
        χ² for the variance of the cells.
        """
        state, rng = self.state, self.rng
        sizes = [(layer.n_target_clusters, layer.n_token_clusters) for _, layer in mine]
        both = [(state.targets[t], state.tokens[t]) for t, _ in mine]
        counts = [np.bincount(one, minlength=m) for pair, own in zip(both, sizes) for one, m in zip(pair, own)]
        logs = np.log(rng.standard_gamma(np.concatenate(counts) + 1.0))
        most = max(max(own) for own in sizes)
        shares = np.full((len(mine), 2, max(most, self.layout.width)), kernel.LOWEST, dtype=np.float32)
        shares.reshape(-1, shares.shape[2])[np.arange(shares.shape[2]) < np.array(sizes).reshape(-1, 1)] = logs
        normals = rng.standard_normal((len(mine), 2, max(m for m, _ in sizes), max(m for _, m in sizes)))
        freedom = rng.chisquare([self.problem.priors.cell_weight + m * k for m, k in sizes])
        return shares, normals, freedom.tolist()

    def _uniforms(self, which: int, n: int) -> Floats:
        """The next n uniforms, in one of three rooms that are used again: new memory costs more than numbers."""
        room: Floats = self.uniforms[which][:n]
        self.rng.random(dtype=np.float32, out=room)
        return room

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
            gains = kernel.cut_gains(
                self.layout.letters, state.latent, self.residual, self.layout.orders[0].weights,
                float(np.sqrt(state.noise)), state.cuts, proposed, kernel.PHI,
            )  # fmt: skip
            accepted = chosen[inside & (limits < gains[chosen])]
            state.cuts[accepted] = proposed[accepted]
            self.accepted[accepted] += 1
        if adapt and state.n_sweeps % ADAPT == ADAPT - 1:
            # About two of five proposals should be accepted.
            state.steps *= np.where(self.accepted > 0.4 * ADAPT, 1.3, np.where(self.accepted < 0.4 * ADAPT, 0.75, 1.0))
            self.accepted[:] = 0

    def _draw_latent(self) -> None:
        state = self.state
        kernel.draw_latent(
            self.layout.letters, state.latent, self.residual, self.layout.orders[0].weights,
            float(np.sqrt(state.noise)), state.cuts, self._uniforms(2, self.problem.n_rows), kernel.PHI,
        )  # fmt: skip
