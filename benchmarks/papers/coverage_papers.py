"""The papers' statements on problems of their own kind: quadratic losses, trees, features, weighted clusters."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import log

import numpy as np
import statements
from coverage_problems import ADVERSARIES, DELTA, Planted, Tally, adversary, best_of_many, deepest, planted, ups
from scipy.special import softmax, xlogy

from gingham.cells import Logarithmic, Quadratic
from gingham.certificates import bounds, certify, equation15, papers
from gingham.certificates.bounds import LossDistribution
from gingham.certificates.clusters import certify_clusters
from gingham.certificates.divergence import kl
from gingham.certificates.prices import partition_papers
from gingham.core.problem import Posterior, Tree
from gingham.core.tree import TreePosterior


def numbers(problem: Planted, n_samples: int, seed: int) -> Tally:
    """Answers from a continuum: the quadratic and the log loss, P0's appendix B and, on graphs, P1's (15)."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    letters = problem.cell.alphabet
    low, high = float(letters.numbers.min()), float(letters.numbers.max())
    everything = problem.sample(problem.law)
    cells = [Quadratic(alphabet=letters, bounds=(low, high))]
    if not problem.structure.repeats:
        cells.append(Logarithmic(letters))
    for turn in range(n_samples):
        counts = problem.draw(rng)
        sample = problem.sample(counts)
        name = ADVERSARIES[turn % 3]
        posterior = adversary(name, problem, counts, rng)
        for cell in cells:
            title = "quadratic" if isinstance(cell, Quadratic) else "log loss"
            model = replace(posterior, cells=(cell,)).refit(sample)
            certificate = certify(model, sample, population=problem.population)
            true = certificate.posterior.gibbs_loss(everything)
            for row in certificate.compare(together=False):
                tally.above(f"{title}, {row.bound}", name, true, row.value)
            if title == "quadratic":
                printed(problem, model, sample, everything, name, tally)
    return tally


def printed(problem: Planted, model: Posterior, sample: object, everything: object, name: str, tally: Tally) -> None:
    """The papers' own treatment of answers from a continuum; the losses are those of the answers as they are."""
    true, scale = model.gibbs_loss(everything), model.cells[0].range
    partitions = sum(sum(partition_papers(q).values()) for q in model.assign)
    stated = papers.quantised(
        model.gibbs_loss(sample) / scale, partitions, model.answers[0].size, problem.n_observations, DELTA
    )
    tally.above("appendix B", name, true, scale * stated.value)
    if problem.structure.repeats:
        tally.above("P1 eq. (15)", name, true, equation15(model, sample, DELTA).value)


def graphs() -> dict[str, Planted]:
    """Two more planted graphs for P1's bound: strong and three-valued."""
    return {
        "graph, strong": planted("graph, strong", (40,), 120, advantage=0.3, graph=True, seed=6),
        "graph, three weights": planted(
            "graph, three weights", (30,), 90, labels=(0, 1, 2), middle=0.3, advantage=0.1, graph=True, seed=7
        ),
    }


def tree_problems() -> dict[str, Planted]:
    """Patterns of three and four modes, predicted by trees that merge them in pairs."""
    return {
        "tree, 3 leaves": planted("tree, 3 leaves", (10, 10, 8), 60, seed=8),
        "tree, 4 leaves": planted("tree, 4 leaves", (7, 7, 6, 6), 60, seed=9),
        "tree, strong": planted("tree, strong", (6, 6, 6, 6), 80, advantage=0.3, seed=10),
    }


def trees(problem: Planted, n_samples: int, seed: int) -> Tally:
    """P0's (51), theorem-7 with the price of a tree, and the other bounds at the same tree."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    d = len(problem.factor)
    merges = [(0, 1, 2), (2, 3, 2)] if d == 4 else [(0, 1, 2)]
    tree, _ = Tree.build(problem.structure.modes, (2,) * d, merges)
    parity = np.eye(2)[[0, 1, 1, 0]]  # the product of two signs is a sign
    root = np.array([[1, 0], [0, 1]]) * (problem.cell.alphabet.size - 1)
    for turn in range(n_samples):
        counts = problem.draw(rng)
        sample = problem.sample(counts)
        name = ("deepest fit", "best of many")[turn % 2]
        if turn % 2:
            shares = ups(best_of_many(problem, counts, rng))
        else:
            shares = ups([0.98 * np.where(s == 0, 1, s) for s in deepest(problem, counts, rng)])
        assign = (*(np.column_stack([up, 1 - up]) for up in shares), *[parity] * len(merges))
        posterior = TreePosterior(tree, (problem.cell,), assign, (root,))
        true = problem.loss(posterior)
        for row in certify(posterior, sample, population=problem.population).compare(together=False):
            tally.above("eq. (51)" if row.bound == "theorem-7" else f"tree, {row.bound}", name, true, row.value)
    return tally


def feature_laws() -> dict[str, np.ndarray]:
    """Laws of binary features of seven objects, (2^7,): noise, two planted groups, rare features."""
    patterns = np.array(list(product((0, 1), repeat=7)))
    groups = (patterns[:, :4].sum(axis=1) % 4 == 0) & (patterns[:, 4:].sum(axis=1) % 3 == 0)
    rare = 0.15 ** patterns.sum(axis=1) * 0.85 ** (7 - patterns.sum(axis=1))
    return {
        "features, noise": np.full(128, 1 / 128),
        "features, two groups": np.where(groups, 20.0, 1.0) / np.where(groups, 20.0, 1.0).sum(),
        "features, rare": rare / rare.sum(),
    }


def features(law: np.ndarray, n_samples: int, seed: int) -> Tally:
    """P4's Lemma 1 and Theorems 1 and 2: clusters of seven objects by features drawn at random, all 64 listed."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    patterns = np.array(list(product((0, 1), repeat=7)))
    clusterings = patterns[patterns[:, 0] == 0]
    information = np.array([[_information(t, x) for x in patterns] for t in clusterings])  # (64, 128)
    unobserved = information @ law
    for n, name in ((60, "60 features"), (400_000, "400,000 features")):
        small, first, second = (
            papers.lemma1(n, 7, 2, DELTA),
            *(f(n, 2, 2, DELTA) for f in (papers.p4_theorem1, papers.p4_theorem2)),
        )
        no_union = log(2) * np.sqrt(log(2 / DELTA) / (2 * n)) / 4
        for _ in range(n_samples):
            observed = information @ rng.multinomial(n, law) / n
            gap = float(np.abs(observed - unobserved).max())
            regret = float(unobserved.max() - unobserved[int(np.argmax(observed))])
            tally.above("P4 Lemma 1", f"worst clustering, {name}", gap, small.value)
            tally.above("P4 Theorem 1", f"worst clustering, {name}", gap, first.value)
            tally.above("P4 Theorem 2", f"most informative clustering, {name}", regret, second.value)
            tally.above("broken: Lemma 1, no union, a quarter of ln k", f"worst clustering, {name}", gap, no_union)
    return tally


