"""Tables of categories with holes: an instance, a feature and its value in each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cli.tables.adapter import (
    Facts,
    FitTask,
    Opened,
    TableSource,
    axes_of,
    clusters_by_record,
    facts_of,
    facts_of_fit,
    unfitted,
)  # fmt: skip
from gingham.cli.tables.adapter import sides as sides_of_columns
from gingham.cli.tables.arguments import CertificateRequest, PredictOptions, parse_clusters
from gingham.cli.tables.columns import check_holdout, id_pairs, need_columns, numbered, places, with_predictions
from gingham.cli.tables.kinds import Kind
from gingham.errors import GinghamError
from gingham.models.fit_record import FitRecord


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    options = task.options
    clusters = parse_clusters(options.clusters, len(options.axes))
    model = unfitted(kind, options, {"n_clusters": None if clusters is None else clusters[0]})
    if options.label is None:
        raise GinghamError("--model information clusters values of features: name their column with --label.")
    kept, _ = id_pairs(kind, task.table, options.axes, options.label, False, options.drop_missing)
    (instances, columns), codes = numbered(kept, options.axes)
    names, values = coded(kept[options.label])
    matrix = filled(codes, values, (instances.n_items, columns.n_items))
    learned, held = divided(columns.n_items, options.holdout or 0.0, options.seed)
    features = np.array([str(item) for item in columns.items.tolist()])
    text = np.full(matrix.shape, None, dtype=object)  # with the names of values, for people
    text[codes[0], codes[1]] = names[values]
    called = {instances.name: instances.items, columns.name: features[learned]}
    model.fit(text[:, learned], names=called, **task.accepted_by(model.fit))
    model.record_ = FitRecord(
        options.axes, options.label, seed=options.seed, holdout=options.holdout or 0.0,
        items=(tuple(map(str, instances.items.tolist())),), features=tuple(features[learned].tolist()),
        values=tuple(names.tolist()), answers=commonest(matrix[:, learned], model.labels_, len(names)),
    )  # fmt: skip
    facts = {
        "rows": task.table.height,
        **facts_of_fit(kind, model),
        "instances": instances.n_items,
        "features": len(learned),
        "clusters": int(model.labels_.max()) + 1,
        "observed_information": model.observed_information_,
        "chance_information": model.chance_information_,
    }
    if len(held):
        facts["held_out_features"] = len(held)
        facts["held_out_information"] = model.unobserved_information(matrix[:, held])
    return model, facts


def sides(task: FitTask) -> dict[str, list[object]]:
    """Instances, and the values of features: "fever = yes"."""
    feature = task.options.axes[-1]
    values = task.table.select(pl.format("{} = {}", feature, str(task.options.label)).alias(feature))
    return sides_of_columns(task) | {feature: values[feature].drop_nulls().unique(maintain_order=True).to_list()}


def id_columns(model: Any) -> tuple[str, ...]:
    return axes_of(model, ())


def recorded(model: Any) -> FitRecord:
    if model.record_ is None:
        raise GinghamError("This file was not written by gingham fit: it does not have the names of the features.")
    found: FitRecord = model.record_
    return found


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
    """The table with the commonest value of each feature in the instance's cluster."""
    record = recorded(model)
    need_columns(table, record.axes, "The model")
    row, column = (places(names, table, axis) for names, axis in zip((record.items[0], record.features), record.axes))
    names, answers = np.array([*record.values, None], dtype=object), np.asarray(record.answers)
    known = (row >= 0) & (column >= 0)
    answer = np.where(known, answers[model.labels_[np.maximum(row, 0)], np.maximum(column, 0)], len(names) - 1)
    return with_predictions(table, pl.Series(f"predicted_{record.label}", names[answer].tolist(), dtype=pl.String))


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """Instances × features; some of the features may be new to the model."""
    record = recorded(model)
    axes, label = source.axes or record.axes, source.label or str(record.label)
    kept, _ = id_pairs(kind, source.table, axes, label, False, source.drop_missing)
    row = places(record.items[0], kept, axes[0])
    if (row < 0).any():
        at = int(np.flatnonzero(row < 0)[0])
        raise GinghamError(f"Column {axes[0]!r}, row {at}: this instance was not in the table that was fitted.")
    (features, column), (_, value) = coded(kept[axes[1]]), coded(kept[label])
    matrix = filled((row, column), value, (len(record.items[0]), len(features)))
    new = ~np.isin(features, np.array(record.features, dtype=str))
    learned = [int(np.flatnonzero(features == name)[0]) for name in record.features if name in features]
    held = matrix[:, new]

    def certificates(request: CertificateRequest) -> Facts:
        if not new.any():
            raise GinghamError(
                "Every feature in the file took part in the fit, and what clusters tell about those proves nothing "
                "about others. Set some aside with gingham fit --holdout .3, or give a file with other features of "
                "the same instances."
            )
        return {"features that the fit has not seen": model.certify_new(held, request.delta)}

    errors = {}
    if new.any():
        errors["information_on_new_features"] = model.unobserved_information(held)
        errors["information_of_shuffled_clusters"] = model.chance_of(held)
    return Opened(
        model, label, (matrix[:, learned],), facts_of(kind, model), certificates, model.predict_codes, errors=errors
    )


def clusters(model: Any) -> pl.DataFrame:
    return clusters_by_record(model, "" if model.record_ is None else model.record_.axes[0])


def coded(column: pl.Series) -> tuple[AnyArray, Ints]:
    """The texts that occur in a column, sorted, and the position of each row among them."""
    names, codes = np.unique(column.cast(pl.String).to_numpy().astype(str), return_inverse=True)
    return names, codes


def divided(n: int, share: float, seed: int) -> tuple[Ints, Ints]:
    """Positions of the features that the fit sees, and of those that are set aside."""
    check_holdout(share)
    n_held = round(share * n)
    if n_held == n:
        raise GinghamError("--holdout leaves no feature to learn from.")
    order = np.random.default_rng([seed, n]).permutation(n)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def filled(codes: Sequence[Ints], values: AnyArray, shape: tuple[int, int]) -> Floats:
    """Instances × features with value codes inside; pairs that do not occur are missing."""
    matrix = np.full(shape, np.nan)
    matrix[codes[0], codes[1]] = values
    return matrix


def commonest(matrix: Floats, labels: Ints, n_values: int) -> Ints:
    """The commonest value of each feature in each cluster, (clusters, features); overall where none was seen."""
    k, d = int(labels.max()) + 1, matrix.shape[1]
    rows, columns = np.nonzero(np.isfinite(matrix))
    value = matrix[rows, columns].astype(np.int64)
    table = np.zeros((k, d, n_values))
    np.add.at(table, (labels[rows], columns, value), 1.0)
    overall = table.sum(axis=0)
    empty = table.sum(axis=2) == 0
    table[empty] = np.broadcast_to(overall, table.shape)[empty]
    found: Ints = table.argmax(axis=2)
    return found
