"""Co-clusterings that differ in their seed alone, fitted side by side on a GPU: one pass over the tuples for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gingham.fitting.projection import Projection, use_torch_batch


def fit_together(members: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> bool:
    """Fit all members in one go; False, and nothing done, where that does not apply or would not pay.

    Only sweeps of projections, one start a member, are done for all members at once; before and after them each
    member does what it would have done alone.
    """
    lead = members[0]
    if not getattr(lead, "one_grid", False) or lead.backend not in ("auto", "torch"):
        return False
    given = not isinstance(lead.n_clusters, str) and not isinstance(lead.beta, str)
    if lead.objective != "tradeoff" or lead.n_init != 1 or not given:
        return False
    sample, cell = lead._tuples(X, y, sample_weight)
    task = lead._task(sample, cell)
    finder = task.finder
    if not isinstance(finder, Projection):
        return False
    if not use_torch_batch(lead.backend, task.problem, task.n_clusters, len(members)):
        return False
    from gingham.fitting.projection_torch import solve_together

    tasks = []
    for member in members:
        member._observed(X, y, sample_weight)  # it remembers the columns; the tuples are the same for all
        tasks.append(member._task(sample, cell))
    starts = [own.begin(own.rng.spawn(1)[0]) for own in tasks]
    solutions = solve_together(task.problem, starts, finder.schedule, finder.tol, finder.max_iter, finder.dtype)
    for member, own, solution in zip(members, tasks, solutions):
        member._end(own, solution)
    return True
