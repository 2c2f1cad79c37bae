"""What every certificate of a density states: nats a tuple, from whole counts of independent tuples."""

from __future__ import annotations

from collections.abc import Mapping

from gingham.certificates.certificate import Assumption, Certificate
from gingham.certificates.certify import INDEPENDENT
from gingham.data import Sample
from gingham.errors import RefusedCertificate


def check_counts(sample: Sample) -> None:
    """Refuse weights that are not counts."""
    if not sample.has_counts:
        raise RefusedCertificate("Some weights are not whole numbers; a certificate counts independent tuples.")


def code_length_certificate(
    value: float,
    empirical: float,
    delta: float,
    n: int,
    terms: dict[str, float],
    parameters: Mapping[str, float],
    *,
    fixed: str,
    text: str,
    latex: str,
    reference: str,
) -> Certificate:
    """A bound on −E ln p(x); ``fixed`` says what was settled before the tuples were drawn."""
    return Certificate(
        value=value,
        empirical=empirical,
        bound="density",
        predictor="density",
        delta=delta,
        n_tuples=n,
        terms=terms,
        assumptions=(
            INDEPENDENT,
            Assumption(f"{fixed} fixed before the tuples were drawn.", "given"),
            Assumption("Weights are whole counts.", "checked"),
        ),
        worst=float("inf"),
        evidence=None,
        parameters=dict(parameters),
        loss="code length (nats)",
        text=text,
        latex=latex,
        reference=reference,
    )
