"""Committee: several fits of one model from different starts, averaged."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from gingham import models
from gingham.arrays import AnyArray, ArrayLike, Floats, Ints, Seed, TableLike
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import tuples_of
from gingham.data.draws import Part, rows_of_draws, whole_counts
from gingham.data.partitioned import PartitionedTable
from gingham.data.sample import checked_weights, tuples
from gingham.data.sources import opened
from gingham.errors import GinghamError, UnseenItemsWarning
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.distill import Factors
from gingham.fitting.interruption import interrupted, interruptible
from gingham.models.base import (
    Persistent,
    TupleModel,
    forget_data,
    learned_from,
)
from gingham.models.distilled import distilled_from, distilled_model, distilled_observed, distilled_refit
from gingham.models.questions import Predicted
from gingham.storage import State
from gingham.summary.values import Observed

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

LARGE = 2**16  # memberships from which single precision is kept
RULES = ("mean", "median", "mode", "label")
TESTS = ("folds_", "fold_predictions_", "fold_rows_", "fold_counts_", "fold_labels_")  # of cross-fitted members


def label_values(member: Any) -> AnyArray:
    """The labels that a member knows; some keep them with whether they were given."""
    label_values = member.alphabet_
    if label_values is None:
        raise GinghamError(f"{type(member).__name__} has no finite set of labels: give alphabet=, or use rule='mean'.")
    found: AnyArray = getattr(label_values, "values", label_values)
    return found


@dataclass(eq=False, repr=False)
class Committee(TupleModel, Persistent):
    """Fit a model from several starts and average the predictive distributions.

    Members may over-fit, each in its own way; the average does not. Committees need more clusters and a larger β than a
    single fit does.

    Parameters
    ----------
    estimator : estimator, optional
        The model of every member (CoClusteringRegressor by default); it needs ``random_state``.
    n_members : int
    cross : bool
        Member j does not see fold j of n_members random folds. The committee as a whole has then seen all
        the data, and yet every member can be tested: see ``fold_predictions_`` and
        ``gingham.certify(…, bound="folds")``. A row of weight w stands for w draws, and folds divide draws: weights
        must be whole numbers.
    n_jobs : int, optional
        Processes; the result does not depend on it. Members on a GPU (see `gingham.fitting.Projection`) are
        fitted side by side instead.
    random_state : int, RandomState or None

    Attributes
    ----------
    members_ : tuple of fitted estimators
    folds_ : int array of shape (E,) or None
        The fold of each training row (cross=True); a row of weight w has an entry for each fold that its draws are in.
    fold_predictions_ : array of shape (E,) or None
        The mean prediction for each entry by the member that has not seen it.
    fold_rows_, fold_counts_ : int arrays of shape (E,) or None
        The training row of each entry, and how many of its draws are in the fold (None: one each).
    fold_labels_ : array of shape (N,) or None
        The labels of the training rows.

    Examples
    --------
    >>> from gingham import CoClusteringRegressor, Committee
    >>> X = [(u, i) for u in range(8) for i in range(8)]
    >>> y = [5 if (u < 4) == (i < 4) else 1 for u, i in X]
    >>> model = Committee(CoClusteringRegressor(n_clusters=3, beta=2.0), n_members=3, random_state=0)
    >>> model.fit(X, y).predict([(0, 0), (0, 7)], rule="median")
    array([5., 1.])
    """

    _saved_attributes = ("members_", *TESTS)
    folds_: Ints | None = field(init=False)
    fold_predictions_: Floats | None = field(init=False)
    fold_rows_: Ints | None = field(init=False)
    fold_counts_: Ints | None = field(init=False)
    fold_labels_: AnyArray | None = field(init=False)

    estimator: BaseEstimator | None = None
    n_members: int = 20
    cross: bool = False
    n_jobs: int | None = None
    random_state: Seed = None

    def _inner(self) -> BaseEstimator:
        return models.CoClusteringRegressor() if self.estimator is None else self.estimator

    def _item_modes(self) -> tuple[Mode, ...]:
        modes: tuple[Mode, ...] = self.members_[0]._item_modes()
        return modes

    @interruptible()
    def fit(
        self,
        X: TableLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        item_info: ItemInfo | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Fit every member; see the estimator for X, y and sample_weight.

        ``item_info`` are tables about the items of modes, for summaries (see :func:`gingham.summarize`).
        ``checkpoint`` keeps what members keep of themselves, where they are fitted in this process.
        """
        least = 2 if self.cross else 1
        if not isinstance(self.n_members, (int, np.integer)) or self.n_members < least:
            raise GinghamError(f"n_members={self.n_members!r} must be an integer ≥ {least}.")
        rng = check_random_state(self.random_state)
        seeds = rng.randint(2**31 - 1, size=self.n_members)
        members = [clone(self._inner()).set_params(random_state=int(seed)) for seed in seeds]
        distributed = not self.cross and hasattr(members[0], "_fit_partitions")
        if distributed and PartitionedTable.of(X, y, sample_weight) is not None:
            return self._fit_on_cluster(members, X, y, sample_weight, item_info, checkpoint.bound_to(self))
        X, y, sample_weight = opened(X, y, sample_weight)
        checkpoint.bound_to(self, X, y, sample_weight)
        X, y = tuples_of(X, y)
        columns = self._columns(X, reset=True)
        n_rows = len(columns.columns[0])
        parts: list[tuple[Part | None, Part | None]] = [(None, None)] * self.n_members
        folds = None
        if self.cross:
            counts = whole_counts(checked_weights(sample_weight, n_rows))
            folds = Folds.of(n_rows, counts, self.n_members, int(rng.randint(2**31 - 1)))
            parts = folds.parts()
        results: list[tuple[BaseEstimator, Floats | None]] = []
        together = None if self.cross else getattr(members[0], "_fit_together", None)  # of a family that can
        if together is not None and together(members, X, y, sample_weight):
            results = [(_compact(member), None) for member in members]
        else:
            results = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit_member)(member, X, y, sample_weight, seen, held, **stage)
                for member, (seen, held), stage in zip(_until_interrupted(members), parts, self._stages(checkpoint))
            )
        if self.cross and len(results) < self.n_members:
            raise KeyboardInterrupt  # every fold needs its member
        self.members_ = tuple(member for member, _ in results)
        self.interrupted_ = any(getattr(member, "interrupted_", False) for member in self.members_)
        self._keep_tests(None)
        if folds is not None:
            found = np.empty(len(folds.fold))
            for fold, (_, predictions) in enumerate(results):
                found[folds.fold == fold] = predictions
            counted = None if folds.counts is None else folds.number
            self._keep_tests((folds.fold, found, folds.row, counted, np.array(y)))  # a copy: y may change
        self._remember((X, y, sample_weight), n_rows, item_info, (tuples(columns.columns, y, sample_weight),))
        for member in self.members_:
            if hasattr(member, "_fit_rows"):  # what all of them have seen is kept once; nobody asks about folds
                member._fit_rows = () if self.cross else self._fit_rows
        return self

    def _fit_on_cluster(
        self, members: Sequence[BaseEstimator], X: Any, y: Any, sample_weight: Any, item_info: ItemInfo | None,
        checkpoint: Checkpoint,
    ) -> Self:  # fmt: skip
        """Members one after the other, each fitted by the whole cluster."""
        stages = zip(_until_interrupted(members), self._stages(checkpoint))
        self.members_ = tuple(_fit_member(one, X, y, sample_weight, None, None, **stage)[0] for one, stage in stages)
        self.interrupted_ = any(getattr(member, "interrupted_", False) for member in self.members_)
        self._keep_tests(None)
        self._remember(None, 0, item_info)
        first = self.members_[0]
        for name in ("_fit_rows", "engine_", "n_features_in_", "feature_names_in_"):
            setattr(self, name, getattr(first, name))
        return self

    def _keep_tests(self, tests: tuple[AnyArray | None, ...] | None) -> None:
        """What a certificate by folds needs, or that there is nothing."""
        for name, value in zip(TESTS, tests or (None,) * len(TESTS)):
            setattr(self, name, value)

    def _observed(self, *data: Any) -> Observed:
        """One checkerboard, distilled from the mean of the members' predictions: each has clusters of its own."""
        check_is_fitted(self)
        sample, loss = self._sample(*(data or self._remembered("gg.summarize(model, X, y)"))), self._loss()
        inner = clone(self)
        return distilled_observed(
            sample,
            distilled_from(self._prediction_factors(), sample, loss),
            lambda kept: distilled_refit(clone(inner), sample, kept, loss),
            "",
            loss,
        )

    def _sample(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Sample:
        """Labelled rows in the committee's own numbering."""
        labels = np.asarray(y)
        numbers = labels.dtype.kind in "biuf" and not is_classifier(self)
        alphabet = None if numbers else Alphabet.of(np.unique(labels), given=False)
        columns = self._columns(X, reset=False).columns
        return Sample.of(columns, labels, sample_weight, modes=self._item_modes(), alphabet=alphabet)

    def _simplified(
        self,
        X: TableLike,
        y: ArrayLike,
        max_clusters: int | Sequence[int] | None = None,
        max_loss: float | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        sample = self._sample(X, y, sample_weight)
        return distilled_model(self, lambda: self._observed(X, y, sample_weight), sample, max_clusters, max_loss)

    def _loss(self) -> str:
        """The loss that the members minimise."""
        posterior = getattr(self.members_[0], "posterior_", None)
        return "quadratic" if posterior is None else str(posterior.label_cell().name)

    def _prediction_factors(self) -> Factors:
        """The mean of the members' predictions as additive effects and thin factors, for distillation.

        Where labels are names, of their probabilities along the direction in which cells differ most: with two labels
        that is the probability of one of them.
        """
        modes = self._item_modes()
        parts, classes = [], is_classifier(self)
        for member in self.members_:
            posterior = getattr(member, "posterior_", None)
            if posterior is None or len(modes) != 2 or posterior.structure.factors != ((0, 1),):
                raise GinghamError(
                    f"A committee of {type(member).__name__} has no summary: its members are not checkerboards of two "
                    "sides."
                )
            cell, answers = posterior.cells[0], posterior.answers[0]
            named = cell.alphabet is not None and (classes or not cell.alphabet.numeric)
            blocks = cell.distribution(answers) if named else np.asarray(cell.values(answers))[..., None]
            rows, columns = (
                posterior.with_unseen(at)[own.encode(mode.items)]
                for at, (mode, own) in enumerate(zip(modes, member._item_modes()))
            )
            parts.append((rows, columns, np.asarray(blocks), posterior.offsets, member._item_modes()))
        k = len(parts)
        flat = np.concatenate([blocks.reshape(-1, blocks.shape[2]) for _, _, blocks, _, _ in parts])
        main = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)[2][0] if flat.shape[1] > 1 else np.ones(1)
        left = np.hstack([rows @ (blocks @ main) for rows, _, blocks, _, _ in parts]) / k
        right = np.hstack([columns for _, columns, _, _, _ in parts])
        base, effects = 0.0, [np.zeros(mode.n_items) for mode in modes]
        for _, _, _, offsets, own in parts:
            if offsets is not None:
                base += offsets.base / k
                for at, mode in enumerate(modes):
                    effects[at] += np.append(offsets.effects[at], 0.0)[own[at].encode(mode.items)] / k
        return Factors(base, effects[0], effects[1], left, right).compressed()

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """The members' mean; its spread is that between members and that within each of them."""
        modes = self._item_modes()
        said = []
        for member in self.members_:
            if not isinstance(member, Persistent):
                raise GinghamError("Members of another library give no uncertainty for single pairs: use predict.")
            mine = [  # a fold may lack items
                np.where(code < 0, -1, own.encode(mode.items)[code])
                for code, mode, own in zip(codes, modes, member._item_modes())
            ]
            said.append(member._predict_codes(relation, mine, label))
        scores = np.array([one.score for one in said])
        within = np.mean([one.uncertainty**2 for one in said], axis=0)
        return Predicted(scores.mean(axis=0), np.sqrt(within + scores.var(axis=0)))

    def _stages(self, checkpoint: Checkpoint) -> Iterator[dict[str, Checkpoint]]:
        """What the fit of each member is told of checkpoints; nothing in other processes and in other libraries."""
        kept = effective_n_jobs(self.n_jobs) == 1 and has_fit_parameter(self._inner(), "checkpoint")
        for number in range(self.n_members):
            yield {"checkpoint": checkpoint.stage(f"member {number + 1}")} if kept else {}

    @available_if(lambda self: hasattr(self._inner(), "fold_in"))
    def fold_in(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add items that were not in the training data to every member; see the estimator.

        Members that have changed were not tested on their folds: ``gingham.certify(…, bound="folds")`` refuses them.
        """
        check_is_fitted(self)
        self._keep_tests(None)
        for member in self.members_:
            _compact(member.fold_in(X, y, sample_weight))
        learned_from(self, tuples(self._columns(X, reset=False).columns, y, sample_weight))
        return self

    # predictions

    def predict_distribution(self, X: TableLike) -> Floats:
        """The members' label distributions, averaged, shape (N, |Y|), columns as ``alphabet_``."""
        check_is_fitted(self)
        if not hasattr(self.members_[0], "predict_distribution"):
            raise GinghamError(f"{type(self._inner()).__name__} predicts numbers, not distributions: use rule='mean'.")
        # A fold may lack a rare label, so columns are matched by value.
        total: Floats = np.zeros((len(self._columns(X, reset=False).columns[0]), len(self.alphabet_)))
        for member, distribution in zip(self.members_, self._ask("predict_distribution", X)):
            total[:, np.searchsorted(self.alphabet_, label_values(member))] += distribution
        return total / len(self.members_)

    def _ask(self, method: str, X: TableLike) -> list[Floats]:
        """What every member says; new ids are reported once, not once a member."""
        self._codes(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnseenItemsWarning)
            return [getattr(member, method)(X) for member in self.members_]

    @property
    def alphabet_(self) -> AnyArray:
        """Every label value some member knows."""
        return np.unique(np.concatenate([label_values(member) for member in self.members_]))

    def predict(self, X: TableLike, rule: str | None = None) -> AnyArray:
        """One answer per row.

        Parameters
        ----------
        rule : {"mean", "median", "mode", "label"}, optional
            Of the averaged distribution: its mean (the default), its median, its commonest label (the default
            for classes); "label" is for members that know cut points (LayeredCoClusteringRegressor).
        """
        classes = is_classifier(self)
        rule = rule or ("mode" if classes else "mean")
        if rule not in RULES:
            raise GinghamError(f"rule={rule!r} is unknown; choose one of {', '.join(RULES)}.")
        check_is_fitted(self)
        if rule in ("mean", "label"):
            if classes:
                raise GinghamError(f"Classes have no {rule}: use rule='mode'.")
            return self._numbers(X, rule)
        distribution = self.predict_distribution(X)
        if rule == "mode":
            return self.alphabet_[distribution.argmax(axis=1)]
        half = 0.5 * (1 - 1e-9)  # rounding must not push an exact half over to the next label
        return self.alphabet_[(np.cumsum(distribution, axis=1) < half).sum(axis=1)].astype(np.float64)

    def _numbers(self, X: TableLike, rule: str) -> Floats:
        mean: Floats = np.mean(self._ask("predict", X), axis=0)
        if rule == "mean":
            return mean
        cuts = [getattr(member, "cuts_", None) for member in self.members_]
        if any(c is None for c in cuts):
            raise GinghamError("rule='label' needs members with cut points; use rule='median'.")
        labels: Floats = self.members_[0].alphabet_.numbers
        return labels[np.searchsorted(np.mean(np.array(cuts), axis=0), mean)]

    @available_if(lambda self: is_classifier(self._inner()))
    def predict_proba(self, X: TableLike) -> Floats:
        """Probability of each class, shape (N, n_classes)."""
        return self.predict_distribution(X)

    @property
    def classes_(self) -> AnyArray:
        return self.alphabet_

    def score(self, X: TableLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R² of the mean prediction, or the accuracy of the predicted class."""
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Tags:
        tags, inner = super().__sklearn_tags__(), get_tags(self._inner())
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags, tags.classifier_tags = inner.regressor_tags, inner.classifier_tags
        tags.target_tags = inner.target_tags
        return tags

    @classmethod
    def _from_file(cls, state: State) -> Self:
        model = super()._from_file(state)
        model.estimator = clone(model.members_[0])
        return model


@dataclass(frozen=True, eq=False)
class Folds:
    """Folds that divide draws: some draws of a row are in one fold, some in another."""

    row: Ints  # (E,): of each entry
    fold: Ints  # (E,)
    number: Ints  # (E,): how many draws of the row are in the fold
    counts: Ints | None  # (n_rows,): draws of each row; None where every row is one
    n_rows: int

    @classmethod
    def of(cls, n_rows: int, counts: Ints | None, n_folds: int, seed: int) -> Folds:
        draws = rows_of_draws(n_rows, counts)
        if len(draws) < n_folds:
            raise GinghamError(f"{n_folds} folds need at least as many rows; there are {len(draws)}.")
        fold_of = np.empty(len(draws), dtype=np.int64)
        from sklearn.model_selection import KFold  # a large package, and only folds need it

        for fold, (_, held) in enumerate(KFold(n_folds, shuffle=True, random_state=seed).split(draws)):
            fold_of[held] = fold
        entries, number = np.unique(draws * n_folds + fold_of, return_counts=True)
        return cls(entries // n_folds, entries % n_folds, number, counts, n_rows)

    def parts(self) -> list[tuple[Part | None, Part | None]]:
        """What each member sees, and what it is tested on."""
        found: list[tuple[Part | None, Part | None]] = []
        for fold in range(int(self.fold.max()) + 1):
            mine = self.fold == fold
            held = np.bincount(self.row[mine], self.number[mine], self.n_rows).astype(np.int64)
            seen = (1 if self.counts is None else self.counts) - held
            weighted = self.counts is not None
            found.append((Part.of(seen, weighted), Part.of(held, weighted)))
        return found


def _until_interrupted(members: Sequence[BaseEstimator]) -> Iterator[BaseEstimator]:
    """The members one after the other; none after one that Ctrl-C has ended."""
    for member in members:
        yield member
        if interrupted():
            return


def _fit_member(
    member: BaseEstimator,
    X: TableLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    seen: Part | None,
    held: Part | None,
    **stage: Checkpoint,
) -> tuple[BaseEstimator, Floats | None]:
    """One member, and its predictions for the rows whose draws it was not shown."""
    if seen is None or held is None:
        weights = () if sample_weight is None else (sample_weight,)
        return _compact(member.fit(X, y, *weights, **stage)), None
    weights = () if seen.counts is None else (seen.counts,)
    member.fit(_safe_indexing(X, seen.rows), _safe_indexing(y, seen.rows), *weights, **stage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenItemsWarning)  # an item may occur in the held-out fold only
        return _compact(member), member.predict(_safe_indexing(X, held.rows))


def _compact(member: BaseEstimator) -> BaseEstimator:
    """Large memberships in single precision: half the memory, the same predictions to six digits. Without the data."""
    forget_data(member)
    posterior = getattr(member, "posterior_", None)
    if posterior is not None and sum(q.size for q in posterior.assign) > LARGE:
        member.posterior_ = replace(posterior, assign=tuple(q.astype(np.float32) for q in posterior.assign))
    return member
