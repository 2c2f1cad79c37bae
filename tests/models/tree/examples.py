import numpy as np

import gingham as gg
from example_tuples import TINY
from model_examples import Example

rng = np.random.default_rng(11)
X = rng.integers(0, 8, (300, 4))
Y = (X.sum(axis=1) % 2).astype(int)

EXAMPLES = [
    Example(
        "tree",
        gg.TreeCoClustering(leaves=2, merges=((0, 1, 2), (2, 3, 2)), n_init=1, max_iter=20, random_state=0),
        (X, Y),
        lambda model: model.predict(X),
        {name: (np.repeat(rows, 2, axis=1), labels) for name, (rows, labels) in TINY.items()},
        checked=gg.TreeCoClustering(leaves=2, n_init=1, max_iter=3, random_state=0),
    ),
    Example(
        "density tree",
        gg.TreeCoClustering(leaves=2, loss="density", n_init=1, max_iter=20, random_state=0),
        (X,),
        lambda model: model.score_samples(X),
        {"one row": ([("a", "b")],)},
        keeps_nothing="A density is found by one compiled call a stage, which Ctrl-C ends.",
    ),
]
