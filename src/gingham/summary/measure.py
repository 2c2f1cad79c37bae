"""How large errors are: which rows are held out, what simple rules predict there, and losses side by side.

Plain functions on arrays. The command line and the summary of a model call the same ones, so that one measure, one
division of the rows and the same baselines stand behind every number that a person sees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Bools, Floats, Ints
from gingham.summary.values import Errors, Relation

FEW_ROWS = 20_000  # of so many or fewer, one tenth would say little: all rows are held out, in turn
FOLDS = 5
SHARE = 0.1
SHRINKAGES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)  # observations with nothing to say that an average starts from
ROUNDS, QUICK_ROUNDS = 10, 3  # of averages in turn: to predict with, to choose a shrinkage with
INNER = 0.2  # of the rows learned from: they choose the shrinkage
LEAST = 1e-300  # probability that is taken for what a distribution excludes
UNITS = {
    "absolute": "mean absolute error",
    "quadratic": "root mean square error",
    "zero-one": "share of wrong labels",
    "log": "nats per label",
    "mass": "nats per count",
}
COMMONEST = "the commonest label"


def folds_of(n_rows: int, seed: int, share: float | None = None) -> list[Bools]:
    """Masks of the rows to hold out: five folds of up to 20,000 rows, one tenth of more; one ``share`` if it is given.

    Folds are disjoint and cover all rows; a fold is never empty and never everything.
    """
    order = np.random.default_rng([seed, n_rows]).permutation(n_rows)
    if share is None and n_rows <= FEW_ROWS:
        parts = np.array_split(order, min(FOLDS, n_rows)) if n_rows > 1 else []
    else:
        n_held = round((SHARE if share is None else share) * n_rows)
        parts = [order[:n_held]] if 0 < n_held < n_rows else []
    found = []
    for part in parts:
        held = np.zeros(n_rows, dtype=bool)
        held[part] = True
        found.append(held)
    return found


# simple rules


def baselines(
    rows: Relation, shape: Sequence[int], seen: Bools, names: Sequence[str], loss: str = "quadratic"
) -> dict[str, AnyArray]:
    """What simple rules, learned from the rows under ``seen``, predict of the others.

    Of numbers: one constant, the shrunken averages of each side, and those of all sides fitted together; the shrinkage
    is the one of `SHRINKAGES` that predicts a fifth of the seen rows best, and predictions stay within the range of the
    labels seen. Of names: the shares of labels, of each side, and of all sides together as if they were independent;
    distributions for the logarithmic loss, the likeliest label otherwise. Items of both ends of an edge that goes both
    ways have one average each.

    Parameters
    ----------
    shape : number of items of each position
    names : what an item of each position is called
    """
    asked, tied, named = rows.take(~seen).codes, rows.both_ways, rows.measure == "labels"
    train = rows.plain().take(seen)
    rules = _Rules(train.pair(0, 1) if tied else train, tuple(shape))
    every = list(range(len(asked)))
    alone = every[:1] if tied else every
    if named:
        rule = COMMONEST if loss != "log" else "label shares"
        which = {rule: [], **{f"{rule} of each {names[p]}": [p] for p in alone}}
        together = f"{rule} by {' and '.join(dict.fromkeys(names))}"
    else:
        which = {"one constant": [], **({} if tied else {f"{names[p]} averages": [p] for p in alone})}
        together = "both averages" if len(every) == 2 else "all averages"
    which |= {together: every} if len(every) > 1 else {}
    rng = np.random.default_rng([0, rules.rows.n_entries])
    return {
        name: rules.said(asked, positions, rules.best_shrinkage(positions, loss, rng) if positions else 1.0, loss)
        for name, positions in which.items()
    }


@dataclass(frozen=True, eq=False)
class _Rules:
    """Simple rules that are learned from rows."""

    rows: Relation
    shape: tuple[int, ...]

    def best_shrinkage(self, positions: list[int], loss: str, rng: np.random.Generator) -> float:
        """The shrinkage that predicts some of the rows best from the others; a middle one where there are few rows."""
        held = rng.random(self.rows.n_entries) < INNER
        if not held.any() or held.all():
            return SHRINKAGES[2]
        learned, test = _Rules(self.rows.take(~held), self.shape), self.rows.take(held)
        said = (learned.said(test.codes, positions, by, loss, QUICK_ROUNDS) for by in SHRINKAGES)
        costs = [_mean(row_losses(np.asarray(test.values), own, loss), test.weight) for own in said]
        return SHRINKAGES[int(np.argmin(costs))]

    def said(
        self, asked: Sequence[Ints], positions: list[int], shrinkage: float, loss: str, rounds: int = ROUNDS
    ) -> AnyArray:
        """What the rule made of some positions predicts of rows of codes."""
        if self.rows.measure == "labels":
            distribution = np.exp(self._log_shares(asked, positions, shrinkage))
            distribution /= distribution.sum(axis=1, keepdims=True)
            return distribution if loss == "log" else distribution.argmax(axis=1)
        y, counts = np.asarray(self.rows.values, dtype=np.float64), self.rows.weight
        if not positions:
            return np.full(len(asked[0]), _median(y, counts) if loss == "absolute" else _mean(y, counts))
        base, effects = self.effects(positions, shrinkage, rounds)
        said = base + sum(effect[asked[p]] for p, effect in zip(positions, effects))
        return np.clip(said, y.min(), y.max())

    def effects(self, positions: list[int], shrinkage: float, rounds: int = ROUNDS) -> tuple[float, list[Floats]]:
        """The overall mean, and what each item adds to it: of several positions fitted together, in turn."""
        y, counts = np.asarray(self.rows.values, dtype=np.float64), self.rows.weight
        base = _mean(y, counts)
        rest, codes = y - base, [self.rows.codes[p] for p in positions]
        effects: list[Floats] = [np.zeros(self.shape[p]) for p in positions]
        masses = [np.bincount(code, counts, len(effect)) + shrinkage for code, effect in zip(codes, effects)]
        for _ in range(rounds if len(positions) > 1 else 1):
            for effect, code, mass in zip(effects, codes, masses):
                step = (np.bincount(code, counts * rest, len(effect)) - shrinkage * effect) / mass
                effect += step
                rest -= step[code]
        return base, effects

    def _log_shares(self, asked: Sequence[Ints], positions: list[int], shrinkage: float) -> Floats:
        """ln p(label) + Σ ln p(label|item)/p(label), up to a constant for each row."""
        k, labels, counts = self.rows.n_statistics, np.asarray(self.rows.values), self.rows.weight
        whole = np.bincount(labels, counts, k) + 1.0 / k  # a label that was not seen is not impossible
        whole /= whole.sum()
        distribution = np.tile(np.log(whole), (len(asked[0]), 1))
        for p in positions:
            own = np.bincount(self.rows.codes[p].astype(np.int64) * k + labels, counts, self.shape[p] * k)
            own = own.reshape(-1, k) + shrinkage * whole
            distribution += (np.log(own / own.sum(axis=1, keepdims=True)) - np.log(whole))[asked[p]]
        return distribution


class Additive(NamedTuple):
    """The overall mean and the shrunken effect of every item of every side."""

    base: float
    effects: list[Floats]
    shrinkage: float

    def at(self, codes: Sequence[Ints]) -> Floats:
        """What they say of rows of codes."""
        return np.asarray(self.base + sum(effect[code] for effect, code in zip(self.effects, codes)))


def additive_effects(
    codes: Sequence[Ints], shape: Sequence[int], labels: Floats, weights: Floats | None, shrinkage: float | None = None
) -> Additive:
    """Effects of all sides fitted together; the shrinkage is chosen on held-out rows where none is given."""
    every = list(range(len(codes)))
    rules = _Rules(Relation(tuple(every), tuple(codes), "difference", labels, weights), tuple(shape))
    if shrinkage is None:
        shrinkage = rules.best_shrinkage(every, "quadratic", np.random.default_rng(len(labels)))
    return Additive(*rules.effects(every, shrinkage), shrinkage)


def averages_of(seen: Relation, shape: Sequence[int]) -> Additive:
    """What the averages of all sides say, learned from some entries; ``shape`` has the items of every side."""
    sizes = [shape[side] for side in seen.sides]
    return additive_effects(seen.codes, sizes, np.asarray(seen.values, dtype=np.float64), seen.weights)


# losses


def row_losses(labels: AnyArray, predictions: AnyArray, loss: str) -> Floats:
    """What each prediction costs: numbers, codes of labels, distributions (N, |Y|), or log probabilities of counts."""
    if loss == "mass":
        return -np.asarray(predictions, dtype=np.float64)
    if loss == "log":
        chance = np.take_along_axis(predictions, np.asarray(labels)[:, None], axis=1)[:, 0]
        return -np.log(np.maximum(chance, LEAST))
    if loss == "zero-one":
        said = predictions.argmax(axis=1) if predictions.ndim == 2 else predictions
        return np.asarray(said != labels, dtype=np.float64)
    miss = np.asarray(labels, dtype=np.float64) - predictions
    return miss**2 if loss == "quadratic" else np.abs(miss)


def errors_of(
    labels: AnyArray,
    weights: Floats | None,
    predictions: Mapping[str, AnyArray],
    loss: str,
    how: str,
    losses: Callable[[AnyArray, AnyArray], Floats] | None = None,
) -> Errors:
    """The loss of predictions of held-out rows in one measure, and in the others that suit them.

    Parameters
    ----------
    labels : array of shape (N,), numbers or codes of labels
    predictions : by name, MODEL first where it was measured, see `row_losses`
    how : what was held out, in a sentence
    losses : callable, optional
        (labels, predictions) → losses of the rows, where ``loss`` is none of `UNITS`.
    """
    counts = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)

    def scores(measure: str) -> dict[str, float]:
        of_rows = (
            losses if losses is not None and measure not in UNITS else lambda y, said: row_losses(y, said, measure)
        )
        means = {name: _mean(of_rows(labels, said), counts) for name, said in predictions.items()}
        return {name: in_unit(mean, measure) for name, mean in means.items()}

    numbers = loss not in ("zero-one", "log", "mass")
    further = [name for name in ("absolute", "quadratic") if name != loss] if numbers else []
    further += ["zero-one"] if loss == "log" else []
    return Errors(
        loss=loss,
        unit=unit_of(loss),
        scores=scores(loss),
        n_held=float(counts.sum()),
        how=how,
        others={UNITS[name]: scores(name) for name in further},
    )


def how_measured(n_parts: int) -> str:
    """Which observations errors were measured on, and what predicted them."""
    if n_parts > 1:
        return f"{n_parts}-fold cross-fitting: the same model with the same settings, fitted without each fold in turn"
    return "a tenth of the observations, held out from a fit of the same model with the same settings"


def pooled_errors(parts: Sequence[Errors]) -> Errors | None:
    """Errors over all parts: means, of squares where they are roots of mean squares."""
    if not parts:
        return None
    weights = [part.n_held for part in parts]
    first = parts[0]
    others = {unit: _mean_scores(unit, [part.others[unit] for part in parts], weights) for unit in first.others}
    scores = _mean_scores(first.unit, [part.scores for part in parts], weights)
    return replace(first, scores=scores, n_held=float(sum(weights)), how=how_measured(len(parts)), others=others)


def _mean_scores(unit: str, parts: Sequence[Mapping[str, float]], weights: Sequence[float]) -> dict[str, float]:
    power = 2 if unit.startswith("root") else 1
    return {
        name: float(np.average([part[name] ** power for part in parts], weights=weights) ** (1 / power))
        for name in parts[0]
    }


def unit_of(loss: str) -> str:
    """The unit in which errors by a loss are shown."""
    return UNITS.get(loss, loss if loss.endswith(("loss", "nats")) or "rate" in loss else f"{loss} loss")


def in_unit(value: float, loss: str) -> float:
    """A mean loss in the unit in which errors are shown: the root of a mean square."""
    return float(np.sqrt(max(value, 0.0))) if loss == "quadratic" else value


def mean_and_error(values: Floats, weights: Floats) -> tuple[float, float]:
    """The weighted mean and its standard error."""
    mean = _mean(values, weights)
    return mean, float(np.sqrt(((weights * (values - mean)) ** 2).sum()) / weights.sum())


def _mean(values: Floats, counts: Floats) -> float:
    return float(np.average(values, weights=counts))


def _median(values: Floats, counts: Floats) -> float:
    """A smallest value that at least half of the weight does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(counts[order])
    return float(values[order[np.searchsorted(reached, reached[-1] / 2)]])


# what was measured beside what is guaranteed


@dataclass(frozen=True)
class Compared:
    """A line of a comparison in one measure; None where nothing is known."""

    name: str
    measured: float | None
    n_rows: float | None  # that it was measured on
    guaranteed: float | None


def side_by_side(
    errors: Errors | None, certificates: Mapping[str, Any], constants: Mapping[str, float]
) -> dict[str, list[Compared]]:
    """Measured and guaranteed losses of the model and of simple rules, by measure.

    Each of the ``certificates`` has a loss, value, empirical and n_observations, and is shown beside the loss on its
    own rows. ``constants`` are the guarantees of the same theorems for one constant answer, by the same names.
    """
    found: dict[str, list[Compared]] = {}
    if errors is not None:
        found[errors.unit] = [Compared(name, value, errors.n_held, None) for name, value in errors.scores.items()]
    for name, one in certificates.items():
        lines = found.setdefault(unit_of(one.loss), [])
        measured, value = in_unit(one.empirical, one.loss), in_unit(one.value, one.loss)
        lines.append(Compared(f"certified from the {name}", measured, one.n_observations, value))
        if name in constants:
            value = in_unit(constants[name], one.loss)
            lines.append(Compared(f"one constant, certified like the {name}", None, None, value))
    return found
