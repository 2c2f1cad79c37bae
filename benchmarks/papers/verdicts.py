"""Small computations behind the verdicts of the papers' pages.

P0: one mode and the zero-one loss from random starts, beside the enumerated optimum; equation (31) where it fails. P1:
one iteration of Algorithm 1 beside projections to the end, annealing β upwards with noise beside a constant β and a
falling one, all on latencies, and the solvers of `GraphClustering`, whose random starts have random answers, too. P2:
latent Dirichlet allocation, written independently, beside the same model as Bayesian co-clustering, and the mixed-
membership blockmodel likewise. P4: the mean error of empirical information beside the bound (1), and ε of its theorems
on a table of usual size.
"""

from __future__ import annotations

import sys
from itertools import product
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp, softmax, xlogy
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from latencies import similarities
from statements import theorem11_joint

import gingham as gg
from common import arguments, load, write
from gingham.cells import ZeroOne
from gingham.certificates.papers import p4_theorem1, p4_theorem2
from gingham.core.problem import Problem
from gingham.data import Alphabet, Sample
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import random
from gingham.models.graph import NodeWise

FIGURES = {
    "end points of eight starts": "one mode/different ends",
    "(31): divergence over bound": "equation (31)/divergence over bound",
    "LDA: gap of the bounds": "latent Dirichlet allocation/gap",
    "blockmodel: gap of the bounds": "mixed-membership blockmodel/gap",
    "P4 (1): error over bound": "empirical information/error over bound",
}
STARTS = 8


def one_mode(seed: int, n_items: int = 30, n_rows: int = 600, n_labels: int = 5, m: int = 3, beta: float = 0.5) -> dict:
    """d = 1, zero-one loss: where random starts end, and the least F over all answers of the clusters."""
    rng = np.random.default_rng(seed)
    items = rng.integers(0, n_items, n_rows)
    likely = rng.integers(0, n_labels, n_items)
    labels = np.where(rng.random(n_rows) < 0.7, likely[items], rng.integers(0, n_labels, n_rows))
    alphabet = Alphabet.of(range(n_labels), given=True)
    sample = Sample.of([items], labels, alphabet=alphabet)
    problem = Problem.grid(sample, ZeroOne(alphabet), beta)
    solver = Projection(tol=1e-10, max_iter=2000)
    ends = sorted(
        float(solver.solve(problem, random(problem, [m], np.random.default_rng([seed, s]))).objective.total)
        for s in range(STARTS)
    )
    counts = np.zeros((sample.shape[0], n_labels))
    np.add.at(counts, (sample.codes[0], sample.label_codes), 1.0)
    cost = beta * (counts.sum(axis=1, keepdims=True) - counts)  # of each answer for each item
    least = np.inf
    for answers in product(range(n_labels), repeat=m):
        mass = np.full(m, 1.0 / m)
        for _ in range(1000):  # Blahut and Arimoto: convex for fixed answers
            mass = np.maximum(softmax(np.log(mass) - cost[:, answers], axis=1).mean(axis=0), 1e-300)
        least = min(least, float(-logsumexp(np.log(mass) - cost[:, answers], axis=1).sum()))
    different = np.unique(np.round(ends, 2))
    at_best = int(np.sum(np.asarray(ends) < least * (1 + 1e-6)))
    return {"ends": ends, "different ends": len(different), "least": least, "starts at the least": at_best,
            "best": ends[0], "worst": ends[-1]}  # fmt: skip


def equation_31() -> dict[str, float]:
    """N = 1, one cluster per mode, x₁ = x₂ with P(x = 1) = .01: the divergence of the joint law, and its bound."""
    chance, delta = 0.01, 0.0099
    bound = theorem11_joint([np.ones((2, 1)), np.ones((2, 1))], 1, delta).value
    divergence = 2 * log(1 / chance)  # the one draw is (1, 1): both empirical margins are certain of it
    return {"divergence": divergence, "bound": bound, "probability": chance, "delta": delta,
            "divergence over bound": divergence / bound}  # fmt: skip


