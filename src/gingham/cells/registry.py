"""From the name of a loss to its cell model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gingham.arrays import Floats
from gingham.cells.base import CellModel
from gingham.cells.families import Family, family_from_state, family_state
from gingham.cells.losses import Absolute, Logarithmic, Pinball, Quadratic, TableLoss, ZeroOne
from gingham.cells.mass import Mass
from gingham.data import Alphabet
from gingham.errors import GinghamError

ON_ALPHABET: dict[str, Callable[[Alphabet], CellModel]] = {
    "absolute": Absolute,
    "zero-one": ZeroOne,
    "log": Logarithmic,
    "pinball": Pinball,
}
LOSSES = (*ON_ALPHABET, "quadratic")
Loss = str | Floats | Callable[[Alphabet], CellModel]


def needs_alphabet(loss: Any) -> bool:
    """Whether the loss is defined on a finite set of labels only."""
    return not (isinstance(loss, str) and loss == "quadratic")


def make_cell(loss: Any, alphabet: Alphabet | None, bounds: tuple[float, float] | None = None) -> CellModel:
    """The cell model of a loss: a name, a table (true label × answer), or a callable that takes the alphabet."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise GinghamError(f"loss={loss!r} is unknown; choose one of {', '.join(LOSSES)}, or give a table.")
        if loss == "quadratic":
            return Quadratic(alphabet, bounds)
    if alphabet is None:
        raise GinghamError(f"loss={loss!r} needs a finite set of labels: give alphabet=, the possible label values.")
    if isinstance(loss, str):
        return ON_ALPHABET[loss](alphabet)
    if callable(loss):
        return loss(alphabet)
    return TableLoss(alphabet, np.asarray(loss, dtype=np.float64))


def cell_state(cell: CellModel) -> dict[str, Any]:
    """What a model file keeps of a cell model, besides the alphabet."""
    if isinstance(cell, Pinball):
        return {"loss": "pinball", "quantile": cell.quantile}
    if isinstance(cell, Logarithmic):
        return {"loss": "log", "smoothing": cell.smoothing}
    if isinstance(cell, Quadratic):
        return {"loss": "quadratic", "bounds": cell.bounds}
    if isinstance(cell, Absolute):
        return {"loss": "absolute"}
    if isinstance(cell, ZeroOne):
        return {"loss": "zero-one"}
    if isinstance(cell, TableLoss):
        return {"loss": "table", "table": cell.table}
    if isinstance(cell, Family):
        return {"loss": "family", **family_state(cell)}
    if isinstance(cell, Mass):
        return {"loss": "mass"}
    raise GinghamError(f"{type(cell).__name__} cells cannot be saved in a model file.")


def cell_from_state(state: dict[str, Any], alphabet: Alphabet | None) -> CellModel:
    """The cell model that `cell_state` described."""
    loss = state["loss"]
    if loss == "quadratic":
        return Quadratic(alphabet, state["bounds"])
    if loss == "mass":
        return Mass()
    if loss == "family":
        return family_from_state(state, alphabet)
    if alphabet is None:
        raise GinghamError("The model file has no alphabet for its loss.")
    if loss == "pinball":
        return Pinball(alphabet, state["quantile"])
    if loss == "log":
        return Logarithmic(alphabet, state["smoothing"])
    return TableLoss(alphabet, state["table"]) if loss == "table" else make_cell(loss, alphabet)
