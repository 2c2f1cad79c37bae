"""Tables about the items of a side: titles, properties that members of a cluster share, partitions by a column."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame
from scipy.special import xlogy

from gingham.arrays import AnyArray, Bools, Ints
from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.summary.names import telling
from gingham.summary.values import Fact, plural, positions_of

ItemInfo = Mapping[str, IntoDataFrame]  # a table with a row per item, by the name of the side
RATE = 0.05  # of false discoveries
LEAST_ODDS = 0.3  # log-odds below which a difference is real but not worth a word
MOST = 4  # facts a cluster
MOST_VALUES = 60  # a column of more different texts says nothing about groups
PARTS = 5  # of a column of numbers, equally full
MOST_GROUPS = 12  # values of a column that divides the items into groups
TITLES = ("title", "name", "label")
SEPARATORS = ("|", ";", ",")


@dataclass(frozen=True, eq=False)
class Properties:
    """Yes-or-no properties of the items of a side, and what items are called.

    Attributes
    ----------
    texts : list of str
    flags : bool array of shape (n_items, properties)
    known : bool array of shape (n_items,)
        Items that the table has a row for.
    titles : array of str of shape (n_items,) or None
    partitions : mapping from the name of a column to the group of every item by its value
        Of columns with few values, one for each item; items without a value are a group of their own.
    """

    texts: list[str]
    flags: Bools
    known: Bools
    titles: AnyArray | None = None
    partitions: Mapping[str, Ints] = field(default_factory=dict)


def properties_of(frame: IntoDataFrame, mode: Mode) -> Properties:
    """Properties from a table with a row an item; its first column, or the one named as the side, has the ids."""
    table, columns = nw.from_native(frame, eager_only=True), info_columns(frame)
    at = id_column_of(columns, mode.name)
    codes = matched(frame, mode)
    rows = np.flatnonzero(codes >= 0)
    known = np.zeros(mode.n_items, dtype=bool)
    known[codes[rows]] = True
    texts: list[str] = []
    flags: list[Bools] = []
    titles: AnyArray | None = None
    partitions: dict[str, Ints] = {}
    rest = [j for j in range(len(columns)) if j != at]
    named = next((j for j in rest if columns[j].lower() in TITLES), None)
    for j in rest:
        values = table[:, j].to_numpy()[rows]
        if titles is None and (j == named or (named is None and _all_different(values))):
            titles = np.array([str(item) for item in mode.items.tolist()], dtype=object)
            for code, value in zip(codes[rows].tolist(), values.tolist()):
                if value is not None and value == value and str(value).strip():
                    titles[code] = str(value)
            continue
        start = len(flags)
        for text, having in _flags(columns[j], values):
            full = np.zeros(mode.n_items, dtype=bool)
            full[codes[rows][having]] = True
            texts.append(text)
            flags.append(full)
        own = np.array(flags[start:])
        if 0 < len(own) <= MOST_GROUPS and own.sum(axis=0).max() <= 1:  # no lists, of which an item has several
            group = np.where(own.any(axis=0), own.argmax(axis=0), len(own))
            partitions[columns[j]] = np.unique(group, return_inverse=True)[1].astype(np.int64)
    table_of_flags = np.stack(flags, axis=1) if flags else np.zeros((mode.n_items, 0), dtype=bool)
    partitions = {name: group for name, group in partitions.items() if group.max() > 0}
    return Properties(texts, table_of_flags, known, titles, partitions)


def info_columns(frame: IntoDataFrame) -> list[str]:
    """The columns of a table about items."""
    return [str(name) for name in nw.from_native(frame, eager_only=True).columns]


def id_column_of(columns: Sequence[str], side: str) -> int:
    """Which column of a table about items has their ids: the one named as the side, else the first."""
    return columns.index(side) if side in columns else 0


def matched(frame: IntoDataFrame, mode: Mode) -> Ints:
    """The item that each row of a table about items speaks of, −1 for none; a table about none of them is refused."""
    table, columns = nw.from_native(frame, eager_only=True), info_columns(frame)
    if table.shape[1] < 1 or table.shape[0] == 0:
        raise GinghamError(f"item_info for {mode.name!r} is empty: it needs ids and at least one column about them.")
    at = id_column_of(columns, mode.name)
    ids = table[:, at].to_numpy()
    codes = positions_of(mode.items, ids)
    if (codes < 0).all():
        name = "" if columns[at] == mode.name else f", or name the column of ids {mode.name!r}"
        raise GinghamError(
            f"The table of {plural(mode.name)} contains none of them: the data have ids such as "
            f"{mode.items.tolist()[0]!r}, and its column {columns[at]!r} such as {ids.tolist()[0]!r}. Write them "
            f"alike{name}."
        )
    return codes


def _all_different(values: AnyArray) -> bool:
    """Whether a column of texts names its rows."""
    if values.dtype.kind not in "OU" or len(values) < 2:
        return False
    texts = [str(value) for value in values.tolist()]
    return len(set(texts)) >= 0.95 * len(texts) and telling(texts) and separator_in(texts) is None


def separator_in(texts: Sequence[str]) -> str | None:
    """What divides cells that hold several values, as in "Drama|War" or "Drama, War"; None where they hold one.

    A comma does so only where half of the parts come again: "Smith, John" is one value.
    """
    for separator in SEPARATORS:
        if any(separator in text for text in texts) and sum(separator in text for text in texts) >= 0.05 * len(texts):
            counts = Counter(part for text in set(texts) for part in set(parts_of(text, separator)))
            if separator != "," or sum(n > 1 for n in counts.values()) >= 0.5 * len(counts):
                return separator
    return None


def parts_of(text: str, separator: str) -> list[str]:
    """The values of a cell."""
    return [part for part in map(str.strip, text.split(separator)) if part]


def _flags(name: str, values: AnyArray) -> list[tuple[str, Bools]]:
    """A column as yes-or-no properties: values of few, parts of numbers, members of lists such as "Drama|War"."""
    if values.dtype.kind == "b":
        return [(name, values)]
    if values.dtype.kind in "iuf":
        return _numeric(name, values.astype(np.float64))
    texts = np.array(["" if v is None or v != v else str(v) for v in values.tolist()], dtype=object)
    if (separator := separator_in(texts.tolist())) is not None:
        lists = [set(parts_of(text, separator)) for text in texts.tolist()]
        counts = Counter(value for own in lists for value in own)
        often = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_VALUES]
        return [(value, np.array([value in own for own in lists])) for value in sorted(often)]
    different = sorted(set(texts.tolist()) - {""})
    if not 2 <= len(different) <= MOST_VALUES:
        return []
    plain = all(
        not re.fullmatch(r"[\W\d]+|.", value) for value in different
    )  # "M" needs its column's name, "student" not
    return [(value if plain else f"{name} {value}", texts == value) for value in different]


def _numeric(name: str, values: AnyArray) -> list[tuple[str, Bools]]:
    known = np.isfinite(values)
    different = np.unique(values[known])
    if len(different) < 2:
        return []
    if set(different.tolist()) <= {0.0, 1.0}:
        return [(name, values == 1)]
    whole = bool((different == np.floor(different)).all())
    if whole and different[0] >= 1700 and different[-1] <= 2100 and different[-1] - different[0] >= 20:
        decades = np.floor(values / 10) * 10
        return [(f"{int(d)}s", decades == d) for d in np.unique(decades[known]).tolist()]
    if len(different) <= PARTS:
        return [(f"{name} {value:g}", values == value) for value in different.tolist()]
    edges = np.unique(np.quantile(values[known], np.linspace(0, 1, PARTS + 1)[1:-1]))
    part = np.searchsorted(edges, values, side="right")
    found = []
    for p in range(len(edges) + 1):
        inside = known & (part == p)
        if inside.any():
            low, high = values[inside].min(), values[inside].max()
            found.append((f"{name} {low:g}–{high:g}" if high > low else f"{name} {low:g}", inside))
    return found


def facts_of(properties: Properties, members: Sequence[Ints]) -> list[tuple[Fact, ...]]:
    """For every cluster the properties that its members have more often: q ≤ .05 and log-odds above .3, best first.

    Hypergeometric tests of all clusters and all properties together, by Benjamini and Hochberg.
    """
    flags = properties.flags[properties.known]
    n, k = flags.shape
    if k == 0 or n == 0:
        return [() for _ in members]
    where = np.cumsum(properties.known) - 1
    inside = np.zeros((len(members), k))
    size = np.zeros((len(members), 1))
    for number, own in enumerate(members):
        rows = where[own[properties.known[own]]]
        inside[number], size[number] = flags[rows].sum(axis=0), len(rows)
    total = flags.sum(axis=0)
    from scipy.stats import false_discovery_control, hypergeom  # loaded where a side table is read

    chance = hypergeom.sf(inside - 1, n, total[None], size)
    q = false_discovery_control(np.clip(chance.ravel(), 0.0, 1.0)).reshape(chance.shape)
    outside, rest = total - inside, n - size
    odds = np.log((inside + 0.5) / (size - inside + 0.5)) - np.log((outside + 0.5) / (rest - outside + 0.5))
    share, other = inside / np.maximum(size, 1), outside / np.maximum(rest, 1)
    worth = xlogy(share, share / np.maximum(total / n, 1e-12))
    found = []
    for c in range(len(members)):
        good = [j for j in np.argsort(-worth[c], kind="stable").tolist() if q[c, j] <= RATE and odds[c, j] > LEAST_ODDS]
        found.append(
            tuple(
                Fact(properties.texts[j], float(share[c, j]), float(other[c, j]), float(q[c, j])) for j in good[:MOST]
            )
        )
    return found


def properties_by_side(modes: Sequence[Mode], item_info: ItemInfo) -> dict[int, Properties]:
    names = [mode.name for mode in modes]
    for name in item_info:
        if name not in names:
            raise GinghamError(f"item_info names a side {name!r}; there are {', '.join(map(repr, names))}.")
    return {at: properties_of(item_info[name], modes[at]) for at, name in enumerate(names) if name in item_info}
