"""Statements whose constants no other test would miss, computed a second time from the formulas."""

from __future__ import annotations

from math import lgamma, log

import numpy as np
import pytest

from gingham.certificates import certify
from gingham.certificates.bounds import ln_shtarkov
from gingham.certificates.density import SMOOTHINGS
from gingham.certificates.divergence import ball_maximum

DELTA = 0.1


def hard(labels, m=2):
    return np.eye(m)[np.asarray(labels)]


def price_of_hard(labels, m=2):
    """ln m(m+1) + ln C(n+m−1, m−1) + ln n!/Π N_c!."""
    n, sizes = len(labels), np.bincount(labels, minlength=m)
    return (
        log(m * (m + 1))
        + lgamma(n + m) - lgamma(m) - lgamma(n + 1)
        + lgamma(n + 1) - sum(lgamma(size + 1) for size in sizes)
    )  # fmt: skip


def test_a_density_gives_each_of_its_balls_an_equal_share_of_delta():
    """ε = (KL + ln C(M, N) + ln((d+1)/δ))/N for the cells, ε_i = (ln C(n_i, N) + ln((d+1)/δ))/N for the items."""
    rng = np.random.default_rng(0)
    labels = ([0, 0, 1, 1, 0], [0, 1, 1, 0])
    assigns = [hard(l) for l in labels]
    X = np.column_stack([rng.integers(0, 5, 300), rng.integers(0, 4, 300)])
    certificate = certify(assigns, X, delta=DELTA, bound="density")
    n, share = len(X), log(3 / DELTA)
    cells = np.zeros((2, 2))
    np.add.at(cells, (np.array(labels[0])[X[:, 0]], np.array(labels[1])[X[:, 1]]), 1 / n)
    epsilon = (sum(price_of_hard(l) for l in labels) + ln_shtarkov(4, n) + share) / n
    smooth = [(1 - s) * cells.ravel() + s / 4 for s in SMOOTHINGS]
    expected = min(ball_maximum(cells.ravel(), -np.log(p), epsilon) for p in smooth)
    assert certificate.parameters["cells"] == pytest.approx(expected, rel=1e-6)
    for i, (q, name) in enumerate(zip(assigns, ("row", "column"))):
        seen = np.bincount(X[:, i], minlength=len(q)) / n
        options = [(1 - s) * seen + s / len(q) for s in SMOOTHINGS]
        part = min(
            ball_maximum(seen, -np.log(p) + q @ np.log(p @ q), (ln_shtarkov(len(q), n) + share) / n) for p in options
        )
        assert certificate.parameters[name] == pytest.approx(part, rel=1e-6)
        expected += part
    assert certificate.value == pytest.approx(expected, rel=1e-6)
