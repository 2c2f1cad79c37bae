"""Names of clusters: words that tell them apart, and that most of their members share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.reading.observed import Pair

WORDS = 4  # in a name
AGAINST = 2  # of them, what members like less than others
FADE = 0.5  # members that have a word already count so much less for the next one
LEAST_SHARE = 0.02  # of the members that must have a word
FLOOR = 0.25  # of the best score that a word must reach
LOOKED_AT = 500  # candidates
MARKS = 8  # items that are listed with a cluster
STEADY = 10.0  # ratings with nothing to say, against which the sum of an item's is weighed
MOST_ENTRIES = (
    400_000  # of a cluster that its name is made of; a part of the members, drawn evenly, where there are more
)
STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "in",
        "is",
        "it",
        "that",
        "and",
        "for",
        "on",
        "was",
        "with",
        "as",
        "be",
        "this",
        "are",
        "by",
        "or",
        "at",
        "from",
        "not",
        "have",
        "has",
        "had",
        "but",
        "they",
        "i",
        "you",
        "he",
        "we",
        "his",
        "her",
        "their",
        "its",
        "which",
        "were",
        "been",
        "will",
        "would",
        "can",
        "could",
        "there",
        "if",
        "what",
        "who",
        "when",
    ]
)


def telling(names: Sequence[str]) -> bool:
    """Whether names say something by themselves: words and titles do, numbers and "user 18" do not."""
    step = max(1, len(names) // 400)
    stems = [re.sub(r"[\d\W_]+", " ", name).strip().lower() for name in names[::step]]
    worded = [stem for stem in stems if re.search(r"[^\W\d_]{2}", stem)]
    return len(worded) >= 0.5 * len(stems) and len(set(worded)) >= 0.5 * len(worded) and len(set(worded)) > 1


def alike(a: str, b: str) -> bool:
    """Two forms of one word: library, libraries; key, keys. Titles only where they are equal."""
    a, b = a.lower(), b.lower()
    if a == b or " " in a or " " in b:
        return a == b
    short = min(len(a), len(b))
    common = next((i for i in range(short) if a[i] != b[i]), short)
    return (common >= max(3, short - 1) and abs(len(a) - len(b)) <= 4) or common >= 7


def picked(score: Floats, names: Sequence[str], taken: Sequence[int]) -> int | None:
    """The item with the highest finite score whose name is no form of one that is taken."""
    order = np.argsort(-score, kind="stable")[:LOOKED_AT]
    for i in order.tolist():
        if not np.isfinite(score[i]):
            return None
        name = names[i]
        if len(name) > 1 and name.lower() not in STOP and not any(alike(name, names[j]) for j in taken):
            return i
    return None


def best_names(score: Floats, names: Sequence[str], n: int = WORDS) -> list[int]:
    """Items with the highest scores, one for each word."""
    found: list[int] = []
    while len(found) < n and (i := picked(score, names, found)) is not None:
        found.append(i)
    return found


@dataclass(frozen=True, eq=False)
class Told:
    """What the other side's items say of a cluster."""

    words: list[int]  # items of the other side, best first
    against: list[int]
    coverage: float  # share of the members that have one of the words
    marks: list[tuple[int, float, float]]  # (item, score, value)


class Others:
    """The items of the other side as words for clusters of this one."""

    def __init__(self, pair: Pair, shape: tuple[int, int], names: Sequence[str], seed: int = 0) -> None:
        self.names, self.seed = names, seed
        self.counts = pair.matrix(shape)
        self.total = np.asarray(self.counts.sum(axis=0)).ravel()

    def of(self, members: Ints) -> Told:
        """The words of a cluster, from the positions of its members."""
        raise NotImplementedError  # pragma: no cover

    def part(self, members: Ints) -> Ints:
        """The members, or so many of them, drawn evenly, as are looked at."""
        entries = int(np.diff(self.counts.indptr)[members].sum())
        if entries <= MOST_ENTRIES:
            return members
        rng = np.random.default_rng([self.seed, len(members)])
        keep = max(1, int(len(members) * MOST_ENTRIES / entries))
        return np.sort(rng.choice(members, keep, replace=False))

    def covered(self, inside: sparse.csr_array, words: Sequence[int]) -> float:
        """Share of the members with at least one of the words."""
        if not len(words) or not inside.shape[0]:
            return 0.0
        wanted = np.zeros(inside.shape[1], dtype=bool)
        wanted[list(words)] = True
        rows = np.repeat(np.arange(inside.shape[0]), np.diff(inside.indptr))
        return len(np.unique(rows[wanted[inside.indices]])) / inside.shape[0]


