"""How many edges are enough: fits on growing random samples of the pairs, with what each of them guarantees."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from gingham.arrays import Ints
from gingham.certificates import certify
from gingham.certificates.confidence import checked_delta
from gingham.certificates.population import held_out_part
from gingham.data.graphs import PairSample, from_graph
from gingham.errors import GinghamError
from gingham.models.graph.estimator import GraphClustering
from gingham.models.graph.fit import graph_problem
from gingham.models.graph.partition import merge_duplicates


@dataclass(frozen=True)
class WorkloadRow:
    """One sample of the pairs."""

    fraction: float
    n_pairs: int
    n_clusters: int
    seconds: float
    train: float  # loss on the sampled pairs
    certificate: float  # guaranteed loss on all pairs
    held_out: float  # guaranteed loss on the pairs that were not sampled
    rest: float  # loss on the pairs that were not sampled, as it is


@dataclass(frozen=True)
class Workload:
    """What precision each share of the edges buys; all rows hold together with probability 1 − delta."""

    rows: tuple[WorkloadRow, ...]
    n_pairs: int
    delta: float

    def suffices(self, precision: float) -> WorkloadRow | None:
        """The smallest sample that guarantees a loss of at most ``precision`` on all pairs; None if none does."""
        enough = [row for row in self.rows if row.certificate <= precision]
        return min(enough, key=lambda row: row.n_pairs) if enough else None

    def explain(self, precision: float) -> str:
        """The statement in words."""
        row = self.suffices(precision)
        if row is None:
            best = min(self.rows, key=lambda r: r.certificate)
            return (
                f"No sample guarantees a loss of {precision:.4g}; the best, {best.n_pairs:,} of {self.n_pairs:,} "
                f"pairs, guarantees {best.certificate:.4g}."
            )
        return (
            f"{row.n_pairs:,} of {self.n_pairs:,} pairs ({row.fraction:.3g}) suffice: with confidence "
            f"{100 * (1 - self.delta):g} % the loss on all pairs is at most {row.certificate:.4g} <= {precision:.4g}."
        )


def workload_path(
    model: GraphClustering,
    graph: object,
    fractions: Sequence[float],
    *,
    pairs: object = "all",
    delta: float = 0.05,
    bound: str = "log-wealth",
    random_state: int | np.random.RandomState | None = None,
) -> Workload:
    """Fit on random shares of the pairs and certify each fit (P1 §1, Yom-Tov and Slonim 2009).

    Parameters
    ----------
    model : GraphClustering
        Unfitted; a weighted graph needs ``bounds`` or ``alphabet``.
    graph, pairs
        As for ``from_graph``; the pairs it says were observed are the population.
    fractions : sequence of float
        Shares of the population, in (0, 1); samples are nested.
    delta : float
        All certificates hold at once: each gets delta/len(fractions).

    Examples
    --------
    >>> import gingham as gg
    >>> edges = [(i, j) for i in range(12) for j in range(i) if i // 6 == j // 6]
    >>> path = gg.workload_path(gg.GraphClustering(2, random_state=0), edges, [0.5, 0.9], random_state=0)
    >>> [round(row.fraction, 1) for row in path.rows]
    [0.5, 0.9]
    """
    checked_delta(delta)
    everything = from_graph(graph, pairs=pairs)
    if any(not 0 < fraction < 1 for fraction in fractions) or len(fractions) == 0:
        raise GinghamError("fractions= needs shares strictly between 0 and 1.")
    if everything.complete and everything.n_modes > 2:
        raise GinghamError("workload_path draws pairs; list the observed hyperedges, zeros too (pairs='listed').")
    size = int(everything.n_tuples)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    order = rng.choice(size, int(max(fractions) * size), replace=False)
    rows = []
    for fraction in sorted(fractions):
        sample = _subset(everything, order[: int(fraction * size)])
        start = time.perf_counter()
        fitted = clone(model).fit(sample)
        seconds = time.perf_counter() - start
        cell = fitted.posterior_.cells[0]
        sample = fitted._sample_like(sample)
        problem = graph_problem(sample, cell, fitted.beta_)
        posterior = merge_duplicates(problem, fitted.posterior_)
        certificate = certify(posterior, sample, delta=delta / len(fractions), bound=bound)
        train = posterior.gibbs_loss(sample)
        whole = posterior.gibbs_loss(fitted._sample_like(everything))
        n = int(sample.n_tuples)
        rows.append(
            WorkloadRow(
                fraction, n, posterior.n_clusters[0], seconds, train, certificate.value,
                held_out_part(certificate, size).value, (whole * size - train * n) / (size - n),
            )
        )  # fmt: skip
    return Workload(tuple(rows), size, delta)


def _subset(sample: PairSample, at: Ints) -> PairSample:
    """The pairs with the given numbers out of all observed ones, absent ones with label 0."""
    if not sample.complete:
        return sample.take(np.sort(at))
    n = sample.n_nodes
    if sample.directed:
        first, second = at // (n - 1), at % (n - 1)
        second = second + (second >= first)
    else:
        # Pairs i < j in order of i: row i begins at i·n − i(i + 3)/2 − 1 + (i + 1).
        begins = np.cumsum(np.r_[0, np.arange(n - 1, 0, -1)])
        first = np.searchsorted(begins, at, side="right") - 1
        second = at - begins[first] + first + 1
    key = first.astype(np.int64) * n + second
    listed = sample.codes[0].astype(np.int64) * n + sample.codes[1]
    rank = np.argsort(listed)
    place = np.minimum(np.searchsorted(listed, key, sorter=rank), len(listed) - 1)
    labels = np.ones(sample.n_rows) if sample.labels is None else sample.labels
    found = np.where(listed[rank[place]] == key, labels[rank[place]], 0.0)
    return replace(
        sample, codes=(first.astype(np.int32), second.astype(np.int32)), labels=found, label_codes=None, alphabet=None,
        weights=None, complete=False,
    )  # fmt: skip
