"""Labelled rows: a column of ids for each axis and a label; of a joint model, several tables of them."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import polars as pl
from sklearn.base import clone, is_classifier

from gingham import models
from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import make_cell
from gingham.cli.tables import adapter
from gingham.cli.tables.adapter import Facts, FitTask, Opened, TableSource
from gingham.cli.tables.arguments import (
    CertificateRequest,
    FitOptions,
    Interval,
    PredictOptions,
    Relation,
    parse_clusters,
    parse_merges,
    parse_named_clusters,
)  # fmt: skip
from gingham.cli.tables.columns import (
    like_items,
    need_columns,
    with_predictions,
    with_probabilities,
    without_missing,
)
from gingham.cli.tables.kinds import KINDS, Kind, kind_of
from gingham.cli.tables.labelled_rows import (
    LabelOptions,
    LabelSpace,
    Rows,
    Tested,
    constant_guarantees,
    labelled_rows,
    labels_of_cell,
    measured,
    points_in_time,
)  # fmt: skip
from gingham.core.problem import Posterior
from gingham.data import Alphabet, Mode
from gingham.data.draws import fresh_seed
from gingham.data.fit_rows import repeated_share
from gingham.errors import GinghamError, GinghamWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT
from gingham.fitting.interruption import interrupted
from gingham.models.base import predicted_by
from gingham.models.fit_record import FitRecord, Measured
from gingham.summary.measure import FEW_ROWS, SHARE, UNITS
from gingham.summary.values import Errors

if TYPE_CHECKING:  # a fit asks for none of them
    from gingham.certificates import Certificate

TESTS = "progressive tests"  # what the first certificate comes from
# The share of the averages' error that a quick fit takes away where a longer one pays. On ratings of films, books and
# anime it was 6 to 7 % where a longer fit took away another 1.4 %, and 1 % where it gained next to nothing.
WORTHWHILE = 0.03


# fitting


def rows_of(task: FitTask) -> Rows:
    """The table as labelled rows."""
    said = task.options
    return labelled_rows(
        task.table, said.axes, str(said.label), said.weight, drop_missing=said.drop_missing, time=said.time
    )


def estimator(kind: Kind, task: FitTask, labels: LabelOptions, relations: tuple[Relation, ...] = ()) -> Any:
    """An unfitted estimator with all that was said, by the names of its parameters."""
    options = task.options
    if kind.member:
        size = {} if options.n_members is None else {"n_members": options.n_members}
        return models.Committee(estimator(KINDS[kind.member], task, labels), **size, random_state=options.seed)
    said: dict[str, Any] = {"alphabet": labels.alphabet, "loss": labels.loss, "beta": options.beta}
    if options.effort is not None:
        said["effort"] = options.effort
    if kind.has_relations:  # these are of the first table
        said = {name: None if value is None else {options.axes: value} for name, value in said.items()}
        said["n_clusters"] = sizes_of(options, relations)
        said["cold_start"] = options.cold_start
        return adapter.unfitted(kind, task, said)
    said |= {
        "bounds": labels.bounds,
        "ordered": options.ordered or None,
        "n_clusters": parse_clusters(options.clusters, len(options.axes)),
        "objective": options.objective,
        "solver": options.solver,
        "merges": parse_merges(options.merges),
    }
    named = {kind.renamed.get(name, name): value for name, value in said.items()}
    which = int(labels.classify and len(kind.estimators) > 1)
    return adapter.unfitted(kind, task, {name: value for name, value in named.items() if name is not None}, which)


def sizes_of(options: FitOptions, relations: tuple[Relation, ...]) -> dict[str, object] | None:
    """Clusters of the modes as named, or by number for the axes of the first table; None where nothing was said."""
    from gingham.models.joint.estimator import default_sizes

    if options.clusters is None:
        return None
    modes, given = default_sizes(relations), parse_named_clusters(options.clusters, options.axes)
    unknown = [name for name in given if name not in modes]
    if unknown:
        raise GinghamError(f"--clusters names the mode {unknown[0]!r}; the tables have {', '.join(modes)}.")
    return {**modes, **given}


def fit(kind: Kind, task: FitTask) -> tuple[Any, Facts]:
    """The model of all rows, and the error of the same model on rows that it is fitted without."""
    options, axes = task.options, task.options.axes
    if axes in task.further:
        raise GinghamError(f"--relation names {','.join(axes)}, which is the table itself.")
    data = rows_of(task)
    data.folds(options.holdout, 0)  # what is wrong with it shows before the fit
    further = {names: labelled_rows(table, names, label) for names, (label, table) in task.further.items()}
    labels = LabelOptions.of(options, data.y)
    whole = estimator(kind, task, labels, (axes, *further))

    def fitted(model: Any, rows: Rows, but: tuple[str, ...] = ()) -> Any:
        arguments = task.accepted_by(model.fit, but)
        if kind.has_relations:
            return model.fit({names: one.weighted for names, one in {axes: rows, **further}.items()}, **arguments)
        return model.fit(rows.dated, rows.y, rows.weight, **arguments)

    if "effort" in whole.get_params() and options.effort is None and len(data) > FEW_ROWS:
        quick = estimator(kind, replace(task, options=replace(options, effort="fast")), labels)
        if not pays(data, options, labels.classify, lambda rows: fitted(clone(quick), rows, ("checkpoint",))):
            whole = quick
    again = clone(whole)
    model = fitted(whole, data)
    found = None
    if not model.interrupted_:
        at = Place.of(model, axes if kind.has_relations else None)
        found = errors(at, data, options, lambda rows: fitted(clone(again), rows, ("checkpoint",)))
    if found is not None:
        model._errors = found[0]
    elif interrupted():  # the model is whole, and its error is still to be measured
        model.interrupted_ = True
        task.arguments.get("checkpoint", NO_CHECKPOINT).stop()
    model._record = FitRecord(
        axes, options.label, options.weight, options.seed, fingerprint=data.fingerprint, bounds=options.bounds,
        order=fresh_seed(), measured=None if found is None else found[1],
        relations=tuple((names, label) for names, (label, _) in task.further.items()), side=tuple(task.side),
    )  # fmt: skip
    if kind.has_relations:
        facts: Facts = {
            "model": kind.name,
            "relations": {", ".join(names): len(one) for names, one in {axes: data, **further}.items()},
            "clusters": {name: int(q.shape[1]) for name, q in model.assign_.items()},
            "sweeps": model.n_iter_,
            "converged": model.converged_,
        }
        return model, facts
    return model, {"rows": len(data), **adapter.facts_of_fit(kind, model)}


def pays(data: Rows, options: FitOptions, classes: bool, fitted: Callable[[Rows], Any]) -> bool:
    """Whether a quick fit is so much better than averages that a longer one is worth its time.

    The rows that measure the error of the model take no part in this choice.
    """
    parts = data.folds(options.holdout, options.seed)
    training = parts[0][0] if len(parts) == 1 else data
    label_values = np.unique(data.y) if classes else None
    say = lambda one, X: one.predict(X) if label_values is None else Place.of(one, None).distributions(X, label_values)  # noqa: E731
    found = measured(
        training, SHARE, options.seed + 1, fitted, say, "log" if classes else "quadratic", label_values=label_values
    )
    if found is None:
        return True
    quick, *averages = found[0].scores.values()
    return quick <= (1 - WORTHWHILE) * min(averages)


def errors(at: Place, data: Rows, options: FitOptions, fitted: Callable[[Rows], Any]) -> tuple[Errors, Measured] | None:
    """The error of the model by the loss that its predictions are judged by."""
    model, loss = at.model, at.judged_by()
    name, losses, values = loss if isinstance(loss, str) else "own", None, None
    if name == "log":
        values = np.asarray(at.label_values())
    elif name == "zero-one":
        values = np.unique(data.y)
    elif name not in UNITS:
        from gingham.certificates.losses import StatedLoss

        losses = StatedLoss.of_cell(model.posterior_.cells[at.relation]).losses

    def say(one: Any, X: pl.DataFrame) -> AnyArray:
        mine = replace(at, model=one)
        return mine.distributions(X, values) if name == "log" and values is not None else mine.labels(X)

    return measured(data, options.holdout, options.seed, fitted, say, name, losses, values)


# what a fitted model knows


@dataclass(frozen=True, eq=False)
class Place:
    """A model, and which of its tables is meant: the first, of all but joint models.

    Attributes
    ----------
    axes : tuple of str
        Columns of ids.
    modes : list of Mode
        The items that they hold.
    relation : int
        Position of the table in the model.
    first : tuple
        What the methods of the model are told before the rows: the relation, of a joint model.
    """

    model: Any
    axes: Relation
    modes: list[Mode]
    label: str | None
    weight: str | None
    relation: int = 0
    first: tuple[Relation, ...] = ()

    @classmethod
    def of(cls, model: Any, axes: Relation | None, columns: tuple[str, ...] = ()) -> Place:
        """The table that is meant: the named one, or the first that has its axes among the columns."""
        record = model._record or FitRecord()
        if not kind_of(model).has_relations:
            modes = list(model._item_modes())
            names = adapter.id_columns(model)
            return cls(model, names, modes, record.label, record.weight)
        known = list(model.relations_)
        listed = "; ".join(",".join(one) for one in known)
        if axes is not None and axes not in known:
            raise GinghamError(f"--axes {','.join(axes)} was not fitted; there are {listed}.")
        fitting = [one for one in known if set(one) <= set(columns)] if axes is None else [axes]
        if not fitting:
            raise GinghamError(f"The table has the columns of no relation of the model ({listed}). Rename its columns.")
        at = model.position_of(fitting[0])
        label, weight = dict(record.relations).get(fitting[0]), None
        if fitting[0] == record.axes:
            label, weight = record.label, record.weight
        modes = list(model.posterior_.structure.columns(at))
        return cls(model, fitting[0], modes, label, weight, at, (fitting[0],))

    def predict(self, X: pl.DataFrame, rule: str | None = None) -> AnyArray:
        predict = self.model.predict
        if rule is not None and "rule" not in inspect.signature(predict).parameters:
            raise GinghamError(f"{type(self.model).__name__} has only one kind of prediction: remove --rule.")
        return np.asarray(predict(*self.first, X, **({} if rule is None else {"rule": rule})))

    def labels(self, X: pl.DataFrame) -> AnyArray:
        """Predictions as labels, where labels are names."""
        known = self.known_labels()
        if self.first and isinstance(known, Alphabet) and not known.numeric:
            names: AnyArray = known.values[self.model.predict_distribution(*self.first, X).argmax(axis=1)]
            return names
        return self.predict(X)

    def distributions(self, X: pl.DataFrame, values: AnyArray) -> Floats:
        """Distributions over the labels of the model of all rows, of a model that may not have seen all of them."""
        mine = np.asarray(self.label_values())
        distribution = self.model.predict_distribution(*self.first, X)
        found = np.zeros((len(distribution), len(values)))
        found[:, np.searchsorted(values, mine)] = distribution
        return found

    @property
    def one(self) -> Any:
        """The model itself, or the first member of a committee: these are alike."""
        return getattr(self.model, "members_", (self.model,))[0]

    @property
    def has_posterior(self) -> bool:
        """Whether a theorem for all posteriors covers the model on the rows of its fit."""
        return kind_of(self.one).has_posterior

    def known_labels(self) -> Alphabet | Interval | None:
        """The possible labels of the model: a list, or the smallest and largest value."""
        one = self.one
        if not self.has_posterior:
            label_values: Alphabet | None = one.alphabet_
            return label_values
        beliefs = getattr(one, "beliefs_", None)  # the checkerboard that is drawn of them may know bounds only
        label_values = None if beliefs is None else getattr(beliefs.cells[0], "alphabet", None)
        return labels_of_cell(one.posterior_.label_cell(self.relation)) if label_values is None else label_values

    def label_values(self) -> AnyArray | None:
        """The label values, in the order of the columns of ``predict_distribution``."""
        if self.one is not self.model:
            values: AnyArray = self.model.alphabet_
            return values
        known = self.known_labels()
        return known.values if isinstance(known, Alphabet) else None

    def judged_by(self) -> Any:
        """The loss by which predictions are measured and certified: the model's own, where predictions may be.

        Of names that is whether they are right, or the surprise where the model predicts distributions; numbers may
        be judged by losses that are convex in them, and by their absolute error otherwise.
        """
        if not self.has_posterior:
            return "log" if is_classifier(self.one) else "quadratic"  # what layers make small
        one, cell = self.one, self.one.posterior_.label_cell(self.relation)
        label_values = cell.alphabet
        if is_classifier(one) or (label_values is not None and not label_values.numeric):
            return "log" if cell.answers == "distribution" and is_classifier(one) else "zero-one"
        if cell.answers == "number":
            return str(cell.name)
        if cell.convex and cell.answers == "label":
            loss = getattr(one, "loss", cell.name)
            return loss if callable(loss) else cell.name
        return "absolute"

    def label_space(self, rows: Rows, request: CertificateRequest) -> LabelSpace:
        """The possible labels as stated: as a range too, where only predictions are certified."""
        record, known = self.model._record, self.known_labels()
        bounds = None if record is None else record.bounds
        in_range = request.alphabet is None and (request.bounds or bounds) is not None
        if in_range and not self.has_posterior and isinstance(known, Alphabet) and known.numeric and not known.given:
            known = None
        return LabelSpace.stated(known, rows.y, bounds, request)


def predict(kind: Kind, model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
    """The table with a column of predictions (and one per label with ``proba``)."""
    at = Place.of(model, asked.axes, tuple(table.columns))
    need_columns(table, at.axes, "The model")
    X, time = like_items(table, at.axes, at.modes), getattr(model, "time", None)
    if time in table.columns:  # of other rows predictions are those of no particular time
        X = X.with_columns(points_in_time(table[time]))
    rule = asked.rule or ("mean" if at.first else None)
    result = with_predictions(table, pl.Series(f"predicted_{at.label or 'label'}", at.predict(X, rule)))
    if not asked.proba:
        return result
    values = at.label_values() if hasattr(model, "predict_distribution") else None
    if values is None:
        raise GinghamError(f"This {type(model).__name__} predicts numbers, not distributions: remove --proba.")
    return with_probabilities(result, values, model.predict_distribution(*at.first, X))


# beside a table


def open_model(kind: Kind, model: Any, source: TableSource) -> Opened:
    """A model beside the rows of a file, and those that tested it if it was fitted on them."""
    if kind.name not in KINDS:
        raise GinghamError(
            "This predictor is already certified, and its members have seen these rows. Check its certificate with "
            "gingham verify."
        )
    at = Place.of(model, source.axes, tuple(source.table.columns))
    label = source.label or at.label
    if label is None:
        raise GinghamError("The model does not record which column holds the labels: add --label.")
    at = replace(at, label=label)
    time = getattr(model, "time", None)
    rows = labelled_rows(source.table, at.axes, label, at.weight, at.modes, source.drop_missing, time)
    measured_here = not at.first or (model._record is not None and model._record.axes == at.axes)
    tested = rows.tested(model, at.modes, at.relation) if measured_here else None
    loss = at.judged_by()

    def predicts(relation: int, codes: Any, wanted: object = None) -> Any:
        if kind.name != "tree":
            return model._predict_codes(at.relation, codes, wanted)
        # Of combinations at the roots, which a model file does not list: these rows do.
        grid = model.posterior_.at_root(model.sample(rows.X, rows.y, rows.weight), named=True)[0]
        return predicted_by(grid, codes, wanted, getattr(model, "cell_moments_", None))

    def without_groups(found: Facts, request: CertificateRequest) -> dict[str, float]:
        return constant_guarantees(found, rows, at.label_space(rows, request), loss)

    def gibbs_loss(one: Any) -> Facts:
        return {"loss": one.posterior_.gibbs_loss(one.sample(rows.X, rows.y, rows.weight))}

    return Opened(
        model, label, ({at.axes: rows.weighted},) if at.first else (rows.X, rows.y, rows.weight),
        {"observations": len(rows), **adapter.facts_of(kind, model)},
        partial(certificates, kind, at, rows, tested, source), predicts, without_groups,
        quality=gibbs_loss if kind.simplifies else None, rows=rows, tested=tested,
    )  # fmt: skip


def certificates(
    kind: Kind,
    at: Place,
    rows: Rows,
    tested: Tested | None,
    source: TableSource,
    request: CertificateRequest,
) -> Facts:
    """The models that were fitted without some rows, on those, then the model itself on the rows of its fit.

    Progressive tests, which fit the model anew several times, come first where they were asked for, and where nothing
    else has tested it. All share δ, so that what is shown holds together.
    """
    from gingham.certificates.bounds import checked_delta
    from gingham.certificates.certify import certify

    delta, model = checked_delta(request.delta), at.model
    repeated_share(rows.sample(at.modes))  # copies may be on both sides of what is set aside
    warn_of_later_rows(source.table, at.axes, str(at.label))
    known, space = at.known_labels(), at.label_space(rows, request)
    loss = at.judged_by()
    makers: dict[str, Callable[[float], Certificate]] = {}
    judged, bounded = model, known is not None or kind.has_relations
    posterior = vars(model).get("posterior_")
    plain = getattr(posterior, "offsets", None) is None  # offsets have no certificate on the rows of the fit
    if not bounded and plain and posterior is not None and posterior.cells[0].answers == "number":
        # Stated after the fit, which did not need them: the answers are the same with bounds.
        cell = make_cell(posterior.cells[0].name, None, space.bounds)
        judged, bounded = replace(posterior, cells=(cell,)), True
    if not at.first and isinstance(loss, str) and loss == "zero-one" and isinstance(posterior, Posterior):
        judged = posterior.by_label()  # one measure for all that is shown: the share of wrong labels
    if tested is not None:
        wide = model._record.wide
        if wide is not None and wide.steps:
            raise GinghamError(
                f"The steps that stand for the numbers of {', '.join(wide.steps)} were chosen from these rows, and no "
                "theorem covers that: leave these columns out of the fit, or certify on the answers of other people."
            )
        looks = model._record.looks
        makers[tested.name] = partial(tested.certificate, space, loss, looks)
        if loss == "log" and not at.has_posterior:
            makers[f"{tested.name} (wrong labels)"] = partial(tested.certificate, space, "zero-one", looks)
    if at.has_posterior and bounded and plain:
        makers["training rows"] = lambda share: certify(
            judged, rows.X, rows.y, bound=request.bound, delta=share, predictor=request.predictor,
            sample_weight=rows.weight, alphabet=space.alphabet, population=request.population,
            relation=at.relation,
        )  # fmt: skip
    wanted = request.wants_progressive if request.progressive is None else request.progressive
    progressive = not kind.not_by_row and (wanted or (request.progressive is None and tested is None))

    def made(n: int) -> Facts:
        return {name: make(delta / n) for name, make in makers.items()}

    n = len(makers) + progressive
    found = made(n)  # what is wrong with a request shows here, before anything is fitted anew
    if progressive:
        try:
            strata = strata_of(at, source, request.strata)
            found = {TESTS: progressive_tests(at, rows, space, loss, request, delta / n, strata), **found}
        except GinghamError as error:
            if wanted or not makers:
                raise
            warnings.warn(f"There is no certificate from {TESTS}. {error}", GinghamWarning, stacklevel=2)
            found = made(n - 1)
    if not found:
        raise GinghamError(
            "No theorem covers offsets or a sum of layers on the training rows. Such a model is certified by "
            "progressive tests (--progressive) or on held-out rows. Fit with --holdout .1 (the default), and give the "
            "file of the fit."
        )
    return found


def warn_of_later_rows(table: pl.DataFrame, axes: Sequence[str], label: str) -> None:
    """Say of a table with a column of times how many later rows have an id that no earlier row has."""
    from gingham.summary.look import Facts as ColumnFacts

    columns = [name for name in table.columns if name not in (*axes, label)]
    facts = (ColumnFacts.of(name, nw.from_native(table[name], series_only=True)) for name in columns)
    times = [one.name for one in facts if one.role(many=False) == "time"]
    if not times or not set(axes) <= set(table.columns):
        return
    last, rng = len(table) // 5, np.random.default_rng(0)
    orders = (table[times[0]].arg_sort().to_numpy(), rng.permutation(len(table)))

    def share_of_new(order: Ints) -> float:
        before, after = table[order[: len(table) - last]], table[order[len(table) - last :]]
        new = [~after[name].is_in(before[name].unique().implode()) for name in axes]
        return 100 * float(np.mean(np.any([one.to_numpy() for one in new], axis=0))) if last else 0.0

    later, random = map(share_of_new, orders)
    warnings.warn(
        f"{times[0]!r} holds points in time. Certificates are of rows like those of the table, at random, and later "
        f"rows may be others: of the last fifth {later:.3g} % have an id that no earlier row has, of a random fifth "
        f"{random:.3g} %. --strata known/new with --mix covers another share of new ids, and gingham watch tells when "
        "the promise has ended.",
        GinghamWarning,
        stacklevel=2,
    )


def strata_of(at: Place, source: TableSource, strata: str | None) -> Any:
    """The stratum of each row of the table that is not left out, or a rule."""
    if strata is None or (strata == "known/new" and strata not in source.table.columns):
        return strata
    need_columns(source.table, [strata], "--strata")
    wanted = [*at.axes, str(at.label), *([at.weight] if at.weight else [])]
    kept = without_missing(source.table, wanted, source.drop_missing)[strata]
    return kept.cast(pl.String).fill_null("missing")


def rows_of_mix(model: Any, table: pl.DataFrame, strata: str) -> Any:
    """The stratum of each row of a table without labels, or its ids, of which the predictor knows some."""
    if strata in table.columns:
        return table[strata].cast(pl.String).fill_null("missing").to_numpy()
    at = Place.of(model, None, tuple(table.columns))
    need_columns(table, at.axes if strata == "known/new" else [strata], "--mix")
    return like_items(table, at.axes, at.modes)


def progressive_tests(
    at: Place,
    rows: Rows,
    space: LabelSpace,
    loss: Any,
    request: CertificateRequest,
    delta: float,
    strata: Any = None,
) -> Certificate:
    """Progressive validation of the model, fitted anew with its settings, on the whole table."""
    from gingham.models.progressive import certify_progressive

    model, record = clone(at.model), at.model._record or FitRecord()
    if record.side:
        raise GinghamError("Progressive tests fit the model anew, and a model file does not hold tables of --side.")
    params = model.get_params(deep=True)
    for name in ("alphabet", "estimator__alphabet"):
        if name in params and space.values is not None:
            model.set_params(**{name: space.values})
    weights = None if rows.weight is None else pl.Series(str(at.weight), rows.weight)
    # An order that somebody has chosen may be the best of several; the one that the fit has drawn is the other.
    another = request.seed is not None and request.seed != record.order
    return certify_progressive(
        model, rows.dated, pl.Series(at.label, rows.y), delta=delta, sample_weight=weights, loss=loss,
        alphabet=space.values, label_bounds=space.bounds, random_state=request.seed if another else record.order,
        candidates=record.looks + another, clip=not at.has_posterior, references=request.references,
        strata=strata,
    )  # fmt: skip
