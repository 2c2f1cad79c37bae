"""Progressive validation: every observation is first predicted by somebody who has not seen it, then learned from.

X_t = ℓ(h_t; Z_t) in [0, 1] is the loss of a predictor h_t that depends on the observations before t only, and
L_t = E[X_t | past] is that predictor's expected loss. For a ν > 1 fixed before the first test,
Π_t (ν − X_t)/(ν − L_t) is a non-negative martingale that starts at 1, so it reaches 1/δ with probability at most δ
(Ville), and ln(ν − ·) is concave: with probability at least 1 − δ, for all n at once,

    L̄_n = (1/n) Σ L_t ≤ ν − exp{ (1/n) Σ ln(ν − X_t) − ln(1/δ)/n }.

Nothing is paid for what a predictor learned, for a grid of ν or for the number of predictors.

References make it tighter where draws are independent and alike: predictors fitted earlier, each tested on all draws
after its own, so that a later one only has to show by how much it differs from the one before (`combined_losses`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import expm1, log, sqrt

import numpy as np

from gingham.arrays import ArrayLike, Floats, Ints
from gingham.certificates.assumptions import Assumption, checked, given
from gingham.certificates.bounds import checked_candidates, checked_delta, log_inverse
from gingham.certificates.certificate import Certificate
from gingham.data.draws import rows_of_draws
from gingham.data.sample import need_unmasked
from gingham.errors import GinghamError, RefusedCertificate

LEAST_NU = 1.001  # no single loss may take the whole wealth
DIFFERENCE = 0.2  # of neighbouring references' losses, as a share of their variance: what the bet expects, no more
ORDERS = ("shuffle", "arrival")
MEAN, DRAWN = "mean of the members", "member drawn by its share"
TEXT = (
    "With probability at least 1 − δ, for all n at once: the average of the expected losses L_t of the predictors that "
    "were tested is at most ν − exp{mean ln(ν − X_t) − ln(1/δ)/n}, where X_t is the loss of predictor t on an "
    "observation that it, and ν, had not seen."
)
REFERENCE = "gingham, docs/theory/progressive; Ville 1939; Blum, Kalai and Langford 1999 (progressive validation)"
TEXT_REFERENCES = (
    "With probability at least 1 − δ: the average of the expected losses of the members that were tested is at most "
    "(N/n)·(ν − exp{mean ln(ν − Y_t) − ln(1/δ)/N}), where Y_t = n Σ_j (B_j(t) − B_{j−1}(t))/N_j combines the losses "
    "B_j of the references that were fitted before draw t, each tested on the N_j draws after its own, with that "
    "of the member, tested on n draws; none of them, nor ν, had seen the draws that test it."
)


def choose_nu(losses: Floats, expected: int | Sequence[int], delta: float, candidates: int = 1) -> float:
    """ν = max(μ + σ √(n / (2 ln(1/δ))), 1.001) from losses that were made before the first test.

    Any ν above 1 that is fixed beforehand gives a valid bound; this one is near the best for n = ``expected`` tests.
    With references, ``expected`` are the numbers of tests N_0 > N_1 > … > n of each and of the members: μ becomes
    μ n/N_0 and n becomes `combined_variance`.
    """
    losses = _unit_losses(losses)
    sizes = [expected] if isinstance(expected, (int, np.integer)) else list(expected)
    if len(losses) == 0 or sizes[-1] < 1:
        raise GinghamError("ν is chosen from at least one loss of the warm-up, for at least one test.")
    spread = float(losses.std()) * sqrt(combined_variance(sizes) / (2.0 * log_inverse(delta, candidates)))
    return max(float(losses.mean()) * sizes[-1] / sizes[0] + spread, LEAST_NU)


def combined_losses(tests: Sequence[Floats]) -> Floats:
    """Y_t = n Σ_j (B_j(t) − B_{j−1}(t))/N_j for each of the N_0 draws that were tested.

    ``tests[j]`` holds the losses of reference j on the last N_j draws, the last entry those of the members on the last
    n draws, each of its own block. The expectations of B_j(t) and B_{j−1}(t) do not depend on t if the draws are
    independent and alike, so those of the Y_t add up to n L̄, whatever the references are: they telescope. No Y_t is
    above 1: every N_j is at most the one before, so that all losses but the last are counted with a weight below 0.
    """
    y = np.zeros(len(tests[0]))
    for j, losses in enumerate(tests):
        before = tests[j - 1][-len(losses) :] if j else 0.0
        y[-len(losses) :] += len(tests[-1]) / len(losses) * (losses - before)
    return y


def combined_variance(sizes: Sequence[int]) -> float:
    """The variance of Σ Y_t for losses of variance 1 and independent differences of variance `DIFFERENCE`."""
    return sizes[-1] ** 2 * (1.0 / sizes[0] + DIFFERENCE * sum(1.0 / size for size in sizes[1:]))


def progressive_bound(log_sum: float, n: int, nu: float, price: float) -> float:
    """min(1, ν − exp{Σ ln(1 − X_t/ν)/n + ln ν − price/n}) from the sum of ln(1 − X_t/ν) over n tests."""
    return min(1.0, -nu * expm1((log_sum - price) / n))


@dataclass
class Progressive:
    """A stream of certificates: add losses as they occur, and look or stop whenever you like.

    Its settings are fixed: a bet that could be changed after a test would use what is already known.

    Whoever is tested may change at any time, as long as each loss belongs to a prediction that was made before its
    label was known. All certificates of one stream hold together with probability at least 1 − delta; the one after
    n tests speaks of the average expected loss of the predictors of these n tests.

    Parameters
    ----------
    nu : float
        The bet, above 1, fixed before the first test; see `choose_nu`.
    delta : float
    low, range : float
        Every loss lies between low and low + range, in the loss's own unit.
    loss : str
        Its name.
    convex : bool
        Whether the loss is convex in the prediction: then the predictors' average is covered as well.
    candidates : int
        How many streams on the same observations were looked at; each costs its share of δ.
    assumptions : tuple of Assumption
        What the losses rest on; what is known of them is added.
    shares : int
        How many bounds hold together, those of strata among them, each with an equal share of δ.

    Examples
    --------
    >>> from gingham.certificates import Progressive
    >>> stream = Progressive(nu=4.0, loss="zero-one")
    >>> round(stream.add([0, 0, 1, 0, 0, 0, 0, 0, 0, 1]).value, 4)
    1.0
    >>> round(stream.add([0] * 90).value, 4)
    0.1403
    """

    nu: float
    delta: float = 0.05
    low: float = 0.0
    range: float = 1.0
    loss: str = "loss"
    convex: bool = False
    candidates: int = 1
    assumptions: tuple[Assumption, ...] = ()
    shares: int = 1
    n_observations: int = field(default=0, init=False)
    total: float = field(default=0.0, init=False)  # Σ X_t
    log_total: float = field(default=0.0, init=False)  # Σ ln(1 − X_t/ν)
    ended: bool = field(default=False, init=False)  # by a certificate of references or of a stratum, for one time

    def __setattr__(self, name: str, value: object) -> None:
        if name in vars(self) and name not in ("n_observations", "total", "log_total", "ended"):
            raise GinghamError(f"{name} of a stream is fixed before its first test: start another one, and count both.")
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        checked_delta(self.delta)
        checked_candidates(self.candidates)
        if not (np.isfinite(self.nu) and self.nu > 1):
            raise GinghamError(f"nu={self.nu} must be a finite number above 1, the largest scaled loss.")
        if not (np.isfinite(self.low) and np.isfinite(self.range) and self.range > 0):
            raise GinghamError(f"The losses' range, {self.low} and {self.range} more, must be finite and not empty.")

    def add(self, losses: ArrayLike, counts: Ints | None = None) -> Certificate:
        """Count the losses of further tests (own unit; ``counts`` says how often each), and return the certificate."""
        if self.ended:
            raise GinghamError("This stream has ended with a certificate: start another one, and count both.")
        need_unmasked(losses, "losses")
        own = np.atleast_1d(np.asarray(losses, dtype=np.float64)).ravel()
        scaled = _unit_losses((own - self.low) / self.range, own)
        weights = np.ones(len(scaled), dtype=np.int64) if counts is None else np.asarray(counts)
        if weights.shape != scaled.shape or weights.dtype.kind not in "iu" or (weights < 0).any():
            raise GinghamError("counts must be an integer ≥ 0 for each loss.")
        if (scaled >= self.nu).any():
            raise GinghamError(f"A loss reaches nu={self.nu}: the bet would lose everything.")
        self.n_observations += int(weights.sum())
        self.total += float(weights @ scaled)
        self.log_total += float(weights @ np.log1p(-scaled / self.nu))
        return self.certificate

    @property
    def price(self) -> float:
        """ln(candidates · shares/δ)."""
        return log_inverse(self.delta, self.candidates * self.shares)

    def of_blocks(self, tests: Sequence[Floats], members: Floats) -> Certificate:
        """The guarantee for one stratum, whose rows test members in other shares than those in which they predict.

        It ends the stream.
        ``tests[b]`` are the losses of member b, in their own unit, on rows of the stratum, ``members`` the shares in
        which the members predict. Losses are weighted so that Σ_b share_b L_b is bounded; a member that no row of the
        stratum has tested may lose as much as there is. Which rows are of the stratum is known beforehand.
        """
        if self.n_observations or self.ended:
            raise GinghamError("This stream has counted tests already: a stratum needs one of its own.")
        self.ended = True
        if len(members) != len(tests) or not (members >= 0).all() or not abs(members.sum() - 1.0) < 1e-9:
            raise GinghamError("The shares of the members are numbers ≥ 0 that sum to 1, one for each.")
        sizes = np.array([len(losses) for losses in tests])
        if not sizes.any():
            raise RefusedCertificate("No observation of the stratum has been tested: there is nothing to certify.")
        n, met = int(sizes.sum()), sizes > 0
        weights = np.zeros(len(sizes))
        weights[met] = members[met] * n / sizes[met]
        x = _unit_losses((np.concatenate(tests) - self.low) / self.range)
        y = np.repeat(weights, sizes) * x
        nu = max(self.nu, LEAST_NU * float(weights.max()))
        missing = 1.0 - float(members[met].sum())
        bound = missing + progressive_bound(float(np.log1p(-y / nu).sum()), n, nu, self.price)
        return self._certificate(min(1.0, bound), float(y.mean()) / max(1.0 - missing, 1e-12), n)

    @property
    def certificate(self) -> Certificate:
        """The guarantee for all tests so far."""
        n = self.n_observations
        if n < 1:
            raise RefusedCertificate("No observation has been tested yet: there is nothing to certify.")
        return self._certificate(progressive_bound(self.log_total, n, self.nu, self.price), self.total / n, n)

    def with_references(self, tests: Sequence[ArrayLike]) -> Certificate:
        """The guarantee from losses of references and members, see `combined_losses`; it ends the stream.

        It holds at the planned end only, for draws that are independent and alike. Its ``empirical`` is the estimate
        of the members' loss that the references help to make: (1/n) Σ Y_t.
        """
        if self.n_observations or self.ended:
            raise GinghamError("This stream has counted tests already: references need one of their own.")
        for losses in tests:
            need_unmasked(losses, "losses")
        own = [np.asarray(losses, dtype=np.float64).ravel() for losses in tests]
        scaled = [_unit_losses((losses - self.low) / self.range, losses) for losses in own]
        sizes = [len(losses) for losses in scaled]
        if not sizes or sizes != sorted(set(sizes), reverse=True) or sizes[-1] < 1:
            raise GinghamError("Each reference is tested on more draws than the next one, and the members on some.")
        self.ended = True
        y = combined_losses(scaled)
        many = len(y) / sizes[-1]
        mean = progressive_bound(float(np.log1p(-y / self.nu).sum()), len(y), self.nu, self.price)
        found = self._certificate(min(1.0, many * mean), many * float(y.mean()), len(y))
        parameters = {**found.parameters, "references": len(sizes) - 1, "tested": sizes[-1]}
        assumptions = found.assumptions if ALL_ALIKE in found.assumptions else (ALL_ALIKE, *found.assumptions)
        found = replace(found, parameters=parameters, assumptions=assumptions, anytime=False)
        return replace(found, text=TEXT_REFERENCES)

    def _certificate(self, bound: float, observed: float, n: int) -> Certificate:
        """What is said of scaled losses, in the loss's own unit."""
        unions = {"candidates": log(self.candidates), "strata": log(self.shares)}
        terms = {"confidence ln 1/δ": log_inverse(self.delta)}
        terms |= {f"union over {what}": union for what, union in unions.items() if union}
        worst = self.low + self.range
        known = (
            checked("range", low=float(self.low), high=float(worst)),
            given("fixed before the first test"),
        )
        return Certificate(
            value=self.low + self.range * bound,
            empirical=self.low + self.range * observed,
            bound="progressive",
            predictor=MEAN if self.convex else DRAWN,
            delta=self.delta,
            n_observations=n,
            terms=terms,
            assumptions=(*(self.assumptions or (PREDICTED_FIRST,)), *known),
            worst=worst,
            parameters={"nu": self.nu, "candidates": self.candidates},
            loss=self.loss,
            anytime=True,
            text=TEXT,
            reference=REFERENCE,
        )


