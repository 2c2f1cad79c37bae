"""Models of labelled tuples beside a table: checkerboards, trees, Bayesian ones, committees, layers."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import is_classifier

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import Quadratic, make_cell
from gingham.cells.registry import cell_state
from gingham.cli import label_space
from gingham.cli.data import Rows, parts, rows
from gingham.cli.session import Asked, Drawing, Opened, Source
from gingham.cli.tables import like_items, need_columns
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Mode, Sample
from gingham.errors import GinghamError
from gingham.models.base import GridModel
from gingham.models.bayesian.estimator import BayesianCoClustering
from gingham.models.committee.estimator import Committee
from gingham.models.grid.estimator import CoClusteringClassifier, CoClusteringRegressor
from gingham.models.layers.estimator import LayeredCoClusteringRegressor


def columns_of(model: Any) -> tuple[list[str], list[Mode]]:
    """Names of the id columns and the modes whose items they hold."""
    modes = list(model._modes())
    return list(model.notes_.get("axes") or [mode.name for mode in modes]), modes


def predict(model: Any, table: pl.DataFrame, rule: str | None, proba: bool) -> pl.DataFrame:
    """The table with a column of predictions (and one per label with ``proba``)."""
    axes, modes = columns_of(model)
    need_columns(table, axes, "The model")
    X = like_items(table, axes, modes)
    if rule is not None and "rule" not in inspect.signature(model.predict).parameters:
        raise GinghamError(f"{type(model).__name__} has one way to predict: leave --rule out.")
    predicted = model.predict(X, **({} if rule is None else {"rule": rule}))
    label = model.notes_.get("label") or "label"
    result = table.with_columns(pl.Series(f"predicted_{label}", predicted))
    if proba:
        if not hasattr(model, "predict_distribution"):
            raise GinghamError(f"{type(model).__name__} predicts numbers, not distributions: leave --proba out.")
        law = model.predict_distribution(X)
        for value, column in zip(label_space.letters_of(model), law.T):
            result = result.with_columns(pl.Series(f"p_{value}", column))
    return result


def reopen(model: Any, source: Source) -> OfTuples:
    """A model, the rows of a file it was fitted on, and those it has not seen."""
    notes = model.notes_
    column = source.label or notes.get("label")
    if column is None:
        raise GinghamError("The model does not say which column holds the labels; add --label.")
    axes, modes = columns_of(model)
    data = rows(source.table, axes, column, notes.get("weight"), modes, source.drop)
    return OfTuples(model, column, *parts(data, notes))


class OfTuples(Opened):
    """Training rows and rows set aside."""

    def __init__(self, model: Any, label: str, seen: Rows, unseen: Rows | None) -> None:
        super().__init__(model)
        self.label, self.seen, self.unseen = label, seen, unseen

    def facts(self) -> dict[str, Any]:
        model = self.model
        found: dict[str, Any] = {"tuples": len(self.seen)}
        if isinstance(model, Committee):
            return {**found, "members": len(model.members_)}
        if isinstance(model, LayeredCoClusteringRegressor):
            return {**found, "layers": len(model.layers_), "noise σ": round(float(np.sqrt(model.noise_)), 4)}
        if isinstance(model, BayesianCoClustering):
            return {**found, "family": model.family_, "evidence bound": round(model.elbo_, 1), "sweeps": model.n_iter_}
        beta = round(float(getattr(model, "beta_", model.beta)), 4)
        return {**found, "loss": loss_name(model), "β": beta, "sweeps": model.n_iter_}

    def errors(self) -> dict[str, float]:
        return {} if self.unseen is None else errors(self.model, self.unseen)

    # what a report draws

    def drawing(self) -> Drawing:
        model, seen = self.model, self.seen
        if isinstance(model, Committee):
            return self._of_committee(model)
        if isinstance(model, LayeredCoClusteringRegressor):
            return self._of_layers(model)
        sample = model.sample(seen.X, seen.y, seen.weight)
        posterior, sample = two_modes(model.posterior_, sample)
        own = None
        if isinstance(model, BayesianCoClustering) and (sample.alphabet is None or sample.alphabet.numeric):
            own = self._predictor()
        return Drawing(posterior, sample, self.label, predict=own)

    def _of_committee(self, model: Committee) -> Drawing:
        """The member that trades loss against information best; predictions are the committee's."""
        first = model.members_[0]
        if isinstance(first, LayeredCoClusteringRegressor):
            return replace(self._of_layers(first), predict=self._predictor())
        if not isinstance(first, GridModel):
            raise GinghamError(f"A committee of {type(first).__name__} has no checkerboard to show.")
        best, lowest = None, np.inf
        for at, member in enumerate(model.members_):
            known = [mode.encode(self.seen.X[name].to_numpy()) >= 0 for mode, name in zip(*reversed(columns_of(model)))]
            part = self.seen.take(np.logical_and.reduce(known))
            sample = member.sample(part.X, part.y, part.weight)
            loss = member.posterior_.gibbs_loss(sample)
            if loss < lowest:
                best, lowest = (at, member, sample), loss
        if best is None:
            raise GinghamError("No member of the committee knows these rows.")
        at, member, sample = best
        posterior, sample = two_modes(member.posterior_, sample)
        note = (
            f"The checkerboard is that of member {at + 1} of {len(model.members_)}, which fits the rows best; "
            "predictions, errors and guarantees are those of the whole committee."
        )
        numeric = sample.alphabet is None or sample.alphabet.numeric
        return Drawing(posterior, sample, self.label, predict=self._predictor() if numeric else None, notes=(note,))

    def _of_layers(self, model: LayeredCoClusteringRegressor) -> Drawing:
        """Clusters of the strongest layer with the mean label of each block; predictions are the model's."""
        layer = model.layers_[0]
        modes = model._modes()
        columns = [self.seen.X[name].to_numpy() for name in columns_of(model)[0]]
        sample = Sample.of(columns, np.asarray(self.seen.y, dtype=np.float64), self.seen.weight, modes=modes)
        assign = tuple(np.eye(m)[labels] for labels, m in zip(layer.labels, layer.cells.shape))
        posterior = Posterior(Structure.grid(modes), (Quadratic(),), assign, (np.zeros(0),)).refit(sample)
        posterior, sample = two_modes(posterior, sample)
        note = (
            f"The clusters are those of the strongest of {len(model.layers_)} layers, with the mean label of each "
            "block; predictions, errors and guarantees are those of all layers together."
        )
        return Drawing(posterior, sample, self.label, predict=self._predictor(), notes=(note,))

    def _predictor(self) -> Any:
        """The model's own predictions for codes of two modes; None where there are more."""
        modes = list(self.model._modes())
        if len(modes) != 2:
            return None
        names = columns_of(self.model)[0]

        def predict_pairs(own: Ints, other: Ints) -> Floats:
            frame = pl.DataFrame({n: mode.items[code] for n, mode, code in zip(names, modes, (own, other))})
            return np.asarray(self.model.predict(frame), dtype=np.float64)

        return predict_pairs

    # guarantees

    def certificates(self, asked: Asked) -> dict[str, Any]:
        from gingham.certificates.certify import certify

        model, seen = self.model, self.seen
        space = label_space.of(model, seen.y, self.notes, asked)
        found: dict[str, Any] = {}
        judged: Any = model
        bounded = space.bounds is None or label_space.bounds_of(model) is not None
        posterior = vars(model).get("posterior_")
        if not bounded and posterior is not None and posterior.cells[0].answers == "number":
            # Stated after the fit, which did not need them: the answers are the same with bounds.
            cell = make_cell(posterior.cells[0].name, None, space.bounds)
            judged, bounded = replace(posterior, cells=(cell,)), True
        if label_space.has_posterior(model) and bounded:
            found["training rows"] = certify(
                judged, seen.X, seen.y, bound=asked.bound, delta=asked.delta, predictor=asked.predictor,
                sample_weight=seen.weight, alphabet=space.alphabet,
            )  # fmt: skip
        if self.unseen is not None:
            found["rows set aside"] = self._holdout(space, asked.delta)
        if not found:
            raise GinghamError(
                "No theorem here covers a sum of layers on the rows it was fitted to: it has a certificate from rows "
                "set aside. Fit with --holdout .1 (the default), and give the file of the fit."
            )
        return found

    def _holdout(self, space: label_space.LabelSpace, delta: float) -> Any:
        from gingham.certificates.holdout import certify_predictions

        model, unseen = self.model, self.unseen
        if unseen is None:  # pragma: no cover - asked only where rows were set aside
            raise GinghamError("No rows were set aside.")
        predicted: AnyArray = np.asarray(model.predict(unseen.X))
        loss = space.loss_of_predictions(model)
        return certify_predictions(
            predicted, unseen.y, loss=loss, alphabet=space.values, label_bounds=space.bounds, delta=delta,
            sample_weight=unseen.weight, predictor="mode" if loss == "zero-one" else "mean",
        )  # fmt: skip

    # coarser

    @property
    def instead(self) -> str:  # type: ignore[override]
        return {
            "TreeCoClustering": "Its merges are the coarser levels: fit again with fewer --clusters or other --merges.",
            "BayesianCoClustering": "Its memberships are mixed: fit again with fewer --clusters.",
            "Committee": "Every member has clusters of its own: simplify one checkerboard (--model coclustering).",
            "LayeredCoClusteringRegressor": "Its layers add up: simplify one checkerboard (--model coclustering).",
        }.get(type(self.model).__name__, Opened.instead)

    def simplified(self, clusters: tuple[int, ...] | None, max_loss: float | None) -> tuple[Any, dict[str, Any]]:
        from gingham.selection import simplify

        model, seen = self.model, self.seen
        if not isinstance(model, (CoClusteringRegressor, CoClusteringClassifier)):
            return super().simplified(clusters, max_loss)
        small = simplify(model, seen.X, seen.y, clusters, max_loss, seen.weight)
        facts: dict[str, Any] = {"clusters_before": model.n_clusters_, "clusters": small.n_clusters_}
        for name, one in (("loss_before", model), ("loss", small)):
            facts[name] = one.posterior_.gibbs_loss(one.sample(seen.X, seen.y, seen.weight))
        if self.unseen is not None:
            facts.update({f"held_out_{name}": value for name, value in errors(small, self.unseen).items()})
        return small, facts


def loss_name(model: Any) -> str:
    """The loss that a checkerboard or a tree was fitted with, by its name where it has one."""
    name = cell_state(model.posterior_.cells[0])["loss"] if model.loss == "auto" else model.loss
    return str(name)


def two_modes(posterior: Posterior, sample: Sample) -> tuple[Posterior, Sample]:
    """A checkerboard of one mode gets a second one with a single item, so that it can be drawn."""
    if len(posterior.structure.factors[0]) != 1:
        return posterior, sample
    everything = Mode("all", np.array(["all"]))
    modes = (posterior.structure.modes[0], everything)
    answers = np.expand_dims(posterior.answers[0], 1)
    grid = Posterior(Structure.grid(modes), posterior.cells, (posterior.assign[0], np.ones((1, 1))), (answers,))
    codes = (sample.codes[0], np.zeros(sample.n_rows, dtype=np.int32))
    return grid, replace(sample, modes=modes, codes=codes)


def errors(model: Any, data: Rows) -> dict[str, float]:
    """What the model's predictions cost on rows, beside the best constant (in brackets of the summary)."""
    weight = data.weight
    predicted = np.asarray(model.predict(data.X))
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
