"""What layers are fitted to: labelled observations, baskets, the layers between them, and what a chain draws.

    f(e) = μ + Σ_k b_k[code_k(e)] + Σ_t |N_t(x)|^(−½) Σ_{j ∈ N_t(x)} G_t[d_t(j), c_t(q)],   x = source, q = target of e
    z(e) ~ N(f(e), σ²),   y(e) = a_k where cut_(k−1) < z(e) ≤ cut_k   (ordinal), or y(e) = z(e)   (gaussian)

A layer t goes from a source (a user, say) to a target (a movie). The source is described by its basket N_t(x), a set of
tokens: the movies that it has rated (a basket layer), its age and job (a side-information layer), or just itself (an
item layer, which is an ordinary co-clustering). Tokens have clusters d_t, targets have clusters c_t, and the
checkerboard G_t says how a token of one cluster shifts the prediction for a target of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data.sample import marked
from gingham.engine.files import by_blocks, gathered
from gingham.models.layers.positions import SETTLING, PositionPlan, Positions
from gingham.storage import savable

ITEM, BASKET, SIDE = "item", "basket", "side information"
OFFSET_SWEEPS = 2  # first sweeps, which draw offsets only
# Item layers find their clusters better without basket layers. These wait as long as each sweep lowers the mean square
# of the residuals by this share, and no longer than so many sweeps.
PROGRESS, LONGEST_WAIT = 0.05, 12


@savable
@dataclass(frozen=True, eq=False)
class Basket:
    """The tokens of every source: the movies that a user has rated, the users who rated a movie, its genres, or itself.

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
        """From pairs in any order; each pair counts once."""
        m, n = max(n_tokens, 1), len(tokens)
        keys = by_blocks(lambda rows: sources[rows].astype(np.int64) * m + tokens[rows], n, tokens)
        keys.sort()
        new = np.ones(n, dtype=bool)
        new[1:] = keys[1:] != keys[:-1]  # five times as fast as np.unique
        keys = keys if new.all() else gathered(keys, np.flatnonzero(new))
        begins = np.searchsorted(keys, m * np.arange(n_sources + 1))
        return cls(begins, by_blocks(lambda rows: (keys[rows] % m).astype(np.int32), len(keys), keys), n_tokens)

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
        return by_blocks(
            lambda rows: marked(self.indptr, self.n_sources, rows).astype(np.int32), len(self.tokens), self.tokens
        )

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
        return _indptr(np.bincount(self.tokens, minlength=self.n_tokens)), gathered(self.sources, order)

    def of_source(self, source: int) -> Ints:
        """The tokens that one source holds."""
        return self.tokens[self.indptr[source] : self.indptr[source + 1]].astype(np.int64)

    def contents(self, clusters: Ints, m: int) -> Floats:
        """How many tokens of each cluster a source holds, (n_sources, m) float32; m may be larger than needed."""
        flat = by_blocks(
            lambda rows: self.sources[rows].astype(np.int64) * m + clusters[self.tokens[rows]],
            len(self.tokens),
            self.tokens,
        )
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
    """One layer, from the baskets of one mode to the items of another."""

    kind: str  # ITEM, BASKET or SIDE
    source: int  # mode
    target: int  # mode
    basket: int  # which of the baskets describes the sources
    n_token_clusters: int
    n_target_clusters: int
    joins: bool  # tokens are items of the target mode: when a target is predicted, it counts as one more token

    @property
    def basket_key(self) -> tuple[str, int, int]:
        """What decides the basket: layers with the same key share one."""
        return self.kind, self.source, self.target if self.kind == BASKET else self.source


@dataclass(frozen=True)
class Priors:
    """Variances of the priors, and the number of observations that each counts for.

    Variances of offsets are in units of the labels' variance. Variances of cells are in units of the noise: where the
    labels are nearly certain, small effects must not be taken for large ones.
    """

    cell_variance: float = 0.006
    cell_weight: float = 4.0
    offset_variance: float = 0.2
    window_variance: float = 0.016
    offset_weight: float = 0.4
    mean_variance: float = 1.0


