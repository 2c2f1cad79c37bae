"""Checkerboards of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gingham.models.base import Persistent
from gingham.models.tables import Facts, FitOptions, LabelOptions, Rows, TuplesWithModel, TupleTables, parse_clusters

if TYPE_CHECKING:
    from gingham.models.grid.estimator import CoClusteringClassifier, CoClusteringRegressor


class GridTables(TupleTables):
    kind = "coclustering"
    estimators = ("CoClusteringRegressor", "CoClusteringClassifier")
    unused = ("merges", "cold_start")
    cross_validates = True

    def estimator(self, options: FitOptions, labels: LabelOptions) -> CoClusteringRegressor | CoClusteringClassifier:
        from gingham.models.grid.estimator import CoClusteringClassifier, CoClusteringRegressor

        kind = CoClusteringClassifier if labels.classify else CoClusteringRegressor
        return self.made(kind, options, self.said(options, labels))

    def facts(self, model: Any) -> Facts:
        return {**super().facts(model), "loss": self.loss_name(model), "beta": model.beta_}

    def errors(self, model: Any, data: Rows) -> dict[str, float]:
        found = super().errors(model, data)
        if "mae" in found and model.posterior_.cells[0].n_answers:
            median = model.predict(data.X, rule="median")
            found["mae_of_median"] = float(np.average(np.abs(median - data.y), weights=data.weight))
        return found

    def beside(self, model: Any, notes: Facts, label: str, seen: Rows, unseen: Rows | None) -> TuplesWithModel:
        return GridWithData(self, model, notes, label, seen, unseen)


class GridWithData(TuplesWithModel):
    """A checkerboard beside its rows: the one model of tuples whose clusters can be merged."""

    def simplified(self, clusters: str | None, max_loss: float | None) -> tuple[Persistent, Facts]:
        from gingham.selection import simplify

        model, seen = self.model, self.seen
        wanted = parse_clusters(clusters, len(model.n_clusters_))
        small = simplify(model, seen.X, seen.y, wanted, max_loss, seen.weight)
        facts: Facts = {"clusters_before": model.n_clusters_, "clusters": small.n_clusters_}
        for name, one in (("loss_before", model), ("loss", small)):
            facts[name] = one.posterior_.gibbs_loss(one.sample(seen.X, seen.y, seen.weight))
        if self.unseen is not None:
            facts.update({f"held_out_{name}": value for name, value in self.tables.errors(small, self.unseen).items()})
        return small, facts


TABLES = GridTables()