def empirical_information(p: float = 0.1, drawn: int = 100) -> dict[str, float]:
    """T = X with P(X = 1) = p: E|I − Î| from m′ draws, exactly, and P4's bound ln(1 + (k|X| − 1)/m′)."""
    ones = np.arange(drawn + 1)
    share = ones / drawn
    estimates = -xlogy(share, share) - xlogy(1 - share, 1 - share)
    truth = float(-xlogy(p, p) - xlogy(1 - p, 1 - p))
    weights = stats.binom.pmf(ones, drawn, p)
    error = float(weights @ np.abs(estimates - truth))
    bound = log(1 + (2 * 2 - 1) / drawn)
    return {"mean error": error, "bias": float(abs(weights @ estimates - truth)), "bound": bound,
            "error over bound": error / bound}  # fmt: skip


def weak_bounds(delta: float = 0.05) -> dict[str, float]:
    """ε of P4's Theorems 1 and 2 with 1,200 features of five values and six clusters, and the most information."""
    one, two = (theorem(1200, 6, 5, delta).value for theorem in (p4_theorem1, p4_theorem2))
    return {"theorem 1": one, "theorem 2": two, "most": log(6)}


def lda(counts: np.ndarray, labels: np.ndarray, alpha: float, pseudo: float, sweeps: int) -> float:
    """Variational inference of Blei, Ng and Jordan (2003): the evidence bound without the prior of the topics.

    ``counts`` has the words of each document, shape (documents, words); ``labels`` its topic in the start.
    """
    share = counts.sum(axis=0) / counts.sum()

    def topics(words: np.ndarray) -> np.ndarray:
        smoothed = words + pseudo * share
        return smoothed / smoothed.sum(axis=1, keepdims=True)

    k = int(labels.max()) + 1
    gamma = alpha + counts.sum(axis=1, keepdims=True) * np.eye(k)[labels]
    table = topics(np.eye(k)[labels].T @ counts)
    for _ in range(sweeps):
        expected = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
        phi = softmax(expected[:, None, :] + np.log(table.T)[None, :, :], axis=2)  # (documents, words, topics)
        gamma = alpha + np.einsum("dw,dwk->dk", counts, phi)
        table = topics(np.einsum("dw,dwk->kw", counts, phi))
    expected = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    bound = len(counts) * (gammaln(k * alpha) - k * gammaln(alpha)) + (alpha - 1) * expected.sum()
    bound -= (gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)).sum() + ((gamma - 1) * expected).sum()
    per_word = expected[:, None, :] + np.log(table.T)[None, :, :] - np.log(np.maximum(phi, 1e-300))
    return float(bound + np.einsum("dw,dwk,dwk->", counts, phi, per_word))


def as_allocation(seed: int, sweeps: int = 200) -> dict[str, float]:
    """Documents × tokens with n_clusters = (K, 1) and categorical cells, beside `lda` from the same start."""
    rng = np.random.default_rng(seed)
    k, n_words, alpha = 3, 12, 0.7
    topics = rng.dirichlet(0.3 * np.ones(n_words), k)
    shares = rng.dirichlet(np.ones(k), 40)
    counts = np.array([rng.multinomial(25, share @ topics) for share in shares])
    documents, words = np.nonzero(counts)
    documents, words = (np.repeat(side, counts[documents, words]) for side in (documents, words))
    labels = np.arange(40) % k
    model = gg.BayesianCoClustering(
        (k, 1), "categorical", concentration=alpha, alphabet=range(n_words), start=(labels, np.zeros(1, int)),
        max_iter=sweeps, random_state=0,
    )  # fmt: skip
    model.fit(np.column_stack([documents, np.zeros(len(words), int)]), words)
    prior = model.objective_.terms["prior of parameters"]
    ours, theirs = model.lower_bound_ - prior, lda(counts.astype(float), labels, alpha, 1.0, model.n_iter_)
    return {"co-clustering": ours, "allocation": theirs, "gap": abs(ours - theirs), "sweeps": model.n_iter_}


