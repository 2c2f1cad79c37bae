from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gingham import RefusedCertificate
from gingham.certificates import papers
from gingham.certificates.divergence import kl_upper, relative_entropy


def test_theorems_2_and_5_by_hand():
    statement = papers.theorem2(3.0, 4, 99, 0.05)
    assert statement.value == pytest.approx((3 + 3 * log(100) + log(20)) / 99)
    assert papers.theorem5(4, 99, 0.05).value == pytest.approx((3 * log(100) + log(20)) / 99)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6), st.floats(1e-4, 2.0), st.integers(0, 999))
def test_theorem6_brackets_every_code_length_in_the_ball(size, epsilon, seed):
    rng = np.random.default_rng(seed)
    p_hat = rng.dirichlet(np.ones(size))
    statement = papers.theorem6(p_hat, epsilon)
    smooth = (p_hat + statement.gamma) / (1 + statement.gamma * size)
    for _ in range(20):
        p = rng.dirichlet(np.full(size, 0.7))
        for mix in (1.0, 0.3, 0.05):
            q = mix * p + (1 - mix) * p_hat
            if relative_entropy(p_hat, q) <= epsilon:
                code = float(-(q @ np.log(smooth)))
                assert statement.lower - 1e-9 <= code <= statement.upper + 1e-9


def test_theorem11_by_hand():
    q = np.eye(3)[[0, 1, 2, 0]]
    cells, items = papers.theorem11([q, q], 50, 0.05)
    information = 4 * (0.5 * log(2) + 0.5 * log(4))
    assert cells.value == pytest.approx((2 * (information + 3 * log(4)) + 8 * log(51) + log(60)) / 50)
    assert [s.value for s in items] == pytest.approx([(3 * log(51) + log(60)) / 50] * 2)
    assert "no guarantee" in papers.theorem11_joint([q, q], 50, 0.05).caveat


def test_quantised_bounds_by_hand():
    step, n = 0.01, 10_000
    price = (30 - 4 * log(step) + 0.5 * log(4 * n) + log(20)) / n
    wide, narrow = 2 * step + step**2, step + step**2 / 4
    printed = papers.quantised(0.1, 30, 4, n, 0.05, step)
    assert printed.value == pytest.approx(kl_upper(0.1 + wide, price) + wide)
    graph = papers.quantised(0.1, 30, 4, n, 0.05, step, labels=False)
    assert graph.value == pytest.approx(kl_upper(0.1 + narrow, price) + narrow)
    assert graph.reference == "P1 eq. (15)"
    assert papers.quantised(0.1, 30, 4, n, 0.05).terms["answers -M·ln Δ"] == pytest.approx(-4 * log(5 * 4 / n))


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 999))
def test_renyi_is_never_below_kl(size, seed):
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.full(size, 0.5)), rng.dirichlet(np.ones(size))
    assert papers.renyi(q, p) >= relative_entropy(q, p) - 1e-12


def test_explanatory_power():
    memberships = np.eye(3)[np.arange(60) % 3]
    uniform = np.full(3, 1 / 3)
    statement = papers.explanatory_power(uniform, memberships, uniform, 0.05)
    assert statement.terms["Rényi ln ΣQ²/P"] == pytest.approx(0.0, abs=1e-12)
    assert statement.value > 1 / 3
    with pytest.raises(RefusedCertificate, match="n ≥ 8"):
        papers.explanatory_power(uniform, memberships[:5], uniform, 0.05)
    assert papers.renyi([0.5, 0.5], [1.0, 0.0]) == float("inf")


def test_unobserved_features():
    assert papers.lemma1(1200, 4000, 6, 0.05).value == pytest.approx(log(6) * sqrt((4000 * log(6) + log(40)) / 2400))
    # Five-valued features, six clusters, 1200 features: nearly all of ln 6 = 1.79.
    assert papers.p4_theorem1(1200, 6, 5, 0.05).value == pytest.approx(1.69, abs=0.005)
    assert papers.p4_theorem1(1200, 6, 5, 0.05, missing=True).value > 1.9
    assert papers.p4_theorem2(1200, 6, 5, 0.05).caveat.startswith("Empty")
    statement = papers.p4_theorem1(10**7, 2, 2, 0.05)
    epsilon, width = statement.value, log(2)
    drawn = np.ceil(4 * 4 / epsilon)
    failure = 8 * width * exp(-(10**7) * epsilon**2 / (8 * width**2) + drawn * width - log(epsilon))
    assert failure <= 0.05
    assert papers.p4_theorem1(100, 1, 2, 0.05).value == 0
