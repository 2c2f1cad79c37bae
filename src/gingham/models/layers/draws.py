"""Kept draws of all chains, and what they predict.

Every draw is a complete model, so the predictive distribution of a label is a mixture over the kept draws of normal
distributions, which cut points divide among the labels (ordinal).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from gingham.arrays import Bools, Floats, Ints
from gingham.engine.threads import over_blocks
from gingham.errors import GinghamError
from gingham.lazy import lazy_module
from gingham.models.layers.positions import Points, PositionPlan
from gingham.models.layers.problem import ITEM, Basket, ChainState, LayerPlan, LayerProblem, window_at
from gingham.storage import State, fields_of, savable

if TYPE_CHECKING:
    from gingham.models.layers import kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.kernels")

DRAWS_PER_TASK = 8  # of one thread; fixed, so that sums do not depend on the number of threads
BISECTIONS = 40
ROWS_PER_BLOCK = 2**15  # of simulated labels, so that they stay in memory
DEVICE_LOOKUPS = 5 * 10**7  # cells from which a GPU looks them up in less time than it takes to send the draws


def predicts_on_device(n_lookups: int) -> bool:
    """Whether torch looks up that many cells: if they are many and a GPU is in use already."""
    torch = sys.modules.get("torch")
    return n_lookups > DEVICE_LOOKUPS and torch is not None and bool(torch.cuda.is_initialized())


@savable
@dataclass(frozen=True, eq=False)
class Windows:
    """Offsets of time windows, averaged over each chain: they are many, and their differences between draws are small.

    Attributes
    ----------
    users, times : (N,) of the rows that were fitted, in the order of users and times
    origin, widths : the time at which the first window begins, and the widths
    phases : (chains, widths), the shifts
    offsets : for each chain, the offsets of the windows of all widths, one width after the other
    variances : (chains, widths), prior variances, which unknown windows add to the predictive variance
    """

    users: Ints
    times: Floats
    origin: float
    widths: Floats
    phases: Floats
    offsets: tuple[Floats, ...]
    variances: Floats

    def _keys(self, chain: int, at: int, users: Ints, times: Floats) -> Ints:
        """One number per user and window, which rises in the order of the fitted rows."""
        shift = float(self.phases[chain, at])
        most = int(window_at(self.times.max(), self.origin, self.widths[at], shift)) + 2
        place = window_at(times, self.origin, self.widths[at], shift)
        return users.astype(np.int64) * most + np.clip(place, -1, most - 1)

    @cached_property
    def _known(self) -> list[list[tuple[Ints, Floats]]]:
        """Keys and offsets per chain and width."""
        found: list[list[tuple[Ints, Floats]]] = []
        for chain, offsets in enumerate(self.offsets):
            mine: list[tuple[Ints, Floats]] = []
            begin = 0
            for at in range(len(self.widths)):
                keys = self._keys(chain, at, self.users, self.times)
                keys = keys[np.concatenate([[True], np.diff(keys) != 0])]
                mine.append((keys, offsets[begin : begin + len(keys)].astype(np.float64)))
                begin += len(keys)
            found.append(mine)
        return found

    @cached_property
    def _usual(self) -> list[Floats]:
        """For each chain, the sum of a user's window offsets, averaged over its fitted rows, (largest user + 1,)."""
        n = int(self.users.max(initial=-1)) + 1
        found: list[Floats] = []
        for chain in range(len(self.offsets)):
            total: Floats = np.zeros(len(self.times))
            for at, (keys, offsets) in enumerate(self._known[chain]):
                total += offsets[np.searchsorted(keys, self._keys(chain, at, self.users, self.times))]
            counts = np.maximum(np.bincount(self.users, minlength=n), 1)
            found.append(np.bincount(self.users, total, minlength=n) / counts)
        return found

    def effects(self, chain: int, users: Ints, times: Floats | None) -> tuple[Floats, Floats]:
        """The offsets of the users' windows at these times and the variance of those that are unknown, each (N,).

        Where the time is missing, a user has the average over its windows; a new user (−1) has none.
        """
        add, spread = np.zeros(len(users)), np.zeros(len(users))
        usual = self._usual[chain]
        known_user = (users >= 0) & (users < len(usual))
        dated = np.zeros(len(users), dtype=bool) if times is None else np.isfinite(times)
        absent = ~dated & known_user
        add[absent] = usual[users[absent]]
        spread[~dated] = self.variances[chain].sum()
        if times is None or not dated.any():
            return add, spread
        rows = np.flatnonzero(dated)
        for at, (keys, offsets) in enumerate(self._known[chain]):
            asked = self._keys(chain, at, users[rows], times[rows])
            place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
            hit = (keys[place] == asked) & known_user[rows]
            add[rows] += np.where(hit, offsets[place], 0.0)
            spread[rows] += np.where(hit, 0.0, self.variances[chain, at])
        return add, spread


