"""Several views of the same objects from one table: components, scores, guarantees on objects set aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gingham.arrays import Bools, Floats
from gingham.data.views import objects_of
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.views import KIND

if TYPE_CHECKING:
    from gingham.models.views.estimator import ViewsModel
    from gingham.summary.values import Observed

MOST_FEATURES = 300  # of a view that a page shows: those with the largest weights
MOST_VALUES = 5_000_000  # of all views together, with fewer features where there are many objects
FEWEST = 20  # objects from which some are set aside without being asked


class ViewTables(common.FamilyTables["ViewsModel"]):
    kind = KIND
    estimators = ("PairwiseClusterAnalysis", "KernelCCA")
    unused = ("loss", "beta", "objective", "solver", "merges", "alphabet", "bounds", "cold_start")
    no_path = "Views have no β: gingham fit chooses ridge and components on objects set aside."

    def id_axes(self, options: common.FitOptions) -> tuple[str, ...]:
        return ()  # its columns are measurements

    def id_columns(self, model: ViewsModel) -> tuple[str, ...]:
        return ()

    def check_clusters(self, options: common.FitOptions) -> None:
        common.parse_clusters(options.clusters, 1)

    def fit(self, task: common.FitTask) -> common.FittedModel:
        table, options = task.table, task.options
        size = common.parse_clusters(options.clusters, 1)
        model = self.made(options, {"n_components": None if size is None else size[0]})
        groups = groups_of(options.axes)
        matrices = views(table, groups)
        share = (0.1 if table.height >= FEWEST else 0.0) if options.holdout is None else options.holdout
        learn, held = common.split(table.height, share, options.seed)
        named = [pl.DataFrame(matrix[learn], schema=group) for matrix, group in zip(matrices, groups)]
        model.fit(named, **common.accepted(model.fit, task.arguments))
        notes = self.notes(
            options,
            items=[[str(row) for row in np.flatnonzero(learn)]],
            axes=["object"],
            views=groups,
            holdout=share,
            fingerprint=common.fingerprint(table, [name for group in groups for name in group]),
        )
        facts = {"rows": table.height, **self.facts(model)}
        facts["objects"], facts["components"] = int(learn.sum()), model.n_components_
        facts["correlation"] = float(np.mean(model.correlations_))
        if held.sum() >= 3:
            facts["held_out_objects"] = int(held.sum())
            facts["held_out_correlation"] = model.score([matrix[held] for matrix in matrices])
        return common.FittedModel(model, notes, facts)

    def sides(self, task: common.FitTask) -> dict[str, list[object]]:
        columns = [name for group in groups_of(task.options.axes) for name in group]
        return {"object": list(range(task.table.height)), "feature": list(columns)}

    def predict(self, model: ViewsModel, table: pl.DataFrame, asked: common.PredictOptions) -> pl.DataFrame:
        """The table with the cluster of each object (its strongest component, from 1) and its mean scores."""
        asked.need_defaults("Views predict a cluster and scores")
        matrices = views(table, columns_of(model))
        scores = np.mean(model.transform(matrices), axis=0)
        columns = [pl.Series("predicted_cluster", model.predict(matrices) + 1)]
        columns += [pl.Series(f"score_{c + 1}", scores[:, c]) for c in range(scores.shape[1])]
        return common.with_predictions(table, *columns)

    def open(self, model: ViewsModel, source: common.TableSource) -> ViewsWithModel:
        groups = columns_of(model)
        matrices = views(source.table, groups)
        notes = model.notes_
        names = [name for group in groups for name in group]
        if notes.get("fingerprint") == common.fingerprint(source.table, names):
            learn, held = common.split(source.table.height, float(notes["holdout"]), int(notes["seed"]))
        else:  # other objects: none of them was seen, unless the model knows them
            learn = np.zeros(source.table.height, bool)
            met = model.fit_rows_[0].met(objects_of(matrices)) if model.fit_rows_ else None
            if met is not None and met.seen:
                learn[met.rows if met.everything else slice(None)] = True
            held = ~learn
        return ViewsWithModel(model, notes, groups, matrices, learn, held)

    def clusters(self, model: ViewsModel) -> pl.DataFrame:
        return common.cluster_rows_of_notes(model, model.labels_)


def groups_of(axes: Sequence[str]) -> list[list[str]]:
    """Columns of each view from "x1,x2;y1,y2": columns of one view with commas, views with semicolons."""
    groups = [[name.strip() for name in part.split(",") if name.strip()] for part in ",".join(axes).split(";")]
    if len(groups) < 2 or not all(groups):
        raise GinghamError("--model pairwise needs two or more views: --axes 'x1,x2;y1,y2,y3'.")
    return groups


def views(table: pl.DataFrame, groups: Sequence[Sequence[str]]) -> list[Floats]:
    """One matrix of numbers per view."""
    for group in groups:
        common.need_columns(table, group, "--axes")
        for name in group:
            column = table[name]
            if not column.dtype.is_numeric() or column.null_count() or not np.isfinite(column.to_numpy()).all():
                raise GinghamError(f"Column {name!r} of a view must hold finite numbers.")
    return [table.select(group).to_numpy().astype(np.float64) for group in groups]


def columns_of(model: ViewsModel) -> list[list[str]]:
    found = model.notes_.get("views")
    if found is None:
        raise GinghamError("This file was not written by gingham fit: it does not know the columns of its views.")
    return [list(group) for group in found]


@dataclass(eq=False)
class ViewsWithModel(common.ModelWithData["ViewsModel"]):
    """Objects of the fit and objects that it has not seen."""

    instead = "Components come in the order of their strength: fit again with fewer --clusters."

    groups: list[list[str]]
    matrices: list[Floats]
    learn: Bools
    held: Bools

    def facts(self) -> common.Facts:
        return {
            "views": len(self.groups),
            "components": self.model.n_components_,
            "ridge": ", ".join(f"{r:g}" for r in self.model.ridge_),
            "correlation": round(float(np.mean(self.model.correlations_)), 4),
        }

    def errors(self) -> dict[str, float]:
        if self.held.sum() < 3:
            return {}
        return {"correlation_of_views": self.model.score([matrix[self.held] for matrix in self.matrices])}

    @property
    def label_name(self) -> str:
        return "value"

    def observed(self) -> Observed:
        return self.model.observed([matrix[self.learn] for matrix in self.matrices])

    def without_groups(self, certificates: common.Facts, request: common.CertificateRequest) -> dict[str, float]:
        return {name: float(found.chance) for name, found in certificates.items()}

    def certificates(self, request: common.CertificateRequest) -> common.Facts:
        """Of the components as pairwise clusters, on objects that the fit has not seen."""
        from gingham.certificates.clusters import certify_clusters
        from gingham.models.views.explanatory import chance, contradiction, coverage

        request.need_no_tests("A set of views")
        request.need_defaults("A set of views")
        n = int(self.held.sum())
        if not n:
            raise GinghamError(
                "The components were found from these very objects, which proves nothing about others. Set some aside "
                "with gingham fit --holdout .3, or give a file with other objects."
            )
        members = self.model.memberships([matrix[self.held] for matrix in self.matrices])
        even = np.full(members[0].shape[1], 1.0 / members[0].shape[1])
        risks, covered, by_chance = (fact(members, False) for fact in (contradiction, coverage, chance))
        found = certify_clusters(even, even, risks, covered, by_chance, n, request.delta)
        return {"objects that the fit has not seen": found}


TABLES = ViewTables()
