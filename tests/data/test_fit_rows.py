"""A model knows the rows that it has learned from: none is missed, and honest rows are not taken for them."""

from itertools import product

import numpy as np
import pytest

from gingham.data import Alphabet, Mode, Sample
from gingham.data.fit_rows import FitRows, _hashed
from gingham.data.graphs import PairSample
from gingham.data.sample import joined_ids
from gingham.errors import GinghamError

STARS = Alphabet.of(range(1, 6), given=True)


def drawn(rng, n, n_items=(200, 100), labels=5):
    columns = [rng.integers(0, size, n) for size in n_items]
    return columns, rng.integers(1, labels + 1, n)


def sample(columns, y, weights=None, modes=None):
    return Sample.of(columns, y, weights, modes=modes, alphabet=STARS, unseen=True)


def part(columns, y, rows):
    return [column[rows] for column in columns], y[rows]


def by_hand(columns, y, others, z):
    """Which rows of others are rows of the fit, and which have its ids and another label."""
    fit = set(zip(*(c.tolist() for c in columns), y.tolist()))
    ids = set(zip(*(c.tolist() for c in columns)))
    rows = list(zip(*(c.tolist() for c in others), z.tolist()))
    same = [row in fit for row in rows]
    return sum(same), sum(row[:-1] in ids and not s for row, s in zip(rows, same)), np.flatnonzero(same).tolist()


@pytest.mark.parametrize("write", [lambda x: x, lambda x: x.astype(str), lambda x: x * 0.5, lambda x: x.astype(object)])
def test_equal_rows_are_counted_as_by_hand(write):
    rng = np.random.default_rng(0)
    (columns, y), (others, z) = drawn(rng, 300, (20, 20)), drawn(rng, 500, (25, 20))
    mine = sample([write(c) for c in columns], y)
    met = FitRows.of(mine).met(sample([write(c) for c in others], z, modes=mine.modes))
    same, other, rows = by_hand(columns, y, others, z)
    assert same > 20
    assert other > 100
    assert (met.n_same, met.n_other, met.rows.tolist(), met.n_compared) == (same, other, rows, 500)


def test_of_many_rows_a_random_part_is_kept_and_compared():
    rng = np.random.default_rng(1)
    columns, y = drawn(rng, 20_000, (5000, 5000))
    few = FitRows.of(sample(columns, y), most=1000)
    assert 990 <= len(few.keys) <= 1000
    assert not few.met(sample(*drawn(rng, 20_000, (5000, 5000)), modes=sample(columns, y).modes)).seen
    for rows in (np.arange(20_000), rng.permutation(20_000)[:500]):
        met = few.met(sample(*part(columns, y, rows), modes=sample(columns, y).modes))
        assert met.seen
        assert met.n_same == met.n_compared
        assert 0.5 < met.n_compared / (len(rows) / 20) < 2


