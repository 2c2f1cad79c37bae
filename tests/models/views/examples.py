import numpy as np

import gingham as gg
from as_one_table import CCAOfHalves, PairwiseOfHalves
from model_examples import Example

rng = np.random.default_rng(2)
HIDDEN = rng.normal(size=(60, 2))
VIEWS = [HIDDEN @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(60, 4)) for _ in range(3)]
TINY = {"one object": ([np.ones((1, 2)), np.ones((1, 2))],), "equal objects": ([np.ones((6, 2)), np.ones((6, 3))],)}
MEMBERS = [rng.random((40, 3)) < 0.5 for _ in range(2)]

EXAMPLES = [
    Example(
        "pairwise cluster analysis, all chosen",
        gg.PairwiseClusterAnalysis(cv=3, random_state=0),
        (VIEWS,),
        lambda model: np.hstack(model.transform(VIEWS)),
        TINY,
        PairwiseOfHalves(1, ridge=0.1, random_state=0),
    ),
    Example(
        "kernel CCA",
        gg.KernelCCA(n_components=2, ridge=0.1, kernel="rbf", random_state=0),
        (VIEWS,),
        lambda model: np.hstack(model.transform(VIEWS)),
        TINY,
        CCAOfHalves(1, ridge=0.1, random_state=0),
        keeps_nothing="With ridge and components given it is one eigenproblem.",
    ),
    Example(
        "explanatory clustering",
        gg.ExplanatoryClustering(pairs="all"),
        (MEMBERS,),
        lambda model: model.weights_,
        {"one object": ([np.ones((1, 2), bool), np.zeros((1, 2), bool)],)},
        "It weighs clusters that are given as indicators, and the tables of the checks are numbers of any size.",
        keeps_nothing="It is one quadratic program.",
    ),
]
