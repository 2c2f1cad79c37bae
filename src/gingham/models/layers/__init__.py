"""Sums of checkerboards: soft blocks and sampled chains."""

from gingham.models.layers.chains_torch import run_chains, use_torch
from gingham.models.layers.data import LayerData, SideTable
from gingham.models.layers.model import Draws, Prediction, SoftLayers
from gingham.models.layers.pilot import Pilot, cut_points, pool_pilots, run_pilot
from gingham.models.layers.sampled import Chain, Shape, run_chain
from gingham.models.layers.soft import Soft, objective, solve

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
    "cut_points",
    "objective",
    "pool_pilots",
    "run_chain",
    "run_chains",
    "run_pilot",
    "solve",
    "use_torch",
]
