"""Basket layers as values: who met what, which layers there are, what a chain draws, and the draws that are kept.

    f(e) = μ + Σ_k b_k[code_k(e)] + Σ_t |N_t(x)|^(−½) Σ_{j ∈ N_t(x)} G_t[d_t(j), c_t(q)],   x = source, q = target of e
    z(e) ~ N(f(e), σ²),   y(e) = a_k where cut_(k−1) < z(e) ≤ cut_k   (ordinal), or y(e) = z(e)   (gaussian)

A layer t looks from a source (a user, say) at a target (a movie). The source is described by its basket N_t(x), a set
of tokens: the movies it has rated, its age and job, or just itself. Tokens have clusters d_t, targets clusters c_t,
and a checkerboard G_t says how a token of one cluster pulls at a target of another. A basket that is the source itself
makes the layer an ordinary co-clustering.

Every draw is a complete model, so the law of a label is a mixture, over the kept draws, of the normal laws (cut into
labels) above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.engine.threads import over_blocks
from gingham.errors import GinghamError
from gingham.lazy import lazy_module
from gingham.models.layers.model import on_device
from gingham.storage import State, fields_of, savable

if TYPE_CHECKING:
    from gingham.models.layers import baskets_kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.baskets_kernels")

TASTE, HABIT, SIDE = "taste", "habit", "side information"
SETTLE = 2  # sweeps with offsets only
LOWEST = -1e30  # log share of a cluster that is only padding
# Tastes find their clusters better without habits. These wait as long as each sweep lowers the mean square of the
# residuals by so much, and no longer than so many sweeps.
STRIDE, LONGEST_WAIT = 0.05, 12


@savable
@dataclass(frozen=True, eq=False)
class Basket:
    """The tokens of every source: the movies a user has rated, who rated a movie, a movie's genres, or just itself.

    Attributes
    ----------
    indptr : (n_sources + 1,) int64
    tokens : (n,) int32, sorted within a source
    n_tokens : int
    """

    indptr: Ints
    tokens: Ints
    n_tokens: int

    @classmethod
    def of_pairs(cls, sources: Ints, tokens: Ints, n_sources: int, n_tokens: int) -> Basket:
        """Each pair once, whatever order they come in."""
        keys = np.sort(sources.astype(np.int64) * max(n_tokens, 1) + tokens)
        keys = keys[np.diff(keys, prepend=-1) != 0]  # np.unique takes five times as long
        counts = np.bincount(keys // max(n_tokens, 1), minlength=n_sources)
        return cls(_indptr(counts), (keys % max(n_tokens, 1)).astype(np.int32), n_tokens)

    @classmethod
    def itself(cls, n: int) -> Basket:
        """Every source is its own only token."""
        return cls(np.arange(n + 1), np.arange(n, dtype=np.int32), n)

    @property
    def n_sources(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def sources(self) -> Ints:
        """The source of each entry of ``tokens``."""
        return np.repeat(np.arange(self.n_sources, dtype=np.int32), np.diff(self.indptr))

    @cached_property
    def is_itself(self) -> bool:
        return self.n_tokens == self.n_sources == len(self.tokens) and bool(
            (self.tokens == np.arange(self.n_tokens)).all() and (np.diff(self.indptr) == 1).all()
        )

    @cached_property
    def scale(self) -> Floats:
        """|N(x)|^(−½), (n_sources,) float32; 1 for an empty basket."""
        return (np.maximum(np.diff(self.indptr), 1) ** -0.5).astype(np.float32)

    @cached_property
    def by_token(self) -> tuple[Ints, Ints]:
        """Where each token's sources begin, (n_tokens + 1,), and the sources that hold it."""
        order = np.argsort(self.tokens, kind="stable")
        return _indptr(np.bincount(self.tokens, minlength=self.n_tokens)), self.sources[order]

    def of_source(self, source: int) -> Ints:
        """The tokens that one source holds."""
        return self.tokens[self.indptr[source] : self.indptr[source + 1]].astype(np.int64)

    def contents(self, clusters: Ints, m: int) -> Floats:
        """How many tokens of each cluster a source holds, (n_sources, m) float32; m may be larger than needed."""
        flat = self.sources.astype(np.int64) * m + clusters[self.tokens]
        return np.bincount(flat, minlength=self.n_sources * m).reshape(-1, m).astype(np.float32)

    def holds(self, sources: Ints, tokens: Ints) -> Bools:
        """Whether each source holds that token."""
        keys = self.sources.astype(np.int64) * max(self.n_tokens, 1) + self.tokens
        asked = sources.astype(np.int64) * max(self.n_tokens, 1) + tokens
        if not len(keys):
            return np.zeros(len(asked), dtype=bool)
        return np.asarray(keys[np.minimum(np.searchsorted(keys, asked), len(keys) - 1)] == asked)


