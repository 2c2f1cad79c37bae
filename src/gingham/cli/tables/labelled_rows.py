"""Labelled rows of a table: what labels can be, rows that are held out, and what the model predicts of these."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.cells import LOSSES, CellModel, loss_kind, needs_alphabet
from gingham.cli.tables.arguments import CertificateRequest, FitOptions, Interval, parse_alphabet
from gingham.cli.tables.columns import (
    NUMBERS,
    check_holdout,
    fingerprint,
    like_items,
    need_columns,
    numbered,
    with_ids,
    without_missing,
)  # fmt: skip
from gingham.data import Alphabet, Bounds, Mode, Sample
from gingham.data.draws import taken, whole_counts
from gingham.data.sample import checked_weights, tuples
from gingham.data.table_files import numbers_with_missing_words
from gingham.errors import GinghamError, GinghamWarning, RefusedCertificate, suggestion
from gingham.models.fit_record import Measured
from gingham.summary.look import (
    missing_options,
    none_meant,
    proposed_alphabet,
    proposed_bounds,
    sentinels_of,
    short_exact,
)
from gingham.summary.measure import FEW_ROWS, FOLDS, SHARE, baselines, errors_of, folds_of
from gingham.summary.values import MODEL, Errors, Relation

if TYPE_CHECKING:  # a fit asks for none of them
    from gingham.certificates import Certificate

# What other libraries call the losses.
OTHER_NAMES = {
    **dict.fromkeys(("mae", "l1", "absolute_error", "mean_absolute_error"), "absolute"),
    **dict.fromkeys(("mse", "rmse", "l2", "squared", "squared_error", "mean_squared_error"), "quadratic"),
    **dict.fromkeys(("accuracy", "error_rate", "0-1", "zero_one"), "zero-one"),
    **dict.fromkeys(("logloss", "log_loss", "cross-entropy", "cross_entropy", "nll"), "log"),
    **dict.fromkeys(("rps", "ranked_probability_score", "crps"), "ranked-probability"),
    "quantile": "pinball",
}


@dataclass(frozen=True, eq=False)
class Rows:
    """Observations: ids (a frame), labels, weights and points in time."""

    X: pl.DataFrame
    y: AnyArray
    weight: Floats | None
    time: pl.Series | None = None

    def take(self, mask: Bools) -> Rows:
        """The rows under a mask."""
        weight = None if self.weight is None else self.weight[mask]
        return Rows(self.X.filter(mask), self.y[mask], weight, None if self.time is None else self.time.filter(mask))

    @property
    def dated(self) -> pl.DataFrame:
        """The ids, with the column of points in time of a model that uses them."""
        return self.X if self.time is None else self.X.with_columns(self.time)

    def folds(self, share: float | None, seed: int) -> list[tuple[Rows, Rows]]:
        """Rows to learn from and rows held out, several times of few rows, drawn at random from the seed.

        A row of weight w is w draws, which may be on both sides; see `folds_of` for how many there are.
        """
        check_holdout(share or 0.0)
        if share == 0:
            return []
        try:
            counts = whole_counts(checked_weights(self.weight, len(self)))
        except RefusedCertificate as error:
            raise GinghamError(f"--holdout holds out draws. {error} With --holdout 0 no rows are held out.") from None
        if counts is None:
            parts = [(self.take(~held), self.take(held)) for held in folds_of(len(self), seed, share)]
        else:
            n, left, rng, parts = int(counts.sum()), counts.copy(), np.random.default_rng([seed, len(self)]), []
            several = share is None and n <= FEW_ROWS
            sizes = [round((SHARE if share is None else share) * n)]
            for size in [len(part) for part in np.array_split(np.arange(n), FOLDS)] if several else sizes:
                held = taken(left, size, rng)
                left = left - held
                parts.append((self._draws(counts - held), self._draws(held)))
        if any(not len(training) for training, _ in parts):
            raise GinghamError("--holdout leaves no row to learn from.")
        return [part for part in parts if len(part[1])]

    def _draws(self, counts: Ints) -> Rows:
        """So many draws of each row."""
        kept = self.take(counts > 0)
        return kept if self.weight is None else replace(kept, weight=counts[counts > 0].astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Several tables as one."""
        weights = [np.asarray(part.weight) for part in parts if part.weight is not None]
        labels = np.concatenate([part.y for part in parts])
        times = [part.time for part in parts if part.time is not None]
        return cls(
            pl.concat([part.X for part in parts]), labels, np.concatenate(weights) if weights else None,
            pl.concat(times) if times else None,
        )  # fmt: skip

    @property
    def n_draws(self) -> float:
        """How many draws the rows stand for."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def __len__(self) -> int:
        return self.X.height

    @property
    def named(self) -> bool:
        """Whether labels are names."""
        return self.y.dtype.kind not in "biuf"

    @property
    def weighted(self) -> tuple[Any, ...]:
        """(X, y), or (X, y, weights) where there are some."""
        return (self.X, self.y) if self.weight is None else (self.X, self.y, self.weight)

    @property
    def fingerprint(self) -> str:
        """Equal for equal rows in equal order with equal weights."""
        columns = [*self.X.get_columns(), pl.Series(list(map(str, self.y.tolist())))]
        columns += [] if self.weight is None else [pl.Series(self.weight)]
        table = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(columns)])
        return fingerprint(table, table.columns)

    def tested(self, model: Any, modes: Sequence[Mode], relation: int = 0) -> Tested | None:
        """The rows that measured the model's error, where these are the rows of its fit.

        They are recognised by their fingerprint and divided as they were then. Of a model that has learned from other
        rows since, the measurement says nothing.
        """
        record = model._record
        if record is None or record.measured is None or record.fingerprint != self.fingerprint:
            return None
        if model._fit_rows and not model._fit_rows[relation].equals(self.sample(modes).fit_rows()):
            warnings.warn(
                "The model has learned from other rows than those of its first fit, so the error measured then does "
                "not apply to it.",
                GinghamWarning,
                stacklevel=2,
            )
            return None
        if model._errors is None:  # merged clusters, say: another model than the one that was measured
            return None
        kept = record.measured
        return Tested.of(self.folds(kept.share, kept.seed), kept.predictions, kept.seed)

    def sample(self, modes: Sequence[Mode]) -> Sample:
        """The rows as observations of the items of modes."""
        return tuples(self.X.get_columns(), self.y, self.weight, modes=modes, unseen=True)


def labelled_rows(
    table: pl.DataFrame,
    axes: Sequence[str],
    label: str,
    weight: str | None = None,
    modes: Sequence[Mode] | None = None,
    drop_missing: bool = False,
    time: str | None = None,
) -> Rows:
    """Take the columns apart; ids in the type of the model's items when modes are given."""
    need_columns(table, axes, "--axes" if modes is None else "The model")
    need_columns(table, [label], "--label" if modes is None else "The model")
    if label in axes:
        raise GinghamError(f"Column {label!r} is both an axis and the label.")
    if weight is not None:
        need_columns(table, [weight], "--weight")
    if time is not None:
        need_columns(table, [time], "--time" if modes is None else "The model")
        table = table.with_columns(points_in_time(table[time]))
    wanted = [*axes, label, *([weight] if weight else []), *([time] if time else [])]
    table = table.with_columns(numbers_with_missing_words(table[name]) for name in wanted[len(axes) :] if name != time)
    kept = without_missing(table, wanted, drop_missing)
    if kept.height == 0:
        raise GinghamError("No row is left: every one has a missing value.")
    X = with_ids(kept.select(axes), axes) if modes is None else like_items(kept, axes, modes)
    weights = None if weight is None else _weights(kept[weight])
    return Rows(X, label_values(kept[label]), weights, None if time is None else kept[time])


