"""scikit-learn faces: thin, no mathematics. Names are imported when they are first used."""

from importlib import import_module
from typing import Any

# public name → module of this package
MODULES = {
    "BayesianCoClustering": "bayesian.estimator",
    "CoClusteringClassifier": "grid.estimator",
    "CoClusteringRegressor": "grid.estimator",
    "CoOccurrenceClustering": "counts.estimator",
    "Committee": "committee.estimator",
    "GraphClustering": "graph.estimator",
    "InformationClustering": "features.estimator",
    "LayeredCoClusteringRegressor": "layers.estimator",
    "JointCoClustering": "joint.estimator",
    "TreeCoClustering": "tree.estimator",
    "ExplanatoryClustering": "views.explanatory",
    "KernelCCA": "views.estimator",
    "PairwiseClusterAnalysis": "views.estimator",
    "load": "base",
    "workload_path": "graph.workload",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(MODULES)
