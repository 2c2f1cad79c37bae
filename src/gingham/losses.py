"""Losses, and what a new loss or a new family of distributions needs: ``loss=`` names one or is one of them."""

from gingham.cells import (
    Absolute,
    CellModel,
    Logarithmic,
    Pinball,
    Quadratic,
    RankedProbability,
    TableLoss,
    ZeroOne,
    register_family,
    register_loss,
)
from gingham.cells.contract import check_loss

__all__ = [
    "Absolute",
    "CellModel",
    "Logarithmic",
    "Pinball",
    "Quadratic",
    "RankedProbability",
    "TableLoss",
    "ZeroOne",
    "check_loss",
    "register_family",
    "register_loss",
]