def blockmodel(edges: np.ndarray, shares: np.ndarray, alpha: float, pseudo: float, sweeps: int) -> dict[str, Any]:
    """Variational inference of Airoldi, Blei, Fienberg and Xing (2008), one table q(z, z') for each pair, stored.

    ``edges`` (n, n) are 0 and 1 (NaN for pairs that were not observed), ``shares`` the memberships of the start.
    """
    n, k = shares.shape
    seen = np.argwhere(np.isfinite(edges))
    y = edges[tuple(seen.T)]
    share = y.mean()

    def table(phi: np.ndarray) -> np.ndarray:
        ones, all_ = np.einsum("e,eij->ij", y, phi), phi.sum(axis=0)
        return np.clip((ones + pseudo * share) / (all_ + pseudo), 1e-12, 1 - 1e-12)

    counts = np.zeros((n, k))
    for at in seen.T:
        np.add.at(counts, at, shares[at])
    gamma = alpha + counts
    block = table(shares[seen[:, 0], :, None] * shares[seen[:, 1], None, :])
    for _ in range(sweeps):
        expected = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
        logs = y[:, None, None] * np.log(block) + (1 - y)[:, None, None] * np.log1p(-block)
        joint = expected[seen[:, 0], :, None] + expected[seen[:, 1], None, :] + logs
        phi = softmax(joint.reshape(len(y), -1), axis=1).reshape(-1, k, k)
        gamma = np.full((n, k), alpha)
        np.add.at(gamma, seen[:, 0], phi.sum(axis=2))
        np.add.at(gamma, seen[:, 1], phi.sum(axis=1))
        block = table(phi)
    expected = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
    bound = n * (gammaln(k * alpha) - k * gammaln(alpha)) + (alpha - 1) * expected.sum()
    bound -= (gammaln(gamma.sum(axis=1)) - gammaln(gamma).sum(axis=1)).sum() + ((gamma - 1) * expected).sum()
    logs = y[:, None, None] * np.log(block) + (1 - y)[:, None, None] * np.log1p(-block)
    joint = expected[seen[:, 0], :, None] + expected[seen[:, 1], None, :] + logs
    bound += (phi * (joint - np.log(np.maximum(phi, 1e-300)))).sum()
    return {"bound": float(bound), "gamma": gamma, "block": block}


