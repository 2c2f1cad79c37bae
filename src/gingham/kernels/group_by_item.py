"""Grouping tuples by item and label in linear time, on all cores.

Large samples go in two passes, each of which writes to few places at a time: to buckets of neighbouring items, then
within each bucket. Chunks and buckets depend on the sample alone, so the number of threads changes nothing.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from gingham.arrays import AnyArray, Ints
from gingham.kernels.compile import njit
from gingham.kernels.threads import over_blocks

SMALL = 2**19  # tuples up to which one pass is as good
CHUNK = 2**20  # tuples that are put into buckets at a time
BUCKETS = 2**9  # so many write positions stay in the cache


def grouping(
    codes: Ints, labels: Ints, n_items: int, n_labels: int, columns: Sequence[AnyArray]
) -> tuple[Ints, list[AnyArray]]:
    """Where each group of equal (item, label) begins, and the columns in the order of the groups.

    Parameters
    ----------
    codes, labels : (N,) item and label of each tuple; an empty ``labels`` stands for zeros
    columns : arrays of shape (N,) to put in order; sorting each is faster than gathering it afterwards

    Returns
    -------
    begin : (n_items · n_labels + 1,) int64
    columns : list of arrays of shape (N,)

    Notes
    -----
    Equivalent to ``order = np.argsort(codes * n_labels + labels, kind="stable")``, ``[c[order] for c in columns]``,
    with ``np.searchsorted(sorted_keys, np.arange(n_items * n_labels + 1))``.
    """
    n = len(codes)
    begin = np.zeros(n_items * n_labels + 1, np.int64)
    sorted_columns = [np.empty_like(column) for column in columns]
    shift = max(0, (max(n_items, 1) - 1).bit_length() - (BUCKETS - 1).bit_length())
    if n <= SMALL or n_labels << shift >= 2**31:
        _begin(codes, labels, n_labels, begin)
        for column, out in zip(columns, sorted_columns):
            _group(codes, labels, n_labels, column, begin[:-1].copy(), out)
        return begin, sorted_columns
    n_buckets = ((n_items - 1) >> shift) + 1
    chunks = list(pairwise([*range(0, n, CHUNK), n]))

    by_chunk = over_blocks(lambda chunk: _count(codes, *chunk, shift, n_buckets), chunks)
    counts = np.array(list(by_chunk)).T  # (buckets, chunks)
    place = np.cumsum(counts).reshape(counts.shape) - counts
    first = [*place[:, 0].tolist(), n]
    keys = np.empty(n, np.int32)
    begin[-1] = n

    def arrange(column: AnyArray, out: AnyArray) -> None:
        rough = np.empty_like(column)

        def spread(at: int) -> None:
            _spread(codes, labels, column, *chunks[at], shift, n_labels, place[:, at].copy(), keys, rough)

        def settle(bucket: int) -> None:
            slots = slice((bucket << shift) * n_labels, min(n_items, (bucket + 1) << shift) * n_labels)
            inside = slice(first[bucket], first[bucket + 1])
            _settle(keys[inside], rough[inside], first[bucket], begin[slots], out[inside])

        for work, n_parts in ((spread, len(chunks)), (settle, n_buckets)):
            for _ in over_blocks(work, range(n_parts)):
                pass

    for column, out in zip(columns, sorted_columns):
        arrange(column, out)
    if not columns:
        arrange(codes, np.empty_like(codes))
    return begin, sorted_columns


@njit(cache=True, nogil=True, boundscheck=False)
def _begin(codes, labels, n_labels, begin):
    """Where each group begins, one pass over everything."""
    plain = len(labels) == 0
    for e in range(len(codes)):
        begin[np.int64(codes[e]) * n_labels + (0 if plain else labels[e]) + 1] += 1
    for key in range(len(begin) - 1):
        begin[key + 1] += begin[key]


@njit(cache=True, nogil=True, boundscheck=False)
def _group(codes, labels, n_labels, column, place, out):
    """Put a column in order, one pass over everything; ``place`` is used up."""
    plain = len(labels) == 0
    for e in range(len(codes)):
        key = np.int64(codes[e]) * n_labels + (0 if plain else labels[e])
        out[place[key]] = column[e]
        place[key] += 1


@njit(cache=True, nogil=True, boundscheck=False)
def _count(codes, start, stop, shift, n_buckets):
    """Equivalent to ``np.bincount(codes[start:stop] >> shift, minlength=n_buckets)``."""
    counts = np.zeros(n_buckets, np.int64)
    for e in range(start, stop):
        counts[codes[e] >> shift] += 1
    return counts


@njit(cache=True, nogil=True, boundscheck=False)
def _spread(codes, labels, column, start, stop, shift, n_labels, place, keys, out):
    """Put tuples start:stop into their buckets, with their keys (item within the bucket, label)."""
    plain = len(labels) == 0
    for e in range(start, stop):
        bucket = codes[e] >> shift
        at = place[bucket]
        place[bucket] = at + 1
        keys[at] = (codes[e] - (bucket << shift)) * n_labels + (0 if plain else labels[e])
        out[at] = column[e]


@njit(cache=True, nogil=True, boundscheck=False)
def _settle(keys, rough, first, begin, out):
    """Sort one bucket by key; ``begin`` is written for its own slots."""
    place = np.zeros(len(begin) + 1, np.int64)
    for e in range(len(keys)):
        place[keys[e] + 1] += 1
    for slot in range(len(begin)):
        place[slot + 1] += place[slot]
        begin[slot] = first + place[slot]
    for e in range(len(keys)):
        out[place[keys[e]]] = rough[e]
        place[keys[e]] += 1
