"""InformationClustering: clusters that generalise to features nobody has looked at (P4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import ArrayLike, Bools, Floats, Ints, Seed, TableLike
from gingham.certificates.bounds import LossDistribution, checked_delta, log_wealth, log_wealth_lower
from gingham.certificates.papers import Statement, lemma1, p4_theorem1, p4_theorem2
from gingham.data import Mode
from gingham.data.adapt import Names, category_names, with_names
from gingham.engine.sweep import make_board
from gingham.errors import GinghamError, RefusedCertificate, positive_integer
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Restart, Run, best_of
from gingham.fitting.sweep import Sweep
from gingham.models.base import Persistent
from gingham.models.features.attributes import (
    MOST_CLUSTERS,
    AttributePrediction,
    averaged_over_prunings,
    error_of_attribute,
    number_of_clusters,
)
from gingham.models.features.certificate import UnobservedCertificate
from gingham.models.features.entries import Entries, ValueTable, positions, value_names
from gingham.models.questions import Predicted
from gingham.summary.values import Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.summary.item_tables import ItemInfo

SHUFFLES = 5


def iob_max(entries: Entries, n_clusters: int, start: Ints, sweep: Sweep, restart: Restart) -> Run[tuple[Ints, Floats]]:
    """Move instances one by one while the observed information rises: their clusters, and that of each feature.

    Features stand as singletons, so the cost of the log cells, N·H(X_j | T) summed over features, differs
    from −n·Σ_j P(observed) I(T; X_j) by a constant only.
    """
    d = entries.shape[1]
    board = make_board(
        "log", (entries.rows, entries.columns), (start, np.arange(d)), (n_clusters, d), (0,),
        marks=entries.values, n_features=entries.n_values,
    )  # fmt: skip
    run = sweep.descend(board, (0,), 1.0, 0.0, restart.report, restart.checkpoint)
    labels = board.labels_of(0).copy()
    found = (labels, entries.feature_information(labels, n_clusters))
    return Run(found, run.trace, run.converged, run.interrupted)


@dataclass(eq=False, repr=False)
class InformationClustering(ClusterMixin, Persistent):
    """Cluster instances so that the clusters say as much as possible about features, observed and unobserved.

    Maximises I_ob = (1/n) Σ_j P(X_j observed) I(T; X_j | observed) by greedy moves (P4, IobMax).

    Parameters
    ----------
    n_clusters : int or "auto"
        "auto" takes the number that describes features set aside in the fewest nats, at most 50.
    n_init : int
        Random starts, side by side on all cores; the one with the most information is kept.
    max_iter, tol : int, float
        Sweeps end when at most this share of the instances moves.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : array of shape (n_instances,), clusters from 0
    n_clusters_ : the number of clusters in use
    observed_information_ : I_ob, nats a feature
    chance_information_ : the same for shuffled labels; plug-in information is biased upwards by about this
    feature_information_ : array of shape (n_features,), each feature's share
    trace_, n_iter_, converged_

    Examples
    --------
    >>> import numpy as np
    >>> from gingham import InformationClustering
    >>> table = np.array([[0, 0, np.nan], [0, 0, 1], [1, 1, 0], [1, np.nan, 0]])
    >>> round(InformationClustering(n_clusters=2, random_state=0).fit(table).observed_information_, 3)
    0.549
    """

    _saved_attributes = (
        "labels_", "n_clusters_", "observed_information_", "chance_information_", "feature_information_", "n_iter_",
        "converged_", "_table", "_table_names", "_digests",
    )  # fmt: skip
    n_clusters: int | str = 2
    n_init: int = 3
    max_iter: int = 100
    tol: float = 1e-3
    random_state: Seed = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    @interruptible()
    def fit(
        self,
        X: TableLike,
        y: object = None,
        *,
        names: Names = None,
        item_info: ItemInfo | None = None,
        checkpoint: Checkpoint = NO_CHECKPOINT,
    ) -> Self:
        """Cluster the rows of a table of categories; NaN, None and nulls are missing.

        Parameters
        ----------
        X : array or frame of shape (n_instances, n_features)
        names : mapping from the name of a side to the names of its items, or a pair of lists, optional
            ``{"patient": […], "symptom": […]}``; a frame names its features.
        item_info : mapping from the name of a side to a frame, optional
            What is known of the instances, a row each; for summaries only, see :func:`gingham.summarize`.
        checkpoint : Checkpoint, optional
            Keeps where the fit stands, see ``gingham.fitting.checkpoints``.
        """
        entries = Entries.of(X)
        checkpoint.bound_to(self, X)
        validate_data(self, X, skip_check_array=True, reset=True)
        rng = self._generator()
        self.n_clusters_ = self._size(entries, rng)
        found = self._best(entries, self.n_clusters_, rng, self.n_init, checkpoint)
        self._set_run(found)
        self.labels_, self.feature_information_ = found.state
        self.observed_information_ = float(self.feature_information_.mean())
        self.chance_information_ = self._chance(entries, rng)
        self._table = ValueTable.of(entries, self.labels_, self.n_clusters_)
        self._table_names = value_names(np.unique(entries.flat), entries.n_values, category_names(X))
        self._digests = entries.digests()
        self.modes_ = feature_modes(X, names, entries)
        self._remember(entries, len(entries.rows), item_info)
        return self

    def _size(self, entries: Entries, rng: np.random.Generator) -> int:
        if self.n_clusters == "auto":
            return number_of_clusters(entries, lambda part, k, rng: self._best(part, k, rng, 1).state[0], rng)
        return min(positive_integer("n_clusters", self.n_clusters, ", or 'auto'"), entries.shape[0])

    def _observed(self, *data: Any) -> Observed:
        """Which values instances have, counted: every value of every feature is an item."""
        entries = Entries.of(data[0]) if data else self._remembered("gg.summarize(model, X)")
        modes = self.modes_ if not data and hasattr(self, "modes_") else feature_modes(data[0], None, entries)
        codes = (entries.rows, np.unique(entries.flat, return_inverse=True)[1].astype(np.int32))
        return Observed(
            modes,
            (Relation((0, 1), codes, "lift", label="value"),),
            (self.labels_, None),
            given=(True, False),
            refit=lambda kept: self._refit(entries, kept),
        )

    def _predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """How common each value of each feature is in the instance's cluster, with the spread of such a coin."""
        chance = self._table.shares()[self.labels_[codes[0]], codes[1]]
        return Predicted(chance, np.sqrt(chance * (1 - chance)))

    def _known_partners(self, side: int, code: int, own: int, other: int, seen: TableLike | None) -> Ints:
        """A feature of which one value was observed has no other."""
        known = super()._known_partners(side, code, own, other, seen)
        if own != 0:
            return known
        features = np.array([str(item).rpartition(" = ")[0] for item in self.summary_.sides[1].items.tolist()])
        return np.flatnonzero(np.isin(features, features[known]))

    def _refit(self, entries: Entries, kept: Bools) -> Refit:
        found = self._best(entries.only(kept), self.n_clusters_, np.random.default_rng(0), self.n_init)
        return Refit((found.state[0], None))

    def _best(
        self, entries: Entries, k: int, rng: np.random.Generator, n_init: int, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Run[tuple[Ints, Floats]]:
        """The clusters of some starts that tell most."""
        n = entries.shape[0]

        def solve(restart: Restart) -> Run[tuple[Ints, Floats]]:
            sweep = Sweep(0.0, self.tol, self.max_iter, int(restart.rng.integers(2**31)))
            return iob_max(entries, k, restart.rng.permutation(np.arange(n) % k), sweep, restart)

        return best_of(
            solve, n_init, rng, max_iter=self.max_iter, checkpoint=checkpoint, one_core=True,
            cost=lambda found: -float(found.state[1].mean()),
        )  # fmt: skip

    def _chance(self, entries: Entries, rng: np.random.Generator) -> float:
        k = self.n_clusters_
        shuffled = [entries.feature_information(rng.permutation(self.labels_), k).mean() for _ in range(SHUFFLES)]
        return float(np.mean(shuffled))

    def predict(self, X: TableLike) -> Ints:
        """The cluster that each new instance, a row of the features of the fit, joins.

        It is the cluster that loses the least information by it; values that the fit has not met count as missing.
        """
        check_is_fitted(self)
        entries = Entries.of(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._table.place(*positions(entries, category_names(X), self._table_names), entries.shape[0])

    def predict_attribute(self, y: ArrayLike, X: TableLike | None = None) -> AttributePrediction:
        """A new attribute of all instances from a few whose value is known.

        All ways to merge the clusters along their tree predict, each weighted by how well it explains the known values,
        so that an attribute may follow fine clusters or coarse ones.

        Parameters
        ----------
        y : array of shape (n_instances,)
            The attribute of the instances of the fit, in their order; None or NaN where it is not known.
        X : table of new instances, optional
            Predict for these, placed by `predict`, in place of those of the fit.

        Returns
        -------
        AttributePrediction
            ``values``, ``probabilities`` and ``classes``.
        """
        check_is_fitted(self)
        column = np.asarray(y)
        if column.ndim != 1 or len(column) != len(self.labels_):
            raise GinghamError(
                f"y has shape {column.shape}; it must have one value per instance of the fit, {len(self.labels_)} in "
                "all: None or NaN where it is not known."
            )
        known = np.flatnonzero([not (value is None or value != value) for value in column.tolist()])
        if not len(known):
            raise GinghamError("y has no known value: give that of at least one instance.")
        classes, given = np.unique(column[known].tolist(), return_inverse=True)
        chances = averaged_over_prunings(self._table.tree(), self.labels_[known], given, len(classes))
        chances = chances[self.labels_ if X is None else self.predict(X)]
        values = classes[chances.argmax(axis=1)]
        if X is None:
            values[known] = classes[given]
        return AttributePrediction(values, chances, classes)

    def _other(self, X: TableLike) -> Entries:
        check_is_fitted(self)
        entries = Entries.of(X)
        if entries.shape[0] != len(self.labels_):
            raise GinghamError(
                f"The table has {entries.shape[0]} rows; the clusters are of {len(self.labels_)} instances, "
                "and the rows must be the same ones, in the same order."
            )
        return entries

    def unobserved_information(self, X: TableLike) -> float:
        """I_un: nats a feature that the clusters tell about other features of the same instances."""
        return float(self._other(X).feature_information(self.labels_, self.n_clusters_).mean())

    def chance_of(self, X: TableLike, random_state: Seed = 0) -> float:
        """What shuffled labels would seem to tell about the same features."""
        return self._chance(self._other(X), np.random.default_rng(random_state))

    def certify(self, X: TableLike, delta: float = 0.05, n_labelled: int | None = None) -> UnobservedCertificate:
        """Compute a lower bound on I_un from held-out features: log-wealth without a complexity term.

        Features that the clusters were formed from are refused: by name where both tables name their columns, otherwise
        by their values.

        Parameters
        ----------
        X : table of other features of the same instances, in the same order
        n_labelled : int, optional
            Bound the share of wrong values of `predict_attribute` from so many instances, drawn at random, instead.
        """
        checked_delta(delta)
        own, names = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        if own is not None and names is not None:
            learned = np.isin(np.asarray(names, dtype=str), np.asarray(own, dtype=str))
        else:
            digests = self._other(X).digests()
            learned = np.isin(digests, self._digests) & (digests != 0)
        if learned.any():
            raise RefusedCertificate(
                f"{int(learned.sum())} of {len(learned)} features (column {int(np.flatnonzero(learned)[0])}, for one) "
                "were used to form the clusters, so they cannot test them. Give features that the fit has not seen; "
                "if they have the same values by chance, name the columns of both tables."
            )
        return self.certify_new(X, delta, n_labelled)

    def certify_new(self, X: TableLike, delta: float = 0.05, n_labelled: int | None = None) -> UnobservedCertificate:
        """The same for features that are known to be new, by whatever means."""
        entries, rng = self._other(X), np.random.default_rng(0)
        if n_labelled is not None:
            return self._certify_error(entries, delta, n_labelled, rng)
        each = entries.feature_information(self.labels_, self.n_clusters_)
        top = np.log(max(int(self.labels_.max()) + 1, 2))  # I(T; X) ≤ ln k
        distribution = LossDistribution.of(np.minimum(each / top, 1.0), np.ones(len(each)))
        bound = log_wealth_lower(distribution, 0.0, len(each), delta)
        value, chance = bound.value * float(top), self._chance(entries, rng)
        return UnobservedCertificate(value, float(each.mean()), chance, len(each), delta)

    def _certify_error(
        self, entries: Entries, delta: float, n_labelled: int, rng: np.random.Generator
    ) -> UnobservedCertificate:
        n_labelled = positive_integer("n_labelled", n_labelled)
        tree = self._table.tree()
        columns = [entries.only(entries.columns == j) for j in range(entries.shape[1])]
        errors = np.array([
            error_of_attribute(column, self.labels_, tree, rng.permutation(len(column.rows))[:n_labelled])
            for column in columns if len(column.rows) > n_labelled
        ])  # fmt: skip
        if not len(errors):
            raise RefusedCertificate(f"No feature is known of more than {n_labelled} instances.")
        distribution = LossDistribution.of(errors[:, 0], np.ones(len(errors)))
        bound = log_wealth(distribution, 0.0, len(errors), delta)
        mean, chance = (float(share) for share in errors.mean(axis=0))
        return UnobservedCertificate(bound.value, mean, chance, len(errors), delta, n_labelled)

    def references(self, delta: float = 0.05) -> dict[str, Statement]:
        """How far I_ob and I_un can be apart by P4's Lemma 1 and Theorems 1 and 2 (near or above ln k in practice)."""
        check_is_fitted(self)
        n, d = len(self.labels_), len(self.feature_information_)
        # A number that was chosen by the features is any up to the most that were tried.
        k = MOST_CLUSTERS if self.n_clusters == "auto" else self.n_clusters_
        values = int(np.bincount(self._table.feature_of).max())
        missing = bool(self._table.counts.sum() < n * d)
        return {
            "lemma 1": lemma1(d, n, k, delta),
            "theorem 1": p4_theorem1(d, k, values, delta, missing),
            "theorem 2": p4_theorem2(d, k, values, delta, missing),
        }


def feature_modes(X: TableLike, names: Names, entries: Entries) -> tuple[Mode, Mode]:
    """Instances, and every value of every feature that was observed, as items with names: "fever = yes"."""
    _, axes, (rows, features) = with_names(X, names)
    n, d = entries.shape
    titles = (np.arange(d) if features is None or len(features) != d else features).tolist()
    items = value_names(np.unique(entries.flat), entries.n_values, category_names(X), titles)
    row_name, column_name = axes or ("instance", "feature")
    return Mode(row_name, np.arange(n) if rows is None else rows), Mode(column_name, items.astype(object))
