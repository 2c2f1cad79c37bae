"""Layers of checkerboards of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gingham.data import Alphabet
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.layers import KIND

if TYPE_CHECKING:
    from gingham.models.layers.estimator import LayeredCoClusteringRegressor


class LayersWithData(common.TuplesWithModel):
    instead = "Its layers add up: simplify one checkerboard (--model coclustering)."

    def facts(self) -> common.Facts:
        noise = round(float(np.sqrt(self.model.noise_)), 4)
        return {"tuples": len(self.rows), "layers": len(self.model.layers_), "noise σ": noise}


class LayersTables(common.TupleTables):
    kind = KIND
    estimators = ("LayeredCoClusteringRegressor",)
    with_data = LayersWithData
    unused = ("loss", "beta", "objective", "solver", "merges", "cold_start")
    no_path = "Layers have no β: their noise is measured, not chosen."

    def estimator(self, options: common.FitOptions, labels: common.LabelOptions) -> LayeredCoClusteringRegressor:
        if labels.classify:
            raise GinghamError("--model layered predicts numbers, and the label column holds text.")
        # Bounds are for its certificate, which speaks of predictions: the notes of the model keep them.
        return self.made(options, {**self.said(options, labels), "bounds": None})

    def labels(self, model: Any) -> Alphabet | None:
        letters: Alphabet | None = model.alphabet_
        return letters

    def judged_by(self, model: Any) -> str:
        return "quadratic"  # what layers make small

    def has_posterior(self, model: Any) -> bool:
        return False

    def clusters(self, model: Any) -> pl.DataFrame:
        layer = model.layers_[0]
        sides = zip(layer.modes, layer.labels)
        return pl.concat([common.cluster_rows(mode.name, mode.items.tolist(), labels) for mode, labels in sides])


TABLES = LayersTables()
