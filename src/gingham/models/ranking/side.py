"""Tables about items and people: new items, and people without a basket, are ranked by whom they resemble.

The score of a new item i with features g_i is what a ridge regression makes of the scores of the known items, whose
features are the rows of F, whoever the user is:

    score(u, i) = Σ_k score(u, k) h_ki + μ |N(u)|^−.4 Σ_{j ∈ N(u)} f_j·g_i,   h_i = F (F'F + λ I)⁻¹ g_i,

with a constant among the features that is not shrunk, and features that the basket shares with the item. People without
a basket get Σ_u h_u x_u, the same regression of the baskets of others. λ and μ are chosen on items (people) whose
baskets are hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from gingham.arrays import Floats, Ints
from gingham.data import Mode
from gingham.data.adapt import frame_values, is_frame
from gingham.data.sample import joined_ids
from gingham.engine.threads import one_blas_thread
from gingham.errors import GinghamError
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.boards import SCALE
from gingham.models.ranking.fit import climb, ndcg
from gingham.models.ranking.kernels import times
from gingham.storage import savable

Sides: TypeAlias = Mapping[str, Any]  # a table with one row per item, by the name of the column of ids
SHARED = 2  # rows that must hold a word: what only one has says nothing of others
MOST_WORDS = 2_000  # per column
BINS = 10  # of a column of numbers
FOLDS, HIDDEN = 5, 0.2  # of the items that are hidden to choose λ and μ; share of the users
MOST_PROBED = 2_000  # users that judge, of each fold
STRENGTH, FACTOR = 10.0, 3.0  # where the search for λ begins, and its steps
MIXED = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0)  # μ, in units of what makes both parts vary alike


def with_tables(
    modes: tuple[Mode, Mode], side: Sides | None
) -> tuple[tuple[Mode, Mode], list[sparse.csr_array | None]]:
    """Both modes with the items of the tables, and the features of their items, None where there is no table."""
    found: list[sparse.csr_array | None] = [None, None]
    names, own = [mode.name for mode in modes], list(modes)
    for name, table in (side or {}).items():
        if name not in names:
            raise GinghamError(f"side= names {name!r}; the columns are {', '.join(map(repr, names))}.")
        if not is_frame(table):
            raise GinghamError(f"side[{name!r}] must be a data frame with a column of ids and columns about them.")
        values = frame_values(table)
        id_column = name if name in values else next(iter(values), None)
        if id_column is None or len(values) < 2:
            raise GinghamError(f"side[{name!r}] needs a column of ids and at least one other column.")
        at, ids = names.index(name), np.array(values.pop(id_column))
        if any(value is None for value in ids.tolist()) or len(np.unique(ids)) < len(ids):
            raise GinghamError(f"side[{name!r}] needs one row per id: its column {id_column!r} repeats or lacks one.")
        if ids.dtype.kind != modes[at].items.dtype.kind:
            raise GinghamError(f"side[{name!r}]: ids have another type than those of the pairs.")
        own[at] = Mode.of(joined_ids([modes[at].items, ids]), name)
        parts = [part for column in values.values() if (part := _features(column)) is not None]
        rows = sparse.hstack([*parts, np.ones((len(ids), 1), np.float32)], format="csr")
        place = own[at].encode(ids)
        chosen = sparse.csr_array(
            (np.ones(len(ids), np.float32), (place, np.arange(len(ids)))), shape=(own[at].n_items, len(ids))
        )
        found[at] = sparse.csr_array(chosen @ rows)
    return (own[0], own[1]), found


def _features(values: list[object]) -> sparse.csr_array | None:
    """A column as features of its rows: bins of numbers, and the words of everything else, rare ones counting more."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, (int, float, np.number)) for value in known) and len(set(known)) > BINS:
        numbers = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        edges = np.unique(np.nanquantile(numbers, np.linspace(0, 1, BINS + 1)[1:-1]))
        bins, there = np.searchsorted(edges, numbers, side="right"), np.isfinite(numbers)
        shape = (len(values), len(edges) + 1)
        return sparse.csr_array((np.ones(int(there.sum()), np.float32), (np.flatnonzero(there), bins[there])), shape)
    texts = ["" if value is None else str(value) for value in values]
    try:
        words = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", dtype=np.float32).fit_transform(texts)
    except ValueError:  # there are no words
        return None
    # Rare words are left out only now: a row of which the others are few says little, and must not count as a whole.
    rows = np.bincount(words.indices, minlength=words.shape[1])
    shared = np.flatnonzero(rows >= SHARED)
    kept = np.sort(shared[np.argsort(-rows[shared], kind="stable")[:MOST_WORDS]])
    return sparse.csr_array(words[:, kept]) if len(kept) else None


def regression(features: sparse.csr_array, new: sparse.csr_array, strength: float) -> Floats:
    """h of each new row, float32 (rows of ``features``, rows of ``new``); the last feature is the constant."""
    square = (features.T @ features).toarray().astype(np.float64)
    square[np.diag_indices(len(square) - 1)] += strength
    square[-1, -1] += 1e-6
    with one_blas_thread():
        solved = np.linalg.solve(square, new.T.toarray()).astype(np.float32)
        return np.asarray(features @ solved)


