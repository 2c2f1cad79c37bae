"""Models with many clusterings, layers and committees: one checkerboard, distilled from what they predict.

It is what people see of such a model. With the additive effects beside it, it is a predictor by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gingham import models
from gingham.arrays import AnyArray, Bools, Floats
from gingham.cells import Logarithmic, Quadratic
from gingham.core.problem import Offsets, Posterior, Problem
from gingham.data import Alphabet, Bounds, Sample
from gingham.data.sample import MAX_LABELS, few_values
from gingham.errors import GinghamError
from gingham.fitting.distill import Distilled, Factors, distill
from gingham.fitting.starts import with_best_answers
from gingham.models.base import (
    has_summary,
    labels_are_names,
    listed,
    new_rows,
    observed_of,
    predictions_of,
)
from gingham.summary.measure import additive_effects
from gingham.summary.values import LayerTable, Observed, Refit

FINEST_BOARD = 12  # clusters per side


def distilled_observed(
    sample: Sample,
    board: Distilled,
    refit: Callable[[Bools], Refit],
    prediction: str,
    loss: str,
    layers: Callable[[Mapping[int, AnyArray]], tuple[LayerTable, ...]] | None = None,
) -> Observed:
    """A sample and the checkerboard that was distilled from a model's predictions, as a summary needs them."""
    found = observed_of(
        sample, board.labels, refit=refit, prediction=prediction, expected=board.expected(sample.codes), loss=loss
    )
    named = labels_are_names(sample, loss)
    return replace(found, blocks=None if named else board.blocks, distilled=True, layers=layers)


def distilled_from(factors: Factors, sample: Sample, loss: str) -> Distilled:
    """The checkerboard that stands for a model's predictions, beside additive effects fitted to the rows.

    Pairs count as often as their items were observed. Effects of the rows, given the blocks, take the place of the
    predictions' own: what people choose to rate lies above these, and held-out rows are predicted better.
    """
    board = distill(factors, (sample.counts(0), sample.counts(1)), (FINEST_BOARD, FINEST_BOARD))
    if sample.labels is None or labels_are_names(sample, loss):
        return board
    met = board.blocks[tuple(labels[code] for labels, code in zip(board.labels, sample.codes))]
    shift = float(np.average(met, weights=sample.weights))
    rest = np.asarray(sample.labels, dtype=np.float64) - (met - shift)
    base, (rows, columns), _ = additive_effects(sample.codes, sample.shape, rest, sample.weights)
    return replace(board, base=base, effects=(rows, columns), blocks=board.blocks - shift)


def distilled_refit(model: Any, sample: Sample, kept: Bools, loss: str, time: Floats | None = None) -> Refit:
    """An unfitted model with many clusterings, fitted on some rows: its distilled checkerboard and its predictions.

    ``time`` has a point in time per row, for models that use it.
    """
    times = ({}, {}) if time is None else ({"time": time[kept]}, {"time": time[~kept]})
    seen = listed(sample, kept)
    model.fit(seen.table(), seen.labels, seen.weights, **times[0])
    own = model._item_modes()
    codes = tuple(mode.encode(items) for mode, items in zip(own, seen.ids))
    board = distilled_from(model._prediction_factors(), replace(sample.take(kept), modes=own, codes=codes), loss)
    places = [mine.encode(mode.items) for mode, mine in zip(sample.modes, own)]  # −1 where the rows lack an item
    rows, columns = (np.where(at < 0, 0.0, effect[at]) for at, effect in zip(places, board.effects))
    labels = tuple(np.where(at < 0, 0, label[at]) for at, label in zip(places, board.labels))
    wide_board = replace(board, effects=(rows, columns), labels=(labels[0], labels[1]))
    named = labels_are_names(sample, loss)
    return Refit(
        wide_board.labels,
        predictions_of(model, listed(sample, ~kept).table(), sample, loss, **times[1]),
        None if named else wide_board.expected(sample.codes),
        None if named else wide_board.blocks,
    )


def distilled_model(
    model: Any,
    observed: Callable[[], Observed],
    sample: Sample,
    max_clusters: int | Sequence[int] | None,
    max_loss: float | None,
) -> Any:
    """The checkerboard that a summary shows, with its additive effects, as a fitted model that can be certified.

    ``max_clusters`` is the number of groups of each side, the readable one by default.
    """
    if max_loss is not None:
        raise GinghamError("A distilled checkerboard takes a number of clusters (max_clusters=), not a loss.")
    from gingham.summary.make_summary import summarize_observed

    # A summary that was made is the one that people have seen.
    summary = model.summary_ if has_summary(model) else summarize_observed(observed())
    size = summary.sized(max_clusters)
    labels = summary.labels_at(size)
    assign = tuple(np.eye(k)[own] for k, own in zip(size, labels))
    codes, y = sample.codes, np.asarray(sample.labels)
    if summary.tables[0].labels and sample.alphabet is not None:
        board = models.CoClusteringClassifier(size, loss="log", random_state=0)
        posterior = with_best_answers(Problem.grid(sample, Logarithmic(sample.alphabet), 1.0), assign)
    else:
        board = models.CoClusteringRegressor(size, loss="quadratic", offsets=True, random_state=0)
        sums = summary.tables[0].coarser([side.groups(k) for side, k in zip(summary.sides, size)]).sums
        blocks = sums[..., 1] / np.maximum(sums[..., 0], 1e-12)
        rest = y - blocks[labels[0][codes[0]], labels[1][codes[1]]]
        base, effects, shrink = additive_effects(codes, sample.shape, rest, sample.weights)
        values = few_values(y, MAX_LABELS)
        alphabet = sample.alphabet or (None if values is None else Alphabet.of(values, given=False))
        bounds = Bounds(float(y.min()), float(y.max()), given=False) if alphabet is None else alphabet.ends
        offsets = Offsets(base, tuple(effects), shrink, Quadratic(alphabet), bounds)
        structure = Problem.grid(sample, Quadratic(), 1.0).structure
        posterior = Posterior(structure, (Quadratic(),), assign, (blocks,), offsets=offsets)
    board.posterior_, board.beta_, board.engine_, board.n_iter_, board.converged_ = posterior, 1.0, "cores", 0, True
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(board, name, getattr(model, name))
    board._remember(sample, sample.n_rows)
    if model._fit_rows:  # its groups were found on the rows of that fit, whatever rows they were distilled on
        known = model._fit_rows[0]
        board._fit_rows = (known.with_rows(new_rows(known, sample).fit_rows()),)
    board._summary = replace(summary, size=size, errors=None)  # those were measured of another model
    board._keep_for_questions()
    return board
