"""Hard moves until nothing moves: P0 Algorithm 2, sequential information bottleneck, MDL, IobMax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gingham.arrays import Floats
from gingham.cells.base import HARD_MOVES, Need, refuse_unmet
from gingham.core.posterior import Posterior, check_table
from gingham.core.problem import Objective, Problem
from gingham.errors import GinghamError
from gingham.fitting.checkpoint import begin_run, of_random
from gingham.fitting.loop import Report, Solution, Trace, objective_from, objective_state
from gingham.fitting.starts import from_labels
from gingham.kernels.sweep import Board, batch_size, board_cost, effort_of, make_board, size_cost, sweep


@dataclass(frozen=True)
class Sweep:
    """Each item in turn goes where the objective is lowest, in a new random order every sweep.

    On large boards a sixteenth of the items look together, on all cores, and those that want to go then move in turn.

    Minimises β·cost + ``price``·Σ n_i H(cluster sizes) over hard partitions, for cells whose least loss is
    known from their statistics (mass, log, tables, moments). ``price`` = 0 leaves cluster sizes free: the
    cost alone counts, as in information-theoretic co-clustering. The log loss is taken without smoothing.
    A cluster is emptied only where that lowers the objective.

    Attributes
    ----------
    tol : float
        Stop when at most this share of the items moved in a sweep; 0 goes on until nothing moves.
    seed : int
        Of the orders in which items are visited.
    """

    one_core: ClassVar[bool] = True  # small boards are; starts go side by side
    needs: ClassVar[tuple[Need, ...]] = (HARD_MOVES,)

    price: float = 1.0
    tol: float = 0.0
    max_iter: int = 100
    backend: str = "auto"
    seed: int = 0

    def solve(self, problem: Problem, start: Posterior, report: Report | None = None) -> Solution:
        board, moving = board_of(problem, start)
        descent = self.descend(board, moving, problem.betas[0], constant_of(problem), report)
        labels = [board.labels_of(mode) for mode in range(board.n_modes)]
        posterior = from_labels(problem, labels, start.n_clusters)
        return Solution(posterior, descent.trace.objectives[-1], descent.trace, descent.converged, descent.interrupted)

    def descend(
        self, board: Board, moving: Sequence[int], beta: float, constant: float = 0.0, report: Report | None = None
    ) -> Descent:
        """Move items on a board until at most ``tol`` of them move in a sweep.

        ``constant`` is added to the board's cost to give N·L̂.
        """
        rng = np.random.default_rng(self.seed)
        items = np.concatenate([np.arange(board.first_item[mode], board.first_item[mode + 1]) for mode in moving])
        at_once = batch_size(effort_of(board, items))

        def objective() -> Objective:
            paid = self.price * size_cost(board, moving)
            return Objective((board_cost(board) + constant,), (paid,), (beta,))

        objectives = [objective()]
        converged = interrupted = False
        run, random = begin_run(), of_random(rng)
        moved = (board.labels, board.sizes, board.fine, board.coarse)  # what sweeps change, in place
        if run.known is not None:
            for array, known in zip(moved, run.known["board"]):
                array[...] = known
            objectives = [objective_from(state) for state in run.known["objectives"]]
            converged = run.known["converged"]
            random.set(run.known["random"])

        def so_far() -> dict[str, Any]:
            return {
                "board": [array.copy() for array in moved],
                "objectives": [objective_state(o) for o in objectives],
                "converged": converged,
                "random": random.get(),
            }

        last = so_far  # after the last whole sweep: what moves in place may be half moved when a sweep is interrupted
        try:
            while not (run.finished or converged) and len(objectives) <= self.max_iter:
                iteration = len(objectives) - 1
                before = board.labels.copy()
                if run.keeper is not None:
                    last = partial(dict, so_far())
                sweep(board, rng.permutation(items), beta, self.price, self.backend, at_once)
                objectives.append(objective())
                converged = bool((board.labels != before).sum() <= self.tol * len(items))
                last = so_far
                if report is not None:
                    report(iteration, 1.0, objectives[-1])
                if not converged:
                    run.keep(so_far)
        except KeyboardInterrupt:
            interrupted = True
            run.stop(last)
        if not (run.finished or interrupted):
            run.keep(so_far, finished=True)
        done = tuple(objectives[1:]) or (objectives[0],)
        return Descent(Trace((1.0,) * len(done), done), converged, interrupted)


@dataclass(frozen=True)
class Descent:
    """How a run of sweeps went."""

    trace: Trace
    converged: bool
    interrupted: bool


def board_of(problem: Problem, start: Posterior) -> tuple[Board, list[int]]:
    """The board of a one-relation problem at a start's most probable clusters, and the modes that move."""
    if len(problem.samples) != 1 or problem.structure.repeats:
        raise GinghamError("Hard moves work on one relation in which every mode stands once; use another solver.")
    sample, cell = problem.samples[0], problem.cells[0]
    refuse_unmet("A solver by hard moves", Sweep.needs, (cell,))
    kind = str(cell.moves)
    check_table(start.n_clusters, cell.features.size)
    factor = problem.structure.factors[0]
    moving = [position for position, mode in enumerate(factor) if mode not in problem.structure.frozen]
    features: Floats | None = None
    if kind == "moments" and sample.labels is not None:
        features = cell.features.of_labels(sample.labels)
    labels, sizes = start.labels, start.n_clusters
    board = make_board(
        kind,
        sample.codes,
        [labels[mode] for mode in factor],
        [sizes[mode] for mode in factor],
        moving,
        weights=sample.weights,
        marks=sample.label_codes if kind in ("log", "table") else None,
        features=features,
        n_features=cell.features.size,
        coef=cell.table,
    )
    return board, moving


def constant_of(problem: Problem) -> float:
    """What turns the board's cost into N·L̂: for mass, −N·I = cost − (d − 1)·N ln N."""
    if problem.cells[0].moves != "mass":
        return 0.0
    n = problem.samples[0].n_tuples
    return float(-(problem.samples[0].n_modes - 1) * n * np.log(n)) if n > 0 else 0.0
