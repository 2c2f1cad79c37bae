"""Counts of more than two sides: which items occurred together, and how often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
from scipy import sparse

from gingham.arrays import Floats, Ints
from gingham.data.adapt import check_counts, from_matrix
from gingham.data.sample import need_unmasked


@dataclass(eq=False)
class CountTensor:
    """A sparse tensor of counts; the attributes are those of scipy's sparse arrays."""

    coords: tuple[Ints, ...]  # by side, (nnz,)
    data: Floats  # (nnz,)
    shape: tuple[int, ...]

    @classmethod
    def of(cls, coords: tuple[Ints, ...], data: Floats, shape: tuple[int, ...], model: str) -> Self:
        """Counts that are added up by cell, without zeros."""
        check_counts(data, lambda at: f"cell {tuple(int(code[at]) for code in coords)}", model)
        codes, inverse = np.unique(np.ravel_multi_index(coords, shape), return_inverse=True)
        total = np.bincount(inverse.ravel(), data, minlength=len(codes)).astype(np.float64)
        return cls(np.unravel_index(codes, shape), total, shape).eliminate_zeros()

    @classmethod
    def of_array(cls, X: Any, model: str) -> Self:
        """A dense array, or a sparse one of scipy, with more than two sides."""
        need_unmasked(X, "X")
        if not hasattr(X, "coords"):
            X = np.asarray(X, dtype=np.float64)
            return cls.of(np.nonzero(X), X[np.nonzero(X)], X.shape, model)
        codes, values = from_matrix(X, missing="implicit")
        return cls.of(tuple(np.asarray(codes, dtype=np.int64).T), np.asarray(values, float), tuple(X.shape), model)

    @property
    def nnz(self) -> int:
        return len(self.data)

    def sum(self) -> float:
        return float(self.data.sum())

    def copy(self) -> Self:
        return replace(self)

    def tocoo(self) -> Self:
        return self

    def eliminate_zeros(self) -> Self:
        kept = self.data != 0
        self.coords, self.data = tuple(code[kept] for code in self.coords), self.data[kept]
        return self

    def beside(self, side: int) -> sparse.csr_array:
        """How often each item of a side occurred with each item of every other side, those next to one another."""
        others = [
            sparse.coo_array((self.data, (self.coords[side], code)), shape=(self.shape[side], n))
            for j, (code, n) in enumerate(zip(self.coords, self.shape))
            if j != side
        ]
        return sparse.csr_array(sparse.hstack(others))


Counts = sparse.csr_array | CountTensor
CountsT = TypeVar("CountsT", sparse.csr_array, CountTensor)


def side_names(d: int) -> tuple[str, ...]:
    """What sides are called where nobody has named them."""
    return ("row", "column") if d == 2 else tuple(f"side {at + 1}" for at in range(d))
