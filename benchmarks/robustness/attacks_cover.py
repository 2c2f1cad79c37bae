"""Attacks on who is covered and on what is given: each one is refused, or its certificate is true.

Every attack goes through a public function. Where a certificate is issued, it is compared with the truth over many
samples: with probability 1 − δ it must hold for *all* tuples of the source, items that nobody has seen included. Beside
it stands how often the same number is false when it is read as it used to be read ("for the items that the model
knows", or with labels read off the data): that reading is no longer offered.

    python benchmarks/robustness/attacks_cover.py --samples 1000
    python benchmarks/robustness/attacks_cover.py --only "zipf, graph"
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "papers")]
from coverage_problems import DELTA, allowed  # noqa: E402

import gingham as gg  # noqa: E402
from common import arguments, previous, write  # noqa: E402
from gingham.cells import Quadratic, TableLoss, ZeroOne  # noqa: E402
from gingham.certificates import Assumption, bounds, certify  # noqa: E402
from gingham.certificates.evidence import collect  # noqa: E402
from gingham.certificates.split import certify_prior  # noqa: E402
from gingham.core.problem import (  # noqa: E402
    Posterior,
    Structure,
    Tree,
)
from gingham.core.tree import TreePosterior  # noqa: E402
from gingham.data import Alphabet, Mode, Sample  # noqa: E402

FIGURES = {"attacks": "summary/attacks", "refused or true": "summary/refused or true", "most failures": "summary/worst"}
COIN = Alphabet.of((0, 1), given=True)
STATED = Assumption("Labels are among 0, 1.", "given")


@dataclass(frozen=True)
class Source:
    """Items of very different popularity: those with half of the tuples are noisy, all the rare ones are clean.

    ``p`` (n,) how often each item is drawn; ``high`` (n,) the chance that its label is 1. A sample sees the popular
    items and a few of the rare ones; what it sees of the rare ones is clean, and nearly all of it comes once. Items
    that are known at the end are mostly the noisy ones.
    """

    p: np.ndarray
    high: np.ndarray

    @classmethod
    def zipf(cls, n_items: int, exponent: float) -> Source:
        p = (1.0 + np.arange(n_items)) ** -exponent
        p = p / p.sum()
        return cls(p, np.where(np.cumsum(p) <= 0.5 + p[0] / 2, 0.5, 1.0))

    @cached_property
    def edges(self) -> np.ndarray:
        return np.cumsum(self.p)

    @cached_property
    def ones(self) -> float:
        """The share of labels that are 1."""
        return float(self.p @ self.high)

    def draw(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        items = np.searchsorted(self.edges, rng.random(n)).clip(max=len(self.p) - 1)
        return items, (rng.random(n) < self.high[items]).astype(int)

    def losses(self, seen: np.ndarray, says_one: np.ndarray) -> tuple[float, float]:
        """Zero-one loss for all tuples, and for those of seen items; ``says_one`` has the unseen item's answer last."""
        *answers, other = says_one
        p, high, answers = self.p[seen], self.high[seen], np.array(answers)
        wrong = high * (1 - answers) + (1 - high) * answers
        unseen = self.ones * (1 - other) + (1 - self.ones) * other - p @ (high * (1 - other) + (1 - high) * other)
        return float(p @ wrong + unseen), float(p @ wrong / p.sum())


SOURCES = {
    "one item with half of the tuples": Source(
        np.append(0.5, np.full(100_000, 5e-6)), np.append(0.5, np.full(100_000, 1.0))
    ),
    "Zipf 1": Source.zipf(100_000, 1.0),
    "Zipf 1.2": Source.zipf(100_000, 1.2),
}


