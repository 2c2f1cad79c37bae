"""Soft clusters that say the same: dead ones are dropped and duplicates merged, by objective plus complexity."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.models.graph.merging import Blocks, TradeOff, log_binomial
from gingham.models.graph.solvers import answered, pair_sample


@dataclass(frozen=True)
class _SoftTradeOff(TradeOff):
    """β · loss + answers + profile; the information of soft memberships is counted apart."""

    def clusters(self, sizes: Floats, shares: Floats) -> Floats:
        return np.zeros_like(sizes)

    def count(self, n: int, k: int) -> float:
        return log_binomial(n + k - 1, k - 1)


def without_duplicates(problem: Problem, posterior: Posterior) -> Posterior:
    """Drop clusters with less than half a node, then merge greedily while F + complexity falls.

    A soft fit with many clusters often splits one cluster into several with the same answers. They predict
    alike, but a certificate pays for the cells of each.
    """
    sample, cell, beta = pair_sample(problem, "Merging", positions=2), problem.cells[0], problem.betas[0]
    assign = np.asarray(posterior.assign[0], dtype=np.float64)
    alive = assign.sum(axis=0) >= 0.5
    assign = assign[:, alive] / assign[:, alive].sum(axis=1, keepdims=True)
    code = _SoftTradeOff(cell, beta)
    n = len(assign)
    while assign.shape[1] > 1:
        k = assign.shape[1]
        table = replace(posterior, assign=(assign,)).statistics(sample) * (1.0 if sample.directed else 2.0)
        blocks = Blocks(table, assign.sum(axis=0), np.zeros(k), sample.directed)
        change = blocks.gains(code) + _information_change(assign) + code.count(n, k - 1) - code.count(n, k)
        i, j = np.unravel_index(int(np.argmin(change)), change.shape)
        if change[i, j] >= 0:
            break
        assign[:, i] += assign[:, j]
        assign = np.delete(assign, j, axis=1)
    return answered(problem, replace(posterior, assign=(assign,)))[0]


def _information_change(assign: Floats) -> Floats:
    """Change of n Ī when two clusters become one, (k, k)."""
    n, k = assign.shape
    single = xlogy(assign, assign).sum(axis=0) - n * xlogy(assign.mean(axis=0), assign.mean(axis=0))
    change = np.zeros((k, k))
    for i in range(k):
        both = assign + assign[:, i : i + 1]
        change[i] = xlogy(both, both).sum(axis=0) - n * xlogy(both.mean(axis=0), both.mean(axis=0)) - single - single[i]
    return change
