import numpy as np
from scipy import sparse

import gingham as gg
from model_examples import Example

rng = np.random.default_rng(3)
BLOCKS = np.array([[3.0, 0.3], [0.3, 3.0]])
COUNTS = rng.poisson(BLOCKS[np.ix_(np.arange(24) % 2, np.arange(18) % 2)])
TINY = {
    "one count": ([[1]],),
    "two equal rows": ([[1, 2], [1, 2]],),
    "a row of zeros": ([[1, 2], [0, 0]],),
    "nothing but zeros": ([[0, 0], [0, 0]],),
}
POSITIONS = "score_samples takes positions of a row and a column, not rows of X"

EXAMPLES = [
    Example(
        "co-occurrence, hard",
        gg.CoOccurrenceClustering((2, 2), random_state=0),
        (sparse.csr_array(COUNTS),),
        lambda model: model.predict_memberships(COUNTS),
        TINY,
        checked=gg.CoOccurrenceClustering((2, 2), max_iter=5, random_state=0),
        excused={
            "check_methods_sample_order_invariance": POSITIONS,
            "check_methods_subset_invariance": POSITIONS,
        },
    ),
    Example(
        "co-occurrence, sizes found",
        gg.CoOccurrenceClustering(random_state=0),
        (COUNTS,),
        lambda model: model.predict_memberships(COUNTS),
        TINY,
    ),
    Example(
        "co-occurrence, soft",
        gg.CoOccurrenceClustering((2, 2), solver="concave", beta=1.0, max_iter=30, random_state=0),
        (COUNTS,),
        lambda model: model.predict_memberships(COUNTS),
        TINY,
    ),
]
