"""More attacks, for ``attacks.py``: on rankings, strata, mixes, watches, audits, propensities, and on what is checked.

Each entry of `REFUSED` must end in a sentence, each of `SHOWN` must say how it is listed, each of `SIMULATED` is
repeated: it gets a random generator and says whether the truth lies above what is certified.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import BaseEstimator

import gingham as gg
from gingham import storage, verify
from gingham.cells import ZeroOne
from gingham.certificates import (
    Progressive,
    Propensity,
    audit,
    audit_rankings,
    held_out_part,
    selection_effect,
    whole_population,
)
from gingham.certificates.watch import Watch
from gingham.cli.app import run as gingham_command
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode

RANKINGS, STRATA, WATCHES, AUDITS = "rankings", "strata and mixes", "watches", "audits"
CATALOGUE, CHECKED, LINE = "catalogues", "what is checked", "the command line"
DELTA = 0.05
LETTERS = range(1, 6)


@cache
def rows(n: int = 600) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 25, (n, 2))
    return X, np.where(rng.random(n) < 0.2, rng.integers(1, 6, n), 1 + 4 * (X.sum(axis=1) % 2))


def grid(**settings: Any) -> gg.CoClusteringRegressor:
    return gg.CoClusteringRegressor(2, alphabet=LETTERS, offsets=False, random_state=0, **settings)


@cache
def tested() -> tuple[Any, gg.certificates.Certificate]:
    """A model of the first half of the rows, and what the second half certifies of its median."""
    X, y = rows()
    model = grid().fit(X[:300], y[:300])
    return model, gg.certify(model, X[300:], y[300:], bound="holdout", predictor="median")


def watch() -> Watch:
    model, certificate = tested()
    return certificate.watch(model)


def later(n: int = 200) -> tuple[Any, Any]:
    rng = np.random.default_rng(8)
    return rng.integers(0, 25, (n, 2)), rng.integers(1, 6, n)


def stratified() -> gg.certificates.Certificate:
    X, y = rows()
    return gg.certify_predictions(y, np.full(len(y), 3), alphabet=LETTERS, strata=X[:, 0] % 3, random_state=0)


def predicted(**options: Any) -> gg.certificates.Certificate:
    _, y = rows()
    return gg.certify_predictions(y, np.full(len(y), 3), **{"alphabet": LETTERS, **options})


def propensity(**options: Any) -> Propensity:
    given: dict[str, Any] = {"rows": np.linspace(0.1, 1, 600), "least": 0.1, **options}
    return Propensity(**given)


class Lists(BaseEstimator):
    """A ranker of somebody's: ``how`` says what it lists."""

    def __init__(self, how: str = "popular") -> None:
        self.how = how

    def fit(self, X: Any, y: Any = None) -> Lists:
        pairs = np.asarray(X, dtype=np.int64)
        items, counts = np.unique(pairs[:, 1], return_counts=True)
        self.order_ = items[np.argsort(-counts if self.how == "popular" else counts, kind="stable")]
        self.all_ = items
        return self

    def recommend_for(self, basket: Any, n: int) -> Any:
        known = {int(item) for item in basket}
        if self.how == "complement":  # whoever owns everything misses what was hidden
            return [item for item in self.all_.tolist() if item not in known][:n]
        return [item for item in self.order_.tolist() if item not in known][:n]


def everything(n_users: int = 40, n_items: int = 12) -> Any:
    return np.argwhere(np.ones((n_users, n_items), bool))


def tastes(rng: np.random.Generator, n: int = 60) -> Any:
    """Each user takes 4 of 20 items, popular ones more often."""
    weights = 1 / np.arange(1, 21)
    return np.array([(u, i) for u in range(n) for i in rng.choice(20, 4, replace=False, p=weights / weights.sum())])


def ranking_fails(rng: np.random.Generator, how: str, tries: int = 1) -> bool:
    """The truth is that of the members on many more users."""
    pairs = tastes(rng)
    made = [
        gg.certify_ranking(Lists(how), pairs, at=5, candidates=tries, random_state=int(rng.integers(2**31)))
        for _ in range(tries)
    ]
    best = min(made, key=lambda one: one.value)
    fresh, misses = tastes(rng, 300).reshape(300, 4, 2)[:, :, 1], []
    for member in best.members:
        listed = [member.recommend_for(mine[1:], 5) for mine in fresh]
        misses.append(np.mean([mine[0] not in one for mine, one in zip(fresh, listed)]))
    # Three standard errors of the truth itself are no failure of the certificate.
    return best.value < np.mean(misses) - 3 * (0.25 / 300) ** 0.5


