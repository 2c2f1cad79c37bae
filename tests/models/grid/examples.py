import gingham as gg
from example_tuples import STARS, TINY, WORDS, X
from model_examples import Example

EXAMPLES = [
    Example(
        "co-clustering of numbers",
        gg.CoClusteringRegressor(n_clusters=(3, 3), alphabet=range(1, 6), max_iter=30, random_state=0),
        (X, STARS),
        lambda model: model.predict(X),
        TINY,
        checked=gg.CoClusteringRegressor(max_iter=3, random_state=0),
    ),
    Example(
        "co-clustering by hard moves, sizes found",
        gg.CoClusteringRegressor(loss="log", solver="sweep", n_init=2, random_state=0),
        (X, STARS),
        lambda model: model.predict(X),
        TINY,
    ),
    Example(
        "co-clustering of measurements",
        gg.CoClusteringRegressor(n_clusters=2, loss="quadratic", bounds=(1, 6), max_iter=30, random_state=0),
        (X, STARS + 0.25),
        lambda model: model.predict(X),
        TINY,
        checked=gg.CoClusteringRegressor(loss="quadratic", max_iter=3),
    ),
    Example(
        "co-clustering of classes",
        gg.CoClusteringClassifier(n_clusters=(3, 3), beta=2.0, max_iter=30, random_state=0),
        (X, WORDS),
        lambda model: model.predict_proba(X),
        TINY,
        checked=gg.CoClusteringClassifier(max_iter=20),
    ),
]