def deepest(items: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seen items, and the cluster of each: the label it showed most often."""
    seen, at = np.unique(items, return_inverse=True)
    votes = np.bincount(at, 2.0 * labels - 1)
    return seen, np.eye(2)[(votes > 0).astype(int)]


def one_cluster(items: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All seen items in the cluster that answers 1: next to nothing is chosen, and next to nothing paid."""
    seen = np.unique(items)
    return seen, np.tile([0.0, 1.0], (len(seen), 1))


Fit = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
FITS: dict[str, Fit] = {"one cluster": one_cluster, "deepest fit": deepest}


def grid_of(seen: np.ndarray, q: np.ndarray, other: str = "all") -> Posterior:
    """Clusters of the seen items that answer with their own label; a second mode of one item."""
    modes = (Mode("item", seen), Mode(other, np.array([0])))
    answers = np.arange(q.shape[1])[:, None] % 2
    return Posterior(Structure.grid(modes), (ZeroOne(COIN),), (q, np.ones((1, 1))), (answers,))


def truths(source: Source, *posteriors: Posterior, rule: str = "gibbs") -> tuple[float, float]:
    """The loss for all tuples and for known items, of posteriors on the same items, averaged."""
    seen = posteriors[0].structure.modes[0].items
    rest = [np.zeros(len(seen) + 1, np.int32)] * (len(posteriors[0].structure.columns()) - 1)
    codes = [np.append(np.arange(len(seen)), -1), *rest]
    says_one = np.mean([posterior.predict_distribution(codes)[:, 1] for posterior in posteriors], axis=0)
    return source.losses(seen, says_one if rule == "gibbs" else (says_one > 0.5).astype(float))


@dataclass
class Count:
    """Failures of the certificate for all tuples, and of the same number read as it used to be."""

    samples: int = 0
    failures: int = 0
    old_failures: int = 0

    def note(self, value: float, true: float, old: float | None = None) -> None:
        self.samples += 1
        self.failures += true > value + 1e-12
        self.old_failures += old is not None and old > value + 1e-12

    def result(self, reading: str) -> dict[str, Any]:
        rate = self.failures / self.samples
        found = {"outcome": "true", "samples": self.samples, "failures": self.failures, "rate": rate}
        if reading:
            found["read as it was"] = {"reading": reading, "rate": self.old_failures / self.samples}
        return found


def refused(call: Callable[[], Any]) -> dict[str, Any]:
    """The sentence that the library answers with; an attack that gets a certificate has succeeded."""
    try:
        found = call()
    except gg.GinghamError as error:
        return {"outcome": "refused", "sentence": str(error)}
    return {"outcome": "ACCEPTED", "value": getattr(found, "value", str(found))}


KNOWN = "for the items that the model knows"


Row = tuple[float, float, float]  # a certificate, the truth for all tuples, the truth for known items


def over_sources(one: Callable[..., list[Row]]) -> Callable[..., dict[str, Any]]:
    """An attack on every source with every fit."""

    def attack(n_samples: int, seed: int, n: int = 800) -> dict[str, Any]:
        found = {}
        for name, source in SOURCES.items():
            for title, fit in FITS.items():
                rng, count = np.random.default_rng(seed), Count()
                for _ in range(n_samples):
                    for row in one(fit, source, *source.draw(rng, n), rng):
                        count.note(*row)
                found[f"{name}, {title}"] = count.result(KNOWN)
        return found

    return attack


def zipf_in_sample(fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: object) -> list[Row]:
    """Clusters of items that were read off the data."""
    posterior = grid_of(*fit(items, labels))
    value = certify(posterior, np.column_stack([items, 0 * items]), labels).value
    return [(value, *truths(source, posterior))]


def zipf_gain(fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: object) -> list[Row]:
    """The gain over the best constant."""
    seen, q = fit(items, labels)
    posterior = grid_of(seen, q)
    value = certify(posterior, np.column_stack([items, 0 * items]), labels, bound="gain").value
    constants = [source.losses(seen, np.full(len(seen) + 1, answer)) for answer in (0.0, 1.0)]
    gains = np.array(truths(source, posterior)) - np.min(constants, axis=0)
    return [(value, float(gains[0]), float(gains[1]))]


def zipf_committee(fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: object) -> list[Row]:
    """Two members: the fit, and one softer."""
    seen, q = fit(items, labels)
    members = [grid_of(seen, q), grid_of(seen, 0.9 * q + 0.05)]
    committee = SimpleNamespace(members_=[SimpleNamespace(posterior_=member) for member in members])
    value = certify(committee, np.column_stack([items, 0 * items]), labels).value
    return [(value, *truths(source, *members))]


def zipf_two_modes(
    fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> list[Row]:
    """Items of both modes come from such a source; the second mode says nothing of the label."""
    other, _ = source.draw(rng, len(items))
    seen, q = fit(items, labels)
    others = np.unique(other)
    modes = (Mode("item", seen), Mode("other", others))
    second = np.eye(2)[rng.integers(0, 2, len(others)) if fit is deepest else 0 * others]
    posterior = Posterior(Structure.grid(modes), (ZeroOne(COIN),), (q, second), (np.array([[0, 0], [1, 1]]),))
    value = certify(posterior, np.column_stack([items, other]), labels).value
    return [(value, *truths(source, posterior))]  # the same whatever the second item


def zipf_tree(fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: object) -> list[Row]:
    """A tree over an item and two modes that say nothing."""
    seen, q = fit(items, labels)
    modes = [Mode("item", seen), Mode("b", np.array([0])), Mode("c", np.array([0]))]
    tree, _ = Tree.build(modes, (2, 1, 1), [(0, 1, 2)])
    tables = (q, np.ones((1, 1)), np.ones((1, 1)), np.eye(2))
    posterior = TreePosterior(tree, (ZeroOne(COIN),), tables, (np.array([[0, 1]]),))
    value = certify(posterior, np.column_stack([items, 0 * items, 0 * items]), labels).value
    return [(value, *truths(source, posterior))]


def zipf_split(fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: object) -> list[Row]:
    """The first half is fitted, the second half, with items that the first has not seen, certifies."""
    half = len(items) // 2
    seen, q = fit(items[:half], labels[:half])
    prior = grid_of(seen, 0.98 * q + 0.01)
    X, y = np.column_stack([items[half:], 0 * items[half:]]), labels[half:]
    found = []
    for predictor in ("gibbs", "mode"):
        value = certify(prior, X, y, bound="holdout", predictor=predictor).value
        found.append((value, *truths(source, prior, rule=predictor)))
    sample = Sample.of([X[:, 0], X[:, 1]], y, modes=prior.structure.modes, alphabet=COIN, unseen=True)
    certificate = certify_prior(prior, sample, DELTA, STATED)
    found.append((certificate.value, *truths(source, certificate.posterior)))
    return found


def zipf_stream(fit: Fit, source: Source, items: np.ndarray, labels: np.ndarray, rng: object) -> list[Row]:
    """One looks at growing prefixes, each with a fit of its own, and stops where it hurts most."""
    rows = []
    for n in (50, 200, len(items)):
        posterior = grid_of(*fit(items[:n], labels[:n]))
        value = certify(posterior, np.column_stack([items[:n], 0 * items[:n]]), labels[:n], anytime=True).value
        rows.append((value, *truths(source, posterior)))
    return [max(rows, key=lambda row: row[1] - row[0])]


def zipf_graph(n_samples: int, seed: int, n_nodes: int = 250, n: int = 150) -> dict[str, Any]:
    """Pairs of nodes with Zipf popularity: some ends were never seen, some pairs have two of them."""
    found = {}
    i, j = np.triu_indices(n_nodes, 1)
    for name, exponent in (("Zipf 1", 1.0), ("Zipf 1.4", 1.4)):
        p = (1.0 + np.arange(n_nodes)) ** -exponent
        order = np.argsort(-p[i] * p[j])
        law = (p[i] * p[j] / (p[i] * p[j]).sum())[order]
        ends = i[order], j[order]
        high = np.where(np.cumsum(law) <= 0.5, 0.5, 1.0)  # the likely pairs are noisy
        edges = np.cumsum(law)
        for title in ("one cluster", "deepest fit", "deepest fit, soft"):
            rng, count = np.random.default_rng(seed), Count()
            for _ in range(n_samples):
                drawn = np.searchsorted(edges, rng.random(n)).clip(max=len(law) - 1)
                labels = (rng.random(n) < high[drawn]).astype(int)
                pairs = [end[drawn] for end in ends]
                seen, at = np.unique(np.concatenate(pairs), return_inverse=True)
                votes = np.bincount(at, np.tile(2.0 * labels - 1, 2)) if title != "one cluster" else np.ones(len(seen))
                q = np.eye(2)[(votes > 0).astype(int)]
                q = 0.8 * q + 0.1 if "soft" in title else q
                structure = Structure((Mode("node", seen),), ((0, 0),))
                posterior = Posterior(structure, (ZeroOne(COIN),), (q,), (np.array([[0, 1], [1, 1]]),))
                value = certify(posterior, np.column_stack(pairs), labels).value
                codes = structure.modes[0].encode(np.arange(n_nodes))
                answers = posterior.predict_distribution([codes[end] for end in ends])[:, 1]
                wrong = high * (1 - answers) + (1 - high) * answers
                known = np.where((codes[ends[0]] >= 0) & (codes[ends[1]] >= 0), law, 0.0)
                count.note(value, float(law @ wrong), float(known @ wrong / known.sum()))
            found[f"{name}, {title}"] = count.result("for pairs of nodes that the model knows")
    return found


def density_of_seen_items(n_samples: int, seed: int, n: int = 200) -> dict[str, Any]:
    """The code of items that were read off the data has no word for the others."""
    source = Source.zipf(400, 1.1)
    rng, count = np.random.default_rng(seed), Count()
    refusal: dict[str, Any] = {}
    for turn in range(n_samples):
        items = rng.choice(len(source.p), n, p=source.p)
        seen = np.unique(items)
        q = np.eye(2)[(np.bincount(items, minlength=400)[seen] > 2).astype(int)]
        posterior = Posterior(Structure.grid((Mode("item", seen),)), (Quadratic(),), (q,), (np.zeros(2),))
        X = items[:, None]
        if turn == 0:
            refusal = refused(lambda q=posterior, X=X: certify(q, X, bound="density"))
        certificate = certify(posterior, X, population=(400,), bound="density")
        density = certificate.model
        order = np.concatenate([seen, np.setdiff1d(np.arange(400), seen)])
        true = -float(source.p[order] @ density.log_density([np.arange(400)]))
        count.note(certificate.value, true, np.inf if len(seen) < 400 else true)
    return {"nothing said": refusal, "population stated": count.result("as the code of all items: no word for some")}


def papers_price(n_samples: int, seed: int) -> dict[str, Any]:
    """Theorem 7 on items that were read off the data."""
    source = SOURCES["Zipf 1"]
    items, labels = source.draw(np.random.default_rng(seed), 300)
    posterior = grid_of(*deepest(items, labels))
    X = np.column_stack([items, 0 * items])
    graph = gg.GraphClustering(2, loss="quadratic", alphabet=(0, 1), random_state=0)
    edges = [(a, b) for a in range(12) for b in range(a) if (a + b) % 2]
    graph.fit(edges)
    sample = graph.sample(edges)
    return {
        "grid": refused(lambda: certify(posterior, X, labels, bound="theorem-7")),
        "graph with other nodes": refused(lambda: certify(graph, sample, bound="eq-53", population=(20,))),
    }


def frozen_items(n_samples: int, seed: int) -> dict[str, Any]:
    """A mode whose items are clusters of their own: an unseen one has cells that nobody has paid for."""
    rng = np.random.default_rng(seed)
    movies = [(f"film {m}", g) for m in range(20) for g in ("war", "love")]
    has = [int((m % 2 == 0) == (g == "war")) for m in range(20) for g in ("war", "love")]
    X = [(f"user {u}", f"film {m}") for u, m in rng.integers(0, 20, (200, 2))]
    model = gg.JointCoClustering({"user": 2, "film": 2, "genre": None}, alphabet=(0, 1), random_state=0)
    model.fit({("user", "film"): (X, rng.integers(0, 2, 200)), ("film", "genre"): (movies, has)})
    relation = ("film", "genre")
    return {"properties": refused(lambda: model.certify({relation: (movies, has)})[relation])}


# what is given


def unstated(posterior: Posterior, X: np.ndarray, y: np.ndarray) -> float:
    """What a certificate would say if it believed the posterior's own bounds, whoever stated them."""
    sample = Sample.of(list(X.T), y, modes=posterior.structure.columns(), alphabet=posterior.cells[0].alphabet)
    evidence = collect(posterior, sample)
    price = evidence.prices["exact"].total
    return evidence.in_unit(bounds.log_wealth(evidence.distribution, price, evidence.n_observations, DELTA).value)


def bounds_read_off(n_samples: int, seed: int, n: int = 100) -> dict[str, Any]:
    """Measured labels with a rare large value: the range that was observed is not the range there is."""
    rng, count = np.random.default_rng(seed), Count()
    X = np.zeros((n, 1), dtype=int)
    refusal: dict[str, Any] = {}
    for turn in range(n_samples):
        y = np.where(rng.random(n) < 0.005, 100.0, rng.random(n))
        low, high = float(y.min()), float(y.max())
        posterior = Posterior(
            Structure.grid((Mode("item", np.array([0])),)),
            (Quadratic(bounds=(low, high)),),
            (np.ones((1, 1)),),
            (np.array([y.mean()]),),
        )
        answer = float(y.mean())
        true = 0.005 * (100 - answer) ** 2 + 0.995 * (1 / 12 + (0.5 - answer) ** 2)
        count.note(unstated(posterior, X, y), true, true)
        if turn == 0:
            with tempfile.TemporaryDirectory() as folder:
                refusal = _through_the_command_line(Path(folder), y)
    found = count.result("with the smallest and largest label of the data")
    return {"measured labels": {**refusal, "read as it was": found["read as it was"]}}


def _through_the_command_line(folder: Path, y: np.ndarray) -> dict[str, Any]:
    """gingham fit without --bounds, then Python."""
    from gingham.cli.app import run

    table, out = folder / "t.csv", folder / "m.gingham"
    lines = [f"{u},{v},{label}" for (u, v), label in zip(np.argwhere(np.ones((10, 10))), y)]
    table.write_text("user,film,value\n" + "\n".join(lines) + "\n")
    code = run(
        ["fit", str(table), "--axes", "user,film", "--label", "value", "--clusters", "2,2", "-q", "-o", str(out)]
    )
    if code != 0:
        raise RuntimeError("gingham fit failed")
    model = gg.load(out)
    X = np.argwhere(np.ones((10, 10)))
    return refused(lambda: certify(model, X, y))


def weights_zero_and_one(n_samples: int, seed: int, n_nodes: int = 20) -> dict[str, Any]:
    """A weighted graph of which only zeros and ones were seen; one pair in five hundred weighs 10."""
    rng, count = np.random.default_rng(seed), Count()
    i, j = np.triu_indices(n_nodes, 1)
    labels = {node: node % 2 for node in range(n_nodes)}
    outcomes: dict[str, Any] = {}
    for _ in range(n_samples):
        weights = np.where(rng.random(len(i)) < 0.5, 1.0, 0.0)
        while weights.sum() == 0:
            weights = np.where(rng.random(len(i)) < 0.5, 1.0, 0.0)
        matrix = np.zeros((n_nodes, n_nodes))
        matrix[i, j] = matrix[j, i] = weights
        lie = gg.certify(labels, matrix, alphabet=(0, 1))
        answers = lie.posterior.predict([i, j])
        true = float(np.mean(0.998 * 0.5 * (answers**2 + (1 - answers) ** 2) + 0.002 * (10 - answers) ** 2))
        count.note(lie.value, true, true)
    floats = matrix
    outcomes["certify_partition"] = refused(lambda: gg.certify(labels, floats))
    for loss in ("auto", "quadratic"):
        model = gg.GraphClustering(2, loss=loss, random_state=0).fit(floats)
        outcomes[f"GraphClustering, {loss}"] = refused(lambda model=model: certify(model, model.sample(floats)))
    reading = count.result("with the weights 0 and 1 that were seen")["read as it was"]
    outcomes["certify_partition"]["read as it was"] = reading
    return outcomes


def ranges_that_lie(n_samples: int, seed: int) -> dict[str, Any]:
    """Bounds that leave labels out, answers outside the bounds, losses beyond their range: clipping hid them all."""
    X, y = np.zeros((50, 1), dtype=int), np.tile([1.0, 5.0], 25)
    one = Structure.grid((Mode("item", np.array([0])),))
    stars = Alphabet.of((1, 2, 3, 4, 5), given=True)

    class Understated(TableLoss):
        name = "understated"

        def __init__(self, alphabet: Alphabet) -> None:
            super().__init__(alphabet, np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers)))
            self.range = 1.0  # the largest loss is 4

    def posterior(cell: Any, answer: object) -> Posterior:
        return Posterior(one, (cell,), (np.ones((1, 1)),), (np.array([answer]),))

    outside = posterior(Quadratic(bounds=(1.0, 5.0)), 9.0)
    understated = posterior(Understated(stars), 0)
    low_bounds = gg.CoClusteringRegressor(2, loss="quadratic", alphabet=range(1, 6), bounds=(2, 4))
    pairs = np.argwhere(np.ones((10, 5)))
    return {
        "bounds within the alphabet": refused(lambda: low_bounds.fit(pairs, y)),
        "bounds within the labels": refused(
            lambda: gg.CoClusteringRegressor(2, loss="quadratic", bounds=(2, 4)).fit(pairs, y)
        ),
        "label_bounds within the alphabet": refused(
            lambda: gg.certify_predictions(y, y, loss="quadratic", alphabet=(1, 5), label_bounds=(2, 4))
        ),
        "an answer outside the bounds": refused(lambda: certify(outside, X, y)),
        "an answer outside the bounds, on held-out rows": refused(
            lambda: certify(outside, X, y, bound="holdout", predictor="gibbs")
        ),
        "losses beyond their range": refused(lambda: certify(understated, X, y)),
        "losses beyond their range, on held-out rows": refused(
            lambda: certify(understated, X, y, bound="holdout", predictor="gibbs")
        ),
        "losses beyond their range, predictions": refused(
            lambda: gg.certify_predictions(y, 6 - y, loss=Understated, alphabet=range(1, 6))
        ),
    }


