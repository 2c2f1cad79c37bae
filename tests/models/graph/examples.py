import numpy as np

import gingham as gg
from model_examples import Example

rng = np.random.default_rng(5)
SIDE = np.arange(30) % 2
CHANCE = np.where(SIDE[:, None] == SIDE, 0.7, 0.1)
EDGES = np.triu(rng.random((30, 30)) < CHANCE, 1)
ADJACENCY = (EDGES | EDGES.T).astype(float)
PAIRS = np.column_stack(np.triu_indices(30, 1))
TINY = {
    "one node": (np.zeros((1, 1)),),
    "two nodes, no edge": (np.zeros((2, 2)),),
    "two nodes, one edge": (1.0 - np.eye(2),),
    "a full graph": (1.0 - np.eye(4),),
}

EXAMPLES = [
    Example(
        name,
        gg.GraphClustering(random_state=0, **settings),
        (ADJACENCY,),
        lambda model: model.predict(PAIRS),
        TINY,
        checked="A graph is a square matrix whose rows are its columns, and scikit-learn's checks fit others.",
    )
    for name, settings in {
        "graph, node by node": {"n_clusters": 2},
        "graph, damped": {"n_clusters": 2, "solver": "damped"},
        "graph, hard moves": {"n_clusters": 2, "solver": "sweep", "loss": "log"},
        "graph, size found": {"n_clusters": "auto", "loss": "log"},
        "graph, degrees corrected": {"n_clusters": 2, "degree_correction": True, "loss": "log", "solver": "sweep"},
    }.items()
]
