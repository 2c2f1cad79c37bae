"""Fit, predict and certify for the command line: from options to facts to show."""

from __future__ import annotations

import inspect
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import is_classifier

from gingham.cli.checkpoint import identity, kept_in
from gingham.cli.data import Rows, parts, rows, split
from gingham.cli.defaults import choose
from gingham.cli.kinds import takes_callback, tuple_model
from gingham.cli.screen import say_note, sweeps
from gingham.cli.tables import like_items, need_columns, read_table
from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.estimators.base import GridModel
from gingham.estimators.base import load as load_model
from gingham.estimators.coclustering import CoClusteringClassifier, CoClusteringRegressor


@dataclass(frozen=True)
class Wish:
    """The options of ``gingham fit`` that shape the model."""

    axes: tuple[str, ...]
    label: str | None
    model: str = "coclustering"
    weight: str | None = None
    merges: str | None = None
    clusters: tuple[int, ...] | None = None
    loss: str | None = None
    beta: float | None = None
    alphabet: str | None = None
    objective: str = "tradeoff"
    solver: str = "projection"
    n_init: int = 1
    max_iter: int = 200
    holdout: float = 0.1
    seed: int = 0


def parse_clusters(listed: str | None, n_axes: int) -> tuple[int, ...] | None:
    """Numbers of clusters from "13,6" or "10"."""
    if listed is None or listed == "auto":
        return None
    try:
        numbers = tuple(int(part) for part in listed.split(","))
    except ValueError:
        raise GinghamError(f"--clusters {listed!r} must be whole numbers, one per axis: --clusters 13,6.") from None
    if len(numbers) == 1:
        numbers *= n_axes
    if len(numbers) != n_axes:
        raise GinghamError(f"--clusters has {len(numbers)} numbers for {n_axes} axes.")
    if min(numbers) < 1:
        raise GinghamError(f"--clusters {listed!r}: a number of clusters is at least 1.")
    return numbers