def smallest_stratum_fails(rng: np.random.Generator) -> bool:
    """Ten strata that are all alike; the one that looks best is read."""
    at, y = rng.integers(0, 10, 400), (rng.random(400) < 0.3).astype(int)
    found = gg.certify_predictions(y, np.zeros(400, int), loss="zero-one", alphabet=[0, 1], strata=at)
    return min(part.value for part in found.strata.parts) < 0.3


def peeking_fails(rng: np.random.Generator) -> bool:
    """Somebody looks after every few rows and stops at the first alarm, against a promise that is kept."""
    found = gg.certify_predictions(
        np.tile([0, 0, 0, 1], 100), np.zeros(400, int), loss="zero-one", alphabet=[0, 1], sample_weight=np.ones(400)
    )
    kept = Watch.of(found.to_dict(), found.record.facts(), None, 0.05)
    return any(kept.add((rng.random(20) < found.value).astype(float)).ended is not None for _ in range(15))


def winner_fails(rng: np.random.Generator) -> bool:
    """Six models that are equally good: a winner, or any difference that is proved, is a failure."""
    y = rng.integers(0, 2, 150)
    guesses = {f"model {j}": rng.integers(0, 2, 150) for j in range(6)}
    found = audit(y, guesses, loss="zero-one", alphabet=[0, 1])
    return found.winner is not None or any(one.better for one in found.differences)


def best_of_audit_fails(rng: np.random.Generator) -> bool:
    """Twelve models that guess: the smallest bound of them all is below one half."""
    y = rng.integers(0, 2, 150)
    found = audit(y, {f"model {j}": rng.integers(0, 2, 150) for j in range(12)}, loss="zero-one", alphabet=[0, 1])
    return min(one.value for one in found.models.values()) < 0.5


def change_fails(rng: np.random.Generator) -> bool:
    """Nothing changes over time, in any of four models and two divisions."""
    y = (rng.random(200) < 0.3).astype(int)
    guesses = {name: rng.integers(0, 2, 200) for name in "abcd"}
    found = audit(y, guesses, loss="zero-one", alphabet=[0, 1], strata={"x": rng.integers(0, 3, 200)}, ordered=True)
    return any(one.verdict != "no change is proved" for one in found.changes)


def large_groups_fail(rng: np.random.Generator) -> bool:
    """Groups that lose much are large, or small, as the draw will have it; covered is the mean over groups."""
    risk = rng.beta(1, 2, 60)
    sizes = np.maximum(1, np.round(12 * (risk if rng.random() < 0.5 else 1 - risk))).astype(int)
    wrong = (rng.random(sizes.sum()) < np.repeat(risk, sizes)).astype(int)
    groups = np.repeat(np.arange(60), sizes)
    found = gg.certify_predictions(
        wrong, np.zeros(len(wrong), int), loss="zero-one", alphabet=[0, 1], groups=groups, random_state=0
    )
    return found.value < 1 / 3


def steered_fails(rng: np.random.Generator) -> bool:
    """Both strata keep their promise, and somebody who sees the evidence says of which the next rows are."""
    loss = {"name": "absolute", "alphabet": None, "bounds": [0.0, 1.0], "table": None, "low": 0.0, "range": 1.0}
    facts = {
        "value": 0.2, "delta": DELTA, "predictor": "predictions", "bound": "holdout", "model": None, "loss": loss,
        "strata": [{"name": name, "value": 0.2} for name in "ab"], "strata_rule": "column",
    }  # fmt: skip
    kept = Watch(facts, alpha=DELTA)
    for _ in range(40):
        ahead = max(kept.tracks[1:], key=lambda track: track.log_wealth).name
        kept.add((rng.random(10) < 0.2).astype(float), np.full(10, ahead))
    return kept.ended is not None or any(track.ended is not None for track in kept.tracks)


def ranking_winner_fails(rng: np.random.Generator) -> bool:
    hidden = np.column_stack([np.arange(80), np.zeros(80, int)])
    lists = [{u: [0] if rng.random() < 0.5 else [1] for u in range(80)} for _ in range(4)]
    return any(one.better for one in audit_rankings(hidden, dict(zip("abcd", lists)), at=1).differences)


