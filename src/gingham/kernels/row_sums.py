"""Sums of rows of a table: how the table lies in memory, and the loop in vector registers.

The registers are the one thing the compiler does not find by itself.
"""

# mypy: allow-untyped-defs
from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from gingham.arrays import Floats, Ints
from gingham.kernels.threads import available_threads, spread

CACHE_LINE = 64  # bytes
COPY_BYTES = 2**19  # fewer are copied before a second thread has started
RUN = 256  # tuples added up before their sum joins the total: keeps float32 sums exact to about 1e-6


def aligned(shape: tuple[int, int], dtype: npt.DTypeLike) -> Floats:
    """An uninitialised table that begins at a cache line, so that a row touches no more lines than it must."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    room = np.empty(size + CACHE_LINE, dtype=np.uint8)
    skip = -room.ctypes.data % CACHE_LINE
    table: Floats = room[skip : skip + size].view(dtype).reshape(shape)
    return table


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

    n_threads = available_threads() if table.nbytes > COPY_BYTES else 1
    spread(copy, np.linspace(0, n, n_threads + 1).astype(np.int64), n_threads)
    return table.reshape(-1), stride


def sum_rows_reference(
    lanes: int,
    sums: Floats,
    at: int,
    table: Floats,
    shift: int,
    stride: int,
    codes: Ints,
    scale: Floats | None,
    start: int,
    stop: int,
) -> None:
    """What `sum_rows` does, in numpy; all arrays are flat."""
    for e in range(start, stop):
        row = table[codes[e] * stride + shift :][:lanes]
        sums[at : at + lanes] += row if scale is None else scale[e - start] * row


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
