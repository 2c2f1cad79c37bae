"""Progressive validation of any model: members refitted block by block, each tested on draws it has not seen.

The theorem, and the stream of certificates, are in :mod:`gingham.certificates.progressive`; here is what it needs to
know of models: how they are fitted anew or go on from what they have, what they predict, how they are saved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, Self, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from gingham.arrays import AnyArray, ArrayLike, Bools, Floats, Ints, TableLike
from gingham.cells import LOSSES
from gingham.certificates.assumptions import Assumption, checked, drawn_order, drawn_rows
from gingham.certificates.bounds import checked_candidates, checked_delta
from gingham.certificates.certificate import Certificate
from gingham.certificates.losses import StatedLoss, loss_scale, stated_loss
from gingham.certificates.members import unfitted, who_fitted
from gingham.certificates.observed import check_pairs_once, rows_as_draws, sample_of_rows
from gingham.certificates.progressive import (
    ALL_ALIKE,
    ARRIVED,
    ROW_BY_ROW,
    SAME_SOURCE,
    SETTINGS,
    Plan,
    Progressive,
    choose_nu,
    draws_in_order,
)
from gingham.certificates.record import Record
from gingham.certificates.strata import (
    Division,
    as_names,
    by_items,
    column_name,
    set_aside,
    strata_facts,
    with_strata,
)
from gingham.core.problem import find_posterior
from gingham.data import Mode
from gingham.data.adapt import id_columns
from gingham.data.draws import counted, recorded_seed, whole_counts
from gingham.data.sample import checked_labels, checked_weights
from gingham.errors import GinghamError, RefusedCertificate, UnseenItemsWarning
from gingham.models.base import Persistent, Saved, default_loss
from gingham.storage import State, digest, fields_of


class Predictor(Protocol):
    """Anyone's predictor: scikit-learn's manners, and nothing else."""

    def fit(self, X: TableLike, y: ArrayLike, **options: object) -> Predictor: ...

    def predict(self, X: TableLike, **options: object) -> ArrayLike: ...


SKETCH = 2**12  # rows that a member's file knows again
FEW_LOSSES = 20  # of the pilot in a stratum say enough of ν there
FEW = 5  # rows that another library's model is asked about once more, each alone
Fit = Callable[[Predictor, TableLike, AnyArray, Ints | None], Predictor]  # (unfitted, X, y, counts) → fitted


@dataclass(eq=False)
class ProgressivePredictor(Saved):
    """The members of a progressive validation, used together: what its certificate covers.

    It comes from `gingham.certify_progressive`, which tests the members while it fits them; it is never fitted itself.
    For losses that are convex in the prediction, ``predict`` is the members' mean, weighted by how many draws each
    was tested on. For others, and with ``drawn=True``, it draws a member for each row. For the log loss it is
    ``predict_proba`` that is covered.

    Attributes
    ----------
    members_ : tuple of fitted models
        Member b has learned from all draws before block b.
    shares_ : array of shape (n_members,)
        Share of the tested draws.
    pilot_ : fitted model
        Whose losses within the warm-up chose ν; it does not predict.
    loss_ : StatedLoss
        The loss and the labels that were stated for it.
    rule_ : str or None
        Passed to the members' ``predict``.
    clip_ : bool
        Whether predictions are moved into the stated range.
    references_ : tuple of fitted models
        Those that were fitted after the pilot and before the first member, and make the certificate tighter; they do
        not predict.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0)
    >>> predictor = gg.certify_progressive(model, X, y, random_state=0).model
    >>> len(predictor.members_), predictor.predict(X[:2]).shape
    (6, (2,))
    """

    members_: tuple[Predictor, ...]
    shares_: Floats
    pilot_: Predictor
    loss_: StatedLoss
    rule_: str | None
    clip_: bool
    references_: tuple[Predictor, ...] = ()

    def _item_modes(self) -> tuple[Mode, ...]:
        """The modes whose items the columns of X name, as the last member knows them."""
        modes: tuple[Mode, ...] = self.members_[-1]._item_modes()  # type: ignore[attr-defined]
        return modes

    def predict(self, X: TableLike, random_state: int | None = None, drawn: bool = False) -> AnyArray:
        """One answer per row.

        ``drawn=True`` lets a member, drawn for each row, answer where the mean would: it is covered as well, and its
        labels are labels, where the mean of whole stars is none. ``random_state`` is the seed of drawn members.
        """
        if self.loss_.cell.answers == "distribution":
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        everybody = [answers(member, X, self.loss_, self.rule_, self.clip_) for member in self._asked()]
        if self.loss_.convex and not drawn:
            return np.asarray(np.average(np.array(everybody, dtype=np.float64), axis=0, weights=self.shares_))
        who = np.random.default_rng(random_state).choice(len(everybody), len(everybody[0]), p=self.shares_)
        return np.array(everybody)[who, np.arange(len(who))]

    def predict_proba(self, X: TableLike) -> Floats:
        """The members' mean distribution over the labels, shape (N, |Y|); for losses of distributions."""
        loss = self.loss_
        if loss.cell.answers != "distribution":
            raise GinghamError(f"These members were tested by the {loss.name} loss of what they predict: use predict.")
        everybody = [answers(member, X, loss, None, False) for member in self._asked()]
        return np.asarray(np.average(np.array(everybody), axis=0, weights=self.shares_))

    def _asked(self) -> Iterable[Predictor]:
        """The members one after the other; ids that are new to all of them are reported by the last one only."""
        for member in self.members_[:-1]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnseenItemsWarning)
                yield member
        yield self.members_[-1]

    @property
    def classes_(self) -> AnyArray:
        label_values = self.loss_.alphabet
        if label_values is None:
            raise AttributeError("labels are numbers without an alphabet")
        return label_values.values

    def _to_file(self) -> State:
        for member in (*self.members_, self.pilot_, *self.references_):
            if not isinstance(member, Saved):
                raise GinghamError(
                    f"{type(member).__name__} is another library's model, which a gingham file cannot store: save "
                    "certificate.model with that library, or with joblib."
                )
        return fields_of(self)

    @classmethod
    def _from_file(cls, state: State) -> Self:
        return cls(**state)


