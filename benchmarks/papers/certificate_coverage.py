"""Do certificates keep their promise? Bounds against the truth, on samples and posteriors that try to break them.

Small worlds whose law is known: every hypothesis (hard co-clustering with an answer in each cell) is listed,
so that the true loss, the prior and the divergence are exact. For each of many samples an adversary who knows
the truth picks a posterior; a bound fails when the true loss lies above it. It may fail in a share δ of the samples.

    python benchmarks/papers/certificate_coverage.py      # 2000 samples a world
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import log
from pathlib import Path

import numpy as np
from scipy.special import logsumexp, softmax
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[1]))

import common
from gingham.cells import Absolute
from gingham.certificates import (
    Assumption,
    bounds,
    certify,
    certify_density,
    certify_gain,
    held_out_part,
    whole_population,
)
from gingham.certificates.complexity import labels_by_type, partition_exact
from gingham.certificates.divergence import kl, ln_xi
from gingham.certificates.law import GibbsLaw
from gingham.certificates.split import certify_prior
from gingham.data import Alphabet, Mode, Sample
from gingham.posterior import Posterior
from gingham.structure import Structure

DELTA = 0.05
UPPER: dict[str, Callable[..., bounds.Bound]] = {
    "log-wealth": bounds.log_wealth,
    "type-kl": bounds.type_kl,
    "kl": bounds.maurer,
    "split-kl": bounds.split_kl,
    "bernstein": bounds.unexpected_bernstein,
    "theorem-1": bounds.classification,
    "theorem-7": bounds.theorem7,
}
LOWER = {"log-wealth lower": bounds.log_wealth_lower, "kl lower": bounds.maurer_lower}


@dataclass(frozen=True)
class World:
    """Everything that can happen, and everything that can be believed.

    ``p`` (Z,) the law of tuples; ``support`` (V,) the losses; ``losses`` (H, Z) which of them a hypothesis makes;
    ``ln_prior`` (H,).
    """

    name: str
    p: np.ndarray
    support: np.ndarray
    losses: np.ndarray
    ln_prior: np.ndarray

    @cached_property
    def indicators(self) -> np.ndarray:
        """Whether a hypothesis makes a loss on a tuple, (Z, H·V)."""
        hits = self.losses[:, None, :] == np.arange(len(self.support))[None, :, None]
        return np.ascontiguousarray(hits.reshape(-1, len(self.p)).T.astype(np.float64))

    @cached_property
    def law(self) -> np.ndarray:
        """True law of the loss of each hypothesis, (H, V)."""
        return self.sample_laws(self.p)

    def sample_laws(self, counts: np.ndarray) -> np.ndarray:
        """The same on a sample with these counts (Z,)."""
        return (counts @ self.indicators).reshape(-1, len(self.support)) / counts.sum()


def line(n_items: int = 6, n_clusters: int = 2, n_labels: int = 3, seed: int = 0) -> World:
    """d = 1, absolute loss."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(n_items))[:, None] * rng.dirichlet(np.ones(n_labels), n_items)
    losses, priors = [], []
    for where in product(range(n_clusters), repeat=n_items):
        price = sum(partition_exact(np.eye(n_clusters)[list(where)]).values())
        for answers in product(range(n_labels), repeat=n_clusters):
            predicted = np.array(answers)[list(where)]
            losses.append(np.abs(np.arange(n_labels)[None, :] - predicted[:, None]).ravel())
            priors.append(-price - sum(labels_by_type(np.array(answers), n_labels).values()))
    return World("d = 1", p.ravel(), np.arange(n_labels) / (n_labels - 1), np.array(losses), np.array(priors))


def board(shape: tuple[int, int] = (4, 3), seed: int = 1) -> World:
    """d = 2, 2 × 2 clusters, coins that are nearly fair: fits are mostly noise."""
    rng = np.random.default_rng(seed)
    heads = rng.uniform(0.4, 0.6, shape)
    p = np.stack([1 - heads, heads], axis=-1) / heads.size
    losses, priors = [], []
    for rows in product(range(2), repeat=shape[0]):
        for columns in product(range(2), repeat=shape[1]):
            price = sum(sum(partition_exact(np.eye(2)[list(part)]).values()) for part in (rows, columns))
            for answers in product(range(2), repeat=4):
                table = np.array(answers).reshape(2, 2)[np.ix_(rows, columns)]
                losses.append((np.arange(2)[None, None, :] != table[..., None]).astype(int).ravel())
                priors.append(-price - sum(labels_by_type(np.array(answers), 2).values()))
    return World("d = 2", p.ravel(), np.array([0.0, 1.0]), np.array(losses), np.array(priors))


