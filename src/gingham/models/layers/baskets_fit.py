"""Fitting basket layers: which layers, windows and chains; the noise from rows held out; chains side by side.

The noise σ² is not drawn: hard clusters would fit it away. The first chain begins without a tenth of its rows, and σ²
follows the error of its averaged prediction of these; then the rows come back, and the other chains take that number.

A chain makes the draws of `baskets_reference`, in the layout of `baskets_kernels`. Rows are kept grouped by each mode
that layers aim at; residuals move from one order to the next twice a sweep, not once a layer. All numbers that a layer
needs lie in arrays of fixed width, so layers and chains could be stacked.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.problem import Objective
from gingham.data import Sample
from gingham.engine.place import BACKENDS
from gingham.errors import GinghamError, InterruptedWarning
from gingham.fitting.loop import (
    NO_CHECKPOINT,
    Callback,
    Checkpoint,
    Interrupted,
    Report,
    Trace,
    ignore_progress,
    notifier,
    side_by_side,
)
from gingham.lazy import lazy_module
from gingham.models.layers.baskets import (
    HABIT,
    LEVELS,
    LOWEST,
    SETTLE,
    SIDE,
    TASTE,
    Basket,
    BasketDraws,
    BasketProblem,
    BasketState,
    Intervals,
    Keeper,
    LayerPlan,
    as_they_are,
    calibrated,
    first_state,
    inner_cuts,
    join,
)
from gingham.storage import State

if TYPE_CHECKING:
    from gingham.models.layers import baskets_kernels as kernel
    from gingham.models.layers.baskets_torch import DeviceLayout
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

    def begin(self, problem: BasketProblem, state: BasketState, rng: np.random.Generator) -> BasketChain:
        """A chain with these rows; the problem may have other phases of its windows."""
        return BasketChain(problem, state, rng, self)

    def with_weights(self, problem: BasketProblem, weights: Floats | None) -> Layout:
        """The same rows with other weights, (N,) in the order of the problem; 0 for rows that do not count."""
        orders, rows = [], np.arange(problem.n_rows)
        for mode, order in enumerate(self.orders):
            rows = rows[order.from_last] if mode else rows
            mine = None if weights is None else weights[rows].astype(np.float32)
            orders.append(replace(order, weights=mine))
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
            "state": state, "residual": self._residual_now(), "accepted": self.accepted.copy(),
            "random": self.rng.bit_generator.state,
        }  # fmt: skip

    def _residual_now(self) -> Floats:
        return self.residual.copy()

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

    def count_rows(self, weights: Floats | None) -> None:
        """Rows count by these weights from now on, (N,) in the order of the problem; 0 for rows that do not count."""
        self.layout = self.layout.with_weights(self.problem, weights)
        self.counts = self.window_counts(weights)

    def effects(self, rows: Ints) -> Floats:
        """f of some rows, between sweeps."""
        return (self.state.latent[rows] - self.residual[rows]).astype(np.float64)

    def add_below(self, effects: Floats, below: Floats) -> None:
        """Add P(y ≤ letter) of rows with these effects to ``below``, (rows, K − 1)."""
        sd = np.full(len(effects), np.sqrt(self.state.noise))
        kernel.add_below(effects, sd, self.state.cuts, kernel.PHI, below)

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
            if mode:
                self._enter(mode)
            if problem.has_offsets:
                self._draw_offsets(mode)
            if mode == 0:
                for window in range(len(problem.windows)):
                    self._draw_offsets(problem.n_modes + window)
                self._draw_mean()
            if settled:
                self._draw_layers(mode)
        if problem.n_modes > 1:
            self._enter(0)
        state.end_sweep(self._mean_square())

    def _enter(self, mode: int) -> None:
        """Residuals into the order of the next mode."""
        np.take(self.residual, self.layout.orders[mode].from_last, out=self.spare)
        self.residual, self.spare = self.spare, self.residual

    def _mean_square(self) -> float:
        return float(np.square(self.residual, dtype=np.float64).mean())

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
        count, total = self._totals()
        prior = 1.0 / (problem.priors.mean_variance * problem.scale)
        precision = count / state.noise + prior
        centre = ((total + count * state.mean) / state.noise + prior * problem.center) / precision
        new = float(centre + self.rng.standard_normal() / np.sqrt(precision))
        self.residual -= np.float32(new - state.mean)
        state.mean = new

    def _totals(self) -> tuple[float, float]:
        """Σ w and Σ w r of all rows."""
        weights = self.layout.orders[0].weights
        if weights is None:
            return float(self.problem.n_rows), float(self.residual.sum(dtype=np.float64))
        return float(weights.sum(dtype=np.float64)), float((weights * self.residual).sum(dtype=np.float64))

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
        shares = np.full((len(mine), 2, max(most, self.layout.width)), LOWEST, dtype=np.float32)
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
            gains = self._cut_gains(proposed)
            accepted = chosen[inside & (limits < gains[chosen])]
            state.cuts[accepted] = proposed[accepted]
            self.accepted[accepted] += 1
        if adapt and state.n_sweeps % ADAPT == ADAPT - 1:
            # About two of five proposals should be accepted.
            state.steps *= np.where(self.accepted > 0.4 * ADAPT, 1.3, np.where(self.accepted < 0.4 * ADAPT, 0.75, 1.0))
            self.accepted[:] = 0

    def _cut_gains(self, proposed: Floats) -> Floats:
        """Σ_e w ln P(y | proposed)/P(y | cuts) for each cut that moves, (K − 1,)."""
        state = self.state
        return kernel.cut_gains(
            self.layout.letters, state.latent, self.residual, self.layout.orders[0].weights,
            float(np.sqrt(state.noise)), state.cuts, proposed, kernel.PHI,
        )  # fmt: skip

    def _draw_latent(self) -> None:
        state = self.state
        kernel.draw_latent(
            self.layout.letters, state.latent, self.residual, self.layout.orders[0].weights,
            float(np.sqrt(state.noise)), state.cuts, self._uniforms(2, self.problem.n_rows), kernel.PHI,
        )  # fmt: skip


NOISE = 0.65  # σ² before anything is known, as a share of the labels' variance
HELD = 0.1  # share of the rows that the first chain does without at first
HELD_SWEEPS, HEARD_FROM = 30, 10  # for so many sweeps; from this one on they are predicted
COOLING = 10  # sweeps in which a chain comes down to its noise: one that begins there may freeze where it begins
OWN_SWEEPS = 120  # sweeps where items have clusters of their own: these settle late, so they are heard anew twice
LEAST_NOISE = 0.25  # of the error; a chain that explains more of it by itself has not settled
LEAST_HELD = 10  # rows; with fewer the noise stays where it begins
NARROWER = 8.0  # each width of windows over the next
MOST_WIDTHS = 8
FULL = 0.9  # share of all pairs that are met, above which who met whom says nothing
ALONE = 2_000  # rows up to which chains run one after the other: side by side they would wait for Python
KEEP_EVERY, FEWEST_DRAWS = 3, 10  # neighbouring sweeps say much the same; a chain keeps ten draws at least
MOST_BYTES = 2**30  # of all kept draws: where there would be more, fewer sweeps are kept
CLUSTERS = 4  # of tokens and of targets


class Effort(NamedTuple):
    """How much is done: layers of each kind, chains, sweeps."""

    taste: int
    habit: int  # of each direction, with two modes
    side: int  # of each table
    n_chains: int
    n_sweeps: int
    burn_in: int


EFFORTS = {
    "fast": Effort(2, 6, 2, 2, 40, 12),
    "default": Effort(4, 10, 3, 6, 100, 30),
    "best": Effort(4, 12, 4, 12, 120, 30),
}


ALL_HABITS, ALL_CHAINS = 50_000, 10_000  # rows from which on an effort has all its layers of habits, all its chains
FEWEST_HABITS, FEWEST_CHAINS = 2, 3


def for_rows(effort: Effort, n_rows: int) -> Effort:
    """What an effort means for few rows: fewer layers of habits and fewer chains, both by the root of the rows.

    Of 1,000 ratings two habits a direction and three chains predict others better than ten and six: who met whom says
    little there, and every layer adds noise (benchmarks/speed/small_data.py).
    """

    def part(most: int, fewest: int, enough: int) -> int:
        return min(most, max(fewest, math.ceil(most * math.sqrt(n_rows / enough))))

    return effort._replace(
        habit=part(effort.habit, FEWEST_HABITS, ALL_HABITS), n_chains=part(effort.n_chains, FEWEST_CHAINS, ALL_CHAINS)
    )


PER_ROW, PER_ITEM = 7e-9, 3e-8  # seconds of a layer's sweep for each row, and for each target and token
WORTHWHILE = 0.05  # seconds of a sweep from which on it is asked for a GPU: torch takes seconds to load
BUDGET = 160.0  # CPU seconds that the default number of chains may take; with more data there are fewer chains


# The same on an H200, measured with 20 million rows: for each token, whatever chains there are, and for each row and
# chain (benchmarks/speed/gpu_baskets.py).
ON_DEVICE = 1.3e-6, 7e-10


def gpu_is_there() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def on_device(problem: BasketProblem, backend: str, n_chains: int) -> bool:
    """Whether chains run through torch: when asked for, without numba, or on a GPU where that is quicker."""
    if backend not in BACKENDS:
        raise GinghamError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch" or find_spec("numba") is None:
        if find_spec("torch") is None:
            raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
        return True
    if backend != "auto":
        return False
    held = [problem.baskets[layer.basket] for layer in problem.layers]
    tokens = sum(basket.n_tokens for basket in held if not basket.is_itself)
    device = ON_DEVICE[0] * tokens + ON_DEVICE[1] * problem.n_rows * (len(held) + 10) * n_chains
    # Chains count as side by side on cores, however many there are: the choice must not depend on the machine's.
    core = PER_ROW * problem.n_rows * (len(held) + 10) + PER_ITEM * tokens
    return device < core and core > WORTHWHILE and gpu_is_there()


def layout_for(problem: BasketProblem, backend: str, n_chains: int) -> Layout | DeviceLayout:
    """The rows where chains want them: in memory, or on a GPU."""
    if not on_device(problem, backend, n_chains):
        return Layout.of(problem)
    from gingham.models.layers.baskets_torch import DeviceLayout

    return DeviceLayout.of(problem)


def n_chains_for(problem: BasketProblem, effort: Effort) -> int:
    """The chains of an effort, fewer where they would take too long: with much data each says more."""
    items = sum(problem.n_items[layer.target] + problem.baskets[layer.basket].n_tokens for layer in problem.layers)
    sweep = PER_ROW * problem.n_rows * (len(problem.layers) + 10) + PER_ITEM * items
    budget = BUDGET * effort.n_chains / EFFORTS["default"].n_chains
    return int(np.clip(budget / (sweep * effort.n_sweeps), min(FEWEST_CHAINS, effort.n_chains), effort.n_chains))


MANY, SOME = 300_000, 100_000  # rows from which it is tried out whether habits help, and on how many
MOST_CLUSTERS = 254  # of a mode in a layer: labels are bytes, and one stands for what is unknown
OFTEN, ENOUGH = (
    200,
    10_000,
)  # rows of an item that may have a cluster of its own, and rows that can tell whether it helps
LONGER = 2  # times as long are the chains of such layers, and so many times fewer: they settle late


class Design(NamedTuple):
    """Which layers there are, and how their noise is found."""

    effort: Effort
    taste_clusters: tuple[int, ...]
    own_clusters: bool = False
    reason: str = ""


def designs_for(sample: Sample, usual: Design, sizes_are_open: bool) -> list[Design]:
    """What is worth a trial, the usual design first.

    Layers of habits take most of the time, and say nothing where everybody met what chance brought along. It is asked
    where there are many rows: few cost little, and a sample of few would tell little.

    Where one mode has few items that are met often, each of them may have a cluster of its own, and the items of the
    other mode be in one of two: such a layer is nearly a factor. There are as many as of taste and habit otherwise.
    They settle late, so nothing of the kind is tried where a fast fit is wanted.
    """
    found, effort, few = [usual], usual.effort, min(sample.shape)
    if sample.n_rows >= MANY:
        found.append(usual._replace(effort=effort._replace(habit=0), reason="layers of habit did not help"))
    often = sample.n_rows >= max(OFTEN * few, ENOUGH) and few <= MOST_CLUSTERS
    fast = effort.n_chains < FEWEST_CHAINS
    if sizes_are_open and sample.n_modes == 2 and often and few < max(sample.shape) and not fast:
        mode = int(np.argmin(sample.shape))
        clusters = (few, 2) if mode == 0 else (2, few)
        effort = effort._replace(taste=effort.taste + 2 * effort.habit, habit=0)
        name = sample.modes[mode].name
        found.append(Design(effort, clusters, True, f"clusters of its own for each item of {name!r} helped"))
    return found


def choose_design(
    sample: Sample, letters: Floats | None, designs: Sequence[Design], seed: np.random.SeedSequence, backend: str
) -> int:
    """The design with the least error on rows held out, tried on all the rows of some items of the first mode."""
    rows = (np.random.default_rng(seed).random(sample.shape[0]) < SOME / sample.n_rows)[sample.codes[0]]
    if rows.sum() < LEAST_HELD / HELD:
        return 0
    labels, weights = (None if a is None else a[rows] for a in (sample.labels, sample.weights))
    some = Sample.of([code[rows] for code in sample.codes], labels, weights)  # with the items that it has
    errors = []
    for design in designs:
        clusters = [min(m, n) for m, n in zip(design.taste_clusters, some.shape)]
        problem = make_problem(some, None, letters, [], design.effort, clusters)
        layout = layout_for(problem, backend, 1)
        heard = _pilot(problem, layout, np.random.default_rng(seed), NO_CHECKPOINT, design.own_clusters)
        errors.append(heard.error)
    return int(np.argmin(errors))


class Held(NamedTuple):
    """Tokens that the items of a mode hold: a side table in the numbering of the modes."""

    mode: int
    items: Ints
    tokens: Ints
    n_tokens: int


# what is fitted


def make_problem(
    sample: Sample,
    times: Floats | None,
    letters: Floats | None,
    held: Sequence[Held],
    effort: Effort,
    taste_clusters: Sequence[int],
    offsets: bool = True,
    layers: Sequence[LayerPlan] | None = None,
) -> BasketProblem:
    """Rows in the order of the first mode and of time, with the baskets and layers that make sense for them.

    ``layers`` are those of an earlier fit that goes on, with more rows.
    """
    if sample.labels is None:
        raise ValueError("layers need numeric labels")
    keys = [sample.labels, *reversed(sample.codes[1:]), *(() if times is None else (times,)), sample.codes[0]]
    order = np.lexsort(keys)
    codes = np.stack(sample.codes)[:, order].astype(np.int32)
    labels, weights = sample.labels[order], None if sample.weights is None else sample.weights[order]
    mean = float(np.average(labels, weights=weights))
    variance = float(np.average((labels - mean) ** 2, weights=weights))
    if layers is None:
        baskets, layers = make_layers(sample.shape, codes, held, effort, taste_clusters)
    else:
        baskets = make_baskets(layers, sample.shape, codes, held)
    dated = None if times is None else times[order]
    widths = () if dated is None else window_widths(codes[0], dated)
    return BasketProblem(
        n_items=sample.shape,
        codes=codes,
        labels=labels,
        weights=weights,
        letters=letters,
        baskets=baskets,
        layers=tuple(layers),
        times=dated,
        windows=widths,
        phases=(0.0,) * len(widths),
        origin=0.0 if dated is None else float(dated.min()),
        scale=variance if variance > 0 else 1.0,
        center=mean,
        has_offsets=offsets,
    )


def make_layers(
    n_items: Sequence[int],
    codes: Ints,
    held: Sequence[Held],
    effort: Effort,
    taste_clusters: Sequence[int],
) -> tuple[tuple[Basket, ...], tuple[LayerPlan, ...]]:
    """Layers of taste between every two modes, of habits for every pair that makes sense, of side information.

    A habit looks from the items that met a source to the items of the same mode: from the movies a user has rated to
    movies, from the users who rated a movie to users. It makes sense for two modes where not everybody met everything.
    A property looks from the tokens of an item to the items of every other mode.
    """
    d = len(n_items)
    baskets: list[Basket] = []
    layers: list[LayerPlan] = []
    pairs = [(p, q) for p in range(d) for q in range(p + 1, d)]
    every = [(p, q) for p in range(d) for q in range(d) if p != q]
    for p, q in (sorted(pair, key=n_items.__getitem__) for pair in pairs):  # tables are by sources: of the fewer items
        for _ in range(-(-effort.taste // len(pairs))):
            layers.append(LayerPlan(TASTE, p, q, len(baskets), taste_clusters[p], taste_clusters[q], False))
        baskets.append(Basket.itself(n_items[p]))
    n_habits = max(1, -(-2 * effort.habit // len(every))) if effort.habit else 0
    for p, q in every:
        basket = Basket.of_pairs(codes[p], codes[q], n_items[p], n_items[q])
        if n_habits and min(n_items[p], n_items[q]) > 1 and len(basket.tokens) < FULL * n_items[p] * n_items[q]:
            m = min(CLUSTERS, n_items[q])
            layers += [LayerPlan(HABIT, p, q, len(baskets), m, m, True)] * n_habits
            baskets.append(basket)
    for table in held:
        p, m = table.mode, min(CLUSTERS, max(table.n_tokens, 1))
        others = [q for q in range(d) if q != p]
        for q in others:
            plan = LayerPlan(SIDE, p, q, len(baskets), m, min(CLUSTERS, n_items[q]), False)
            layers += [plan] * max(1, -(-effort.side // len(others)))
        baskets.append(Basket.of_pairs(table.items, table.tokens, n_items[p], table.n_tokens))
    # Grouped by what they aim at and look from: rows change their order once a mode. What is known of items is first:
    # where a property and an item's own taste explain the same, it is the property that also serves for new items.
    kinds = (SIDE, TASTE, HABIT)
    return tuple(baskets), tuple(sorted(layers, key=lambda it: (it.target, it.source, kinds.index(it.kind))))


def make_baskets(
    layers: Sequence[LayerPlan], n_items: Sequence[int], codes: Ints, held: Sequence[Held]
) -> tuple[Basket, ...]:
    """The baskets that some layers name."""
    found: dict[int, Basket] = {}
    tables = {}
    for layer in layers:
        p, q = layer.source, layer.target
        if layer.basket in found:
            continue
        if layer.kind == TASTE:
            found[layer.basket] = Basket.itself(n_items[p])
        elif layer.kind == HABIT:
            found[layer.basket] = Basket.of_pairs(codes[p], codes[q], n_items[p], n_items[q])
        else:
            tables[layer.basket] = p
    for (at, p), table in zip(sorted(tables.items()), held):
        found[at] = Basket.of_pairs(table.items, table.tokens, n_items[p], table.n_tokens)
    return tuple(found[at] for at in range(len(found)))


def window_widths(users: Ints, times: Floats) -> tuple[float, ...]:
    """Widths of windows: an eighth of the time there is, an eighth of that, and so on, while they hold two rows."""
    span = float(times.max() - times.min())
    gaps = np.diff(times)[np.diff(users) == 0]
    gaps = gaps[gaps > 0]
    widths: list[float] = []
    while span > 0 and len(gaps) and len(widths) < MOST_WIDTHS:
        span /= NARROWER
        if widths and span < float(gaps.min()):
            break
        widths.append(span)
    return tuple(widths[::-1])


# intervals


# chains


@dataclass(frozen=True, eq=False)
class BasketFit:
    """What a fit leaves."""

    draws: BasketDraws
    noise: float
    error: float  # mean square of what was held out
    intervals: Intervals
    interrupted: bool


@dataclass(frozen=True, eq=False)
class ChainResult:
    """The draws of one chain; None where Ctrl-C came before the first."""

    draws: BasketDraws | None
    interrupted: bool
    trace: Trace = field(default_factory=lambda: Trace((), ()))
    converged: bool = False


@dataclass(frozen=True)
class ChainPlan:
    """How many chains, how long they are, and where they run."""

    n_chains: int
    n_sweeps: int
    burn_in: int
    noise: float | None = None
    n_jobs: int | None = None
    own_clusters: bool = False  # see `Design` and `_pilot`
    backend: str = "auto"


class Heard(NamedTuple):
    """What a chain says of rows that it does without."""

    chain: BasketChain
    noise: float
    error: float
    intervals: Intervals


def fit_chains(
    problem: BasketProblem,
    plan: ChainPlan,
    seeds: np.random.SeedSequence,
    callback: Callback | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    begin: Sequence[BasketState] | None = None,
) -> BasketFit:
    """The draws of all chains; after Ctrl-C, with a warning, those that there are.

    ``begin`` are states to go on from, one a chain, instead of random ones; the noise must be given then.
    """
    layout = layout_for(problem, plan.backend, plan.n_chains)
    generators = [np.random.default_rng(seed) for seed in seeds.spawn(plan.n_chains)]
    first, noise, error, intervals = None, plan.noise, plan.noise, as_they_are()
    if noise is None or error is None:
        stage = checkpoint.stage("noise")
        first, noise, error, intervals = _pilot(problem, layout, generators[0], stage, plan.own_clusters)
    n_after = plan.n_sweeps - plan.burn_in
    fitting = -(-_bytes_of_draw(problem) * plan.n_chains * n_after // MOST_BYTES)
    keep_every = max(min(KEEP_EVERY, max(1, n_after // FEWEST_DRAWS)), min(fitting, n_after))

    def job(number: int, stage: Checkpoint, report: Report) -> ChainResult:
        rng = generators[number]
        if number == 0 and first is not None:
            chain = first
        else:
            own = with_phases(problem, rng)
            state = first_state(own, noise, rng) if begin is None else _fitting(begin[number], own, noise)
            chain = layout.begin(own, state, rng)
        fresh = begin is None and not (number == 0 and first is not None)
        warm = max(NOISE * problem.scale, noise) if fresh else noise
        return _run(chain, number, plan, noise, keep_every, warm, stage, report)

    jobs = (partial(job, number, checkpoint.stage(f"chain {number + 1}")) for number in range(plan.n_chains))
    n_jobs = plan.n_chains if plan.n_jobs is None or plan.n_jobs < 0 else max(plan.n_jobs, 1)
    if plan.n_jobs is None and problem.n_rows < ALONE:
        n_jobs = 1
    notify = ignore_progress if callback is None else notifier(callback, plan.n_chains, plan.n_sweeps)
    done: list[BasketDraws] = []
    interrupted = False
    try:
        for result in side_by_side(jobs, n_jobs, notify):
            if result.draws is not None:
                done.append(result.draws)
    except Interrupted:
        if checkpoint.store is not None:
            checkpoint.store.stop()
        if not done:
            raise
        interrupted = True
        warnings.warn(
            f"Interrupted: the draws of {len(done)} of {plan.n_chains} chains are kept.",
            InterruptedWarning,
            stacklevel=4,
        )
    return BasketFit(join(done), noise, error, intervals, interrupted)


def _bytes_of_draw(problem: BasketProblem) -> int:
    labels = sum(problem.n_items[layer.target] + problem.baskets[layer.basket].n_tokens for layer in problem.layers)
    return labels + 4 * sum(problem.n_items)


def with_phases(problem: BasketProblem, rng: np.random.Generator) -> BasketProblem:
    """Windows shifted at random, so that chains cut time at different places."""
    return replace(problem, phases=tuple(float(rng.uniform(0.0, width)) for width in problem.windows))


def _fitting(state: BasketState, problem: BasketProblem, noise: float) -> BasketState:
    """A state of an earlier fit for windows of this one, which begin at 0."""
    d = problem.n_modes
    windows = [np.zeros(n, dtype=np.float32) for n in problem.n_offsets[d:]]
    variances = [problem.offset_variance(kind) for kind in range(d, len(problem.n_offsets))]
    return replace(
        state,
        noise=noise,
        offsets=[*state.offsets[:d], *windows],
        offset_variances=[*state.offset_variances[:d], *variances],
    )


def _run(
    chain: BasketChain, number: int, plan: ChainPlan, noise: float, keep_every: int, warm: float,
    checkpoint: Checkpoint, report: Report,
) -> ChainResult:  # fmt: skip
    """Sweep after sweep, from a noise of ``warm`` down to its own; Ctrl-C ends the chain with the draws it has."""
    keeper, begun, known = Keeper(chain.problem, number), 0, checkpoint.known
    if known is not None:
        chain.restore(known["chain"])
        keeper.restore(known["kept"])
        begun = known["sweeps"]
    interrupted = False
    try:
        for sweep in range(begun, plan.n_sweeps):
            chain.state.noise = noise * cooling(sweep, warm / noise)
            chain.sweep(adapt=sweep < plan.burn_in)
            if sweep >= plan.burn_in:
                keeper.add(chain.state, keep=(sweep + 1 - plan.n_sweeps) % keep_every == 0)
            begun = sweep + 1
            checkpoint.keep(partial(_so_far, chain, keeper, begun), finished=begun == plan.n_sweeps)
            report(sweep, 1.0, Objective((chain.state.square,), (0.0,), (1.0,)))
    except KeyboardInterrupt:
        interrupted = True
        checkpoint.keep(partial(_so_far, chain, keeper, begun), now=True)
    draws = keeper.draws(noise) if keeper.kept else None
    return ChainResult(draws, interrupted)


def cooling(sweep: int, factor: float) -> float:
    """By how much the noise is raised in a sweep: from a factor (1 at least) geometrically down to 1."""
    return float(factor ** max(0.0, 1.0 - sweep / COOLING))


def _so_far(chain: BasketChain, keeper: Keeper, sweeps: int) -> State:
    """Where a chain stands, for a checkpoint."""
    return {"chain": chain.to_file(), "kept": keeper.to_file(), "sweeps": sweeps}


def _pilot(
    problem: BasketProblem,
    layout: Layout | DeviceLayout,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
    own_clusters: bool,
) -> Heard:
    """The first chain without a tenth of the rows, until its error on these says what the noise is.

    The error of a mean over draws is the noise and the variance between draws. The noise is taken to be all of it, or
    hard clusters of few rows would fit it. Where the items of one mode have clusters of their own, cells have so many
    rows that they cannot; what is not known of an item of the other mode is then most of the variance, and left out.
    """
    problem = with_phases(problem, rng)
    held = rng.random(problem.n_rows) < HELD
    start = max(NOISE * problem.scale, 1e-12)
    chain = layout.begin(problem, first_state(problem, start, rng), rng)
    if held.sum() < LEAST_HELD:
        return Heard(chain, start, start, as_they_are())
    known = checkpoint.known
    if known is not None and checkpoint.finished:
        chain.restore(known["chain"])
        return Heard(chain, known["noise"], known["error"], Intervals(LEVELS, known["shares"]))
    state, labels, rows = chain.state, problem.labels[held], np.flatnonzero(held)
    counted: Floats = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    chain.count_rows(np.where(held, 0.0, counted))
    letters = problem.letters
    total, squares = np.zeros(len(labels)), np.zeros(len(labels))
    below = np.zeros((len(labels), 0 if letters is None else len(letters) - 1))
    mean, error, n = total, start, 0
    n_sweeps, heard_from = (OWN_SWEEPS, OWN_SWEEPS // 8) if own_clusters else (HELD_SWEEPS, HEARD_FROM)
    again = {n_sweeps // 4, n_sweeps // 2} if own_clusters else set()
    for sweep in range(n_sweeps):
        chain.sweep(adapt=True)
        if sweep < heard_from:
            continue
        if sweep in again:
            n, total[:], squares[:], below[:] = 0, 0.0, 0.0, 0.0
        n += 1
        effects = chain.effects(rows)
        total += effects
        squares += effects**2
        if letters is None:
            mean = total / n
        else:
            chain.add_below(effects, below)
            mean = letters[-1] - below @ np.diff(letters) / n
        error = float(np.average((labels - mean) ** 2, weights=counted[held]))
        if not own_clusters:
            state.noise = max(error, 1e-6 * problem.scale)
        elif n >= HEARD_FROM:
            # A draw f and the truth have the same law, of variance V: E(y − f)² = σ² + 2V, and of the mean of n draws
            # σ² + V(1 + 1/n); the variance among them is V(1 − 1/n).
            variance = float(np.average(squares / n - (total / n) ** 2, weights=counted[held]))
            state.noise = max(error - variance * (n + 1) / (n - 1), LEAST_NOISE * error, 1e-6 * problem.scale)
    chain.count_rows(problem.weights)
    spread = state.noise + np.maximum(squares / n - (total / n) ** 2, 0.0)
    intervals = calibrated(problem, held, mean, spread, below / n)
    found = {"noise": state.noise, "error": error, "shares": intervals.shares}
    checkpoint.keep(lambda: {"chain": chain.to_file(), **found}, finished=True)
    return Heard(chain, state.noise, error, intervals)


def check_effort(effort: str) -> Effort:
    if effort not in EFFORTS:
        raise GinghamError(f"effort={effort!r} is unknown; choose one of {', '.join(EFFORTS)}.")
    return EFFORTS[effort]
