"""Two predictors, or two rankings, on the same rows: which is better, by how much, and for whom.

Half of δ goes to all rows and half to their parts (groups of a model, say), in equal shares, so that all that is said
holds together. The loss of one less that of the other is bounded from both sides, row by row (or user by user).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, TableLike
from gingham.certificates.assumptions import Assumption, given, rests_on
from gingham.certificates.audit import Audit, Difference, audit, audit_rankings
from gingham.certificates.confidence import checked_delta
from gingham.certificates.holdout import losses_of_groups
from gingham.certificates.losses import loss_scale, stated_loss
from gingham.certificates.ranking import Lists, ranking_losses
from gingham.data import Mode
from gingham.data.adapt import id_columns
from gingham.data.sample import checked_labels
from gingham.errors import GinghamError

FEWEST = 10  # rows or users of a part that is spoken of
Divisions = Mapping[str, npt.ArrayLike]


@dataclass(frozen=True)
class PartDifference:
    """The difference in one part of the rows."""

    part: str
    n: int
    difference: Difference


@dataclass(frozen=True, eq=False)
class Comparison:
    """What is certified of two models on the same rows, all of it together with confidence 1 − delta.

    Attributes
    ----------
    audit : Audit
        Of both models on all rows.
    parts : mapping from the name of a division to its parts
    delta : float
    unit : {"rows", "users"}
    """

    audit: Audit
    parts: Mapping[str, tuple[PartDifference, ...]] = field(default_factory=dict)
    delta: float = 0.05
    unit: str = "rows"

    @property
    def difference(self) -> Difference:
        """Loss of the first less that of the second, on all rows."""
        return self.audit.differences[0]

    @property
    def better(self) -> str | None:
        """The model that is proved to be better on all rows; None where neither is."""
        return self.difference.better

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        return (*self.audit.assumptions, *((given("strata"),) if self.parts else ()))

    def explain(self) -> str:
        """The comparison in plain words."""
        whole = self.difference
        lines = [
            f"{self.audit.measure} of {whole.first} less that of {whole.second}, on {self.audit.n_rows:,} {self.unit}; "
            f"all of this holds together with confidence {100 * (1 - self.delta):g} %.",
            f"  everywhere: {_words(whole)}",
        ]
        for name, parts in self.parts.items():
            lines += [f"  {name}: {one.part} ({one.n:,}): {_words(one.difference)}" for one in parts]
        return "\n".join([*lines, "", *rests_on(self.assumptions)])

    def to_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        return {
            **self.audit.to_dict(),
            "delta": self.delta,
            "parts": {
                name: [
                    {"part": one.part, "n": one.n, **vars(one.difference), "better": one.difference.better}
                    for one in parts
                ]
                for name, parts in self.parts.items()
            },
        }


def _words(one: Difference) -> str:
    better = f"{one.better} is better" if one.better else "neither is proved to be better"
    return f"{one.observed:.4g}, between {one.low:.4g} and {one.high:.4g}: {better}"


def compare_predictions(
    y: npt.ArrayLike,
    predictions: Mapping[str, npt.ArrayLike],
    *,
    by: Divisions | None = None,
    loss: Any = "absolute",
    groups: npt.ArrayLike | None = None,
    delta: float = 0.05,
    **stated: Any,
) -> Comparison:
    """Compare finished predictions of two models on rows that neither has seen.

    Parameters
    ----------
    y : array of shape (N,)
        The labels.
    predictions : mapping from two names to arrays of shape (N,)
    by : mapping from a name to an array of shape (N,), optional
        Divisions of the rows, each by a rule that does not look at labels: the difference is bounded in every part.
    loss, groups, alphabet, label_bounds
        As for `certify_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from gingham.certificates.compare import compare_predictions
    >>> y = np.random.default_rng(0).integers(1, 6, 2000)
    >>> found = compare_predictions(y, {"near": np.clip(y + 0.2, 1, 5), "far": np.full(2000, 3)}, alphabet=range(1, 6))
    >>> found.better
    'near'
    """
    names = _two(predictions)
    share = checked_delta(delta) / 2
    whole = audit(y, predictions, loss=loss, groups=groups, delta=share, **stated)
    cell = stated_loss(loss, stated.get("alphabet"), stated.get("label_bounds"))
    labels, (_, width) = checked_labels(y), loss_scale(cell.cell)
    first, second = (cell.losses(labels, np.asarray(predictions[name])) for name in names)
    units = None if groups is None else np.asarray(groups)
    return Comparison(whole, _by_parts(names, first - second, width, by, share, units), delta)


def compare_rankings(
    hidden: TableLike,
    rankings: Mapping[str, Lists],
    *,
    by: Mapping[str, Mapping[object, str]] | None = None,
    at: int = 20,
    measure: str = "ndcg",
    delta: float = 0.05,
) -> Comparison:
    """Compare the lists of two rankings by pairs (user, item) that were hidden from both.

    ``by`` are divisions of the users: the part of each user by the user's id. The unit is a user.
    """
    names = _two(rankings)
    share = checked_delta(delta) / 2
    whole = audit_rankings(hidden, rankings, at=at, measure=measure, delta=share)
    ids, items = id_columns(hidden).columns
    users = Mode.of(ids, "user")
    codes = users.encode(ids)
    first, second = (ranking_losses(rankings[name], users, codes, items, at, measure) for name in names)
    divisions = {
        name: np.array([part.get(user, "not in the model") for user in users.items.tolist()], dtype=object)
        for name, part in (by or {}).items()
    }
    return Comparison(whole, _by_parts(names, first - second, 1.0, divisions, share, None), delta, "users")


def _two(models: Mapping[str, Any]) -> tuple[str, str]:
    if len(models) != 2:
        raise GinghamError(f"A comparison takes two models; {len(models)} were given.")
    first, second = models
    return first, second


def _by_parts(
    names: tuple[str, str], gap: Floats, width: float, by: Divisions | None, share: float, units: AnyArray | None
) -> dict[str, tuple[PartDifference, ...]]:
    """The difference in every part that is large enough, the clearest first."""
    rows: list[tuple[str, str, Floats]] = []
    for name, listed in (by or {}).items():
        parts = np.asarray(listed, dtype=object)
        for part in sorted(set(parts.tolist()), key=str):
            inside = parts == part
            own = gap[inside] / width
            own = own if units is None else losses_of_groups(own, units[inside], 0)[0]
            if len(own) >= FEWEST:
                rows.append((name, str(part), own))
    found: dict[str, list[PartDifference]] = {name: [] for name in by or {}}
    for name, part, own in rows:
        found[name].append(PartDifference(part, len(own), Difference.of(names, own, width, share / len(rows))))
    return {name: tuple(sorted(parts, key=lambda one: one.difference.observed)) for name, parts in found.items()}
