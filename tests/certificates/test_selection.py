"""Rows that people chose: guarantees for the whole catalogue, and whether labels are missing not at random."""

from math import log

import numpy as np
import pytest

import gingham as gg
from gingham.certificates import Propensity, held_out_part, selection_effect
from gingham.certificates.bounds import GRID
from gingham.certificates.selection import catalogue_mean
from gingham.errors import GinghamError, RefusedCertificate


def chosen(rng, n, rates, losses):
    """Losses of rows drawn by their rates, and the rates themselves."""
    at = rng.choice(len(rates), n, p=np.array(rates) / np.sum(rates))
    return (rng.random(n) < np.array(losses)[at]).astype(float), np.array(rates)[at]


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_the_bound_by_its_definition(gamma):
    """The largest level at which the average over ν of Π (1 − X_t/ν) stays at most 1/δ."""
    losses, rates = chosen(np.random.default_rng(0), 400, [0.2, 1.0], [0.7, 0.2])
    found = catalogue_mean(losses, Propensity(rates, 0.2, gamma), log(20))

    def wealth(level):
        gap = losses - level
        x = 0.2 / rates * np.where(gap > 0, gap, gap / gamma**2)
        return np.mean([np.prod(1 - x / nu) for nu in GRID])

    assert wealth(found - 1e-6) <= 20 <= wealth(found + 1e-6)


def test_equal_propensities_say_nothing_more():
    losses, _ = chosen(np.random.default_rng(1), 300, [1.0], [0.3])
    same = {catalogue_mean(losses, Propensity(np.full(300, rate), rate), log(20)) for rate in (0.01, 0.5)}
    assert len(same) == 1
    assert losses.mean() < same.pop() < losses.mean() + 0.12


@pytest.mark.parametrize("gamma", [1.0, 1.5])
def test_the_mean_over_the_catalogue_is_covered_where_that_of_chosen_rows_is_not(gamma):
    """Propensities of bad rows are told too large by Γ², which is as wrong as Γ allows."""
    rng, failures, ordinary = np.random.default_rng(2), 0, 0
    for _ in range(300):
        losses, rates = chosen(rng, 120, [0.25, 1.0], [0.6, 0.1])
        told = np.where(losses > 0, rates * gamma, rates / gamma)
        options = {"loss": "absolute", "label_bounds": (0, 1), "delta": 0.2}
        own = Propensity(told, 0.25 / gamma, gamma)
        failures += gg.certify_predictions(losses, np.zeros(120), propensity=own, **options).value < 0.35
        ordinary += gg.certify_predictions(losses, np.zeros(120), **options).value < 0.35
    assert failures <= 80  # 60 expected at most; the standard deviation is 6.9
    assert ordinary > 150


def test_what_a_certificate_by_propensities_says():
    losses, rates = chosen(np.random.default_rng(3), 500, [0.2, 1.0], [0.5, 0.1])
    options = {"loss": "absolute", "label_bounds": (0, 1)}
    plain, wide = (
        gg.certify_predictions(losses, np.zeros(500), propensity=Propensity(rates, 0.1, gamma), **options)
        for gamma in (1.0, 2.0)
    )
    assert plain.empirical == pytest.approx(losses @ (1 / rates) / (1 / rates).sum())
    assert plain.empirical < plain.value < wide.value <= 1
    (told,) = (one for one in wide.assumptions if one.code == "propensities")
    assert told.status == "given"
    assert "between 1/2 and 2" in told.text
    ordinary = gg.certify_predictions(losses, np.zeros(500), **options)
    assert "Pairs that nobody would choose to observe are not among them." in ordinary.explain()
    with pytest.raises(RefusedCertificate, match="not one of progressive tests, groups, propensities"):
        held_out_part(plain, 5000, first_part=0)
    for name, value in (("strata", rates), ("groups", np.arange(500)), ("sample_weight", np.ones(500))):
        with pytest.raises(RefusedCertificate, match=f"{name}= cannot be combined with propensity="):
            gg.certify_predictions(losses, np.zeros(500), propensity=Propensity(rates, 0.1), **{name: value}, **options)


@pytest.mark.parametrize(
    ("rows", "least", "gamma", "sentence"),
    [
        (np.full(9, 0.5), 0.6, 1.0, "none below least"),
        (np.full(9, 0.5), 0.0, 1.0, "none below least"),
        (np.full(8, 0.5), 0.1, 1.0, "each of the 9 rows"),
        (np.full(9, np.nan), 0.1, 1.0, "is nan"),
        (np.full(9, 0.5), 0.1, 0.5, "number from 1"),
        (np.full(9, 0.5), 0.1, np.inf, "number from 1"),
        (np.ma.array(np.full(9, 0.5), mask=[True] + [False] * 8), 0.1, 1.0, "masked in row 0"),
    ],
)
def test_propensities_that_are_none(rows, least, gamma, sentence):
    with pytest.raises(GinghamError, match=sentence):
        Propensity(rows, least, gamma).weights(9)


def test_labels_that_are_missing_not_at_random():
    rng = np.random.default_rng(4)
    y, random = rng.choice([3, 4, 5], 1500), rng.choice([1, 2, 3, 4, 5], 1500)
    guess, ends = np.full(1500, 4.0), {"label_bounds": (1, 5)}
    proved = selection_effect(y, guess, at_random=(random, guess), **ends)
    assert proved.proved
    assert proved.low < random.mean() - y.mean() < proved.high
    assert "missing not at random" in proved.explain()
    none = selection_effect(random[:700], guess[:700], at_random=(random[700:], guess[700:]), **ends)
    assert not none.proved
    assert "no such effect is proved" in none.explain()
    weighted = selection_effect(y, guess, propensity=Propensity(np.where(y == 5, 1.0, 0.2), 0.2), **ends)
    assert weighted.observed < 0
    assert weighted.low < weighted.observed < weighted.high
    masked = np.ma.array(y, mask=[True] * 1499 + [False])
    for labels, options, sentence in (
        (y, {}, "Give propensity="),
        (masked, {"at_random": (random, guess)}, "labels is masked"),
        (y, {"at_random": (random[:9], guess)}, "9 labels and 1500 predictions"),
        (y + 1, {"at_random": (random, guess)}, "lies outside 1 to 5"),
    ):
        with pytest.raises(GinghamError, match=sentence):
            selection_effect(labels, guess, **ends, **options)
