"""gingham clusters both sides of the data at once, predicts what is missing, and proves how far to trust it."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# public name → module that defines it; imported when first used, so that `import gingham` is fast
_PUBLIC = {
    "Absolute": "gingham.cells",
    "Alphabet": "gingham.data",
    "BayesianCoClustering": "gingham.models",
    "BetaPath": "gingham.selection",
    "CellModel": "gingham.cells",
    "Certificate": "gingham.certificates",
    "CoClusteringClassifier": "gingham.models",
    "CoClusteringRegressor": "gingham.models",
    "Committee": "gingham.models",
    "CoOccurrenceClustering": "gingham.models",
    "Constant": "gingham.fitting.loop",
    "Down": "gingham.fitting.loop",
    "ExplanatoryClustering": "gingham.models",
    "GinghamError": "gingham.errors",
    "GinghamWarning": "gingham.errors",
    "GraphClustering": "gingham.models",
    "KernelCCA": "gingham.models",
    "InformationClustering": "gingham.models",
    "LayeredCoClusteringRegressor": "gingham.models",
    "Logarithmic": "gingham.cells",
    "PairwiseClusterAnalysis": "gingham.models",
    "OutOfCore": "gingham.scale.out_of_core",
    "Pinball": "gingham.cells",
    "Posterior": "gingham.core.posterior",
    "Quadratic": "gingham.cells",
    "RefusedCertificate": "gingham.errors",
    "Sample": "gingham.data",
    "Selection": "gingham.selection",
    "TableLoss": "gingham.cells",
    "JointCoClustering": "gingham.models",
    "TreeCoClustering": "gingham.models",
    "UnseenItemsWarning": "gingham.errors",
    "ZeroOne": "gingham.cells",
    "beta_path": "gingham.selection",
    "certify": "gingham.certificates",
    "certify_density": "gingham.certificates",
    "certify_folds": "gingham.certificates",
    "certify_gain": "gingham.certificates",
    "certify_labels": "gingham.certificates",
    "certify_partition": "gingham.certificates",
    "certify_predictions": "gingham.certificates",
    "certify_stream": "gingham.certificates",
    "check_loss": "gingham.cells.contract",
    "fit_distributed": "gingham.scale.fit_distributed",
    "compare_partitions": "gingham.certificates",
    "from_anndata": "gingham.data.annotated",
    "from_frame": "gingham.data.adapt",
    "from_graph": "gingham.data.graphs",
    "from_matrix": "gingham.data.adapt",
    "from_tuples": "gingham.data.adapt",
    "load": "gingham.models",
    "merge": "gingham.selection",
    "prune": "gingham.selection",
    "register_family": "gingham.cells.families",
    "register_loss": "gingham.cells",
    "simplify": "gingham.selection",
    "to_anndata": "gingham.data.annotated",
    "workload_path": "gingham.models",
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'gingham' has no attribute {name!r}")
    value = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
