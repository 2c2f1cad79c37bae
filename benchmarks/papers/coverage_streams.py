"""Streams: posteriors refitted after every tuple, and a stopping time chosen to hurt.

All patterns of signs of a small problem are listed, with a uniform prior, so that at every time the worst posterior is
known. A stream counts as failed when a bound is below the truth at any time at all.
"""

from __future__ import annotations

from math import log

import numpy as np
from coverage_problems import DELTA, Planted, planted, summary
from numba import njit

from gingham.certificates import bounds
from gingham.certificates.bounds import ln_xi

LENGTH = 300
BOUNDS = ("log-wealth", "kl", "kl of a fixed sample size (Occam)")
ADVERSARIES = ("best of many", "deepest fit", "tilted")


def streams() -> dict[str, Planted]:
    return {
        "d = 1": planted("d = 1", (8,), LENGTH, advantage=0.1),
        "d = 2": planted("d = 2", (5, 4), LENGTH, advantage=0.1, seed=1),
        "graph": planted("graph", (8,), LENGTH, advantage=0.1, graph=True, seed=2),
    }


def hypotheses(problem: Planted) -> np.ndarray:
    """All different patterns (H, Z) of answers, 0 or 1."""
    total = sum(len(s) for s in problem.signs)
    words = 2 * ((np.arange(2**total)[:, None] >> np.arange(total)) & 1) - 1
    cuts = np.split(words, np.cumsum([len(s) for s in problem.signs])[:-1], axis=1)
    patterns = np.prod([cuts[mode][:, code] for mode, code in zip(problem.factor, problem.codes)], axis=0)
    return np.unique(patterns > 0, axis=0).astype(np.int64)


def stopped(problem: Planted, n_samples: int, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """bound → adversary → failures over all times together, and at the last time alone."""
    rng = np.random.default_rng(seed)
    answers = hypotheses(problem)
    truth = (problem.law[None, :, :] * (answers[:, :, None] != np.arange(2))).sum(axis=(1, 2))
    risks, at = np.unique(np.round(truth, 12), return_inverse=True)
    times = np.arange(1, LENGTH + 1)
    ln_xis = np.array([ln_xi(t) for t in times])
    wealth = wealth_table(risks)
    failures = np.zeros((2, len(BOUNDS), len(ADVERSARIES)))
    for _ in range(n_samples):
        drawn = rng.choice(problem.law.size, LENGTH, p=problem.law.ravel())
        wrong = answers[:, drawn // 2] != drawn % 2  # (H, T)
        ever, last = follow(np.ascontiguousarray(wrong), truth, at, wealth, ln_xis, bounds.GRID, -log(DELTA))
        failures += np.stack([ever, last])
    return {
        bound: {
            f"{adversary}, {when}": summary(failures[w, b, a], n_samples)
            for a, adversary in enumerate(ADVERSARIES)
            for w, when in enumerate(("worst time", "last time only"))
            # Occam's bound is for single hypotheses.
            if not (b == 2 and adversary == "tilted")
        }
        for b, bound in enumerate(BOUNDS)
    }


def wealth_table(risks: np.ndarray) -> np.ndarray:
    """ln of the average wealth over ν after t tuples with k errors, for each true risk: (R, T, T + 1)."""
    grid = bounds.GRID
    k = np.arange(LENGTH + 1)
    table = np.full((len(risks), LENGTH, LENGTH + 1), -np.inf)
    for r, risk in enumerate(risks):
        win, lose = np.log(grid / (grid - risk)), np.log((grid - 1) / (grid - risk))
        for t in range(1, LENGTH + 1):
            logs = (t - k[: t + 1, None]) * win + k[: t + 1, None] * lose
            top = logs.max(axis=1)
            table[r, t - 1, : t + 1] = top + np.log(np.exp(logs - top[:, None]).mean(axis=1))
    return table


@njit(cache=True)
def follow(wrong, truth, at, wealth, ln_xis, grid, confidence):
    """Whether each bound fails for each adversary: ever (3, 3), and at the last time (3, 3)."""
    n_hypotheses, length = wrong.shape
    errors = np.zeros(n_hypotheses, np.int64)
    ever, last = np.zeros((3, 3)), np.zeros((3, 3))
    price = np.log(n_hypotheses)
    posterior = np.empty(n_hypotheses)
    for t in range(length):
        n = t + 1
        deepest, tops = 0, np.full(3, -np.inf)
        chosen = np.zeros(3)
        for h in range(n_hypotheses):
            errors[h] += wrong[h, t]
            if errors[h] < errors[deepest] or (errors[h] == errors[deepest] and truth[h] > truth[deepest]):
                deepest = h
            w = wealth[at[h], t, errors[h]]
            g = gap(errors[h] / n, truth[h]) * n
            tops[0], tops[1] = max(tops[0], w), max(tops[1], g)
            posterior[h] = w
        w, g = wealth[at[deepest], t, errors[deepest]], gap(errors[deepest] / n, truth[deepest]) * n
        chosen[0], chosen[1] = w, g
        now = np.zeros((3, 3))
        now[0, 0], now[1, 0], now[2, 0] = tops[0], tops[1] - ln_xis[t], tops[1]
        now[0, 1], now[1, 1], now[2, 1] = chosen[0], chosen[1] - ln_xis[t], chosen[1]
        for b in range(3):
            for a in range(2):
                now[b, a] = 1.0 if now[b, a] > price + confidence + 1e-9 else 0.0
        # Q ∝ P·wealth, the posterior that makes the proof of log-wealth an equality but for Jensen's inequality.
        top = posterior.max()
        total, entropy, seen, true = 0.0, 0.0, 0.0, 0.0
        for h in range(n_hypotheses):
            q = np.exp(posterior[h] - top)
            total += q
            entropy += q * (posterior[h] - top)
            seen += q * errors[h] / n
            true += q * truth[h]
        seen, true = seen / total, true / total
        divergence = max(entropy / total - np.log(total) + np.log(n_hypotheses), 0.0)
        logs = n * ((1 - seen) * np.log(grid) + seen * np.log(grid - 1) - np.log(grid - true))
        most = logs.max()
        mixed = most + np.log(np.exp(logs - most).mean())
        now[0, 2] = 1.0 if mixed > divergence + confidence + 1e-9 else 0.0
        now[1, 2] = 1.0 if n * gap(seen, true) > divergence + ln_xis[t] + confidence + 1e-9 else 0.0
        ever = np.maximum(ever, now)
        last = now
    return ever, last


@njit(cache=True)
def gap(p, q):
    """kl(p‖q) where p < q, 0 elsewhere."""
    if p >= q:
        return 0.0
    head = p * np.log(p / q) if p > 0 else 0.0
    return head + (1 - p) * np.log((1 - p) / (1 - q))