@dataclass(frozen=True, eq=False)
class LayerProblem:
    """Observations in the order of the first mode (and of time within it), with baskets and layers.

    Attributes
    ----------
    n_items : items of each mode
    codes : (d, N) int32
    labels : (N,) float64
    weights : (N,) float64, or None where all are one
    label_values : (K,) the possible labels in rising order for the ordinal likelihood; None for the gaussian one
    times : (N,) float64, or None
    windows : widths of time windows; every item of the first mode has an offset for each of its windows
    phases : the shift of the windows of each width
    origin : the time at which the first window begins
    """

    n_items: tuple[int, ...]
    codes: Ints
    labels: Floats
    weights: Floats | None
    label_values: Floats | None
    baskets: tuple[Basket, ...]
    layers: tuple[LayerPlan, ...]
    times: Floats | None = None
    windows: tuple[float, ...] = ()
    phases: tuple[float, ...] = ()
    origin: float = 0.0
    scale: float = 1.0  # variance of the labels, the unit of the priors
    center: float = 0.0  # mean of the prior of μ
    priors: Priors = field(default_factory=Priors)
    positions: PositionPlan | None = None

    @property
    def n_modes(self) -> int:
        return len(self.n_items)

    @property
    def n_rows(self) -> int:
        return self.codes.shape[1]

    @property
    def layout(self) -> object | None:
        """Where chains run that cannot run anywhere else; None where they can."""
        return None

    @property
    def counts(self) -> Floats:
        """How often each row counts, (N,)."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def has_rows(self, mode: int) -> Bools:
        """Which items of a mode have rows, (n_items,)."""
        return np.bincount(self.codes[mode], minlength=self.n_items[mode]) > 0

    @cached_property
    def label_codes(self) -> Ints:
        """The position of each label among the label values, (N,) int64; empty for the gaussian likelihood."""
        values = self.label_values
        if values is None:
            return np.zeros(0, dtype=np.int64)
        return by_blocks(lambda rows: np.searchsorted(values, self.labels[rows]), self.n_rows, self.labels)

    @cached_property
    def window_ends(self) -> tuple[Ints, ...]:
        """For each width, the first row of each window and the end of the last, (n_windows + 1,)."""
        if self.times is None:
            return ()
        ends = []
        for width, phase in zip(self.windows, self.phases):
            at = window_at(self.times, self.origin, width, phase)
            changes = (np.diff(self.codes[0]) != 0) | (np.diff(at) != 0)
            ends.append(np.concatenate([[0], np.flatnonzero(changes) + 1, [self.n_rows]]).astype(np.int64))
        return tuple(ends)

    @cached_property
    def position_codes(self) -> tuple[Ints, Ints]:
        """Of each row the source with its period, counted together, and the target; for positions."""
        plan = self.positions
        if plan is None:
            raise ValueError("a problem without positions")
        period = plan.period(self.times, self.n_rows)
        return self.codes[plan.source] * np.int64(plan.n_periods) + period, self.codes[plan.target]

    @property
    def n_offsets(self) -> tuple[int, ...]:
        """The number of offsets of each kind: of the items of each mode, then of the windows of each width."""
        return (*self.n_items, *(len(ends) - 1 for ends in self.window_ends))

    def described(self) -> str:
        """The number of layers of each kind, as text."""
        kinds = [layer.kind for layer in self.layers]
        counts = [f"{kinds.count(kind)} {kind} layers" for kind in (ITEM, BASKET, SIDE) if kind in kinds]
        if (plan := self.positions) is not None:
            counts.append(f"positions of {plan.rank} coordinates in {plan.n_periods} periods")
        return ", ".join(counts) or "offsets only"

    def offset_variance(self, kind: int) -> float:
        priors = self.priors
        return self.scale * (priors.offset_variance if kind < self.n_modes else priors.window_variance)

    def with_labels(self, labels: Floats) -> LayerProblem:
        """The same rows with other labels."""
        mean = float(np.average(labels, weights=self.weights))
        variance = float(np.average((labels - mean) ** 2, weights=self.weights))
        return replace(self, labels=labels, center=mean, scale=variance if variance > 0 else 1.0)

    def take(self, rows: AnyArray) -> LayerProblem:
        """Some of the rows; the baskets keep the others too."""
        weights, times = (None if a is None else a[rows] for a in (self.weights, self.times))
        return replace(self, codes=self.codes[:, rows], labels=self.labels[rows], weights=weights, times=times)


def window_at(times: Floats, origin: float, width: float, phase: float) -> Ints:
    """The number of the window that each time lies in."""
    return np.floor((times - origin + phase) / width).astype(np.int64)


@dataclass(eq=False)
class ChainState:
    """Everything that a chain draws, in the notation of the module's docstring."""

    noise: float  # σ², which is estimated from held-out rows, not drawn
    mean: float
    offsets: list[Floats]  # b, one array for each kind of offsets
    offset_variances: list[float]
    targets: list[Ints]  # c_t, (n_items of the target mode,) uint8
    tokens: list[Ints]  # d_t, (n_tokens,) uint8
    cells: list[Floats]  # G_t, (token clusters, target clusters) float32
    cell_variances: list[float]
    cuts: Floats  # (K − 1,)
    steps: Floats  # standard deviations of the proposals for the inner cuts, (K − 1,)
    latent: Floats  # z, (N,) float32
    n_sweeps: int = 0
    square: float = float("inf")  # mean square of the residuals after the last sweep
    baskets_enabled: bool = False  # whether basket layers are drawn yet
    positions: Positions | None = None

    @property
    def draws_layers(self) -> bool:
        """Whether the next sweep draws more than offsets."""
        return self.n_sweeps >= OFFSET_SWEEPS

    @property
    def draws_latent(self) -> bool:
        """Whether the next sweep draws latent answers; positions first settle on the labels."""
        return self.draws_layers and (self.positions is None or self.settled)

    @property
    def settled(self) -> bool:
        """Whether variances and clusters of positions are drawn."""
        return self.n_sweeps >= SETTLING

    def end_sweep(self, square: float) -> None:
        """Note that a sweep has ended with this mean square of the residuals."""
        if self.draws_layers and (square > (1.0 - PROGRESS) * self.square or self.n_sweeps >= LONGEST_WAIT):
            self.baskets_enabled = True
        self.square = square
        self.n_sweeps += 1


def first_state(problem: LayerProblem, noise: float, rng: np.random.Generator) -> ChainState:
    """Random clusters, cells of zero, and the labels as latent answers."""
    label_values = np.zeros(1) if problem.label_values is None else problem.label_values
    cuts, plan = (label_values[1:] + label_values[:-1]) / 2.0, problem.positions
    return ChainState(
        noise=noise,
        mean=problem.center,
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
        latent=by_blocks(lambda rows: problem.labels[rows].astype(np.float32), len(problem.labels), problem.labels),
        positions=None if plan is None else Positions.first(plan, problem.n_items, noise, rng),
    )


def inner_cuts(problem: LayerProblem) -> Sequence[int]:
    """The cut points that are drawn: all but the outer two, which keep z in the unit of the labels."""
    n = 0 if problem.label_values is None else len(problem.label_values) - 1
    return range(1, n - 1)
