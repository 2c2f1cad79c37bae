"""Graphs from a table of edges: blocks, guarantees over all pairs, coarser blocks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gingham import models
from gingham.cells import Quadratic
from gingham.core.problem import Posterior
from gingham.data.graphs import NODE, PairSample
from gingham.errors import GinghamError, GinghamWarning
from gingham.models import tables as common
from gingham.models.base import Persistent
from gingham.models.graph import KIND
from gingham.selection import BetaPath, PathPoint
from gingham.summary.look import look, proposed_bounds

if TYPE_CHECKING:
    from gingham.models.graph.estimator import GraphClustering
    from gingham.summary.values import Observed


class GraphTables(common.FamilyTables["GraphClustering"]):
    kind = KIND
    estimators = ("GraphClustering",)
    plain_axes = ("from", "to")
    unused = ("objective", "solver", "merges", "cold_start")
    uses = ("degree_correction", "directed")

    def fit(self, task: common.FitTask) -> common.FittedModel:
        table, options = task.table, with_weights(task)
        if options.holdout:
            raise GinghamError(
                "A graph is certified on all its pairs, so that nothing is set aside: leave --holdout out."
            )
        clusters = common.parse_clusters(options.clusters, len(options.axes))
        said = {
            "n_clusters": None if clusters is None else clusters[0],
            "alphabet": None if options.alphabet is None else common.parse_alphabet(options.alphabet, False),
            "bounds": options.bounds,
            "beta": options.beta,
            "loss": options.loss,
            "degree_correction": parse_degree_correction(options.degree_correction),
        }
        model = self.made(options, said)
        model.fit(
            edges(table, options.axes, options.weight or options.label, options.drop_missing),
            directed=options.directed,
            **common.accepted(model.fit, task.arguments),
        )
        notes = self.notes(options, label=options.label, weight=options.weight)
        return common.FittedModel(model, notes, {"rows": table.height, **self.facts(model), **said_of_degrees(model)})

    def sides(self, task: common.FitTask) -> dict[str, list[object]]:
        return {NODE: list(dict.fromkeys(item for items in super().sides(task).values() for item in items))}

    def predict(self, model: GraphClustering, table: pl.DataFrame, asked: common.PredictOptions) -> pl.DataFrame:
        """The table with the expected weight of each pair."""
        if asked.rule not in (None, "mean"):
            raise GinghamError("A graph predicts the mean weight of a pair: leave --rule out.")
        pairs = typed_pairs(model, table)
        label = model.notes_.get("label") or model.notes_.get("weight") or "label"
        result = common.with_predictions(table, pl.Series(f"predicted_{label}", model.predict(pairs)))
        if not asked.proba:
            return result
        letters = getattr(model.posterior_.cells[0], "alphabet", None)
        if letters is None:
            raise GinghamError("This graph has weights without an alphabet: leave --proba out.")
        return common.with_probabilities(
            result, [f"{value:g}" for value in letters.values], model.predict_distribution(pairs)
        )

    def open(self, model: GraphClustering, source: common.TableSource) -> GraphWithData:
        typed = typed_pairs(model, source.table)
        table = source.table.with_columns(typed.get_columns())
        label, notes = source.label or model.notes_.get("label"), model.notes_
        frame = edges(table, typed.columns, notes.get("weight") or label, source.drop_missing)
        return GraphWithData(model, notes, model.sample(frame), label or "edge")

    def path(self, task: common.FitTask, path: common.PathOptions, progress: common.PathCallback) -> BetaPath:
        """Soft memberships, each fit from the one before; no cross-validation."""
        table, options = task.table, with_weights(task)
        frame = edges(table, options.axes, options.weight or options.label, options.drop_missing)
        clusters = common.parse_clusters(options.clusters, len(options.axes))
        made = models.GraphClustering
        n_clusters = "auto" if clusters is None else clusters[0]
        first = made(n_clusters, degree_correction=False, random_state=options.seed).fit(
            frame, directed=options.directed
        )
        values = common.path_values(path.betas, float(first.beta_))

        def points() -> Iterator[PathPoint]:
            previous = first.posterior_
            for beta in values:
                model = made(
                    first.n_clusters_, beta=beta, start=previous, schedule="constant", solver="nodewise",
                    random_state=options.seed,
                ).fit(frame, directed=first.directed_)  # fmt: skip
                previous = model.posterior_
                sample = model.sample(frame)
                try:
                    found = block_certificates(previous, sample, common.CertificateRequest(path.delta))
                    certificate = next(iter(found.values()))
                except GinghamError:  # weights without stated bounds
                    certificate = None
                yield PathPoint(beta, previous, previous.gibbs_loss(sample), np.nan, np.nan, np.nan, certificate)

        return common.path_of(points(), len(values), progress)


def with_weights(task: common.FitTask) -> common.FitOptions:
    """The options; a third column holds the weights if it holds numbers that are not times."""
    table, options = task.table, task.options
    rest = [name for name in table.columns if name not in options.axes]
    if options.weight or options.label or len(rest) != 1 or not table[rest[0]].dtype.is_numeric():
        return options
    if look(table, axes=options.axes).column(rest[0]).role == "time":
        return options
    warnings.warn(f"Column {rest[0]!r} is taken as the weight of each edge.", GinghamWarning, stacklevel=2)
    return replace(options, weight=rest[0])


def edges(table: pl.DataFrame, axes: Sequence[str], weight: str | None, drop_missing: bool = False) -> pl.DataFrame:
    """Columns from, to and, where there is one, weight."""
    kept, weights = common.id_pairs(table, axes, weight, "from,to", "graph", drop_missing=drop_missing)
    frame = kept.select(pl.col(axes[0]).alias("from"), pl.col(axes[1]).alias("to"))
    return frame if weights is None else frame.with_columns(weight=weights)


def typed_pairs(model: GraphClustering, table: pl.DataFrame) -> pl.DataFrame:
    """The two columns of nodes, in the type of the model's nodes."""
    axes = TABLES.id_columns(model)
    common.need_columns(table, axes, "The model")
    mode = model.posterior_.structure.modes[0]
    return common.like_items(table, axes, [mode, mode])