class Predictive(NamedTuple):
    """The predictive distribution of each row's label."""

    mean: Floats  # (N,)
    below: Floats  # (N, K − 1), P(y ≤ value) for all label values but the last; K = 1 where there are no label values


@savable
@dataclass(frozen=True, eq=False)
class LayerDraws:
    """Kept draws of all chains.

    Attributes
    ----------
    n_items : items of each mode
    baskets, layers : as in `LayerProblem`
    label_values : (K,), or None for the gaussian likelihood
    noise : σ²
    chains : (S,), the chain of each draw
    means : μ, (S,)
    offsets : (S, Σ n_j) float32, one mode after the other
    variances : (S, d), prior variances of the offsets, which new items add to the predictive variance
    labels : (S, P) uint8, per layer the clusters of its targets and then of its tokens
    cells : (S, Σ m·m) float32
    cuts : (S, K − 1), empty for the gaussian likelihood
    windows : offsets of time windows, or None
    plan : which items have positions, or None
    positions : (S, size) float32, `Positions.flat` of each draw
    """

    n_items: tuple[int, ...]
    baskets: tuple[Basket, ...]
    layers: tuple[LayerPlan, ...]
    label_values: Floats | None
    noise: float
    chains: Ints
    means: Floats
    offsets: Floats
    variances: Floats
    labels: Ints
    cells: Floats
    cuts: Floats
    windows: Windows | None = None
    plan: PositionPlan | None = None
    positions: Floats = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))

    def _to_file(self) -> State:
        # Successive draws agree for most items: stored as changes (modulo 256), the file shrinks by half.
        changes = self.labels.copy()
        changes[1:] -= self.labels[:-1]
        return {**fields_of(self), "labels": changes}

    @classmethod
    def _from_file(cls, state: State) -> LayerDraws:
        draws = cls(**{**state, "labels": state["labels"].cumsum(axis=0, dtype=state["labels"].dtype)})
        wanted = (len(draws.means), sum(draws.label_sizes))
        if draws.labels.shape != wanted or draws.offsets.shape != (len(draws.means), sum(draws.n_items)):
            raise GinghamError(
                f"The model file is damaged: its layers have labels of shape {draws.labels.shape}, not {wanted}."
            )
        return draws

    @property
    def n_draws(self) -> int:
        return len(self.means)

    @cached_property
    def label_sizes(self) -> list[int]:
        """Lengths of the parts of a draw's labels: the targets and tokens of each layer in turn."""
        return [n for layer in self.layers for n in (self.n_items[layer.target], self.baskets[layer.basket].n_tokens)]

    @cached_property
    def _label_starts(self) -> list[int]:
        return starts_of(self.label_sizes)

    @cached_property
    def _cell_starts(self) -> list[int]:
        return starts_of([layer.n_token_clusters * layer.n_target_clusters for layer in self.layers])

    @cached_property
    def _item_starts(self) -> list[int]:
        return starts_of(self.n_items)

    def targets(self, s: int | slice, t: int) -> Ints:
        """c_t of draw s, (n_targets,), or of several draws, (S, n_targets)."""
        return self.labels[s, self._label_starts[2 * t] : self._label_starts[2 * t + 1]]

    def tokens(self, s: int | slice, t: int) -> Ints:
        """d_t of draw s, (n_tokens,), or of several draws."""
        return self.labels[s, self._label_starts[2 * t + 1] : self._label_starts[2 * t + 2]]

    def cells_of(self, s: int, t: int) -> Floats:
        """G_t of draw s, (token clusters, target clusters)."""
        layer = self.layers[t]
        flat = self.cells[s, self._cell_starts[t] : self._cell_starts[t + 1]]
        return flat.reshape(layer.n_token_clusters, layer.n_target_clusters)

    def offsets_of(self, s: int | slice, mode: int) -> Floats:
        return self.offsets[s, self._item_starts[mode] : self._item_starts[mode + 1]]

    def points(self, s: int) -> Points | None:
        """The positions of draw s."""
        if self.plan is None:
            return None
        modes = self.plan.source, self.plan.target
        return Points.of(*((self.positions_of(mode)[s], ~self.items_without_labels(mode)[:-1]) for mode in modes))

    def positions_of(self, mode: int) -> Floats:
        """All draws of the positions of a mode's items, (S, n, periods of a source or 1, rank); not a copy."""
        if self.plan is None:
            raise ValueError("draws without positions")
        n, split = self.n_items[mode], self.n_items[self.plan.source] * self.plan.n_periods * self.plan.rank
        part = self.positions[:, :split] if mode == self.plan.source else self.positions[:, split:]
        return part.reshape(self.n_draws, n, -1, self.plan.rank)

    def average_positions(self, mode: int, s: int) -> Floats:
        """The positions of a mode's items in draw s, averaged over periods, (n, rank)."""
        points, plan = self.points(s), self.plan
        if points is None or plan is None:
            raise ValueError("draws without positions")
        return points.sources[plan.n_periods :: plan.n_periods + 1][:-1] if mode == plan.source else points.targets[:-1]

    def mean_offsets(self) -> tuple[Floats, ...]:
        """b_j averaged over the draws, one array per mode."""
        mean = self.offsets.mean(axis=0, dtype=np.float64)
        return tuple(np.split(mean, self._item_starts[1:-1]))

    # predictions

    def effects(self, codes: Sequence[Ints], times: Floats | None = None) -> tuple[Floats, Floats]:
        """f of every row in every draw, and the variance of its unknown parts, each (S, N); for few rows."""
        rows = PredictionRows.of(self, codes, times)
        windows = self._window_effects(rows, times)
        f = np.array([rows.effect(self, s) + windows[self.chains[s]][0] for s in range(self.n_draws)])
        variance = np.array([rows.variance(self, s) + windows[self.chains[s]][1] for s in range(self.n_draws)])
        return f, variance

    def _window_effects(self, rows: PredictionRows, times: Floats | None) -> list[tuple[Floats, Floats]]:
        """Per chain, the offsets of the rows' time windows and the variance of unknown ones."""
        if self.windows is None:
            return [(np.zeros(rows.n_rows), np.zeros(rows.n_rows))] * self.n_chains
        return [self.windows.effects(chain, rows.codes[0], times) for chain in range(self.n_chains)]

    @property
    def n_chains(self) -> int:
        return int(self.chains.max()) + 1

    def mean_window_effects(self, users: Ints, times: Floats | None = None) -> Floats:
        """The offsets of time windows averaged over the draws, (N,)."""
        if self.windows is None:
            return np.zeros(len(users))
        every = [self.windows.effects(chain, users, times)[0] for chain in range(self.n_chains)]
        return np.asarray(np.average(every, axis=0, weights=np.bincount(self.chains)))

    def predictive(
        self, codes: Sequence[Ints], times: Floats | None = None, label_values: Floats | None = None
    ) -> Predictive:
        """The predictive distribution of each row's label; code −1 is an unknown item, NaN an unknown time.

        ``label_values`` are possible labels under the gaussian likelihood, where only their midpoints count.
        """
        rows = PredictionRows.of(self, codes, times)
        windows = self._window_effects(rows, times)
        values = label_values if self.label_values is None else self.label_values
        cuts = self.cuts
        if self.label_values is None:
            middle = np.zeros(0) if values is None else (values[1:] + values[:-1]) / 2.0
            cuts = np.tile(middle, (self.n_draws, 1))

        def part(start: int) -> tuple[Floats, Floats]:
            total, below = np.zeros(rows.n_rows), np.zeros((rows.n_rows, cuts.shape[1]))
            for s in range(start, min(start + DRAWS_PER_TASK, self.n_draws)):
                offset, variance = windows[self.chains[s]]
                f = rows.effect(self, s) + offset
                total += f
                if cuts.shape[1]:
                    sd = np.sqrt(self.noise + variance + rows.variance(self, s))
                    kernel.add_below(f, sd, cuts[s], kernel.PHI, below)
            return total, below

        if predicts_on_device(rows.n_rows * self.n_draws * max(len(self.layers), 1)):
            from gingham.models.layers.chain_torch import DevicePredictionRows

            total, below = DevicePredictionRows(self, rows).sums(windows, cuts)
        else:
            total, below = np.zeros(rows.n_rows), np.zeros((rows.n_rows, cuts.shape[1]))
            for more, more_below in over_blocks(part, range(0, self.n_draws, DRAWS_PER_TASK)):
                total += more
                below += more_below
        below /= self.n_draws
        if self.label_values is not None:
            return Predictive(self.label_values[-1] - below @ np.diff(self.label_values), below)
        return Predictive(total / self.n_draws, below)

    def below_by_draw(
        self, codes: Sequence[Ints], times: Floats | None, rng: np.random.Generator
    ) -> Iterator[Floats]:  # fmt: skip
        """P(y ≤ value) of rows of known items under each draw in turn, (N, K − 1).

        What is unknown of time windows is drawn: one deviation for all rows of a user.
        """
        rows = PredictionRows.of(self, codes, times)
        windows, sd = self._window_effects(rows, times), np.full(rows.n_rows, np.sqrt(self.noise))
        for s in range(self.n_draws):
            offset, variance = windows[self.chains[s]]
            f = rows.effect(self, s) + offset + np.sqrt(variance) * rng.standard_normal(self.n_items[0])[codes[0]]
            below = np.zeros((rows.n_rows, self.cuts.shape[1]))
            kernel.add_below(f, sd, self.cuts[s], kernel.PHI, below)
            yield below

    def without_labels(self, codes: Sequence[Ints]) -> Bools:
        """The rows with an item that is unknown or was added without labels, so that its offset is unknown, (N,)."""
        return np.any([self.items_without_labels(mode)[code] for mode, code in enumerate(codes)], axis=0)

    def items_without_labels(self, mode: int, s: int = 0) -> Bools:
        """The items of a mode whose offset in a draw is unknown, (n + 1,); the last stands for unknown items."""
        return np.append(self.offsets_of(s, mode) == 0, True) & (self.variances[s, mode] > 0)

    def quantiles(self, codes: Sequence[Ints], times: Floats | None, levels: Floats) -> Floats:
        """Quantiles of z, a mixture over the draws, (N, levels), by bisection; for labels on a continuum."""
        n = len(codes[0])
        found = np.empty((n, len(levels)))
        block = max(1, 2**22 // self.n_draws)
        for start in range(0, n, block):
            rows = slice(start, start + block)
            f, variance = self.effects([c[rows] for c in codes], None if times is None else times[rows])
            sd = np.sqrt(self.noise + variance)
            for at, level in enumerate(levels):
                low, high = (f - 9.0 * sd).min(axis=0), (f + 9.0 * sd).max(axis=0)
                for _ in range(BISECTIONS):
                    middle = (low + high) / 2.0
                    under = ndtr((middle - f) / sd).mean(axis=0) < level
                    low, high = np.where(under, middle, low), np.where(under, high, middle)
                found[rows, at] = (low + high) / 2.0
        return found


def starts_of(sizes: Sequence[int]) -> list[int]:
    """Where parts of these sizes begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()


class LayerRows(NamedTuple):
    """What one layer needs to know of the rows to predict."""

    sources: Ints  # distinct sources, (n,); −1 (unknown) has an empty basket
    source_of: Ints  # (N,), the position of each row's source among them
    targets: Ints  # (N,), codes; the number of items for an unknown one
    joins: Bools  # (N,), whether the target counts as one more token: not if it is one already, or the basket is empty


@dataclass(frozen=True, eq=False)
class PredictionRows:
    """Rows to predict, prepared once for all draws."""

    codes: tuple[Ints, ...]
    layers: tuple[LayerRows, ...]
    points: tuple[Ints, Ints] | None = None  # of sources, with their period, and of targets

    @classmethod
    def of(cls, draws: LayerDraws, codes: Sequence[Ints], times: Floats | None = None) -> PredictionRows:
        codes = tuple(np.asarray(c, dtype=np.int64) for c in codes)
        distinct = {}
        for mode in {layer.source for layer in draws.layers}:
            sources, place = np.unique(codes[mode], return_inverse=True)
            distinct[mode] = (sources, place.astype(np.int32))
        held: dict[int, Bools] = {}
        layers = []
        for layer in draws.layers:
            x, q = codes[layer.source], codes[layer.target]
            n = draws.n_items[layer.target]
            if layer.joins and layer.basket not in held:
                basket = draws.baskets[layer.basket]
                known = (x >= 0) & (q >= 0)
                held[layer.basket] = np.zeros(len(q), dtype=bool)
                held[layer.basket][known] = basket.holds(x[known], q[known])
                # An empty basket stays empty: cells are those of many tokens, and one alone would count in full.
                sizes = np.append(np.diff(basket.indptr), 0)  # the last is that of an unknown source, −1
                held[layer.basket] |= sizes[x] == 0
            joins = ~held[layer.basket] if layer.joins else np.zeros(len(q), dtype=bool)
            layers.append(LayerRows(*distinct[layer.source], np.where(q < 0, n, q).astype(np.int32), joins))
        points, plan = None, draws.plan
        if plan is not None:
            source, target = (codes[mode] % (draws.n_items[mode] + 1) for mode in (plan.source, plan.target))
            points = source * (plan.n_periods + 1) + plan.period(times, len(source)), target
        return cls(codes, tuple(layers), points)

    @property
    def n_rows(self) -> int:
        return len(self.codes[0])

    def effect(self, draws: LayerDraws, s: int) -> Floats:
        """f of every row in one draw, without time windows."""
        f: Floats = np.full(self.n_rows, draws.means[s])
        for mode, code in enumerate(self.codes):
            f += np.append(draws.offsets_of(s, mode), np.float32(0))[code]
        for t in range(len(self.layers)):
            self.add_layer(draws, s, t, f)
        self.add_points(draws.points(s), f)
        return f

    def add_points(self, points: Points | None, f: Floats) -> None:
        """Add the product of the positions in one draw."""
        if points is not None and self.points is not None:
            kernel.add_products((points.sources, self.points[0]), (points.targets, self.points[1]), f)

    def add_layer(self, draws: LayerDraws, s: int, t: int, f: Floats, cluster: int | None = None) -> None:
        """Add the effect of one layer in one draw; with ``cluster``, as if all targets were in this cluster."""
        layer, rows, basket = draws.layers[t], self.layers[t], draws.baskets[draws.layers[t].basket]
        tokens = draws.tokens(s, t)
        cells, targets = with_unknown(draws.cells_of(s, t), draws.targets(s, t), tokens)
        if cluster is not None:
            targets = np.full_like(targets, cluster)
        kernel.add_pulls(
            rows.sources, rows.source_of, rows.targets, rows.joins, basket.indptr, basket.tokens,
            layer.kind == ITEM, tokens, targets, cells, f,
        )  # fmt: skip

    def variance(self, draws: LayerDraws, s: int) -> Floats:
        """The variance of the offsets and positions of items without labels, (N,)."""
        total = np.zeros(self.n_rows)
        for mode, code in enumerate(self.codes):
            total += draws.variances[s, mode] * draws.items_without_labels(mode, s)[code]
        return total + self.points_variance(draws, s)

    def points_variance(self, draws: LayerDraws, s: int) -> Floats:
        """The variance of what positions of items without labels add, (N,)."""
        points, plan, total = draws.points(s), draws.plan, np.zeros(self.n_rows)
        if points is not None and plan is not None and self.points is not None:
            source, target = self.points
            for mode, spread, others in (
                (plan.source, points.variances[0], points.targets[target]),
                (plan.target, points.variances[1], points.sources[source]),
            ):
                total += draws.items_without_labels(mode, s)[self.codes[mode]] * (others**2 @ spread)
        return total


def with_unknown(cells: Floats, targets: Ints, tokens: Ints) -> tuple[Floats, Ints]:
    """Cells with one more row and column, the averages over tokens and targets, and targets with an unknown one.

    Items that were added later without labels are in the last cluster, too.
    """
    m_token, m_target = cells.shape
    table = np.zeros((m_token + 1, m_target + 1), dtype=np.float32)
    table[:-1, :-1] = cells
    members = [np.bincount(labels, minlength=m)[:m] for labels, m in ((tokens, m_token), (targets, m_target))]
    by_token, by_target = (counts / max(counts.sum(), 1) for counts in members)
    table[:-1, -1] = cells @ by_target
    table[-1] = by_token @ table[:-1]
    return table, np.append(targets, np.uint8(m_target))


class Recorder:
    """Keeps the draws of one chain while it runs."""

    def __init__(self, problem: LayerProblem, chain: int) -> None:
        self.problem, self.chain = problem, chain
        # The offset of an item without labels is unknown: it is 0, and its prior variance widens predictions.
        self.has_labels = np.concatenate([problem.has_rows(mode) for mode in range(problem.n_modes)])
        self.kept: list[dict[str, Floats | Ints | float]] = []
        self.window_sums = [np.zeros(n) for n in problem.n_offsets[problem.n_modes :]]
        self.window_variances = np.zeros(len(problem.windows))
        self.n_windows = 0

    def add(self, state: ChainState, keep: bool = True) -> None:
        """Add the present state to the averages of time windows, and to the draws if it is to be kept."""
        d = self.problem.n_modes
        for total, offsets in zip(self.window_sums, state.offsets[d:]):
            total += offsets
        self.window_variances += state.offset_variances[d:]
        self.n_windows += 1
        if not keep:
            return
        parts = [part for pair in zip(state.targets, state.tokens) for part in pair]
        plan, points = self.problem.positions, state.positions
        mean, own, variances = state.mean, list(state.offsets[:d]), list(state.offset_variances[:d])
        if plan is not None:  # clusters of targets have means: the average target is in μ
            of_targets = own[plan.target]
            mean, variances[plan.target] = mean + float(of_targets.mean()), float(of_targets.var())
            own[plan.target] = of_targets - of_targets.mean()
        self.kept.append(
            {
                "means": mean,
                "offsets": (np.concatenate(own) * self.has_labels).astype(np.float32),
                "variances": np.array(variances),
                "labels": np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8),
                "cells": np.concatenate([g.ravel() for g in state.cells]) if parts else np.zeros(0, dtype=np.float32),
                "cuts": state.cuts.copy(),
                "positions": np.zeros(0, dtype=np.float32) if points is None else points.flat(),
            }
        )

    def _to_file(self) -> State:
        """What was recorded so far, for a checkpoint."""
        stacked = {name: np.array([one[name] for one in self.kept]) for name in self.kept[0]} if self.kept else {}
        return {"kept": stacked, "sums": self.window_sums, "variances": self.window_variances, "n": self.n_windows}

    def restore(self, state: State) -> None:
        stacked = state["kept"]
        n = len(stacked["means"]) if stacked else 0
        self.kept = [{name: values[at] for name, values in stacked.items()} for at in range(n)]
        self.window_sums = [total.copy() for total in state["sums"]]
        self.window_variances, self.n_windows = state["variances"].copy(), state["n"]

    def draws(self, noise: float) -> LayerDraws:
        problem = self.problem
        stacked = {name: np.array([one[name] for one in self.kept]) for name in self.kept[0]}
        windows = None
        if problem.times is not None and problem.windows:
            offsets = np.concatenate([total / self.n_windows for total in self.window_sums]).astype(np.float32)
            windows = Windows(
                problem.codes[0], problem.times, problem.origin, np.array(problem.windows),
                np.array([problem.phases]), (offsets,), self.window_variances[None] / self.n_windows,
            )  # fmt: skip
        return LayerDraws(
            problem.n_items, problem.baskets, problem.layers, problem.label_values, noise,
            np.full(len(self.kept), self.chain), windows=windows, plan=problem.positions, **stacked,
        )  # fmt: skip


def join(parts: Sequence[LayerDraws]) -> LayerDraws:
    """The draws of all chains together, with equal weights."""
    windows = [part.windows for part in parts if part.windows is not None]
    joined = None
    if windows:
        joined = replace(
            windows[0],
            phases=np.concatenate([w.phases for w in windows]),
            offsets=tuple(offsets for w in windows for offsets in w.offsets),
            variances=np.concatenate([w.variances for w in windows]),
        )
    chains = np.concatenate([np.full(part.n_draws, at) for at, part in enumerate(parts)])
    names = ("means", "offsets", "variances", "labels", "cells", "cuts", "positions")
    stacked: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], chains=chains, windows=joined, **stacked)


LEVELS = np.arange(1, 100) / 100.0
TEMPERATURE_SPREAD = 0.2  # standard deviation of the logarithm of a temperature before held-out rows are looked at


@savable
@dataclass(frozen=True, eq=False)
class Intervals:
    """The share of the predictive distribution that an interval must hold for each coverage, from held-out rows."""

    levels: Floats
    shares: Floats

    def share(self, level: float) -> float:
        levels, shares = np.concatenate([[0.0], self.levels, [1.0]]), np.concatenate([[0.0], self.shares, [1.0]])
        return float(np.interp(level, levels, shares))


def uncalibrated_intervals() -> Intervals:
    """Intervals where nothing was held out: the predictive distribution is taken as it is."""
    return Intervals(LEVELS, LEVELS)


def shortest(below: Floats, share: float | Floats) -> tuple[Ints, Ints]:
    """First and last position of the shortest run of label values with that share of each predictive distribution.

    Of runs of equal length the most probable one is taken. ``share`` is one number, or one per row.
    """
    n, n_cuts = below.shape
    cumulated = np.column_stack([np.zeros(n), below, np.ones(n)])
    best, first, last = np.full(n, -1.0), np.zeros(n, dtype=np.int64), np.full(n, n_cuts)
    open_rows = np.ones(n, dtype=bool)
    for length in range(1, n_cuts + 2):
        for start in range(n_cuts + 2 - length):
            mass = cumulated[:, start + length] - cumulated[:, start]
            better = open_rows & (mass >= share) & (mass > best)
            best[better], first[better], last[better] = mass[better], start, start + length - 1
        open_rows &= best < 0
    return first, last


def probabilities_of(below: Floats, temperature: float = 1.0) -> Floats:
    """Probabilities of the labels, (N, K), from P(y ≤ value); those of a lower temperature are nearer to 0 and 1."""
    found = np.diff(below, axis=1, prepend=0.0, append=1.0)
    if temperature != 1.0:
        found = np.maximum(found, 1e-12) ** (1.0 / temperature)
        found /= found.sum(axis=1, keepdims=True)
    return found


def simulated_shares(chances: Floats, n: int, rng: np.random.Generator) -> Floats:
    """The share of a class among n simulated sets of labels of the rows, (n,), from its probabilities (N,)."""
    total = np.zeros(n)
    for start in range(0, len(chances), ROWS_PER_BLOCK):
        some = chances[start : start + ROWS_PER_BLOCK]
        total += (rng.random((n, len(some)), dtype=np.float32) < some).sum(axis=1)
    return total / len(chances)


def best_temperature(below: Floats, codes: Ints, weights: Floats) -> float:
    """The temperature with the least log loss on rows that were held out; few rows say little against 1."""

    def loss(log: float) -> float:
        chances = probabilities_of(below, float(np.exp(log)))[np.arange(len(codes)), codes]
        return float(-weights @ np.log(np.maximum(chances, 1e-12)) + 0.5 * (log / TEMPERATURE_SPREAD) ** 2)

    return float(np.exp(minimize_scalar(loss, bounds=(-1.0, 1.0), method="bounded").x))


def least_probabilities(said: Floats, weights: Floats) -> Floats:
    """The probability that at least each percentage (`LEVELS`) of held-out rows' classes had; ``said`` are theirs."""
    order = np.argsort(-said)
    share = weights[order].cumsum() / (weights.sum() + 1.0)  # one more, so that few rows do not promise too much
    at = np.searchsorted(share, LEVELS)
    return np.where(at < len(said), said[order][np.minimum(at, len(said) - 1)], 0.0)


def sets_of(chances: Floats, level: float, least: Floats) -> Bools:
    """Sets of classes, (N, K), that hold the true one with that probability; see `least_probabilities`."""
    if len(least):
        return np.asarray(
            (chances >= np.interp(level, LEVELS, least)) | (chances == chances.max(axis=1, keepdims=True))
        )
    order = np.argsort(-chances, axis=1)
    before = np.take_along_axis(chances, order, axis=1).cumsum(axis=1) - np.take_along_axis(chances, order, axis=1)
    found = np.zeros(chances.shape, dtype=bool)
    np.put_along_axis(found, order, before < level, axis=1)
    return found


def calibrated(problem: LayerProblem, mean: Floats, variance: Floats, below: Floats) -> Intervals:
    """The share of the predictive distributions of held-out rows that covers each percentage of their labels.

    The distributions are normal with that mean and variance, or (ordinal) P(y ≤ value) is ``below``.
    """
    if problem.label_values is None:
        # The share of its central interval that just reaches each label.
        far = np.abs(2.0 * ndtr((problem.labels - mean) / np.sqrt(variance)) - 1.0)
        return Intervals(LEVELS, np.quantile(far, LEVELS))
    at = problem.label_codes
    shares = np.linspace(0.0, 1.0, 201)[:-1]
    covered = []
    for share in shares:
        first, last = shortest(below, float(share))
        covered.append(np.mean((first <= at) & (at <= last)))
    rising = np.maximum.accumulate(covered)
    # The least share that covers enough; where coverage jumps over a level, interpolated.
    return Intervals(LEVELS, np.interp(LEVELS, rising + 1e-9 * np.arange(len(rising)), shares))
