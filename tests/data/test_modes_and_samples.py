"""Items, labels, observations: numbering, unseen ids, weights, and sentences for bad input."""

from datetime import time
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gingham.data import Alphabet, Mode, Moments, OneHot, Sample
from gingham.data.adapt import id_columns
from gingham.data.sample import distinct, joined_ids
from gingham.errors import GinghamError


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 2, 3],
        ["b", "a", "c", "b"],
        [1.5, -2.0, 0.0, 1.5],
        [("x", 1), ("y", 2), ("a", 0), ("x", 1)],
        [1, "one", None.__class__, 1],
        [True, False, True, True],
    ],
)
def test_encode_and_decode_any_hashable_ids(ids):
    mode = Mode.of(ids, "m")
    codes = mode.encode(ids)
    assert mode.decode(codes).tolist() == ids
    assert codes[0] == codes[3]
    assert mode.n_items == len(set(ids))


def test_unseen_ids_are_minus_one_whatever_their_type():
    assert Mode.of([1, 2], "m").encode([2, 7, 1]).tolist() == [1, -1, 0]
    assert Mode.of(["a", "b"], "m").encode(["z", "b"]).tolist() == [-1, 1]
    assert Mode.of([1, 2], "m").encode(["1", "2"]).tolist() == [-1, -1]
    assert Mode.of(np.array(["a", "longer"]), "m").encode(np.array(["a", "much longer"])).tolist() == [0, -1]


def test_integers_and_whole_floats_are_the_same_ids():
    assert Mode.of([1, 2, 3], "m").encode([3.0, 1.0, 2.5]).tolist() == [2, 0, -1]


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([1.0, np.nan], "'m' has NaN in row 1"),
        ([1.0, np.inf], "inf.* in row 1"),
        (["a", None], "missing id .* in row 1"),
        ([1j, 2], "[Cc]omplex"),
    ],
)
def test_bad_ids_are_named(ids, words):
    with pytest.raises(GinghamError, match=words):
        Mode.of(ids, "m")


def test_alphabet_orders_encodes_and_refuses():
    alphabet = Alphabet.of([5, 1, 3, 1], given=True)
    assert alphabet.values.tolist() == [1, 3, 5]
    assert alphabet.encode(np.array([3, 5])).tolist() == [1, 2]
    with pytest.raises(GinghamError, match=r"Label .*2.* in row 1 is not in the alphabet"):
        alphabet.encode(np.array([1, 2]))
    names = Alphabet.of(["no", "yes"], given=False)
    assert not names.numeric
    assert names.numbers.tolist() == [0, 1]


def sample(weights=None):
    return Sample.of(
        [["u", "u", "v"], ["a", "b", "a"]],
        [1, 2, 1],
        weights,
        names=["user", "movie"],
        alphabet=Alphabet.of([1, 2], True),
    )


def test_sample_counts_and_layout():
    s = sample([2, 1, 3])
    assert (s.n_rows, s.n_observations, s.shape) == (3, 6.0, (2, 2))
    assert s.counts(1).tolist() == [5, 1]
    rows = s.rows(1, OneHot(2))
    assert rows.indptr.tolist() == [0, 2, 3]
    assert rows.weights.tolist() == [2, 3, 1]
    assert s.rows(1, OneHot(2)) is rows
    np.testing.assert_array_equal(Moments(2).evaluate(s.labels, None), [[1, 1, 1], [1, 2, 4], [1, 1, 1]])


def test_whole_weights_are_counts_and_others_are_not():
    assert sample().has_counts
    assert sample([2, 1, 3]).has_counts
    assert not sample([0.5, 1, 3]).has_counts


def test_take_keeps_modes_and_alphabet():
    part = sample([2, 1, 3]).take(np.array([True, False, True]))
    assert part.n_observations == 5
    assert part.shape == (2, 2)
    assert part.alphabet is not None


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, -1, 1], "-1.0 in row 1"),
        ([1, np.nan, 1], "nan in row 1"),
        ([1, 2], r"one number per row, \(3,\)"),
        ([0, 0, 0], "weights are zero"),
    ],
)
def test_bad_weights_are_named(weights, words):
    with pytest.raises(GinghamError, match=words):
        sample(weights)


