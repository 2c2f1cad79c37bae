"""P4's purpose: an attribute that nobody has looked at, predicted for all instances from a few labelled ones.

Instances are clustered by half of the features (the number of clusters found), and 1, 5, 20 and 100 of them, drawn at
random, are asked about a new attribute; the share of wrong values among the others is measured. Beside it nearest
neighbours and logistic regression, which learn from the same labelled instances with the observed features one-hot (a
missing one is all zeros), and the most frequent label. Tables: handwritten digits of scikit-learn (pixels in five
levels; new attributes are the other pixels, and the digit itself), 4,000 viewers of MovieLens 1M (new attributes are
stars of other movies), and news of the BBC by their words (the topic). Where the new attributes are features set aside,
their mean error is certified on all of them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
from unobserved_features import table as viewers

from common import arguments, load, write
from gingham import InformationClustering

FIGURES = {
    "digit from 20 labels, wrong": "digits: the digit/error/20/*",
    "topic from 20 labels, wrong": "news: the topic/error/20/*",
}
LABELLED = (1, 5, 20, 100)
ATTRIBUTES = 40  # features set aside that are measured, each with one draw of labelled instances
DRAWS = 20  # of labelled instances, for the attributes that are one alone
PEERS = {
    "nearest neighbour": lambda m: KNeighborsClassifier(1),
    "five neighbours": lambda m: KNeighborsClassifier(min(5, m), weights="distance"),
    "logistic regression": lambda m: LogisticRegression(max_iter=300),
}


def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    levels = np.digitize(data.data, [1, 5, 9, 13]).astype(float)
    return levels[:, levels.std(axis=0) > 0.2], data.target


def news(folder: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which words each text has, of those that one text in twenty has."""
    z = load(folder, "docs_bbc_news.npz")
    has = sparse.csr_array((z["data"], z["indices"], z["indptr"]), shape=z["shape"]).toarray() > 0
    return has[:, has.mean(axis=0) > 0.05].astype(float), np.unique(z["labels"], return_inverse=True)[1]


def one_hot(observed: np.ndarray) -> np.ndarray:
    columns = [column[:, None] == np.unique(column[column == column]) for column in observed.T]
    return np.hstack([each if each.shape[1] > 2 else each[:, 1:] for each in columns]).astype(np.float32)


def one_draw(
    model: InformationClustering, features: np.ndarray, values: np.ndarray, labelled: int, rng: np.random.Generator
) -> dict[str, float]:
    """Share of wrong values of the instances that were not asked, by method."""
    seen = rng.permutation(np.flatnonzero(values == values))
    asked, others = seen[:labelled], seen[labelled:]
    known = np.full(len(values), np.nan)
    known[asked] = values[asked]
    kinds, counts = np.unique(values[asked], return_counts=True)
    guesses = {"clusters": model.predict_attribute(known).values, "most frequent": kinds[counts.argmax()]}
    for name, make in PEERS.items():
        guesses[name] = kinds[0]
        if len(kinds) > 1:
            found = make(labelled).fit(features[asked], values[asked])
            guesses[name] = np.full(len(values), np.nan)
            guesses[name][others] = found.predict(features[others])
    return {
        name: float(np.mean(np.broadcast_to(g, len(values))[others] != values[others])) for name, g in guesses.items()
    }


def measured(observed: np.ndarray, attributes: list[np.ndarray], draws: int, seed: int) -> dict[str, Any]:
    """Mean errors over the attributes and draws, with their standard errors."""
    rng = np.random.default_rng(seed)
    start = time.process_time()
    model = InformationClustering("auto", random_state=seed).fit(observed)
    result: dict[str, Any] = {
        "instances": len(observed), "features": observed.shape[1], "attributes": len(attributes), "draws": draws,
        "clusters": model.n_clusters_, "fit_cpu_s": time.process_time() - start, "error": {}, "standard_error": {},
    }  # fmt: skip
    features = one_hot(observed)
    for labelled in LABELLED:
        every = [one_draw(model, features, values, labelled, rng) for values in attributes for _ in range(draws)]
        result["error"][str(labelled)] = {name: float(np.mean([e[name] for e in every])) for name in every[0]}
        result["standard_error"][str(labelled)] = {
            name: float(np.std([e[name] for e in every]) / np.sqrt(len(every))) for name in every[0]
        }
        print(labelled, result["error"][str(labelled)], flush=True)
    return result


def halves(table: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    order = np.random.default_rng(seed).permutation(table.shape[1])
    return table[:, order[: len(order) // 2]], table[:, order[len(order) // 2 :]]


def set_aside(table: np.ndarray, count: int, seed: int) -> dict[str, Any]:
    """Half of the features are new attributes: those of which enough is known are measured, all are certified."""
    observed, hidden = halves(table, seed)
    enough = np.flatnonzero((hidden == hidden).sum(axis=0) > 1.5 * max(LABELLED))
    result = measured(observed, [hidden[:, j] for j in enough[:count]], 1, seed)
    model = InformationClustering(result["clusters"], random_state=seed).fit(observed)
    result["certificate"] = {}
    for labelled in LABELLED:
        found = model.certify_new(hidden[:, enough], n_labelled=labelled)
        result["certificate"][str(labelled)] = {
            "value": found.value, "mean": found.empirical, "most frequent": found.chance, "features": found.n_features,
        }  # fmt: skip
    return result


def main() -> None:
    args = arguments(__doc__ or "", "papers_new_attributes")
    count, draws = (4, 2) if args.quick else (ATTRIBUTES, DRAWS)
    pixels, digit = digits()
    words, topics = news(args.data)
    ratings = viewers(load(args.data, "ml1m.npz"), np.random.default_rng(args.seed))
    if args.quick:
        ratings = ratings[:1000, :400]
    results = {
        "digits: the digit": measured(pixels, [digit.astype(float)], draws, args.seed),
        "digits: other pixels": set_aside(pixels, count, args.seed),
        "news: the topic": measured(words, [topics.astype(float)], draws, args.seed),
        "movies: other stars": set_aside(ratings, count, args.seed),
    }
    write(args, {"labelled": LABELLED, "attributes": count, "draws": draws}, results)


if __name__ == "__main__":
    main()
