"""What the clusters guarantee about a new feature of the same population."""

from __future__ import annotations

from dataclasses import dataclass

from gingham.cards import certificate_card

ASSUMPTIONS = (
    "The features were drawn independently of each other from those that could have been asked.",
    "None of them was used to form the clusters.",
)


@dataclass(frozen=True)
class UnobservedCertificate:
    """A bound on what the clusters tell about a new feature of the same population.

    With probability at least 1 − delta over the draw of the held-out features, the expected information is at least
    ``value`` nats a feature; or, where ``n_labelled`` says how many instances are asked for their value, the others are
    predicted wrongly in at most the share ``value`` on average. The clusters must not have seen these features.
    """

    value: float
    empirical: float
    chance: float  # of clusters dealt out at random, or of the most frequent value among those that were asked
    n_features: int
    delta: float
    n_labelled: int | None = None

    @property
    def _claim(self) -> str:
        sure = f"with confidence {100 * (1 - self.delta):g} %"
        if self.n_labelled is None:
            return (
                f"Knowing an instance's cluster tells at least {self.value:.4g} nats about a new feature, {sure}. On "
                f"the {self.n_features} held-out features it told {self.empirical:.4g}; random clusters would seem to "
                f"tell {self.chance:.4g}, and only the difference is information."
            )
        return (
            f"Once {self.n_labelled} instances, drawn at random, are asked about a new feature, its value is predicted "
            f"wrongly for at most {self.value:.4g} of the others on average, {sure}. On the {self.n_features} held-out "
            f"features that more instances have it was {self.empirical:.4g}; the most frequent value among those asked "
            f"is wrong for {self.chance:.4g}."
        )

    def explain(self) -> str:
        """The guarantee and what it rests on, in plain words."""
        return "\n".join([self._claim, "It rests on:", *(f"  [given] {text}" for text in ASSUMPTIONS)])

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        informs = self.n_labelled is None
        unit = "nats about a new feature" if informs else "of the values are wrong"
        other = "random clusters seem to tell" if informs else "the most frequent value among those asked"
        beside = {f"on the {self.n_features} held-out features": self.empirical, other: self.chance}
        claims = [(text, "given") for text in ASSUMPTIONS]
        return certificate_card(self.value, informs, unit, self._claim, beside, claims)

    def to_dict(self) -> dict[str, object]:
        """Plain values, as a page shows them."""
        assumptions = [{"text": text, "status": "given"} for text in ASSUMPTIONS]
        loss = "information about a feature, nats" if self.n_labelled is None else "share of wrong values"
        return {
            "value": self.value, "empirical": self.empirical, "delta": self.delta, "n_observations": self.n_features,
            "unit": "features", "at_least": self.n_labelled is None, "predictor": "clusters", "bound": "log-wealth",
            "worst": None, "loss": loss, "terms": {}, "others": [], "assumptions": assumptions,
            "explanation": self.explain(),
        }  # fmt: skip
