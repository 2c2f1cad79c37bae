"""Reading: what a fitted model says to people, as frozen values that a page, a notebook and a file can hold.

Every side has a *merge tree*: its leaves are the fine clusters, every merge joins the two that lose least. All that is
said of a cluster (name, members, facts) is said of a node of that tree, so any size from one to all leaves can be shown
without going back to the data: a *cut* at k clusters is k nodes, and the sums of a block are sums over leaves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax

from gingham.arrays import AnyArray, Floats, Ints
from gingham.errors import GinghamError
from gingham.reading.measures import measure_named
from gingham.storage import savable

MOST_ITEMS = 4000  # of a side that `Reading.to_dict` lists, those with the most data


@savable
@dataclass(frozen=True)
class Mark:
    """An item that says something about a cluster.

    Attributes
    ----------
    item : str
        Its name.
    score : float
        How much it says, in the unit of the reading (nats, squares): what marks are sorted by.
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
        return f"{self.text} {self.inside:.0%}, else {self.outside:.0%}"


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
    clusters : tuple of 2m − 1 Cluster, one a node
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

    @property
    def n_leaves(self) -> int:
        return len(self.order)

    @property
    def n_items(self) -> int:
        return len(self.items)

    @property
    def names(self) -> list[str]:
        """What every item is called."""
        return [str(item) for item in (self.items if self.titles is None else self.titles).tolist()]

    def nodes(self, k: int) -> list[int]:
        """The k nodes of a cut, in the order of the tree; cluster number i of that cut is the i-th of them."""
        if not 1 <= k <= self.n_leaves:
            raise GinghamError(f"{self.name!r} can be read in 1 to {self.n_leaves} clusters, not {k}.")
        alive = set(range(self.n_leaves))
        for t, (a, b) in enumerate(self.merges[: self.n_leaves - k].tolist()):
            alive -= {a, b}
            alive.add(self.n_leaves + t)
        at = {leaf: place for place, leaf in enumerate(self.order.tolist())}
        return sorted(alive, key=lambda node: min(at[leaf] for leaf in self.leaves_of(node)))

    def leaves_of(self, node: int) -> list[int]:
        """The leaves below a node (itself, where it is one)."""
        return self._below[node]

    @cached_property
    def _below(self) -> list[list[int]]:
        below: list[list[int]] = [[leaf] for leaf in range(self.n_leaves)]
        for a, b in self.merges.tolist():
            below.append(below[a] + below[b])
        return below

    def groups(self, k: int) -> Ints:
        """The number (from 0) of each leaf's cluster in a cut, shape (m,)."""
        into: Ints = np.empty(self.n_leaves, dtype=np.int64)
        for number, node in enumerate(self.nodes(k)):
            into[self.leaves_of(node)] = number
        return into

    def labels(self, k: int) -> Ints:
        """The number (from 0) of each item's cluster in a cut, shape (n,)."""
        return self.groups(k)[self.leaf]

    def cut(self, k: int) -> list[Cluster]:
        """The clusters of a cut, in order."""
        return [self.clusters[node] for node in self.nodes(k)]

    def linkage(self) -> Floats:
        """scipy's linkage matrix (m − 1, 4): two nodes, height, number of leaves."""
        sizes = [float(len(self.leaves_of(self.n_leaves + t))) for t in range(len(self.merges))]
        return np.column_stack([self.merges.reshape(-1, 2), self.heights, sizes]).astype(np.float64)

    def listed(self, most: int = MOST_ITEMS) -> Ints:
        """Positions of the items with the most data, in the order of the tree, those that speak most first."""
        chosen = np.argsort(-self.mass, kind="stable")[:most]
        place = np.empty(self.n_leaves, dtype=np.int64)
        place[self.order] = np.arange(self.n_leaves)
        return np.asarray(chosen[np.lexsort((-self.strength[chosen], place[self.leaf[chosen]]))])

    def to_dict(self, max_items: int = MOST_ITEMS) -> dict[str, object]:
        """Plain values; items are those that `listed` names."""
        chosen = self.listed(max_items)
        names = self.items if self.titles is None else self.titles
        return {
            "name": self.name, "n_items": self.n_items, "n_leaves": self.n_leaves,
            "merges": self.merges.tolist(), "heights": [_short(h) for h in self.heights.tolist()],
            "order": self.order.tolist(), "clusters": [cluster.to_dict() for cluster in self.clusters],
            "items": {
                "names": [str(name) for name in names[chosen].tolist()],
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
        Positions among the reading's sides; twice the same one for a graph.
    measure : str
        "lift" (counts, edges: how often compared with chance), "difference" (numbers: how much more than averages say)
        or "labels" (which label).
    sums : array of shape (m_1, m_2, K)
        K = 1: counts; K = 2: how many numbers, and what they sum to beyond the averages; K = |Y|: counts by label.
    label : str
        What was observed: "count", "rating".
    labels : tuple of str
        The names of the labels, for the measure "labels".
    noise : float
        Of numbers: the variance that averages leave over.
    """

    sides: tuple[int, int]
    measure: str
    sums: Floats
    label: str
    labels: tuple[str, ...] = ()
    noise: float = 1.0

    def at(self, rows: Ints, columns: Ints) -> Floats:
        """Sums of coarser blocks, from the number of each leaf's cluster; shape (k_1, k_2, K)."""
        k = (int(rows.max()) + 1, int(columns.max()) + 1)
        out: Floats = np.zeros((*k, self.sums.shape[2]))
        np.add.at(out, (rows[:, None], columns[None, :]), self.sums)
        return out

    def to_dict(self) -> dict[str, object]:
        rounded = np.round(self.sums, 4)
        return {
            "sides": list(self.sides), "measure": self.measure, "label": self.label, "labels": list(self.labels),
            "sums": rounded.tolist(), **measure_named(self.measure).constants(),
        }  # fmt: skip


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

    def text(self, row: int, column: int) -> str:
        """A cell for people: "×3.3", "÷5", "+0.2", "·" where it is as expected."""
        return measure_named(self.measure).text(
            float(self.values[row, column]), None if self.labels is None else self.labels[row][column]
        )


@savable
@dataclass(frozen=True)
class Score:
    """What predictions cost on entries they had not seen; smaller is better.

    Attributes
    ----------
    name : str
        "this model", "one constant", "row averages", "column averages", "both averages", "independence".
    value : float
    """

    name: str
    value: float


@savable
@dataclass(frozen=True)
class Errors:
    """The model's error beside baselines, on the same held-out entries.

    Attributes
    ----------
    unit : str
        "root mean square error", "share of wrong labels", "nats a count".
    scores : tuple of Score
        The model first, where it was measured.
    n_held : float
        Entries they were measured on.
    """

    unit: str
    scores: tuple[Score, ...]
    n_held: float

    @property
    def model(self) -> float | None:
        return next((score.value for score in self.scores if score.name == MODEL), None)

    @property
    def best_baseline(self) -> Score | None:
        baselines = [score for score in self.scores if score.name != MODEL]
        return min(baselines, key=lambda score: score.value) if baselines else None

    @property
    def useful(self) -> bool | None:
        """Whether the model beats every baseline; None where it was not measured."""
        if self.model is None or self.best_baseline is None:
            return None
        return self.model < self.best_baseline.value

    def to_dict(self) -> dict[str, object]:
        return {
            "unit": self.unit, "n_held": self.n_held, "useful": self.useful,
            "scores": [[score.name, _short(score.value)] for score in self.scores],
        }  # fmt: skip


MODEL = "this model"


@savable
@dataclass(frozen=True, eq=False)
class Reading:
    """A coarse reading of a fine model, for people.

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
    shares : tuple of (float, tuple of int)
        Other marks of the sliders: the sizes that keep 50, 80 and 90 % of what the best size knows.
    path : int array
        The side whose tree is climbed by each step from all leaves to one block: a single slider for all sides.
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
    n_observed : float
    notes : tuple of str
        Further sentences.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> counts = np.random.default_rng(0).poisson(np.kron([[3, 1], [1, 3]], np.ones((20, 15))))
    >>> reading = gg.read(gg.CoOccurrenceClustering(random_state=0).fit(counts))
    >>> reading.size, reading.found
    ((2, 2), True)
    """

    sides: tuple[Side, ...]
    tables: tuple[BlockTable, ...]
    size: tuple[int, ...]
    size_by_rule: tuple[int, ...]
    shares: tuple[tuple[float, tuple[int, ...]], ...]
    path: Ints
    rungs: Ints
    curve: Floats
    found: bool
    verdict: str
    why: str
    prediction: str = ""
    errors: Errors | None = None
    n_observed: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def advice(self) -> tuple[str, ...]:
        """What a person should know before trusting the model: a baseline that does as well, sides without groups."""
        said = []
        errors = self.errors
        best = None if errors is None else errors.best_baseline
        if errors is not None and best is not None and errors.useful is False:
            said.append(
                f"The model is not better than {best.name}: {errors.unit} {errors.model:.4g} on data it had not seen, "
                f"against {best.value:.4g}."
            )
        if not self.found and best is not None and errors is not None and errors.model == best.value:
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

    def sized(self, size: Sequence[int] | None = None) -> tuple[int, ...]:
        """Clusters of each side: the readable ones, or those asked for, never more than there are leaves."""
        if size is None:
            return self.size
        wanted = tuple(
            int(k) for k in np.broadcast_to(size, (len(self.sides),) if np.ndim(size) == 0 else np.shape(size))
        )
        if len(wanted) != len(self.sides):
            raise GinghamError(f"size={size!r}: give one number for each of {len(self.sides)} sides.")
        return tuple(min(k, side.n_leaves) for k, side in zip(wanted, self.sides))

    def meeting(self, side: int) -> BlockTable:
        """The table in which a side first meets another."""
        return next(table for table in self.tables if side in table.sides)

    def memberships(self, side: int, size: Sequence[int] | None = None) -> Floats:
        """How surely each item belongs to each cluster of a cut, shape (n, k); rows sum to one.

        q(c|x) ∝ share of c · exp(what the item's entries gain in c), over the item's profile.
        """
        own, table = self.sides[side], self.meeting(side)
        measure, k = measure_named(table.measure), self.sized(size)[side]
        labels, profile = own.labels(k), own.profile.astype(np.float64)
        sums = np.zeros((k, *profile.shape[1:]))
        np.add.at(sums, labels, profile)
        coefficients = measure.coefficients(sums) * measure.nats(table.noise)
        prior = np.log(np.maximum(np.bincount(labels, minlength=k), 0.5) / len(labels))
        return np.asarray(softmax(np.einsum("ndk,cdk->nc", profile, coefficients) + prior, axis=1))

    def likeness(self, side: int, item: int) -> Floats:
        """How alike every item of a side is to one of them, from −1 to 1: cosines of how they differ from all."""
        own = self.sides[side]
        found = measure_named(self.meeting(side).measure).deviations(own.profile)
        length = np.linalg.norm(found, axis=1)
        return np.asarray(found @ found[item] / np.maximum(length * length[item], 1e-12))

    def clusters(self, size: Sequence[int] | None = None) -> Iterator[tuple[Side, int, Cluster]]:
        """Every cluster of a cut: its side, its number from 1, and what is said of it."""
        for side, k in zip(self.sides, self.sized(size)):
            for number, cluster in enumerate(side.cut(k), start=1):
                yield side, number, cluster

    def board(self, size: Sequence[int] | None = None, table: int = 0) -> Board:
        """The blocks of two sides at a cut (the readable one by default)."""
        found = self.tables[table]
        at = self.sized(size)
        left, right = (self.sides[i] for i in found.sides)
        k = [at[i] for i in found.sides]
        sums = found.at(left.groups(k[0]), right.groups(k[1]))
        measure = measure_named(found.measure)
        values, which = measure.shown(sums)
        labels = None if which is None else [[found.labels[w] for w in row] for row in which.tolist()]
        return Board(
            left.name, right.name, left.cut(k[0]), right.cut(k[1]), found.measure, found.label, values,
            measure.observed(sums), labels,
        )  # fmt: skip

    def to_dict(self, max_items: int = MOST_ITEMS) -> dict[str, Any]:
        """All of it as numbers, strings, lists and dictionaries: what a page needs to draw any size by itself."""
        return {
            "sides": [side.to_dict(max_items) for side in self.sides],
            "tables": [table.to_dict() for table in self.tables],
            "size": list(self.size), "size_by_rule": list(self.size_by_rule),
            "shares": [[share, list(size)] for share, size in self.shares],
            "path": self.path.tolist(), "rungs": self.rungs.tolist(), "curve": [_short(v) for v in self.curve.tolist()],
            "found": self.found, "verdict": self.verdict, "why": self.why, "prediction": self.prediction,
            "errors": None if self.errors is None else self.errors.to_dict(),
            "n_observed": self.n_observed, "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [self.verdict, self.why]
        for side, number, cluster in self.clusters():
            facts = "; ".join(str(fact) for fact in cluster.facts)
            lines.append(f"{side.name} {number}: {cluster.name} ({cluster.size:,}){'; ' + facts if facts else ''}")
        return "\n".join(line for line in lines if line)


def _short(value: float) -> float:
    """Four digits: enough for a picture, and short in a page."""
    return float(f"{value:.4g}")
