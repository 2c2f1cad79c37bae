"""Finite populations: what a certificate says about the cells that were held out.

Observations drawn at random without replacement concentrate at least as well as independent ones (Hoeffding
1963: the expectation of a convex function of the sum is not larger), so every bound of this package that
rests on such an expectation holds for the mean over the whole population; only the anytime property is
lost. Betting rests on the order, and is refused.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import log

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from gingham.arrays import AnyArray, Floats, Ints
from gingham.certificates.assumptions import given
from gingham.certificates.bounds import THEOREMS, close_in, whole
from gingham.certificates.certificate import Certificate
from gingham.certificates.divergence import kl
from gingham.certificates.holdout import BETTING_REFERENCE
from gingham.errors import GinghamError, RefusedCertificate

DRAWN = ("independent", "independent or without replacement", "pairs among these nodes")


def whole_population(certificate: Certificate, size: int, first_part: int | None = None) -> Certificate:
    """The same guarantee, read as one on the mean loss over all ``size`` tuples, observed and not.

    Where the predictor was made from a first part of the population (a split, a holdout), the observations that test
    it were drawn from the others, of which the guarantee speaks, and not of the whole: such certificates are refused.
    For a predictor that was made elsewhere say ``first_part=0``.
    """
    _check(certificate, size)
    if _before(certificate, first_part):
        raise RefusedCertificate(
            "The predictor was made from other observations of the population, and the guarantee covers the rest only: "
            "use held_out_part, for the observations that were not used."
        )
    return _without_replacement(certificate)


def _without_replacement(certificate: Certificate) -> Certificate:
    others = (assumption for assumption in certificate.assumptions if assumption.code not in DRAWN)
    assumptions = (given("without replacement"), *others)
    return replace(certificate, assumptions=assumptions, anytime=False)


def held_out_part(certificate: Certificate, size: int, first_part: int | None = None) -> Certificate:
    """The guarantee on the mean loss over the population's other observations, those that were not observed.

    From (observed + others)·L = observed·L̂ + others·L_others and L ≤ value. The gap to the empirical
    loss grows by the factor size/others: little where few were observed, much where most were.

    Parameters
    ----------
    size : int
        Observations of the population.
    first_part : int, optional
        So many of them, which are not among the certified ones, the predictor was made from; a split knows it, for a
        holdout it must be said. Drawn without replacement, the certified observations come from the others.
    """
    _check(certificate, size)
    before = _before(certificate, first_part)
    n, rest = certificate.n_observations, size - before  # the observations that could have been drawn to certify
    others = rest - n
    if others < 0:
        raise GinghamError(f"A population of {size} cannot contain {before} and {n} different observations.")
    if others == 0:
        raise GinghamError("The whole population was observed: nothing is held out.")
    if "empirical loss of the constant" in certificate.parameters:
        raise RefusedCertificate(
            "A gain over constants holds against each of them, and each has an observed loss of its own to take off: "
            "use whole_population."
        )
    value = (rest * certificate.value - n * certificate.empirical) / others
    return replace(
        _without_replacement(certificate),
        value=min(value, certificate.worst),
        bound=f"{certificate.bound}, held-out part",
        text=certificate.text + " It covers the unobserved part of a finite population.",
        lower=None,
        strata=None,
    )


def _before(certificate: Certificate, first_part: int | None) -> int:
    """How many tuples of the population the predictor was made from before the certified ones were drawn."""
    known = certificate.first_part
    if known is None:
        if first_part is None:
            raise RefusedCertificate(
                "The predictor was made from other observations, and the certificate does not record how many of them "
                "belong to the population: give first_part=, 0 if none does."
            )
        return whole(first_part, 0)
    if first_part is not None and known != first_part:
        raise GinghamError(f"first_part={first_part}, but the predictor was made from {known} other observations.")
    return known


def _check(certificate: Certificate, size: int) -> None:
    if certificate.anytime:
        raise RefusedCertificate("Drawn without replacement the anytime property is lost: certify with anytime=False.")
    codes = {assumption.code for assumption in certificate.assumptions}
    if not codes & {*DRAWN, "without replacement"} or "mix" in codes:
        raise RefusedCertificate(
            "Only a certificate of rows that count alike and were drawn from one population can be read as one of a "
            "finite population: not one of progressive tests, groups, propensities or another mix of strata."
        )
    if certificate.reference == BETTING_REFERENCE:
        raise RefusedCertificate(
            "Betting is proven for independent observations, not for draws without replacement: "
            "certify with method='log-wealth'."
        )
    if certificate.bound == "folds":
        raise RefusedCertificate("A cross-committee has no single empirical loss to take off the population's.")
    whole(size)
    if size < certificate.n_observations:
        raise GinghamError(
            f"A population of {size} cannot contain {certificate.n_observations} different observations."
        )


def transductive(certificate: Certificate, size: int) -> Certificate:
    """The guarantee on the unobserved tuples of a finite population, for any bounded loss.

    Observed and unobserved losses, scaled to [0, 1], are two random parts of one population: with probability
    at least 1 − δ, for all Q at once, N kl(L̂‖L) + U kl(L_U‖L) ≤ KL(Q‖P) + ln t(N, T) + ln 1/δ, where L is
    the mean of both parts (Bégin, Germain, Laviolette and Roy 2014, for losses of 0 or 1; between them the
    expectation is convex in the losses, so that populations of zeros and ones are the worst). Where most
    observations were observed it is tighter than ``held_out_part`` of a kl bound; log-wealth sees the spread of
    the loss, and its ``held_out_part`` may be tighter still. Decide beforehand, or give each half of δ.
    """
    _check(certificate, size)
    evidence = certificate.evidence
    if evidence is None or certificate.bound not in THEOREMS:
        raise RefusedCertificate("The transductive bound needs a certificate of a model by an all-posteriors bound.")
    if evidence.distribution.lowest < 0:
        raise RefusedCertificate("The transductive bound needs losses between 0 and 1 after scaling.")
    n, others = certificate.n_observations, size - certificate.n_observations
    if others == 0:
        raise GinghamError("The whole population was observed: nothing is held out.")
    price = evidence.prices["exact"]
    spent = certificate.delta * evidence.share
    terms = {"concentration ln t(N, T)": ln_transductive(n, size), "confidence ln 1/δ": -log(spent)}
    budget = price.total + sum(terms.values())
    observed = min(max(evidence.distribution.mean, 0.0), 1.0)

    def too_far(rest: Floats) -> AnyArray:
        mean = np.clip((n * observed + others * rest) / size, 0.0, 1.0)
        return np.ravel(n * kl(observed, mean) + others * kl(rest, mean) > budget)

    return replace(
        whole_population(certificate, size),
        value=evidence.in_unit(close_in(too_far, observed, 1.0)),
        bound="transductive",
        terms={**price.terms, **terms},
        lower=None,
        parameters={"population": float(size)},
        text="With probability at least 1 − δ over which observations of the population were made, for all posteriors "
        "at once: N kl(L̂‖L) + U kl(L_U‖L) ≤ KL(Q‖P) + ln t(N, T) + ln 1/δ, L the mean over all T = N + U "
        "observations.",
        reference="Bégin, Germain, Laviolette and Roy 2014, PAC-Bayesian theory for transductive learning",
    )


@lru_cache(maxsize=64)
def ln_transductive(n: int, size: int) -> float:
    """ln t(N, T), t = max over populations of E exp{N kl(L̂‖L) + U kl(L_U‖L)} without replacement.

    Computed exactly up to 1500 observations; beyond, the published bound 3 ln N √(N(1 − N/T)) for
    20 ≤ N ≤ T − 20.
    """
    if size <= 1500:
        marked = np.arange(size + 1)[:, None]
        drawn = np.arange(n + 1)[None, :]
        left = marked - drawn
        possible = (left >= 0) & (left <= size - n)
        left = np.clip(left, 0, size - n)
        # P(drawn | marked) e^φ = r(N, drawn) r(U, left)/r(T, marked), r the chance of a type under its own distribution
        logs = _own_chance(n, drawn) + _own_chance(size - n, left) - _own_chance(size, marked)
        return float(logsumexp(np.where(possible, logs, -np.inf), axis=1).max())
    if not 20 <= n <= size - 20:
        raise RefusedCertificate("The transductive bound needs at least 20 observed and 20 unobserved entries.")
    return log(3 * log(n)) + 0.5 * log(n * (1 - n / size))


def _own_chance(n: int, k: Ints) -> Floats:
    """ln C(n, k)(k/n)^k(1 − k/n)^{n−k}."""
    n = max(n, 1)
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, k / n) + xlogy(n - k, (n - k) / n)