PREDICTED_FIRST = given("predicted first")
SAME_SOURCE = given("one source")
ALL_ALIKE = given("all alike")
ARRIVED = given("order of arrival")
ROW_BY_ROW = given("row by row")
SETTINGS = given("settings")


def draws_in_order(n_rows: int, counts: Ints | None, order: str, seed: int) -> Ints:
    """The row of every draw, in the order in which draws are learned from and tested.

    A row of weight w stands for w draws, which are shuffled apart: draws are divided, not lines. Rows keep their
    order with order="arrival".
    """
    if order not in ORDERS:
        raise GinghamError(f"order={order!r} is unknown; choose one of {', '.join(ORDERS)}.")
    rows = rows_of_draws(n_rows, counts)
    return rows if order == "arrival" else np.random.default_rng(seed).permutation(rows)


@dataclass(frozen=True)
class Plan:
    """Which draws warm up, which choose ν, and which are tested by whom.

    Attributes
    ----------
    pilot : int
        Draws that the pilot learns from; those from there to ``edges[0]`` are the ones that choose ν.
    edges : tuple of int
        Block b holds the draws from edges[b] to edges[b + 1]; its member learns from all draws before edges[b].
    references : tuple of int
        Draws that each reference learns from; the first of them is the pilot.
    """

    pilot: int
    edges: tuple[int, ...]
    references: tuple[int, ...] = ()

    @classmethod
    def of(cls, n: int, warm_up: float, blocks: int, share: float = 0.8, references: int = 0) -> Plan:
        if not (isinstance(warm_up, (int, float)) and 0 < warm_up < 1):
            raise GinghamError(f"warm_up={warm_up!r} must lie strictly between 0 and 1: a share of the draws.")
        if isinstance(blocks, bool) or not isinstance(blocks, (int, np.integer)) or blocks < 1:
            raise GinghamError(f"blocks={blocks!r} must be an integer ≥ 1.")
        first = int(warm_up * n)
        if first < 2 or n - first < blocks:
            raise GinghamError(
                f"{n} draws with warm_up={warm_up:g} leave {first} to begin with and {n - first} to test in {blocks} "
                "blocks; at least 2, and one per block, are needed. Give more rows, or ask for fewer blocks."
            )
        edges = tuple(int(e) for e in first + np.arange(blocks + 1) * (n - first) // blocks)
        if isinstance(references, bool) or not isinstance(references, (int, np.integer)) or references < 0:
            raise GinghamError(f"references={references!r} must be an integer ≥ 0.")
        if not references:
            return cls(max(1, min(int(share * first), first - 1)), edges)
        if first < 4 * (references + 1):
            raise GinghamError(
                f"{references} references share a warm-up of {first} draws: give more rows or ask for fewer."
            )
        fitted = tuple(first * (j + 1) // (references + 1) for j in range(references))
        return cls(fitted[0], edges, fitted)

    @property
    def counted(self) -> int:
        """The first draw that is a test; those from the pilot on to it choose ν."""
        if not self.references:
            return self.edges[0]
        end = (*self.references[1:], self.edges[0])[0]
        return self.pilot + max(1, (end - self.pilot) // 10)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Which draws test each model, in the order of their fits: the pilot, references after it, the members."""
        first = [(start, self.edges[-1]) for start in self.references] or [(self.pilot, self.edges[0])]
        return [*first, *pairwise(self.edges)]

    @property
    def n_tests(self) -> tuple[int, ...]:
        """Of each reference, and of the members together."""
        starts = (*((self.counted, *self.references[1:]) if self.references else ()), self.edges[0])
        return tuple(self.edges[-1] - start for start in starts)

    @property
    def sizes(self) -> Ints:
        return np.diff(self.edges)

    @property
    def n_tested(self) -> int:
        return self.edges[-1] - self.edges[0]


def _unit_losses(scaled: ArrayLike, own: Floats | None = None) -> Floats:
    """Scaled losses between 0 and 1 (but for rounding); others are refused, never moved inside."""
    values = np.asarray(scaled, dtype=np.float64)
    wrong = ~((values >= -1e-9) & (values <= 1 + 1e-9))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        shown = values[row] if own is None else own[row]
        raise RefusedCertificate(f"The loss {shown:.6g} in row {row} lies outside the range that was stated.")
    return values