def new_nodes_fail(rng: np.random.Generator) -> bool:
    """Pairs of 40 nodes, wrong where both nodes are of one kind: what is certified of pairs of new nodes."""
    pairs, kind = np.array([(a, b) for a in range(40) for b in range(a)]), rng.random(40) < 0.5
    wrong = (kind[pairs[:, 0]] & kind[pairs[:, 1]]).astype(int)
    found = gg.certify_predictions(wrong, np.zeros(len(pairs), int), loss="zero-one", alphabet=[0, 1], groups=pairs)
    return found.value < 0.25


def rare_and_bad_fails(rng: np.random.Generator) -> bool:
    """All losses are where propensities are smallest."""
    rate = np.array([0.02, 1.0])
    at = rng.choice(2, 300, p=rate / rate.sum())
    told = Propensity(rate[at], 0.02)
    found = gg.certify_predictions(
        (at == 0).astype(float), np.zeros(300), loss="absolute", label_bounds=(0, 1), propensity=told
    )
    return found.value < 0.5


def proportional_fails(rng: np.random.Generator) -> bool:
    """Propensities that are all a hundred times too large are the same propensities."""
    at = rng.choice(2, 300, p=[1 / 11, 10 / 11])
    losses = (rng.random(300) < np.array([0.8, 0.1])[at]).astype(float)
    told = Propensity(np.array([10.0, 100.0])[at], 10.0)
    found = gg.certify_predictions(losses, np.zeros(300), loss="absolute", label_bounds=(0, 1), propensity=told)
    return found.value < 0.45


def smallest_gamma_fails(rng: np.random.Generator) -> bool:
    """The smallest of three Γ that were tried, the middle one of which is true, with the candidates counted."""
    at = rng.choice(2, 300, p=[1 / 11, 10 / 11])
    losses = (rng.random(300) < np.array([0.8, 0.1])[at]).astype(float)
    told = [Propensity(np.array([0.1, 1.0])[at], 0.1, gamma) for gamma in (1.0, 1.2, 1.5)]
    values = [
        gg.certify_predictions(
            losses, np.zeros(300), loss="absolute", label_bounds=(0, 1), propensity=one, candidates=3
        ).value
        for one in told
    ]
    return min(values) < 0.45


SIMULATED: dict[tuple[str, str], Callable[[np.random.Generator], bool]] = {
    (RANKINGS, "cross-fitting by users, popular items"): lambda rng: ranking_fails(rng, "popular"),
    (RANKINGS, "cross-fitting by users, the rarest items first"): lambda rng: ranking_fails(rng, "rare"),
    (RANKINGS, "the best of five orders of users, counted as candidates"): lambda rng: ranking_fails(rng, "popular", 5),
    (STRATA, "the stratum that looks best"): smallest_stratum_fails,
    (STRATA, "pairs of new nodes, where nodes differ"): new_nodes_fail,
    (WATCHES, "a look after every twenty rows"): peeking_fails,
    (STRATA, "groups whose size goes with their loss"): large_groups_fail,
    (WATCHES, "the next stratum is chosen by who sees the evidence"): steered_fails,
    (AUDITS, "a winner among equals"): winner_fails,
    (AUDITS, "the best of twelve that guess"): best_of_audit_fails,
    (AUDITS, "a change where there is none"): change_fails,
    (AUDITS, "a ranking called better among equals"): ranking_winner_fails,
    (CATALOGUE, "all losses where propensities are smallest"): rare_and_bad_fails,
    (CATALOGUE, "propensities a hundred times too large"): proportional_fails,
    (CATALOGUE, "the smallest of three Γ"): smallest_gamma_fails,
}


def twice(rows_: Any) -> Any:
    return np.concatenate([rows_, rows_])


def frame(*names: str) -> Any:
    return pl.DataFrame(rows()[0], schema=["u", "v"]).select(names)


def copies(n: int = 600, **options: Any) -> Any:
    """Measurements and predictions of 300 rows, some of them twice."""
    y = np.resize(np.random.default_rng(2).uniform(1, 5, 300), n)
    return gg.certify_predictions(y, np.clip(y + 0.1, 1, 5), label_bounds=(1, 5), **options)


