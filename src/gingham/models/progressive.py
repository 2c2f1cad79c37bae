"""Progressive validation of any model: members refitted block by block, each tested on draws it has not seen.

The theorem, and the stream of certificates, are in :mod:`gingham.certificates.progressive`; here is what it needs to
know of models: how they are fitted anew or go on from what they have, what they predict, how they are saved.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from gingham.arrays import AnyArray, ArrayLike, Floats, Ints, TableLike
from gingham.cells import LOSSES
from gingham.certificates.assumptions import Assumption, checked, drawn_order, drawn_rows, given
from gingham.certificates.certificate import Certificate
from gingham.certificates.confidence import checked_candidates, checked_delta
from gingham.certificates.losses import StatedLoss, loss_scale, stated_loss
from gingham.certificates.observed import check_pairs_once, rows_as_draws
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
from gingham.certificates.split import unfitted
from gingham.core.problem import find_posterior
from gingham.data import Mode
from gingham.data.adapt import id_columns
from gingham.data.fit_rows import numbers_of_rows
from gingham.data.sample import checked_labels, checked_weights, counted, recorded_seed, tuples, whole_counts
from gingham.errors import GinghamError, RefusedCertificate, UnseenItemsWarning
from gingham.models.base import Persistent, Saved, default_loss
from gingham.storage import State, digest, fields_of


class Predictor(Protocol):
    """Anyone's predictor: scikit-learn's manners, and nothing else."""

    def fit(self, X: TableLike, y: ArrayLike, **options: object) -> Predictor: ...

    def predict(self, X: TableLike, **options: object) -> ArrayLike: ...


class Growing(Predictor, Protocol):
    """One that goes on from what it has learned."""

    def partial_fit(self, X: TableLike, y: ArrayLike, **options: object) -> Predictor: ...


PLAIN_VALUES = 100  # of a list of settings; a longer one may hold labels of later draws
SKETCH = 2**12  # rows that a member's file knows again
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

    def item_modes(self) -> tuple[Mode, ...]:
        """The modes whose items the columns of X name, as the last member knows them."""
        modes: tuple[Mode, ...] = self.members_[-1].item_modes()  # type: ignore[attr-defined]
        return modes

    def predict(self, X: TableLike, random_state: int | None = None, drawn: bool = False) -> AnyArray:
        """One answer per row.

        ``drawn=True`` lets a member, drawn for each row, answer where the mean would: it is covered as well, and its
        labels are labels, where the mean of whole stars is none. ``random_state`` is the seed of drawn members.
        """
        if self.loss_.name == "log":
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        everybody = [answers(member, X, self.loss_, self.rule_, self.clip_) for member in self._asked()]
        if self.loss_.convex and not drawn:
            return np.asarray(np.average(np.array(everybody, dtype=np.float64), axis=0, weights=self.shares_))
        who = np.random.default_rng(random_state).choice(len(everybody), len(everybody[0]), p=self.shares_)
        return np.array(everybody)[who, np.arange(len(who))]

    def predict_proba(self, X: TableLike) -> Floats:
        """The members' mean distribution over the labels, shape (N, |Y|); for the log loss."""
        loss = self.loss_
        if loss.name != "log":
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
        letters = self.loss_.alphabet
        if letters is None:
            raise AttributeError("labels are numbers without an alphabet")
        return letters.values

    def to_file(self) -> State:
        for member in (*self.members_, self.pilot_, *self.references_):
            if not isinstance(member, Saved):
                raise GinghamError(
                    f"{type(member).__name__} is another library's model, which a gingham file cannot hold: keep "
                    "certificate.model with that library's own means (joblib, say)."
                )
        return fields_of(self)

    @classmethod
    def from_file(cls, state: State) -> Self:
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
    quantile: float = 0.5,
    rule: str | None = None,
    clip: bool = False,
    order: str = "shuffle",
    random_state: int | None = None,
    candidates: int = 1,
    warm_start: bool = True,
    references: int = 0,
    fit: Fit | None = None,
) -> Certificate:
    """A guarantee for predictions by progressive validation: fit, test on the next rows, learn from them, repeat.

    The first part of the draws is used for learning only. The rest is tested block by block: a member is fitted at the
    start of each block on all draws before it, and tested on the block. Nothing is paid for what the members learned,
    so this is the tightest certificate for predictions, for any model of any library.

    Parameters
    ----------
    model : estimator with fit and predict, of gingham or anyone's
        It is cloned, never changed.
    X, y : rows and their labels
    warm_up : float
        Share of the draws that are learned from before the first test.
    blocks : int
        How many members there will be.
    delta : float
        The guarantee holds with probability at least 1 − delta.
    sample_weight : whole numbers, optional
        A row of weight w stands for w draws; draws, not rows, are divided.
    loss : {"absolute", "quadratic", "pinball", "zero-one", "log"}, table or callable, optional
        By default the model's own, "zero-one" for classifiers and "absolute" where it has none that is known.
    alphabet, label_bounds : sequence; (smallest, largest)
        The possible labels; one of the two is needed, here or as the model's own ``alphabet`` or ``bounds``.
    quantile : float
        Of the pinball loss.
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
    warm_start : bool
        Let grids start from the last member and layers go on with their chains, instead of fitting again from the
        start.
    references : int
        How many models are fitted on growing parts of the warm-up and tested on all draws after their own. They say how
        hard the draws are, so that the members only have to show by how much they are better, which is measured more
        exactly: a larger ``warm_up`` (.8, say) then leaves enough to test. For draws that are independent and alike
        only (order="shuffle", no pairs of a graph); the certificate holds at its planned end only.
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
    >>> certificate.value < 0.1, certificate.n_tuples
    (True, 600)
    >>> certificate.model.predict([(0, 0), (0, 1)]).round()
    array([5., 1.])
    """
    checked_delta(delta)
    checked_candidates(candidates)
    if not hasattr(model, "get_params"):
        raise GinghamError(
            f"{type(model).__name__} has no get_params: every member begins with an unfitted copy of the model, as "
            "scikit-learn's estimators can be copied. Let it inherit from sklearn.base.BaseEstimator."
        )
    measured = _loss_of(model, loss, alphabet, label_bounds, quantile)
    labels = checked_labels(y)
    weights = checked_weights(sample_weight, len(labels))
    counts = whole_counts(weights)
    drawn = _rows_as_draws(X, labels, weights, isinstance(model, Saved))
    seed, drawn_here = recorded_seed(random_state), random_state is None
    draws = draws_in_order(len(labels), counts, order, seed)
    plan = Plan.of(len(draws), warm_up, blocks, references=references)
    if references and order != "shuffle":
        raise RefusedCertificate(
            'References need draws that are alike, which rows in their order of arrival need not be: order="shuffle" '
            "says so, references=0 does without."
        )
    runner = _Runner(model, X, labels, measured, rule, clip, warm_start, fit or _fit)

    pilot = runner.fitted(draws[: plan.pilot], None, draws[:0])
    own = find_posterior(pilot)
    if own is not None and own.structure.is_graph():
        if references:
            raise RefusedCertificate(
                "Pairs of a graph are drawn without replacement, so that references would be tested on other pairs "
                "than the members: references=0 does without."
            )
        check_pairs_once(id_columns(X).columns, labels, weights)
    last = len(draws) if references else plan.edges[0]
    guesses = [runner.predictions(pilot, draws[plan.pilot : last])]
    tests = [measured.losses(labels[draws[plan.pilot : last]], guesses[0])]
    low, width = loss_scale(measured.cell)
    tuned = (tests[0][: plan.counted - plan.pilot] - low) / width
    tests[0] = tests[0][plan.counted - plan.pilot :]
    source = ALL_ALIKE if references else SAME_SOURCE
    assumptions = (
        *((source, drawn_order(seed, drawn_here, "shuffle")) if order == "shuffle" else (ARRIVED,)),
        *drawn,
        measured.statement,
        _who_fitted(model, fit),
        *(() if isinstance(pilot, Saved) else (ROW_BY_ROW,)),
        SETTINGS,
    )
    stream = Progressive(
        choose_nu(tuned, plan.n_tests, delta, candidates),
        delta,
        low,
        width,
        measured.name,
        measured.convex,
        candidates,
        assumptions,
    )
    fitted: list[Predictor] = []
    before, learned = pilot, plan.pilot
    spans = [(start, len(draws)) for start in plan.references[1:]] + list(zip(plan.edges[:-1], plan.edges[1:]))
    for start, stop in spans:
        before = runner.fitted(draws[:start], before, draws[learned:start])
        learned = start
        fitted.append(before)
        guesses.append(runner.predictions(before, draws[start:stop]))
        tests.append(measured.losses(labels[draws[start:stop]], guesses[-1]))
    for member in (pilot, *fitted):
        if isinstance(member, Persistent):  # by a part of its rows, a checker sees which they were
            member.fit_rows_ = tuple(learned_from.smaller(SKETCH) for learned_from in member.fit_rows_)
    further, members = tuple(fitted[:-blocks]), tuple(fitted[-blocks:])
    of_members = np.concatenate(tests[-blocks:])
    certificate = stream.with_references([*tests[:-blocks], of_members]) if references else stream.add(of_members)
    predictor = ProgressivePredictor(members, plan.sizes / plan.n_tested, pilot, measured, rule, clip, further)
    facts = {
        "loss": measured.facts(),
        "order": order,
        "seed": seed,
        "warm_up": plan.edges[0],
        "pilot": plan.pilot,
        "edges": list(plan.edges),
        "references": list(plan.references),
        "candidates": candidates,
        "rule": rule,
        "clip": clip,
        "predictions": np.concatenate(guesses),
    }
    parameters = {"seed": float(seed)} if order == "shuffle" else {}
    return replace(
        certificate,
        parameters={**certificate.parameters, **parameters, "warm_up": plan.edges[0], "blocks": blocks},
        model=predictor,
        record=Record("progressive", X, y, sample_weight, partial(_bound_to, predictor, facts)),
    )


