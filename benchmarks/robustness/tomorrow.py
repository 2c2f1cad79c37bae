"""Guarantees about tomorrow: how often strata, mixes and watches fail, and how soon a broken promise is noticed.

Each world is drawn many times. A certificate with strata fails where the truth of any stratum, of all rows, or of the
worst mix lies above what it says; a watch fails where it calls a promise ended that was kept. Orders of a watch are as
awkward as its premise allows: an adversary sees all losses and the wealth so far, and chooses the law of the next loss,
as long as its mean is what was promised.

    python benchmarks/robustness/tomorrow.py                 # everything
    python benchmarks/robustness/tomorrow.py --only watch    # parts whose name contains a word
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, previous, write
from gingham.certificates import Propensity, selection_effect
from gingham.certificates.watch import Track, Watch

FIGURES = {"most failures": "summary/most failures", "runs of each": "summary/runs"}
DELTA, ALPHA, RUNS = 0.05, 0.01, 4000
RISKS, SHARES = np.array([0.1, 0.3, 0.6]), np.array([0.8, 0.15, 0.05])


def strata_fail(rng: np.random.Generator, method: str, n: int = 300) -> bool:
    """Three strata with their own error rates; any bound below its truth is a failure, so the worst mix is one."""
    at = rng.choice(3, n, p=SHARES)
    y = (rng.random(n) < RISKS[at]).astype(int)
    found = gg.certify_predictions(
        y, np.zeros(n, int), loss="zero-one", alphabet=[0, 1], strata=at, method=method, delta=DELTA
    )
    parts = [found.strata[name].value < RISKS[int(name)] for name in np.unique(at).astype(str)]
    return found.value < SHARES @ RISKS or any(parts)


def mix_fails(rng: np.random.Generator) -> bool:
    """Tomorrow's mix, many more rows of the worst stratum, is taken from rows without labels."""
    at = rng.choice(3, 300, p=SHARES)
    y = (rng.random(300) < RISKS[at]).astype(int)
    found = gg.certify_predictions(y, np.zeros(300, int), loss="zero-one", alphabet=[0, 1], strata=at, delta=DELTA)
    later = rng.choice(3, 200, p=rng.dirichlet(np.ones(3)))
    return found.for_mix(later).value < np.mean(RISKS[later])


