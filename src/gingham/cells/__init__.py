"""What happens inside one cell of the checkerboard: what it predicts and what a mistake costs."""

from gingham.cells.base import CellModel
from gingham.cells.losses import Absolute, Logarithmic, Pinball, Quadratic, TableLoss, ZeroOne

__all__ = ["Absolute", "CellModel", "Logarithmic", "Pinball", "Quadratic", "TableLoss", "ZeroOne"]
