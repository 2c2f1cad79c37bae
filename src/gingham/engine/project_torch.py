"""torch: `project` on a GPU (whole sweeps: grid_torch). Imports with torch and numpy alone; triton where it is there.

Observations are sorted once per mode by (block of the other mode, item, label). One program sums the assignments of
one run of equal keys; the block keeps the gathered rows in the cache, and long runs are cut, so that a popular
item does not keep one program busy alone. Items whose observations fell into several runs are added up in a second
pass, in a fixed order: results are the same bits every time.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gingham.arrays import STAGE, AnyArray, Floats, copy_in_stages
from gingham.engine.project import Rows

try:  # CPU builds of torch come without it
    from gingham.engine import triton_kernels as triton_kernels
except ImportError:  # pragma: no cover - depends on the installation
    triton_kernels = None  # type: ignore[assignment]

CACHE_BYTES = 24 * 2**20  # of gathered assignments in use at a time
BLOCK_BYTES = 2**34  # of sums that are made at a time
RUN = 2048  # observations one program adds up
INT32 = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of tuples that belong to one row of the result, for the rows of one block of items.

    ``target`` of a run is its row, or n_rows + p where the row has several runs and this one's sum is partial p;
    ``fold_*`` say which partials belong to which row.
    """

    first: int  # items first … last − 1
    last: int
    n_rows: int  # (last − first) · K, or · 1 for dense features
    begin: Tensor
    end: Tensor
    target: Tensor
    n_partials: int
    fold_row: Tensor
    fold_begin: Tensor
    fold_end: Tensor


@dataclass(frozen=True, eq=False)
class DeviceRows:
    """The tuples of one mode on the device, sorted."""

    n_items: int
    n_features: int
    one_hot: bool
    others: tuple[Tensor, ...]  # int32 codes of the other modes
    scales: tuple[Tensor, ...]  # one weight vector per feature (dense), or at most one (one-hot)
    blocks: tuple[Runs, ...]


