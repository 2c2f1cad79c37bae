"""BasketRanker: what will this user want next, and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeAlias, Unpack

import numpy as np
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.data import Mode
from gingham.data.adapt import Columns, frame_of, id_columns
from gingham.data.partitioned import PartitionedTable
from gingham.data.sources import opened
from gingham.engine.place import on_torch
from gingham.engine.threads import one_blas_thread, over_blocks
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.models.base import Persistent
from gingham.models.listed import Listed
from gingham.models.questions import Predicted
from gingham.models.ranking.baskets import Baskets
from gingham.models.ranking.boards import Board, coarser, compressed, readable
from gingham.models.ranking.factors import fit_factors
from gingham.models.ranking.fit import AT, MEMBERS, N_FACTORS, Choice, choose, choose_dislike, fit_ranking, ndcg
from gingham.models.ranking.kernels import best
from gingham.models.ranking.rows import PairRows, degrees
from gingham.models.ranking.rules import RuleArguments, Rules, free_places, moved_by, read_rules
from gingham.models.ranking.side import Sides, fit_new_items, fit_new_people, with_tables
from gingham.models.ranking.summary import NamedBoard, Reasons, named, reasons_of, summary_groups, telling_items
from gingham.summary.values import Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.models.ranking.scattered import ScatteredRows
    from gingham.summary.item_tables import ItemInfo

BLOCK = 512  # users that are scored at a time
MOST_GROUPS, LEAST_ITEMS = 600, 3  # of the board that stands for the ranking: groups a side, items a group on average
SUMMARY_SWEEPS = 5  # of factors that choose the size of a summary
Ids: TypeAlias = ArrayLike | Sequence[object]  # one id or several


class Lists(NamedTuple):
    """Lists of several users.

    Attributes
    ----------
    places : (users, n), codes of items, best first; −1 where there are fewer
    scores : (users, n)
    free_places : (users, n), each item's place in a list without rules; 0 where nobody asked
    moved_by : rules without any one of which an item would not be listed
    """

    places: Ints
    scores: Floats
    free_places: Ints
    moved_by: list[list[str]]


class People(NamedTuple):
    """Whose lists are asked for.

    Attributes
    ----------
    baskets : what they have taken
    refused : what they have seen and do not want, None where that is not known of anybody
    users : (n,) their codes; None for people whom the model has never seen
    """

    baskets: Baskets
    refused: Baskets | None = None
    users: Ints | None = None

    def of(self, rows: Ints) -> People:
        return People(
            self.baskets.of_users(rows),
            None if self.refused is None else self.refused.of_users(rows),
            None if self.users is None else self.users[rows],
        )

    def strike_out(self, scores: Floats) -> None:
        """Make the scores of everything that they have seen −∞."""
        for seen in (self.baskets, self.refused):
            if seen is not None:
                scores[seen.owners, seen.taken.indices] = -np.inf


@dataclass(eq=False, repr=False)
class BasketRanker(Persistent):
    """Rank the items each user has not taken yet, from nothing but who took what.

    score(u, i) = intercept_i + |N(u)|^−.4 Σ_{j ∈ N(u), j ≠ i} pull[j, i] + factors(u, i), N(u) the user's basket: the
    average of *basket boards* (people who have items of these groups are drawn to those), of an item-to-item ridge
    whose prior knows the same item clusters, of implicit factors, and of random walks from the basket over the people
    who share it. Their weights, sizes and penalties are chosen inside `fit`, once, on a fifth of each user's items that
    is hidden from a first fit; ``selection_`` says what was tried.

    Parameters
    ----------
    members : tuple of {"boards", "items", "factors", "walk"}
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
    side : mapping from the name of a column of ids to a data frame, or None
        Tables about items or users, with one row per id: bins of numbers and the words of all other columns. Items and
        users of a table that stand in no pair are part of the model: such items are ranked by the known items that
        resemble them, such users get what people like them have taken.
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
    engine_ : {"cores", "files", "dask"}, where sums over users were computed

    Notes
    -----
    Absent pairs are not zeros of a rating: they are what may be recommended. A user with an empty basket gets the most
    popular items, or those of people alike where ``side`` tells. A pair whose weights sum to less than 0 is *refused*:
    it is not listed again, and what it would pull is subtracted, times a factor that is chosen on hidden items
    (``selection_["settings"]["dislike"]``; 0 where dislikes do not help).

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
        "engine_",
        "groups_",
        "group_names_",
        "_ranking",
        "_board",
        "_refused",
        "_dislike",
        "_new_items",
        "_new_people",
    )
    members: tuple[str, ...] = MEMBERS
    n_boards: int = 4
    n_factors: int = N_FACTORS
    min_count: float = 1.0
    n_groups: int | None = None
    names: Mapping[object, str] | None = None
    side: Sides | None = None
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
        for name, or_none in (("n_boards", ""), ("n_factors", ""), ("n_groups", ", or None")):
            if not (or_none and getattr(self, name) is None):
                _check_positive(name, getattr(self, name), or_none)
        if not self.min_count > 0:
            raise GinghamError(f"min_count={self.min_count!r} must be above 0.")
        on_torch(self.backend)

    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        item_info: ItemInfo | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Learn from pairs (user, item), shape (N, 2): ids of any kind, an array, a list of pairs or a frame.

        Paths, queries, streams and dask frames are read as in :doc:`/guide/scale`; where a dask client is current,
        its workers hold the baskets and make all sums over users.

        Repeated rows and ``sample_weight`` are counts; they add up, and a pair is taken when its sum is at least
        ``min_count``. How often it was taken beyond that is not used. A pair whose sum is below 0 is refused: give what
        was seen but not wanted a negative weight, or a negative label ``y`` (labels are then degrees, which multiply
        the weights; labels without a negative one say nothing). ``item_info`` are tables about users or items, for
        summaries (see :func:`gingham.summarize`). ``checkpoint`` keeps what was chosen and the factors, see
        ``gingham.fitting.checkpoints``.
        """
        self._check()
        table = PartitionedTable.of(X, y, sample_weight, labelled=False)
        checkpoint = checkpoint.bound_to(self, *((X, y, sample_weight) if table is None else table.names))
        rows = self._rows(X, y, sample_weight) if table is None else self._partitions(table)
        (users, items), about = with_tables(rows.modes, self.side)
        baskets, refused = rows.baskets((users, items), self.min_count)
        if baskets.n_taken == 0:
            raise GinghamError(f"No pair was taken {self.min_count:g} times or more: the ranking has no data.")
        seeds = np.random.SeedSequence(int(check_random_state(self.random_state).randint(2**31 - 1))).spawn(3)
        choosing, fitting, summary = (np.random.default_rng(seed) for seed in seeds)
        members = tuple(name for name in MEMBERS if name in self.members)
        chosen = checkpoint.stage("choice").result(lambda: choose(baskets, members, choosing, self.backend)._to_file())
        choice = Choice._from_file(chosen)
        ranking, board, factors = fit_ranking(
            baskets, choice, int(self.n_boards), int(self.n_factors), fitting, self.backend, checkpoint
        )
        place, baskets = baskets.place, baskets.whole()
        self.users_, self.items_ = users.items, items.items
        self.baskets_ = baskets
        self.selection_: dict[str, Any] = {
            "settings": choice.settings._asdict(),
            "tried": choice.tried,
            "users": choice.n_users,
        }
        self._ranking, self._board, self._refused, self._dislike = ranking, board, refused, 0.0
        if refused is not None:
            further = np.random.default_rng(seeds[0].spawn(1)[0])
            self._dislike, tried = choose_dislike(baskets, refused, choice, int(self.n_boards), further, self.backend)
            self.selection_["settings"]["dislike"] = self._dislike
            self.selection_["tried"] |= tried
        self._new_items = self._new_people = None
        further = np.random.default_rng(seeds[1].spawn(1)[0])
        if about[0] is not None:
            self._new_people, tried = fit_new_people(about[0], baskets, further)
            self.selection_["tried"] |= tried
        if about[1] is not None:
            self._new_items, tried = fit_new_items(about[1], baskets, ranking.scorer(self.backend), further)
            self.selection_["tried"] |= tried
        if self._new_items is not None:
            new = self._new_items
            factors.items[new.new] = new.table.T @ factors.items[new.known]
        self.item_factors_ = factors.items
        self.groups_ = summary_groups(baskets, factors.items, self.n_groups, summary)
        self.group_names_ = named(self.item_names_, telling_items(baskets, self.groups_))
        self.side_names_ = (users.name, items.name)
        self._remember(None, 0, item_info)  # the baskets are part of the model
        self.engine_ = place
        return self

    def _partitions(self, table: PartitionedTable) -> ScatteredRows:
        from gingham.models.ranking.scattered import ScatteredRows

        rows = ScatteredRows(table)
        self.n_features_in_ = len(rows.modes)
        self.feature_names_in_ = np.array([mode.name for mode in rows.modes], dtype=object)
        return rows

    def _rows(self, X: TableLike, y: ArrayLike | None, sample_weight: ArrayLike | None) -> PairRows:
        X, y, sample_weight = opened(X, y, sample_weight)
        columns = self._columns(X, reset=True)
        return PairRows(columns, degrees(y, sample_weight, len(columns.columns[0])))

    def _columns(self, X: TableLike, reset: bool) -> Columns:
        columns = id_columns(X)
        validate_data(self, X, skip_check_array=True, reset=reset)
        if len(columns.columns) != 2:
            raise GinghamError(f"A ranking needs pairs (user, item): n_features = {len(columns.columns)}, not 2.")
        return columns

    def _has_data(self) -> bool:
        return True  # the baskets are part of the model

    def _observed(self, *data: Any) -> Observed:
        """Who took what, counted against chance: items by their groups, users by the group they take most from."""
        check_is_fitted(self)
        users, items = self.side_names_
        taken: Sequence[Any] = self.baskets_.taken.tocoo().coords
        if data:
            sides = (Mode(users, self.users_), Mode(items, self.items_))
            taken = [mode.encode(column) for mode, column in zip(sides, id_columns(data[0]).columns)]
        relation = Relation((0, 1), tuple(np.asarray(c, dtype=np.int32) for c in taken), "lift", label="taken")
        titles = {1: np.array(self.item_names_, dtype=object)} if self.names else {}
        return Observed(
            (Mode(users, self.users_), Mode(items, self.items_)),
            (relation,),
            (None, self.groups_),
            given=(False, self.n_groups is not None),
            refit=lambda kept: self._refit(relation, kept),
            titles=titles,
        )

    def _listed_rows(self, data: tuple[Any, ...] | None) -> Listed:
        if data is None:
            users, items = self.baskets_.taken.tocoo().coords
            weights = None
            if self._refused is not None:
                others = self._refused.taken.tocoo().coords
                weights = np.repeat([float(self.min_count), -1.0], [len(users), len(others[0])])
                users, items = np.concatenate([users, others[0]]), np.concatenate([items, others[1]])
            return Listed((self.users_[users], self.items_[items]), self.side_names_, weights=weights)
        X, y, weights = (*data, None, None)[:3]
        columns, names = self._columns(X, reset=False)
        return Listed(columns, names, weights=degrees(y, weights, len(columns[0])))

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
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
        return _codes("User", self.users_, users, ". For a new user, call recommend_for(basket).")

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
        return _codes("Item", self.items_, items, ": it cannot be ranked.")

    def _known(self, users: Ids) -> People:
        return self._coded(self._user_codes(users))

    def _coded(self, codes: Ints) -> People:
        return People(self.baskets_, self._refused, np.arange(len(self.users_))).of(codes)

    def _stranger(self, basket: Ids, disliked: Ids) -> People:
        """A person the model has never seen."""
        return People(self._basket(basket), self._basket(disliked) if len(_listed(disliked)) else None)

    def _basket(self, basket: Ids) -> Baskets:
        """One row of items; unknown ones are left out with a warning."""
        listed = _listed(basket)
        codes = Mode("item", self.items_).encode(listed) if len(listed) else np.zeros(0, dtype=np.int32)
        known = codes[codes >= 0]
        if len(known) < len(codes):
            unknown = [str(item) for item, code in zip(listed.tolist(), codes) if code < 0]
            warnings.warn(
                f"Items that were not in the training data are ignored in the basket: {', '.join(unknown[:5])}"
                f"{', …' if len(unknown) > 5 else ''}.",
                UnseenItemsWarning,
                stacklevel=4,
            )
        return Baskets.of(np.zeros(len(known), dtype=np.int64), known, (1, len(self.items_)))

    def _scored(self, people: People, scorer: Callable[[Baskets], Floats]) -> Floats:
        """Scores (n_users, n_items): what the basket pulls, less what refused items would pull."""
        baskets = people.baskets
        scores = scorer(baskets)
        empty = baskets.sizes == 0
        if people.refused is not None and self._dislike:
            rows = np.flatnonzero(people.refused.sizes > 0)
            others = people.refused.of_users(rows)
            scores[rows] -= np.float32(self._dislike) * (scorer(others) - self._ranking.intercept)
            empty[rows] = False
        if self._new_items is not None:
            self._new_items.fill(scores, baskets)
        if empty.any():  # nothing pulls: what most people take, or people alike
            scores[empty] = self._popular()
            if self._new_people is not None and people.users is not None:
                scores[empty] = self._new_people.scores(people.users[empty])
        return scores

    def _popular(self) -> Floats:
        return (self.baskets_.popularity / max(self.baskets_.n_users, 1)).astype(np.float32)

    def _rules(self, n: int, arguments: RuleArguments) -> Rules | None:
        """The rules of a call as arrays over ``items_``; None where there are none."""
        name = self.side_names_[1]
        known = None if self._item_info is None else self._item_info.get(name)
        return read_rules(Mode(name, self.items_), self.baskets_.popularity, n, known, **arguments)

    def _top(self, people: People, n: int, exclude_seen: bool, arguments: RuleArguments, told: bool = False) -> Lists:
        """The best lists, blocks of users at a time; ``told`` asks which rule moved which item."""
        _check_positive("n", n)
        n = min(int(n), len(self.items_))
        rules = self._rules(n, arguments)
        scorer, n_users = self._ranking.scorer(self.backend), people.baskets.n_users
        places = np.empty((n_users, n), dtype=np.int64)
        values = np.full(places.shape, np.nan, dtype=np.float32)
        free, moved = np.zeros(places.shape, dtype=np.int64), [[""] * n for _ in range(n_users)]
        short: dict[str, list[int]] = {}

        def run(start: int) -> None:
            part = people.of(np.arange(start, min(start + BLOCK, n_users)))
            scores = self._scored(part, scorer)
            if exclude_seen:
                part.strike_out(scores)
            if rules is None:
                found = best(scores, n)
            else:
                found, missed = rules.lists(ruled := scores.copy(), n)
                for name, rows in missed.items():
                    short.setdefault(name, []).extend((start + rows).tolist())
                if told:
                    free[start : start + BLOCK] = free_places(scores, found)
                    moved[start : start + BLOCK] = moved_by(rules, scores, found, found, n)
                scores = ruled
            places[start : start + BLOCK] = found
            values[start : start + BLOCK] = np.where(
                found >= 0, np.take_along_axis(scores, np.maximum(found, 0), 1), np.nan
            )

        with one_blas_thread():
            list(over_blocks(run, range(0, n_users, BLOCK)))
        for name, lists in short.items():
            warnings.warn(
                f"No list obeys the rule {name!r} for {len(lists):,} of {n_users:,} users (the first stands at "
                f"place {min(lists)}): their lists hold as many such items as there are.",
                UserWarning,
                stacklevel=3,
            )
        return Lists(places, values, free, moved)

    def top(self, users: Ids, n: int = AT, exclude_seen: bool = True, **rules: Unpack[RuleArguments]) -> AnyArray:
        """The ids of the n best items of each user, best first, shape (users, n): `recommend` without reasons, faster.

        Where fewer are left, the row ends with None (the array is then of objects).
        """
        check_is_fitted(self)
        places = self._top(self._known(users), n, exclude_seen, rules).places
        if (places >= 0).all():
            return self.items_[places]
        found = np.empty(places.shape, dtype=object)
        found[places >= 0] = self.items_[places[places >= 0]]
        return found

    def recommend(  # type: ignore[override]  # a ranking knows users and items, and gives reasons
        self,
        users: Ids,
        n: int = AT,
        exclude_seen: bool = True,
        reasons: bool = True,
        backend: str | None = None,
        **rules: Unpack[RuleArguments],
    ) -> Any:
        """The n best items of each user as a frame: user, item, place, score, base, reasons; titles where there are.

        Parameters
        ----------
        users : id or list of ids
        n : int, the length of a list
        exclude_seen : bool
            Whether what a user has already is left out.
        reasons : bool
            Whether to say in words which groups of the basket pull the item up (+) and down (−), with their shares of
            all that pulls; `explain` has the numbers.
        backend : {"pandas", "polars", "pyarrow"}, the kind of frame; the first that is installed
        items, exclude : ids
            Only these items may be listed; these items are not listed.
        at_most : mapping from a column, or a pair (column, value), to a number
            How many items with the same value of the column, or with this value, a list may hold, such as
            ``{"brand": 3}``. A number below 1 is a share of the list. Items without a value are not limited.
        at_least : mapping from a column of yes and no, or a pair (column, value), to a number
            How many items with a yes, or with this value, a list must hold, such as ``{"long_tail": 0.2}``.
        item_info : frame
            One row per item with the columns that the rules name; by default the table about items that the fit was
            given. The column ``long_tail`` always exists: it marks the items outside the most popular ones that
            together have 80 % of all interactions.

        Notes
        -----
        A list that obeys rules has the highest sum of scores of all lists that obey them. The frame then has two more
        columns: ``free_place``, the item's place in a list without rules, and ``rule``, the rules without any one of
        which the item would not be listed.
        """
        check_is_fitted(self)
        return self._frame(_listed(users), self._known(users), n, exclude_seen, reasons, backend, rules)

    def recommend_for(
        self,
        basket: Ids,
        n: int = AT,
        exclude_seen: bool = True,
        reasons: bool = True,
        backend: str | None = None,
        disliked: Ids = (),
        **rules: Unpack[RuleArguments],
    ) -> Any:
        """The n best items for somebody the model has never seen, by what is in the basket alone; no fit.

        ``disliked`` are items that the person has seen and does not want. The rules are those of `recommend`.
        """
        check_is_fitted(self)
        return self._frame(None, self._stranger(basket, disliked), n, exclude_seen, reasons, backend, rules)

    def _frame(
        self,
        users: AnyArray | None,
        people: People,
        n: int,
        exclude_seen: bool,
        reasons: bool,
        backend: str | None,
        rules: RuleArguments,
    ) -> Any:
        places, scores, free, moved = self._top(people, n, exclude_seen, rules, told=True)
        rows, ranks = np.nonzero(places >= 0)
        items = places[rows, ranks]
        table: dict[str, Sequence[object]] = {} if users is None else {"user": users[rows].tolist()}
        names = self.item_names_
        table |= {
            "item": self.items_[items].tolist(),
            **({"title": [names[i] for i in items]} if self.names else {}),
            "place": (ranks + 1).tolist(),
            "score": scores[rows, ranks].astype(float).tolist(),
        }
        if rules:
            table |= {"free_place": free[rows, ranks].tolist(), "rule": [moved[r][k] for r, k in zip(rows, ranks)]}
        if reasons:
            listed = np.split(items, np.searchsorted(rows, np.arange(1, len(places))))
            told = [
                why for row, mine in enumerate(listed) for why in self._explain(people.of(np.array([row])), mine, names)
            ]
            table |= {"base": [why.base for why in told], "reasons": [str(why) for why in told]}
        return frame_of(table, backend)

    def scores(self, users: Ids, items: Ids) -> Floats:
        """The score of each pair (users[r], items[r]), shape (N,); an item that was taken is judged without itself."""
        check_is_fitted(self)
        rows, columns = self._user_codes(users), self.item_codes(items)
        if len(rows) != len(columns):
            raise GinghamError(f"users has {len(rows)} entries, items {len(columns)}: they must have the same length.")
        different, where = np.unique(rows, return_inverse=True)
        scorer, out = self._ranking.scorer(self.backend), np.empty(len(rows), dtype=np.float32)
        order = np.argsort(where, kind="stable")
        ends = np.searchsorted(where[order], np.arange(0, len(different) + BLOCK, BLOCK))
        with one_blas_thread():
            for block, (a, b) in enumerate(pairwise(ends)):
                mine = order[a:b]
                part = self._coded(different[block * BLOCK : (block + 1) * BLOCK])
                out[mine] = self._scored(part, scorer)[where[mine] - block * BLOCK, columns[mine]]
        return out

    def explain(  # type: ignore[override]
        self, user: object, items: Ids | None = None, n: int = AT, rules: RuleArguments | None = None
    ) -> Any:
        """Why each of the items has its score for a user: a list of parts that add up to it exactly.

        A single row, ``explain((user, item))``, gets its one reason; a single user or item, its place among the groups.
        With ``rules``, a mapping with the rules of `recommend`, each reason also names those that put the item on the
        user's list of n, or keep it off.
        """
        check_is_fitted(self)
        if items is None:
            if isinstance(user, (tuple, list)) and len(user) == 2:
                return self.explain(user[0], [user[1]])[0]
            return super().explain(user)
        person, targets = self._known([user]), self.item_codes(items)
        told = self._explain(person, targets, self.item_names_)
        read = self._rules(n, rules or {})
        if read is None:
            return told
        scores = self._scored(person, self._ranking.scorer(self.backend))
        person.strike_out(scores)
        listed, _ = read.lists(scores.copy(), n)
        moved = moved_by(read, scores, listed, targets[None, :], n)[0]
        words = [("listed" if target in listed[0] else "left out") + " because of " for target in targets]
        return [replace(why, rule=word + by if by else "") for why, word, by in zip(told, words, moved)]

    def explain_for(self, basket: Ids, items: Ids, disliked: Ids = ()) -> list[Reasons]:
        """The same for somebody the model has never seen."""
        check_is_fitted(self)
        return self._explain(self._stranger(basket, disliked), self.item_codes(items), self.item_names_)

    def _explain(self, person: People, targets: Ints, names: list[str]) -> list[Reasons]:
        """Popularity, what each item of the basket adds, and what refused items take away."""
        mine, others = person.baskets.taken.indices, np.zeros(0, dtype=np.int32)
        if person.refused is not None and self._dislike:
            others = person.refused.taken.indices
        basket, new = np.concatenate([mine, others]), self._new_items
        if len(basket) == 0:
            pulls = np.zeros((0, len(targets)))
            base = self._scored(person, self._ranking.scorer(self.backend))[0, targets]
        else:
            where = targets if new is None else np.arange(len(self.items_))
            rows = np.concatenate([
                self._ranking.shares(mine, where), -self._dislike * self._ranking.shares(others, where),
                self._ranking.intercept[None, where].astype(np.float64),
            ])  # fmt: skip
            if new is not None:
                new.spread(rows)
                rows[: len(mine), new.new] += new.pulls(mine)
                rows = rows[:, targets]
            pulls, base = rows[:-1], rows[-1]
        return [
            reasons_of(self.items_[i], float(base[t]), pulls[:, t], basket, self.groups_, self.group_names_, names)
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
                part = self._coded(different[a : a + BLOCK])
                total += float(ndcg(self._scored(part, scorer), part.baskets.taken, hidden[a : a + BLOCK]).sum())
        return total / len(different)


def _check_positive(name: str, value: object, otherwise: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise GinghamError(f"{name}={value!r} must be an integer ≥ 1{otherwise}.")


def _codes(what: str, known: AnyArray, ids: Ids, advice: str) -> Ints:
    """The codes of ids; an unknown one is an error that ends with advice."""
    codes = Mode(what, known).encode(_listed(ids))
    if (codes < 0).any():
        first = _listed(ids).tolist()[int((codes < 0).argmax())]
        raise GinghamError(f"{what} {first!r} was not in the training data{advice}")
    return codes


def _listed(ids: Ids) -> AnyArray:
    """One id or several as a flat array."""
    several = hasattr(ids, "__len__") and not isinstance(ids, (str, bytes))
    array = np.asarray(ids if several else [ids])
    if array.ndim != 1:
        raise GinghamError("Give one id or a flat list of ids.")
    return array
