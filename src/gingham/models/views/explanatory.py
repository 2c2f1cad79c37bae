"""ExplanatoryClustering: weights over given clusters, with a certificate (P3 §2.1, §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, cast

import numpy as np
from scipy.optimize import brentq
from scipy.special import rel_entr, softmax
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from gingham import storage
from gingham.arrays import ArrayLike, Bools, Floats, Ints
from gingham.certificates.clusters import ClusterCertificate, certify_clusters
from gingham.data.adapt import frame_of
from gingham.errors import GinghamError, one_of
from gingham.models.base import Saved

PAIRS = ("matched", "all")
Memberships = ArrayLike | Sequence[ArrayLike]  # indicators of one view, or of several


@dataclass(eq=False, repr=False)
class ExplanatoryClustering(Saved, BaseEstimator):
    r"""Which of these given clusters explain the data? Weights Q over indicator functions, P3 (14) and (29).

    A *cluster* is an indicator f(x); a *pairwise cluster* has one in every view, and an object contradicts it when
    they disagree. Weights minimise the expected contradiction E_Q P̂(f ≠ g) (with one view: minus the explanatory power
    E_Q P̂(f = 1)) over the simplex: under KL(Q‖P) ≤ ω, which Gibbs weights solve, or plus ``penalty``·‖Q‖², a quadratic
    program; both exactly.

    Parameters
    ----------
    penalty : float
        Large: all clusters alike; small: only the best. It plays no part where ``divergence`` is given.
    divergence : float, optional
        ω, the largest KL(Q‖P) in nats: P3 (9)-(10) and (27)-(28), as printed. 0: the prior; large: only the best.
    pairs : {"matched", "all"}
        Column c of every view is one pairwise cluster, or (two views) every column of the first is paired with
        every column of the second, as in P3's figure 2.
    realizable : bool
        P3 (29): weight, as even as possible, on clusters that no object contradicts, and none on others.
    min_coverage : float
        Clusters that hold (in all views) for a smaller share of the objects get no weight: an empty cluster is
        never contradicted.
    prior : array-like of shape (n_clusters,), optional
        P, fixed before the data are seen; uniform when None.

    Attributes
    ----------
    weights_ : ndarray of shape (n_clusters,) or (n_first, n_second) for pairs="all"
        Q.
    risks_, coverages_ : ndarray, same shape
        P̂(f ≠ g) and P̂(f = g = 1) of each cluster.
    risk_, coverage_ : float
        Their means under Q.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham import ExplanatoryClustering
    >>> left = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    >>> model = ExplanatoryClustering(pairs="all", realizable=True, min_coverage=0.1).fit([left, left])
    >>> model.weights_
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    _saved_attributes = (
        "n_views_", "n_clusters_in_", "weights_", "risks_", "coverages_", "risk_", "coverage_",
    )  # fmt: skip
    _sample = cast("list[Bools] | None", None)  # of the last fit; a file does not hold it

    penalty: float = 1.0
    _: KW_ONLY
    divergence: float | None = None
    pairs: str = "matched"
    realizable: bool = False
    min_coverage: float = 0.0
    prior: ArrayLike | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # indicators of clusters, false or true: one matrix per view
        return tags

    def _to_file(self) -> storage.State:
        """Parameters and fitted attributes."""
        check_is_fitted(self)
        return {
            "params": self.get_params(deep=False),
            "fitted": {name: getattr(self, name) for name in self._saved_attributes},
        }

    @classmethod
    def _from_file(cls, state: storage.State) -> Self:
        model = cls(**state["params"])
        for name in cls._saved_attributes:
            setattr(model, name, state["fitted"][name])
        return model

    def fit(self, memberships: Memberships, y: object = None) -> Self:
        """Find the weights.

        Parameters
        ----------
        memberships : array-like of shape (n_samples, n_clusters), or a list with one such array per view
            Indicators, true or 1 where the object is in the cluster.
            ``PairwiseClusterAnalysis.memberships`` makes them from scores.
        y : ignored
        """
        if not self.penalty > 0:
            raise GinghamError(f"penalty={self.penalty} must be positive.")
        if self.divergence is not None and not self.divergence >= 0:
            raise GinghamError(f"divergence={self.divergence} must not be negative.")
        indicators = self._indicators(memberships)
        every_pair = self._every_pair(indicators)
        risks, coverages = contradiction(indicators, every_pair), coverage(indicators, every_pair)
        prior = self._prior(len(risks))
        excluded = coverages < self.min_coverage
        if self.realizable:
            excluded |= risks > 0
        costs = np.where(excluded, np.inf, 0.0 if self.realizable else risks)
        if self.divergence is None:
            weights = simplex_weights(costs, prior, self.penalty)
        else:
            weights = gibbs_weights(costs, prior, self.divergence)
        self.n_views_ = len(indicators)
        self.n_clusters_in_ = tuple(m.shape[1] for m in indicators)
        shape = self.n_clusters_in_ if every_pair else (len(risks),)
        self.weights_, self.risks_, self.coverages_ = (part.reshape(shape) for part in (weights, risks, coverages))
        self.risk_, self.coverage_ = float(weights @ risks), float(weights @ coverages)
        self._sample = indicators
        return self

    def describe(self, size: object = None, backend: str | None = None) -> Any:
        """The clusters as a frame: cluster (from 1, in each view), weight, coverage, contradiction; heaviest first."""
        check_is_fitted(self)
        places = np.stack(
            np.unravel_index(np.argsort(-self.weights_, axis=None, kind="stable"), self.weights_.shape), 1
        )
        names = [" × ".join(str(c + 1) for c in place) for place in places.tolist()]
        at = tuple(places.T)
        return frame_of(
            {
                "cluster": names,
                "weight": self.weights_[at].tolist(),
                "coverage": self.coverages_[at].tolist(),
                "contradiction": self.risks_[at].tolist(),
            },
            backend,
        )

    def certify(
        self, memberships: Memberships | None = None, delta: float = 0.05, bound: str = "log-wealth"
    ) -> ClusterCertificate:
        """Bound the risk and the coverage on new objects; P3's Theorem 1 or the log-wealth bound.

        The clusters must have been fixed before these objects were seen (fit a PairwiseClusterAnalysis on other
        objects, say); the weights may have been fitted to them.

        Parameters
        ----------
        memberships : as in ``fit``, optional
            The objects to certify on; those of ``fit`` when None.
        bound : {"log-wealth", "theorem-1"}
        """
        check_is_fitted(self, "weights_")
        indicators = self._sample if memberships is None else self._known(memberships)
        if indicators is None:
            raise GinghamError("A loaded model has no objects to certify on; give memberships=.")
        every_pair = self._every_pair(indicators)
        weights = self.weights_.ravel()
        risks, covered, by_chance = (fact(indicators, every_pair) for fact in (contradiction, coverage, chance))
        prior, n = self._prior(len(weights)), len(indicators[0])
        return certify_clusters(weights, prior, risks, covered, by_chance, n, delta, bound)

    def explanatory_power(self, memberships: Memberships) -> Floats:
        """Σ_c Q(c) [object in cluster c in all views], shape (n_samples,): P3 (8) object by object."""
        check_is_fitted(self, "weights_")
        indicators = [m.astype(np.float64) for m in self._known(memberships)]
        if self._every_pair(indicators):
            return np.einsum("na,ab,nb->n", indicators[0], self.weights_, indicators[1], optimize=True)
        return np.prod(np.stack(indicators), axis=0) @ self.weights_

    def predict_memberships(self, view: int, memberships: ArrayLike, other: int) -> Floats:
        """Expected indicators in another view given those in one: "if we observe x, what can be said about y?"

        Weight that clusters active for the object give to each column of the other view, shape
        (n_samples, n_clusters of the other view); rows sum to one where any cluster with weight is active.
        """
        check_is_fitted(self, "weights_")
        for number in (view, other):
            if not 0 <= number < self.n_views_:
                raise GinghamError(f"There is no view {number}: views are numbered 0 to {self.n_views_ - 1}.")
        active = _indicator(memberships, view).astype(np.float64)
        if active.shape[1] != self.n_clusters_in_[view]:
            raise GinghamError(
                f"View {view} was fitted with {self.n_clusters_in_[view]} clusters, not {active.shape[1]}."
            )
        table = self.weights_ if self.weights_.ndim == 2 else np.diag(self.weights_)
        if self.weights_.ndim == 2 and view > other:
            table = table.T
        votes = active @ table
        total = votes.sum(axis=1, keepdims=True)
        return np.divide(votes, total, out=np.zeros_like(votes), where=total > 0)

    def _every_pair(self, indicators: Sequence[Bools] | Sequence[Floats]) -> bool:
        one_of("pairs", self.pairs, PAIRS)
        widths = {m.shape[1] for m in indicators}
        if self.pairs == "all":
            if len(indicators) != 2:
                raise GinghamError(f"pairs='all' needs two views, {len(indicators)} given.")
            return True
        if len(widths) > 1:
            raise GinghamError(f"Matched clusters need as many columns in every view; given: {sorted(widths)}.")
        return False

    def _indicators(self, memberships: Memberships) -> list[Bools]:
        several = isinstance(memberships, (list, tuple))
        views = list(cast(Sequence[ArrayLike], memberships)) if several else [cast(ArrayLike, memberships)]
        indicators = [_indicator(view, number) for number, view in enumerate(views)]
        if not indicators:
            raise GinghamError("No memberships were given.")
        if len({len(m) for m in indicators}) > 1:
            counts = ", ".join(str(len(m)) for m in indicators)
            raise GinghamError(f"All views need the same number of rows, one per object: {counts} given.")
        return indicators

    def _known(self, memberships: Memberships) -> list[Bools]:
        indicators = self._indicators(memberships)
        widths = tuple(m.shape[1] for m in indicators)
        if widths != self.n_clusters_in_:
            raise GinghamError(f"Fitted with {self.n_clusters_in_} clusters per view, {widths} given.")
        return indicators

    def _prior(self, n_clusters: int) -> Floats:
        if self.prior is None:
            return np.full(n_clusters, 1.0 / n_clusters)
        prior = np.asarray(self.prior, dtype=np.float64).ravel()
        if len(prior) != n_clusters or not (prior > 0).all() or not np.isclose(prior.sum(), 1.0):
            raise GinghamError(f"prior must be {n_clusters} positive numbers with sum 1.")
        return prior