def on_the_fit(model: Any, n: int = 300, weight: int = 1) -> Any:
    """A certificate of held-out rows on rows of the fit."""
    X, y = (column[:n] for column in rows())
    return gg.certify(model, X, y, bound="holdout", predictor="median", sample_weight=np.full(n, weight))


def ranker_of_everything() -> gg.BasketRanker:
    return gg.BasketRanker(members=("items",), random_state=0).fit(everything())


def counted(change: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    """Rows that were counted come again, changed."""
    X, y = later()
    return watch().update(X, y).update(*change(X, y))


def state_of(change: Callable[[dict[str, Any]], None]) -> Any:
    """A watch whose file was changed."""
    with tempfile.TemporaryDirectory() as folder:
        watch().update(*later()).save(path := Path(folder) / "w.json")
        kind, state = storage.read(path)
        change(state)
        storage.write(path, state.pop("kind", kind), state)
        return Watch.load(path, tested()[0])


REFUSED: dict[tuple[str, str], Callable[[], Any]] = {
    (WATCHES, "a certificate of held-out rows, watched with another model"): lambda: tested()[1].watch(other_model()),
    (WATCHES, "a state that goes on with another model"): lambda: state_of_another_model(),
    (STRATA, "a stream that is asked for one stratum after the other"): lambda: [
        stream.of_blocks([np.zeros(90)], np.ones(1)) for stream in [Progressive(4.0)] * 2
    ],
    (STRATA, "a stratum without a test"): lambda: Progressive(4.0).of_blocks([np.zeros(0)], np.ones(1)),
    (CATALOGUE, "propensities that are masked"): lambda: predicted(
        propensity=propensity(rows=np.ma.array(np.linspace(0.1, 1, 600), mask=[True] + [False] * 599))
    ),
    (CATALOGUE, "labels that are masked"): lambda: selection_effect(
        np.ma.array(rows()[1], mask=[True] * 599 + [False]),
        np.full(600, 3),
        label_bounds=(1, 5),
        propensity=propensity(),
    ),
    (RANKINGS, "a ranker that is fitted here, with random='hiding'"): lambda: gg.certify_ranking(
        Lists(), everything(), random="hiding"
    ),
    (RANKINGS, "a ranker that is fitted here against finished lists"): lambda: gg.certify_ranking(
        Lists(), everything(), against={u: [0] for u in range(40)}
    ),
    (RANKINGS, "finished lists against a ranker that is fitted here"): lambda: gg.certify_ranking(
        {u: [0] for u in range(40)}, everything(), against=Lists()
    ),
    (RANKINGS, "nothing is hidden"): lambda: gg.certify_ranking(Lists(), everything(), hide=0.0),
    (RANKINGS, "everything is hidden"): lambda: gg.certify_ranking(Lists(), everything(), hide=1.0),
    (RANKINGS, "users with one item each"): lambda: gg.certify_ranking(Lists(), np.arange(80).reshape(40, 2)),
    (STRATA, "a stratum for each row"): lambda: gg.certify_predictions(
        np.tile(np.arange(1, 6), 400), np.full(2000, 3), alphabet=LETTERS, strata=np.arange(2000)
    ),
    (STRATA, "strata that are missing"): lambda: predicted(strata=np.array([None, *["a"] * 599], object)),
    (STRATA, "strata that are masked"): lambda: predicted(strata=np.ma.masked_equal(rows()[0][:, 0] % 3, 1)),
    (STRATA, "shares below zero"): lambda: stratified().for_mix({"0": 1.5, "1": -0.5}),
    (STRATA, "shares that do not add up"): lambda: stratified().for_mix({"0": 0.2, "1": 0.2}),
    (STRATA, "shares that are not numbers"): lambda: stratified().for_mix({"0": float("nan"), "1": 1.0}),
    (STRATA, "a mix of no rows"): lambda: stratified().for_mix(np.zeros(0, str)),
    (STRATA, "a mix where nothing was stratified"): lambda: predicted().for_mix({"0": 1.0}),
    (STRATA, "the file of a mix"): lambda: stratified().for_mix({"0": 1.0}).save("mix.json"),
    (STRATA, "a mix that is watched"): lambda: stratified().for_mix({"0": 1.0}).watch(),
    (STRATA, "strata of single folds"): lambda: predicted(strata=rows()[1], folds=rows()[0][:, 0] % 2),
    (STRATA, "strata with references"): lambda: gg.certify_progressive(
        grid(), *rows(), strata="known/new", references=2
    ),
    (WATCHES, "the same rows again"): lambda: counted(lambda X, y: (X, y)),
    (WATCHES, "the same rows in another order"): lambda: counted(lambda X, y: (X[::-1], y[::-1])),
    (WATCHES, "the same rows with labels of single precision"): lambda: counted(lambda X, y: (X, y.astype(np.float32))),
    (WATCHES, "the same rows with ids as texts and as numbers"): lambda: (
        watch().update(*later()).update(later()[0].astype(object), later()[1])
    ),
    (WATCHES, "one of the rows again, among new ones"): lambda: counted(
        lambda X, y: (np.vstack([X[:100], X[:50] + np.array([[0, 1]])]) % 25, np.append(y[:100], y[:50]))
    ),
    (WATCHES, "copies within a batch"): lambda: watch().update(twice(later()[0]), twice(later()[1])),
    (WATCHES, "rows of the fit"): lambda: watch().update(rows()[0][:300], rows()[1][:300]),
    (WATCHES, "another model than was certified"): lambda: gg.certify_progressive(grid(), *rows()).watch(
        gg.certify_progressive(grid(), *rows()).model
    ),
    (WATCHES, "a promise that says nothing"): lambda: gg.certify_predictions(
        np.full(30, 5), np.full(30, 1), alphabet=LETTERS
    ).watch(),
    (WATCHES, "a certificate of all posteriors"): lambda: gg.certify(grid().fit(*rows()), *rows()).watch(),
    (WATCHES, "the randomised predictor"): lambda: (
        gg.certify(tested()[0], rows()[0][300:], rows()[1][300:], bound="holdout").watch(tested()[0]).update(*later())
    ),
    (WATCHES, "α = 0"): lambda: predicted().watch(alpha=0.0),
    (WATCHES, "α = 1"): lambda: predicted().watch(alpha=1.0),
    (WATCHES, "a loss outside its range"): lambda: predicted().watch().add([9.0]),
    (WATCHES, "a loss that is no number"): lambda: predicted().watch().add([float("nan")]),
    (WATCHES, "a label outside those that were stated"): lambda: watch().update(later()[0], later()[1] + 9),
    (WATCHES, "a state of another kind"): lambda: state_of(lambda state: state.update(kind="other")),
    (WATCHES, "a state without its tracks"): lambda: state_of(lambda state: state.pop("tracks")),
    (WATCHES, "strata that nobody names"): lambda: (
        stratified().watch().update(np.arange(10)[:, None], np.full(10, 3), predictions=np.full(10, 3))
    ),
    (STRATA, "a mix read as a finite population"): lambda: held_out_part(stratified().for_mix({"0": 1.0}), 6000, 0),
    (STRATA, "the strata of what is not yet observed"): lambda: held_out_part(stratified(), 6000, 0).for_mix(
        {"0": 1.0}
    ),
    (STRATA, "a mix of rows where groups count"): lambda: predicted(
        strata=rows()[0][:, 0] % 3, groups=np.arange(600) // 2
    ).for_mix({"0": 1.0}),
    (STRATA, "a mix of columns in another order"): lambda: gg.certify_progressive(
        grid(), frame("u", "v"), rows()[1], strata="known/new"
    ).for_mix(frame("v", "u")),
    (STRATA, "strata of progressive tests read as a finite population"): lambda: whole_population(
        gg.certify_progressive(grid(), *rows(), strata="known/new"), 6000
    ),
    (STRATA, "references read as a finite population"): lambda: held_out_part(
        gg.certify_progressive(grid(), *rows(), references=2), 6000
    ),
    (STRATA, "groups read as a finite population of rows"): lambda: held_out_part(
        predicted(groups=np.arange(600) // 20), 60_000, 0
    ),
    (STRATA, "shares of members that add up to two"): lambda: Progressive(4.0).of_blocks([np.ones(9)], np.array([2.0])),
    (STRATA, "groups without a name"): lambda: predicted(groups=np.array([None, *["a"] * 599], object)),
    (STRATA, "copies with a group each"): lambda: copies(groups=np.arange(600)),
    (STRATA, "copies of which one has a weight"): lambda: copies(sample_weight=np.append(2, np.ones(599, int))),
    (STRATA, "copies in the other fold"): lambda: copies(folds=np.arange(600) // 300),
    (STRATA, "overlapping exports of measurements and predictions"): lambda: copies(450),
    (WATCHES, "losses that are masked"): lambda: predicted().watch().add(np.ma.masked_equal([1.0, 2.0], 1.0)),
    (AUDITS, "no predictions"): lambda: audit([1, 2], {}, alphabet=[1, 2]),
    (AUDITS, "every row twice"): lambda: audit(
        twice(np.arange(100) / 7), {"a": twice(np.arange(100) / 7)}, label_bounds=(0, 20)
    ),
    (AUDITS, "labels outside what was stated"): lambda: audit([1, 9], {"a": [1, 1]}, alphabet=[1, 2]),
    (CATALOGUE, "a least propensity above that of a row"): lambda: predicted(propensity=propensity(least=0.5)),
    (CATALOGUE, "a propensity of zero"): lambda: predicted(propensity=propensity(rows=np.zeros(600), least=0.0)),
    (CATALOGUE, "propensities that are not numbers"): lambda: predicted(
        propensity=propensity(rows=np.full(600, np.nan))
    ),
    (CATALOGUE, "too few propensities"): lambda: predicted(propensity=propensity(rows=np.ones(10))),
    (CATALOGUE, "Γ below one"): lambda: predicted(propensity=propensity(gamma=0.5)),
    (CATALOGUE, "Γ without end"): lambda: predicted(propensity=propensity(gamma=float("inf"))),
    (CATALOGUE, "propensities of folds"): lambda: predicted(propensity=propensity(), folds=rows()[0][:, 0] % 2),
    (CATALOGUE, "propensities of groups"): lambda: predicted(propensity=propensity(), groups=rows()[0][:, 0]),
    (CATALOGUE, "propensities with weights"): lambda: predicted(propensity=propensity(), sample_weight=np.full(600, 2)),
    (CATALOGUE, "propensities with bets in order"): lambda: predicted(propensity=propensity(), method="betting"),
    (CATALOGUE, "a catalogue read as a finite population"): lambda: whole_population(
        predicted(propensity=propensity()), 6000, 0
    ),
    (CATALOGUE, "the file of a certificate by propensities"): lambda: predicted(propensity=propensity()).save("c.json"),
    (CATALOGUE, "a certificate by propensities that is watched"): lambda: predicted(propensity=propensity()).watch(),
    (CATALOGUE, "a selection effect of nothing"): lambda: selection_effect([1], [1], label_bounds=(1, 5)),
    (CATALOGUE, "a selection effect of labels outside"): lambda: selection_effect(
        [9.0], [1.0], label_bounds=(1, 5), at_random=([1.0], [1.0])
    ),
    (CHECKED, "rows of the fit with ids as texts"): lambda: gg.certify(
        grid().fit(rows()[0].astype(str), rows()[1]), rows()[0].astype(str), rows()[1], bound="holdout"
    ),
    (CHECKED, "rows of the fit with labels of single precision"): lambda: gg.certify(
        tested()[0], rows()[0][:300], rows()[1][:300].astype(np.float32), bound="holdout", predictor="median"
    ),
    (CHECKED, "rows of the fit, the model pickled"): lambda: on_the_fit(pickle.loads(pickle.dumps(tested()[0]))),
    (CHECKED, "rows of the fit as a Sample"): lambda: gg.certify(
        tested()[0], tested()[0].sample(rows()[0][:300], rows()[1][:300]), bound="holdout", predictor="median"
    ),
    (CHECKED, "some rows of the fit with a weight of three"): lambda: on_the_fit(tested()[0], 30, 3),
    (CHECKED, "a table of losses, and an alphabet in another order than its rows"): lambda: gg.certify_predictions(
        np.resize(["well", "ill"], 300), np.full(300, "well"), loss=[[0.0, 5.0], [1.0, 0.0]], alphabet=["well", "ill"]
    ),
    (CHECKED, "a grid with a table of losses, and an alphabet in another order than its rows"): lambda: (
        gg.CoClusteringClassifier(2, loss=[[0.0, 5.0], [1.0, 0.0]], alphabet=["well", "ill"]).fit(
            rows()[0], np.resize(["well", "ill"], 600)
        )
    ),
    (CHECKED, "predictions that are complex numbers"): lambda: gg.certify_predictions(
        rows()[1], rows()[1] + 2j, label_bounds=(1, 5)
    ),
    (CHECKED, "predictions that are points in time"): lambda: gg.certify_predictions(
        rows()[1], np.full(600, np.datetime64(3, "ns")), label_bounds=(1, 5)
    ),
    (STRATA, "groups named 1 and 1.0, which count twice"): lambda: predicted(
        groups=np.array([name for k in range(300) for name in (k, float(k))], dtype=object)
    ),
    (STRATA, "a mix of ids as texts, all of which are new then"): lambda: gg.certify_progressive(
        grid(), *rows(), strata="known/new"
    ).for_mix(rows()[0].astype(str)),
    (WATCHES, "the same new ids as texts, and as numbers before"): lambda: (
        watch().update(later()[0] + 25, later()[1]).update((later()[0] + 25).astype(str), later()[1])
    ),
    (WATCHES, "known ids as texts, which the model takes for new ones"): lambda: watch().update(
        later()[0].astype(str), later()[1]
    ),
    (RANKINGS, "the method of a rival that has the hidden items in its baskets"): lambda: gg.certify_ranking(
        {u: [0] for u in range(40)}, everything()[::12], against=ranker_of_everything().top, at=3
    ),
    (CHECKED, "a model that answers by what stands beside a row"): lambda: gg.certify_progressive(
        Beside(), *rows(), loss="absolute", alphabet=LETTERS
    ),
}


class Beside(BaseEstimator):
    """Answers the mean of the rows it is asked about."""

    def fit(self, X: Any, y: Any) -> Beside:
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 1.0 + 4.0 * (np.asarray(X).sum() % 97) / 97)


class Keeps(BaseEstimator):
    """A clone of it is it: it keeps what it has learned."""

    def fit(self, X: Any, y: Any) -> Keeps:
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 3.0)

    def __sklearn_clone__(self) -> Keeps:
        return self


class Claims(BaseEstimator):
    """Says that gingham made it."""

    __module__ = "gingham.models.grid"

    def fit(self, X: Any, y: Any) -> Claims:
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 3.0)


