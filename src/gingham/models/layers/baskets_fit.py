"""Fitting basket layers: which layers, windows and chains; the noise from rows held out; chains side by side.

The noise σ² is not drawn: hard clusters would fit it away. The first chain begins without a tenth of its rows, and σ²
follows the error of its averaged prediction of these; then the rows come back, and the other chains take that number.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtr

from gingham.arrays import Bools, Floats, Ints
from gingham.core.problem import Objective
from gingham.data import Sample
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
    SIDE,
    TASTE,
    Basket,
    BasketProblem,
    BasketState,
    LayerPlan,
    first_state,
)
from gingham.models.layers.baskets_draws import BasketDraws, Keeper, join
from gingham.models.layers.baskets_sampled import BasketChain, Layout
from gingham.storage import State, savable

if TYPE_CHECKING:
    from gingham.models.layers import baskets_kernels as kernel
else:
    kernel = lazy_module("gingham.models.layers.baskets_kernels")

NOISE = 0.65  # σ² before anything is known, as a share of the labels' variance
HELD = 0.1  # share of the rows that the first chain does without at first
HELD_SWEEPS, HEARD_FROM = 30, 10  # for so many sweeps; from this one on they are predicted
COOLING = 10  # sweeps in which a chain comes down to its noise: one that begins there may freeze where it begins
LEAST_HELD = 10  # rows; with fewer the noise stays where it begins
NARROWER = 8.0  # each width of windows over the next
MOST_WIDTHS = 8
FULL = 0.9  # share of all pairs that are met, above which who met whom says nothing
KEEP_EVERY, FEWEST_DRAWS = 3, 10  # neighbouring sweeps say much the same; a chain keeps ten draws at least
MOST_BYTES = 2**30  # of all kept draws: where there would be more, fewer sweeps are kept
CLUSTERS = 4  # of tokens and of targets
LEVELS = np.arange(1, 100) / 100.0


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


PER_ROW, PER_ITEM = 7e-9, 3e-8  # seconds of a layer's sweep for each row, and for each target and token
BUDGET = 160.0  # CPU seconds that the default number of chains may take; with more data there are fewer chains
FEWEST_CHAINS = 3


def n_chains_for(problem: BasketProblem, effort: Effort) -> int:
    """The chains of an effort, fewer where they would take too long: with much data each says more."""
    items = sum(problem.n_items[layer.target] + problem.baskets[layer.basket].n_tokens for layer in problem.layers)
    sweep = PER_ROW * problem.n_rows * (len(problem.layers) + 10) + PER_ITEM * items
    budget = BUDGET * effort.n_chains / EFFORTS["default"].n_chains
    return int(np.clip(budget / (sweep * effort.n_sweeps), min(FEWEST_CHAINS, effort.n_chains), effort.n_chains))


MANY, SOME = 300_000, 100_000  # rows from which it is tried out whether habits help, and on how many


def habits_help(
    sample: Sample, letters: Floats | None, effort: Effort, taste_clusters: Sequence[int], seed: np.random.SeedSequence
) -> bool:
    """Whether layers of habits lower the error on rows held out, tried on all the rows of some items of the first mode.

    They take most of the time, and say nothing where everybody met what chance brought along. It is asked where there
    are many rows: few cost little, and a sample of few would tell little.
    """
    rows = (np.random.default_rng(seed).random(sample.shape[0]) < SOME / sample.n_rows)[sample.codes[0]]
    if rows.sum() < LEAST_HELD / HELD:
        return True
    labels, weights = (None if a is None else a[rows] for a in (sample.labels, sample.weights))
    some = Sample.of([code[rows] for code in sample.codes], labels, weights)  # with the items that it has
    clusters = [min(m, n) for m, n in zip(taste_clusters, some.shape)]
    noise = []
    for habits in (effort.habit, 0):
        problem = make_problem(some, None, letters, [], effort._replace(habit=habits), clusters)
        noise.append(_pilot(problem, Layout.of(problem), np.random.default_rng(seed), NO_CHECKPOINT)[1])
    return noise[0] < noise[1]


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


def shortest(below: Floats, share: float) -> tuple[Ints, Ints]:
    """First and last letter of the shortest run of letters with that share of each law, the likelier of two alike."""
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


# chains


@dataclass(frozen=True, eq=False)
class BasketFit:
    """What a fit leaves."""

    draws: BasketDraws
    noise: float
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
    """How many chains, and how long they are."""

    n_chains: int
    n_sweeps: int
    burn_in: int
    noise: float | None = None
    n_jobs: int | None = None


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
    layout = Layout.of(problem)
    generators = [np.random.default_rng(seed) for seed in seeds.spawn(plan.n_chains)]
    first, noise, intervals = None, plan.noise, as_they_are()
    if noise is None:
        first, noise, intervals = _pilot(problem, layout, generators[0], checkpoint.stage("noise"))
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
            chain = BasketChain(own, state, rng, layout)
        fresh = begin is None and not (number == 0 and first is not None)
        warm = max(NOISE * problem.scale, noise) if fresh else noise
        return _run(chain, number, plan, noise, keep_every, warm, stage, report)

    jobs = (partial(job, number, checkpoint.stage(f"chain {number + 1}")) for number in range(plan.n_chains))
    n_jobs = plan.n_chains if plan.n_jobs is None or plan.n_jobs < 0 else max(plan.n_jobs, 1)
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
    return BasketFit(join(done), noise, intervals, interrupted)


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
    problem: BasketProblem, layout: Layout, rng: np.random.Generator, checkpoint: Checkpoint
) -> tuple[BasketChain, float, Intervals]:
    """The first chain without a tenth of the rows, until its error on these says what the noise is."""
    problem = with_phases(problem, rng)
    held = rng.random(problem.n_rows) < HELD
    start = max(NOISE * problem.scale, 1e-12)
    chain = BasketChain(problem, first_state(problem, start, rng), rng, layout)
    if held.sum() < LEAST_HELD:
        return chain, start, as_they_are()
    known = checkpoint.known
    if known is not None and checkpoint.finished:
        chain.restore(known["chain"])
        return chain, known["noise"], Intervals(LEVELS, known["shares"])
    state, labels = chain.state, problem.labels[held]
    counted: Floats = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    chain.layout = layout.with_weights(problem, np.where(held, 0.0, counted))
    chain.counts = chain.window_counts(np.where(held, 0.0, counted))
    letters = problem.letters
    total, squares = np.zeros(len(labels)), np.zeros(len(labels))
    below = np.zeros((len(labels), 0 if letters is None else len(letters) - 1))
    mean = total
    for sweep in range(HELD_SWEEPS):
        chain.sweep(adapt=True)
        if sweep < HEARD_FROM:
            continue
        n = sweep - HEARD_FROM + 1
        effects = (state.latent[held] - chain.residual[held]).astype(np.float64)
        total += effects
        squares += effects**2
        if letters is None:
            mean = total / n
        else:
            sd = np.full(len(labels), np.sqrt(state.noise))
            kernel.add_below(effects, sd, state.cuts, kernel.PHI, below)
            mean = letters[-1] - below @ np.diff(letters) / n
        error = float(np.average((labels - mean) ** 2, weights=counted[held]))
        state.noise = max(error, 1e-6 * problem.scale)
    chain.layout = layout
    chain.counts = chain.window_counts(problem.weights)
    n = HELD_SWEEPS - HEARD_FROM
    variance = state.noise + np.maximum(squares / n - (total / n) ** 2, 0.0)
    intervals = calibrated(problem, held, mean, variance, below / n)
    checkpoint.keep(lambda: {"chain": chain.to_file(), "noise": state.noise, "shares": intervals.shares}, finished=True)
    return chain, state.noise, intervals


def check_effort(effort: str) -> Effort:
    if effort not in EFFORTS:
        raise GinghamError(f"effort={effort!r} is unknown; choose one of {', '.join(EFFORTS)}.")
    return EFFORTS[effort]