class Counted(Others):
    """Counts: score(i) = p(i|c) ln p(i|c)/p(i), with coverage.

    After each pick, members that have the word weigh half as much for the next one: without that the larger half of a
    mixed cluster takes all the words.
    """

    def of(self, members: Ints) -> Told:
        inside = self.counts[self.part(members)]
        own = np.asarray(inside.sum(axis=0)).ravel()
        share = self.total / max(float(self.total.sum()), 1e-300)
        p = own / max(float(own.sum()), 1e-300)
        plain = np.where(p > share, xlogy(p, p / np.maximum(share, 1e-300)), -np.inf)
        top = float(plain.max(initial=-np.inf))
        if not np.isfinite(top) or top <= 0:
            return Told([], [], 0.0, [])
        by_column = sparse.csc_array(inside)
        has = np.diff(by_column.indptr)
        least = min(max(3.0, LEAST_SHARE * len(members)), 0.5 * inside.shape[0])
        enough = (has >= least) & (plain >= FLOOR * top)
        weights = np.ones(inside.shape[0])
        words: list[int] = []
        while len(words) < WORDS:
            now = inside.T @ weights
            now = now / max(float(now.sum()), 1e-300)
            score = np.where(enough & (now > share), xlogy(now, now / np.maximum(share, 1e-300)), -np.inf)
            i = picked(score, self.names, words)
            if i is None:
                break
            words.append(i)
            weights[by_column.indices[by_column.indptr[i] : by_column.indptr[i + 1]]] *= FADE
        order = [i for i in np.argsort(-plain, kind="stable")[:MARKS].tolist() if np.isfinite(plain[i])]
        marks = [(i, float(plain[i]), float(p[i] / max(share[i], 1e-300))) for i in order]
        return Told(words or order[:WORDS], [], self.covered(inside, words or order[:WORDS]), marks)


class Rated(Others):
    """Numbers beyond averages: score(i) = Σ e/√(n + 10) over the members' numbers for item i, with + and −."""

    def __init__(self, pair: Pair, shape: tuple[int, int], names: Sequence[str], seed: int = 0) -> None:
        super().__init__(pair, shape, names, seed)
        self.sums = pair.matrix(shape, 1)

    def of(self, members: Ints) -> Told:
        mine = self.part(members)
        inside = self.counts[mine]
        n = np.asarray(inside.sum(axis=0)).ravel()
        e = np.asarray(self.sums[mine].sum(axis=0)).ravel()
        score = e / np.sqrt(n + STEADY)
        value = e / (n + SHRINK_VALUE)
        words = best_names(np.where(score > 0, score, -np.inf), self.names, WORDS - 1)
        against = best_names(np.where(score < 0, -score, -np.inf), self.names, AGAINST)
        order = np.argsort(-np.abs(score), kind="stable")[:MARKS].tolist()
        marks = [(i, float(score[i]), float(value[i])) for i in order if score[i] != 0]
        return Told(words, against, self.covered(inside, words), marks)


class Labelled(Others):
    """Names of labels: items on which members' labels differ from everybody's, by n ln p(label|members)/p(label)."""

    def __init__(
        self, pair: Pair, shape: tuple[int, int], names: Sequence[str], labels: Sequence[str], seed: int = 0
    ) -> None:
        super().__init__(pair, shape, names, seed)
        self.labels = labels
        self.by_label = [pair.matrix(shape, k) for k in range(len(labels))]
        self.totals = np.stack([np.asarray(m.sum(axis=0)).ravel() for m in self.by_label], axis=1)
        self.pairs = [f"{name}: {label}" for name in names for label in labels]

    def of(self, members: Ints) -> Told:
        mine = self.part(members)
        own = np.stack([np.asarray(m[mine].sum(axis=0)).ravel() for m in self.by_label], axis=1)
        overall = (self.totals + 1.0) / (self.totals.sum(axis=1, keepdims=True) + len(self.labels))
        share = (own + overall) / (own.sum(axis=1, keepdims=True) + 1.0)
        score = xlogy(own, share / overall).ravel()
        k = len(self.labels)
        words = best_names(np.where(score > 0, score, -np.inf), self.pairs, WORDS - 1)
        order = [i for i in np.argsort(-score, kind="stable")[:MARKS].tolist() if score[i] > 0]
        marks = [(i, float(score[i]), float((share / overall).ravel()[i])) for i in order]
        return Told(words, [], self.covered(self.counts[mine], [i // k for i in words]), marks)

    def name_of(self, i: int) -> str:
        return self.pairs[i]


SHRINK_VALUE = 5.0  # numbers that an average shown with an item starts from


def others_of(
    pair: Pair, shape: tuple[int, int], names: Sequence[str], labels: Sequence[str] = (), seed: int = 0
) -> tuple[Others, Sequence[str]]:
    """The other side's items as words, by the kind of data, and the texts that `Told` numbers."""
    if pair.measure == "labels":
        found = Labelled(pair, shape, names, labels, seed)
        return found, found.pairs
    return (Rated if pair.measure == "difference" else Counted)(pair, shape, names, seed), names


def members_of(leaf: Ints, below: Sequence[Sequence[int]]) -> Iterator[Ints]:
    """The items of every node, from the leaf of each item and the leaves of each node."""
    order = np.argsort(leaf, kind="stable")
    ends = np.cumsum(np.bincount(leaf, minlength=max(max(leaves) for leaves in below) + 1))
    starts = np.concatenate([[0], ends[:-1]])
    for leaves in below:
        yield np.concatenate([order[starts[i] : ends[i]] for i in leaves])
