"""Bounds on the expected Gibbs loss that hold for all posteriors at once: one function and one record a theorem.

Each takes the distribution of the Gibbs loss on the sample (values at most 1), the complexity KL(Q‖P) in nats,
the number N of independent observations and δ, and returns a Bound. With probability at least 1 − δ over the
sample the returned value is above the expected loss, whatever Q was chosen after seeing the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import exp, log, nan
from numbers import Integral

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats
from gingham.certificates.divergence import ball_maximum, kl_lower, kl_upper
from gingham.errors import GinghamError, RefusedCertificate

# ν of the log-wealth bound, fixed before any data are seen. The best one is near σ √(N/(2 ln 1/δ)): the grid reaches
# that of 10^9 observations.
LOWER_GRID: Floats = np.geomspace(1e-4, 1e4, 68)
GRID: Floats = 1.0 + LOWER_GRID
# Of the unexpected Bernstein bound: shifts a, and rates η as shares of their limit 1/b.
SHIFTS: Floats = np.array([0.0, 0.1, 0.15, 0.2, 0.25])
RATES: Floats = np.geomspace(0.01, 0.98, 60)
_SIXTEENTHS: Floats = np.arange(17) / 16


@dataclass(frozen=True, eq=False)
class LossDistribution:
    """The empirical distribution of the Gibbs loss: E_Q (1/N) Σ_e [ℓ(h, e) = value].

    All bounds on one posterior see the sample only through this distribution. Values are on the scale of the
    theorems: at most 1, and at least 0 unless they are differences of losses.
    """

    values: Floats  # (K,)
    weights: Floats  # (K,): non-negative, with sum 1
    # all values a loss can possibly take, known before the sample was seen; None for a continuum
    support: Floats | None = None

    @classmethod
    def of(
        cls, values: npt.ArrayLike, weights: npt.ArrayLike, support: npt.ArrayLike | None = None
    ) -> LossDistribution:
        """Flatten, check and normalise (weights may be counts); equal values are merged."""
        values = np.asarray(values, dtype=np.float64).ravel()
        weights = np.asarray(weights, dtype=np.float64).ravel()
        if values.shape != weights.shape or values.size == 0:
            raise GinghamError("A distribution needs as many weights as values, and at least one.")
        if not (np.isfinite(values).all() and np.isfinite(weights).all() and (weights >= 0).all()):
            raise GinghamError("A distribution needs finite values and finite weights that are not negative.")
        if values.max() > 1 + 1e-12:
            raise GinghamError(f"A loss of {values.max():.6g} exceeds 1; divide losses by their range first.")
        total = weights.sum()
        if total <= 0:
            raise GinghamError("All weights of the distribution are zero.")
        distinct, at = np.unique(values, return_inverse=True)
        merged = np.bincount(at.ravel(), weights, minlength=len(distinct)) / total
        return cls(
            np.minimum(distinct, 1.0),
            merged,
            None if support is None else np.unique(np.asarray(support, dtype=np.float64)),
        )

    @property
    def mean(self) -> float:
        """L̂(Q), the empirical Gibbs loss."""
        return float(self.weights @ self.values)

    @property
    def lowest(self) -> float:
        """The smallest value that can occur (that has occurred, on a continuum)."""
        return float(self.values.min() if self.support is None else self.support.min())

    def log_gain(self, gaps: Floats) -> Floats:
        """E ln[1 + (X − E X)/gap] ≤ 0 for each gap, shape (len(gaps),): never above 0 by more than rounding."""
        seen = self.weights > 0
        values, weights = self.values[seen] - self.mean, self.weights[seen]
        result: Floats = np.zeros(len(gaps))
        for start in range(0, len(values), 2**16):  # a few values at a time keep the table small
            part = slice(start, start + 2**16)
            result += np.log1p(values[None, part] / gaps[:, None]) @ weights[part]
        return np.minimum(result, 0.0)

    def on_support(self) -> tuple[Floats, Floats]:
        """Values and weights over everything that can occur; refused on a continuum."""
        if self.support is None:
            raise GinghamError("This bound needs a loss that takes finitely many known values.")
        at = np.searchsorted(self.support, self.values)
        at = np.clip(at, 0, len(self.support) - 1)
        lower = np.maximum(at - 1, 0)
        closer = np.abs(self.support[lower] - self.values) < np.abs(self.support[at] - self.values)
        at = np.where(closer, lower, at)
        if np.abs(self.support[at] - self.values).max() > 1e-9:
            raise GinghamError("A loss occurred that is not among the values said to be possible.")
        weights: Floats = np.bincount(at, self.weights, minlength=len(self.support)).astype(np.float64)
        return self.support, weights


def mixture(distributions: list[LossDistribution]) -> LossDistribution:
    """The distribution of a predictor that first draws one of several members, all alike (a committee)."""
    if not distributions:
        raise GinghamError("A committee needs at least one member.")
    supports = [distribution.support for distribution in distributions]
    known = [s for s in supports if s is not None]
    return LossDistribution.of(
        np.concatenate([distribution.values for distribution in distributions]),
        np.concatenate([distribution.weights for distribution in distributions]),
        np.concatenate(known) if len(known) == len(distributions) else None,
    )


def ln_xi(n: int) -> float:
    """ln ξ(N), ξ(N) = Σ_k C(N, k) (k/N)^k (1 − k/N)^{N−k}: Maurer's exact constant for ½ ln 4N.

    The sum equals Σ_k Π_{j<k} (1 − j/N) (one plus Ramanujan's Q), whose terms fall like e^{−k²/2N},
    so about 9√N terms suffice; the rest is bounded by a geometric series and included.
    """
    n = whole(n)
    last = min(n, int(9.0 * n**0.5) + 10)
    steps = np.log1p(-np.arange(1, last) / n) if last > 1 else np.zeros(0)
    terms = np.exp(np.concatenate([[0.0, 0.0], np.cumsum(steps)]))  # k = 0, 1, …, last
    rest = 0.0 if last >= n else float(terms[-1]) * (n / last)
    return log(float(terms.sum()) + rest)


def ln_shtarkov(size: int, n: int) -> float:
    """ln C(K, N) = ln Σ_{types of N symbols} multinomial · Π (k_i/N)^{k_i} ≥ ln E e^{N KL(p̂‖p)}.

    C(1) = 1, C(2) = ξ(N), C(k + 2) = C(k + 1) + (N/k) C(k), carried on as ratios. P0's Theorem 3 has
    (K − 1) ln(N + 1) in its place.
    """
    n = whole(n)
    if size < 1:
        raise GinghamError(f"A distribution needs at least one value, not {size}.")
    if size == 1:
        return 0.0
    total = ln_xi(n)
    ratio = exp(total)
    for k in range(1, size - 1):
        ratio = 1.0 + n / (k * ratio)
        total += log(ratio)
    return total


def checked_delta(delta: object) -> float:
    """δ as a number strictly between 0 and 1."""
    number = float(delta) if isinstance(delta, (float, np.floating)) else nan
    if not 0 < number < 1:
        raise GinghamError(
            f"delta={delta!r} must lie strictly between 0 and 1: it is the probability that the guarantee fails."
        )
    return number


def checked_candidates(candidates: object) -> int:
    """Among how many predictors the same observations decided."""
    if isinstance(candidates, bool) or not isinstance(candidates, Integral) or candidates < 1:
        raise GinghamError(f"candidates={candidates!r} must be an integer ≥ 1.")
    return int(candidates)


def log_inverse(delta: object, candidates: object = 1) -> float:
    """ln(candidates/δ), the price of the confidence."""
    return log(checked_candidates(candidates)) - log(checked_delta(delta))


def whole(n: float, least: int = 1) -> int:
    """A number of observations as a whole number of at least one."""
    if not (float(n).is_integer() and n >= least):
        raise GinghamError(f"N={n} must be an integer ≥ {least}.")
    return int(n)


@dataclass(frozen=True)
class Bound:
    """A bound on the scaled loss."""

    value: float
    # what is paid beside KL(Q‖P): confidence, union over a grid, concentration
    price: Mapping[str, float]
    # what the bound chose (the ν of log-wealth, say)
    parameters: Mapping[str, float] = field(default_factory=dict)


def classification(distribution: LossDistribution, complexity: float, n: int, delta: float) -> Bound:
    """P0 Theorem 1, eq. (1): kl(L̂‖L) ≤ [KL + ln(N + 1) + ln 1/δ]/N, for any loss in [0, 1]."""
    n = whole(n)
    return _kl_bound(distribution, complexity, n, delta, {"concentration ln(N+1)": log(n + 1)})


def theorem7(distribution: LossDistribution, complexity: float, n: int, delta: float) -> Bound:
    """P0 Theorem 7, eq. (18), with eq. (3): kl(L̂‖L) ≤ [KL + ½ ln 4N + ln 1/δ]/N, for N ≥ 8.

    Theorem 13 (53) and the tree (51) are the same inequality with their own complexities.
    """
    n = whole(n)
    if n < 8:
        raise RefusedCertificate(f"Eq. (3) needs N ≥ 8 observations; N = {n}. Use bound='kl' or 'log-wealth'.")
    return _kl_bound(distribution, complexity, n, delta, {"concentration ½·ln 4N": 0.5 * log(4.0 * n)})


def maurer(distribution: LossDistribution, complexity: float, n: int, delta: float) -> Bound:
    """Maurer's exact form: kl(L̂‖L) ≤ [KL + ln ξ(N) + ln 1/δ]/N for every N."""
    n = whole(n)
    return _kl_bound(distribution, complexity, n, delta, {"concentration ln ξ(N)": ln_xi(n)})


def maurer_lower(distribution: LossDistribution, complexity: float, n: int, delta: float) -> Bound:
    """The same inequality read from below: L ≥ min {q : kl(L̂‖q) ≤ ε}."""
    n = whole(n)
    _needs_unit_interval(distribution)
    price, epsilon = _paid(complexity, n, delta, {"concentration ln ξ(N)": ln_xi(n)})
    return Bound(kl_lower(_unit(distribution.mean), epsilon), price, {"epsilon": epsilon})


def _kl_bound(
    distribution: LossDistribution, complexity: float, n: int, delta: float, price: dict[str, float]
) -> Bound:
    _needs_unit_interval(distribution)
    price, epsilon = _paid(complexity, n, delta, price)
    return Bound(kl_upper(_unit(distribution.mean), epsilon), price, {"epsilon": epsilon})


def log_wealth(distribution: LossDistribution, complexity: float, n: int, delta: float, grid: Floats = GRID) -> Bound:
    """The largest L with ln Σ_ν exp{N [E ln(ν − X) − ln(ν − L)]} ≤ KL + ln(|Grid|/δ). The default.

    For a fixed ν > 1 ≥ X the product Π (ν − X_i)/(ν − L) is the wealth of a gambler who bets against the
    loss: a martingale that starts at 1, and so is the average over the grid. Averaged over the prior it
    exceeds 1/δ with probability at most δ (Ville), *for all sample sizes at once*; change of measure and
    Jensen's inequality (ln is concave, log-sum-exp convex) bring in Q. The value is never above the simpler
    min_ν ν − exp{E ln(ν − X) − [KL + ln(|Grid|/δ)]/N}, which keeps the best ν only.

    Losses may be negative (differences). The bound uses the whole distribution of the loss, so a loss that varies
    little is bounded tightly.
    """
    return _log_wealth(distribution, complexity, n, delta, grid, 1.0)


def _log_wealth(
    distribution: LossDistribution, complexity: float, n: int, delta: float, grid: Floats, most: float
) -> Bound:
    """The bound of values that are at most ``most``, which is below all ν."""
    n = whole(n)
    budget = _checked(complexity) + log(len(grid)) + log_inverse(delta)
    # All relative to the observed loss, so that no digits are lost where N is large and the bound is close to it.
    gaps, gains = distribution.mean - grid, distribution.log_gain(distribution.mean - grid)
    singles = distribution.mean + gaps * np.expm1(gains - budget / n)
    best = int(np.argmin(singles))
    top = min(float(singles[best]), most)

    def logs(levels: Floats | float) -> Floats:
        return n * (gains - np.log1p((levels - distribution.mean) / gaps))

    # The wealth grows with L: close in on the L at which it meets the budget, never from below.
    value = close_in(lambda levels: _wealth(logs(levels)) > budget, distribution.mean, top)
    return Bound(value, _wealth_price(logs(value), delta), {"nu": float(grid[best])})


def log_wealth_lower(
    distribution: LossDistribution,
    complexity: float,
    n: int,
    delta: float,
    grid: Floats = LOWER_GRID,
    floor: float = 0.0,
) -> Bound:
    """The least L with ln Σ_ν exp{N [E ln(ν + X) − ln(ν + L)]} ≤ KL + ln(|Grid|/δ).

    For X ≥ ``floor`` (0, or −1 for differences of losses): a gambler who bets on the loss.
    """
    if distribution.lowest < floor - 1e-12:
        raise GinghamError(f"A loss of {distribution.lowest:.6g} lies below floor={floor}.")
    lost = replace(distribution, values=-distribution.values, support=None)
    found = _log_wealth(lost, complexity, n, delta, grid - floor, -floor)
    return replace(found, value=-found.value)


def mean_between(values: Floats, delta: float, least: float = 0.0, union: float = 0.0) -> tuple[float, float]:
    """A lower and an upper bound, each with δ, of the mean of draws between ``least`` (0, −1 for differences) and 1."""

    def upper(x: Floats) -> float:
        return log_wealth(LossDistribution.of(x, np.ones(len(x))), union, len(x), delta).value

    return 1.0 + least - upper(1.0 + least - values), upper(values)


def _wealth(logs: Floats) -> Floats:
    """ln Σ exp along the last axis."""
    top = logs.max(axis=-1)
    return top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))


