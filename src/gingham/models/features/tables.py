"""Tables of categories: clusters of instances, and what they tell about features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.features import KIND

if TYPE_CHECKING:
    from gingham.models.features.estimator import InformationClustering
    from gingham.summary.values import Observed

EXAMPLE = "patient,symptom"
MOST_FEATURES = 1000  # that a page shows: those the clusters tell most about


class FeatureTables(common.FamilyTables["InformationClustering"]):
    kind = KIND
    estimators = ("InformationClustering",)
    unused = ("loss", "beta", "objective", "solver", "merges", "alphabet", "bounds", "cold_start")
    no_path = "Clusters of features have no β: only their number is chosen (--clusters)."

    def fit(self, task: common.FitTask) -> common.FittedModel:
        table, options = task.table, task.options
        clusters = common.parse_clusters(options.clusters, len(options.axes))
        said = {"n_clusters": None if clusters is None else clusters[0]}
        model = self.made(options, said)
        if options.label is None:
            raise GinghamError("--model information clusters values of features: name their column with --label.")
        kept, _ = common.id_pairs(
            table, options.axes, options.label, EXAMPLE, self.kind, numbers=False, drop_missing=options.drop_missing
        )
        modes, codes = common.numbered(kept, options.axes)
        names, values = np.unique(kept[options.label].cast(pl.String).to_numpy().astype(str), return_inverse=True)
        matrix = filled(codes, values, (modes[0].n_items, modes[1].n_items))
        share = options.holdout or 0.0
        learned = features_to_learn(modes[1].n_items, share, options.seed)
        features = [str(item) for item in modes[1].items.tolist()]
        text = np.full(matrix.shape, None, dtype=object)  # with the names of values, for people
        text[codes[0], codes[1]] = names[values]
        called = {modes[0].name: modes[0].items, modes[1].name: np.array(features)[learned]}
        model.fit(text[:, learned], names=called, **common.accepted(model.fit, task.arguments))
        notes = self.notes(
            options,
            items=[[str(item) for item in modes[0].items.tolist()]],
            features=[features[j] for j in learned],
            label=options.label,
            values=names.tolist(),
            answers=commonest(matrix[:, learned], model.labels_, len(names)),
            holdout=share,
        )
        facts = {
            "rows": table.height,
            **self.facts(model),
            "instances": modes[0].n_items,
            "features": len(learned),
            "clusters": int(model.labels_.max()) + 1,
            "observed_information": model.observed_information_,
            "chance_information": model.chance_information_,
        }
        if len(learned) < modes[1].n_items:
            rest = np.setdiff1d(np.arange(modes[1].n_items), learned)
            facts["held_out_features"] = len(rest)
            facts["held_out_information"] = model.unobserved_information(matrix[:, rest])
        return common.FittedModel(model, notes, facts)

    def sides(self, task: common.FitTask) -> dict[str, list[object]]:
        """Instances, and the values of features: "fever = yes"."""
        feature = task.options.axes[-1]
        values = task.table.select(pl.format("{} = {}", feature, str(task.options.label)).alias(feature))
        return super().sides(task) | {feature: values[feature].drop_nulls().unique(maintain_order=True).to_list()}

    def predict(self, model: InformationClustering, table: pl.DataFrame, asked: common.PredictOptions) -> pl.DataFrame:
        """The table with the commonest value of each feature in the instance's cluster."""
        notes = model.notes_
        asked.need_defaults("Clusters of instances predict the commonest value")
        if "answers" not in notes:
            raise GinghamError("This file was not written by gingham fit: it does not know the values of the features.")
        columns = list(notes["axes"])
        common.need_columns(table, columns, "The model")
        row, column = (
            common.places(names, table, axis) for names, axis in zip((notes["items"][0], notes["features"]), columns)
        )
        names = np.array([*notes["values"], None], dtype=object)
        known = (row >= 0) & (column >= 0)
        answer = np.where(
            known, notes["answers"][model.labels_[np.maximum(row, 0)], np.maximum(column, 0)], len(names) - 1
        )
        predicted = pl.Series(f"predicted_{notes['label']}", names[answer].tolist(), dtype=pl.String)
        return common.with_predictions(table, predicted)

    def open(self, model: InformationClustering, source: common.TableSource) -> FeaturesWithModel:
        notes = model.notes_
        if "features" not in notes:
            raise GinghamError("This file was not written by gingham fit: it does not know the names of its features.")
        axes, label = list(source.axes or notes["axes"]), source.label or notes["label"]
        kept, _ = common.id_pairs(
            source.table, axes, label, EXAMPLE, self.kind, numbers=False, drop_missing=source.drop_missing
        )
        row = common.places(notes["items"][0], kept, axes[0])
        if (row < 0).any():
            at = int(np.flatnonzero(row < 0)[0])
            raise GinghamError(f"Column {axes[0]!r}, row {at}: this instance was not in the table that was fitted.")
        features, column = np.unique(kept[axes[1]].cast(pl.String).to_numpy().astype(str), return_inverse=True)
        values, value = np.unique(kept[label].cast(pl.String).to_numpy().astype(str), return_inverse=True)
        matrix = filled((row, column), value, (len(notes["items"][0]), len(features)))
        return FeaturesWithModel(model, notes, axes, label, features, values, matrix)

    def clusters(self, model: InformationClustering) -> pl.DataFrame:
        return common.cluster_rows_of_notes(model, model.labels_)


