"""From a graph problem to its solution: partitions to start from, restarts, and the solver that refines them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import Logarithmic, Quadratic
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective, Problem
from gingham.core.structure import Structure
from gingham.data import Alphabet
from gingham.data.graphs import PairSample, label_values, with_alphabet
from gingham.errors import GinghamError
from gingham.fitting.checkpoint import once
from gingham.fitting.loop import Callback, Solution, Trace, best_of
from gingham.fitting.starts import FIRMNESS, from_labels, from_posterior
from gingham.models.graph.duplicates import without_duplicates
from gingham.models.graph.iclust import Iclust
from gingham.models.graph.partition import DIMENSIONS, MOST_CLUSTERS, Partition, compact, finder, spectral_labels
from gingham.models.graph.solvers import Damped, NodeWise, Sweep, answered, pair_sample

STARTS = ("spectral", "random", "mixed")
TINY = 1e-9  # share of the uniform distribution in the answers of the log loss; block densities are small


def graph_problem(sample: PairSample, cell: Any, beta: float) -> Problem:
    """One mode that meets itself in one relation."""
    return Problem(Structure((sample.modes[0],), ((0,) * sample.n_modes,)), (sample,), (cell,), (beta,))


def default_beta(sample: PairSample, cell: Any) -> float:
    """1 for log loss; 1/(2 variance) of the constant prediction for quadratic; 1/mean loss of it otherwise."""
    if cell.code_length:
        return 1.0
    one = Posterior(
        Structure((sample.modes[0],), ((0,) * sample.n_modes,)), (cell,), (np.ones((sample.n_nodes, 1)),), ()
    )
    table = one.statistics(sample)
    loss = float(cell.envelope(table).sum() / sample.n_tuples)
    if loss <= 0:
        raise GinghamError("All observed pairs have the same weight: there is nothing to cluster.")
    return float(cell.noise_rate / loss)


@dataclass(frozen=True)
class GraphSearch:
    """How a graph is clustered.

    Attributes
    ----------
    n_clusters : int or None
        None chooses the number by description length, at most ``most``.
    solver : NodeWise, Damped, Sweep or Iclust
    start : {"spectral", "random", "mixed"}, labels or Posterior
    """

    n_clusters: int | None
    solver: NodeWise | Damped | Sweep | Iclust
    start: Any = "spectral"
    n_init: int = 1
    most: int = MOST_CLUSTERS
    degree_correction: bool = False
    backend: str = "auto"

    def solve(self, problem: Problem, rng: np.random.Generator, callback: Callback | None = None) -> Solution:
        """Start, refine, restart; the lowest objective is kept (the shortest description with degree correction)."""
        if isinstance(self.start, str) and self.start not in STARTS:
            raise GinghamError(
                f"start={self.start!r} is unknown; choose one of {', '.join(STARTS)}, labels or a posterior."
            )
        if self.degree_correction:
            return self._by_degrees(problem, rng)
        solution = best_of(self.solver, problem, self._starts(problem, rng), self.n_init, callback)
        if self.n_clusters is None and isinstance(self.solver, NodeWise | Damped) and problem.samples[0].n_modes == 2:
            posterior = without_duplicates(problem, solution.posterior)
            solution = replace(solution, posterior=posterior, objective=problem.objective(posterior))
        return solution

    def _starts(self, problem: Problem, rng: np.random.Generator) -> Iterator[Posterior]:
        for restart in range(self.n_init):
            if isinstance(self.start, Posterior):
                yield from_posterior(problem, self.start)
                continue
            firmness = 1.0 if isinstance(self.solver, Sweep) else FIRMNESS
            if not isinstance(self.start, str):
                yield from_labels(problem, [np.asarray(self.start)], firmness=firmness)
                continue
            found = self._partition(problem, restart, rng)
            # A partition that lost clusters gets them back, empty but for what firmness leaves ajar.
            yield from_labels(problem, [found.labels], [self.n_clusters or found.n_clusters], firmness)

    def _partition(self, problem: Problem, restart: int, rng: np.random.Generator) -> Partition:
        return Partition(**once(lambda: vars(self._searched(problem, restart, rng)), rng))

    def _searched(self, problem: Problem, restart: int, rng: np.random.Generator) -> Partition:
        coarse = search_problem(problem)
        search = finder(coarse, self.backend, self.degree_correction)
        sample = pair_sample(coarse, "The search")
        at_random = self.start == "random" or (self.start == "mixed" and restart % 2 == 1)

        def start(k: int) -> Ints:
            k = min(k, sample.n_nodes)
            if at_random or sample.n_nodes < 4:
                return rng.integers(0, k, sample.n_nodes)
            dimensions = self.n_clusters or max(DIMENSIONS, min(60, k // 2))
            return spectral_labels(sample, k, rng, dimensions, self.degree_correction)

        if self.n_clusters is None:
            return search.search(start, rng, most=min(self.most, sample.n_nodes))
        if self.n_clusters == 1:
            return Partition(np.zeros(sample.n_nodes, dtype=np.int64), 1, 0.0)
        return search.descend(start(2 * self.n_clusters), rng, self.n_clusters)

    def _by_degrees(self, problem: Problem, rng: np.random.Generator) -> Solution:
        """The partition of the degree-corrected model with the shortest description."""
        if isinstance(self.start, str):
            found = [self._partition(problem, restart, rng) for restart in range(self.n_init)]
            labels = min(found, key=lambda partition: partition.cost).labels
        else:
            search = finder(search_problem(problem), self.backend, True)
            labels, k = compact(self.start.labels[0] if isinstance(self.start, Posterior) else np.asarray(self.start))
            labels, _ = compact(search.moves.improve(labels, k, rng, self.solver.max_iter))
        posterior, objective = answered(problem, from_labels(problem, [labels]))
        return Solution(posterior, objective, Trace((1.0,), (objective,)), converged=True)


def search_problem(problem: Problem) -> Problem:
    """The problem whose code chooses partitions: 0/1 graphs by exact code lengths whatever the loss.

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


def constant_objective(problem: Problem) -> Objective:
    """The objective of one cluster: predicting one answer everywhere."""
    sample = pair_sample(problem, "The constant")
    return answered(problem, from_labels(problem, [np.zeros(sample.n_nodes, dtype=np.int64)]))[1]