def certify_progressive(
    model: Predictor,
    X: TableLike,
    y: ArrayLike,
    *,
    warm_up: float = 0.7,
    blocks: int = 6,
    delta: float = 0.05,
    sample_weight: ArrayLike | None = None,
    loss: str | ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    label_bounds: tuple[float, float] | None = None,
    rule: str | None = None,
    clip: bool = False,
    order: str = "shuffle",
    random_state: int | None = None,
    candidates: int = 1,
    references: int = 0,
    strata: str | ArrayLike | None = None,
    fit: Fit | None = None,
) -> Certificate:
    """A guarantee for predictions by progressive validation: fit, test on the next rows, learn from them, repeat.

    The first part of the draws is used for learning only. The rest is tested block by block: a member is fitted at the
    start of each block on all draws before it, and tested on the block. Nothing is paid for what the members learned,
    so this is the tightest certificate for predictions, for any model of any library.

    Parameters
    ----------
    model : estimator with fit and predict, of gingham or anyone's
        It is cloned, never changed. Grids start from the last member, layers go on with their chains.
    X, y : rows and their labels
    warm_up : float
        Share of the draws that are learned from before the first test.
    blocks : int
        How many members there will be.
    delta : float
        The guarantee holds with probability at least 1 − delta.
    sample_weight : whole numbers, optional
        A row of weight w stands for w draws; draws, not rows, are divided.
    loss : {"absolute", "quadratic", "pinball", "zero-one", "log", "ranked-probability"}, table or callable, optional
        By default the model's own, "zero-one" for classifiers and "absolute" where it has none that is known.
    alphabet, label_bounds : sequence; (smallest, largest)
        The possible labels; one of the two is needed, here or as the model's own ``alphabet`` or ``bounds``.
    rule : str, optional
        Passed to ``predict`` ("mean", "median", "label" …), where the model knows rules.
    clip : bool
        Move predictions into the range of the labels, in the tests and in the predictor that is returned.
        Without it a prediction outside is refused.
    order : {"shuffle", "arrival"}
        "shuffle" draws one order, so that the order of a sorted table has no influence. "arrival" says that rows stand
        in the order in which they came: the guarantee then speaks of the average expected loss at the times of the
        tests, whatever changed meanwhile.
    random_state : int, optional
        Seed of the shuffle; drawn afresh by default, and recorded in ``parameters["seed"]``.
    candidates : int
        How many settings were, or will be, certified on these rows, to keep the best; each costs its share of δ.
    references : int
        How many models are fitted on growing parts of the warm-up and tested on all draws after their own. They say how
        hard the draws are, so that the members only have to show by how much they are better, which is measured more
        exactly: a larger ``warm_up`` (.8, say) then leaves enough to test. For draws that are independent and alike
        only (order="shuffle", no pairs of a graph); the certificate holds at its planned end only.
    strata : "known/new" or array of shape (N,), optional
        The part of the rows to which each belongs, by a rule that does not look at labels. Each stratum gets a
        guarantee of its own (``certificate.strata``); all hold together, so that `Certificate.for_mix` covers any mix.
        "known/new": rows whose items the members know, and those with new ones. All members know the items of the
        warm-up and no others; with order="shuffle" a twentieth of the items of each column is set aside, so that
        there are tests of new items.
    fit : callable (unfitted clone, X, y, counts) → fitted model, optional
        For models whose ``fit`` takes something else (a graph, say); counts are None where every row counts once.

    Returns
    -------
    Certificate
        With ``model``, the `ProgressivePredictor` that is covered.

    Examples
    --------
    >>> import numpy as np, gingham as gg
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 20, (2000, 2))
    >>> y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    >>> model = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=0)
    >>> certificate = gg.certify_progressive(model, X, y, random_state=1)
    >>> certificate.value < 0.1, certificate.n_observations
    (True, 600)
    >>> certificate.model.predict([(0, 0), (0, 1)]).round()
    array([5., 1.])
    """
    checked_delta(delta)
    checked_candidates(candidates)
    if not hasattr(model, "get_params"):
        raise GinghamError(
            f"{type(model).__name__} has no get_params: every member starts as a clone of the model. Let it inherit"
            " from sklearn.base.BaseEstimator."
        )
    if references and (order != "shuffle" or strata is not None):
        raise RefusedCertificate(
            'References need draws that are alike (order="shuffle") and no strata, whose members are tested on their '
            "own blocks only: remove references=."
        )
    # A copy: members could write into the array that was handed in, whose labels test them.
    measured, labels = _loss_of(model, loss, alphabet, label_bounds), checked_labels(y).copy()
    weights = checked_weights(sample_weight, len(labels))
    counts, seed = whole_counts(weights), recorded_seed(random_state)
    drawn = _rows_as_draws(X, labels, weights, isinstance(model, Saved))
    draws = draws_in_order(len(labels), counts, order, seed)
    plan = Plan.of(len(draws), warm_up, blocks, references=references)
    held = None if strata is None else _Held.of(strata, X, draws, plan, seed, order, len(labels))
    learnable = None if held is None else held.learnable
    runner = _Runner(model, X, labels, measured, rule, clip, fit or _fit, learnable)
    tested = _Tested.of(runner, plan, draws, lambda pilot: _check_graph(pilot, X, labels, weights, references))
    shuffled = (ALL_ALIKE if references else SAME_SOURCE, drawn_order(seed, random_state is None, "shuffle"))
    assumptions = (
        *(shuffled if order == "shuffle" else (ARRIVED,)),
        *drawn,
        measured.statement,
        who_fitted(model, fit is not None),
        *(() if all(isinstance(one, Saved) for one in tested.fitted) else (ROW_BY_ROW,)),
        SETTINGS,
        *(() if held is None else held.assumptions),
    )
    certificate, predictor = tested.certificate(held, delta, candidates, assumptions), tested.predictor(rule, clip)
    facts = {
        "loss": measured.facts(), "order": order, "seed": seed, "warm_up": plan.edges[0], "pilot": plan.pilot,
        "edges": list(plan.edges), "references": list(plan.references), "candidates": candidates, "rule": rule,
        "clip": clip, "predictions": np.concatenate(tested.guesses), **strata_facts(certificate),
    }  # fmt: skip
    told = None if held is None else held.division.handed_in
    bound_to = partial(_bound_to, predictor, facts)
    chosen = {"seed": float(seed)} if order == "shuffle" else {}
    return replace(
        certificate,
        parameters={**certificate.parameters, **chosen, "warm_up": plan.edges[0], "blocks": blocks},
        model=predictor,
        record=Record("progressive", X, y, sample_weight, bound_to, told, column_name(strata)),
    )


