"""Clusters of the nodes of a graph (P1), and the solvers that find them."""

from gingham.lazy import lazy_names

MODULES = dict.fromkeys(("Damped", "Iclust", "NodeSweep", "NodeWise"), "solvers")
__getattr__, __dir__ = lazy_names(__name__, MODULES)
