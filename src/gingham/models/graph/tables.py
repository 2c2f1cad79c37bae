"""Graphs on the command line: edges in, blocks, guarantees over all pairs, coarser blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from gingham.cells import Quadratic
from gingham.cli.columns import id_pairs
from gingham.cli.fit_options import Wish
from gingham.cli.session import Asked, Drawing, Opened, Source
from gingham.cli.tables import like_items, need_columns
from gingham.data.graphs import PairSample
from gingham.errors import GinghamError

EXAMPLE = "from,to"


def fit(table: pl.DataFrame, wish: Wish, model: Any, more: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Cluster the nodes; the notes to store and the facts to show."""
    if wish.holdout:
        raise GinghamError("A graph is certified on all its pairs, so that nothing is set aside: leave --holdout out.")
    model.fit(frame_of(table, wish.axes, wish.weight or wish.label), **more)
    return {"label": wish.label, "weight": wish.weight}, {}


def frame_of(table: pl.DataFrame, axes: Any, weight: str | None) -> pl.DataFrame:
    """Columns from, to and, where there is one, weight."""
    kept, weights = id_pairs(table, axes, weight, EXAMPLE, "graph")
    frame = kept.select(pl.col(axes[0]).alias("from"), pl.col(axes[1]).alias("to"))
    return frame if weights is None else frame.with_columns(weight=weights)


def predict(model: Any, table: pl.DataFrame, rule: str | None, proba: bool) -> pl.DataFrame:
    """The table with the expected weight of each pair."""
    if rule not in (None, "mean"):
        raise GinghamError("A graph predicts the mean weight of a pair: leave --rule out.")
    axes = list(model.notes_.get("axes") or ["from", "to"])
    need_columns(table, axes, "The model")
    mode = model.posterior_.structure.modes[0]
    pairs = like_items(table, axes, [mode, mode])
    label = model.notes_.get("label") or model.notes_.get("weight") or "label"
    result = table.with_columns(pl.Series(f"predicted_{label}", model.predict(pairs)))
    if proba:
        letters = getattr(model.posterior_.cells[0], "alphabet", None)
        if letters is None:
            raise GinghamError("This graph has weights without an alphabet: leave --proba out.")
        for value, column in zip(letters.values, model.predict_distribution(pairs).T):
            result = result.with_columns(pl.Series(f"p_{value:g}", column))
    return result


def reopen(model: Any, source: Source) -> OfGraph:
    axes = list(model.notes_.get("axes") or ["from", "to"])
    need_columns(source.table, axes, "The model")
    mode = model.posterior_.structure.modes[0]
    typed = like_items(source.table, axes, [mode, mode])
    table = source.table.with_columns(*(typed[name] for name in axes))
    frame = frame_of(table, axes, model.notes_.get("weight") or source.label or model.notes_.get("label"))
    return OfGraph(model, model.sample(frame), source.label or model.notes_.get("label") or "edge")


class OfGraph(Opened):
    """All pairs of nodes, or the listed ones."""

    def __init__(self, model: Any, sample: PairSample, label: str) -> None:
        super().__init__(model)
        self.sample, self.label = sample, label

    def drawing(self) -> Drawing:
        return Drawing(self.model.posterior_, self.sample, self.label)

    def facts(self) -> dict[str, Any]:
        return {
            "edges": self.sample.n_rows,
            "pairs": int(self.sample.n_tuples),
            "loss": str(self.model.loss),
            "β": round(float(self.model.beta_), 4),
            "sweeps": self.model.n_iter_,
        }

    def certificates(self, asked: Asked) -> dict[str, Any]:
        """Of the blocks' squared error on all pairs, and of what they gain over one answer for all."""
        from gingham.certificates import certify, certify_gain

        posterior = self.model.posterior_
        letters, bounds = getattr(posterior.cells[0], "alphabet", None), getattr(posterior.cells[0], "bounds", None)
        if letters is None and bounds is None:
            low, high = float(self.sample.labels.min()), float(self.sample.labels.max())  # type: ignore[union-attr]
            low = min(low, 0.0) if self.sample.complete else low
            raise GinghamError(
                "A guarantee must know the smallest and largest possible weight, and the model was not told. If they "
                f"are {low:g} and {high:g}, fit with --bounds {low:g},{high:g}."
            )
        # The log loss of rare edges has a huge range; the squared error of the same blocks lies between 0 and 1.
        squared = replace(posterior, cells=(Quadratic(letters, bounds),)).refit(self.sample)
        options: dict[str, Any] = {"delta": asked.delta / 2, "bound": asked.bound, "predictor": asked.predictor}
        found = {"pairs of nodes": certify(squared, self.sample, **options)}
        if letters is not None:
            found["pairs of nodes, against one answer for all"] = certify_gain(
                squared, self.sample, delta=asked.delta / 2
            )
        return found

    def simplified(self, clusters: tuple[int, ...] | None, max_loss: float | None) -> tuple[Any, dict[str, Any]]:
        from gingham.selection import simplify

        if max_loss is not None:
            raise GinghamError("A graph is simplified to a number of clusters (--clusters 5), not to a loss.")
        small = simplify(self.model, self.sample, max_clusters=None if clusters is None else clusters[0])
        return small, {
            "clusters_before": self.model.n_clusters_,
            "clusters": small.n_clusters_,
            "loss_before": self.model.posterior_.gibbs_loss(self.sample),
            "loss": small.posterior_.gibbs_loss(self.sample),
        }
