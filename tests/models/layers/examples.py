import gingham as gg
from example_tuples import STARS, TINY, X
from model_examples import Example

EXAMPLES = [
    Example(
        "sampled layers",
        gg.LayeredCoClusteringRegressor(
            n_layers=2, n_clusters=2, n_chains=2, n_sweeps=12, burn_in=4, n_pilots=1, random_state=0
        ),
        (X, STARS),
        lambda model: model.predict(X),
        TINY,
        checked=gg.LayeredCoClusteringRegressor(1, 2, n_chains=1, n_sweeps=6, burn_in=2, n_pilots=1, random_state=0),
        excused={
            "check_sample_weight_equivalence_on_dense_data": "its 30 columns would be 30 modes, and 2³⁰ cells a layer"
        },
    ),
    Example(
        "soft layers",
        gg.LayeredCoClusteringRegressor(
            n_layers=2, n_clusters=2, n_chains=2, n_sweeps=4, n_pilots=1, solver="projection", random_state=0
        ),
        (X, STARS),
        lambda model: model.predict(X),
        TINY,
    ),
]
