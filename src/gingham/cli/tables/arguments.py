"""What a command hands in: options as values, read from their text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gingham.arrays import AnyArray
from gingham.data.sample import MAX_LABELS
from gingham.errors import GinghamError
from gingham.summary.look import scale

if TYPE_CHECKING:
    from gingham.certificates.observed import Population

Interval = tuple[float, float]
Relation = tuple[str, ...]  # names of the id columns of one table


@dataclass(frozen=True)
class FitOptions:
    """What was asked for; None where nothing was said."""

    axes: tuple[str, ...]
    label: str | None
    model: str = "coclustering"
    weight: str | None = None
    merges: str | None = None
    clusters: str | None = None  # as written, "13,6", or by mode for several tables, "movie=20,genre=none"
    loss: str | None = None
    beta: float | None = None
    alphabet: str | None = None
    ordered: bool = False  # whether labels are classes in the order of the alphabet
    bounds: Interval | None = None
    objective: str | None = None
    solver: str | None = None
    n_init: int | None = None
    max_iter: int | None = None
    effort: str | None = None
    n_members: int | None = None  # of a committee
    holdout: float | None = None  # share of rows (objects, features, tokens) set aside; each kind has its default
    seed: int = 0
    cold_start: bool = False
    drop_missing: bool = False
    missing: tuple[str, ...] = ()  # labels that stand for a missing one
    time: str | None = None  # the column of points in time
    degree_correction: str | None = None  # auto, yes or no
    directed: bool | None = None


@dataclass(frozen=True)
class PredictOptions:
    """What is asked of predictions; None where nothing was said."""

    rule: str | None = None
    proba: bool = False
    axes: Relation | None = None  # of a model of several tables: the relation that is meant


@dataclass(frozen=True)
class CertificateRequest:
    """What is asked of a certificate."""

    delta: float = 0.05
    bound: str = "log-wealth"
    predictor: str = "gibbs"
    alphabet: str | None = None
    bounds: Interval | None = None
    progressive: bool | None = None  # None: where nothing else has tested the model
    seed: int | None = None  # of the order of progressive tests; None: the one that the fit has drawn
    population: Population | None = None
    references: int = 0  # of progressive tests
    strata: str | None = None  # "known/new", or a column

    @property
    def wants_progressive(self) -> bool:
        """Whether something was said that speaks of progressive tests alone."""
        return bool(self.references) or bool(self.strata) or self.seed is not None

    def __post_init__(self) -> None:
        if self.references and self.progressive is False:
            raise GinghamError("--references needs progressive tests: remove --no-progressive.")
        if self.strata and (self.progressive is False or self.references):
            raise GinghamError(
                "--strata needs progressive tests without references: remove --no-progressive and --references."
            )
        if self.bound in ("holdout", "split"):
            raise GinghamError(
                f"--bound {self.bound} would test the model on its training rows. Rows that the fit held out are "
                "always tested, and --progressive tests a refitted model."
            )


def column_names(listed: str, option: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in listed.split(",") if name.strip())
    if not names:
        raise GinghamError(f"{option} is empty: name columns, as in {option} user,movie.")
    return names


def parse_numbers(listed: str, option: str, what: str, example: str, number: Callable[[str], float] = int) -> list[Any]:
    """Numbers from "13,6"."""
    try:
        return [number(part) for part in listed.split(",")]
    except ValueError:
        raise GinghamError(f"{option} {listed!r} must be {what}: {option} {example}.") from None


def parse_bounds(listed: str | None) -> tuple[float, float] | None:
    """Two numbers from "0,1"."""
    if listed is None:
        return None
    what = "two numbers, the smallest and largest"
    found = parse_numbers(listed, "--bounds", what, "0,1", float)
    if len(found) != 2:
        raise GinghamError(f"--bounds {listed!r} must be {what}: --bounds 0,1.")
    if not -math.inf < found[0] < found[1] < math.inf:
        raise GinghamError(f"--bounds {listed!r}: the smallest must be below the largest, and both finite.")
    return found[0], found[1]


def parse_population(listed: str | None) -> tuple[int, ...] | dict[str, int] | None:
    """Numbers of items from "943,1682", or by name from "user=943,movie=1682"."""
    if listed is None:
        return None
    parts = [part.rpartition("=") for part in listed.split(",")]
    try:
        numbers = [int(number) for _, _, number in parts]
    except ValueError:
        numbers = []
    names = [name.strip() for name, _, _ in parts if name]
    if not numbers or len(names) not in (0, len(numbers)):
        raise GinghamError(f"--population {listed!r} must be integers, one per axis: 943,1682 or user=943.")
    return dict(zip(names, numbers)) if names else tuple(numbers)


def parse_clusters(listed: str | None, n_axes: int) -> tuple[int, ...] | None:
    """Numbers of clusters from "13,6" or "10"."""
    if listed is None or listed == "auto":
        return None
    numbers = tuple(parse_numbers(listed, "--clusters", "integers, one per axis", "13,6"))
    if len(numbers) == 1:
        numbers *= n_axes
    if len(numbers) != n_axes:
        raise GinghamError(f"--clusters has {len(numbers)} numbers for {n_axes} axes.")
    if min(numbers) < 1:
        raise GinghamError(f"--clusters {listed!r}: a number of clusters must be an integer ≥ 1.")
    return numbers


def parse_alphabet(listed: str, names: bool) -> AnyArray:
    """Label values from "1,2,3", "1..5" or, with a step, "0..5:0.5"."""
    if ".." in listed and not names:
        low, _, high = listed.partition("..")
        high, colon, step = high.partition(":")
        try:
            first, last, apart = (float(part) for part in (low, high, step if colon else "1"))
        except ValueError:
            raise GinghamError(
                f"--alphabet {listed!r}: a range is written as 1..5, or with a step as 0..5:0.5."
            ) from None
        n_values = (last - first) / apart + 1 if apart > 0 and abs(last - first) < math.inf else 0.0
        if not 1 <= n_values < MAX_LABELS + 1:
            raise GinghamError(
                f"--alphabet {listed!r} has {max(n_values, 0):,.0f} values; 1 to {MAX_LABELS:,} are taken."
            )
        if abs(n_values - round(n_values)) > 1e-9:
            raise GinghamError(f"--alphabet {listed!r}: from {low} to {high} is not a whole number of steps of {step}.")
        return scale(first, last, apart)
    parts = [part.strip() for part in listed.split(",") if part.strip()]
    if not parts:
        raise GinghamError("--alphabet is empty; list the possible labels, such as 1,2,3,4,5 or 1..5.")
    if names:
        return np.array(parts)
    if found := re.fullmatch(r"(-?\d+)\s*(?:-|–|:|to)\s*(-?\d+)", listed.strip()):
        said = f"write a range as {found[1]}..{found[2]}, or list the labels: 1,2,3"
        raise GinghamError(f"--alphabet {listed!r}: {said}.")
    try:
        numbers = np.array([float(part) for part in parts])
    except ValueError:
        raise GinghamError(f"--alphabet {listed!r} must list numbers, because the label column is numeric.") from None
    return numbers.astype(np.int64) if np.all(numbers == np.floor(numbers)) else numbers


def parse_merges(listed: str | None) -> tuple[tuple[int, ...], ...] | str | None:
    """Merges of a tree from "0,1,6;2,3,6": children, then the number of clusters."""
    if listed is None or listed == "auto":
        return listed
    try:
        return tuple(tuple(int(part) for part in merge.split(",")) for merge in listed.split(";") if merge)
    except ValueError:
        raise GinghamError(f"--merges {listed!r} must be integers: --merges '0,1,6;2,3,6', or auto.") from None


def parse_named_clusters(listed: str | None, axes: Relation) -> dict[str, object]:
    """{mode: clusters} from "movie=20,genre=none", or from "20,10" for the axes of the first table."""
    if listed is None or ("=" not in listed and ":" not in listed):
        return dict(zip(axes, parse_clusters(listed, len(axes)) or ("auto",) * len(axes)))
    found: dict[str, object] = {}
    for part in listed.split(","):
        name, sign, number = part.partition("=")
        if not sign or not (number == "none" or number.isdigit()) or number == "0":
            raise GinghamError(f"--clusters {listed!r} must read mode=number or mode=none, separated by commas.")
        found[name.strip()] = None if number == "none" else int(number)
    return found


def parse_degree_correction(said: str | None) -> bool | str | None:
    """auto, or yes or no."""
    known: dict[str | None, bool | str | None] = {None: None, "auto": "auto", "yes": True, "no": False}
    if said not in known:
        raise GinghamError(f"--degree-correction {said!r} is unknown; choose auto, yes or no.")
    return known[said]