def fit(
    data: Rows,
    wish: Wish,
    quiet: bool = False,
    checkpoint: Path | None = None,
    resume: bool = False,
    every: float = 10.0,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """A fitted model, the notes to store with it, and the facts to show."""
    began = time.perf_counter()
    learn, held = split(len(data), wish.holdout, wish.seed)
    training = data.take(learn)
    columns = [training.X[name].to_numpy() for name in wish.axes]
    choice = choose(columns, training.y, wish.loss, wish.beta, wish.alphabet, np.random.default_rng(wish.seed))
    settings: dict[str, Any] = {
        "n_clusters": "auto" if wish.clusters is None else wish.clusters,
        "loss": choice.loss,
        "beta": choice.beta,
        "alphabet": choice.alphabet,
        "objective": wish.objective,
        "solver": wish.solver,
        "n_init": wish.n_init,
        "max_iter": wish.max_iter,
        "random_state": wish.seed,
    }
    model = tuple_model(wish.model, settings, choice, training.y, wish.merges)
    key = identity(data.fingerprint, asdict(wish))
    kept = nullcontext(0) if checkpoint is None else kept_in(checkpoint, key, resume, every)
    with kept as known, sweeps("co-clustering", quiet) as callback:
        if known:
            say_note(f"Going on after {known} sweeps.")
        more = {"callback": callback} if takes_callback(model) else {}
        model.fit(training.X, training.y, training.weight, **more)
    notes = {
        "axes": list(wish.axes),
        "label": wish.label,
        "weight": wish.weight,
        "holdout": wish.holdout,
        "seed": wish.seed,
        "fingerprint": data.fingerprint,
    }
    facts = {"rows": len(training), **model_facts(model, wish.model)}
    if "posterior_" in vars(model):
        facts["loss"], facts["beta"] = choice.loss, choice.beta
    if held.any():
        facts["held_out_rows"] = int(held.sum())
        facts.update({f"held_out_{name}": value for name, value in errors(model, data.take(held)).items()})
    facts["seconds"] = round(time.perf_counter() - began, 2)
    return model, notes, facts


def model_facts(model: Any, kind: str) -> dict[str, Any]:
    """What a summary says of any fitted model."""
    facts: dict[str, Any] = {"model": kind}
    posterior = getattr(model, "posterior_", None)
    if posterior is not None:
        facts["axes"] = {mode.name: mode.n_items for mode in posterior.structure.modes}
        facts["clusters"] = posterior.n_clusters
        facts["effective_clusters"] = tuple(round(e, 1) for e in posterior.effective_clusters)
    elif hasattr(model, "_modes"):
        facts["axes"] = {mode.name: mode.n_items for mode in model._modes()}
    for name, shown in (("n_iter_", "sweeps"), ("converged_", "converged")):
        if hasattr(model, name):
            facts[shown] = getattr(model, name)
    return facts


def errors(model: Any, data: Rows) -> dict[str, float]:
    """What the model's predictions cost on rows, beside the best constant (in brackets of the summary)."""
    weight = data.weight
    predicted = model.predict(data.X)
    if predicted.dtype.kind not in "biuf" or is_classifier(model):
        values, counts = np.unique(data.y, return_counts=True)
        return {
            "error_rate": float(np.average(predicted != data.y, weights=weight)),
            "error_rate_of_commonest_label": float(np.average(data.y != values[counts.argmax()], weights=weight)),
        }
    miss = predicted - data.y
    found = {
        "mae": float(np.average(np.abs(miss), weights=weight)),
        "rmse": float(np.sqrt(np.average(miss**2, weights=weight))),
    }
    if isinstance(model, CoClusteringRegressor) and model.posterior_.cells[0].n_answers:
        median = model.predict(data.X, rule="median")
        found["mae_of_median"] = float(np.average(np.abs(median - data.y), weights=weight))
    found["mae_of_a_constant"] = float(np.average(np.abs(np.median(data.y) - data.y), weights=weight))
    return found


def predict(path: str, table: pl.DataFrame, rule: str | None, proba: bool) -> pl.DataFrame:
    """The table with a column of predictions (and one per label with ``proba``)."""
    model = load_model(path)
    axes, modes = columns_of(model)
    need_columns(table, axes, "The model")
    X = like_items(table, axes, modes)
    chosen = {} if rule is None or "rule" not in inspect.signature(model.predict).parameters else {"rule": rule}
    predicted = model.predict(X, **chosen)
    label = model.notes_.get("label") or "label"
    result = table.with_columns(pl.Series(f"predicted_{label}", predicted))
    if proba:
        if not hasattr(model, "predict_distribution"):
            raise GinghamError(f"{type(model).__name__} predicts numbers, not distributions: leave --proba out.")
        values = getattr(model.alphabet_, "values", model.alphabet_)
        for value, column in zip(values, model.predict_distribution(X).T):
            result = result.with_columns(pl.Series(f"p_{value}", column))
    return result


def columns_of(model: Any) -> tuple[list[str], list[Mode]]:
    """Names of the id columns and the modes whose items they hold."""
    posterior = getattr(model, "posterior_", None)
    if hasattr(model, "_modes"):
        modes = list(model._modes())
    elif posterior is not None:
        modes = list(posterior.structure.columns())
    else:
        raise GinghamError(f"{type(model).__name__} does not predict tuples; use it in Python.")
    return list(model.notes_.get("axes") or [mode.name for mode in modes]), modes


def reopen(path: str, file: str, kind: str | None, label: str | None, drop: bool) -> tuple[Any, Rows, Rows | None]:
    """A model, the rows of a file it was fitted on, and those it has not seen."""
    model = load_model(path)
    notes = model.notes_
    column = label or notes.get("label")
    if column is None:
        raise GinghamError("The model does not say which column holds the labels; add --label.")
    if not isinstance(model, GridModel):
        raise GinghamError(
            f"A certificate or report of a {type(model).__name__} is made in Python; the command line makes those of "
            "checkerboards (--model coclustering)."
        )
    axes, modes = columns_of(model)
    data = rows(read_table(file, kind), axes, column, notes.get("weight"), modes, drop)
    return model, *parts(data, notes)


def need_stated_labels(model: Any) -> None:
    """Refuse to certify labels that were read off the data."""
    letters = getattr(model.posterior_.cells[0], "alphabet", None)
    if letters is not None and not letters.given:
        shown = ",".join(map(str, letters.values[:20])) + (",…" if letters.size > 20 else "")
        raise GinghamError(
            "The model read the possible labels off the data, and a guarantee must not depend on what happened to be "
            f"observed. If they are {shown}, say so with --alphabet {shown}; if there are more, fit with all of them."
        )


def certificates(model: Any, seen: Rows, unseen: Rows | None, options: dict[str, Any]) -> dict[str, Any]:
    """Named certificates: of the randomised predictor on training rows, of the prediction itself on rows set aside."""
    from gingham.certificates.certify import certify
    from gingham.certificates.holdout import certify_predictions

    alphabet = options.get("alphabet")
    found = {
        "training rows": certify(
            model,
            seen.X,
            seen.y,
            bound=options["bound"],
            delta=options["delta"],
            predictor=options["predictor"],
            sample_weight=seen.weight,
            alphabet=alphabet,
        )
    }
    if unseen is not None:
        cell = model.posterior_.cells[0]
        bounds = getattr(cell, "bounds", None)
        found["rows set aside"] = certify_predictions(
            np.asarray(model.predict(unseen.X)),
            unseen.y,
            loss=model.loss,
            alphabet=model.alphabet_ if bounds is None else None,
            label_bounds=bounds,
            delta=options["delta"],
            sample_weight=unseen.weight,
            predictor="mode" if isinstance(model, CoClusteringClassifier) else "mean",
        )
    return found