def features_to_learn(n: int, share: float, seed: int) -> Ints:
    """Positions of the features that the fit sees; the others are set aside."""
    common.check_holdout(share)
    held = round(share * n)
    if held == n:
        raise GinghamError("--holdout leaves no feature to learn from.")
    return np.sort(np.random.default_rng([seed, n]).permutation(n)[held:])


def filled(codes: Sequence[Ints], values: AnyArray, shape: tuple[int, int]) -> Floats:
    """Instances × features with value codes inside; pairs that do not occur are missing."""
    matrix = np.full(shape, np.nan)
    matrix[codes[0], codes[1]] = values
    return matrix


def commonest(matrix: Floats, labels: Ints, n_values: int) -> Ints:
    """The commonest value of each feature in each cluster, (clusters, features); overall where none was seen."""
    k, d = int(labels.max()) + 1, matrix.shape[1]
    rows, columns = np.nonzero(np.isfinite(matrix))
    value = matrix[rows, columns].astype(np.int64)
    table = np.zeros((k, d, n_values))
    np.add.at(table, (labels[rows], columns, value), 1.0)
    overall = table.sum(axis=0)
    empty = table.sum(axis=2) == 0
    table[empty] = np.broadcast_to(overall, table.shape)[empty]
    return table.argmax(axis=2)


@dataclass(eq=False)
class FeaturesWithModel(common.ModelWithData["InformationClustering"]):
    """Instances × features; some of the features may be new to the model."""

    axes: list[str]
    label: str
    features: AnyArray
    values: AnyArray
    matrix: Floats

    @property
    def new(self) -> Bools:
        return ~np.isin(self.features, np.array(self.notes["features"], dtype=str))

    def facts(self) -> common.Facts:
        return {
            "information, nats a feature": round(float(self.model.observed_information_), 4),
            "of shuffled clusters": round(float(self.model.chance_information_), 4),
            "sweeps": self.model.n_iter_,
        }

    def errors(self) -> dict[str, float]:
        if not self.new.any():
            return {}
        held = self.matrix[:, self.new]
        return {
            "information_on_new_features": self.model.unobserved_information(held),
            "information_of_shuffled_clusters": self.model.chance_of(held),
        }

    @property
    def label_name(self) -> str:
        return self.label

    def observed(self) -> Observed:
        learned = [int(np.flatnonzero(self.features == name)[0]) for name in self.notes["features"]
                   if name in self.features]  # fmt: skip
        return self.model.observed(self.matrix[:, learned])

    def certificates(self, request: common.CertificateRequest) -> common.Facts:
        request.need_no_tests("A set of clusters")
        request.need_defaults("The information about new features")
        if not self.new.any():
            raise GinghamError(
                "Every feature in the file took part in the fit, and what clusters tell about those proves nothing "
                "about others. Set some aside with gingham fit --holdout .3, or give a file with other features of "
                "the same instances."
            )
        return {"features that the fit has not seen": self.model.certify_new(self.matrix[:, self.new], request.delta)}


TABLES = FeatureTables()
