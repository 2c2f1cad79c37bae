"""Bayesian co-clustering of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gingham.data import Alphabet
from gingham.models.tables import (
    BoardView,
    Facts,
    FitOptions,
    Interval,
    LabelOptions,
    Rows,
    TuplesWithModel,
    TupleTables,
)

if TYPE_CHECKING:
    from gingham.models.bayesian.estimator import BayesianCoClustering


class BayesianTables(TupleTables):
    kind = "bayesian"
    estimators = ("BayesianCoClustering",)
    unused = ("loss", "beta", "objective", "solver", "merges", "cold_start")
    no_path = "Bayesian co-clustering has no β: its concentrations are validated by gingham fit."

    def estimator(self, options: FitOptions, labels: LabelOptions) -> BayesianCoClustering:
        from gingham.models.bayesian.estimator import BayesianCoClustering

        return self.made(BayesianCoClustering, options, self.said(options, labels))

    def labels(self, model: Any) -> Alphabet | Interval | None:
        """Its beliefs know the labels; the checkerboard that is drawn of them may know bounds only."""
        letters = getattr(model.beliefs_.cells[0], "alphabet", None)
        return letters if letters is not None else super().labels(model)

    def beside(self, model: Any, notes: Facts, label: str, seen: Rows, unseen: Rows | None) -> TuplesWithModel:
        return BayesianWithData(self, model, notes, label, seen, unseen)


class BayesianWithData(TuplesWithModel):
    instead = "Its memberships are mixed: fit again with fewer --clusters."

    def facts(self) -> Facts:
        model = self.model
        return {
            "tuples": len(self.seen),
            "family": model.family_,
            "evidence bound": round(model.elbo_, 1),
            "sweeps": model.n_iter_,
        }

    def board(self) -> BoardView:
        seen = self.seen
        return self.board_of(self.model.posterior_, self.model.sample(seen.X, seen.y, seen.weight), predict=True)


TABLES = BayesianTables()
