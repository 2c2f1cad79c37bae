"""What was observed, as values: modes, alphabets, features of labels, and samples of weighted, labelled observations.

A `Mode` numbers its items, an `Alphabet` numbers the label values, `Features` are the numbers that a cell needs of a
label. A `Sample` is N weighted, labelled tuples of item codes, the one layout below the door, with sums asked of it.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from operator import length_hint
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Bools, Floats, Ints, beside, namespace, on_host
from gingham.data.fit_rows import FitRows
from gingham.engine.files import BLOCK, by_blocks, gathered, in_file, room
from gingham.engine.place import Work, goes_to_device
from gingham.engine.project import Rows
from gingham.engine.sums import Sums, SumsOfRows
from gingham.errors import GinghamError
from gingham.storage import savable

if TYPE_CHECKING:
    from gingham.data.device_sample import DeviceSample
    from gingham.engine.project_compiled import Tiles

Made = TypeVar("Made")

MAX_ITEMS = 2**31 - 1
MAX_LABELS = 100_000
LARGEST = 1e50  # of labels: their fourth powers, weighted and added up, are still numbers
MOST_WEIGHT = 2.0**53  # of all observations together: beyond it, whole numbers are not told apart
CHUNK = 2**16  # labels that are looked at together
MAX_SPAN = 4  # whole-number ids that span at most this many times their count are looked up in a table


def need_unmasked(values: object, what: str) -> None:
    """Refuse a masked array of which something is masked: arrays without a mask would show what lies below it."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        place = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise GinghamError(f"{what} is masked in {where}: drop missing entries from all arguments.")


def need_moderate(values: AnyArray, what: str, largest: float = LARGEST) -> None:
    """Refuse NaN and numbers too large to compute with."""
    if getattr(values.dtype, "kind", "f") != "f":  # types of tensors have no kind, and all are looked at
        return
    if len(values) and not max(float(values.max()), -float(values.min())) <= largest:
        row = int(abs(values).argmax())
        raise GinghamError(
            f"{what} {float(values[row]):g} in row {row} is too large: the limit is {largest:g}. "
            f"Divide all of them by a number."
        )


def as_column(values: npt.ArrayLike, name: str) -> AnyArray:
    """A one-dimensional array of ids; missing ids (None, NaN) are refused with their row."""
    need_unmasked(values, f"Column {name!r}")
    column = np.asarray(values)
    if column.ndim != 1:
        # Ids that are themselves sequences (tuples, say) arrive as a nested array.
        nested = cast("Sequence[object]", values)
        column = np.empty(len(nested), dtype=object)
        column[:] = [tuple(v) if isinstance(v, list) else v for v in nested]
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        row = int(np.flatnonzero(~np.isfinite(column))[0])
        what = "NaN" if np.isnan(column[row]) else "infinity (inf)"
        raise GinghamError(
            f"Column {name!r} has {what} in row {row}: every item needs an id. Drop the row, or fill in the id."
        )
    if column.dtype.kind in "mM" and np.isnat(column).any():
        row = int(np.flatnonzero(np.isnat(column))[0])
        raise GinghamError(f"Column {name!r} has a missing id (NaT) in row {row}. Drop the row, or fill in the id.")
    if column.dtype.kind == "c":
        raise GinghamError(f"Complex data not supported: column {name!r} has complex numbers as ids.")
    if column.dtype.kind == "O":
        for row, value in enumerate(column):
            if value is None or value != value:
                raise GinghamError(
                    f"Column {name!r} has a missing id (None or NaN) in row {row}. Drop the row, or fill in the id."
                )
    return column


def distinct(column: AnyArray, name: str) -> AnyArray:
    """The different ids, sorted where they can be, in order of appearance where they cannot."""
    if column.dtype.kind in "iu" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < MAX_SPAN * len(column):  # whole numbers that lie close together: marked, not sorted
            seen = np.zeros(high - low + 1, dtype=bool)
            least = column.dtype.type(low)  # differences may wrap around, and wrap back
            seen[(column - least).astype(f"u{column.itemsize}")] = True
            return np.flatnonzero(seen).astype(column.dtype) + least
    if column.dtype.kind != "O":
        return np.unique(column)
    try:
        unique = list(dict.fromkeys(column.tolist()))
    except TypeError as error:
        raise GinghamError(f"Column {name!r} has an id that is not hashable: {error}.") from None
    with contextlib.suppress(TypeError):
        unique.sort()
    items = np.empty(len(unique), dtype=object)
    items[:] = unique
    return items


