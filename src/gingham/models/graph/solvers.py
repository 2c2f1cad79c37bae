"""Solvers for one mode met twice or more often: node-wise, damped, by hard moves, and Iclust, each monotone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import factorial, prod
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from scipy import sparse
from scipy.special import softmax, xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import CellModel
from gingham.core.problem import Objective, Posterior, Problem, information_terms
from gingham.data import Features
from gingham.data.graphs import LETTERS, PairSample, coincidences, same_node
from gingham.engine.place import USUAL_SWEEPS, Work, chosen
from gingham.engine.project import project_cost, row_blocks, row_starts
from gingham.engine.sweep import Visit, batch_size, move_in_batches
from gingham.errors import GinghamError, one_of
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Memory, Report, Solution, Step, fixed_point, iterate, rng_state, settled
from gingham.fitting.schedules import Constant, Down, Schedule, Up, checked_schedule
from gingham.models.graph import kernels
from gingham.models.graph.kernels import BERNOULLI, DEGREES, EXACT, QUADRATIC, around, block_codes, block_sums

FEW_LABELS = 8  # with at most so many different labels, a slot stands for a label; else for a power of it


class Neighbours(NamedTuple):
    """Entries grouped by node, in the layout of `kernels.graph`.

    An entry's slot says what it contributes to the statistics, ``values`` times ``basis[slot]``. Where all
    pairs were observed, ``basis`` holds the difference to an absent pair, t(y) − t(0), and ``absent`` is t(0).
    """

    indptr: Ints
    others: Ints
    slots: Ints
    values: Floats
    basis: Floats  # (n_slots, K)
    absent: Floats | None  # (K,)
    directed: bool

    def costs(self, coef: Floats) -> tuple[Floats, Floats]:
        """Cost of a pair by slot and block, (n_slots, k, k), and of an absent pair, (k, k).

        Rows are the cluster of the node itself, columns that of the other; in a directed graph the second
        half of the slots are pairs that come in.
        """
        present = np.moveaxis(coef @ self.basis.T, -1, 0)
        absent = np.zeros(coef.shape[:2]) if self.absent is None else coef @ self.absent
        if self.directed:
            present = np.concatenate([present, present.transpose(0, 2, 1)])
            absent = absent + absent.T
        return np.ascontiguousarray(present), np.ascontiguousarray(absent)


def neighbours(sample: PairSample, features: Features) -> Neighbours:
    """Both ends of every listed pair, grouped by node."""
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    slots, values, basis, rows = _slots(sample, features, labels, weights)
    zero = sample.absent_features(features) if sample.complete else None
    if zero is not None and (features.one_hot or len(basis) != features.size):
        basis = basis - zero
    elif zero is not None:
        basis = basis * (zero == 0)  # powers of a label: only t_0 = 1 is not zero at 0
    first, second = sample.codes[0][rows], sample.codes[1][rows]
    inwards = slots + (len(basis) if sample.directed else 0)
    owner = np.concatenate([first, second])
    kept = np.abs(basis).sum(axis=1)[np.concatenate([slots, slots])] > 0  # a slot like an absent pair says nothing
    order = np.flatnonzero(kept)[np.argsort(owner[kept], kind="stable")]
    return Neighbours(
        row_starts(owner[kept], sample.n_nodes),
        np.concatenate([second, first])[order].astype(np.int32),
        np.concatenate([slots, inwards])[order].astype(np.int32),
        np.concatenate([values, values])[order],
        basis,
        zero,
        sample.directed,
    )


def _slots(
    sample: PairSample, features: Features, labels: Floats, weights: Floats
) -> tuple[Ints, Floats, Floats, Ints]:
    """Slot, value and row of each entry, and t of each slot."""
    every = np.arange(sample.n_rows)
    if features.one_hot:
        return alphabet_codes(sample), weights, np.eye(features.size), every
    distinct, codes = np.unique(labels, return_inverse=True)
    if len(distinct) <= FEW_LABELS:
        return codes.ravel(), weights, features.evaluate(distinct), every
    powers = features.evaluate(labels)
    slots = np.repeat(np.arange(features.size), sample.n_rows)
    return slots, (powers * weights[:, None]).T.ravel(), np.eye(features.size), np.tile(every, features.size)


def alphabet_codes(sample: PairSample) -> Ints:
    """Label codes, which one-hot features need."""
    if sample.label_codes is None:
        raise ValueError("one-hot features need labels on an alphabet")
    return sample.label_codes


class WeightedPairs(NamedTuple):
    """Weighted undirected entries grouped by node, for hard moves and spectra."""

    indptr: Ints
    others: Ints
    values: Floats

    @property
    def strengths(self) -> Floats:
        """Sum of the weights of each node's entries (its degree, if all are 1), shape (n,)."""
        at = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return np.bincount(at, self.values, minlength=len(self.indptr) - 1).astype(np.float64)

    def matrix(self, less: float = 0.0) -> sparse.csr_array:
        """The listed weights, reduced by ``less``, as a symmetric matrix."""
        n = len(self.indptr) - 1
        return sparse.csr_array((self.values - less, self.others, self.indptr), shape=(n, n))