def points_in_time(column: pl.Series) -> pl.Series:
    """Points in time as numbers or dates; text that holds dates is read."""
    if column.dtype != pl.String:
        return column
    try:
        return column.str.to_datetime()
    except pl.exceptions.PolarsError:
        raise GinghamError(f"--time {column.name!r} must hold numbers or dates such as 2024-01-31.") from None


def label_values(column: pl.Series) -> AnyArray:
    """Labels as numbers or texts; other types, and infinite numbers, are refused."""
    if column.dtype.is_nested() or column.dtype.is_temporal() or column.dtype in (pl.Binary, pl.Object):
        raise GinghamError(f"Label column {column.name!r} has type {column.dtype}; labels are numbers or text.")
    if column.dtype.is_numeric():
        labels = (column if column.dtype in NUMBERS else column.cast(pl.Float64)).to_numpy()
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int(np.flatnonzero(~np.isfinite(labels))[0])
            raise GinghamError(f"Label column {column.name!r} is infinite in row {row}.")
        return labels
    return np.array(column.cast(pl.String).to_list())


def _weights(column: pl.Series) -> Floats:
    if not column.dtype.is_numeric():
        raise GinghamError(f"--weight column {column.name!r} must be numeric, it has type {column.dtype}.")
    return column.cast(pl.Float64).to_numpy()


