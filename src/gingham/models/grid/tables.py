"""Checkerboards of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gingham.models import tables as common
from gingham.models.base import Persistent
from gingham.models.grid import KIND

if TYPE_CHECKING:
    from gingham.models.grid.estimator import CoClusteringClassifier, CoClusteringRegressor


class GridWithData(common.TuplesWithModel):
    """A checkerboard beside its rows: the one model of tuples whose clusters can be merged."""

    def simplified(self, clusters: str | None, max_loss: float | None) -> tuple[Persistent, common.Facts]:
        from gingham.selection import simplify

        model, seen = self.model, self.rows
        wanted = common.parse_clusters(clusters, len(model.n_clusters_))
        small = simplify(model, seen.X, seen.y, wanted, max_loss, seen.weight)
        facts: common.Facts = {"clusters_before": model.n_clusters_, "clusters": small.n_clusters_}
        for name, one in (("loss_before", model), ("loss", small)):
            facts[name] = one.posterior_.gibbs_loss(one.sample(seen.X, seen.y, seen.weight))
        return small, facts


class GridTables(common.TupleTables):
    kind = KIND
    estimators = ("CoClusteringRegressor", "CoClusteringClassifier")
    with_data = GridWithData
    unused = ("merges", "cold_start")
    cross_validates = True

    def estimator(
        self, options: common.FitOptions, labels: common.LabelOptions
    ) -> CoClusteringRegressor | CoClusteringClassifier:
        return self.made(options, self.said(options, labels), which=int(labels.classify))

    def facts(self, model: Any) -> common.Facts:
        return {**super().facts(model), "loss": self.loss_name(model), "beta": model.beta_}


TABLES = GridTables()
