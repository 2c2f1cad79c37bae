"""gingham clusters both sides of the data at once, predicts what is missing, and proves how far to trust it."""

from gingham.lazy import lazy_names

__version__ = "0.1.0"

# public name → module that defines it; imported when first used, so that `import gingham` is fast
_PUBLIC = {
    "AdviceWarning": "errors",
    "BasketRanker": "models",
    "BayesianCoClustering": "models",
    "Certificate": "certificates",
    "CoClusteringClassifier": "models",
    "CoClusteringRegressor": "models",
    "Committee": "models",
    "CoOccurrenceClustering": "models",
    "ExplanatoryClustering": "models",
    "GinghamError": "errors",
    "GinghamWarning": "errors",
    "GraphClustering": "models",
    "KernelCCA": "models",
    "InformationClustering": "models",
    "LayeredCoClusteringClassifier": "models",
    "LayeredCoClusteringRegressor": "models",
    "PairwiseClusterAnalysis": "models",
    "Summary": "summary",
    "RefusedCertificate": "errors",
    "JointCoClustering": "models",
    "SurveyCoClustering": "models",
    "TreeCoClustering": "models",
    "UnseenItemsWarning": "errors",
    "beta_path": "selection",
    "certify": "certificates",
    "certify_predictions": "certificates",
    "certify_progressive": "models",
    "certify_ranking": "certificates",
    "from_anndata": "data.adapt",
    "from_frame": "data.adapt",
    "from_graph": "data.graphs",
    "from_matrix": "data.adapt",
    "from_pairs": "data.adapt",
    "load": "models",
    "look": "summary.look",
    "summarize": "summary",
    "simplify": "selection",
    "to_anndata": "data.adapt",
}
# public modules that hold the other public names: gg.losses.Absolute, gg.datasets.load_films
_MODULES = ("certificates", "core", "data", "datasets", "fitting", "losses", "models", "plots", "selection")
__all__ = sorted(_PUBLIC)
__getattr__, __dir__ = lazy_names(__name__, _PUBLIC, _MODULES)
