"""An audit: predictions of any models on the same rows, what is certified of each, which is better, where and for whom.

A third of δ each goes to the losses (of all rows and of strata), to the differences between models, and to the change
over time; within a third every bound has an equal share. Of two models that are compared in parts of the rows (groups
of a model, say) half of δ goes to the parts, in equal shares. So all that is said holds together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, TableLike
from gingham.certificates.assumptions import Assumption, given, rests_on
from gingham.certificates.bounds import checked_delta, mean_between
from gingham.certificates.certificate import Certificate
from gingham.certificates.holdout import certify_predictions, losses_of_groups
from gingham.certificates.losses import loss_scale, stated_loss
from gingham.certificates.ranking import Hidden, Lists, RankingCertificate, certify_ranking
from gingham.certificates.strata import texts_of
from gingham.data.adapt import id_columns
from gingham.data.sample import checked_labels
from gingham.errors import GinghamError

PARTS = 10  # of time that are shown
FEWEST = 20  # rows in each half for a statement about time
FEWEST_OF_A_PART = 10  # rows or users of a part that is spoken of
Table = tuple[str, list[str], list[list[str]]]


@dataclass(frozen=True)
class Difference:
    """The loss of one model less that of another on ``n`` rows, which lies between ``low`` and ``high``."""

    first: str
    second: str
    observed: float
    low: float
    high: float
    n: int
    part: str = ""  # of the rows; empty where it is of all

    @classmethod
    def of(cls, names: tuple[str, str], gaps: Floats, width: float, delta: float, part: str = "") -> Difference:
        """From differences of losses that are between −1 and 1 in units of ``width``; each end has half of δ."""
        low, high = mean_between(gaps, delta / 2, -1.0)
        return cls(*names, width * float(gaps.mean()), width * low, width * high, len(gaps), part)

    @property
    def better(self) -> str | None:
        """The model that is proved to be better; None where neither is."""
        return self.first if self.high < 0 else self.second if self.low > 0 else None


@dataclass(frozen=True)
class Change:
    """The loss of one model in the later half of the rows less that in the earlier half."""

    name: str
    observed: float
    low: float
    high: float
    parts: tuple[float, ...]  # the loss in each part of time, observed

    @property
    def verdict(self) -> str:
        return "worse" if self.low > 0 else "better" if self.high < 0 else "no change is proved"


@dataclass(frozen=True, eq=False)
class Audit:
    """What is certified of several models on the same rows, all of it together with confidence 1 − delta.

    Attributes
    ----------
    models : mapping from name to Certificate or RankingCertificate
    breakdowns : mapping from name of a division into strata to (model → certificate with these strata)
    differences : tuple of Difference
    changes : tuple of Change
        Empty where there are too few rows.
    parts : mapping from the name of a division to its parts
        Of two models: in which parts of the rows each is better.
    unit : {"rows", "users"}
    """

    models: Mapping[str, Certificate | RankingCertificate]
    breakdowns: Mapping[str, Mapping[str, Certificate]]
    differences: tuple[Difference, ...]
    changes: tuple[Change, ...]
    loss: str
    n_rows: int
    delta: float
    assumptions: tuple[Assumption, ...]
    parts: Mapping[str, tuple[Difference, ...]] = field(default_factory=dict)
    unit: str = "rows"

    @property
    def measure(self) -> str:
        """What is bounded, in words."""
        return f"{self.loss} loss" if isinstance(next(iter(self.models.values())), Certificate) else self.loss

    @property
    def winner(self) -> str | None:
        """The model that is proved to be better than every other; None where there is none."""
        for name in self.models if len(self.models) > 1 else ():
            others = [one for one in self.differences if name in (one.first, one.second)]
            if all(one.better == name for one in others):
                return name
        return None

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            "loss": self.loss,
            "rows": self.n_rows,
            "delta": self.delta,
            "winner": self.winner,
            "models": {name: {"observed": one.empirical, "at_most": one.value} for name, one in self.models.items()},
            "breakdowns": {
                what: {name: [part.to_dict() for part in one.strata.parts] for name, one in found.items() if one.strata}
                for what, found in self.breakdowns.items()
            },
            "differences": [{**vars(one), "better": one.better} for one in self.differences],
            "changes": [{**vars(one), "parts": list(one.parts), "verdict": one.verdict} for one in self.changes],
            "parts": {
                name: [{**vars(one), "better": one.better} for one in parts] for name, parts in self.parts.items()
            },
            "assumptions": [one.to_dict() for one in self.assumptions],
        }

    def tables(
        self, unit_of: Callable[[str], str] | None = None, in_unit: Callable[[float, str], float] | None = None
    ) -> list[Table]:
        """Title, heads and rows of the tables that say all of it; losses in another unit where one is given."""

        def shown(value: float | None) -> str:
            return "–" if value is None else f"{value if in_unit is None else in_unit(value, self.loss):.4g}"

        def differing(one: Difference | Change, verdict: str) -> list[str]:
            name = f"{one.first} less {one.second}" if isinstance(one, Difference) else one.name
            return [name, *(f"{value:.4g}" for value in (one.observed, one.low, one.high)), verdict]

        def better(one: Difference) -> list[str]:
            return differing(one, f"{one.better} is better" if one.better else "not proved")

        head = ["predictions", "measured", "guaranteed at most"]
        rows = [[name, shown(one.empirical), shown(one.value)] for name, one in self.models.items()]
        unit = self.measure if unit_of is None or self.measure == self.loss else unit_of(self.loss)
        found = [(f"{unit}, {self.n_rows:,} {self.unit}", head, rows)]
        for what, models in self.breakdowns.items():
            parts = [(name, part) for name, one in models.items() if one.strata for part in one.strata.parts]
            rows = [
                [f"{part.name}, {name}", shown(part.empirical), shown(part.value), f"{part.n_observations:,}"]
                for name, part in parts
            ]
            found.append((f"By {what}", ["rows, predictions", *head[1:], "tests"], rows))
        rows = [better(one) for one in self.differences]
        between = ["", "measured", "from", "to", ""]
        found.append((f"Which is better? Differences of the {self.measure} (below zero: the first)", between, rows))
        for what, parts_of in self.parts.items():
            rows = [[f"{one.part} ({one.n:,})", *better(one)[1:]] for one in parts_of]
            found.append((f"Which is better, by {what}?", between, rows))
        rows = [differing(one, one.verdict) for one in self.changes]
        found.append((f"Has it changed? Later half of the time less earlier half, {self.measure}", between, rows))
        return [table for table in found if table[2]]

    def explain(self) -> str:
        """The audit in plain words."""
        lines = [
            f"{self.n_rows:,} {self.unit}; all of this holds together with confidence {100 * (1 - self.delta):g} %."
        ]
        for title, head, rows in self.tables():
            lines += ["", title, *("  " + "  ".join(row) for row in (head, *rows))]
        lines += ["", *rests_on(self.assumptions)]
        return "\n".join(lines)


def audit(
    y: npt.ArrayLike,
    predictions: Mapping[str, npt.ArrayLike],
    *,
    loss: Any = "absolute",
    alphabet: Iterable[object] | None = None,
    label_bounds: Sequence[float] | None = None,
    strata: Mapping[str, npt.ArrayLike] | None = None,
    groups: npt.ArrayLike | None = None,
    ordered: bool = False,
    by: Mapping[str, npt.ArrayLike] | None = None,
    delta: float = 0.05,
) -> Audit:
    """Audit finished predictions of any models on rows that none of them has seen.

    Parameters
    ----------
    y : array of shape (N,)
        The labels.
    predictions : mapping from name to array of shape (N,), or (N, |Y|) for the log loss
    loss, alphabet, label_bounds
        As for `certify_predictions`.
    strata : mapping from name to array of shape (N,), optional
        Divisions of the rows, each by a rule that does not look at labels; see `hot_or_cold` for ids.
    groups : array of shape (N,), optional
        Rows of one group (one user, say) need not be independent, groups are: each counts once, by its mean loss.
    ordered : bool
        The rows stand in the order of time: say whether the loss changed.
    by : mapping from name to array of shape (N,), optional
        Of two models: divisions of the rows, each by a rule that does not look at labels. The difference of the models
        is bounded in every part, with half of δ.
    delta : float
        All that is said holds together with probability at least 1 − delta.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham.certificates import audit
    >>> y = np.random.default_rng(0).integers(1, 6, 2000)
    >>> found = audit(y, {"good": np.clip(y + 0.2, 1, 5), "poor": np.full(2000, 3)}, alphabet=range(1, 6))
    >>> found.winner, found.differences[0].high < 0
    ('good', True)
    """
    if not predictions:
        raise GinghamError("There are no predictions to audit.")
    left = _left(predictions, by, checked_delta(delta))
    share, n, divisions = left / 3, len(predictions), dict(strata or {})
    label_values, labels = None if alphabet is None else list(alphabet), checked_labels(y)
    stated = stated_loss(loss, label_values, label_bounds)
    low, width = loss_scale(stated.cell)
    units = None if groups is None else texts_of(groups, "groups", len(labels))

    def certified(name: str, delta: float, names: npt.ArrayLike | None = None) -> Certificate:
        return certify_predictions(
            labels, predictions[name], loss=loss, alphabet=label_values, label_bounds=label_bounds, groups=groups,
            delta=delta, strata=names, predictor=name,
        )  # fmt: skip

    def draws(values: Floats, rows: slice = slice(None)) -> Floats:
        """Of rows in a unit of the range, or of groups."""
        scaled = values[rows] / width
        return scaled if units is None else losses_of_groups(scaled, units[rows], 0)[0]

    breakdowns = {
        what: {name: certified(name, share / (n * len(divisions)), names) for name in predictions}
        for what, names in divisions.items()
    }
    models = (
        next(iter(breakdowns.values())) if divisions else {name: certified(name, share / n) for name in predictions}
    )
    losses = {name: stated.losses(labels, np.asarray(guesses)) for name, guesses in predictions.items()}
    pairs = list(combinations(predictions, 2))
    differences = tuple(
        Difference.of((first, second), draws(losses[first] - losses[second]), width, share / len(pairs))
        for first, second in pairs
    )
    changes, half = [], len(labels) // 2
    for name, values in losses.items() if ordered else ():
        sides = [draws(values - low, rows) for rows in (slice(half), slice(half, None))]
        if min(map(len, sides)) >= FEWEST:
            (low0, high0), (low1, high1) = (mean_between(side, share / (4 * n)) for side in sides)
            parts = tuple(float(part.mean()) for part in np.array_split(values, PARTS))
            observed = width * float(sides[1].mean() - sides[0].mean())
            changes.append(Change(name, observed, width * (low1 - high0), width * (high1 - low0), parts))
    said = [*next(iter(models.values())).assumptions, *([given("order of time")] if changes else [])]
    in_parts: Mapping[str, tuple[Difference, ...]] = {}
    if by:
        said += [] if divisions else [given("strata")]
        in_parts = _by_parts(pairs[0], losses[pairs[0][0]] - losses[pairs[0][1]], width, by, delta - left, units)
    return Audit(
        models, breakdowns, differences, tuple(changes), stated.name, len(labels), delta, tuple(said), in_parts
    )  # fmt: skip


def audit_rankings(
    hidden: TableLike,
    rankings: Mapping[str, Lists],
    *,
    at: int = 20,
    measure: str = "miss",
    by: Mapping[str, Mapping[object, str]] | None = None,
    delta: float = 0.05,
) -> Audit:
    """Audit ranked lists of any models by items that were hidden from all of them.

    Parameters
    ----------
    hidden : (N, 2) pairs (user, item)
    rankings : mapping from name to what `certify_ranking` takes
    at : int
        How many items of a list count.
    measure : {"miss", "ndcg"}
    by : mapping from name to a mapping from user to part, optional
        Of two rankings: divisions of the users, in whose parts the difference is bounded, with half of δ.
    """
    if not rankings:
        raise GinghamError("There are no rankings to audit.")
    left = _left(rankings, by, checked_delta(delta))
    share, n = left / 2, len(rankings)
    models = {
        name: certify_ranking(one, hidden, at=at, measure=measure, delta=share / n) for name, one in rankings.items()
    }
    pairs, differences = list(combinations(rankings, 2)), []
    for first, second in pairs:
        own = {"at": at, "measure": measure, "delta": share / (2 * len(pairs))}
        one = certify_ranking(rankings[first], hidden, against=rankings[second], **own)  # type: ignore[arg-type]
        other = certify_ranking(rankings[second], hidden, against=rankings[first], **own)  # type: ignore[arg-type]
        differences.append(Difference(first, second, one.empirical, -other.value, one.value, one.n_users))
    first_one = next(iter(models.values()))
    name = f"miss rate at {at}" if measure == "miss" else f"1 − NDCG@{at}"
    said, parts = first_one.assumptions, dict[str, tuple[Difference, ...]]()
    if by:
        judged = Hidden.of(id_columns(hidden).columns, at, measure)
        missed = [judged.losses(rankings[which]) for which in pairs[0]]
        divisions = {
            what: np.array([part.get(user, "not in the model") for user in judged.users.items.tolist()], dtype=object)
            for what, part in by.items()
        }
        parts, said = (
            _by_parts(pairs[0], missed[0] - missed[1], 1.0, divisions, delta - left, None),
            (*said, given("strata")),
        )
    return Audit(models, {}, tuple(differences), (), name, first_one.n_users, delta, said, parts, "users")


def _left(models: Mapping[str, Any], by: Mapping[str, Any] | None, delta: float) -> float:
    """What of δ is left for statements on all rows; parts have half of it, and are of two models."""
    if by and len(models) != 2:
        raise GinghamError(f"by= compares two models in parts of the rows; {len(models)} were given.")
    return delta / 2 if by else delta


def _by_parts(
    names: tuple[str, str],
    gap: Floats,
    width: float,
    by: Mapping[str, npt.ArrayLike],
    share: float,
    units: AnyArray | None,
) -> dict[str, tuple[Difference, ...]]:
    """The difference in every part that is large enough, the clearest first."""
    rows: list[tuple[str, str, Floats]] = []
    for name, listed in by.items():
        parts = np.asarray(listed, dtype=object)
        if parts.shape != gap.shape:
            raise GinghamError(f"by={name!r} has shape {parts.shape}; it needs the part of each row, {gap.shape}.")
        for part in sorted(set(parts.tolist()), key=str):
            inside = parts == part
            own = gap[inside] / width
            own = own if units is None else losses_of_groups(own, units[inside], 0)[0]
            if len(own) >= FEWEST_OF_A_PART:
                rows.append((name, str(part), own))
    found: dict[str, list[Difference]] = {name: [] for name in by}
    for name, part, own in rows:
        found[name].append(Difference.of(names, own, width, share / len(rows), part))
    return {name: tuple(sorted(parts, key=lambda one: one.observed)) for name, parts in found.items()}


def hot_or_cold(ids: npt.ArrayLike) -> AnyArray:
    """The stratum of each row by how often its id stands in the table: the hot ids hold half of the rows.

    It does not look at labels, so that it is a rule for strata.
    """
    at, counts = np.unique(np.asarray(ids).astype(str), return_inverse=True, return_counts=True)[1:]
    order = np.argsort(-counts, kind="stable")
    before = np.cumsum(counts[order]) - counts[order]
    hot = np.zeros(len(counts), dtype=bool)
    hot[order] = 2 * before < counts.sum()
    return np.where(hot[at.ravel()], "hot", "cold")