def listed_as(certificate: Any, code: str, status: str) -> dict[str, Any]:
    """How a certificate lists a premise."""
    found = [one for one in certificate.assumptions if one.code == code]
    return {"holds": [one.status for one in found] == [status], "says": found[0].text if found else None}


def progressive(model: Any, **options: Any) -> Any:
    how: dict[str, Any] = {"loss": "absolute", "alphabet": LETTERS, "blocks": 2, **options}
    return gg.certify_progressive(model, *rows(), **how)


def fitted_elsewhere() -> Any:
    pairs = everything()
    hidden = np.column_stack([np.arange(40), np.arange(40) % 12])
    kept = pairs[~(pairs[:, 1] == pairs[:, 0] % 12)]
    return gg.certify_ranking(gg.BasketRanker(members=("items",), random_state=0).fit(kept), hidden, at=3)


def other_model() -> Any:
    """A model of the same rows that is not the certified one."""
    X, y = rows()
    return grid(beta=3.0).fit(X[:300], y[::-1][:300])


def state_of_another_model() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        watch().save(f"{folder}/w.json")
        return Watch.load(f"{folder}/w.json", other_model())


def labels_as_predictions() -> dict[str, Any]:
    """A certificate file whose predictions are read from the column of labels."""
    _, y = rows()
    with tempfile.TemporaryDirectory() as folder:
        table, path = Path(folder) / "t.csv", Path(folder) / "c.json"
        pl.DataFrame({"guess": np.full(len(y), 3), "y": y}).write_csv(table)
        gg.certify_predictions(y, y.astype(float), alphabet=LETTERS).save(path)
        document = json.loads(path.read_text())
        document["data"] |= {"columns": ["y"], "names": ["y", "y"]}
        path.write_text(json.dumps(document))
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = verify.main(path, "-", table)
        return {"holds": code == 1, "says": said.getvalue().strip()}