def test_a_part_of_the_fit_is_known_and_new_draws_are_not_taken_for_it():
    """Also where few different observations repeat again and again; failures by chance are one in a thousand."""
    rng = np.random.default_rng(2)
    refused = {True: 0, False: 0}
    for trial in range(400):
        n, labels = int(rng.integers(50, 400)), int(rng.integers(1, 6))
        sizes = ((3, 3), (10, 10), (40, 30), (300, 200))[trial % 4]
        popular = rng.dirichlet(np.full(sizes[0], rng.choice([0.3, 1.0, 30.0])))

        def draw(n, sizes=sizes, popular=popular, labels=labels):
            columns = [rng.choice(sizes[0], n, p=popular), rng.integers(0, sizes[1], n)]
            return columns, 1 + (columns[0] + columns[1] + (rng.random(n) < 0.3)) % labels

        columns, y = draw(n)
        known = FitRows.of(sample(columns, y))
        modes = sample(columns, y).modes
        m = int(rng.integers(5, 800))
        refused[False] += known.met(sample(*draw(m), modes=modes)).seen
        kept = rng.permutation(n)[: n // 2]
        refused[True] += trial % 4 == 3 and known.met(sample(*part(columns, y, kept), modes=modes)).seen
    assert refused == {False: 0, True: 100}


def test_the_fit_itself_is_known_however_often_its_rows_repeat():
    rng = np.random.default_rng(3)
    columns, y = drawn(rng, 500, (2, 2), labels=2)
    known, order = FitRows.of(sample(columns, y)), rng.permutation(500)
    modes = sample(columns, y).modes
    assert known.met(sample(*part(columns, y, order), modes=modes)).seen
    assert not known.met(sample(*part(columns, y, order[:250]), modes=modes)).seen  # cannot be told, and is not said
    tuples, counts = np.unique(np.stack([*columns, y]), axis=1, return_counts=True)
    assert known.met(sample([*tuples[:2]], tuples[2], counts, modes=modes)).seen
    others = counts + rng.integers(0, 9, len(counts))
    assert not known.met(sample([*tuples[:2]], tuples[2], others, modes=modes)).seen


def test_rows_observed_once_more_are_not_rows_of_the_fit():
    """The same pairs measured again, with a few other answers; the same answers everywhere cannot be told apart."""
    rng = np.random.default_rng(4)
    pairs = np.array(list(product(range(20), range(20)))).T
    y = rng.integers(1, 6, 400)
    again = np.where(rng.random(400) < 0.1, 6 - y, y)
    known, modes = FitRows.of(sample([*pairs], y)), sample([*pairs], y).modes
    assert not known.met(sample([*pairs], again, modes=modes)).seen
    assert known.met(sample([*pairs], y, modes=modes)).seen


def test_rows_of_a_weight_count_so_often_and_those_of_weight_0_not_at_all():
    columns, y = [np.array([0, 1, 2]), np.array([0, 1, 2])], np.array([1, 2, 3])
    known = FitRows.of(sample(columns, y, np.array([1, 0, 3])))
    assert known.draws.tolist() in ([1, 3], [3, 1])
    assert known.n_draws == 4
    met = known.met(sample(columns, y, np.array([2, 5, 0])))
    assert (met.n_same, met.n_compared, met.rows.tolist()) == (2, 7, [0])


def test_partitions_and_later_rows_add_up():
    rng = np.random.default_rng(5)
    columns, y = drawn(rng, 5000, (300, 300))
    whole = FitRows.of(sample(columns, y), most=700)
    parts = [FitRows.of(sample(*part(columns, y, rows)), most=700) for rows in np.array_split(np.arange(5000), 3)]
    added = parts[0].with_rows(*parts[1:])
    assert added.n_draws == whole.n_draws
    limit = np.uint64(min(added.limit, whole.limit))
    mine, other = (k.keys[k.keys >> np.uint64(16) < limit] for k in (added, whole))
    assert len(mine) > 500
    assert np.array_equal(mine, other)


def test_of_sketches_of_different_sizes_what_both_have_kept_is_compared():
    """Rows beyond the smaller limit were kept by one of them only: nothing is said of those."""
    rng = np.random.default_rng(6)
    columns, y = drawn(rng, 5000, (300, 300))
    many, few = (FitRows.of(sample(*part(columns, y, rows)), most=500) for rows in np.split(np.arange(5000), [4900]))
    assert many.limit < few.limit
    for union in (many.with_rows(few), few.with_rows(many)):
        assert union.limit <= many.limit
        met = union.met(sample(columns, y))
        assert met.n_same == met.n_compared > 100


@pytest.mark.parametrize("directed", [False, True])
def test_a_pair_of_an_undirected_graph_has_no_first_end(directed):
    mode = Mode.of(np.arange(30), "node")
    ends = np.array([(i, j) for i in range(30) for j in range(i) if (i + j) % 3 == 0]).T
    listed = PairSample((mode, mode), tuple(ends), np.ones(ends.shape[1]), directed=directed, complete=True)
    known = listed.fit_rows()
    turned = Sample((mode, mode), tuple(ends[::-1]), np.ones(ends.shape[1]))
    assert known.met(turned).n_same == (0 if directed else ends.shape[1])
    absent = Sample((mode, mode), (np.array([1, 2]), np.array([0, 5])), np.array([0.0, 1.0]))
    met = known.met(absent)  # every pair was seen: those that are not listed as 0
    assert (met.n_same, met.n_other) == (1, 1)


@pytest.mark.parametrize(
    ("ids", "later"),
    [
        ([3, 7], ["anna"]),
        ([3, 7], [2.5]),
        ([3.0, 2.5], ["anna"]),
        (["a", "b"], [3]),
        ([True, False], ["anna"]),
        ([2**63 + 5, 1], [-4]),
        ([2**53 + 1], [0.5]),
        ([2**70, 5], ["anna"]),
        ([b"a", b"\xe9"], ["anna"]),
        ([("x", 1), ("y", 2)], [3]),
        (np.array(["2026-01-02", "2025-01-01"], "M8[D]"), np.array(["2026-01-02T03"], "M8[ns]")),
    ],
)
def test_an_id_keeps_its_number_beside_ids_of_another_type(ids, later):
    before, after = Mode.of(ids, "m"), Mode.of(later, "m")
    both = Mode.of(joined_ids([before.items, after.items]), "m")
    at = both.encode(before.items)
    assert (at >= 0).all()
    np.testing.assert_array_equal(_hashed(both.items)[at], _hashed(before.items))


def test_dates_are_not_taken_for_other_ids():
    with pytest.raises(GinghamError, match="dates or times"):
        joined_ids([np.array(["2026-01-02"], "M8[D]"), np.array([5])])
