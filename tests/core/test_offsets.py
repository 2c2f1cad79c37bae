"""Additive effects beside a checkerboard: what they add to predictions, distributions of labels and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gingham as gg
from gingham import storage
from gingham.cells.losses import Absolute, Quadratic
from gingham.core.problem import Offsets, Posterior, Structure
from gingham.data import Alphabet, Bounds, Mode

MODES = (Mode("user", np.arange(3)), Mode("film", np.arange(2)))
STARS = Alphabet.of(range(1, 6), given=True)
CODES = (np.array([0, 1, 2, -1]), np.array([0, 1, -1, 0]))
ASSIGN = (np.array([[0.8, 0.2], [0.0, 1.0], [0.5, 0.5]]), np.ones((2, 1)))
OFFSETS = Offsets(3.0, (np.array([0.5, 1.0, -1.0]), np.array([0.25, 2.0])), 5.0, Absolute(STARS), STARS.ends)


def posterior(offsets: Offsets | None) -> Posterior:
    cell = Absolute(Alphabet.of([-1.0, 0.0, 0.5], given=False))
    return Posterior(Structure.grid(MODES), (cell,), ASSIGN, (np.array([[0], [2]]),), offsets=offsets)


def test_effects_add_up_and_an_unseen_item_adds_nothing():
    np.testing.assert_allclose(OFFSETS.at(CODES), [3.75, 6.0, 2.0, 3.25])


def test_predictions_are_the_plain_ones_plus_the_offsets_within_the_range_of_labels():
    plain, whole = posterior(None).predict(CODES), posterior(OFFSETS).predict(CODES)
    np.testing.assert_allclose(whole, np.clip(OFFSETS.at(CODES) + plain, 1, 5))
    assert whole[1] == 5.0 != OFFSETS.at(CODES)[1] + plain[1]


def test_the_law_of_labels_has_the_mean_of_the_prediction_where_nothing_is_clipped():
    distribution = posterior(OFFSETS).predict_distribution(CODES)
    assert distribution.shape == (4, 5)
    np.testing.assert_allclose(distribution.sum(axis=1), 1.0)
    np.testing.assert_allclose((distribution @ STARS.numbers)[[0, 2, 3]], posterior(OFFSETS).predict(CODES)[[0, 2, 3]])
    assert set(posterior(OFFSETS).predict(CODES, "median")) <= set(STARS.numbers)


def test_cells_see_what_the_offsets_leave_over():
    whole = posterior(OFFSETS)
    sample = gg.data.Sample.of([[0, 1], [0, 1]], [4, 5], modes=MODES, alphabet=STARS)
    np.testing.assert_allclose(whole.rest(sample).labels, [0.25, -1.0])
    assert whole.rest(sample).label_codes.tolist() == [1, 0]  # 0.25 lies halfway: the lower
    expected = posterior(None).gibbs_loss(whole.rest(sample))
    assert whole.gibbs_loss(sample) == pytest.approx(expected)


def test_a_file_keeps_offsets(tmp_path):
    path = tmp_path / "q.gingham"
    measured = replace(OFFSETS, cell=Quadratic(bounds=(0, 10)), bounds=Bounds.of((0, 10), given=False))
    for offsets in (OFFSETS, measured, None):
        storage.write(path, "test", {"q": posterior(offsets)})
        again = storage.read(path)[1]["q"]
        np.testing.assert_array_equal(again.predict(CODES), posterior(offsets).predict(CODES))
        assert type(again.label_cell()) is type(posterior(offsets).label_cell())
