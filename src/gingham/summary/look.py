"""A first look at a table: the role of each column, missing values, duplicates, and which model fits.

Roles are guessed from names and values. Labels and bounds that are inferred here are proposed to the user and never
count as stated.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cards import card, paragraph, table
from gingham.data.adapt import as_frame, frame_of, is_frame
from gingham.data.advice import SEVERAL, look_like_counts, says_alone
from gingham.data.answers import NO_ANSWER, STEPS, in_order, steps_of
from gingham.data.sample import MAX_LABELS
from gingham.errors import GinghamError
from gingham.summary.values import WideTable, counted, listed, plural

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

    Table: TypeAlias = nw.DataFrame[Any]

SCALE = 20  # most different numbers of a rating scale
CLASSES = 20  # most different texts that are classes, where the name of the column gives no hint
MANY_ROWS = 20  # rows per value from which a text with few values is a class, not an id
WIDE = 3  # similar columns from which they are a side
MOST_ANSWERS = 40  # different texts from which on a column holds no answers, but prose or names
MANY_COLUMNS = 6  # from which columns of integers without telling names are measurements
LONG_TEXT = 60  # letters, on average, from which a text is prose
BUSY = 0.1  # the share of the items whose share of the rows tells how skewed a side is
FEW_CLASSES = 10  # up to which layers, which are fitted for each class, take about as long as a checkerboard
LARGE = 20_000_000  # rows beyond which layers take hours, and one checkerboard minutes
FARTHEST = 1e15  # beyond which layers, which compute in single precision, take no labels
UNLIKE = 30.0  # ratio of spreads from which columns are measured on different scales
HEAVY = 50.0  # the largest number over the median from which numbers have a heavy tail
HIGH_CODES = [int(digit * n) for n in (2, 3, 4) for digit in "78"] + [10**n - k for n in (2, 3, 4) for k in (3, 2, 1)]
CODES = [*range(1, 10), *HIGH_CODES]  # that surveys write, mostly with a minus sign, where there is no answer
MOST_CODES = 5
ZEROS = 0.3  # the share of zeros from which a zero beside a scale may mean "not rated"
OVERLAP = 0.2  # the share of the shorter column's texts that the other one has: nodes of a graph

DATE = re.compile(r"(\d{4}-\d{2}(-\d{2})?|\d{1,2}([./])\d{1,2}\3\d{4})([T ]\d{1,2}:\d{2}|$)")
WORDS = {
    "ids": """user users item items movie movies film films book books song songs artist artists track album customer
        customers client product products article articles sku viewer reader member bill person people patient student
        question symptom document documents doc docs word words term terms token gene genes cell cells sample node nodes
        source target from to src dst sender receiver protein station sensor country city store shop url page title name
        key code index id ids uid guid row column household car driver team player game account visitor subject company
        brand recipe restaurant hotel anime species site region state county""",
    "rating": "rating ratings star stars score scores grade grades mark marks preference like likes opinion",
    "count": """count counts n num number freq frequency plays play listens listened views visits clicks quantity qty
        times occurrences tokens units unit amount sales sold purchases orders weight weights""",
    "number": """litres liters km miles hours minutes seconds days price cost kg grams temperature age height distance
        speed percent rate income salary eur usd dollars""",
    "label": "label labels class vote votes answer response y outcome liked choice category value result",
    "time": "timestamp time date datetime day weekday week month quarter season year hour when created updated ts",
}  # fmt: skip
WORDS_OF = {role: set(words.split()) for role, words in WORDS.items()}
PAIRS = "from to,source target,src dst,sender receiver,u v,i j,follower followee,citing cited,head tail"
ENDS = {frozenset(pair.split()) for pair in PAIRS.split(",")}
ENDS_OF_EDGES = {word for pair in ENDS for word in pair}
KINDS = {
    "layered": "a sum of checkerboards and averages, the best prediction",
    "coclustering": "one checkerboard that predicts labels",
    "cooccurrence": "groups of both sides by how often they occur together",
    "graph": "groups of nodes with similar links",
    "survey": "layers of people and of answers, each question with answers of its own",
}
CALLS = {
    "layered": "LayeredCoClusteringRegressor", "coclustering": "CoClusteringRegressor",
    "cooccurrence": "CoOccurrenceClustering", "graph": "GraphClustering", "ranking": "BasketRanker",
    "survey": "SurveyCoClustering",
}  # fmt: skip


class Wording(NamedTuple):
    """How sentences name what can be set; {0} and {1} take a name or a value as a terminal and as Python write it."""

    alphabet: str
    bounds: str
    missing_rows: str
    missing_cells: str
    dropped: str
    questions: str
    time: str
    info: str
    label: str
    axes: str


TERMINAL = Wording(
    alphabet="add --alphabet {0}", bounds="add --bounds {0}", missing_rows="add {0}", missing_cells="add {0}",
    dropped="these rows are dropped", questions="add --wide", time="add --time {0}", info="with --info",
    label="--label", axes="--axes",
)  # fmt: skip
PYTHON = Wording(
    alphabet="set alphabet={1}", bounds="pass label_bounds=({1}) to gg.certify_predictions",
    missing_rows="leave these rows out of the frame", missing_cells="replace these cells with missing values",
    dropped="leave these rows out of the frame", questions="use gg.SurveyCoClustering",
    time="set time={0!r} and pass this column with the ids", info="as item_info= to gg.summarize",
    label="label=", axes="axes=",
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """The likely role of one column.

    Attributes
    ----------
    name : str
    role : {"ids", "rating", "number", "count", "label", "time", "constant", "text"}
        Ids of items; numbers on a short scale, measurements, whole numbers that count; classes; points in time; one
        value throughout; prose.
    n_values : int
        Different values.
    n_missing : int
        Rows without one.
    says : str
        The same in a few words.
    """

    name: str
    role: str
    n_values: int
    n_missing: int
    says: str


class Choice(NamedTuple):
    """Which columns a model takes, and which model."""

    kind: str
    axes: tuple[str, ...]
    label: str | None = None
    weight: str | None = None
    reason: str = ""
    drop_missing: bool = False
    missing: tuple[str, ...] = ()  # labels that stand for a missing one

    def command(self, wide: bool, file: str, format: str | None) -> str:
        """What to type to fit the model."""
        options = {
            "format": format, "model": self.kind, "wide": "" if wide else None, "axes": ",".join(self.axes),
            "label": self.label, "weight": self.weight,
            "drop-missing": "" if self.drop_missing and not self.missing else None,
        }  # fmt: skip
        said = [part for name, value in options.items() if value is not None for part in (f"--{name}", value) if part]
        return shlex.join(["gingham", "fit", file, *said, *missing_options(self.missing)])

    def code(self, wide: bool, classes: bool) -> str:
        """What to run in Python, where the table is ``frame``."""
        call, axes = CALLS[self.kind], list(self.axes)
        if wide:
            return f"model = gg.{call}().fit(frame)"
        if self.kind == "graph":
            return f"model = gg.{call}().fit(frame[{[*axes, *([self.weight] if self.weight else [])]}])"
        if self.kind == "cooccurrence":
            weight = f", weight={self.weight!r}" if self.weight else ""
            return f"model = gg.{call}().fit(frame, axes={axes}{weight})"
        call = call.replace("Regressor", "Classifier") if classes else call
        function, _, name = str(self.label).rpartition("(")
        label, y = (name.rstrip(")"), f"np.{function}(y)") if function in ("log", "log1p") else (self.label, "y")
        return f"X, y, _ = gg.from_frame(frame, axes={axes}, label={label!r})\nmodel = gg.{call}().fit(X, {y})"


@dataclass(frozen=True)
class Look:
    """A description of a table; see :func:`gingham.look`.

    Attributes
    ----------
    n_rows : int
    columns : tuple of Column
    wide : WideTable or None
        Where one side lies in the columns.
    choice : Choice or None
        The model and the columns it takes; None where the table has no two sides.
    findings : tuple of str
        Sentences: how full the matrix is, how skewed its sides are, duplicates, missing values, columns left over.
    advice : tuple of str
        What to know before fitting.
    command, code : str
        What fits the model in a terminal, or in Python where the table is ``frame``; empty without a choice.
    others : tuple of (str, str)
        Other models that fit, and their commands.
    alphabet : str
        The possible labels as ``--alphabet`` takes them, inferred from the data, for the user to confirm. Empty where
        labels are no list.
    to_state : str
        What certificates need to be told, the possible labels or their bounds, in a sentence; empty where they need
        nothing.
    of_frame : bool
        Whether the table was a frame rather than a file.
    """

    n_rows: int
    columns: tuple[Column, ...]
    wide: WideTable | None
    choice: Choice | None
    findings: tuple[str, ...]
    advice: tuple[str, ...]
    command: str
    code: str
    others: tuple[tuple[str, str], ...] = ()
    alphabet: str = ""
    to_state: str = ""
    of_frame: bool = False

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def to_frame(self, backend: str | None = None) -> Any:
        """The columns as a frame: name, role, different values, missing, and what they say."""
        names = ("name", "role", "n_values", "n_missing", "says")
        return frame_of({name: [getattr(column, name) for column in self.columns] for name in names}, backend)

    def to_dict(self) -> dict[str, object]:
        """Plain values, for scripts."""
        choice = Choice("", ()) if self.choice is None else self.choice
        return {
            "rows": self.n_rows, "columns": [vars(column) for column in self.columns],
            "wide": None if self.wide is None else vars(self.wide), "model": choice.kind or None,
            "axes": list(choice.axes), "label": choice.label, "weight": choice.weight, "reason": choice.reason,
            "findings": list(self.findings), "advice": list(self.advice), "command": self.command, "code": self.code,
            "others": [list(other) for other in self.others], "alphabet": self.alphabet, "to_state": self.to_state,
        }  # fmt: skip

    @property
    def title(self) -> str:
        return f"{counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}"

    @property
    def lines(self) -> list[str]:
        """The sentences below the columns."""
        reason = "" if self.choice is None else self.choice.reason
        return [line for line in (*self.findings, *self.advice, self.to_state, reason) if line]

    def __str__(self) -> str:
        shown = self.columns if len(self.columns) <= 20 else (*self.columns[:12], *self.columns[-2:])
        width = max(len(column.name) for column in shown)
        parts = [self.title, *(f"  {column.name:<{width}}  {column.says}" for column in shown)]
        if len(shown) < len(self.columns):
            parts.insert(13, f"  … {len(self.columns) - len(shown)} more")
        parts += ["", *self.lines]
        to_paste = self.code if self.of_frame else self.command
        for why, what in (("", to_paste), *(() if self.of_frame else self.others)):
            parts += ["", *([why] if why else []), *(f"  {line}" for line in what.splitlines())]
        return "\n".join(parts).rstrip()

    def _repr_html_(self) -> str:
        rows = [[column.name, column.says] for column in self.columns[:20]]
        body = table(["column", "seems to be"], rows) + "".join(map(paragraph, self.lines))
        to_paste = self.code if self.of_frame else self.command
        return card(self.title, body + "".join(paragraph(line, quiet=True) for line in to_paste.splitlines()))


def look(
    data: IntoDataFrame | str | Path,
    format: str | None = None,
    *,
    axes: Sequence[str] | None = None,
    label: str | None = None,
    weight: str | None = None,
    wide: bool | None = None,
    file: str | None = None,
) -> Look:
    """Describe a table before a fit: the role of each column, what is missing, and which model fits it.

    Parameters
    ----------
    data : frame (pandas, polars, pyarrow) or the path of a CSV, TSV, Parquet, NDJSON or Excel file
    format : {"csv", "tsv", "parquet", "ndjson"}, optional
        Of a file whose name does not tell.
    axes, label, weight : optional
        Columns whose role is known: ids, what to predict, counts. The others are guessed.
    wide : bool, optional
        Whether one side of the data lies in the columns; guessed by default.
    file : str, optional
        The name of the table in the command, if ``data`` is a frame.

    Returns
    -------
    Look
        Print it; ``look.command`` fits the model in a terminal, ``look.code`` in Python.

    Examples
    --------
    >>> import polars as pl, gingham as gg
    >>> votes = pl.DataFrame({"member": [1, 1, 2, 2] * 9, "bill": list(range(9)) * 4, "vote": ["yes", "no"] * 18})
    >>> found = gg.look(votes)
    >>> found.choice.kind, found.choice.axes, found.choice.label
    ('layered', ('member', 'bill'), 'vote')
    >>> found.command
    'gingham fit FILE --model layered --axes member,bill --label vote'
    """
    if isinstance(data, (str, Path)):
        from gingham.data.table_files import numbers_with_missing_words, read_table  # needs polars

        file = str(data)
        read = read_table(file, format)
        data = read.with_columns(numbers_with_missing_words(column) for column in read.get_columns())
    if not is_frame(data):
        raise GinghamError(f"look takes a frame or the path of a table, not {type(data).__name__}.")
    words = PYTHON if file is None else TERMINAL
    said = Said(None if axes is None else tuple(axes), label, weight, wide, words)
    return examine(as_frame(data), said, file, format)


class Said(NamedTuple):
    """What need not be guessed, and how sentences name what can be set."""

    axes: tuple[str, ...] | None = None
    label: str | None = None
    weight: str | None = None
    wide: bool | None = None
    words: Wording = PYTHON

    @property
    def columns(self) -> list[str]:
        return [*(self.axes or ()), *(name for name in (self.label, self.weight) if name is not None)]


# columns


@dataclass(frozen=True, eq=False)
class Facts:
    """A column in numbers."""

    name: str
    kind: str  # "number", "text", "time", "bool", "other"
    n_rows: int
    n_values: int
    n_missing: int
    numbers: Floats  # those that are there, of a column of numbers
    texts: list[str]  # the different ones, at most a thousand, of a column of texts

    @classmethod
    def of(cls, name: str, series: nw.Series[Any]) -> Facts:
        import narwhals as nw

        n, dtype, missing = len(series), series.dtype, int(series.null_count())
        if dtype.is_numeric():
            numbers = series.drop_nulls().cast(nw.Float64()).to_numpy()  # some integers are too long for numpy
            finite = numbers[np.isfinite(numbers)]
            return cls(name, "number", n, len(np.unique(finite)), n - len(finite), finite, [])
        text = str(dtype).startswith(("String", "Object", "Enum", "Categorical"))
        kind = "time" if dtype.is_temporal() else "bool" if str(dtype) == "Boolean" else "text" if text else "other"
        values = series.drop_nulls().unique(maintain_order=True) if kind != "other" else series.head(0)
        texts = [str(value) for value in values.head(1000).to_list()] if text else []
        return cls(name, kind, n, len(values), missing, np.zeros(0), texts)

    @property
    def present(self) -> int:
        return self.n_rows - self.n_missing

    @property
    def whole(self) -> bool:
        return self.kind == "number" and bool((self.numbers == np.floor(self.numbers)).all())

    @property
    def values(self) -> Floats:
        """The different numbers, in order."""
        return np.unique(self.numbers)

    @property
    def one_a_row(self) -> bool:
        """Whether (nearly) every row has a value of its own."""
        return self.present > 1 and self.n_values >= 0.99 * self.present

    @property
    def hints(self) -> set[str]:
        """The roles that its name suggests."""
        return {role for role, words in WORDS_OF.items() if words & set(words_of(self.name))}

    @property
    def even(self) -> bool:
        """Whether the different numbers lie on an even scale: 1, 2, …, 5, or half stars."""
        steps = np.diff(self.values)
        return len(steps) > 0 and bool(np.allclose(steps / steps.min(), np.round(steps / steps.min())))

    @property
    def counts(self) -> bool:
        """Whether numbers look like counts: integers ≥ 0, most of them far below the largest."""
        return self.kind == "number" and look_like_counts(self.numbers)

    @property
    def numbered(self) -> bool:
        """Whether numbers look like ids: nearly all integers of a range, whose frequencies do not follow their size."""
        values, sizes = np.unique(self.numbers, return_counts=True)
        if not self.whole or len(values) <= SCALE or len(values) < 0.9 * (values[-1] - values[0] + 1):
            return False
        return sizes.std() == 0 or abs(float(np.corrcoef(sizes[:-1], sizes[1:])[0, 1])) < 0.5

    @property
    def sentinels(self) -> Floats:
        """Numbers apart from a scale that may stand for a missing label: −1, −8 and −9, 0 in many rows, 98 and 99."""
        often = float((self.numbers == 0).mean()) if len(self.numbers) else 0.0
        return sentinels_of(self.values, often >= ZEROS and self.n_values <= SCALE)

    @property
    def heavy(self) -> bool:
        """Whether a few numbers are so large that they decide a squared error."""
        if len(self.numbers) == 0 or self.numbers.min() < 0:
            return False
        middle = float(np.median(self.numbers))
        return float(self.numbers.max()) > HEAVY * middle and float(self.numbers.mean()) > 1.5 * middle

    @property
    def logarithm(self) -> str:
        """Its logarithm as ``--label`` names it; log1p takes zeros."""
        return f"{'log' if self.values[0] > 0 else 'log1p'}({self.name})"

    def role(self, many: bool) -> str:
        """What the column seems to hold; ``many`` says that it is one of many."""
        hints, few = self.hints, self.n_values <= SCALE
        if self.n_values <= 1 and self.present != 1:
            return "constant"
        if self.kind in ("time", "bool", "other"):
            return "label" if self.kind == "bool" else self.kind
        if self.kind == "text":
            if all(DATE.match(text) for text in self.texts[:50]):
                return "time"
            if "ids" in hints:
                return "ids"
            if np.mean([len(text) for text in self.texts]) > LONG_TEXT:
                return "text"
            often = self.present >= MANY_ROWS * self.n_values or "label" in hints
            return "label" if self.n_values <= CLASSES and often else "ids"
        if "time" in hints and not hints & {"rating", "count", "label"} and self.whole:
            return "time"
        scale, low = few and self.even, self.numbers.min(initial=0.0)
        if not self.whole:
            return "rating" if scale and ("rating" in hints or self.n_values <= 12) else "number"
        if "rating" in hints:
            return "rating" if few or len(self.sentinels) else "number"
        if self.one_a_row and self.n_values > MANY_ROWS and np.ptp(self.numbers) < 2 * self.n_values:
            return "ids"  # it numbers the rows
        if "id" in words_of(self.name) or ("ids" in hints and not many):
            return "ids"
        if "number" in hints:
            return "number"
        if "count" in hints and low >= 0:
            return "count"
        if self.counts and (many or self.n_values < 0.2 * self.present or "label" in hints):
            return "count"
        if scale and (many or self.present >= MANY_ROWS * self.n_values or "label" in hints):
            return "rating"
        return "number" if many or "label" in hints or low < 0 else "ids"

    @property
    def label_role(self) -> str:
        """What the column holds if it is no column of ids."""
        if self.kind != "number":
            return "label"
        return "count" if self.counts else "rating" if self.n_values <= SCALE and self.even else "number"

    def says(self, role: str) -> str:
        """The column in a few words."""
        values, n = self.values, f"{self.n_values:,} different"
        span = f"{short(values[0])} to {short(values[-1])}" if len(values) else ""
        mean = self.present / max(self.n_values, 1)
        each = f"{mean:,.{0 if mean > 10 else 1}f} rows each"
        known = ", ".join(self.texts[:4]) or "true, false"
        said = {
            "ids": f"ids: {n}, {'a new one in every row' if self.one_a_row else each}",
            "rating": f"ratings: {span}, {counted(self.n_values, 'step')}",
            "number": f"numbers: {span}, {n}",
            "label": f"labels: {known}{', …' if self.n_values > 4 else ''}, {n}",
            "time": f"points in time: {n}",
            "text": "prose",
            "other": "lists or objects: not used",
            "constant": "the same in every row" if self.present else "empty",
        }
        if role == "count":
            said[role] = f"counts: {span}, half of them up to {short(float(np.median(self.numbers)))}"
        without = f"; {counted(self.n_missing, 'row')} without" if self.n_missing and self.present else ""
        return said[role] + without


def words_of(name: str) -> list[str]:
    """Split a column name into words: movieId and movie_id become movie, id."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z]+", apart.lower()) if word]


