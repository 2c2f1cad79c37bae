"""From a table of rows to the data of a model and back: what every family shares, and labelled tuples as a whole.

Each family has a module ``tables`` beside its estimator with one object ``TABLES``, a `FamilyTables`. It says by which
name the family is asked for, which options it takes, how its models are fitted to a table, what they add to one, and
what a page and a certificate can say of them. `tables_of_kind` and `tables_of` find it; nobody lists the families.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import shlex
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
import polars as pl
from sklearn.base import clone, is_classifier

from gingham import models
from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.cells import LOSSES, CellModel, loss_kind, make_cell, needs_alphabet
from gingham.cells.losses import cell_state
from gingham.core.problem import Posterior
from gingham.data import Alphabet, Bounds, Mode, Sample
from gingham.data.fit_rows import need_rows_once
from gingham.data.sample import MAX_LABELS, checked_weights, fresh_seed, taken, tuples, whole_counts
from gingham.data.table_files import numbers_with_missing_words
from gingham.errors import GinghamError, GinghamWarning, RefusedCertificate
from gingham.models.base import Persistent, TupleModel
from gingham.models.kinds import kinds
from gingham.models.questions import Predicted
from gingham.summary.look import proposed_alphabet, proposed_bounds
from gingham.summary.measure import FEW_ROWS, FOLDS, SHARE, UNITS, baselines, errors_of, folds_of
from gingham.summary.values import MODEL, Errors

if TYPE_CHECKING:  # a fit asks for none of them
    from gingham.certificates import Certificate
    from gingham.certificates.evidence import Population
    from gingham.selection import BetaPath, PathPoint, PathProgress
    from gingham.summary.values import Observed

Model = TypeVar("Model", bound=Persistent)
Facts = dict[str, Any]  # plain values by name, of any kind: lines of a summary, notes in a model file
PathCallback = Callable[["PathProgress"], None]
Interval = tuple[float, float]
Relation = tuple[str, ...]  # names of the id columns of one table
LabelledTable = tuple[str, pl.DataFrame]  # the column of labels, and the table
KEPT_TEXT = {"ids": "text"}  # a note in model files: 017 and 17 in a text file were two ids
NUMBERS = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64,
)  # types of columns that numpy has as well  # fmt: skip
OF_GRAPHS = ("degree_correction", "directed")  # options that mean nothing to other families
TESTS = "progressive tests"  # what the first certificate comes from


# what a command hands in, and what it gets


@dataclass(frozen=True)
class FitOptions:
    """What was asked for; None where nothing was said."""

    axes: tuple[str, ...]
    label: str | None
    model: str = "coclustering"
    weight: str | None = None
    merges: str | None = None
    clusters: str | None = None  # as written, "13,6", or by mode for several tables, "movie=20,genre=none"
    loss: str | None = None
    beta: float | None = None
    alphabet: str | None = None
    bounds: Interval | None = None
    objective: str | None = None
    solver: str | None = None
    n_init: int | None = None
    max_iter: int | None = None
    holdout: float | None = None  # share of rows (objects, features, tokens) set aside; each kind has its default
    seed: int = 0
    cold_start: bool = False
    drop_missing: bool = False
    degree_correction: str | None = None  # auto, yes or no
    directed: bool | None = None


@dataclass(frozen=True, eq=False)
class FitTask:
    """A table to fit, and what was said about it."""

    table: pl.DataFrame
    options: FitOptions
    arguments: Mapping[str, Any] = field(default_factory=dict)  # to the estimator's fit, as far as it knows them
    further: Mapping[Relation, LabelledTable] = field(default_factory=dict)  # for families that take several tables

    def rows(self) -> Rows:
        """The table as labelled tuples."""
        said = self.options
        label = str(said.label)  # a family that needs one has asked for it
        return labelled_rows(self.table, said.axes, label, said.weight, drop_missing=said.drop_missing)


@dataclass(frozen=True)
class PathOptions:
    """Which values of β to try, with how many folds and processes, and what their certificates are told."""

    betas: list[float] | None = None
    cv: int = 5
    delta: float = 0.05
    n_jobs: int | None = None
    population: Population | None = None


class PredictOptions(NamedTuple):
    """What is asked of predictions; None where nothing was said."""

    rule: str | None = None
    proba: bool = False
    axes: Relation | None = None  # of a model of several tables: the relation that is meant

    def need_defaults(self, what: str) -> None:
        """Refuse rules and probabilities where the model predicts in one way."""
        if self.rule is not None or self.proba:
            raise GinghamError(f"{what}: leave --rule and --proba out.")


class FittedModel(NamedTuple):
    """A model, the notes to store with it, and the facts to show."""

    model: Persistent
    notes: Facts
    facts: Facts


@dataclass(frozen=True, eq=False)
class TableSource:
    """The table beside a model and how to read its columns."""

    table: pl.DataFrame
    label: str | None = None
    drop_missing: bool = False
    axes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class CertificateRequest:
    """What is asked of a certificate."""

    delta: float = 0.05
    bound: str = "log-wealth"
    predictor: str = "gibbs"
    alphabet: str | None = None
    bounds: Interval | None = None
    progressive: bool | None = None  # None: where it is possible
    seed: int | None = None  # of the order of progressive tests; None: the one that the fit has drawn
    population: Population | None = None
    references: int = 0  # of progressive tests

    def __post_init__(self) -> None:
        if self.references and self.progressive is False:
            raise GinghamError("--references belong to progressive tests, which --no-progressive leaves out.")
        if self.bound in ("holdout", "split"):
            raise GinghamError(
                f"--bound {self.bound} would test the model on the rows that it was fitted on. Rows that the fit set "
                "aside are tested without being asked for, and --progressive tests a model that is fitted anew."
            )

    def need_defaults(self, what: str) -> None:
        """Refuse a bound or predictor where the model has one theorem of its own."""
        if self.bound != "log-wealth" or self.predictor != "gibbs":
            raise GinghamError(f"{what} has a certificate of its own: leave --bound and --predictor out.")

    def need_no_tests(self, what: str) -> None:
        """Refuse progressive tests, where they were asked for, of what predicts no labels of single rows."""
        if self.progressive or self.references:
            raise GinghamError(f"{what} is not tested row by row: leave --progressive and --references out.")


@dataclass(eq=False)
class ModelWithData(Generic[Model]):
    """A fitted model beside the rows of a table; every family answers these questions."""

    instead: ClassVar[str] = "Fit again with fewer --clusters."  # of a model that cannot be simplified

    model: Model
    notes: Facts

    @property
    def label_name(self) -> str:
        """What was observed: "rating", "count"."""
        raise NotImplementedError  # pragma: no cover

    def observed(self) -> Observed:
        """The rows that were learned from, in the numbering of the model's summary."""
        raise NotImplementedError  # pragma: no cover

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """What the model predicts of rows of codes, in the numbering of its summary."""
        predicted: Predicted = self.model.predict_codes(relation, codes, label)
        return predicted

    def without_groups(self, certificates: Facts, request: CertificateRequest) -> dict[str, float]:
        """What is guaranteed, in the same way, of a predictor that knows no groups; by the names of certificates."""
        return {}

    def certificates(self, request: CertificateRequest) -> Facts:
        """Named certificates; a sentence (GinghamError) where none applies."""
        raise NotImplementedError  # pragma: no cover

    def errors(self) -> dict[str, float]:
        """What predictions cost on data that the fit has not seen."""
        return {}

    def facts(self) -> Facts:
        """Lines for the overview."""
        return {}

    def simplified(self, clusters: str | None, max_loss: float | None) -> tuple[Persistent, Facts]:
        """A coarser model and the facts to show."""
        raise GinghamError(f"{type(self.model).__name__} cannot be simplified. {self.instead}")


