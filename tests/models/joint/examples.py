import numpy as np

import gingham as gg
from example_tuples import STARS, X
from model_examples import Example

GENRES = np.array([(movie, genre) for movie in range(9) for genre in range(3)])
HAS = (GENRES.sum(axis=1) % 2).astype(int)
RELATIONS = {("user", "movie"): (X, STARS), ("movie", "genre"): (GENRES, HAS)}
ONE = ([("a", "b")], [1])

EXAMPLES = [
    Example(
        "joint co-clustering",
        gg.JointCoClustering({"user": 2, "movie": 2, "genre": None}, max_iter=20, random_state=0),
        (RELATIONS,),
        lambda model: model.predict(("user", "movie"), X),
        {"one row each": ({("user", "movie"): ONE, ("movie", "genre"): ([("b", "c")], [1])},)},
        checked="It fits several tables at once, by the names of their modes.",
    ),
]
