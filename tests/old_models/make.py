"""One small model file of every kind, and beside it what the model said when it was written.

Run with the version of gingham whose files are to be kept:
``PYTHONPATH=<its src> python tests/old_models/make.py FOLDER``. Files that are kept are never written again.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import gingham as gg

rng = np.random.default_rng(0)
N = 240
USERS, FILMS = rng.integers(0, 12, N), rng.integers(0, 9, N)
X = [(f"user {u}", int(f)) for u, f in zip(USERS, FILMS)]
STARS = np.clip(np.array([[5, 2], [1, 4]])[USERS % 2, FILMS % 2] + rng.choice([-1, 0, 0, 0, 1], N), 1, 5)
NUMBERS = STARS + 0.1 * rng.standard_normal(N)
NAMES = np.array(["hate", "like"])[(STARS > 3).astype(int)]
ASKED = [["user 0", 0], ["user 0", 1], ["user 1", 0], ["user 7", 8], ["nobody", 3]]
PLACES = [(int(a), int(b), int(c), int(d)) for a, b, c, d in rng.integers(0, 6, (N, 4))]
PARITY = np.array([(a + b) % 2 == (c + d) % 2 for a, b, c, d in PLACES]).astype(int)
ASKED_PLACES = [list(place) for place in PLACES[:6]]
EDGES = [
    (f"n{i:02d}", f"n{j:02d}") for i in range(16) for j in range(i) if rng.random() < (0.8 if i % 2 == j % 2 else 0.1)
]
ASKED_EDGES = [["n00", "n01"], ["n00", "n02"], ["n03", "n05"], ["n15", "nobody"]]
COUNTS = rng.poisson(np.where((np.arange(14)[:, None] + np.arange(10)) % 2, 6.0, 0.5))
TABLE = np.where(rng.random((20, 8)) < 0.8, (np.arange(20)[:, None] + np.arange(8)) % 2, np.nan)
SHARED = rng.standard_normal((30, 2))
VIEWS = [SHARED @ rng.standard_normal((2, 4)) + 0.2 * rng.standard_normal((30, 4)) for _ in range(2)]
SOME = [view[:4].tolist() for view in VIEWS]
GENRES = [(f, g) for f in range(10) for g in ("war", "love")]
HAS = [int((f % 2 == 0) == (g == "war")) for f, g in GENRES]
RELATION = ["user", "film"]

regressor = partial(gg.CoClusteringRegressor, max_iter=20, random_state=0)

# name → (fitted model, [(method, arguments)], attributes to compare)
GRID_CALLS = [("predict", [ASKED]), ("predict_distribution", [ASKED])]
SHOWN = ("n_iter_", "converged_", "beta_", "n_features_in_", "n_clusters_")


def models():
    yield "regressor", regressor((2, 2), beta=1.0, alphabet=range(1, 6)).fit(X, STARS), GRID_CALLS, SHOWN
    frame = pd.DataFrame({"user": [x[0] for x in X], "film": [x[1] for x in X]})
    named = regressor((2, 2), beta=1.0).fit(frame, STARS)
    yield "regressor_named_columns", named, [], (*SHOWN, "feature_names_in_", "answers_")
    yield "regressor_chosen", regressor().fit(X, STARS), GRID_CALLS, SHOWN
    yield (
        "classifier",
        gg.CoClusteringClassifier((2, 2), beta=2.0, max_iter=20, random_state=0).fit(X, NAMES),
        [("predict", [ASKED]), ("predict_proba", [ASKED])],
        (*SHOWN, "classes_"),
    )
    quadratic = regressor((2, 2), beta=1.0, loss="quadratic", bounds=(0.0, 6.0)).fit(X, NUMBERS)
    yield "quadratic_with_bounds", quadratic, [("predict", [ASKED])], SHOWN
    table = np.abs(np.arange(5)[:, None] - np.arange(5)) ** 0.5
    yield "own_table", regressor((2, 2), beta=1.0, loss=table, alphabet=range(1, 6)).fit(X, STARS), GRID_CALLS, SHOWN
    pinball = regressor((2, 2), beta=1.0, loss=partial(gg.Pinball, quantile=0.9), alphabet=range(1, 6)).fit(X, STARS)
    yield "pinball", pinball, GRID_CALLS, SHOWN
    yield "log", regressor((2, 2), beta=1.0, loss="log", alphabet=range(1, 6)).fit(X, STARS), GRID_CALLS, SHOWN
    merges = ((0, 1, 2), (2, 3, 2))
    tree = gg.TreeCoClustering(2, merges, beta=3.0, n_init=1, max_iter=20, random_state=0)
    yield "tree", tree.fit(PLACES, PARITY), [("predict", [ASKED_PLACES])], ("merges_", "n_iter_", "n_features_in_")
    density = gg.TreeCoClustering(2, merges, loss="density", n_init=1, max_iter=20, random_state=0)
    yield "tree_density", density.fit(PLACES), [("score_samples", [ASKED_PLACES])], ("merges_", "n_features_in_")
    tied = gg.TreeCoClustering(2, merges, tied="all", beta=3.0, n_init=1, max_iter=20, random_state=0)
    yield "tree_tied", tied.fit(PLACES, PARITY), [("predict", [ASKED_PLACES])], ("merges_",)
    joint = gg.JointCoClustering({"user": 2, "film": 2, "genre": None}, max_iter=20, random_state=0)
    joint.fit({("user", "film"): (X, STARS), ("film", "genre"): (GENRES, HAS)})
    calls = [("predict", [RELATION, ASKED]), ("predict", [["film", "genre"], [[9, "war"], [9, "love"]]])]
    yield "joint", joint, calls, ("n_iter_", "converged_", "relations_")
    committee = gg.Committee(regressor((2, 2), beta=1.0), n_members=3, cross=True, random_state=0).fit(X, STARS)
    yield "committee", committee, GRID_CALLS, ("folds_", "fold_predictions_", "n_features_in_")
    counts = gg.CoOccurrenceClustering((2, 2), random_state=0).fit(COUNTS)
    calls = [("predict", [COUNTS[:5].tolist()]), ("transform", [COUNTS[:5].tolist()])]
    yield "counts", counts, calls, ("row_labels_", "column_labels_", "information_", "n_iter_", "n_features_in_")
    shown = ("labels_", "beta_", "n_iter_", "converged_", "directed_")
    graph = gg.GraphClustering(2, random_state=0).fit(EDGES)
    yield "graph", graph, [("predict", [ASKED_EDGES])], shown
    graph = gg.GraphClustering(2, degree_correction=True, random_state=0).fit(EDGES)
    yield "graph_degree_corrected", graph, [("predict", [ASKED_EDGES])], shown
    information = gg.InformationClustering(2, random_state=0).fit(TABLE)
    shown = ("labels_", "observed_information_", "chance_information_", "feature_information_", "n_values_", "missing_")
    yield "information", information, [], shown
    shown = ("labels_", "strengths_", "correlations_", "ridge_", "n_components_", "n_features_in_")
    views = [("transform", [SOME]), ("predict", [SOME])]
    yield "pairwise", gg.PairwiseClusterAnalysis(2, ridge=0.1).fit(VIEWS), views, shown
    near = gg.PairwiseClusterAnalysis(2, ridge=0.1, kernel="rbf", kernel_params={"gamma": 0.1}).fit(VIEWS)
    yield "pairwise_rbf", near, views, shown
    sparse_views = [sparse.csr_array(np.round(view)) for view in VIEWS]
    thin = gg.PairwiseClusterAnalysis(2, ridge=0.1, kernel="rbf").fit(sparse_views)
    yield "pairwise_sparse", thin, views, shown
    yield "kernel_cca", gg.KernelCCA(2, ridge=0.1).fit(VIEWS), views, shown


def plain(value):
    """A result as JSON has it."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def arguments(model, given):
    """Arguments from JSON: a relation is named by a tuple."""
    return [tuple(given[0]), *given[1:]] if type(model).__name__ == "JointCoClustering" else given


def main(folder):
    for name, model, calls, attributes in models():
        model.save(folder / f"{name}.gingham", notes={"name": name})
        said = [[method, given, plain(getattr(model, method)(*arguments(model, given)))] for method, given in calls]
        known = {attribute: plain(getattr(model, attribute)) for attribute in attributes}
        (folder / f"{name}.json").write_text(json.dumps({"calls": said, "attributes": known}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
