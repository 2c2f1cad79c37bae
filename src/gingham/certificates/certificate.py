"""Certificate: a guarantee on the loss on new data, with everything that went into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from gingham.cards import certificate_card
from gingham.certificates.assumptions import Assumption, given, rests_on
from gingham.certificates.bounds import THEOREMS, Bound, Theorem, find
from gingham.certificates.evidence import Evidence
from gingham.certificates.prices import Complexity
from gingham.certificates.record import Record, write_certificate
from gingham.certificates.strata import Strata
from gingham.certificates.watch import Watch, loss_of
from gingham.core.problem import Posterior
from gingham.data.sample import checked_weights
from gingham.errors import GinghamError, RefusedCertificate


@dataclass(frozen=True, eq=False)
class Certificate:
    """With probability at least 1 − delta the expected loss on a new observation is at most ``value``.

    Attributes
    ----------
    value : float
        The guarantee, in the loss's own unit.
    empirical : float
        The loss on the sample, same unit, same predictor (or the Gibbs predictor it is derived from).
    bound : str
        Name of the theorem.
    predictor : str
        What is covered: "gibbs", "mean", "median", "mode", "label", …
    delta : float
    n_observations : int
    terms : mapping from name to nats
        What was paid; their sum divided by N is the ε of the theorem.
    assumptions : tuple of Assumption
    worst : float
        The largest possible loss, same unit.
    evidence : Evidence or None
        The distribution of the loss and both accounts of the complexity: what other bounds need.
    parameters : mapping
        What the bound chose.
    loss : str
        Name of the loss.
    anytime : bool
        Whether the guarantee holds for all sample sizes at once.
    lower : float or None
        A lower bound on the same loss, when asked for (each side then has delta/2).
    text, reference : str
        The theorem in words, and where it comes from.
    model : object
        The fitted model, where the certificate was made together with it (bound="split", progressive validation).
    record : Record or None
        What it was computed from, for `save`.
    first_part : int or None
        How many tuples of the same population, not among ``n_observations``, the predictor was made from; None: not
        known.
    chosen_from : int
        Of how many certificates this is the smallest, where a comparison, a path or a stream chose it.
    choice : str
        What that choice costs, in words.
    strata : Strata or None
        What is guaranteed of parts of the rows, together with the value.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> certificate = gg.certify(model, X, y)
    >>> certificate.empirical < certificate.value < certificate.worst
    True
    >>> certificate.predictor, certificate.delta
    ('gibbs', 0.05)
    """

    value: float
    empirical: float
    bound: str
    predictor: str
    delta: float
    n_observations: int
    terms: Mapping[str, float]
    assumptions: tuple[Assumption, ...]
    worst: float
    evidence: Evidence | None = field(default=None, repr=False)
    parameters: Mapping[str, float] = field(default_factory=dict)
    loss: str = "loss"
    anytime: bool = False
    lower: float | None = None
    text: str = ""
    reference: str = ""
    model: object = field(default=None, repr=False)
    record: Record | None = field(default=None, repr=False)
    first_part: int | None = 0
    chosen_from: int = 1
    choice: str = ""
    strata: Strata | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file with everything that was used, so that `python -m gingham.verify` can check it.

        The data are not in the file, only a digest of them: whoever verifies it brings them along.
        """
        write_certificate(path, self.to_dict(), self.assumptions, self.record)

    def for_mix(self, rows: object) -> Certificate:
        """The guarantee for another mix of the strata, as that of rows whose labels are not known yet.

        All strata are bounded together, so that the mix may be chosen afterwards, as often as you like.

        Parameters
        ----------
        rows : stratum of each row, mapping from stratum to share, or rows of ids
            Rows of ids for ``strata="known/new"``, where the predictor knows which items it knows. A stratum that was
            not tested is bounded by the largest loss.
        """
        if self.strata is None:
            raise RefusedCertificate("This certificate has no strata: certify with strata= to change their mix.")
        if any(one.code in ("independent groups", "rows that share no group") for one in self.assumptions):
            raise RefusedCertificate(
                "Each group counts once in this certificate, and a mix is one of rows: certify without groups= to "
                "change the mix."
            )
        shares, parts = self.strata.shares(rows), {part.name: part for part in self.strata.parts}
        mixed = [(share, parts.get(name)) for name, share in shares.items()]
        observed = [(share, part.empirical) for share, part in mixed if part is not None and part.empirical is not None]
        known = sum(share for share, _ in observed)
        return replace(
            self,
            value=sum(share * (self.worst if part is None else part.value) for share, part in mixed),
            empirical=sum(share * loss for share, loss in observed) / known if known else float("nan"),
            terms={},
            assumptions=(*(one for one in self.assumptions if one.code != "mix"), given("mix", shares=shares)),
            evidence=None,
            record=None,
            anytime=False,
        )

    def watch(self, model: object = None, alpha: float = 0.01) -> Watch:
        """Watch the promise while labelled rows arrive: an alarm that is false with probability at most ``alpha``.

        Parameters
        ----------
        model : fitted model, optional
            The predictor that is certified; by default the one that came with the certificate.
        alpha : float
            The probability of ever saying that a promise has ended which is kept.

        Examples
        --------
        >>> import numpy as np, gingham as gg
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(1, 6, 2000)
        >>> certificate = gg.certify_predictions(y, np.clip(y + 0.5, 1, 5), alphabet=range(1, 6))
        >>> watch = certificate.watch()
        >>> later = np.repeat([1.0, 2.0], 200)  # losses of rows that arrive later
        >>> watch.add(later[:0]).verdict, watch.add(later).verdict
        ('no proof against it', 'ended')
        """
        if self.record is None:
            raise RefusedCertificate(
                "This certificate does not store its inputs, so the loss of a new row cannot be "
                "computed. Watch a certificate of held-out rows or of progressive tests."
            )
        return Watch.of(self.to_dict(), self.record.facts(), self.model if model is None else model, alpha)

    @property
    def complexity(self) -> float:
        """Σ terms, nats."""
        return float(sum(self.terms.values()))

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee says no more than that losses are bounded."""
        return self.value >= self.worst * (1 - 1e-9)

    @property
    def posterior(self) -> Posterior | None:
        """The very model that is covered (answers rounded to the grid that was paid for)."""
        return None if self.evidence is None else self.evidence.covered

    def _promise(self) -> str:
        if self.bound == "gain" and self.value < 0:
            return f"on new data the {self.loss} is at most {self.value:.4g}: the co-clustering is better"
        if self.bound == "gain":
            return f"on new data the {self.loss} is at most {self.value:.4g}, which proves no gain"
        what = self.loss if self.bound == "density" else f"{self.loss} loss"
        return f"the average {what} on new data is at most {self.value:.4g}"

    def explain(self) -> str:
        """The certificate in plain words."""
        percent = f"{100 * (1 - self.delta):g} %"
        worst = f"; the worst possible is {self.worst:.4g}" if isfinite(self.worst) else ""
        lines = [
            f"Guarantee: {self._promise()}, with confidence {percent}.",
            f"On the {self.n_observations:,} observations it is {self.empirical:.4g}{worst}."
            if "references" not in self.parameters
            else f"Tests on {self.n_observations:,} observations, {self.parameters['tested']:,.0f} by the members "
            f"themselves, estimate it at {self.empirical:.4g}{worst}.",
        ]
        if self.lower is not None:
            lines.append(f"It is also at least {self.lower:.4g}; both hold together with confidence {percent}.")
        if self.strata is not None:
            lines += [
                "The same confidence holds for all strata together with it, and for any mix of them (for_mix):",
                *(f"  {line}" for line in str(self.strata).splitlines()),
            ]
        if self.choice:
            lines.append(f"It is the smallest of {self.chosen_from:,} certificates{self.choice}")
        if self.vacuous:
            lines.append("This guarantee is empty: it only states that losses are bounded.")
        lines += ["", self._covers]
        if self.anytime:
            lines.append("It may be recomputed after every new observation, and testing may stop at any time.")
        lines += ["", f"Theorem: {self.reference or self.bound}.", f"  {self.text}" if self.text else ""]
        if self.terms:
            total = max(self.complexity, 1e-300)
            width = max(len(name) for name in self.terms)
            lines += [
                "",
                "The gap between the two is the price of what was chosen from the data, in natural units of "
                f"information (nats): {total:,.1f} in all, {total / self.n_observations:.4g} per observation.",
            ]
            lines += [
                f"  {name:<{width}}  {nats:>12,.1f}  {100 * nats / total:>5.1f} %" for name, nats in self.terms.items()
            ]
        lines += ["", *rests_on(self.assumptions)]
        return "\n".join(line for i, line in enumerate(lines) if line or i == 0 or lines[i - 1])

    @property
    def _covers(self) -> str:
        """What is covered, in words. Unseen observations cover the mean prediction directly, without Jensen."""
        if self.predictor == "mean" and self.bound == "holdout":
            return "It covers the mean prediction, exactly as used."
        return _COVERS.get(self.predictor, f"It covers the predictor {self.predictor!r}, exactly as used.")

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        beside = {
            "the same predictor on these observations": self.empirical,
            "one constant on these observations": self._of_constant(),
            "the largest possible loss": self.worst if isfinite(self.worst) else None,
        }
        claims = [(a.text, a.status) for a in self.assumptions]
        unit = f"mean {self.loss}" if self.bound in ("density", "gain") else f"mean {self.loss} loss"
        return certificate_card(self.value, False, unit, self.explain(), beside, claims)

    def _of_constant(self) -> float | None:
        """The loss of the best constant on the labels that were certified; None where they are not known."""
        if self.record is None or self.record.y is None:
            return None
        y, facts = np.asarray(self.record.y), dict[str, Any](self.record.facts())
        try:
            return loss_of(facts["loss"]).of_constant(y, checked_weights(self.record.sample_weight, len(y)))
        except GinghamError:  # a loss that only the program that certified it knows
            return None

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "value": float(self.value),
            "lower": None if self.lower is None else float(self.lower),
            "empirical": float(self.empirical),
            "worst": float(self.worst) if isfinite(self.worst) else None,
            "loss": self.loss,
            "bound": self.bound,
            "predictor": self.predictor,
            "delta": float(self.delta),
            "n_observations": int(self.n_observations),
            "chosen_from": self.chosen_from,
            "terms": {name: float(nats) for name, nats in self.terms.items()},
            "parameters": {name: float(value) for name, value in self.parameters.items()},
            "assumptions": [assumption.to_dict() for assumption in self.assumptions],
            "strata": None if self.strata is None else [part.to_dict() for part in self.strata.parts],
            "anytime": self.anytime,
            "theorem": self.text,
            "reference": self.reference,
        }

    def compare(self, *others: Certificate, bounds: Sequence[str] | None = None, together: bool = True) -> Comparison:
        """A table of every applicable bound on the same evidence, and of other certificates.

        The bounds on this evidence share its δ, so that they hold together and the smallest may be kept
        (``comparison.best``). With ``together=False`` each has the whole δ, for a look at single bounds; what is kept
        then pays for all. Other certificates come with the δ they have. A certificate for all times is not compared
        with bounds that hold at one time only.
        """
        rows = [self]
        if self.bound in THEOREMS and self.evidence is not None:
            names = dict.fromkeys(find(name).name for name in (self.bound, *(THEOREMS if bounds is None else bounds)))
            theorems = [THEOREMS[name] for name in names if THEOREMS[name].anytime or not self.anytime]
            applicable = [one for one in theorems if one.name == self.bound or self._by(one, self.delta) is not None]
            share = self.delta / len(applicable) if together else self.delta
            found = [self if len(applicable) == 1 else self._by(one, share) for one in applicable]
            rows = [one for one in found if one is not None]
        return Comparison(tuple(sorted((*rows, *others), key=lambda c: c.value)))

    def _by(self, theorem: Theorem, delta: float) -> Certificate | None:
        """What another theorem says on the same evidence; None where it does not apply."""
        if self.evidence is None:
            return None
        try:
            spent = delta * self.evidence.share
            found = from_theorem(theorem, self.evidence, spent, self.predictor, self.assumptions, self.loss)
        except RefusedCertificate:
            return None
        except GinghamError:
            if theorem.finite and self.evidence.distribution.support is None:
                return None
            raise
        record = self.record if theorem.name == self.bound and spent == delta else None
        found = replace(found, delta=delta, anytime=self.anytime, record=record)
        return replace(found, chosen_from=self.chosen_from, choice=self.choice)


def from_theorem(
    theorem: Theorem, evidence: Evidence, delta: float, predictor: str, assumptions: tuple[Assumption, ...], loss: str
) -> Certificate:
    """The certificate that one theorem gives on collected evidence."""
    price = evidence.prices.get(theorem.price)
    if price is None:
        raise RefusedCertificate(
            f"The price of {theorem.name!r} requires the total number of items, and the items were read from the data: "
            "state how many items each mode has in all (population=, --population on the command line), or use a "
            "bound with the exact price, which covers unseen items: log-wealth."
        )
    return of_bound(
        theorem.function(evidence.distribution, price.total, evidence.n_observations, delta), evidence, price,
        bound=theorem.name, predictor=predictor, delta=delta, assumptions=assumptions, loss=loss, text=theorem.text,
        reference=theorem.reference,
    )  # fmt: skip


def of_bound(found: Bound, evidence: Evidence, price: Complexity, **said: Any) -> Certificate:
    """The certificate of a bound on collected evidence, in the loss's own unit; ``said`` are its other fields."""
    return Certificate(
        value=evidence.in_unit(found.value),
        empirical=evidence.empirical,
        n_observations=evidence.n_observations,
        terms={**price.terms, **found.price},
        worst=evidence.in_unit(1.0),
        evidence=evidence,
        **{"parameters": found.parameters, **said},
    )


