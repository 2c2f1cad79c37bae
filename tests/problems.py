"""Random small problems: one list of instances for many properties."""

from __future__ import annotations

import numpy as np

from gingham.cells import Absolute, CellModel, Logarithmic, Pinball, Quadratic, RankedProbability, TableLoss, ZeroOne
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample

FIVE = Alphabet.of([1, 2, 3, 4, 5], given=True)


def all_cells(alphabet: Alphabet = FIVE) -> list[CellModel]:
    skew = np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers)) ** 1.5 + 0.1 * np.arange(alphabet.size)
    return [
        ZeroOne(alphabet),
        Absolute(alphabet),
        Pinball(alphabet, 0.8),
        TableLoss(alphabet, skew),
        Logarithmic(alphabet, 0.05),
        RankedProbability(alphabet),
        Quadratic(alphabet),
        Quadratic(None, (1.0, 5.0)),
    ]


def random_sample(
    rng: np.random.Generator, d: int, n_rows: int = 30, n_items: int = 5, weighted: bool = True
) -> Sample:
    columns = [rng.integers(0, n_items, n_rows) for _ in range(d)]
    weights = rng.integers(1, 4, n_rows).astype(float) if weighted else None
    return Sample.of(columns, rng.integers(1, 6, n_rows), weights, alphabet=FIVE)


def random_problem(rng: np.random.Generator, cell: CellModel, d: int, **options: object) -> Problem:
    return Problem.grid(random_sample(rng, d, **options), cell, float(rng.choice([0.1, 0.5, 1.0, 3.0])))
