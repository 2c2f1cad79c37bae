"""Certificates keep their promise against adversaries who know the truth, and a broken bound is caught.

The full runs (2000 samples a world) are in benchmarks/papers/certificate_coverage.py.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "papers"))

import certificate_coverage as harness

from gingham.certificates import bounds
from gingham.certificates.divergence import kl
from gingham.certificates.law import GibbsLaw


@pytest.mark.parametrize("world", [harness.line(5), harness.board((3, 3)), harness.graph(4), harness.coins(7)])
def test_bounds_hold_against_every_adversary(world):
    n_samples = 40
    for functions, upper in ((harness.UPPER, True), (harness.LOWER, False)):
        failures = harness.run(world, 40, n_samples, 0, functions, upper)
        worst = max(count for by_adversary in failures.values() for count in by_adversary.values())
        assert worst <= harness.allowed(n_samples)


def test_a_broken_bound_is_caught():
    n_samples = 150
    failures = harness.run(harness.coins(10), 10, n_samples, 0, {"broken": harness.broken, "kl": bounds.maurer})
    assert failures["broken"]["tilted twice"] > harness.allowed(n_samples)
    assert failures["kl"]["tilted twice"] <= harness.allowed(n_samples)


def test_every_door_of_the_library_holds():
    n_samples = 20
    result = harness.models(n_samples, seed=1, n=100)
    assert set(result["failures"]) >= {"gain over every constant", "split excess", "holdout mean", "held-out part"}
    assert max(result["failures"].values()) <= harness.allowed(n_samples)
    assert harness.densities(15, seed=1)["failures"]["density"] <= harness.allowed(15)


def test_log_wealth_holds_at_all_times_together():
    shares = harness.anytime(300, 1000, 0.5, seed=0)
    assert shares["log-wealth"] <= 0.05
    # Valid at one time, broken by looking again and again:
    assert shares["kl of one predictor (Chernoff)"] > 0.1


def test_the_harness_and_the_library_speak_of_the_same_wealth():
    rng = np.random.default_rng(0)
    p, n = 0.3, 200
    for _ in range(50):
        wins = int((rng.random(n) < p / 2).sum())  # far too few losses
        wealth = wins * np.log((bounds.GRID - 1) / (bounds.GRID - p)) + (n - wins) * np.log(
            bounds.GRID / (bounds.GRID - p)
        )
        law = GibbsLaw.of([0.0, 1.0], [n - wins, wins])
        fails = p > bounds.log_wealth(law, 0.0, n, 0.05).value
        assert fails == bool(logsumexp(wealth) > np.log(60 / 0.05))
        assert (n * kl(wins / n, p) > 20) <= fails
