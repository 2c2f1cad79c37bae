"""One chain whose rows lie in parts on a dask cluster, which makes the same draws as `gingham.models.layers.chain`.

A part has all rows of some items of the first mode ("users" below). It draws what belongs to its users alone: latent
answers, offsets, clusters of targets. Everything else is drawn here from sums over the parts, by the chain's own
generator. A part that needs many random numbers is told where the generator stands and how many numbers belong to the
parts before it, so that the draws are those of a chain in memory, up to the rounding of sums.

Tokens are drawn one after another, because a source holds many of them.

* Tokens that are users, of sources that are not: what the sources say goes from part to part, and each draws its own.
* Tokens of users, which lie in all parts: some at a time. Parts say what their sources say of each, and what they say
  of every two of them together. That is enough to draw them in turn, here, as if each had asked for new sums.

A part changes in place. Where a worker is lost, all parts begin anew from where the chain was last kept, and the sweeps
since are made again; draws follow from the seed, so that nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
from numpy.random import Generator

from gingham.arrays import Bools, Floats, Ints
from gingham.engine.actors import Actors, LostError, Message, Proxy
from gingham.errors import GinghamError
from gingham.lazy import lazy_module
from gingham.models.layers.chain import Chain, padded
from gingham.models.layers.problem import BASKET, ITEM, ChainState, LayerPlan, LayerProblem
from gingham.storage import State, fields_of

if TYPE_CHECKING:
    from gingham.models.layers import kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.kernels")

# Tokens that are drawn from the same sums, about as many as that a source holds two of them: with more, what is said of
# every two of them takes longer than all else; with fewer, there are more messages.
TOKENS, HELD = (32, 256), 2.0
MOST_LOSSES = 10  # of workers in a row without a sweep between them, before a fit gives up

Value = TypeVar("Value")


def skip(rng: np.random.Generator, n: int) -> None:
    """Equivalent to ``rng.random(n, dtype=np.float32)``, of which nobody needs the numbers."""
    bits = cast("np.random.PCG64", rng.bit_generator)
    if n and bits.state["has_uint32"]:  # half of a number of 64 bits is left
        rng.random(dtype=np.float32)
        n -= 1
    if n > 1:
        bits.advance(n // 2)
    if n % 2:
        rng.random(dtype=np.float32)


def uniforms(stream: Generator, first: int, n: int) -> Floats:
    """Those of the next numbers of a generator that begin at ``first``; the generator stays where it is."""
    rng = deepcopy(stream)
    skip(rng, first)
    return rng.random(n, dtype=np.float32)


def tokens_are_users(layer: LayerPlan) -> bool:
    """Whether the tokens of a layer are items of the first mode, so that each part has its own."""
    return layer.source == 0 if layer.kind == ITEM else layer.kind == BASKET and layer.target == 0


class PartRows:
    """The rows of a part in one chain, and what the chain draws of its users; users are numbered from 0."""

    def __init__(self, problem: LayerProblem) -> None:
        self.problem, self.layers = problem, problem.layers
        self.codes = [code.view(np.uint32) for code in problem.codes]
        counts = np.bincount(problem.codes[0], minlength=problem.n_items[0])
        self.indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.label_codes = problem.label_codes.astype(np.uint8)
        self.none: Floats = np.zeros((0, 0), dtype=np.float32)
        self.entries: dict[int, tuple[Ints, Ints, Ints]] = {}
        self.leave_out(None)

    def leave_out(self, held: Bools | None) -> list[Floats]:
        """Draw without the marked rows; returns Σ w of the items of every mode."""
        weights = self.problem.weights
        if held is not None:
            weights = np.where(held, 0.0, self.problem.counts)
        self.held = np.zeros(0, dtype=np.int64) if held is None else np.flatnonzero(held)
        self.weights = None if weights is None else weights.astype(np.float32)
        sizes = self.problem.n_items
        return [np.bincount(code, weights, n).astype(np.float64) for code, n in zip(self.problem.codes, sizes)]

    def observed(self, held: Bools) -> tuple[Ints, Floats, Floats | None]:
        """Codes, labels and weights of the marked rows."""
        weights = self.problem.weights
        return self.problem.codes[:, held], self.problem.labels[held], None if weights is None else weights[held]

    def begin(
        self, first_row: int, first_user: int, mean: float, offsets: list[Floats], targets: list[Ints],
        tokens: list[Ints], latent: Floats | None, residual: Floats | None,
    ) -> None:  # fmt: skip
        """Take up a state of the chain; without latent answers the first one, in which cells are zero."""
        self.first_row, self.first_user, self.offsets = first_row, first_user, np.array(offsets[0])
        self.targets, self.tokens = [np.array(own) for own in targets], [np.array(own) for own in tokens]
        self.contents = [
            self.problem.baskets[layer.basket].contents(own, padded(layer.n_token_clusters))
            if layer.source == 0 and layer.kind != ITEM
            else self.none
            for layer, own in zip(self.layers, self.tokens)
        ]
        if latent is not None and residual is not None:
            self.latent, self.residual = np.array(latent), np.array(residual)
            return
        self.latent = self.problem.labels.astype(np.float32)
        f: Floats = np.full(len(self.latent), mean)
        for own, code in zip(offsets, self.problem.codes):
            f += own[code]
        self.residual = (self.latent - f).astype(np.float32)

    def rows(self) -> tuple[Floats, Floats]:
        """Latent answers and residuals."""
        return self.latent, self.residual

    def users(self) -> tuple[Floats, list[Ints], list[Ints]]:
        """Offsets, and by layer clusters of targets and of tokens; those that are not users are left out."""
        targets = [own if layer.target == 0 else own[:0] for layer, own in zip(self.layers, self.targets)]
        tokens = [own if tokens_are_users(layer) else own[:0] for layer, own in zip(self.layers, self.tokens)]
        return self.offsets, targets, tokens

    def effects(self) -> Floats:
        """f of the rows that are left out."""
        return (self.latent[self.held] - self.residual[self.held]).astype(np.float64)

    # labels and offsets

    def cut_gains(self, sd: float, cuts: Floats, proposed: Floats) -> Floats:
        return kernel.cut_gains(
            self.label_codes, self.latent, self.residual, self.weights, sd, cuts, proposed, kernel.PHI
        )

    def draw_latent(self, sd: float, cuts: Floats, stream: Generator) -> None:
        numbers = uniforms(stream, self.first_row, len(self.latent))
        kernel.draw_latent(self.label_codes, self.latent, self.residual, self.weights, sd, cuts, numbers, kernel.PHI)

    def draw_offsets(self, precision: float, prior_precision: float, normals: Floats) -> float:
        """Offsets of users; returns the sum of their squares."""
        kernel.draw_offsets(self.indptr, self.residual, self.weights, precision, prior_precision, normals, self.offsets)
        return float(np.square(self.offsets, dtype=np.float64).sum())

    def totals(self) -> tuple[float, float]:
        """Σ w and Σ w r."""
        if self.weights is None:
            return float(len(self.residual)), float(self.residual.sum(dtype=np.float64))
        return float(self.weights.sum(dtype=np.float64)), float((self.weights * self.residual).sum(dtype=np.float64))

    def squares(self) -> float:
        return float(np.square(self.residual, dtype=np.float64).sum())

    def shift(self, change: float) -> None:
        self.residual -= np.float32(change)

    def item_sums(self, mode: int) -> Floats:
        """Σ w r of each item of another mode."""
        values = self.residual if self.weights is None else self.weights * self.residual
        return np.bincount(self.problem.codes[mode], values, self.problem.n_items[mode]).astype(np.float64)

    def change_offsets(self, mode: int, change: Floats) -> None:
        self.residual -= change[self.problem.codes[mode]]

    # layers: those with the same target and source in turn

    def open_layers(self, t: int) -> None:
        """Begin with layers like this one."""
        layer, self.width = self.layers[t], padded(self.layers[t].n_target_clusters)
        n_sources = self.problem.n_items[layer.source] if layer.source == 0 else 0
        self.table, self.work = np.zeros((2, n_sources * 2 * self.width), dtype=np.float32)
        self.before: Ints = np.zeros(self.problem.n_items[layer.target], dtype=np.uint8)

    def _fill(self, t: int, cells: Floats, half: int) -> None:
        """What users pull at each cluster of targets, into one half of the table."""
        basket = self.problem.baskets[self.layers[t].basket]
        kernel.fill(self.contents[t], basket.scale, self.tokens[t], cells, self.table, half)

    def score_targets(self, t: int, table: Floats | None, cells: Floats) -> Floats:
        """What the rows say of each target's clusters; the table of sources that are not users is given."""
        layer = self.layers[t]
        if table is None:
            self._fill(t, cells, 1)
        else:
            self.table = table
        self.scores: Floats = np.zeros((self.problem.n_items[layer.target], self.width))
        kernel.score_targets(
            self.codes[layer.target], self.codes[layer.source], self.residual, self.weights, self.table, self.width,
            self.before, self.targets[t], self.scores,
        )  # fmt: skip
        return self.scores

    def pick_targets(self, t: int, log_share: Floats, precision: float, stream: Generator) -> None:
        """Clusters of users as targets."""
        labels = self.targets[t]
        numbers, n_clusters = uniforms(stream, self.first_user, len(labels)), self.layers[t].n_target_clusters
        kernel.pick_targets(self.scores, n_clusters, log_share, precision, numbers, labels)

    def set_targets(self, t: int, labels: Ints) -> None:
        self.targets[t] = labels

    def stats(self, t: int) -> tuple[Ints, Floats, Floats]:
        """Numbers of targets per cluster, and Σ w and Σ w r: of each source, or (sources are users) `cell_sums`."""
        layer = self.layers[t]
        n_sources = self.problem.n_items[layer.source]
        self.statistics: Floats = np.zeros(n_sources * 2 * self.width)
        kernel.add_stats(
            self.codes[layer.target], self.codes[layer.source], self.residual, self.weights, self.targets[t],
            self.width, self.statistics,
        )  # fmt: skip
        counts = np.bincount(self.targets[t], minlength=layer.n_target_clusters)
        return counts, *(self.cell_sums(t) if layer.source == 0 else (self.statistics, np.zeros(0)))

    def cell_sums(self, t: int) -> tuple[Floats, Floats]:
        layer = self.layers[t]
        m, basket = layer.n_token_clusters, self.problem.baskets[layer.basket]
        squares = np.zeros((m, 1 if layer.kind == ITEM else m, layer.n_target_clusters))
        sums = np.zeros((m, layer.n_target_clusters))
        kernel.cell_sums(self.contents[t], basket.scale, self.tokens[t], self.statistics, squares, sums)
        return squares, sums

    def prepare_tokens(self, t: int, cells: Floats) -> None:
        """Tokens of users are drawn next, with these cells."""
        basket = self.problem.baskets[self.layers[t].basket]
        self._fill(t, cells, 0)
        kernel.prepare_tokens(basket.scale, self.statistics, self.table, self.work)

    def _entries(self, t: int, first: int, last: int, several: int) -> tuple[Ints, Ints]:
        """Sources and tokens of the entries of baskets with the tokens first:last, ordered by source."""
        at = self.layers[t].basket
        if at not in self.entries:
            basket = self.problem.baskets[at]
            group = basket.tokens // several
            order = np.argsort(group.astype(np.uint16) if basket.n_tokens < 2**16 else group, kind="stable")
            ends = np.cumsum(np.bincount(group, minlength=-(-basket.n_tokens // several)))
            self.entries[at] = np.append(0, ends), basket.sources[order], basket.tokens[order]
        starts, sources, tokens = self.entries[at]
        mine = slice(starts[first // several], starts[-(-last // several)])
        return sources[mine], tokens[mine]

    def draw_own_tokens(self, t: int, cells: Floats, precision: float, log_share: Floats, stream: Generator) -> Ints:
        """Clusters of users that are their own only tokens; returns their numbers per cluster."""
        labels = self.tokens[t]
        numbers = uniforms(stream, self.first_user, len(labels))
        every = self.problem.baskets[self.layers[t].basket].by_token
        kernel.draw_tokens(*every, self.contents[t], cells, precision, log_share, numbers, self.work, labels)
        return np.bincount(labels, minlength=self.layers[t].n_token_clusters)

    def sum_tokens(self, t: int, first: int, last: int, several: int) -> tuple[Floats, Floats]:
        """What users say of the tokens first:last, as many as are drawn together; see the kernel of that name."""
        n = last - first
        sums, pairs = np.zeros((n, 2 * self.width)), np.zeros((n, n, self.width), dtype=np.float32)
        kernel.sum_tokens(*self._entries(t, first, last, several), first, self.work, sums, pairs)
        return sums, pairs

    def move_tokens(self, t: int, first: int, several: int, changes: Floats, old: Ints, new: Ints) -> None:
        """The tokens from ``first`` on went from ``old`` to ``new`` clusters."""
        sources, tokens = self._entries(t, first, first + len(old), several)
        kernel.move_tokens(sources, tokens, first, changes, old, new, self.contents[t], self.work)

    def draw_users(
        self,
        t: int,
        contents: Floats,
        work: Floats,
        cells: Floats,
        precision: float,
        log_share: Floats,
        stream: Generator,
    ) -> tuple[Floats, Floats, Ints]:  # fmt: skip
        """Clusters of users as tokens; returns contents and work of the sources, and numbers of users per cluster."""
        labels = self.tokens[t]
        numbers = uniforms(stream, self.first_user, len(labels))
        every = self.problem.baskets[self.layers[t].basket].by_token
        kernel.draw_tokens(*every, contents, cells, precision, log_share, numbers, work, labels)
        return contents, work, np.bincount(labels, minlength=self.layers[t].n_token_clusters)

    def end_layer(self, t: int, cells: Floats | None) -> None:
        """The layer is drawn: its pull leaves the residuals with the next one, or with `close_layers`."""
        if cells is not None:
            self._fill(t, cells, 0)
        self.before = self.targets[t]

    def close_layers(self, t: int, table: Floats | None) -> None:
        """The last of these layers leaves the residuals."""
        layer = self.layers[t]
        table = self.table if table is None else table
        target, source = self.codes[layer.target], self.codes[layer.source]
        kernel.finish_layers(target, source, self.residual, table, self.width, self.before)


@dataclass(frozen=True, eq=False)
class DaskLayout:
    """Where the parts of a problem begin, and how their actors are started."""

    start: Callable[[], Sequence[Proxy]]
    widths: tuple[int, ...]  # of each layer's tables, as in `Layout`
    first_rows: Ints  # (parts + 1,)
    first_users: Ints  # (parts + 1,)

    def begin(self, problem: LayerProblem, state: ChainState, rng: np.random.Generator) -> DaskChain:
        return DaskChain(problem, state, rng, self)

    def rows(self, values: Floats | Bools | None) -> list[Message]:
        """The values of every part's rows."""
        return [None if values is None else values[a:b] for a, b in pairwise(self.first_rows)]

    def users(self, values: Floats | Ints) -> list[Message]:
        """The values of every part's users."""
        return [values[a:b] for a, b in pairwise(self.first_users)]


class Kept(NamedTuple):
    """Where a chain stood, as `Chain._to_file` describes it; without residuals its first state."""

    state: Mapping[str, object]
    residual: Floats | None
    accepted: Ints
    random: Mapping[str, object]


class DaskChain(Chain):
    """One chain over parts. Between sweeps ``state`` holds its draw except for what belongs to users and rows."""

    def __init__(self, problem: LayerProblem, state: ChainState, rng: np.random.Generator, layout: DaskLayout) -> None:
        self.problem, self.rng, self.where, self.state = problem, rng, layout, state
        self.none: Floats = np.zeros((0, 0), dtype=np.float32)
        self.pulls: Floats | None = None  # of sources that are not users: the last layer's, then this one's
        self.marks: Bools | None = None
        accepted = np.zeros(len(state.cuts), dtype=np.int64)
        self._kept = Kept(deepcopy(fields_of(state)), None, accepted, dict(rng.bit_generator.state))
        self._since: list[Callable[[], None]] = []  # what was done since then
        self._lost = True  # whether there are no parts at present
        self._whole(lambda: None)

    # where a worker is lost

    def _whole(self, call: Callable[[], Value]) -> Value:
        """The result of a call; where a worker is lost, all is done again from where the chain was kept."""
        noise, error = self.state.noise, LostError()
        for _ in range(MOST_LOSSES):
            try:
                if self._lost:
                    self._go_back()
                    self.state.noise, self._lost = noise, False
                return call()
            except LostError as lost:
                self._lost, error = True, lost
        raise GinghamError(f"Workers were lost {MOST_LOSSES} times in a row ({error}). Continue with a checkpoint.")

    def _go_back(self) -> None:
        """Start parts from what was kept, and do again what was done since."""
        for name, value in self._kept.state.items():
            setattr(self.state, name, deepcopy(value))
        self.rng.bit_generator.state = self._kept.random
        self._load_state(self.state)
        self.accepted = self._kept.accepted.copy()
        for again in self._since:
            again()

    def _do(self, call: Callable[[], None]) -> None:
        """Do something that changes the chain."""
        self._whole(call)
        self._since.append(call)

    def _to_file(self) -> State:
        def gathered() -> State:
            self._bring_users()
            rows = self.parts.each("rows")
            self.state.latent, self.residual = (np.concatenate(own) for own in zip(*rows))
            return super(DaskChain, self)._to_file()

        file = self._whole(gathered)
        self._go_back_to(file)
        self.state.latent = self.residual = np.zeros(0, dtype=np.float32)
        return file

    def restore(self, kept: State) -> None:
        self._go_back_to(kept)
        self._lost = True
        self._whole(lambda: None)

    def _go_back_to(self, file: State) -> None:
        """What is done again where a worker is lost begins here."""
        self._kept, held = Kept(**cast("Message", file)), self.marks
        self._since = [] if held is None else [lambda: self._leave_out(held)]

    def _load_state(self, state: ChainState) -> None:
        problem, layout = self.problem, self.where
        self.accepted: Ints = np.zeros(len(state.cuts), dtype=np.int64)
        self.residual: Floats = np.zeros(0, dtype=np.float32)
        self._load_cells(state)
        self.contents = [
            self.none
            if layer.kind == ITEM or layer.source == 0
            else problem.baskets[layer.basket].contents(labels, padded(layer.n_token_clusters))
            for layer, labels in zip(problem.layers, state.tokens)
        ]
        self.counts = [
            [np.bincount(one, minlength=m) for one, m in zip(own, (layer.n_target_clusters, layer.n_token_clusters))]
            for layer, *own in zip(problem.layers, state.targets, state.tokens)
        ]
        self.parts = Actors(layout.start())
        offsets = [[own, *state.offsets[1:]] for own in layout.users(state.offsets[0])]
        targets = zip(*[
            layout.users(own) if layer.target == 0 else [own] * len(self.parts)
            for layer, own in zip(problem.layers, state.targets)
        ])  # fmt: skip
        tokens = zip(*[
            layout.users(own) if tokens_are_users(layer) else [own] * len(self.parts)
            for layer, own in zip(problem.layers, state.tokens)
        ])  # fmt: skip
        rows = [(None, None)] * len(self.parts)
        if self._kept.residual is not None:
            rows = list(zip(layout.rows(state.latent), layout.rows(self._kept.residual)))
        firsts = zip(layout.first_rows.tolist(), layout.first_users.tolist())
        none: list[list[Ints]] = [[] for _ in offsets]
        own = zip(firsts, offsets, list(targets) or none, list(tokens) or none, rows)
        self.parts.each(
            "begin", beside=[(*first, state.mean, b, list(c), list(d), *two) for first, b, c, d, two in own]
        )
        state.latent = np.zeros(0, dtype=np.float32)
        self._leave_out(None)

    def leave_out(self, held: Bools | None) -> None:
        self.marks = held
        self._do(lambda: self._leave_out(held))

    def _leave_out(self, held: Bools | None) -> None:
        every = self.parts.each("leave_out", beside=[(own,) for own in self.where.rows(held)])
        self.sizes = [reduce(add, own) for own in zip(*[sizes[1:] for sizes in every])]

    def effects(self) -> Floats:
        return np.concatenate(self._whole(lambda: self.parts.each("effects")))

    def draw(self) -> ChainState:
        self._whole(self._bring_users)
        return self.state

    def _bring_users(self) -> None:
        """What parts have drawn of users, into the state."""
        state, every = self.state, self.parts.each("users")
        state.offsets[0] = np.concatenate([own[0] for own in every])
        for t, layer in enumerate(self.problem.layers):
            if layer.target == 0:
                state.targets[t] = np.concatenate([own[1][t] for own in every])
            if tokens_are_users(layer):
                state.tokens[t] = np.concatenate([own[2][t] for own in every])

    def _sum(self, name: str, *arguments: object) -> Message:
        """The sum of a step's results over the parts."""
        return reduce(add, self.parts.each(name, *arguments))

    def _stream(self, n: int) -> Generator:
        """A generator of the next n uniforms, which parts draw themselves."""
        stream = deepcopy(self.rng)
        skip(self.rng, n)
        return stream

    # one sweep

    def sweep(self, adapt: bool = False) -> None:
        noise = self.state.noise

        def again() -> None:
            self.state.noise = noise
            super(DaskChain, self).sweep(adapt)

        self._do(again)

    def _reorder(self, mode: int) -> None:
        """Rows stay in the order of users."""

    def _mean_square(self) -> float:
        return float(self._sum("squares")) / self.problem.n_rows

    def _totals(self) -> tuple[float, float]:
        count, total = np.sum(self.parts.each("totals"), axis=0)
        return float(count), float(total)

    def _shift(self, change: float) -> None:
        self.parts.later("shift", change)

    def _cut_gains(self, proposed: Floats) -> Floats:
        return np.asarray(self._sum("cut_gains", float(np.sqrt(self.state.noise)), self.state.cuts, proposed))

    def _draw_latent(self) -> None:
        stream = self._stream(self.problem.n_rows)
        self.parts.later("draw_latent", float(np.sqrt(self.state.noise)), self.state.cuts, stream)

    def _draw_offsets(self, kind: int) -> None:
        state, n = self.state, self.problem.n_items[kind]
        precision, prior_precision = 1.0 / state.noise, 1.0 / state.offset_variances[kind]
        normals = self.rng.standard_normal(n, dtype=np.float32)
        if kind == 0:
            own = [(precision, prior_precision, part) for part in self.where.users(normals)]
            squares = float(np.sum(self.parts.each("draw_offsets", beside=own)))
        else:
            old, count = state.offsets[kind], self.sizes[kind - 1]
            p = precision * count + prior_precision
            drawn = precision * (self._sum("item_sums", kind) + count * old) / p + normals / np.sqrt(p)
            state.offsets[kind] = drawn.astype(np.float32)
            self.parts.later("change_offsets", kind, state.offsets[kind] - old)
            squares = float(np.square(state.offsets[kind], dtype=np.float64).sum())
        self._draw_offset_variance(kind, squares, n)

    def _label_counts(self, t: int) -> Sequence[Ints]:
        return self.counts[t]

    def _draw_layers(self, mode: int) -> None:
        problem, state = self.problem, self.state
        mine = self._layers_with(mode)
        if not mine:
            return
        shares, normals, freedom = self._random_numbers(mine)
        group, last = (-1, 0), 0
        for at, (t, layer) in enumerate(mine):
            width = self.where.widths[t]
            if group != (layer.source, width):
                if at:
                    self.parts.later("close_layers", last, self.pulls)
                group = layer.source, width
                n_sources = problem.n_items[layer.source]
                self.pulls = np.zeros(n_sources * 2 * width, dtype=np.float32) if layer.source else None
                self.parts.later("open_layers", t)
            log_shares = shares[at, 0, :width], shares[at, 1, : layer.n_token_clusters]
            own = normals[at, :, : layer.n_target_clusters, : layer.n_token_clusters]
            self._draw_layer(t, layer, log_shares, own)
            self._draw_cell_variance(t, float(np.square(state.cells[t], dtype=np.float64).sum()), freedom[at])
            last = t
        self.parts.later("close_layers", last, self.pulls)

    def _draw_layer(self, t: int, layer: LayerPlan, log_shares: tuple[Floats, Floats], normals: Floats) -> None:
        """A layer's targets, cells, tokens and cells again."""
        state, cells, precision = self.state, self.cells[t], 1.0 / self.state.noise
        basket, tokens, contents, table = (
            self.problem.baskets[layer.basket],
            state.tokens[t],
            self.contents[t],
            self.pulls,
        )
        target_numbers = self._numbers(layer.target == 0, len(state.targets[t]))
        token_numbers = self._numbers(tokens_are_users(layer), len(tokens))
        if table is not None:
            kernel.fill(contents, basket.scale, tokens, cells, table, 1)
        if layer.target == 0:
            self.parts.later("score_targets", t, table, cells)
            self.parts.later("pick_targets", t, log_shares[0], precision, target_numbers)
        else:
            scores = self._sum("score_targets", t, table, cells)
            labels = state.targets[t]
            kernel.pick_targets(scores, layer.n_target_clusters, log_shares[0], precision, target_numbers, labels)
            self.parts.later("set_targets", t, labels)
        counts, *found = (reduce(add, own) for own in zip(*self.parts.each("stats", t)))
        n_parts = 1 if layer.target == 0 else len(self.parts)
        self.counts[t][0] = counts // n_parts  # of targets that are not users every part has counted all
        variance = state.cell_variances[t]
        if table is None:
            kernel.cells_from(*found, precision, variance, normals[0], cells)
            self.parts.later("prepare_tokens", t, cells)
            if layer.kind == ITEM:
                self.counts[t][1] = self._sum("draw_own_tokens", t, cells, precision, log_shares[1], token_numbers)
            else:
                self._draw_tokens_of_users(t, log_shares[1], token_numbers)
            found = [reduce(add, own) for own in zip(*self.parts.each("cell_sums", t))]
            kernel.cells_from(*found, precision, variance, normals[1], cells)
            self.parts.later("end_layer", t, cells)
            return
        stats, work = found[0], np.empty_like(table)
        given = contents, basket.scale, tokens
        kernel.draw_cells(*given, stats, precision, variance, normals[0], cells)
        kernel.fill(*given, cells, table, 0)
        kernel.prepare_tokens(basket.scale, stats, table, work)
        if tokens_are_users(layer):
            counts = []
            for part in range(len(self.parts)):
                contents, work, own = self.parts.one(
                    part, "draw_users", t, contents, work, cells, precision, log_shares[1], token_numbers
                )
                counts.append(own)
            self.counts[t][1], self.contents[t] = reduce(add, counts), np.array(contents)
        else:
            numbers = token_numbers
            kernel.draw_tokens(*basket.by_token, contents, cells, precision, log_shares[1], numbers, work, tokens)
            self.counts[t][1] = np.bincount(tokens, minlength=layer.n_token_clusters)
        given = self.contents[t], basket.scale, tokens
        kernel.draw_cells(*given, stats, precision, variance, normals[1], cells)
        kernel.fill(*given, cells, table, 0)
        self.parts.later("end_layer", t, None)

    def _numbers(self, of_users: bool, n: int) -> Message:
        """The next n uniforms; where they belong to users, where these begin."""
        return self._stream(n) if of_users else self.rng.random(n, dtype=np.float32)

    def _draw_tokens_of_users(self, t: int, log_share: Floats, numbers: Floats) -> None:
        """Clusters of tokens that users of all parts hold."""
        labels, precision = self.state.tokens[t], 1.0 / self.state.noise
        basket = self.problem.baskets[self.problem.layers[t].basket]
        several = int(np.clip(HELD * basket.n_sources * basket.n_tokens / max(len(basket.tokens), 1), *TOKENS))
        for first in range(0, len(labels), several):
            last = min(first + several, len(labels))
            sums, pairs = (reduce(add, own) for own in zip(*self.parts.each("sum_tokens", t, first, last, several)))
            old, new = labels[first:last].copy(), labels[first:last]
            changes = kernel.draw_summed_tokens(
                sums, pairs, self.cells[t], precision, log_share, numbers[first:last], new
            )
            self.parts.later("move_tokens", t, first, several, changes, old, new.copy())
        self.counts[t][1] = np.bincount(labels, minlength=self.problem.layers[t].n_token_clusters)
