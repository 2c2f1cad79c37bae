import gingham as gg
from example_tuples import STARS, TINY, X
from model_examples import Example

FAMILIES = {"gaussian": STARS, "categorical": STARS, "bernoulli": (STARS > 3).astype(int)}
TWO = "It clusters rows and columns, so that X has exactly two columns, and scikit-learn's checks fit one to thirty."

EXAMPLES = [
    Example(
        f"Bayesian co-clustering, {family}",
        gg.BayesianCoClustering(n_clusters=(2, 2), family=family, max_iter=15, random_state=0),
        (X, labels),
        lambda model: model.predict(X),
        TINY,
        TWO,
    )
    for family, labels in FAMILIES.items()
]
