"""DeviceSample: observations on a GPU, which numbers, sorts and sums them; the host sees ids and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gingham.arrays import AnyArray, Floats, beside, on_host
from gingham.data.sample import MAX_SPAN, Features, Mode, Sample
from gingham.engine.project_torch import DeviceRows, costs, device_rows, layout_plan, statistics, to_device
from gingham.engine.sums import Sums


class Ids(NamedTuple):
    """Whole-number ids on the device, and the type they had on the host."""

    tensor: Tensor
    kind: np.dtype[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class DeviceSample(Sample):
    """A `Sample` with tensors on the device for columns.

    Labels of an alphabet are kept as codes alone, in one byte where that will do. Ids that are whole numbers and
    labels that are numbers go up as they are and are numbered there.
    """

    on_device: ClassVar[bool] = True

    @staticmethod
    def brought(columns: Sequence[npt.ArrayLike]) -> Sequence[npt.ArrayLike | Ids]:
        """Columns of whole numbers on the device, others as they are; columns of one table go there as one."""
        plain = [c for c in columns if isinstance(c, np.ndarray) and c.ndim == 1 and whole(c) and len(c)]
        d = len(columns)
        first = plain[0] if len(plain) == d else None
        if first is not None and all(
            (c.dtype, c.strides, len(c)) == (first.dtype, (d * c.itemsize,), len(first))
            and c.ctypes.data == first.ctypes.data + j * c.itemsize
            for j, c in enumerate(plain)
        ):
            table = np.lib.stride_tricks.as_strided(first, (len(first), d), (first.strides[0], first.itemsize))
            return [Ids(column, first.dtype) for column in to_device(table).T]
        known = {id(column) for column in plain}
        return [Ids(to_device(c), c.dtype) if id(c) in known else c for c in columns]  # type: ignore[union-attr, arg-type]

    @staticmethod
    def numbered(column: npt.ArrayLike | Ids, name: str) -> tuple[Mode, AnyArray]:
        if isinstance(column, Ids):
            return numbered(column, name)
        mode, codes = Sample.numbered(column, name)
        return mode, to_device(codes)

    @staticmethod
    def encoded(mode: Mode, column: npt.ArrayLike | Ids) -> AnyArray:
        if isinstance(column, Ids):
            return encoded(mode, column) if whole(mode.items) else to_device(mode.encode(on_host(column.tensor)))
        return to_device(mode.encode(column))

    @staticmethod
    def column(values: npt.ArrayLike) -> AnyArray:
        if isinstance(values, Tensor):
            return values
        values = np.asarray(values)
        return to_device(values) if values.dtype.kind in "biuf" else values

    @classmethod
    def copied(cls, sample: Sample) -> DeviceSample:
        """The tuples of a sample, copied to the device."""
        if sample.label_codes is not None:
            sample = replace(sample, labels=None)
        moved = cls(sample.modes, alphabet=sample.alphabet, **sample.map_columns(to_device))
        if moved.label_codes is None or sample.alphabet is None or sample.alphabet.size > 256:
            return moved
        return replace(moved, label_codes=moved.label_index.to(torch.uint8))

    def placed(self) -> DeviceSample:
        return self

    @property
    def place(self) -> str:
        return "gpu" if self.codes[0].is_cuda else "cores"  # type: ignore[attr-defined]

    def in_arrays(self) -> Sample:
        here = self.map_columns(on_host)
        if self.label_codes is not None:
            here["label_codes"] = here["label_codes"].astype(np.int32)
        labels = None if self.numbers() is None else on_host(self.numbers())
        return Sample(self.modes, alphabet=self.alphabet, **{**here, "labels": labels})

    @property
    def label_index(self) -> Tensor:
        return super().label_index.int()  # type: ignore[attr-defined]  # one byte would be taken for a mask  # type: ignore[attr-defined]

    @property
    def has_counts(self) -> bool:
        return self.weights is None or bool((self.weights == self.weights.floor()).all())  # type: ignore[attr-defined]

    def take(self, rows: AnyArray) -> Self:
        at = beside(rows, self.codes[0])
        return replace(self, **self.map_columns(lambda column: column[at]))

    def merged(self) -> DeviceSample:
        order = torch.arange(self.n_rows, device=self.codes[0].device)
        mark = self.labels if self.label_codes is None else self.label_codes
        columns = [*self.codes, *(() if mark is None else (mark,))]
        for column in reversed(columns):
            order = order[torch.sort(column[order], stable=True).indices]
        changes = torch.ones(self.n_rows, dtype=torch.bool, device=order.device)
        changes[1:] = False
        for column in columns:
            inorder = column[order]
            changes[1:] |= inorder[1:] != inorder[:-1]
        starts = torch.nonzero(changes).ravel()
        group = changes.cumsum(0) - 1
        ones = torch.ones(self.n_rows, dtype=torch.float64, device=order.device)
        weights = ones if self.weights is None else self.weights
        totals = segment_sums(group, [weights[order]], len(starts))[:, 0]
        return replace(self.take(order[starts]), weights=None if bool((totals == 1).all()) else totals)

    def counts(self, axis: int) -> Floats:
        ones = torch.ones(self.n_rows, dtype=torch.float64, device=self.codes[0].device)
        return on_host(self.totals(axis, [ones if self.weights is None else self.weights])[:, 0])

    def totals(self, axis: int, values: Sequence[Floats]) -> Floats:
        return segment_sums(self.codes[axis], values, self.shape[axis])

    def sums(self, features: Features) -> Sums:
        return SumsOnDevice(self, features, None if self.alphabet is None else self.alphabet.numbers)

    def layout(self, axis: int, features: Features, widths: Sequence[int], dtype: torch.dtype) -> DeviceRows:
        """The observations sorted for projection onto one position, by numbers of clusters of the others; cached."""
        others = [j for j in range(self.n_modes) if j != axis]
        n_others = [self.shape[j] for j in others]
        plan = layout_plan(self.shape[axis], features.size, widths, n_others, itemsize=dtype.itemsize)
        scaled = self.weights is not None or not features.one_hot

        def sorted_rows() -> DeviceRows:
            weights = None if self.weights is None else self.weights.to(dtype)  # type: ignore[attr-defined]
            dense = None if features.one_hot else self.features_of(features).to(dtype)  # type: ignore[attr-defined]
            return device_rows(
                self.codes[axis], [self.codes[j] for j in others], self.label_codes if features.one_hot else None,
                dense, weights, self.shape[axis], features.size, widths, n_others, itemsize=dtype.itemsize,
            )  # fmt: skip

        return self._kept((axis, features, plan, dtype if scaled else None), sorted_rows)


@dataclass(frozen=True, eq=False)
class SumsOnDevice:
    """The sums of a sample on the device, in double precision: what has a row an item stays there."""

    sample: DeviceSample
    features: Features
    numbers: Floats | None = None

    def project(self, axis: int, assigns: Sequence[Floats], coef: Floats) -> Floats:
        tables = [to_device(q).double().contiguous() for q in assigns]
        rows = self.sample.layout(axis, self.features, [int(q.shape[1]) for q in tables], torch.float64)
        return costs(rows, tables, to_device(coef).double())

    def table(self, assigns: Sequence[Floats], backend: str = "torch") -> Floats:
        first, *others = (to_device(q).double().contiguous() for q in assigns)
        widths = [int(q.shape[1]) for q in others]
        rows = self.sample.layout(0, self.features, widths, torch.float64)
        flat = on_host(statistics(rows, others, first))
        return np.moveaxis(flat.reshape(int(first.shape[1]), self.features.size, *widths), 1, -1)

    def squares(self) -> float:
        if self.features.one_hot or self.features.size < 2:
            return 0.0
        squares = self.sample.numbers() ** 2
        return float(squares.sum() if self.sample.weights is None else squares @ self.sample.weights)

    def drawn(self, items: AnyArray, places: Floats) -> Floats:
        # Few items are asked for: their observations come to the host.
        wanted = to_device(np.unique(items).astype(np.int32))
        part = self.sample.take(torch.isin(self.sample.codes[0], wanted)).in_arrays()
        order = np.lexsort((part.numbers(), part.codes[0]))
        ends = np.cumsum(np.ones(part.n_rows) if part.weights is None else part.weights[order])
        ranked = part.codes[0][order]
        first, last = (np.searchsorted(ranked, items, side=side) for side in ("left", "right"))
        before = np.concatenate([[0.0], ends])[first]
        chosen = order[np.clip(np.searchsorted(ends, before + places, side="right"), first, last - 1)]
        return part.take(chosen).features_of(self.features)


def whole(ids: AnyArray) -> bool:
    """Whether ids are whole numbers that torch can hold."""
    return ids.dtype.kind in "iu" and ids.dtype != np.uint64


def numbered(ids: Ids, name: str) -> tuple[Mode, Tensor]:
    """Equivalent to ``Mode.of(ids, name)`` and its ``encode(ids)``, on the device."""
    column = ids.tensor
    low, high = (int(end) for end in torch.aminmax(column))
    if high - low < MAX_SPAN * len(column):  # whole numbers that lie close together: marked, not sorted
        at = column.long() - low
        seen = torch.zeros(high - low + 1, dtype=torch.bool, device=column.device)
        seen[at] = True
        items, codes = torch.nonzero(seen).ravel() + low, (seen.cumsum(0, dtype=torch.int32) - 1)[at]
    else:
        items, codes = torch.unique(column, return_inverse=True)
    return Mode(name, on_host(items).astype(ids.kind)), codes.to(torch.int32)


def encoded(mode: Mode, ids: Ids) -> Tensor:
    """Equivalent to ``mode.encode(ids)``, on the device."""
    column, items = ids.tensor, to_device(mode.items).long()
    codes = torch.arange(len(items), dtype=torch.int32, device=column.device)
    if not len(items):
        return torch.full((len(column),), -1, dtype=torch.int32, device=column.device)
    low, high = (int(end) for end in torch.aminmax(items))
    if high - low < MAX_SPAN * max(len(items), len(column)):
        table = torch.full((high - low + 2,), -1, dtype=torch.int32, device=column.device)
        table[items - low] = codes
        outside = (column < low) | (column > high)
        return table[torch.where(outside, high - low + 1, column.long() - low)]
    at = torch.searchsorted(items, column.long()).clip(max=len(items) - 1)
    return torch.where(items[at] == column, at, -1).to(torch.int32)


def segment_sums(codes: Tensor, values: Sequence[Tensor], n: int) -> Tensor:
    """Sums of columns by code, shape (n, len(values)), in an order that is always the same.

    Equivalent to ``np.stack([np.bincount(codes, column, minlength=n) for column in values], axis=1)``.
    """
    nowhere = torch.zeros(len(codes), dtype=torch.int32, device=codes.device)
    one = torch.ones(1, 1, dtype=torch.float64, device=codes.device)
    features = torch.stack([column.double() for column in values], dim=1)
    rows = device_rows(codes, [nowhere], None, features, None, n, len(values), [1], [1], itemsize=8)
    return costs(rows, [one], torch.eye(len(values), dtype=torch.float64, device=codes.device))
