"""Who took what: the sparse 0/1 matrix that all members of a ranking are fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gingham.arrays import Bools, Floats, Ints
from gingham.storage import State, savable

HIDDEN = 0.2  # of each user's items, for the choice of settings


@savable
@dataclass(frozen=True, eq=False)
class Baskets:
    """Users × items, 1 where the user took the item. Nothing of that size is ever dense.

    Attributes
    ----------
    taken : csr_array of float32 ones, shape (n_users, n_items), indices sorted
    """

    taken: sparse.csr_array

    @classmethod
    def of(cls, users: Ints, items: Ints, shape: tuple[int, int]) -> Baskets:
        """Pairs of codes; a pair that is listed twice is one."""
        order = np.unique(users.astype(np.int64) * shape[1] + items)
        rows, columns = np.divmod(order, shape[1])
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
        return cls(sparse.csr_array((np.ones(len(order), np.float32), columns.astype(np.int32), starts), shape=shape))

    @classmethod
    def counted(cls, users: Ints, items: Ints, weights: Floats | None, least: float, shape: tuple[int, int]) -> Baskets:
        """The pairs of codes whose weights add up to ``least`` or more; to less than 0, where ``least`` is 0."""
        counts = sparse.csr_array((np.ones(len(users)) if weights is None else weights, (users, items)), shape=shape)
        counts.sum_duplicates()
        enough = counts.data >= least if least > 0 else counts.data < 0
        starts = np.concatenate([[0], np.cumsum(enough)])[counts.indptr]
        indices = counts.indices[enough].astype(np.int32, copy=False)
        return cls(sparse.csr_array((np.ones(len(indices), np.float32), indices, starts), shape=shape))

    def _to_file(self) -> State:
        taken = self.taken
        return {"indices": taken.indices, "indptr": taken.indptr, "n_items": self.n_items}

    @classmethod
    def _from_file(cls, state: State) -> Baskets:
        indices, starts = state["indices"], state["indptr"]
        ones = np.ones(len(indices), np.float32)
        return cls(sparse.csr_array((ones, indices, starts), shape=(len(starts) - 1, int(state["n_items"]))))

    @property
    def n_users(self) -> int:
        return int(self.taken.shape[0])

    @property
    def n_items(self) -> int:
        return int(self.taken.shape[1])

    @property
    def sizes(self) -> Floats:
        """|N(u)|, how many items each user took, shape (n_users,)."""
        return np.diff(self.taken.indptr).astype(np.float64)

    @property
    def popularity(self) -> Floats:
        """How many users took each item, shape (n_items,)."""
        return np.bincount(self.taken.indices, minlength=self.n_items).astype(np.float64)

    @property
    def owners(self) -> Ints:
        """The user of each stored entry of ``taken``."""
        return np.repeat(np.arange(self.n_users), np.diff(self.taken.indptr))

    def power(self, exponent: float) -> Floats:
        """|N(u)|^exponent, shape (n_users,); an empty basket counts as one item."""
        return np.maximum(self.sizes, 1.0) ** exponent

    def of_users(self, users: Ints) -> Baskets:
        return Baskets(sparse.csr_array(self.taken[users]))

    def of_items(self, items: Ints) -> Baskets:
        kept = sparse.csr_array(self.taken[:, items])
        kept.sort_indices()
        return Baskets(kept)

    def without(self, items: Ints) -> Baskets:
        """The same baskets without some items, which keep their columns."""
        return self._part(self.owners, ~np.isin(self.taken.indices, items))

    def hide(self, rng: np.random.Generator, share: float = HIDDEN) -> tuple[Baskets, Baskets]:
        """Two parts: what is kept, and of each user ⌊share · |N(u)|⌋ items drawn at random, which are hidden."""
        sizes, users = np.diff(self.taken.indptr), self.owners
        order = np.lexsort((rng.random(len(users)), users))
        hidden = np.zeros(len(users), dtype=bool)
        hidden[order] = np.arange(len(users)) - self.taken.indptr[users] < np.floor(share * sizes)[users]
        return self._part(users, ~hidden), self._part(users, hidden)

    def _part(self, users: Ints, chosen: Bools) -> Baskets:
        starts = np.concatenate([[0], np.cumsum(np.bincount(users[chosen], minlength=self.n_users))])
        return Baskets(
            sparse.csr_array((self.taken.data[chosen], self.taken.indices[chosen], starts), shape=self.taken.shape)
        )


def membership(labels: Ints, n_groups: int, values: Floats | None = None) -> sparse.csr_array:
    """Items × groups, with a value (1 by default) where an item belongs to the group."""
    values = np.ones(len(labels), np.float32) if values is None else values
    return sparse.csr_array((values, labels, np.arange(len(labels) + 1)), shape=(len(labels), n_groups))
