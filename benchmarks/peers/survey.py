"""A survey with questions of four kinds and holes: imputation beside scikit-learn's, calibration, sets of answers.

    python benchmarks/peers/survey.py

Planted: 600 people with three traits answer 32 questions: yes or no, a scale of five steps, one of four names, and
measurements, eight of each; a fifth of the cells is empty. `SurveyCoClustering` has nothing set. `IterativeImputer`
(Bayesian ridge regression, 10 rounds) works on the numbers of answers, with an indicator for each name but one; its
numbers are rounded to the nearest answer, and the name with the largest indicator is taken. "mode": the most common
answer, the mean of measurements. Errors are those of the empty cells: the share of wrong answers; of steps also the
absolute error of the predicted step; of measurements the root mean square error over the standard deviation.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[1]))

from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from common import arguments, write
from gingham.models import SurveyCoClustering

FIGURES = {"errors": "by_seed/*/errors/*/*", "coverage of 90 % sets": "by_seed/*/coverage/all"}
NAMES = np.array(["red", "green", "blue", "black"])
EACH, TRAITS, HOLES = 8, 3, 0.2


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--people", type=int, default=600)


def planted(n: int, seed: int) -> dict[str, np.ndarray]:
    """The answers to every question; their names say the kind."""
    rng = np.random.default_rng(seed)
    people = rng.normal(size=(n, TRAITS))

    def latent(k: int = 1) -> np.ndarray:
        return people @ rng.normal(size=(TRAITS, k)) + rng.normal(0, 0.8, (n, k)) + rng.normal(0, 0.5, k)

    found: dict[str, np.ndarray] = {}
    for at in range(EACH):
        found[f"yes {at}"] = np.where(latent()[:, 0] > 0, "yes", "no")
        found[f"step {at}"] = 1 + np.digitize(latent()[:, 0], [-2.0, -0.7, 0.7, 2.0])
        found[f"name {at}"] = NAMES[latent(4).argmax(axis=1)]
        found[f"size {at}"] = np.round(50 + 10 * latent()[:, 0], 1)
    return found


def iterative(table: dict[str, np.ndarray], holes: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    columns, places = [], {}
    for at, (name, answers) in enumerate(table.items()):
        values = np.unique(answers[~holes[:, at]])
        if name.startswith("name"):
            coded = (answers[:, None] == values[1:]).astype(float)  # all of them would add up to one
        else:
            coded = (
                (answers == "yes").astype(float)[:, None] if name.startswith("yes") else answers[:, None].astype(float)
            )
        coded[holes[:, at]] = np.nan
        places[name] = (sum(c.shape[1] for c in columns), values)
        columns.append(coded)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = IterativeImputer(random_state=seed, max_iter=10).fit_transform(np.column_stack(columns))
    found = {}
    for name, (first, values) in places.items():
        said = full[:, first]
        if name.startswith("name"):
            others = full[:, first : first + len(values) - 1]
            found[name] = values[np.column_stack([1.0 - others.sum(axis=1), others]).argmax(axis=1)]
        elif name.startswith("yes"):
            found[name] = np.where(said > 0.5, "yes", "no")
        else:
            found[name] = np.clip(np.rint(said), 1, 5) if name.startswith("step") else said
    return found


def mode(table: dict[str, np.ndarray], holes: np.ndarray) -> dict[str, np.ndarray]:
    found = {}
    for at, (name, answers) in enumerate(table.items()):
        known = answers[~holes[:, at]]
        values, counts = np.unique(known, return_counts=True)
        guess = known.mean() if name.startswith("size") else values[counts.argmax()]
        found[name] = np.full(len(answers), guess)
    return found


def layered(table: dict[str, np.ndarray], holes: np.ndarray, seed: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    n = len(holes)
    people = [f"p{i}" for i in range(n)]
    wide = pl.DataFrame(
        {"person": people, **{
            name: [None if gone else answer for answer, gone in zip(answers.tolist(), holes[:, at])]
            for at, (name, answers) in enumerate(table.items())
        }}
    )  # fmt: skip
    model = SurveyCoClustering(random_state=seed).fit(wide)
    filled = model.impute(wide)
    facts: dict[str, Any] = {"selection": str(model.selection_)}
    # Of the empty cells: how often the answer is in its set, and whether probabilities are what happens.
    at = [(i, q) for q in range(holes.shape[1]) for i in np.flatnonzero(holes[:, q])]
    names = list(table)
    X = pl.DataFrame({"person": [people[i] for i, _ in at], "question": [names[q] for _, q in at]})
    truth = [table[names[q]][i] for i, q in at]
    chances, inside = model.predict_proba(X), model.predict_set(X, 0.9)
    scales = dict(zip(model.questions_.names, model.questions_.answers))
    numbers = {name: model.classes_[s[s >= 0]].astype(float) for name, s in scales.items() if name.startswith("size")}
    place = {value: c for c, value in enumerate(model.classes_.tolist())}
    codes = []
    for (_, q), answer in zip(at, truth):
        name = names[q]
        text = str(answer)
        if name in numbers:  # a measurement is represented by the nearest step
            text = f"{numbers[name][np.abs(numbers[name] - float(answer)).argmin()]:.12g}"
        codes.append(place[text])
    hit = inside[np.arange(len(codes)), codes]
    kinds = np.array([names[q].split()[0] for _, q in at])
    facts["coverage"] = {"all": hit.mean(), **{kind: hit[kinds == kind].mean() for kind in np.unique(kinds)}}
    facts["set size"] = {kind: inside[kinds == kind].sum(axis=1).mean() for kind in np.unique(kinds)}
    facts["log loss"] = float(-np.log(np.maximum(chances[np.arange(len(codes)), codes], 1e-12)).mean())
    curves = {}
    for kind in np.unique(kinds):
        flat = chances[kinds == kind]
        true = np.zeros(flat.shape, dtype=bool)
        true[np.arange(len(flat)), np.array(codes)[kinds == kind]] = True
        said, true = flat[flat > 0], true[flat > 0]
        bins = np.minimum((said * 10).astype(int), 9)
        curves[kind] = [[said[bins == b].mean(), true[bins == b].mean(), int((bins == b).sum())]
                        for b in range(10) if (bins == b).any()]  # fmt: skip
    facts["calibration"] = curves
    return {name: filled[name].to_numpy() for name in names}, facts


def errors(table: dict[str, np.ndarray], holes: np.ndarray, said: dict[str, np.ndarray]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for at, (name, answers) in enumerate(table.items()):
        kind, gone = name.split()[0], holes[:, at]
        true, guess = answers[gone], said[name][gone]
        if kind == "size":
            found.setdefault("measurement", []).append(
                float(np.sqrt(np.mean((true - guess.astype(float)) ** 2)) / answers.std())
            )
            continue
        if kind == "step":
            guess = guess.astype(float)
            found.setdefault("step, absolute", []).append(float(np.abs(true - guess).mean()))
        found.setdefault(kind, []).append(float(np.mean(true != guess)))
    return {kind: float(np.mean(values)) for kind, values in found.items()}


def main() -> None:
    args = arguments(__doc__ or "", "peers_survey", options)
    n = 200 if args.quick else args.people
    results: dict[str, Any] = {"by_seed": {}}
    for seed in range(1 if args.quick else args.seeds):
        table = planted(n, seed)
        holes = np.random.default_rng(seed + 1000).random((n, len(table))) < HOLES
        row: dict[str, Any] = {"errors": {}, "cpu_s": {}}
        for name, fill in (("mode", mode), ("IterativeImputer", partial(iterative, seed=seed))):
            start = time.process_time()
            row["errors"][name] = errors(table, holes, fill(table, holes))
            row["cpu_s"][name] = time.process_time() - start
        start = time.process_time()
        filled, facts = layered(table, holes, seed)
        row["cpu_s"]["SurveyCoClustering"] = time.process_time() - start
        row["errors"]["SurveyCoClustering"] = errors(table, holes, filled)
        row |= facts
        print(seed, {m: {k: round(v, 3) for k, v in e.items()} for m, e in row["errors"].items()}, flush=True)
        print({k: np.round(v, 3) for k, v in facts["coverage"].items()}, facts["selection"], row["cpu_s"], flush=True)
        results["by_seed"][seed] = row
        write(args, {"people": n, "holes": HOLES, "traits": TRAITS}, results)


if __name__ == "__main__":
    main()
