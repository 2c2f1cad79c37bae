"""What a table seems to be, before anything is fitted: its columns, its holes, and which model fits it.

All of it is guessed, from names and values, and said in sentences: nothing that is read off the data here counts as
stated, neither possible labels nor their bounds.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Floats
from gingham.cards import card, paragraph, table
from gingham.data.adapt import as_frame, frame_of, is_frame
from gingham.data.advice import SEVERAL, look_like_counts, says_alone
from gingham.data.sample import MAX_LABELS
from gingham.errors import GinghamError
from gingham.summary.values import WideTable, counted, listed, plural

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame

SCALE = 20  # so many different numbers, at most, are a scale of ratings
CLASSES = 20  # so many different texts, at most, are classes where the name of the column says nothing
MANY_ROWS = 20  # rows an item from which a text with few values is a class, not an id
WIDE = 3  # columns alike from which they are a side
MANY_COLUMNS = 6  # from which whole numbers in columns without telling names are measurements
LONG_TEXT = 60  # letters, on average, from which a text is prose
BUSY = 0.1  # the share of the items whose share of the rows tells how skewed a side is
LARGE = 20_000_000  # rows beyond which layers take hours, and one checkerboard minutes
FARTHEST = 1e15  # beyond which layers, which compute in single precision, take no labels
UNLIKE = 30.0  # times the spread of another column from which columns are measured on different scales
OVERLAP = {"text": 0.2, "number": 0.6}  # of the ids of the shorter column that the other one has: nodes of a graph

WORDS = {
    "ids": """user users item items movie movies film films book books song songs artist artists track album customer
        customers client product products article articles sku viewer reader member bill person people patient student
        question symptom document documents doc docs word words term terms token gene genes cell cells sample node nodes
        source target from to src dst sender receiver protein station sensor country city store shop url page title name
        key code index id ids uid guid row column""",
    "rating": "rating ratings star stars score scores grade grades mark marks preference like likes opinion",
    "count": """count counts n num number freq frequency plays play listens listened views visits clicks quantity qty
        times occurrences tokens units unit amount sales sold purchases orders weight weights""",
    "label": "label labels class vote votes answer response y outcome liked choice category value result",
    "time": "timestamp time date datetime day month year hour when created updated ts",
}  # fmt: skip
ENDS = {frozenset(pair) for pair in (("from", "to"), ("source", "target"), ("src", "dst"), ("sender", "receiver"))}
ENDS_OF_EDGES = {word for pair in ENDS for word in pair}
KINDS = {
    "layered": "checkerboards and averages that add up: the best prediction of numbers",
    "coclustering": "one checkerboard that predicts labels, with a theorem for the rows it was fitted to",
    "cooccurrence": "groups of both sides by how often they occur together",
    "graph": "groups of nodes by whom they are linked with",
}


@dataclass(frozen=True)
class Column:
    """What one column seems to hold.

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


