"""Who took what, from pairs of ids: a ranking, and the groups of items that its reasons speak of."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import polars as pl
from sklearn.base import clone

from gingham.cli.tables import adapter
from gingham.cli.tables.adapter import Facts, FitTask, Opened, TableSource
from gingham.cli.tables.arguments import CertificateRequest, PredictOptions
from gingham.cli.tables.columns import id_pairs, need_columns
from gingham.cli.tables.kinds import Kind
from gingham.data import Mode
from gingham.data.draws import fresh_seed
from gingham.errors import GinghamError
from gingham.models.fit_record import FitRecord
from gingham.models.ranking.fit import MEMBERS
from gingham.summary.item_tables import properties_of


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    options = task.options
    model = adapter.unfitted(kind, task, {"names": titles(task)})
    kept, weights = id_pairs(kind, task.table, options.axes, options.weight, drop_missing=options.drop_missing)
    model.fit(kept.select(options.axes), sample_weight=weights)
    model._record = FitRecord(options.axes, weight=options.weight, seed=options.seed, order=fresh_seed())
    return model, {
        "rows": kept.height,
        **adapter.facts_of_fit(kind, model),
        "axes": dict(zip(options.axes, (len(model.users_), len(model.items_)))),
        "pairs_taken": int(model.baskets_.taken.nnz),
        "weights": dict(zip(MEMBERS, model.selection_["settings"]["weights"])),
    }


def titles(task: FitTask) -> dict[object, str] | None:
    """The titles of items by their ids, from the table about them."""
    name = task.options.axes[-1]
    if name not in task.info:
        return None
    items = Mode.of(task.table[name].drop_nulls().to_numpy(), name)
    found = properties_of(task.info[name], items).titles
    return None if found is None else dict(zip(items.items.tolist(), found.tolist()))


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> NoReturn:
    raise GinghamError("A ranking does not predict labels. gingham recommend lists items for each user.")


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """A ranking remembers who took what; the page shows that in groups."""
    need_columns(source.table, adapter.id_columns(model), "The model")
    settings = model.selection_["settings"]
    return Opened(
        model, "taken", (), {name.replace("_", " "): str(value) for name, value in settings.items()},
        partial(certificates, model, source.table), model._predict_codes,
    )  # fmt: skip


def certificates(model: Any, table: pl.DataFrame, request: CertificateRequest) -> Facts:
    """The same ranker with the same settings, fitted anew on some users and tested on others."""
    from gingham.certificates.ranking import certify_ranking

    if (request.strata, request.alphabet, request.bounds, request.population) != (None, None, None, None):
        raise GinghamError(
            "A ranking is certified by what its lists of 20 miss: leave --strata, --alphabet, --bounds and "
            "--population out."
        )
    record = model._record or FitRecord()
    another = request.seed is not None and request.seed != record.order
    return {
        "users that are set aside": certify_ranking(
            clone(model), table.select(adapter.id_columns(model)), delta=request.delta, candidates=1 + another,
            random_state=request.seed if another else record.order,
        )
    }  # fmt: skip
