"""Solvers for one mode met twice or more often: node-wise, damped and by hard moves, each monotone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from math import factorial, prod
from typing import Any

import numpy as np

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective, Problem, information_terms
from gingham.data.graphs import LETTERS, PairSample, coincidences, same_node
from gingham.errors import GinghamError
from gingham.fitting.checkpoint import of_random
from gingham.fitting.loop import Report, Solution, fixed_point
from gingham.fitting.schedule import Constant, Down, Schedule
from gingham.kernels.project import BACKENDS, on_device, project_cost, row_blocks
from gingham.models.graph.adjacency import Neighbours, neighbours, weighted_pairs
from gingham.models.graph.damping import Damping
from gingham.models.graph.kernels import BERNOULLI, QUADRATIC
from gingham.models.graph.moves import HardMoves


@dataclass(frozen=True)
class NodeWise:
    """Exact block descent, one node after another: q(c|x) ∝ qbar(c) exp(−β ∂(N L̂)/∂q(c|x)).

    No pair has the same node twice, so the Gibbs loss is linear in each q(·|x) and the minimum over that
    row, with the masses of the moment, is this softmax. F never rises at constant β; the parallel update
    of P1 Algorithm 1 oscillates.
    """

    schedule: Schedule = field(default_factory=Down)
    tol: float = 1e-7
    max_iter: int = 200
    backend: str = "auto"
    seed: int = 0

    def solve(self, problem: Problem, start: Posterior, report: Report | None = None) -> Solution:
        sample = pair_sample(problem, "NodeWise", positions=2)
        entries = neighbours(sample, problem.cells[0].features)
        rng = np.random.default_rng(self.seed)
        kernel = graph_backend(self.backend)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            present, absent = entries.costs(posterior.cells[0].coef(posterior.answers[0]))
            assign = np.array(posterior.assign[0], dtype=np.float64, order="C")
            kernel.soft_nodes(
                rng.permutation(len(assign)), entries.indptr, entries.others, entries.slots, entries.values,
                present, absent, sample.complete, factor * problem.betas[0], assign, assign.sum(axis=0),
            )  # fmt: skip
            return answered(problem, replace(posterior, assign=(assign,)))

        return fixed_point(
            sweep, start, self.schedule, tol=self.tol, max_iter=self.max_iter, report=report, memory=of_random(rng)
        )


@dataclass(frozen=True)
class Damped:
    """All nodes at once, mixed with the old memberships in the log domain.

    The step is halved until the objective falls, so F never rises at constant β. With ``safeguard=False``
    and full steps this is P1's Algorithm 1 as printed, which may oscillate with period two. It takes a
    mode met any number of times: hypergraphs are solved here.
    """

    schedule: Schedule = field(default_factory=Down)
    tol: float = 1e-7
    max_iter: int = 200
    backend: str = "auto"
    safeguard: bool = True
    smallest_step: float = 1e-4

    def solve(self, problem: Problem, start: Posterior, report: Report | None = None) -> Solution:
        sample = pair_sample(problem, "Damped")
        work = sample.n_rows * prod(start.n_clusters * (sample.n_modes - 1))
        backend = "torch" if on_device(self.backend, work) else self.backend
        damping = Damping(self.smallest_step)

        def total(objective: Objective, factor: float) -> float:
            return factor * objective.betas[0] * objective.losses[0] + objective.information[0]

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            before = problem.objective(posterior)
            with np.errstate(divide="ignore"):
                log_mass = np.log(posterior.mass[0])
            target = log_mass - factor * problem.betas[0] * gradient(posterior, sample, backend)
            moved = damping.move(
                posterior.assign[0],
                target,
                lambda q: answered(problem, replace(posterior, assign=(q,)), backend),
                lambda after: not self.safeguard or total(after, factor) < total(before, factor),
            )
            return moved or (posterior, before)

        return fixed_point(
            sweep, start, self.schedule, tol=self.tol, max_iter=self.max_iter, report=report, memory=damping.memory
        )


@dataclass(frozen=True)
class Sweep:
    """Hard moves: each node in turn to the cluster where β N L̂ + n Ī is lowest, until a sweep moves nothing.

    For quadratic loss and for log loss on two labels, block answers follow every move; for other losses and
    for directed graphs they are refitted after each sweep. Both ways F never rises.
    """

    tol: float = 0.0
    max_iter: int = 50
    backend: str = "auto"
    seed: int = 0

    def solve(self, problem: Problem, start: Posterior, report: Report | None = None) -> Solution:
        sample = pair_sample(problem, "Sweep", positions=2)
        rng = np.random.default_rng(self.seed)
        moves = hard_moves(problem, sample, graph_backend(self.backend))
        k = start.n_clusters[0]

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            labels = moves.improve(posterior.labels[0], k, rng, n_sweeps=1)
            return answered(problem, replace(posterior, assign=(np.eye(k)[labels],)))

        return fixed_point(
            sweep, start, Constant(), tol=self.tol, max_iter=self.max_iter, report=report, memory=of_random(rng)
        )


def hard_moves(problem: Problem, sample: PairSample, kernel: Any) -> HardMoves:
    """The way of moving nodes that fits the problem's loss."""
    cell = problem.cells[0]
    two = sample.alphabet is not None and np.array_equal(sample.alphabet.numbers, [0.0, 1.0])
    kind = QUADRATIC if cell.moves == "moments" else BERNOULLI if cell.moves == "log" and two else None
    if sample.directed or kind is None or sample.weights is not None:
        return HardMoves(kernel, sample, cell, problem.betas[0], entries=neighbours(sample, cell.features))
    return HardMoves(kernel, sample, cell, problem.betas[0], pairs=weighted_pairs(sample), kind=kind)