def device_rows(
    item: Tensor,
    others: Sequence[Tensor],
    labels: Tensor | None,
    features: Tensor | None,
    weights: Tensor | None,
    n_items: int,
    n_features: int,
    widths: Sequence[int],
    n_others: Sequence[int],
    block_bytes: int | None = None,
    itemsize: int = 4,
) -> DeviceRows:
    """Sort the tuples (tensors on the device) for projection onto one mode.

    ``widths`` and ``n_others`` are the numbers of clusters and items of the other modes; they set how many items
    of the first other mode share the cache, and how many rows of the result fit in ``block_bytes``.
    """
    device = item.device
    per_item = n_features if labels is not None else 1
    per_block, slices = layout_plan(n_items, n_features, widths, n_others, block_bytes, itemsize)
    n_blocks = -(-n_items // per_block)
    wide = n_blocks * slices * per_block * per_item > INT32
    key = item.to(torch.int64 if wide else torch.int32)
    if n_blocks > 1 or slices > 1:
        block = torch.div(key, per_block, rounding_mode="floor")
        part = torch.zeros_like(key)
        if slices > 1:
            size = -(-n_others[0] // slices)
            part = torch.div(others[0], size, rounding_mode="floor").to(key.dtype)
        key = (block * slices + part) * per_block + key % per_block
        del block, part
    if labels is not None:
        key = key * per_item + labels.to(key.dtype)
    key, order = torch.sort(key, stable=True)
    sorted_others = tuple(code[order].to(torch.int32) for code in others)
    scales = []
    if features is not None:
        for k in range(n_features):
            column = features[:, k] if weights is None else features[:, k] * weights
            scales.append(column[order])
    elif weights is not None:
        scales.append(weights[order])
    del order
    keys, counts = torch.unique_consecutive(key, return_counts=True)
    del key
    keys = keys.long()
    stride = per_block * per_item
    block_of = torch.div(keys, slices * stride, rounding_mode="floor")
    row_of = keys % stride
    ends = counts.cumsum(0)
    cuts = torch.searchsorted(block_of, torch.arange(n_blocks + 1, device=device)).tolist()
    blocks = []
    for b in range(n_blocks):
        inside = slice(cuts[b], cuts[b + 1])
        last = min(n_items, (b + 1) * per_block)
        blocks.append(_runs(b * per_block, last, per_item, row_of[inside], counts[inside], ends[inside]))
    return DeviceRows(n_items, n_features, labels is not None, sorted_others, tuple(scales), tuple(blocks))


def layout_plan(
    n_items: int,
    n_features: int,
    widths: Sequence[int],
    n_others: Sequence[int],
    block_bytes: int | None = None,
    itemsize: int = 4,
) -> tuple[int, int]:
    """Items whose rows of the result are made at a time, and slices of the first other mode that share the cache."""
    row_bytes = 4 * n_features * max(1, prod(widths))
    table = n_others[0] * widths[0] * itemsize if n_others else 0
    slices = max(1, -(-table // CACHE_BYTES)) if table > 2 * CACHE_BYTES else 1
    return max(1, min(n_items, (block_bytes or BLOCK_BYTES) // row_bytes)), slices


def _runs(first: int, last: int, per_item: int, rows: Tensor, counts: Tensor, ends: Tensor) -> Runs:
    """Cut segments into runs of at most RUN observations and number the partial sums."""
    n_rows = (last - first) * per_item
    pieces = torch.div(counts + RUN - 1, RUN, rounding_mode="floor")
    segment = torch.repeat_interleave(torch.arange(len(pieces), device=rows.device), pieces)
    nth = torch.arange(len(segment), device=rows.device) - (pieces.cumsum(0) - pieces)[segment]
    begin = (ends - counts)[segment] + nth * RUN
    end = torch.minimum(begin + RUN, ends[segment])
    row = rows[segment]
    per_row = torch.bincount(row, minlength=n_rows)
    several = per_row[row] > 1
    # Partials are numbered row by row, so that a row's partials lie side by side.
    order = torch.argsort(row[several], stable=True)
    partial = torch.empty_like(order)
    partial[order] = torch.arange(len(order), device=rows.device)
    target = row.clone()
    target[several] = n_rows + partial
    fold_row = torch.nonzero(per_row > 1).ravel()
    sizes = per_row[fold_row]
    fold_end = sizes.cumsum(0)
    kind = torch.int64 if len(ends) and int(ends[-1]) > INT32 else torch.int32
    return Runs(
        first, last, n_rows,
        begin.to(kind), end.to(kind), target, len(order),
        fold_row, (fold_end - sizes).to(torch.int32), fold_end.to(torch.int32),
    )  # fmt: skip


def project_block(tuples: DeviceRows, block: Runs, assigns: Sequence[Tensor], buffer: Tensor | None = None) -> Tensor:
    """A[x, k, r] for the items of one block, shape (items, K, Π m_j), float32 (float64 for float64 assignments)."""
    width = prod(int(q.shape[1]) for q in assigns)
    dtype = torch.float64 if not assigns or assigns[0].dtype == torch.float64 else torch.float32
    device = tuples.blocks[0].begin.device
    repeats = 1 if tuples.one_hot else tuples.n_features
    items = block.last - block.first
    result = []
    for k in range(repeats):
        scale = None
        if tuples.scales:
            scale = tuples.scales[0] if tuples.one_hot else tuples.scales[k]
        size = block.n_rows + block.n_partials
        sums = buffer if buffer is not None and repeats == 1 else torch.zeros(size, width, dtype=dtype, device=device)
        if buffer is not None and len(tuples.blocks) > 1:
            sums = sums[:size].zero_()  # rows without observations differ from block to block
        if triton_kernels is not None and device.type == "cuda" and len(assigns) in (1, 2):
            triton_kernels.run_sums(block, tuples.others, scale, assigns, sums)
        else:
            _plain_sums(block, tuples.others, scale, assigns, sums[:size])
        result.append(sums[: block.n_rows])
    if repeats == 1:
        return result[0].view(items, -1, width)
    return torch.stack(result, dim=1)


def buffer_for(tuples: DeviceRows, width: int, device: torch.device) -> Tensor:
    """Room for the sums of the largest block; rows without observations stay zero."""
    size = max(block.n_rows + block.n_partials for block in tuples.blocks)
    return torch.zeros(size, width, dtype=torch.float32, device=device)


def _plain_sums(block: Runs, others: Sequence[Tensor], scale: Tensor, assigns: Sequence[Tensor], sums: Tensor) -> None:
    """The same sums without triton: a sparse product for one other mode, chunks of outer products for more."""
    if len(block.begin) == 0:
        return
    low, high = int(block.begin[0]), int(block.end[-1])
    lengths = (block.end - block.begin).long()
    target = torch.repeat_interleave(block.target, lengths)
    dtype = sums.dtype
    if len(others) == 1:
        crow = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        values = torch.ones(high - low, dtype=dtype, device=sums.device) if scale is None else scale[low:high].to(dtype)
        shape = (len(lengths), int(assigns[0].shape[0]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch calls its sparse products beta
            matrix = torch.sparse_csr_tensor(crow, others[0][low:high].long(), values, size=shape)
            sums[block.target] = matrix @ assigns[0].to(dtype)
    else:
        sums.zero_()
        step = max(1, 2**24 // max(1, sums.shape[1]))
        for at in range(low, high, step):
            stop = min(at + step, high)
            product = torch.ones(stop - at, 1, dtype=dtype, device=sums.device)
            for code, q in zip(others, assigns):
                factor = q.to(dtype)[code[at:stop].long()]
                product = (product[:, :, None] * factor[:, None, :]).reshape(stop - at, -1)
            if scale is not None:
                product = product * scale[at:stop, None].to(dtype)
            sums.index_add_(0, target[at - low : stop - low], product)
    for row, begin, end in zip(block.fold_row.tolist(), block.fold_begin.tolist(), block.fold_end.tolist()):
        sums[row] = sums[block.n_rows + begin : block.n_rows + end].sum(0)


def tall_product(a: Tensor, b: Tensor) -> Tensor:
    """aᵀ b of each member, (B, n, m) and (B, n, r) to (B, m, r).

    One product after another: a batched one does not split the long sum over n and takes ten times as long.
    """
    return torch.stack([x.T @ y for x, y in zip(a, b)])


def device_name() -> str:
    """The device that work would go to."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def to_device(array: AnyArray) -> Tensor:
    """An array where work would go to; numbers that torch has no type for become numbers of 64 bits."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind == "u" and array.itemsize > 1:
            array = array.astype(np.int64 if array.itemsize < 8 else np.float64)
        if array.dtype.kind == "f" and array.itemsize > 8:
            array = array.astype(np.float64)
        if not array.dtype.isnative or any(step < 0 for step in array.strides):
            array = array.astype(array.dtype.newbyteorder("="))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nothing is written to arrays that must not be written to
        tensor = torch.as_tensor(array)
    if tensor.is_cuda or device_name() != "cuda" or tensor.nbytes < 2 * STAGE:
        return tensor.to(device_name())
    result = torch.empty(tensor.shape, dtype=tensor.dtype, device=device_name())
    copy_in_stages(tensor, result)
    return result


def costs(tuples: DeviceRows, assigns: Sequence[Tensor], coef: Tensor) -> Tensor:
    """A · coefᵀ, shape (n, m), for coef (m, K · Π m_j), on the device."""
    parts = []
    for block in tuples.blocks:
        sums = project_block(tuples, block, assigns).reshape(block.last - block.first, -1)
        parts.append(sums @ coef.T.to(sums.dtype))
    return torch.cat(parts)


def statistics(tuples: DeviceRows, assigns: Sequence[Tensor], own: Tensor) -> Tensor:
    """ownᵀ · A, shape (m, K · Π m_j), for own (n, m), on the device."""
    total = torch.zeros((), dtype=own.dtype, device=own.device)
    for block in tuples.blocks:
        sums = project_block(tuples, block, assigns).reshape(block.last - block.first, -1)
        total = total + own[block.first : block.last].T @ sums
    return total


def project(rows: Rows, assigns: tuple[Floats, ...], start: int, stop: int, out: Floats) -> None:
    """`project` of the other backends, through the device: for checks and single calls."""
    tuples = _moved(rows, assigns, start, stop, out.dtype)
    tables = _tables(assigns)
    for block in tuples.blocks:
        out[block.first : block.last] = project_block(tuples, block, tables).cpu().numpy()


def project_cost(rows: Rows, assigns: tuple[Floats, ...], coef: Floats) -> Floats:
    """A · coefᵀ in float64; the observations stay on the device between calls."""
    return costs(_kept(rows, assigns), _tables(assigns), to_device(coef)).cpu().numpy()


def project_table(rows: Rows, assigns: tuple[Floats, ...], own: Floats) -> Floats:
    """ownᵀ · A in float64."""
    return statistics(_kept(rows, assigns), _tables(assigns), to_device(own)).cpu().numpy()


def _tables(assigns: Sequence[Floats]) -> list[Tensor]:
    return [to_device(q).contiguous() for q in assigns]


_KEPT: dict[tuple[int, ...], DeviceRows] = {}  # sorted observations on the device, for as long as the host's live


def _kept(rows: Rows, assigns: tuple[Floats, ...]) -> DeviceRows:
    """The layout of these observations, sorted at the first call."""
    parts = (rows.others, rows.labels, rows.features, rows.weights)
    key = (*map(id, parts), *(q.shape[1] for q in assigns))
    if key not in _KEPT:
        _KEPT[key] = _moved(rows, assigns, 0, rows.n_items, np.dtype(np.float64))
        for part in parts:
            if part is not None:
                weakref.finalize(part, _KEPT.pop, key, None)
    return _KEPT[key]


def _moved(rows: Rows, assigns: tuple[Floats, ...], start: int, stop: int, kind: np.dtype[np.floating]) -> DeviceRows:
    """Observations of items start … stop − 1, moved to the device and sorted."""
    device = device_name()
    low, high = int(rows.indptr[start]), int(rows.indptr[stop])
    item = torch.from_numpy(np.repeat(np.arange(stop - start), np.diff(rows.indptr[start : stop + 1]))).to(device)

    def move(array: AnyArray | None, kind: npt.DTypeLike | None = None) -> Tensor | None:
        return None if array is None else torch.from_numpy(np.ascontiguousarray(array[low:high], kind)).to(device)

    return device_rows(
        item, [move(code) for code in rows.others], move(rows.labels), move(rows.features, kind),
        move(rows.weights, kind), stop - start, rows.n_features, [q.shape[1] for q in assigns],
        [q.shape[0] for q in assigns], itemsize=kind.itemsize,
    )  # fmt: skip
