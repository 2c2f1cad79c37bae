"""The papers' statements by hand on small numbers."""

import sys
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "papers"))

import statements

from gingham import RefusedCertificate
from gingham.certificates import papers
from gingham.certificates.divergence import relative_entropy


def test_theorems_2_and_5_by_hand():
    statement = papers.theorem2(3.0, 4, 99, 0.05)
    assert statement.value == pytest.approx((3 + 3 * log(100) + log(20)) / 99)
    assert papers.theorem5(4, 99, 0.05).value == pytest.approx((3 * log(100) + log(20)) / 99)


def test_theorem11_by_hand():
    q = np.eye(3)[[0, 1, 2, 0]]
    cells, items = statements.theorem11([q, q], 50, 0.05)
    information = 4 * (0.5 * log(2) + 0.5 * log(4))
    assert cells.value == pytest.approx((2 * (information + 3 * log(4)) + 8 * log(51) + log(60)) / 50)
    assert [s.value for s in items] == pytest.approx([(3 * log(51) + log(60)) / 50] * 2)


def test_theorem_12_by_hand():
    """−I(C_1;C_2) + √(ε/2) ln M + φ(ε) + Σ_i {H(X_i) + 2√(ε_i/2) ln n_i + φ(ε_i) + ψ(ε_i)} (P0 eq. 36)."""
    rows, columns, n = np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[0, 1, 1]], 5000
    table = np.array([[0.2, 0.05, 0.05], [0.1, 0.1, 0.05], [0.02, 0.13, 0.1], [0.08, 0.02, 0.1]])
    cells, margins = rows.T @ table @ columns, (table.sum(1), table.sum(0))
    price = 4 * log(2) + 2 * log(4) + (log(3) + 2 * log(3 / 2)) + 2 * log(3)  # Σ n·I + m ln n
    share = log(3 / 0.05)
    radii = [(price + 3 * log(n + 1) + share) / n, (3 * log(n + 1) + share) / n, (2 * log(n + 1) + share) / n]
    psi = [sqrt(r / 2) * log((1 + sqrt(r / 2)) / sqrt(r / 2)) for r in radii]
    phi = [p + log(1 + sqrt(r / 2)) for p, r in zip(psi, radii)]
    information = float((cells * np.log(cells / np.outer(cells.sum(1), cells.sum(0)))).sum())
    expected = -information + sqrt(radii[0] / 2) * log(4) + phi[0]
    for i, margin in enumerate(margins, start=1):
        expected += -float(margin @ np.log(margin)) + 2 * sqrt(radii[i] / 2) * log(len(margin)) + phi[i] + psi[i]
    assert statements.theorem12([rows, columns], cells, list(margins), n, 0.05).value == pytest.approx(expected)


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


def test_theorem11_joint_says_that_it_is_no_guarantee():
    q = np.eye(3)[[0, 1, 2, 0]]
    assert "no guarantee" in statements.theorem11_joint([q, q], 50, 0.05).caveat


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 8), st.integers(0, 999))
def test_renyi_is_never_below_kl(size, seed):
    rng = np.random.default_rng(seed)
    q, p = rng.dirichlet(np.full(size, 0.5)), rng.dirichlet(np.ones(size))
    assert papers.renyi(q, p) >= relative_entropy(q, p) - 1e-12


def test_explanatory_power():
    memberships = np.eye(3)[np.arange(60) % 3]
    uniform = np.full(3, 1 / 3)
    statement = statements.explanatory_power(uniform, memberships, uniform, 0.05)
    assert statement.terms["Rényi ln ΣQ²/P"] == pytest.approx(0.0, abs=1e-12)
    assert statement.value > 1 / 3
    with pytest.raises(RefusedCertificate, match="n ≥ 8"):
        statements.explanatory_power(uniform, memberships[:5], uniform, 0.05)
    assert papers.renyi([0.5, 0.5], [1.0, 0.0]) == float("inf")
