"""Who chose what was observed: guarantees for a whole catalogue, where people rate what they like.

If rows are drawn with probabilities proportional to their propensities p, and pairs of the catalogue are drawn evenly,
E[w (ℓ − L)] = 0 for w = 1/p and the mean loss L over the catalogue, whatever the factor that makes p a probability. So
for w ≤ 1 after scaling, X(r) = w (ℓ − r) and fixed ν > 1, Π (1 − X_t(L)/ν) is a martingale: the levels r at which it
stays below 1/δ hold L with probability 1 − δ (Ville), and since X falls with r, L is at most the largest of them.
Propensities that are wrong by a factor between 1/Γ and Γ, which may depend on the label, are covered by
X(r) = w ((ℓ − r)⁺ − (ℓ − r)⁻/Γ²), whose mean at L is not below 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from gingham.arrays import Floats
from gingham.certificates.bounds import GRID, checked_delta, log_inverse, mean_between
from gingham.certificates.losses import as_numbers
from gingham.data.sample import need_unmasked
from gingham.errors import GinghamError


@dataclass(frozen=True, eq=False)
class Propensity:
    """How likely each row was to be observed, up to one common factor.

    Parameters
    ----------
    rows : array of shape (N,)
        The propensity of each row, known beforehand or estimated without these rows' labels.
    least : float
        The smallest propensity in the whole catalogue, rows that were not observed included.
    gamma : float
        Γ ≥ 1: the true propensities may differ from these by any factor between 1/Γ and Γ, label by label.
    """

    rows: npt.ArrayLike
    least: float
    gamma: float = 1.0

    def weights(self, n: int) -> Floats:
        """least/p of each row, above 0 and at most 1."""
        if not (np.isfinite(self.gamma) and self.gamma >= 1):
            raise GinghamError(f"gamma={self.gamma!r} must be a number from 1: Γ, by which propensities may be wrong.")
        need_unmasked(self.rows, "propensities")
        p = as_numbers(np.asarray(self.rows), "propensity")
        if len(p) != n or not 0 < self.least <= p.min(initial=np.inf):
            raise GinghamError(
                f"A propensity is needed for each of the {n} rows, none below least={self.least!r}, which is above 0."
            )
        return self.least / p


def catalogue_mean(scaled: Floats, propensity: Propensity, price: float) -> float:
    """The largest mean over the catalogue of a loss between 0 and 1 that stays believable; ``price`` is ln 1/δ."""
    w, paid = propensity.weights(len(scaled)), price + log(len(GRID))

    def too_far(level: float) -> bool:
        gaps = scaled - level
        x = w * np.where(gaps > 0, gaps, gaps / propensity.gamma**2)
        return bool(np.logaddexp.reduce([np.log1p(-x / nu).sum() for nu in GRID]) > paid)

    inside, outside = float(w @ scaled / w.sum()), 1.0
    if not too_far(outside):
        return outside
    for _ in range(40):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if too_far(middle) else (middle, outside)
    return outside


@dataclass(frozen=True)
class SelectionEffect:
    """The mean of label less prediction over the catalogue, less that over rows like those that people chose.

    Attributes
    ----------
    observed, low, high : float
        The estimate, and between which numbers it lies with confidence 1 − delta.
    delta : float
    """

    observed: float
    low: float
    high: float
    delta: float

    @property
    def proved(self) -> bool:
        """Whether labels are missing not at random, as far as these predictions can tell."""
        return not self.low <= 0 <= self.high

    def explain(self) -> str:
        """The effect in plain words."""
        verdict = (
            "labels are missing not at random: what holds for pairs that people chose does not hold for the others"
            if self.proved
            else "no such effect is proved"
        )
        return (
            f"Over the whole catalogue labels exceed predictions by {self.observed:.4g} more than over the pairs that "
            f"people chose (between {self.low:.4g} and {self.high:.4g}, confidence {100 * (1 - self.delta):g} %): "
            f"{verdict}."
        )


def selection_effect(
    y: npt.ArrayLike,
    predictions: npt.ArrayLike,
    *,
    label_bounds: tuple[float, float],
    propensity: Propensity | None = None,
    at_random: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    delta: float = 0.05,
) -> SelectionEffect:
    """Whether held-out rows that people chose say what is true of the whole catalogue.

    Parameters
    ----------
    y, predictions : labels and predictions of rows that people chose, not used for the predictions
    label_bounds : (smallest, largest) label and prediction
    propensity : Propensity, optional
        Of these rows. One of the two is needed.
    at_random : (labels, predictions), optional
        Of pairs that were drawn evenly from the catalogue.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham.certificates import selection_effect
    >>> rng = np.random.default_rng(0)
    >>> chosen, shown = rng.choice([3, 4, 5], 2000), rng.choice([1, 2, 3, 4, 5], 2000)
    >>> effect = selection_effect(chosen, np.full(2000, 4), label_bounds=(1, 5), at_random=(shown, np.full(2000, 4)))
    >>> effect.proved, round(effect.observed, 1)
    (True, -1.1)
    """
    if (propensity is None) == (at_random is None):
        raise GinghamError("Give propensity= of these rows, or at_random=, pairs drawn evenly from the catalogue.")
    share, span = checked_delta(delta) / 4, 2.0 * (label_bounds[1] - label_bounds[0])

    def scaled(labels: npt.ArrayLike, guesses: npt.ArrayLike) -> Floats:
        need_unmasked(labels, "labels")
        need_unmasked(guesses, "predictions")
        own = [as_numbers(np.asarray(values), what) for values, what in ((labels, "label"), (guesses, "prediction"))]
        if len(own[0]) != len(own[1]) or len(own[0]) == 0:
            raise GinghamError(f"There are {len(own[0])} labels and {len(own[1])} predictions.")
        if not all(label_bounds[0] <= values.min() and values.max() <= label_bounds[1] for values in own):
            raise GinghamError(f"A label or a prediction lies outside {label_bounds[0]:g} to {label_bounds[1]:g}.")
        return np.asarray(0.5 + (own[0] - own[1]) / span)

    own = scaled(y, predictions)
    all_of_them = own if at_random is None else scaled(*at_random)
    below, above = mean_between(own, share)
    if propensity is None:
        w: Floats = np.ones(len(all_of_them))
        low, high = mean_between(all_of_them, share)
    else:
        w, price = propensity.weights(len(own)), log_inverse(share)
        low, high = 1.0 - catalogue_mean(1.0 - own, propensity, price), catalogue_mean(own, propensity, price)
    observed = float(w @ all_of_them / w.sum() - own.mean())
    return SelectionEffect(span * observed, span * (low - above), span * (high - below), delta)