def graph(n_nodes: int = 5, seed: int = 2) -> World:
    """One mode met twice, two clusters, three different cells, edges present or not."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n_nodes) for j in range(i)]
    edge = rng.uniform(0.3, 0.7, len(pairs))
    p = np.stack([1 - edge, edge], axis=-1) / len(pairs)
    losses, priors = [], []
    for where in product(range(2), repeat=n_nodes):
        price = sum(partition_exact(np.eye(2)[list(where)]).values()) + log(2)
        for a, b, c in product(range(2), repeat=3):
            table = np.array([[a, b], [b, c]])
            predicted = np.array([table[where[i], where[j]] for i, j in pairs])
            losses.append((np.arange(2)[None, :] != predicted[:, None]).astype(int).ravel())
            priors.append(-price - sum(labels_by_type(np.array([a, b, c]), 2).values()))
    return World("graph", p.ravel(), np.array([0.0, 1.0]), np.array(losses), np.array(priors))


def coins(n: int = 10) -> World:
    """Fair coins, one answer each, all 2^n answers alike: the world in which paying less than KL shows at once."""
    losses = []
    for answers in product(range(2), repeat=n):
        losses.append((np.arange(2)[None, :] != np.array(answers)[:, None]).astype(int).ravel())
    p = np.full(2 * n, 1 / (2 * n))
    return World("coins", p, np.array([0.0, 1.0]), np.array(losses), np.full(2**n, -n * log(2)))


def posteriors(world: World, laws: np.ndarray, n: int, upper: bool = True) -> dict[str, np.ndarray]:
    """What an adversary who knows the truth believes, (H,) each."""
    means, true = laws @ world.support, world.law @ world.support
    wrong = means < true if upper else means > true
    # φ(h) = N kl(L̂‖L) on the harmful side: Q ∝ P e^φ maximises E φ − KL(Q‖P), the heart of every proof.
    phi = np.where(wrong, n * kl(np.clip(means, 0, 1), np.clip(true, 1e-12, 1 - 1e-12)), 0.0)
    one_hot = np.eye(len(means))
    deepest = one_hot[np.argmin(means if upper else -means)]
    return {
        "deepest fit": deepest,
        "best of many": one_hot[np.argmax(phi + world.ln_prior)],
        "tilted": softmax(world.ln_prior + phi),
        "tilted twice": softmax(world.ln_prior + 2 * phi),
    }


def divergence(posterior: np.ndarray, ln_prior: np.ndarray) -> float:
    """KL(Q‖P), exactly."""
    used = posterior > 0
    return max(0.0, float(posterior[used] @ (np.log(posterior[used]) - ln_prior[used])))


def run(
    world: World,
    n: int,
    n_samples: int,
    seed: int,
    functions: dict[str, Callable[..., bounds.Bound]],
    upper: bool = True,
) -> dict[str, dict[str, int]]:
    """How often each bound fails against each adversary, in ``n_samples`` samples of ``n`` tuples."""
    rng = np.random.default_rng(seed)
    assert logsumexp(world.ln_prior) < 1e-9, "a prior sums to at most one"
    failures = {name: {} for name in functions}
    for _ in range(n_samples):
        laws = world.sample_laws(rng.multinomial(n, world.p))
        for adversary, posterior in posteriors(world, laws, n, upper).items():
            law = GibbsLaw.of(world.support, posterior @ laws, world.support)
            true = float(posterior @ world.law @ world.support)
            price = divergence(posterior, world.ln_prior)
            for name, function in functions.items():
                value = function(law, price, n, DELTA).value
                failed = true > value + 1e-12 if upper else true < value - 1e-12
                failures[name][adversary] = failures[name].get(adversary, 0) + int(failed)
    return failures


def broken(law: GibbsLaw, complexity: float, n: int, delta: float) -> bounds.Bound:
    """A bound with δ forgotten and half the divergence: the harness must catch it."""
    return bounds.maurer(law, complexity / 2, n, 1 - 1e-9)


def allowed(n_samples: int, delta: float = DELTA) -> int:
    """The number of failures that a bound failing with probability δ exceeds once in a thousand."""
    return int(binom.ppf(0.999, n_samples, delta))


def anytime(n_samples: int, n: int, p: float, seed: int) -> dict[str, float]:
    """One fixed predictor, a stream of n losses: the share of streams on which the bound is ever below the truth.

    The stopping time is the worst one. Log-wealth promises δ for all times together; the kl bounds promise δ
    for one time fixed beforehand (Chernoff's needs no constant there, for a single predictor).
    """
    rng = np.random.default_rng(seed)
    grid, times = bounds.GRID, np.arange(1, n + 1)
    ln_xis = np.array([ln_xi(t) for t in range(1, n + 1)])
    ever = {"log-wealth": 0, "kl": 0, "kl of one predictor (Chernoff)": 0, "kl at the last time only": 0}
    for _ in range(n_samples):
        wins = np.cumsum(rng.random(n) < p)
        share = wins / times
        # The bound fails iff the average over the grid of the wealth Π (ν − X)/(ν − L) exceeds 1/δ.
        wealth = wins[:, None] * np.log((grid - 1) / (grid - p)) + (times - wins)[:, None] * np.log(grid / (grid - p))
        ever["log-wealth"] += int((logsumexp(wealth, axis=1) > log(len(grid) / DELTA)).any())
        gap = np.where(share < p, times * kl(share, p), 0.0)
        ever["kl"] += int((gap > ln_xis - log(DELTA)).any())
        ever["kl of one predictor (Chernoff)"] += int((gap > -log(DELTA)).any())
        ever["kl at the last time only"] += int(gap[-1] > ln_xis[-1] - log(DELTA))
    return {name: count / n_samples for name, count in ever.items()}


def grid_truth(seed: int, shape: tuple[int, int] = (12, 10)) -> tuple[np.ndarray, Sample]:
    """A weak 2 × 2 pattern of three labels with known law p (rows, columns, labels), and the law as a sample."""
    rng = np.random.default_rng(seed)
    same = (np.arange(shape[0])[:, None] < 6) == (np.arange(shape[1])[None, :] < 4)
    labels = np.where(same[..., None], [0.2, 0.35, 0.45], [0.4, 0.35, 0.25])
    p = labels * rng.dirichlet(np.full(shape[0] * shape[1], 3.0)).reshape(*shape, 1)
    codes = np.unravel_index(np.arange(p.size), p.shape)
    return p, sample_from(codes, np.maximum(p.ravel(), 1e-300), shape)


LETTERS = Alphabet.of((0, 1, 2), given=True)


def sample_from(codes: tuple[np.ndarray, ...], weights: np.ndarray | None, shape: tuple[int, int]) -> Sample:
    """Rows (row, column, label) in the layout of the library."""
    modes = [Mode(name, np.arange(size)) for name, size in zip(("row", "column"), shape)]
    return Sample.of([codes[0], codes[1]], codes[2], weights, modes=modes, alphabet=LETTERS)


def greedy(sample: Sample, rng: np.random.Generator, soft: bool) -> Posterior:
    """A deep fit: rows and columns by their mean label in four clusters each, then three sweeps of hard moves."""
    cell = Absolute(LETTERS)
    counts = np.zeros((*sample.shape, 3))
    np.add.at(counts, (*sample.codes, sample.label_codes), 1.0)
    where = []
    for axis in (0, 1):
        total = counts.sum(axis=1 - axis)
        mean = total @ np.arange(3) / np.maximum(total.sum(axis=1), 1)
        where.append(np.argsort(np.argsort(mean + 1e-9 * rng.random(len(mean)))) * 4 // len(mean))
    for _ in range(3):
        for axis in (0, 1):
            other = np.eye(4)[where[1 - axis]]
            histogram = np.einsum("ijy,jc->icy" if axis == 0 else "jiy,jc->icy", counts, other)
            mine = np.eye(4)[where[axis]]
            answers = cell.answer(np.einsum("ir,icy->rcy", mine, histogram))
            cost = np.einsum("icy,rcy->ir", histogram, cell.coef(answers))
            where[axis] = cost.argmin(axis=1)
    firm = 0.85 if soft else 1.0
    assign = tuple(firm * np.eye(4)[w] + (1 - firm) / 4 for w in where)
    blank = Posterior(Structure.grid(sample.modes), (cell,), assign, (np.zeros(0),))
    return blank.refit(sample)


def models(n_samples: int, seed: int, n: int = 150) -> dict[str, object]:
    """The doors of the library on deep fits: certify with every bound, gain, split prior, holdout, populations."""
    rng = np.random.default_rng(seed)
    p, law = grid_truth(seed)
    shape = p.shape[:2]
    statement = Assumption("Labels are among 0, 1, 2.", "given")
    failures: dict[str, int] = {}

    def note(name: str, truth: float, value: float) -> None:
        failures[name] = failures.get(name, 0) + int(truth > value + 1e-12)

    constants = [float(np.abs(np.arange(3) - r) @ p.sum(axis=(0, 1))) for r in range(3)]
    for i in range(n_samples):
        codes = np.unravel_index(rng.choice(p.size, n, p=p.ravel() / p.sum()), p.shape)
        sample = sample_from(codes, None, shape)
        posterior = greedy(sample, rng, soft=bool(i % 2))
        true = posterior.gibbs_loss(law)
        for certificate in certify(posterior, sample).compare():
            note(f"certify {certificate.bound}", true, certificate.value)
        both = certify(posterior, sample, lower=True)
        note("certify lower", -true, -both.lower)
        note("gain over every constant", true - min(constants), certify_gain(posterior, sample).value)
        half = n // 2
        first, second = sample.take(np.arange(half)), sample.take(np.arange(half, n))
        prior = greedy(first, rng, soft=True)
        for excess in (False, True):
            split = certify_prior(prior, second, DELTA, statement, excess)
            note("split excess" if excess else "split prior", split.posterior.gibbs_loss(law), split.value)
        for predictor in ("median", "mean"):
            held = certify(prior, second, bound="holdout", predictor=predictor)
            guess = prior.predict(law.codes, predictor)
            truth = float(law.weights @ np.abs(guess - law.labels) / law.weights.sum())
            note(f"holdout {predictor}", truth, held.value)
        # A finite population: the labels of 400 cells are drawn once, half of them are observed.
        drawn = np.unravel_index(rng.choice(p.size, 400, p=p.ravel() / p.sum()), p.shape)
        everything = sample_from(drawn, None, shape)
        order = rng.permutation(400)
        observed = everything.take(order[:200])
        posterior = greedy(observed, rng, soft=bool(i % 2))
        certificate = certify(posterior, observed)
        note("population mean", posterior.gibbs_loss(everything), whole_population(certificate, 400).value)
        rest = posterior.gibbs_loss(everything.take(order[200:]))
        note("held-out part", rest, held_out_part(certificate, 400).value)
    return {"n_tuples": n, "failures": failures}


def densities(n_samples: int, seed: int, n: int = 400) -> dict[str, object]:
    """The density certificate on co-occurrences drawn from a law that is no checkerboard."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(48, 0.7))
    codes = [c.ravel() for c in np.unravel_index(np.arange(48), (8, 6))]
    failures = 0
    for i in range(n_samples):
        X = np.column_stack(np.unravel_index(rng.choice(48, n, p=p), (8, 6)))
        table = np.zeros((8, 6))
        np.add.at(table, tuple(X.T), 1.0)
        firm = 0.8 if i % 2 else 1.0
        assigns = []
        for side in (table, table.T):  # rows that look alike on the sample: two clusters by their main direction
            profile = side / np.maximum(side.sum(axis=1, keepdims=True), 1)
            direction = np.linalg.svd(profile - profile.mean(axis=0))[2][0]
            clusters = ((profile - profile.mean(axis=0)) @ direction > 0).astype(int)
            assigns.append(firm * np.eye(2)[clusters] + (1 - firm) / 2)
        certificate, density = certify_density(assigns, X)
        failures += int(float(-(p @ density.log_density(codes))) > certificate.value)
    return {"n_tuples": n, "failures": {"density": failures}}


def main() -> None:
    parts = ("worlds", "models", "densities", "anytime")

    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", choices=parts, default=None)
        parser.add_argument("--samples", type=int, default=2000)
        parser.add_argument("--add", action="store_true", help="add to the counts of an earlier run with another seed")

    args = common.arguments(
        __doc__.splitlines()[0],
        name="certificate_coverage",
        options=options,
    )
    n_samples = 100 if args.quick else args.samples
    settings = {"delta": DELTA, "n_samples": n_samples, "allowed_failures": allowed(n_samples)}
    results = json.loads(args.out.read_text())["results"] if args.only and args.out.exists() else {}
    for part in parts if args.only is None else (args.only,):
        if part == "worlds":
            for world, n in ((line(), 60), (board(), 60), (graph(), 60), (coins(), 10)):
                results[world.name] = {
                    "n_tuples": n,
                    "n_hypotheses": len(world.ln_prior),
                    "upper": run(world, n, n_samples, args.seed, UPPER),
                    "lower": run(world, n, n_samples, args.seed + 1, LOWER, upper=False),
                    "broken (must fail)": run(world, n, n_samples, args.seed, {"broken": broken})["broken"],
                }
                common.write(args, settings, results)
        elif part in ("models", "densities"):
            fresh = (models if part == "models" else densities)(n_samples, args.seed)
            earlier = results.get(part) if args.add else None
            if earlier:  # runs with other seeds
                fresh["failures"] = {k: v + earlier["failures"][k] for k, v in fresh["failures"].items()}
            fresh["n_samples"] = n_samples + (earlier["n_samples"] if earlier else 0)
            fresh["allowed_failures"] = allowed(fresh["n_samples"])
            results[part] = fresh
        else:
            results[part] = {f"p = {p}": anytime(n_samples, 2000, p, args.seed) for p in (0.1, 0.5)}
        common.write(args, settings, results)
    for name, result in results.items():
        counts = result.get("upper", result.get("failures", result))
        print(name, "worst:", max(max(c.values()) if isinstance(c, dict) else c for c in counts.values()))


if __name__ == "__main__":
    main()
