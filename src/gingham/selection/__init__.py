"""Choosing: a path of β, the number of clusters, coarser checkerboards from one fit."""

from gingham.selection.auto import Selection
from gingham.selection.coarser import merge, prune, simplify
from gingham.selection.path import BetaPath, PathPoint, PathProgress, beta_path

__all__ = ["BetaPath", "PathPoint", "PathProgress", "Selection", "beta_path", "merge", "prune", "simplify"]
