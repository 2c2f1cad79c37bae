"""Samples × structure × cells × β: what is to be minimised, with its named terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gingham.cells import CellModel
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure
from gingham.data import Sample
from gingham.data.sample import Sums
from gingham.errors import GinghamError

MOST_BETA = 1e100


@dataclass(frozen=True)
class Objective:
    """F(Q, β) = Σ_r β_r N_r L̂_r(Q) + Σ_i n_i Ī_i, term by term (P0 eq. 19)."""

    losses: tuple[float, ...]  # N_r L̂_r, in the loss's own unit
    information: tuple[float, ...]  # n_i Ī_i, nats
    betas: tuple[float, ...]

    @property
    def total(self) -> float:
        return float(np.dot(self.betas, self.losses) + sum(self.information))


@dataclass(frozen=True, eq=False)
class Problem:
    """What was observed, how it is divided, what cells cost, and how loss trades against information.

    Samples, cells and betas have one entry per relation.
    """

    structure: Structure
    samples: tuple[Sample, ...]
    cells: tuple[CellModel, ...]
    betas: tuple[float, ...]  # per unit of the loss as it stands (stars, say), not of the loss scaled to [0, 1]

    def __post_init__(self) -> None:
        for beta in self.betas:
            if not (np.isfinite(beta) and beta >= 0):
                raise GinghamError(f"beta={beta} must be a finite number, not negative.")
            if beta > MOST_BETA:
                raise GinghamError(f"beta={beta:g} is too large: from {MOST_BETA:g} on, products with losses overflow.")

    @classmethod
    def grid(cls, sample: Sample, cell: CellModel, beta: float) -> Problem:
        return cls(Structure.grid(sample.modes), (sample,), (cell,), (beta,))

    def sums(self, relation: int) -> Sums:
        """Sums over the tuples of a relation, which are all that a start asks of them."""
        return self.samples[relation].sums(self.cells[relation].features)

    def with_betas(self, betas: Sequence[float]) -> Problem:
        return replace(self, betas=tuple(betas))

    def objective(self, posterior: Posterior) -> Objective:
        """Every term of F at a posterior, from scratch."""
        return Objective(
            losses=tuple(
                posterior.gibbs_loss(sample, relation) * sample.n_tuples for relation, sample in enumerate(self.samples)
            ),
            information=information_terms(posterior),
            betas=self.betas,
        )


def information_terms(posterior: Posterior) -> tuple[float, ...]:
    """n_i Ī_i of each mode, nats; a frozen mode was not learned and counts nothing."""
    return tuple(
        0.0 if mode in posterior.structure.frozen else len(q) * i
        for mode, (q, i) in enumerate(zip(posterior.assign, posterior.information))
    )
