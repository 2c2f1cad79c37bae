"""Dirichlet memberships: their expectations, their share of the evidence bound, their concentration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import betaincinv, digamma, gammaln, polygamma

from gingham.arrays import Floats
from gingham.core.problem import Posterior
from gingham.errors import strict_share
from gingham.storage import savable

MIN_CONCENTRATION = 0.01  # Ψ(α) < −100 below: exp Ψ would leave the range of floats
MAX_CONCENTRATION = 1e4  # a flatter prior is indistinguishable


@savable
@dataclass(frozen=True, eq=False)
class DirichletPosterior(Posterior):
    """Mixed memberships: π_u ~ Dirichlet(γ_u) for every item, answers θ for every pair of clusters (P2 Figure 2).

    ``assign`` is the posterior mean γ/Σγ. A frozen mode (every item its own cluster) has no
    memberships: its α, γ and counts have no columns, and its ``assign`` is the identity.
    """

    alpha: tuple[Floats, ...]  # (n_clusters,) per mode: concentrations of the priors, α_1 and α_2
    gamma: tuple[Floats, ...]  # (n_items, n_clusters) per mode: concentrations of the posteriors
    counts: tuple[Floats, ...]  # the same shape: expected entries of an item in each cluster, P2's m_u φ_u

    @property
    def frozen(self) -> tuple[bool, ...]:
        return tuple(a.size == 0 for a in self.alpha)

    @cached_property
    def log_memberships(self) -> tuple[Floats, ...]:
        """E ln π = Ψ(γ) − Ψ(Σγ), one array per mode."""
        return tuple(expected_log(g) for g in self.gamma)

    def interval(self, mode: int, level: float) -> tuple[Floats, Floats]:
        """Central credible interval of every membership, two arrays of shape (n_items, n_clusters).

        A coordinate of a Dirichlet is a Beta(γ_c, Σγ − γ_c).
        """
        strict_share("level", level)
        if self.frozen[mode]:
            return self.assign[mode], self.assign[mode]
        g = self.gamma[mode]
        rest = g.sum(1, keepdims=True) - g
        if g.shape[1] == 1:
            return np.ones_like(g), np.ones_like(g)
        tail = (1.0 - level) / 2.0
        return betaincinv(g, rest, tail), betaincinv(g, rest, 1.0 - tail)


def mean_memberships(gamma: Floats) -> Floats:
    """E π = γ/Σγ."""
    return gamma / gamma.sum(axis=1, keepdims=True)


def expected_log(gamma: Floats) -> Floats:
    """E ln π = Ψ(γ) − Ψ(Σγ)."""
    result: Floats = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    return result


def expected_log_prior(alpha: Floats, log_memberships: Floats) -> float:
    """E_q ln p(π|α) over all items, first line of P2's Table 1."""
    if alpha.size == 0:
        return 0.0
    constant = len(log_memberships) * (gammaln(alpha.sum()) - gammaln(alpha).sum())
    return float((log_memberships.sum(0) * (alpha - 1.0)).sum() + constant)


def expected_log_posterior(gamma: Floats, log_memberships: Floats) -> float:
    """E_q ln q(π|γ) over all items, third line of P2's Table 1."""
    if gamma.shape[1] == 0:
        return 0.0
    return float(((gamma - 1.0) * log_memberships).sum() + gammaln(gamma.sum(1)).sum() - gammaln(gamma).sum())


def fit_concentration(alpha: Floats, log_memberships: Floats, max_iter: int = 20, tol: float = 1e-5) -> Floats:
    """Raise E ln p(π|α) in α by Newton steps with an Armijo test, within the bounds on α.

    The Hessian is a diagonal plus a constant, so a step costs O(k). P2 prints α + H⁻¹g, which
    descends, and tests feasibility only, which does not ensure an ascent.
    """
    if alpha.size == 0:
        return alpha
    n, sums = len(log_memberships), log_memberships.sum(0)

    def value(a: Floats) -> float:
        return float(n * (gammaln(a.sum()) - gammaln(a).sum()) + (a - 1.0) @ sums)

    now = value(alpha)
    for _ in range(max_iter):
        gradient = n * (digamma(alpha.sum()) - digamma(alpha)) + sums
        diagonal = -n * polygamma(1, alpha)
        constant = n * polygamma(1, alpha.sum())
        shared = (gradient / diagonal).sum() / (1.0 / constant + (1.0 / diagonal).sum())
        newton = -(gradient - shared) / diagonal  # −H⁻¹ g
        scaled = -gradient / diagonal  # coordinate-wise ascent, for where a bound stops the Newton step
        for direction, halvings in product((newton, scaled), range(30)):
            moved = np.clip(alpha + 0.5**halvings * direction, MIN_CONCENTRATION, MAX_CONCENTRATION)
            gain = gradient @ (moved - alpha)
            if gain > 0 and value(moved) >= now + 1e-4 * gain:
                break
        else:
            break
        change = np.abs(moved - alpha).max()
        alpha, now = moved, value(moved)
        if change <= tol * alpha.max():
            break
    return alpha
