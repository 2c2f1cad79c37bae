"""Exponential families: densities are those of scipy, answers are the best ones, floors and refusals hold."""

import numpy as np
import pytest
from scipy import stats

from gingham.cells.families import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Family,
    Gaussian,
    Poisson,
    make_family,
    register_family,
)
from gingham.cells.losses import cell_from_state, cell_state, total_statistics
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError

LABELS = {
    "gaussian": np.array([-1.5, 0.25, 2.0, 2.0, 7.5]),
    "bernoulli": np.array([0, 1, 1, 0, 1]),
    "poisson": np.array([2.0, 2.0, 5.0, 3.0, 9.0]),
    "categorical": np.array([1, 2, 5, 2, 2]),
}
DENSITIES = {
    "gaussian": lambda y, t: stats.norm(t[0], np.sqrt(t[1])).logpdf(y),
    "bernoulli": lambda y, t: stats.bernoulli(t).logpmf(y),
    "poisson": lambda y, t: stats.poisson(t, loc=2).logpmf(y),
    "categorical": lambda y, t: np.log(t[np.searchsorted([1, 2, 5], y)]),
}


def family_and_sample(name: str, pseudo: float = 0.0) -> tuple[Family, Sample]:
    y = LABELS[name]
    alphabet = Alphabet.of(np.unique(y), given=True) if name in ("bernoulli", "categorical") else None
    return make_family(name, alphabet, pseudo, shift=2.0), Sample.of([range(5), range(5)], y, alphabet=alphabet)


@pytest.mark.parametrize("name", FAMILIES)
def test_cost_is_the_negative_log_density(name):
    family, sample = family_and_sample(name)
    theta = family.answer(total_statistics(family, sample))
    t = family.features.evaluate(sample.labels, sample.label_codes)
    base = np.zeros(5) if family.alphabet is not None else family.log_base(sample.labels)
    np.testing.assert_allclose(base - t @ family.coef(theta), DENSITIES[name](LABELS[name], theta), rtol=1e-6)


@pytest.mark.parametrize("pseudo", [0.0, 2.5])
@pytest.mark.parametrize("name", FAMILIES)
def test_answer_beats_nearby_answers_on_filled_statistics(name, pseudo):
    family, sample = family_and_sample(name, pseudo)
    total = total_statistics(family, sample)
    family = family.informed(total)
    statistics = total - family.features.evaluate(sample.labels, sample.label_codes)[0]
    best = family.answer(statistics)
    filled = statistics + pseudo * family.prior
    cost = family.loss(best, filled)
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = best * np.exp(0.3 * rng.standard_normal(np.shape(best)))
        if name == "categorical":
            other = other / other.sum()
        if name == "bernoulli":
            other = np.clip(other, 0.01, 0.99)
        assert cost <= family.loss(other, filled) + 1e-9


def test_weight_two_is_the_tuple_twice_and_pseudo_counts_pull_to_the_prior():
    family = Bernoulli(Alphabet.of([0, 1], True), pseudo=1.0).informed(np.array([3.0, 1.0]))
    np.testing.assert_allclose(family.answer(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 9.0]])), [0.25, 0.625, 0.925])
    assert family.log_prior(np.array([0.25, 0.5])) == pytest.approx(
        np.sum([0.75 * np.log(0.75) + 0.25 * np.log(0.25), np.log(0.5)])
    )


def test_floors_keep_every_density_finite():
    gaussian = Gaussian(pseudo=0.0).informed(np.array([4.0, 4.0, 8.0]))
    assert gaussian.answer(np.array([5.0, 5.0, 5.0]))[1] == pytest.approx(0.01)
    assert Poisson(pseudo=0.0).answer(np.array([5.0, 0.0])) > 0
    assert Bernoulli(Alphabet.of([0, 1], True), 0.0).answer(np.array([7.0, 0.0])) > 0
    assert (Categorical(Alphabet.of([1, 2, 3], True), 0.0).answer(np.array([7.0, 0.0, 1.0])) > 0).all()


@pytest.mark.parametrize("name", ["gaussian", "poisson"])
def test_cdf_is_that_of_scipy(name):
    family, sample = family_and_sample(name)
    theta = family.answer(total_statistics(family, sample))
    distribution = stats.norm(theta[0], np.sqrt(theta[1])) if name == "gaussian" else stats.poisson(theta, loc=2)
    np.testing.assert_allclose(family.cdf(theta, LABELS[name]), distribution.cdf(LABELS[name]))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_survives_a_model_file(name):
    family, sample = family_and_sample(name, pseudo=3.0)
    family = family.informed(total_statistics(family, sample))
    again = cell_from_state(cell_state(family), family.alphabet)
    statistics = total_statistics(family, sample.take(np.arange(3)))
    np.testing.assert_array_equal(again.answer(statistics), family.answer(statistics))


def test_refusals_name_the_culprit():
    with pytest.raises(GinghamError, match="row 1 is 1"):
        Poisson(shift=2).check(np.array([2.0, 1.0]))
    with pytest.raises(GinghamError, match="two label values, not 3"):
        Bernoulli(Alphabet.of([1, 2, 3], True))
    with pytest.raises(GinghamError, match="'weibull' is unknown"):
        make_family("weibull", None)
    with pytest.raises(GinghamError, match="pseudo=-1"):
        Gaussian(pseudo=-1)


def test_a_family_keeps_its_name_whichever_comes_first_in_the_alphabet():
    for title in ("Aaa", "Zzz"):
        other = type(title, (Poisson,), {"name": "poisson"})
        with pytest.raises(GinghamError, match="already"):
            register_family(other)
    assert FAMILIES["poisson"] is Poisson
