"""The soft sweep in numba: sums over observations, and from costs to memberships.

Rows are added in vector registers, items come in tiles, an item's row is the work of one thread. The result does not
depend on the number of threads. Vector registers are the one thing the compiler does not find by itself. Where the
other mode's assignments outgrow the cache, items come in blocks and the other mode's items in tiles, both small enough
for it. A block's observations are summed tile by tile; those of one (item, label) in one tile are a segment, which is
summed in registers.

Observations are grouped by item and label in linear time, on all cores. Large samples go in two passes, each of which
writes to few places at a time: to buckets of neighbouring items, then within each bucket. Chunks and buckets depend on
the sample alone.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from gingham.arrays import AnyArray, Floats, Ints
from gingham.engine.files import room
from gingham.engine.project import CACHE_LINE, Rows, aligned
from gingham.engine.threads import available_threads, in_blocks, over_blocks, spread

COPY_BYTES = 2**19  # fewer are copied before a second thread has started
RUN = 256  # observations added up before their sum joins the total: keeps float32 sums exact to about 1e-6


def padded(assign: Floats, dtype: npt.DTypeLike | None = None) -> tuple[Floats, int]:
    """The table, aligned, with rows filled up with zeros to a multiple of 8 numbers, flat, and the row length.

    A table that is like that already is not copied.
    """
    n, m = assign.shape
    dtype = np.dtype(assign.dtype if dtype is None else dtype)
    stride = -(-m // 8) * 8
    if m == stride and assign.dtype == dtype and assign.flags.c_contiguous and assign.ctypes.data % CACHE_LINE == 0:
        return assign.reshape(-1), stride
    table = aligned((n, stride), dtype)

    def copy(start: int, stop: int) -> None:
        table[start:stop, :m] = assign[start:stop]
        table[start:stop, m:] = 0

    if table.nbytes > COPY_BYTES:
        n_threads = available_threads()
        spread(copy, np.linspace(0, n, n_threads + 1).astype(np.int64), n_threads)
    else:
        table[:, :m], table[:, m:] = assign, 0
    return table.reshape(-1), stride


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator, unused-ignore]
def sum_rows(typing, lanes, sums, at, table, shift, stride, codes, scale, start, stop):
    """Add rows ``codes[start:stop]`` of a table, times ``scale`` (or None), to ``sums[at:at + lanes]``.

    ``lanes`` is a number in the source, so the partial sums never leave the registers: a loop over
    arrays would load and store them for every row, since nothing says that the arrays are different.

    Equivalent to ``sums[at:at+lanes] += scale @ table.reshape(-1, stride)[codes[start:stop], shift:shift+lanes]``.
    """
    n_lanes = lanes.literal_value
    scaled = isinstance(scale, types.Array)
    # The literal stays in the signature: implementations are kept by signature.
    signature = types.void(lanes, sums, types.intp, table, types.intp, types.intp, codes, scale, types.intp, types.intp)

    def codegen(context, builder, signature, args):
        def data(i):
            return context.make_array(signature.args[i])(context, builder, args[i]).data

        _, _, at, _, shift, stride, _, _, start, stop = args
        sums, table, codes = data(1), data(3), data(6)
        number = context.get_data_type(signature.args[1].dtype)
        vector = ir.VectorType(number, n_lanes)
        index = context.get_value_type(types.intp)
        align = context.get_abi_sizeof(number)  # rows begin anywhere: promise no more than one number

        def vector_at(array, position):
            return builder.bitcast(builder.gep(array, [position]), vector.as_pointer())

        total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * n_lanes))
        with cgutils.for_range_slice(builder, start, stop, ir.Constant(index, 1)) as (e, _):
            code = builder.zext(builder.load(builder.gep(codes, [e])), index)
            row = builder.load(vector_at(table, builder.add(builder.mul(code, stride), shift)), align=align)
            partial = builder.load(total)
            if scaled:
                factor = builder.load(builder.gep(data(7), [builder.sub(e, start)]))
                one = builder.insert_element(ir.Constant(vector, ir.Undefined), factor, ir.IntType(32)(0))
                mask = ir.Constant(ir.VectorType(ir.IntType(32), n_lanes), [0] * n_lanes)
                row = builder.fmul(builder.shuffle_vector(one, one, mask), row, flags=("contract",))
            builder.store(builder.fadd(partial, row, flags=("contract",)), total)
        goal = vector_at(sums, at)
        builder.store(builder.fadd(builder.load(goal, align=align), builder.load(total)), goal, align=align)
        return context.get_dummy_value()

    return signature, codegen


@njit(nogil=True)  # inlined into its cached callers
def add_run(sums, at, table, stride, codes, scale, start, stop):
    """Equivalent to ``sums[at:at+stride] += scale @ table.reshape(-1, stride)[codes[start:stop]]``."""
    shift = 0
    while shift + 32 <= stride:
        sum_rows(32, sums, at + shift, table, shift, stride, codes, scale, start, stop)
        shift += 32
    if shift + 16 <= stride:
        sum_rows(16, sums, at + shift, table, shift, stride, codes, scale, start, stop)
        shift += 16
    if shift < stride:
        sum_rows(8, sums, at + shift, table, shift, stride, codes, scale, start, stop)


TILE_BYTES = 2**20  # of gathered rows: about half of a core's own cache
BLOCK_BYTES = 2**23  # of sums: read and written in order, so they may lie farther away
LEAST_BLOCKS = 16  # to share out among threads
LEAST_SEGMENT = 8  # observations; shorter ones wait for the next tile
LEAST_RUN = 32  # mean number of observations of an (item, label) from which tiles pay: short runs are not to be cut


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

    They pay where the assignments do not fit the cache and items have many observations.
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
    by_block = over_blocks(lambda block: _count(runs, others, *block, shift, n_tiles), blocks)
    counts = np.array(list(by_block))  # (blocks, 2, tiles): segments and observations
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
    """First items of blocks, each of at most that many items and about N/LEAST_BLOCKS observations."""
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
    """Segments that end in each tile and their observations, for the slots start:stop, shape (2, tiles)."""
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

    Equivalent to a stable sort of the observations by (tile in which their segment ends, slot).
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
    """Equivalent to ``np.add.at(zeros, slots, weights[:, None] * table.reshape(-1, stride)[others])``."""
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


def project(rows: Rows, assigns: tuple[Floats, ...], start: int, stop: int, out: Floats) -> None:
    """The same sums as the reference, in runs of RUN observations."""
    prepared(rows, assigns, out.dtype)(start, stop, out)


def prepared(
    rows: Rows, assigns: tuple[Floats, ...], dtype: npt.DTypeLike, tiles: Tiles | None = None
) -> Callable[[int, int, Floats], None]:
    """`project` as a function of (start, stop, out), with the assignments laid out once for all calls.

    With ``tiles`` of these rows, start and stop are among its ``cuts``.
    """
    labels = np.empty(0, np.int32) if rows.labels is None else rows.labels
    features = np.empty((0, 1)) if rows.features is None else rows.features
    weights = np.empty(0) if rows.weights is None else rows.weights
    runs = rows.runs
    width = prod(q.shape[1] for q in assigns)
    kernel: Callable[[int, int, int, Floats], None]
    if len(assigns) == 1:
        table, stride = padded(assigns[0], dtype)
        if tiles is not None:
            return partial(fill_tiles, tiles, table, stride)
        if runs is None:
            kernel = partial(_pair, rows.indptr, rows.others[0], labels, features, weights, table, stride)
        else:
            kernel = partial(_runs, runs, rows.others[0], weights, table, stride)
    elif not assigns and runs is not None and rows.weights is None:  # one mode: its observations are counted already
        return lambda start, stop, out: np.copyto(
            out.reshape(-1), np.diff(runs[start * out.shape[1] :][: out.size + 1])
        )
    else:
        widths = np.array([q.shape[1] for q in assigns], dtype=np.int64)
        offsets = np.cumsum([0, *(q.size for q in assigns)], dtype=np.int64)
        flat = np.concatenate([np.ones(0, dtype), *(np.ravel(q) for q in assigns)]).astype(dtype, copy=False)
        kernel = partial(_many, rows.indptr, rows.others, labels, features, weights, flat, offsets, widths)

    def fill(start: int, stop: int, out: Floats) -> None:
        work = int(rows.indptr[stop] - rows.indptr[start]) * width
        in_blocks(lambda a, b: kernel(start, a, b, out), rows.indptr, start, stop, work)

    return fill


@njit(cache=True, nogil=True, boundscheck=False)
def _runs(runs, other, weights, table, stride, base, start, stop, out):
    """One other mode, one-hot features, and where each (item, label) begins; no ``weights`` means one each.

    Equivalent to ``np.add.at(out, (item − base, labels), weights[:, None] * q[other])``.
    """
    n_features, width = out.shape[1], out.shape[2]
    direct = width == stride  # then sums are made where they belong
    sums = out.reshape(-1) if direct else np.empty(n_features * stride, out.dtype)
    scale = np.empty(RUN, out.dtype)
    for x in range(start, stop):
        at = (x - base) * n_features * stride if direct else 0
        sums[at : at + n_features * stride] = 0
        for k in range(n_features):
            e, last = runs[x * n_features + k], runs[x * n_features + k + 1]
            while e < last:
                end = min(e + RUN, last)
                if len(weights):
                    for i in range(end - e):
                        scale[i] = weights[e + i]
                    add_run(sums, at + k * stride, table, stride, other, scale, e, end)
                else:
                    add_run(sums, at + k * stride, table, stride, other, None, e, end)
                e = end
        if not direct:
            for k in range(n_features):
                for c in range(width):
                    out[x - base, k, c] = sums[k * stride + c]


@njit(cache=True, nogil=True, boundscheck=False)
def _pair(indptr, other, labels, features, weights, table, stride, base, start, stop, out):
    """One other mode; an array of length 0 stands for no labels, features or weights.

    Equivalent to ``np.add.at(out, (item − base, labels), weights[:, None] * q[other])`` for one-hot, and
    ``np.add.at(out, item − base, (weights[:, None] * features)[:, :, None] * q[other][:, None])`` for dense.
    """
    n_features, width = out.shape[1], out.shape[2]
    one_hot, unit = len(labels) > 0, len(weights) == 0
    sums = np.zeros(n_features * stride, out.dtype)
    scale = np.empty(RUN, out.dtype)
    for x in range(start, stop):
        sums[:] = 0
        e = indptr[x]
        while e < indptr[x + 1]:
            end = min(e + RUN, indptr[x + 1])
            if one_hot:
                label = labels[e]
                f = e + 1
                while f < end and labels[f] == label:
                    f += 1
                end = f
                if unit:
                    add_run(sums, label * stride, table, stride, other, None, e, end)
                else:
                    for i in range(end - e):
                        scale[i] = weights[e + i]
                    add_run(sums, label * stride, table, stride, other, scale, e, end)
            else:
                for k in range(n_features):
                    for i in range(end - e):
                        scale[i] = features[e + i, k] if unit else features[e + i, k] * weights[e + i]
                    add_run(sums, k * stride, table, stride, other, scale, e, end)
            e = end
        for k in range(n_features):
            for c in range(width):
                out[x - base, k, c] = sums[k * stride + c]


@njit(cache=True, nogil=True, boundscheck=False)
def _many(indptr, others, labels, features, weights, flat, offsets, widths, base, start, stop, out):
    """Any number of other modes, none included: an outer product per observation, its last factor not stored.

    Equivalent to ``np.add.at(out, item − base, (weights[:, None] * features)[:, :, None] * product[:, None])``
    with ``product[e] = q_1[others[0, e]] ⊗ q_2[others[1, e]] ⊗ …``.
    """
    n_factors, n_features, width = len(widths), out.shape[1], out.shape[2]
    one_hot, unit = len(labels) > 0, len(weights) == 0
    last = widths[n_factors - 1] if n_factors else 1
    product = np.empty(max(width // last, 1), out.dtype)
    lone = np.ones(1, out.dtype)
    for x in range(start, stop):
        out[x - base] = 0
        for e in range(indptr[x], indptr[x + 1]):
            product[0] = 1.0 if unit else weights[e]
            size = 1
            for j in range(n_factors - 1):
                m = widths[j]
                at = offsets[j] + others[j, e] * m
                # From the back, so that an entry is read before its place is written.
                for a in range(size - 1, -1, -1):
                    share = product[a]
                    for c in range(m - 1, -1, -1):
                        product[a * m + c] = share * flat[at + c]
                size *= m
            q = lone
            if n_factors:
                at = offsets[n_factors - 1] + others[n_factors - 1, e] * last
                q = flat[at : at + last]
            for k in range(1 if one_hot else n_features):
                row = out[x - base, labels[e] if one_hot else k]
                for a in range(size):
                    share = product[a] if one_hot else out.dtype.type(features[e, k]) * product[a]
                    cells = row[a * last : (a + 1) * last]
                    for c in range(last):
                        cells[c] += share * q[c]


SMALL = 2**19  # observations up to which one pass is as good
CHUNK = 2**20  # observations that are put into buckets at a time
BUCKETS = 2**9  # so many write positions stay in the cache


def grouping(
    codes: Ints, labels: Ints, n_items: int, n_labels: int, columns: Sequence[AnyArray]
) -> tuple[Ints, list[AnyArray]]:
    """Where each group of equal (item, label) begins, and the columns in the order of the groups.

    Parameters
    ----------
    codes, labels : (N,) item and label of each observation; an empty ``labels`` stands for zeros
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
    sorted_columns = [room(n, column.dtype, codes) for column in columns]
    shift = max(0, (max(n_items, 1) - 1).bit_length() - (BUCKETS - 1).bit_length())
    if n <= SMALL or n_labels << shift >= 2**31:
        _begin(codes, labels, n_labels, begin)
        for column, out in zip(columns, sorted_columns):
            _group(codes, labels, n_labels, column, begin[:-1].copy(), out)
        return begin, sorted_columns
    n_buckets = ((n_items - 1) >> shift) + 1
    chunks = list(pairwise([*range(0, n, CHUNK), n]))

    by_chunk = over_blocks(lambda chunk: _bucket_counts(codes, *chunk, shift, n_buckets), chunks)
    counts = np.array(list(by_chunk)).T  # (buckets, chunks)
    place = np.cumsum(counts).reshape(counts.shape) - counts
    first = [*place[:, 0].tolist(), n]
    keys = room(n, np.int32, codes)
    begin[-1] = n

    def arrange(column: AnyArray, out: AnyArray) -> None:
        rough = room(n, column.dtype, codes)

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
def _bucket_counts(codes, start, stop, shift, n_buckets):
    """Equivalent to ``np.bincount(codes[start:stop] >> shift, minlength=n_buckets)``."""
    counts = np.zeros(n_buckets, np.int64)
    for e in range(start, stop):
        counts[codes[e] >> shift] += 1
    return counts


