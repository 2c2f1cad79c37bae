"""Hard moves until nothing moves: P0 Algorithm 2, sequential information bottleneck, MDL, IobMax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gingham.arrays import Floats
from gingham.cells.losses import HARD_MOVES, Need, refuse_unmet
from gingham.core.problem import Objective, Posterior, Problem, check_table
from gingham.engine.sweep import Board, batch_size, board_cost, effort_of, make_board, size_cost, sweep
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Run, Solution, iterate, rng_state, solution_of
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import from_labels
from gingham.storage import State, savable


@savable
@dataclass(frozen=True)
class Sweep:
    """Each item in turn goes where the objective is lowest, in a new random order every sweep.

    On large boards a sixteenth of the items look together, on all cores, and those that want to go then move in turn.

    Minimises β·cost + ``price``·Σ n_i H(cluster sizes) over hard partitions, for cells whose least loss is
    known from their statistics (mass, log, tables, moments). ``price`` = 0 leaves cluster sizes free: the
    cost alone counts, as in information-theoretic co-clustering. The log loss is taken without smoothing.
    A cluster is emptied only where that lowers the objective.
    """

    one_core: ClassVar[bool] = True  # small boards are; starts go side by side
    needs: ClassVar[tuple[Need, ...]] = (HARD_MOVES,)

    price: float = 1.0
    tol: float = 0.0  # stop when at most this share of the items moved in a sweep; 0 goes on until nothing moves
    max_iter: int = 100
    seed: int = 0  # of the orders in which items are visited

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        board, moving = board_of(problem, start)
        run = self.descend(board, moving, problem.betas[0], constant_of(problem), report, checkpoint)
        labels = [board.labels_of(mode) for mode in range(board.n_modes)]
        posterior = from_labels(problem, labels, start.n_clusters)
        return solution_of(run, posterior)

    def descend(
        self,
        board: Board,
        moving: Sequence[int],
        beta: float,
        constant: float = 0.0,
        report: Report | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Run[Board]:
        """Move items on a board, in place, until at most ``tol`` of them move in a sweep.

        ``constant`` is added to the board's cost to give N·L̂.
        """
        rng = np.random.default_rng(self.seed)
        items = np.concatenate([np.arange(board.first_item[mode], board.first_item[mode + 1]) for mode in moving])
        at_once = batch_size(effort_of(board, items))
        changed = (board.labels, board.sizes, board.fine, board.coarse)
        n_moved = len(items)

        def objective() -> Objective:
            paid = self.price * size_cost(board, moving)
            return Objective((board_cost(board) + constant,), (paid,), (beta,))

        def step(board: Board, factor: float) -> tuple[Board, Objective]:
            nonlocal n_moved
            before = board.labels.copy()
            sweep(board, rng.permutation(items), beta, self.price, at_once)
            n_moved = int((board.labels != before).sum())
            return board, objective()

        def restored(state: State) -> Board:
            for array, known in zip(changed, state["board"]):
                array[...] = known
            return board

        return iterate(
            step, board, Constant(), to_file=lambda _: {"board": [array.copy() for array in changed]},
            from_file=restored, terminate=lambda _: n_moved <= self.tol * len(items), max_iter=self.max_iter,
            report=report, checkpoint=checkpoint, memory=rng_state(rng),
        )  # fmt: skip


def board_of(problem: Problem, start: Posterior) -> tuple[Board, list[int]]:
    """The board of a one-relation problem at a start's most probable clusters, and the modes that move."""
    if len(problem.samples) != 1 or problem.structure.repeats:
        raise GinghamError("Hard moves need one relation in which every mode occurs once: use another solver.")
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
    n = problem.samples[0].n_observations
    return float(-(problem.samples[0].n_modes - 1) * n * np.log(n)) if n > 0 else 0.0
