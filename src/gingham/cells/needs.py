"""What a solver or a theorem needs of cells, as data, and the one function that refuses cells without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gingham.cells.base import CellModel
from gingham.errors import GinghamError


@dataclass(frozen=True)
class Need:
    """A fact that cells must state.

    Attributes
    ----------
    attribute : str
        Of the cell; it must be there and not be None.
    fitting : str
        Cells that have it, in words.
    values : tuple
        Where given, the attribute must be one of these.
    """

    attribute: str
    fitting: str
    values: tuple[Any, ...] = ()

    def met(self, cell: CellModel) -> bool:
        value = getattr(cell, self.attribute, None)
        return value in self.values if self.values else value is not None


TABLE = Need("table", "a loss given by a table on an alphabet (absolute, zero-one, pinball, a table of your own)")
HARD_MOVES = Need("moves", "cells that say what they cost at best: mass, log, table or quadratic cells")
DENSITIES = Need("moves", "densities (mass cells); use projection for labels", ("mass",))
FAMILIES = Need("estimate", "cells of an exponential family (families.Family)")
ON_DEVICE = Need("device_arrays", "table, quadratic or log loss or densities: use backend='compiled' for others")


def unmet(needs: Sequence[Need], cells: Iterable[CellModel]) -> tuple[Need, CellModel] | None:
    """The first need that a cell does not meet."""
    return next(((need, cell) for cell in cells for need in needs if not need.met(cell)), None)


def refuse_unmet(
    who: str, needs: Sequence[Need], cells: Iterable[CellModel], error: type[GinghamError] = GinghamError
) -> None:
    """Refuse cells that lack what somebody needs, with what would fit."""
    found = unmet(needs, cells)
    if found is not None:
        need, cell = found
        raise error(
            f"{who} needs {need.fitting}, not {cell.name!r} cells ({type(cell).__name__}.{need.attribute} is "
            f"{getattr(cell, need.attribute, None)!r})."
        )