def frozen_clusters() -> gg.certificates.Certificate:
    """Clusters that were made of the labels, handed in as fixed, so that nothing is paid for them."""
    y = np.random.default_rng(0).integers(0, 2, 300)
    structure = Structure((Mode("u", np.arange(300)), Mode("v", np.arange(1))), ((0, 1),), (0,))
    cell = ZeroOne(Alphabet.of((0, 1), given=True))
    posterior = Posterior(structure, (cell,), (np.eye(2)[y], np.ones((1, 1))), (np.array([[0], [1]]),))
    return gg.certify(posterior, np.column_stack([np.arange(300), np.zeros(300, int)]), y, population=(300, 1))


def after_a_choice() -> dict[str, Any]:
    """Another bound on the evidence that looked best among ten, by which each had a tenth of δ."""
    X, y = rows()
    each = [gg.certify(grid().set_params(random_state=seed).fit(X, y), X, y, delta=DELTA / 10) for seed in range(10)]
    best = each[0].compare(*each[1:], bounds=["log-wealth"]).best
    chosen = min(each, key=lambda one: one.value)
    made, alone = (one.compare(bounds=["kl"])["kl"] for one in (best, chosen))
    return {"holds": bool(abs(made.value - alone.value) < 1e-9), "says": f"{made.chosen_from} candidates are paid"}


