"""Fitting layers: the noise from held-out rows, then several chains side by side.

The noise σ² is not drawn, because hard clusters would fit it away. The first chain starts without a tenth of its rows,
and σ² follows the error of its averaged prediction of them; then the rows come back, and the other chains use the same
σ².
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, cast

import numpy as np

from gingham.arrays import Bools, Floats, Ints
from gingham.core.problem import Objective
from gingham.data import Sample
from gingham.engine.place import on_torch
from gingham.engine.threads import side_by_side
from gingham.errors import InterruptedWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interrupted, interruptible
from gingham.fitting.loop import Callback, Report, ignore_progress, notifier
from gingham.models.layers.chain import Chain, Layout
from gingham.models.layers.design import Design, Observations, make_problem, plan_positions
from gingham.models.layers.draws import (
    Intervals,
    LayerDraws,
    Recorder,
    best_temperature,
    calibrated,
    join,
    probabilities_of,
    uncalibrated_intervals,
)
from gingham.models.layers.problem import ChainState, LayerProblem, first_state
from gingham.storage import State, fields_of, savable

if TYPE_CHECKING:
    from gingham.models.layers.chain_torch import DeviceLayout

FIRST_NOISE = 0.65  # σ² before anything is known, as a share of the labels' variance
HELD_OUT = 0.1  # share of the rows that the first chain starts without
ENOUGH_HELD_OUT = 10_000  # rows by which probabilities of classes are calibrated; where they are fewer, chains use all
LEAST_HELD_OUT = 10  # rows; with fewer, the noise stays at its first value
HELD_OUT_SWEEPS, PREDICTED_FROM = 30, 10  # the sweeps without them, and the first whose predictions are averaged
CONTINUED_BURN_IN = 10  # sweeps of a chain that continues which are not kept
CLASS_SWEEPS = 40  # such sweeps of every chain where labels are classes; their later half is averaged
NOISE_OF_TWO = 0.2  # σ² of two classes in units of the labels' variance
OWN_SWEEPS = 120  # such sweeps where items have clusters of their own: they settle late, so averages restart twice
LEAST_NOISE = 0.25  # σ² as a share of the error, at least: a chain that explains more has not settled
COOLING = 10  # sweeps in which a chain's noise falls to its value; chains that start at it may get stuck
# Successive sweeps are alike, so every third is kept, and ten draws per chain at least.
KEEP_EVERY, FEWEST_DRAWS = 3, 10
MOST_BYTES = 2**30  # of all kept draws; fewer are kept where there would be more
FEW_ROWS = 2_000  # below this number, chains run one after another: on threads they would wait for Python
SAMPLED_ROWS = 100_000  # on which designs are compared
COMPARED_CHAINS = 3  # of each design where labels are classes
LEAST_CHANCE = 1e-6  # probability below which a class that came true costs no more
# A GPU is used from this much work of a sweep on, rows × (layers + 10), because torch takes seconds to load. Tokens
# are drawn one after another, and each costs as much as so many units of work (benchmarks/speed/gpu_baskets.py).
DEVICE_WORK, DEVICE_TOKEN = 7_000_000, 400


def layout_for(problem: LayerProblem, backend: str) -> Layout | DeviceLayout:
    """The rows where chains run: in memory, on a cluster, or on a GPU where that is asked for or faster."""
    if problem.layout is not None:
        return cast("Layout", problem.layout)
    baskets = [problem.baskets[layer.basket] for layer in problem.layers]
    tokens = sum(basket.n_tokens for basket in baskets if not basket.is_itself)
    work = problem.n_rows * (len(baskets) + 10)
    if not on_torch(backend, lambda: work > max(DEVICE_WORK, DEVICE_TOKEN * tokens)):
        return Layout.of(problem)
    from gingham.models.layers.chain_torch import DeviceLayout

    return DeviceLayout.of(problem)


def choose_design(
    sample: Observations,
    label_values: Floats | None,
    designs: Sequence[Design],
    seed: np.random.SeedSequence,
    backend: str,
    classes: bool,
    together: Ints | None = None,
) -> int:
    """The design with the least error on held-out rows, among all the rows of some items of the largest mode.

    Numbers are judged by the mean square error of one chain. Where labels are classes, chains end in different places:
    several are averaged and judged by their log loss, all designs on the same rows.
    """
    most = int(np.argmax(sample.shape))
    chosen = sample.of_items(
        most, np.random.default_rng(seed).random(sample.shape[most]) < SAMPLED_ROWS / sample.n_rows
    )
    if chosen.n_rows < LEAST_HELD_OUT / HELD_OUT:
        return 0
    some = Sample.of(chosen.codes, chosen.labels, chosen.weights)  # with the items that it has
    groups = None if together is None else together[some.modes[-1].items]
    errors = []
    for design in designs:
        clusters = [min(m, n) for m, n in zip(design.item_clusters, some.shape)]
        problem = make_problem(
            some, None, label_values, {}, design.effort, clusters,
            positions=plan_positions(some, None) if design.positions else None,
        )  # fmt: skip
        plan = ChainPlan(1, 0, 0, noise_of(problem, classes), design.own_clusters, classes)
        layout, rng = layout_for(problem, backend), np.random.default_rng(seed)
        held = held_pairs(problem, HELD_OUT, rng, groups) if classes else None
        found = [
            held_out(problem, plan, layout, chain, NO_CHECKPOINT, held)[1]
            for chain in (rng.spawn(COMPARED_CHAINS) if classes else [rng])
        ]
        judged = HeldOut.joined([one for one in found if one is not None])
        if judged is None:
            return 0
        seen = problem.take(judged.rows)
        errors.append(judged.log_loss(seen) if classes else judged.error(seen))
    return int(np.argmin(errors))


@savable
@dataclass(frozen=True, eq=False)
class LayerFit:
    """The result of a fit."""

    draws: LayerDraws
    noise: float
    error: float  # mean square error of held-out rows
    intervals: Intervals
    temperature: float  # of the probabilities of classes
    interrupted: bool
    held: HeldOut | None = None  # what all chains together say of rows held out; not kept with a model


@dataclass(frozen=True)
class ChainPlan:
    """How many chains there are, how long they are, and where they run."""

    n_chains: int
    n_sweeps: int
    burn_in: int
    noise: float | None
    own_clusters: bool  # see `Design`
    classes: bool  # whether labels are classes: every chain then begins without the held-out rows
    together: Ints | None = None  # the group of each item of the last mode: rows of one group are held out together
    n_jobs: int | None = None
    backend: str = "auto"


@dataclass(eq=False)
class HeldOut:
    """What a chain says of rows that it is drawn without; sums over its sweeps."""

    rows: Ints
    total: Floats  # Σ f, (rows,)
    squares: Floats  # Σ f², (rows,)
    below: Floats  # Σ P(y ≤ value), (rows, K − 1)
    n_sweeps: int = 0

    @classmethod
    def of(cls, problem: LayerProblem, rows: Ints) -> HeldOut:
        n_cuts = 0 if problem.label_values is None else len(problem.label_values) - 1
        return cls(rows, np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((len(rows), n_cuts)))

    @classmethod
    def joined(cls, parts: Sequence[HeldOut]) -> HeldOut | None:
        """What several chains together say of the same rows; None where none says anything."""
        parts = [part for part in parts if part.n_sweeps]
        if not parts:
            return None
        total, squares, below, n = (
            np.sum([getattr(part, name) for part in parts], axis=0)
            for name in ("total", "squares", "below", "n_sweeps")
        )
        return cls(parts[0].rows, total, squares, below, int(n))

    def add(self, chain: Chain) -> None:
        """Add what the present draw of a chain predicts."""
        effects = chain.effects()
        self.total += effects
        self.squares += effects**2
        if self.below.shape[1]:
            chain.add_below(effects, self.below)
        self.n_sweeps += 1

    def error(self, seen: LayerProblem) -> float:
        """Mean square error of the mean; ``seen`` are the rows with their labels, ``problem.take(self.rows)``."""
        mean, values = self.total / self.n_sweeps, seen.label_values
        if values is not None:
            mean = values[-1] - self.below @ np.diff(values) / self.n_sweeps
        return float(np.average((seen.labels - mean) ** 2, weights=seen.weights))

    def probabilities(self, temperature: float = 1.0) -> Floats:
        """Probabilities of the labels, (rows, K)."""
        return probabilities_of(self.below / self.n_sweeps, temperature)

    def log_loss(self, seen: LayerProblem) -> float:
        """Mean log loss of the probabilities of the labels."""
        own = self.probabilities()[np.arange(len(self.rows)), seen.label_codes]
        return float(np.average(-np.log(np.maximum(own, LEAST_CHANCE)), weights=seen.weights))

    def variance(self, seen: LayerProblem) -> float:
        """The mean variance of the draws."""
        between = self.squares / self.n_sweeps - (self.total / self.n_sweeps) ** 2
        return float(np.average(between, weights=seen.weights))


def held_pairs(problem: LayerProblem, share: float, rng: np.random.Generator, together: Ints | None = None) -> Bools:
    """Rows to hold out: all of a pair or none, because what was said twice of a pair is not independent.

    ``together`` has the group of each item of the last mode, where a pair is one of groups.
    """
    pair: Ints = np.zeros(problem.n_rows, dtype=np.int64)
    codes = problem.codes if together is None else [*problem.codes[:-1], together[problem.codes[-1]]]
    for code, n in zip(codes, problem.n_items):
        pair = np.unique(pair * n + code, return_inverse=True)[1]
    return np.asarray(rng.random(int(pair.max()) + 1) < share)[pair]


def noise_of(problem: LayerProblem, classes: bool) -> float | None:
    """σ² of two classes, which only sets the unit of the latent answer; None where it has to be estimated."""
    known = classes and problem.label_values is not None and len(problem.label_values) == 2
    return NOISE_OF_TWO * problem.scale if known else None


def first_noise(problem: LayerProblem, noise: float | None) -> float:
    """σ² of the first sweep; positions begin with the one that they end with, where it is known."""
    return FIRST_NOISE * problem.scale if noise is None or problem.positions is None else noise


def fit_chains(
    problem: LayerProblem,
    plan: ChainPlan,
    seeds: np.random.SeedSequence,
    callback: Callback | None = None,
    checkpoint: Checkpoint = NO_CHECKPOINT,
    begin: Sequence[ChainState] | None = None,
) -> LayerFit:
    """The draws of all chains; after an interruption, with a warning, those of the finished chains.

    ``begin`` are states to continue from, one per chain; the noise must be given then.
    """
    layout = layout_for(problem, plan.backend)
    generators = [np.random.default_rng(seed) for seed in seeds.spawn(plan.n_chains)]
    # Probabilities of classes are calibrated by all chains together, which leave out the same rows: to the end where
    # a small share of the rows is enough, otherwise only before they go on with all rows.
    held, to_the_end = None, problem.n_rows * HELD_OUT > ENOUGH_HELD_OUT
    if plan.classes and begin is None:
        share = min(HELD_OUT, ENOUGH_HELD_OUT / problem.n_rows)
        held = held_pairs(problem, share, np.random.default_rng(seeds.spawn(1)[0]), plan.together)
        if not to_the_end:  # they have settled then
            fewer = max(plan.burn_in - CONTINUED_BURN_IN, 0)
            plan = replace(plan, n_sweeps=plan.n_sweeps - fewer, burn_in=plan.burn_in - fewer)
    found: dict[int, HeldOut | None] = {}
    first: Chain | None = None
    noise = plan.noise
    if noise is None:
        first, found[0] = held_out(problem, plan, layout, generators[0], checkpoint.stage("noise"), held)
        noise = first.state.noise
    settled, n_after = replace(plan, noise=noise), plan.n_sweeps - plan.burn_in
    fitting = -(-_bytes_of_draw(problem) * plan.n_chains * n_after // MOST_BYTES)
    keep_every = max(min(KEEP_EVERY, max(1, n_after // FEWEST_DRAWS)), min(fitting, n_after))

    def job(number: int, stage: Checkpoint, report: Report) -> tuple[LayerDraws | None, bool]:
        rng, warm = generators[number], noise
        if number == 0 and first is not None:
            chain = first
        elif held is not None and not to_the_end:
            known = checkpoint.stage(f"held out {number + 1}")
            chain, found[number] = held_out(problem, settled, layout, rng, known, held)
        else:
            own = with_phases(problem, rng)
            state = first_state(own, noise, rng) if begin is None else _with_new_windows(begin[number], own, noise)
            chain = layout.begin(own, state, rng)
            warm = max(first_noise(problem, noise), noise) if begin is None else noise
        watched = None
        if held is not None and to_the_end:
            chain.leave_out(held)
            watched = found[number] = HeldOut.of(problem, np.flatnonzero(held))
        return _run(chain, watched, number, plan, noise, keep_every, warm, stage, report)

    jobs = [partial(job, number, checkpoint.stage(f"chain {number + 1}")) for number in range(plan.n_chains)]
    n_jobs = plan.n_chains if plan.n_jobs is None or plan.n_jobs < 0 else max(plan.n_jobs, 1)
    if plan.n_jobs is None and problem.n_rows < FEW_ROWS:
        n_jobs = 1
    notify = ignore_progress if callback is None else notifier(callback, plan.n_chains, plan.n_sweeps)
    with interruptible():
        results = list(side_by_side(jobs, n_jobs, notify))
    done = [draws for draws, _ in results if draws is not None]
    cut = any(stopped for _, stopped in results)
    if cut:
        checkpoint.stop()
        if not done:
            raise KeyboardInterrupt
        warnings.warn(
            f"Interrupted: the draws of {len(done)} of {plan.n_chains} chains are kept.",
            InterruptedWarning,
            stacklevel=4,
        )
    # In the order of chains, whichever ended first; they say it together.
    judged = HeldOut.joined([one for _, one in sorted(found.items(), key=itemgetter(0)) if one is not None])
    if judged is None:
        return LayerFit(join(done), noise, noise, uncalibrated_intervals(), 1.0, cut)
    seen, n = problem.take(judged.rows), judged.n_sweeps
    mean, below = judged.total / n, judged.below / n
    intervals = calibrated(seen, mean, noise + np.maximum(judged.squares / n - mean**2, 0.0), below)
    temperature = 1.0
    if problem.label_values is not None:
        temperature = best_temperature(below, seen.label_codes, seen.counts)
    return LayerFit(join(done), noise, judged.error(seen), intervals, temperature, cut, judged)


def _bytes_of_draw(problem: LayerProblem) -> int:
    labels = sum(problem.n_items[layer.target] + problem.baskets[layer.basket].n_tokens for layer in problem.layers)
    points = 0 if problem.positions is None else problem.positions.size(problem.n_items)
    return labels + 4 * (sum(problem.n_items) + points)


def with_phases(problem: LayerProblem, rng: np.random.Generator) -> LayerProblem:
    """Time windows shifted at random, so that they differ between chains."""
    return replace(problem, phases=tuple(float(rng.uniform(0.0, width)) for width in problem.windows))


def _with_new_windows(state: ChainState, problem: LayerProblem, noise: float) -> ChainState:
    """A state of an earlier fit with the time windows of this one, whose offsets start at 0."""
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
    chain: Chain, watched: HeldOut | None, number: int, plan: ChainPlan, noise: float, keep_every: int, warm: float,
    checkpoint: Checkpoint, report: Report,
) -> tuple[LayerDraws | None, bool]:  # fmt: skip
    """Draws of one chain, whose noise falls from ``warm``, and whether it was interrupted, which ends it early."""
    recorder, begun, known = Recorder(chain.problem, number), 0, checkpoint.known
    if known is not None:
        chain.restore(known["chain"])
        recorder.restore(known["kept"])
        begun = known["sweeps"]
        for name, value in known["watched"].items():
            setattr(watched, name, value)

    def so_far() -> State:
        seen = {} if watched is None else fields_of(watched)
        return {"chain": chain._to_file(), "kept": recorder._to_file(), "watched": seen, "sweeps": begun}

    stopped = number > 0 and interrupted()  # no other chain begins
    while begun < plan.n_sweeps and not stopped:
        chain.state.noise = noise * cooling(begun, warm / noise)
        chain.sweep(adapt=begun < plan.burn_in)
        if begun >= plan.burn_in:
            kept = (begun + 1 - plan.n_sweeps) % keep_every == 0
            recorder.add(chain.draw() if kept else chain.state, kept)
            if watched is not None and kept:
                watched.add(chain)
        report(begun, 1.0, Objective((chain.state.square,), (0.0,), (1.0,)))
        begun += 1
        stopped = begun < plan.n_sweeps and interrupted()
        checkpoint.keep(so_far, finished=begun == plan.n_sweeps, now=stopped)
    return recorder.draws(noise) if recorder.kept else None, stopped


def cooling(sweep: int, factor: float) -> float:
    """The factor of the noise in a sweep, which falls geometrically to 1."""
    return float(factor ** max(0.0, 1.0 - sweep / COOLING))


def held_out(
    problem: LayerProblem,
    plan: ChainPlan,
    layout: Layout | DeviceLayout,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
    held: Bools | None = None,
) -> tuple[Chain, HeldOut | None]:
    """Run a chain without a tenth of the rows, those in ``held`` where given; its error on them gives the noise.

    Where rows are too few, none are held out, and nothing is said of them.

    The error of a mean over draws is the noise plus the variance between draws. σ² is set to all of it, because hard
    clusters of few rows would fit the noise otherwise. Where the items of one mode have clusters of their own, cells
    have too many rows for that; the variance between draws, which is then large, is subtracted.
    """
    problem = with_phases(problem, rng)
    if held is None:
        held = (
            held_pairs(problem, HELD_OUT, rng, plan.together) if plan.classes else rng.random(problem.n_rows) < HELD_OUT
        )
    start = max(first_noise(problem, plan.noise), 1e-12)
    chain = layout.begin(problem, first_state(problem, start, rng), rng)
    if held.sum() < LEAST_HELD_OUT:
        return chain, None
    known = checkpoint.known
    if known is not None and checkpoint.finished:
        chain.restore(known["chain"])
        return chain, HeldOut(**known["found"])
    rows, state = np.flatnonzero(held), chain.state
    seen = problem.take(rows)
    chain.leave_out(held)
    found, slow, least = HeldOut.of(problem, rows), plan.own_clusters, 1e-6 * problem.scale
    n_sweeps, predicted_from = (OWN_SWEEPS, OWN_SWEEPS // 8) if slow else (HELD_OUT_SWEEPS, PREDICTED_FROM)
    if plan.classes:
        n_sweeps, predicted_from = CLASS_SWEEPS, CLASS_SWEEPS // 2
    for sweep in range(n_sweeps):
        if plan.noise is not None:
            state.noise = plan.noise * cooling(sweep, start / plan.noise)
        chain.sweep(adapt=True)
        if sweep < predicted_from:
            continue
        if slow and sweep in (n_sweeps // 4, n_sweeps // 2):
            found = HeldOut.of(problem, rows)
        found.add(chain)
        if plan.noise is not None:
            continue
        error, n = found.error(seen), found.n_sweeps
        if not slow:
            state.noise = max(error, least)
        elif n >= PREDICTED_FROM:
            # A draw f and the truth have the same distribution, of variance V: E(y − f)² is σ² + 2V, that of the mean
            # of n draws σ² + V(1 + 1/n), and the variance among them V(1 − 1/n).
            state.noise = max(error - found.variance(seen) * (n + 1) / (n - 1), LEAST_NOISE * error, least)
    chain.leave_out(None)
    checkpoint.keep(lambda: {"chain": chain._to_file(), "found": fields_of(found)}, finished=True)
    return chain, found