def _indptr(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@savable
@dataclass(frozen=True)
class LayerPlan:
    """One layer: from the baskets of one mode to the items of another."""

    kind: str  # TASTE, HABIT or SIDE
    source: int  # mode
    target: int  # mode
    basket: int  # which of the baskets describes the sources
    n_token_clusters: int
    n_target_clusters: int
    joins: bool  # the tokens are the target mode's items: a target that is asked for joins the basket


@dataclass(frozen=True)
class Priors:
    """Scales of the priors, and with how many observations each counts.

    Those of offsets are in units of the labels' variance. Those of cells are in units of the noise: where labels are
    nearly certain, small effects must not be believed to be large.
    """

    cell_variance: float = 0.006
    cell_weight: float = 4.0
    offset_variance: float = 0.2
    window_variance: float = 0.016
    offset_weight: float = 0.4
    mean_variance: float = 1.0


@dataclass(frozen=True, eq=False)
class BasketProblem:
    """Observed tuples in the order of the first mode (and of time within it), with baskets and layers.

    Attributes
    ----------
    n_items : items of each mode
    codes : (d, N) int32
    labels : (N,) float64
    weights : (N,) float64, or None where all are one
    letters : (K,) the possible labels, rising, for the ordinal likelihood; None for the gaussian one
    times : (N,) float64, or None
    windows : widths of windows of time; each has an offset for every item of the first mode
    phases : by how much the windows of each width are shifted
    origin : the time from which windows are counted
    """

    n_items: tuple[int, ...]
    codes: Ints
    labels: Floats
    weights: Floats | None
    letters: Floats | None
    baskets: tuple[Basket, ...]
    layers: tuple[LayerPlan, ...]
    times: Floats | None = None
    windows: tuple[float, ...] = ()
    phases: tuple[float, ...] = ()
    origin: float = 0.0
    has_offsets: bool = True  # of items; windows have theirs in any case
    scale: float = 1.0  # the labels' variance, which is the unit of the priors
    center: float = 0.0  # where the prior of μ lies
    priors: Priors = field(default_factory=Priors)

    @property
    def n_modes(self) -> int:
        return len(self.n_items)

    @property
    def n_rows(self) -> int:
        return self.codes.shape[1]

    @cached_property
    def letter_codes(self) -> Ints:
        """The position of each label among the letters, (N,) int64."""
        if self.letters is None:
            raise ValueError("the gaussian likelihood has no letters")
        return np.searchsorted(self.letters, self.labels)

    @cached_property
    def window_ends(self) -> tuple[Ints, ...]:
        """For each width, where the windows of the rows begin and end, (n_windows + 1,): they are contiguous."""
        if self.times is None:
            return ()
        ends = []
        for width, phase in zip(self.windows, self.phases):
            at = window_at(self.times, self.origin, width, phase)
            changes = (np.diff(self.codes[0]) != 0) | (np.diff(at) != 0)
            ends.append(np.concatenate([[0], np.flatnonzero(changes) + 1, [self.n_rows]]).astype(np.int64))
        return tuple(ends)

    @property
    def n_offsets(self) -> tuple[int, ...]:
        """How many offsets there are of each kind: a mode's items, one mode after the other, then windows."""
        return (*self.n_items, *(len(ends) - 1 for ends in self.window_ends))

    def described(self) -> str:
        """How many layers there are of each kind."""
        kinds = [layer.kind for layer in self.layers]
        return ", ".join(f"{kinds.count(kind)} layers of {kind}" for kind in (TASTE, HABIT, SIDE) if kind in kinds)

    def offset_variance(self, kind: int) -> float:
        priors = self.priors
        return self.scale * (priors.offset_variance if kind < self.n_modes else priors.window_variance)

    def take(self, rows: AnyArray) -> BasketProblem:
        """Some of the tuples; baskets stay, since who met what is known of the others too."""
        weights, times = (None if a is None else a[rows] for a in (self.weights, self.times))
        return replace(self, codes=self.codes[:, rows], labels=self.labels[rows], weights=weights, times=times)


def window_at(times: Floats, origin: float, width: float, phase: float) -> Ints:
    """The number of the window in which each time lies."""
    return np.floor((times - origin + phase) / width).astype(np.int64)


@dataclass(eq=False)
class BasketState:
    """All that a chain draws; see `gingham.models.layers.baskets` for the meaning."""

    noise: float  # σ², which is set, not drawn
    mean: float
    offsets: list[Floats]  # one array for each kind of offsets
    offset_variances: list[float]
    targets: list[Ints]  # c_t, (n_items of the target mode,) uint8
    tokens: list[Ints]  # d_t, (n_tokens,) uint8
    cells: list[Floats]  # G_t, (token clusters, target clusters) float32
    cell_variances: list[float]
    cuts: Floats  # (K − 1,)
    steps: Floats  # of the proposals for the inner cuts, (K − 1,)
    latent: Floats  # z, (N,) float32
    n_sweeps: int = 0
    square: float = float("inf")  # mean square of the residuals after the last sweep
    awake: bool = False  # whether habits count

    def end_sweep(self, square: float) -> None:
        """A sweep has ended with this mean square of the residuals."""
        settled = self.n_sweeps >= SETTLE
        if settled and (square > (1.0 - STRIDE) * self.square or self.n_sweeps >= LONGEST_WAIT):
            self.awake = True
        self.square = square
        self.n_sweeps += 1


def first_state(problem: BasketProblem, noise: float, rng: np.random.Generator) -> BasketState:
    """Random clusters, cells of zero, the labels as latent answers."""
    letters = np.zeros(1) if problem.letters is None else problem.letters
    cuts = (letters[1:] + letters[:-1]) / 2.0
    return BasketState(
        noise=noise,
        mean=float(np.average(problem.labels, weights=problem.weights)),
        offsets=[np.zeros(n, dtype=np.float32) for n in problem.n_offsets],
        offset_variances=[problem.offset_variance(kind) for kind in range(len(problem.n_offsets))],
        targets=[
            rng.integers(layer.n_target_clusters, size=problem.n_items[layer.target], dtype=np.uint8)
            for layer in problem.layers
        ],
        tokens=[
            rng.integers(layer.n_token_clusters, size=problem.baskets[layer.basket].n_tokens, dtype=np.uint8)
            for layer in problem.layers
        ],
        cells=[
            np.zeros((layer.n_token_clusters, layer.n_target_clusters), dtype=np.float32) for layer in problem.layers
        ],
        cell_variances=[noise * problem.priors.cell_variance] * len(problem.layers),
        cuts=cuts,
        steps=np.full(len(cuts), 0.03 * float(np.sqrt(problem.scale))),
        latent=problem.labels.astype(np.float32),
    )


def inner_cuts(problem: BasketProblem) -> Sequence[int]:
    """Cut points that are drawn: all but the outer two, which keep z in the unit of the labels."""
    n = 0 if problem.letters is None else len(problem.letters) - 1
    return range(1, n - 1)


DRAWS_AT_A_TIME = 8  # by one thread; fixed, so that sums do not depend on the number of threads
BISECTIONS = 40


@savable
@dataclass(frozen=True, eq=False)
class Windows:
    """Offsets of windows of time, averaged over each chain: what a draw's own would add is little, and they are many.

    Attributes
    ----------
    users, times : (N,) of the rows that were fitted, in the order of users and times
    origin, widths : where windows are counted from, and how wide they are
    phases : (chains, widths) by how much they are shifted
    offsets : for each chain, the offsets of the windows of all widths, one after the other
    variances : (chains, widths) prior variances, by which an unknown window's answers spread
    """

    users: Ints
    times: Floats
    origin: float
    widths: Floats
    phases: Floats
    offsets: tuple[Floats, ...]
    variances: Floats

    def _keys(self, chain: int, at: int, users: Ints, times: Floats) -> Ints:
        """One number for each user and window, rising in the order of the fitted rows."""
        shift = float(self.phases[chain, at])
        most = int(window_at(self.times.max(), self.origin, self.widths[at], shift)) + 2
        place = window_at(times, self.origin, self.widths[at], shift)
        return users.astype(np.int64) * most + np.clip(place, -1, most - 1)

    @cached_property
    def _known(self) -> list[list[tuple[Ints, Floats]]]:
        """Keys and offsets of every chain and width."""
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
        """For each chain, the mean over a user's fitted rows of all its windows together, (largest user + 1,)."""
        n = int(self.users.max(initial=-1)) + 1
        found: list[Floats] = []
        for chain in range(len(self.offsets)):
            total: Floats = np.zeros(len(self.times))
            for at, (keys, offsets) in enumerate(self._known[chain]):
                total += offsets[np.searchsorted(keys, self._keys(chain, at, self.users, self.times))]
            counts = np.maximum(np.bincount(self.users, minlength=n), 1)
            found.append(np.bincount(self.users, total, minlength=n) / counts)
        return found

    def ask(self, chain: int, users: Ints, times: Floats | None) -> tuple[Floats, Floats]:
        """What a user's windows at these times add, and the variance of what is not known of them, each (N,).

        Where the time is missing, a user has the average of its windows; a new user (−1) has none.
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


class Law(NamedTuple):
    """The law of each row's label: its mean, and P(y ≤ letter) of every letter but the last (none without letters)."""

    mean: Floats  # (N,)
    below: Floats  # (N, K − 1)


@savable
@dataclass(frozen=True, eq=False)
class BasketDraws:
    """Kept draws of all chains.

    Attributes
    ----------
    n_items : items of each mode
    baskets, layers : as in `BasketProblem`
    letters : (K,), or None for the gaussian likelihood
    noise : σ²
    chains : (S,) the chain of each draw
    means : μ, (S,)
    offsets : (S, Σ n_j) float32, of all modes' items side by side
    variances : (S, d) prior variances of the offsets, by which a new item's answers spread
    labels : (S, P) uint8; for each layer clusters of targets, then of tokens
    cells : (S, Σ m·m) float32
    cuts : (S, K − 1), empty for the gaussian likelihood
    windows : offsets of windows of time, or None
    """

    n_items: tuple[int, ...]
    baskets: tuple[Basket, ...]
    layers: tuple[LayerPlan, ...]
    letters: Floats | None
    noise: float
    chains: Ints
    means: Floats
    offsets: Floats
    variances: Floats
    labels: Ints
    cells: Floats
    cuts: Floats
    windows: Windows | None = None

    def to_file(self) -> State:
        # Successive draws agree for most items: stored as changes (modulo 256), the file shrinks by half.
        changes = self.labels.copy()
        changes[1:] -= self.labels[:-1]
        return {**fields_of(self), "labels": changes}

    @classmethod
    def from_file(cls, state: State) -> BasketDraws:
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
        """Lengths of the parts of a draw's labels: targets and tokens of each layer in turn."""
        return [n for layer in self.layers for n in (self.n_items[layer.target], self.baskets[layer.basket].n_tokens)]

    @cached_property
    def _label_starts(self) -> list[int]:
        return np.concatenate([[0], np.cumsum(self.label_sizes)]).astype(int).tolist()

    @cached_property
    def _cell_starts(self) -> list[int]:
        sizes = [layer.n_token_clusters * layer.n_target_clusters for layer in self.layers]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(int).tolist()

    @cached_property
    def _item_starts(self) -> list[int]:
        return np.concatenate([[0], np.cumsum(self.n_items)]).astype(int).tolist()

    def targets(self, s: int, t: int) -> Ints:
        """c_t of draw s, (n_targets,)."""
        return self.labels[s, self._label_starts[2 * t] : self._label_starts[2 * t + 1]]

    def tokens(self, s: int, t: int) -> Ints:
        """d_t of draw s, (n_tokens,)."""
        return self.labels[s, self._label_starts[2 * t + 1] : self._label_starts[2 * t + 2]]

    def cells_of(self, s: int, t: int) -> Floats:
        """G_t of draw s, (token clusters, target clusters)."""
        layer = self.layers[t]
        flat = self.cells[s, self._cell_starts[t] : self._cell_starts[t + 1]]
        return flat.reshape(layer.n_token_clusters, layer.n_target_clusters)

    def offsets_of(self, s: int, mode: int) -> Floats:
        return self.offsets[s, self._item_starts[mode] : self._item_starts[mode + 1]]

    def mean_offsets(self) -> tuple[Floats, ...]:
        """b_j averaged over the draws, one array per mode."""
        mean = self.offsets.mean(axis=0, dtype=np.float64)
        return tuple(np.split(mean, self._item_starts[1:-1]))

    # asking

    def effects(self, codes: Sequence[Ints], times: Floats | None = None) -> tuple[Floats, Floats]:
        """f of every row in every draw, and the variance of what is not known of it, each (S, N); for few rows."""
        question = Question.of(self, codes)
        asked = [self._windows(chain, codes, times) for chain in range(int(self.chains.max()) + 1)]
        if on_device(0):
            from gingham.models.layers.baskets_torch import DeviceQuestion

            device = DeviceQuestion(self, question)
            drawn: list[Floats] = [device.effect(s).cpu().numpy() for s in range(self.n_draws)]
        else:
            drawn = [question.effect(self, s) for s in range(self.n_draws)]
        f = np.array([effect + asked[chain][0] for effect, chain in zip(drawn, self.chains)])
        spread = np.array([question.spread(self, s) + asked[self.chains[s]][1] for s in range(self.n_draws)])
        return f, spread

    def _windows(self, chain: int, codes: Sequence[Ints], times: Floats | None) -> tuple[Floats, Floats]:
        if self.windows is None:
            return np.zeros(len(codes[0])), np.zeros(len(codes[0]))
        return self.windows.ask(chain, codes[0], times)

    def law(self, codes: Sequence[Ints], times: Floats | None = None, letters: Floats | None = None) -> Law:
        """Mean and law of each row's label; code −1 is an unknown item, a time that is not a number a missing one.

        ``letters`` are possible labels under the gaussian likelihood, where only their midpoints count.
        """
        question = Question.of(self, codes)
        n_chains = int(self.chains.max()) + 1
        asked = [self._windows(chain, codes, times) for chain in range(n_chains)]
        own = self.letters is not None
        values = self.letters if own else letters
        n_cuts = 0 if values is None else len(values) - 1
        middle = np.zeros(0) if values is None else (values[1:] + values[:-1]) / 2.0

        if on_device(question.n_rows * self.n_draws * max(len(self.layers), 1)):
            from gingham.models.layers.baskets_torch import DeviceQuestion

            cuts = self.cuts if own else np.tile(middle, (self.n_draws, 1))
            total, below = DeviceQuestion(self, question).sums(asked, cuts)
            return self._law_of(total, below, values)

        def part(start: int) -> tuple[Floats, Floats]:
            total, below = np.zeros(question.n_rows), np.zeros((question.n_rows, n_cuts))
            for s in range(start, min(start + DRAWS_AT_A_TIME, self.n_draws)):
                add, spread = asked[self.chains[s]]
                f = question.effect(self, s) + add
                total += f
                if n_cuts:
                    sd = np.sqrt(self.noise + spread + question.spread(self, s))
                    kernel.add_below(f, sd, self.cuts[s] if own else middle, kernel.PHI, below)
            return total, below

        total, below = np.zeros(question.n_rows), np.zeros((question.n_rows, n_cuts))
        for more, more_below in over_blocks(part, range(0, self.n_draws, DRAWS_AT_A_TIME)):
            total += more
            below += more_below
        return self._law_of(total, below, values)

    def _law_of(self, total: Floats, below: Floats, values: Floats | None) -> Law:
        """From sums over the draws."""
        below = below / self.n_draws
        if self.letters is not None and values is not None:
            return Law(values[-1] - below @ np.diff(values), below)
        return Law(total / self.n_draws, below)

    def without_labels(self, codes: Sequence[Ints]) -> Bools:
        """The rows with an item that is unknown or was added without labels, (N,): its offset is not known."""
        return np.any([self.items_without_labels(mode)[code] for mode, code in enumerate(codes)], axis=0)

    def items_without_labels(self, mode: int, s: int = 0) -> Bools:
        """The items of a mode whose offset in a draw is not known, (n + 1,); the last stands for unknown ones."""
        return np.append(self.offsets_of(s, mode) == 0, True) & (self.variances[s, mode] > 0)

    def quantiles(self, codes: Sequence[Ints], times: Floats | None, levels: Floats) -> Floats:
        """Where the law of z reaches each level, (N, levels): the mixture over draws, by bisection; for real labels."""
        n = len(codes[0])
        found = np.empty((n, len(levels)))
        block = max(1, 2**22 // self.n_draws)
        for start in range(0, n, block):
            rows = slice(start, start + block)
            f, spread = self.effects([c[rows] for c in codes], None if times is None else times[rows])
            sd = np.sqrt(self.noise + spread)
            for at, level in enumerate(levels):
                low, high = (f - 9.0 * sd).min(axis=0), (f + 9.0 * sd).max(axis=0)
                for _ in range(BISECTIONS):
                    middle = (low + high) / 2.0
                    under = ndtr((middle - f) / sd).mean(axis=0) < level
                    low, high = np.where(under, middle, low), np.where(under, high, middle)
                found[rows, at] = (low + high) / 2.0
        return found


class Asked(NamedTuple):
    """What a layer needs to know of the rows that are asked."""

    sources: Ints  # distinct sources, (n,); −1 (unknown) comes last and has an empty basket
    source_of: Ints  # (N,) the position of each row's source among them
    targets: Ints  # (N,) codes; the number of items for an unknown one
    joins: Bools  # (N,) whether the target joins the basket: it does, but for one that is empty or holds it


@dataclass(frozen=True, eq=False)
class Question:
    """Rows that are asked, as the layers need them; made once for all draws."""

    codes: tuple[Ints, ...]
    layers: tuple[Asked, ...]

    @classmethod
    def of(cls, draws: BasketDraws, codes: Sequence[Ints]) -> Question:
        codes = tuple(np.asarray(c, dtype=np.int64) for c in codes)
        distinct = {}
        for mode in {layer.source for layer in draws.layers}:
            sources, place = np.unique(codes[mode], return_inverse=True)
            distinct[mode] = (sources, place.astype(np.int32))
        held: dict[tuple[int, int], Bools] = {}
        asked = []
        for layer in draws.layers:
            x, q = codes[layer.source], codes[layer.target]
            n = draws.n_items[layer.target]
            key = (layer.basket, layer.target)
            if layer.joins and key not in held:
                basket = draws.baskets[layer.basket]
                known = (x >= 0) & (q >= 0)
                held[key] = np.zeros(len(q), dtype=bool)
                held[key][known] = basket.holds(x[known], q[known])
                # An empty basket stays empty: cells are those of many tokens, and one alone would count in full.
                sizes = np.append(np.diff(basket.indptr), 0)  # the last is that of an unknown source, −1
                held[key] |= sizes[x] == 0
            joins = ~held[key] if layer.joins else np.zeros(len(q), dtype=bool)
            asked.append(Asked(*distinct[layer.source], np.where(q < 0, n, q).astype(np.int32), joins))
        return cls(codes, tuple(asked))

    @property
    def n_rows(self) -> int:
        return len(self.codes[0])

    def effect(self, draws: BasketDraws, s: int) -> Floats:
        """f of every row in one draw, without windows of time."""
        f: Floats = np.full(self.n_rows, draws.means[s])
        for mode, code in enumerate(self.codes):
            f += np.append(draws.offsets_of(s, mode), np.float32(0))[code]
        for t in range(len(self.layers)):
            self.add_layer(draws, s, t, f)
        return f

    def add_layer(self, draws: BasketDraws, s: int, t: int, f: Floats, cluster: int | None = None) -> None:
        """Add what one layer pulls in one draw, at the targets' clusters or as if all targets were in one cluster."""
        layer, asked, basket = draws.layers[t], self.layers[t], draws.baskets[draws.layers[t].basket]
        tokens = draws.tokens(s, t)
        cells, targets = with_unknown(draws.cells_of(s, t), draws.targets(s, t), tokens)
        if cluster is not None:
            targets = np.full_like(targets, cluster)
        kernel.add_pulls(
            asked.sources, asked.source_of, asked.targets, asked.joins, basket.indptr, basket.tokens,
            layer.kind == TASTE, tokens, targets, cells, f,
        )  # fmt: skip

    def spread(self, draws: BasketDraws, s: int) -> Floats:
        """The variance of the offsets of unknown items, (N,), and of those added without labels: theirs is 0."""
        total = np.zeros(self.n_rows)
        for mode, code in enumerate(self.codes):
            total += draws.variances[s, mode] * draws.items_without_labels(mode, s)[code]
        return total


def with_unknown(cells: Floats, targets: Ints, tokens: Ints) -> tuple[Floats, Ints]:
    """Cells with a last row and column, their average over tokens and targets, and targets with an unknown one.

    Items that were added later without labels have the last cluster, too.
    """
    m_token, m_target = cells.shape
    table = np.zeros((m_token + 1, m_target + 1), dtype=np.float32)
    table[:-1, :-1] = cells
    members = [np.bincount(labels, minlength=m)[:m] for labels, m in ((tokens, m_token), (targets, m_target))]
    by_token, by_target = (counts / max(counts.sum(), 1) for counts in members)
    table[:-1, -1] = cells @ by_target
    table[-1] = by_token @ table[:-1]
    return table, np.append(targets, np.uint8(m_target))


class Keeper:
    """Takes draws down as a chain goes on."""

    def __init__(self, problem: BasketProblem, chain: int) -> None:
        self.problem, self.chain = problem, chain
        # Of an item without labels the offset is not known: it is 0, and its prior's spread is added to the law.
        self.has_labels = np.concatenate(
            [np.bincount(codes, minlength=n) > 0 for codes, n in zip(problem.codes, problem.n_items)]
        )
        self.kept: list[dict[str, Floats | Ints | float]] = []
        self.window_sums = [np.zeros(n) for n in problem.n_offsets[problem.n_modes :]]
        self.window_variances = np.zeros(len(problem.windows))
        self.n_windows = 0

    def add(self, state: BasketState, keep: bool = True) -> None:
        """The present state: as one draw where it is to be kept; windows are averaged over all states."""
        d = self.problem.n_modes
        for total, offsets in zip(self.window_sums, state.offsets[d:]):
            total += offsets
        self.window_variances += state.offset_variances[d:]
        self.n_windows += 1
        if not keep:
            return
        parts = [part for pair in zip(state.targets, state.tokens) for part in pair]
        self.kept.append(
            {
                "means": state.mean,
                "offsets": (np.concatenate(state.offsets[:d]) * self.has_labels).astype(np.float32),
                "variances": np.array(state.offset_variances[:d]) * self.problem.has_offsets,
                "labels": np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8),
                "cells": np.concatenate([g.ravel() for g in state.cells]) if parts else np.zeros(0, dtype=np.float32),
                "cuts": state.cuts.copy(),
            }
        )

    def to_file(self) -> State:
        """What was taken down so far, for a checkpoint."""
        stacked = {name: np.array([one[name] for one in self.kept]) for name in self.kept[0]} if self.kept else {}
        return {"kept": stacked, "sums": self.window_sums, "variances": self.window_variances, "n": self.n_windows}

    def restore(self, state: State) -> None:
        stacked = state["kept"]
        n = len(stacked["means"]) if stacked else 0
        self.kept = [{name: values[at] for name, values in stacked.items()} for at in range(n)]
        self.window_sums = [total.copy() for total in state["sums"]]
        self.window_variances, self.n_windows = state["variances"].copy(), state["n"]

    def draws(self, noise: float) -> BasketDraws:
        problem = self.problem
        stacked = {name: np.array([one[name] for one in self.kept]) for name in self.kept[0]}
        windows = None
        if problem.times is not None:
            offsets = np.concatenate([total / self.n_windows for total in self.window_sums]).astype(np.float32)
            windows = Windows(
                problem.codes[0], problem.times, problem.origin, np.array(problem.windows),
                np.array([problem.phases]), (offsets,), self.window_variances[None] / self.n_windows,
            )  # fmt: skip
        return BasketDraws(
            problem.n_items, problem.baskets, problem.layers, problem.letters, noise,
            np.full(len(self.kept), self.chain), windows=windows, **stacked,
        )  # fmt: skip


def join(parts: Sequence[BasketDraws]) -> BasketDraws:
    """The draws of all chains together; every draw counts alike."""
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
    names = ("means", "offsets", "variances", "labels", "cells", "cuts")
    stacked: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], chains=chains, windows=joined, **stacked)


