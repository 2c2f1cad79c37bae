"""Exponential families: what a cell says about a label is a distribution, and a mistake costs −ln p(y|θ) (P2 §3)."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from inspect import signature
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import gammaln, ndtr, pdtr

from gingham.arrays import AnyArray, Floats
from gingham.cells.losses import UNNAMED, CellModel, filled, floored
from gingham.data.sample import Alphabet, Moments, OneHot
from gingham.errors import GinghamError

PROBABILITY_FLOOR = 1e-6  # no label is ever impossible
RATE_FLOOR = 1e-6  # nor is a positive count
VARIANCE_FLOOR = 1e-2  # share of the variance of all labels below which no cell's variance falls


class Family(CellModel):
    """Cells that answer with a distribution: ln p(y|θ) = −⟨coef(θ), t(y)⟩ + log_base(y).

    A new family is one subclass with ``features``, ``estimate`` (the likeliest θ of given
    statistics), ``coef``, ``values`` and, where labels have no alphabet, ``log_base`` and ``cdf``.

    Parameters
    ----------
    pseudo : float
        Weight of the conjugate prior, in observations: every cell's statistics are filled up with that many
        typical observations before θ is estimated.

    Attributes
    ----------
    prior : ndarray of shape (K,) or None
        t(y) of the typical observation; the average of what is being clustered until `informed` fixes it.
    whole : bool
        Whether labels are whole numbers, so that quantiles are.
    """

    convex = True  # −ln p is convex in p
    n_answers = None
    range = np.inf
    needs_alphabet = False
    whole: ClassVar[bool] = False

    def __init__(self, pseudo: float = 1.0, prior: Floats | None = None) -> None:
        if not (np.isfinite(pseudo) and pseudo >= 0):
            raise GinghamError(f"pseudo={pseudo} must be a finite number of observations ≥ 0.")
        self.pseudo = float(pseudo)
        self.prior = prior

    def informed(self, total: Floats) -> Self:
        """The same family with the typical observation taken from the statistics of all labels, shape (K,)."""
        new = copy(self)
        new.prior = total / self.count(total)
        return new

    def count(self, statistics: Floats) -> Floats:
        """Number of tuples behind statistics, shape (…)."""
        return self.features.count(statistics)

    def answer(self, statistics: Floats, fallback: Floats | None = None) -> AnyArray:
        """θ* = argmin_θ ⟨coef(θ), S + pseudo · prior⟩: the conjugate update (P2 eqs. 8-10)."""
        prior = self.prior
        if prior is None:
            total = statistics.reshape(-1, statistics.shape[-1]).sum(0) if fallback is None else fallback
            prior = total / max(float(self.count(total)), 1e-300)
        return self.estimate(filled(statistics + self.pseudo * prior, prior))

    @abstractmethod
    def estimate(self, statistics: Floats) -> AnyArray:
        """The likeliest θ for statistics of at least one observation, within the family's floors."""

    def log_prior(self, answer: AnyArray) -> float:
        """Σ_cells ln of the conjugate prior's density at θ, up to a constant: −pseudo ⟨coef(θ), prior⟩."""
        if self.prior is None or self.pseudo == 0:
            return 0.0
        return -self.pseudo * float(np.sum(self.coef(answer) @ self.prior))

    def log_base(self, labels: Floats) -> Floats:
        """ln p_0(y), the part of the density that no θ changes, shape of the labels."""
        return np.zeros(len(labels))

    def check(self, labels: Floats) -> None:
        """Refuse labels that the family cannot produce."""

    def cdf(self, answer: AnyArray, labels: Floats) -> Floats:
        """P(y ≤ label|θ), shape of the cells (…) broadcast against the labels."""
        raise NotImplementedError

    def bracket(self, answers: Floats) -> tuple[float, float]:
        """Labels between which practically all mass of every one of these answers lies."""
        raise NotImplementedError


class OnAlphabet(Family):
    """Labels on an alphabet: an answer is a distribution of them."""

    needs_alphabet = True
    alphabet: Alphabet

    def __init__(self, alphabet: Alphabet, pseudo: float = 1.0, prior: Floats | None = None) -> None:
        super().__init__(pseudo, prior)
        self.alphabet = alphabet
        self.features = OneHot(alphabet.size)
        self.range = float(-np.log(PROBABILITY_FLOOR))
        self.ordered = alphabet.numeric

    def coef(self, answer: AnyArray) -> Floats:
        return -np.log(self.distribution(answer))

    def values(self, answer: AnyArray) -> Floats:
        return self.distribution(answer) @ self.alphabet.numbers

    def distribution(self, answer: AnyArray) -> Floats:
        raise NotImplementedError  # pragma: no cover


class Categorical(OnAlphabet):
    """p(y|θ) = θ_y on an alphabet; θ has shape (…, |Y|). P2 calls it Discrete."""

    def estimate(self, statistics: Floats) -> Floats:
        return floored(statistics / statistics.sum(-1, keepdims=True), PROBABILITY_FLOOR)

    def distribution(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64)


class Bernoulli(OnAlphabet):
    """p(second label|θ) = θ on an alphabet of two; θ has shape (…)."""

    def __init__(self, alphabet: Alphabet, pseudo: float = 1.0, prior: Floats | None = None) -> None:
        if alphabet.size > 2:
            raise GinghamError(
                f"family='bernoulli' needs two label values, not {alphabet.size}; use family='categorical'."
            )
        super().__init__(alphabet, pseudo, prior)

    def estimate(self, statistics: Floats) -> Floats:
        share = statistics[..., -1] / statistics.sum(-1)
        return np.clip(share, PROBABILITY_FLOOR, 1.0 - PROBABILITY_FLOOR)

    def distribution(self, answer: AnyArray) -> Floats:
        answer = np.asarray(answer, dtype=np.float64)
        # An alphabet of one label has a single probability, one.
        return np.stack([1.0 - answer, answer], axis=-1) if self.alphabet.size == 2 else np.ones((*answer.shape, 1))