def test_rows_and_labels_must_match():
    with pytest.raises(GinghamError, match="3 rows but y has 2"):
        Sample.of([["u", "u", "v"]], [1, 2])
    with pytest.raises(GinghamError, match="this id is unknown"):
        Sample.of([["u", "w"]], [1, 2], modes=[Mode.of(["u"], "user")])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_whole_numbers_get_the_codes_that_a_search_gives(dtype):
    limits = np.iinfo(dtype)
    near = np.arange(3, 40, 3).astype(dtype)
    for items in (near, np.array([limits.min, limits.max], dtype=dtype)):  # close together, and far apart
        mode = Mode.of(items, "id")
        asked = np.array([0, 3, 4, 39, 40, limits.min, limits.max], dtype=dtype)
        expected = [items.tolist().index(v) if v in items.tolist() else -1 for v in asked.tolist()]
        assert mode.encode(asked).tolist() == expected
        other = asked[(asked >= 0)].astype("uint64")  # another kind of whole number
        assert mode.encode(other).tolist() == [expected[i] for i in np.flatnonzero(asked >= 0)]


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", ">i4", "i8", "u8"])
def test_whole_number_ids_are_found_like_by_a_sort(kind):
    rng = np.random.default_rng(0)
    info = np.iinfo(kind)
    for low, high in ((info.min, info.min + 40), (info.max - 40, info.max), (info.max // 2, info.max // 2 + 3)):
        column = rng.integers(low, high, 300, dtype=np.dtype(kind).newbyteorder("="), endpoint=True).astype(kind)
        found = distinct(column, "ids")
        assert np.array_equal(found, np.unique(column))
        assert found.dtype.newbyteorder("=") == column.dtype.newbyteorder("=")
    whole = np.arange(info.min, min(info.max, info.min + 400) + 1, dtype=np.dtype(kind).newbyteorder("="))
    assert np.array_equal(distinct(rng.permutation(whole), "ids"), whole)
    assert len(distinct(np.zeros(0, kind), "ids")) == 0


@pytest.mark.parametrize("ids", ["i1", "u1", "i8", "u8"])
@pytest.mark.parametrize("asked", ["i1", "u1", "i8", "u8"])
def test_whole_numbers_of_all_widths_are_looked_up(ids, asked):
    mode = Mode("ids", np.array([1, 3, 7, 100], dtype=ids))
    assert mode.encode(np.array([1, 3, 7, 100, 1], dtype=asked)).tolist() == [0, 1, 2, 3, 0]
    assert mode.encode(np.array([1, 2, 101, 0], dtype=asked)).tolist() == [0, -1, -1, -1]
    low = Mode("ids", np.array([-3, -1, 2], dtype="i1"))
    assert low.encode(np.array([2, 0, 2], dtype=asked)).tolist() == [2, -1, 2]


def test_whole_numbers_at_the_ends_of_their_types():
    large = np.array([2**63 + 5, 2**63 + 7], dtype="u8")
    assert Mode("ids", large).encode(large).tolist() == [0, 1]
    small = np.arange(-128, 128).astype("i1")
    assert Mode("ids", small).encode(np.array([-128, 127], dtype="i1")).tolist() == [0, 255]
    assert Alphabet.of([1, 2, 5], given=True).encode(np.array([5, 1, 2], dtype="u1")).tolist() == [2, 0, 1]
    with pytest.raises(GinghamError, match=r"Label .*3.* in row 1 is not in the alphabet"):
        Alphabet.of([1, 2, 5], given=True).encode(np.array([5, 3, 2]))


HUGE = 2**63


@pytest.mark.parametrize(
    "ids",
    [
        [HUGE, HUGE + 1, 5], [-1, HUGE, HUGE + 1], [2**64, 2**64 + 1, -3], [2**53, 2**53 + 1, 2**53 + 2],
        ["a", "a\0", "a\0\0", "\0"], [Decimal("1.10"), Decimal("1.11")], [b"a", b"a\0"], [time(1), time(1, 0, 0, 1)],
        ["x" * 10**6, *map(str, range(100))],
    ],
    ids=["unsigned", "negative beside huge", "128 bits", "2^53", "NUL", "decimals", "bytes", "times", "one long text"],
)  # fmt: skip
def test_ids_stay_apart(ids):
    for X in ([(i, 1) for i in ids], pd.DataFrame({"a": pd.Series(ids, dtype=object), "b": 1})):
        column = id_columns(X).columns[0]
        mode = Mode.of(column, "a")
        assert mode.n_items == len(ids)
        assert sorted(mode.encode(column).tolist()) == list(range(len(ids)))
        assert column.nbytes < 10**6  # one long text does not make all others as long


def test_frames_keep_ids_apart():
    frame = pl.DataFrame(
        {"nul": ["a", "a\0", "b"], "big": pl.Series([HUGE, -1, HUGE + 1], dtype=pl.Int128), "u": [HUGE, HUGE + 1, 2]},
        schema_overrides={"u": pl.UInt64},
    )
    for column in id_columns(frame).columns:
        assert Mode.of(column, "a").n_items == 3


def test_whole_numbers_are_found_exactly():
    mode = Mode.of(np.array([5, 2**53, 2**53 + 1, HUGE, HUGE + 1], dtype=np.uint64), "a")
    assert mode.encode(np.array([5, -1, 2**53 + 1, 2**53 + 2])).tolist() == [0, -1, 2, -1]
    assert mode.encode(np.array([5.0, 5.5, 2.0**53, 2.0**63, 2.0**64])).tolist() == [0, -1, 1, 3, -1]
    signed = Mode.of(np.array([-5, 2**62, 2**62 + 1]), "a")
    assert signed.encode(np.array([2**64 - 5, 2**62 + 1], dtype=np.uint64)).tolist() == [-1, 2]
    floats = Mode.of(np.array([1.5, 2.0**53]), "a")
    assert floats.encode(np.array([2**53, 2**53 + 1])).tolist() == [1, -1]


def test_a_missing_time_is_a_missing_id():
    with pytest.raises(GinghamError, match=r"missing id \(NaT\) in row 1"):
        Mode.of(np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), "a")


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("unseen", [True, False])
def test_equal_tuples_are_merged_in_a_fixed_order(labelled, unseen):
    """The order of codes, then labels, whatever the order of the rows; brute force over a dictionary."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(-unseen, n, 400).astype(np.int32) for n in (5, 4, 3)]
    labels = rng.integers(0, 3, 400) * 0.5 if labelled else None
    sample = Sample(
        modes=tuple(Mode(name, np.arange(n)) for name, n in zip("abc", (5, 4, 3))), codes=tuple(columns), labels=labels
    )
    counts: dict[tuple, int] = {}
    for row in zip(*columns, labels if labelled else np.zeros(400)):
        counts[tuple(map(float, row))] = counts.get(tuple(map(float, row)), 0) + 1
    merged = sample.merged()
    rows = list(zip(*merged.codes, merged.labels if labelled else np.zeros(merged.n_rows)))
    assert [tuple(map(float, row)) for row in rows] == sorted(counts)
    assert merged.weights.tolist() == [counts[key] for key in sorted(counts)]


def test_a_drawn_tuple_is_the_one_at_its_place():
    """An item's observations in the order of their labels, each as wide as its weight; the last one at the end."""
    rng = np.random.default_rng(0)
    rows, columns, y = rng.integers(0, 6, 60), rng.integers(0, 9, 60), rng.integers(1, 6, 60).astype(float)
    alphabet = Alphabet.of(range(1, 6), given=True)
    features = OneHot(5)
    once, thrice = (
        Sample.of([rows, columns], y, weights, alphabet=alphabet).sums(features) for weights in (None, np.full(60, 3.0))
    )
    items = rng.integers(0, 6, 200)
    places = rng.random(200) * (np.bincount(rows)[items] + 0.5)
    expected = [np.sort(y[rows == item])[min(int(at), (rows == item).sum() - 1)] for item, at in zip(items, places)]
    for sums, width in ((once, 1), (thrice, 3)):
        np.testing.assert_array_equal(sums.drawn(items, width * places) @ np.arange(1, 6), expected)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (([1, 2], ["1", "x"]), [1, 2, "1", "x"]),
        (([1, 2], [2.5]), [1.0, 2.0, 2.5]),
        (([2**53 + 1], [0.5]), [2**53 + 1, 0.5]),  # a float would be another number
        ((np.array([2**63], dtype=np.uint64), np.array([-1])), [2**63, -1]),
        (([], ["a"]), ["a"]),
        ((np.array(["a"]), np.array(["longer"])), ["a", "longer"]),
    ],
)
def test_ids_stay_what_they_are_beside_others(parts, expected):
    parts = [np.asarray(part) for part in parts]
    ids = joined_ids(parts)
    assert ids.tolist() == expected
    mode = Mode.of(ids, "m")
    for part in parts:
        assert (mode.encode(part) >= 0).all()
        assert mode.decode(mode.encode(part)).tolist() == part.tolist()
