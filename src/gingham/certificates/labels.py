"""Bring your own clusters: partitions from any library, of tables or of graphs, with certificates and on one scale."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, MatrixLike
from gingham.cells import make_cell
from gingham.certificates.papers import Statement, quantised
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import id_columns
from gingham.data.graphs import PairSample, from_graph, with_alphabet
from gingham.errors import GinghamError, RefusedCertificate


def equation15(posterior: Posterior, sample: PairSample, delta: float = 0.05) -> Statement:
    """P1 eq. (15): the kl bound of Theorem 2 with answers quantised to steps Δ = 5|C|²/N, quadratic loss in [0, 1].

    All |C|² cells are paid for, as the paper does; N counts each pair once.
    """
    cell = posterior.cells[0]
    if cell.name != "quadratic" or cell.bounds is None:
        raise RefusedCertificate("P1's eq. (15) is for the quadratic loss with known bounds of the weights.")
    n, k = posterior.assign[0].shape
    partitions = n * posterior.information[0] + k * log(n)
    loss = posterior.gibbs_loss(sample) / cell.range
    stated = quantised(loss, partitions, k * k, int(sample.n_observations), delta, labels=False)
    return replace(stated, value=cell.range * stated.value, caveat="The nodes were fixed beforehand.")


def posterior_of_labels(
    labels: Any,
    X: Any,
    y: npt.ArrayLike | None = None,
    *,
    loss: Any = None,
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
    items: Any = None,
    sample_weight: npt.ArrayLike | None = None,
    pairs: str | MatrixLike = "all",
    directed: bool | None = None,
) -> tuple[Posterior, Sample]:
    """Clusters from any library with the best answers of their cells on a sample, and the sample.

    See `gingham.certify`. The loss is "absolute" for tables and "quadratic" for graphs by default. ``items`` are the
    ids of the items that arrays of labels are about, one array per entry.
    """
    label_values = None if alphabet is None else Alphabet.of(alphabet, given=True)
    one_mode = isinstance(labels, Mapping) or not all(np.ndim(one) or isinstance(one, Mapping) for one in labels)
    if one_mode and y is None:
        return _of_nodes(labels, from_graph(X, pairs=pairs, directed=directed), loss, label_values, label_bounds, items)
    if y is None:
        raise GinghamError("A certificate of clusters needs the labels y of the rows.")
    if label_values is None and label_bounds is None:
        raise RefusedCertificate(
            "State the possible labels: alphabet=(1, 2, 3, 4, 5), say. Labels read off the data would make the "
            "guarantee depend on what happened to be observed."
        )
    columns = id_columns(X)
    entries = [labels] if one_mode else list(labels)
    wanted = 1 if one_mode else len(columns.columns)
    if len(entries) != wanted:
        raise GinghamError(f"labels has {len(entries)} entries; this data needs {wanted}, one per clustered mode.")
    cell = make_cell("absolute" if loss is None else loss, label_values, label_bounds)
    modes, assigns = [], []
    for at, entry in enumerate(entries):
        seen = np.concatenate(columns.columns) if one_mode else columns.columns[at]
        ids = None if items is None else items if one_mode else items[at]
        mode, clusters = _clusters(entry, ids, columns.names[at], Mode.of(seen, columns.names[at]))
        modes.append(mode)
        assigns.append(_hard(clusters))
    structure = Structure((modes[0],), ((0, 0),)) if one_mode else Structure.grid(modes)
    positions = [structure.modes[i] for i in structure.factors[0]]
    sample = Sample.of(columns.columns, y, sample_weight, modes=positions, alphabet=label_values)
    blank = Posterior(structure, (cell,), tuple(assigns), (np.zeros(0),))
    statistics = blank.statistics(sample)
    if one_mode:
        statistics = statistics + np.swapaxes(statistics, 0, 1)
    return replace(blank, answers=(cell.answer(statistics),)), sample


def _of_nodes(
    labels: Any,
    sample: PairSample,
    loss: Any,
    label_values: Alphabet | None,
    bounds: tuple[float, float] | None,
    items: npt.ArrayLike | None,
) -> tuple[Posterior, PairSample]:
    """Clusters of the nodes of a graph; one without weights has the labels 0 and 1."""
    if label_values is None and bounds is None:
        if sample.weighted and sample.labels is not None:
            raise RefusedCertificate(
                "State the possible weights: alphabet=(...) or label_bounds=(smallest, largest). A graph without "
                "weights (edges alone, a matrix of booleans) has 0 and 1; for a matrix of zeros and ones say "
                "alphabet=(0, 1)."
            )
        label_values = Alphabet.of((0.0, 1.0), given=True)
    if label_values is not None:
        sample = with_alphabet(sample, label_values)
    cell = make_cell("quadratic" if loss is None else loss, label_values, bounds)
    nodes = sample.modes[0]
    mode, clusters = _clusters(labels, items, nodes.name, nodes)
    at = mode.encode(nodes.items)
    if (at < 0).any():
        raise GinghamError(f"Node {nodes.items[at < 0].tolist()[0]!r} has no cluster in labels=.")
    structure = Structure((nodes,), ((0,) * sample.n_modes,))
    return Posterior(structure, (cell,), (_hard(clusters[at]),), (np.zeros(0),)).refit(sample), sample


def _clusters(
    given: Mapping[object, object] | npt.ArrayLike, items: npt.ArrayLike | None, name: str, known: Mode
) -> tuple[Mode, AnyArray]:
    """The items that have a cluster label, and the labels in their order; by default the ``known`` items have."""
    if isinstance(given, Mapping):
        mode = Mode.of(np.array(list(given)), name)
        return mode, np.array([given[item] for item in mode.items.tolist()])
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
        return mode, clusters[np.argsort(mode.encode(ids), kind="stable")]
    if known.n_items == len(clusters):
        return known, clusters
    if known.items.dtype.kind in "iu" and known.items.min() >= 0 and known.items.max() < len(clusters):
        return Mode(name, np.arange(len(clusters))), clusters
    raise GinghamError(
        f"{name!r} has {known.n_items} different items but {len(clusters)} cluster labels. Give items= (the ids in the "
        "order of the labels), or a mapping from id to cluster."
    )


def _hard(clusters: AnyArray) -> Floats:
    """Memberships (n, m) of 0 and 1 from the cluster of each item."""
    _, codes = np.unique(clusters, return_inverse=True)
    return np.eye(int(codes.max()) + 1)[codes.ravel()]