def _information(t: np.ndarray, x: np.ndarray) -> float:
    """I(T; X) of two binary labellings, nats."""
    table = np.zeros((2, 2))
    np.add.at(table, (t, x), 1 / len(t))
    return float(xlogy(table, table).sum() - sum(xlogy(m, m).sum() for m in (table.sum(0), table.sum(1))))


def cluster_laws() -> dict[str, np.ndarray]:
    """Laws (K, 4) of a cluster's membership in two views (neither, one, other, both)."""
    rng = np.random.default_rng(11)
    shares = {"clusters, even": rng.dirichlet(np.full(4, 5.0), 60), "clusters, rough": rng.dirichlet(np.ones(4), 60)}
    rare = np.column_stack([np.full(60, 0.85), *[np.full(60, 0.05)] * 3])
    many = {
        "clusters, even, very many": rng.dirichlet(np.full(4, 5.0), 2000),
        "clusters, rough, very many": rng.dirichlet(np.ones(4), 2000),
        "clusters, rare, very many": np.tile(rare[0], (2000, 1)),
    }
    return {**shares, "clusters, rare": rare, **many}


def clusters(law: np.ndarray, n_samples: int, seed: int) -> Tally:
    """P3's Theorem 1 with Proposition 1, and the certificate of weighted clusters, Q chosen to hurt.

    Forgetting KL(Q‖P) shows where there is much to choose from. Clusters that cover a twentieth cannot show it with 40
    objects: even if none was covered, the bound is 1 − e^{−(ln ξ(40) + ln 20)/40} = .12.
    """
    rng = np.random.default_rng(seed)
    tally = Tally()
    n = 400 if len(law) > 60 else 40
    prior = np.full(len(law), 1 / len(law))
    risk, cover = law[:, 1] + law[:, 2], law[:, 3]
    for _ in range(n_samples):
        drawn = rng.multinomial(n, law / law.sum(axis=1, keepdims=True)) / n
        seen_risk, seen_cover = drawn[:, 1] + drawn[:, 2], drawn[:, 3]
        surprise = np.where(seen_cover < cover, n * kl(seen_cover, cover), 0.0)
        doubt = np.where(seen_risk < risk, n * kl(seen_risk, risk), 0.0)
        for name, power, contradiction in (
            ("best of many", *(1.0 * (np.arange(len(law)) == np.argmax(phi)) for phi in (surprise, doubt))),
            ("tilted", softmax(surprise), softmax(doubt)),
        ):
            members = (np.arange(n)[:, None] < np.rint(seen_cover * n)).astype(float)
            stated = statements.explanatory_power(power, members, prior, DELTA)
            tally.above("P3 Theorem 1 with Proposition 1", name, float(power @ cover), stated.value)
            naive = bounds.maurer(_coin(float(power @ seen_cover)), 0.0, n, DELTA).value
            tally.above("broken: P3 Theorem 1 without KL", name, float(power @ cover), naive)
            for bound in ("log-wealth", "theorem-1"):
                found = certify_clusters(contradiction, prior, seen_risk, seen_cover, prior, n, DELTA, bound)
                wrong = float(contradiction @ risk) > found.risk.value + 1e-12
                outside = (
                    not found.coverage_lower - 1e-12 <= float(contradiction @ cover) <= found.coverage_upper + 1e-12
                )
                tally.note(f"weighted clusters, {bound}", name, wrong or outside)
    return tally


def _coin(mean: float) -> LossDistribution:
    return LossDistribution.of([0.0, 1.0], [1 - mean, mean], [0.0, 1.0])