@dataclass(frozen=True, eq=False)
class _Tested:
    """Models in the order of their fits, each tested on draws after those that it has learned from."""

    plan: Plan
    draws: Ints
    loss: StatedLoss
    fitted: list[Predictor]  # pilot, references, members
    guesses: list[AnyArray]
    losses: list[Floats]  # in their own unit

    @classmethod
    def of(cls, runner: _Runner, plan: Plan, draws: Ints, check: Callable[[Predictor], None]) -> _Tested:
        """Fit, test on the next draws, learn from them, repeat; ``check`` may refuse the first of the models."""
        found = cls(plan, draws, runner.loss, [], [], [])
        before, learned = None, 0
        for start, stop in plan.spans:
            before = runner.fitted(draws[:start], before, draws[learned:start])
            if not found.fitted:
                check(before)
            learned = start
            found.fitted.append(before)
            found.guesses.append(runner.predictions(before, draws[start:stop]))
            found.losses.append(runner.loss.losses(runner.labels[draws[start:stop]], found.guesses[-1]))
        for member in found.fitted:
            if isinstance(member, Persistent):  # by a part of its rows, a checker sees which they were
                member._fit_rows = tuple(rows.smaller(SKETCH) for rows in member._fit_rows)
        return found

    @property
    def blocks(self) -> list[Floats]:
        """Losses of the members, each on its own block."""
        return self.losses[-len(self.plan.sizes) :]

    @property
    def shares(self) -> Floats:
        return self.plan.sizes / self.plan.n_tested

    def predictor(self, rule: str | None, clip: bool) -> ProgressivePredictor:
        """What is covered."""
        n = len(self.plan.sizes)
        members, others = tuple(self.fitted[-n:]), tuple(self.fitted[1:-n])
        return ProgressivePredictor(members, self.shares, self.fitted[0], self.loss, rule, clip, others)

    def certificate(
        self, held: _Held | None, delta: float, candidates: int, assumptions: tuple[Assumption, ...]
    ) -> Certificate:
        """The guarantee for the members, and for each stratum of the draws that tested them."""
        plan, name, convex = self.plan, self.loss.name, self.loss.convex
        low, width = loss_scale(self.loss.cell)
        n_tuned = plan.counted - plan.pilot
        tuned, pilot = (self.losses[0][:n_tuned] - low) / width, self.losses[0][n_tuned:]

        def stream(shared: int, own: Floats, expected: int | Sequence[int]) -> Progressive:
            nu = choose_nu(own, expected, delta, candidates * shared)
            return Progressive(nu, delta, low, width, name, convex, candidates, assumptions, shares=shared)

        def of_rows(rows: Ints | None, shared: int) -> Certificate:
            if rows is None:
                levels = [pilot, *self.losses[1 : len(plan.references)]] if plan.references else []
                found, of_members = stream(shared, tuned, plan.n_tests), np.concatenate(self.blocks)
                return found.with_references([*levels, of_members]) if levels else found.add(of_members)
            names = held.division.names[self.draws]  # type: ignore[union-attr]
            mine = names == names[plan.edges[0] + rows[0]]
            blocks = [own[mine[a:b]] for own, (a, b) in zip(self.blocks, pairwise(plan.edges))]
            own = tuned[mine[plan.pilot : plan.counted]]
            return stream(shared, own if len(own) >= FEW_LOSSES else tuned, len(rows)).of_blocks(blocks, self.shares)

        if held is None:
            return of_rows(None, 1)
        tested = held.division.names[self.draws[plan.edges[0] :]]
        return replace(with_strata(held.division, of_rows, tested), anytime=False)


