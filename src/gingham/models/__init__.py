"""scikit-learn faces: thin, no mathematics. Names are imported when they are first used."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "BasketRanker": "ranking.estimator",
    "BayesianCoClustering": "bayesian.estimator",
    "CoClusteringClassifier": "grid.estimator",
    "CoClusteringRegressor": "grid.estimator",
    "CoOccurrenceClustering": "counts.estimator",
    "Committee": "committee.estimator",
    "GraphClustering": "graph.estimator",
    "InformationClustering": "features.estimator",
    "LayeredCoClusteringClassifier": "layers.estimator",
    "LayeredCoClusteringRegressor": "layers.estimator",
    "SurveyCoClustering": "layers.survey",
    "JointCoClustering": "joint.estimator",
    "TreeCoClustering": "tree.estimator",
    "ExplanatoryClustering": "views.explanatory",
    "KernelCCA": "views.estimator",
    "PairwiseClusterAnalysis": "views.estimator",
    "ProgressivePredictor": "progressive",
    "certify_progressive": "progressive",
    "load": "base",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