def short(value: float) -> str:
    """A number with four digits, without an exponent where it can be."""
    return f"{value:,.0f}" if value == np.floor(value) and abs(value) < 1e15 else f"{value:.4g}"


# proposals


def sentinels_of(values: Floats, many_zeros: bool = False) -> Floats:
    """Those of the different numbers, in order, that may stand for a missing label.

    Codes of surveys lie below a scale by more than two of its steps (a scale around zero may leave out zero), or are
    more than five times as large as its end. One negative number, and a zero in many rows, may lie next to the scale.
    Where the ends are opposite numbers, as in −1, 0, 1, the lowest belongs to the scale.
    """
    for k in range(min(MOST_CODES, len(values) - 2), 0, -1):
        low, above = values[:k], values[k:]
        if np.isin(-low, CODES).all() and above[0] - low[-1] > 2 * np.diff(above).max() and -low[0] != above[-1]:
            return np.concatenate([low, sentinels_of(above, many_zeros)])
        below, high = values[:-k], values[-k:]
        if np.isin(high, HIGH_CODES).all() and high[0] > 5 * abs(below[-1]):
            return np.concatenate([sentinels_of(below, many_zeros), high])
    if len(values) < 3:
        return values[:0]
    first, second, last = (float(values[at]) for at in (0, 1, -1))
    negative = first < 0 <= second and -first != last and first == np.floor(first)
    return values[: int(negative or (first == 0 and second >= 1 and many_zeros))]