def weighted_pairs(sample: PairSample) -> WeightedPairs:
    """Both ends of every pair with its label as the weight; hyperedges as all their pairs."""
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    d = sample.n_modes
    ends = [(i, j) for i in range(d) for j in range(d) if i != j]
    owner = np.concatenate([sample.codes[i] for i, _ in ends])
    other = np.concatenate([sample.codes[j] for _, j in ends])
    values = np.tile(labels, len(ends))
    small = sample.n_nodes <= 2**16  # these are sorted by their digits
    order = np.argsort(owner.astype(np.uint16) if small else owner, kind="stable")
    return WeightedPairs(
        row_starts(owner, sample.n_nodes), other[order].astype(np.int32), values[order].astype(np.float64)
    )


PRICE = 1.0  # of a nat of n Ī in hard moves, beside β of the loss
LANES = 16  # clusters that the estimate of a visit takes at a time
VISITS = 6  # of all nodes and, as often as that leads to moves, of those near a node that has moved
LEAST = -1e5  # of a log-membership: a dead cluster stays dead, and no step has an infinity
SMALLEST_STEP = 1e-4  # of damped steps, before they are given up


class Walk:
    """What carries over from one sweep to the next: random numbers, the length of a damped step, the factor of β."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.step, self.factor = 1.0, np.inf

    @property
    def memory(self) -> Memory:
        """What a resumed fit must know."""

        def recall(value: object) -> None:
            self.step, self.factor, self.rng.bit_generator.state = cast(Any, value)

        return Memory(lambda: [self.step, self.factor, self.rng.bit_generator.state], recall)

    def shaken(self, problem: Problem, posterior: Posterior, factor: float, noise: float) -> Posterior:
        """The posterior, where β has risen with a share of random memberships and the answers of these."""
        rises, self.factor = factor > self.factor, factor
        if not (rises and noise):
            return posterior
        q = posterior.assign[0]
        drawn = self.rng.dirichlet(np.ones(q.shape[1]), len(q))
        return answered(problem, replace(posterior, assign=((1.0 - noise) * q + noise * drawn,)))[0]

    def move(
        self,
        posterior: Posterior,
        before: Objective,
        cost: Floats,
        attempt: Callable[[Posterior], tuple[Posterior, Objective]],
        below: float,
        factor: float,
    ) -> tuple[Posterior, Objective]:
        """The first of ever shorter steps towards qbar(c) exp(−cost) that brings F below a number.

        The step is halved where it fails and raised by half where it helps; nothing moves if none helps. ``attempt``
        gives memberships their best answers, and ``before`` is the objective of the posterior.
        """
        with np.errstate(divide="ignore"):
            target = np.log(posterior.mass[0]) - cost
        target = np.maximum(target - target.max(axis=1, keepdims=True), LEAST)
        old = np.log(np.maximum(posterior.assign[0], 1e-300))
        while self.step > SMALLEST_STEP:
            q = softmax((1.0 - self.step) * old + self.step * target, axis=1)
            moved, after = attempt(replace(posterior, assign=(q,)))
            if objective_at(after, factor) < below:
                self.step = min(1.0, 1.5 * self.step)
                return moved, after
            self.step /= 2.0
        self.step = 1.0
        return posterior, before


def objective_at(objective: Objective, factor: float) -> float:
    """F(Q, β) with β multiplied by a factor, which the schedule sets."""
    return factor * objective.betas[0] * objective.losses[0] + objective.information[0]


@dataclass(frozen=True)
class GraphSolver(ABC):
    """What all solvers of graphs say of themselves."""

    hard: ClassVar[bool] = False  # each node is in one cluster
    any_order: ClassVar[bool] = False  # hyperedges of any number of nodes
    redundant: ClassVar[bool] = True  # several soft clusters may end with the same answers
    tol: float = 1e-7
    max_iter: int = 200
    seed: int = 0

    @abstractmethod
    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        """Improve a start."""


@dataclass(frozen=True)
class SoftSolver(GraphSolver):
    """Sweeps of soft memberships until the objective settles."""

    schedule: Schedule = field(default_factory=Down)

    @abstractmethod
    def sweep_of(self, problem: Problem, start: Posterior, walk: Walk) -> Step:
        """One sweep of a problem, at β times a factor."""

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        walk = Walk(self.seed)
        sweep = self.sweep_of(problem, start, walk)
        return fixed_point(sweep, start, self.schedule, self.tol, self.max_iter, report, checkpoint, walk.memory)


@dataclass(frozen=True)
class NodeWise(SoftSolver):
    """Exact block descent, one node after another: q(c|x) ∝ qbar(c) exp(−β ∂(N L̂)/∂q(c|x)).

    No pair has the same node twice, so the Gibbs loss is linear in each q(·|x) and the minimum over that
    row, with the masses of the moment, is this softmax. F never rises at constant β; the parallel update
    of P1 Algorithm 1 oscillates.
    """

    def sweep_of(self, problem: Problem, start: Posterior, walk: Walk) -> Step:
        sample = pair_sample(problem, "NodeWise", positions=2)
        entries = neighbours(sample, problem.cells[0].features)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            posterior = walk.shaken(problem, posterior, factor, self.schedule.noise)
            present, absent = entries.costs(posterior.cells[0].coef(posterior.answers[0]))
            assign = np.array(posterior.assign[0], dtype=np.float64, order="C")
            kernels.soft_nodes(
                walk.rng.permutation(len(assign)), entries.indptr, entries.others, entries.slots, entries.values,
                present, absent, sample.complete, factor * problem.betas[0], assign, assign.sum(axis=0),
            )  # fmt: skip
            return answered(problem, replace(posterior, assign=(assign,)))

        return sweep


@dataclass(frozen=True)
class Damped(SoftSolver):
    """All nodes at once, mixed with the old memberships in the log domain.

    The step is halved until the objective falls, so F never rises at constant β. With ``safeguard=False`` all steps are
    full: P1's Algorithm 1 as printed, which may oscillate with period two. It takes a mode met any number of times:
    hypergraphs are solved here.
    """

    any_order: ClassVar[bool] = True
    backend: str = "auto"
    safeguard: bool = True

    def sweep_of(self, problem: Problem, start: Posterior, walk: Walk) -> Step:
        sample = pair_sample(problem, "Damped")
        sizes, size = start.n_clusters * sample.n_modes, problem.cells[0].features.size
        backend = chosen(self.backend, lambda: Work(sample.n_rows, sample.shape, sizes, size, USUAL_SWEEPS))

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            posterior = walk.shaken(problem, posterior, factor, self.schedule.noise)
            before = problem.objective(posterior)
            cost = factor * problem.betas[0] * gradient(posterior, sample, backend)
            below = objective_at(before, factor) if self.safeguard else np.inf
            return walk.move(posterior, before, cost, lambda q: answered(problem, q, backend), below, factor)

        return sweep


@dataclass(frozen=True)
class NodeSweep(GraphSolver):
    """Hard moves: each node in turn to the cluster where β N L̂ + n Ī is lowest, until a sweep moves nothing.

    For quadratic loss and for log loss on two labels, block answers follow every move; for other losses and
    for directed graphs they are refitted after each sweep. Both ways F never rises.
    """

    hard: ClassVar[bool] = True
    redundant: ClassVar[bool] = False
    tol: float = 0.0
    max_iter: int = 50

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        return self.solve_labels(problem, start.labels[0], start.n_clusters[0], report, checkpoint)

    def solve_labels(
        self,
        problem: Problem,
        labels: Ints,
        k: int,
        report: Report | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Solution:
        """The same from the cluster of each node; memberships are made at the end, of the labels that were found."""
        sample = pair_sample(problem, "NodeSweep", positions=2)
        rng = np.random.default_rng(self.seed)
        moves = hard_moves(problem, sample)

        def sweep(labels: Ints, factor: float) -> tuple[Ints, Objective]:
            labels = moves.improve(labels, k, rng, VISITS)
            return labels, hard_answers(problem, labels, k)[1]

        schedule = Constant()
        run = iterate(
            sweep, labels, schedule, to_file=lambda labels: {"labels": labels},
            from_file=lambda state: state["labels"], terminate=partial(settled, schedule=schedule, tol=self.tol),
            max_iter=self.max_iter, report=report, checkpoint=checkpoint, memory=rng_state(rng),
        )  # fmt: skip
        posterior, objective = hard_posterior(problem, run.state, k)
        return Solution(posterior, objective, run.trace, run.converged, run.interrupted)


class HardMoves(ABC):
    """Sweeps of single-node moves over a partition; what a visit to a node weighs is up to the subclass."""

    entries: WeightedPairs | Neighbours

    @abstractmethod
    def visits(self, labels: Ints, k: int, partner: Ints) -> Visit:
        """How nodes are visited in a sweep; labels, and tables that belong to them, move in place."""

    def improve(
        self,
        labels: Ints,
        k: int,
        rng: np.random.Generator,
        n_sweeps: int,
        partner: Ints | None = None,
        first: Ints | None = None,
    ) -> Ints:
        """Sweep until nothing moves, at most ``n_sweeps`` times; returns new labels.

        After a sweep only those are visited whose neighbours have moved, until none of them moves; then all again.
        With ``partner``, of shape (k,), nodes of cluster a stay or go to ``partner[a]``; with ``first``, some nodes,
        these and their neighbours are visited at first, and all others only if neighbours move.
        """
        labels = np.array(labels, dtype=np.int64)
        anywhere = partner is None
        partner = np.empty(0, dtype=np.int64) if partner is None else partner
        effort = np.diff(self.entries.indptr) + 1
        if anywhere:
            effort = effort * (1 + k // LANES)
        every = np.arange(len(labels))
        active = every if first is None else around(first, self.entries.indptr, self.entries.others)
        for _ in range(n_sweeps):
            before, order = labels.copy(), rng.permutation(active)
            visit = self.visits(labels, k, partner)
            move_in_batches(visit, order, batch_size(effort[order]), labels, effort[order])
            moved = np.flatnonzero(labels != before)
            if len(moved) == 0 and (first is not None or len(active) == len(every)):
                break
            active = around(moved, self.entries.indptr, self.entries.others) if len(moved) else every
        return labels


@dataclass(frozen=True, eq=False)
class BlockMoves(HardMoves):
    """Undirected graphs; the answer of a block follows every move. ``kind`` is one of `kernels.hard_sweep`."""

    entries: WeightedPairs
    kind: int
    complete: bool = True
    beta: float = 1.0

    def visits(self, labels: Ints, k: int, partner: Ints) -> Visit:
        tables = self.tables(labels, k)
        kernels.estimates(self.kind, self.complete, tables)
        return lambda items, evaluate_only, chosen: kernels.hard_sweep(
            items, *self.entries, self.kind, self.complete, self.beta, PRICE, labels, tables, partner, evaluate_only,
            chosen,
        )  # fmt: skip

    def tables(self, labels: Ints, k: int) -> kernels.Tables:
        """The sums over the blocks of a partition, without estimates."""
        indptr, others, values = self.entries
        weight, sizes, nothing = block_sums(*self.entries, labels, k), cluster_sizes(labels, k), np.zeros((1, 1))
        listed = nothing if self.complete else block_sums(indptr, others, np.ones(len(others)), labels, k)
        dilution = (nothing if self.complete else np.zeros((k, k))).astype(np.float32)
        codes = block_codes(weight, sizes) if self.kind == EXACT else nothing
        degree: Floats = np.zeros(0)
        unit = 1.0
        if self.kind == DEGREES:
            degree, positive = self.entries.strengths, values[values > 0]
            unit = float(positive.mean()) if len(positive) else 1.0
        shares = cluster_sizes(labels, k, degree if len(degree) else None)
        slope = np.zeros((k, k), np.float32)
        estimated = (slope, dilution, np.zeros(k), np.zeros(k), np.zeros(1, np.int64))
        return kernels.Tables(weight, listed, sizes, *estimated, codes, degree, shares, unit)


@dataclass(frozen=True, eq=False)
class FixedAnswerMoves(HardMoves):
    """Any loss, directed graphs too: answers stay for a sweep."""

    sample: PairSample
    cell: CellModel
    entries: Neighbours
    beta: float

    def visits(self, labels: Ints, k: int, partner: Ints) -> Visit:
        answers = self.cell.answer(self.sample.block_statistics(labels, k, self.cell.features))
        graph = (self.entries.indptr, self.entries.others, self.entries.slots, self.entries.values)
        present, absent = self.entries.costs(self.cell.coef(answers))
        # Clusters that a node may join are the inner loop.
        costs = (np.ascontiguousarray(present.transpose(0, 2, 1)), np.ascontiguousarray(absent.T))
        rule, sizes = (self.sample.complete, self.beta, PRICE), cluster_sizes(labels, k)
        return lambda items, evaluate_only, chosen: kernels.hard_nodes(
            items, *graph, *costs, *rule, labels, sizes, partner, evaluate_only, chosen
        )


def hard_moves(problem: Problem, sample: PairSample, pairs: WeightedPairs | None = None) -> HardMoves:
    """The way of moving nodes that fits the problem's loss; ``pairs`` are the sample's, where they are at hand."""
    cell, beta = problem.cells[0], problem.betas[0]
    kind = QUADRATIC if cell.moves == "moments" else BERNOULLI if codes_edges(problem) else None
    if sample.directed or kind is None or sample.weights is not None:
        return FixedAnswerMoves(sample, cell, neighbours(sample, cell.features), beta)
    return BlockMoves(weighted_pairs(sample) if pairs is None else pairs, kind, sample.complete, beta)


def codes_edges(problem: Problem) -> bool:
    """Whether the loss is the code length of edges that are there or not: log loss on the labels 0 and 1."""
    alphabet = problem.samples[0].alphabet
    return problem.cells[0].moves == "log" and alphabet is not None and np.array_equal(alphabet.numbers, [0.0, 1.0])


def cluster_sizes(labels: Ints, k: int, weights: Floats | None = None) -> Floats:
    """The number of nodes per cluster, or the sum of their weights, shape (k,)."""
    return np.bincount(labels, weights, minlength=k).astype(np.float64)


def pair_sample(problem: Problem, solver: str, positions: int | None = None) -> PairSample:
    """The one sample of a graph problem; refuses other structures with a sentence."""
    sample = problem.samples[0]
    if len(problem.samples) != 1 or not isinstance(sample, PairSample):
        raise GinghamError(f"{solver} is for graphs: one relation of a mode with itself.")
    if positions is not None and sample.n_modes != positions:
        raise GinghamError(f"{solver} is for pairs; hyperedges of {sample.n_modes} nodes need solver='damped'.")
    return sample


def answered(problem: Problem, posterior: Posterior, backend: str = "auto") -> tuple[Posterior, Objective]:
    """The posterior with its best answers, and its objective."""
    cell, statistics = problem.cells[0], posterior.statistics(problem.samples[0], backend=backend)
    answers = cell.answer(statistics)
    posterior = replace(posterior, answers=(answers,))
    loss = float(cell.loss(answers, statistics).sum())
    return posterior, Objective((loss,), information_terms(posterior), problem.betas)


def hard_posterior(problem: Problem, labels: Ints, k: int) -> tuple[Posterior, Objective]:
    """The posterior of a partition, with its best answers, and its objective."""
    answers, objective = hard_answers(problem, labels, k)
    assign = np.zeros((len(labels), k))
    assign[np.arange(len(labels)), labels] = 1.0
    return Posterior(problem.structure, problem.cells, (assign,), (answers,)), objective


def hard_answers(problem: Problem, labels: Ints, k: int) -> tuple[AnyArray, Objective]:
    """The best answers of a partition and its objective, from its pairs and the sizes of its clusters."""
    cell, sizes = problem.cells[0], cluster_sizes(labels, k)
    statistics = pair_sample(problem, "A partition").block_statistics(labels, k, cell.features)
    answers = cell.answer(statistics)
    n = float(len(labels))
    information = max(0.0, float(xlogy(n, n) - xlogy(sizes, sizes).sum()))
    return answers, Objective((float(cell.loss(answers, statistics).sum()),), (information,), problem.betas)


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


@dataclass(frozen=True)
class Iclust(SoftSolver):
    """Maximise ⟨s⟩ − T Ī, ⟨s⟩ = Σ_c qbar(c) Σ_{x,y} q(x|c) q(y|c) w_xy, with T = 1/β of the problem.

    q(c|x) ∝ qbar(c) exp{β [2 s(c; x) − s(c)]}, all nodes at once, damped in the log domain and halved
    until the objective rises, so that it never falls. Pairs that were not observed count with the mean
    weight. Only weights within clusters matter; what clusters say of each other does not, and a ring of
    disassortative clusters is invisible to it. The block answers are fitted afterwards, so that predictions
    and certificates are on the scale of every other model.
    """

    redundant: ClassVar[bool] = False
    schedule: Schedule = field(default_factory=Constant)

    def sweep_of(self, problem: Problem, start: Posterior, walk: Walk) -> Step:
        weights, rest = similarity(pair_sample(problem, "Iclust", positions=2))

        def valued(posterior: Posterior) -> tuple[Posterior, Objective]:
            q = posterior.assign[0]
            loss = -len(q) * float(mean_similarity(q, weights, rest))
            return posterior, Objective((loss,), information_terms(posterior), problem.betas)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            before = valued(posterior)[1]
            cost = -factor * problem.betas[0] * _gradient(posterior.assign[0], weights, rest)
            return walk.move(posterior, before, cost, valued, objective_at(before, factor), factor)

        return sweep

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        solution = super().solve(problem, start, report, checkpoint)
        return replace(solution, posterior=answered(problem, solution.posterior)[0])


def similarity(sample: PairSample) -> tuple[sparse.csr_array, float]:
    """Weights of the listed pairs less that of all others, symmetric, and the weight of the others."""
    pairs = weighted_pairs(sample)
    rest = 0.0 if sample.complete else float(pairs.values.mean())
    return pairs.matrix(less=rest), rest


def mean_similarity(assign: Floats, weights: sparse.csr_array, rest: float = 0.0) -> float:
    """⟨s⟩, the expected weight of two nodes drawn from one cluster, which is drawn by its mass."""
    within = _within(assign, weights, rest)
    mass = assign.sum(axis=0)
    return float((within / np.maximum(mass, 1e-300)).sum() / len(assign))


def _within(assign: Floats, weights: sparse.csr_array, rest: float) -> Floats:
    """Σ_{x ≠ y} q(c|x) q(c|y) w_xy of each cluster, shape (m,)."""
    mass = assign.sum(axis=0)
    return (assign * (weights @ assign)).sum(axis=0) + rest * (mass**2 - (assign**2).sum(axis=0))


def _gradient(assign: Floats, weights: sparse.csr_array, rest: float) -> Floats:
    """n ∂⟨s⟩/∂q(c|x) = 2 s(c; x) − s(c), shape (n, m)."""
    mass = np.maximum(assign.sum(axis=0), 1e-300)
    near = (weights @ assign + rest * (mass - assign)) / mass
    return 2.0 * near - _within(assign, weights, rest) / mass**2


SOLVERS: dict[str, GraphSolver] = {
    "sweep": NodeSweep(),
    "nodewise": NodeWise(),
    "damped": Damped(),
    "annealed": NodeWise(schedule=Up()),
    "parallel": Damped(schedule=Constant(), safeguard=False),  # P1's Algorithm 1 as printed
    "iclust": Iclust(),
}


def make_solver(solver: object, max_iter: int, seed: int, positions: int) -> GraphSolver:
    """A solver by name, with so many sweeps at most, or as it is; of hyperedges one that takes them."""
    if isinstance(solver, GraphSolver):
        made = replace(solver, seed=seed)
        if isinstance(made, SoftSolver):
            checked_schedule(made.schedule)
    else:
        one_of("solver", solver, SOLVERS, ", or give a solver")
        made = replace(SOLVERS[str(solver)], max_iter=max_iter, seed=seed)
    return made if made.any_order or positions == 2 else Damped(max_iter=max_iter, seed=seed)
