"""Offsets beside one checkerboard: row and column effects and the board of what they leave over, by alternation.

Effects are shrunken means given the expected board; the board is that of the residuals given the effects. Held-out
observations say how far to shrink, whether offsets predict better than the plain board, and whether a board adds
anything to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np

from gingham.arrays import Floats, namespace, on_host
from gingham.cells import CellModel
from gingham.core.problem import Offsets, Posterior, Problem
from gingham.data import Bounds, Sample
from gingham.errors import GinghamError
from gingham.fitting.loop import Solution
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant, Down
from gingham.fitting.starts import make_start, with_best_answers
from gingham.selection.auto import (
    average,
    beta_of_item_means,
    clearly_worse,
    divided,
    merge_and_settle,
    prediction_losses,
    tenths,
)

SHRINKS = (1.0, 3.0, 5.0, 10.0, 20.0)  # observations with effect 0 that the mean of an item starts from
BOARD_SHRINKS = (5.0, 10.0)  # those tried with a board, which takes over a part of the effects
FEW_ROWS = 20_000  # of so many or fewer, one tenth says little
PASSES = 6  # over the sides of the table
ROUNDS = 2  # of offsets given the board and the board given the offsets, after the first board
FIRST_SWEEPS, NEXT_SWEEPS = 15, 5  # of a trial board
MATTERS = 0.002  # of the loss that offsets must save: on planted boards the losses with and without them are the same
MOST_VALUES = 32  # that stand for the residuals of a loss on a finite set of labels
AUTO_SIZE = 8  # clusters of each side to start from where none are given: small boards of residuals predict better


class Plan(NamedTuple):
    """What held-out observations have decided: how far to shrink, and whether a board adds nothing."""

    shrink: float
    alone: bool


def rest_cell(cell: CellModel, left: Floats) -> CellModel:
    """The loss for what offsets leave over: on at most `MOST_VALUES` of its values where it needs a finite set."""
    values = np.quantile(on_host(left), (np.arange(MOST_VALUES) + 0.5) / MOST_VALUES)
    step = float(np.ptp(values)) * 1e-6  # what is closer differs by rounding
    found = cell.of_rest(np.unique(np.round(values / step) * step) if step > 0 else values[:1])
    if found is None:
        raise GinghamError(
            f"offsets=True adds effects of items to numbers, and loss={cell.name!r} cannot be applied to the "
            "residuals: use loss='quadratic', 'absolute' or 'pinball', or offsets=False."
        )
    return found


def shrunken_effects(sample: Sample, values: Floats, shrink: float) -> tuple[float, tuple[Floats, ...]]:
    """Base and effects of every item that fit a column of values best, ``shrink`` observations at 0 added to each."""
    xp = namespace(sample.codes[0])
    weights = xp.ones_like(values) if sample.weights is None else sample.weights
    counts = [sample.totals(axis, [weights])[:, 0] for axis in range(sample.n_modes)]
    base, effects = average(values, sample.weights), [0.0 * count for count in counts]
    left = values - base
    for _ in range(PASSES):
        for axis, code in enumerate(sample.codes):
            left = left + effects[axis][code]
            effects[axis] = sample.totals(axis, [weights * left])[:, 0] / (counts[axis] + shrink)
            left = left - effects[axis][code]
        mean = average(left, sample.weights)
        base, left = base + mean, left - mean
    return base, tuple(on_host(effect) for effect in effects)


def averages(sample: Sample, cell: CellModel, shrink: float, bounds: Bounds | None) -> Offsets:
    """The offsets of a sample beside no board."""
    return Offsets(*shrunken_effects(sample, sample.numbers(), shrink), shrink, cell, bounds)


def range_of(sample: Sample, cell: CellModel) -> Bounds | None:
    """Smallest and largest label: as stated, or as observed."""
    if cell.alphabet is not None:
        return cell.alphabet.ends
    numbers = sample.numbers()
    stated = Bounds.of(cell.bounds, given=True)
    return Bounds(float(numbers.min()), float(numbers.max()), given=False) if stated is None else stated


def rest_problem(sample: Sample, offsets: Offsets, beta: float) -> Problem:
    """The trade-off of the board given the offsets."""
    if offsets.cell is None:
        raise GinghamError("These offsets have no loss on the labels.")
    own = rest_cell(offsets.cell, sample.numbers() - offsets.at(sample.codes))
    return Problem.grid(offsets.rest(sample, own), own, beta)


def alone(sample: Sample, offsets: Offsets) -> Posterior:
    """Offsets and one cluster of each side."""
    problem = rest_problem(sample, offsets, 1.0)
    one = with_best_answers(problem, [np.ones((n, 1)) for n in sample.shape])
    return replace(one, offsets=offsets)


def next_round(sample: Sample, board: Posterior, offsets: Offsets, beta: float) -> tuple[Offsets, Problem, Posterior]:
    """Offsets given a board, the trade-off of what they leave over, and the same clusters to start from."""
    effects = shrunken_effects(sample, sample.numbers() - board.predict(sample.codes), offsets.shrink)
    after = replace(offsets, base=effects[0], effects=effects[1])
    problem = rest_problem(sample, after, beta)
    return after, problem, with_best_answers(problem, board.assign)


class Trial(NamedTuple):
    """Quick boards of some observations, for a comparison; merged where sizes are to be ``found``."""

    sample: Sample
    found: bool
    solver: Projection

    def plain(self, cell: CellModel, sizes: Sequence[int]) -> Posterior:
        return self._ended(*self._begun(self.sample, cell, sizes))

    def with_offsets(self, offsets: Offsets, sizes: Sequence[int]) -> Posterior:
        first = rest_problem(self.sample, offsets, 1.0)
        problem, solution = self._begun(first.samples[0], first.cells[0], sizes)
        for _ in range(ROUNDS):
            offsets, problem, start = next_round(self.sample, solution.posterior, offsets, problem.betas[0])
            solution = self._settling.solve(problem, start)
        return replace(self._ended(problem, solution), offsets=offsets)

    def _begun(self, sample: Sample, cell: CellModel, sizes: Sequence[int]) -> tuple[Problem, Solution]:
        problem = Problem.grid(sample, cell, beta_of_item_means(sample, cell)[0])
        return problem, self.solver.solve(problem, make_start("spectral", problem, sizes, np.random.default_rng(0)))

    def _ended(self, problem: Problem, solution: Solution) -> Posterior:
        return (merge_and_settle(problem, solution, self._settling) if self.found else solution).posterior

    @property
    def _settling(self) -> Projection:
        return replace(self.solver, schedule=Constant(), max_iter=NEXT_SWEEPS)


def plan_offsets(
    sample: Sample, cell: CellModel, sizes: Sequence[int], found: bool, solver: Projection, wanted: bool
) -> tuple[Plan | None, str]:
    """What a tenth of the observations says about offsets; None: the plain board predicts as well without them.

    ``found`` says that the sizes are only where a search for them begins, ``wanted`` that offsets were asked for.
    """
    part = tenths(sample)
    parts = divided(sample, part == 0)
    if parts is None:
        few = "too few observations to hold any out"
        return (Plan(BOARD_SHRINKS[0], False), f"offsets as asked; {few}") if wanted else (None, f"no offsets: {few}")
    seen, rest = parts
    quick = replace(solver, schedule=Down(n_steps=FIRST_SWEEPS - NEXT_SWEEPS), max_iter=FIRST_SWEEPS)
    trial = Trial(seen, found, quick)
    bounds, n = range_of(sample, cell), f"{rest.n_rows:,} held-out observations"

    def tried(posterior: Posterior) -> tuple[float, Floats, float]:
        losses = prediction_losses(posterior, rest)
        return (
            average(losses, rest.weights),
            losses,
            SHRINKS[0] if posterior.offsets is None else posterior.offsets.shrink,
        )

    best = min((tried(alone(seen, averages(seen, cell, shrink, bounds))) for shrink in SHRINKS), key=lambda one: one[0])
    by_itself, plan = best[0], Plan(best[2], True)
    if prod(sizes) > 1:
        start = board_sizes(sizes) if found else sizes
        boards = (trial.with_offsets(averages(seen, cell, shrink, bounds), start) for shrink in BOARD_SHRINKS)
        board = min(map(tried, boards), key=lambda one: one[0])
        better = not found or clearly_worse(best[1] - board[1], rest.weights)
        if not better and sample.n_rows <= FEW_ROWS and board[0] < best[0]:
            # One tenth of few observations misses boards that are there: two more are asked.
            excess, weights = [best[1] - board[1]], [rest.weights]
            for known, asked in ((sample.take(part != k), sample.take(part == k)) for k in (1, 2)):
                apart, beside = (averages(known, cell, one[2], bounds) for one in (best, board))
                again = alone(known, apart), trial._replace(sample=known).with_offsets(beside, start)
                losses = [prediction_losses(posterior, asked) for posterior in again]
                excess.append(losses[0] - losses[1])
                weights.append(asked.weights)
            counts = None if weights[0] is None else joined([w for w in weights if w is not None])
            better = clearly_worse(joined(excess), counts)
        if better:
            best, plan = board, Plan(board[2], False)
    said = f"loss {best[0]:.4g} on {n}, {by_itself:.4g} with offsets alone"
    if wanted:
        return plan, f"offsets as asked ({said})"
    loss = tried(trial.plain(cell, sizes))[0]
    if best[0] < (1 - MATTERS) * loss:
        return plan, f"with offsets ({said}, {loss:.4g} without offsets)"
    return None, f"no offsets, which are not better ({said}, {loss:.4g} without offsets)"


def joined(parts: Sequence[Floats]) -> Floats:
    return namespace(parts[0]).concatenate(parts)


def board_sizes(sizes: Sequence[int]) -> tuple[int, ...]:
    """Where the search for the sizes of a board of residuals begins."""
    return tuple(min(AUTO_SIZE, m) for m in sizes)


def fold_in_effects(before: Posterior, wide: Posterior, sample: Sample) -> Posterior:
    """Effects of the items that ``wide`` has and ``before`` has not: shrunken means of what is left of their labels."""
    old = before.offsets
    if old is None:
        return wide
    structure, known = wide.structure, before.structure
    effects, new = [], []
    for at, effect in zip(structure.factors[0], old.effects):
        where = known.modes[at].encode(structure.modes[at].items)
        effects.append(np.append(effect, 0.0)[where])
        new.append(where < 0)
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    left = sample.numbers() - replace(wide, offsets=None).predict(sample.codes) - old.base
    for _ in range(PASSES):
        for axis, fresh in enumerate(new):
            other = sum(effects[j][code] for j, code in enumerate(sample.codes) if j != axis)
            totals, counts = sample.totals(axis, [weights * (left - other), weights]).T
            effects[axis] = np.where(fresh, totals / (counts + old.shrink), effects[axis])
    return replace(wide, offsets=replace(old, effects=tuple(effects)))
