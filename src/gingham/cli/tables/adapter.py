"""From a table to a fitted model and back: what all kinds of models share.

What a kind of model wants of a table is said by its `Kind`. The module that it names has ``fit``, ``predict`` and
``open_model`` for its sort of data and, where the shared one does not fit, ``sides``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gingham import models
from gingham.arrays import Ints
from gingham.cli import console
from gingham.cli.options import parse_info, parse_relation
from gingham.cli.tables.arguments import (
    CertificateRequest,
    FitOptions,
    PredictOptions,
    Relation,
    parse_clusters,
    parse_named_clusters,
)  # fmt: skip
from gingham.cli.tables.columns import need_columns, with_ids, with_logarithm, without_labels
from gingham.cli.tables.kinds import OF_GRAPHS, Kind, kind_named, kind_of
from gingham.data import Mode
from gingham.data.table_files import content_of, numbers_with_missing_words, read_table, unfolded
from gingham.errors import GinghamError, GinghamWarning
from gingham.summary.item_tables import id_column_of, matched
from gingham.summary.look import Look, look
from gingham.summary.values import Observed, WideTable, plural

if TYPE_CHECKING:
    from gingham.cli.tables.labelled_rows import Rows, Tested
    from gingham.models.questions import Predicted

Facts = dict[str, Any]  # lines of a summary: plain values by name
LabelledTable = tuple[str, pl.DataFrame]  # the column of labels, and the table
SPOKEN = {
    "n_init": "starts",
    "n_members": "members",
    "max_iter": "max-iter",
}  # parameters by the names of their options


@dataclass(frozen=True, eq=False)
class FitTask:
    """A table to fit, and what was said about it."""

    table: pl.DataFrame
    options: FitOptions
    arguments: Mapping[str, Any] = field(default_factory=dict)  # to the estimator's fit, as far as it knows them
    further: Mapping[Relation, LabelledTable] = field(default_factory=dict)  # for kinds that take several tables
    side: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # properties of items to predict with
    info: Mapping[str, pl.DataFrame] = field(default_factory=dict)  # titles of items and facts about them

    def accepted_by(self, function: Callable[..., object], but: tuple[str, ...] = ()) -> Facts:
        """Those of the arguments that a function takes."""
        known = inspect.signature(function).parameters
        return {name: value for name, value in self.arguments.items() if name in known and name not in but}


@dataclass(frozen=True, eq=False)
class TableSource:
    """The table beside a model and how to read its columns."""

    table: pl.DataFrame
    label: str | None = None
    drop_missing: bool = False
    axes: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Opened:
    """A fitted model beside a table: what certificates, pages and simpler models are made of.

    Attributes
    ----------
    label_name : str
        What was observed: "rating", "count".
    data : tuple
        The observations, as ``model._observed`` and `gingham.simplify` take them.
    facts : dict
        Lines for the overview.
    certify : callable
        Named certificates of a request; a sentence (GinghamError) where none applies.
    without_groups : callable
        What is guaranteed, in the same way, of a predictor that knows no groups; by the names of certificates.
    errors : dict
        What predictions cost on data that the fit has not seen.
    predicts : callable
        As ``model._predict_codes``, of rows in the numbering of the model's summary.
    quality : callable, optional
        What simplifying changes, of a model that can be simplified.
    rows, tested : optional
        The labelled rows, and those that tested the model if it was fitted on them.
    """

    model: Any
    label_name: str
    data: tuple[Any, ...]
    facts: Facts
    certify: Callable[[CertificateRequest], Facts]
    predicts: Callable[..., Predicted]
    without_groups: Callable[[Facts, CertificateRequest], dict[str, float]] = lambda found, request: {}
    errors: dict[str, float] = field(default_factory=dict)
    quality: Callable[[Any], Facts] | None = None
    rows: Rows | None = None
    tested: Tested | None = None

    def observed(self) -> Observed:
        """The rows that were learned from, in the numbering of the model's summary."""
        found: Observed = self.model._observed(*self.data)
        return found

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """What the model predicts of rows of codes, in the numbering of its summary."""
        return self.predicts(relation, codes, label)

    def certificates(self, request: CertificateRequest) -> Facts:
        """Named certificates; a request that means nothing to this kind of model is refused."""
        kind = kind_of(self.model)
        if kind.not_by_row and (request.progressive or request.references):
            raise GinghamError(f"{kind.not_by_row} is not tested row by row: leave --progressive and --references out.")
        if kind.own_theorem and (request.bound, request.predictor) != ("log-wealth", "gibbs"):
            raise GinghamError(f"{kind.not_by_row} has its own certificate: leave --bound and --predictor out.")
        return self.certify(request)

    def simplified(self, clusters: str | None, max_loss: float | None) -> tuple[Any, Facts]:
        """A coarser model and the facts to show."""
        from gingham.selection import simplify

        kind = kind_of(self.model)
        if self.quality is None:
            raise GinghamError(f"{type(self.model).__name__} cannot be simplified. {kind.instead}")
        if max_loss is not None and not kind.needs_label:
            raise GinghamError(
                f"--model {kind.name} is simplified to a number of clusters (--clusters), not to a loss."
            )
        before = self.model.n_clusters_
        wanted: Any = parse_clusters(clusters, len(before) if np.ndim(before) else 1)
        wanted = wanted if np.ndim(before) or wanted is None else wanted[0]
        X, y, weight = (*self.data, None, None)[:3]
        small: Any = simplify(self.model, X, y, wanted, max_loss, weight)
        small._record = self.model._record
        facts: Facts = {"clusters_before": before, "clusters": small.n_clusters_}
        after = self.quality(small)
        for name, value in self.quality(self.model).items():
            facts |= {f"{name}_before": value, name: after[name]}
        return small, facts


