"""Names of clusters: words that tell them apart, and that most of their members share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gingham.arrays import Floats, Ints
from gingham.summary.values import Relation

WORDS = 4  # in a name
AGAINST = 2  # of them, what members like less than others
FADE = 0.5  # members that have a word already count so much less for the next one
LEAST_SHARE = 0.02  # of the members that must have a word
FLOOR = 0.25  # of the best score that a word must reach
LOOKED_AT = 500  # candidates
DATED = re.compile(r"(?: \([^()]*\))* \(\d{4}\)$")  # of a film, with other titles before the year
ARTICLE = re.compile(r"^(.*), (The|A|An)$")
USUAL = 0.9  # of the titles that must have a year
MARKS = 8  # items that are listed with a cluster
MOST_ENTRIES = (
    400_000  # of a cluster that its name is made of; a part of the members, drawn evenly, where there are more
)
STOP_WORDS = """
    a an the of to in is it that and for on was with as be this are by or at from not have has had but they i
    you he we his her their its which were been will would can could there if what who when"""
STOP = frozenset(STOP_WORDS.split())


def short_titles(titles: Sequence[str]) -> list[str]:
    """Titles as people say them, for names of clusters: "Postman, The (1997)" of a catalogue is "The Postman".

    Years go only where nearly all titles have one, and stay where two titles would then be the same.
    """
    dated = sum(bool(DATED.search(title)) for title in titles) >= USUAL * len(titles)
    bare = [DATED.sub("", title) if dated else title for title in titles]
    said = [ARTICLE.sub(r"\2 \1", title) for title in bare]
    often = Counter(said)
    return [new if often[new] == 1 else title for new, title in zip(said, titles)]


def telling(names: Sequence[str]) -> bool:
    """Whether names are informative: words and titles are, numbers and "user 18" are not."""
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

    words: list[int]  # positions in the texts, best first
    against: list[int]
    coverage: float  # share of the members that have one of the words
    marks: list[tuple[int, float, float]]  # (position, score, value)


class WordsOfOthers:
    """The items of the other side as words for clusters of this one; of labels that are names, each with its label.

    Words of counts are picked with coverage: after each pick, members that have the word weigh half as much for the
    next one. Without that the larger half of a mixed cluster takes all the words.
    """

    def __init__(self, pair: Relation, shape: tuple[int, int], names: Sequence[str], seed: int = 0) -> None:
        self.rule, self.seed = pair.rule, seed
        self.texts = [f"{name}: {label}" for name in names for label in pair.labels] if pair.labels else names
        self.counts = pair.matrix(shape)
        self.statistics = [pair.matrix(shape, k) for k in range(pair.n_statistics)]
        self.totals = self._sums(np.arange(shape[0]))

    def of(self, members: Ints) -> Told:
        """The words of a cluster, from the positions of its members."""
        rows = self._part(members)
        score, value = self.rule.telling(self._sums(rows), self.totals)
        order = np.argsort(-np.abs(score), kind="stable")[:MARKS].tolist()
        if self.rule.name == "lift":
            words = self._covering(rows, score, len(members)) or [i for i in order if score[i] > 0][:WORDS]
        else:
            words = best_names(np.where(score > 0, score, -np.inf), self.texts, WORDS - 1)
        against = best_names(np.where(score < 0, -score, -np.inf), self.texts, AGAINST)
        marks = [(i, float(score[i]), float(value[i])) for i in order if score[i] != 0]
        return Told(words, against, self._covered(rows, words), marks)

    def _sums(self, rows: Ints) -> Floats:
        return np.stack([np.asarray(matrix[rows].sum(axis=0)).ravel() for matrix in self.statistics], axis=-1)

    def _part(self, members: Ints) -> Ints:
        """The members, or so many of them, drawn evenly, as are looked at."""
        entries = int(np.diff(self.counts.indptr)[members].sum())
        if entries <= MOST_ENTRIES:
            return members
        rng = np.random.default_rng([self.seed, len(members)])
        keep = max(1, int(len(members) * MOST_ENTRIES / entries))
        return np.sort(rng.choice(members, keep, replace=False))

    def _covered(self, members: Ints, words: Sequence[int]) -> float:
        """Share of the members with at least one of the words."""
        inside = self.counts[members]
        wanted = np.zeros(inside.shape[1], dtype=bool)
        wanted[[i * inside.shape[1] // len(self.texts) for i in words]] = True
        rows = np.repeat(np.arange(inside.shape[0]), np.diff(inside.indptr))
        return len(np.unique(rows[wanted[inside.indices]])) / max(inside.shape[0], 1)

    def _covering(self, members: Ints, score: Floats, n_members: int) -> list[int]:
        """Words of counts, each picked with the members that have none yet weighing most."""
        inside = self.counts[members]
        by_column = sparse.csc_array(inside)
        least = min(max(3.0, LEAST_SHARE * n_members), 0.5 * inside.shape[0])
        enough = (np.diff(by_column.indptr) >= least) & (score > 0) & (score >= FLOOR * score.max(initial=0.0))
        weights, words = np.ones(inside.shape[0]), list[int]()
        while len(words) < WORDS:
            now, _ = self.rule.telling((inside.T @ weights)[:, None], self.totals)
            i = picked(np.where(enough & (now > 0), now, -np.inf), self.texts, words)
            if i is None:
                break
            words.append(i)
            weights[by_column.indices[by_column.indptr[i] : by_column.indptr[i + 1]]] *= FADE
        return words
