"""Small worlds in which every hypothesis is listed, so that any posterior whatever can be tried.

The true loss, the prior and the divergence are exact; posteriors need not be products of memberships. An adversary who
knows the truth tilts the prior towards the hypotheses that look better on the sample than they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import log

import numpy as np
from coverage_problems import DELTA, Tally
from scipy.special import logsumexp, softmax

from gingham.certificates import bounds
from gingham.certificates.bounds import LossDistribution
from gingham.certificates.divergence import kl
from gingham.certificates.prices import labels_by_type, partition_exact

UPPER: dict[str, Callable[..., bounds.Bound]] = {
    "log-wealth": bounds.log_wealth,
    "type-kl": bounds.type_kl,
    "kl": bounds.maurer,
    "split-kl": bounds.split_kl,
    "bernstein": bounds.unexpected_bernstein,
    "theorem-1": bounds.classification,
    "theorem-7": bounds.theorem7,
}
LOWER = {"log-wealth, lower": bounds.log_wealth_lower, "kl, lower": bounds.maurer_lower}


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


def line(n_items: int = 6, n_clusters: int = 2, n_labels: int = 3, seed: int | None = 0) -> World:
    """d = 1, absolute loss; without a seed all items and labels are alike."""
    p = np.full((n_items, n_labels), 1 / (n_items * n_labels))
    if seed is not None:
        rng = np.random.default_rng(seed)
        p = rng.dirichlet(np.ones(n_items))[:, None] * rng.dirichlet(np.ones(n_labels), n_items)
    losses, priors = [], []
    for where in product(range(n_clusters), repeat=n_items):
        price = sum(partition_exact(np.eye(n_clusters)[list(where)]).values())
        for answers in product(range(n_labels), repeat=n_clusters):
            predicted = np.array(answers)[list(where)]
            losses.append(np.abs(np.arange(n_labels)[None, :] - predicted[:, None]).ravel())
            priors.append(-price - sum(labels_by_type(np.array(answers), n_labels).values()))
    return World("listed, d = 1", p.ravel(), np.arange(n_labels) / (n_labels - 1), np.array(losses), np.array(priors))


def board(shape: tuple[int, int] = (4, 3), clusters: tuple[int, int] = (2, 2), seed: int | None = 1) -> World:
    """d = 2, coins that are nearly fair (quite fair without a seed): fits are mostly noise."""
    heads = np.full(shape, 0.5) if seed is None else np.random.default_rng(seed).uniform(0.4, 0.6, shape)
    p = np.stack([1 - heads, heads], axis=-1) / heads.size
    losses, priors = [], []
    for rows in product(range(clusters[0]), repeat=shape[0]):
        for columns in product(range(clusters[1]), repeat=shape[1]):
            parts = zip(clusters, (rows, columns))
            price = sum(sum(partition_exact(np.eye(m)[list(part)]).values()) for m, part in parts)
            for answers in product(range(2), repeat=clusters[0] * clusters[1]):
                table = np.array(answers).reshape(clusters)[np.ix_(rows, columns)]
                losses.append((np.arange(2)[None, None, :] != table[..., None]).astype(int).ravel())
                priors.append(-price - sum(labels_by_type(np.array(answers), 2).values()))
    return World("listed, d = 2", p.ravel(), np.array([0.0, 1.0]), np.array(losses), np.array(priors))


def graph(n_nodes: int = 5, seed: int | None = 2) -> World:
    """One mode met twice, two clusters, three different cells, edges present or not."""
    pairs = [(i, j) for i in range(n_nodes) for j in range(i)]
    edge = np.full(len(pairs), 0.5) if seed is None else np.random.default_rng(seed).uniform(0.3, 0.7, len(pairs))
    p = np.stack([1 - edge, edge], axis=-1) / len(pairs)
    losses, priors = [], []
    for where in product(range(2), repeat=n_nodes):
        price = sum(partition_exact(np.eye(2)[list(where)]).values()) + log(2)
        for a, b, c in product(range(2), repeat=3):
            table = np.array([[a, b], [b, c]])
            predicted = np.array([table[where[i], where[j]] for i, j in pairs])
            losses.append((np.arange(2)[None, :] != predicted[:, None]).astype(int).ravel())
            priors.append(-price - sum(labels_by_type(np.array([a, b, c]), 2).values()))
    return World("listed, graph", p.ravel(), np.array([0.0, 1.0]), np.array(losses), np.array(priors))


def coins(n: int = 10) -> World:
    """Fair coins, one answer each, all 2^n answers alike: the world in which paying less than KL shows at once."""
    losses = []
    for answers in product(range(2), repeat=n):
        losses.append((np.arange(2)[None, :] != np.array(answers)[:, None]).astype(int).ravel())
    p = np.full(2 * n, 1 / (2 * n))
    return World("listed, coins", p, np.array([0.0, 1.0]), np.array(losses), np.full(2**n, -n * log(2)))


def posteriors(world: World, laws: np.ndarray, n: int, upper: bool = True) -> dict[str, np.ndarray]:
    """What an adversary who knows the truth believes, (H,) each."""
    means, true = laws @ world.support, world.law @ world.support
    wrong = means < true if upper else means > true
    # φ(h) = N kl(L̂‖L) on the harmful side: Q ∝ P e^φ maximises E φ − KL(Q‖P), the heart of every proof.
    phi = np.where(wrong, n * kl(np.clip(means, 0, 1), np.clip(true, 1e-12, 1 - 1e-12)), 0.0)
    every = np.arange(len(means))
    return {
        "deepest fit": 1.0 * (every == np.argmin(means if upper else -means)),
        "best of many": 1.0 * (every == np.argmax(phi + world.ln_prior)),
        "tilted": softmax(world.ln_prior + phi),
        "tilted twice": softmax(world.ln_prior + 2 * phi),
    }


def divergence(posterior: np.ndarray, ln_prior: np.ndarray) -> float:
    """KL(Q‖P), exactly."""
    used = posterior > 0
    return max(0.0, float(posterior[used] @ (np.log(posterior[used]) - ln_prior[used])))


def broken(law: LossDistribution, complexity: float, n: int, delta: float) -> bounds.Bound:
    """A bound with δ forgotten and half the divergence."""
    return bounds.maurer(law, complexity / 2, n, 1 - 1e-12)


def distinct(world: World, name: str) -> World:
    """Hypotheses that make the same losses as one, with their prior probabilities added up."""
    losses, at = np.unique(world.losses.astype(np.int8), axis=0, return_inverse=True)
    ln_prior = np.full(len(losses), -np.inf)
    np.logaddexp.at(ln_prior, at.ravel(), world.ln_prior)
    return replace(world, name=name, losses=losses.astype(np.int64), ln_prior=ln_prior)


def worlds() -> dict[str, tuple[World, int]]:
    """Each world with its number of observations; fair ones, with few draws, show where too little is paid."""
    fair = (
        (distinct(line(14, 2, 2, None), "listed, d = 1, fair"), 10),
        (distinct(board((14, 2), (2, 1), None), "listed, d = 2, fair"), 10),
        (distinct(graph(8, None), "listed, graph, fair"), 10),
    )
    return {world.name: (world, n) for world, n in ((line(), 60), (board(), 60), (graph(), 60), *fair, (coins(), 10))}


def listed(world_and_n: tuple[World, int], n_samples: int, seed: int) -> Tally:
    """Every bound for all posteriors, from above and from below, against every adversary."""
    world, n = world_and_n
    rng = np.random.default_rng(seed)
    tally = Tally()
    if logsumexp(world.ln_prior) > 1e-9:
        raise ValueError("A prior sums to at most one.")
    for turn in range(n_samples):
        laws = world.sample_laws(rng.multinomial(n, world.p))
        for upper, functions in ((True, {**UPPER, "broken: kl, half the KL, no δ": broken}), (False, LOWER)):
            for at, (adversary, posterior) in enumerate(posteriors(world, laws, n, upper).items()):
                if at != turn % 4:
                    continue
                law = LossDistribution.of(world.support, posterior @ laws, world.support)
                true = float(posterior @ world.law @ world.support)
                price = divergence(posterior, world.ln_prior)
                for name, function in functions.items():
                    value = function(law, price, n, DELTA).value
                    tally.note(name, adversary, true > value + 1e-12 if upper else true < value - 1e-12)
    return tally
