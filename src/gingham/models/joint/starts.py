"""Where shared matrices begin: each mode from the relations that speak of it, singletons as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.core.structure import Structure
from gingham.errors import GinghamError
from gingham.fitting.starts import (
    FIRMNESS,
    RANK,
    Start,
    from_posterior,
    item_embeddings,
    k_means,
    random,
    with_best_answers,
)

JOINT_STARTS = ("means", "spectral", "random")


def joint_start(start: Start, problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> Posterior:
    """A posterior to begin with; frozen modes are identities."""
    if isinstance(start, Posterior):
        return from_posterior(problem, start)
    if not isinstance(start, str) or start not in JOINT_STARTS:
        raise GinghamError(f"start={start!r} is unknown; choose one of {', '.join(JOINT_STARTS)}, or a posterior.")
    frozen = problem.structure.frozen
    if start == "random":
        drawn = random(problem, n_clusters, rng)
        return replace(
            drawn, assign=tuple(np.eye(q.shape[1]) if mode in frozen else q for mode, q in enumerate(drawn.assign))
        )
    rank = RANK if start == "spectral" else 0
    embedded = item_embeddings(problem, rank, rng)
    own = _own_relations(problem)
    found = item_embeddings(own, rank, rng) if own is not None else embedded
    assign: list[Floats] = []
    for mode, m in enumerate(n_clusters):
        if mode in frozen:
            assign.append(np.eye(m))
            continue
        spoken_of = own is not None and bool(own.structure.uses(mode))
        points, weights = (found if spoken_of else embedded)[mode]
        labels = k_means(points, weights, m, rng)
        assign.append(FIRMNESS * np.eye(m)[labels] + (1.0 - FIRMNESS) / m)
    return with_best_answers(problem, assign)


def _own_relations(problem: Problem) -> Problem | None:
    """The problem without its relations of properties, which would outvote the others; None if all are."""
    frozen = set(problem.structure.frozen)
    kept = [r for r, factor in enumerate(problem.structure.factors) if not frozen & set(factor)]
    if not kept or len(kept) == len(problem.samples):
        return problem if kept else None
    pick = lambda values: tuple(values[r] for r in kept)  # noqa: E731
    structure = Structure(problem.structure.modes, pick(problem.structure.factors), problem.structure.frozen)
    return Problem(structure, pick(problem.samples), pick(problem.cells), pick(problem.betas))
