import gingham as gg
from example_tuples import STARS, TINY, X
from model_examples import Example

MEMBER = gg.CoClusteringRegressor(n_clusters=2, beta=1.0, alphabet=range(1, 6), max_iter=10)

EXAMPLES = [
    Example(
        "committee",
        gg.Committee(MEMBER, n_members=3, random_state=0),
        (X, STARS),
        lambda model: model.predict(X),
        TINY,
        checked=gg.Committee(gg.CoClusteringRegressor(loss="quadratic", max_iter=3), n_members=2, random_state=0),
    ),
    Example(
        "cross-fitted committee",
        gg.Committee(MEMBER, n_members=3, cross=True, random_state=0),
        (X, STARS),
        lambda model: model.fold_predictions_,
        TINY,
    ),
]