def missing_options(labels: Sequence[str]) -> list[str]:
    """Labels that stand for a missing one, as options of ``gingham fit``."""
    return [part for label in labels for part in ("--missing", label)]


def none_meant(sentinels: Floats, what: str) -> str:
    """Ask whether numbers stand for a missing label."""
    apart = listed([short_exact(one) for one in sentinels])
    return f"{'Does' if len(sentinels) == 1 else 'Do'} {apart} mean that there is no {what}?"


def proposed_alphabet(values: AnyArray) -> str:
    """Labels as ``--alphabet`` takes them: 1..5, 0..5:0.5, or a list; empty where they are too many or have commas.

    A gap in a short scale of whole numbers is filled: that nobody gave two stars does not make two stars impossible.
    """
    found = np.unique(np.asarray(values))
    if len(found) == 0:
        return ""
    if found.dtype.kind in "biuf":
        numbers = found.astype(np.float64)
        if (numbers == np.floor(numbers)).all() and np.abs(numbers).max() < 2**53:
            low, high = int(numbers[0]), int(numbers[-1])
            if high - low < max(2 * len(numbers), 10) and high - low < MAX_LABELS and len(numbers) > 1:
                return f"{low}..{high}"
        elif len(numbers) > 3:
            first, last, step = (float(f"{one:.9g}") for one in (*numbers[[0, -1]], np.diff(numbers).min()))
            n_values = (last - first) / step + 1
            if n_values < max(2 * len(numbers), 10) and np.isin(numbers, scale(first, last, step)).all():
                return f"{short_exact(first)}..{short_exact(last)}:{short_exact(step)}"
        return ",".join(map(short_exact, numbers)) if len(numbers) <= 64 else ""
    names = [str(name) for name in found.tolist()]
    plain = len(names) <= 64 and all(name == name.strip() and name and "," not in name for name in names)
    return ",".join(names) if plain else ""


