"""Which tuples are summed together, so that the assignments they gather stay in the cache.

Items come in blocks, the items of the other mode in tiles, both small enough for the cache. A block's tuples are
summed tile by tile; those of one (item, label) in one tile are a segment, which is summed in registers.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from gingham.arrays import Floats, Ints
from gingham.kernels.project import Rows
from gingham.kernels.row_sums import RUN, add_run
from gingham.kernels.threads import over_blocks

TILE_BYTES = 2**20  # of gathered rows: about half of a core's own cache
BLOCK_BYTES = 2**23  # of sums: read and written in order, so they may lie farther away
LEAST_BLOCKS = 16  # to share out among threads
LEAST_SEGMENT = 8  # tuples; shorter ones wait for the next tile
LEAST_RUN = 32  # mean number of tuples of an (item, label) from which tiles pay: short runs are not to be cut


class Tiles(NamedTuple):
    """The tuples of `Rows` with one other mode, sorted by (block of items, tile, item, label)."""

    cuts: Ints  # (blocks + 1,) first item of each block
    first: Ints  # (blocks + 1,) first segment of each block
    slots: Ints  # (segments,) int32: (item − first item of the block) · K + label
    begins: Ints  # (segments + 1,) int64: first tuple of each segment
    others: Ints  # (N,) int32
    weights: Floats  # (N,), or (0,) where all are one

    @property
    def blocks(self) -> list[tuple[int, int]]:
        return list(pairwise(self.cuts.tolist()))


def make_tiles(rows: Rows, n_others: int, row_bytes: int) -> Tiles | None:
    """Tiles for assignments of ``n_others`` items, ``row_bytes`` each; None where they would not pay.

    They pay where the assignments do not fit the cache and items have many tuples.
    """
    if len(rows.others) != 1 or rows.runs is None or n_others * row_bytes < 2 * TILE_BYTES:
        return None
    runs, others = rows.runs, rows.others[0]
    weights = np.empty(0) if rows.weights is None else rows.weights
    if len(others) < LEAST_RUN * (len(runs) - 1):
        return None
    shift = max(1, TILE_BYTES // row_bytes).bit_length() - 1  # a tile has 2^shift items: found without division
    n_tiles = ((n_others - 1) >> shift) + 1
    cuts = _cuts(rows.indptr, max(1, BLOCK_BYTES // (row_bytes * rows.n_features)))
    blocks = list(pairwise((cuts * rows.n_features).tolist()))

    def count(block: tuple[int, int]) -> Ints:
        counts: Ints = _count(runs, others, *block, shift, n_tiles)
        return counts

    counts = np.array(list(over_blocks(count, blocks)))  # (blocks, 2, tiles): segments and tuples
    begin = np.cumsum(counts.swapaxes(0, 1).reshape(2, -1), axis=1).reshape(2, len(blocks), n_tiles).swapaxes(0, 1)
    begin -= counts
    tiles = Tiles(
        cuts=cuts,
        first=np.append(begin[:, 0, 0], counts[:, 0].sum()),
        slots=np.empty(counts[:, 0].sum(), np.int32),
        begins=np.full(counts[:, 0].sum() + 1, len(others), np.int64),
        others=np.empty_like(others),
        weights=np.empty_like(weights),
    )

    def place(at: int) -> None:
        into = (tiles.slots, tiles.begins, tiles.others, tiles.weights)
        _place(runs, others, weights, *blocks[at], shift, *begin[at], *into)

    for _ in over_blocks(place, range(len(blocks))):
        pass
    return tiles


def _cuts(indptr: Ints, most_items: int) -> Ints:
    """First items of blocks, each of at most that many items and about N/LEAST_BLOCKS tuples."""
    n = len(indptr) - 1
    # Rises by one over a block that is full of items, of tuples, or of both together.
    full = indptr / max(1.0, indptr[-1] / LEAST_BLOCKS) + np.arange(n + 1) / most_items
    return np.unique(np.concatenate([[0], np.searchsorted(full, np.arange(1.0, full[-1])), [n]]))


@njit(cache=True, nogil=True, boundscheck=False)
def _ends(others, begin, end, shift, tuples, ends):
    """For the tuples of one slot: how many lie in each tile, and the tile in which each tile's segment ends."""
    tuples[:] = 0
    for e in range(begin, end):
        tuples[others[e] >> shift] += 1
    least = min(LEAST_SEGMENT, end - begin)
    opened, last, waiting = 0, 0, 0
    for t in range(len(tuples)):
        waiting += tuples[t]
        if waiting >= least:
            ends[opened : t + 1] = t
            opened, last, waiting = t + 1, t, 0
    ends[opened:] = last  # what is left over joins the last segment


