"""scikit-learn faces: thin, no mathematics. Names are imported when they are first used."""

from importlib import import_module
from typing import Any

# public name → module of this package
MODULES = {
    "BayesianCoClustering": "bayesian",
    "CoClusteringClassifier": "coclustering",
    "CoClusteringRegressor": "coclustering",
    "CoOccurrenceClustering": "cooccurrence",
    "Committee": "committee",
    "GraphClustering": "graph",
    "InformationClustering": "information",
    "LayeredCoClusteringRegressor": "layered",
    "JointCoClustering": "joint",
    "TreeCoClustering": "tree",
    "ExplanatoryClustering": "explanatory",
    "KernelCCA": "pairwise",
    "PairwiseClusterAnalysis": "pairwise",
    "fit_distributed": "distributed",
    "load": "base",
    "workload_path": "workload",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(MODULES)
