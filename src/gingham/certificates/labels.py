"""Bring your own clusters: labels from any library become a checkerboard with a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, TableLike
from gingham.cells import make_cell
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import id_columns
from gingham.errors import GinghamError, RefusedCertificate


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
    """
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
    posterior = replace(blank, answers=(cell.answer(statistics),))
    return certify(posterior, sample, **options)


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
    _, codes = np.unique(clusters, return_inverse=True)
    return mode, np.eye(int(codes.max()) + 1)[codes]


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