LEVELS = np.arange(1, 100) / 100.0


@savable
@dataclass(frozen=True, eq=False)
class Intervals:
    """Which share of the law an interval must hold so that labels lie in it as often as asked, from rows held out."""

    levels: Floats
    shares: Floats

    def share(self, level: float) -> float:
        levels, shares = np.concatenate([[0.0], self.levels, [1.0]]), np.concatenate([[0.0], self.shares, [1.0]])
        return float(np.interp(level, levels, shares))


def as_they_are() -> Intervals:
    """Nothing was held out: the law is believed."""
    return Intervals(LEVELS, LEVELS)


def shortest(below: Floats, share: float | Floats) -> tuple[Ints, Ints]:
    """First and last letter of the shortest run of letters with that share of each law, the likelier of two alike.

    ``share`` may be one number or one for each law.
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


def calibrated(problem: BasketProblem, rows: Bools, mean: Floats, variance: Floats, below: Floats) -> Intervals:
    """How large a share of the law of the rows held out covers how many of their labels.

    The law is normal with that mean and variance, or (ordinal) P(y ≤ letter) is ``below``.
    """
    labels = problem.labels[rows]
    if problem.letters is None:
        # How far from the middle of its law each label lies, as a share of the law.
        far = np.abs(2.0 * ndtr((labels - mean) / np.sqrt(variance)) - 1.0)
        return Intervals(LEVELS, np.quantile(far, LEVELS))
    at = problem.letter_codes[rows]
    shares = np.linspace(0.0, 1.0, 201)[:-1]
    covered = []
    for share in shares:
        first, last = shortest(below, float(share))
        covered.append(np.mean((first <= at) & (at <= last)))
    rising = np.maximum.accumulate(covered)
    # The least share that covers enough; where a step jumps over a level, the nearer side of it.
    return Intervals(LEVELS, np.interp(LEVELS, rising + 1e-9 * np.arange(len(rising)), shares))
