import numpy as np

import gingham as gg
from as_one_table import EXCUSED, RankerOfFirstTwo
from model_examples import Example

rng = np.random.default_rng(5)
USERS = rng.integers(0, 80, 1200)
PAIRS = np.column_stack([USERS, 2 * rng.integers(0, 15, 1200) + USERS % 2])
TINY = {
    "one pair": ([[0, 0]],),
    "one pair, twice": ([["ann", "tea"], ["ann", "tea"]],),
    "one user": ([[0, 0], [0, 1], [0, 2]],),
    "one item": ([[0, 0], [1, 0], [2, 0]],),
    "no pair": (np.zeros((0, 2)),),
}

EXAMPLES = [
    Example(
        "ranking",
        gg.BasketRanker(n_boards=2, n_factors=16, names={1: "one"}, random_state=0),
        (PAIRS,),
        lambda model: model.scores(PAIRS[:, 0], PAIRS[:, 1]),
        TINY,
        checked=RankerOfFirstTwo(random_state=0),
    ),
    Example(
        "ranking, item ridge",
        gg.BasketRanker(("items",), n_factors=16, random_state=0),
        (PAIRS,),
        lambda model: model.scores(PAIRS[:, 0], PAIRS[:, 1]),
        checked=gg.BasketRanker(random_state=0),
        excused=EXCUSED,
    ),
]
