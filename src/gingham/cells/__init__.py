"""What happens inside one cell of the checkerboard: what it predicts and what a mistake costs."""

from gingham.cells.base import CellModel
from gingham.cells.losses import Absolute, Logarithmic, Pinball, Quadratic, TableLoss, ZeroOne
from gingham.cells.mass import Mass
from gingham.cells.registry import LOSSES, loss_kind, make_cell, needs_alphabet, register_loss

__all__ = [
    "LOSSES",
    "Absolute",
    "CellModel",
    "Logarithmic",
    "Mass",
    "Pinball",
    "Quadratic",
    "TableLoss",
    "ZeroOne",
    "loss_kind",
    "make_cell",
    "needs_alphabet",
    "register_loss",
]
