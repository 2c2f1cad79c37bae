"""Who took what, from a table of pairs: a ranking, and the groups of items that its reasons speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import polars as pl

from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.ranking import KIND

if TYPE_CHECKING:
    from gingham.models.ranking.estimator import BasketRanker
    from gingham.summary.values import Observed


class RankingTables(common.FamilyTables["BasketRanker"]):
    kind = KIND
    estimators = ("BasketRanker",)
    unused = (
        "label", "merges", "clusters", "loss", "beta", "alphabet", "bounds", "objective", "solver", "holdout",
        "cold_start",
    )  # fmt: skip
    no_path = "A ranking has no β: gingham fit chooses its settings on items that it hides from itself."

    def fit(self, task: common.FitTask) -> common.FittedModel:
        options = task.options
        model = self.made(options, {})
        kept, weights = common.id_pairs(
            task.table, options.axes, options.weight, "customer,product", self.kind, drop_missing=options.drop_missing
        )
        model.fit(kept.select(options.axes), sample_weight=weights)
        facts = {
            "rows": kept.height,
            **self.facts(model),
            "axes": dict(zip(options.axes, (len(model.users_), len(model.items_)))),
            "pairs_taken": int(model.baskets_.taken.nnz),
            "weights": dict(zip(("boards", "items", "factors"), model.selection_["settings"]["weights"])),
        }
        return common.FittedModel(model, self.notes(options, weight=options.weight), facts)

    def predict(self, model: BasketRanker, table: pl.DataFrame, asked: common.PredictOptions) -> NoReturn:
        raise GinghamError("A ranking predicts no labels: it lists what a user wants next, by gingham recommend.")

    def open(self, model: BasketRanker, source: common.TableSource) -> RankingWithData:
        common.need_columns(source.table, self.id_columns(model), "The model")
        return RankingWithData(model, model.notes_)

    def clusters(self, model: BasketRanker) -> pl.DataFrame:
        """The groups of items that reasons speak of."""
        axis = (model.notes_.get("axes") or ["user", "item"])[1]
        return common.cluster_rows(axis, model.items_.tolist(), model.groups_)


class RankingWithData(common.ModelWithData["BasketRanker"]):
    """A ranking remembers who took what; the page shows that in groups."""

    instead = "gingham simplify and certify do not take a ranking: fit again with fewer n_groups, in Python."

    @property
    def label_name(self) -> str:
        return "taken"

    def observed(self) -> Observed:
        return self.model.observed()

    def facts(self) -> common.Facts:
        settings = self.model.selection_["settings"]
        return {name.replace("_", " "): str(value) for name, value in settings.items()}

    def certificates(self, request: common.CertificateRequest) -> NoReturn:
        raise GinghamError(
            "A ranking is certified in Python, on items that were hidden from the fit: gg.certify_ranking. "
            "gingham recommend --page writes users' lists with their reasons."
        )


TABLES = RankingTables()
