"""InformationClustering: clusters that generalise to features nobody has looked at (P4)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import xlogy
from sklearn.base import ClusterMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gingham.arrays import AnyArray, Bools, Floats, Ints, Seed, TableLike
from gingham.cards import certificate_card
from gingham.certificates.bounds import GibbsLaw, log_wealth_lower
from gingham.certificates.confidence import checked_delta
from gingham.certificates.papers import Statement, lemma1, p4_theorem1, p4_theorem2
from gingham.data import Mode
from gingham.data.adapt import Names, categorical_entries, category_names, with_names
from gingham.engine.sweep import make_board
from gingham.errors import GinghamError, RefusedCertificate
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Restart, Run, best_of
from gingham.fitting.sweep import Sweep
from gingham.models.base import Persistent
from gingham.models.questions import Predicted
from gingham.summary.values import Observed, Refit, Relation

if TYPE_CHECKING:
    from gingham.summary.make_summary import ItemInfo

SHUFFLES = 5


@dataclass(frozen=True, eq=False)
class Entries:
    """Observed entries of a table of categories."""

    rows: Ints
    columns: Ints
    values: Ints
    shape: tuple[int, int]  # instances, features
    n_values: int  # most values a feature has

    def feature_information(self, labels: Ints, n_clusters: int) -> Floats:
        """P(X_j observed)·I(T; X_j | observed) of each feature, nats, shape (features,).

        Their mean is I_ob of P4 (which forgets the 1/n in the version with missing values).
        """
        n, d = self.shape
        cell = (labels[self.rows] * d + self.columns).astype(np.int64) * self.n_values + self.values
        table = np.bincount(cell, minlength=n_clusters * d * self.n_values).reshape(n_clusters, d, self.n_values)
        by_cluster, by_value = table.sum(axis=2), table.sum(axis=0)
        seen = by_value.sum(axis=1)
        total = xlogy(table, table).sum(axis=(0, 2)) - xlogy(by_cluster, by_cluster).sum(axis=0)
        total += xlogy(seen, seen) - xlogy(by_value, by_value).sum(axis=1)
        return np.maximum(np.asarray(total) / n, 0.0)

    def digests(self) -> AnyArray:
        """Equal for features with the same values in the same instances; 0 where all values are the same."""
        order = np.argsort(self.columns, kind="stable")
        edges = np.searchsorted(self.columns[order], np.arange(self.shape[1] + 1))
        found = np.zeros(self.shape[1], dtype=np.uint64)
        for j, (start, stop) in enumerate(pairwise(edges)):
            mine = order[start:stop]
            if stop > start and np.ptp(self.values[mine]):
                whole = np.stack([self.rows[mine], self.values[mine]]).astype(np.int64).tobytes()
                found[j] = int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")
        return found


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


@dataclass(frozen=True)
class UnobservedCertificate:
    """A lower bound on the information that the clusters carry about a new feature of the same population.

    With probability at least 1 − delta over the draw of the held-out features, the expected information
    is at least ``value`` nats a feature. The clusters must not have seen these features.
    """

    value: float
    empirical: float
    chance: float
    n_features: int
    delta: float

    def explain(self) -> str:
        return (
            f"Knowing an instance's cluster tells at least {self.value:.4g} nats about a new feature, with confidence "
            f"{100 * (1 - self.delta):g} %. On the {self.n_features} held-out features it told {self.empirical:.4g}; "
            f"clusters dealt out at random would seem to tell {self.chance:.4g}, so only the rest is knowledge. "
            "It rests on: the features were drawn independently of each other from those that could have been asked "
            "[given], and none of them was used to form the clusters [given]."
        )

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        return certificate_card(self.value, True, self.explain())

    def to_dict(self) -> dict[str, object]:
        """Plain values, as a page shows them."""
        assumptions = [
            {"text": "The features are independent draws from all that one could ask.", "status": "given"},
            {"text": "None of them was used to form the clusters.", "status": "given"},
        ]
        return {
            "value": self.value, "empirical": self.empirical, "delta": self.delta, "n_tuples": self.n_features,
            "unit": "features", "at_least": True, "predictor": "clusters", "bound": "log-wealth", "worst": None,
            "loss": "information about a feature, nats", "terms": {}, "others": [], "assumptions": assumptions,
            "explanation": self.explain(),
        }  # fmt: skip


@dataclass(eq=False, repr=False)
class InformationClustering(ClusterMixin, Persistent):
    """Cluster instances so that the clusters say as much as possible about features, observed and unobserved.

    Maximises I_ob = (1/n) Σ_j P(X_j observed) I(T; X_j | observed) by greedy moves (P4, IobMax).

    Parameters
    ----------
    n_clusters : int
    n_init : int
        Random starts, side by side on all cores; the one with the most information is kept.
    max_iter, tol : int, float
        Sweeps end when at most this share of the instances moves.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_ : array of shape (n_instances,), clusters from 0
    observed_information_ : I_ob, nats a feature
    chance_information_ : the same for shuffled labels; plug-in information is biased upwards by about this
    feature_information_ : array of shape (n_features,), each feature's share
    feature_digests_ : array of shape (n_features,), by which a feature that took part is known again
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
        "labels_", "observed_information_", "chance_information_", "feature_information_", "n_iter_", "converged_",
        "n_values_", "missing_", "feature_digests_",
    )  # fmt: skip

    n_clusters: int = 2
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
        entries = Entries(*categorical_entries(X))
        checkpoint.bound_to(self, X)
        validate_data(self, X, skip_check_array=True, reset=True)
        if not isinstance(self.n_clusters, (int, np.integer)) or self.n_clusters < 1:
            raise GinghamError(f"n_clusters={self.n_clusters!r} must be a whole number from 1.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        found = self._best(entries, min(int(self.n_clusters), entries.shape[0]), rng, checkpoint)
        self._set_run(found)
        self.labels_, self.feature_information_ = found.state
        self.observed_information_ = float(self.feature_information_.mean())
        self.chance_information_ = self._chance(entries, rng)
        self.n_values_, self.feature_digests_ = entries.n_values, entries.digests()
        self.missing_ = len(entries.rows) < entries.shape[0] * entries.shape[1]
        self.modes_ = feature_modes(X, names, entries)
        self._remember(entries, len(entries.rows), item_info)
        return self

    def observed(self, *data: Any) -> Observed:
        """Which values instances have, counted: every value of every feature is an item."""
        entries = Entries(*categorical_entries(data[0])) if data else self._remembered("gg.summarize(model, X)")
        modes = self.modes_ if not data and hasattr(self, "modes_") else feature_modes(data[0], None, entries)
        value = entries.columns.astype(np.int64) * entries.n_values + entries.values
        codes = (entries.rows, np.unique(value, return_inverse=True)[1].astype(np.int32))
        return Observed(
            modes,
            (Relation((0, 1), codes, "lift", label="value"),),
            (self.labels_, None),
            given=(True, False),
            refit=lambda kept: self._refit(entries, kept),
        )

    def _keep_for_questions(self) -> None:
        if self._data is not None:
            self.value_shares_ = value_shares(self._data, self.labels_)

    def predict_codes(self, relation: int, codes: Sequence[Ints], label: object = None) -> Predicted:
        """How common each value of each feature is in the instance's cluster, with the spread of such a coin."""
        if not hasattr(self, "value_shares_"):
            raise GinghamError("This model file does not know the values of features: fit again.")
        chance = self.value_shares_[self.labels_[codes[0]], codes[1]]
        return Predicted(chance, np.sqrt(chance * (1 - chance)))

    def _known_partners(self, side: int, code: int, own: int, other: int, seen: TableLike | None) -> Ints:
        """A feature of which one value was observed has no other."""
        known = super()._known_partners(side, code, own, other, seen)
        if own != 0:
            return known
        features = np.array([str(item).rpartition(" = ")[0] for item in self.summary_.sides[1].items.tolist()])
        return np.flatnonzero(np.isin(features, features[known]))

    def _refit(self, entries: Entries, kept: Bools) -> Refit:
        part = replace(entries, rows=entries.rows[kept], columns=entries.columns[kept], values=entries.values[kept])
        found = self._best(part, int(self.labels_.max()) + 1, np.random.default_rng(0))
        return Refit((found.state[0], None))

    def _best(
        self, entries: Entries, k: int, rng: np.random.Generator, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Run[tuple[Ints, Floats]]:
        """The clusters of some starts that tell most."""
        n = entries.shape[0]

        def solve(restart: Restart) -> Run[tuple[Ints, Floats]]:
            sweep = Sweep(0.0, self.tol, self.max_iter, int(restart.rng.integers(2**31)))
            return iob_max(entries, k, restart.rng.permutation(np.arange(n) % k), sweep, restart)

        return best_of(
            solve, self.n_init, rng, max_iter=self.max_iter, checkpoint=checkpoint, one_core=True,
            cost=lambda found: -float(found.state[1].mean()),
        )  # fmt: skip

    def _chance(self, entries: Entries, rng: np.random.Generator) -> float:
        k = int(self.labels_.max()) + 1
        shuffled = [entries.feature_information(rng.permutation(self.labels_), k).mean() for _ in range(SHUFFLES)]
        return float(np.mean(shuffled))

    def _other(self, X: TableLike) -> tuple[Entries, Floats]:
        check_is_fitted(self)
        entries = Entries(*categorical_entries(X))
        if entries.shape[0] != len(self.labels_):
            raise GinghamError(
                f"The table has {entries.shape[0]} rows; the clusters are of {len(self.labels_)} instances, "
                "and the rows must be the same ones, in the same order."
            )
        return entries, entries.feature_information(self.labels_, int(self.labels_.max()) + 1)

    def unobserved_information(self, X: TableLike) -> float:
        """I_un: nats a feature that the clusters tell about other features of the same instances."""
        return float(self._other(X)[1].mean())

    def chance_of(self, X: TableLike, random_state: Seed = 0) -> float:
        """What shuffled labels would seem to tell about the same features."""
        return self._chance(self._other(X)[0], np.random.default_rng(random_state))

    def certify(self, X: TableLike, delta: float = 0.05) -> UnobservedCertificate:
        """A lower bound on I_un from features that were held out: log-wealth without a complexity term.

        Features that the clusters were formed from are refused: by name where both tables name their columns, otherwise
        by their values.
        """
        checked_delta(delta)
        entries, _ = self._other(X)
        own, names = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        if own is not None and names is not None:
            learned = np.isin(np.asarray(names, dtype=str), np.asarray(own, dtype=str))
        else:
            digests = entries.digests()
            learned = np.isin(digests, self.feature_digests_) & (digests != 0)
        if learned.any():
            raise RefusedCertificate(
                f"{int(learned.sum())} of {len(learned)} features (column {int(np.flatnonzero(learned)[0])}, for one) "
                "took part in forming the clusters, and what clusters tell about those proves nothing about others. "
                "Give features that the fit has not seen; if they only have the same values, name the columns of both "
                "tables."
            )
        return self.certify_new(X, delta)

    def certify_new(self, X: TableLike, delta: float = 0.05) -> UnobservedCertificate:
        """The same for features that are known to be new, by whatever means."""
        entries, each = self._other(X)
        top = np.log(max(int(self.labels_.max()) + 1, 2))  # I(T; X) ≤ ln k
        law = GibbsLaw.of(np.minimum(each / top, 1.0), np.ones(len(each)))
        bound = log_wealth_lower(law, 0.0, len(each), delta)
        chance = self._chance(entries, np.random.default_rng(0))
        return UnobservedCertificate(bound.value * float(top), float(each.mean()), chance, len(each), delta)

    def references(self, delta: float = 0.05) -> dict[str, Statement]:
        """How far I_ob and I_un can be apart by P4's Lemma 1 and Theorems 1 and 2 (vacuous in practice)."""
        check_is_fitted(self)
        k, n, d = int(self.n_clusters), len(self.labels_), len(self.feature_information_)
        values, missing = int(self.n_values_), bool(self.missing_)
        return {
            "lemma 1": lemma1(d, n, k, delta),
            "theorem 1": p4_theorem1(d, k, values, delta, missing),
            "theorem 2": p4_theorem2(d, k, values, delta, missing),
        }


def value_shares(entries: Entries, labels: Ints) -> Floats:
    """How common each observed value of a feature is in each cluster, among its instances that have the feature.

    Shape (clusters, values of all features that were observed); one instance more has the values of all.
    """
    k, d, width = int(labels.max()) + 1, entries.shape[1], entries.n_values
    value = entries.columns.astype(np.int64) * width + entries.values
    counts = np.bincount(labels[entries.rows] * (d * width) + value, minlength=k * d * width).reshape(k, d, width)
    whole = counts.sum(axis=0) / np.maximum(counts.sum(axis=(0, 2))[:, None], 1)
    shares = (counts + whole) / (counts.sum(axis=2, keepdims=True) + 1)
    return np.asarray(shares.reshape(k, d * width)[:, np.unique(value)])


def feature_modes(X: TableLike, names: Names, entries: Entries) -> tuple[Mode, Mode]:
    """Instances, and every value of every feature that was observed, as items with names: "fever = yes"."""
    _, axes, (rows, features) = with_names(X, names)
    n, d = entries.shape
    own = np.arange(n) if rows is None else rows
    titles = [str(name) for name in (np.arange(d) if features is None or len(features) != d else features).tolist()]
    values = category_names(X)
    present = np.unique(entries.columns.astype(np.int64) * entries.n_values + entries.values)
    items = [f"{titles[at // entries.n_values]} = {values[at // entries.n_values][at % entries.n_values]}"
             for at in present.tolist()]  # fmt: skip
    row_name, column_name = axes or ("instance", "feature")
    return Mode(row_name, own), Mode(column_name, np.array(items, dtype=object))
