"""One mode's step of a soft fit on the cores: from sums over its observations to memberships and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from gingham.arrays import Floats
from gingham.engine.project import STEP_BYTES, Rows, aligned, projector, row_blocks
from gingham.engine.threads import over_blocks

if TYPE_CHECKING:
    from gingham.engine.project_compiled import Tiles


def memberships(
    layouts: Sequence[Rows],
    others: Sequence[Sequence[Floats]],
    coefs: Sequence[Floats],
    betas: Sequence[float],
    mass: Floats,
    backend: str = "auto",
    dtype: str = "float64",
    tiles: Tiles | None = None,
) -> tuple[Floats, Floats, float, list[Floats]]:
    """One pass over the tuples of a mode: q(c|x), its column sums, Σ q ln q, and the statistics per relation."""
    with np.errstate(divide="ignore"):  # a dead cluster has log mass −∞ and stays dead
        log_mass = np.log(mass)
    n, m = layouts[0].n_items, len(mass)
    new = aligned((n, m), dtype)
    projections = [projector(rows, other, backend, dtype, tiles, reuse=True) for rows, other in zip(layouts, others)]

    def run(block: tuple[int, int]) -> tuple[Floats, float, list[Floats]]:
        start, stop = block
        parts = [projection(start, stop).reshape(stop - start, -1) for projection in projections]
        sums, entropy = settle(parts, coefs, betas, log_mass, new[start:stop])
        return sums, entropy, [new[start:stop].T @ part for part in parts]

    sums, entropy = np.zeros(m), 0.0
    statistics: list[Floats] = [np.zeros(coef.shape) for coef in coefs]
    blocks = row_blocks(n, max(coef.shape[1] for coef in coefs), STEP_BYTES) if tiles is None else tiles.blocks
    for part_sums, part_entropy, tables in over_blocks(run, blocks):
        sums += part_sums
        entropy += part_entropy
        for table, part in zip(statistics, tables):
            table += part
    return new, sums, entropy, statistics


def settle(
    parts: Sequence[Floats], coefs: Sequence[Floats], betas: Sequence[float], log_mass: Floats, out: Floats
) -> tuple[Floats, float]:
    """Fill ``out`` with the memberships of projected items; returns their column sums and Σ q ln q."""
    from gingham.engine.project_compiled import gibbs_rows  # compiled code is loaded where it is used

    costs = [part @ (beta * coef.T).astype(part.dtype, copy=False) for part, coef, beta in zip(parts, coefs, betas)]
    cost = sum(costs[1:], start=costs[0])
    sums = np.zeros(out.shape[1])
    return sums, gibbs_rows(log_mass, cost, out, sums)


def by_cluster(coef: Floats, position: int) -> Floats:
    """Coefficients of cells, (m_1, …, m_d, K), as (m, K · others): the order in which `project` lays out its result."""
    coef = np.moveaxis(coef, (position, -1), (0, 1))
    return np.ascontiguousarray(coef.reshape(coef.shape[0], prod(coef.shape[1:])))


def by_cell(table: Floats, widths: Sequence[int], position: int) -> Floats:
    """Statistics (m, K · others) as (m_1, …, m_d, K)."""
    others = [width for j, width in enumerate(widths) if j != position]
    return np.moveaxis(table.reshape(widths[position], -1, *others), (0, 1), (position, -1))
