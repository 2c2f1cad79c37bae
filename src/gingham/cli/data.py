"""From a table to ids, labels and weights, the same way for fit, certify and report."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gingham.arrays import AnyArray, Floats
from gingham.cli.console import say_note
from gingham.cli.tables import drop_missing, like_items, need_columns
from gingham.data import Mode
from gingham.errors import GinghamError

MISSING = ("", "nan", "na", "n/a", "null", "none")  # words that stand for a missing number, in any case


@dataclass(frozen=True, eq=False)
class Rows:
    """Observed tuples: ids (a frame), labels and weights."""

    X: pl.DataFrame
    y: AnyArray
    weight: Floats | None

    def take(self, mask: AnyArray) -> Rows:
        """The rows under a mask."""
        return Rows(self.X.filter(mask), self.y[mask], None if self.weight is None else self.weight[mask])

    def __len__(self) -> int:
        return self.X.height

    @property
    def fingerprint(self) -> str:
        """Equal for equal rows in equal order."""
        digest = hashlib.sha256()
        for name in self.X.columns:
            digest.update("\x1f".join(self.X[name].cast(pl.String).to_list()).encode())
            digest.update(b"\x1e")
        digest.update("\x1f".join(map(str, self.y.tolist())).encode())
        return digest.hexdigest()[:32]


def rows(
    table: pl.DataFrame,
    axes: Sequence[str],
    label: str,
    weight: str | None = None,
    modes: Sequence[Mode] | None = None,
    drop: bool = False,
) -> Rows:
    """Take the columns apart; ids in the type of the model's items when modes are given."""
    need_columns(table, axes, "--axes")
    need_columns(table, [label], "--label")
    if label in axes:
        raise GinghamError(f"Column {label!r} is both an axis and the label.")
    if weight is not None:
        need_columns(table, [weight], "--weight")
    wanted = [*axes, label, *([weight] if weight else [])]
    table = table.with_columns(_unmarked(table[name]) for name in wanted[len(axes) :])
    kept, dropped = drop_missing(table, wanted)
    if dropped and not drop:
        name = next(
            n for n in wanted if table[n].null_count() or (table[n].dtype.is_float() and table[n].is_nan().any())
        )
        raise GinghamError(
            f"{dropped:,} of {table.height:,} rows have a missing value (column {name!r}, for one). "
            "Leave them out with --drop-missing."
        )
    if dropped:
        say_note(f"{dropped:,} of {table.height:,} rows have a missing value and were left out.")
    if kept.height == 0:
        raise GinghamError("No row is left: every one has a missing value.")
    for name in axes:
        if kept[name].dtype.is_nested():
            raise GinghamError(f"Column {name!r} holds lists or objects; ids are text or numbers.")
    X = kept.select(axes) if modes is None else like_items(kept, axes, modes)
    return Rows(X, _labels(kept[label]), None if weight is None else _weights(kept[weight]))


def _unmarked(column: pl.Series) -> pl.Series:
    """Numbers among which words like "nan" stand for missing values, which are read as text, as numbers again."""
    if column.dtype != pl.String:
        return column
    marked = column.str.strip_chars().str.to_lowercase().is_in(MISSING)
    numbers = pl.select(pl.when(~marked).then(column)).to_series().cast(pl.Float64, strict=False)
    plain = bool(marked.any()) and numbers.null_count() == int(marked.sum()) + column.null_count() < len(column)
    return numbers.alias(column.name) if plain else column


def _labels(column: pl.Series) -> AnyArray:
    if column.dtype.is_nested() or column.dtype.is_temporal():
        raise GinghamError(f"Label column {column.name!r} has type {column.dtype}; labels are numbers or text.")
    if column.dtype.is_numeric():
        labels = column.to_numpy()
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            row = int(np.flatnonzero(~np.isfinite(labels))[0])
            raise GinghamError(f"Label column {column.name!r} is infinite in row {row}.")
        return labels
    return np.array(column.cast(pl.String).to_list())


def _weights(column: pl.Series) -> Floats:
    if not column.dtype.is_numeric():
        raise GinghamError(f"--weight column {column.name!r} must be numeric, it has type {column.dtype}.")
    return column.cast(pl.Float64).to_numpy()


def split(n_rows: int, share: float, seed: int) -> tuple[AnyArray, AnyArray]:
    """Masks of the rows to learn from and of those set aside, drawn at random from the seed."""
    if not 0 <= share < 1:
        raise GinghamError(f"--holdout {share} must be from 0 to below 1.")
    n_held = round(share * n_rows)
    held = np.zeros(n_rows, dtype=bool)
    held[np.random.default_rng([seed, n_rows]).permutation(n_rows)[:n_held]] = True
    if held.all():
        raise GinghamError("--holdout leaves no row to learn from.")
    return ~held, held


def parts(data: Rows, notes: dict[str, Any]) -> tuple[Rows, Rows | None]:
    """(training rows, rows the model has not seen) of a file, as far as the model's notes tell.

    The file the model was fitted on is recognised by its fingerprint and split as it was then.
    """
    if notes.get("fingerprint") != data.fingerprint:
        return data, None
    learn, held = split(len(data), float(notes["holdout"]), int(notes["seed"]))
    return data.take(learn), data.take(held) if held.any() else None
