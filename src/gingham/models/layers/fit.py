"""Fitting layers: the noise from held-out rows, then several chains side by side.

The noise σ² is not drawn, because hard clusters would fit it away. The first chain starts without a tenth of its rows,
and σ² follows the error of its averaged prediction of them; then the rows come back, and the other chains use the same
σ².
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gingham.arrays import Floats
from gingham.core.problem import Objective
from gingham.data import Sample
from gingham.engine.place import BACKENDS
from gingham.engine.threads import side_by_side
from gingham.errors import GinghamError, InterruptedWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interrupted, interruptible
from gingham.fitting.loop import Callback, Report, Trace, ignore_progress, notifier
from gingham.models.layers.chain import Chain, Layout
from gingham.models.layers.design import LONGER, Design, Effort, Sampler, make_problem, n_chains_for
from gingham.models.layers.draws import (
    LEVELS,
    Intervals,
    LayerDraws,
    Recorder,
    calibrated,
    join,
    uncalibrated_intervals,
)
from gingham.models.layers.problem import ChainState, LayerProblem, first_state
from gingham.storage import State

if TYPE_CHECKING:
    from gingham.models.layers.chain_torch import DeviceLayout

FIRST_NOISE = 0.65  # σ² before anything is known, as a share of the labels' variance
HELD_OUT = 0.1  # share of the rows that the first chain starts without
LEAST_HELD_OUT = 10  # rows; with fewer, the noise stays at its first value
HELD_OUT_SWEEPS, PREDICTED_FROM = 30, 10  # the sweeps without them, and the first whose predictions are averaged
OWN_SWEEPS = 120  # such sweeps where items have clusters of their own: they settle late, so averages restart twice
LEAST_NOISE = 0.25  # σ² as a share of the error, at least: a chain that explains more has not settled
COOLING = 10  # sweeps in which a chain's noise falls to its value; chains that start at it may get stuck
KEEP_EVERY, FEWEST_DRAWS = (
    3,
    10,
)  # successive sweeps are alike, so every third is kept, and ten draws per chain at least
MOST_BYTES = 2**30  # of all kept draws; fewer are kept where there would be more
FEW_ROWS = 2_000  # below this number, chains run one after another: on threads they would wait for Python
SAMPLED_ROWS = 100_000  # on which designs are compared
# A GPU is used from this much work of a sweep on, rows × (layers + 10), because torch takes seconds to load. Tokens
# are drawn one after another, and each costs as much as so many units of work (benchmarks/speed/gpu_baskets.py).
DEVICE_WORK, DEVICE_TOKEN = 7_000_000, 400


def has_gpu() -> bool:
    """Whether torch finds a GPU."""
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def runs_on_device(problem: LayerProblem, backend: str) -> bool:
    """Whether chains run through torch: if asked for, without numba, or on a GPU where that is faster."""
    if backend not in BACKENDS:
        raise GinghamError(f"backend={backend!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    if backend == "torch" or find_spec("numba") is None:
        if find_spec("torch") is None:
            raise GinghamError("backend='torch' needs torch: pip install gingham[gpu].")
        return True
    baskets = [problem.baskets[layer.basket] for layer in problem.layers]
    tokens = sum(basket.n_tokens for basket in baskets if not basket.is_itself)
    work = problem.n_rows * (len(baskets) + 10)
    return backend == "auto" and work > max(DEVICE_WORK, DEVICE_TOKEN * tokens) and has_gpu()


def layout_for(problem: LayerProblem, backend: str) -> Layout | DeviceLayout:
    """The rows where chains run: in memory, or on a GPU."""
    if not runs_on_device(problem, backend):
        return Layout.of(problem)
    from gingham.models.layers.chain_torch import DeviceLayout

    return DeviceLayout.of(problem)


def choose_design(
    sample: Sample, label_values: Floats | None, designs: Sequence[Design], seed: np.random.SeedSequence, backend: str
) -> int:
    """The design with the least error on held-out rows, among all the rows of some items of the first mode."""
    rows = (np.random.default_rng(seed).random(sample.shape[0]) < SAMPLED_ROWS / sample.n_rows)[sample.codes[0]]
    if rows.sum() < LEAST_HELD_OUT / HELD_OUT:
        return 0
    labels, weights = (None if a is None else a[rows] for a in (sample.labels, sample.weights))
    some = Sample.of([code[rows] for code in sample.codes], labels, weights)  # with the items that it has
    errors = []
    for design in designs:
        clusters = [min(m, n) for m, n in zip(design.item_clusters, some.shape)]
        problem = make_problem(some, None, label_values, {}, design.effort, clusters)
        rng = np.random.default_rng(seed)
        estimate = _estimate_noise(problem, layout_for(problem, backend), rng, NO_CHECKPOINT, design.own_clusters)
        errors.append(estimate.error)
    return int(np.argmin(errors))


@dataclass(frozen=True, eq=False)
class LayerFit:
    """The result of a fit."""

    draws: LayerDraws
    noise: float
    error: float  # mean square error of held-out rows
    intervals: Intervals
    interrupted: bool


@dataclass(frozen=True, eq=False)
class ChainResult:
    """The draws of one chain; None where it was interrupted before the first."""

    draws: LayerDraws | None
    interrupted: bool
    trace: Trace = field(default_factory=lambda: Trace((), ()))
    converged: bool = False


@dataclass(frozen=True)
class ChainPlan:
    """How many chains there are, how long they are, and where they run."""

    n_chains: int
    n_sweeps: int
    burn_in: int
    noise: float | None
    own_clusters: bool  # see `Design`
    n_jobs: int | None = None
    backend: str = "auto"

    @classmethod
    def of(
        cls,
        problem: LayerProblem,
        effort: Effort,
        sampler: Sampler,
        own_clusters: bool,
        n_jobs: int | None,
        backend: str,
    ) -> ChainPlan:
        """What an effort means for a problem, with the settings that were given."""
        longer = LONGER if own_clusters else 1
        n_chains = sampler.n_chains or -(-n_chains_for(problem, effort) // longer)
        n_sweeps, burn_in = sampler.lengths(effort, longer)
        return cls(n_chains, n_sweeps, burn_in, sampler.noise, own_clusters, n_jobs, backend)


class NoiseEstimate(NamedTuple):
    """What the first chain says of rows that it starts without."""

    chain: Chain
    noise: float
    error: float
    intervals: Intervals


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
    first, noise, error, intervals = None, plan.noise, plan.noise, uncalibrated_intervals()
    if noise is None or error is None:
        stage = checkpoint.stage("noise")
        first, noise, error, intervals = _estimate_noise(problem, layout, generators[0], stage, plan.own_clusters)
    n_after = plan.n_sweeps - plan.burn_in
    fitting = -(-_bytes_of_draw(problem) * plan.n_chains * n_after // MOST_BYTES)
    keep_every = max(min(KEEP_EVERY, max(1, n_after // FEWEST_DRAWS)), min(fitting, n_after))

    def job(number: int, stage: Checkpoint, report: Report) -> ChainResult:
        rng = generators[number]
        if number == 0 and first is not None:
            chain = first
        else:
            own = with_phases(problem, rng)
            state = first_state(own, noise, rng) if begin is None else _with_new_windows(begin[number], own, noise)
            chain = layout.begin(own, state, rng)
        fresh = begin is None and not (number == 0 and first is not None)
        warm = max(FIRST_NOISE * problem.scale, noise) if fresh else noise
        return _run(chain, number, plan, noise, keep_every, warm, stage, report)

    jobs = [partial(job, number, checkpoint.stage(f"chain {number + 1}")) for number in range(plan.n_chains)]
    n_jobs = plan.n_chains if plan.n_jobs is None or plan.n_jobs < 0 else max(plan.n_jobs, 1)
    if plan.n_jobs is None and problem.n_rows < FEW_ROWS:
        n_jobs = 1
    notify = ignore_progress if callback is None else notifier(callback, plan.n_chains, plan.n_sweeps)
    with interruptible():
        results = list(side_by_side(jobs, n_jobs, notify))
    done = [result.draws for result in results if result.draws is not None]
    cut = any(result.interrupted for result in results)
    if cut:
        checkpoint.stop()
        if not done:
            raise KeyboardInterrupt
        warnings.warn(
            f"Interrupted: the draws of {len(done)} of {plan.n_chains} chains are kept.",
            InterruptedWarning,
            stacklevel=4,
        )
    return LayerFit(join(done), noise, error, intervals, cut)


def _bytes_of_draw(problem: LayerProblem) -> int:
    labels = sum(problem.n_items[layer.target] + problem.baskets[layer.basket].n_tokens for layer in problem.layers)
    return labels + 4 * sum(problem.n_items)


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
    chain: Chain, number: int, plan: ChainPlan, noise: float, keep_every: int, warm: float,
    checkpoint: Checkpoint, report: Report,
) -> ChainResult:  # fmt: skip
    """Run one chain, whose noise falls from ``warm``; an interruption ends it with the draws so far."""
    recorder, begun, known = Recorder(chain.problem, number), 0, checkpoint.known
    if known is not None:
        chain.restore(known["chain"])
        recorder.restore(known["kept"])
        begun = known["sweeps"]
    stopped = number > 0 and interrupted()  # no other chain begins
    while begun < plan.n_sweeps and not stopped:
        chain.state.noise = noise * cooling(begun, warm / noise)
        chain.sweep(adapt=begun < plan.burn_in)
        if begun >= plan.burn_in:
            recorder.add(chain.state, keep=(begun + 1 - plan.n_sweeps) % keep_every == 0)
        report(begun, 1.0, Objective((chain.state.square,), (0.0,), (1.0,)))
        begun += 1
        stopped = begun < plan.n_sweeps and interrupted()
        checkpoint.keep(partial(_so_far, chain, recorder, begun), finished=begun == plan.n_sweeps, now=stopped)
    return ChainResult(recorder.draws(noise) if recorder.kept else None, stopped)


def cooling(sweep: int, factor: float) -> float:
    """The factor of the noise in a sweep, which falls geometrically to 1."""
    return float(factor ** max(0.0, 1.0 - sweep / COOLING))


def _so_far(chain: Chain, recorder: Recorder, sweeps: int) -> State:
    """The present state of a chain, for a checkpoint."""
    return {"chain": chain.to_file(), "kept": recorder.to_file(), "sweeps": sweeps}


def _estimate_noise(
    problem: LayerProblem,
    layout: Layout | DeviceLayout,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
    own_clusters: bool,
) -> NoiseEstimate:
    """Run the first chain without a tenth of the rows; its error on them gives the noise.

    The error of a mean over draws is the noise plus the variance between draws. σ² is set to all of it, because hard
    clusters of few rows would fit the noise otherwise. Where the items of one mode have clusters of their own, cells
    have too many rows for that; the variance between draws, which is then large, is subtracted.
    """
    problem = with_phases(problem, rng)
    held = rng.random(problem.n_rows) < HELD_OUT
    start = max(FIRST_NOISE * problem.scale, 1e-12)
    chain = layout.begin(problem, first_state(problem, start, rng), rng)
    if held.sum() < LEAST_HELD_OUT:
        return NoiseEstimate(chain, start, start, uncalibrated_intervals())
    known = checkpoint.known
    if known is not None and checkpoint.finished:
        chain.restore(known["chain"])
        return NoiseEstimate(chain, known["noise"], known["error"], Intervals(LEVELS, known["shares"]))
    state, labels, rows = chain.state, problem.labels[held], np.flatnonzero(held)
    counted: Floats = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    chain.count_rows(np.where(held, 0.0, counted))
    label_values = problem.label_values
    total, squares = np.zeros(len(labels)), np.zeros(len(labels))
    below = np.zeros((len(labels), 0 if label_values is None else len(label_values) - 1))
    mean, error, n = total, start, 0
    n_sweeps, predicted_from = (OWN_SWEEPS, OWN_SWEEPS // 8) if own_clusters else (HELD_OUT_SWEEPS, PREDICTED_FROM)
    restarts = {n_sweeps // 4, n_sweeps // 2} if own_clusters else set()
    for sweep in range(n_sweeps):
        chain.sweep(adapt=True)
        if sweep < predicted_from:
            continue
        if sweep in restarts:
            n, total[:], squares[:], below[:] = 0, 0.0, 0.0, 0.0
        n += 1
        effects = chain.effects(rows)
        total += effects
        squares += effects**2
        if label_values is None:
            mean = total / n
        else:
            chain.add_below(effects, below)
            mean = label_values[-1] - below @ np.diff(label_values) / n
        error = float(np.average((labels - mean) ** 2, weights=counted[held]))
        if not own_clusters:
            state.noise = max(error, 1e-6 * problem.scale)
        elif n >= PREDICTED_FROM:
            # A draw f and the truth have the same distribution, of variance V: E(y − f)² is σ² + 2V, that of the mean
            # of n draws σ² + V(1 + 1/n), and the variance among them V(1 − 1/n).
            variance = float(np.average(squares / n - (total / n) ** 2, weights=counted[held]))
            state.noise = max(error - variance * (n + 1) / (n - 1), LEAST_NOISE * error, 1e-6 * problem.scale)
    chain.count_rows(problem.weights)
    spread = state.noise + np.maximum(squares / n - (total / n) ** 2, 0.0)
    intervals = calibrated(problem, held, mean, spread, below / n)
    found = {"noise": state.noise, "error": error, "shares": intervals.shares}
    checkpoint.keep(lambda: {"chain": chain.to_file(), **found}, finished=True)
    return NoiseEstimate(chain, state.noise, error, intervals)