def check(kind: Kind, options: FitOptions) -> None:
    """Refuse options that the kind has no use for, rather than forget them."""
    plain = FitOptions((), None)
    for name in (*kind.unused, *(OF_GRAPHS if kind.name != "graph" else ())):
        if getattr(options, name) != getattr(plain, name):
            raise GinghamError(f"--model {kind.name} has no use for --{name.replace('_', '-')}: remove it.")
    if options.n_members is not None and not kind.member:
        raise GinghamError(f"--model {kind.name} has no use for --members: remove it.")
    if kind.has_relations:
        parse_named_clusters(options.clusters, options.axes)
    else:
        parse_clusters(options.clusters, len(options.axes))
    if kind.needs_label and options.label is None:
        raise GinghamError(f"--model {kind.name} needs a column of labels: name it with --label.")


def unfitted(kind: Kind, task: FitTask, said: Mapping[str, object], which: int = 0) -> Any:
    """An estimator with what was said; the rest is its own to choose, and what it does not know is refused."""
    estimator, options = getattr(models, kind.estimators[which]), task.options
    said = {**said, "n_init": options.n_init, "max_iter": options.max_iter, "time": options.time}
    said["side"] = dict(task.side) or None
    said = {name: value for name, value in said.items() if value is not None}
    known = inspect.signature(estimator).parameters
    for name in said:
        if name not in known:
            raise GinghamError(f"--model {kind.name} has no use for --{SPOKEN.get(name, name)}: remove it.")
    return estimator(**said, random_state=options.seed)


def facts_of_fit(kind: Kind, model: Any) -> Facts:
    """What is printed of a fitted model, whatever its kind."""
    facts: Facts = {"model": kind.name}
    posterior = vars(model).get("posterior_")
    if posterior is not None:
        facts["axes"] = {mode.name: mode.n_items for mode in posterior.structure.modes}
        facts["clusters"] = posterior.n_clusters
        facts["effective_clusters"] = tuple(round(e, 1) for e in posterior.effective_clusters)
    elif kind.needs_label:
        facts["axes"] = {mode.name: mode.n_items for mode in model._item_modes()}
    for name, shown in (("n_iter_", "sweeps"), ("converged_", "converged")):
        if hasattr(model, name):
            facts[shown] = getattr(model, name)
    return facts | {name: fact(model) for name, fact in kind.fit_facts.items()}