@dataclass(frozen=True, eq=False)
class _Held:
    """The stratum of each row, and the rows that members may learn from.

    Of strata by items, all members know the same ones, those of the warm-up: nobody learns from rows with others.
    Some of them are set aside before, so that there are tests of new items where few would come by themselves.
    """

    division: Division
    learnable: Bools | None = None
    assumptions: tuple[Assumption, ...] = ()

    @classmethod
    def of(cls, strata: object, X: TableLike, draws: Ints, plan: Plan, seed: int, order: str, n_rows: int) -> _Held:
        if not by_items(strata):
            return cls(Division(as_names(strata, n_rows)))  # type: ignore[arg-type]
        columns, names = id_columns(X)[:2]
        texts = [np.array([str(one) for one in column.tolist()]) for column in columns]
        aside = set_aside(texts, seed) if order == "shuffle" else [np.zeros(0, "U")] * len(texts)
        kept = ~np.any([np.isin(column, held) for column, held in zip(texts, aside)], axis=0)
        warm = draws[: plan.edges[0]]
        warm = warm[kept[warm]]
        items = [np.unique(column[warm]) for column in columns]
        known = [np.isin(column, mine) for column, mine in zip(columns, items)]
        counts = {name: len(held) for name, held in zip(names, aside)}
        told = (checked("set aside", counts=counts),) if order == "shuffle" else ()
        return cls(Division.of(known, items, names), kept & np.all(known, axis=0), told)