@dataclass(frozen=True)
class Look:
    """What a table seems to be; see :func:`gingham.look`.

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
    command : str
        What to paste into a terminal; empty without a choice.
    others : tuple of (str, str)
        Other models that fit, and their commands.
    alphabet : str
        The possible labels as ``--alphabet`` would take them, if they are all that can be; read off the data, and
        therefore for a person to state. Empty where labels are no list.
    to_state : str
        What certificates need to be told, ``--alphabet`` or ``--bounds``, in a sentence; empty where they need nothing.
    """

    n_rows: int
    columns: tuple[Column, ...]
    wide: WideTable | None
    choice: Choice | None
    findings: tuple[str, ...]
    advice: tuple[str, ...]
    command: str
    others: tuple[tuple[str, str], ...] = ()
    alphabet: str = ""
    to_state: str = ""

    def column(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def to_frame(self, backend: str | None = None) -> Any:
        """The columns as a frame: name, role, different values, missing, and what they say."""
        names = ("name", "role", "n_values", "n_missing", "says")
        return frame_of({name: [getattr(column, name) for column in self.columns] for name in names}, backend)

    def to_dict(self) -> dict[str, object]:
        """Plain values, for scripts."""
        return {
            "rows": self.n_rows,
            "columns": [vars(column) for column in self.columns],
            "wide": None if self.wide is None else vars(self.wide),
            "model": None if self.choice is None else self.choice.kind,
            "axes": [] if self.choice is None else list(self.choice.axes),
            "label": None if self.choice is None else self.choice.label,
            "weight": None if self.choice is None else self.choice.weight,
            "reason": "" if self.choice is None else self.choice.reason,
            "findings": list(self.findings), "advice": list(self.advice), "command": self.command,
            "others": [list(other) for other in self.others], "alphabet": self.alphabet, "to_state": self.to_state,
        }  # fmt: skip

    def lines(self) -> list[str]:
        """All that is said beside the columns."""
        said = [*self.findings, *self.advice, *([self.to_state] if self.to_state else [])]
        return [*said, self.choice.reason] if self.choice is not None else said

    def __str__(self) -> str:
        shown = self.columns if len(self.columns) <= 20 else (*self.columns[:12], *self.columns[-2:])
        width = max(len(column.name) for column in shown)
        parts = [f"{counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}"]
        parts += [f"  {column.name:<{width}}  {column.says}" for column in shown]
        if len(shown) < len(self.columns):
            parts.insert(13, f"  … {len(self.columns) - len(shown)} more")
        parts += ["", *self.lines()]
        if self.command:
            parts += ["", f"  {self.command}"]
        for why, command in self.others:
            parts += ["", why, f"  {command}"]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        rows = [[column.name, column.says] for column in self.columns[:20]]
        body = table(["column", "seems to be"], rows) + "".join(paragraph(line) for line in self.lines())
        body += "".join(paragraph(command, quiet=True) for command in (self.command,) if command)
        return card(f"{counted(self.n_rows, 'row')}, {counted(len(self.columns), 'column')}", body)


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
    """What a table seems to hold, and which model fits it, before anything is fitted.

    Parameters
    ----------
    data : frame (pandas, polars, pyarrow) or the path of a CSV, TSV, Parquet or NDJSON file
    format : {"csv", "tsv", "parquet", "ndjson"}, optional
        Of a file whose name does not tell.
    axes, label, weight : optional
        Columns whose part is known: ids, what to predict, counts. What is not said is guessed.
    wide : bool, optional
        Whether one side of the data lies in the columns; guessed where nothing is said.
    file : str, optional
        What to call the table in the command, where it is no file.

    Returns
    -------
    Look
        Print it; ``look.command`` is what to paste into a terminal.

    Examples
    --------
    >>> import polars as pl, gingham as gg
    >>> votes = pl.DataFrame({"member": [1, 1, 2, 2] * 9, "bill": list(range(9)) * 4, "vote": ["yes", "no"] * 18})
    >>> found = gg.look(votes)
    >>> found.choice.kind, found.choice.axes, found.choice.label
    ('coclustering', ('member', 'bill'), 'vote')
    >>> found.command
    'gingham fit FILE --model coclustering --axes member,bill --label vote'
    """
    said = _Said(None if axes is None else tuple(axes), label, weight, wide)
    if isinstance(data, (str, Path)):
        from gingham.data.table_files import numbers_with_missing_words, read_table  # needs polars

        file = str(data)
        read = read_table(file, format)
        data = read.with_columns(numbers_with_missing_words(column) for column in read.get_columns())
    if not is_frame(data):
        raise GinghamError(f"look takes a frame or the path of a table, not {type(data).__name__}.")
    return _look(as_frame(data), said, file or "FILE", format)


class _Said(NamedTuple):
    """What need not be guessed."""

    axes: tuple[str, ...] | None = None
    label: str | None = None
    weight: str | None = None
    wide: bool | None = None

    @property
    def columns(self) -> list[str]:
        return [*(self.axes or ()), *(name for name in (self.label, self.weight) if name is not None)]


# columns


@dataclass(frozen=True, eq=False)
class _Facts:
    """A column in numbers."""

    name: str
    kind: str  # "number", "text", "time", "bool", "other"
    n_rows: int
    n_values: int
    n_missing: int
    numbers: Floats | None  # of numbers: those that are there
    texts: AnyArray | None  # of texts: the different ones, at most a thousand

    @property
    def present(self) -> int:
        return self.n_rows - self.n_missing

    @property
    def whole(self) -> bool:
        return self.numbers is not None and bool((self.numbers == np.floor(self.numbers)).all())

    @property
    def values(self) -> Floats:
        """The different numbers, in order."""
        return np.zeros(0) if self.numbers is None else np.unique(self.numbers)

    @property
    def one_a_row(self) -> bool:
        """Whether (nearly) every row has a value of its own."""
        return self.present > 1 and self.n_values >= 0.99 * self.present

    @property
    def hints(self) -> set[str]:
        """What its name says it holds."""
        return {role for role, words in _WORDS.items() if words & set(_words(self.name))}

    @property
    def even(self) -> bool:
        """Whether the different numbers lie on an even scale: 1, 2, …, 5, or half stars."""
        steps = np.diff(self.values)
        return len(steps) > 0 and bool(np.allclose(steps / steps.min(), np.round(steps / steps.min())))

    @property
    def counts(self) -> bool:
        """Whether numbers look like counts: whole, not negative, and most of them far below the largest."""
        return self.numbers is not None and look_like_counts(self.numbers)


_WORDS = {role: set(words.split()) for role, words in WORDS.items()}


def _words(name: str) -> list[str]:
    """The words of a name: movieId and movie_id are movie, id."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[^a-z]+", apart.lower()) if word]


def _facts(name: str, series: nw.Series[Any]) -> _Facts:
    import narwhals as nw

    n, kind, numbers, texts = len(series), "other", None, None
    dtype = series.dtype
    missing = int(series.null_count())
    if dtype.is_numeric():
        kind = "number"
        numbers = series.drop_nulls().cast(nw.Float64()).to_numpy()  # some whole numbers are too long for numpy
        missing += int((~np.isfinite(numbers)).sum())
        numbers = numbers[np.isfinite(numbers)]
        return _Facts(name, kind, n, len(np.unique(numbers)), missing, numbers, None)
    if dtype.is_temporal():
        kind = "time"
    elif str(dtype) == "Boolean":
        kind = "bool"
    elif str(dtype) in ("String", "Object", "Enum", "Categorical") or str(dtype).startswith(("Enum", "Categorical")):
        kind = "text"
    else:
        return _Facts(name, kind, n, 0, missing, None, None)
    there = series.drop_nulls()
    n_values = int(there.n_unique())
    if kind == "text":
        texts = np.array([str(text) for text in there.unique(maintain_order=True).head(1000).to_list()])
    return _Facts(name, kind, n, n_values, missing, None, texts)


def _dates(texts: AnyArray) -> bool:
    return len(texts) > 0 and all(re.match(r"\d{4}-\d{2}(-\d{2})?([T ]\d{2}:\d{2}|$)", text) for text in texts[:50])


def _role(facts: _Facts, many: bool) -> str:
    """What a column seems to hold; ``many`` says that it is one of many."""
    if facts.n_values <= 1 and facts.present != 1:
        return "constant"
    if facts.kind == "time" or (facts.texts is not None and _dates(facts.texts)):
        return "time"
    hints = facts.hints
    if facts.kind == "bool":
        return "label"
    if facts.kind == "text":
        if "ids" in hints:
            return "ids"
        if facts.texts is not None and float(np.mean([len(text) for text in facts.texts] or [0])) > LONG_TEXT:
            return "text"
        few = facts.n_values <= CLASSES and facts.present >= MANY_ROWS * facts.n_values
        return "label" if few or ("label" in hints and facts.n_values <= CLASSES) else "ids"
    if facts.kind != "number":
        return "other"
    numbers = facts.numbers if facts.numbers is not None else np.zeros(0)
    if "time" in hints and not hints & {"rating", "count"} and (facts.whole and numbers.max(initial=0.0) >= 1000):
        return "time"
    scale = facts.n_values <= SCALE and facts.even
    if not facts.whole:
        return "rating" if scale and ("rating" in hints or facts.n_values <= 12) else "number"
    if "rating" in hints:
        return "rating" if facts.n_values <= SCALE else "number"
    if facts.one_a_row and facts.n_values > MANY_ROWS and numbers.max() - numbers.min() < 2 * facts.n_values:
        return "ids"  # it numbers the rows
    if "id" in _words(facts.name) or ("ids" in hints and not many):
        return "ids"
    if "count" in hints and numbers.min(initial=0.0) >= 0:
        return "count"
    if facts.counts and (many or facts.n_values < 0.2 * facts.present or "label" in hints):
        return "count"
    if scale and (many or facts.present >= MANY_ROWS * facts.n_values or "label" in hints):
        return "rating"
    return "number" if many or "label" in hints or numbers.min(initial=0.0) < 0 else "ids"


def _as_label(facts: _Facts) -> str:
    """What a column holds that is no column of ids."""
    if facts.kind != "number":
        return "label"
    if facts.counts:
        return "count"
    return "rating" if facts.n_values <= SCALE and facts.even else "number"


def _says(facts: _Facts, role: str) -> str:
    """A column in a few words."""
    holes = f"; {counted(facts.n_missing, 'row')} without" if facts.n_missing else ""
    values = facts.values
    if role == "ids":
        mean = facts.present / max(facts.n_values, 1)
        each = (
            "a new one in every row"
            if facts.one_a_row
            else f"{mean:,.0f} rows each"
            if mean > 10
            else f"{mean:.1f} rows each"
        )
        return f"ids: {facts.n_values:,} different, {each}{holes}"
    if role == "rating":
        return f"ratings: {short(values[0])} to {short(values[-1])}, {counted(facts.n_values, 'step')}{holes}"
    if role == "count":
        middle = np.median(facts.numbers) if facts.numbers is not None else 0
        return f"counts: {short(values[0])} to {short(values[-1])}, half of them up to {short(float(middle))}{holes}"
    if role == "number":
        return f"numbers: {short(values[0])} to {short(values[-1])}, {facts.n_values:,} different{holes}"
    if role == "label":
        known = [] if facts.texts is None else [str(text) for text in facts.texts[:4]]
        more = ", …" if facts.n_values > 4 else ""
        return f"labels: {', '.join(known) or 'true, false'}{more}, {facts.n_values:,} different{holes}"
    if role == "time":
        return f"points in time: {facts.n_values:,} different{holes}"
    if role == "constant":
        return f"the same in every row{holes}" if facts.present else "empty"
    return f"prose{holes}" if role == "text" else f"lists or objects: not used{holes}"


def short(value: float) -> str:
    """A number with four digits, without an exponent where it can be."""
    return f"{value:,.0f}" if value == np.floor(value) and abs(value) < 1e15 else f"{value:.4g}"


# proposals


def proposed_alphabet(values: AnyArray) -> str:
    """Labels as ``--alphabet`` takes them: 1..5, or a list; empty where they are too many or have commas.

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
            return ",".join(str(int(number)) for number in numbers) if len(numbers) <= 64 else ""
        return ",".join(repr(float(number)) for number in numbers) if len(numbers) <= 64 else ""
    names = [str(name) for name in found.tolist()]
    plain = len(names) <= 64 and all(name == name.strip() and name and "," not in name for name in names)
    return ",".join(names) if plain else ""


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


def _look(frame: nw.DataFrame[Any], said: _Said, file: str, format: str | None) -> Look:
    n_rows = frame.shape[0]
    if n_rows == 0 or frame.shape[1] == 0:
        raise GinghamError("The table is empty: there is nothing to look at.")
    facts = [_facts(str(name), frame[name]) for name in frame.columns]
    by_name = {one.name: one for one in facts}
    if not said.wide:
        for name in said.columns:
            if name not in by_name:
                have = ", ".join(list(by_name)[:12]) + (", …" if len(facts) > 12 else "")
                raise GinghamError(f"The table has no column {name!r}. It has: {have}.")
        if len(set(said.columns)) < len(said.columns):
            raise GinghamError(f"axes, label and weight name a column twice: {', '.join(said.columns)}.")
    roles = {one.name: _role(one, len(facts) >= MANY_COLUMNS) for one in facts}
    for name in said.axes or ():
        if name in roles:
            roles[name] = "ids"
    sure = [one for one in facts if roles[one.name] == "ids" and ("ids" in one.hints or one.kind == "text")]
    if len(sure) >= 2:  # then numbers whose name says nothing are no further side
        for one in facts:
            if roles[one.name] == "ids" and one.kind == "number" and one not in sure and one.name not in said.columns:
                roles[one.name] = _as_label(one)
    for name in filter(None, (said.label, said.weight)):
        if name in roles and roles[name] == "ids":  # what is to be predicted is no id, whatever it looks like
            roles[name] = _as_label(by_name[name])
    wide = None if said.wide is False or (said.axes is not None and not said.wide) else _wide(facts, roles, said)
    if wide is not None:
        found = _look_wide(frame, wide, by_name, roles)
    elif said.wide:
        raise GinghamError("No side lies in the columns of this table: a wide table has several columns of numbers.")
    else:
        found = _look_long(frame, by_name, roles, said)
    columns = tuple(
        Column(one.name, roles[one.name], one.n_values, one.n_missing, _says(one, roles[one.name])) for one in facts
    )
    command = "" if found.choice is None else command_for(found.choice, wide, file, format)
    others = tuple((why, command_for(choice, wide, file, format)) for why, choice in found.others)
    return Look(
        n_rows,
        columns,
        wide,
        found.choice,
        tuple(found.findings),
        tuple(found.advice),
        command,
        others,
        found.alphabet,
        found.to_state,
    )


def command_for(choice: Choice, wide: WideTable | None, file: str, format: str | None = None) -> str:
    """What to type to fit the model."""
    parts = ["gingham", "fit", file]
    parts += ["--format", format] if format else []
    parts += ["--model", choice.kind]
    parts += ["--wide"] if wide is not None else []
    parts += ["--axes", ",".join(choice.axes)]
    parts += ["--label", choice.label] if choice.label else []
    parts += ["--weight", choice.weight] if choice.weight else []
    parts += ["--drop-missing"] if choice.drop_missing else []
    return shlex.join(parts)


class _Found(NamedTuple):
    choice: Choice | None
    findings: list[str]
    advice: list[str]
    others: list[tuple[str, Choice]]
    alphabet: str = ""
    to_state: str = ""


def _wide(facts: Sequence[_Facts], roles: dict[str, str], said: _Said) -> WideTable | None:
    """The side that lies in the columns, where there is one: several columns alike, and at most one that names rows."""
    named = [one for one in facts if roles[one.name] in ("ids", "time") and one.one_a_row]
    sides = [one for one in facts if roles[one.name] == "ids" and not one.one_a_row]
    numbers = [one for one in facts if roles[one.name] in ("rating", "count", "number") and one.kind == "number"]
    if len(sides) > 1 or (sides and named):
        return None
    least = WIDE if named else MANY_COLUMNS - 1
    if len(numbers) < max(least, 0.6 * (len(facts) - len(named))):
        return None
    if not named and sides:
        return None
    rows = said.axes[0] if said.axes else named[0].name if named else "row"
    numbers = [one for one in numbers if one.name != rows]
    pooled = _pooled(numbers)
    zeros = not (
        pooled.counts and float((_all(numbers) == 0).mean()) > 0.3 and not any(one.n_missing for one in numbers)
    )
    taken = {one.name for one in facts} | {rows}
    side = next(name for name in ("column", "item", "feature", "side_of_columns") if name not in taken)
    label = next(name for name in ("value", "count", "entry", "value_of_cell") if name not in taken)
    if said.axes is not None and len(said.axes) != 2:
        raise GinghamError("A wide table has two sides: --axes names the column of its rows, and what its columns are.")
    if said.axes is not None:
        side = said.axes[1]
    return WideTable((rows, side), tuple(one.name for one in numbers), said.label or said.weight or label, zeros)


def _all(columns: Sequence[_Facts]) -> Floats:
    return np.concatenate([one.numbers for one in columns if one.numbers is not None])


def _pooled(columns: Sequence[_Facts]) -> _Facts:
    numbers = _all(columns)
    missing = sum(one.n_missing for one in columns)
    return _Facts("value", "number", len(numbers) + missing, len(np.unique(numbers)), missing, numbers, None)


def _look_wide(frame: nw.DataFrame[Any], wide: WideTable, facts: dict[str, _Facts], roles: dict[str, str]) -> _Found:
    columns = [facts[name] for name in wide.columns]
    pooled = _pooled(columns)
    n_rows, cells = frame.shape[0], frame.shape[0] * len(columns)
    filled = cells - pooled.n_missing if wide.zeros else int((_all(columns) != 0).sum())
    findings = [
        f"One side lies in the columns: {n_rows:,} rows × {len(columns):,} columns, {filled / cells:.1%} of the cells "
        f"{'filled' if wide.zeros else 'not zero'}."
    ]
    if pooled.n_missing and wide.zeros:
        findings.append(f"{counted(pooled.n_missing, 'cell')} {_are(pooled.n_missing)} empty and can be predicted.")
    advice = []
    spreads = [float(np.std(one.numbers)) for one in columns if one.numbers is not None and len(one.numbers) > 1]
    above = [spread for spread in spreads if spread > 0]
    if wide.zeros and above and max(above) > UNLIKE * min(above):
        advice.append(
            "The columns are measured on different scales, and the widest would decide all. Bring them to one first: "
            "from each take its mean and divide by its standard deviation, as in (frame - frame.mean()) / frame.std()."
        )
    left = [
        name
        for name in frame.columns
        if name not in wide.columns and name != wide.axes[0] and roles[name] != "constant"
    ]
    if left:
        findings.append(
            f"Not used: {listed([repr(name) for name in left])}; hand what is known of the rows over with --info."
        )
    if not wide.zeros:
        choice = Choice(
            "cooccurrence",
            wide.axes,
            weight=wide.label,
            reason=_because("cooccurrence", "the cells are counts, most of them zero"),
        )
        return _Found(choice, findings, advice, [])
    choice = Choice("layered", wide.axes, wide.label, reason=_because("layered", "the cells are numbers"))
    others = [("A single checkerboard instead:", choice._replace(kind="coclustering"))]
    alphabet = proposed_alphabet(pooled.values) if pooled.n_values <= SCALE and pooled.even else ""
    return _Found(choice, findings, advice, others, alphabet, _stated(alphabet, pooled.values))


def _because(kind: str, why: str) -> str:
    return f"Model: {kind} ({KINDS[kind]}), because {why}."


def _stated(alphabet: str, numbers: Floats | None = None) -> str:
    """What a certificate needs to be told, for a person to state."""
    if alphabet:
        option = f"--alphabet {shlex.quote(alphabet)}"
        return f"If no labels but {alphabet} are possible, add {option}: certificates need that said."
    if numbers is None or len(numbers) == 0:
        return ""
    bounds = proposed_bounds(float(numbers[0]), float(numbers[-1]))
    shown = bounds.replace(",", " to ")
    return f"If no label can lie outside {shown}, add --bounds {bounds}: certificates need that said."


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _look_long(frame: nw.DataFrame[Any], facts: dict[str, _Facts], roles: dict[str, str], said: _Said) -> _Found:
    findings: list[str] = []
    advice: list[str] = []
    if said.axes is None:
        ids = [name for name in facts if roles[name] == "ids" and name not in said.columns]
        ids, findings = _sides(frame, ids, facts)
    else:
        ids = list(said.axes)
    if len(ids) < (2 if said.axes is None else 1):
        have = "no column of ids" if not ids else f"one column of ids, {ids[0]!r}"
        advice.append(
            f"The table has {have}: gingham needs two sides, who and what. A table with one side in its columns needs "
            f"{WIDE} or more that hold numbers; several views of the same rows are for --model pairwise."
        )
        return _Found(None, findings, advice, [])
    axes = tuple(ids[:2]) if said.axes is None else said.axes
    if len(ids) > len(axes):
        findings.append(
            f"Further ids: {listed([repr(name) for name in ids[2:]])}; --axes takes more than two sides, too."
        )
    label, role = (said.label, roles[said.label]) if said.label else _label(facts, roles, [*axes, *said.columns])
    if said.weight is not None and said.label is None:
        label, role = said.weight, "count"
    used = [*axes, *([label] if label else [])]
    missing = sum(facts[name].n_missing for name in used)
    if missing:
        findings.append(
            f"{counted(missing, 'value')} of these columns {_are(missing)} missing; such rows are left out."
        )
    if len(axes) > 1:
        findings += _matrix(frame, axes, label, facts)
    for name in axes:
        if facts[name].present < SEVERAL * facts[name].n_values:
            advice.append(says_alone(name, facts[name].n_values, facts[name].present))
    alone = [name for name in axes if facts[name].one_a_row and facts[name].present > MANY_ROWS]
    if alone and said.axes is None:
        advice.append(
            f"With one row for each {alone[0]!r} this looks like a table about items rather than one of who met what: "
            "hand such a table over with --info."
        )
        return _Found(None, findings, advice, [])
    others: list[tuple[str, Choice]] = []
    alphabet = ""
    weight = said.weight if said.label else None
    if len(axes) == 2 and said.label is None and _is_graph(frame, axes, facts):
        weight = label if role in ("count", "number", "rating") else None
        why = f"{axes[0]!r} and {axes[1]!r} hold ids of the same things"
        choice = Choice("graph", axes, weight=weight, reason=_because("graph", why))
    elif label is None and len(axes) != 2:
        advice.append("One side, or more than two, need a column to predict: --label.")
        return _Found(None, findings, advice, [])
    elif label is None:
        choice = Choice("cooccurrence", axes, reason=_because("cooccurrence", "the table lists pairs, without labels"))
        others.append(("For lists of what each one wants next:", Choice("ranking", axes)))
    elif role == "count" and len(axes) == 2 and weight is None:
        choice = Choice("cooccurrence", axes, weight=label, reason=_because("cooccurrence", f"{label!r} counts"))
        others.append(("To predict the number itself:", Choice("layered", axes, label)))
    elif role == "label":
        choice = Choice("coclustering", axes, label, weight, _because("coclustering", f"{label!r} holds classes"))
        texts = facts[label].texts
        alphabet = "" if texts is None or facts[label].n_values > 64 else proposed_alphabet(texts)
    else:
        what = "ratings" if role == "rating" else "numbers"
        choice = Choice("layered", axes, label, weight, _because("layered", f"{label!r} holds {what}"))
        far = float(np.abs(facts[label].values).max(initial=0.0)) > FARTHEST
        if len(axes) == 1 or frame.shape[0] > LARGE or far:
            which = "of one side" if len(axes) == 1 else "beyond all others" if far else f"in {frame.shape[0]:,} rows"
            why = f"{label!r} holds {what} {which}"
            choice = choice._replace(kind="coclustering", reason=_because("coclustering", why))
        if choice.kind == "layered":
            others.append(("A single checkerboard instead:", choice._replace(kind="coclustering")))
        alphabet = proposed_alphabet(facts[label].values) if role == "rating" else ""
    choice = choice._replace(drop_missing=bool(missing))
    others = [(why, other._replace(drop_missing=choice.drop_missing)) for why, other in others]
    times = [name for name in facts if roles[name] == "time"]
    if times and choice.kind == "layered":
        findings.append(
            f"{times[0]!r} holds points in time; in Python, LayeredCoClusteringRegressor(time={times[0]!r}) uses them."
        )
    numbers = facts[label].values if label is not None and choice.kind == "layered" else None
    return _Found(choice, findings, advice, others, alphabet, _stated(alphabet, numbers))


def _sides(frame: nw.DataFrame[Any], ids: list[str], facts: dict[str, _Facts]) -> tuple[list[str], list[str]]:
    """The columns of ids that are sides: not those that number the rows, nor what another one determines."""
    told: list[str] = []
    rows = [name for name in ids if facts[name].one_a_row and facts[name].present > MANY_ROWS]
    rest = [name for name in ids if name not in rows]
    if len(rest) >= 2 and rows:
        told.append(
            f"{listed([repr(name) for name in rows])} {'has' if len(rows) == 1 else 'have'} a new value in every "
            "row: no side."
        )
        ids = rest
    kept: list[str] = []
    for name in ids:
        by = next((other for other in kept if _determined(frame, other, name, facts)), None)
        if by is None:
            above = next((other for other in kept if _determined(frame, name, other, facts)), None)
            if above is not None:  # the finer of two is the side
                told.append(f"{above!r} is a property of {name!r}, each has one: hand it over with --info.")
                kept.remove(above)
            kept.append(name)
        else:
            told.append(f"{name!r} is a property of {by!r}, each has one: hand it over with --info.")
    return kept, told


def _determined(frame: nw.DataFrame[Any], by: str, name: str, facts: dict[str, _Facts]) -> bool:
    """Whether every item of one column goes with one value of another, where items come more than once."""
    if facts[by].present < SEVERAL * facts[by].n_values:
        return False
    return int(frame.select(by, name).unique().shape[0]) <= facts[by].n_values


def _label(facts: dict[str, _Facts], roles: dict[str, str], axes: Sequence[str]) -> tuple[str | None, str]:
    """The column to predict, and its role: one whose name says so, else ratings, classes, counts, numbers."""
    order = ("rating", "label", "count", "number")
    candidates = [name for name in facts if name not in axes and roles[name] in order]
    if not candidates:
        return None, ""
    best = min(
        candidates, key=lambda name: (not facts[name].hints & {"rating", "label", "count"}, order.index(roles[name]))
    )
    return best, roles[best]


def _matrix(frame: nw.DataFrame[Any], axes: tuple[str, ...], label: str | None, facts: dict[str, _Facts]) -> list[str]:
    """How full the matrix is, how skewed its sides are, and what occurs twice."""
    import narwhals as nw

    n = [facts[name].n_values for name in axes]
    whole = frame.select(*axes).drop_nulls()
    pairs = int(whole.unique().shape[0])
    sides = " × ".join(f"{k:,} {_things(name)}" for k, name in zip(n, axes))
    found = [f"{sides}; {pairs / max(n[0] * n[1], 1):.2%} of the pairs occur."]
    twice = whole.shape[0] - pairs
    if twice:
        said = f"{counted(twice, 'row')} {'repeats' if twice == 1 else 'repeat'} a pair that was there before"
        if label is not None:
            full = frame.select(*axes, label).drop_nulls()
            differ = int(full.unique().shape[0]) - int(full.select(*axes).unique().shape[0])
            said += f", {differ:,} of them with another {label}" if differ > 0 else f", with the same {label}"
        found.append(said + ".")
    for name in axes:
        sizes = np.sort(whole.group_by(name).agg(nw.len().alias("\0n"))["\0n"].to_numpy())[::-1].astype(np.float64)
        top = max(1, round(BUSY * len(sizes)))
        share = sizes[:top].sum() / max(sizes.sum(), 1.0)
        if len(sizes) >= 10 and share > 3 * BUSY:
            found.append(
                f"The busiest {BUSY:.0%} of {_things(name)} have {share:.0%} of the rows; half of them have at most "
                f"{np.median(sizes):,.0f}."
            )
    return found


def _things(name: str) -> str:
    """What the ids of a column are of: users of user_id; where the name is no noun, ids in it."""
    many = plural(name)
    return f"ids in {name!r}" if many == name or set(_words(name)) & ENDS_OF_EDGES else many


def _is_graph(frame: nw.DataFrame[Any], axes: tuple[str, ...], facts: dict[str, _Facts]) -> bool:
    """Whether both columns hold ids of the same things."""
    first, second = (facts[name] for name in axes)
    if first.kind != second.kind:
        return False
    words = [_words(name) for name in axes]
    ends = frozenset((words[0][-1:] or [""]) + (words[1][-1:] or [""]))
    alike = re.sub(r"[\W_]*([0-9]+|[a-b])$", "", axes[0]) == re.sub(r"[\W_]*([0-9]+|[a-b])$", "", axes[1])
    told = ends in ENDS or any(frozenset((a, b)) in ENDS for a in words[0] for b in words[1]) or alike
    if first.hints & {"ids"} and second.hints & {"ids"} and not told and first.kind == "number":
        return False  # user 1 and movie 1 are two things
    left, right = (set(frame[name].drop_nulls().unique().to_list()) for name in axes)
    shared = len(left & right) / max(min(len(left), len(right)), 1)
    if told:
        return shared > 0
    return shared >= OVERLAP[first.kind] if first.kind in OVERLAP else False