def _indicator(values: ArrayLike, number: int) -> Bools:
    """A Boolean (n, m) array; anything but 0 and 1 is refused."""
    array = np.asarray(values)
    if array.ndim != 2 or array.size == 0:
        raise GinghamError(
            f"Memberships of view {number} must be a matrix, one row per object and one column per cluster; "
            f"shape {array.shape} was given."
        )
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise GinghamError(f"Memberships of view {number} must be 0 or 1 (false or true).")
    return array.astype(bool)


def chance(memberships: Sequence[Bools], every_pair: bool) -> Floats:
    """P(f ≠ g) of each cluster if the views were independent."""
    rates = [m.mean(axis=0) for m in memberships]
    if len(rates) == 1:
        return 1.0 - rates[0]
    if every_pair:
        return (rates[0][:, None] * (1 - rates[1]) + (1 - rates[0][:, None]) * rates[1]).ravel()
    return 1.0 - np.prod(rates, axis=0) - np.prod([1 - r for r in rates], axis=0)


def simplex_weights(costs: Floats, prior: Floats, penalty: float) -> Floats:
    """argmin_s penalty·Σ s_j²/(m P_j) + Σ s_j cost_j over s ≥ 0, Σ s = 1: P3 (14), exactly.

    With a uniform prior the first term is penalty·‖s‖²; with another it is the bound of Proposition 1,
    KL(Q‖P) ≤ ln Σ Q²/P. (P3 prints the norm without its square.) The solution is s_j = m P_j (ν − cost_j)₊/(2·penalty)
    with ν such that the weights sum to one; an infinite cost excludes a cluster.

    Costs and the prior P have shape (m,). A large penalty keeps near the prior, a small one takes the cheapest.
    """
    width = len(prior) * prior / (2.0 * penalty)
    order = np.argsort(costs, kind="stable")
    order = order[: len(_left(costs))]
    cost, slope = costs[order], width[order]
    levels = (1.0 + np.cumsum(slope * cost)) / np.cumsum(slope)  # ν if the cheapest k clusters have weight
    level = levels[np.flatnonzero(levels > cost)[-1]]
    weights = np.zeros_like(costs)
    weights[order] = slope * np.maximum(level - cost, 0.0)
    return weights / weights.sum()


