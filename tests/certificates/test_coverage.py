"""Certificates keep their promise against adversaries who know the truth, and broken bounds are caught.

The full runs (2000 samples a problem) are in benchmarks/papers/certificate_coverage.py.
"""

from __future__ import annotations

import sys
from math import log
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "papers"))

import coverage_densities as densities
import coverage_doors as doors
import coverage_papers as papers
import coverage_problems as problems
import coverage_streams as streams
import coverage_worlds as worlds

from gingham.certificates import bounds
from gingham.certificates.bounds import LossDistribution

PLANTED = problems.problems()


def check(tally, at_least=()):
    """Sound bounds fail as seldom as they promise; all that should be there is."""
    assert set(at_least) <= set(tally.counts)
    for bound, row in tally.counts.items():
        for adversary, (failures, samples) in row.items():
            if not bound.startswith("broken"):
                assert failures <= problems.allowed(samples), (bound, adversary)


def most(tally, bound):
    return max(failures for failures, _ in tally.counts[bound].values())


@pytest.mark.parametrize("name", ["d = 1", "d = 2", "graph"])
def test_bounds_on_the_fitted_sample_hold_and_broken_ones_are_caught(name):
    n_samples = 16
    tally = doors.in_sample(PLANTED[name], n_samples, 0)
    check(tally, ["log-wealth", "type-kl", "theorem-7", "log-wealth, lower", "gain, constant"])
    for broken in ("broken: log-wealth, half the KL, no δ", "broken: kl without KL"):
        assert most(tally, broken) > problems.allowed(n_samples), broken


def test_holdout_and_cross_committees():
    tally = doors.holdout(PLANTED["graph"], 15, 0)
    check(tally, ["holdout, median", "holdout, committee", "holdout, union, log-wealth", "cross-committee"])


def test_split_priors():
    check(doors.split(PLANTED["d = 2"], 6, 0), ["split prior"])


def test_finite_populations():
    tally = doors.population(PLANTED["d = 2"], 10, 0)
    check(tally, ["population mean, log-wealth", "held-out part, kl", "transductive"])
    assert most(tally, "broken: population mean, kl without KL") > problems.allowed(10)


def test_densities():
    check(densities.densities(densities.laws()["density, d = 2"], 12, 0), ["density", "theorem-11", "theorem-12"])
    check(densities.tree_densities(densities.trees()["density tree, 3 leaves"], 8, 0), ["density tree"])


def test_the_papers_statements():
    check(papers.numbers(PLANTED["graph"], 6, 0), ["quadratic, log-wealth", "appendix B", "P1 eq. (15)"])
    check(papers.trees(papers.tree_problems()["tree, 3 leaves"], 10, 0), ["eq. (51)"])
    tally = papers.features(papers.feature_laws()["features, noise"], 60, 0)
    check(tally, ["P4 Lemma 1", "P4 Theorem 1", "P4 Theorem 2"])
    assert most(tally, "broken: Lemma 1, no union, a quarter of ln k") > problems.allowed(60)
    check(papers.clusters(papers.cluster_laws()["clusters, rough"], 20, 0), ["P3 Theorem 1 with Proposition 1"])


@pytest.mark.parametrize("world", [worlds.line(5), worlds.board((3, 3)), worlds.graph(4)], ids=lambda w: w.name)
def test_any_posterior_over_listed_hypotheses(world):
    check(worlds.listed((world, 40), 15, 0), ["log-wealth", "kl, lower"])


def test_log_wealth_holds_at_all_times_together():
    n_samples = 250
    found = streams.stopped(streams.streams()["graph"], n_samples, 0)
    for adversary, entry in found["log-wealth"].items():
        assert entry["failures"] <= problems.allowed(n_samples), adversary
    # Valid at one time, broken by looking again and again:
    occam = found["kl of a fixed sample size (Occam)"]
    assert occam["best of many, last time only"]["failures"] <= problems.allowed(n_samples)
    assert occam["best of many, worst time"]["failures"] > problems.allowed(n_samples)


def test_the_streams_and_the_library_speak_of_the_same_wealth():
    table = streams.wealth_table(np.array([0.3]))
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(20, streams.LENGTH))
        wins = int((rng.random(n) < 0.15).sum())  # far too few losses
        distribution = LossDistribution.of([0.0, 1.0], [n - wins, wins])
        fails = bounds.log_wealth(distribution, 2.0, n, 0.05).value < 0.3
        assert fails == bool(table[0, n - 1, wins] > 2.0 + log(20))