def _bound_to(predictor: ProgressivePredictor, facts: dict[str, object]) -> dict[str, object]:
    """The facts of a certificate with the digest of the members that were tested, where a file can hold them."""
    try:
        return {**facts, "model": digest(predictor)}
    except GinghamError:  # another library's models
        return facts


def _rows_as_draws(X: TableLike, labels: AnyArray, weights: Floats | None, of_items: bool) -> tuple[Assumption, ...]:
    """What has to be believed for rows to be draws; of copies, some would be learned from, and others would test."""
    try:
        columns = [numbers_of_rows([X.tocsr()])] if hasattr(X, "tocsr") else id_columns(X).columns
        sample = tuples(columns, labels, weights)
    except (GinghamError, TypeError, ValueError):  # rows of other libraries need not hold ids
        return drawn_rows(weights)
    return rows_as_draws(sample, of_items)


def _who_fitted(model: Predictor, fit: Fit | None) -> Assumption:
    """Whether the members were fitted here, from nothing but the draws that they were handed."""
    why = "fit= is a function that was handed in" if fit is not None else _outside(model, type(model).__name__)
    return checked("members fitted here") if why is None else given("members fitted outside", why=why)


def _outside(value: object, name: str, room: int = PLAIN_VALUES) -> str | None:
    """Where a setting may hold what was learned elsewhere, from later draws perhaps; None where all is plain.

    Plain are numbers, texts and a few of them together, the models of gingham and scikit-learn that begin anew when
    they are cloned, and frozen settings of gingham. What such values were chosen by is another assumption ("settings").
    """
    if value is None or isinstance(value, (bool, int, float, str, range, np.generic, np.random.RandomState)):
        return None
    kind = value if isinstance(value, type) else type(value)
    ours = kind.__module__.partition(".")[0] in ("gingham", "sklearn")
    if isinstance(value, type):
        return None if ours else f"{name} is a class of another library"
    if hasattr(value, "get_params"):
        if getattr(kind, "__sklearn_clone__", None) is not getattr(BaseEstimator, "__sklearn_clone__", None):
            return f"{name} decides itself what a clone of it is, and may keep what it has learned"
        if not ours:
            return f"{name} is a model of another library, whose fit nobody here has read"
        inner = ((f"{one} of {name}", own) for one, own in value.get_params(deep=False).items())
        return next((why for one, own in inner if (why := _outside(own, one, room)) is not None), None)
    values: Iterable[object] | None = None
    if isinstance(value, (list, tuple, set, frozenset)):
        values = value
    elif isinstance(value, dict):
        values = [*value, *value.values()]
    elif isinstance(value, np.ndarray) and value.dtype.kind in "biufUS":
        values = value.ravel().tolist()
    elif ours and is_dataclass(value) and find_posterior(value) is None and not hasattr(value, "assign"):
        values = [getattr(value, one.name) for one in fields(value)]
    if values is None or len(values := list(values)) > room:
        return f"{name} holds more than plain settings"
    return next((why for own in values if (why := _outside(own, name, room // 2)) is not None), None)


@dataclass(frozen=True, eq=False)
class _Runner:
    """Fits members on draws and lets them predict draws."""

    model: Predictor
    X: TableLike
    labels: AnyArray
    loss: StatedLoss
    rule: str | None
    clip: bool
    warm_start: bool
    fit: Fit

    def fitted(self, draws: Ints, before: Predictor | None, fresh: Ints) -> Predictor:
        """A member that has learned from ``draws``; ``before`` knows all but the ``fresh`` ones."""
        start = self._start(before)
        # Models of tables that grow fold new ids in, and go on with sizes and β as they are.
        grows = all(hasattr(self.model, name) for name in ("n_clusters", "partial_fit", "fold_in"))
        if self.warm_start and self.fit is _fit and start is None and grows:
            rows, counts = counted(draws if before is None else fresh)
            growing = cast(Growing, unfitted(self.model) if before is None else deepcopy(before))
            if len(rows) == 0:
                return growing
            weighted = {} if (counts == 1).all() else {"sample_weight": counts}
            return growing.partial_fit(_safe_indexing(self.X, rows), self.labels[rows], **weighted)
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
        if not (self.warm_start and "start" in params and not isinstance(params.get("n_clusters", "auto"), str)):
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
                f"{type(member).__name__} answers a row otherwise when it is asked about it alone: its errors on many "
                "rows at a time say nothing of a new one."
            )


def alike(one: AnyArray, other: AnyArray) -> bool:
    """Whether answers are the same, numbers but for rounding."""
    if one.dtype.kind in "iuf" and other.dtype.kind in "iuf":
        return bool(np.allclose(one, other, rtol=1e-4, atol=1e-6))
    return bool(np.array_equal(one, other))


def answers(member: Predictor, X: TableLike, loss: StatedLoss, rule: str | None, clip: bool) -> AnyArray:
    """What a member answers on rows: labels or numbers, or distributions for the log loss."""
    if loss.name == "log":
        return _distributions(member, X, loss)
    found = np.asarray(member.predict(X) if rule is None else member.predict(X, rule=rule))
    return loss.inside(found) if clip else found


def _distributions(member: Predictor, X: TableLike, loss: StatedLoss) -> Floats:
    """Distributions over the stated labels, matched by value; a label that a member does not know has none."""
    method = "predict_distribution" if hasattr(member, "predict_distribution") else "predict_proba"
    if not hasattr(member, method):
        raise GinghamError(f"{type(member).__name__} predicts no distributions, which the log loss needs.")
    found = np.asarray(getattr(member, method)(X), dtype=np.float64)
    known = np.asarray(getattr(member, "alphabet_" if method == "predict_distribution" else "classes_"))
    letters = loss.alphabet
    if letters is None:
        raise GinghamError("The log loss needs alphabet=, the possible labels.")
    full = np.zeros((len(found), letters.size))
    full[:, letters.encode(known)] = found
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
    quantile: float,
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
            loss = "zero-one" if is_classifier(model) else chosen if loss == "auto" else "absolute"
    return stated_loss(loss, alphabet, label_bounds, quantile).storable()
