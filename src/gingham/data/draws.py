"""Draws that rows stand for, how they are divided, and the seeds that say how.

A row of weight w stands for w independent draws, and whoever divides data divides draws, never rows: rows that are put
together lose their independence. If equal observations are one row with a count, a row on one side of a split keeps
all its twins from the other side. So the draws of a row may fall on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints, on_host
from gingham.errors import GinghamError, RefusedCertificate

MOST_DRAWS = 10**9 - 1  # that can be divided; as many as numpy draws without replacement from
LARGEST_SEED = 2**53 - 1  # survives every reader of JSON


class Part(NamedTuple):
    """Some of the draws: rows, sorted, and how many draws of each; None where every row is one draw."""

    rows: Ints
    counts: Ints | None

    @classmethod
    def of(cls, counts: Ints, weighted: bool) -> Part:
        rows = np.flatnonzero(counts)
        return cls(rows, counts[rows] if weighted else None)

    def take(self, mask: AnyArray) -> Part:
        return Part(self.rows[mask], None if self.counts is None else self.counts[mask])

    @property
    def n_draws(self) -> int:
        return len(self.rows) if self.counts is None else int(self.counts.sum())

    @property
    def weights(self) -> dict[str, Ints]:
        """What a fit is told of the counts."""
        return {} if self.counts is None else {"sample_weight": self.counts}


def whole_counts(weights: Floats | None) -> Ints | None:
    """Weights as whole counts of draws; a weight between two whole numbers counts no draws."""
    if weights is None:
        return None
    weights = on_host(weights)
    broken = (weights != np.floor(weights)) | (weights > 2**53)
    if broken.any():
        row = int(np.flatnonzero(broken)[0])
        raise RefusedCertificate(
            f"sample_weight is {weights[row]:g} in row {row}. A row of weight w counts as w independent draws, so "
            "weights must be integers. Round them, or omit them."
        )
    return weights.astype(np.int64)


def rows_of_draws(n_rows: int, counts: Ints | None) -> Ints:
    """The row of every draw, in the order of the rows."""
    return np.arange(n_rows) if counts is None else np.repeat(np.arange(n_rows), _divisible(counts))


def taken(counts: Ints, n: int, rng: np.random.Generator) -> Ints:
    """How many of ``n`` draws, taken at random without replacement, belong to each row, shape (n_rows,)."""
    if (counts == 1).all():
        found = np.zeros(len(counts), dtype=np.int64)
        found[rng.permutation(len(counts))[:n]] = 1
        return found
    return rng.multivariate_hypergeometric(_divisible(counts), n, method="marginals")


def counted(draws: Ints) -> tuple[Ints, Ints]:
    """The different rows among some draws in order of their number, and how often each was drawn."""
    return np.unique(draws, return_counts=True)


def fresh_seed() -> int:
    """A seed that nobody has chosen, small enough to survive every reader of JSON (53 bits)."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(11))


def recorded_seed(random_state: int | None) -> int:
    """The seed as it was given, a whole number that can be recorded, or a fresh one."""
    if random_state is None:
        return fresh_seed()
    if isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer)):
        raise GinghamError(f"random_state={random_state!r} must be an integer (which is recorded) or None.")
    if not 0 <= random_state <= LARGEST_SEED:
        raise GinghamError(f"random_state={random_state} must lie between 0 and {LARGEST_SEED}.")
    return int(random_state)


def _divisible(counts: Ints) -> Ints:
    if counts.sum() > MOST_DRAWS:
        raise GinghamError(f"The weights count {counts.sum():,} draws; at most {MOST_DRAWS:,} can be divided.")
    return counts