def unknown_stratum() -> dict[str, Any]:
    found = stratified()
    return {"holds": found.for_mix({"nobody": 1.0}).value == found.worst, "says": "bounded by the largest loss"}


def looks(second: tuple[str, ...], wanted: int) -> dict[str, Any]:
    """How many candidates a certificate counts after a second fit to the same file."""
    with tempfile.TemporaryDirectory() as folder:
        X, y = rows()
        table, model = f"{folder}/t.csv", f"{folder}/m.gingham"
        pl.DataFrame({"u": [f"u{a}" for a in X[:, 0]], "v": [f"v{b}" for b in X[:, 1]], "y": y}).write_csv(table)
        how = ["--axes", "u,v", "--label", "y", "--alphabet", "1..5", "--seed", "0", "--out", model, "-q"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            codes = [gingham_command(["fit", table, *how, *clusters]) for clusters in (("--clusters", "2,2"), second)]
        if any(codes):
            return {"holds": False}
        record = gg.load(model)._record
        return {"holds": record.looks == wanted, "says": f"{record.looks} candidates"}


SHOWN: dict[tuple[str, str], Callable[[], dict[str, Any]]] = {
    (RANKINGS, "a ranker fitted on what was left of the same users' items"): lambda: listed_as(
        fitted_elsewhere(), "ranking independent of hiding", "given"
    ),
    (RANKINGS, "somebody's ranker, fitted here"): lambda: listed_as(
        gg.certify_ranking(Lists(), everything(), at=3), "fitted on other users", "given"
    ),
    (STRATA, "strata that are the labels"): lambda: listed_as(predicted(strata=rows()[1]), "strata", "given"),
    (STRATA, "a stratum that nobody tested"): unknown_stratum,
    (CHECKED, "clusters that know the labels, handed in as fixed"): lambda: listed_as(
        frozen_clusters(), "clusters fixed beforehand", "given"
    ),
    (CHECKED, "another bound on the evidence that looked best among ten"): after_a_choice,
    (CHECKED, "a file that reads predictions from the column of labels"): labels_as_predictions,
    (WATCHES, "rows that somebody has sorted"): lambda: listed_as(watch(), "order watched", "given"),
    (CATALOGUE, "propensities that are made up"): lambda: listed_as(
        predicted(propensity=propensity()), "propensities", "given"
    ),
    (CHECKED, "an estimator that keeps what it knows when it is cloned"): lambda: listed_as(
        progressive(Keeps()), "members fitted outside", "given"
    ),
    (CHECKED, "a class that says it is gingham's"): lambda: listed_as(
        progressive(Claims()), "members fitted outside", "given"
    ),
    (CHECKED, "a fit= function"): lambda: listed_as(
        progressive(grid(), fit=lambda model, X, y, counts: model.fit(X, y)), "members fitted outside", "given"
    ),
    (CHECKED, "a start that was learned from all rows"): lambda: listed_as(
        progressive(grid(start=grid().fit(*rows()).posterior_)), "members fitted outside", "given"
    ),
    (LINE, "another fit to the same file, whose error was shown"): lambda: looks(
        ("--clusters", "2,2", "--loss", "quadratic"), 2
    ),
    (LINE, "the same fit once more"): lambda: looks(("--clusters", "2,2"), 1),
}
