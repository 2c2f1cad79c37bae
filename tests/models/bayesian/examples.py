from example_tuples import STARS, TINY, X

import gingham as gg
from model_examples import Example

FAMILIES = {"gaussian": STARS, "categorical": STARS, "bernoulli": (STARS > 3).astype(int)}
CHECKED = {"gaussian": gg.BayesianCoClustering((2, 2), family="gaussian", max_iter=3, random_state=0)}

EXAMPLES = [
    Example(
        f"Bayesian co-clustering, {family}",
        gg.BayesianCoClustering(n_clusters=(2, 2), family=family, max_iter=15, random_state=0),
        (X, labels),
        lambda model: model.predict(X),
        TINY,
        CHECKED.get(family),
    )
    for family, labels in FAMILIES.items()
]