def scale(low: float, high: float, step: float) -> AnyArray:
    """The numbers from low to high in equal steps, as they are written: 0.3, not 0.30000000000000004."""
    numbers = np.round(low + step * np.arange(round((high - low) / step) + 1), 12)
    return numbers.astype(np.int64) if np.all(numbers == np.floor(numbers)) else numbers


def proposed_bounds(low: float, high: float) -> str:
    """A range as ``--bounds`` takes it, rounded outwards, so that no label lies outside it: 0,1 or -10,10."""
    if low == high:
        low, high = low - max(1.0, abs(low)), high + max(1.0, abs(high))
    unit = 10.0 ** np.floor(np.log10(high - low) - 1.0)
    first, last = float(np.floor(low / unit) * unit), float(np.ceil(high / unit) * unit)
    first, last = (float(f"{end:.12g}") for end in (first, last))
    return f"{short_exact(min(first, low))},{short_exact(max(last, high))}"


def short_exact(value: float) -> str:
    """A number as it must be typed to be the same number again."""
    return str(int(value)) if value == np.floor(value) and abs(value) < 1e15 else repr(float(value))


# the table


class Found(NamedTuple):
    """What is decided of a table: the model, sentences, other models, and what a certificate needs."""

    choice: Choice | None
    findings: list[str]
    advice: list[str]
    others: Sequence[tuple[str, Choice]] = ()
    alphabet: str = ""
    to_state: str = ""


