"""From a graph problem to its solution: partitions to start from, restarts, and the solver that refines them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel, Logarithmic, Quadratic
from gingham.core.problem import Objective, Posterior, Problem, Structure, find_posterior
from gingham.data import Alphabet
from gingham.data.graphs import PairSample, label_values, with_alphabet
from gingham.errors import GinghamError, one_of
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Callback, Restart, Solution, Trace, best_of
from gingham.fitting.starts import FIRMNESS, from_labels, from_posterior, random
from gingham.models.graph.degrees import DegreeModel
from gingham.models.graph.partition import MOST_ROUNDS, Partition, PartitionSearch, compact, merge_duplicates
from gingham.models.graph.solvers import GraphSolver, NodeSweep, hard_posterior, pair_sample

STARTS = ("spectral", "random", "mixed", "soft")
TINY = 1e-9  # share of the uniform distribution in the answers of the log loss; block densities are small


def graph_problem(sample: PairSample, cell: CellModel, beta: float) -> Problem:
    """One mode that meets itself in one relation."""
    return Problem(Structure((sample.modes[0],), ((0,) * sample.n_modes,)), (sample,), (cell,), (beta,))


def default_beta(sample: PairSample, cell: CellModel) -> float:
    """β where none is given: 1 for log loss, 1/(2 variance) for quadratic loss, 1/(loss of a constant) otherwise."""
    if cell.code_length:
        return 1.0
    one = sample.block_statistics(np.zeros(sample.n_nodes, dtype=np.int64), 1, cell.features)
    loss = float(cell.envelope(one).sum() / sample.n_observations)
    if loss <= 0:
        raise GinghamError("All observed pairs have the same weight: there is nothing to cluster.")
    return float(cell.noise_rate / loss)


@dataclass(frozen=True)
class GraphFit:
    """How a graph is clustered: a partition is found, the solver goes on from there, the best of the starts is kept."""

    n_clusters: int | None  # None chooses the number by description length, at most ``max_clusters``
    solver: GraphSolver
    start: str | Ints | Posterior = "spectral"  # or "random", "mixed", labels, a posterior
    n_init: int = 1
    degree_correction: bool = False
    rounds: int = MOST_ROUNDS  # of splitting and merging at most, where the number of clusters is chosen

    def __post_init__(self) -> None:
        if isinstance(self.start, str):
            one_of("start", self.start, STARTS, ", labels or a posterior")
        if not self._searches and isinstance(self.start, str) and (self.solver.hard or self.n_clusters is None):
            raise GinghamError("start='soft' needs a soft solver (solver='nodewise', say) and a number for n_clusters.")

    def solve(
        self,
        problem: Problem,
        rng: np.random.Generator,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Solution:
        """Start, refine, restart; the lowest objective is kept (the shortest description with degree correction)."""
        search = None
        if self._searches or self.degree_correction:
            search = PartitionSearch.of(search_problem(problem), self.degree_correction)
        solution = best_of(
            partial(self.solve_start, problem, search), self.n_init if isinstance(self.start, str) else 1, rng,
            max_iter=self.solver.max_iter, callback=callback, checkpoint=checkpoint,
            cost=description_length if self.degree_correction else None,
        )  # fmt: skip
        if self.n_clusters is None and self.solver.redundant and problem.samples[0].n_modes == 2:
            posterior = merge_duplicates(problem, solution.posterior)
            solution = replace(solution, posterior=posterior, objective=problem.objective(posterior))
        return solution

    def solve_start(self, problem: Problem, search: PartitionSearch | None, restart: Restart) -> Solution:
        """One start and what the solver makes of it; ``search`` finds partitions for it, or is None."""
        found = None
        if search is not None and self._searches:
            found = search.find(
                self.n_clusters, restart.rng, rounds=self.rounds, checkpoint=restart.checkpoint.stage("partition"),
                at_random=self.start == "random" or (self.start == "mixed" and restart.number % 2 == 1),
            )  # fmt: skip
        stage = restart.checkpoint.stage("sweeps")
        if self.degree_correction and search is not None:
            if found is None:
                labels, k = compact(self._hard_start(problem, None)[0])
                found = search.partition(search.moves.improve(labels, k, restart.rng, self.solver.max_iter))
            return DegreeSolution.of(problem, found)
        if isinstance(self.solver, NodeSweep):
            labels, k = self._hard_start(problem, found)
            if found is not None and found.interrupted:
                return stopped(*hard_posterior(problem, labels, k))
            return self.solver.solve_labels(problem, labels, k, restart.report, stage)
        start = self._start(problem, found, restart.rng)
        if found is not None and found.interrupted:
            return stopped(start, problem.objective(start))
        return self.solver.solve(problem, start, restart.report, stage)

    @property
    def _searches(self) -> bool:
        """Whether the start is a partition that has to be found."""
        return isinstance(self.start, str) and self.start != "soft"

    def _hard_start(self, problem: Problem, found: Partition | None) -> tuple[Ints, int]:
        """The cluster of each node that hard moves begin with, and the number of clusters."""
        if found is not None:
            return found.labels, self.n_clusters or found.n_clusters
        given = find_posterior(self.start) or from_labels(problem, [np.asarray(self.start)])
        posterior = from_posterior(problem, given)
        return posterior.labels[0], posterior.n_clusters[0]

    def _start(self, problem: Problem, found: Partition | None, rng: np.random.Generator) -> Posterior:
        """The posterior that a soft solver begins with."""
        if found is not None:
            # A partition that lost clusters gets them back, empty but for what firmness leaves ajar.
            return from_labels(problem, [found.labels], [self.n_clusters or found.n_clusters], FIRMNESS)
        given = find_posterior(self.start)
        if given is not None:
            return from_posterior(problem, given)
        if isinstance(self.start, str):  # soft
            return random(problem, [cast(int, self.n_clusters)], rng)
        return from_labels(problem, [np.asarray(self.start)], firmness=FIRMNESS)


@dataclass(frozen=True, eq=False)
class DegreeSolution(Solution):
    """A partition of the degree-corrected model, with what it is chosen by."""

    description_length: float = np.nan  # nats, degrees given

    @classmethod
    def of(cls, problem: Problem, found: Partition) -> DegreeSolution:
        labels, k = compact(found.labels)
        posterior, _ = hard_posterior(problem, labels, k)
        sample = pair_sample(problem, "Degree correction")
        objective = DegreeModel.of(sample, labels, k).objective(sample)
        trace, done = Trace((1.0,), (objective,)), not found.interrupted
        return cls(posterior, objective, trace, done, found.interrupted, found.cost)


def description_length(found: Solution) -> float:
    """What solutions with degree correction are chosen by."""
    return cast(DegreeSolution, found).description_length


def stopped(posterior: Posterior, objective: Objective) -> Solution:
    """What Ctrl-C has left of the search for a partition."""
    return Solution(posterior, objective, Trace((), ()), converged=False, interrupted=True)


def search_problem(problem: Problem) -> Problem:
    """The problem that scores partitions: 0/1 graphs use exact code lengths for every loss.

    A Gaussian of one variance for all blocks would see structure in the noise of a sparse 0/1 graph.
    Hyperedges are searched as the graph of their pairs.
    """
    sample = pair_sample(problem, "The search")
    if sample.n_modes > 2:
        sample = _pair_graph(sample)
        problem = (
            graph_problem(sample, Quadratic(), default_beta(sample, Quadratic())) if not sample.complete else problem
        )
    if np.isin(label_values(sample), (0.0, 1.0)).all():
        sample = with_alphabet(sample, Alphabet.of(np.array([0.0, 1.0]), given=True))
        return graph_problem(sample, Logarithmic(sample.alphabet, TINY), 1.0)  # type: ignore[arg-type]
    return problem


def _pair_graph(sample: PairSample) -> PairSample:
    """Pairs of nodes that meet in a hyperedge: joined if all sets were observed, else with their mean label."""
    d, n = sample.n_modes, sample.n_nodes
    ends = [(i, j) for i in range(d) for j in range(i + 1, d)]
    low = np.concatenate([np.minimum(sample.codes[i], sample.codes[j]) for i, j in ends]).astype(np.int64)
    high = np.concatenate([np.maximum(sample.codes[i], sample.codes[j]) for i, j in ends]).astype(np.int64)
    labels: Floats = np.tile(np.ones(sample.n_rows) if sample.labels is None else sample.labels, len(ends))
    pairs, inverse = np.unique(low * n + high, return_inverse=True)
    mean = np.bincount(inverse.ravel(), labels) / np.bincount(inverse.ravel())
    return PairSample(
        sample.modes[:2],
        ((pairs // n).astype(np.int32), (pairs % n).astype(np.int32)),
        np.ones(len(pairs)) if sample.complete else mean,
        complete=sample.complete,
    )
