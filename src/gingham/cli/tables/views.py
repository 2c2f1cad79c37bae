"""Several views of the same objects: columns of measurements, an object per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from gingham.arrays import Floats
from gingham.cli.tables.adapter import (
    Facts,
    FitTask,
    Opened,
    TableSource,
    clusters_by_record,
    facts_of,
    facts_of_fit,
    unfitted,
)  # fmt: skip
from gingham.cli.tables.arguments import CertificateRequest, PredictOptions, parse_clusters, parse_views
from gingham.cli.tables.columns import fingerprint, need_columns, split, with_predictions
from gingham.cli.tables.kinds import Kind
from gingham.data.views import objects_of
from gingham.errors import GinghamError
from gingham.models.fit_record import FitRecord

FEWEST = 20  # objects from which some are set aside without being asked
Groups = tuple[tuple[str, ...], ...]


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    table, options = task.table, task.options
    size = parse_clusters(options.clusters, 1)
    model = unfitted(kind, options, {"n_components": None if size is None else size[0]})
    groups = parse_views(options.axes)
    matrices = views(table, groups)
    share = (0.1 if table.height >= FEWEST else 0.0) if options.holdout is None else options.holdout
    learn, held = split(table.height, share, options.seed)
    named = [pl.DataFrame(matrix[learn], schema=list(group)) for matrix, group in zip(matrices, groups)]
    model.fit(named, **task.accepted_by(model.fit))
    model.record_ = FitRecord(
        seed=options.seed, holdout=share, views=groups, fingerprint=fingerprint(table, names_in(groups)),
        items=(tuple(str(row) for row in np.flatnonzero(learn)),),
    )  # fmt: skip
    facts = {"rows": table.height, **facts_of_fit(kind, model)}
    facts["objects"], facts["components"] = int(learn.sum()), model.n_components_
    facts["correlation"] = float(np.mean(model.correlations_))
    if held.sum() >= 3:
        facts["held_out_objects"] = int(held.sum())
        facts["held_out_correlation"] = model.score([matrix[held] for matrix in matrices])
    return model, facts


def sides(task: FitTask) -> dict[str, list[object]]:
    return {"object": list(range(task.table.height)), "feature": list(names_in(parse_views(task.options.axes)))}


def id_columns(model: Any) -> tuple[str, ...]:
    return ()  # its columns are measurements


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
    """The table with the cluster of each object (its strongest component, from 1) and its mean scores."""
    matrices = views(table, recorded(model).views)
    scores = np.mean(model.transform(matrices), axis=0)
    columns = [pl.Series("predicted_cluster", model.predict(matrices) + 1)]
    columns += [pl.Series(f"score_{c + 1}", scores[:, c]) for c in range(scores.shape[1])]
    return with_predictions(table, *columns)


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """Objects of the fit and objects that it has not seen."""
    record, table = recorded(model), source.table
    matrices = views(table, record.views)
    if record.fingerprint == fingerprint(table, names_in(record.views)):
        learn, held = split(table.height, record.holdout, record.seed)
    else:  # other objects: none of them was seen, unless the model knows them
        learn = np.zeros(table.height, bool)
        met = model.fit_rows_[0].met(objects_of(matrices)) if model.fit_rows_ else None
        if met is not None and met.seen:
            learn[met.rows if met.everything else slice(None)] = True
        held = ~learn
    apart, n = [matrix[held] for matrix in matrices], int(held.sum())

    def certificates(request: CertificateRequest) -> Facts:
        """Of the components as pairwise clusters, on objects that the fit has not seen."""
        from gingham.certificates.clusters import certify_clusters
        from gingham.models.views.explanatory import chance, contradiction, coverage

        if not n:
            raise GinghamError(
                "The components were found from these very objects, which proves nothing about others. Set some aside "
                "with gingham fit --holdout .3, or give a file with other objects."
            )
        members = model.memberships(apart)
        even = np.full(members[0].shape[1], 1.0 / members[0].shape[1])
        risks, covered, by_chance = (fact(members, False) for fact in (contradiction, coverage, chance))
        found = certify_clusters(even, even, risks, covered, by_chance, n, request.delta)
        return {"objects that the fit has not seen": found}

    return Opened(
        model, "value", ([matrix[learn] for matrix in matrices],), facts_of(kind, model), certificates,
        model.predict_codes, lambda found, request: {name: float(one.chance) for name, one in found.items()},
        {"correlation_of_views": model.score(apart)} if n >= 3 else {}, held=held,
    )  # fmt: skip


def clusters(model: Any) -> pl.DataFrame:
    return clusters_by_record(model, "object")


def recorded(model: Any) -> FitRecord:
    if model.record_ is None:
        raise GinghamError("This file was not written by gingham fit: it does not have the columns of its views.")
    found: FitRecord = model.record_
    return found


def names_in(groups: Groups) -> list[str]:
    return [name for group in groups for name in group]


def views(table: pl.DataFrame, groups: Sequence[Sequence[str]]) -> list[Floats]:
    """One matrix of numbers per view."""
    for group in groups:
        need_columns(table, group, "--axes")
        for name in group:
            column = table[name]
            if not column.dtype.is_numeric() or column.null_count() or not np.isfinite(column.to_numpy()).all():
                raise GinghamError(f"Column {name!r} of a view must hold finite numbers.")
    return [table.select(group).to_numpy().astype(np.float64) for group in groups]