ATTACKS: dict[str, Callable[..., dict[str, Any]]] = {
    "zipf, in sample": over_sources(zipf_in_sample),
    "zipf, two modes": over_sources(zipf_two_modes),
    "zipf, gain": over_sources(zipf_gain),
    "zipf, committee": over_sources(zipf_committee),
    "zipf, tree": over_sources(zipf_tree),
    "zipf, split": over_sources(zipf_split),
    "zipf, stream": over_sources(zipf_stream),
    "zipf, graph": zipf_graph,
    "density of items read off": density_of_seen_items,
    "papers' price of items read off": papers_price,
    "frozen items read off": frozen_items,
    "bounds read off": bounds_read_off,
    "weights 0 and 1 read off": weights_zero_and_one,
    "ranges that lie": ranges_that_lie,
}


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """How many attacks there are, and whether every one was refused or met a certificate that is true."""
    every = [(attack, case, one) for attack, cases in results.items() for case, one in cases.items()]
    held = [
        one["outcome"] == "refused" or (one["outcome"] == "true" and one["failures"] <= allowed(one["samples"]))
        for _, _, one in every
    ]
    rates = [(one["rate"], f"{attack}: {case}") for attack, case, one in every if one["outcome"] == "true"]
    return {
        "attacks": len(every),
        "refused or true": sum(held),
        "not": [f"{attack}: {case}" for (attack, case, _), fine in zip(every, held) if not fine],
        "worst": max(rates, default=(0.0, ""))[0],
        "worst of": max(rates, default=(0.0, ""))[1],
    }


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=tuple(ATTACKS), nargs="+", help="these attacks; others are kept")
    parser.add_argument("--samples", type=int, default=1000)


def main() -> None:
    args = arguments(__doc__.splitlines()[0], name="attacks_cover", options=options)
    n_samples = 5 if args.quick else args.samples
    for name, attack in ATTACKS.items():
        if args.only is not None and name not in args.only:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gg.UnseenItemsWarning)
            found = attack(n_samples, args.seed)
        results = {key: value for key, value in previous(args).items() if key in ATTACKS}
        results[name] = found
        write(args, {"delta": DELTA, "samples": n_samples}, {**results, "summary": summary(results)})
        print(name, "done", flush=True)


if __name__ == "__main__":
    main()
