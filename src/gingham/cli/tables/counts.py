"""Counts of co-occurrences, from tokens (rows with two ids) or from pairs with how often each was counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from gingham import models
from gingham.arrays import Floats, Ints
from gingham.cli.tables import adapter
from gingham.cli.tables.adapter import Facts, FitTask, Opened, TableSource
from gingham.cli.tables.arguments import CertificateRequest, PredictOptions, parse_clusters
from gingham.cli.tables.columns import (
    check_holdout,
    fingerprint,
    id_pairs,
    like_items,
    need_columns,
    numbered,
    with_predictions,
)  # fmt: skip
from gingham.cli.tables.kinds import Kind
from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.models.fit_record import FitRecord


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    table, options = task.table, task.options
    clusters = parse_clusters(options.clusters, len(options.axes))
    model = adapter.unfitted(kind, task, {"n_clusters": clusters, "beta": options.beta})
    weight, share = options.weight or options.label, options.holdout or 0.0
    modes, counts = count_matrix(kind, table, options.axes, weight, options.drop_missing)
    learned, held = parted(counts, share, options.seed)
    model.fit(learned, names={mode.name: mode.items for mode in modes}, **task.accepted_by(model.fit))
    model._record = FitRecord(
        options.axes, weight=weight, seed=options.seed, holdout=share,
        fingerprint=fingerprint(table, [*options.axes, *([weight] if weight else [])]),
    )  # fmt: skip
    facts = {
        "rows": table.height,
        **adapter.facts_of_fit(kind, model),
        "counts": float(counts.data.sum()),
        "clusters": model.n_clusters_,
        "information_kept": model.information_kept_,
    }
    return model, facts | {f"held_out_{name}": value for name, value in code_lengths(model, held).items()}


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
    """The table with the log density (nats) and the lift of each pair; empty where an id was never counted."""
    names = adapter.id_columns(model)
    need_columns(table, names, "The model")
    codes = codes_of(model, table, names)
    known = (codes >= 0).all(axis=1)
    density, apart = np.full((2, len(codes)), np.nan)
    density[known] = model.score_samples(codes[known])
    apart[known] = independent(model, codes[known])
    return with_predictions(
        table,
        pl.Series("log_density", density).fill_nan(None),
        pl.Series("lift", np.exp(density - apart)).fill_nan(None),
    )


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """A matrix of counts with the names of its rows and columns."""
    record = model._record or FitRecord()
    axes, weight = list(source.axes or adapter.id_columns(model)), record.weight or source.label
    kept, weights = tokens(kind, source.table, axes, weight, source.drop_missing)
    codes = codes_of(model, kept, axes)
    for name, code in zip(axes, codes.T):
        if (code < 0).any():
            row = int(np.flatnonzero(code < 0)[0])
            raise GinghamError(f"Column {name!r}, row {row}: this id was not in the training table.")
    counts = matrix(codes.T, weights, (len(model.row_labels_), len(model.column_labels_)))
    same = record.fingerprint == fingerprint(source.table, [*axes, *([weight] if weight else [])])
    learned, held = parted(counts, record.holdout if same else 0.0, record.seed)

    # All counts: those that are left where whole entries were set aside are no sample of the source, and the bound
    # holds for all posteriors at once, whatever they were fitted to.
    def certificates(request: CertificateRequest) -> Facts:
        return {"counted pairs": model.certify(counts, request.delta, request.population)}

    def without_groups(found: Facts, request: CertificateRequest) -> dict[str, float]:
        one = models.CoOccurrenceClustering((1, 1), random_state=0).fit(counts)
        return {name: float(one.certify(counts, mine.delta, request.population).value) for name, mine in found.items()}

    return Opened(
        model, str(weight or "count"), (learned,),
        {"counts": float(learned.data.sum()), **adapter.facts_of(kind, model)},
        certificates, model._predict_codes, without_groups, code_lengths(model, held),
        lambda one: {"information": one.information_},
    )  # fmt: skip


def tokens(
    kind: Kind, table: pl.DataFrame, axes: Sequence[str], weight: str | None, drop_missing: bool
) -> tuple[pl.DataFrame, Floats]:
    """Rows with two ids, and how often each was counted."""
    kept, weights = id_pairs(kind, table, axes, weight, drop_missing=drop_missing)
    if weights is None:
        return kept, np.ones(kept.height)
    if (weights < 0).any():
        raise GinghamError(f"--weight column {weight!r} contains negative numbers, but counts are at least 0.")
    return kept, weights


def matrix(codes: Sequence[Ints] | Ints, weights: Floats, shape: Sequence[int]) -> sparse.csr_array:
    return sparse.coo_array((weights, (codes[0], codes[1])), shape=tuple(shape)).tocsr()


def count_matrix(
    kind: Kind, table: pl.DataFrame, axes: Sequence[str], weight: str | None, drop_missing: bool
) -> tuple[list[Mode], sparse.csr_array]:
    """Rows and columns of the table's ids, and how often each pair was counted."""
    kept, weights = tokens(kind, table, axes, weight, drop_missing)
    modes, codes = numbered(kept, axes)
    return modes, matrix(codes, weights, [mode.n_items for mode in modes])


def parted(counts: sparse.csr_array, share: float, seed: int) -> tuple[sparse.csr_array, sparse.csr_array | None]:
    """Counts to learn from, and whole entries set aside."""
    from gingham.models.counts.fit import without_entries

    check_holdout(share)
    if not share:
        return counts, None
    return without_entries(counts, share, np.random.default_rng([seed, counts.nnz]))


def independent(model: Any, pairs: Ints) -> Floats:
    """The log density of pairs of positions if rows and columns were independent."""
    found: Floats = model._log_item_density(0)[pairs[:, 0]] + model._log_item_density(1)[pairs[:, 1]]
    return found


def code_lengths(model: Any, counts: sparse.csr_array | None) -> dict[str, float]:
    """Nats per token under the model, and under independence of rows and columns."""
    if counts is None:
        return {}
    entries = counts.tocoo()
    pairs = np.column_stack(entries.coords)
    total = max(float(entries.data.sum()), 1.0)
    return {
        "nats_per_token": -float(entries.data @ model.score_samples(pairs)) / total,
        "nats_per_token_if_independent": -float(entries.data @ independent(model, pairs)) / total,
    }


def codes_of(model: Any, table: pl.DataFrame, axes: Sequence[str]) -> Ints:
    """Positions of the ids in the model's rows and columns, (N, 2); −1 for ids that the model has not seen."""
    ids = like_items(table, axes, model.modes_)
    return np.column_stack([mode.encode(ids[name].to_numpy()) for mode, name in zip(model.modes_, axes)])
