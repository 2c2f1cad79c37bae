"""Baskets in partitions on the workers of a dask cluster.

A partition has the baskets of its own users. Sums over users are sums of those of partitions, added on the workers.
Factors of users stay where their baskets are; for those of items, partitions of items are made of the same baskets,
once, and a sweep brings them the factors of all users. So a row of factors is the same, bit for bit, as on one machine.
A lost worker costs the recomputation of what it held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints
from gingham.data import Mode
from gingham.data.adapt import as_frame, column_of, id_columns
from gingham.data.partitioned import Names, PartitionedTable, PartitionFacts, modes_of
from gingham.data.sample import joined_ids
from gingham.engine.dask_worker import Client, Future, Value, submit
from gingham.engine.threads import one_thread
from gingham.errors import GinghamError
from gingham.models.ranking.baskets import BLOCK, HIDDEN, Baskets, Tables, Taken, codes_in_file, plus, rows_of
from gingham.models.ranking.kernels import solve_rows
from gingham.models.ranking.rows import degrees

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame
    from numpy.random._pcg64 import _PCG64State

    _Bits: TypeAlias = _PCG64State

MOST_ADDED = 8  # tables that one task adds up


@dataclass(frozen=True, eq=False)
class ScatteredBaskets(Taken):
    """Users × items in partitions of users.

    Attributes
    ----------
    client : dask client
    parts : futures of Baskets
    own : of each part, the codes of its users, ascending
    shape : (n_users, n_items)
    """

    client: Client
    parts: Sequence[Future[Baskets]]
    own: Sequence[Ints]
    shape: tuple[int, int]

    place = "dask"

    @property
    def n_items(self) -> int:
        return self.shape[1]

    @cached_property
    def _counts(self) -> tuple[Floats, Floats]:
        sizes, popularity = np.zeros(self.shape[0]), np.zeros(self.shape[1])
        for own, (mine, theirs) in zip(self.own, self.client.gather(self._each(_counts))):
            sizes[own] = mine
            popularity += theirs
        return sizes, popularity

    @property
    def sizes(self) -> Floats:
        return self._counts[0]

    @property
    def popularity(self) -> Floats:
        return self._counts[1]

    def added(self, call: Callable[..., Tables], *arguments: object) -> Tables:
        level = self._each(call, *arguments)
        while len(level) > 1:
            groups = [level[at : at + MOST_ADDED] for at in range(0, len(level), MOST_ADDED)]
            level = [self.client.submit(_sum, *group, pure=False) for group in groups]
        return level[0].result()

    def swept(self, items: Floats, n_sweeps: int, penalty: float, alpha: float, steps: int) -> Floats:
        cuts, turned = self._turned
        users: Sequence[Future[Floats] | None] = [None] * len(self.parts)
        for _ in range(n_sweeps):
            mine = [
                submit(self.client, _solve_users, part, items, penalty, alpha, before, steps)
                for part, before in zip(self.parts, users)
            ]
            every = self.client.submit(_placed, self.shape[0], self._places, *mine, pure=False)
            found = [
                submit(self.client, solve_rows, block, every, penalty, alpha, items[low:high], steps)
                for block, (low, high) in zip(turned, pairwise(cuts))
            ]
            users, items = mine, np.concatenate(self.client.gather(found))
        return items

    def of_users(self, users: Ints) -> Baskets:
        rows, places = [], []
        for own, part in zip(self.own, self.parts):
            at = np.searchsorted(own, users).clip(max=max(len(own) - 1, 0))
            here = np.flatnonzero(own[at] == users) if len(own) else np.zeros(0, np.int64)
            places.append(here)
            rows.append(submit(self.client, Baskets.of_users, part, at[here]))
        order = np.full(len(users), sum(map(len, places)))  # a user of no part has the empty row at the end
        order[np.concatenate(places)] = np.arange(order.max(initial=0))
        found = [part.taken for part in self.client.gather(rows)]
        empty = sparse.csr_array((1, self.n_items), dtype=np.float32)
        return Baskets(sparse.csr_array(sparse.vstack([*found, empty], format="csr")[order]))

    def of_items(self, items: Ints) -> ScatteredBaskets:
        return self._with(self._each(Baskets.of_items, items), len(items))

    def hide(self, rng: np.random.Generator, share: float = HIDDEN) -> tuple[ScatteredBaskets, ScatteredBaskets]:
        bits = cast("np.random.PCG64", rng.bit_generator)
        begins = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        before = bits.state
        both = [submit(self.client, _hide, part, before, begins[own], share) for part, own in zip(self.parts, self.own)]
        bits.advance(int(begins[-1]))
        after = bits.state  # half a draw that is left of whole numbers stays
        after["has_uint32"], after["uinteger"] = before["has_uint32"], before["uinteger"]
        bits.state = after
        kept, hidden = ([self.client.submit(_entry, pair, k, pure=False) for pair in both] for k in (0, 1))
        return self._with(kept, self.n_items), self._with(hidden, self.n_items)

    def whole(self) -> Baskets:
        starts = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        items = codes_in_file(int(starts[-1])) if starts[-1] > BLOCK else np.empty(starts[-1], np.int32)
        for own, part in zip(self.own, self.parts):
            mine = part.result().taken
            items[np.repeat(starts[own] - mine.indptr[:-1], np.diff(mine.indptr)) + np.arange(mine.nnz)] = mine.indices
        return Baskets.stored(items, starts, self.n_items)

    @cached_property
    def _places(self) -> Future[Sequence[Ints]]:
        return self.client.submit(_same, list(self.own), pure=False)

    @cached_property
    def _turned(self) -> tuple[list[int], list[Future[sparse.csr_array]]]:
        """Where partitions of items begin and end, and the users of each of their items."""
        n = len(self.parts)
        begins = np.concatenate([[0], np.cumsum(self.popularity)])
        inner = np.searchsorted(begins, begins[-1] * np.arange(1, n) / n)
        cuts = np.unique([0, *inner, self.n_items]).tolist()
        turned = []
        for low, high in pairwise(cuts):
            pieces = [submit(self.client, _piece, part, own, low, high) for part, own in zip(self.parts, self.own)]
            turned.append(self.client.submit(_turn, (high - low, self.shape[0]), *pieces, pure=False))
        return cuts, turned

    def _each(self, call: Callable[..., Value], *arguments: object) -> list[Future[Value]]:
        return [submit(self.client, call, part, *arguments) for part in self.parts]

    def _with(self, parts: Sequence[Future[Baskets]], n_items: int) -> ScatteredBaskets:
        return ScatteredBaskets(self.client, parts, self.own, (self.shape[0], n_items))


class _Facts(NamedTuple):
    """Of a frame: its ids, and whether a label or a weight is below 0."""

    ids: PartitionFacts
    negative_label: bool
    negative_weight: bool


class ScatteredRows:
    """The pairs of a table in partitions, each with users of its own.

    Attributes
    ----------
    modes : users and items
    """

    def __init__(self, table: PartitionedTable) -> None:
        self.table, self.client = table, table.client
        frames, n_groups = table.frames()
        facts = self.client.gather([submit(self.client, _facts_of, frame, table.names) for frame in frames])
        modes, self.own = modes_of([fact.ids for fact in facts])
        if len(modes) != 2:
            raise GinghamError(f"A ranking needs pairs (user, item): n_features = {len(modes)}, not 2.")
        self.modes = modes[0], modes[1]
        self.with_labels = any(fact.negative_label for fact in facts)
        self.refuses = self.with_labels or any(fact.negative_weight for fact in facts)
        n = max(n_groups, -(-sum(fact.ids.n_rows for fact in facts) // BLOCK))
        split = np.array_split(np.arange(len(frames)), min(n, len(frames)))
        self.groups = [[int(at) for at in group] for group in split]
        self.frames = frames

    def baskets(self, modes: tuple[Mode, Mode], least: float) -> tuple[Taken, Baskets | None]:
        """What was taken, and what was refused."""
        users, items = modes
        ids = [np.unique(joined_ids([self.own[at] for at in group])) for group in self.groups]
        codes = [users.encode(own) for own in ids]
        shape = (users.n_items, items.n_items)

        def counted(at_least: float) -> ScatteredBaskets:
            parts: list[Future[Baskets]] = []
            for own, group in zip(ids, self.groups):
                modes = Mode(users.name, own), items
                frames = [self.frames[at] for at in group]
                parts.append(
                    submit(self.client, _baskets, modes, self.table.names, self.with_labels, at_least, *frames)
                )
            return ScatteredBaskets(self.client, parts, codes, shape)

        taken = counted(least)
        return taken, counted(0).whole() if self.refuses else None


# what is computed where the baskets are


def _read(frame: IntoDataFrame, names: Names) -> tuple[list[AnyArray], list[str], AnyArray | None, AnyArray | None]:
    """Columns of ids, their names, labels and weights of a frame."""
    table = as_frame(frame)
    names = names.among(table.columns)
    columns = id_columns(table.select(list(names.axes)).to_native())
    label, weight = (column_of(frame, name) if name else None for name in names[1:])
    return columns.columns, list(names.axes), label, weight


def _facts_of(frame: IntoDataFrame, names: Names) -> _Facts:
    table = as_frame(frame)
    if table.shape[0] == 0:
        return _Facts(PartitionFacts(0, 0.0, names.among(table.columns).axes, [], np.zeros(0)), False, False)
    columns, axes, label, weight = _read(frame, names)
    items = [Mode.of(column, name).items for column, name in zip(columns, axes)]
    below = [v is not None and v.dtype.kind in "if" and bool((v < 0).any()) for v in (label, weight)]
    return _Facts(PartitionFacts(len(table), float(len(table)), tuple(axes), items, np.zeros(0)), *below)


def _baskets(
    modes: tuple[Mode, Mode], names: Names, with_labels: bool, least: float, *frames: IntoDataFrame
) -> Baskets:
    users, items = modes
    codes: list[list[AnyArray]] = [[], []]
    weights = []
    for frame in frames:
        if as_frame(frame).shape[0] == 0:
            continue
        columns, _, label, weight = _read(frame, names)
        for known, mode, column in zip(codes, modes, columns):
            known.append(mode.encode(column))
        weights.append(degrees(label if with_labels else None, weight, len(columns[0]), with_labels))
    shape = (users.n_items, items.n_items)
    if not weights:
        return Baskets(sparse.csr_array(shape, dtype=np.float32))
    given = None if weights[0] is None else np.concatenate([w for w in weights if w is not None])
    return Baskets.counted(np.concatenate(codes[0]), np.concatenate(codes[1]), given, least, shape)


def _counts(part: Baskets) -> tuple[Floats, Floats]:
    return part.sizes, part.popularity


def _hide(part: Baskets, state: _Bits, begins: Ints, share: float) -> tuple[Baskets, Baskets]:
    """As in `Baskets.hide` of all users: draws of a user begin at its first entry among those of all."""
    bits = np.random.PCG64()
    bits.state = state
    rng, at, random = np.random.Generator(bits), 0, np.empty(part.taken.nnz)
    for begin, low, high in zip(begins.tolist(), part.taken.indptr[:-1].tolist(), part.taken.indptr[1:].tolist()):
        bits.advance(begin - at)
        random[low:high] = rng.random(high - low)
        at = begin + high - low
    return part.divided(part.hidden(random, share))


def _solve_users(
    part: Baskets, items: Floats, penalty: float, alpha: float, start: Floats | None, steps: int
) -> Floats:
    if start is None:
        start = np.zeros((part.n_users, items.shape[1]), dtype=np.float32)
    return solve_rows(part.taken, items, penalty, alpha, start, steps)


def _placed(n_users: int, places: Sequence[Ints], *parts: Floats) -> Floats:
    every = np.zeros((n_users, parts[0].shape[1]), dtype=np.float32)
    for own, part in zip(places, parts):
        every[own] = part
    return every


def _piece(part: Baskets, own: Ints, low: int, high: int) -> tuple[Ints, Ints]:
    """Items from low to high, counted from low, and their users."""
    here = np.flatnonzero((part.taken.indices >= low) & (part.taken.indices < high))
    return part.taken.indices[here] - np.int32(low), own[part.owners[here]].astype(np.int32)


def _turn(shape: tuple[int, int], *pieces: tuple[Ints, Ints]) -> sparse.csr_array:
    items, users = (np.concatenate(column) for column in zip(*pieces))
    order = np.lexsort((users, items))
    starts = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=shape[0]))])
    return rows_of(users[order], starts, shape[1])


def _sum(*tables: Tables) -> Tables:
    with one_thread():
        return reduce(plus, tables)


def _entry(pair: Sequence[Baskets], k: int) -> Baskets:
    return pair[k]


def _same(value: Value) -> Value:
    return value