@dataclass(frozen=True, eq=False)
class LabelOptions:
    """Whether labels are classes, and what was said of them, checked against them; None where nothing was."""

    classify: bool
    loss: str | None
    alphabet: AnyArray | None
    bounds: Interval | None

    @classmethod
    def of(cls, options: FitOptions, labels: AnyArray) -> LabelOptions:
        loss, bounds = options.loss, options.bounds
        if loss is not None and loss not in LOSSES:
            raise GinghamError(
                f"--loss {loss!r} is unknown; choose one of {', '.join(LOSSES)}, or name the module that registers it: "
                f"gingham --plugin MODULE fit …{suggestion(OTHER_NAMES.get(loss.lower(), loss), LOSSES)}"
            )
        names = labels.dtype.kind not in "biuf"
        given = None if options.alphabet is None else parse_alphabet(options.alphabet, names)
        if names and loss is not None and loss_kind(loss).ordered:
            raise GinghamError(
                f"--loss {loss} needs numeric labels, and the label column holds text. Use zero-one or log."
            )
        if names and (n_values := len(np.unique(labels.astype(str)))) > 1000:
            raise GinghamError(f"The label column holds {n_values} different texts; a class label has at most 1000.")
        if bounds is not None:
            if names or given is not None or (loss is not None and needs_alphabet(loss)):
                raise GinghamError("--bounds states the range of numbers under quadratic loss; others have --alphabet.")
            if labels.min() < bounds[0] or labels.max() > bounds[1]:
                raise GinghamError(
                    f"--bounds {bounds[0]:g},{bounds[1]:g}: the labels go from {labels.min():g} to {labels.max():g}."
                )
        # Layers take two numbers, 0 and 1 say, for classes: they have probabilities then.
        two = options.model == "layered" and bounds is None and len(np.unique(labels if given is None else given)) == 2
        classify = names or two or options.ordered or (loss is not None and not loss_kind(loss).ordered)
        if classify and labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise GinghamError(
                f"--loss {loss} is for classes, and the labels are measurements such as {labels[0]:g}: use absolute or "
                "quadratic."
            )
        return cls(classify, loss, given, bounds)


@dataclass(frozen=True, eq=False)
class LabelSpace:
    """The possible labels as the user stated them: a list, or the smallest and largest value.

    A guarantee must not depend on what happened to be observed. ``alphabet`` is what a certificate of the posterior
    must be told, None where the model knows.
    """

    values: AnyArray | None
    bounds: Interval | None
    alphabet: AnyArray | None = None

    @classmethod
    def stated(
        cls, known: Alphabet | Interval | None, labels: AnyArray, bounds: Interval | None, request: CertificateRequest
    ) -> LabelSpace:
        """The stated labels, where the model knows an alphabet or bounds; refuses those read off the data.

        ``bounds`` are those that were stated to ``gingham fit``.
        """
        if not isinstance(known, Alphabet):
            return cls(None, _stated_bounds(known, labels, bounds, request))
        if request.alphabet is not None:
            values = parse_alphabet(request.alphabet, labels.dtype.kind not in "biuf")
            return cls(np.asarray(values), None, values)
        if not known.given:
            raise GinghamError(
                "The possible labels were inferred from the data, but a guarantee needs all labels that can occur"
                f". {_proposal(known)}"
            )
        return cls(known.values, None)