def parse_degree_correction(said: str | None) -> bool | str | None:
    """auto, or yes or no."""
    known: dict[str | None, bool | str | None] = {None: None, "auto": "auto", "yes": True, "no": False}
    if said not in known:
        raise GinghamError(f"--degree-correction {said!r} is unknown; choose auto, yes or no.")
    return known[said]


def said_of_degrees(model: GraphClustering) -> common.Facts:
    """Whether degrees were corrected for, and why."""
    return {} if model.degree_choice_ is None else {"degrees": str(model.degree_choice_)}


def block_certificates(posterior: Posterior, sample: PairSample, request: common.CertificateRequest) -> common.Facts:
    """Certificates of the blocks' squared error on all pairs, and of what they gain over one answer for all."""
    from gingham.certificates import certify

    letters, bounds = getattr(posterior.cells[0], "alphabet", None), getattr(posterior.cells[0], "bounds", None)
    if letters is None and bounds is None:
        low, high = float(sample.labels.min()), float(sample.labels.max())  # type: ignore[union-attr]
        proposed = proposed_bounds(min(low, 0.0) if sample.complete else low, high)
        raise GinghamError(
            "A guarantee must know the smallest and largest possible weight, and the model was not told. If they "
            f"lie within {proposed.replace(',', ' and ')}, fit with --bounds {proposed}."
        )
    stated = None if request.alphabet is None else common.parse_alphabet(request.alphabet, False)
    # The log loss of rare edges has a huge range; the squared error of the same blocks lies between 0 and 1.
    squared = replace(posterior, cells=(Quadratic(letters, bounds),)).refit(sample)
    found: common.Facts = {
        "pairs of nodes": certify(
            squared,
            sample,
            delta=request.delta / 2,
            bound=request.bound,
            predictor=request.predictor,
            population=request.population,
            alphabet=stated,
        )
    }
    if letters is not None:
        gain = certify(squared, sample, bound="gain", delta=request.delta / 2, alphabet=stated)
        found["pairs of nodes, against one answer for all"] = gain
    return found


@dataclass(eq=False)
class GraphWithData(common.ModelWithData["GraphClustering"]):
    """All pairs of nodes, or the listed ones."""

    sample: PairSample
    label: str

    @property
    def label_name(self) -> str:
        return self.label

    def observed(self) -> Observed:
        return self.model.observed(self.sample)

    def facts(self) -> common.Facts:
        return {
            "edges": self.sample.n_rows,
            "pairs": int(self.sample.n_tuples),
            "loss": str(self.model.loss),
            "β": round(float(self.model.beta_), 4),
            "sweeps": self.model.n_iter_,
            **said_of_degrees(self.model),
        }

    def certificates(self, request: common.CertificateRequest) -> common.Facts:
        """Of the partition that is shown: the blocks of its groups, on all pairs."""
        from gingham.summary.make_summary import summarize

        request.need_no_tests("A graph")
        summary = self.model.summary_ if self.model.has_summary else summarize(self.model, self.sample)
        # The bound holds for all partitions at once, so that it costs nothing to choose one of them by these edges.
        shown = np.eye(summary.size[0])[summary.sides[0].labels(summary.size[0])]
        return block_certificates(replace(self.model.posterior_, assign=(shown,)), self.sample, request)

    def simplified(self, clusters: str | None, max_loss: float | None) -> tuple[Persistent, common.Facts]:
        from gingham.selection import simplify

        wanted = common.parse_clusters(clusters, 1)
        if max_loss is not None:
            raise GinghamError("A graph is simplified to a number of clusters (--clusters 5), not to a loss.")
        small = simplify(self.model, self.sample, max_clusters=None if wanted is None else wanted[0])
        return small, {
            "clusters_before": self.model.n_clusters_,
            "clusters": small.n_clusters_,
            "loss_before": self.model.posterior_.gibbs_loss(self.sample),
            "loss": small.posterior_.gibbs_loss(self.sample),
        }


TABLES = GraphTables()
