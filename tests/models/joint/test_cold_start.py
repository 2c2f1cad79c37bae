"""Cold items: only they move, and by the stated rule."""

from dataclasses import replace

import numpy as np
from scipy.special import softmax

from gingham.cells import Absolute, Logarithmic
from gingham.core.problem import Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.fitting.starts import make_start
from gingham.models.joint.cold_start import own_tuples, place_cold


def some_problem():
    rng = np.random.default_rng(0)
    modes = (Mode("viewer", np.arange(8)), Mode("movie", np.arange(10)), Mode("genre", np.arange(3)))
    structure = Structure(modes, ((0, 1), (1, 2)), frozen=(2,))
    stars, bit = Alphabet.of([1, 2, 3], True), Alphabet.of([0, 1], True)
    codes = rng.integers(0, (8, 6), (120, 2))  # movies 6 to 9 have no ratings
    labels = rng.integers(0, 3, 120)
    ratings = Sample(modes[:2], tuple(codes.T.astype(np.int32)), labels + 1.0, stars, labels.astype(np.int32))
    at = np.indices((10, 3)).reshape(2, -1)
    has = rng.integers(0, 2, 30)
    genres = Sample(modes[1:], tuple(at.astype(np.int32)), has.astype(float), bit, has.astype(np.int32))
    problem = Problem(structure, (ratings, genres), (Absolute(stars), Logarithmic(bit)), (1.0, 0.5))
    return problem, make_start("random", problem, (2, 3, 3), rng)


def test_only_cold_items_move_and_answers_stay():
    problem, posterior = some_problem()
    placed = place_cold(problem, posterior)
    warm = own_tuples(problem, 1) >= 10
    assert warm.any()
    assert not warm[6:].any()
    np.testing.assert_array_equal(placed.assign[1][warm], posterior.assign[1][warm])
    assert not np.allclose(placed.assign[1][6:], posterior.assign[1][6:])
    for new, old in zip(placed.answers, posterior.answers):
        np.testing.assert_array_equal(new, old)


def test_an_item_without_tuples_goes_by_weighted_masses_and_its_properties():
    problem, posterior = some_problem()
    n = own_tuples(problem, 1)
    genres = problem.samples[1]
    weighted = replace(genres, weights=(n / (n + 10))[genres.codes[0]])
    p = posterior.refit(weighted, 1).answers[1]  # (3 clusters, 3 genres, 2)
    has = genres.label_codes.reshape(10, 3)[8]
    cost = -np.log(p[:, np.arange(3), has]).sum(axis=1)
    expected = softmax(np.log(n @ posterior.assign[1] / n.sum()) - (0.5 + 1.0) * cost)
    np.testing.assert_allclose(place_cold(problem, posterior).assign[1][8], expected)