def _proposal(known: Alphabet) -> str:
    """What to say of the possible labels, as it is then taken."""
    listed = proposed_alphabet(known.values)
    apart = sentinels_of(known.values if known.numeric else np.zeros(0))
    said = shlex.join(missing_options([short_exact(value) for value in apart]))
    asked = f"{none_meant(apart, 'label')} Then fit with {said}. " if len(apart) else ""
    if not listed:
        return "Fit with all of them stated: --alphabet."
    filled = np.setdiff1d(parse_alphabet(listed, not known.numeric), known.values)
    if len(filled):  # the model has to know them as well
        exact = ",".join(short_exact(value) if known.numeric else str(value) for value in known.values.tolist())
        return (
            f"{asked}If no labels but {exact} are possible, state this with --alphabet {exact}; if they are {listed}, "
            f"fit with --alphabet {shlex.quote(listed)}."
        )
    return (
        f"{asked}If no labels but {listed} are possible, state this with --alphabet {shlex.quote(listed)}; if there "
        "are more, fit with all of them."
    )


def _stated_bounds(
    known: Interval | None, labels: AnyArray, stated: Interval | None, request: CertificateRequest
) -> Interval:
    """The smallest and largest possible label that somebody stated."""
    low, high = (float(np.min(labels)), float(np.max(labels))) if known is None else known
    if request.bounds is not None:
        if known is not None and request.bounds != known:
            raise GinghamError(
                f"The model was fitted with labels from {low:g} to {high:g}; fit with --bounds "
                f"{request.bounds[0]:g},{request.bounds[1]:g} if they can be others."
            )
        return request.bounds
    if stated is not None:
        return stated
    proposed = proposed_bounds(low, high)
    raise GinghamError(
        "The smallest and largest possible label were inferred from the data, but a guarantee needs the possible "
        f"range. If no label can lie outside {proposed.replace(',', ' to ')}, add --bounds {proposed}."
    )


def labels_of_cell(cell: CellModel) -> Alphabet | Interval | None:
    """The labels that a cell knows: all of them, or the smallest and largest, unless those were read off the data."""
    label_values, bounds = cell.alphabet, Bounds.of(cell.bounds, given=True)
    return label_values if label_values is not None or bounds is None or not bounds.given else (bounds.low, bounds.high)


@dataclass(frozen=True, eq=False)
class Tested:
    """Held-out rows, and what the same model, fitted without them, predicts of them.

    The saved model was fitted on all rows, so that none of them can test it. Those who were tested are others with the
    same settings: one model for each fold.
    """

    rows: Rows
    predictions: AnyArray
    folds: Ints  # number of the fold of each row
    n_learned: float  # draws that each of the models learned from
    seed: int  # by which the rows were divided

    @classmethod
    def of(cls, parts: Sequence[tuple[Rows, Rows]], predictions: AnyArray, seed: int) -> Tested:
        folds = np.repeat(np.arange(len(parts)), [len(held) for _, held in parts])
        return cls(Rows.joined([held for _, held in parts]), predictions, folds, parts[0][0].n_draws, seed)

    @property
    def name(self) -> str:
        """What a certificate of theirs comes from."""
        return "held-out rows" if self.folds[-1] == 0 else "cross-fitted rows"

    @property
    def covers(self) -> str:
        if self.folds[-1] == 0:
            return f"the same model with the same settings, fitted on the other {self.n_learned:,.0f} rows"
        n = int(self.folds[-1]) + 1
        return f"one of {n} fits of the same model with the same settings, each without 1/{n} of the rows"

    @property
    def how(self) -> str:
        """What was measured, in a sentence."""
        if self.folds[-1] == 0:
            return (
                f"measured on {self.rows.n_draws:,.0f} rows that were held out, by the same model fitted on the other "
                f"{self.n_learned:,.0f}; the saved model was then fitted on all rows with the same settings"
            )
        n = int(self.folds[-1]) + 1
        return (
            f"{n}-fold cross-fitting: measured on all {self.rows.n_draws:,.0f} rows in turn, each part by the same "
            "model fitted on the others; the saved model was fitted on all rows with the same settings"
        )

    def certificate(self, space: LabelSpace, loss: object, looks: int, delta: float) -> Certificate:
        """The guarantee for the models that were tested, from the rows that each has not seen.

        ``looks`` counts the models whose error on these rows was shown before one was kept.
        """
        from gingham.certificates import certify_predictions
        from gingham.certificates.assumptions import drawn_order

        said = self.predictions
        if loss == "zero-one" and said.ndim == 2:  # distributions over the labels, in their order
            said = np.sort(np.asarray(space.values))[said.argmax(axis=1)]
        in_turn = bool(self.folds[-1])
        made = certify_predictions(
            self.rows.y, said, loss=loss, alphabet=space.values, label_bounds=space.bounds,
            delta=delta / looks if in_turn else delta, candidates=1 if in_turn else looks,
            sample_weight=self.rows.weight, predictor=self.covers, folds=self.folds if in_turn else None,
        )  # fmt: skip
        divided = drawn_order(self.seed, False, "division of the rows")
        return replace(made, assumptions=(*made.assumptions, divided))


