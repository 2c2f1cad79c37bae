"""Draws are divided, never rows."""

from __future__ import annotations

import numpy as np
import pytest

from gingham.data.draws import LARGEST_SEED, fresh_seed, recorded_seed, rows_of_draws, taken, whole_counts
from gingham.errors import GinghamError, RefusedCertificate


def test_draws_of_a_row_fall_on_both_sides():
    counts = np.array([3, 0, 1, 1000])
    found = taken(counts, 500, np.random.default_rng(0))
    assert found.sum() == 500
    assert ((found >= 0) & (found <= counts)).all()
    assert 0 < found[3] < 1000


def test_every_set_of_draws_is_as_likely_as_every_other():
    """Against all C(5, 2) = 10 pairs of draws, two of them of row 0 and three of row 1."""
    rng = np.random.default_rng(0)
    seen = np.bincount([taken(np.array([2, 3]), 2, rng)[0] for _ in range(4000)], minlength=3) / 4000
    assert seen == pytest.approx([3 / 10, 6 / 10, 1 / 10], abs=0.03)


def test_weights_of_one_are_no_weights():
    first = taken(np.ones(9, dtype=np.int64), 4, np.random.default_rng(1))
    assert (np.flatnonzero(first) == np.sort(np.random.default_rng(1).permutation(9)[:4])).all()
    assert (rows_of_draws(3, None) == rows_of_draws(3, np.ones(3, dtype=np.int64))).all()


@pytest.mark.parametrize("weight", [0.5, 2.25, 1e300])
def test_weights_that_count_no_draws_are_refused(weight):
    with pytest.raises(RefusedCertificate, match=r"row 1.*integers"):
        whole_counts(np.array([1.0, weight]))
    assert whole_counts(None) is None
    assert whole_counts(np.array([2.0, 0.0])).tolist() == [2, 0]


def test_more_draws_than_can_be_divided_are_refused():
    many = np.array([2**40, 2])
    with pytest.raises(GinghamError, match="at most 999,999,999 can be divided"):
        taken(many, 5, np.random.default_rng(0))
    with pytest.raises(GinghamError, match="can be divided"):
        rows_of_draws(2, many)


def test_seeds_are_recorded_or_drawn_afresh():
    assert recorded_seed(7) == 7
    assert recorded_seed(None) != recorded_seed(None)
    for wrong in (1.5, "0", True, -1, LARGEST_SEED + 1):
        with pytest.raises(GinghamError, match="random_state"):
            recorded_seed(wrong)


def test_fresh_seeds_differ_and_survive_json():
    seeds = {fresh_seed() for _ in range(20)}
    assert len(seeds) == 20
    assert all(0 <= seed < 2**53 and int(float(seed)) == seed for seed in seeds)