def _check_graph(pilot: Predictor, X: TableLike, labels: AnyArray, weights: Floats | None, references: int) -> None:
    """Refuse what does not go with pairs of a graph."""
    own = find_posterior(pilot)
    if own is None or not own.structure.is_graph():
        return
    if references:
        raise RefusedCertificate(
            "Pairs of a graph are drawn without replacement, so that references would be tested on other pairs "
            "than the members: references=0 avoids this."
        )
    check_pairs_once(id_columns(X).columns, labels, weights)


def _bound_to(predictor: ProgressivePredictor, facts: dict[str, object]) -> dict[str, object]:
    """The facts of a certificate with the digest of the members that were tested, where a file can hold them."""
    try:
        return {**facts, "model": digest(predictor)}
    except GinghamError:  # another library's models
        return facts


def _rows_as_draws(X: TableLike, labels: AnyArray, weights: Floats | None, of_items: bool) -> tuple[Assumption, ...]:
    """What has to be believed for rows to be draws; of copies, some would be learned from, and others would test."""
    sample = sample_of_rows(X, labels, weights)
    return drawn_rows(weights) if sample is None else rows_as_draws(sample, of_items)


@dataclass(frozen=True, eq=False)
class _Runner:
    """Fits members on draws and lets them predict draws."""

    model: Predictor
    X: TableLike
    labels: AnyArray
    loss: StatedLoss
    rule: str | None
    clip: bool
    fit: Fit
    learnable: Bools | None = None  # rows that members may learn from

    def fitted(self, draws: Ints, before: Predictor | None, fresh: Ints) -> Predictor:
        """A member that has learned from ``draws``; ``before`` knows all but the ``fresh`` ones."""
        if self.learnable is not None:
            draws, fresh = draws[self.learnable[draws]], fresh[self.learnable[fresh]]
        if len(draws) == 0:
            raise GinghamError("No training rows are left: give more rows, or a larger warm_up.")
        start = self._start(before)
        # Models of tables that grow fold new ids in, and go on with sizes and β as they are.
        grows = all(hasattr(self.model, name) for name in ("n_clusters", "partial_fit", "fold_in"))
        if self.fit is _fit and start is None and grows:
            rows, counts = counted(draws if before is None else fresh)
            growing: Any = unfitted(self.model) if before is None else deepcopy(before)
            if len(rows) == 0:
                return cast(Predictor, growing)
            weighted = {} if (counts == 1).all() else {"sample_weight": counts}
            return cast(Predictor, growing.partial_fit(_safe_indexing(self.X, rows), self.labels[rows], **weighted))
        model = unfitted(self.model)
        if start is not None:
            model.set_params(start=start)
        rows, counts = counted(draws)
        weights = None if (counts == 1).all() else counts
        member = self.fit(model, _safe_indexing(self.X, rows), self.labels[rows], weights)
        if start is not None and hasattr(member, "set_params"):
            member.set_params(start=self.model.get_params(deep=False)["start"])  # type: ignore[attr-defined]
        return member

    def _start(self, before: Predictor | None) -> object:
        """The posterior from which the next member starts; None where the model takes none or chooses its size."""
        params = self.model.get_params(deep=False) if hasattr(self.model, "get_params") else {}
        if "start" not in params or isinstance(params.get("n_clusters", "auto"), str):
            return None
        if before is None:
            return params["start"]
        return getattr(before, "posterior_", None)

    def predictions(self, member: Predictor, draws: Ints) -> AnyArray:
        """What a member answers on each draw."""
        rows, at = np.unique(draws, return_inverse=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenItemsWarning)
            found = answers(member, _safe_indexing(self.X, rows), self.loss, self.rule, self.clip)
            if len(found) != len(rows):
                raise GinghamError(f"{type(member).__name__} predicted {len(found)} answers for {len(rows)} rows.")
            if not isinstance(member, Saved):
                self._need_row_by_row(member, rows, found)
        return found[at.ravel()]

    def _need_row_by_row(self, member: Predictor, rows: Ints, found: AnyArray) -> None:
        """Refuse another library's model that answers a few rows otherwise when it is asked about nothing else.

        Its loss on a block of tests would say nothing of a new row. One that draws its answers is not found out.
        """
        few = np.linspace(0, len(rows) - 1, min(FEW, len(rows))).astype(np.int64)
        one = [_safe_indexing(self.X, rows[few[k : k + 1]]) for k in range(len(few))]
        first, again = (
            np.concatenate([answers(member, row, self.loss, self.rule, self.clip) for row in one]) for _ in range(2)
        )
        if alike(first, again) and not alike(first, found[few]):
            raise RefusedCertificate(
                f"{type(member).__name__} gives a row another prediction when it is alone: its errors on many rows at "
                "a time do not apply to a new row."
            )


