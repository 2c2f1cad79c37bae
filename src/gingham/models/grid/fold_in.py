"""New items without refitting: a half step for them only, while everything that was learned stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gingham.arrays import AnyArray
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.core.structure import Structure
from gingham.data import Mode, Sample
from gingham.fitting.projection import half_step

N_PASSES = 2  # over the modes: where both items of a tuple are new, the second pass sees what the first found


def extended(posterior: Posterior, columns: Sequence[AnyArray]) -> Posterior:
    """The posterior with the ids of the columns among its items; new ones have the masses as memberships."""
    structure = posterior.structure
    modes, assign = list(structure.modes), list(posterior.assign)
    for column, at in zip(columns, structure.factors[0]):
        new = modes[at].encode(column) < 0
        if new.any():
            fresh = Mode.of(column[new], modes[at].name).items
            wide = Mode.of(np.concatenate([modes[at].items, fresh]), modes[at].name)
            q = np.tile(posterior.mass[at], (wide.n_items, 1)).astype(assign[at].dtype)
            q[wide.encode(modes[at].items)] = assign[at]
            modes[at], assign[at] = wide, q
    return replace(
        posterior, structure=Structure(tuple(modes), structure.factors, structure.frozen), assign=tuple(assign)
    )


def fold_in(before: Posterior, wide: Posterior, sample: Sample, beta: float, backend: str = "auto") -> Posterior:
    """Memberships of the items that ``wide`` has and ``before`` has not, from the tuples of a sample.

    q(c|x) ∝ qbar(c) exp(−β G[x, c]) (P0 eq. 40) with the answers and all other memberships as they are.
    """
    problem = Problem(wide.structure, (sample,), wide.cells, (beta,))
    new = [old.encode(mode.items) < 0 for mode, old in zip(wide.structure.modes, before.structure.modes)]
    for _ in range(N_PASSES):
        for mode, fresh in enumerate(new):
            if fresh.any():
                moved, _ = half_step(problem, wide, mode, 1.0, backend)
                q = np.where(fresh[:, None], moved.assign[mode], wide.assign[mode])
                assign = (*wide.assign[:mode], q, *wide.assign[mode + 1 :])
                wide = replace(wide, assign=assign)
    return wide
