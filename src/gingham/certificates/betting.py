"""One finished predictor on held-out tuples, bet upon tuple by tuple: no grid of bets has to be paid for."""

from __future__ import annotations

from math import log, sqrt

import numpy as np

from gingham.arrays import Floats
from gingham.certificates.bounds import Bound, close_in

SMALLEST = 1e-3  # of ν − 1: no single loss may take the whole wealth
TEXT = (
    "With probability at least 1 − δ over N independent tuples, taken in a random order, the wealth "
    "Π (ν_t − X_t)/(ν_t − L) stays below 1/δ, where the bet ν_t looks at the tuples before t only; L is at most where "
    "it meets 1/δ."
)
LATEX = (
    r"L \le \sup\left\{\ell : \sum_{t=1}^N \ln\frac{\nu_t - X_t}{\nu_t - \ell} \le \ln\frac1\delta\right\},\quad "
    r"\nu_t = \hat\mu_{t-1} + \hat\sigma_{t-1}\sqrt{N / (2 \ln(1/\delta))}"
)
REFERENCE = "Waudby-Smith and Ramdas 2024, Estimating means of bounded random variables by betting"


def betting(losses: Floats, union: float, delta: float) -> Bound:
    """The largest L with Σ_t ln[(ν_t − X_t)/(ν_t − L)] ≤ ln(1/δ) + union, for losses between 0 and 1, shape (N,).

    Each factor has mean at most 1 given the tuples before, so the product is a wealth that exceeds 1/δ with
    probability at most δ (Ville). The bet ν_t = μ̂ + σ̂ √(N/(2 ln 1/δ)) comes from the mean and the variance of the
    losses before t. Where log-wealth pays for a grid of fixed bets, this pays with what is not yet known at the
    start: about a quarter of the gap between the bound and the observed loss is saved. It depends on the order,
    which is drawn here without a look at the losses: rows as they were drawn need no more, and for rows sorted by
    something the losses depend on, δ counts over that draw too. It covers one predictor, not all posteriors.
    """
    n, paid = len(losses), union + log(1.0 / delta)
    x: Floats = np.random.default_rng(0).permutation(losses)
    seen = np.arange(1, n + 1)
    # Half a loss of ½ with variance ¼ stands for the tuples before the first.
    means: Floats = (0.5 + np.cumsum(x)) / (seen + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (seen + 1)
    before = np.concatenate([[0.5], means[:-1]])
    spread = np.sqrt(np.concatenate([[0.25], variances[:-1]]))
    nu = np.maximum(before + spread * sqrt(n / (2.0 * paid)), 1.0 + SMALLEST)
    gained = float(np.log(nu - x).sum())
    value = close_in(lambda levels: gained - np.log(nu - levels).sum(axis=-1) > paid, float(x.mean()), 1.0)
    return Bound(value, {"confidence ln 1/δ": log(1.0 / delta)}, {"last bet": float(nu[-1])})
