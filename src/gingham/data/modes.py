"""A Mode numbers its items, an Alphabet numbers the label values, Features are the numbers a cell needs of a label."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import length_hint
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Bools, Floats, Ints, beside, namespace, on_host
from gingham.errors import GinghamError
from gingham.storage import savable

MAX_ITEMS = 2**31 - 1
MAX_LABELS = 100_000
LARGEST = 1e50  # of labels: their fourth powers, weighted and added up, are still numbers
MOST_WEIGHT = 2.0**53  # of all tuples together: beyond it, whole numbers are not told apart
CHUNK = 2**16  # labels that are looked at together
MAX_SPAN = 4  # whole-number ids that span at most this many times their count are looked up in a table


def need_unmasked(values: object, what: str) -> None:
    """Refuse a masked array of which something is masked: arrays without a mask would show what lies below it."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
        place = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        where = f"row {place[0]}" + (f", column {place[1]}" if len(place) > 1 else "")
        raise GinghamError(f"{what} is masked in {where}: what is missing is left out, in all arguments alike.")


def need_moderate(values: AnyArray, what: str, largest: float = LARGEST) -> None:
    """Refuse numbers that cannot be computed with."""
    if namespace(values) is np and values.dtype.kind != "f":
        return
    if len(values) and not float(abs(values).max()) <= largest:
        row = int(abs(values).argmax())
        raise GinghamError(
            f"{what} {float(values[row]):g} in row {row} is too large to compute with, beyond {largest:g}. "
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
            f"Column {name!r} has {what} in row {row}: an item needs an id. Drop the row or give the item a name."
        )
    if column.dtype.kind in "mM" and np.isnat(column).any():
        row = int(np.flatnonzero(np.isnat(column))[0])
        raise GinghamError(f"Column {name!r} has a missing id (NaT) in row {row}. Drop the row or give it a name.")
    if column.dtype.kind == "c":
        raise GinghamError(f"Complex data not supported: column {name!r} has complex numbers as ids.")
    if column.dtype.kind == "O":
        for row, value in enumerate(column):
            if value is None or value != value:
                raise GinghamError(
                    f"Column {name!r} has a missing id (None or NaN) in row {row}. "
                    "Drop the row or give the item a name."
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


def checked_items(items: AnyArray, name: str) -> AnyArray:
    """The ids of a mode, unless they are more than codes can tell apart."""
    if len(items) > MAX_ITEMS:
        raise GinghamError(f"Mode {name!r} has {len(items):,} items; at most {MAX_ITEMS:,} fit.")
    return items


@savable
@dataclass(frozen=True, eq=False)
class Mode:
    """One side of the data (viewers, say) and its items."""

    name: str
    items: AnyArray  # (n_items,) distinct ids; the position of an id is its code

    @classmethod
    def of(cls, values: npt.ArrayLike, name: str) -> Mode:
        return cls(name, checked_items(distinct(as_column(values, name), name), name))

    @property
    def n_items(self) -> int:
        return len(self.items)

    @cached_property
    def _index(self) -> dict[object, int]:
        return {item: code for code, item in enumerate(self.items.tolist())}

    def encode(self, values: npt.ArrayLike) -> Ints:
        """Codes (int32) of ids; −1 for ids this mode has never seen."""
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
            codes = [index.get(value, -1) for value in column.tolist()]
        except TypeError as error:
            raise GinghamError(f"Column {self.name!r} has an id that is not hashable: {error}.") from None
        return np.asarray(codes, dtype=np.int32)

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
    >>> stars = gg.Alphabet.of([1, 2, 3, 4, 5], given=True)
    >>> stars.values, stars.given
    (array([1, 2, 3, 4, 5]), True)
    """

    values: AnyArray
    given: bool = False

    @classmethod
    def of(cls, values: Iterable[object] | AnyArray, given: bool) -> Alphabet:
        # the length of a range can be beyond what len() tells
        n_values = (values.stop - values.start) // values.step if isinstance(values, range) else length_hint(values)
        if n_values > MAX_LABELS:
            raise GinghamError(f"alphabet= has {n_values:,} label values; at most {MAX_LABELS:,} can be told apart.")
        column = np.asarray(values if isinstance(values, np.ndarray) else list(values))
        if column.ndim != 1 or len(column) == 0:
            raise GinghamError("alphabet= needs a flat list with at least one label value.")
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            raise GinghamError("alphabet= contains NaN or infinity; list the finite label values only.")
        need_moderate(column, "Label")
        return cls(np.unique(column), given)

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
        """Label values as numbers (their positions where they are names)."""
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
                f"Label {on_host(labels[row])[()]!r} in row {row} is not in the alphabet ({shown}). "
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
    """t(y), K numbers of a label; statistics are their sums over tuples."""

    one_hot: ClassVar[bool]  # whether t(y) is, so that kernels can use label codes instead of K numbers a tuple
    size: int  # K

    @abstractmethod
    def of_labels(self, numbers: Floats) -> Floats:
        """t(y) for every label of an alphabet with these numbers, shape (|Y|, K)."""

    @abstractmethod
    def evaluate(self, labels: Floats | None, label_codes: Ints | None = None) -> Floats:
        """t(y_e) for every tuple, dense, shape (…, K)."""

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
