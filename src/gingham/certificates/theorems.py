"""Which theorem stands behind a bound: its function, its words, its formula, its reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gingham.certificates import bounds
from gingham.certificates.bounds import Bound
from gingham.certificates.gibbs_law import GibbsLaw
from gingham.errors import GinghamError


@dataclass(frozen=True)
class Theorem:
    """One bound that holds for all posteriors at once.

    Attributes
    ----------
    name : str
    title, text, latex, reference : str
    function : (law, complexity, n, delta) → Bound
    price : {"exact", "papers"}
        The account of KL(Q‖P) it is used with by default.
    anytime : bool
        Whether it holds for all sample sizes at once.
    finite : bool
        Whether it needs a loss with finitely many known values.
    """

    name: str
    title: str
    text: str
    latex: str
    reference: str
    function: Callable[[GibbsLaw, float, int, float], Bound]
    price: str = "exact"
    anytime: bool = False
    finite: bool = False


_FOR_ALL = "With probability at least 1 − δ over a sample of N independent tuples, for all posteriors Q at once: "
_KL = r"\mathrm{kl}\!\left(\hat L(Q)\,\|\,L(Q)\right) \le \frac{%s}{N}"
_COMPLEXITY = r"\sum_i \left(n_i \bar I_i + m_i \ln n_i\right) + M \ln|\mathcal Y|"

_ALL = (
    Theorem(
        "log-wealth",
        "Log-wealth bound",
        _FOR_ALL + "L(Q) ≤ min over ν of ν − exp{E ln(ν − loss) − [KL(Q‖P) + ln(|grid|/δ)]/N}, with the loss scaled "
        "to at most 1 and ν from a fixed grid. It holds for all N at once.",
        r"L(Q) \le \min_{\nu \in \mathcal G} \nu - \exp\left\{\frac1N \sum_{i=1}^N \mathbb E_Q \ln(\nu - X_i) "
        r"- \frac{\mathrm{KL}(Q\|P) + \ln(|\mathcal G|/\delta)}{N}\right\}",
        "gingham, docs/theory/log_wealth; a PAC-Bayesian betting martingale (Ville's inequality)",
        bounds.log_wealth,
        anytime=True,
    ),
    Theorem(
        "type-kl",
        "Type-KL bound",
        _FOR_ALL + "KL(p̂_Q(z)‖p_Q(z)) ≤ [KL(Q‖P) + ln C(K, N) + ln 1/δ]/N for the law of the K possible losses z, "
        "with C the exact Shtarkov sum.",
        r"\mathrm{KL}\!\left(\hat p_Q(z)\,\|\,p_Q(z)\right) \le "
        r"\frac{\mathrm{KL}(Q\|P) + \ln C(K,N) + \ln\frac1\delta}{N}",
        "Seldin and Tishby 2010, Theorem 2, with the exact constant of Shtarkov 1987",
        bounds.type_kl,
        finite=True,
    ),
    Theorem(
        "kl",
        "kl bound with Maurer's exact constant",
        _FOR_ALL + "kl(L̂(Q)‖L(Q)) ≤ [KL(Q‖P) + ln ξ(N) + ln 1/δ]/N.",
        _KL % r"\mathrm{KL}(Q\|P) + \ln \xi(N) + \ln\frac1\delta",
        "Maurer 2004, A note on the PAC-Bayesian theorem",
        bounds.maurer,
    ),
    Theorem(
        "split-kl",
        "Split-kl bound",
        _FOR_ALL + "the loss is a staircase of coins, and kl bounds each coin with δ/(number of steps).",
        r"L(Q) \le v_0 + \sum_j (v_j - v_{j-1})\, \mathrm{kl}^{-1}\!\left(\hat p_Q(X \ge v_j),\, "
        r"\frac{\mathrm{KL}(Q\|P) + \ln\xi(N) + \ln\frac{J}{\delta}}{N}\right)",
        "Wu and Seldin 2022, Split-kl and PAC-Bayes-split-kl inequalities",
        bounds.split_kl,
        finite=True,
    ),
    Theorem(
        "bernstein",
        "Unexpected Bernstein bound",
        _FOR_ALL + "L(Q) ≤ L̂(Q) + c·(second moment of the loss about a shift) + [KL(Q‖P) + ln(|grid|/δ)]/(ηN).",
        r"L(Q) \le \hat L(Q) + c_\eta\, \hat{\mathbb E}_Q (X-a)^2 + "
        r"\frac{\mathrm{KL}(Q\|P) + \ln(|\mathcal G|/\delta)}{\eta N}",
        "Mhammedi, Grünwald and Guedj 2019, PAC-Bayes un-expected Bernstein inequality",
        bounds.unexpected_bernstein,
    ),
    Theorem(
        "theorem-1",
        "PAC-Bayesian bound for classification, eq. (1)",
        _FOR_ALL + "kl(L̂(Q)‖L(Q)) ≤ [KL(Q‖P) + ln(N + 1) + ln 1/δ]/N.",
        _KL % r"\mathrm{KL}(Q\|P) + \ln(N+1) + \ln\frac1\delta",
        "Seldin and Tishby 2010, Theorem 1, eq. (1), with their price of the partitions",
        bounds.classification,
        price="papers",
    ),
    Theorem(
        "theorem-7",
        "Co-clustering bound, eq. (18)",
        _FOR_ALL + "kl(L̂(Q)‖L(Q)) ≤ [Σ modes (n·I + m ln n) + M ln|Y| + ½ ln 4N + ln 1/δ]/N. For a graph this is "
        "Theorem 13, eq. (53). Sizes chosen by looking at the data are covered for modes of at least nine items.",
        _KL % (_COMPLEXITY + r" + \tfrac12 \ln(4N) + \ln\frac1\delta"),
        "Seldin and Tishby 2010, Theorem 7, eq. (18); Theorem 13, eq. (53)",
        bounds.theorem7,
        price="papers",
    ),
)

THEOREMS = {theorem.name: theorem for theorem in _ALL}
ALIASES = {
    "eq-18": "theorem-7",
    "eq-53": "theorem-7",
    "theorem-13": "theorem-7",
    "eq-1": "theorem-1",
    "maurer": "kl",
    "unexpected-bernstein": "bernstein",
}


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
