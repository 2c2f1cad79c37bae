"""Sums of checkerboards: soft blocks and sampled chains."""

from gingham.solvers.layers.data import LayerData, SideTable
from gingham.solvers.layers.device import chosen, run_chains
from gingham.solvers.layers.model import Draws, Prediction, SoftLayers
from gingham.solvers.layers.pilot import Pilot, cut_points, pool_pilots, run_pilot
from gingham.solvers.layers.sampled import Chain, Shape, run_chain
from gingham.solvers.layers.soft import Soft, objective, solve

__all__ = [
    "Chain",
    "Draws",
    "LayerData",
    "Pilot",
    "Prediction",
    "Shape",
    "SideTable",
    "Soft",
    "SoftLayers",
    "chosen",
    "cut_points",
    "objective",
    "pool_pilots",
    "run_chain",
    "run_chains",
    "run_pilot",
    "solve",
]