def alike(one: AnyArray, other: AnyArray) -> bool:
    """Whether answers are the same, numbers but for rounding."""
    if one.dtype.kind in "iuf" and other.dtype.kind in "iuf":
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-6))
    return bool(np.array_equal(one, other))


def answers(member: Predictor, X: TableLike, loss: StatedLoss, rule: str | None, clip: bool) -> AnyArray:
    """What a member answers on rows: labels or numbers, or distributions for losses of those."""
    if loss.cell.answers == "distribution":
        return _distributions(member, X, loss)
    found = np.asarray(member.predict(X) if rule is None else member.predict(X, rule=rule))
    return loss.inside(found) if clip else found


def _distributions(member: Predictor, X: TableLike, loss: StatedLoss) -> Floats:
    """Distributions over the stated labels, matched by value; a label that a member does not know has none."""
    method = "predict_distribution" if hasattr(member, "predict_distribution") else "predict_proba"
    if not hasattr(member, method):
        raise GinghamError(f"{type(member).__name__} predicts no distributions, which the {loss.name} loss needs.")
    found = np.asarray(getattr(member, method)(X), dtype=np.float64)
    known = np.asarray(getattr(member, "alphabet_" if method == "predict_distribution" else "classes_"))
    label_values = loss.alphabet
    if label_values is None:
        raise GinghamError(f"loss={loss.name!r} needs alphabet=, the possible labels.")
    full = np.zeros((len(found), label_values.size))
    full[:, label_values.encode(known)] = found
    return full


def _fit(model: Predictor, X: TableLike, y: AnyArray, counts: Ints | None) -> Predictor:
    """Fit a clone; draws of a row are rows of their own where the model knows no weights."""
    if counts is None:
        return model.fit(X, y)
    if has_fit_parameter(model, "sample_weight"):
        return model.fit(X, y, sample_weight=counts)
    rows = np.repeat(np.arange(len(y)), counts)
    return model.fit(_safe_indexing(X, rows), y[rows])


def _loss_of(
    model: Predictor,
    loss: str | ArrayLike | None,
    alphabet: Iterable[object] | None,
    label_bounds: tuple[float, float] | None,
) -> StatedLoss:
    """The loss that was asked for, or the model's own; labels as stated here or to the model."""
    own = model.get_params(deep=True) if hasattr(model, "get_params") else {}

    def stated(name: str) -> Any:
        return own.get(name, own.get(f"estimator__{name}"))

    if alphabet is None and label_bounds is None:
        alphabet, label_bounds = stated("alphabet"), stated("bounds")
    if loss is None:
        loss = stated("loss")
        if loss is None or (isinstance(loss, str) and loss not in LOSSES):  # left open, or another library's
            chosen = default_loss(np.zeros(0), True, label_bounds if alphabet is None else None)
            named = hasattr(model, "__sklearn_tags__") and is_classifier(model)
            loss = "zero-one" if named else chosen if loss == "auto" else "absolute"
    return stated_loss(loss, alphabet, label_bounds).storable()