@savable
@dataclass(frozen=True, eq=False)
class NewItems:
    """Scores of items that nobody has taken yet, from those of known items and from the features of the basket.

    Attributes
    ----------
    known, new : codes of items
    table : float32 (known items, new items), the h of the regression
    content : float32 (n_items, new items), what an item of the basket adds by its features
    """

    known: Ints
    new: Ints
    table: Floats
    content: Floats

    def spread(self, rows: Floats) -> None:
        """Write what is linear in the known items beside it, in rows (n, n_items)."""
        with one_blas_thread():
            rows[:, self.new] = rows[:, self.known] @ self.table

    def fill(self, scores: Floats, baskets: Baskets) -> None:
        """Write the scores of the new items beside those of the known ones, (n_users, n_items)."""
        self.spread(scores)
        scores[:, self.new] += baskets.power(SCALE)[:, None].astype(np.float32) * times(baskets.taken, self.content)

    def pulls(self, basket: Ints) -> Floats:
        """What the features of each item of one basket add, (items of the basket, new items)."""
        return self.content[basket] * float(max(len(basket), 1)) ** SCALE


def fit_new_items(
    features: sparse.csr_array, baskets: Baskets, scorer: Callable[[Baskets], Floats], rng: np.random.Generator
) -> tuple[NewItems | None, dict[str, dict[str, float]]]:
    """Regressions for all items that nobody has taken; λ and μ rank items best that are hidden from every basket."""
    there, taken = np.diff(features.indptr) > 0, baskets.popularity > 0
    known, new = np.flatnonzero(there & taken), np.flatnonzero(there & ~taken)
    tried: dict[str, dict[str, float]] = {}
    if len(known) < 2 or len(new) == 0:
        return None, tried
    content = sparse.csr_array(features[:, :-1])
    folds: list[tuple[Ints, Ints, Floats, Floats, sparse.csr_array]] = []
    for hidden in np.array_split(rng.permutation(known), FOLDS):
        hidden, others = np.sort(hidden), np.setdiff1d(known, hidden)
        mine = baskets.of_items(hidden).sizes
        users = np.flatnonzero((mine > 0) & (mine < baskets.sizes))  # people with an empty basket get other lists
        users = users if len(users) else np.flatnonzero(mine > 0)
        some = baskets.of_users(np.sort(rng.choice(users, min(len(users), MOST_PROBED), replace=False)))
        visible = some.without(hidden)
        like = np.asarray(visible.taken @ (content @ content[hidden].T).toarray()) * visible.power(SCALE)[:, None]
        folds.append((others, hidden, scorer(visible)[:, others], like, some.of_items(hidden).taken))
    units: dict[float, float] = {}
    mixtures: dict[float, dict[float, float]] = {}

    def worth(strength: float) -> float:
        """NDCG of the best mixture of the regression and the content for one λ."""
        with one_blas_thread():
            found = [scores @ regression(features[a], features[b], strength) for a, b, scores, _, _ in folds]
        likes = [like for _, _, _, like, _ in folds]
        units[strength] = float(sum(map(np.std, found)) / max(sum(map(np.std, likes)), 1e-12))
        mixtures[strength] = {
            share: float(np.mean([
                _ndcg(one + share * units[strength] * like, away) for one, like, (*_, away) in zip(found, likes, folds)
            ]))
            for share in MIXED
        }  # fmt: skip
        return max(mixtures[strength].values())

    strength, tried["new_items"] = climb(worth, STRENGTH, FACTOR, 6)
    mixed = mixtures[strength]
    tried["new_items_content"] = {str(share): value for share, value in mixed.items()}
    weight = max(mixed, key=mixed.__getitem__) * units[strength]
    table = regression(features[known], features[new], strength)
    return NewItems(known, new, table, np.float32(weight) * (content @ content[new].T).toarray()), tried


def _ndcg(scores: Floats, hidden: sparse.csr_array) -> float:
    nothing = sparse.csr_array(hidden.shape, dtype=np.float32)
    return float(ndcg(np.ascontiguousarray(scores, dtype=np.float32), nothing, hidden).mean())


@savable
@dataclass(frozen=True, eq=False)
class NewPeople:
    """Scores for people without a basket: features of all users, float32 (n_users, p), times ``table`` (p, n_items)."""

    features: Floats
    table: Floats

    def scores(self, users: Ints) -> Floats:
        with one_blas_thread():
            return self.features[users] @ self.table


def fit_new_people(
    features: sparse.csr_array, baskets: Baskets, rng: np.random.Generator
) -> tuple[NewPeople | None, dict[str, dict[str, float]]]:
    """The regression of baskets on the features of people; λ ranks best for people whose baskets are hidden."""
    there = np.flatnonzero((np.diff(features.indptr) > 0) & (baskets.sizes > 0))
    if len(there) < 2:
        return None, {}
    hidden = np.sort(rng.choice(there, max(round(HIDDEN * len(there)), 1), replace=False))
    others, hidden = np.setdiff1d(there, hidden), hidden[:MOST_PROBED]
    away = baskets.of_users(hidden).taken

    def table(users: Ints, strength: float) -> Floats:
        coefficients = regression(features[users], sparse.eye_array(features.shape[1], format="csr"), strength)
        return np.asarray(baskets.of_users(users).taken.T @ coefficients, dtype=np.float32).T

    def worth(strength: float) -> float:
        return _ndcg(np.asarray(features[hidden] @ table(others, strength)), away)

    strength, tried = climb(worth, STRENGTH, FACTOR, 6)
    return NewPeople(features.toarray(), np.ascontiguousarray(table(there, strength))), {"new_people": tried}
