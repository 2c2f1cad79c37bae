import gingham as gg
from example_tuples import STARS, TINY, WORDS, X
from gingham.models import SurveyCoClustering
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
    Example(
        "layers of two classes",
        gg.LayeredCoClusteringClassifier(n_layers=2, n_clusters=2, sampler=Sampler(2, 12, 4), random_state=0),
        (X, WORDS),
        lambda model: model.predict_proba(X),
        TINY,
        checked=gg.LayeredCoClusteringClassifier(1, 2, baskets=0, sampler=Sampler(1, 8, 4), random_state=0),
    ),
    Example(
        "layers of ordered classes",
        gg.LayeredCoClusteringClassifier(1, 2, ordered=True, sampler=Sampler(2, 12, 4), random_state=0),
        (X, STARS),
        lambda model: model.predict_proba(X),
        TINY,
    ),
    Example(
        "layers of several classes",
        gg.LayeredCoClusteringClassifier(1, 2, baskets=1, sampler=Sampler(2, 12, 4), random_state=0),
        (X, STARS),
        lambda model: model.predict_proba(X),
        TINY,
    ),
    Example(
        "a survey",
        SurveyCoClustering(1, 2, baskets=0, sampler=Sampler(2, 8, 4), random_state=0),
        (X, WORDS),
        lambda model: model.predict_proba(X),
        TINY,
        checked="its labels are answers to the question that the second column of ids names",
    ),
]
