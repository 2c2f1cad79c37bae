from math import exp, log, sqrt

import numpy as np
import pytest

from gingham.certificates import papers
from gingham.certificates.divergence import kl_upper


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