def pair_sample(problem: Problem, solver: str, positions: int | None = None) -> PairSample:
    """The one sample of a graph problem; refuses other structures with a sentence."""
    sample = problem.samples[0]
    if len(problem.samples) != 1 or not isinstance(sample, PairSample):
        raise GinghamError(f"{solver} is for graphs: one relation in which one mode meets itself.")
    if positions is not None and sample.n_modes != positions:
        raise GinghamError(f"{solver} is for pairs; hyperedges of {sample.n_modes} nodes want solver='damped'.")
    return sample


def graph_backend(name: str) -> Any:
    if name not in BACKENDS:
        raise GinghamError(f"backend={name!r} is unknown; choose one of {', '.join(BACKENDS)}.")
    return import_module("gingham.models.graph." + ("kernels_reference" if name == "reference" else "kernels"))


def answered(problem: Problem, posterior: Posterior, backend: str = "auto") -> tuple[Posterior, Objective]:
    """The posterior with its best answers, and its objective."""
    statistics = posterior.statistics(problem.samples[0], backend=backend)
    cell = problem.cells[0]
    answers = cell.answer(statistics)
    posterior = replace(posterior, answers=(answers,))
    loss = float(cell.loss(answers, statistics).sum())
    return posterior, Objective((loss,), information_terms(posterior), problem.betas)


def gradient(posterior: Posterior, sample: PairSample, backend: str = "auto") -> Floats:
    """G[x, c] = N ∂L̂/∂q(c|x), the sum over the positions at which x can stand, shape (n, m)."""
    cell, assign, d = posterior.cells[0], posterior.assign[0], sample.n_modes
    n, m = assign.shape
    coef = cell.coef(posterior.answers[0])
    total = np.zeros((n, m))
    if sample.complete:
        absent = coef @ sample.absent_features(cell.features)
        total += _absent_gradient(assign, absent, d, sample.directed)
        coef = coef.copy()  # a listed pair is one that is not absent: its cost less that of an absent one
        if cell.features.one_hot:
            coef -= absent[..., None]
        else:
            coef[..., 0] -= absent
    for position in range(d):
        flat = np.moveaxis(coef, (position, -1), (0, 1)).reshape(m, prod(coef.shape) // m)
        rows = sample.rows(position, cell.features)
        total += project_cost(rows, [assign] * (d - 1), flat, backend)
    return total


def _absent_gradient(assign: Floats, cost: Floats, d: int, directed: bool) -> Floats:
    """What absent sets would add if none were listed: each node with all others, shape (n, m)."""
    n, m = assign.shape
    axes = LETTERS[: d - 1]
    if directed:  # the node may stand at any position
        cost = np.sum([np.moveaxis(cost, position, 0) for position in range(d)], axis=0)
    else:  # costs are symmetric, and every order of the others is the same set
        cost = cost / factorial(d - 1)
    total = np.zeros((n, m))
    for weight, groups in coincidences(axes):
        together = [same_node(assign, group) for group in groups]
        for start, stop in row_blocks(n, m ** (d - 1)):
            part = assign[start:stop]
            others = [whole - same_node(part, group, "X") for group, whole in zip(groups, together)]
            subscripts = ",".join(["C" + axes, *("X" + group for group in groups)]) + "->XC"
            total[start:stop] += weight * np.einsum(subscripts, cost, *others, optimize=True)
    return total


__all__ = ["Damped", "Neighbours", "NodeWise", "Sweep", "answered", "gradient", "hard_moves"]
