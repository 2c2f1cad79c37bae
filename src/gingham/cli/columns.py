"""Columns taken out of a table and checked: pairs of ids with weights, views of numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import polars as pl

from gingham.arrays import Floats, Ints
from gingham.cli.tables import drop_missing, need_columns
from gingham.data import Mode
from gingham.errors import GinghamError


def id_pairs(
    table: pl.DataFrame, axes: Sequence[str], weight: str | None, example: str, kind: str, numbers: bool = True
) -> tuple[pl.DataFrame, Floats | None]:
    """Rows with two ids (and a value), none missing; the value as finite numbers where they are wanted."""
    if len(axes) != 2:
        raise GinghamError(f"--model {kind} needs two columns of ids, such as --axes {example}.")
    need_columns(table, axes, "--axes")
    if weight is not None:
        need_columns(table, [weight], "--weight")
    kept, dropped = drop_missing(table, [*axes, *([weight] if weight else [])])
    if dropped:
        raise GinghamError(f"{dropped:,} of {table.height:,} rows have a missing value; leave them out first.")
    for name in axes:
        if kept[name].dtype.is_nested():
            raise GinghamError(f"Column {name!r} holds lists or objects; ids are text or numbers.")
    if weight is None or not numbers:
        return kept, None
    weights = kept[weight].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    if not np.isfinite(weights).all():
        raise GinghamError(f"--weight column {weight!r} must hold finite numbers.")
    return kept, weights


def numbered(table: pl.DataFrame, names: Sequence[str]) -> tuple[list[Mode], list[Ints]]:
    """The items of each column, and their codes."""
    modes = [Mode.of(table[name].to_numpy(), name) for name in names]
    return modes, [mode.encode(table[mode.name].to_numpy()) for mode in modes]


def fingerprint(table: pl.DataFrame, names: Sequence[str]) -> str:
    """Equal for equal columns."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\x1f")
        column = table[name].cast(pl.String).fill_null("\x1d").to_list()
        digest.update("\x1f".join(column).encode() + b"\x1e")
    return digest.hexdigest()[:32]
