"""Properties of items, given by their ids, as tables in the order of the modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gingham.data import Mode
from gingham.data.adapt import Columns
from gingham.errors import GinghamError
from gingham.models.layers import SideTable


def side_tables(columns: Columns, given: Mapping[Any, Any]) -> tuple[tuple[Mode, ...], tuple[SideTable | None, ...]]:
    """Modes that hold the items of the data and of the side tables, and the tables in their order (weight 1)."""
    modes = [Mode.of(column, name) for column, name in zip(columns.columns, columns.names)]
    sides: list[SideTable | None] = [None] * len(modes)
    for key, (ids, properties) in given.items():
        at = columns.names.index(key) if key in columns.names else key
        if not isinstance(at, (int, np.integer)) or not 0 <= at < len(modes):
            raise GinghamError(f"side= names the mode {key!r}; the modes are {', '.join(columns.names)}.")
        table, named = np.asarray(properties, dtype=np.float64), Mode.of(ids, modes[at].name)
        if table.ndim != 2 or len(table) != len(ids) or named.n_items != len(ids):
            raise GinghamError(
                f"side[{key!r}] needs distinct ids and a table with a row for each; got {len(ids)} ids "
                f"({named.n_items} distinct) and a table of shape {table.shape}."
            )
        if not ((table >= 0) & (table <= 1)).all():
            raise GinghamError(f"side[{key!r}]: properties are yes or no, numbers from 0 to 1.")
        if named.items.dtype.kind != modes[at].items.dtype.kind:
            raise GinghamError(f"side[{key!r}]: ids have another type than the ids in X.")
        modes[at] = Mode.of(np.concatenate([modes[at].items, named.items]), modes[at].name)
        known = modes[at].encode(ids)
        aligned = np.zeros((modes[at].n_items, table.shape[1]))
        aligned[known] = table
        sides[at] = SideTable(aligned, np.isin(np.arange(len(aligned)), known), 1.0)
    return tuple(modes), tuple(sides)
