"""Graphs from edges: blocks, guarantees over all pairs of nodes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from gingham.cells import Quadratic
from gingham.cli.tables import adapter
from gingham.cli.tables.adapter import Facts, FitTask, Opened, TableSource
from gingham.cli.tables.arguments import (
    CertificateRequest,
    FitOptions,
    PredictOptions,
    parse_alphabet,
    parse_clusters,
    parse_degree_correction,
)  # fmt: skip
from gingham.cli.tables.columns import id_pairs, like_items, need_columns, with_predictions, with_probabilities
from gingham.cli.tables.kinds import Kind
from gingham.core.problem import Posterior
from gingham.data.graphs import NODE, PairSample
from gingham.errors import GinghamError, GinghamWarning
from gingham.models.fit_record import FitRecord
from gingham.summary.look import look, proposed_bounds


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    table, options = task.table, with_weights(task)
    if options.holdout:
        raise GinghamError("A graph is certified on all its pairs, so nothing is held out: remove --holdout.")
    clusters = parse_clusters(options.clusters, len(options.axes))
    said = {
        "n_clusters": None if clusters is None else clusters[0],
        "alphabet": None if options.alphabet is None else parse_alphabet(options.alphabet, False),
        "bounds": options.bounds,
        "beta": options.beta,
        "loss": options.loss,
        "degree_correction": parse_degree_correction(options.degree_correction),
    }
    model = adapter.unfitted(kind, task, said)
    frame = edges(kind, table, options.axes, options.weight or options.label, options.drop_missing)
    model.fit(frame, directed=options.directed, **task.accepted_by(model.fit))
    model._record = FitRecord(options.axes, options.label, options.weight, options.seed)
    return model, {"rows": table.height, **adapter.facts_of_fit(kind, model), **said_of_degrees(model)}


def sides(task: FitTask) -> dict[str, list[object]]:
    return {NODE: list(dict.fromkeys(item for items in adapter.sides(task).values() for item in items))}


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
    """The table with the expected weight of each pair."""
    if asked.rule not in (None, "mean"):
        raise GinghamError("A graph predicts the mean weight of a pair: leave --rule out.")
    pairs, record = typed_pairs(model, table), model._record or FitRecord()
    label = record.label or record.weight or "label"
    result = with_predictions(table, pl.Series(f"predicted_{label}", model.predict(pairs)))
    if not asked.proba:
        return result
    label_values = model.posterior_.cells[0].alphabet
    if label_values is None:
        raise GinghamError("The weights of this graph have no alphabet: remove --proba.")
    return with_probabilities(
        result, [f"{value:g}" for value in label_values.values], model.predict_distribution(pairs)
    )


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """All pairs of nodes, or the listed ones."""
    typed, record = typed_pairs(model, source.table), model._record or FitRecord()
    table, label = source.table.with_columns(typed.get_columns()), source.label or record.label
    sample = model.sample(edges(kind, table, typed.columns, record.weight or label, source.drop_missing))

    def certificates(request: CertificateRequest) -> Facts:
        """Of the partition that is shown: the blocks of its groups, on all pairs."""
        from gingham.models.base import has_summary
        from gingham.summary.make_summary import summarize

        summary = model.summary_ if has_summary(model) else summarize(model, sample)
        # The bound holds for all partitions at once, so that it costs nothing to choose one of them by these edges.
        shown = np.eye(summary.size[0])[summary.sides[0].labels(summary.size[0])]
        return block_certificates(replace(model.posterior_, assign=(shown,)), sample, request)

    facts = {"edges": sample.n_rows, "pairs": int(sample.n_observations)}
    facts |= {**adapter.facts_of(kind, model), **said_of_degrees(model)}
    return Opened(
        model, label or "edge", (sample,), facts, certificates, model._predict_codes,
        quality=lambda one: {"loss": one.posterior_.gibbs_loss(sample)},
    )  # fmt: skip


def with_weights(task: FitTask) -> FitOptions:
    """The options; a third column holds the weights if it holds numbers that are not times."""
    table, options = task.table, task.options
    rest = [name for name in table.columns if name not in options.axes]
    if options.weight or options.label or len(rest) != 1 or not table[rest[0]].dtype.is_numeric():
        return options
    if look(table, axes=options.axes).column(rest[0]).role == "time":
        return options
    warnings.warn(f"Column {rest[0]!r} is used as the weight of the edges.", GinghamWarning, stacklevel=2)
    return replace(options, weight=rest[0])


def edges(kind: Kind, table: pl.DataFrame, axes: Sequence[str], weight: str | None, drop_missing: bool) -> pl.DataFrame:
    """Columns from, to and, where there is one, weight."""
    kept, weights = id_pairs(kind, table, axes, weight, drop_missing=drop_missing)
    frame = kept.select(pl.col(axes[0]).alias("from"), pl.col(axes[1]).alias("to"))
    return frame if weights is None else frame.with_columns(weight=weights)


def typed_pairs(model: Any, table: pl.DataFrame) -> pl.DataFrame:
    """The two columns of nodes, in the type of the model's nodes."""
    axes = adapter.id_columns(model)
    need_columns(table, axes, "The model")
    mode = model.posterior_.structure.modes[0]
    return like_items(table, axes, [mode, mode])


def said_of_degrees(model: Any) -> Facts:
    """Whether degrees were corrected for, and why."""
    return {} if model.degree_choice_ is None else {"degrees": str(model.degree_choice_)}


def block_certificates(posterior: Posterior, sample: PairSample, request: CertificateRequest) -> Facts:
    """Certificates of the blocks' squared error on all pairs, and of what they gain over one answer for all."""
    from gingham.certificates import certify

    label_values, bounds = posterior.cells[0].alphabet, posterior.cells[0].bounds
    if label_values is None and bounds is None:
        low, high = float(sample.labels.min()), float(sample.labels.max())  # type: ignore[union-attr]
        proposed = proposed_bounds(min(low, 0.0) if sample.complete else low, high)
        raise GinghamError(
            "A guarantee needs the smallest and largest possible weight, which were not stated. If they "
            f"lie within {proposed.replace(',', ' and ')}, fit with --bounds {proposed}."
        )
    stated = None if request.alphabet is None else parse_alphabet(request.alphabet, False)
    # The log loss of rare edges has a huge range; the squared error of the same blocks lies between 0 and 1.
    squared = replace(posterior, cells=(Quadratic(label_values, bounds),)).refit(sample)
    found: Facts = {
        "pairs of nodes": certify(
            squared, sample, delta=request.delta / 2, bound=request.bound, predictor=request.predictor,
            population=request.population, alphabet=stated,
        )
    }  # fmt: skip
    if label_values is not None:
        gain = certify(squared, sample, bound="gain", delta=request.delta / 2, alphabet=stated)
        found["pairs of nodes, against one answer for all"] = gain
    return found
