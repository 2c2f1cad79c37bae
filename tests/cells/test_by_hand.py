"""Constants and formulas of cells, computed a second time by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from gingham.cells import Absolute, Logarithmic, Mass, Pinball, Quadratic, TableLoss, ZeroOne
from gingham.cells.families import Bernoulli, Categorical, Gaussian, Poisson
from gingham.cells.losses import HARD_MOVES, TABLE, floored, refuse_unmet, unmet
from gingham.data import Alphabet
from gingham.errors import GinghamError

STARS = Alphabet.of((1, 2, 3, 4, 5), given=True)
COIN = Alphabet.of((0, 1), given=True)


def test_floors_of_families_have_the_size_they_are_said_to_have():
    assert Gaussian(0.0).estimate(np.array([3.0, 6.0, 12.0])).tolist() == [2.0, 1e-12]  # all labels are 2
    assert Gaussian(0.0).informed(np.array([2.0, 4.0, 8.0])).min_variance == pytest.approx(1e-14)
    assert Gaussian(0.0).informed(np.array([2.0, 4.0, 16.0])).min_variance == pytest.approx(0.04)
    assert Gaussian(0.0, min_variance=0.5).informed(np.array([2.0, 4.0, 16.0])).min_variance == 0.5
    assert Poisson(0.0).estimate(np.array([5.0, 0.0])) == 1e-6
    assert Poisson(0.0, shift=1.0).estimate(np.array([2.0, 6.0])) == 2.0
    assert Bernoulli(COIN, 0.0).estimate(np.array([7.0, 0.0])) == 1e-6
    assert Bernoulli(COIN, 0.0).estimate(np.array([0.0, 7.0])) == 1 - 1e-6
    assert Categorical(STARS).range == pytest.approx(6 * log(10))
    assert Categorical(STARS, 0.0).estimate(np.array([1.0, 1.0, 0.0, 0.0, 0.0])).min() == pytest.approx(1e-6)
    assert Categorical(STARS, 0.0).estimate(np.array([7.0, 0.0, 0.0, 0.0, 0.0]))[0] == pytest.approx(1 - 4e-6)


def test_practically_all_mass_lies_between_brackets():
    assert Gaussian().bracket(np.array([[0.0, 1.0], [5.0, 4.0]])) == (-15.0, 25.0)
    assert Poisson(shift=2.0).bracket(np.array([4.0, 9.0])) == (1.0, 77.0)


def test_families_predict_their_means():
    assert Gaussian().values(np.array([[3.0, 9.0]])).tolist() == [3.0]
    assert Poisson(shift=2.0).values(np.array([1.5])).tolist() == [3.5]
    assert Bernoulli(Alphabet.of((1, 3), given=True)).values(np.array([0.25])).tolist() == [1.5]
    assert Bernoulli(Alphabet.of((4,), given=True)).distribution(np.array([0.5])).tolist() == [[1.0]]
    assert Categorical(STARS).values(np.array([[0.5, 0, 0, 0, 0.5]])).tolist() == [3.0]


def test_a_conjugate_prior_weighs_as_many_tuples_as_it_says():
    assert Gaussian(2.0).log_prior(np.array([[0.0, 1.0]])) == 0.0  # nothing is known of the typical observation yet
    assert Gaussian(0.0).informed(np.array([1.0, 0.0, 1.0])).log_prior(np.array([[0.0, 1.0]])) == 0.0
    typical = Gaussian(2.0).informed(np.array([4.0, 0.0, 4.0]))  # mean 0, second moment 1
    assert typical.log_prior(np.array([[0.0, 1.0]])) == pytest.approx(-2 * (0.5 * log(2 * np.pi) + 0.5))
    assert typical.answer(np.array([[2.0, 4.0, 8.0]]))[0].tolist() == [1.0, 1.5]
    assert Poisson(1.0).answer(np.array([[0.0, 0.0], [2.0, 8.0]])).tolist() == [4.0, 4.0]
    assert Poisson(3.0).answer(np.array([[1.0, 8.0]]), np.array([2.0, 4.0])).tolist() == [3.5]


@pytest.mark.parametrize("wrong", [1.0, 2.5])
def test_poisson_counts_from_its_shift_in_whole_numbers(wrong):
    Poisson(shift=2.0).check(np.array([2.0, 7.0]))
    with pytest.raises(GinghamError, match="row 1 is"):
        Poisson(shift=2.0).check(np.array([2.0, wrong]))
    assert Poisson(shift=2.0).log_base(np.array([2.0, 5.0])).tolist() == pytest.approx([0.0, -log(6)])


def test_beta_is_the_rate_of_the_noise():
    assert Absolute(STARS).beta_of_noise(2.0) == 0.5
    assert Absolute(STARS).beta_of_noise(0.0) == pytest.approx(1 / 0.004)  # a thousandth of the range at least
    assert Quadratic(bounds=(0, 2)).beta_of_noise(0.25) == 2.0
    assert Quadratic(bounds=(0, 2)).beta_of_noise(0.0) == pytest.approx(125.0)
    assert Quadratic().beta_of_noise(0.0) == pytest.approx(5e11)
    assert Quadratic().beta_of_noise(3.0) == pytest.approx(1 / 6)
    assert Logarithmic(STARS).beta_of_noise(0.3) == 1.0
    assert ZeroOne(STARS).beta_of_noise(0.2) == pytest.approx(log(16))
    assert ZeroOne(STARS).beta_of_noise(0.0) == pytest.approx(log(0.99 * 4 / 0.01))
    assert ZeroOne(STARS).beta_of_noise(1.0) == pytest.approx(log(0.24 * 4 / 0.76))
    assert ZeroOne(Alphabet.of((7,), given=True)).beta_of_noise(0.5) == 1.0


def test_ranges_and_lowest_losses():
    assert (Absolute(STARS).low, Absolute(STARS).range) == (0.0, 4.0)
    assert Pinball(STARS, 0.25).range == 3.0
    assert Pinball(STARS, 0.25).of_gap(np.array([2.0, -2.0])).tolist() == [0.5, 1.5]
    assert Quadratic(STARS).range == 16.0
    assert Logarithmic(STARS, 0.5).range == pytest.approx(log(10))
    below = TableLoss(COIN, np.array([[-1.0, 2.0], [1.0, 0.0]]))
    assert (below.low, below.range) == (-1.0, 3.0)
    assert below.n_answers == 2
    above = TableLoss(COIN, np.array([[1.0, 2.0], [2.0, 1.0]]))
    assert (above.low, above.range) == (0.0, 2.0)


def test_misses_are_shares_of_the_range():
    labels, answers = np.array([1.0, 2.0]), np.array([2.0, 0.0])
    assert Quadratic(bounds=(0, 4)).miss(labels, answers).tolist() == [0.25, 0.5]
    assert Quadratic(bounds=(0, 4)).loss_of_miss(np.array([0.5])).tolist() == [0.25]
    assert Quadratic(bounds=(3, 3)).miss(np.array([3.0]), np.array([3.5])).tolist() == [0.5]
    assert Gaussian.loss_of_miss(Gaussian(), np.array([0.5])).tolist() == [0.5]

    class Scaled(Quadratic):
        miss = Gaussian.miss  # what every loss does that says nothing else

    cell = Scaled(bounds=(0, 4))
    assert cell.miss(labels[:, None], answers[None, :]).tolist() == [[1 / 16, 1 / 16], [0.0, 4 / 16]]


def test_empty_cells_answer_with_the_mean_of_all():
    statistics = np.array([[0.0, 0.0, 0.0], [2.0, 6.0, 20.0], [1.0, 0.0, 0.0]])
    assert Quadratic().answer(statistics).tolist() == [2.0, 3.0, 0.0]
    assert Quadratic().answer(statistics, np.array([4.0, 20.0, 100.0])).tolist() == [5.0, 3.0, 0.0]
    assert Quadratic().answer(np.zeros((2, 3))).tolist() == [0.0, 0.0]
    assert Quadratic().coef(np.array([3.0])).tolist() == [[9.0, -6.0, 1.0]]


def test_floored_distributions_are_water_filling():
    assert floored(np.array([0.5, 0.5, 0.0]), 0.1).tolist() == pytest.approx([0.45, 0.45, 0.1])
    assert floored(np.array([0.9, 0.06, 0.04]), 0.1).tolist() == pytest.approx([0.8, 0.1, 0.1])
    assert floored(np.array([0.9, 0.1, 0.0]), 0.1).tolist() == pytest.approx([0.8, 0.1, 0.1])
    assert floored(np.array([0.4, 0.3, 0.3]), 0.1).tolist() == pytest.approx([0.4, 0.3, 0.3])


def test_lifts_of_cells_that_no_tuple_reaches_are_tiny_and_finite():
    statistics = np.array([[4.0, 0.0], [0.0, 4.0]])[..., None]
    lifts = Mass().answer(statistics)
    assert lifts.tolist() == [[2.0, 1e-300], [1e-300, 2.0]]
    assert Mass().coef(lifts)[0, 0].tolist() == [-log(2)]
    assert Mass().answer(np.zeros((2, 2, 1))).tolist() == [[1e-300] * 2] * 2


def test_needs_name_the_first_cell_that_does_not_meet_them():
    assert unmet((TABLE, HARD_MOVES), (ZeroOne(COIN), Absolute(STARS))) is None
    need, cell = unmet((TABLE,), (ZeroOne(COIN), Quadratic(), Mass()))
    assert (need, cell.name) == (TABLE, "quadratic")
    refuse_unmet("Somebody", (TABLE,), (ZeroOne(COIN),))
    with pytest.raises(GinghamError, match=r"Somebody needs .*, not 'quadratic' cells"):
        refuse_unmet("Somebody", (TABLE,), (Quadratic(),))


def test_a_table_called_convex_is_looked_at():
    squares = np.subtract.outer(np.arange(5.0), np.arange(5.0)) ** 2
    assert TableLoss(STARS, squares, convex=True).convex
    assert not TableLoss(STARS, squares).convex
    with pytest.raises(GinghamError, match="of label 1 is not convex"):
        TableLoss(STARS, np.sqrt(np.sqrt(squares)), convex=True)
    bent = squares.copy()
    bent[3] = [9, 4, 4.6, 0, 1]  # between the second and the third answer the loss rises, then falls
    with pytest.raises(GinghamError, match="of label 4 is not convex"):
        TableLoss(STARS, bent, convex=True)
    with pytest.raises(GinghamError, match="3 answers for 5 labels"):
        TableLoss(STARS, squares[:, :3], convex=True)
    assert TableLoss(COIN, np.array([[0.0, 1.0], [1.0, 0.0]]), convex=True).convex
