"""Bring your own clusters: partitions from any library, of tables or of graphs, with certificates and on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, MatrixLike, TableLike
from gingham.cells import CellModel, Quadratic, make_cell
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.certificates.confidence import checked_delta
from gingham.certificates.excess_loss import certify_gain
from gingham.certificates.papers import Statement, quantised
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import id_columns
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
    return replace(stated, value=cell.range * stated.value, caveat="The nodes were fixed beforehand.")


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
    structure = Structure((mode,), ((0,) * sample.n_modes,))
    return Posterior(structure, (cell,), (_hard(clusters),), (np.zeros(0),)).refit(sample)


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
        The loss with the possible weights or their bounds. A graph without weights has the labels 0 and 1; where there
        are weights, they must be stated, even if only 0 and 1 were seen.
    gain : bool
        Certify the excess loss over the best constant instead (``certify_gain``): below zero, these
        clusters provably help to predict.
    **options
        Of ``certify`` (bound, delta, …) or ``certify_gain``.

    Examples
    --------
    >>> import gingham as gg
    >>> edges = [(i, j) for i in range(12) for j in range(i) if i // 6 == j // 6]
    >>> labels = {node: node // 6 for node in range(12)}
    >>> certificate = gg.certify_partition(labels, edges)
    >>> certificate.empirical, certificate.value < 1
    (0.0, True)
    """
    _refuse_tests(options)
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

    The graph needs labels on an alphabet; partitions may come from anywhere, fitted on the same graph. Each bound holds
    for all partitions at once; certificates and gains have half of δ each, so that all numbers hold together.

    Examples
    --------
    >>> import gingham as gg
    >>> edges = [(i, j) for i in range(12) for j in range(i) if i // 6 == j // 6]
    >>> halves = {node: node // 6 for node in range(12)}
    >>> mixed = {node: node % 2 for node in range(12)}
    >>> rows = gg.compare_partitions({"halves": halves, "mixed": mixed}, edges)
    >>> [(row.name, round(row.loss, 2)) for row in rows]
    [('halves', 0.0), ('mixed', 0.25)]
    """
    checked_delta(delta)
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
                certify(posterior, sample, delta=delta / 2).value,
                certify_gain(posterior, sample, delta=delta / 2).value,
            )
        )
    return rows


def _stated(
    sample: PairSample, loss: Any, alphabet: Iterable[object] | None, bounds: tuple[float, float] | None
) -> tuple[PairSample, CellModel]:
    """The sample on stated labels with the loss's cell model; a graph without weights has 0 and 1."""
    if alphabet is None and bounds is None:
        if sample.weighted and sample.labels is not None:
            raise RefusedCertificate(
                "State the possible weights: alphabet=(...) or bounds=(smallest, largest). A graph without weights "
                "(edges alone, a matrix of booleans) has 0 and 1; for a matrix of zeros and ones say alphabet=(0, 1)."
            )
        alphabet = (0.0, 1.0)
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    return (sample if letters is None else with_alphabet(sample, letters)), make_cell(loss, letters, bounds)


def certify_labels(
    labels: Sequence[Mapping[object, object] | npt.ArrayLike],
    X: TableLike,
    y: npt.ArrayLike,
    *,
    loss: Any = "absolute",
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
    items: Sequence[npt.ArrayLike] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    graph: bool = False,
    **options: Any,
) -> Certificate:
    """A guarantee for clusters from any library: each cell answers what fits its tuples best.

    Parameters
    ----------
    labels : sequence with one entry per mode
        A mapping from item id to cluster, or an array of cluster labels for the mode's items. An array goes
        with ``items`` (ids in the same order) or, without it, with the sorted distinct ids of the column or
        the ids 0, 1, …, n − 1.
    X, y : ids (N, d) and labels (N,)
    loss : name, table or callable, as for the estimators
    alphabet : sequence
        The possible labels; needed, except for the quadratic loss with ``label_bounds``.
    graph : bool
        Both columns of X are ends of an undirected edge, and ``labels`` has one entry.
    **options
        As for :func:`certify`.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> parity = {item: item % 2 for item in range(30)}  # clusters that some other program found
    >>> certificate = gg.certify_labels([parity, parity], X, y, alphabet=[1, 5])
    >>> certificate.empirical, round(certificate.value, 2)
    (0.0, 0.35)
    """
    _refuse_tests(options)
    columns = id_columns(X)
    d = len(columns.columns)
    wanted = 1 if graph else d
    if len(labels) != wanted:
        raise GinghamError(f"labels has {len(labels)} entries; this data needs {wanted}, one per clustered mode.")
    if alphabet is None and label_bounds is None:
        raise RefusedCertificate(
            "State the possible labels: alphabet=(1, 2, 3, 4, 5), say. Labels read off the data would make the "
            "guarantee depend on what happened to be observed."
        )
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    cell = make_cell(loss, letters, label_bounds)
    modes, assigns = [], []
    for at, given in enumerate(labels):
        seen = np.concatenate(columns.columns) if graph else columns.columns[at]
        mode, assign = _hard_mode(given, seen, None if items is None else items[at], columns.names[at])
        modes.append(mode)
        assigns.append(assign)
    structure = Structure((modes[0],), ((0, 0),)) if graph else Structure.grid(modes)
    positions = [structure.modes[i] for i in structure.factors[0]]
    sample = Sample.of(columns.columns, y, sample_weight, modes=positions, alphabet=letters)
    blank = Posterior(structure, (cell,), tuple(assigns), (np.zeros(0),))
    statistics = blank.statistics(sample)
    if graph:
        statistics = statistics + np.swapaxes(statistics, 0, 1)
    return certify(replace(blank, answers=(cell.answer(statistics),)), sample, **options)


def _refuse_tests(options: Mapping[str, object]) -> None:
    """Cells answer what fits these tuples best, so that the same tuples test nothing."""
    if options.get("bound") in ("holdout", "split"):
        raise RefusedCertificate(
            f"bound={options['bound']!r} tests a finished predictor on other tuples, and here the cells answer what "
            "fits these tuples best: leave bound= out (log-wealth pays for the answers)."
        )


def _hard_mode(
    given: Mapping[object, object] | npt.ArrayLike, seen: AnyArray, items: npt.ArrayLike | None, name: str
) -> tuple[Mode, Floats]:
    """A mode with hard assignments from a mapping or an array of cluster labels."""
    if isinstance(given, Mapping):
        pairs = dict(given)
        mode = Mode.of(np.array(list(pairs)), name)
        clusters = np.array([pairs[item] for item in mode.items.tolist()])
    else:
        clusters = np.asarray(given)
        if clusters.ndim != 1:
            raise GinghamError(f"Cluster labels of {name!r} must be a flat array, not of shape {clusters.shape}.")
        if items is not None:
            ids = np.asarray(items)
            if len(ids) != len(clusters):
                raise GinghamError(f"{name!r} has {len(ids)} items but {len(clusters)} cluster labels.")
            mode = Mode.of(ids, name)
            if mode.n_items != len(ids):
                raise GinghamError(f"items= of {name!r} names an item twice.")
            clusters = clusters[np.argsort(mode.encode(ids), kind="stable")]
        else:
            mode = _implicit_mode(seen, len(clusters), name)
    return mode, _hard(clusters)


def _hard(clusters: AnyArray) -> Floats:
    """Memberships (n, m) of 0 and 1 from the cluster of each item."""
    _, codes = np.unique(clusters, return_inverse=True)
    return np.eye(int(codes.max()) + 1)[codes.ravel()]


def _implicit_mode(seen: AnyArray, n_labels: int, name: str) -> Mode:
    distinct = Mode.of(seen, name)
    if distinct.n_items == n_labels:
        return distinct
    if seen.dtype.kind in "iu" and distinct.items.min() >= 0 and distinct.items.max() < n_labels:
        return Mode(name, np.arange(n_labels))
    raise GinghamError(
        f"{name!r} has {distinct.n_items} different items but {n_labels} cluster labels. Give items= (the ids in the "
        "order of the labels), or a mapping from id to cluster."
    )