def as_blockmodel(seed: int, sweeps: int = 100) -> dict[str, float]:
    """A graph with ``same_items=True``, beside `blockmodel` from the same start."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(0.3 * np.ones(3), 30)
    block = np.where(np.eye(3) > 0, 0.8, 0.1)
    graph = (rng.random((30, 30)) < shares @ block @ shares.T).astype(float)
    np.fill_diagonal(graph, np.nan)
    pairs = np.argwhere(np.isfinite(graph))
    labels = np.arange(30) % 3
    model = gg.BayesianCoClustering(
        3, "bernoulli", concentration=0.5, alphabet=(0, 1), start=(labels,), max_iter=sweeps, random_state=0
    )
    model.fit(pairs, graph[tuple(pairs.T)].astype(int), same_items=True)
    ours = model.lower_bound_ - model.objective_.terms["prior of parameters"]
    theirs = blockmodel(graph, np.eye(3)[labels], 0.5, 1.0, model.n_iter_)["bound"]
    return {"co-clustering": ours, "blockmodel": theirs, "gap": abs(ours - theirs), "sweeps": model.n_iter_}


class Latencies:
    """P1's trade-off F = β Σ_pairs E(w − g)² + n Ī on a weighted graph that is held densely."""

    def __init__(self, table: np.ndarray, beta: float):
        self.seen = np.isfinite(table).astype(float)
        np.fill_diagonal(self.seen, 0.0)
        self.weights = np.where(self.seen > 0, table, 0.0)
        self.beta, self.n = beta, len(table)
        self.n_pairs = self.seen.sum() / 2

    def sums(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        total, count = q.T @ self.weights @ q, q.T @ self.seen @ q
        return total, count, np.where(count > 1e-12, total / np.maximum(count, 1e-12), 0.0)

    def objective(self, q: np.ndarray) -> float:
        total, count, g = self.sums(q)
        loss = ((self.weights**2).sum() - 2 * (g * total).sum() + (g * g * count).sum()) / 2
        mean = np.maximum(q.mean(axis=0), 1e-300)
        return float(self.beta * loss + xlogy(q, q).sum() - (q @ np.log(mean)).sum())

    def projected(self, q: np.ndarray, beta: float) -> np.ndarray:
        """Algorithm 1: all nodes at once."""
        g = self.sums(q)[2]
        cost = -2 * (self.weights @ q) @ g.T + (self.seen @ q) @ (g * g).T
        return softmax(np.log(np.maximum(q.mean(axis=0), 1e-300)) - beta * cost, axis=1)

    def descended(self, q: np.ndarray, beta: float, sweeps: int, tol: float = 1e-6) -> np.ndarray:
        """The same node by node, which never rises."""
        q, before = q.copy(), np.inf
        mass = q.sum(axis=0)
        for _ in range(sweeps):
            g = self.sums(q)[2]
            for x in range(self.n):
                cost = -2 * (self.weights[x] @ q) @ g.T + (self.seen[x] @ q) @ (g * g).T
                new = softmax(np.log(np.maximum(mass, 1e-300)) - beta * cost)
                mass += new - q[x]
                q[x] = new
            now = self.objective(q)
            if abs(before - now) <= tol * abs(now):
                break
            before = now
        return q


def annealed(graph: Latencies, k: int, seed: int, starts: int, sweeps: int = 60) -> dict[str, float]:
    """F at the end at the same β, the best of some random starts, for each way there."""
    doublings = int(np.ceil(np.log2(graph.n_pairs * graph.beta)))
    found: dict[str, list[float]] = {}
    for start in range(starts):
        rng = np.random.default_rng([seed, start])
        first = rng.dirichlet(np.ones(k), graph.n)
        one = graph.projected(first, graph.beta)
        found.setdefault("one iteration", []).append(graph.objective(one))
        literal = first
        for _ in range(sweeps):
            literal = graph.projected(literal, graph.beta)
        found.setdefault("Algorithm 1, sixty iterations", []).append(graph.objective(literal))
        up = first
        for step in range(doublings):
            for _ in range(5):
                up = graph.projected(up, graph.beta * 2.0 ** (step - doublings))
            up = 0.99 * up + 0.01 * rng.dirichlet(np.ones(k), graph.n)
        found.setdefault("up, with noise", []).append(graph.objective(graph.descended(up, graph.beta, sweeps)))
        down = first
        for factor in np.geomspace(5.0, 1.0, 10):
            down = graph.descended(down, graph.beta * factor, 1)
        found.setdefault("down", []).append(graph.objective(graph.descended(down, graph.beta, sweeps)))
        constant = graph.descended(first, graph.beta, sweeps)
        found.setdefault("constant", []).append(graph.objective(constant))
    trivial = graph.objective(np.ones((graph.n, 1)))
    return {"one cluster": trivial, **{name: float(min(ends)) for name, ends in found.items()}}


SOLVERS = {
    "Algorithm 1 as printed": "parallel",
    "up, with noise": "annealed",
    "down": "nodewise",
    "constant": NodeWise(schedule=Constant()),
}


def by_estimator(weights: np.ndarray, k: int, beta: float, seed: int, starts: int) -> dict[str, float]:
    """F of the fitted model by solver, the best of some starts with random memberships and random answers."""
    found = {}
    for name, solver in SOLVERS.items():
        model = gg.GraphClustering(
            k, loss="quadratic", beta=beta, bounds=(0, 1), solver=solver, start="soft", n_init=starts, random_state=seed
        )
        found[name] = float(model.fit(weights, pairs="listed").objective_.total)
    return found


def latencies(args) -> dict:
    table = load(args.data, "planetlab490_rtt.npz")["median"].astype(float)
    table[~(table > 0)] = np.nan
    weights = similarities(table)
    settings = [(4, 1.0)] if args.quick else [(4, 1.0), (41, 16.0)]
    starts = 2 if args.quick else 5
    with threadpool_limits(1):  # the products are small: threads would only wait for one another
        return {
            f"{k} clusters, beta {b:g}": {
                **annealed(Latencies(weights, b), k, args.seed, starts),
                "GraphClustering": by_estimator(weights, k, b, args.seed, starts),
            }
            for k, b in settings
        }


def main() -> None:
    args = arguments(__doc__ or "", "papers_verdicts")
    results = {
        "one mode": one_mode(args.seed),
        "equation (31)": equation_31(),
        "empirical information": empirical_information(),
        "P4, six clusters": weak_bounds(),
        "latent Dirichlet allocation": as_allocation(args.seed, 20 if args.quick else 200),
        "mixed-membership blockmodel": as_blockmodel(args.seed),
    }
    print(results, flush=True)
    results["latencies"] = latencies(args)
    print(results["latencies"])
    write(args, {"starts": STARTS}, results)


if __name__ == "__main__":
    main()
