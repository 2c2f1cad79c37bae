"""What is guaranteed about weighted pairwise clusters: how seldom the views contradict them, how much they cover."""

from __future__ import annotations

from dataclasses import dataclass

from gingham.arrays import Floats
from gingham.cards import certificate_card
from gingham.certificates import bounds
from gingham.certificates.assumptions import given, rests_on
from gingham.certificates.bounds import LossDistribution, checked_delta
from gingham.certificates.certificate import Certificate
from gingham.certificates.divergence import relative_entropy
from gingham.errors import GinghamError

BOUNDS = {
    "log-wealth": (bounds.log_wealth, "log-wealth bound"),
    "theorem-1": (bounds.theorem7, "P3 Theorem 1, eq. (6): kl(R_n‖R) ≤ [KL(Q,P) + ln 1/δ + ln 2√n]/n"),
}


@dataclass(frozen=True, eq=False)
class ClusterCertificate:
    """Two guarantees that hold together with probability 1 − δ.

    A cluster that is always (or never) true contradicts nothing, so that a low risk alone says nothing: the
    coverage stands beside it.
    """

    risk: Certificate  # E_Q P(f ≠ g) is at most ``risk.value``
    coverage: float  # E_Q P̂(f = g = 1), the share of the observed objects that a drawn cluster explains in all views
    coverage_lower: float  # on new objects it is at least this
    coverage_upper: float  # and at most this
    chance: float  # E_Q of the risk if the views were independent and each cluster as frequent as it is: what to beat

    @property
    def value(self) -> float:
        """The guaranteed risk."""
        return self.risk.value

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        claims = [(a.text, a.status) for a in self.risk.assumptions]
        beside = {"on the observed objects": self.risk.empirical, "if the views were independent": self.chance}
        unit = "of new objects contradict a cluster"
        return certificate_card(self.value, False, unit, self.explain(), beside, claims)

    def to_dict(self) -> dict[str, object]:
        """Plain values, as a page shows them: those of the risk, with the whole explanation."""
        return {**self.risk.to_dict(), "explanation": self.explain(), "others": [], "unit": "objects"}

    def explain(self) -> str:
        """Both guarantees in plain words."""
        return "\n".join(
            [
                f"A cluster drawn by its weight is contradicted by at most {self.risk.value:.4g} of new objects "
                f"({self.risk.empirical:.4g} observed; {self.chance:.4g} if the views were independent).",
                f"It explains between {self.coverage_lower:.4g} and {self.coverage_upper:.4g} of new objects in all "
                f"views ({self.coverage:.4g} observed).",
                f"All of this holds together with confidence {100 * (1 - self.risk.delta):g} %.",
                *rests_on(self.risk.assumptions),
            ]
        )


def certify_clusters(
    weights: Floats,
    prior: Floats,
    risks: Floats,
    coverages: Floats,
    chances: Floats,
    n: int,
    delta: float = 0.05,
    bound: str = "log-wealth",
) -> ClusterCertificate:
    """Certify weights Q over clusters that were fixed before the n objects were seen.

    Parameters
    ----------
    weights, prior : ndarray of shape (m,)
        Q, chosen in view of the objects, and P, chosen before.
    risks, coverages, chances : ndarray of shape (m,)
        Of each cluster, on the objects.
    delta : float
        A third of it goes to the risk and a third to either side of the coverage.
    bound : {"log-wealth", "theorem-1"}
    """
    if bound not in BOUNDS:
        raise GinghamError(f"Unknown bound {bound!r}: use one of {', '.join(BOUNDS)}.")
    checked_delta(delta)
    function, reference = BOUNDS[bound]
    divergence = relative_entropy(weights, prior)
    distribution, covered = _binary(float(weights @ risks)), _binary(float(weights @ coverages))
    share = delta / 3
    found = function(distribution, divergence, n, share)
    risk = Certificate(
        value=found.value,
        empirical=distribution.mean,
        bound=bound,
        predictor="gibbs",
        delta=delta,
        n_observations=n,
        terms={"weights KL(Q‖P)": divergence, **found.price},
        assumptions=(given("objects"), given("clusters fixed")),
        worst=1.0,
        parameters=found.parameters,
        loss="contradiction",
        reference=reference,
    )
    return ClusterCertificate(
        risk,
        covered.mean,
        bounds.log_wealth_lower(covered, divergence, n, share).value,
        bounds.log_wealth(covered, divergence, n, share).value,
        float(weights @ chances),
    )


def _binary(mean: float) -> LossDistribution:
    mean = min(max(mean, 0.0), 1.0)
    return LossDistribution.of([0.0, 1.0], [1.0 - mean, mean], support=[0.0, 1.0])