class Memory:
    """Right of users that it knows, wrong of the others: as different in the strata as can be."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any) -> Memory:
        self.known_ = np.unique(np.asarray(X)[:, 0])
        return self

    def predict(self, X: Any) -> Any:
        return np.where(np.isin(np.asarray(X)[:, 0], self.known_), 0.0, 1.0)


def progressive_fails(rng: np.random.Generator, by_items: bool) -> bool:
    """Labels are coins of .1; a member is right by .9 of users it knows, and by .1 of others."""
    X = np.column_stack([rng.integers(0, 40, 240), rng.integers(0, 4, 240)])
    y = (rng.random(240) < 0.1).astype(float)
    strata = "known/new" if by_items else np.where(X[:, 1] < 2, "a", "b")
    found = gg.certify_progressive(
        Memory(), X, y, loss="absolute", label_bounds=(0, 1), strata=strata, blocks=3, warm_up=0.5, delta=DELTA
    )
    if by_items:
        truths = {part.name: 0.9 if "row" in part.name else 0.1 for part in found.strata.parts}
        return any(part.n_observations > 0 and part.value < truths[part.name] for part in found.strata.parts)
    known = [0.1 + 0.8 * (1 - len(m.known_) / 40) for m in found.model.members_]
    truth = float(found.model.shares_ @ np.array(known))
    return found.value < truth or any(part.value < truth for part in found.strata.parts)


PROMISE = 0.18
WATCHED = {
    "value": PROMISE, "delta": DELTA, "predictor": "predictions", "bound": "holdout", "strata": None, "model": None,
    "loss": {"name": "absolute", "alphabet": None, "bounds": [0.0, 1.0], "table": None, "low": 0.0, "range": 1.0},
    "strata_rule": None,
}  # fmt: skip
NAMED = {**WATCHED, "strata": [{"name": name, "value": PROMISE} for name in "abc"], "strata_rule": "column"}


def steady(rng: np.random.Generator, n: int, mean: float = PROMISE, spread: float = 5.0) -> Any:
    return rng.beta(mean * spread, (1 - mean) * spread, n)


def coins(rng: np.random.Generator, n: int, mean: float = PROMISE) -> Any:
    return (rng.random(n) < mean).astype(float)


def watch_fails(rng: np.random.Generator, losses: Callable[..., Any], n: int = 2000) -> bool:
    """Rows arrive in batches of any size, and somebody looks after each."""
    watch, made, at = Watch(WATCHED, alpha=ALPHA), losses(rng, n), 0
    while at < n and watch.ended is None:
        size = int(rng.integers(1, 800))
        watch.add(made[at : at + size])
        at += size
    return watch.ended is not None


def strata_watch_fails(rng: np.random.Generator, n: int = 1500) -> bool:
    """All rows and three strata keep their promise; any alarm, of all together or of one, is a failure."""
    watch = Watch(NAMED, alpha=ALPHA).add(coins(rng, n), rng.choice(list("abc"), n, p=[0.9, 0.08, 0.02]))
    return watch.ended is not None or any(track.ended is not None for track in watch.tracks)


def adversary_fails(rng: np.random.Generator, n: int = 400) -> bool:
    """Somebody who sees the wealth: bold coins while it is low, calm losses once it has grown, then bold again."""
    track = Track("all rows", PROMISE)
    for _ in range(n // 10):
        wealth = track.log_wealth
        bold = wealth < 1.0 or wealth > 3.0
        high = 1.0 if bold else 0.3
        chance = PROMISE / high
        found = track.evidence(np.where(rng.random(10) < chance, high, 0.0))
        if found.max() >= -np.log(ALPHA):
            return True
    return False


def interval_fails(rng: np.random.Generator, n: int = 600) -> bool:
    """The confidence sequence has to hold the mean at all times at which somebody looks."""
    watch, made = Watch(WATCHED, alpha=DELTA), coins(rng, n)
    for at in range(0, n, 60):
        low, high = watch.add(made[at : at + 60]).interval()
        if not low <= PROMISE <= high:
            return True
    return False


def catalogue_fails(rng: np.random.Generator, gamma: float, n: int = 300) -> bool:
    """A catalogue half of which is seldom rated and badly predicted; with Γ > 1, bad pairs are rated less than said."""
    bad, truth = 0.5 * np.array([0.6, 0.1]), 0.35
    rate = np.array([0.1, 1.0])  # true propensities of good pairs in both halves; of bad ones 1/Γ² of it
    cells = np.stack([(0.5 - bad) * rate, bad * rate / gamma**2])
    at = rng.choice(4, n, p=(cells / cells.sum()).ravel())
    losses, told = (at >= 2).astype(float), rate[at % 2] / gamma  # between the two, so that both are wrong by Γ
    found = gg.certify_predictions(
        losses, np.zeros(n), loss="absolute", label_bounds=(0, 1), propensity=Propensity(told, 0.1 / gamma, gamma),
        delta=DELTA,
    )  # fmt: skip
    return found.value < truth


def selection_fails(rng: np.random.Generator, n: int = 400) -> bool:
    """Labels that are missing by item alone, as the propensities say: an effect that is proved is a failure."""
    cold = rng.random(n) < 0.1 / 1.1
    y = (rng.random(n) < 0.4).astype(float)  # alike in both halves
    propensity = Propensity(np.where(cold, 0.1, 1.0), 0.1)
    return selection_effect(y, np.full(n, 0.4), label_bounds=(0, 1), propensity=propensity, delta=DELTA).proved


def delay(rng: np.random.Generator, factor: float, most: int = 30_000) -> int:
    """Rows until the alarm where the loss is higher than promised from the first row on."""
    watch = Watch(WATCHED, alpha=ALPHA).add(steady(rng, most, PROMISE * factor))
    return most if watch.ended is None else watch.ended


def late_delay(rng: np.random.Generator, factor: float, kept: int = 5000, most: int = 20_000) -> int:
    """The same after 5,000 rows in which the promise was kept; an alarm before counts as 0."""
    losses = np.concatenate([steady(rng, kept), steady(rng, most, PROMISE * factor)])
    ended = Watch(WATCHED, alpha=ALPHA).add(losses).ended
    return most if ended is None else max(ended - kept, 0)


PARTS: dict[str, tuple[Callable[[np.random.Generator], bool], float, int]] = {
    "strata of predictions, log-wealth": (lambda rng: strata_fail(rng, "log-wealth"), DELTA, RUNS),
    "strata of predictions, betting": (lambda rng: strata_fail(rng, "betting"), DELTA, RUNS),
    "mix of rows without labels": (mix_fails, DELTA, RUNS),
    "strata of progressive tests, a column": (lambda rng: progressive_fails(rng, False), DELTA, RUNS),
    "strata of progressive tests, known and new": (lambda rng: progressive_fails(rng, True), DELTA, RUNS),
    "watch, losses that vary little": (lambda rng: watch_fails(rng, steady), ALPHA, RUNS),
    "watch, coins": (lambda rng: watch_fails(rng, coins), ALPHA, RUNS),
    "watch, an adversary who sees the wealth": (adversary_fails, ALPHA, RUNS),
    "watch, strata": (strata_watch_fails, ALPHA, RUNS),
    "watch, confidence sequence": (interval_fails, DELTA, RUNS),
    "catalogue by propensities": (lambda rng: catalogue_fails(rng, 1.0), DELTA, RUNS),
    "catalogue by propensities that are wrong by 1.5": (lambda rng: catalogue_fails(rng, 1.5), DELTA, RUNS),
    "labels called missing not at random": (selection_fails, DELTA, RUNS),
}
SAID = {1.05: 2376, 1.1: 630, 1.2: 161, 1.5: 40}  # median rows of a plain watch that bets from the first row on


def main() -> None:
    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--only", default="", help="parts whose name contains this")

    args = arguments(__doc__ or "", "tomorrow", options)
    results: dict[str, Any] = {} if args.quick else previous(args)
    rates = results.setdefault("failures", {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (name, (fails, allowed, runs)) in enumerate(PARTS.items()):
            if args.only not in name:
                continue
            rng = np.random.default_rng([args.seed, number])
            runs = 40 if args.quick else runs
            failures = sum(fails(rng) for _ in range(runs))
            rates[name] = {"runs": runs, "failures": failures, "rate": failures / runs, "allowed": allowed}
            print(f"{name:50} {failures:5} of {runs} ({100 * failures / runs:.2f} %, allowed {100 * allowed:g} %)",
                  flush=True)  # fmt: skip
            write(args, settings={"delta": DELTA, "alpha": ALPHA}, results=results)
    if args.only in "delays":
        rng, found = np.random.default_rng(args.seed), {}
        for factor, said in SAID.items():
            runs = 5 if args.quick else 300
            first, late = ([one(rng, factor) for _ in range(runs)] for one in (delay, late_delay))
            found[f"{100 * (factor - 1):.0f} % above"] = {
                "median rows": float(np.median(first)), "beside": said, "runs": runs,
                "median rows, after 5,000 that were kept": float(np.median(late)),
            }  # fmt: skip
            print(factor, found[f"{100 * (factor - 1):.0f} % above"], flush=True)
        results["delays"] = found
    results["summary"] = {
        "most failures": max((one["rate"] / one["allowed"] for one in rates.values()), default=0.0),
        "runs": min((one["runs"] for one in rates.values()), default=0),
    }
    write(args, settings={"delta": DELTA, "alpha": ALPHA, "promise": PROMISE}, results=results)


if __name__ == "__main__":
    main()
