"""Graphs: P1's own bound, partitions from any library on one scale, and what a sample of the edges buys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, MatrixLike
from gingham.cells import CellModel, Quadratic, make_cell
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.certificates.excess_loss import certify_gain
from gingham.certificates.papers import Statement, quantised
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Alphabet
from gingham.data.graphs import PairSample, from_graph, with_alphabet
from gingham.errors import GinghamError, RefusedCertificate

Partition = Mapping[object, object] | npt.ArrayLike  # the cluster of each node, by its id or in the order of the nodes


def equation15(posterior: Posterior, sample: PairSample, delta: float = 0.05) -> Statement:
    """P1 eq. (15): the kl bound of Theorem 2 with answers quantised to steps Δ = 5|C|²/N, quadratic loss in [0, 1].

    All |C|² cells are paid for, as the paper does; N counts each pair once.
    """
    cell = posterior.cells[0]
    if not isinstance(cell, Quadratic) or cell.bounds is None:
        raise RefusedCertificate("P1's eq. (15) is for the quadratic loss with known bounds of the weights.")
    n, k = posterior.assign[0].shape
    partitions = n * posterior.information[0] + k * log(n)
    loss = posterior.gibbs_loss(sample) / cell.range
    stated = quantised(loss, partitions, k * k, int(sample.n_tuples), delta, labels=False)
    return replace(stated, value=cell.range * stated.value)


def partition_posterior(
    labels: Partition, sample: PairSample, cell: CellModel, items: npt.ArrayLike | None = None
) -> Posterior:
    """Hard clusters from any library with the best block answers on a sample.

    ``labels`` is a mapping from node id to cluster, or an array in the order of ``items`` (of the sample's
    own nodes by default).
    """
    mode = sample.modes[0]
    if isinstance(labels, Mapping):
        missing = [node for node in mode.items.tolist() if node not in labels]
        if missing:
            raise GinghamError(f"Node {missing[0]!r} has no cluster in labels=.")
        clusters: AnyArray = np.array([labels[node] for node in mode.items.tolist()])
    else:
        clusters = np.asarray(labels)
        if clusters.shape != (mode.n_items,):
            raise GinghamError(f"labels has shape {clusters.shape}; it needs one cluster per node, ({mode.n_items},).")
        if items is not None:
            at = mode.encode(items)
            if (np.sort(at) != np.arange(mode.n_items)).any():
                raise GinghamError("items= must name every node of the graph once.")
            clusters = clusters[np.argsort(at)]
    _, codes = np.unique(clusters, return_inverse=True)
    assign = np.eye(int(codes.max()) + 1)[codes.ravel()]
    structure = Structure((mode,), ((0,) * sample.n_modes,))
    return Posterior(structure, (cell,), (assign,), (np.zeros(0),)).refit(sample)


def certify_partition(
    labels: Partition,
    graph: object,
    *,
    pairs: str | MatrixLike = "all",
    directed: bool | None = None,
    items: npt.ArrayLike | None = None,
    loss: Any = "quadratic",
    alphabet: Iterable[object] | None = None,
    bounds: tuple[float, float] | None = None,
    gain: bool = False,
    **options: Any,
) -> Certificate:
    """A guarantee for clusters of nodes from any library: how well their blocks predict pairs.

    Parameters
    ----------
    labels : mapping from node to cluster, or array in the order of ``items`` (the graph's nodes by default)
    graph, pairs, directed
        As for ``from_graph``.
    loss, alphabet, bounds
        The loss with the possible weights or their bounds. A graph without weights has the labels 0 and 1.
    gain : bool
        Certify the excess loss over the best constant instead (``certify_gain``): below zero, these
        clusters provably help to predict.
    **options
        Of ``certify`` (bound, delta, …) or ``certify_gain``.
    """
    sample = from_graph(graph, pairs=pairs, directed=directed)
    sample, cell = _stated(sample, loss, alphabet, bounds)
    posterior = partition_posterior(labels, sample, cell, items)
    return certify_gain(posterior, sample, **options) if gain else certify(posterior, sample, **options)


@dataclass(frozen=True)
class PartitionRow:
    """One partition on the common scale: how many clusters, how well it predicts, what is guaranteed."""

    name: str
    n_clusters: int
    loss: float
    certificate: float
    gain: float


def compare_partitions(
    partitions: Mapping[str, Partition],
    graph: object,
    *,
    pairs: str | MatrixLike = "all",
    directed: bool | None = None,
    loss: Any = "quadratic",
    alphabet: Iterable[object] | None = None,
    delta: float = 0.05,
) -> list[PartitionRow]:
    """Any partitions of one graph by predictive loss, by certificate and by certified gain over the constant.

    The graph needs labels on an alphabet; partitions may come from anywhere, fitted on the same graph.
    """
    sample = from_graph(graph, pairs=pairs, directed=directed)
    sample, cell = _stated(sample, loss, alphabet, None)
    rows = []
    for name, labels in partitions.items():
        posterior = partition_posterior(labels, sample, cell)
        rows.append(
            PartitionRow(
                name,
                posterior.n_clusters[0],
                posterior.gibbs_loss(sample),
                certify(posterior, sample, delta=delta).value,
                certify_gain(posterior, sample, delta=delta).value,
            )
        )
    return rows


def _stated(
    sample: PairSample, loss: Any, alphabet: Iterable[object] | None, bounds: tuple[float, float] | None
) -> tuple[PairSample, CellModel]:
    """The sample on stated labels with the loss's cell model; 0 and 1 need not be stated."""
    binary = sample.labels is None or bool(np.isin(sample.labels, (0.0, 1.0)).all())
    if alphabet is None and bounds is None:
        if not binary:
            raise RefusedCertificate("State the possible weights: alphabet=(...) or bounds=(smallest, largest).")
        alphabet = (0.0, 1.0)
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    return (sample if letters is None else with_alphabet(sample, letters)), make_cell(loss, letters, bounds)