@njit(cache=True, nogil=True, boundscheck=False)
def _spread(codes, labels, column, start, stop, shift, n_labels, place, keys, out):
    """Put observations start:stop into their buckets, with their keys (item within the bucket, label)."""
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


def gibbs_rows(log_mass: Floats, cost: Floats, out: Floats, sums: Floats) -> float:
    """Fill ``out`` with q(c|x) ∝ exp(log_mass[c] − cost[x, c]), add its column sums to ``sums``; uses up ``cost``.

    Returns Σ q ln q. Equivalent to ``out[:] = softmax(log_mass − cost, axis=1); sums += out.sum(axis=0)``.
    """
    _exponents(log_mass, cost)
    np.exp(cost, out=out)  # numpy's runs in vector registers, the compiler's does not
    return float(_normalise(cost, out, sums))


@njit(cache=True, nogil=True, boundscheck=False)
def _exponents(log_mass, cost):
    """Replace costs by log_mass − cost less the row's largest, so that no exponential overflows."""
    n, m = cost.shape
    for x in range(n):
        top = -np.inf
        for c in range(m):
            cost[x, c] = log_mass[c] - cost[x, c]
            top = max(top, cost[x, c])
        for c in range(m):
            cost[x, c] -= top


@njit(cache=True, nogil=True, boundscheck=False)
def _normalise(exponents, out, sums):
    """Divide rows of exponentials by their sums, add columns up; Σ q ln q, where ln q = exponent − ln norm."""
    n, m = out.shape
    total = 0.0
    for x in range(n):
        norm = 0.0
        for c in range(m):
            norm += out[x, c]
        log_norm = np.log(norm)
        for c in range(m):
            q = out[x, c] / norm
            out[x, c] = q
            sums[c] += q
            if q > 0.0:
                total += q * (exponents[x, c] - log_norm)
    return total