@dataclass(frozen=True, eq=False)
class Comparison:
    """Certificates side by side, smallest first."""

    certificates: tuple[Certificate, ...]

    @property
    def delta(self) -> float:
        """All of them hold together with probability at least 1 − this: the sum of what each may fail with."""
        return min(float(sum(certificate.delta for certificate in self.certificates)), 1.0)

    @property
    def best(self) -> Certificate:
        """The smallest, which may be kept because it pays for all that it was chosen from: its δ is that of all."""
        first, n = self.certificates[0], len(self.certificates)
        if n == 1:
            return first
        if not self.delta < 1:
            raise RefusedCertificate(
                f"Each of these {n} certificates may fail, and together they need δ = {self.delta:g}: the smallest of "
                "them has no guarantee. Give each a smaller delta."
            )
        record = first.record
        if record is not None:  # with δ/n each, the smallest is the best of n candidates
            even = all(abs(c.delta * n - self.delta) < 1e-12 * self.delta for c in self.certificates)
            record = replace(record, facts=partial(_with_candidates, record.facts, n)) if even else None
        evidence = first.evidence  # what else is made of it pays for the others, too
        if evidence is not None:
            evidence = replace(evidence, share=evidence.share * first.delta / self.delta)
        told = " that were compared; δ counts them all."
        return replace(first, delta=self.delta, chosen_from=n, record=record, evidence=evidence, choice=told)

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    def __getitem__(self, bound: str) -> Certificate:
        """The certificate of one bound by name."""
        for certificate in self.certificates:
            if certificate.bound == find(bound).name:
                return certificate
        raise KeyError(bound)

    @property
    def rows(self) -> list[dict[str, object]]:
        """One plain record per certificate, ready for a data frame."""
        keys = ("bound", "predictor", "value", "empirical", "delta", "n_observations", "reference")
        return [{key: certificate.to_dict()[key] for key in keys} for certificate in self.certificates]

    def __str__(self) -> str:
        if not self.certificates:
            return "no certificate applies"
        width = max(len(c.bound) for c in self.certificates)
        head = f"{'bound':<{width}}  {'value':>9}  {'observed':>9}  {'nats':>10}  predictor"
        body = [
            f"{c.bound:<{width}}  {c.value:>9.4f}  {c.empirical:>9.4f}  {c.complexity:>10,.1f}  {c.predictor}"
            for c in self.certificates
        ]
        confidence = 100 * (1 - self.delta)
        foot = f"All {len(body)} hold together with confidence {confidence:g} %: the smallest may be kept (.best)."
        return "\n".join([head, "-" * len(head), *body, *([foot] if len(body) > 1 else [])])


def _with_candidates(facts: Callable[[], Mapping[str, object]], n: int) -> dict[str, object]:
    known = facts()
    before = known.get("candidates", 1)
    return {**known, "candidates": n * before if isinstance(before, int) else n}


_COVERS = {
    "gibbs": "It covers the randomised (Gibbs) predictor: draw every item's cluster from its memberships, "
    "then answer as the cell does.",
    "mean": "It covers the mean prediction: its loss is convex, so averaging the randomised answers cannot hurt "
    "(Jensen). The observed loss above is that of the randomised predictor.",
    "median": "It covers the median prediction, exactly as used.",
    "mode": "It covers the most probable label, exactly as used.",
    "mean of the members": "It covers the members' mean prediction, weighted by how many observations each was tested "
    "on: its loss is convex, so averaging cannot hurt (Jensen). The observed loss above is that of the members.",
    "member drawn by its share": "It covers a predictor that draws one of the members, by its share of the tested "
    "observations, and answers as that member does.",
    "density": "It covers the density that comes with the certificate, smoothed as the bound chose.",
}
