"""Choosing: a path of β, the number of clusters, coarser checkerboards from one fit."""

from gingham.selection.auto import Selection
from gingham.selection.beta_path import BetaPath, PathPoint, PathProgress, beta_path
from gingham.selection.coarser import simplify

__all__ = ["BetaPath", "PathPoint", "PathProgress", "Selection", "beta_path", "simplify"]
