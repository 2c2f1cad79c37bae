"""Side information: categories, binned numbers and lists of values become tokens of items.

A frame has a column of ids, named like its mode (or the first one), and any other columns. How a column is read is
decided once, from the frame that a model is fitted with; rows that come later are read in the same way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Union, cast

import numpy as np

from gingham.arrays import AnyArray, ArrayLike, Floats, Ints
from gingham.data import Mode
from gingham.data.adapt import frame_values, is_frame
from gingham.errors import GinghamError
from gingham.storage import savable
from gingham.summary.item_tables import parts_of, separator_in

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

# A mode (its position or name) → a frame, or ids of its items and a table of zeros and ones.
Sides = Mapping[int | str, Union["IntoDataFrame", tuple[Sequence[str] | Sequence[int] | AnyArray, ArrayLike]]]

FLAG, CATEGORY, MANY, NUMBER = "flag", "category", "many", "number"
SEPARATOR = "|"
FEW = 12  # distinct numbers up to which each is a category
BINS = 10  # of numbers, with about as many items in each
SHARED = 2  # items that must hold a token: what only one has says nothing of others


@savable
@dataclass(frozen=True, eq=False)
class SideColumn:
    """What becomes of one column: a yes or no, one value, several values, or the bin of a number."""

    name: str
    kind: str
    edges: Floats = field(default_factory=lambda: np.zeros(0))  # between bins
    separator: str = SEPARATOR  # of several values in a text

    @classmethod
    def of(cls, name: str, values: Sequence[object]) -> SideColumn:
        known = [value for value in values if value is not None]
        texts = [value for value in known if isinstance(value, str)]
        if any(_listed(value) for value in known):
            return cls(name, MANY)
        if texts and len(texts) == len(known) and (separator := separator_in(texts)) is not None:
            return cls(name, MANY, separator=separator)
        if all(isinstance(value, (bool, np.bool_)) or (_number(value) and value in (0, 1)) for value in known):
            return cls(name, FLAG)
        if all(_number(value) for value in known) and len(set(known)) > FEW:
            numbers = np.asarray(known, dtype=np.float64)
            edges = np.unique(np.quantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
            return cls(name, NUMBER, edges)
        return cls(name, CATEGORY)

    def words(self, value: object) -> Iterable[str]:
        """The tokens of one value, by name."""
        if value is None:
            return ()
        if self.kind == FLAG:
            return (self.name,) if value else ()
        if self.kind == MANY:
            parts = parts_of(value, self.separator) if isinstance(value, str) else cast("Iterable[object]", value)
            return [f"{self.name}: {part}" for part in parts if part is not None and str(part).strip()]
        if self.kind == NUMBER:
            if not _number(value):
                raise GinghamError(f"side information: the column {self.name!r} holds {value!r} among numbers.")
            at = int(np.searchsorted(self.edges, float(cast(float, value)), side="right"))
            low = f"{self.edges[at - 1]:g} ≤ " if at else ""
            high = f" < {self.edges[at]:g}" if at < len(self.edges) else ""
            return (f"{low}{self.name}{high}",)
        return (f"{self.name}: {value}",)


def _number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _listed(value: object) -> bool:
    return isinstance(value, (list, tuple, set, np.ndarray)) or (isinstance(value, str) and SEPARATOR in value)


class SideTokens(NamedTuple):
    """Tokens of the items of one mode: each item with one of its tokens."""

    items: Ints
    tokens: Ints
    n_tokens: int  # in all


@savable
@dataclass(frozen=True, eq=False)
class SideCode:
    """How the side information of one mode is read, and its tokens by name."""

    mode: str
    columns: tuple[SideColumn, ...]
    tokens: tuple[str, ...]

    @classmethod
    def of(cls, mode: str, values: Mapping[str, Sequence[object]]) -> SideCode:
        columns = tuple(SideColumn.of(name, column) for name, column in values.items())
        held: Counter[str] = Counter()
        for column in columns:
            for value in values[column.name]:
                held.update(set(column.words(value)))
        return cls(mode, columns, tuple(sorted(word for word, n in held.items() if n >= SHARED)))

    def read(self, values: Mapping[str, Sequence[object]]) -> SideTokens:
        """The tokens of every row of a table; absent columns have none."""
        number = {word: at for at, word in enumerate(self.tokens)}
        items, tokens = [], []
        for column in self.columns:
            for row, value in enumerate(values.get(column.name, ())):
                for word in column.words(value):
                    if word in number:
                        items.append(row)
                        tokens.append(number[word])
        return SideTokens(np.array(items, dtype=np.int64), np.array(tokens, dtype=np.int64), len(self.tokens))


class GivenSide(NamedTuple):
    """A table about the items of one mode, as it was given: ids, and the values of its columns."""

    at: int  # the mode
    ids: AnyArray
    values: dict[str, Sequence[object]]


def read_sides(names: Sequence[str], modes: Sequence[Mode], given: Sides) -> list[GivenSide]:
    """The given tables with the positions of their modes, checked."""
    found: list[GivenSide] = []
    for key, table in given.items():
        at = names.index(cast(str, key)) if key in names else key
        if not isinstance(at, (int, np.integer)) or not 0 <= at < len(names):
            raise GinghamError(f"side= names the mode {key!r}; the modes are {', '.join(names)}.")
        if any(side.at == at for side in found):
            raise GinghamError(f"side= has two tables of the mode {names[at]!r}; join them into one.")
        if is_frame(table):
            values: dict[str, Sequence[object]] = dict(frame_values(table))
            name = names[at] if names[at] in values else next(iter(values), None)
            if name is None or len(values) < 2:
                raise GinghamError(f"side[{key!r}] needs a column of ids and at least one other column.")
            ids = np.array(values.pop(name))
            if any(value is None for value in ids.tolist()):
                raise GinghamError(f"side[{key!r}]: the column of ids {name!r} has a missing id.")
        else:
            ids, numbers = _yes_or_no(key, table)
            values = {f"property {j + 1}": (column >= 0.5).tolist() for j, column in enumerate(numbers.T)}
        named = Mode.of(ids, names[at])
        if named.n_items != len(ids):
            raise GinghamError(f"side[{key!r}] needs distinct ids; got {len(ids)} ids, {named.n_items} distinct.")
        if named.items.dtype.kind != modes[at].items.dtype.kind:
            raise GinghamError(f"side[{key!r}]: ids have another type than the ids in X.")
        found.append(GivenSide(int(at), ids, values))
    return found


def _yes_or_no(key: object, given: object) -> tuple[AnyArray, Floats]:
    """Ids and a table of numbers from 0 to 1, checked."""
    try:
        ids, properties = cast("tuple[AnyArray, ArrayLike]", given)
        table = np.asarray(properties, dtype=np.float64)
        shape = (len(ids), len(np.unique(np.asarray(ids))))
    except (TypeError, ValueError):
        raise GinghamError(f"side[{key!r}] must be a data frame, or (ids, table of zeros and ones).") from None
    if table.ndim != 2 or len(table) != shape[0] or shape[0] != shape[1]:
        raise GinghamError(
            f"side[{key!r}] needs distinct ids and a table with a row for each; got {shape[0]} ids "
            f"({shape[1]} distinct) and a table of shape {table.shape}."
        )
    if not ((table >= 0) & (table <= 1)).all():
        raise GinghamError(f"side[{key!r}]: properties must be numbers from 0 to 1.")
    return np.asarray(ids), table