def close_in(too_far: Callable[[Floats], AnyArray], inside: float, outside: float) -> float:
    """Where ``too_far`` (of a column of levels) turns true between two levels; the answer is on its far side."""
    inside = min(inside, outside)
    for _ in range(13):  # each round leaves one sixteenth: 2^-52 in all
        levels = inside + (outside - inside) * _SIXTEENTHS
        far = too_far(levels[1:-1, None])
        at = int(np.argmax(far)) if far.any() else 15
        inside, outside = float(levels[at]), float(levels[at + 1])
    return outside


def _wealth_price(logs: Floats, delta: float) -> dict[str, float]:
    """ln |Grid| less what the other ν contribute beside the best one, and the confidence."""
    return {"grid of ν": log(len(logs)) - float(_wealth(logs) - logs.max()), "confidence ln 1/δ": log_inverse(delta)}


def type_kl(distribution: LossDistribution, complexity: float, n: int, delta: float) -> Bound:
    """KL(p̂_Q(z)‖p_Q(z)) ≤ [KL + ln C(K, N) + ln 1/δ]/N over the K possible losses z.

    The value is the largest mean loss in that ball. One ball bounds every function of the loss at once.
    """
    n = whole(n)
    values, weights = distribution.on_support()
    constant = ln_shtarkov(len(values), n)
    price, epsilon = _paid(complexity, n, delta, {f"concentration ln C({len(values)}, N)": constant})
    return Bound(ball_maximum(weights, values, epsilon), price, {"epsilon": epsilon})