def facts_of(kind: Kind, model: Any) -> Facts:
    """Lines of the overview that depend on the model alone."""
    return {name: fact(model) for name, fact in kind.facts.items()}


def id_columns(model: Any) -> tuple[str, ...]:
    """The columns of a table beside a model that hold ids, and whose text is kept."""
    kind = kind_of(model)
    if kind.has_relations:
        return tuple(name for relation in model.relations_ for name in relation)
    if model._record is not None:
        axes: tuple[str, ...] = model._record.axes
        return axes
    # A model made in Python has no record of them.
    return tuple(mode.name for mode in model._item_modes()) if kind.data == "labels" else kind.axes


def sides_of(kind: Kind, task: FitTask) -> dict[str, list[object]]:
    """The items of each side by its name, before the fit: tables about them are matched with these."""
    own = getattr(kind.tables, "sides", None)
    found: dict[str, list[object]] = sides(task) if own is None else own(task)
    return found


def sides(task: FitTask) -> dict[str, list[object]]:
    """The items of each column of ids."""
    tables = [(task.options.axes, task.table), *((ids, table) for ids, (_, table) in task.further.items())]
    found: dict[str, dict[object, None]] = {}
    for names, table in tables:
        for name in names:
            need_columns(table, [name], "--axes")
            found.setdefault(name, {}).update(dict.fromkeys(table[name].drop_nulls().to_list()))
    return {name: list(items) for name, items in found.items()}


