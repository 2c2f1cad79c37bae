"""The options of ``gingham fit`` that shape the model."""

from __future__ import annotations

from dataclasses import dataclass

from gingham.errors import GinghamError


@dataclass(frozen=True)
class Wish:
    """What was asked for; None where nothing was said.

    ``holdout``: the share of rows (objects, features, tokens) set aside; each kind has its own default.
    ``relations``: further tables of a joint model, AXES=LABEL:FILE. ``sizes``: clusters by mode, for the same.
    """

    axes: tuple[str, ...]
    label: str | None
    model: str = "coclustering"
    weight: str | None = None
    merges: str | None = None
    clusters: tuple[int, ...] | None = None
    loss: str | None = None
    beta: float | None = None
    alphabet: str | None = None
    bounds: tuple[float, float] | None = None
    objective: str | None = None
    solver: str | None = None
    n_init: int | None = None
    max_iter: int | None = None
    holdout: float | None = None
    seed: int = 0
    relations: tuple[str, ...] = ()
    sizes: str | None = None
    cold_start: bool = False


def parse_clusters(listed: str | None, n_axes: int) -> tuple[int, ...] | None:
    """Numbers of clusters from "13,6" or "10"."""
    if listed is None or listed == "auto":
        return None
    try:
        numbers = tuple(int(part) for part in listed.split(","))
    except ValueError:
        raise GinghamError(f"--clusters {listed!r} must be whole numbers, one per axis: --clusters 13,6.") from None
    if len(numbers) == 1:
        numbers *= n_axes
    if len(numbers) != n_axes:
        raise GinghamError(f"--clusters has {len(numbers)} numbers for {n_axes} axes.")
    if min(numbers) < 1:
        raise GinghamError(f"--clusters {listed!r}: a number of clusters is at least 1.")
    return numbers
