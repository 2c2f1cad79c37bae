"""Who took what: the sparse 0/1 matrix that all members of a ranking are fitted to.

A fit asks two things of all users: sums over them, and rows of factors. Sums are those of blocks of users, so that they
can be in files larger than memory, or on the workers of a cluster (`scattered`).
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Self, TypeAlias

import numpy as np
from scipy import sparse

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.engine.files import in_file, mapped, room
from gingham.engine.place import on_torch
from gingham.models.ranking import device
from gingham.models.ranking.kernels import grams, solve_rows
from gingham.storage import State, savable

HIDDEN = 0.2  # of each user's items, for the choice of settings
BLOCK = 2**23  # interactions that are in memory at a time, where they lie in files
TABLE = 2**24  # numbers of a table that are summed at a time
Tables: TypeAlias = tuple[Floats, ...]


class Taken(ABC):
    """Who took what, wherever it is."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where the sums are computed: cores, files, dask."""

    @property
    @abstractmethod
    def n_items(self) -> int:
        """How many items there are, taken or not."""

    @property
    @abstractmethod
    def sizes(self) -> Floats:
        """|N(u)|, how many items each user took, shape (n_users,)."""

    @property
    @abstractmethod
    def popularity(self) -> Floats:
        """How many users took each item, shape (n_items,)."""

    @property
    def n_users(self) -> int:
        return len(self.sizes)

    @property
    def n_taken(self) -> int:
        return int(self.sizes.sum())

    def power(self, exponent: float) -> Floats:
        """|N(u)|^exponent, shape (n_users,); an empty basket counts as one item."""
        return np.maximum(self.sizes, 1.0) ** exponent

    @abstractmethod
    def of_users(self, users: Ints) -> Baskets:
        """The baskets of some users, in memory."""

    @abstractmethod
    def of_items(self, items: Ints) -> Self:
        """The baskets as if there were only these items."""

    @abstractmethod
    def hide(self, rng: np.random.Generator, share: float = HIDDEN) -> tuple[Self, Self]:
        """Two parts: what is kept, and of each user ⌊share · |N(u)|⌋ items drawn at random, which are hidden."""

    @abstractmethod
    def added(self, call: Callable[..., Tables], *arguments: object) -> Tables:
        """Σ of ``call(block of baskets, …)`` over blocks of users, array by array."""

    @abstractmethod
    def swept(self, items: Floats, n_sweeps: int, penalty: float, alpha: float, steps: int) -> Floats:
        """Factors of items after so many sweeps of implicit least squares, those of users beginning at 0."""

    @abstractmethod
    def whole(self) -> Baskets:
        """All baskets, here; in a file where they are many."""

    def tables(self, n_rows: int, n_columns: int, call: Callable[..., Tables], *arguments: object) -> list[Floats]:
        """Σ of the tables ``call(block, …, a, b)``, float32 (n_rows, n_columns), of which that makes the rows a:b."""
        found: list[Floats] = []
        height = max(1, TABLE // max(1, n_columns))
        for a in range(0, n_rows, height):
            b = min(a + height, n_rows)
            for k, part in enumerate(self.added(call, *arguments, a, b)):
                if a == 0:
                    found.append(np.empty((n_rows, n_columns), np.float32))
                found[k][a:b] = part
        return found

    def gram(self, exponent: float, backend: str) -> Floats:
        """Σ_u |N(u)|^exponent x_u' x_u, float32 (n_items, n_items)."""
        return self.tables(self.n_items, self.n_items, _gram, exponent)[0]


def _gram(part: Baskets, exponent: float, a: int, b: int) -> Tables:
    return grams(part.taken[:, a:b], part.taken, part.power(exponent))


@savable
@dataclass(frozen=True, eq=False)
class Baskets(Taken):
    """Users × items, 1 where the user took the item. Nothing of that size is ever dense.

    Attributes
    ----------
    taken : csr_array of float32 ones, shape (n_users, n_items), indices sorted; its arrays may lie in files
    """

    taken: sparse.csr_array

    @classmethod
    def of(cls, users: Ints, items: Ints, shape: tuple[int, int]) -> Baskets:
        """Pairs of codes; a pair that is listed twice is one."""
        return cls(_counted(users, items, None, 1, shape))

    @classmethod
    def counted(cls, users: Ints, items: Ints, weights: Floats | None, least: float, shape: tuple[int, int]) -> Baskets:
        """The pairs of codes whose weights add up to ``least`` or more; to less than 0, where ``least`` is 0."""
        if not in_file(users):
            return cls(_counted(users, items, weights, least, shape))
        n_rows = sum(np.bincount(users[a : a + BLOCK], minlength=shape[0]) for a in range(0, len(users), BLOCK))

        def parts() -> Iterator[sparse.csr_array]:
            for low, high in pairwise(_cuts(np.concatenate([[0], np.cumsum(n_rows)]))):
                mine = np.flatnonzero((users >= low) & (users < high))
                given = None if weights is None else weights[mine]
                yield _counted(users[mine] - low, items[mine], given, least, (high - low, shape[1]))

        return cls(_stacked(parts(), users))

    def _to_file(self) -> State:
        taken = self.taken
        return {"indices": taken.indices, "indptr": taken.indptr, "n_items": self.n_items}

    @classmethod
    def _from_file(cls, state: State) -> Baskets:
        return cls.stored(state["indices"], state["indptr"], int(state["n_items"]))

    @classmethod
    def stored(cls, items: Ints, starts: Ints, n_items: int) -> Baskets:
        """The items of each user, those of user u from ``starts[u]`` to ``starts[u + 1]``."""
        return cls(rows_of(items, starts, n_items))

    @property
    def place(self) -> str:
        return "files" if in_file(self.taken.indices) else "cores"

    def whole(self) -> Baskets:
        return self

    @property
    def n_items(self) -> int:
        return int(self.taken.shape[1])

    @property
    def sizes(self) -> Floats:
        return np.diff(self.taken.indptr).astype(np.float64)

    @property
    def popularity(self) -> Floats:
        return np.bincount(self.taken.indices, minlength=self.n_items).astype(np.float64)

    @property
    def owners(self) -> Ints:
        """The user of each stored entry of ``taken``."""
        return np.repeat(np.arange(self.n_users), np.diff(self.taken.indptr))

    @property
    def blocks(self) -> Iterator[Baskets]:
        """Consecutive users, those of about BLOCK interactions at a time."""
        cuts = _cuts(self.taken.indptr)
        if len(cuts) <= 2:
            yield self
            return
        for low, high in pairwise(cuts):
            yield Baskets(self.taken[low:high])

    def added(self, call: Callable[..., Tables], *arguments: object) -> Tables:
        return reduce(plus, (call(block, *arguments) for block in self.blocks))

    def gram(self, exponent: float, backend: str) -> Floats:
        if on_torch(backend):
            return device.gram(self.taken, self.power(exponent))
        return super().gram(exponent, backend)

    def swept(self, items: Floats, n_sweeps: int, penalty: float, alpha: float, steps: int) -> Floats:
        turned, users = self.turned(), np.zeros((self.n_users, items.shape[1]), dtype=np.float32)
        for _ in range(n_sweeps):
            users = solve_rows(self.taken, items, penalty, alpha, users, steps)
            items = solve_rows(turned, users, penalty, alpha, items, steps)
        return items

    def turned(self) -> sparse.csr_array:
        """The users of each item, (n_items, n_users)."""
        if not in_file(self.taken.indices):
            return sparse.csr_array(self.taken.T)
        starts = np.concatenate([[0], np.cumsum(self.popularity)]).astype(np.int64)
        users, free, first = room(self.taken.nnz, np.int32, self.taken.indices), starts[:-1].copy(), 0
        for block in self.blocks:
            turned = sparse.csr_array(block.taken.T)
            mine = np.diff(turned.indptr)
            users[np.repeat(free - turned.indptr[:-1], mine) + np.arange(turned.nnz)] = turned.indices + first
            free += mine
            first += block.n_users
        return rows_of(users, starts, self.n_users)

    def of_users(self, users: Ints) -> Baskets:
        return Baskets(sparse.csr_array(self.taken[users]))

    def of_items(self, items: Ints) -> Baskets:
        def parts() -> Iterator[sparse.csr_array]:
            for block in self.blocks:
                kept = sparse.csr_array(block.taken[:, items])
                kept.sort_indices()
                yield kept

        return Baskets(_stacked(parts(), self.taken.indices))

    def without(self, items: Ints) -> Baskets:
        """The same baskets without some items, which keep their columns."""
        return self._part(~np.isin(self.taken.indices, items))

    def hide(self, rng: np.random.Generator, share: float = HIDDEN) -> tuple[Baskets, Baskets]:
        return self.divided(np.concatenate([block.hidden(rng.random(block.taken.nnz), share) for block in self.blocks]))

    def divided(self, hidden: Bools) -> tuple[Baskets, Baskets]:
        """What is kept, and what is hidden, by stored entry."""
        return self._part(~hidden), self._part(hidden)

    def hidden(self, random: Floats, share: float) -> Bools:
        """Which stored entries are hidden: of each user the first ⌊share · |N(u)|⌋ in the order of ``random``."""
        sizes, users = np.diff(self.taken.indptr), self.owners
        order = np.lexsort((random, users))
        hidden = np.zeros(len(users), dtype=bool)
        hidden[order] = np.arange(len(users)) - self.taken.indptr[users] < np.floor(share * sizes)[users]
        return hidden

    def _part(self, chosen: Bools) -> Baskets:
        def parts() -> Iterator[sparse.csr_array]:
            first = 0
            for block in self.blocks:
                mine = chosen[first : first + block.taken.nnz]
                first += len(mine)
                starts = np.concatenate([[0], np.cumsum(mine)])[block.taken.indptr]
                yield rows_of(block.taken.indices[mine], starts, self.n_items)

        return Baskets(_stacked(parts(), self.taken.indices))


def plus(one: Tables, other: Tables) -> Tables:
    return tuple(map(add, one, other))


def _cuts(starts: Ints) -> list[int]:
    """Where blocks of about BLOCK entries begin and end, among users whose entries begin at ``starts``."""
    inner = np.searchsorted(starts, np.arange(BLOCK, int(starts[-1]), BLOCK))
    return list(np.unique([0, *inner, len(starts) - 1]).tolist())


def _counted(
    users: Ints, items: Ints, weights: Floats | None, least: float, shape: tuple[int, int]
) -> sparse.csr_array:
    counts = sparse.csr_array((np.ones(len(users)) if weights is None else weights, (users, items)), shape=shape)
    counts.sum_duplicates()
    enough = counts.data >= least if least > 0 else counts.data < 0
    starts = np.concatenate([[0], np.cumsum(enough)])[counts.indptr]
    indices = counts.indices[enough].astype(np.int32, copy=False)
    return rows_of(indices, starts, shape[1])


def _stacked(parts: Iterable[sparse.csr_array], like: AnyArray) -> sparse.csr_array:
    """The users of one part after those of another; in files where ``like`` lies in one."""
    if not in_file(like):
        several = list(parts)
        return several[0] if len(several) == 1 else sparse.csr_array(sparse.vstack(several, format="csr"))
    sizes, n_items = [np.zeros(1, np.int64)], 0
    with tempfile.TemporaryFile(prefix="gingham-") as file:
        for part in parts:
            part.indices.astype(np.int32, copy=False).tofile(file)
            sizes.append(np.diff(part.indptr).astype(np.int64))
            n_items = part.shape[1]
        starts = np.cumsum(np.concatenate(sizes))
        file.flush()
        indices = mapped(file, np.int32, int(starts[-1])) if starts[-1] else np.zeros(0, np.int32)
    return rows_of(indices, starts, n_items)


def rows_of(columns: Ints, starts: Ints, n_columns: int) -> sparse.csr_array:
    """Rows of float32 ones; row u has them in the columns from ``starts[u]`` to ``starts[u + 1]``."""
    starts = starts.astype(np.int32 if starts[-1] < 2**31 else np.int64)  # of one kind with the columns: no copy
    return sparse.csr_array((_ones(columns), columns, starts), shape=(len(starts) - 1, n_columns))


def codes_in_file(n: int) -> Ints:
    """Room for n codes in a file that vanishes with the array."""
    with tempfile.TemporaryFile(prefix="gingham-") as file:
        file.truncate(4 * n)
        return mapped(file, np.int32, n)


def _ones(like: AnyArray) -> Floats:
    """As many float32 ones; in a file where ``like`` lies in one."""
    ones: Floats = room(len(like), np.float32, like)
    for a in range(0, len(ones), BLOCK):
        ones[a : a + BLOCK] = 1.0
    return ones


def membership(labels: Ints, n_groups: int, values: Floats | None = None) -> sparse.csr_array:
    """Items × groups, with a value (1 by default) where an item belongs to the group."""
    values = np.ones(len(labels), np.float32) if values is None else values
    return sparse.csr_array((values, labels, np.arange(len(labels) + 1)), shape=(len(labels), n_groups))
