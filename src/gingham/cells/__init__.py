"""What happens inside one cell of the checkerboard: what it predicts and what a mistake costs."""

from gingham.cells.families import register_family
from gingham.cells.losses import (
    LOSSES,
    Absolute,
    CellModel,
    Logarithmic,
    Mass,
    Pinball,
    Quadratic,
    RankedProbability,
    TableLoss,
    ZeroOne,
    loss_kind,
    make_cell,
    needs_alphabet,
    register_loss,
)

__all__ = [
    "LOSSES",
    "Absolute",
    "CellModel",
    "Logarithmic",
    "Mass",
    "Pinball",
    "Quadratic",
    "RankedProbability",
    "TableLoss",
    "ZeroOne",
    "loss_kind",
    "make_cell",
    "needs_alphabet",
    "register_family",
    "register_loss",
]