def split_kl(distribution: LossDistribution, complexity: float, n: int, delta: float) -> Bound:
    """The loss as a staircase of coins, each bounded by kl with δ/(number of steps).

    X = v_0 + Σ_j (v_j − v_{j−1}) [X ≥ v_j] over the possible losses v_0 < v_1 < … (Wu and Seldin 2022).
    """
    n = whole(n)
    values, weights = distribution.on_support()
    steps = np.diff(values)
    if len(steps) == 0:
        return Bound(float(values[0]), {})
    price = {"concentration ln ξ(N)": ln_xi(n), "union over steps": log(len(steps))}
    price, epsilon = _paid(complexity, n, delta, price)
    above = np.minimum(np.cumsum(weights[::-1])[::-1][1:], 1.0)  # P(X ≥ v_j), j ≥ 1
    value = float(values[0] + steps @ [kl_upper(p, epsilon) for p in above.tolist()])
    return Bound(value, price, {"epsilon": epsilon})


def unexpected_bernstein(
    distribution: LossDistribution,
    complexity: float,
    n: int,
    delta: float,
    shifts: Floats = SHIFTS,
    rates: Floats = RATES,
) -> Bound:
    """L ≤ a + E(X − a) + c E(X − a)² + [KL + ln(|grid|/δ)]/(ηN), c = [−ln(1 − ηb) − ηb]/(ηb²), b = 1 − a.

    Mhammedi, Grünwald and Guedj (2019), with a union over shifts a and rates η < 1/b.
    """
    n = whole(n)
    price = {"grid of shifts and rates": log(len(shifts) * len(rates)), "confidence ln 1/δ": log_inverse(delta)}
    paid = _checked(complexity) + sum(price.values())
    best, chosen = np.inf, (0.0, 0.0)
    for shift in shifts:
        b = 1.0 - shift
        eta = rates / b
        second = float(distribution.weights @ (distribution.values - shift) ** 2)
        c = (-np.log1p(-eta * b) - eta * b) / (eta * b * b)
        bounds = distribution.mean + c * second + paid / (eta * n)
        at = int(np.argmin(bounds))
        if bounds[at] < best:
            best, chosen = float(bounds[at]), (float(shift), float(eta[at]))
    return Bound(min(best, 1.0), price, {"shift": chosen[0], "eta": chosen[1]})


