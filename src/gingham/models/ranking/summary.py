"""Ranking in words: groups of items with names, and what of a basket speaks for or against a recommendation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import sparse

from gingham.arrays import Floats, Ints
from gingham.models.ranking.baskets import Baskets, membership
from gingham.models.ranking.boards import Board
from gingham.models.ranking.clusters import cluster_items
from gingham.models.ranking.kernels import grams

NAMED = 3  # items in the name of a group
TOLD = 3  # groups in the text of a recommendation


def summary_groups(baskets: Baskets, points: Floats, n_groups: int | None, rng: np.random.Generator) -> Ints:
    """A coarse group of each item, for people: by the direction of its factors, not by how popular it is; (n_items,).

    ``None`` chooses about √(n_items)/3 groups, from 2 to 24.
    """
    wanted = int(np.clip(round(sqrt(baskets.n_items) / 3), 2, 24)) if n_groups is None else n_groups
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    return cluster_items((points / length).astype(np.float32), baskets.popularity, wanted, rng, sweeps=50)


def telling_items(baskets: Baskets, labels: Ints, n: int = NAMED) -> list[list[int]]:
    """The items that tell most of each group, best first: those with the highest Σ n_ic ln lift(i, c).

    n_ic counts how often users who took i took *other* items of i's group c; lift compares it with what i's users
    would have by the size of the group alone. An item that goes with its group, and often, comes first.
    """
    k = int(labels.max()) + 1
    theirs = sparse.csr_array(baskets.taken @ membership(labels, k))
    (counts,) = grams(baskets.taken, theirs, np.ones(baskets.n_users))
    at = np.arange(baskets.n_items)
    popularity = baskets.popularity
    counts[at, labels] -= popularity  # an item's meeting itself says nothing
    mass = np.bincount(labels, popularity, k)
    own = np.maximum(counts[at, labels], 0.0)
    expected = counts.sum(axis=1) * mass[labels] / max(mass.sum(), 1.0)
    score = own * np.log(np.maximum(own, 1e-9) / np.maximum(expected, 1e-9)) + 1e-6 * popularity
    order = np.lexsort((at, -score))
    found: list[list[int]] = [[] for _ in range(k)]
    for i in order:
        if len(found[labels[i]]) < n:
            found[labels[i]].append(int(i))
    return found


def named(names: Sequence[str], items: Sequence[Sequence[int]]) -> list[str]:
    """The names of groups: their most telling items."""
    return [", ".join(names[i] for i in group) for group in items]


@dataclass(frozen=True, eq=False)
class NamedBoard:
    """What people have × what they are drawn to, with a name for every row and column.

    Attributes
    ----------
    basket_groups, target_groups : list of names
    table : (basket groups, target groups), what one more item of a row's group adds to the score of an item of the
        column's, for a basket of one item and an item taken once
    basket_group, target_group : (n_items,), where each item stands
    """

    basket_groups: list[str]
    target_groups: list[str]
    table: Floats
    basket_group: Ints
    target_group: Ints

    @classmethod
    def of(cls, board: Board, baskets: Baskets, names: Sequence[str]) -> NamedBoard:
        rows, columns = (
            named(names, telling_items(baskets, labels)) for labels in (board.basket_group, board.target_group)
        )
        return cls(rows, columns, board.table, board.basket_group, board.target_group)

    def strongest(self, n: int = 10) -> list[tuple[str, str, float]]:
        """The n cells that pull most: (who has these, is drawn to those, by how much)."""
        n = min(n, self.table.size)
        order = np.argsort(-self.table, axis=None, kind="stable")[:n]
        places = np.unravel_index(order, self.table.shape)
        return [(self.basket_groups[r], self.target_groups[c], float(self.table[r, c])) for r, c in zip(*places)]


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why an item has its score for one basket: score = base + Σ pulls, exactly.

    Attributes
    ----------
    item : the item's id
    score : float
    base : float
        What the item has whatever is in the basket: how popular it is.
    groups, pulls : names of the basket's groups and what each adds, largest first
    items, item_pulls : the same for the items of the basket one by one
    rule : str
        "listed because of …" or "left out because of …", where a rule moved the item.
    """

    item: object
    score: float
    base: float
    groups: list[str]
    pulls: Floats
    items: list[str]
    item_pulls: Floats
    rule: str = ""

    @property
    def account(self) -> tuple[tuple[str, float], ...]:
        """Parts that add up to the score, as in the explanations of other models."""
        return (("popularity", self.base), *zip(self.groups, self.pulls.tolist()))

    @property
    def total(self) -> float:
        return self.score

    @property
    def prediction(self) -> float:
        return self.score

    @property
    def shares(self) -> Floats:
        """Each group's share of all that pulls, up or down; the absolute values sum to 1."""
        total = np.abs(self.pulls).sum()
        result: Floats = self.pulls / total if total > 0 else np.zeros(len(self.pulls))
        return result

    def __str__(self) -> str:
        shares = self.shares
        told = sorted(range(len(shares)), key=lambda g: -abs(shares[g]))[:TOLD]
        words = [f"{self.groups[g]} {'+' if shares[g] >= 0 else '−'}{abs(shares[g]):.0%}" for g in told]
        return "; ".join([*(words or ["popular with all"]), *([self.rule] if self.rule else [])])


def reasons_of(
    item: object, base: float, pulls: Floats, basket: Ints, groups: Ints, group_names: Sequence[str],
    names: Sequence[str],
) -> Reasons:  # fmt: skip
    """Join what the items of a basket add into what its groups add."""
    inside, place = np.unique(groups[basket], return_inverse=True)
    sums = np.bincount(place, pulls, len(inside)).astype(np.float64)
    order, each = np.argsort(-sums, kind="stable"), np.argsort(-pulls, kind="stable")
    return Reasons(
        item, float(base + pulls.sum()), float(base), [group_names[inside[g]] for g in order], sums[order],
        [names[basket[j]] for j in each], pulls[each],
    )  # fmt: skip
