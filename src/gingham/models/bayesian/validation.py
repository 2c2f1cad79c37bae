"""Which concentration predicts best: a few entries are held out, and α is looked up on them.

The evidence bound does not choose α (it prefers memberships that predict worse), so it is validated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gingham.core.problem import Posterior, Problem
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import completed
from gingham.models.bayesian.fit import Variational, begin
from gingham.models.bayesian.predictive import log_density

SHARE = 0.05  # of the entries are held out
FEWEST = 20  # entries to hold out; with fewer there is nothing to learn from
LADDER = (0.1, 0.5, 1.0, 2.0)  # the concentrations that are tried
FALLBACK = 0.5
SWEEPS = 50  # are enough to tell good from bad

Concentration = tuple[float, ...]


def validate_concentration(
    solver: Variational,
    problem: Problem,
    make_start: Callable[[Problem], Posterior],
    rng: np.random.Generator,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> tuple[Concentration, dict[Concentration, float]]:
    """Try every α of `LADDER` on both modes alike, then move one mode at a time up or down while that helps.

    Returns the chosen α of each mode, and the held-out perplexity of every α that was tried.
    """
    sample = problem.samples[0]
    n_held = round(SHARE * sample.n_rows)
    if n_held < FEWEST:
        return (FALLBACK, FALLBACK), {}
    order = rng.permutation(sample.n_rows)
    held, kept = sample.take(order[:n_held]), sample.take(np.sort(order[n_held:]))
    reduced = replace(problem, samples=(kept,))
    start = make_start(reduced)
    short = replace(solver, max_iter=min(solver.max_iter, SWEEPS))
    tried: dict[Concentration, float] = {}

    def perplexity(alpha: Concentration) -> float:
        if alpha not in tried:
            stage = checkpoint.stage(f"concentration {alpha}")
            q = completed(short.solve(reduced, begin(reduced, start, alpha), checkpoint=stage)).posterior
            tried[alpha] = float(np.exp(-np.average(log_density(q, held), weights=held.weights)))
        return tried[alpha]

    best: Concentration = min(((a, a) for a in LADDER), key=perplexity)
    free = [mode for mode in range(problem.structure.n_modes) if mode not in problem.structure.frozen]
    while True:
        near = [best]
        for mode in free:
            at = LADDER.index(best[mode])
            beside = LADDER[max(at - 1, 0) : at] + LADDER[at + 1 : at + 2]
            near += [(*best[:mode], to, *best[mode + 1 :]) for to in beside]
        nearest = min(near, key=perplexity)
        if nearest == best:
            return best, tried
        best = nearest