def examine(frame: Table, said: Said, file: str | None, format: str | None) -> Look:
    n_rows = frame.shape[0]
    if n_rows == 0 or frame.shape[1] == 0:
        raise GinghamError("The table is empty: there is nothing to look at.")
    facts = {str(name): Facts.of(str(name), frame[name]) for name in frame.columns}
    if not said.wide:
        for name in said.columns:
            if name not in facts:
                have = ", ".join(list(facts)[:12]) + (", …" if len(facts) > 12 else "")
                raise GinghamError(f"The table has no column {name!r}. It has: {have}.")
        if len(set(said.columns)) < len(said.columns):
            raise GinghamError(f"axes, label and weight name a column twice: {', '.join(said.columns)}.")
    roles = roles_of(facts, said)
    wide = (
        None
        if said.wide is False or (said.axes is not None and not said.wide)
        else questions(facts, roles, said) or side_in_columns(facts, roles, said)
    )
    if wide is None and said.wide:
        raise GinghamError(
            f"No side lies in the columns of this table: a wide table has {WIDE} or more columns of numbers or answers."
        )
    if wide is None:
        found = look_long(frame, facts, roles, said)
    else:
        found = (look_wide if wide.steps is None else look_survey)(frame, wide, facts, roles, said.words)
    columns = [
        Column(name, roles[name], one.n_values, one.n_missing, one.says(roles[name])) for name, one in facts.items()
    ]
    choice, name, folded = found.choice, file or "FILE", wide is not None
    label = None if choice is None else choice.label
    return Look(
        n_rows, tuple(columns), wide, choice, tuple(found.findings), tuple(found.advice),
        "" if choice is None else choice.command(folded, name, format),
        "" if choice is None else choice.code(folded, roles.get(label or "") == "label"),
        tuple((why, other.command(folded, name, format)) for why, other in found.others),
        found.alphabet, found.to_state, of_frame=file is None,
    )  # fmt: skip


def roles_of(facts: dict[str, Facts], said: Said) -> dict[str, str]:
    """The role of each column, in view of the others and of what was said."""
    roles = {name: one.role(len(facts) >= MANY_COLUMNS) for name, one in facts.items()}
    roles |= {name: "ids" for name in said.axes or () if name in roles}
    sure = [name for name, one in facts.items() if roles[name] == "ids" and ("ids" in one.hints or one.kind == "text")]
    for name, one in facts.items():
        if roles[name] == "ids" and name in (said.label, said.weight):
            roles[name] = one.label_role
        elif roles[name] == "ids" and len(sure) >= 2 and name not in (*sure, *said.columns) and not one.numbered:
            roles[name] = one.label_role  # beside two sides, numbers whose name gives no hint
    return roles


def side_in_columns(facts: dict[str, Facts], roles: dict[str, str], said: Said) -> WideTable | None:
    """The side that lies in the columns, where there is one: several columns alike, and at most one that names rows."""
    named = [one for one in facts.values() if roles[one.name] in ("ids", "time") and one.one_a_row]
    sides = [one for one in facts.values() if roles[one.name] == "ids" and not one.one_a_row]
    numbers = [one for one in facts.values() if roles[one.name] in ("rating", "count", "number")]
    least = WIDE if named else MANY_COLUMNS - 1
    if sides or len(numbers) < max(least, 0.6 * (len(facts) - len(named))):
        return None
    rows = said.axes[0] if said.axes else named[0].name if named else "row"
    numbers = [one for one in numbers if one.name != rows]
    often = float((joined(numbers).numbers == 0).mean())
    zeros = not (joined(numbers).counts and often > 0.3 and not any(one.n_missing for one in numbers))
    return wide_table(rows, [one.name for one in numbers], facts, said, ("column", "value"), zeros)


def wide_table(
    rows: str, columns: Sequence[str], facts: dict[str, Facts], said: Said, names: tuple[str, str], zeros: bool = True,
    steps: dict[str, list[float]] | None = None,
) -> WideTable:  # fmt: skip
    """A wide table with free names for the side in its columns and for what stands in its cells."""
    taken = {*facts, rows}
    side = next(name for name in (names[0], "item", "feature", "side_of_columns") if name not in taken)
    label = next(name for name in (names[1], "count", "entry", "value_of_cell") if name not in taken)
    if said.axes is not None:
        if len(said.axes) != 2:
            raise GinghamError(
                f"A wide table has two sides: {said.words.axes} names the column of its rows and the side of its "
                "columns."
            )
        side = said.axes[1]
    return WideTable((rows, side), tuple(columns), said.label or said.weight or label, zeros, steps)