class Gaussian(Family):
    """Normal labels; θ = (mean, variance), shape (…, 2), P2 eqs. (8)-(9) with a floor on the variance."""

    features = Moments(2)
    ordered = True

    def __init__(self, pseudo: float = 1.0, min_variance: float | None = None, prior: Floats | None = None) -> None:
        super().__init__(pseudo, prior)
        self.min_variance = min_variance

    def informed(self, total: Floats) -> Self:
        new = super().informed(total)
        if new.min_variance is None and new.prior is not None:
            new.min_variance = VARIANCE_FLOOR * max(float(new.prior[2] - new.prior[1] ** 2), 1e-12)
        return new

    def estimate(self, statistics: Floats) -> Floats:
        mean = statistics[..., 1] / statistics[..., 0]
        variance = statistics[..., 2] / statistics[..., 0] - mean**2
        floor = 1e-12 if self.min_variance is None else self.min_variance
        return np.stack([mean, np.maximum(variance, floor)], axis=-1)

    def coef(self, answer: AnyArray) -> Floats:
        mean, variance = answer[..., 0], answer[..., 1]
        constant = 0.5 * np.log(2 * np.pi * variance) + mean**2 / (2 * variance)
        return np.stack([constant, -mean / variance, 0.5 / variance], axis=-1)

    def values(self, answer: AnyArray) -> Floats:
        return np.asarray(answer[..., 0], dtype=np.float64)

    def distribution(self, answer: AnyArray) -> None:
        return None

    def cdf(self, answer: AnyArray, labels: Floats) -> Floats:
        return ndtr((labels - answer[..., 0]) / np.sqrt(answer[..., 1]))

    def bracket(self, answers: Floats) -> tuple[float, float]:
        spread = 10.0 * np.sqrt(answers[..., 1])
        return float((answers[..., 0] - spread).min()), float((answers[..., 0] + spread).max())


class Poisson(Family):
    """y − shift is Poisson with rate θ, shape (…). P2 shifts Foodmart's counts by one, as zeros are missing."""

    features = Moments(1)
    ordered = True
    whole = True

    def __init__(self, pseudo: float = 1.0, shift: float = 0.0, prior: Floats | None = None) -> None:
        super().__init__(pseudo, prior)
        self.shift = float(shift)

    def estimate(self, statistics: Floats) -> Floats:
        return np.maximum(statistics[..., 1] / statistics[..., 0] - self.shift, RATE_FLOOR)

    def coef(self, answer: AnyArray) -> Floats:
        log_rate = np.log(answer)
        return np.stack([answer + self.shift * log_rate, -log_rate], axis=-1)

    def values(self, answer: AnyArray) -> Floats:
        return np.asarray(answer, dtype=np.float64) + self.shift

    def distribution(self, answer: AnyArray) -> None:
        return None

    def log_base(self, labels: Floats) -> Floats:
        return -gammaln(labels - self.shift + 1.0)

    def check(self, labels: Floats) -> None:
        counts = labels - self.shift
        wrong = (counts < 0) | (counts != np.floor(counts))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise GinghamError(
                f"family='poisson' needs integers ≥ {self.shift:g}; the label in row {row} is "
                f"{labels[row]:g}. Change shift=, or use family='gaussian'."
            )

    def cdf(self, answer: AnyArray, labels: Floats) -> Floats:
        return pdtr(np.floor(labels - self.shift), answer)

    def bracket(self, answers: Floats) -> tuple[float, float]:
        rate = float(answers.max())
        return self.shift - 1.0, self.shift + rate + 12.0 * np.sqrt(rate) + 30.0


FAMILIES: dict[str, type[Family]] = {}


def register_family(kind: type[Family]) -> type[Family]:
    """Give a family its ``name``: ``family=`` and model files know it from then on. A class decorator.

    Examples
    --------
    >>> import gingham as gg
    >>> from gingham.cells.families import Poisson
    >>> gg.losses.register_family(Poisson) is Poisson  # a class of your own stands in its place
    True
    """
    if not (isinstance(kind, type) and issubclass(kind, Family)):
        raise GinghamError(f"register_family takes a subclass of Family, not {kind!r}.")
    if FAMILIES.get(kind.name, kind).__qualname__ != kind.__qualname__:
        raise GinghamError(f"There is a family called {kind.name!r} already; give yours another name.")
    FAMILIES[kind.name] = UNNAMED[kind.name] = kind
    return kind


for _kind in (Gaussian, Bernoulli, Poisson, Categorical):
    register_family(_kind)


def family_kind(name: str) -> type[Family]:
    """The class of a family by its name."""
    if name not in FAMILIES:
        raise GinghamError(
            f"family={name!r} is unknown; choose one of {', '.join(FAMILIES)}, or import the module that registers it."
        )
    return FAMILIES[name]


def make_family(name: str, alphabet: Alphabet | None, pseudo: float = 1.0, shift: float = 0.0) -> Family:
    """A family by its name; it gets the options that its constructor takes."""
    kind = family_kind(name)
    if kind.needs_alphabet and alphabet is None:
        raise GinghamError(f"family={name!r} needs a finite set of labels: give alphabet=, the possible label values.")
    options: dict[str, Any] = {"pseudo": pseudo, "shift": shift}
    taken = {key: value for key, value in options.items() if key in signature(kind).parameters}
    if kind.needs_alphabet:
        taken["alphabet"] = alphabet
    return kind(**taken)
