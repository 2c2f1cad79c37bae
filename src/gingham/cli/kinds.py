"""The kinds of models: what ``--model`` may say, and the estimator it stands for."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from gingham import estimators
from gingham.arrays import Anything
from gingham.cli.defaults import FEW, Choice, parse_alphabet
from gingham.cli.wish import Wish
from gingham.errors import GinghamError

# on labelled tuples, with one column of ids per axis
TUPLES = ("coclustering", "layered", "committee", "bayesian", "tree")
# on rows without a label to predict
OTHERS = {
    "graph": "GraphClustering",
    "cooccurrence": "CoOccurrenceClustering",
    "information": "InformationClustering",
    "pairwise": "PairwiseClusterAnalysis",
}
# where each of these is read, fitted, opened
MODULES = {"graph": "of_graphs", "cooccurrence": "of_counts", "information": "of_features", "pairwise": "of_views"}
KINDS = (*TUPLES, *OTHERS, "joint")
MEMBERS = 20
# options of gingham fit that mean nothing to a kind
_TRADE_OFF = ("loss", "beta", "objective", "solver", "merges")
UNUSED = {
    "coclustering": ("merges",),
    "committee": ("merges",),
    "layered": _TRADE_OFF,
    "bayesian": _TRADE_OFF,
    "tree": ("objective", "solver"),
    "joint": ("objective", "solver", "merges", "bounds"),
    "graph": ("objective", "solver", "merges"),
    "cooccurrence": ("loss", "alphabet", "bounds", "objective", "solver", "merges"),
    "information": (*_TRADE_OFF, "alphabet", "bounds"),
    "pairwise": (*_TRADE_OFF, "alphabet", "bounds"),
}


def check_kind(kind: str) -> None:
    """Refuse a kind that does not exist."""
    if kind not in KINDS:
        raise GinghamError(f"--model {kind!r} is unknown; choose one of {', '.join(KINDS)}.")


def tuple_model(
    kind: str,
    settings: dict[str, Any],
    choice: Choice,
    labels: Anything,
    merges: str | None = None,
    bounds: tuple[float, float] | None = None,
) -> Any:
    """An unfitted estimator of labelled tuples; ``settings`` are those of CoClusteringRegressor."""
    if kind in ("coclustering", "committee"):
        if choice.classify:
            inner: Any = estimators.CoClusteringClassifier(**settings)
        else:
            inner = estimators.CoClusteringRegressor(bounds=choice.bounds, **settings)
        if kind == "coclustering":
            return inner
        return estimators.Committee(inner, n_members=MEMBERS, random_state=settings["random_state"])
    seed, clusters = settings["random_state"], settings["n_clusters"]
    if kind == "layered":
        if choice.classify and labels.dtype.kind not in "biuf":
            raise GinghamError("--model layered predicts numbers, and the label column holds text.")
        return estimators.LayeredCoClusteringRegressor(n_clusters=clusters, alphabet=choice.alphabet, random_state=seed)
    if kind == "bayesian":
        family = _family(labels)
        return estimators.BayesianCoClustering(
            n_clusters=clusters, family=family, alphabet=choice.alphabet, bounds=bounds, random_state=seed
        )
    return estimators.TreeCoClustering(
        leaves=4 if clusters == "auto" else clusters,
        merges=parse_merges(merges),
        structure="auto" if merges == "auto" else "pairs",
        loss=choice.loss,
        beta=choice.beta,
        alphabet=choice.alphabet,
        bounds=choice.bounds,
        random_state=seed,
    )


def parse_merges(listed: str | None) -> tuple[tuple[int, ...], ...] | None:
    """Merges of a tree from "0,1,6;2,3,6": children, then the number of clusters."""
    if listed is None or listed == "auto":
        return None
    try:
        return tuple(tuple(int(part) for part in merge.split(",")) for merge in listed.split(";") if merge)
    except ValueError:
        raise GinghamError(f"--merges {listed!r} must be whole numbers: --merges '0,1,6;2,3,6', or auto.") from None


def _family(labels: Anything) -> str:
    if labels.dtype.kind not in "biuf":
        return "categorical"
    values = np.unique(labels)
    if set(values.tolist()) <= {0, 1}:
        return "bernoulli"
    return "categorical" if len(values) <= FEW and np.all(values == np.floor(values)) else "gaussian"


def check_options(wish: Wish) -> None:
    """Refuse options that a kind has no use for, rather than forget them."""
    plain = Wish((), None)
    for name in UNUSED.get(wish.model, ()):
        if getattr(wish, name) != getattr(plain, name):
            raise GinghamError(f"--model {wish.model} has no use for --{name}: leave it out.")


def other_model(wish: Wish) -> Any:
    """An unfitted estimator of graphs, counts, features or views."""
    kind, clusters = wish.model, wish.clusters
    model = getattr(estimators, OTHERS[kind])
    wanted: dict[str, Any] = {"random_state": wish.seed, "bounds": wish.bounds, "beta": wish.beta, "loss": wish.loss}
    if wish.n_init > 1:
        wanted["n_init"] = wish.n_init
    if clusters is not None:
        size = "n_components" if kind == "pairwise" else "n_clusters"
        wanted[size] = clusters if kind == "cooccurrence" else clusters[0]
    if wish.alphabet is not None:
        wanted["alphabet"] = parse_alphabet(wish.alphabet, False)
    if kind == "cooccurrence" and wish.beta is not None and np.isfinite(wish.beta):
        wanted["solver"] = "concave"
    known = inspect.signature(model).parameters
    return model(**{name: value for name, value in wanted.items() if name in known and value is not None})


def takes_callback(model: Any) -> bool:
    """Whether its fit reports progress."""
    return "callback" in inspect.signature(model.fit).parameters