def measured(
    data: Rows,
    share: float | None,
    seed: int,
    fit: Callable[[Rows], Any],
    say: Callable[[Any, pl.DataFrame], AnyArray],
    loss: str,
    losses: Callable[[AnyArray, AnyArray], Floats] | None = None,
    label_values: AnyArray | None = None,
) -> tuple[Errors, Measured] | None:
    """The held-out error of a model beside simple rules, and the record of this measurement that a model file keeps.

    ``seed`` divides the rows. It is the seed of the fit, so that the same fit reports the same error, and the record
    contains it. ``label_values`` are the possible names or classes, in the order of the columns of distributions; None
    for numbers. The result is None if a fit was interrupted or the training rows of a fold have only one class.
    """
    parts = data.folds(share, seed)
    if not parts or (label_values is not None and any(len(np.unique(part.y)) < 2 for part, _ in parts)):
        return None  # no model learns classes of which it sees one
    modes, _ = numbered(data.X, data.X.columns)
    found: dict[str, list[AnyArray]] = {}
    kept = []
    for training, held in parts:
        with warnings.catch_warnings():  # the fit on all rows has said what there is to say
            warnings.simplefilter("ignore")
            model = fit(training)
            if model.interrupted_:
                return None
            said = say(model, held.dated)
        kept.append(said)
        both = Rows.joined([training, held])
        codes = [mode.encode(both.X[mode.name].to_numpy()) for mode in modes]
        labels = both.y if label_values is None else codes_among(label_values, both.y)
        kind, names = ("difference", ()) if label_values is None else ("labels", tuple(map(str, label_values)))
        rows = Relation(tuple(range(len(codes))), tuple(codes), kind, labels, both.weight, labels=names)
        learned = np.arange(len(both)) < len(training)
        simple = baselines(rows, [mode.n_items for mode in modes], learned, data.X.columns, loss)
        own = said if label_values is None or said.ndim == 2 else codes_among(label_values, said)
        for name, guess in {MODEL: own, **simple}.items():
            found.setdefault(name, []).append(guess)
    tested = Tested.of(parts, np.concatenate(kept), seed)
    labels = tested.rows.y if label_values is None else codes_among(label_values, tested.rows.y)
    joined_up = {name: np.concatenate(guesses) for name, guesses in found.items()}
    errors = errors_of(labels, tested.rows.weight, joined_up, loss, tested.how, losses)
    return errors, Measured(seed, share, tested.predictions)


def codes_among(label_values: AnyArray, labels: AnyArray) -> Ints:
    """Positions of labels among sorted ones; those that are not there have none of the positions."""
    at = np.minimum(np.searchsorted(label_values, labels), len(label_values) - 1)
    return np.where(label_values[at] == labels, at, len(label_values))


def constant_guarantees(
    certificates: Mapping[str, Any], rows: Rows, space: LabelSpace, loss: object
) -> dict[str, float]:
    """The guarantee of one constant answer for all rows, for each certificate with the same loss."""
    from gingham.certificates import certify

    one = [np.zeros(column.n_unique()) for column in rows.X.get_columns()]
    found = {}
    for name, certificate in certificates.items():
        constant = certify(
            one, rows.X, rows.y, loss=loss, alphabet=space.values, label_bounds=space.bounds,
            sample_weight=rows.weight, delta=certificate.delta,
        )  # fmt: skip
        if constant.loss == certificate.loss:
            found[name] = float(constant.value)
    return found
