"""Columns of tables: ids, weights and what is missing, and columns that are added."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gingham.arrays import Floats, Ints
from gingham.data import Mode
from gingham.errors import GinghamError, GinghamWarning, suggestion

if TYPE_CHECKING:
    from gingham.cli.tables.kinds import Kind

NUMBERS = (
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64,
)  # types of columns that numpy has as well  # fmt: skip


def need_columns(table: pl.DataFrame, names: Sequence[str], option: str) -> None:
    """Refuse names that the table does not have."""
    for name in names:
        if name not in table.columns:
            have = ", ".join(table.columns[:12]) + (", …" if table.width > 12 else "")
            apart = re.split(r"[ ;/]+", name)
            hint = suggestion(name, table.columns)
            if len(apart) > 1 and set(apart) <= set(table.columns):
                hint = f" Did you mean {','.join(apart)}?"
            asks = "needs" if option == "The model" else "names"
            raise GinghamError(f"{option} {asks} a column {name!r} that the table does not have. It has: {have}.{hint}")
        if f"{name}_duplicated_0" in table.columns:  # so the second is called by polars
            raise GinghamError(f"The table has a column {name!r} twice; rename one of them.")
    if len(set(names)) != len(names):
        raise GinghamError(f"{option} names a column twice: {', '.join(names)}.")


def without_missing(table: pl.DataFrame, names: Sequence[str], drop_missing: bool) -> pl.DataFrame:
    """The rows without a missing value in the named columns; rows are left out only where that was asked for."""
    floats = [name for name in names if table[name].dtype.is_float()]
    whole = table.with_columns(pl.col(floats).fill_nan(None)) if floats else table
    kept = whole.drop_nulls(list(names))
    dropped = table.height - kept.height
    if dropped and not drop_missing:
        name = next(name for name in names if whole[name].null_count())
        raise GinghamError(
            f"{dropped:,} of {table.height:,} rows have a missing value (column {name!r}, for one). "
            "Drop them with --drop-missing."
        )
    if dropped:
        sentence = f"{dropped:,} of {table.height:,} rows have a missing value and were dropped."
        warnings.warn(sentence, GinghamWarning, stacklevel=2)
    return kept


def with_logarithm(table: pl.DataFrame, label: str | None) -> pl.DataFrame:
    """The table with the logarithm of a column, where the label is log(NAME) or log1p(NAME)."""
    found = re.fullmatch(r"(log|log1p)\((.+)\)", label or "")
    if found is None or label in table.columns or found[2] not in table.columns:
        return table
    column = table[found[2]]
    if not column.dtype.is_numeric() or (column <= (0 if found[1] == "log" else -1)).any():
        least = "above 0; log1p takes zeros" if found[1] == "log" else "above -1"
        raise GinghamError(f"--label {label!r} needs a column of numbers {least}.")
    return table.with_columns(getattr(column, found[1])().alias(found[0]))


def without_labels(table: pl.DataFrame, label: str | None, missing: Sequence[str]) -> pl.DataFrame:
    """The rows but those whose label stands for a missing one."""
    for one in missing:
        if label is None or label not in table.columns:
            raise GinghamError(f"--missing {one} states a label, but this model uses no column of labels.")
        numeric = table[label].dtype.is_numeric()
        try:
            same = table[label] == float(one) if numeric else table[label].cast(pl.String) == one
        except ValueError:
            raise GinghamError(f"--missing {one!r} must be a number, as the labels in {label!r} are.") from None
        table = table.filter(~same.fill_null(False))
    return table


def with_ids(table: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """The table with ids as text or numbers in the named columns, where it has them."""
    return table.with_columns(id_column(table[name]) for name in dict.fromkeys(names) if name in table.columns)


def id_column(column: pl.Series) -> pl.Series:
    """Ids as text or numbers: dates, times, decimals and the like become what they are written as.

    What cannot be told apart by what it is written as is refused by name.
    """
    kind = column.dtype
    if kind == pl.String or kind in NUMBERS:
        return column
    if kind.is_nested() or kind == pl.Object:
        raise GinghamError(f"Column {column.name!r} holds lists or objects; ids are text or numbers.")
    if kind in (pl.Binary, pl.Duration):
        raise GinghamError(f"Column {column.name!r} holds {kind} values; ids are text or numbers: write them as text.")
    return column.dt.to_string("%H:%M:%S%.9f") if kind == pl.Time else column.cast(pl.String)


def like_items(table: pl.DataFrame, names: Sequence[str], modes: Sequence[Mode]) -> pl.DataFrame:
    """The id columns in the type that the model was trained on, so that text in one file is a number in another.

    Text is a number where it is the one way to write it: 7, but not 07 or 7.0. An id that cannot be converted gets a
    value that no training item has: it is then unseen.
    """
    columns: list[pl.Series] = []
    for name, mode in zip(names, modes):
        kind = mode.items.dtype.kind
        if kind in "Mmb":  # of a model made in Python
            columns.append(table[name])
            continue
        column = id_column(table[name])
        if kind in "iu" and column.dtype == pl.String:
            numbers = column.cast(pl.UInt64 if kind == "u" else pl.Int64, strict=False)
            known = numbers.cast(pl.String).eq_missing(column)
            column = pl.select(pl.when(known).then(numbers)).to_series().fill_null(_unused_number(mode)).alias(name)
        elif kind == "f" and column.dtype == pl.String:
            own = pl.Float32 if mode.items.itemsize == 4 else pl.Float64
            column = column.cast(own, strict=False).fill_null(float(np.nextafter(mode.items.max(), np.inf)))
        elif kind == "U" and column.dtype != pl.String:
            column = column.cast(pl.String)
        columns.append(column)
    return pl.DataFrame(columns)


def _unused_number(mode: Mode) -> int:
    """The smallest integer ≥ 0 that is no item."""
    return int(np.setdiff1d(np.arange(mode.n_items + 1), mode.items)[0])


def id_pairs(
    kind: Kind,
    table: pl.DataFrame,
    axes: Sequence[str],
    weight: str | None,
    drop_missing: bool = False,
) -> tuple[pl.DataFrame, Floats | None]:
    """Rows with two ids, none missing, and their weights as finite numbers where there is a column of them."""
    if len(axes) != 2:
        raise GinghamError(f"--model {kind.name} needs two columns of ids, such as --axes {kind.pair}.")
    need_columns(table, axes, "--axes")
    if weight is not None:
        need_columns(table, [weight], "--weight")
    kept = with_ids(without_missing(table, [*axes, *([weight] if weight else [])], drop_missing), axes)
    if weight is None:
        return kept, None
    weights = kept[weight].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    if not np.isfinite(weights).all():
        raise GinghamError(f"--weight column {weight!r} must hold finite numbers.")
    return kept, weights


def numbered(table: pl.DataFrame, names: Sequence[str]) -> tuple[list[Mode], list[Ints]]:
    """The items of each column, and their codes."""
    modes = [Mode.of(table[name].to_numpy(), name) for name in names]
    return modes, [mode.encode(table[mode.name].to_numpy()) for mode in modes]


def with_predictions(table: pl.DataFrame, *columns: pl.Series) -> pl.DataFrame:
    """The table with new columns; one that it has already is not overwritten."""
    for column in columns:
        if column.name in table.columns:
            raise GinghamError(
                f"The table has a column {column.name!r} already, which would be overwritten: rename it first."
            )
    return table.with_columns(columns)


def with_probabilities(table: pl.DataFrame, values: Iterable[object], distributions: Floats) -> pl.DataFrame:
    """The table with one column for the probability of each label."""
    return with_predictions(table, *(pl.Series(f"p_{value}", column) for value, column in zip(values, distributions.T)))


def fingerprint(table: pl.DataFrame, names: Sequence[str]) -> str:
    """Equal for equal columns."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\x1f" + joined(table[name]) + b"\x1e")
    return digest.hexdigest()[:32]


def joined(column: pl.Series) -> bytes:
    """The texts of a column one after the other: no two columns are joined to the same."""
    texts = column.bin.encode("hex") if column.dtype == pl.Binary else column.cast(pl.String)
    texts = texts.str.replace_all("[\x1c-\x1f]", "\x1c${0}")  # a separator in a text is none
    return "\x1f".join(texts.fill_null("\x1d").to_list()).encode()


def check_holdout(share: float) -> None:
    if not 0 <= share < 1:
        raise GinghamError(f"--holdout {share} must be at least 0 and below 1.")
