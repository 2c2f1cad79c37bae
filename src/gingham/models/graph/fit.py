"""From a graph problem to its solution: partitions to start from, restarts, and the solver that refines them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel, Logarithmic, Quadratic
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.core.structure import Structure
from gingham.data import Alphabet
from gingham.data.graphs import PairSample, label_values, with_alphabet
from gingham.errors import GinghamError
from gingham.fitting.loop import NO_CHECKPOINT, Callback, Checkpoint, Restart, Solution, Trace, best_of
from gingham.fitting.starts import FIRMNESS, from_labels, from_posterior
from gingham.models.graph.adjacency import hard_statistics
from gingham.models.graph.partition import (
    MOST_CLUSTERS,
    Partition,
    PartitionSearch,
    compact,
    find_partition,
    merge_duplicates,
)
from gingham.models.graph.solvers import Damped, Iclust, NodeSweep, NodeWise, hard_posterior, pair_sample

STARTS = ("spectral", "random", "mixed")
TINY = 1e-9  # share of the uniform distribution in the answers of the log loss; block densities are small


def graph_problem(sample: PairSample, cell: CellModel, beta: float) -> Problem:
    """One mode that meets itself in one relation."""
    return Problem(Structure((sample.modes[0],), ((0,) * sample.n_modes,)), (sample,), (cell,), (beta,))


def default_beta(sample: PairSample, cell: CellModel) -> float:
    """1 for log loss; 1/(2 variance) of the constant prediction for quadratic; 1/mean loss of it otherwise."""
    if cell.code_length:
        return 1.0
    one = hard_statistics(sample, cell.features, np.zeros(sample.n_nodes, dtype=np.int64), 1)
    loss = float(cell.envelope(one).sum() / sample.n_tuples)
    if loss <= 0:
        raise GinghamError("All observed pairs have the same weight: there is nothing to cluster.")
    return float(cell.noise_rate / loss)


Solvers = NodeWise | Damped | NodeSweep | Iclust


@dataclass(frozen=True)
class GraphFit:
    """How a graph is clustered: a partition is found, the solver goes on from there, the best of the starts is kept."""

    n_clusters: int | None  # None chooses the number by description length, at most ``max_clusters``
    solver: Solvers
    start: str | Ints | Posterior = "spectral"  # or "random", "mixed", labels, a posterior
    n_init: int = 1
    max_clusters: int = MOST_CLUSTERS
    degree_correction: bool = False
    backend: str = "auto"

    def solve(
        self,
        problem: Problem,
        rng: np.random.Generator,
        callback: Callback | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Solution:
        """Start, refine, restart; the lowest objective is kept (the shortest description with degree correction)."""
        if isinstance(self.start, str) and self.start not in STARTS:
            raise GinghamError(
                f"start={self.start!r} is unknown; choose one of {', '.join(STARTS)}, labels or a posterior."
            )
        if self.degree_correction:
            return self._degree_corrected(problem, rng, checkpoint)
        soft = isinstance(self.solver, NodeWise | Damped)

        def solve(restart: Restart) -> Solution:
            start = self._start(problem, restart.number, restart.rng, restart.checkpoint)
            return self.solver.solve(problem, start, restart.report, restart.checkpoint.stage("sweeps"))

        most = self.solver.max_iter
        solution = best_of(solve, self.n_init, rng, max_iter=most, callback=callback, checkpoint=checkpoint)
        if self.n_clusters is None and soft and problem.samples[0].n_modes == 2:
            posterior = merge_duplicates(problem, solution.posterior)
            solution = replace(solution, posterior=posterior, objective=problem.objective(posterior))
        return solution

    def _start(self, problem: Problem, restart: int, rng: np.random.Generator, checkpoint: Checkpoint) -> Posterior:
        """The posterior that the solver begins with."""
        if isinstance(self.start, Posterior):
            return from_posterior(problem, self.start)
        hard = isinstance(self.solver, NodeSweep)
        if not isinstance(self.start, str):
            return from_labels(problem, [np.asarray(self.start)], firmness=1.0 if hard else FIRMNESS)
        found = self._partition(problem, restart, rng, checkpoint.stage("partition"))
        # A partition that lost clusters gets them back, empty but for what firmness leaves ajar.
        k = self.n_clusters or found.n_clusters
        if hard:
            return hard_posterior(problem, found.labels, k)[0]
        return from_labels(problem, [found.labels], [k], FIRMNESS)

    def _partition(self, problem: Problem, restart: int, rng: np.random.Generator, checkpoint: Checkpoint) -> Partition:
        """The partition of a named start."""
        at_random = self.start == "random" or (self.start == "mixed" and restart % 2 == 1)
        found = checkpoint.result(
            lambda: vars(
                find_partition(
                    search_problem(problem), self.n_clusters, rng, at_random=at_random, most=self.max_clusters,
                    degree_correction=self.degree_correction, backend=self.backend,
                )
            )
        )  # fmt: skip
        return Partition(**found)

    def _degree_corrected(self, problem: Problem, rng: np.random.Generator, checkpoint: Checkpoint) -> Solution:
        """The partition of the degree-corrected model with the shortest description."""
        if isinstance(self.start, str):
            found = [
                self._partition(problem, number, own, checkpoint.stage(f"start {number + 1}"))
                for number, own in enumerate(rng.spawn(self.n_init))
            ]
            labels = min(found, key=lambda partition: partition.cost).labels
        else:
            search = PartitionSearch.of(search_problem(problem), self.backend, degree_correction=True)
            given = self.start if isinstance(self.start, Posterior) else from_labels(problem, [np.asarray(self.start)])
            labels, k = compact(given.labels[0])
            labels = search.moves.improve(labels, k, rng, self.solver.max_iter)
        posterior, objective = hard_posterior(problem, *compact(labels))
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
