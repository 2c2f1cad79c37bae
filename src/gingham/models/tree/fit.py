"""How a tree is found: which losses and starts are tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gingham.cells import Logarithmic
from gingham.cells.losses import total_statistics
from gingham.core.problem import Problem
from gingham.fitting.checkpoints import Checkpoint
from gingham.fitting.loop import Restart, Solution, mark_interrupted
from gingham.fitting.starts import Start
from gingham.models.tree.messages import Messages
from gingham.models.tree.starts import tree_start, with_tables

TRIVIAL = 0.15  # an objective this close to one cluster's may have fitted noise only


def solve_tree(problem: Problem, n_clusters: Sequence[int], solver: Messages, start: Start, run: Restart) -> Solution:
    """The lower of two runs: on the loss itself, and on the log loss first.

    Each is stuck sometimes where the other is not. When neither gets far from the trivial tree and the start was
    spectral, the agreement start is tried: it alone sees parities.
    """
    alphabet = problem.samples[0].alphabet

    def both_runs(start: Start, checkpoint: Checkpoint) -> Solution:
        begin = tree_start(start, problem, n_clusters, run.rng)
        direct = solver.solve(problem, begin, run.report, checkpoint.stage("own loss"))
        if alphabet is None or problem.cells[0].code_length or direct.interrupted:
            return direct
        soft = replace(problem, cells=(Logarithmic(alphabet),), betas=(1.0,))
        smooth = solver.solve(soft, with_tables(soft, begin.assign), run.report, checkpoint.stage("log loss"))
        if smooth.interrupted:
            return mark_interrupted(direct)
        begin = with_tables(problem, smooth.posterior.assign)
        return _lower(direct, solver.solve(problem, begin, run.report, checkpoint.stage("after log loss")))

    best = both_runs(start, run.checkpoint)
    spectral = isinstance(start, str) and start == "spectral"
    if spectral and not best.interrupted and best.objective.total > (1.0 - TRIVIAL) * one_cluster(problem):
        best = _lower(best, both_runs("agreement", run.checkpoint.stage("agreement")))
    return best


def _lower(first: Solution, second: Solution) -> Solution:
    """The lower of two runs, interrupted where the second was."""
    best = min((first, second), key=lambda s: s.objective.total)
    return mark_interrupted(best) if second.interrupted else best


def one_cluster(problem: Problem) -> float:
    """F of the trivial tree: one answer for all observations, no information."""
    cell = problem.cells[0]
    return float(problem.betas[0] * cell.envelope(total_statistics(cell, problem.samples[0])))