@njit(cache=True, nogil=True, boundscheck=False)
def _count(runs, others, start, stop, shift, n_tiles):
    """Segments that end in each tile and their tuples, for the slots start:stop, shape (2, tiles)."""
    counts = np.zeros((2, n_tiles), np.int64)
    tuples, ends = np.empty(n_tiles, np.int64), np.empty(n_tiles, np.int64)
    for slot in range(start, stop):
        if runs[slot] == runs[slot + 1]:
            continue
        _ends(others, runs[slot], runs[slot + 1], shift, tuples, ends)
        for t in range(n_tiles):
            counts[0, t] += ends[t] == t
            counts[1, ends[t]] += tuples[t]
    return counts


@njit(cache=True, nogil=True, boundscheck=False)
def _place(runs, others, weights, start, stop, shift, segment, position, slots, begins, to, to_weights):
    """Write the segments of the slots start:stop; ``segment`` and ``position`` say where each tile's begin.

    Equivalent to a stable sort of the tuples by (tile in which their segment ends, slot).
    """
    n_tiles = len(segment)
    tuples, ends = np.empty(n_tiles, np.int64), np.empty(n_tiles, np.int64)
    segment, position = segment.copy(), position.copy()
    for slot in range(start, stop):
        if runs[slot] == runs[slot + 1]:
            continue
        _ends(others, runs[slot], runs[slot + 1], shift, tuples, ends)
        for t in range(n_tiles):
            if ends[t] == t:
                slots[segment[t]] = slot - start
                begins[segment[t]] = position[t]
                segment[t] += 1
        for e in range(runs[slot], runs[slot + 1]):
            t = ends[others[e] >> shift]
            to[position[t]] = others[e]
            if len(weights):
                to_weights[position[t]] = weights[e]
            position[t] += 1


def fill_tiles(tiles: Tiles, table: Floats, stride: int, start: int, stop: int, out: Floats) -> None:
    """`project` of the items start:stop, one or more blocks of the tiles, from a padded table."""
    first, last = np.searchsorted(tiles.cuts, (start, stop)).tolist()

    def fill(at: int) -> None:
        segments = slice(tiles.first[at], tiles.first[at + 1])
        mine = out[tiles.cuts[at] - start : tiles.cuts[at + 1] - start]
        whole = out.shape[2] == stride
        sums = mine if whole else np.empty((*mine.shape[:2], stride), out.dtype)
        _sum(
            tiles.slots[segments], tiles.begins[segments.start : segments.stop + 1],
            tiles.others, tiles.weights, table, stride, sums.reshape(-1),
        )  # fmt: skip
        if not whole:
            mine[...] = sums[:, :, : out.shape[2]]

    for _ in over_blocks(fill, range(first, last)):
        pass


@njit(cache=True, nogil=True, boundscheck=False)
def _sum(slots, begins, others, weights, table, stride, sums):
    """Equivalent to ``np.add.at(zeros, slot of each tuple, weights[:, None] * table.reshape(-1, stride)[others])``."""
    sums[:] = 0
    scale = np.empty(RUN, sums.dtype)
    for s in range(len(slots)):
        at = np.int64(slots[s]) * stride
        e = begins[s]
        while e < begins[s + 1]:
            end = min(e + RUN, begins[s + 1])
            if len(weights):
                for i in range(end - e):
                    scale[i] = weights[e + i]
                add_run(sums, at, table, stride, others, scale, e, end)
            else:
                add_run(sums, at, table, stride, others, None, e, end)
            e = end