def exactly(numbers: AnyArray, dtype: np.dtype[Any]) -> tuple[AnyArray, Bools]:
    """Numbers in another type, and which of them are the same numbers there.

    Compared in the type that numpy would choose, a float, whole numbers that differ from 2⁵³ on could be equal.
    """
    with np.errstate(all="ignore"):
        converted = numbers.astype(dtype)
        same = (converted.astype(numbers.dtype) == numbers) & ((converted < 0) == (numbers < 0))
    if dtype.kind == "f":
        same &= np.abs(converted) < 2.0**63  # what lies beyond does not come back from a float on every machine
    return converted, same


def joined_ids(columns: Sequence[AnyArray]) -> AnyArray:
    """Columns of ids one after the other, each id as it is: numpy would make texts of numbers beside texts."""
    columns = [column for column in columns if len(column)] or list(columns[:1])
    kinds = {column.dtype.kind for column in columns}
    alike = len(kinds) == 1
    if kinds <= set("biuf"):
        dtype = np.result_type(*columns)
        alike = all(exactly(column, dtype)[1].all() for column in columns)
    if alike:
        return np.concatenate(columns)
    if kinds & set("mM"):  # numpy counts them in units of its own, so that they would not be the same ids any more
        raise GinghamError("Some ids are dates or times and others are not. Make them one type.")
    values = [value for column in columns for value in column.tolist()]
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def few_values(labels: AnyArray, most: int) -> AnyArray:
    """The different labels, sorted; where they are more than ``most``, some of them, more than ``most``."""
    if namespace(labels) is not np:
        return on_host(namespace(labels).unique(labels))
    if labels.dtype.kind in "iu":
        return distinct(labels, "label")
    known = np.unique(labels[:CHUNK])
    for start in range(CHUNK, len(labels), CHUNK):
        if len(known) > most:
            break
        part = labels[start : start + CHUNK]
        at = np.minimum(np.searchsorted(known, part), len(known) - 1)
        new = part[known[at] != part]
        known = np.union1d(known, new) if len(new) else known
    return known


