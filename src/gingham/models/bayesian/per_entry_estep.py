"""The per-entry family: every entry has its own joint distribution over (row cluster, column cluster).

Given q(π), that distribution has a closed form, q(i, j) ∝ a_i b_j p(y|θ_ij) with a = exp E ln π_1 and
b = exp E ln π_2, so the block update is exact. Nothing of it is stored: with C_p = Σ_j p(y|θ_ij) b_j made
once for each distinct (column, label) pair p, an entry costs three vectors of length k_1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells.families import Family
from gingham.data import Sample
from gingham.engine.project import BLOCK_BYTES, Rows, project, row_starts
from gingham.lazy import lazy_module

if TYPE_CHECKING:
    from gingham.models.bayesian import entry_kernels
else:
    entry_kernels = lazy_module("gingham.models.bayesian.entry_kernels")


@dataclass(frozen=True, eq=False)
class Part:
    """Entries whose labels lie in one block of distinct labels, laid out for the kernels."""

    features: Floats  # t(y) of each distinct label, (D, K)
    log_base: Floats  # (D,)
    pairs: entry_kernels.LabelledItems  # distinct (column, label)
    pair_labels: Ints  # (P,)
    pair_weights: Floats  # total weight of a pair's entries, (P,)
    row_codes: Ints  # of each entry, grouped by row, (N,)
    pair_codes: Ints  # the same order
    weights: Floats | None  # the same order
    entries: Ints  # positions of these entries in the sample
    by_row: Rows
    by_pair: Rows
    to_pairs: Ints  # from the order of by_row to that of by_pair
    by_item: Rows  # pairs grouped by column
    item_features: Floats  # t(y) of the pairs in that order, (P, K)


def layout(family: Family, sample: Sample, n_cells: int) -> list[Part]:
    """The entries of a two-mode sample, split by labels so that no table of densities exceeds the budget."""
    if family.features.one_hot and sample.label_codes is not None:
        values, codes = np.arange(family.features.size), sample.label_codes.astype(np.int64)
    else:
        labels = np.zeros(sample.n_rows) if sample.labels is None else sample.labels
        values, codes = np.unique(labels, return_inverse=True)
    step = max(1, BLOCK_BYTES // (8 * max(1, n_cells)))
    parts = []
    for start in range(0, len(values), step):
        chosen = np.flatnonzero((codes >= start) & (codes < start + step))
        parts.append(_part(family, sample, values[start : start + step], codes[chosen] - start, chosen))
    return parts


def _part(family: Family, sample: Sample, values: AnyArray, labels: Ints, chosen: Ints) -> Part:
    rows, columns = sample.codes[0][chosen], sample.codes[1][chosen]
    weights = None if sample.weights is None else sample.weights[chosen]
    n_columns = sample.shape[1]
    keys, pair_of = np.unique(labels * n_columns + columns, return_inverse=True)
    pair_of = pair_of.astype(np.int32)
    pair_labels, items = keys // n_columns, (keys % n_columns).astype(np.int32)
    features = family.features.evaluate(values, values)
    row_order, pair_order = np.argsort(rows, kind="stable"), np.argsort(pair_of, kind="stable")
    position = np.empty(len(chosen), dtype=np.int64)
    position[row_order] = np.arange(len(chosen))
    item_order = np.argsort(items, kind="stable").astype(np.int32)
    return Part(
        features=features,
        # One-hot features: ``values`` are label codes.
        log_base=np.zeros(len(values)) if family.features.one_hot else family.log_base(values),
        pairs=entry_kernels.LabelledItems(row_starts(pair_labels, len(values)), items),
        pair_labels=pair_labels,
        pair_weights=np.bincount(pair_of, weights, minlength=len(keys)).astype(np.float64),
        row_codes=rows[row_order],
        pair_codes=pair_of[row_order],
        weights=None if weights is None else weights[row_order],
        entries=chosen[row_order],
        by_row=_sums(rows, sample.shape[0], pair_of[row_order]),
        by_pair=_sums(pair_of, len(keys), rows[pair_order]),
        to_pairs=position[pair_order],
        by_item=_sums(items, n_columns, item_order),
        item_features=np.ascontiguousarray(features[pair_labels[item_order]]),
    )


def _sums(codes: Ints, n: int, others: Ints) -> Rows:
    """A layout on which `project` adds up vectors of the other side."""
    return Rows(
        indptr=row_starts(codes, n),
        others=np.ascontiguousarray(others[None].astype(np.int32, copy=False)),
        labels=np.zeros(len(others), dtype=np.int32),
        features=None,
        weights=None,
        n_features=1,
    )


def e_step(
    parts: Sequence[Part],
    family: Family,
    answers: AnyArray,
    log_memberships: tuple[Floats, ...],
    temperature: float = 1.0,
    backend: str = "auto",
) -> tuple[tuple[Floats, Floats], Floats, float]:
    """The best joint distribution of every entry, summed up (exact block update).

    Returns the expected counts of each mode (n, m), the cell statistics (m_1, m_2, K) and Σ ln z.
    """
    a = np.exp(log_memberships[0] / temperature)
    b = np.exp(log_memberships[1] / temperature)
    frozen = b.shape[1] == 0
    coef = family.coef(answers)
    row_counts, column_counts = np.zeros(a.shape), np.zeros(b.shape)
    statistics = np.zeros(coef.shape)
    total = 0.0
    for part in parts:
        tables, shift = _densities(part, coef, frozen, temperature)
        # C_p: what an entry of the pair says of the row clusters
        said = tables if frozen else entry_kernels.contract(tables, part.pairs, b)
        z = entry_kernels.inner(a, said, part.row_codes, part.pair_codes)
        weights = 1.0 / z if part.weights is None else part.weights / z
        log_z = np.log(z).sum() if part.weights is None else part.weights @ np.log(z)
        total += float(log_z + part.pair_weights @ shift)
        row_counts += a * project(part.by_row._replace(weights=weights), [said], backend=backend)[:, 0]
        sums = project(part.by_pair._replace(weights=weights[part.to_pairs]), [a], backend=backend)[:, 0]
        if frozen:
            features = part.item_features
            rows = part.by_item._replace(labels=None, features=features, n_features=features.shape[1])
            statistics += np.moveaxis(project(rows, [said * sums], backend=backend), 2, 0)
        else:
            back, cells = entry_kernels.expand(tables, part.pairs, b, sums)
            column_counts += b * project(part.by_item, [back], backend=backend)[:, 0]
            statistics += np.tensordot(cells, part.features, axes=(0, 0))
    return (row_counts, column_counts), statistics, total


def log_densities(
    parts: Sequence[Part], family: Family, answers: AnyArray, memberships: tuple[Floats, ...], frozen: bool
) -> Floats:
    """ln Σ_ij π_1(i) π_2(j) p(y|θ_ij) of every entry, in the order of the sample, shape (N,)."""
    out = np.empty(sum(len(part.entries) for part in parts))
    coef = family.coef(answers)
    for part in parts:
        tables, shift = _densities(part, coef, frozen, 1.0)
        said = tables if frozen else entry_kernels.contract(tables, part.pairs, memberships[1])
        z = entry_kernels.inner(memberships[0], said, part.row_codes, part.pair_codes)
        out[part.entries] = np.log(np.maximum(z, 1e-300)) + shift[part.pair_codes]
    return out


def _densities(part: Part, coef: Floats, frozen: bool, temperature: float) -> tuple[Floats, Floats]:
    """p(y|θ)^(1/t) up to e^shift: (D, k_1, k_2) by labels, or (P, k_1) by pairs where columns are frozen.

    The shift, by pairs, keeps the largest density of each label at one, so that none underflows.
    """
    if frozen:
        own = np.ascontiguousarray(np.moveaxis(coef, 0, 2))[part.pairs.items]  # (P, K, k_1)
        logs: Floats = -(part.features[part.pair_labels][:, None] @ own)[:, 0]
        logs += part.log_base[part.pair_labels, None]
        logs /= temperature
        shift = logs.max(axis=1)
        return np.exp(logs - shift[:, None]), shift
    logs = part.log_base[:, None, None] - np.tensordot(part.features, coef, axes=(1, 2))
    logs /= temperature
    shift = logs.max(axis=(1, 2))
    return np.exp(logs - shift[:, None, None]), shift[part.pair_labels]
