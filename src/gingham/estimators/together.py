"""Co-clusterings that differ in their seed alone, fitted side by side on a GPU: one pass over the tuples for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gingham.data import Sample
from gingham.estimators.base import expand_clusters
from gingham.estimators.grid import GridFit
from gingham.problem import Problem
from gingham.selection.auto import chosen
from gingham.solvers import device
from gingham.solvers.schedule import make_schedule
from gingham.starts import make_start


def fit_together(members: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> bool:
    """Fit all members in one go; False, and nothing done, where that does not apply or would not pay."""
    lead = members[0]
    if not isinstance(lead, GridFit) or lead.backend not in ("auto", "torch"):
        return False
    if lead.objective != "tradeoff" or lead.n_init != 1 or "auto" in (lead.n_clusters, lead.beta):
        return False
    columns, labels, weights = lead._observed(X, y, sample_weight)
    alphabet = lead._alphabet(labels)
    sample = Sample.of(columns.columns, labels, weights, names=columns.names, alphabet=alphabet)
    cell = lead._cell(alphabet, labels)
    beta, _, reason = lead._beta_of(sample, cell)
    problem = Problem.grid(sample, cell, beta)
    n_clusters = expand_clusters(lead.n_clusters, sample.shape, sample.n_tuples)
    if not device.together(lead.backend, problem, n_clusters, len(members)):
        return False
    starts = []
    for member in members:
        rng = np.random.default_rng(check_random_state(member.random_state).randint(2**31 - 1))
        starts.append(make_start(member.start, problem, n_clusters, rng))
    solutions = device.solve_together(
        problem, starts, make_schedule(lead.schedule), lead.tol, lead.max_iter, lead.dtype
    )
    for member, solution in zip(members, solutions):
        member._observed(X, y, sample_weight)
        member._set_solution(solution)
        member.beta_ = beta
        member.selection_ = chosen(beta, (), reason, n_clusters, n_clusters, None)
    return True
