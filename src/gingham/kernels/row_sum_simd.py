"""Sums of table rows in vector registers: the one thing the compiler does not find by itself."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gingham.arrays import Floats, Ints


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
def sum_rows(
    typing: Any,
    lanes: Any,
    sums: Any,
    at: Any,
    table: Any,
    shift: Any,
    stride: Any,
    codes: Any,
    scale: Any,
    start: Any,
    stop: Any,
) -> Any:
    """Add rows ``codes[start:stop]`` of a table, times ``scale`` (or None), to ``sums[at:at + lanes]``.

    ``lanes`` is a number in the source, so the partial sums never leave the registers: a loop over
    arrays would load and store them for every row, since nothing says that the arrays are different.

    Equivalent to ``sums[at:at+lanes] += scale @ table.reshape(-1, stride)[codes[start:stop], shift:shift+lanes]``.
    """
    n_lanes = lanes.literal_value
    scaled = isinstance(scale, types.Array)
    # The literal stays in the signature: implementations are kept by signature.
    signature = types.void(lanes, sums, types.intp, table, types.intp, types.intp, codes, scale, types.intp, types.intp)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def data(i: int) -> Any:
            return context.make_array(signature.args[i])(context, builder, args[i]).data

        _, _, at, _, shift, stride, _, _, start, stop = args
        sums, table, codes = data(1), data(3), data(6)
        number = context.get_data_type(signature.args[1].dtype)
        vector = ir.VectorType(number, n_lanes)
        index = context.get_value_type(types.intp)
        align = context.get_abi_sizeof(number)  # rows begin anywhere: promise no more than one number

        def vector_at(array: Any, position: Any) -> Any:
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