def default_names(d: int) -> list[str]:
    """Names of the columns of ids that come without names."""
    return ["row", "column"] if d == 2 else [f"axis {j + 1}" for j in range(d)]


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of ids that was numbered while it was read; as an array it is the ids themselves."""

    items: AnyArray  # different ids, sorted as `distinct` sorts them
    codes: Ints  # (N,) int32, positions among the items; they may lie in a file

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: AnyArray) -> Coded:
        return Coded(self.items, self.codes[rows])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        return np.asarray(self.items[self.codes], dtype=dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.items.dtype


@savable
@dataclass(frozen=True, eq=False)
class Mode:
    """One side of the data (viewers, say) and its items."""

    name: str
    items: AnyArray  # (n_items,) distinct ids; the position of an id is its code

    @classmethod
    def of(cls, values: npt.ArrayLike | Coded, name: str) -> Mode:
        if isinstance(values, Coded):
            there = np.zeros(len(values.items), dtype=bool)
            for start in range(0, len(values), BLOCK):
                there[values.codes[start : start + BLOCK]] = True
            return cls(name, values.items if there.all() else values.items[there])
        return cls(name, distinct(as_column(values, name), name))

    def __post_init__(self) -> None:
        if len(self.items) > MAX_ITEMS:
            raise GinghamError(f"Mode {self.name!r} has {len(self.items):,} items; at most {MAX_ITEMS:,} fit.")

    @property
    def n_items(self) -> int:
        return len(self.items)

    @cached_property
    def _index(self) -> dict[object, int]:
        return {item: code for code, item in enumerate(self.items.tolist())}

    def encode(self, values: npt.ArrayLike | Coded) -> Ints:
        """Codes (int32) of ids; −1 for ids this mode has never seen."""
        if isinstance(values, Coded):
            if values.items is self.items:
                return values.codes
            own, codes = self.encode(values.items), values.codes
            return by_blocks(lambda rows: own[codes[rows]], len(codes), codes)
        column = as_column(values, self.name)
        numeric = "biuf"
        same_kind = column.dtype.kind == self.items.dtype.kind or (
            column.dtype.kind in numeric and self.items.dtype.kind in numeric
        )
        if self.n_items == 0:
            return np.full(len(column), -1, dtype=np.int32)
        if column.dtype.kind in "iu" and self.items.dtype.kind in "iu":
            low, high = int(self.items.min()), int(self.items.max())
            if high - low < MAX_SPAN * max(self.n_items, len(column)):
                return self._look_up(column, low, high)
        if same_kind and column.dtype.kind != "O":
            exact: AnyArray | bool = True
            if column.dtype.kind in numeric and column.dtype != self.items.dtype:
                column, exact = exactly(column, self.items.dtype)
            at = np.minimum(np.searchsorted(self.items, column), self.n_items - 1)
            return np.where((self.items[at] == column) & exact, at, -1).astype(np.int32)
        index = self._index
        try:
            found = [index.get(value, -1) for value in column.tolist()]
        except TypeError as error:
            raise GinghamError(f"Column {self.name!r} has an id that is not hashable: {error}.") from None
        return np.asarray(found, dtype=np.int32)

    def _look_up(self, column: Ints, low: int, high: int) -> Ints:
        """Codes of whole numbers that lie close together: one entry of a table each, no search."""
        table = np.full(high - low + 2, -1, dtype=np.int32)  # the last entry stands for all numbers outside
        unsigned = f"u{self.items.itemsize}"  # differences of narrow numbers may wrap around
        table[(self.items - self.items.dtype.type(low)).astype(unsigned)] = np.arange(self.n_items)
        if high < 2**63 and len(column) and low <= column.min() and column.max() <= high:  # all inside, as in training
            return table[column.astype(np.int64, copy=False) - low]
        inside = (column >= low) & (column <= high)
        at = np.where(inside, column, low).astype(self.items.dtype) - self.items.dtype.type(low)
        return table[np.where(inside, at.astype(unsigned).astype(np.int64), high - low + 1)]

    def decode(self, codes: Ints) -> AnyArray:
        return self.items[codes]


@savable
@dataclass(frozen=True, eq=False)
class Alphabet:
    """The possible label values, in order.

    ``given`` says whether the caller stated them (a certificate may then rely on them) or they were
    read off the data.

    Examples
    --------
    >>> import gingham as gg
    >>> stars = gg.data.Alphabet.of([1, 2, 3, 4, 5], given=True)
    >>> stars.values, stars.given
    (array([1, 2, 3, 4, 5]), True)
    """

    values: AnyArray
    given: bool = False
    listed_in_order: bool = True  # whether the caller listed them so; a table of losses has its rows in this order

    @classmethod
    def of(cls, values: Iterable[object] | AnyArray, given: bool) -> Alphabet:
        # the length of a range can be beyond what len() tells
        n_values = (values.stop - values.start) // values.step if isinstance(values, range) else length_hint(values)
        if n_values > MAX_LABELS:
            raise GinghamError(f"alphabet= has {n_values:,} label values; at most {MAX_LABELS:,} are supported.")
        column = np.asarray(values if isinstance(values, np.ndarray) else list(values))
        if column.ndim != 1 or len(column) == 0:
            raise GinghamError("alphabet= needs a flat list with at least one label value.")
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise GinghamError("alphabet= contains NaN or infinity; list the finite label values only.")
        need_moderate(column, "Label")
        return cls(np.unique(column), given, not given or bool((column[:-1] <= column[1:]).all()))

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def ends(self) -> Bounds:
        """The smallest and largest label as numbers, given if the alphabet is."""
        return Bounds(float(self.numbers.min()), float(self.numbers.max()), self.given)

    @property
    def numeric(self) -> bool:
        return self.values.dtype.kind in "biuf"

    @property
    def numbers(self) -> Floats:
        """Label values as numbers; named labels are replaced by their positions."""
        if self.numeric:
            return self.values.astype(np.float64)
        return np.arange(self.size, dtype=np.float64)

    def encode(self, labels: AnyArray) -> Ints:
        """Codes of labels, an array (int32) or a tensor (of one byte where that will do)."""
        if not self.numeric:
            labels = on_host(labels)
        xp = namespace(labels)
        if xp is not np:
            values, labels = beside(self.numbers, labels), labels.double()  # type: ignore[attr-defined]
            at = xp.clip(xp.searchsorted(values, labels), None, self.size - 1)
            wrong = values[at] != labels
            at = at.to(xp.uint8 if self.size <= 256 else xp.int32)
        else:
            labels = np.asarray(labels)
            if labels.dtype.kind in "iu" and self.values.dtype.kind in "iu":
                at = Mode("label", self.values).encode(labels)
                wrong = at < 0
            else:
                at = np.minimum(np.searchsorted(self.values, labels), self.size - 1).astype(np.int32, copy=False)
                wrong = self.values[at] != labels
        if wrong.any():
            row = int(xp.argmax(1 * wrong))
            shown = ", ".join(str(v) for v in self.values[:8]) + (", …" if self.size > 8 else "")
            raise GinghamError(
                f"Label {on_host(labels[row]).item()!r} in row {row} is not in the alphabet ({shown}). "
                "Extend alphabet= or correct the row."
            )
        return at

    def decode(self, codes: Ints) -> AnyArray:
        return self.values[codes]


@savable
@dataclass(frozen=True)
class Bounds:
    """The smallest and largest possible label, for labels without a finite list.

    ``given`` says whether the caller stated them (a certificate may then rely on them) or they were read off the data.
    They unpack like a pair of numbers.
    """

    low: float
    high: float
    given: bool = False

    @classmethod
    def of(cls, bounds: Bounds | Sequence[float] | None, given: bool) -> Bounds | None:
        """Bounds from a pair of numbers; those that know whether they were given are passed on."""
        if bounds is None or isinstance(bounds, Bounds):
            return bounds
        try:
            low, high = (float(end) for end in bounds)
        except (TypeError, ValueError):
            raise GinghamError(f"bounds={bounds!r} must be two numbers, the smallest and largest label.") from None
        if not -np.inf < low <= high < np.inf:
            raise GinghamError(f"bounds={bounds!r} must be two finite numbers, the smaller one first.")
        return cls(low, high, given)

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __getitem__(self, end: int) -> float:
        return (self.low, self.high)[end]

    def __len__(self) -> int:
        return 2

    def check(self, values: AnyArray, what: str, rounding: float = 0.0) -> None:
        """Refuse values outside, but for ``rounding`` as a share of their size."""
        values = np.asarray(values).ravel()
        room = rounding * max(abs(self.low), abs(self.high))
        outside = ~((values >= self.low - room) & (values <= self.high + room))
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise GinghamError(
                f"{what} {at} is {values[at]:.6g} and lies outside bounds=({self.low:g}, {self.high:g}): state the "
                "smallest and largest that can occur."
            )


class Features(ABC):
    """t(y), K numbers of a label; statistics are their sums over observations."""

    one_hot: ClassVar[bool]  # whether t(y) is, so that kernels can use label codes instead of K numbers per observation
    size: int  # K

    @abstractmethod
    def of_labels(self, numbers: Floats) -> Floats:
        """t(y) for every label of an alphabet with these numbers, shape (|Y|, K)."""

    @abstractmethod
    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        """t(y_e) for every observation, dense, shape (…, K)."""

    @abstractmethod
    def count(self, statistics: AnyArray) -> AnyArray:
        """Number of tuples behind statistics (…, K), shape (…)."""


@dataclass(frozen=True)
class OneHot(Features):
    """t(y) = one-hot(y) over an alphabet of ``size`` labels: the statistics are label histograms."""

    one_hot: ClassVar[bool] = True
    size: int

    def of_labels(self, numbers: Floats) -> Floats:
        return np.eye(self.size)

    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        if label_codes is None:
            raise GinghamError("This cell model needs labels on an alphabet.")
        return beside(np.eye(self.size), label_codes)[label_codes]

    def count(self, statistics: AnyArray) -> AnyArray:
        return statistics.sum(-1)


@dataclass(frozen=True)
class Moments(Features):
    """t(y) = (1, y, …, y^degree): the statistics are power sums; degree 0 counts only."""

    one_hot: ClassVar[bool] = False
    degree: int

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.degree + 1

    def of_labels(self, numbers: Floats) -> Floats:
        return self.evaluate(numbers)

    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        """Powers of the labels, shape (N, degree + 1)."""
        if labels is None:
            raise GinghamError("This cell model needs numeric labels.")
        if namespace(labels) is not np:
            return labels.double()[:, None] ** beside(np.arange(self.size), labels)  # type: ignore[attr-defined]
        return np.vander(np.asarray(labels, dtype=np.float64), self.size, increasing=True)

    def count(self, statistics: AnyArray) -> AnyArray:
        return statistics[..., 0]


@dataclass(frozen=True, eq=False)
class Sample:
    """Observations (x_1, …, x_d, y) with weights.

    A mode that is met twice (a graph) stands at both positions as the same Mode object.

    Attributes
    ----------
    modes : tuple of Mode, one per position
    codes : tuple of int32 arrays of shape (n_rows,), one per position
        −1 is an item that the mode does not have; only a posterior can tell where it belongs.
    labels : float64 array of shape (n_rows,) or None
        Numeric labels (positions in the alphabet where labels are names).
    alphabet : Alphabet or None
    label_codes : int32 array of shape (n_rows,) or None
    weights : float64 array of shape (n_rows,) or None
        Counts; None means one each.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> sample = model.sample(X, y)
    >>> len(sample.modes), sample.codes[0].shape
    (2, (600,))
    """

    on_device: ClassVar[bool] = False  # whether the columns are tensors on a GPU, see `DeviceSample`
    pairs_once: ClassVar[bool] = False  # whether a pair cannot be listed in both directions, see `PairSample`

    modes: tuple[Mode, ...]
    codes: tuple[Ints, ...]
    labels: Floats | None = None
    alphabet: Alphabet | None = None
    label_codes: Ints | None = None
    weights: Floats | None = None
    # What has been made of the observations. Not an argument: `replace` begins with none, for other observations have
    # other ones.
    _layouts: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def complete(self) -> bool:
        """Whether observations that are not listed were observed, too, with label 0; see `PairSample`."""
        return False

    @classmethod
    def of(
        cls,
        columns: Sequence[npt.ArrayLike],
        y: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        *,
        names: Sequence[str] | None = None,
        modes: Sequence[Mode] | None = None,
        alphabet: Alphabet | None = None,
        numbers: bool = True,
        unseen: bool = False,
    ) -> Sample:
        """Number the items of each column (or use given modes) and check labels and weights.

        ``numbers`` says whether labels of an alphabet are kept as numbers beside their codes, ``unseen`` whether
        items that given modes do not have are kept as −1 or refused.
        """
        columns = cls.brought(columns)
        if modes is None:
            names = names or default_names(len(columns))
            modes, codes = zip(*(cls.numbered(column, name) for column, name in zip(columns, names)))
        else:
            codes = tuple(cls.encoded(mode, column) for mode, column in zip(modes, columns))
            for mode, code in zip(modes, codes):
                if len(code) and code.min() < 0 and not unseen:
                    row = int((1 * (code < 0)).argmax())
                    raise GinghamError(
                        f"Column {mode.name!r}, row {row}: this id is unknown. Only ids of the training data can be "
                        "used here."
                    )
        n_rows = len(codes[0])
        labels = label_codes = None
        if y is not None:
            need_unmasked(y, "y")
            y = cls.column(y)
            if len(y) != n_rows:
                raise GinghamError(f"X has {n_rows} rows but y has {len(y)}.")
            if alphabet is not None:
                label_codes = by_blocks(lambda rows: cls.column(alphabet.encode(y[rows])), n_rows, codes[0])
                if numbers and not cls.on_device:
                    values, at = alphabet.numbers, label_codes
                    labels = by_blocks(lambda rows: values[at[rows]], n_rows, codes[0])
            else:
                try:
                    labels = (
                        y.double()  # type: ignore[attr-defined]
                        if cls.on_device
                        else by_blocks(lambda rows: y[rows].astype(np.float64), n_rows, codes[0])
                    )
                except (TypeError, ValueError) as error:
                    raise GinghamError(f"This loss needs labels that are numbers: {error}.") from None
                need_moderate(labels, "Label")
        given = checked_weights(weights, n_rows)
        return cls(
            modes=tuple(modes),
            codes=tuple(codes),
            labels=labels,
            alphabet=alphabet,
            label_codes=label_codes,
            weights=None if given is None else cls.column(given),
        )

    def placed(self) -> DeviceSample:
        """The same observations on the device, copied once and kept."""
        from gingham.data.device_sample import DeviceSample

        return self._kept(("device",), lambda: DeviceSample.copied(self))

    def _kept(self, key: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """What is made of the observations once, and then kept with them."""
        if key not in self._layouts:
            self._layouts[key] = make()
        return cast("Made", self._layouts[key])

    # how columns come to where the sample lies

    @staticmethod
    def brought(columns: Sequence[npt.ArrayLike]) -> Sequence[Any]:
        """Columns of ids where they are numbered."""
        return columns

    @staticmethod
    def numbered(column: npt.ArrayLike, name: str) -> tuple[Mode, AnyArray]:
        """A mode of the ids of a column, and their codes."""
        mode = Mode.of(column, name)
        return mode, mode.encode(column)

    @staticmethod
    def encoded(mode: Mode, column: npt.ArrayLike) -> AnyArray:
        """Codes of ids, −1 for those that the mode does not know."""
        return mode.encode(column)

    @staticmethod
    def column(values: npt.ArrayLike) -> AnyArray:
        """Labels, their codes or weights."""
        return np.asarray(values)

    @property
    def in_file(self) -> bool:
        """Whether the columns are larger than memory and lie in files."""
        return in_file(self.codes[0])

    @property
    def place(self) -> str:
        """Where sums over the observations are computed: "cores", "files" or "gpu"."""
        return "files" if self.in_file else "cores"

    def in_arrays(self) -> Sample:
        """The same observations as arrays of numpy."""
        return self

    def few(self, n: int, rng: np.random.Generator) -> Sample:
        """At most n rows of a sample in files, drawn at random; one in memory is as it is."""
        if not self.in_file or self.n_rows <= n:
            return self
        return self.take(np.sort(rng.choice(self.n_rows, n, replace=False)))

    @property
    def n_modes(self) -> int:
        return len(self.modes)

    @property
    def n_rows(self) -> int:
        """Stored observations; duplicates and weights not merged."""
        return len(self.codes[0])

    @property
    def n_observations(self) -> float:
        """N: the total weight, in which a tuple of weight 2 counts twice."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(mode.n_items for mode in self.modes)

    @property
    def has_unseen(self) -> bool:
        """Whether some observation has an item that its mode does not have (code −1)."""
        return self._kept(("unseen",), lambda: any(bool(len(code)) and bool(code.min() < 0) for code in self.codes))

    def with_others(self) -> Sample:
        """The same observations with one more item at the end of each mode, for all that the mode does not have."""
        wide = {id(mode): Mode(mode.name, np.arange(mode.n_items + 1)) for mode in self.modes}
        codes = tuple(np.where(code < 0, n, code).astype(np.int32) for code, n in zip(self.codes, self.shape))
        return replace(self, modes=tuple(wide[id(mode)] for mode in self.modes), codes=codes)

    @property
    def has_counts(self) -> bool:
        """Whether all weights are whole numbers, so that a tuple of weight w stands for w draws."""
        return self.weights is None or bool(np.all(self.weights == np.floor(self.weights)))

    def __sizeof__(self) -> int:
        """Bytes of its columns and of what is made of them: schedulers ask before they move it."""
        columns = (*self.codes, self.labels, self.label_codes, self.weights)
        sorted_rows = self.n_modes * self.n_rows * (4 * self.n_modes + (0 if self.weights is None else 8))
        return sorted_rows + sum(column.nbytes for column in columns if column is not None)

    def take(self, rows: AnyArray) -> Self:
        """The sub-sample of the given rows (indices or mask); modes and alphabet stay."""
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        to_file = self.in_file and len(rows) > BLOCK
        return replace(self, **self.map_columns(lambda column: gathered(column, rows) if to_file else column[rows]))

    def map_columns(self, of: Callable[[Any], Any]) -> dict[str, Any]:
        """What a function makes of codes, labels, label codes and weights, by the names of these fields."""
        others = {name: getattr(self, name) for name in ("labels", "label_codes", "weights")}
        made = {name: None if column is None else of(column) for name, column in others.items()}
        return {"codes": tuple(of(code) for code in self.codes), **made}

    def merged(self) -> Sample:
        """Equal tuples (label included) as one with their weights added, in a fixed order.

        What is drawn from it then depends neither on the order of the rows nor on how repetitions are
        written, and an observation that is held out has no twin among the others.
        """
        order = self._sorted()
        changes = np.ones(self.n_rows, dtype=bool)
        changes[1:] = False
        for column in (*self.codes, *(() if self.labels is None else (self.labels,))):
            inorder = gathered(column, order)
            changes[1:] |= inorder[1:] != inorder[:-1]
        starts = np.flatnonzero(changes)
        if self.weights is None:
            totals: Floats = np.diff(starts, append=self.n_rows).astype(np.float64)
        else:
            totals = np.add.reduceat(gathered(self.weights, order), starts)
        different = self.take(order if len(starts) == len(order) else order[starts])
        return replace(different, weights=None if (totals == 1).all() else totals)

    def _sorted(self) -> Ints:
        """``np.lexsort`` by codes, then labels: one sort by a joint code where it fits, labels only among equals."""
        if prod(self.shape) > 2**62 or any(int(code.min(initial=0)) < 0 for code in self.codes):
            return np.lexsort((*(() if self.labels is None else (self.labels,)), *self.codes[::-1]))
        joint = by_blocks(
            lambda rows: np.ravel_multi_index(tuple(code[rows].astype(np.int64) for code in self.codes), self.shape),
            self.n_rows,
            self.codes[0],
        )
        order = np.argsort(joint, kind="stable")
        if self.labels is not None:
            inorder = gathered(joint, order)
            equal = inorder[1:] == inorder[:-1]
            among = np.concatenate([equal, [False]]) | np.concatenate([[False], equal])
            rows = order[among]
            order[among] = rows[np.lexsort((self.labels[rows], joint[rows]))]
        return order

    def of_items(self, mode: int, chosen: Bools) -> Sample:
        """The observations of some items of a mode, (n_items,) marks."""
        return self.take(chosen[self.codes[mode]])

    def fit_rows(self) -> FitRows:
        """A sketch of these observations, by which a model that has learned from them knows them again."""
        return FitRows.of(self)

    def counts(self, axis: int) -> Floats:
        """Total weight of each item of one position, shape (n_items,)."""
        return np.bincount(self.codes[axis], self.weights, minlength=self.shape[axis]).astype(np.float64)

    def totals(self, axis: int, values: Sequence[Floats]) -> Floats:
        """Sums of some columns over the tuples of each item of one position, shape (n_items, len(values))."""
        n = self.shape[axis]
        return np.stack([np.bincount(self.codes[axis], column, minlength=n) for column in values], axis=1)

    @property
    def label_index(self) -> Ints:
        """Codes of the labels in a type that may stand as an index."""
        if self.label_codes is None:
            raise GinghamError("This needs labels on an alphabet.")
        return self.label_codes

    def numbers(self) -> Floats:
        """Labels as numbers, shape (n_rows,), also where only their codes are kept."""
        if self.labels is None and self.alphabet is not None:
            return beside(self.alphabet.numbers, self.label_index)[self.label_index]
        return self.labels  # type: ignore[return-value]

    def features_of(self, features: Features) -> Floats:
        """t(y) of every observation, shape (n_rows, K); observations without labels count as ones."""
        labels = self.numbers()
        ones = namespace(self.codes[0]).ones_like(self.codes[0])
        return features.evaluate(ones if labels is None else labels, self.label_index if features.one_hot else None)

    def sums(self, features: Features) -> Sums:
        """The sums over its observations that starts, answers and certificates ask for."""
        return SumsOfRows(self, features, None if self.alphabet is None else self.alphabet.numbers)

    def completed(self, table: Floats, assigns: Sequence[Floats], features: Features) -> Floats:
        """Cell statistics of all observations from those of the listed ones (here the same)."""
        return table

    def rows(self, axis: int, features: Features) -> Rows:
        """The observations grouped by the items of one position, in the kernels' layout (kept once made)."""
        return self._kept((axis, features), lambda: self._group(axis, features))

    def tiles(self, axis: int, features: Features, row_bytes: int) -> Tiles | None:
        """The same rows in tiles, where the other mode's assignments (``row_bytes`` an item) outgrow the cache.

        Made once and kept, for one width at a time; None where they would not pay.
        """
        if self.n_modes != 2 or self.in_file:  # there the disk is what takes time
            return None
        from gingham.engine.project_compiled import make_tiles  # compiled code is loaded where it is used

        key = ("tiles", axis, features)
        if self._layouts.get(key, (None, None))[0] != row_bytes:
            self._layouts[key] = (row_bytes, make_tiles(self.rows(axis, features), self.shape[1 - axis], row_bytes))
        return self._layouts[key][1]

    def _group(self, axis: int, features: Features) -> Rows:
        from gingham.engine.project_compiled import grouping  # compiled code is loaded where it is used

        if self.has_unseen:
            raise GinghamError(
                "Some rows have items that were not in the training data, so the model cannot learn from them."
            )
        codes = self.codes[axis]
        n_items = self.shape[axis]
        label_codes = None
        if features.one_hot:
            if self.label_codes is None:
                raise GinghamError("This cell model needs labels on an alphabet.")
            label_codes = self.label_codes
        # Sorted by label within an item, a row's sums stay in registers.
        per_item = 1 if label_codes is None else features.size
        within = np.empty(0, np.int32) if label_codes is None else label_codes
        columns: list[AnyArray] = [self.codes[j] for j in range(self.n_modes) if j != axis]
        if not features.one_hot:
            columns.append(np.ones(self.n_rows) if self.labels is None else self.labels)
        if self.weights is not None:
            columns.append(self.weights)
        begin, found = grouping(codes, within, n_items, per_item, columns)
        weights = None if self.weights is None else found.pop()
        dense = marks = None
        if label_codes is not None:
            marks = by_blocks(lambda rows: marked(begin, per_item, rows), self.n_rows, codes)
        else:
            own = found.pop()
            dense = by_blocks(lambda rows: np.ascontiguousarray(features.evaluate(own[rows])), self.n_rows, codes)
        others = found[0].reshape(1, -1) if len(found) == 1 else room((self.n_modes - 1, self.n_rows), np.int32, codes)
        if len(found) != 1:
            for row, column in zip(others, found):
                row[:] = column
        return Rows(
            indptr=np.ascontiguousarray(begin[::per_item]),
            others=others,
            labels=marks,
            features=dense,
            weights=weights,
            n_features=features.size,
            runs=None if label_codes is None else begin,
        )