def questions(facts: dict[str, Facts], roles: dict[str, str], said: Said) -> WideTable | None:
    """A wide table of answers: some columns hold texts. If nobody says that it is one, several have the same answers.

    Columns of numbers alone are questions where they are said to be wide and measured on different scales.
    """
    named = [one for one in facts.values() if one.one_a_row and (one.kind == "text" or roles[one.name] == "ids")]
    rows = said.axes[0] if said.axes else named[0].name if named else "row"
    asked = [
        one for one in facts.values()
        if one.name != rows and one.n_values > 1 and roles[one.name] not in ("time", "other", "text")
        and (one.kind == "number" or one.n_values <= MOST_ANSWERS)
    ]  # fmt: skip
    texts = [one for one in asked if one.kind != "number"]
    numbers = [one for one in asked if one.kind == "number" and one.name != rows]
    if len(asked) < WIDE or not (texts or (said.wide and unlike(numbers))):
        return None
    answers = Counter(frozenset(map(str.casefold, one.texts)) - set(NO_ANSWER) for one in texts)
    if not said.wide and (not named or max(answers.values()) < WIDE):
        return None
    steps = {one.name: steps_of(one.numbers).tolist() for one in numbers if one.n_values > STEPS}
    return wide_table(rows, [one.name for one in asked], facts, said, ("question", "answer"), steps=steps)


def unlike(columns: Sequence[Facts]) -> bool:
    """Whether columns are measured on different scales."""
    spreads = [spread for one in columns if len(one.numbers) > 1 and (spread := float(np.std(one.numbers))) > 0]
    return bool(spreads) and max(spreads) > UNLIKE * min(spreads)


def joined(columns: Sequence[Facts]) -> Facts:
    """The numbers of several columns as one."""
    numbers = np.concatenate([one.numbers for one in columns])
    missing = sum(one.n_missing for one in columns)
    return Facts("value", "number", len(numbers) + missing, len(np.unique(numbers)), missing, numbers, [])


def look_wide(frame: Table, wide: WideTable, facts: dict[str, Facts], roles: dict[str, str], words: Wording) -> Found:
    columns = [facts[name] for name in wide.columns]
    cells = joined(columns)
    filled = cells.present if wide.zeros else int((cells.numbers != 0).sum())
    findings = [
        f"The table is wide: {frame.shape[0]:,} rows × {len(columns):,} columns; "
        f"{filled / cells.n_rows:.1%} of the cells are {'filled' if wide.zeros else 'not zero'}."
    ]
    if cells.n_missing and wide.zeros:
        findings.append(f"{counted(cells.n_missing, 'cell')} {be(cells.n_missing)} empty and can be predicted.")
    advice = []
    if wide.zeros and unlike(columns):
        advice.append(
            "The columns have different scales, and the widest would dominate. Standardise them first, as in "
            f"(frame - frame.mean()) / frame.std(); or, if they are questions to people, {words.questions}."
        )
    findings += unused(frame, wide, roles, words)
    if not wide.zeros:
        reason = because("cooccurrence", "the cells are counts, most of them zero")
        return Found(Choice("cooccurrence", wide.axes, weight=wide.label, reason=reason), findings, advice)
    choice = Choice("layered", wide.axes, wide.label, reason=because("layered", "the cells are numbers"))
    alphabet = proposed_alphabet(cells.values) if cells.n_values <= SCALE and cells.even else ""
    others = [("A single checkerboard instead:", choice._replace(kind="coclustering"))]
    numbers = without_sentinels(cells, choice, ("The value", "cells", "value", words.missing_cells), advice, others)
    alphabet = proposed_alphabet(numbers) if cells.n_values <= SCALE and cells.even else ""
    return Found(choice, findings, advice, others, alphabet, stated(alphabet, numbers, words))


def without_sentinels(
    one: Facts, choice: Choice, words: tuple[str, str, str, str], advice: list[str], others: list[tuple[str, Choice]]
) -> Floats:
    """The different numbers but those that may stand for a missing value, which are asked about in a sentence."""
    found, (name, where, what, remedy) = one.sentinels, words
    if len(found) == 0:
        return one.values
    numbers, texts = np.setdiff1d(one.values, found), tuple(map(short_exact, found))
    shares = [f"{text} in {float((one.numbers == code).mean()):.0%}" for text, code in zip(texts, found)]
    advice.append(
        f"{name} is {listed(shares)} of the {where}, and {short(numbers[0])} to {short(numbers[-1])} in the others. "
        f"{none_meant(found, what)} Then {remedy.format(shlex.join(missing_options(texts)))}."
    )
    stand = f"{listed(texts)} {'stands' if len(texts) == 1 else 'stand'}"
    others.append((f"If {stand} for a missing {what}:", choice._replace(missing=texts)))
    return numbers


def unused(frame: Table, wide: WideTable, roles: dict[str, str], words: Wording) -> list[str]:
    """A sentence about the columns that a model of a wide table leaves out."""
    used = (*wide.columns, wide.axes[0])
    left = [name for name in frame.columns if name not in used and roles[name] != "constant"]
    return [f"Not used: {quoted(left)}. Facts about the rows can be passed {words.info}."] if left else []


def look_survey(frame: Table, wide: WideTable, facts: dict[str, Facts], roles: dict[str, str], words: Wording) -> Found:
    columns = [facts[name] for name in wide.columns]
    kinds = Counter(
        "measurements" if one.name in (wide.steps or ())
        else "a scale" if one.kind == "number" or in_order(answers) is not None
        else "two answers" if len(answers) == 2
        else "names"
        for one in columns
        for answers in [np.array([text for text in one.texts if text.casefold() not in NO_ANSWER])]
    )  # fmt: skip
    missing = sum(one.n_missing for one in columns)
    findings = [
        f"Each column is a question with answers of its own: {frame.shape[0]:,} rows × {len(columns):,} questions, of "
        + listed([f"{n} {'has' if n == 1 else 'have'} {kind}" for kind, n in kinds.items()])
        + f"; {1 - missing / (len(columns) * frame.shape[0]):.1%} of the cells are filled.",
        *unused(frame, wide, roles, words),
    ]
    choice = Choice("survey", wide.axes, wide.label, reason=because("survey", "questions have different answers"))
    return Found(choice, findings, [])


