"""Summary as frozen values: what a model hands over to be read, and what it then says to people, page and file.

*Observed* is a model's data and its clusters, without the model itself. *Measures* are what a block says, by kind of
data: counts against chance, numbers against averages, labels against their shares. Each works on sums over blocks,
(…, columns, K), and is linear in them once the blocks are known: what an entry gains by being in its block is
⟨coefficients of the block, statistics of the entry⟩. Trees, held-out gains, typical members and the numbers on a board
are all made of that.

Every side has a *merge tree*: its leaves are the fine clusters, every merge joins the two that lose least. All that is
said of a cluster (name, members, facts) is said of a node of that tree, so any size from one to all leaves can be shown
without going back to the data: a *cut* at k clusters is k nodes, and the sums of a block are sums over leaves.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.data import Mode
from gingham.errors import GinghamError
from gingham.fitting.merging import cut, leaves_below, nodes_left
from gingham.storage import savable

SMOOTHING = 1.0  # counts that an average block is filled up with, in proportion to what chance expects
STEADY = 10.0  # numbers with nothing to say, against which the sum of an item's is weighed
SHRINK = 5.0  # observations with nothing to say that every block of numbers or labels starts from


class Measure(ABC):
    """Sums of a block are an array (…, K)."""

    name: ClassVar[str]
    constants: ClassVar[Mapping[str, float]] = {"shrink": SHRINK}  # by which `shown` follows from the sums

    @abstractmethod
    def cost(self, sums: Floats) -> Floats:
        """What rows of blocks (…, columns, K) cost at best, shape (…): never less for a union than for its parts."""

    @abstractmethod
    def coefficients(self, sums: Floats) -> Floats:
        """What each unit of each statistic gains in its block, over saying nothing; (rows, columns, K)."""

    @abstractmethod
    def block(self, sums: Floats) -> Floats:
        """The value of each block (of labels, of each label), shrunken so that an empty block says nothing."""

    def shown(self, sums: Floats) -> tuple[Floats, Ints | None]:
        """The numbers on a board (rows, columns), and which label they are of where labels are names."""
        return self.block(sums), None

    @abstractmethod
    def text(self, value: float, label: str | None = None, far: float = 0.0) -> str:
        """A number on a board, for people; ``far`` is how far the largest number of the board goes."""

    @abstractmethod
    def deviations(self, profiles: Floats) -> Floats:
        """How items (n, columns, K) differ from all of them together, shrunken: a vector each, (n, …)."""

    @abstractmethod
    def telling(self, sums: Floats, totals: Floats) -> tuple[Floats, Floats]:
        """How much each item of the other side tells of a cluster, and a value for people.

        From the sums of the members with every item, and those of all, (items, K). Items that say the opposite have
        negative scores; of labels there is one text per item and label.
        """

    def observed(self, sums: Floats) -> Floats:
        """How many observations lie behind sums (…, K), shape (…)."""
        return np.asarray(sums.sum(axis=-1))

    def structure(self, sums: Floats) -> float:
        """What a table of blocks explains beyond a single one: nats, or squares."""
        one = sums.sum(axis=(0, 1), keepdims=True)
        return float(self.cost(one).sum() - self.cost(sums).sum() - self._margins(sums))

    def _margins(self, sums: Floats) -> float:
        """What the columns explain alone, where that is no structure."""
        return 0.0


def code_length(counts: Floats) -> Floats:
    """n ln n − Σ_k n_k ln n_k of counts (…, k), shape (…): the log loss of the best distribution."""
    n = counts.sum(axis=-1)
    return np.asarray(xlogy(n, n) - xlogy(counts, counts).sum(axis=-1))


def smoothed_lift(counts: Floats, smoothing: float = SMOOTHING) -> Floats:
    """p(c)/Π p(c_i) of a table of counts.

    Cells are filled up with ``smoothing`` observations each, spread as if the sides were independent, so that an empty
    block tends to "as expected".
    """
    axes, total = range(counts.ndim), max(float(counts.sum()), 1e-300)
    margins = (counts.sum(axis=tuple(axis for axis in axes if axis != own), keepdims=True) for own in axes)
    expected = np.asarray(reduce(np.multiply, margins)) / total ** (counts.ndim - 1)
    extra = smoothing * counts.size * expected / total
    return np.divide(counts + extra, expected + extra, out=np.ones(counts.shape), where=expected > 0)


class Lift(Measure):
    """Counts: a block is there more or less often than its row and its column lead one to expect."""

    name = "lift"
    constants: ClassVar[Mapping[str, float]] = {"smoothing": SMOOTHING}

    def cost(self, sums: Floats) -> Floats:
        return code_length(sums[..., 0])  # a merge loses N times the weighted Jensen-Shannon divergence

    def _margins(self, sums: Floats) -> float:
        columns, total = sums[..., 0].sum(axis=0), float(sums.sum())
        return float(xlogy(columns, columns).sum() - xlogy(total, total))

    def block(self, sums: Floats) -> Floats:
        return smoothed_lift(sums[..., 0])

    def coefficients(self, sums: Floats) -> Floats:
        return np.log(np.maximum(self.block(sums), 1e-300))[..., None]

    def text(self, value: float, label: str | None = None, far: float = 0.0) -> str:
        factor = value if value >= 1 else 1 / max(value, 1e-9)
        if factor < 1.15:
            return "·"
        if value < 1 and factor >= 99.5:
            return "almost none"
        return (
            f"{'×' if value > 1 else '÷'}{factor:.1f}" if factor < 9.95 else f"{'×' if value > 1 else '÷'}{factor:.0f}"
        )

    def deviations(self, profiles: Floats) -> Floats:
        n = profiles[..., 0].astype(np.float64)
        share = n.sum(axis=0) / max(float(n.sum()), 1e-300)
        own = (n + SHRINK * share) / (n.sum(axis=1, keepdims=True) + SHRINK)
        return np.asarray((own - share) / np.sqrt(np.maximum(share, 1e-12)))

    def telling(self, sums: Floats, totals: Floats) -> tuple[Floats, Floats]:
        p, share = (one[:, 0] / max(float(one.sum()), 1e-300) for one in (sums, totals))
        lift = p / np.maximum(share, 1e-300)
        return np.where(p > share, xlogy(p, lift), 0.0), lift  # p(i|c) ln p(i|c)/p(i)


class Difference(Measure):
    """Numbers: a block is higher or lower than the averages of row and column say. K = 2: how many, their sum."""

    name = "difference"

    def cost(self, sums: Floats) -> Floats:
        n, s = sums[..., 0], sums[..., 1]
        return np.asarray(-np.divide(s * s, n, out=np.zeros_like(s), where=n > 0).sum(axis=-1))  # and Σ y²

    def block(self, sums: Floats) -> Floats:
        return np.asarray(sums[..., 1] / (sums[..., 0] + SHRINK))

    def coefficients(self, sums: Floats) -> Floats:
        mean = self.block(sums)
        return np.stack([-mean * mean, 2 * mean], axis=-1)  # Σ e² − (e − mean)²

    def text(self, value: float, label: str | None = None, far: float = 0.0) -> str:
        far = max(far, abs(value), 1e-300)
        digits = 0 if far >= 100 else min(max(1, math.ceil(-math.log10(far / 2.5))), 12)  # two of the largest, or so
        rounded = f"{abs(value):.{digits}f}"
        return "·" if float(rounded) == 0 else f"{'+' if value > 0 else '−'}{rounded}"

    def observed(self, sums: Floats) -> Floats:
        return np.asarray(sums[..., 0])

    def deviations(self, profiles: Floats) -> Floats:
        weight = profiles[..., 0].sum(axis=0) / max(float(profiles[..., 0].sum()), 1e-300)
        return self.block(profiles.astype(np.float64)) * np.sqrt(weight)

    def telling(self, sums: Floats, totals: Floats) -> tuple[Floats, Floats]:
        n, e = sums.T
        return e / np.sqrt(n + STEADY), e / (n + SHRINK)


class Labels(Measure):
    """Names: which label a block has, against their shares overall. K = |Y|: how many of each."""

    name = "labels"

    def cost(self, sums: Floats) -> Floats:
        return np.asarray(code_length(sums).sum(axis=-1))

    def overall(self, sums: Floats) -> Floats:
        """The share of each label in all observations."""
        return np.asarray(sums.sum(axis=(0, 1)) / max(float(sums.sum()), 1e-300))

    def block(self, sums: Floats) -> Floats:
        return np.asarray((sums + SHRINK * self.overall(sums)) / (sums.sum(axis=-1, keepdims=True) + SHRINK))

    def coefficients(self, sums: Floats) -> Floats:
        return np.log(np.maximum(self.block(sums), 1e-300) / np.maximum(self.overall(sums), 1e-300))

    def shown(self, sums: Floats) -> tuple[Floats, Ints | None]:
        share = self.block(sums)
        return share.max(axis=-1), share.argmax(axis=-1)

    def deviations(self, profiles: Floats) -> Floats:
        n = profiles.astype(np.float64)
        weight = n.sum(axis=(0, 2)) / max(float(n.sum()), 1e-300)
        return np.asarray(((self.block(n) - self.overall(n)) * np.sqrt(weight)[:, None]).reshape(len(n), -1))

    def telling(self, sums: Floats, totals: Floats) -> tuple[Floats, Floats]:
        overall = (totals + 1.0) / (totals.sum(axis=1, keepdims=True) + totals.shape[1])
        lift = (sums + overall) / (sums.sum(axis=1, keepdims=True) + 1.0) / overall
        return np.maximum(xlogy(sums, lift), 0.0).ravel(), lift.ravel()  # n ln p(label|members)/p(label)

    def text(self, value: float, label: str | None = None, far: float = 0.0) -> str:
        return f"{label} {value:.0%}"


MEASURES: dict[str, Measure] = {kind.name: kind() for kind in (Lift, Difference, Labels)}


def measure_named(name: str) -> Measure:
    """A measure by its name."""
    if name not in MEASURES:
        raise GinghamError(f"There is no measure {name!r}; there are {', '.join(MEASURES)}.")
    return MEASURES[name]


@dataclass(frozen=True, eq=False)
class Relation:
    """Entries in which sides meet: one row each.

    Attributes
    ----------
    sides : tuple of int
        Positions of the sides; twice the same one for a graph.
    codes : tuple of int arrays of shape (N,)
    measure : {"lift", "difference", "labels"}
        Counts, numbers, or names.
    values : array of shape (N,) or None
        Numbers, or codes of labels; None for counts.
    weights : array of shape (N,) or None
        Counts, or how often each entry was observed.
    label : str
        What was observed.
    labels : tuple of str
        Names of the labels.
    both_ways : bool
        Whether an entry (a, b) stands for (b, a) too: an undirected graph.
    expected : array of shape (N,) or None
        Of numbers: what the model expects of each entry without its clusters (the overall mean, or additive effects),
        so that a block shows how much higher or lower its entries are. None: zero.
    """

    sides: tuple[int, ...]
    codes: tuple[Ints, ...]
    measure: str
    values: AnyArray | None = None
    weights: Floats | None = None
    label: str = "label"
    labels: tuple[str, ...] = ()
    both_ways: bool = False
    expected: Floats | None = None

    @property
    def n_entries(self) -> int:
        return len(self.codes[0])

    @property
    def weight(self) -> Floats:
        """The weight of every entry, (N,)."""
        return np.ones(self.n_entries) if self.weights is None else np.asarray(self.weights, dtype=np.float64)

    @property
    def rule(self) -> Measure:
        return measure_named(self.measure)

    @property
    def n_statistics(self) -> int:
        return {"lift": 1, "difference": 2}.get(self.measure, len(self.labels))

    def take(self, rows: AnyArray) -> Relation:
        """Some of the entries, by a mask or by places."""
        return replace(
            self,
            codes=tuple(code[rows] for code in self.codes),
            values=None if self.values is None else self.values[rows],
            weights=None if self.weights is None else self.weights[rows],
            expected=None if self.expected is None else self.expected[rows],
        )

    @property
    def residuals(self) -> AnyArray | None:
        """What is clustered: numbers beyond those expected without clusters; codes of labels as they are."""
        if self.measure != "difference" or self.expected is None:
            return self.values
        return np.asarray(self.values, dtype=np.float64) - self.expected

    def plain(self) -> Relation:
        """The same entries with the numbers as they were observed."""
        return replace(self, expected=None)

    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of its positions."""
        d = len(self.sides)
        return [(i, j) for i in range(d) for j in range(i + 1, d)]

    def pair(self, first: int, second: int) -> Relation:
        """The entries as those of two of its positions: in both directions where they stand for both, and residuals."""
        codes, weights, values = (self.codes[first], self.codes[second]), self.weight, self.residuals
        if self.both_ways:
            codes = (np.concatenate(codes), np.concatenate(codes[::-1]))
            weights = np.concatenate([weights, weights])
            values = None if values is None else np.concatenate([values, values])
        sides = (self.sides[first], self.sides[second])
        return replace(self, sides=sides, codes=codes, values=values, weights=weights, both_ways=False, expected=None)

    def sums(self, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Floats:
        """Of a pair: sums over blocks (m_1, m_2, K) from the cluster of each row and each column."""
        at = rows[self.codes[0]].astype(np.int64) * shape[1] + columns[self.codes[1]]
        n, k = shape[0] * shape[1], self.n_statistics
        if self.measure == "labels":
            sums = np.bincount(at * k + np.asarray(self.values), self.weight, n * k)
            return sums.astype(np.float64, copy=False).reshape(*shape, k)
        parts = [self.weight] if self.measure == "lift" else [self.weight, self.weight * np.asarray(self.values)]
        sums = np.stack([np.bincount(at, part, n) for part in parts], axis=-1)
        return sums.astype(np.float64, copy=False).reshape(*shape, k)

    def gains(self, coefficients: Floats, rows: Ints, columns: Ints) -> Floats:
        """Of a pair: what each entry gains in its block, from the cluster of each row and each column; (N,)."""
        return self.worth(coefficients[rows[self.codes[0]], columns[self.codes[1]]])

    def worth(self, own: Floats) -> Floats:
        """⟨coefficients of the block of each entry, its statistics⟩, (N,), from those coefficients, (N, K)."""
        if self.measure == "labels":
            return np.asarray(own[np.arange(len(own)), np.asarray(self.values)])
        return np.asarray(own[:, 0] if self.measure == "lift" else own[:, 0] + own[:, 1] * np.asarray(self.values))

    def matrix(self, shape: tuple[int, int], statistic: int | None = None) -> sparse.csr_array:
        """Of a pair: a statistic of every two items, sparse: weights by default, of one label where one is named."""
        weight, (rows, columns) = self.weight, self.codes
        if self.measure == "difference" and statistic == 1:
            weight = weight * np.asarray(self.values)
        elif self.measure == "labels" and statistic is not None:
            mine = np.asarray(self.values) == statistic
            weight, rows, columns = weight[mine], rows[mine], columns[mine]
        return sparse.csr_array(sparse.coo_array((weight, (rows, columns)), shape=shape))


class Refit(NamedTuple):
    """What the same model learns from some of the entries.

    Attributes
    ----------
    clusters : the cluster of every item, one array per side
    predictions : what it predicts of the entries that it has not seen; codes of labels where labels are names
    expected : of numbers, what it expects of every entry without its clusters
    blocks : the values of its blocks, where they are not those of the entries (see `Observed`)
    """

    clusters: tuple[Ints | None, ...]
    predictions: Floats | None = None
    expected: Floats | None = None
    blocks: Floats | None = None


@dataclass(frozen=True, eq=False)
class Observed:
    """The data of a model and its clusters.

    Attributes
    ----------
    modes : tuple of Mode
        The sides, with the ids of their items.
    relations : tuple of Relation
        The first is the one to show first, and the one whose entries are held out.
    clusters : tuple of int arrays or None
        The model's own cluster of every item; None of a side that it does not cluster.
    given : tuple of bool
        Whether the number of clusters of each side was given by the user.
    refit : callable, optional
        (mask of the entries to learn from) → Refit: the same model on a part of the first relation.
    prediction : str
        Why the model has the size that it has.
    memberships : tuple of arrays of shape (n_items, n_clusters) or None, optional
        Soft memberships in these clusters; None where every item belongs to one cluster.
    blocks : array of shape (m_1, m_2) or None
        Of a checkerboard that was distilled from the predictions of a model: what each block adds to the expected
        number. None where blocks are the means of their entries.
    distilled : bool
        Whether the clusters are those of a checkerboard that was distilled from the predictions of the model.
    layers : callable, optional
        (titles of items by side) → the clusterings of such a model, strongest first.
    loss : str
        The loss in which errors are measured; by default that of the kind of data.
    titles : mapping from the position of a side to names of its items
    notes : tuple of str
    """

    modes: tuple[Mode, ...]
    relations: tuple[Relation, ...]
    clusters: tuple[Ints | None, ...]
    given: tuple[bool, ...] = ()
    refit: Callable[[Bools], Refit] | None = None
    prediction: str = ""
    memberships: tuple[Floats | None, ...] = ()
    blocks: Floats | None = None
    distilled: bool = False
    layers: Callable[[Mapping[int, AnyArray]], tuple[LayerTable, ...]] | None = None
    loss: str = ""
    titles: Mapping[int, AnyArray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def n_sides(self) -> int:
        return len(self.modes)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(mode.n_items for mode in self.modes)

    def with_first(self, relation: Relation) -> Observed:
        """The same with another first relation."""
        return replace(self, relations=(relation, *self.relations[1:]))

    def meetings(self, side: int) -> Iterator[tuple[Relation, int, int]]:
        """Where a side meets another, or itself: the relation, its own position there, and that of the other."""
        for relation in self.relations:
            for i, j in relation.pairs():
                for own, other in ((i, j), (j, i)):
                    if relation.sides[own] == side:
                        yield relation, own, other


MOST_ITEMS = 4000  # of a side that `Summary.to_dict` lists, those with the most data


@savable
@dataclass(frozen=True)
class Mark:
    """An item that says something about a cluster.

    Attributes
    ----------
    item : str
        Its name.
    score : float
        How much it says, in the unit of the summary (nats, squares): what marks are sorted by.
    value : float
        For people: how many times as often as expected, or how much higher than the averages say.
    """

    item: str
    score: float
    value: float


@savable
@dataclass(frozen=True)
class Fact:
    """A property that members of a cluster have more often than others: "student 42 %, else 18 %".

    Attributes
    ----------
    text : str
        "student", "age 18–24", "genre Drama".
    inside, outside : float
        Share of the members, and of all others, that have it.
    q : float
        Benjamini-Hochberg's false discovery rate at which it would just be reported, over all clusters of all cuts
        that are shown together.
    """

    text: str
    inside: float
    outside: float
    q: float

    def __str__(self) -> str:
        inside, outside = ("under 1%" if 0 < share < 0.005 else f"{share:.0%}" for share in (self.inside, self.outside))
        return f"{self.text} {inside}, else {outside}"


@savable
@dataclass(frozen=True)
class Cluster:
    """One node of a merge tree.

    Attributes
    ----------
    name : str
        For people; "shared: …" where the cluster tells nothing about the other side.
    words : tuple of str
        What the name is made of, best first.
    against : tuple of str
        Of ratings: what members rate lower than others do.
    coverage : float
        Share of the members that have at least one of the words (1 where the words are members themselves).
    size : int
        Items.
    mass : float
        Observations (tokens, ratings, edges).
    shared : bool
        Whether what it tells about the other side is less than a fifth of what its mass would lead one to expect.
    distinctive : tuple of Mark
        Items of the other side that set the cluster apart.
    typical : tuple of Mark
        Its own items that stand for it best.
    facts : tuple of Fact
        Of side columns; never empty by accident: False discoveries are controlled.
    """

    name: str
    words: tuple[str, ...]
    against: tuple[str, ...]
    coverage: float
    size: int
    mass: float
    shared: bool
    distinctive: tuple[Mark, ...] = ()
    typical: tuple[Mark, ...] = ()
    facts: tuple[Fact, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name, "words": list(self.words), "against": list(self.against),
            "coverage": round(self.coverage, 4), "size": self.size, "mass": round(self.mass, 4), "shared": self.shared,
            "distinctive": [[m.item, _short(m.score), _short(m.value)] for m in self.distinctive],
            "typical": [[m.item, _short(m.score), _short(m.value)] for m in self.typical],
            "facts": [[f.text, round(f.inside, 4), round(f.outside, 4), _short(f.q)] for f in self.facts],
        }  # fmt: skip


@savable
@dataclass(frozen=True, eq=False)
class LayerTable:
    """One of the checkerboards that a model adds up.

    Attributes
    ----------
    name : str
    rows, columns : tuple of str
        Its clusters, by some of their items.
    values : array of shape (rows, columns)
        What each block adds to a prediction.
    """

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats

    def to_dict(self) -> dict[str, object]:
        values = [[_short(v) for v in row] for row in self.values.tolist()]
        return {"name": self.name, "rows": list(self.rows), "columns": list(self.columns), "values": values}


@savable
@dataclass(frozen=True, eq=False)
class Side:
    """One side of the data with its merge tree.

    Nodes 0 … m − 1 are the leaves, node m + t is the union that merge t makes; scipy's linkage counts alike.

    Attributes
    ----------
    name : str
        "user", "word".
    items : array of shape (n,)
        Ids as the model knows them.
    titles : array of str of shape (n,), or None
        What items are called where that is not their id.
    leaf : int array of shape (n,)
        The leaf of each item.
    mass, strength : arrays of shape (n,)
        Observations of each item, and how much it speaks for its own leaf (0 where it says nothing).
    profile : array of shape (n, k, K)
        Sums of each item over some clusters of the other side, at most 24: what "alike" is judged by.
    merges : int array of shape (m − 1, 2)
    heights : array of shape (m − 1,)
        Share of the structure that the leaves explain which is lost by each merge, never falling.
    order : int array of shape (m,)
        Leaves from first to last, neighbours alike; every node is a run of it, so it orders every cut.
    clusters : tuple of 2m − 1 Cluster, one per node
    own : int array of shape (n,)
        The model's own cluster of each item, without gaps in the numbers.
    fine : int array of shape (f,)
        The leaf of each of the model's own clusters that hold an item.
    fine_merges : int array of shape (f − 1, 2)
        The merge tree of those clusters; its last m − 1 merges are ``merges``.
    shares : array of shape (n, m) or None
        Soft memberships in the leaves; None where every item belongs to one.
    """

    name: str
    items: AnyArray
    titles: AnyArray | None
    leaf: Ints
    mass: Floats
    strength: Floats
    profile: Floats
    merges: Ints
    heights: Floats
    order: Ints
    clusters: tuple[Cluster, ...]
    own: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    fine: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    fine_merges: Ints = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    shares: Floats | None = None

    def n_fine(self, k: int) -> Ints:
        """How many of the model's own clusters each cluster of a cut holds, shape (k,)."""
        return np.bincount(self.groups(k)[self.fine], minlength=k)

    def labels_at(self, k: int) -> Ints:
        """The number (from 0) of each item's cluster with k clusters, up to as many as the model has; shape (n,)."""
        if k <= self.n_leaves:
            return self.labels(k)
        if k > len(self.fine):
            raise GinghamError(f"{self.name!r} has {len(self.fine)} clusters; {k} were asked for.")
        return cut(self.fine_merges, len(self.fine), k)[self.own]

    def with_items(self, mode: Mode, clusters: Ints, memberships: Floats, mass: Floats) -> Side:
        """The side with further items of a mode, each in the group that holds its cluster of the model.

        ``clusters`` and ``memberships`` are the model's of all items, ``mass`` the observations that are new.
        """
        at = mode.encode(self.items)
        if len(at) == mode.n_items:
            return self
        own_of = np.full(memberships.shape[1], -1, dtype=np.int64)
        own_of[clusters[at]] = self.own
        held = np.flatnonzero(own_of >= 0)  # clusters that hold an item
        own = own_of[held[memberships[:, held].argmax(axis=1)]]
        own[at] = self.own
        leaf = self.fine[own]
        new = np.setdiff1d(np.arange(mode.n_items), at)
        n_new, mass_new = (np.bincount(leaf[new], weights, self.n_leaves) for weights in (None, mass[new]))
        nodes = tuple(
            replace(node, size=node.size + int(n_new[below].sum()), mass=node.mass + float(mass_new[below].sum()))
            for node, below in zip(self.clusters, self.below)
        )

        def grown(values: AnyArray) -> AnyArray:
            wide = np.zeros((mode.n_items, *values.shape[1:]), dtype=values.dtype)
            wide[at] = values
            return wide

        shares = None if self.shares is None else shares_of(memberships, own_of, self.fine)
        titles = None
        if self.titles is not None:
            titles = np.array([str(item) for item in mode.items.tolist()], dtype=object)
            titles[at] = self.titles
        own_mass = grown(self.mass)
        own_mass[new] = mass[new]
        return replace(
            self, items=mode.items, titles=titles, leaf=leaf, own=own, mass=own_mass, strength=grown(self.strength),
            profile=grown(self.profile), clusters=nodes, shares=shares,
        )  # fmt: skip

    def memberships(self, k: int) -> Floats:
        """Share of each item in each cluster of a cut, shape (n, k): the sum of its memberships in their parts."""
        into = self.groups(k)
        if self.shares is None:
            return np.asarray(into[self.leaf][:, None] == np.arange(k), dtype=np.float64)
        found: Floats = np.zeros((self.n_items, k))
        for leaf, group in enumerate(into.tolist()):
            found[:, group] += self.shares[:, leaf]
        return found

    def encode(self, ids: AnyArray) -> Ints:
        """Positions of ids; −1 for those that the side does not know. "7" is 7 where ids are numbers."""
        return positions_of(self.items, ids)

    def find(self, item: object) -> int | None:
        """The position of an item by its id, or by its title."""
        code = int(self.encode(np.array([item], dtype=object))[0])
        if code < 0 and self.titles is not None:
            named = np.flatnonzero(self.titles == item)
            code = int(named[0]) if len(named) else -1
        return None if code < 0 else code

    @property
    def n_leaves(self) -> int:
        return len(self.order)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def names(self) -> list[str]:
        """The display name of every item."""
        return [str(item) for item in (self.items if self.titles is None else self.titles).tolist()]

    def nodes(self, k: int) -> list[int]:
        """The k nodes of a cut, in the order of the tree; cluster number i of that cut is the i-th of them."""
        if not 1 <= k <= self.n_leaves:
            raise GinghamError(f"{self.name!r} can be shown in 1 to {self.n_leaves} clusters, not {k}.")
        alive = nodes_left(self.merges, self.n_leaves, k)
        return sorted(alive, key=lambda node: self.place[self.below[node]].min())

    @cached_property
    def place(self) -> Ints:
        """The place of each leaf in the order, shape (m,)."""
        return np.argsort(self.order)

    @cached_property
    def below(self) -> list[list[int]]:
        """The leaves below each node (itself, where it is one)."""
        return leaves_below(self.merges, self.n_leaves)

    def groups(self, k: int) -> Ints:
        """The number (from 0) of each leaf's cluster in a cut, shape (m,)."""
        into: Ints = np.empty(self.n_leaves, dtype=np.int64)
        for number, node in enumerate(self.nodes(k)):
            into[self.below[node]] = number
        return into

    def labels(self, k: int) -> Ints:
        """The cluster (from 0) of every item when the tree is cut into k clusters, shape (n,)."""
        return self.groups(k)[self.leaf]

    def cut(self, k: int) -> list[Cluster]:
        """The clusters of a cut, in order."""
        return [self.clusters[node] for node in self.nodes(k)]

    def listed(self, most: int = MOST_ITEMS) -> Ints:
        """Positions of the items with the most data, in the order of the tree, those that speak most first."""
        chosen = np.argsort(-self.mass, kind="stable")[:most]
        return np.asarray(chosen[np.lexsort((-self.strength[chosen], self.place[self.leaf[chosen]]))])

    def to_dict(self, max_items: int = MOST_ITEMS) -> dict[str, object]:
        """Plain values; items are those that `listed` names."""
        chosen = self.listed(max_items)
        names = self.names
        return {
            "name": self.name, "n_items": self.n_items, "n_leaves": self.n_leaves,
            "merges": self.merges.tolist(), "heights": [_short(h) for h in self.heights.tolist()],
            "order": self.order.tolist(), "clusters": [cluster.to_dict() for cluster in self.clusters],
            "items": {
                "names": [names[i] for i in chosen.tolist()],
                "ids": None if self.titles is None else [str(item) for item in self.items[chosen].tolist()],
                "leaf": self.leaf[chosen].tolist(),
                "mass": [_short(v) for v in self.mass[chosen].tolist()],
                "strength": [_short(v) for v in self.strength[chosen].tolist()],
            },
        }  # fmt: skip


@savable
@dataclass(frozen=True, eq=False)
class BlockTable:
    """How two sides meet: sums over the blocks of their leaves.

    Attributes
    ----------
    sides : (int, int)
        Positions among the summary's sides; twice the same one for a graph.
    measure : str
        "lift" (counts, edges: how often compared with chance), "difference" (numbers: how much more than averages say)
        or "labels" (which label).
    sums : array of shape (m_1, m_2, K)
        K = 1: counts; K = 2: how many numbers, and what they sum to beyond the averages; K = |Y|: counts by label.
    label : str
        What was observed: "count", "rating".
    labels : tuple of str
        The names of the labels, for the measure "labels".
    """

    sides: tuple[int, int]
    measure: str
    sums: Floats
    label: str
    labels: tuple[str, ...] = ()

    @property
    def rule(self) -> Measure:
        return measure_named(self.measure)

    def coarser(self, groups: Sequence[Ints]) -> BlockTable:
        """The same of coarser blocks, from the cluster of each leaf of every side."""
        return replace(self, sums=summed(self.sums, *(groups[side] for side in self.sides)))

    def part(self, side: int) -> list[Floats]:
        """What a side sees of it: its clusters × those of the other side; both ways where it meets itself."""
        turned = np.swapaxes(self.sums, 0, 1)
        if self.sides[0] == self.sides[1] == side and np.array_equal(self.sums, turned):
            return [self.sums]
        return [self.sums] * (self.sides[0] == side) + [turned] * (self.sides[1] == side)

    def to_dict(self) -> dict[str, object]:
        rounded = np.round(self.sums, 4)
        return {
            "sides": list(self.sides), "measure": self.measure, "label": self.label, "labels": list(self.labels),
            "sums": rounded.tolist(), **self.rule.constants,
        }  # fmt: skip


def positions_of(items: AnyArray, ids: AnyArray) -> Ints:
    """Positions of ids among items; −1 for others. "7" is 7, and 7 is "7", where no item is exactly that."""
    at = {value: code for code, value in enumerate(items.tolist())}
    text = {str(value): code for value, code in at.items()}

    def place(value: object) -> int:
        try:
            return at[value]
        except (KeyError, TypeError):  # a value that no set can hold is no id
            return text.get(str(value), -1)

    return np.array([place(value) for value in ids.tolist()], dtype=np.int64)


def shares_of(memberships: Floats, own_of: Ints, leaf_of: Ints) -> Floats:
    """Soft memberships in leaves, shape (n, m), from those in the clusters of a model.

    ``own_of`` numbers the clusters that hold an item, from 0, the others have −1: small shares in those stay where
    they are not shown. ``leaf_of`` is the leaf of each number.
    """
    shares = np.zeros((len(memberships), int(leaf_of.max()) + 1), dtype=np.float32)
    for cluster in np.flatnonzero(own_of >= 0).tolist():
        shares[:, leaf_of[own_of[cluster]]] += memberships[:, cluster]
    return shares


def summed(sums: Floats, rows: Ints, columns: Ints) -> Floats:
    """Sums of coarser blocks (k_1, k_2, K), from the cluster of each row and each column."""
    out: Floats = np.zeros((int(rows.max()) + 1, int(columns.max()) + 1, sums.shape[2]))
    np.add.at(out, (rows[:, None], columns[None, :]), sums)
    return out


@dataclass(frozen=True, eq=False)
class Board:
    """Two sides at a cut: names, values, and how much was observed.

    Attributes
    ----------
    rows, columns : list of Cluster
    values : array of shape (k_1, k_2)
        Lifts, differences, or the share of the commonest label; shrunken, so that an empty block says nothing.
    counts : array of shape (k_1, k_2)
        Observations.
    labels : list of lists of str, or None
        Of the measure "labels": the label whose share ``values`` holds.
    """

    row_name: str
    column_name: str
    rows: list[Cluster]
    columns: list[Cluster]
    measure: str
    label: str
    values: Floats
    counts: Floats
    labels: list[list[str]] | None = None

    @property
    def strengths(self) -> Floats:
        """From −1 (blue, below what is expected) to 1 (red, above), shape (k_1, k_2); of labels, their shares."""
        if self.measure == "labels":
            return self.values
        if self.measure == "lift":
            logs = np.log(np.maximum(self.values, 1e-9))
            return np.asarray(np.clip(np.where(logs > 0, logs / max(float(logs.max()), 0.2), logs / FEWER), -1, 1))
        return np.asarray(self.values / max(float(np.abs(self.values).max()), 1e-12))

    def text(self, row: int, column: int) -> str:
        """A cell for people: "×3.3", "÷5", "+0.2", "·" where it is as expected."""
        label = None if self.labels is None else self.labels[row][column]
        far = float(np.abs(self.values).max(initial=0.0))
        return measure_named(self.measure).text(float(self.values[row, column]), label, far)


@savable
@dataclass(frozen=True)
class Errors:
    """Losses on observations that the predictions had not seen; smaller is better.

    Attributes
    ----------
    loss : str
        "absolute", "quadratic", "zero-one", "log" or "mass".
    unit : str
        For people: "mean absolute error", "root mean square error", "share of wrong labels", "nats per label".
    scores : dict from the name of a predictor to its loss
        The model first, then baselines: "one constant", "row averages", "both averages", "independence".
    n_held : float
        Observations they were measured on.
    how : str
        On which observations, and what the model was fitted on, in a sentence.
    others : dict from a unit to scores
        The same in further measures.
    """

    loss: str
    unit: str
    scores: dict[str, float]
    n_held: float
    how: str
    others: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def model(self) -> float | None:
        return self.scores.get(MODEL)

    @property
    def best_baseline(self) -> tuple[str, float] | None:
        """The name and the loss of the baseline that loses least."""
        baselines = [(name, value) for name, value in self.scores.items() if name != MODEL]
        return min(baselines, key=lambda one: one[1]) if baselines else None

    @property
    def useful(self) -> bool | None:
        """Whether the model beats every baseline; None where it was not measured."""
        if self.model is None or self.best_baseline is None:
            return None
        return self.model < self.best_baseline[1]

    def to_dict(self) -> dict[str, object]:
        return {
            "loss": self.loss, "unit": self.unit, "n_held": self.n_held, "useful": self.useful, "how": self.how,
            "scores": _rounded(self.scores), "others": [[unit, _rounded(own)] for unit, own in self.others.items()],
        }  # fmt: skip


def _rounded(scores: Mapping[str, float]) -> list[list[object]]:
    return [[name, _short(value)] for name, value in scores.items()]


MODEL = "this model"
FEWER = math.log(8)  # blue goes to an eighth of what is expected: beyond that absences would drown everything


@savable
@dataclass(frozen=True)
class KnownColumns:
    """Two known columns by which held-out observations are predicted better than by the groups of the model.

    Attributes
    ----------
    columns : tuple of (name of a side, name of its column)
    gain, error : float
        What an observation gains over averages, or over label shares or independence, and its standard error.
    gain_found : float
        The same of the groups that are shown; 0 where nothing was found.
    n_candidates : int
        Pairs of columns that were tried; the standard errors asked for grow with them.
    text : str
        A sentence.
    """

    columns: tuple[tuple[str, str], ...]
    gain: float
    error: float
    gain_found: float
    n_candidates: int
    text: str


@savable
@dataclass(frozen=True, eq=False)
class Summary:
    """A coarse summary of a fine model, for people.

    Attributes
    ----------
    sides : tuple of Side
        One for a graph, two for most data, more for several modes.
    tables : tuple of BlockTable
        The first is the one to show first.
    size : tuple of int
        Clusters of each side at which to read it; 1 where a side is all alike.
    size_by_rule : tuple of int
        What the rule alone would choose; differs where the user gave small numbers of clusters.
    shares : tuple of (float, observation of int)
        Other marks of the sliders: the sizes that keep 50, 80 and 90 % of what the best size knows.
    rungs, curve : arrays of shape (r, n_sides) and (r,)
        Sizes, from fine to coarse, and what each gains on held-out entries, per observation; empty where nothing could
        be held out. They are those of a fit without these entries, so the finest may differ from the leaves.
    found : bool
        Whether there is structure at all.
    verdict : str
        What was found, in a sentence.
    why : str
        Why this size, in a sentence.
    prediction : str
        Why the model predicts with its own, finer size, in a sentence; empty where nothing was chosen.
    errors : Errors or None
    fidelity : float or None
        Of a checkerboard that was distilled from a model with many clusterings: the share of the model's improvement
        over averages (label shares), on held-out observations, that it reproduces at this size.
    distilled : str
        The same in a sentence; empty where the clusters are the model's own.
    layers : tuple of LayerTable
        The strongest clusterings of a model whose distilled checkerboard reproduces less than a third.
    n_observed : float
    known : KnownColumns or None
        Known columns by which held-out observations are predicted clearly better than by the groups shown.
    notes : tuple of str
        Further sentences.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> counts = np.random.default_rng(0).poisson(np.kron([[3, 1], [1, 3]], np.ones((20, 15))))
    >>> summary = gg.summarize(gg.CoOccurrenceClustering(random_state=0).fit(counts))
    >>> summary.size, summary.found
    ((2, 2), True)
    """

    sides: tuple[Side, ...]
    tables: tuple[BlockTable, ...]
    size: tuple[int, ...]
    size_by_rule: tuple[int, ...]
    shares: tuple[tuple[float, tuple[int, ...]], ...]
    rungs: Ints
    curve: Floats
    found: bool
    verdict: str
    why: str
    prediction: str = ""
    errors: Errors | None = None
    fidelity: float | None = None
    distilled: str = ""
    layers: tuple[LayerTable, ...] = ()
    n_observed: float = 0.0
    known: KnownColumns | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def advice(self) -> tuple[str, ...]:
        """What a person should know before trusting the model: a baseline that does as well, sides without groups."""
        said = []
        errors = self.errors
        best = None if errors is None else errors.best_baseline
        if errors is not None and best is not None and errors.useful is False:
            said.append(
                f"The model is not better than {best[0]}: {errors.unit} {errors.model:.4g} on data it had not seen, "
                f"against {best[1]:.4g}."
            )
        if not self.found and best is not None and errors is not None and errors.model == best[1]:
            said = []  # a model without groups is the baseline itself
        if not self.found or 1 in self.size:
            said.append(self.verdict)
        return tuple(said)

    def side(self, name: str | int) -> Side:
        """A side by its name or position."""
        if isinstance(name, str):
            for side in self.sides:
                if side.name == name:
                    return side
            raise GinghamError(f"There is no side {name!r}; there are {', '.join(repr(s.name) for s in self.sides)}.")
        if not 0 <= name < len(self.sides):
            raise GinghamError(f"There is no side {name}: sides are numbered 0 to {len(self.sides) - 1}.")
        return self.sides[name]

    def sized(self, size: Sequence[int] | int | None = None) -> tuple[int, ...]:
        """The number of clusters per side, at most as many as there are leaves; by default the readable size."""
        if size is None:
            return self.size
        wanted = tuple(
            int(k) for k in np.broadcast_to(size, (len(self.sides),) if np.ndim(size) == 0 else np.shape(size))
        )
        if len(wanted) != len(self.sides):
            raise GinghamError(f"size={size!r}: give one number for each of {len(self.sides)} sides.")
        return tuple(min(k, side.n_leaves) for k, side in zip(wanted, self.sides))

    def labels_at(self, size: Sequence[int] | int | None = None) -> tuple[Ints, ...]:
        """The cluster (from 0) of every item of each side, merged along the trees of the model's own clusters.

        The readable number of clusters by default, as in tables, which count clusters from 1; with as many clusters as
        the model has, the partition is that of its ``labels_``.
        """
        wanted = self.size if size is None else np.broadcast_to(size, (len(self.sides),)).tolist()
        return tuple(side.labels_at(int(k)) for side, k in zip(self.sides, wanted))

    def meeting(self, side: int) -> BlockTable:
        """The table in which a side first meets another."""
        return next(table for table in self.tables if side in table.sides)

    def memberships(self, side: int, size: Sequence[int] | int | None = None) -> Floats:
        """Share of each item in each cluster of a cut, shape (n, k)."""
        return self.sides[side].memberships(self.sized(size)[side])

    def likeness(self, side: int, item: int) -> Floats:
        """How alike every item of a side is to one of them, from −1 to 1: cosines of how they differ from all."""
        own = self.sides[side]
        found = self.meeting(side).rule.deviations(own.profile)
        length = np.linalg.norm(found, axis=1)
        return np.asarray(found @ found[item] / np.maximum(length * length[item], 1e-12))

    def clusters(self, size: Sequence[int] | int | None = None) -> Iterator[tuple[Side, int, Cluster]]:
        """Every cluster of a cut: its side, its number from 1, and what is said of it."""
        for side, k in zip(self.sides, self.sized(size)):
            for number, cluster in enumerate(side.cut(k), start=1):
                yield side, number, cluster

    def board(self, size: Sequence[int] | int | None = None, table: int = 0) -> Board:
        """The blocks of two sides at a cut (the readable one by default)."""
        found = self.tables[table]
        at = self.sized(size)
        left, right = (self.sides[i] for i in found.sides)
        sums = found.coarser([side.groups(k) for side, k in zip(self.sides, at)]).sums
        values, which = found.rule.shown(sums)
        labels = None if which is None else [[found.labels[w] for w in row] for row in which.tolist()]
        rows, columns = (self.sides[i].cut(at[i]) for i in found.sides)
        return Board(
            left.name, right.name, rows, columns, found.measure, found.label, values, found.rule.observed(sums), labels
        )

    def to_dict(self, max_items: int = MOST_ITEMS) -> dict[str, Any]:
        """All of it as numbers, strings, lists and dictionaries: what a page needs to draw any size by itself."""
        return {
            "sides": [side.to_dict(max_items) for side in self.sides],
            "tables": [table.to_dict() for table in self.tables],
            "size": list(self.size), "size_by_rule": list(self.size_by_rule),
            "shares": [[share, list(size)] for share, size in self.shares],
            "rungs": self.rungs.tolist(), "curve": [_short(v) for v in self.curve.tolist()],
            "found": self.found, "verdict": self.verdict, "why": self.why, "prediction": self.prediction,
            "errors": None if self.errors is None else self.errors.to_dict(), "fidelity": self.fidelity,
            "distilled": self.distilled, "layers": [layer.to_dict() for layer in self.layers],
            "known": None if self.known is None else self.known.text, "n_observed": self.n_observed,
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [self.verdict, self.distilled, "" if self.known is None else self.known.text, self.why]
        for side, number, cluster in self.clusters():
            facts = "; ".join(str(fact) for fact in cluster.facts)
            lines.append(f"{side.name} {number}: {cluster.name} ({cluster.size:,}){'; ' + facts if facts else ''}")
        return "\n".join(line for line in lines if line)

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        from gingham.summary.card import summary_card

        return summary_card(self)


def _short(value: float) -> float:
    """The value to four significant digits, which keeps pages small."""
    return float(f"{value:.4g}")


# English nouns for the sides of tables. Another name of a column may be a noun of any language, or none, and is not
# inflected: 80 Benutzer, 12 sku.
ENGLISH = """
    accent account actor airport album amendment animal anime answer app applicant area article artist asset athlete
    attribute author bank basket bean beer bike bill bird blog book booking brand brewer bug bus business buyer camera
    candidate car card case cat category cell channel chapter character cheese chef chemical child city claim class
    classroom clause click client clinic club cluster coach code coffee column comic comment commit committee company
    composer compound constituency consumer contract contributor cook count country county course court cow criterion
    crop currency customer date day delegate department deputy developer device diagnosis dialect difference disease
    dish district doctor document dog donor dose driver drug edge editor election employee employer entry enzyme
    episode event exam exchange exercise exhibition factor farm farmer feature field file film fish flight forum frame
    friend fund game gamer gene genre grade group guest headline hospital hotel hour house household image ingredient
    insect insurer interaction interview investor invoice issue item job joke journal judge key keyword label language
    law lawyer league lecture lecturer lens level library listener loan location lyric machine magazine mark market
    match meal measure measurement member menu merchant message metabolite meter method minister mode module month
    movie museum musician mutation name neighbourhood network neuron newsletter newspaper node novel number nurse
    object observation opinion order owner package page painter painting pair paper paragraph parcel parliament
    participant party passenger patient peptide period person phone photo photographer picture pixel place plant play
    player playlist plug podcast poem poet point policy port portfolio post price problem product programmer project
    property protein provider pupil purchase query question race rater rating reader receipt recipe record referee
    region reporter repository respondent response restaurant result retailer review reviewer rider route row runner
    sample scene school score sculpture season seed seller senator sensor sentence sequence series server service
    session ship shop shopper show side signal singer site skill sku soil song source speaker species sport star state
    statement station step stop store strain street student study subject subscriber supplier switch symptom table tag
    target task taster tea teacher team term test tester theme therapist thing thread ticket tissue title token tool
    topic town track trader train transaction treatment tree trial trip truck type unit university url user value
    variable variant vehicle vendor venue verse version video view viewer village visit visitor vote voter website
    week weight wine winery word worker writer year zone
"""
NOUNS = set(ENGLISH.split())
IRREGULAR = {"person": "people", "child": "children", "criterion": "criteria", "diagnosis": "diagnoses"}
SAME = {"series", "species", "anime"}


def plural(noun: str, n: int | float = 2) -> str:
    """An English noun for n things: words, countries, boxes, users of user_id; other names of columns stay."""
    noun = re.sub(r"(?<=[a-z])(_id|_ID|Id|ID| id)$", "", noun)
    low = re.split("[^A-Za-z]", noun)[-1].lower()
    if n == 1 or low not in NOUNS or low in SAME:
        return noun
    if low in IRREGULAR:
        return noun[: len(noun) - len(low) + 1] + IRREGULAR[low][1:]
    if low.endswith("y") and low[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if low.endswith(("ss", "us", "x", "z", "ch", "sh")) else f"{noun}s"


def counted(n: int | float, noun: str) -> str:
    """ "1 word", "1,234 words"."""
    return f"{n:,.0f} {plural(noun, n)}"


def listed(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


@savable
@dataclass(frozen=True)
class WideTable:
    """A table with a side in its columns.

    Attributes
    ----------
    axes : (str, str)
        The column that names the rows (or what to call them), and what to call the side in the columns.
    columns : tuple of str
    label : str
        What to call what stands in the cells.
    zeros : bool
        Whether zeros were observed, or only say that nothing was counted.
    steps : dict or None
        Where the columns are questions with answers of their own: the numbers that stand for the measurements in a
        column, by its name; other columns hold answers as they are.
    """

    axes: tuple[str, str]
    columns: tuple[str, ...]
    label: str
    zeros: bool
    steps: Mapping[str, Sequence[float]] | None = None
