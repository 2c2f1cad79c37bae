"""Attacks on certificates through the public doors: each is refused with a sentence, or what it gets is true.

An attack that is not refused is repeated on at least a thousand samples of a small world whose truth is known; it
succeeds where the truth lies above the certificate, which it may in a share δ of the samples. Beside it stands what the
attack gets where the rule that now stops it is left out: there it succeeds, or it would be no attack.

    python benchmarks/robustness/attacks.py                      # everything
    python benchmarks/robustness/attacks.py --only "fold"        # those whose title contains a word
    python benchmarks/robustness/attacks.py --resume             # those that an interrupted run has not reached

To add an attack write a function below its group and decorate it: ``@refused(group, title)`` where it must end in a
sentence, ``@simulated(group, title)`` where it is repeated; the function gets a random generator and returns an
`Outcome`. ``@shown(group, title)`` is for facts that no simulation can show.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from attacks_tomorrow import REFUSED, SHOWN, SIMULATED

import gingham as gg
from common import arguments, clock, previous, write
from gingham.certificates import certify, held_out_part, whole_population
from gingham.certificates.bounds import LossDistribution, log_wealth
from gingham.certificates.evidence import collect
from gingham.certificates.holdout import betting
from gingham.certificates.prices import partition_exact
from gingham.cli.tables.adapter import FitTask, TableSource
from gingham.cli.tables.adapter import opened as beside
from gingham.cli.tables.arguments import CertificateRequest, FitOptions
from gingham.cli.tables.kinds import kind_named
from gingham.core.problem import Tree
from gingham.core.tree import TreePosterior
from gingham.data import Alphabet, Mode, Sample

FIGURES = {
    "attacks": "summary/attacks",
    "refused": "summary/refused",
    "most failures of the others": "summary/most failures/rate",
    "least where the rule is left out": "summary/least without the rule/rate",
}
DELTA = 0.05
ROWS, DOORS, CALLS = "what a row is", "other doors", "arguments and orders of calls"


@dataclass(frozen=True)
class Outcome:
    """What one attempt got: whether the truth lies above the certificate, and above the one without the rule."""

    fails: bool
    fails_without: bool | None = None


@dataclass(frozen=True)
class Attack:
    group: str
    title: str
    kind: str  # "refused", "simulated" or "shown"
    make: Callable[..., Any]
    samples: int = 1000


ATTACKS: list[Attack] = []


def refused(group: str, title: str) -> Callable[[Callable[[], object]], Callable[[], object]]:
    """The function must end in a GinghamError."""

    def add(make: Callable[[], object]) -> Callable[[], object]:
        ATTACKS.append(Attack(group, title, "refused", make))
        return make

    return add


def simulated(
    group: str, title: str, samples: int = 1000
) -> Callable[[Callable[[np.random.Generator], Outcome]], Callable[[np.random.Generator], Outcome]]:
    """The function makes one attempt."""

    def add(make: Callable[[np.random.Generator], Outcome]) -> Callable[[np.random.Generator], Outcome]:
        ATTACKS.append(Attack(group, title, "simulated", make, samples))
        return make

    return add


def shown(group: str, title: str) -> Callable[[Callable[[], dict[str, Any]]], Callable[[], dict[str, Any]]]:
    """The function returns facts, among them ``holds``."""

    def add(make: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
        ATTACKS.append(Attack(group, title, "shown", make))
        return make

    return add


def tried(attack: Attack, seed: int, samples: int) -> dict[str, Any]:
    """What came of an attack."""
    if attack.kind == "refused":
        try:
            attack.make()
        except gg.GinghamError as error:
            return {"verdict": "refused", "sentence": str(error)}
        return {"verdict": "SUCCEEDED"}
    if attack.kind == "shown":
        facts = attack.make()
        return {"verdict": "true" if facts.pop("holds") else "FALSE", **facts}
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.GinghamWarning)
        outcomes = [attack.make(rng) for _ in range(samples)]
    failures = sum(outcome.fails for outcome in outcomes)
    found: dict[str, Any] = {
        "verdict": "true" if failures <= DELTA * samples else "FALSE",
        "failures": failures,
        "samples": samples,
        "rate": failures / samples,
    }
    without = [outcome.fails_without for outcome in outcomes if outcome.fails_without is not None]
    if without:
        found["without the rule"] = {"failures": sum(without), "samples": len(without), "rate": np.mean(without)}
    return found


# A world with one heavy pair, whose labels are coins, and many light ones with label 0. Equal draws are one row with a
# count, so that a large part of all losses is in a single row: whoever divides or counts rows may miss it as a whole.

SIDE, HEAVY = 30, 0.4
CELLS = np.array([(i, j) for i in range(SIDE) for j in range(SIDE)])
LAW = np.zeros((len(CELLS), 2))
LAW[:, 0] = (1 - HEAVY) / (len(CELLS) - 1)
LAW[0] = HEAVY * np.array([0.55, 0.45])
BINARY = (0, 1)


def grid(**settings: Any) -> gg.CoClusteringRegressor:
    return gg.CoClusteringRegressor(1, beta=1.0, alphabet=BINARY, max_iter=3, random_state=0, **settings)


def counted(rng: np.random.Generator, n: int = 1500) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids, labels and counts of the different tuples among n draws."""
    table = rng.multinomial(n, LAW.ravel()).reshape(LAW.shape)
    at, label = np.nonzero(table)
    return CELLS[at], label, table[at, label]