def look_long(frame: Table, facts: dict[str, Facts], roles: dict[str, str], said: Said) -> Found:
    axes, findings = (said.axes, []) if said.axes is not None else sides(frame, facts, roles, said)
    if (lacking := what_lacks(axes, facts, roles, said)) is not None:
        return Found(None, [], [lacking])
    label, role = (said.label, roles[said.label]) if said.label else label_of(facts, roles, [*axes, *said.columns])
    if said.weight is not None and said.label is None:
        label, role = said.weight, "count"
    if label is None and len(axes) != 2:
        return Found(None, findings, [f"One side, or more than two, need a column to predict: {said.words.label}."])
    missing = sum(facts[name].n_missing for name in [*axes, *([label] if label else [])])
    if missing:
        findings.append(f"{counted(missing, 'value')} of these columns {be(missing)} missing; {said.words.dropped}.")
    if len(axes) > 1:
        findings += matrix(frame, axes, label, facts)
    advice = [
        says_alone(name, one.n_values, one.present)
        for name, one in ((name, facts[name]) for name in axes)
        if one.present < SEVERAL * one.n_values
    ]
    choice, others = chosen(frame, axes, facts, label, role, said)
    alphabet, numbers, one = "", None, facts.get(label or "")
    if one is not None and choice.label is not None:
        numbers = one.values if choice.kind == "layered" and role != "label" else None
        observed = np.array(one.texts) if role == "label" else one.values
        if role == "number" and len(one.sentinels) == 0 and one.heavy:  # a model of it would be worse than its median
            numbers = np.log(one.values) if one.values[0] > 0 else np.log1p(one.values)
            choice = choice._replace(label=one.logarithm, reason=f"{choice.reason} Its logarithm is predicted.")
            others = [(why, other._replace(label=one.logarithm)) for why, other in others]
            advice.append(
                f"{label!r} has a heavy tail: half of the values are at most {short(float(np.median(one.numbers)))}, "
                f"and the largest is {short(one.values[-1])}. A few rows would dominate the fit; their "
                "logarithm is predicted better."
            )
        elif role in ("rating", "number"):
            words = (repr(label), "rows", str(label), said.words.missing_rows)
            observed = without_sentinels(one, choice, words, advice, others)
            numbers = numbers if len(one.sentinels) == 0 else observed
        alphabet = proposed_alphabet(observed) if role in ("rating", "label") and one.n_values <= 64 else ""
    choice = choice._replace(drop_missing=bool(missing))
    others = [(why, other._replace(drop_missing=bool(missing))) for why, other in others]
    texts = one is not None and one.kind == "text"
    times = [name for name in facts if roles[name] == "time" and name not in axes]
    if times and choice.kind == "layered":
        findings.append(
            f"{times[0]!r} holds points in time: to predict with them, {said.words.time.format(times[0])}. "
            "Certificates assume that new rows come from the same times."
        )
    return Found(choice, findings, advice, others, alphabet, stated(alphabet, numbers, said.words, texts))


def what_lacks(axes: tuple[str, ...], facts: dict[str, Facts], roles: dict[str, str], said: Said) -> str | None:
    """Why no model of two sides fits the table, in a sentence; None where one does."""
    ids = axes if said.axes is not None else [name for name in facts if roles[name] == "ids"]
    alone = [name for name in ids if facts[name].one_a_row and facts[name].present > MANY_ROWS]
    too_few = len(axes) < (2 if said.axes is None else 1)
    if said.axes is None and (set(alone) & set(axes) or (too_few and alone)):
        return (
            f"With one row per {alone[0]!r} this looks like a table of facts about items, rather than of observations: "
            f"pass such a table {said.words.info}."
        )
    if not too_few:
        return None
    have = "no column of ids" if not axes else f"one column of ids, {axes[0]!r}"
    return (
        f"The table has {have}, but gingham needs two sides, such as users and movies. A wide table needs {WIDE} or "
        "more columns of numbers; several views of the same rows are for PairwiseClusterAnalysis in Python."
    )


def chosen(
    frame: Table, axes: tuple[str, ...], facts: dict[str, Facts], label: str | None, role: str, said: Said
) -> tuple[Choice, list[tuple[str, Choice]]]:
    """The model that suits the table, and alternatives."""
    weight = said.weight if said.label else None
    if len(axes) == 2 and said.label is None and is_graph(frame, axes, facts):
        used = label if role in ("count", "number", "rating") else None
        why = f"{axes[0]!r} and {axes[1]!r} hold ids of the same things"
        return Choice("graph", axes, weight=used, reason=because("graph", why)), []
    if label is None:
        choice = Choice("cooccurrence", axes, reason=because("cooccurrence", "the table lists pairs without labels"))
        return choice, [("For recommendations:", Choice("ranking", axes))]
    if role == "count" and len(axes) == 2 and weight is None:
        choice = Choice("cooccurrence", axes, weight=label, reason=because("cooccurrence", f"{label!r} holds counts"))
        if facts[label].heavy:
            return choice, [("To predict its logarithm:", Choice("layered", axes, facts[label].logarithm))]
        return choice, [("To predict the number itself:", Choice("layered", axes, label))]
    what, n_rows, one = {"label": "classes", "rating": "ratings"}.get(role, "numbers"), frame.shape[0], facts[label]
    far = float(np.abs(one.values).max(initial=0.0)) > FARTHEST
    many = role == "label" and one.n_values > FEW_CLASSES
    if len(axes) == 1 or n_rows > LARGE or far or many:
        which = f"with {one.n_values} values" if many else "of huge size" if far else f"in {n_rows:,} rows"
        which = "of one side" if len(axes) == 1 else which
        return Choice(
            "coclustering", axes, label, weight, because("coclustering", f"{label!r} holds {what} {which}")
        ), []
    choice = Choice("layered", axes, label, weight, because("layered", f"{label!r} holds {what}"))
    return choice, [("A single checkerboard instead:", choice._replace(kind="coclustering"))]


