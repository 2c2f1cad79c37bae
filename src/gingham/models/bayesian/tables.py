"""Bayesian co-clustering of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gingham.data import Alphabet
from gingham.models import tables as common
from gingham.models.bayesian import KIND

if TYPE_CHECKING:
    from gingham.models.bayesian.estimator import BayesianCoClustering


class BayesianWithData(common.TuplesWithModel):
    instead = "Its memberships are mixed: fit again with fewer --clusters."

    def facts(self) -> common.Facts:
        model = self.model
        return {
            "tuples": len(self.rows),
            "family": model.family_,
            "evidence bound": round(model.elbo_, 1),
            "sweeps": model.n_iter_,
        }


class BayesianTables(common.TupleTables):
    kind = KIND
    estimators = ("BayesianCoClustering",)
    with_data = BayesianWithData
    unused = ("loss", "beta", "objective", "solver", "merges", "cold_start")
    no_path = "Bayesian co-clustering has no β: its concentrations are validated by gingham fit."

    def estimator(self, options: common.FitOptions, labels: common.LabelOptions) -> BayesianCoClustering:
        return self.made(options, self.said(options, labels))

    def labels(self, model: Any) -> Alphabet | common.Interval | None:
        """Its beliefs know the labels; the checkerboard that is drawn of them may know bounds only."""
        letters = getattr(model.beliefs_.cells[0], "alphabet", None)
        return letters if letters is not None else super().labels(model)


TABLES = BayesianTables()
