"""Committees of models of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import polars as pl

from gingham import models
from gingham.arrays import AnyArray
from gingham.data import Alphabet
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.committee import KIND

if TYPE_CHECKING:
    from gingham.models.committee.estimator import Committee


class CommitteeWithData(common.TuplesWithModel):
    instead = "Every member has clusters of its own: simplify one checkerboard (--model coclustering)."

    def facts(self) -> common.Facts:
        return {"tuples": len(self.rows), "members": len(self.model.members_)}


class CommitteeTables(common.TupleTables):
    kind = KIND
    estimators = ("Committee",)
    with_data = CommitteeWithData
    unused = ("merges", "cold_start")
    no_path = "A committee shares the β of its members: look at --model coclustering."

    def estimator(self, options: common.FitOptions, labels: common.LabelOptions) -> Committee:
        member = cast(common.TupleTables, common.tables_of_kind("coclustering"))
        return models.Committee(member.estimator(options, labels), random_state=options.seed)

    def member_tables(self, model: Any) -> common.TupleTables:
        """The tables of the family of the members."""
        found = common.tables_of(model.members_[0])
        if not isinstance(found, common.TupleTables):
            raise GinghamError(f"A committee of {type(model.members_[0]).__name__} has no checkerboard to show.")
        return found

    def labels(self, model: Any) -> Alphabet | common.Interval | None:
        return self.member_tables(model).labels(model.members_[0])

    def judged_by(self, model: Any) -> Any:
        return self.member_tables(model).judged_by(model.members_[0])

    def label_values(self, model: Any) -> AnyArray | None:
        values: AnyArray = model.alphabet_
        return values

    def has_posterior(self, model: Any) -> bool:
        return self.member_tables(model).has_posterior(model.members_[0])

    def clusters(self, model: Any) -> pl.DataFrame:
        raise GinghamError("Every member of a committee has clusters of its own; list those of --model coclustering.")


TABLES = CommitteeTables()