def effective_loss(loss: Floats, nu: float) -> Floats:
    """−ln(1 − ℓ/ν): the table under which P0's Algorithm 1 with β = 1 minimises log-wealth at fixed ν.

    N·E_Q of it plus KL(Q‖P) is, up to constants, −N ln of the bound's exponential. ``loss`` is on the
    scale of the theorems, at most 1.
    """
    return -np.log1p(-np.asarray(loss, dtype=np.float64) / nu)


def _paid(complexity: float, n: int, delta: float, price: dict[str, float]) -> tuple[dict[str, float], float]:
    """What is paid beside the complexity, confidence included, and ε: all of it, an observation."""
    price = {**price, "confidence ln 1/δ": log_inverse(delta)}
    return price, (_checked(complexity) + sum(price.values())) / n


def _checked(complexity: float) -> float:
    if not complexity >= 0:
        raise GinghamError(f"A complexity is a divergence and cannot be {complexity}.")
    return float(complexity)


def _needs_unit_interval(distribution: LossDistribution) -> None:
    if distribution.lowest < 0:
        raise RefusedCertificate(
            "The kl bounds need losses between 0 and 1; differences of losses need bound='log-wealth'."
        )


def _unit(p: float) -> float:
    """Rounding must not push an average of numbers in [0, 1] outside."""
    return min(max(p, 0.0), 1.0)


