import gingham as gg
from as_one_table import EXCUSED, BayesianOfFirstTwo
from example_tuples import STARS, TINY, X
from model_examples import Example

FAMILIES = {"gaussian": STARS, "categorical": STARS, "bernoulli": (STARS > 3).astype(int)}
# Every check of a table of two columns, and those that other widths leave.
CHECKED = (BayesianOfFirstTwo(max_iter=3, random_state=0), gg.BayesianCoClustering(max_iter=3, random_state=0), None)

EXAMPLES = [
    Example(
        f"Bayesian co-clustering, {family}",
        gg.BayesianCoClustering(n_clusters=(2, 2), family=family, max_iter=15, random_state=0),
        (X, labels),
        lambda model: model.predict(X),
        TINY,
        checked,
        EXCUSED if type(checked) is gg.BayesianCoClustering else {},
    )
    for (family, labels), checked in zip(FAMILIES.items(), CHECKED)
]