def predicted(model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
    """The table with what the model predicts of each row in new columns."""
    kind = kind_of(model)
    if kind.one_prediction and (asked.rule is not None or asked.proba):
        raise GinghamError(f"{kind.one_prediction}: leave --rule and --proba out.")
    found: pl.DataFrame = kind.tables.predict(kind, model, table, asked)
    return found


def opened(model: Any, source: TableSource) -> Opened:
    """The model beside the rows of a table."""
    kind, record = kind_of(model), model._record
    if record is not None:
        label = source.label or record.label
        if record.missing:
            need_columns(source.table, [str(label)], "The model")
        kept = without_labels(with_logarithm(source.table, label), label, record.missing)
        source = replace(source, table=kept)
    found: Opened = kind.tables.open_model(kind, model, source)
    return found


# What only a single checkerboard knows: with one of these, labels that are numbers are not left to layers of them.
OF_ONE_BOARD = ("clusters", "loss", "beta", "objective", "solver", "n_init", "max_iter")


def read_task(
    file: str, format: str | None, wanted: FitOptions, wide: bool, relations: list[str]
) -> tuple[FitTask, WideTable | None]:
    """The tables of a fit with all that was said and what the data decide; and how a wide one was unfolded."""
    others = [parse_relation(one) for one in relations]
    if len({ids for ids, _, _ in others}) < len(others):
        raise GinghamError("--relation names the same columns of ids twice; one table for each.")
    if wanted.axes and wanted.model != "auto":
        check(kind_named(wanted.model), wanted)  # what is wrong with it shows before the table is read
    content, found = content_of(file), None
    if wanted.model == "auto" or not wanted.axes or wide:
        table = with_logarithm(read_table(file, format, data=content), wanted.label)
        wanted, found = settled(table, wanted, wide, bool(others), (file, format))
    kind = kind_named(wanted.model)
    if others and not kind.has_relations:
        raise GinghamError("--relation adds a table to a joint model: add --model joint.")
    check(kind, wanted)
    table = read_table(file, format, wanted.axes.__contains__, content)
    folded = None if found is None else found.wide
    if folded is not None:
        table = unfolded(table, folded.axes, folded.label, folded.columns, folded.zeros, folded.steps)
    table = without_labels(with_logarithm(table, wanted.label), wanted.label, wanted.missing)
    further = {
        names: (label, with_ids(read_table(other, is_id=names.__contains__), names)) for names, label, other in others
    }
    return FitTask(with_ids(table, wanted.axes), wanted, further=further), folded


def settled(
    table: pl.DataFrame, said: FitOptions, wide: bool, joint: bool, source: tuple[str, str | None]
) -> tuple[FitOptions, Look | None]:
    """The options with what the data decide of them, said in a sentence, and the look that decided."""
    if said.model == "auto" and said.axes and not wide:
        asked = "joint" if joint or said.cold_start else "tree" if said.merges is not None else ""
        if asked:
            return replace(said, model=asked), None
    if not wide:
        for names, option in ((said.axes, "--axes"), (said.label, "--label"), (said.weight, "--weight")):
            if names:
                need_columns(table, [names] if isinstance(names, str) else names, option)
        if said.label in said.axes:
            raise GinghamError(f"Column {said.label!r} is both an axis and the label.")
        table = with_ids(table, said.axes)
    table = table.with_columns(numbers_with_missing_words(column) for column in table.get_columns())
    found = look(
        table, source[1], axes=said.axes or None, label=said.label, weight=said.weight, wide=wide or None,
        file=source[0],
    )  # fmt: skip
    choice = found.choice
    if choice is None:
        raise GinghamError(f"{found.advice[-1]} Name the columns with --axes and --label.")
    for line in found.advice if not said.missing else ():
        warnings.warn(line, GinghamWarning, stacklevel=2)
    chosen = replace(said, axes=choice.axes, label=choice.label, weight=choice.weight)
    if said.model != "auto":
        return of_kind(said, chosen, found)
    kind, reason = choice.kind, choice.reason
    own = [name for name in OF_ONE_BOARD if getattr(said, name) is not None]
    if kind == "layered" and own:
        kind, option = "coclustering", SPOKEN.get(own[0], own[0])
        reason = f"Model: coclustering, one checkerboard, because --{option} is an option of one checkerboard."
    console.say_note(reason if said.axes else f"{reason} Columns: {columns_said(chosen)}.")
    return replace(chosen, model=kind), found


def of_kind(said: FitOptions, chosen: FitOptions, found: Look) -> tuple[FitOptions, Look]:
    """The columns that a named kind of model takes of what was found."""
    kind = kind_named(said.model)
    if found.wide is not None:
        cells = found.wide.label
        takes_label = "label" not in kind.unused
        chosen = replace(chosen, label=cells if takes_label else None, weight=None if takes_label else cells)
        if kind.needs_label:  # then a zero is a label as any other
            found = replace(found, wide=replace(found.wide, zeros=True))
    elif said.label is not None or said.weight is not None:
        chosen = replace(chosen, label=said.label, weight=said.weight)
    if not said.axes:
        console.say_note(f"Columns: {columns_said(chosen)}.")
    return chosen, found


def columns_said(said: FitOptions) -> str:
    """The columns of a fit as options."""
    parts = [f"--axes {quote(','.join(said.axes))}", said.label and f"--label {quote(said.label)}"]
    return " ".join(part for part in (*parts, said.weight and f"--weight {said.weight}") if part)


def facts_about(task: FitTask, given: list[str], option: str = "--info") -> dict[str, pl.DataFrame]:
    """Tables about the items of sides, matched before the fit."""
    sides = sides_of(kind_named(task.options.model), task) if given else {}
    found = {}
    for side, file in (parse_info(one, option) for one in given):
        if side not in sides:
            raise GinghamError(f"{option} names the side {side!r}; there are {', '.join(map(repr, sides))}.")
        found[side] = table_about(side, file, sides[side])
    return found


def table_about(side: str, file: str, items: list[object]) -> pl.DataFrame:
    """A table about the items of a side, ids as they are written; how many of them it knows is said."""
    content = content_of(file)
    columns = read_table(file, data=content).columns
    ids = columns[id_column_of(columns, side)]
    table = with_ids(read_table(file, is_id=ids.__eq__, data=content), [ids])
    of_side = np.empty(len(items), dtype=object)
    of_side[:] = items
    codes = matched(table, Mode.of(of_side, side))
    known, many = len(np.unique(codes[codes >= 0])), f"{len(items):,} {plural(side)}"
    begins = f"All {many} have" if known == len(items) else f"{known:,} of {many} have"
    rest = "." if known == len(items) else "; the other ids are shown as they are."
    console.say_note(f"{begins} a row in {file!r}{rest}")
    return table
