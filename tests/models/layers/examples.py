import gingham as gg
from example_tuples import STARS, TINY, X
from gingham.models.layers import Sampler
from model_examples import Example

EXAMPLES = [
    Example(
        "layers",
        gg.LayeredCoClusteringRegressor(n_layers=2, n_clusters=2, sampler=Sampler(2, 12, 4), random_state=0),
        (X, STARS),
        lambda model: model.predict(X),
        TINY,
        checked=gg.LayeredCoClusteringRegressor(1, 2, sampler=Sampler(1, 6, 2), random_state=0),
    ),
]
