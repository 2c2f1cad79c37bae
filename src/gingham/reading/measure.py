"""Errors on observations that a model has not seen, beside baselines as strong as they can simply be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.reading.values import MODEL, Errors, Relation, Score

SMALL = 20_000  # rows up to which all of them are held out once, a fifth at a time: a tenth of few rows is noise
FOLDS = 5
HELD = 0.1
SHRINKAGES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # observations of the overall mean that every average starts from
ROUNDS = 10  # in which the averages of several sides are fitted in turn
UNITS = {
    "absolute": "mean absolute error",
    "quadratic": "root mean square error",
    "zero-one": "share of wrong labels",
    "log": "nats per label",
}


def folds_of(n_rows: int, seed: int) -> list[Bools]:
    """Masks of rows to hold out: five folds of few rows, a tenth of many.

    Whole rows are held out, never single counts of one: repeats of a word in a document would give the pair away.
    """
    order = np.random.default_rng([seed, n_rows]).permutation(n_rows)
    parts = np.array_split(order, FOLDS) if n_rows <= SMALL else [order[: round(HELD * n_rows)]]
    found = []
    for part in parts:
        held = np.zeros(n_rows, dtype=bool)
        held[part] = True
        found.append(held)
    return found


def how_measured(n_parts: int) -> str:
    """Which observations errors were measured on, and by what."""
    if n_parts > 1:
        return f"{n_parts}-fold cross-fitting: the same model with the same settings, fitted without each fold in turn"
    return "a tenth of the observations, held out from the same model with the same settings"


def averages(
    codes: Sequence[Ints], shape: Sequence[int], labels: Floats, weights: Floats, seen: Bools, shrinkage: float
) -> Floats:
    """The overall mean of the rows under ``seen`` plus shrunken effects of every side, for all rows, clipped.

    The effects of several sides are fitted together, in turn.
    """
    known = [code[seen] for code in codes]
    counts = weights[seen]
    base = float(np.average(labels[seen], weights=counts))
    rest = labels[seen] - base
    effects = [np.zeros(n) for n in shape]
    masses = [np.bincount(code, counts, n) + shrinkage for code, n in zip(known, shape)]
    for _ in range(ROUNDS if len(codes) > 1 else 1):
        for effect, code, mass in zip(effects, known, masses):
            step = np.bincount(code, counts * rest, len(effect)) / mass - effect * (shrinkage / mass)
            effect += step
            rest = rest - step[code]
    said = base + sum(effect[code] for effect, code in zip(effects, codes))
    return np.clip(said, labels[seen].min(), labels[seen].max())


def chosen_averages(
    codes: Sequence[Ints], shape: Sequence[int], labels: Floats, weights: Floats, seen: Bools, seed: int = 0
) -> Floats:
    """`averages` with the shrinkage that predicts a tenth of the seen rows best from the others."""
    trial = seen & (np.random.default_rng([seed, len(labels)]).random(len(labels)) >= HELD)
    asked = seen & ~trial
    if not asked.any() or not trial.any():
        return averages(codes, shape, labels, weights, seen, 5.0)

    def error(shrinkage: float) -> float:
        said = averages(codes, shape, labels, weights, trial, shrinkage)
        return float(np.average((labels - said)[asked] ** 2, weights=weights[asked]))

    return averages(codes, shape, labels, weights, seen, min(SHRINKAGES, key=error))


def baselines(relation: Relation, shape: Sequence[int], names: Sequence[str], seen: Bools) -> dict[str, AnyArray]:
    """Predictions of every row by a constant and by averages: numbers, or probabilities of labels (N, |Y|)."""
    n, weight = relation.n_entries, relation.weight
    codes = list(relation.codes)
    if relation.both_ways:  # a node has one average, whichever end it stands at
        codes = [np.concatenate([codes[0], codes[1]])]
    sides = dict(zip(names, range(len(names)))) if len(set(names)) == len(names) and not relation.both_ways else {}
    if relation.measure == "labels":
        return _label_shares(relation, shape, sides, seen)
    y = np.asarray(relation.values, dtype=np.float64)
    found: dict[str, AnyArray] = {"constant": np.full(n, float(np.average(y[seen], weights=weight[seen])))}
    if relation.both_ways:
        twice = np.concatenate([y, y]), np.concatenate([weight, weight]), np.concatenate([seen, seen])
        ends = chosen_averages(codes, shape[:1], *twice)
        found["averages"] = (ends[:n] + ends[n:]) - found["constant"]
        return found
    for name, at in sides.items():
        found[f"{name} averages"] = chosen_averages([codes[at]], [shape[at]], y, weight, seen)
    if len(codes) > 1:
        both = "both averages" if len(codes) == 2 else "all averages"
        found[both] = chosen_averages(codes, shape, y, weight, seen)
    return found


def _label_shares(
    relation: Relation, shape: Sequence[int], sides: Mapping[str, int], seen: Bools
) -> dict[str, AnyArray]:
    """Smoothed shares of the labels, overall and of each item of each side."""
    labels, k = np.asarray(relation.values), len(relation.labels)
    overall = np.bincount(labels[seen], relation.weight[seen], k) + 1.0
    overall = overall / overall.sum()
    found: dict[str, AnyArray] = {"constant": np.tile(overall, (relation.n_entries, 1))}
    for name, at in sides.items():
        code = relation.codes[at]
        own = np.bincount(code[seen].astype(np.int64) * k + labels[seen], relation.weight[seen], shape[at] * k)
        own = own.reshape(shape[at], k) + 2.0 * overall
        found[f"{name} averages"] = (own / own.sum(axis=1, keepdims=True))[code]
    return found


def errors_of(relation: Relation, held: Bools, said: Mapping[str, AnyArray], loss: str = "") -> Errors:
    """Predictions on the held-out rows, in the loss first; the model's are of these rows only, others of all rows."""
    weight = relation.weight[held]
    values = np.asarray(relation.values)[held]
    names = relation.measure == "labels"
    of_model = {name: own if name == MODEL else own[held] for name, own in said.items()}
    measures = ("log", "zero-one") if names else ("quadratic", "absolute")
    first = loss if loss in measures else measures[0]
    if names and any(own.ndim == 1 for own in of_model.values()):  # a model that says labels and no probabilities
        measures, first = ("zero-one",), "zero-one"
    tables = {
        one: tuple(Score(name, _mean_loss(one, values, own, weight)) for name, own in of_model.items())
        for one in measures
    }
    others = tuple((UNITS[one], scores) for one, scores in tables.items() if one != first)
    return Errors(first, UNITS[first], tables[first], float(weight.sum()), how_measured(1), others)


def _mean_loss(loss: str, values: AnyArray, said: AnyArray, weight: Floats) -> float:
    if loss == "quadratic":
        return float(np.sqrt(np.average((values - said) ** 2, weights=weight)))
    if loss == "absolute":
        return float(np.average(np.abs(values - said), weights=weight))
    if loss == "zero-one":
        best = said.argmax(axis=1) if said.ndim == 2 else said
        return float(np.average(values != best, weights=weight))
    chance = said[np.arange(len(values)), values]
    return float(np.average(-np.log(np.maximum(chance, 1e-12)), weights=weight))