@dataclass(frozen=True)
class Theorem:
    """One bound that holds for all posteriors at once."""

    name: str
    text: str
    reference: str
    function: Callable[[LossDistribution, float, int, float], Bound]  # (distribution, complexity, n, delta) → Bound
    price: str = "exact"  # "exact" or "papers", the account of KL(Q‖P) it is used with by default
    anytime: bool = False  # whether it holds for all sample sizes at once
    finite: bool = False  # whether it needs a loss with finitely many known values


_FOR_ALL = "With probability at least 1 − δ over a sample of N independent observations, for all posteriors Q at once: "
_ALL = (
    Theorem(
        "log-wealth",
        _FOR_ALL + "L(Q) ≤ min over ν of ν − exp{E ln(ν − loss) − [KL(Q‖P) + ln(|grid|/δ)]/N}, with the loss scaled "
        "to at most 1 and ν from a fixed grid. It holds for all N at once.",
        "gingham, docs/theory/log_wealth; a PAC-Bayesian betting martingale (Ville's inequality)",
        log_wealth,
        anytime=True,
    ),
    Theorem(
        "type-kl",
        _FOR_ALL
        + "KL(p̂_Q(z)‖p_Q(z)) ≤ [KL(Q‖P) + ln C(K, N) + ln 1/δ]/N for the distribution of the K possible losses z, "
        "with C the exact Shtarkov sum.",
        "Seldin and Tishby 2010, Theorem 2, with the exact constant of Shtarkov 1987",
        type_kl,
        finite=True,
    ),
    Theorem(
        "kl",
        _FOR_ALL + "kl(L̂(Q)‖L(Q)) ≤ [KL(Q‖P) + ln ξ(N) + ln 1/δ]/N.",
        "Maurer 2004, A note on the PAC-Bayesian theorem",
        maurer,
    ),
    Theorem(
        "split-kl",
        _FOR_ALL + "the loss is a staircase of coins, and kl bounds each coin with δ/(number of steps).",
        "Wu and Seldin 2022, Split-kl and PAC-Bayes-split-kl inequalities",
        split_kl,
        finite=True,
    ),
    Theorem(
        "bernstein",
        _FOR_ALL + "L(Q) ≤ L̂(Q) + c·(second moment of the loss about a shift) + [KL(Q‖P) + ln(|grid|/δ)]/(ηN).",
        "Mhammedi, Grünwald and Guedj 2019, PAC-Bayes un-expected Bernstein inequality",
        unexpected_bernstein,
    ),
    Theorem(
        "theorem-1",
        _FOR_ALL + "kl(L̂(Q)‖L(Q)) ≤ [KL(Q‖P) + ln(N + 1) + ln 1/δ]/N.",
        "Seldin and Tishby 2010, Theorem 1, eq. (1), with their price of the partitions",
        classification,
        price="papers",
    ),
    Theorem(
        "theorem-7",
        _FOR_ALL + "kl(L̂(Q)‖L(Q)) ≤ [Σ modes (n·I + m ln n) + M ln|Y| + ½ ln 4N + ln 1/δ]/N. For a graph this is "
        "Theorem 13, eq. (53). Sizes chosen by looking at the data are covered for modes of at least nine items.",
        "Seldin and Tishby 2010, Theorem 7, eq. (18); Theorem 13, eq. (53)",
        theorem7,
        price="papers",
    ),
)

THEOREMS = {theorem.name: theorem for theorem in _ALL}
ALIASES = {"eq-18": "theorem-7", "eq-53": "theorem-7"}


def register_theorem(theorem: Theorem) -> Theorem:
    """Make a bound known: ``certify(bound=…)``, `Certificate.compare` and ``objective=`` find it by its name."""
    if theorem.name in ALIASES or THEOREMS.get(theorem.name, theorem) != theorem:
        raise GinghamError(f"There is a bound called {theorem.name!r} already; give yours another name.")
    if theorem.price not in ("exact", "papers"):
        raise GinghamError(f"price={theorem.price!r} is unknown; choose exact or papers.")
    THEOREMS[theorem.name] = theorem
    return theorem


def find(name: str) -> Theorem:
    """The theorem of that name."""
    theorem = THEOREMS.get(ALIASES.get(name, name))
    if theorem is None:
        raise GinghamError(f"bound={name!r} is unknown; choose one of {', '.join(THEOREMS)}, holdout, split.")
    return theorem
