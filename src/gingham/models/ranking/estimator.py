"""BasketRanker: what will this user want next, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.data import Mode
from gingham.data.adapt import Columns, frame_of, id_columns
from gingham.data.sample import checked_weights
from gingham.engine.threads import one_blas_thread, over_blocks
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.models.base import Persistent
from gingham.models.questions import Predicted
from gingham.models.ranking import device
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.boards import Board, coarser, compressed, readable
from gingham.models.ranking.factors import fit_factors
from gingham.models.ranking.fit import AT, MEMBERS, N_FACTORS, choose, fit_ranking, ndcg
from gingham.models.ranking.kernels import best
from gingham.models.ranking.summary import NamedBoard, Reasons, named, reasons_of, summary_groups, telling_items
from gingham.summary.values import Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.summary.make_summary import ItemInfo

BLOCK = 512  # users that are scored at a time
MOST_GROUPS, LEAST_ITEMS = 600, 3  # of the board that stands for the ranking: groups a side, items a group on average
SUMMARY_SWEEPS = 5  # of factors that choose the size of a summary
Ids: TypeAlias = ArrayLike | Sequence[object]  # one id or several


@dataclass(eq=False, repr=False)
class BasketRanker(Persistent):
    """Rank the items each user has not taken yet, from nothing but who took what.

    score(u, i) = intercept_i + |N(u)|^−.4 Σ_{j ∈ N(u), j ≠ i} pull[j, i] + factors(u, i), N(u) the user's basket: the
    average of *basket boards* (people who have items of these groups are drawn to those), of an item-to-item ridge
    whose prior knows the same item clusters, and of implicit factors. Their weights, sizes and penalties are chosen
    inside `fit`, once, on a fifth of each user's items that is hidden from a first fit; ``selection_`` says what was
    tried.

    Parameters
    ----------
    members : tuple of {"boards", "items", "factors"}
        What may take part; a member that does not help gets weight 0.
    n_boards : int
        Number of boards, each over its own clustering of the items.
    n_factors : int
    min_count : float
        A pair (user, item) counts as taken when the weights of its rows (1 each by default) sum to at least this.
    n_groups : int or None
        Number of groups of items that reasons refer to; None chooses it by the number of items.
    names : mapping from item id to str, or None
        What items are called in reasons and in names of groups.
    backend : {"auto", "compiled", "torch"}
        Where the large tables are made; "auto" uses a GPU where there is one.
    random_state : int, RandomState or None

    Attributes
    ----------
    users_, items_ : ids
    baskets_ : who took what
    selection_ : dict
        ``settings`` chosen, ``tried`` with NDCG@20 on hidden items, and the number of ``users`` they were judged on.
    boards_ : list of NamedBoard
        The readable form, basket groups × target groups: one board for the whole ranking, and a coarse one.
    groups_ : array of shape (n_items,), the group that reasons count each item to
    group_names_ : list of str

    Notes
    -----
    Absent pairs are not zeros of a rating: they are what may be recommended. A user with an empty basket gets the most
    popular items.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham import BasketRanker
    >>> rng = np.random.default_rng(0)
    >>> user = rng.integers(0, 200, 4000)
    >>> item = 2 * rng.integers(0, 20, 4000) + user % 2   # even users take even items
    >>> model = BasketRanker(random_state=0).fit(np.column_stack([user, item]))
    >>> bool(np.all(model.top([0], 5)[0] % 2 == 0))
    True
    """

    _saved_attributes: ClassVar[tuple[str, ...]] = (
        "users_",
        "items_",
        "baskets_",
        "selection_",
        "item_factors_",
        "groups_",
        "group_names_",
        "_ranking",
        "_board",
    )
    members: tuple[str, ...] = MEMBERS
    n_boards: int = 4
    n_factors: int = N_FACTORS
    min_count: float = 1.0
    n_groups: int | None = None
    names: Mapping[object, str] | None = None
    backend: str = "auto"
    random_state: Seed = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    # fitting

    def _check(self) -> None:
        if not self.members or any(name not in MEMBERS for name in self.members):
            raise GinghamError(f"members={self.members!r}: choose some of {', '.join(MEMBERS)}.")
        for name in ("n_boards", "n_factors"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise GinghamError(f"{name}={value!r} must be a whole number from 1.")
        if self.n_groups is not None and (not isinstance(self.n_groups, (int, np.integer)) or self.n_groups < 1):
            raise GinghamError(f"n_groups={self.n_groups!r} must be a whole number from 1, or None.")
        if not self.min_count > 0:
            raise GinghamError(f"min_count={self.min_count!r} must be above 0.")
        device.on_torch(self.backend)

    def fit(
        self,
        X: TableLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        item_info: ItemInfo | None = None,
    ) -> Self:
        """Learn from pairs (user, item), shape (N, 2): ids of any kind, an array, a list of pairs or a frame.

        Repeated rows and ``sample_weight`` are counts; they add up, and a pair is taken when its sum is at least
        ``min_count``. How often it was taken beyond that is not used. ``item_info`` are tables about users or items,
        for summaries (see :func:`gingham.summarize`).
        """
        self._check()
        columns, names = self._columns(X, reset=True)
        weights = checked_weights(sample_weight, len(columns[0]))
        users, items = (Mode.of(column, name) for column, name in zip(columns, names))
        codes = users.encode(columns[0]).astype(np.int64) * items.n_items + items.encode(columns[1])
        pairs, where = np.unique(codes, return_inverse=True)
        taken = pairs[np.bincount(where.ravel(), weights, len(pairs)) >= self.min_count]
        if len(taken) == 0:
            raise GinghamError(f"No pair was taken {self.min_count:g} times or more: nothing can be learnt.")
        rows, places = np.divmod(taken, items.n_items)
        baskets = Baskets.of(rows, places, (users.n_items, items.n_items))
        seeds = np.random.SeedSequence(int(check_random_state(self.random_state).randint(2**31 - 1))).spawn(3)
        choosing, fitting, summary = (np.random.default_rng(seed) for seed in seeds)
        members = tuple(name for name in MEMBERS if name in self.members)
        choice = choose(baskets, members, choosing, self.backend)
        ranking, board, factors = fit_ranking(
            baskets, choice, int(self.n_boards), int(self.n_factors), fitting, self.backend
        )
        self.users_, self.items_ = users.items, items.items
        self.baskets_ = baskets
        self.selection_: dict[str, Any] = {
            "settings": choice.settings._asdict(),
            "tried": choice.tried,
            "users": choice.n_users,
        }
        self.item_factors_ = factors.items
        self.groups_ = summary_groups(baskets, factors.items, self.n_groups, summary)
        self.group_names_ = named(self.item_names_, telling_items(baskets, self.groups_))
        self._ranking, self._board = ranking, board
        self.side_names_ = (users.name, items.name)
        self._remember(None, 0, item_info)  # the baskets are part of the model
        return self

    def _columns(self, X: TableLike, reset: bool) -> Columns:
        columns = id_columns(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        if len(columns.columns) != 2:
            raise GinghamError(f"A ranking needs pairs (user, item): n_features = {len(columns.columns)}, not 2.")
        return columns

    def _has_data(self) -> bool:
        return True  # the baskets are part of the model

    def observed(self, *data: Any) -> Observed:
        """Who took what, counted against chance: items by their groups, users by the group they take most from."""
        check_is_fitted(self)
        taken = self.baskets_.taken.tocoo()
        users, items = getattr(self, "side_names_", ("user", "item"))
        relation = Relation((0, 1), tuple(np.asarray(c, dtype=np.int32) for c in taken.coords), "lift", label="taken")
        titles = {1: np.array(self.item_names_, dtype=object)} if self.names else {}
        return Observed(
            (Mode(users, self.users_), Mode(items, self.items_)),
            (relation,),
            (None, self.groups_),
            given=(False, self.n_groups is not None),
            refit=lambda kept: self._refit(relation, kept),
            titles=titles,
        )

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """Scores; how unsure a ranking is of them it cannot tell."""
        scores = self.scores(self.users_[codes[0]], self.items_[codes[1]]).astype(np.float64)
        return Predicted(scores, np.full(len(scores), np.nan))

    def _refit(self, relation: Relation, kept: Bools) -> Refit:
        """The groups of items that the other pairs make."""
        part = relation.take(kept)
        baskets = Baskets.of(part.codes[0], part.codes[1], (len(self.users_), len(self.items_)))
        rng = np.random.default_rng(0)
        penalty = float(self.selection_["settings"]["factor_penalty"])
        n_factors = min(int(self.n_factors), baskets.n_users, baskets.n_items)
        factors = fit_factors(baskets, n_factors, penalty, SUMMARY_SWEEPS, rng)
        return Refit((None, summary_groups(baskets, factors.items, int(self.groups_.max()) + 1, rng)))

    # facts

    @property
    def item_names_(self) -> list[str]:
        """What each item of ``items_`` is called."""
        names = self.names or {}
        return [str(names.get(item, item)) for item in self.items_.tolist()]

    def readable(self, n_groups: int | None = None) -> Board:
        """One board for the whole ranking, without its factors; 600 groups a side, if not told, or one for three items.

        It is the first board of the committee where there are too many items for a table items × items, and where
        the ranking consists of factors alone.
        """
        check_is_fitted(self)
        if n_groups is None:
            n_groups = max(1, min(MOST_GROUPS, self.baskets_.n_items // LEAST_ITEMS))
        rng = np.random.default_rng(0)
        if self._ranking.pull is None or not self._ranking.pull.any():
            return readable(self.baskets_, self._board, n_groups, rng)
        return compressed(self.baskets_, self._ranking.pull, self._ranking.intercept, n_groups, rng)

    @property
    def boards_(self) -> list[NamedBoard]:
        """The board that is nearest to the ranking and, beside it, a coarse one of the groups that reasons speak of."""
        fine = self.readable()
        coarse = coarser(fine, self.groups_, self.baskets_)
        return [NamedBoard.of(board, self.baskets_, self.item_names_) for board in (fine, coarse)]

    def board_scores(self, users: Ids) -> Floats:
        """Scores (users, items) by the readable board alone: how much of the ranking it explains."""
        return self.readable().scores(self.baskets_.of_users(self._user_codes(users)))

    # ranking

    def _user_codes(self, users: Ids) -> Ints:
        codes = Mode("user", self.users_).encode(_listed(users))
        if (codes < 0).any():
            at = int(np.flatnonzero(codes < 0)[0])
            raise GinghamError(
                f"User {_listed(users).tolist()[at]!r} was not in the training data. Rank for somebody new by what is "
                "in the basket: recommend_for(basket)."
            )
        return codes

    def basket_of(self, user: object) -> AnyArray:
        """The items that a user of the training data took."""
        check_is_fitted(self)
        return self.items_[self.baskets_.of_users(self._user_codes([user])).taken.indices]

    def has_taken(self, users: Ids, items: Ids) -> Bools:
        """Whether each of these users has each of these items in the basket of the training data."""
        check_is_fitted(self)
        sides = (("user", self.users_, users), ("item", self.items_, items))
        rows, columns = (Mode(name, known).encode(_listed(ids)) for name, known, ids in sides)
        both = (rows >= 0) & (columns >= 0)
        found = np.zeros(len(both), dtype=bool)
        found[both] = np.asarray(self.baskets_.taken[rows[both], columns[both]]).ravel() != 0
        return found

    def item_codes(self, items: Ids) -> Ints:
        """Positions of ids in ``items_``; an unknown id is an error."""
        codes = Mode("item", self.items_).encode(_listed(items))
        if (codes < 0).any():
            at = int(np.flatnonzero(codes < 0)[0])
            raise GinghamError(
                f"Item {_listed(items).tolist()[at]!r} was not in the training data: nothing is known of it."
            )
        return codes

    def _basket(self, basket: Ids) -> Baskets:
        """One row of a person the model has never seen; unknown items are left out with a warning."""
        listed = _listed(basket)
        codes = Mode("item", self.items_).encode(listed) if len(listed) else np.zeros(0, dtype=np.int32)
        known = codes[codes >= 0]
        if len(known) < len(codes):
            unknown = [str(item) for item, code in zip(listed.tolist(), codes) if code < 0]
            warnings.warn(
                f"Items that were not in the training data are left out of the basket: {', '.join(unknown[:5])}"
                f"{', …' if len(unknown) > 5 else ''}.",
                UnseenItemsWarning,
                stacklevel=3,
            )
        return Baskets.of(np.zeros(len(known), dtype=np.int64), known, (1, len(self.items_)))

    def _scored(self, baskets: Baskets, scorer: Callable[[Baskets], Floats]) -> Floats:
        scores = scorer(baskets)
        empty = baskets.sizes == 0
        if empty.any():  # nothing pulls: what most people take
            scores[empty] = self._popular()
        return scores

    def _popular(self) -> Floats:
        return (self.baskets_.popularity / max(self.baskets_.n_users, 1)).astype(np.float32)

    def _top(self, baskets: Baskets, n: int, exclude_seen: bool) -> tuple[Ints, Floats]:
        """Codes (users, n) of the best items, −1 where there are fewer, and their scores; blocks of users at a time."""
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise GinghamError(f"n={n!r} must be a whole number from 1.")
        n = min(int(n), len(self.items_))
        scorer = self._ranking.scorer(self.backend)
        places = np.empty((baskets.n_users, n), dtype=np.int64)
        values = np.full((baskets.n_users, n), np.nan, dtype=np.float32)

        def run(start: int) -> None:
            part = baskets.of_users(np.arange(start, min(start + BLOCK, baskets.n_users)))
            scores = self._scored(part, scorer)
            if exclude_seen:
                scores[np.repeat(np.arange(part.n_users), np.diff(part.taken.indptr)), part.taken.indices] = -np.inf
            found = best(scores, n)
            places[start : start + BLOCK] = found
            values[start : start + BLOCK] = np.where(
                found >= 0, np.take_along_axis(scores, np.maximum(found, 0), 1), np.nan
            )

        with one_blas_thread():
            list(over_blocks(run, range(0, baskets.n_users, BLOCK)))
        return places, values

    def top(self, users: Ids, n: int = AT, exclude_seen: bool = True) -> AnyArray:
        """The ids of the n best items of each user, best first, shape (users, n): `recommend` without reasons, faster.

        Where fewer are left, the row ends with None (the array is then of objects).
        """
        check_is_fitted(self)
        places = self._top(self.baskets_.of_users(self._user_codes(users)), n, exclude_seen)[0]
        if (places >= 0).all():
            return self.items_[places]
        found = np.empty(places.shape, dtype=object)
        found[places >= 0] = self.items_[places[places >= 0]]
        return found

    def recommend(  # type: ignore[override]  # a ranking knows users and items, and gives reasons
        self, users: Ids, n: int = AT, exclude_seen: bool = True, reasons: bool = True, backend: str | None = None
    ) -> Any:
        """The n best items of each user as a frame: user, item, place, score, base, reasons.

        ``reasons`` says in words which groups of the basket pull the item up (+) and down (−), with their shares of
        all that pulls; `explain` has the numbers. ``backend`` names the kind of frame (pandas, polars or pyarrow;
        the first that is installed).
        """
        check_is_fitted(self)
        codes = self._user_codes(users)
        return self._frame(_listed(users), self.baskets_.of_users(codes), n, exclude_seen, reasons, backend)

    def recommend_for(
        self,
        basket: Ids,
        n: int = AT,
        exclude_seen: bool = True,
        reasons: bool = True,
        backend: str | None = None,
    ) -> Any:
        """The n best items for somebody the model has never seen, by what is in the basket alone; no fit."""
        check_is_fitted(self)
        return self._frame(None, self._basket(basket), n, exclude_seen, reasons, backend)

    def _frame(
        self, users: AnyArray | None, baskets: Baskets, n: int, exclude_seen: bool, reasons: bool, backend: str | None
    ) -> Any:
        places, scores = self._top(baskets, n, exclude_seen)
        rows, ranks = np.nonzero(places >= 0)
        items = places[rows, ranks]
        table: dict[str, Sequence[object]] = {} if users is None else {"user": users[rows].tolist()}
        table |= {
            "item": self.items_[items].tolist(),
            "place": (ranks + 1).tolist(),
            "score": scores[rows, ranks].astype(float).tolist(),
        }
        if reasons:
            names, listed = self.item_names_, np.split(items, np.searchsorted(rows, np.arange(1, baskets.n_users)))
            told = [
                why
                for row, mine in enumerate(listed)
                for why in self._explain(baskets.of_users(np.array([row])), mine, names)
            ]
            table |= {"base": [why.base for why in told], "reasons": [str(why) for why in told]}
        return frame_of(table, backend)

    def scores(self, users: Ids, items: Ids) -> Floats:
        """The score of each pair (users[r], items[r]), shape (N,); an item that was taken is judged without itself."""
        check_is_fitted(self)
        rows, columns = self._user_codes(users), self.item_codes(items)
        if len(rows) != len(columns):
            raise GinghamError(f"users has {len(rows)} entries, items {len(columns)}: one of each makes a pair.")
        different, where = np.unique(rows, return_inverse=True)
        scorer, out = self._ranking.scorer(self.backend), np.empty(len(rows), dtype=np.float32)
        order = np.argsort(where, kind="stable")
        ends = np.searchsorted(where[order], np.arange(0, len(different) + BLOCK, BLOCK))
        with one_blas_thread():
            for block, (a, b) in enumerate(pairwise(ends)):
                mine = order[a:b]
                part = self.baskets_.of_users(different[block * BLOCK : (block + 1) * BLOCK])
                out[mine] = self._scored(part, scorer)[where[mine] - block * BLOCK, columns[mine]]
        return out

    def explain(self, user: object, items: Ids | None = None) -> Any:  # type: ignore[override]
        """Why each of the items has its score for a user: a list of parts that add up to it exactly.

        A single row, ``explain((user, item))``, gets its one reason; a single user or item, its place among the groups.
        """
        check_is_fitted(self)
        if items is None:
            if isinstance(user, (tuple, list)) and len(user) == 2:
                return self.explain(user[0], [user[1]])[0]
            return super().explain(user)
        return self._explain(self.baskets_.of_users(self._user_codes([user])), self.item_codes(items), self.item_names_)

    def explain_for(self, basket: Ids, items: Ids) -> list[Reasons]:
        """The same for somebody the model has never seen."""
        check_is_fitted(self)
        return self._explain(self._basket(basket), self.item_codes(items), self.item_names_)

    def _explain(self, basket: Baskets, targets: Ints, names: list[str]) -> list[Reasons]:
        mine = basket.taken.indices
        base = (self._ranking.intercept if len(mine) else self._popular())[targets].astype(np.float64)
        pulls = self._ranking.shares(mine, targets)
        return [
            reasons_of(self.items_[i], base[t], pulls[:, t], mine, self.groups_, self.group_names_, names)
            for t, i in enumerate(targets)
        ]

    def similar(  # type: ignore[override]  # of several items at once, by their factors
        self, items: Ids, n: int = 10, backend: str | None = None
    ) -> Any:
        """Items that are wanted by the same people (cosine of their factors), as a frame: item, similar, similarity."""
        check_is_fitted(self)
        codes = self.item_codes(items)
        length = np.maximum(np.linalg.norm(self.item_factors_, axis=1), 1e-12)
        with one_blas_thread():
            cosine = (self.item_factors_[codes] / length[codes, None]) @ (self.item_factors_ / length[:, None]).T
        cosine[np.arange(len(codes)), codes] = -np.inf
        places = best(cosine, min(n, max(len(self.items_) - 1, 1)))
        rows, at = np.nonzero(places >= 0)
        found = places[rows, at]
        table = {
            "item": self.items_[codes[rows]].tolist(),
            "similar": self.items_[found].tolist(),
            "similarity": cosine[rows, found].astype(float).tolist(),
        }
        return frame_of(table, backend)

    def score(self, X: TableLike, y: object = None) -> float:
        """Mean NDCG@20 of pairs the fit has not seen: their items among all that each user has not taken."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False).columns
        users, items = (Mode(n, ids).encode(c) for n, ids, c in zip("ui", (self.users_, self.items_), columns))
        known = (users >= 0) & (items >= 0)
        different, where = np.unique(users[known], return_inverse=True)
        if len(different) == 0:
            raise GinghamError("No pair has both a user and an item of the training data.")
        hidden = Baskets.of(where, items[known], (len(different), len(self.items_))).taken
        scorer, total = self._ranking.scorer(self.backend), 0.0
        with one_blas_thread():
            for a in range(0, len(different), BLOCK):
                part = self.baskets_.of_users(different[a : a + BLOCK])
                total += float(ndcg(self._scored(part, scorer), part.taken, hidden[a : a + BLOCK]).sum())
        return total / len(different)


def _listed(ids: Ids) -> AnyArray:
    """One id or several as a flat array."""
    several = hasattr(ids, "__len__") and not isinstance(ids, (str, bytes))
    array = np.asarray(ids if several else [ids])
    if array.ndim != 1:
        raise GinghamError("Give one id or a flat list of ids.")
    return array
