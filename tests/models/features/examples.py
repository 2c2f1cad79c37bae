import numpy as np

import gingham as gg
from model_examples import Example

rng = np.random.default_rng(4)
TABLE = ((np.arange(24)[:, None] + np.arange(10)) % 2).astype(float)
TABLE[rng.random(TABLE.shape) < 0.2] = np.nan
OTHERS = ((np.arange(24)[:, None] + np.arange(6)) % 2).astype(float)

EXAMPLES = [
    Example(
        "information clustering",
        gg.InformationClustering(n_clusters=2, n_init=2, random_state=0),
        (TABLE,),
        lambda model: np.append(model.labels_, model.unobserved_information(OTHERS)),
        {"one value": ([[1.0]],), "nothing observed": (np.full((2, 2), np.nan),)},
        checked=gg.InformationClustering(n_clusters=2, random_state=0),
        excused={"check_clustering": "values are categories: blobs of measurements, each value once, have no clusters"},
    ),
]