def single(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The same draws, one a row."""
    at, label = np.divmod(rng.choice(LAW.size, n, p=LAW.ravel()), 2)
    return CELLS[at], label


def truth(predictions: np.ndarray) -> float:
    """The expected absolute error of what is predicted for the cells."""
    return float((LAW * np.abs(np.arange(2) - np.asarray(predictions, dtype=float)[:, None])).sum())


def by_rows(rng: np.random.Generator, X: np.ndarray, y: np.ndarray, w: np.ndarray) -> bool:
    """A split of rows with all their draws, as it was before: whether the holdout certificate is false."""
    held = np.zeros(len(y), dtype=bool)
    held[rng.permutation(len(y))[: round(len(y) / 4)]] = True
    model = grid().fit(X[~held], y[~held], w[~held])
    held &= np.all([np.isin(X[:, j], X[~held][:, j]) for j in range(2)], axis=0)
    value = gg.certify(model, X[held], y[held], bound="holdout", predictor="median", sample_weight=w[held]).value
    return truth(model.predict(CELLS, rule="median")) > value


# what a row is


@simulated(ROWS, 'bound="split" with counts as weights')
def split_of_counts(rng: np.random.Generator) -> Outcome:
    X, y, w = counted(rng)
    found = gg.certify(grid(), X, y, bound="split", predictor="median", sample_weight=w)
    return Outcome(truth(found.model.predict(CELLS, rule="median")) > found.value, by_rows(rng, X, y, w))


@simulated(ROWS, 'bound="split", method="prior" with counts as weights')
def split_prior_of_counts(rng: np.random.Generator) -> Outcome:
    X, y, w = counted(rng)
    found = gg.certify(grid(), X, y, bound="split", method="prior", sample_weight=w)
    law = found.posterior.predict_distribution([mode.encode(c) for mode, c in zip(found.model._item_modes(), CELLS.T)])
    return Outcome(float((LAW * law[:, ::-1]).sum()) > found.value, by_rows(rng, X, y, w))


@simulated(ROWS, "a cross-fitted committee with counts as weights")
def folds_of_counts(rng: np.random.Generator) -> Outcome:
    X, y, w = counted(rng)
    team = gg.Committee(grid(), n_members=3, cross=True, random_state=int(rng.integers(2**31))).fit(X, y, w)
    found = gg.certify(team, bound="folds")
    # Before: folds of rows, and every row counted once, whatever it stood for.
    folds, guesses, members = rng.integers(0, 3, len(y)), np.empty(len(y)), []
    for fold in range(3):
        mine = folds == fold
        members.append(grid().fit(X[~mine], y[~mine], w[~mine]))
        guesses[mine] = members[-1].predict(X[mine])
    team_of_rows = SimpleNamespace(
        folds_=folds, fold_predictions_=guesses, fold_rows_=np.arange(len(y)), fold_labels_=y
    )
    naive = gg.certify(team_of_rows, alphabet=BINARY, bound="folds").value
    wrong = truth(np.mean([member.predict(CELLS) for member in members], axis=0)) > naive
    return Outcome(truth(team.predict(CELLS)) > found.value, wrong)


@simulated(ROWS, "the command line's rows set aside, with --weight")
def set_aside_of_counts(rng: np.random.Generator) -> Outcome:
    X, y, w = counted(rng)
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "n": w})
    model, found = on_the_command_line(table, rng, holdout=0.25, progressive=False)
    return Outcome(truth(predicted(model)) > found["held-out rows"].value, by_rows(rng, X, y, w))


@simulated(ROWS, "progressive validation with counts as weights")
def progressive_of_counts(rng: np.random.Generator) -> Outcome:
    X, y, w = counted(rng)
    found = gg.certify_progressive(grid(), X, y, sample_weight=w, blocks=2)
    return Outcome(truth(found.model.predict(CELLS)) > found.value)


COUNT_SIDE = 8
COUNT_LAW = np.full((COUNT_SIDE, COUNT_SIDE), (1 - HEAVY) / (COUNT_SIDE**2 - 1))
COUNT_LAW[0, 0] = HEAVY


@simulated(ROWS, "gingham certify of counts, whole entries of which the fit set aside")
def entries_set_aside(rng: np.random.Generator) -> Outcome:
    """What is left lacks the commonest pair in some samples; all counts are certified, and not what is left."""
    counts = rng.multinomial(2000, COUNT_LAW.ravel()).reshape(COUNT_LAW.shape)
    at = np.nonzero(counts)
    table = pl.DataFrame({"a": at[0], "b": at[1], "n": counts[at]})
    kind = kind_named("cooccurrence")
    options = FitOptions(
        ("a", "b"), None, "cooccurrence", "n", clusters="2", holdout=0.4, n_init=1, max_iter=3,
        seed=int(rng.integers(2**31)),
    )  # fmt: skip
    fitted, _ = kind.tables.fit(kind, FitTask(table, options))
    opened = beside(fitted, TableSource(table))

    def fails(certificate: gg.Certificate) -> bool:
        codes = [np.arange(COUNT_SIDE).repeat(COUNT_SIDE), np.tile(np.arange(COUNT_SIDE), COUNT_SIDE)]
        return float(-COUNT_LAW.ravel() @ fitted.density_.log_density(codes)) > certificate.value

    found = fails(opened.certificates(CertificateRequest(DELTA, population=COUNT_LAW.shape))["counted pairs"])
    return Outcome(found, fails(fitted.certify(opened.data[0], DELTA, COUNT_LAW.shape)))


def predicted(model: Any) -> np.ndarray:
    """What a model that was fitted to a table says of all cells."""
    return np.asarray(model.predict(pl.DataFrame({"a": CELLS[:, 0], "b": CELLS[:, 1]})))


def on_the_command_line(
    table: pl.DataFrame, rng: np.random.Generator, holdout: float, progressive: bool | None
) -> tuple[Any, dict[str, Any]]:
    """What gingham fit and gingham certify do with a table, in this process."""
    kind = kind_named("coclustering")
    weight = "n" if "n" in table.columns else None
    options = FitOptions(
        ("a", "b"), "y", weight=weight, clusters="1", beta=1.0, alphabet="0,1", max_iter=3, holdout=holdout,
        seed=int(rng.integers(2**31)),
    )  # fmt: skip
    fitted, _ = kind.tables.fit(kind, FitTask(table, options))
    request = CertificateRequest(DELTA, progressive=progressive)
    return fitted, beside(fitted, TableSource(table)).certificates(request)


def example() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return counted(np.random.default_rng(0))


def cross(weights: np.ndarray | None = None) -> gg.Committee:
    X, y, w = example()
    return gg.Committee(grid(), n_members=2, cross=True, random_state=0).fit(X, y, w if weights is None else weights)


@refused(ROWS, "certify_folds with other labels")
def other_labels() -> object:
    return gg.certify(cross(), y=1 - example()[1], bound="folds")


@refused(ROWS, "certify_folds after fold_in")
def after_fold_in() -> object:
    return gg.certify(cross().fold_in([(0, 7)], [1]), bound="folds")


@refused(ROWS, "folds with weights that are no whole numbers")
def broken_folds() -> object:
    return cross(example()[2] / 2.5)


@refused(ROWS, 'bound="split" with weights that are no whole numbers')
def broken_split() -> object:
    X, y, w = example()
    return gg.certify(grid(), X, y, bound="split", sample_weight=w / 2.5)


@refused(ROWS, "gingham fit --holdout with weights that are no whole numbers")
def broken_holdout() -> object:
    X, y, w = example()
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "n": w / 2.5})
    return on_the_command_line(table, np.random.default_rng(0), 0.25, False)


@refused(ROWS, "rows= of a split that divides rows of weight 2 and more")
def named_rows_of_counts() -> object:
    X, y, w = example()
    half = np.arange(len(y)) % 2 == 0
    return gg.certify(grid(), X, y, bound="split", sample_weight=w, rows=(half, ~half))


@shown(ROWS, "that a row of weight w is w independent draws is given, not checked")
def weights_are_given() -> dict[str, Any]:
    X, y, w = example()
    model = grid().fit(X, y, w)
    certificates = [
        gg.certify(model, X, y, sample_weight=w),
        certify(model, X, y, sample_weight=w, bound="gain"),
        certify(model, X, sample_weight=w, population=[len(q) for q in model.posterior_.assign], bound="density"),
        gg.certify(model.posterior_, X, y, sample_weight=w, bound="holdout", predictor="median"),
        gg.certify(cross(), bound="folds"),
        gg.certify_progressive(grid(), X, y, sample_weight=w, blocks=2),
    ]
    said = [[a.status for a in c.assumptions if "A row of weight w stands for" in a.text] for c in certificates]
    return {"holds": said == [["given"]] * len(certificates), "certificates": len(certificates)}


# Attacks on who is covered (items nobody has seen) and what is given (alphabets and bounds) are in attacks_cover.py.


# other doors


def rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Few pairs and rare ones among the labels, for attacks that end in a sentence."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (n, 2)), (rng.random(n) < 0.2).astype(int)


def many_rows(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs that seldom occur twice."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 20, (n, 2)), (rng.random(n) < 0.5).astype(int)


@refused(DOORS, "lower=True with the mean predictor")
def mean_from_below() -> object:
    X, y = rows()
    return gg.certify(grid().fit(X, y), X, y, predictor="mean", lower=True)


@refused(DOORS, "rows= of a split that overlap")
def overlapping_rows() -> object:
    return gg.certify(grid(), *rows(), bound="split", rows=(np.arange(200), np.arange(150, 300)))


@refused(DOORS, "rows= of a split with a row twice")
def repeated_rows() -> object:
    return gg.certify(grid(), *rows(), bound="split", rows=(np.arange(200), np.repeat(np.arange(200, 210), 30)))


@simulated(DOORS, "held_out_part after a split")
def held_out_after_split(rng: np.random.Generator) -> Outcome:
    """2000 of 2004 tuples were observed, and half of them learned from: four are left."""
    X, y = rng.integers(0, 2, (2004, 2)), (rng.random(2004) < 0.1).astype(int)
    found = gg.certify(grid(), X[:2000], y[:2000], bound="split", predictor="median", fraction=0.5)
    true = float(np.abs(found.model.predict(X[2000:], rule="median") - y[2000:]).mean())
    v, e, n = found.value, found.empirical, found.n_observations
    return Outcome(true > held_out_part(found, 2004).value + 1e-9, true > (2004 * v - n * e) / (2004 - n) + 1e-9)


@refused(DOORS, "held_out_part after a holdout that does not say what was learned from")
def held_out_after_holdout() -> object:
    X, y = rows()
    return held_out_part(gg.certify(grid().fit(X[:200], y[:200]), X[200:], y[200:], bound="holdout"), 1000)


@refused(DOORS, "whole_population after a split")
def population_after_split() -> object:
    return whole_population(gg.certify(grid(), *rows(), bound="split"), 1000)


STARS = np.arange(1, 6)
SQUARES = np.subtract.outer(STARS, STARS) ** 2.0


@simulated(DOORS, "a convex table of losses of one's own")
def own_loss(rng: np.random.Generator) -> Outcome:
    """Squares as a table; judged by the absolute error, the certificate of another loss would stand in its place."""
    law, pairs = np.array([0.4, 0.1, 0.0, 0.1, 0.4]), CELLS[:4]
    X, y = pairs[rng.integers(0, 4, 240)], rng.choice(STARS, 240, p=law)
    own = partial(gg.losses.TableLoss, table=SQUARES, convex=True)
    model = gg.CoClusteringRegressor(1, loss=own, beta=1.0, alphabet=STARS, max_iter=3, random_state=0)
    found = gg.certify_progressive(model, X, y, blocks=2)
    naive = gg.certify_progressive(model, X, y, blocks=2, loss="absolute")

    def true(certificate: gg.Certificate) -> float:
        guesses = certificate.model.predict(pairs)
        return float(np.mean([law @ [np.interp(guess, STARS, row) for row in SQUARES] for guess in guesses]))

    return Outcome(true(found) > found.value, true(naive) > naive.value)


@refused(DOORS, "a table that says it is convex and is not")
def not_convex() -> object:
    return gg.losses.TableLoss(Alphabet.of(STARS, given=True), np.sqrt(SQUARES) ** 0.5, convex=True)


@refused(DOORS, "a Sample whose items are numbered otherwise")
def numbered_otherwise() -> object:
    X, y = rows()
    model = grid().fit(X, y)
    modes = [Mode(mode.name, mode.items[::-1].copy()) for mode in model._item_modes()]
    return gg.certify(model, Sample.of(X.T, y, modes=modes, alphabet=model.posterior_.cells[0].alphabet))


@refused(DOORS, "InformationClustering.certify on the features of the fit")
def own_features() -> object:
    table = np.random.default_rng(0).integers(0, 2, (20, 60))
    return gg.InformationClustering(4, n_init=1, random_state=0).fit(table).certify(table)


@simulated(DOORS, "rows arranged against a shuffle that everybody knows, betting")
def arranged_rows(rng: np.random.Generator) -> Outcome:
    """All zeros first, then all ones, is what the gambler likes best; a known shuffle can be undone beforehand."""
    losses = (rng.random(200) < 0.5).astype(float)
    order = np.random.default_rng(0).permutation(200)  # what betting used to do with every table
    arranged = np.empty(200)
    arranged[order] = np.sort(losses)
    found = gg.certify_predictions(np.zeros(200), arranged, loss="absolute", label_bounds=(0, 1), method="betting")
    return Outcome(found.value < 0.5, one_order(arranged[order]) < 0.5)


def one_order(x: np.ndarray) -> float:
    """The bound by betting in the order as it stands."""
    n, paid = len(x), log(1 / DELTA)
    seen = np.arange(2, n + 2)
    means = (0.5 + np.cumsum(x)) / seen
    spread = (0.25 + np.cumsum((x - means) ** 2)) / seen
    bets = np.append(0.5, means[:-1]) + np.sqrt(np.append(0.25, spread[:-1]) * n / (2 * paid))
    nu = np.maximum(bets, 1.001)
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if np.log((nu - x) / (nu - middle)).sum() > paid else (middle, high)
    return high


@simulated(DOORS, "the best of twenty seeds of bets, counted as candidates")
def searched_seeds(rng: np.random.Generator) -> Outcome:
    losses = (rng.random(50) < 0.1).astype(float)
    lowest = min(betting(losses, log(20), DELTA, seed).value for seed in range(20))
    return Outcome(lowest < 0.1)


@simulated(DOORS, "the best of twenty seeds of bets, not counted")
def uncounted_seeds(rng: np.random.Generator) -> Outcome:
    """The seed is then chosen with a look at the rows, against what is given; averaged over orders, little is found."""
    losses = (rng.random(50) < 0.1).astype(float)
    return Outcome(min(betting(losses, 0.0, DELTA, seed).value for seed in range(20)) < 0.1)


@simulated(DOORS, "all certificates that gingham certify prints, at once")
def printed_together(rng: np.random.Generator) -> Outcome:
    """Training rows, rows set aside and progressive tests: one of them may fail in a share δ of the samples."""
    X, y = single(rng, 400)
    model, found = on_the_command_line(pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}), rng, 0.25, True)
    own, members = truth(predicted(model)), truth(predicted(found["progressive tests"].model))
    if sum(one.delta for one in found.values()) > DELTA * (1 + 1e-9):
        raise RuntimeError("The certificates do not share δ.")
    true = {"progressive tests": members, "training rows": own, "held-out rows": own}
    return Outcome(any(true[name] > one.value for name, one in found.items()))


@simulated(DOORS, "the smallest of twenty certificates")
def smallest_of_many(rng: np.random.Generator) -> Outcome:
    """Twenty predictors that guess, tested on the same coins: the one that was luckiest."""
    y = rng.integers(0, 2, 100)
    guesses = rng.integers(0, 2, (20, 100))
    options = {"loss": "zero-one", "alphabet": BINARY, "method": "betting"}
    each = [gg.certify_predictions(y, guess, delta=DELTA / 20, **options) for guess in guesses]
    naive = min(gg.certify_predictions(y, guess, delta=DELTA, **options).value for guess in guesses)
    best = each[0].compare(*each[1:]).best
    if abs(best.delta - DELTA) > 1e-9 or best.chosen_from != 20:
        raise RuntimeError("The smallest certificate does not say what it was chosen from.")
    return Outcome(best.value < 0.5, naive < 0.5)


@refused(DOORS, "the smallest of twenty certificates with the whole δ each")
def smallest_of_whole() -> object:
    _, y = rows(100)
    each = [gg.certify_predictions(y, y, loss="zero-one", alphabet=BINARY) for _ in range(20)]
    return each[0].compare(*each[1:]).best


@simulated(DOORS, "the lowest of a model's bounds")
def lowest_bound(rng: np.random.Generator) -> Outcome:
    X = rng.integers(0, 2, (60, 2))
    model = gg.CoClusteringRegressor(2, beta=9.0, alphabet=BINARY, max_iter=5, random_state=0)
    y = rng.integers(0, 2, 60)
    return Outcome(gg.certify(model.fit(X, y), X, y).compare().best.value < 0.5)


def doors() -> dict[str, Callable[[float, float], object]]:
    """Every way to a certificate, with a δ and a number of candidates."""
    X, y = rows(60)
    model, pairs = grid().fit(X, y), np.array([(0, 1), (1, 2), (2, 0)])
    sizes = [len(q) for q in model.posterior_.assign]
    given = {"loss": "zero-one", "alphabet": BINARY}
    return {
        "certify": lambda d, k: gg.certify(model, X, y, delta=d),
        "holdout": lambda d, k: gg.certify(model, X, y, bound="holdout", delta=d, candidates=k),
        "split": lambda d, k: gg.certify(grid(), X, y, bound="split", delta=d, candidates=k),
        "folds": lambda d, k: gg.certify(cross(), delta=d, bound="folds"),
        "predictions": lambda d, k: gg.certify_predictions(y, y, delta=d, candidates=k, **given),
        "betting": lambda d, k: gg.certify_predictions(y, y, delta=d, candidates=k, method="betting", **given),
        "progressive": lambda d, k: gg.certify_progressive(grid(), X, y, delta=d, candidates=k),
        "gain": lambda d, k: gg.certify(model, X, y, delta=d, bound="gain"),
        "density": lambda d, k: gg.certify(model, X, delta=d, population=sizes, bound="density"),
        "ranking": lambda d, k: gg.certify_ranking({0: [1], 1: [2], 2: [0]}, pairs, at=1, delta=d, candidates=k),
        "partition": lambda d, k: gg.certify(np.arange(4) % 2, ~np.eye(4, dtype=bool), delta=d),
    }


@shown(DOORS, "δ of 0, 1, 1.5 and nan, and candidates=nan, at every door")
def nonsense() -> dict[str, Any]:
    nan, answers, asked = float("nan"), set(), 0
    counts = ("holdout", "split", "predictions", "betting", "progressive", "ranking")
    for name, door in doors().items():
        for delta, candidates in [(0, 1), (1, 1), (1.5, 1), (nan, 1)] + [(DELTA, nan)] * (name in counts):
            asked += 1
            try:
                door(delta, candidates)
            except gg.GinghamError as error:
                answers.add(str(error).partition("=")[0])
            else:
                answers.add(f"{name} took delta={delta}, candidates={candidates}")
    return {"holds": answers == {"delta", "candidates"}, "asked and refused": asked, "sentences about": sorted(answers)}


@shown(DOORS, "tied tables of a tree, drawn once or at each node, as the memberships please")
def tied_tables() -> dict[str, Any]:
    """The prior of both summaries together, over all tables of three items in two clusters."""
    mode = Mode("x", np.arange(3))
    tree, _ = Tree.build([mode] * 2, (2, 2), [], tied=[(0, 1)])
    letters = Alphabet.of((0, 1), given=True)
    table = np.eye(2)[[0, 1, 0]]
    posterior = TreePosterior(tree, (gg.losses.ZeroOne(letters),), (table,), (np.zeros((2, 2), dtype=int),))
    sample = Sample((mode, mode), (np.zeros(20, np.int32),) * 2, np.zeros(20), letters, np.zeros(20, np.int32))
    paid = collect(posterior, sample).prices["exact"].terms.get("tied tables, drawn once or at each node", 0.0)
    each = [np.exp(log(6) - sum(partition_exact(np.eye(2)[list(one)]).values())) for one in np.ndindex(2, 2, 2)]
    total = sum(each) + sum(each) ** 2
    return {
        "holds": abs(np.exp(-paid) * total - 1) < 1e-9,
        "nats paid": paid,
        "mass of the prior": np.exp(-paid) * total,
        "mass without the rule": total,
    }


@shown(DOORS, "10⁹ tuples: the bound is above the observed loss, and close to it")
def many_tuples() -> dict[str, Any]:
    gaps, holds = {}, True
    for name, law in {"coin": [1, 1], "rare": [1e9, 1], "sure": [1, 1e9], "never": [1, 0]}.items():
        found = LossDistribution.of([0.0, 1.0], law)
        value = log_wealth(found, 0.0, 10**9, DELTA).value
        holds = holds and value >= found.mean
        gaps[name] = value - found.mean
    return {"holds": holds and gaps["coin"] < 6.1e-5, "gap": gaps}


# arguments and orders of calls


@refused(CALLS, 'bound="holdout" on the rows of the fit')
def rows_of_the_fit() -> object:
    X, y = rows()
    return gg.certify(grid().fit(X, y), X, y, bound="holdout", predictor="median")


def saved_and_loaded(model: Any) -> Any:
    with TemporaryDirectory() as folder:
        model.save(f"{folder}/model.gingham")
        return gg.load(f"{folder}/model.gingham")


@refused(CALLS, 'bound="holdout" on the rows of the fit, the model saved and loaded')
def rows_of_a_loaded_fit() -> object:
    X, y = many_rows()
    return gg.certify(saved_and_loaded(grid().fit(X, y)), X, y, bound="holdout", predictor="median")


@refused(CALLS, 'bound="holdout" on ten rows of the fit')
def some_rows_of_the_fit() -> object:
    X, y = many_rows()
    return gg.certify(grid().fit(X, y), X[:10], y[:10], bound="holdout", predictor="median")


@refused(CALLS, 'bound="holdout" on the rows of the fit and new ones')
def rows_of_the_fit_and_others() -> object:
    X, y = many_rows()
    return gg.certify(grid().fit(X[:150], y[:150]), X, y, bound="holdout", predictor="median")


@refused(CALLS, 'bound="holdout" on rows that fold_in has learned from')
def rows_that_were_folded_in() -> object:
    X, y = many_rows()
    return gg.certify(grid().fit(X[:150], y[:150]).fold_in(X[150:], y[150:]), X[150:], y[150:], bound="holdout")


@refused(CALLS, 'bound="holdout" on the rows of the fit after fold_in of ids of another type')
def rows_beside_ids_of_another_type() -> object:
    X, y = many_rows()
    new = np.array([["anna", int(X[0, 1])]], dtype=object)
    return gg.certify(grid().fit(X[:150], y[:150]).fold_in(new, y[:1]), X[:150], y[:150], bound="holdout")


@refused(CALLS, "a ranking, proved better than one that has the hidden items in its baskets")
def rival_that_knows_the_hidden_items() -> object:
    pairs = np.argwhere(np.random.default_rng(0).random((30, 12)) < 0.4)
    hidden = np.arange(len(pairs)) % 5 == 0
    mine, rival = (gg.BasketRanker(random_state=0).fit(some) for some in (pairs[~hidden], pairs))
    return gg.certify_ranking(mine, pairs[hidden], at=3, against=rival)


@refused(CALLS, "a committee tested on the rows of the fit")
def rows_of_the_committee() -> object:
    X, y = rows()
    team = gg.Committee(grid(), n_members=2, random_state=0).fit(X, y)
    return gg.certify(team, X, y, bound="holdout", predictor="median")


@refused(CALLS, "shared matrices tested on the rows of the fit")
def rows_of_the_relations() -> object:
    data = {("user", "film"): rows()}
    model = gg.JointCoClustering({"user": 2, "film": 2}, alphabet=BINARY, random_state=0).fit(data)
    return model.certify(data, bound="holdout", predictor="median")


@refused(CALLS, "gingham certify --bound holdout on the rows of the fit")
def bound_on_the_command_line() -> object:
    return CertificateRequest(DELTA, "holdout", "median")


@refused(CALLS, 'certify_labels with bound="holdout": the cells answer what fits these rows')
def labels_tested_on_their_rows() -> object:
    return gg.certify([[0, 1, 0]] * 2, *rows(), alphabet=BINARY, bound="holdout", predictor="median")


@refused(CALLS, 'certify_partition with bound="holdout"')
def partition_tested_on_its_pairs() -> object:
    return gg.certify(np.arange(6) % 2, ~np.eye(6, dtype=bool), bound="holdout", predictor="gibbs")


@shown(CALLS, "labels that change after a cross-fitted committee has learned them")
def labels_that_change() -> dict[str, Any]:
    X, y = rows()
    labels = y.copy()
    team = gg.Committee(grid(), n_members=3, cross=True, random_state=0).fit(X, labels)
    before = gg.certify(team, bound="folds").value
    labels[:] = team.predict(X).round()
    return {"holds": gg.certify(team, bound="folds").value == before}


@refused(CALLS, "the bet of a stream changed after its tests")
def bet_of_hindsight() -> object:
    stream = gg.certificates.Progressive(nu=4.0)
    stream.add([0.0] * 90 + [1.0] * 10)
    stream.nu = 1.5
    return stream.certificate


@refused(CALLS, "a frame with its columns in another order")
def columns_in_another_order() -> object:
    X, y = rows()
    frame = pl.DataFrame({"user": X[:, 0], "film": X[:, 1]})
    return gg.certify(grid().fit(frame, y), frame.select("film", "user"), y)


@refused(CALLS, "a density with the columns in another order")
def density_in_another_order() -> object:
    X, y = rows()
    frame = pl.DataFrame({"user": X[:, 0], "film": X[:, 1]})
    return gg.certify(grid().fit(frame, y), frame.select("film", "user"), population=(3, 3), bound="density")


@refused(CALLS, "a Sample with other labels beside it")
def labels_beside_a_sample() -> object:
    X, y = rows()
    model = grid().fit(X, y)
    return gg.certify(model, model.sample(X, y), 0 * y)


@refused(CALLS, "a Sample with weights beside it")
def weights_beside_a_sample() -> object:
    X, y = rows()
    model = grid().fit(X, y)
    return gg.certify(model, model.sample(X, y), sample_weight=np.full(len(y), 100))


@refused(CALLS, "a density of a Sample with weights beside it")
def weights_beside_a_sample_of_counts() -> object:
    X, y = rows()
    model = grid().fit(X, y)
    return gg.certify(model, model.sample(X, y), sample_weight=np.full(len(y), 100), population=(3, 3), bound="density")


def half_masked() -> tuple[np.ndarray, np.ndarray]:
    X, y = rows()
    return X, np.ma.array(y, mask=y == 1)  # type: ignore[no-untyped-call]


@refused(CALLS, "masked labels, progressive validation")
def masked_progressive() -> object:
    return gg.certify_progressive(grid(), *half_masked(), blocks=2)


@refused(CALLS, "masked labels, split")
def masked_split() -> object:
    return gg.certify(grid(), *half_masked(), bound="split")


@refused(CALLS, "masked labels, finished predictions")
def masked_predictions() -> object:
    return gg.certify_predictions(half_masked()[1], np.zeros(300), label_bounds=(0, 1))


@refused(CALLS, "masked losses of a stream")
def masked_losses() -> object:
    return gg.certificates.Progressive(nu=2.0).add(half_masked()[1])


@refused(CALLS, "labels as a column, which would pair every label with every prediction")
def labels_as_a_column() -> object:
    _, y = rows()
    return gg.certify_predictions(y[:, None], y, loss="zero-one", alphabet=BINARY)


@refused(CALLS, "probabilities that add up to two, log loss")
def two_of_two() -> object:
    _, y = rows()
    return gg.certify_predictions(y, np.ones((len(y), 2)), loss="log", alphabet=BINARY)


@refused(CALLS, "a convex table with fewer answers than labels, which nothing can check")
def narrow_table() -> object:
    return gg.losses.TableLoss(Alphabet.of(STARS, given=True), SQUARES[:, [0, 4, 2]], convex=True)


@refused(CALLS, "the held-out part of a gain over constants, each of which has a loss of its own to take off")
def held_out_gain() -> object:
    X, y = rows()
    return held_out_part(certify(grid().fit(X, y), X, y, bound="gain"), 400)


@refused(CALLS, "fewer items said to be there than the tuples name, theorem 7")
def too_small_a_population() -> object:
    X, y = rows()
    model = grid().fit(X, y)
    more = np.vstack([X, [[7, 0], [8, 0], [9, 0]]])
    return gg.certify(model, more, np.append(y, [0, 0, 0]), bound="theorem-7", population=(4, 3))


def mirrored() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a graph in both directions."""
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(12, 1)
    edges = (rng.random(len(i)) < 0.3).astype(int)
    return np.vstack([np.column_stack([i, j]), np.column_stack([j, i])]), np.tile(edges, 2)


@refused(CALLS, "pairs of a graph listed in both directions, in sample")
def pairs_twice() -> object:
    X, y = mirrored()
    half = np.column_stack([X, y])[: len(y) // 2]
    graph = gg.GraphClustering(2, alphabet=BINARY, random_state=0).fit(half, pairs="listed")
    return gg.certify(graph, X, y)


@refused(CALLS, "pairs of a graph listed in both directions, held out")
def held_out_pairs_twice() -> object:
    X, y = mirrored()
    half = np.column_stack([X, y])[: len(y) // 2]
    graph = gg.GraphClustering(2, alphabet=BINARY, random_state=0).fit(half, pairs="listed")
    return gg.certify(graph, X, y, bound="holdout", predictor="mean")


@refused(CALLS, "pairs of a graph listed in both directions, progressive validation")
def tested_pairs_twice() -> object:
    return gg.certify_progressive(
        gg.GraphClustering(2, random_state=0), *mirrored(), loss="quadratic", label_bounds=(0, 1), blocks=2,
        fit=lambda model, pairs, weights, counts: model.fit(
            np.column_stack([pairs, weights]), pairs="listed", directed=False
        ),
    )  # fmt: skip


def hidden_items() -> tuple[dict[int, list[int]], np.ndarray]:
    rng = np.random.default_rng(0)
    lists = {user: [int(item) for item in rng.permutation(30)[:5]] for user in range(50)}
    return lists, np.column_stack([np.repeat(np.arange(50), 2), rng.integers(0, 30, 100)])


@refused(CALLS, "a ranking proved better than itself with ids written as text")
def ids_of_another_type() -> object:
    lists, hidden = hidden_items()
    return gg.certify_ranking(lists, hidden, at=5, against={user: [str(i) for i in one] for user, one in lists.items()})


@refused(CALLS, "a ranking for a population of nan users")
def population_of_nan() -> object:
    lists, hidden = hidden_items()
    return gg.certify_ranking(lists, hidden, at=5, population=float("nan"))


@refused(CALLS, "a predictor that cannot be copied unfitted, progressive validation")
def fitted_before() -> object:
    class Knows:
        def fit(self, X: object, y: object) -> object:
            return self

        def predict(self, X: object) -> np.ndarray:
            return np.zeros(len(X))  # type: ignore[arg-type]

    return gg.certify_progressive(Knows(), *rows(), label_bounds=(0, 1))


@shown(CALLS, "a start from a posterior that may know the tests is given, not checked")
def start_is_given() -> dict[str, Any]:
    X, y = rows()
    known = grid().fit(X, y).posterior_
    found = gg.certify_progressive(grid(start=known), X, y, blocks=2)
    return {"holds": any(a.status == "given" and "start of CoClusteringRegressor" in a.text for a in found.assumptions)}


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """How many were refused, and the worst of the others."""
    found = [(group, title, row) for group, by in results.items() for title, row in by.items()]
    rates = [(row["rate"], title) for _, title, row in found if "rate" in row]
    without = [(row["without the rule"]["rate"], title) for _, title, row in found if "without the rule" in row]
    top, least = max(rates, default=(0.0, "")), min(without, default=(0.0, ""))
    return {
        "attacks": len(found),
        "refused": sum(row["verdict"] == "refused" for _, _, row in found),
        "true": sum(row["verdict"] == "true" for _, _, row in found),
        "all refused or true": all(row["verdict"] in ("refused", "true") for _, _, row in found),
        "samples": min((row["samples"] for _, _, row in found if "samples" in row), default=0),
        "most failures": {"rate": top[0], "attack": top[1]},
        "least without the rule": {"rate": least[0], "attack": least[1]},
    }


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", help="attacks whose title contains this")
    parser.add_argument("--resume", action="store_true", help="leave out attacks that the file has already")


for (_group, _title), _attack in REFUSED.items():
    refused(_group, _title)(_attack)
for (_group, _title), _fact in SHOWN.items():
    shown(_group, _title)(_fact)
for (_group, _title), _fails in SIMULATED.items():
    ATTACKS.append(Attack(_group, _title, "simulated", lambda rng, fails=_fails: Outcome(bool(fails(rng)))))


def main() -> None:
    args = arguments(__doc__ or "", name="attacks", options=options)
    now = {(attack.group, attack.title) for attack in ATTACKS}
    results = {
        group: {title: row for title, row in by.items() if (group, title) in now}
        for group, by in previous(args).items()
        if group != "summary"
    }
    seconds: dict[str, float] = {}
    with clock(seconds):
        for at, attack in enumerate(ATTACKS):
            if args.only not in attack.title or (args.resume and attack.title in results.get(attack.group, {})):
                continue
            samples = 20 if args.quick else attack.samples
            found = tried(attack, args.seed + 1000 * at, samples)
            results.setdefault(attack.group, {})[attack.title] = found
            shown_rate = f"{100 * found['rate']:.1f} %" if "rate" in found else ""
            print(f"{attack.group}: {attack.title}: {found['verdict']} {shown_rate}", flush=True)
            write(args, {"delta": DELTA, **seconds}, {"summary": summary(results), **results})
    write(args, {"delta": DELTA, "cpu_s": seconds["cpu_s"]}, {"summary": summary(results), **results})
    if not summary(results)["all refused or true"] and not args.quick:
        raise SystemExit("An attack succeeded.")


if __name__ == "__main__":
    main()