class FamilyTables(Generic[Model]):
    """How tables of rows become the data of one family of models, and back."""

    kind: ClassVar[str]  # what ``--model`` calls the family
    estimators: ClassVar[tuple[str, ...]]  # the classes of the models it opens
    unused: ClassVar[tuple[str, ...]] = ()  # options of ``gingham fit`` that mean nothing here
    uses: ClassVar[tuple[str, ...]] = ()  # of the options that no other family has a use for
    needs_label: ClassVar[bool] = False  # whether a column of labels is needed
    has_relations: ClassVar[bool] = False  # whether further tables are taken
    cross_validates: ClassVar[bool] = False  # whether paths of β are
    no_path: ClassVar[str] = ""  # why there is no path of β; empty where there is one
    plain_axes: ClassVar[tuple[str, ...]] = ()  # columns of ids of a model made in Python, which has no notes of them

    def check(self, options: FitOptions) -> None:
        """Refuse options that the family has no use for, rather than forget them."""
        plain = FitOptions((), None)
        for name in (*self.unused, *(name for name in OF_GRAPHS if name not in self.uses)):
            if getattr(options, name) != getattr(plain, name):
                raise GinghamError(f"--model {self.kind} has no use for --{name.replace('_', '-')}: leave it out.")
        self.check_clusters(options)
        if self.needs_label and options.label is None:
            raise GinghamError(f"--model {self.kind} predicts a column of labels: name it with --label.")

    def check_clusters(self, options: FitOptions) -> None:
        """Refuse numbers of clusters that cannot be read, before the table is."""
        parse_clusters(options.clusters, len(options.axes))

    def fit(self, task: FitTask) -> FittedModel:
        """A model of the table."""
        raise NotImplementedError  # pragma: no cover

    def predict(self, model: Model, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
        """The table with what the model predicts of each row in new columns."""
        raise NotImplementedError  # pragma: no cover

    def open(self, model: Model, source: TableSource) -> ModelWithData[Model]:
        """The model beside the rows of a table."""
        raise NotImplementedError  # pragma: no cover

    def id_axes(self, options: FitOptions) -> tuple[str, ...]:
        """The columns of a table to fit that hold ids."""
        return options.axes

    def sides(self, task: FitTask) -> dict[str, list[object]]:
        """The items of each side by its name, before the fit: tables about them are matched with these."""
        tables = [(task.options.axes, task.table), *((ids, table) for ids, (_, table) in task.further.items())]
        found: dict[str, dict[object, None]] = {}
        for names, table in tables:
            for name in names:
                need_columns(table, [name], "--axes")
                found.setdefault(name, {}).update(dict.fromkeys(table[name].drop_nulls().to_list()))
        return {name: list(items) for name, items in found.items()}

    def id_names(self, model: Model) -> tuple[str, ...]:
        """The columns of a table beside a model that hold ids, and whose text is kept.

        A model that was fitted when text that looked like a number was one reads its tables in that way.
        """
        notes: Facts = getattr(model, "notes_", {})
        return () if notes and not KEPT_TEXT.items() <= notes.items() else self.id_columns(model)

    def id_columns(self, model: Model) -> tuple[str, ...]:
        """The columns of ids of a fitted model."""
        return tuple(model.notes_.get("axes") or self.plain_axes)

    def clusters(self, model: Any) -> pl.DataFrame:
        """Item, most probable cluster (from 1) and its share, for every item of every mode."""
        posterior: Posterior = model.posterior_  # a family whose models have none lists clusters in its own way
        sides = zip(posterior.structure.modes, posterior.assign)
        return pl.concat(
            [cluster_rows(mode.name, mode.items.tolist(), q.argmax(axis=1), q.max(axis=1)) for mode, q in sides]
        )

    def path(self, task: FitTask, path: PathOptions, progress: PathCallback) -> BetaPath:
        """Fits over a range of β, largest first."""
        raise GinghamError(self.no_path)

    # shared by the families

    def made(self, options: FitOptions, said: Mapping[str, object], which: int = 0) -> Model:
        """An estimator with what was said, the rest is its own to choose; what it does not know is refused."""
        estimator = getattr(models, self.estimators[which])  # imported here: naming a family is quick
        said = {**said, "n_init": options.n_init, "max_iter": options.max_iter}
        said = {name: value for name, value in said.items() if value is not None}
        known = inspect.signature(estimator).parameters
        for name in said:
            if name not in known:
                option = {"n_init": "starts", "max_iter": "max-iter"}.get(name, name)
                raise GinghamError(f"--model {self.kind} has no use for --{option}: leave it out.")
        model: Model = estimator(**said, random_state=options.seed)
        return model

    def notes(self, options: FitOptions, **own: object) -> Facts:
        """What is stored with a model of rows without labels."""
        return {
            "axes": list(options.axes), "label": None, "weight": None, "seed": options.seed, "model": self.kind, **own,
        }  # fmt: skip

    def facts(self, model: Model) -> Facts:
        """What a summary says of a fitted model."""
        facts: Facts = {"model": self.kind}
        posterior = vars(model).get("posterior_")
        if posterior is not None:
            facts["axes"] = {mode.name: mode.n_items for mode in posterior.structure.modes}
            facts["clusters"] = posterior.n_clusters
            facts["effective_clusters"] = tuple(round(e, 1) for e in posterior.effective_clusters)
        elif isinstance(model, TupleModel):
            facts["axes"] = {mode.name: mode.n_items for mode in model.item_modes()}
        for name, shown in (("n_iter_", "sweeps"), ("converged_", "converged")):
            if hasattr(model, name):
                facts[shown] = getattr(model, name)
        return facts


# finding a family


def families() -> dict[str, FamilyTables[Any]]:
    """Every family with tables, by the name that ``--model`` calls it."""
    return {kind: tables_of_kind(kind) for kind in kinds()}


@cache  # a command asks several times, and looking for families reads folders
def tables_of_kind(kind: str) -> FamilyTables[Any]:
    """The family that ``--model`` names; no other is imported."""
    known = kinds()
    if kind not in known:
        raise GinghamError(f"--model {kind!r} is unknown; choose one of {', '.join(known)}.")
    found: FamilyTables[Any] = import_module(f"{known[kind]}.tables").TABLES
    return found


def tables_of(model: Persistent) -> FamilyTables[Any]:
    """The tables of the family of a model: they lie beside its estimator."""
    name, place = type(model).__name__, type(model).__module__.rpartition(".")[0]
    if place.startswith(f"{models.__name__}.") and find_spec(f"{place}.tables"):
        found: FamilyTables[Any] = import_module(f"{place}.tables").TABLES
        if name in found.estimators:
            return found
    if name in PREDICTORS.estimators:
        return PREDICTORS
    raise GinghamError(f"The command line does not know {name} models; use them in Python.")


# summary options


def accepted(function: Callable[..., object], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that a function takes."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in known}


def column_names(listed: str, option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not names:
        raise GinghamError(f"{option} is empty; give column names, such as {option} user,movie.")
    return names


def parse_bounds(listed: str | None) -> tuple[float, float] | None:
    """Two numbers from "0,1"."""
    if listed is None:
        return None
    try:
        low, high = (float(part) for part in listed.split(","))
    except ValueError:
        raise GinghamError(
            f"--bounds {listed!r} must be two numbers, the smallest and largest: --bounds 0,1."
        ) from None
    if not -math.inf < low < high < math.inf:
        raise GinghamError(f"--bounds {listed!r}: the smallest must be below the largest, and both finite.")
    return low, high


def parse_population(listed: str | None) -> tuple[int, ...] | dict[str, int] | None:
    """Numbers of items from "943,1682", or by name from "user=943,movie=1682"."""
    if listed is None:
        return None
    parts = [part.rpartition("=") for part in listed.split(",")]
    try:
        numbers = [int(number) for _, _, number in parts]
    except ValueError:
        numbers = []
    names = [name.strip() for name, _, _ in parts if name]
    if not numbers or len(names) not in (0, len(numbers)):
        raise GinghamError(f"--population {listed!r} must be whole numbers, one per axis: 943,1682 or user=943.")
    return dict(zip(names, numbers)) if names else tuple(numbers)


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


def parse_alphabet(listed: str, names: bool) -> AnyArray:
    """Label values from "1,2,3" or, for whole numbers, "1..5"."""
    if ".." in listed and not names:
        low, _, high = listed.partition("..")
        try:
            first, last = int(low), int(high)
        except ValueError:
            raise GinghamError(f"--alphabet {listed!r}: a range is two whole numbers, such as 1..5.") from None
        n_values = max(last - first + 1, 0)
        if not 1 <= n_values <= MAX_LABELS:
            raise GinghamError(f"--alphabet {listed!r} has {n_values:,} values; from 1 to {MAX_LABELS:,} are taken.")
        return np.arange(first, last + 1)
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if not parts:
        raise GinghamError("--alphabet is empty; list the possible labels, such as 1,2,3,4,5 or 1..5.")
    if names:
        return np.array(parts)
    try:
        numbers = np.array([float(part) for part in parts])
    except ValueError:
        raise GinghamError(f"--alphabet {listed!r} must list numbers, because the label column is numeric.") from None
    return numbers.astype(np.int64) if np.all(numbers == np.floor(numbers)) else numbers


# columns of a table


def need_columns(table: pl.DataFrame, names: Sequence[str], option: str) -> None:
    """Refuse names that the table does not have."""
    for name in names:
        if name not in table.columns:
            have = ", ".join(table.columns[:12]) + (", …" if table.width > 12 else "")
            raise GinghamError(f"{option} names a column {name!r} that the table does not have. It has: {have}.")
        if f"{name}_duplicated_0" in table.columns:  # so the second is called by polars
            raise GinghamError(f"The table has a column {name!r} twice; rename one of them.")
    if len(set(names)) != len(names):
        raise GinghamError(f"{option} names a column twice: {', '.join(names)}.")


def without_missing(table: pl.DataFrame, names: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """The rows without a missing value in the named columns, and how many were left out."""
    floats = [name for name in names if table[name].dtype.is_float()]
    whole = table.with_columns(pl.col(floats).fill_nan(None)) if floats else table
    kept = whole.drop_nulls(list(names))
    return kept, table.height - kept.height


def _say_dropped(n_dropped: int, n_rows: int) -> None:
    sentence = f"{n_dropped:,} of {n_rows:,} rows have a missing value and were left out."
    warnings.warn(sentence, GinghamWarning, stacklevel=3)


def with_ids(table: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """The table with ids as text or numbers in the named columns, where it has them."""
    return table.with_columns(id_column(table[name]) for name in dict.fromkeys(names) if name in table.columns)


def id_column(column: pl.Series) -> pl.Series:
    """Ids as text or numbers: dates, times, decimals and the like become what they are written as.

    What cannot be told apart by what it is written as is refused by name.
    """
    kind = column.dtype
    if kind == pl.String or kind in NUMBERS:
        return column
    if kind.is_nested() or kind == pl.Object:
        raise GinghamError(f"Column {column.name!r} holds lists or objects; ids are text or numbers.")
    if kind in (pl.Binary, pl.Duration):
        raise GinghamError(f"Column {column.name!r} holds {kind} values; ids are text or numbers: write them as text.")
    return column.dt.to_string("%H:%M:%S%.9f") if kind == pl.Time else column.cast(pl.String)


def like_items(table: pl.DataFrame, names: Sequence[str], modes: Sequence[Mode]) -> pl.DataFrame:
    """The id columns in the type that the model was trained on, so that text in one file is a number in another.

    Text is a number where it is the one way to write it: 7, but not 07 or 7.0. An id that cannot be converted gets a
    value that no training item has: it is then unseen.
    """
    columns: list[pl.Series] = []
    for name, mode in zip(names, modes):
        kind = mode.items.dtype.kind
        if kind in "Mmb":  # of a model that was fitted before dates became text
            columns.append(table[name])
            continue
        column = id_column(table[name])
        if kind in "iu" and column.dtype == pl.String:
            numbers = column.cast(pl.UInt64 if kind == "u" else pl.Int64, strict=False)
            known = numbers.cast(pl.String).eq_missing(column)
            column = pl.select(pl.when(known).then(numbers)).to_series().fill_null(_unused_number(mode)).alias(name)
        elif kind == "f" and column.dtype == pl.String:
            own = pl.Float32 if mode.items.itemsize == 4 else pl.Float64
            column = column.cast(own, strict=False).fill_null(float(np.nextafter(mode.items.max(), np.inf)))
        elif kind == "U" and column.dtype != pl.String:
            column = column.cast(pl.String)
        columns.append(column)
    return pl.DataFrame(columns)


def _unused_number(mode: Mode) -> int:
    """The smallest whole number from 0 on that is no item."""
    return int(np.setdiff1d(np.arange(mode.n_items + 1), mode.items)[0])


def id_pairs(
    table: pl.DataFrame,
    axes: Sequence[str],
    weight: str | None,
    example: str,
    kind: str,
    numbers: bool = True,
    drop_missing: bool = False,
) -> tuple[pl.DataFrame, Floats | None]:
    """Rows with two ids (and a value), none missing; the value as finite numbers where they are wanted."""
    if len(axes) != 2:
        raise GinghamError(f"--model {kind} needs two columns of ids, such as --axes {example}.")
    need_columns(table, axes, "--axes")
    if weight is not None:
        need_columns(table, [weight], "--weight")
    kept, dropped = without_missing(table, [*axes, *([weight] if weight else [])])
    if dropped and not drop_missing:
        raise GinghamError(
            f"{dropped:,} of {table.height:,} rows have a missing value. Leave them out with --drop-missing."
        )
    if dropped:
        _say_dropped(dropped, table.height)
    kept = with_ids(kept, axes)
    if weight is None or not numbers:
        return kept, None
    weights = kept[weight].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    if not np.isfinite(weights).all():
        raise GinghamError(f"--weight column {weight!r} must hold finite numbers.")
    return kept, weights


def numbered(table: pl.DataFrame, names: Sequence[str]) -> tuple[list[Mode], list[Ints]]:
    """The items of each column, and their codes."""
    modes = [Mode.of(table[name].to_numpy(), name) for name in names]
    return modes, [mode.encode(table[mode.name].to_numpy()) for mode in modes]


def places(names: Sequence[str], table: pl.DataFrame, column: str) -> Ints:
    """Positions of ids among names; −1 for those that are not there."""
    at = {name: place for place, name in enumerate(names)}
    return np.array([at.get(str(item), -1) for item in id_column(table[column]).to_list()], dtype=np.int64)


def cluster_rows(axis: str, items: Iterable[object], labels: Ints, share: Floats | None = None) -> pl.DataFrame:
    """The items of one axis with their clusters and the share of their membership, 1 where there is no other.

    Labels count from 0, as in Python; the table is for people, and counts from 1.
    """
    names = [str(item) for item in items]
    shares = np.ones(len(names)) if share is None else np.asarray(share, np.float64)
    return pl.DataFrame(
        {"axis": [axis] * len(names), "item": names, "cluster": np.asarray(labels) + 1, "share": shares}
    )


def cluster_rows_of_notes(model: Persistent, labels: Ints) -> pl.DataFrame:
    """The same where only the notes of the fit know the names of the items."""
    notes: Facts = getattr(model, "notes_", {})
    if not notes.get("items"):
        raise GinghamError(f"{type(model).__name__} has no clusters of items to list.")
    return cluster_rows(notes["axes"][0], notes["items"][0], labels)


def with_predictions(table: pl.DataFrame, *columns: pl.Series) -> pl.DataFrame:
    """The table with new columns; one that it has already is not overwritten."""
    for column in columns:
        if column.name in table.columns:
            raise GinghamError(f"The table has a column {column.name!r} already, and it is kept: rename it first.")
    return table.with_columns(columns)


def with_probabilities(table: pl.DataFrame, values: Iterable[object], laws: Floats) -> pl.DataFrame:
    """The table with one column for the probability of each label."""
    return with_predictions(table, *(pl.Series(f"p_{value}", column) for value, column in zip(values, laws.T)))


def fingerprint(table: pl.DataFrame, names: Sequence[str]) -> str:
    """Equal for equal columns."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\x1f" + joined(table[name]) + b"\x1e")
    return digest.hexdigest()[:32]


def joined(column: pl.Series) -> bytes:
    """The texts of a column one after the other: no two columns are joined to the same."""
    texts = column.bin.encode("hex") if column.dtype == pl.Binary else column.cast(pl.String)
    texts = texts.str.replace_all("[\x1c-\x1f]", "\x1c${0}")  # a separator in a text is none
    return "\x1f".join(texts.fill_null("\x1d").to_list()).encode()


def check_holdout(share: float) -> None:
    if not 0 <= share < 1:
        raise GinghamError(f"--holdout {share} must be from 0 to below 1.")


def split(n_rows: int, share: float, seed: int) -> tuple[Bools, Bools]:
    """Masks of the rows to learn from and of those set aside, drawn at random from the seed."""
    check_holdout(share)
    held = np.zeros(n_rows, dtype=bool)
    held[np.random.default_rng([seed, n_rows]).permutation(n_rows)[: round(share * n_rows)]] = True
    if held.all():
        raise GinghamError("--holdout leaves no row to learn from.")
    return ~held, held


def path_values(betas: list[float] | None, scale: float) -> list[float]:
    """Largest first; eight values around a scale where none are given."""
    if betas is None:
        return [float(scale * b) for b in np.geomspace(3.0, 0.1, 8)]
    if min(betas) <= 0 or not np.isfinite(betas).all():
        raise GinghamError("--betas needs finite numbers above 0.")
    return sorted(set(betas), reverse=True)


def path_of(points: Iterable[PathPoint], total: int, progress: PathCallback) -> BetaPath:
    """Points without cross-validation, one after the other, as a path."""
    from gingham.selection import BetaPath, PathProgress

    found: list[PathPoint] = []
    for point in points:
        found.append(point)
        progress(PathProgress(len(found), total, "point"))
    return BetaPath(tuple(found), tuple(mode.name for mode in found[0].posterior.structure.modes))


# labelled tuples


@dataclass(frozen=True, eq=False)
class Rows:
    """Observed tuples: ids (a frame), labels and weights."""

    X: pl.DataFrame
    y: AnyArray
    weight: Floats | None

    def take(self, mask: Bools) -> Rows:
        """The rows under a mask."""
        return Rows(self.X.filter(mask), self.y[mask], None if self.weight is None else self.weight[mask])

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
            raise GinghamError(f"--holdout sets draws aside. {error} With --holdout 0 none are set aside.") from None
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
        return cls(pl.concat([part.X for part in parts]), labels, np.concatenate(weights) if weights else None)

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
        digest = hashlib.sha256()
        for name in self.X.columns:
            digest.update(joined(self.X[name]) + b"\x1e")
        digest.update(joined(pl.Series(list(map(str, self.y.tolist())))))
        if self.weight is not None:
            digest.update(b"\x1e" + np.ascontiguousarray(self.weight, "<f8").tobytes())
        return digest.hexdigest()[:32]

    def tested(self, model: Persistent, modes: Sequence[Mode], relation: int = 0) -> Tested | None:
        """The rows that measured the model's error, where these are the rows of its fit.

        They are recognised by their fingerprint and divided as they were then. Of a model that has learned from other
        rows since, the measurement says nothing.
        """
        notes = model.notes_
        if notes.get("fingerprint") != self.fingerprint or not notes.get("measured"):
            return None
        if model.fit_rows_ and not model.fit_rows_[relation].equals(self.sample(modes).fit_rows()):
            warnings.warn(
                "The model has learned from other rows than those of its first fit, so that what was measured then "
                "says nothing about it.",
                GinghamWarning,
                stacklevel=2,
            )
            return None
        if model.errors_ is None:  # merged clusters, say: another model than the one that was measured
            return None
        kept = notes["measured"]
        seed = int(kept["seed"])
        return Tested.of(self.folds(kept["share"], seed), np.asarray(kept["predictions"]), seed)

    def sample(self, modes: Sequence[Mode]) -> Sample:
        """The rows as tuples of the items of modes."""
        return tuples(self.X.get_columns(), self.y, self.weight, modes=modes, unseen=True)


def labelled_rows(
    table: pl.DataFrame,
    axes: Sequence[str],
    label: str,
    weight: str | None = None,
    modes: Sequence[Mode] | None = None,
    drop_missing: bool = False,
) -> Rows:
    """Take the columns apart; ids in the type of the model's items when modes are given."""
    need_columns(table, axes, "--axes")
    need_columns(table, [label], "--label")
    if label in axes:
        raise GinghamError(f"Column {label!r} is both an axis and the label.")
    if weight is not None:
        need_columns(table, [weight], "--weight")
    wanted = [*axes, label, *([weight] if weight else [])]
    table = table.with_columns(numbers_with_missing_words(table[name]) for name in wanted[len(axes) :])
    kept, dropped = without_missing(table, wanted)
    if dropped and not drop_missing:
        name = next(
            n for n in wanted if table[n].null_count() or (table[n].dtype.is_float() and table[n].is_nan().any())
        )
        raise GinghamError(
            f"{dropped:,} of {table.height:,} rows have a missing value (column {name!r}, for one). "
            "Leave them out with --drop-missing."
        )
    if dropped:
        _say_dropped(dropped, table.height)
    if kept.height == 0:
        raise GinghamError("No row is left: every one has a missing value.")
    X = with_ids(kept.select(axes), axes) if modes is None else like_items(kept, axes, modes)
    return Rows(X, _labels(kept[label]), None if weight is None else _weights(kept[weight]))


def _labels(column: pl.Series) -> AnyArray:
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
                f"gingham --plugin MODULE fit …"
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
        classify = names or (loss is not None and not loss_kind(loss).ordered)
        if classify and labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise GinghamError(
                f"--loss {loss} is for classes, and the labels are measurements such as {labels[0]:g}: use absolute or "
                "quadratic."
            )
        return cls(classify, loss, given, bounds)


@dataclass(frozen=True, eq=False)
class LabelSpace:
    """What labels can be, stated by somebody: a list of values, or the smallest and largest.

    A guarantee must not depend on what happened to be observed. ``alphabet`` is what a certificate of the posterior
    must be told, None where the model knows.
    """

    values: AnyArray | None
    bounds: Interval | None
    alphabet: AnyArray | None = None

    @classmethod
    def stated(
        cls, known: Alphabet | Interval | None, labels: AnyArray, notes: Facts, request: CertificateRequest
    ) -> LabelSpace:
        """The stated labels, where the model knows an alphabet or bounds; refuses those read off the data."""
        if not isinstance(known, Alphabet):
            return cls(None, _stated_bounds(known, labels, notes, request))
        if request.alphabet is not None:
            values = parse_alphabet(request.alphabet, labels.dtype.kind not in "biuf")
            return cls(np.asarray(values), None, values)
        if not known.given:
            raise GinghamError(
                "The model read the possible labels off the data, and a guarantee must not depend on what happened to "
                f"be observed. {_proposal(known)}"
            )
        return cls(known.values, None)


def _proposal(known: Alphabet) -> str:
    """What to say of the possible labels, as it is then taken."""
    listed = proposed_alphabet(known.values)
    if not listed:
        return "Fit with all of them stated: --alphabet."
    filled = np.setdiff1d(parse_alphabet(listed, not known.numeric), known.values)
    if len(filled):  # the model has to know them as well
        exact = ",".join(str(value) for value in known.values.tolist())
        return (
            f"If no others than {exact} are possible, say so with --alphabet {exact}; if they are {listed}, fit with "
            f"--alphabet {shlex.quote(listed)}."
        )
    return (
        f"If no others than {listed} are possible, say so with --alphabet {shlex.quote(listed)}; if there are more, "
        "fit with all of them."
    )


def _stated_bounds(known: Interval | None, labels: AnyArray, notes: Facts, request: CertificateRequest) -> Interval:
    """The smallest and largest possible label that somebody stated."""
    low, high = (float(np.min(labels)), float(np.max(labels))) if known is None else known
    if request.bounds is not None:
        if known is not None and request.bounds != known:
            raise GinghamError(
                f"The model was fitted with labels from {low:g} to {high:g}; fit with --bounds "
                f"{request.bounds[0]:g},{request.bounds[1]:g} if they can be others."
            )
        return request.bounds
    stated = notes.get("bounds")
    if stated is not None:
        return float(stated[0]), float(stated[1])
    proposed = proposed_bounds(low, high)
    raise GinghamError(
        "The smallest and largest possible label were read off the data, and a guarantee must not depend on what "
        f"happened to be observed. If no label can lie outside {proposed.replace(',', ' to ')}, say so: --bounds "
        f"{proposed}."
    )


def labels_of_cell(cell: CellModel) -> Alphabet | Interval | None:
    """The labels that a cell knows: all of them, or the smallest and largest, unless those were read off the data."""
    letters, bounds = cell.alphabet, Bounds.of(cell.bounds, given=True)
    return letters if letters is not None or bounds is None or not bounds.given else (bounds.low, bounds.high)


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
        return "rows set aside" if self.folds[-1] == 0 else "rows set aside in turn"

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

    def certificate(self, space: LabelSpace, loss: object, delta: float) -> Certificate:
        """The guarantee for the models that were tested, from the rows that each has not seen."""
        from gingham.certificates.certificate import drawn_order
        from gingham.certificates.holdout import certify_cross_fitted, certify_predictions

        stated: Facts = {"loss": loss, "alphabet": space.values, "label_bounds": space.bounds, "delta": delta}
        y, weight = self.rows.y, self.rows.weight
        if self.folds[-1] == 0:
            made = certify_predictions(self.predictions, y, sample_weight=weight, predictor=self.covers, **stated)
        else:
            made = certify_cross_fitted(
                self.predictions, y, self.folds, sample_weight=weight, predictor=self.covers, **stated
            )
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
    letters: AnyArray | None = None,
) -> tuple[Errors, Facts] | None:
    """The error of a model that is fitted anew without some of the rows, beside simple rules; and what a file keeps.

    ``seed`` divides the rows; it is that of the fit, so that the same fit reports the same error, and it is kept.
    ``letters`` are the labels where they are names or classes, in the order of the columns of distributions. None where
    a fit was interrupted.
    """
    parts = data.folds(share, seed)
    if not parts:
        return None
    modes, _ = numbered(data.X, data.X.columns)
    found: dict[str, list[AnyArray]] = {}
    kept = []
    for training, held in parts:
        with warnings.catch_warnings():  # the fit on all rows has said what there is to say
            warnings.simplefilter("ignore")
            model = fit(training)
            if model.interrupted_:
                return None
            said = say(model, held.X)
        kept.append(said)
        both = Rows.joined([training, held])
        codes = [mode.encode(both.X[mode.name].to_numpy()) for mode in modes]
        labels = both.y if letters is None else codes_among(letters, both.y)
        simple = baselines(
            codes, [mode.n_items for mode in modes], labels, both.weight, np.arange(len(both)) < len(training),
            data.X.columns, loss, None if letters is None else len(letters),
        )  # fmt: skip
        own = said if letters is None or said.ndim == 2 else codes_among(letters, said)
        for name, guess in {MODEL: own, **simple}.items():
            found.setdefault(name, []).append(guess)
    tested = Tested.of(parts, np.concatenate(kept), seed)
    labels = tested.rows.y if letters is None else codes_among(letters, tested.rows.y)
    joined_up = {name: np.concatenate(guesses) for name, guesses in found.items()}
    errors = errors_of(labels, tested.rows.weight, joined_up, loss, tested.how, losses)
    return errors, {"seed": seed, "share": share, "predictions": tested.predictions}


def codes_among(letters: AnyArray, labels: AnyArray) -> Ints:
    """Positions of labels among sorted ones; those that are not there have none of the positions."""
    at = np.minimum(np.searchsorted(letters, labels), len(letters) - 1)
    return np.where(letters[at] == labels, at, len(letters))


def constant_guarantees(certificates: Facts, rows: Rows, space: LabelSpace, loss: object) -> dict[str, float]:
    """What is guaranteed of one constant answer for all rows, for every certificate of the same loss."""
    from gingham.certificates.partitions import certify_labels

    one = [np.zeros(column.n_unique()) for column in rows.X.get_columns()]
    found = {}
    for name, certificate in certificates.items():
        constant = certify_labels(
            one, rows.X, rows.y, loss=loss, alphabet=space.values, label_bounds=space.bounds,
            sample_weight=rows.weight, delta=certificate.delta,
        )  # fmt: skip
        if constant.loss == certificate.loss:
            found[name] = float(constant.value)
    return found


@dataclass(eq=False)
class TuplesWithModel(ModelWithData[Any]):
    """A model of labelled tuples beside the rows of a table, and those that tested it if it was fitted on them."""

    tables: TupleTables
    label: str
    rows: Rows
    tested: Tested | None

    def facts(self) -> Facts:
        model = self.model
        beta = round(float(getattr(model, "beta_", model.beta)), 4)
        return {"tuples": len(self.rows), "loss": self.tables.loss_name(model), "β": beta, "sweeps": model.n_iter_}

    @property
    def label_name(self) -> str:
        return self.label

    def observed(self) -> Observed:
        observed: Observed = self.model.observed(self.rows.X, self.rows.y, self.rows.weight)
        return observed

    def without_groups(self, certificates: Facts, request: CertificateRequest) -> dict[str, float]:
        space = LabelSpace.stated(self.tables.labels(self.model), self.rows.y, self.notes, request)
        return constant_guarantees(certificates, self.rows, space, self.tables.judged_by(self.model))

    def certificates(self, request: CertificateRequest) -> Facts:
        """Progressive tests of the model fitted anew, then the model itself on the rows of its fit, then the models
        without the rows that were set aside, on those.

        They share δ, so that all that is shown holds together.
        """
        from gingham.certificates.certify import certify
        from gingham.certificates.confidence import checked_delta

        delta = checked_delta(request.delta)
        model, seen = self.model, self.rows
        need_rows_once(
            self.rows.sample(self.tables.columns(model)[1])
        )  # copies may be on both sides of what is set aside
        known = self.tables.labels(model)
        space = LabelSpace.stated(known, seen.y, self.notes, request)
        makers: dict[str, Callable[[float], Certificate]] = {}
        judged, bounded = model, known is not None
        posterior = vars(model).get("posterior_")
        plain = getattr(posterior, "offsets", None) is None  # offsets have no certificate on the rows of the fit
        if not bounded and plain and posterior is not None and posterior.cells[0].answers == "number":
            # Stated after the fit, which did not need them: the answers are the same with bounds.
            cell = make_cell(posterior.cells[0].name, None, space.bounds)
            judged, bounded = replace(posterior, cells=(cell,)), True
        loss = self.tables.judged_by(model)
        if isinstance(loss, str) and loss == "zero-one" and isinstance(posterior, Posterior):
            judged = posterior.by_label()  # one measure for all that is shown: the share of wrong labels
        if self.tables.has_posterior(model) and bounded and plain:
            makers["training rows"] = lambda share: certify(
                judged, seen.X, seen.y, bound=request.bound, delta=share, predictor=request.predictor,
                sample_weight=seen.weight, alphabet=space.alphabet, population=request.population,
            )  # fmt: skip
        if self.tested is not None:
            makers[self.tested.name] = partial(self.tested.certificate, space, loss)

        def made(n: int) -> Facts:
            return {name: make(delta / n) for name, make in makers.items()}

        n = len(makers) + (request.progressive is not False)
        found = made(n)  # what is wrong with a request shows here, before anything is fitted anew
        if request.progressive is not False:
            try:
                found = {TESTS: self._tested(space, loss, request, delta / n), **found}
            except GinghamError as error:
                if request.progressive or request.references or not makers:
                    raise
                warnings.warn(f"There is no certificate from {TESTS}. {error}", GinghamWarning, stacklevel=2)
                found = made(n - 1)
        if not found:
            raise GinghamError(
                "No theorem here covers offsets or a sum of layers on the rows they were fitted to: the model has "
                "certificates from progressive tests (--progressive) and from rows set aside. Fit with --holdout .1 "
                "(the default), and give the file of the fit."
            )
        return found

    def _tested(self, space: LabelSpace, loss: Any, request: CertificateRequest, delta: float) -> Certificate:
        """Progressive validation of the model, fitted anew with its settings, on the whole table."""
        from gingham.models.progressive import certify_progressive

        rows, model = self.rows, clone(self.model)
        params = model.get_params(deep=True)
        for name in ("alphabet", "estimator__alphabet"):
            if name in params and space.values is not None:
                model.set_params(**{name: space.values})
        weights = None if rows.weight is None else pl.Series(str(self.notes.get("weight")), rows.weight)
        # An order that somebody has chosen may be the best of several; the one that the fit has drawn is the other.
        drawn = self.notes.get("order")
        another = request.seed is not None and request.seed != drawn
        return certify_progressive(
            model, rows.X, pl.Series(self.label, rows.y), delta=delta, sample_weight=weights, loss=loss,
            alphabet=space.values, label_bounds=space.bounds, random_state=request.seed if another else drawn,
            candidates=1 + another, clip=not self.tables.has_posterior(self.model), references=request.references,
        )  # fmt: skip


class TupleTables(FamilyTables[Any]):
    """Families of models of labelled tuples, with one column of ids for each axis."""

    needs_label = True
    with_data: ClassVar[type[TuplesWithModel]] = TuplesWithModel

    def estimator(self, options: FitOptions, labels: LabelOptions) -> Any:
        """An unfitted estimator with all that was said."""
        raise NotImplementedError  # pragma: no cover

    def said(self, options: FitOptions, labels: LabelOptions) -> dict[str, object]:
        """What was said, by the names of the parameters of most estimators."""
        return {
            "alphabet": labels.alphabet,
            "bounds": labels.bounds,
            "loss": labels.loss,
            "beta": options.beta,
            "n_clusters": parse_clusters(options.clusters, len(options.axes)),
            "objective": options.objective,
            "solver": options.solver,
        }

    def fit(self, task: FitTask) -> FittedModel:
        """The model of all rows, and the error of the same model on rows that it is fitted without."""
        options, data = task.options, task.rows()
        data.folds(options.holdout, 0)  # what is wrong with it shows before the fit
        model = self.estimator(options, LabelOptions.of(options, data.y))
        unfitted = clone(model)
        model.fit(data.X, data.y, data.weight, **accepted(model.fit, task.arguments))
        notes: Facts = {
            "axes": list(options.axes),
            "label": options.label,
            "weight": options.weight,
            "seed": options.seed,
            "fingerprint": data.fingerprint,
            "bounds": None if options.bounds is None else list(options.bounds),
            "order": fresh_seed(),  # of progressive tests: drawn once, so that the same question has the same answer
        }
        facts = {"rows": len(data), **self.facts(model)}
        without_file = {name: value for name, value in task.arguments.items() if name != "checkpoint"}

        def fitted(rows: Rows) -> Any:
            again = clone(unfitted)
            return again.fit(rows.X, rows.y, rows.weight, **accepted(again.fit, without_file))

        found = None if model.interrupted_ else self.measured(model, data, options, fitted)
        if found is not None:
            model.errors_, notes["measured"] = found
        return FittedModel(model, notes, facts)

    def measured(
        self, model: Any, data: Rows, options: FitOptions, fitted: Callable[[Rows], Any]
    ) -> tuple[Errors, Facts] | None:
        """The error of the model by the loss that its predictions are judged by."""
        loss = self.judged_by(model)
        if loss == "log":
            values = np.asarray(self.label_values(model))
            return measured(
                data, options.holdout, options.seed, fitted, lambda one, X: self.laws(one, X, values), "log",
                letters=values,
            )  # fmt: skip
        name = loss if isinstance(loss, str) else "own"
        losses = None
        if name not in UNITS:
            from gingham.certificates.holdout import losses_of

            losses = partial(losses_of, model.posterior_.cells[0])
        letters = np.unique(data.y) if name == "zero-one" else None
        return measured(
            data, options.holdout, options.seed, fitted, lambda one, X: np.asarray(one.predict(X)), name, losses,
            letters,
        )  # fmt: skip

    def laws(self, model: Any, X: pl.DataFrame, values: AnyArray) -> Floats:
        """Distributions over the labels of the model of all rows, of a model that may not have seen all of them."""
        law, own = model.predict_distribution(X), np.asarray(self.label_values(model))
        found = np.zeros((len(law), len(values)))
        found[:, np.searchsorted(values, own)] = law
        return found

    def columns(self, model: Any) -> tuple[list[str], list[Mode]]:
        """Names of the id columns and the modes whose items they hold."""
        modes = list(model.item_modes())
        return list(model.notes_.get("axes") or [mode.name for mode in modes]), modes

    def id_columns(self, model: Any) -> tuple[str, ...]:
        return tuple(self.columns(model)[0])

    def predict(self, model: Any, table: pl.DataFrame, asked: PredictOptions) -> pl.DataFrame:
        """The table with a column of predictions (and one per label with ``proba``)."""
        names, modes = self.columns(model)
        need_columns(table, names, "The model")
        X = like_items(table, names, modes)
        if asked.rule is not None and "rule" not in inspect.signature(model.predict).parameters:
            raise GinghamError(f"{type(model).__name__} has one way to predict: leave --rule out.")
        predicted = model.predict(X, **({} if asked.rule is None else {"rule": asked.rule}))
        label = model.notes_.get("label") or "label"
        result = with_predictions(table, pl.Series(f"predicted_{label}", predicted))
        if not asked.proba:
            return result
        if not hasattr(model, "predict_distribution"):
            raise GinghamError(f"{type(model).__name__} predicts numbers, not distributions: leave --proba out.")
        values = self.label_values(model)
        if values is None:
            raise GinghamError(f"This {type(model).__name__} predicts numbers, not distributions: leave --proba out.")
        return with_probabilities(result, values, model.predict_distribution(X))

    def open(self, model: Any, source: TableSource) -> TuplesWithModel:
        """A model beside the rows of a file, and those that tested it if it was fitted on them."""
        notes = model.notes_
        label = source.label or notes.get("label")
        if label is None:
            raise GinghamError("The model does not say which column holds the labels; add --label.")
        axes, modes = self.columns(model)
        data = labelled_rows(source.table, axes, label, notes.get("weight"), modes, source.drop_missing)
        return self.with_data(model, notes, self, label, data, data.tested(model, modes))

    # what a fitted model knows

    def labels(self, model: Any) -> Alphabet | Interval | None:
        """The possible labels as the model knows them: all, or the smallest and largest."""
        return labels_of_cell(model.posterior_.label_cell())

    def label_values(self, model: Any) -> AnyArray | None:
        """The label values, in the order of the columns of ``predict_distribution``."""
        known = self.labels(model)
        return known.values if isinstance(known, Alphabet) else None

    def has_posterior(self, model: Any) -> bool:
        """Whether a theorem for all posteriors covers the model on the rows it was fitted to."""
        return True

    def judged_by(self, model: Any) -> Any:
        """The loss by which predictions are measured and certified: the model's own, where predictions may be.

        Of names that is whether they are right, or the surprise where the model predicts distributions; numbers may
        be judged by losses that are convex in them, and by their absolute error otherwise.
        """
        cell = model.posterior_.label_cell()
        letters = cell.alphabet
        if is_classifier(model) or (letters is not None and not letters.numeric):
            return "log" if cell.answers == "distribution" and is_classifier(model) else "zero-one"
        if cell.answers == "number":
            return str(cell.name)
        if cell.convex and cell.answers == "label":
            loss = getattr(model, "loss", cell.name)
            return cell.name if isinstance(loss, str) else loss
        return "absolute"

    def loss_name(self, model: Any) -> str:
        """The loss that a checkerboard or a tree was fitted with, by its name where it has one."""
        return str(cell_state(model.posterior_.label_cell())["loss"] if model.loss == "auto" else model.loss)

    def path(self, task: FitTask, path: PathOptions, progress: PathCallback) -> BetaPath:
        """The path of the model that ``gingham fit`` would fit; certificates where the labels were stated."""
        from gingham.selection import beta_path

        options, data = task.options, task.rows()
        if data.weight is not None:
            raise GinghamError("gingham path does not take weights; write each row as often as it counts.")
        model = self.estimator(options, LabelOptions.of(options, data.y))
        certified = 0.0 if options.alphabet is None else path.delta
        return beta_path(
            model, data.X, data.y, path.betas, cv=path.cv, delta=certified, random_state=options.seed,
            n_jobs=path.n_jobs, callback=progress,
        )  # fmt: skip


class PredictorTables(TupleTables):
    """Predictors that came with a certificate: they predict, and have nothing else to show."""

    kind = "predictor"
    estimators = ("ProgressivePredictor",)

    def open(self, model: Any, source: TableSource) -> TuplesWithModel:
        raise GinghamError(
            "This predictor came with its certificate, and its members have seen the rows: gingham verify checks it."
        )

    def clusters(self, model: Any) -> pl.DataFrame:
        raise GinghamError("Every member of this predictor has clusters of its own; list those of a single model.")


PREDICTORS = PredictorTables()