def sides(
    frame: Table, facts: dict[str, Facts], roles: dict[str, str], said: Said
) -> tuple[tuple[str, ...], list[str]]:
    """Two columns of ids, without row numbers and properties of other columns; a time where there is only one."""
    told: list[str] = []
    ids = [name for name in facts if roles[name] == "ids" and name not in said.columns]
    rows = [name for name in ids if facts[name].one_a_row and facts[name].present > MANY_ROWS]
    rest = [name for name in ids if name not in rows]
    if len(rest) >= 2 and rows:
        told.append(f"{quoted(rows)} {'has' if len(rows) == 1 else 'have'} a new value in every row: not a side.")
        ids = rest
    kept: list[str] = []
    for name in ids:
        by = next((other for other in kept if determines(frame, other, name, facts)), None)
        if by is None:
            above = next((other for other in kept if determines(frame, name, other, facts)), None)
            kept = [*(other for other in kept if other != above), name]  # the finer of two is the side
            name, by = (above, name) if above is not None else (name, None)
        if by is not None:
            told.append(f"{name!r} is a property of {by!r}: pass it {said.words.info}.")
    times = [name for name, one in facts.items() if roles[name] == "time" and one.present >= SEVERAL * one.n_values]
    if len(kept) == 1 and kept[0] not in rows and times:
        kept.append(times[0])
    if len(kept) > 2:
        kept.sort(key=lambda name: facts[name].present < SEVERAL * facts[name].n_values)  # those with few rows last
        told.append(f"Further ids: {quoted(kept[2:])}; {said.words.axes} takes more than two sides, too.")
    return tuple(kept[:2]), told


def determines(frame: Table, by: str, name: str, facts: dict[str, Facts]) -> bool:
    """Whether every item of one column goes with one value of another, where items come more than once."""
    if facts[by].present < SEVERAL * facts[by].n_values:
        return False
    return int(frame.select(by, name).unique().shape[0]) <= facts[by].n_values


def label_of(facts: dict[str, Facts], roles: dict[str, str], axes: Sequence[str]) -> tuple[str | None, str]:
    """The column to predict, and its role: one whose name says so, else ratings, classes, counts, numbers."""
    order = ("rating", "label", "count", "number")
    candidates = [name for name in facts if name not in axes and roles[name] in order]
    if not candidates:
        return None, ""
    told = {name: bool(facts[name].hints & {"rating", "label", "count"}) for name in candidates}
    best = min(candidates, key=lambda name: (not told[name], order.index(roles[name])))
    return best, roles[best]


def matrix(frame: Table, axes: tuple[str, ...], label: str | None, facts: dict[str, Facts]) -> list[str]:
    """How full the matrix is, how skewed its sides are, and what occurs twice."""
    import narwhals as nw

    whole = frame.select(*axes).drop_nulls()
    pairs = int(whole.unique().shape[0])
    full = float(np.prod([float(facts[name].n_values) for name in axes[:2]]))
    sides = " × ".join(f"{facts[name].n_values:,} {things(name)}" for name in axes)
    found = [f"{sides}; {pairs / max(full, 1.0):.2%} of the pairs occur."]
    twice = whole.shape[0] - pairs
    if twice:
        said = f"{counted(twice, 'row')} {'repeats' if twice == 1 else 'repeat'} an earlier pair"
        if label is not None:
            rows = frame.select(*axes, label).drop_nulls()
            differ = int(rows.unique().shape[0]) - int(rows.select(*axes).unique().shape[0])
            said += (
                f", {differ:,} of them with another value of {label!r}" if differ > 0 else f", with the same {label!r}"
            )
        found.append(f"{said}.")
    for name in axes:
        sizes = np.sort(whole.group_by(name).agg(nw.len().alias("\0n"))["\0n"].to_numpy())[::-1].astype(np.float64)
        share = sizes[: max(1, round(BUSY * len(sizes)))].sum() / max(sizes.sum(), 1.0)
        if len(sizes) >= 10 and share > 3 * BUSY:
            found.append(
                f"The busiest {BUSY:.0%} of {things(name)} have {share:.0%} of the rows; half of them have at most "
                f"{np.median(sizes):,.0f}."
            )
    return found


def is_graph(frame: Table, axes: tuple[str, ...], facts: dict[str, Facts]) -> bool:
    """Whether both columns hold ids of the same things, by their names, or by texts that both have."""
    first, second = (facts[name] for name in axes)
    if first.kind != second.kind:
        return False
    words = [words_of(name) for name in axes]
    stems = {re.sub(r"[\W_]*([0-9]+|[a-b])$", "", name) for name in axes}
    told = len(stems) == 1 or any(frozenset((a, b)) in ENDS for a in words[0] for b in words[1])
    if not told and first.kind != "text":
        return False  # user 1 and movie 1 are two things
    left, right = (set(frame[name].drop_nulls().unique().to_list()) for name in axes)
    shared = len(left & right) / max(min(len(left), len(right)), 1)
    return shared > 0 if told else shared >= OVERLAP


# sentences


def because(kind: str, why: str) -> str:
    return f"Model: {kind} ({KINDS[kind]}), because {why}."


def stated(alphabet: str, numbers: Floats | None, words: Wording, texts: bool = False) -> str:
    """What a certificate needs to be told, for the user to confirm."""
    if alphabet:
        how = words.alphabet.format(shlex.quote(alphabet), as_python(alphabet, texts))
        return f"The labels look like {alphabet}; is that the whole scale? Then {how}: certificates need it."
    if numbers is None or len(numbers) == 0:
        return ""
    bounds = proposed_bounds(float(numbers[0]), float(numbers[-1]))
    shown, how = bounds.replace(",", " to "), words.bounds.format(bounds, bounds.replace(",", ", "))
    return f"The labels lie within {shown}; can none lie outside? Then {how}: certificates need it."


def as_python(alphabet: str, texts: bool) -> str:
    """Labels as Python takes them: range(1, 6), [0.5, 1.0, 1.5] or ['no', 'yes']."""
    ends, _, step = alphabet.partition(":")
    low, dots, high = ends.partition("..")
    if texts or not dots:
        return str(alphabet.split(",")) if texts else f"[{alphabet.replace(',', ', ')}]"
    return str(scale(float(low), float(high), float(step)).tolist()) if step else f"range({low}, {int(high) + 1})"


def things(name: str) -> str:
    """What a column identifies, in the plural: users for user_id; "ids in ..." where the name is no noun."""
    many = plural(name)
    return f"ids in {name!r}" if many == name or set(words_of(name)) & ENDS_OF_EDGES else many


def quoted(names: Sequence[str]) -> str:
    return listed([repr(name) for name in names])


def be(n: int) -> str:
    return "is" if n == 1 else "are"