def marked(begin: Ints, n_labels: int, rows: slice) -> Ints:
    """The label codes of some rows that are grouped by item and label, of which each group begins at ``begin``."""
    first, last = np.searchsorted(begin, [rows.start, rows.stop - 1], side="right") - 1 if rows.stop else (0, -1)
    lengths: Ints = np.diff(np.clip(begin[first : last + 2], rows.start, rows.stop))  # type: ignore[assignment]
    return np.repeat((np.arange(first, last + 1) % n_labels).astype(np.int32), lengths)


def sample_kind(backend: str, work: Callable[[], Work]) -> type[Sample]:
    """Where observations go: `DeviceSample` where torch was asked for or a GPU is faster, `Sample` otherwise."""
    if not goes_to_device(backend, work):
        return Sample
    from gingham.data.device_sample import DeviceSample

    return DeviceSample


def checked_labels(y: npt.ArrayLike) -> AnyArray:
    """One label per row; none may be masked."""
    need_unmasked(y, "y")
    labels = np.asarray(y)
    if labels.ndim != 1:
        raise GinghamError(f"y has shape {labels.shape}; it needs one label per row, (N,): use y.ravel().")
    return labels


def checked_weights(weights: npt.ArrayLike | None, n_rows: int) -> Floats | None:
    if weights is None:
        return None
    need_unmasked(weights, "sample_weight")
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise GinghamError(f"sample_weight has shape {weights.shape}; it needs one number per row, ({n_rows},).")
    if not np.isfinite(weights).all() or (weights < 0).any():
        row = int(np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))[0])
        raise GinghamError(f"sample_weight is {weights[row]} in row {row}: weights must be finite and ≥ 0.")
    if weights.max(initial=0.0) > MOST_WEIGHT or weights.sum() > MOST_WEIGHT:
        raise GinghamError(
            f"sample_weight adds up to more than 2**53 (the largest is {weights.max():g}), where integers are no "
            "longer exact in double precision. Divide all weights by a number."
        )
    if weights.sum() <= 0:
        raise GinghamError("All weights are zero.")
    return weights


def tuples(
    columns: Sequence[npt.ArrayLike], y: npt.ArrayLike, weights: npt.ArrayLike | None = None, **how: Any
) -> Sample:
    """Rows as tuples for themselves, whatever a model makes of their labels; ``how`` is for `Sample.of`."""
    labels = np.asarray(y).ravel()
    label_values = None if labels.dtype.kind in "biuf" else Alphabet.of(np.unique(labels), given=False)
    return Sample.of(columns, labels, weights, alphabet=label_values, **how)