def gibbs_weights(costs: Floats, prior: Floats, divergence: float) -> Floats:
    """argmin_s Σ s_j cost_j over s ≥ 0, Σ s = 1 with KL(s‖P) ≤ ω: P3 (9)-(10).

    The solution is s_j ∝ P_j exp(−η cost_j), with the η at which the constraint binds; where no η reaches ω, the prior
    among the cheapest. An infinite cost excludes a cluster, and P is then that of the others, which an ω below their
    share −ln P(others) still gets.
    """
    left = _left(costs)
    cost, base = costs[left] - costs[left].min(), np.log(prior[left])

    def tilted(eta: float) -> Floats:
        return np.asarray(softmax(base - eta * cost))

    def excess(eta: float) -> float:
        s = tilted(eta)
        return float(rel_entr(s, prior[left]).sum()) - divergence

    cheapest = np.where(cost == 0, prior[left], 0.0)
    weights = np.zeros_like(costs)
    if -np.log(cheapest.sum()) <= divergence:
        weights[left] = cheapest / cheapest.sum()
        return weights
    high = 1.0
    while excess(high) < 0:
        high *= 2.0
    weights[left] = tilted(float(brentq(excess, 0.0, high, xtol=1e-12 * high)) if excess(0.0) < 0 else 0.0)
    return weights


