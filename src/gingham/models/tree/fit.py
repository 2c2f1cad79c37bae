"""How a tree is found: which losses and starts are tried, and which leaves merge when nobody says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from gingham.cells import CellModel, Logarithmic
from gingham.cells.losses import total_statistics
from gingham.certificates.bounds import log_wealth
from gingham.certificates.evidence import collect
from gingham.certificates.prices import sequence_price
from gingham.core.problem import Problem, Tree
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import Checkpoint
from gingham.fitting.loop import Restart, Solution, ignore_progress, mark_interrupted
from gingham.fitting.starts import Start
from gingham.models.tree.messages import Messages
from gingham.models.tree.starts import tree_start, with_tables

TRIVIAL = 0.15  # an objective this close to one cluster's may have fitted noise only
DELTA = 0.05  # of the certificates by which trees are compared
MAX_LEAVES = 6  # the greedy search fits grids of all leaves that are not merged yet


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
    """F of the trivial tree: one answer for all tuples, no information."""
    cell = problem.cells[0]
    return float(problem.betas[0] * cell.envelope(total_statistics(cell, problem.samples[0])))


class ChosenTree(NamedTuple):
    """A tree that was chosen: its merges, its fit and its certificate (scaled to [0, 1])."""

    merges: tuple[tuple[int, ...], ...]
    solution: Solution
    certificate: float


def choose_tree(
    sample: Sample,
    cell: CellModel,
    beta: float,
    leaves: Sequence[int],
    n_inner: int,
    tied: Sequence[Sequence[int]],
    solver: Messages,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
) -> ChosenTree:
    """Merge the pair that lowers the certificate most, until none does.

    The certificate holds for all trees that could have been chosen: it includes −ln of their prior.
    """
    d = len(leaves)
    if d > MAX_LEAVES:
        raise GinghamError(f"structure='auto' compares trees of up to {MAX_LEAVES} leaves; give merges= for {d}.")

    def fitted(merges: tuple[tuple[int, ...], ...]) -> ChosenTree:
        tree, n_clusters = Tree.build(sample.modes, leaves, merges, tied, price=sequence_price(d, merges))
        problem = Problem(tree, (sample,), (cell,), (beta,))
        run = Restart(0, rng, ignore_progress, checkpoint.stage(f"merges {merges}"))
        solution = solve_tree(problem, n_clusters, solver, "spectral", run)
        evidence = collect(solution.posterior, sample)
        value = log_wealth(evidence.law, evidence.prices["exact"].total, evidence.n_tuples, DELTA).value
        return ChosenTree(merges, solution, value)

    best = fitted(())
    top = list(range(d))
    while len(top) > 2 and not best.solution.interrupted:
        tried = []
        for a, b in combinations(top, 2):
            tried.append(fitted((*best.merges, (a, b, n_inner))))
            if tried[-1].solution.interrupted:
                return best._replace(solution=mark_interrupted(best.solution))
        challenger = min(tried, key=lambda choice: choice.certificate)
        if challenger.certificate >= best.certificate:
            break
        best = challenger
        a, b, _ = best.merges[-1]
        top = [node for node in top if node not in (a, b)] + [d + len(best.merges) - 1]
    return best
