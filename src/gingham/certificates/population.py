"""Finite populations: what a certificate says about the cells that were held out.

Tuples drawn at random without replacement concentrate at least as well as independent ones (Hoeffding
1963: the expectation of a convex function of the sum is not larger), so every bound of this package
holds for the mean over the whole population; only the anytime property is lost.
"""

from __future__ import annotations

from dataclasses import replace

from gingham.certificates.certificate import Assumption, Certificate
from gingham.errors import GinghamError, RefusedCertificate

WITHOUT_REPLACEMENT = Assumption(
    "The observed tuples were drawn at random without replacement from a finite population.", "given"
)


def whole_population(certificate: Certificate, size: int) -> Certificate:
    """The same guarantee, read as one on the mean loss over all ``size`` tuples, observed and not."""
    _check(certificate, size)
    assumptions = (WITHOUT_REPLACEMENT, *certificate.assumptions[1:])
    return replace(certificate, assumptions=assumptions, anytime=False)


def held_out_part(certificate: Certificate, size: int) -> Certificate:
    """The guarantee on the mean loss over the population's other tuples, those that were not observed.

    From (observed + others)·L = observed·L̂ + others·L_others and L ≤ value. The gap to the empirical
    loss grows by the factor size/others: little where few were observed, much where most were.
    """
    _check(certificate, size)
    n, others = certificate.n_tuples, size - certificate.n_tuples
    if others == 0:
        raise GinghamError("All tuples of the population were observed: nothing is held out.")
    value = (size * certificate.value - n * certificate.empirical) / others
    whole = whole_population(certificate, size)
    return replace(
        whole,
        value=min(value, certificate.worst),
        text=certificate.text + " Read for the unobserved tuples of a finite population.",
        lower=None,
    )


def _check(certificate: Certificate, size: int) -> None:
    if certificate.anytime:
        raise RefusedCertificate("Drawn without replacement the anytime property is lost: certify with anytime=False.")
    if size < certificate.n_tuples:
        raise GinghamError(f"A population of {size} cannot contain {certificate.n_tuples} different tuples.")