def _left(costs: Floats) -> Ints:
    """The clusters that may have weight."""
    left = np.flatnonzero(np.isfinite(costs))
    if not len(left):
        raise GinghamError("No cluster is left to give weight to: lower min_coverage, or allow contradictions.")
    return left


def contradiction(memberships: Sequence[Bools], every_pair: bool) -> Floats:
    """P̂(f_c(x) ≠ g_c(y)) of every pairwise cluster, P3 (25): the share of objects on which the views disagree.

    One view only: the share of objects outside the cluster. Flattened to (m,), rows of the first view first.
    """
    first = memberships[0]
    if every_pair:
        a, b = (m.astype(np.float64) for m in memberships)
        table: Floats = (a.sum(axis=0)[:, None] + b.sum(axis=0) - 2.0 * (a.T @ b)) / len(a)
        return np.clip(table, 0.0, 1.0).ravel()
    agree = first if len(memberships) == 1 else np.all([m == first for m in memberships[1:]], axis=0)
    return 1.0 - agree.mean(axis=0)


def coverage(memberships: Sequence[Bools], every_pair: bool) -> Floats:
    """P̂(f_c = g_c = 1) of every pairwise cluster: the share of objects that it explains in all views."""
    if every_pair and len(memberships) == 2:
        a, b = (m.astype(np.float64) for m in memberships)
        return ((a.T @ b) / len(a)).ravel()
    return np.all(np.stack(memberships), axis=0).mean(axis=0)
