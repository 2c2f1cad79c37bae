"""Who took what, from pairs of ids: a ranking, and the groups of items that its reasons speak of."""

from __future__ import annotations

from typing import Any, NoReturn

import polars as pl

from gingham.cli.tables.adapter import (
    Facts,
    FitTask,
    Opened,
    TableSource,
    axes_of,
    cluster_rows,
    facts_of_fit,
    unfitted,
)
from gingham.cli.tables.arguments import CertificateRequest, PredictOptions
from gingham.cli.tables.columns import id_pairs, need_columns
from gingham.cli.tables.kinds import Kind
from gingham.errors import GinghamError
from gingham.models.fit_record import FitRecord


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    options = task.options
    model = unfitted(kind, options, {})
    kept, weights = id_pairs(kind, task.table, options.axes, options.weight, drop_missing=options.drop_missing)
    model.fit(kept.select(options.axes), sample_weight=weights)
    model.record_ = FitRecord(options.axes, weight=options.weight, seed=options.seed)
    return model, {
        "rows": kept.height,
        **facts_of_fit(kind, model),
        "axes": dict(zip(options.axes, (len(model.users_), len(model.items_)))),
        "pairs_taken": int(model.baskets_.taken.nnz),
        "weights": dict(zip(("boards", "items", "factors"), model.selection_["settings"]["weights"])),
    }


def id_columns(model: Any) -> tuple[str, ...]:
    return axes_of(model, ())


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> NoReturn:
    raise GinghamError("A ranking predicts no labels: it lists what a user wants next, by gingham recommend.")


def clusters(model: Any) -> pl.DataFrame:
    """The groups of items that reasons speak of."""
    return cluster_rows(axes_of(model, ("user", "item"))[1], model.items_.tolist(), model.groups_)


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """A ranking remembers who took what; the page shows that in groups."""
    need_columns(source.table, id_columns(model), "The model")
    settings = model.selection_["settings"]
    return Opened(
        model, "taken", (), {name.replace("_", " "): str(value) for name, value in settings.items()},
        certificates, model.predict_codes,
    )  # fmt: skip


def certificates(request: CertificateRequest) -> NoReturn:
    raise GinghamError(
        "A ranking is certified in Python, on items that were hidden from the fit: gg.certify_ranking. "
        "gingham recommend --page writes users' lists with their reasons."
    )
