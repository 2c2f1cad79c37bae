"""Layers of checkerboards of labelled tuples from a table of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gingham.cells import Quadratic
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError
from gingham.models import tables as common
from gingham.models.layers import KIND

if TYPE_CHECKING:
    from gingham.models.layers.estimator import LayeredCoClusteringRegressor


class LayersWithData(common.TuplesWithModel):
    instead = "Its layers add up: simplify one checkerboard (--model coclustering)."

    def facts(self) -> common.Facts:
        noise = round(float(np.sqrt(self.model.noise_)), 4)
        return {"tuples": len(self.seen), "layers": len(self.model.layers_), "noise σ": noise}

    def board(self) -> common.BoardView:
        """Clusters of the strongest layer with the mean label of each block; predictions are the model's."""
        layer, modes = self.model.layers_[0], self.model.item_modes()
        columns = [column.to_numpy() for column in self.seen.X.get_columns()]
        sample = Sample.of(columns, np.asarray(self.seen.y, dtype=np.float64), self.seen.weight, modes=modes)
        assign = tuple(np.eye(m)[labels] for labels, m in zip(layer.labels, layer.cells.shape))
        posterior = Posterior(Structure.grid(modes), (Quadratic(),), assign, (np.zeros(0),)).refit(sample)
        note = (
            f"The clusters are those of the strongest of {len(self.model.layers_)} layers, with the mean label of each "
            "block; predictions, errors and guarantees are those of all layers together."
        )
        return self.board_of(posterior, sample, predict=True, note=note)


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

    def has_posterior(self, model: Any) -> bool:
        return False

    def clusters(self, model: Any) -> pl.DataFrame:
        layer = model.layers_[0]
        sides = zip(layer.modes, layer.labels)
        return pl.concat([common.cluster_rows(mode.name, mode.items.tolist(), labels) for mode, labels in sides])


TABLES = LayersTables()
