"""The kinds of models: what ``--model`` may say, and the estimator it stands for."""

from __future__ import annotations

import inspect
from typing import Any

from gingham import models as estimators
from gingham.cli.fit_options import Wish
from gingham.cli.label_kind import Choice, parse_alphabet
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


def tuple_model(wish: Wish, choice: Choice) -> Any:
    """An unfitted estimator of labelled tuples with all that was said; the rest is its own to choose."""
    said: dict[str, Any] = {
        "alphabet": choice.alphabet,
        "bounds": choice.bounds,
        "loss": choice.loss,
        "beta": wish.beta,
    }
    if wish.model == "tree":
        merges = {"merges": parse_merges(wish.merges), "structure": "auto" if wish.merges == "auto" else None}
        return _made(estimators.TreeCoClustering, wish, {**said, **merges, "leaves": wish.clusters})
    said = {**said, "n_clusters": wish.clusters, "objective": wish.objective, "solver": wish.solver}
    if wish.model == "layered":
        if choice.classify:
            raise GinghamError("--model layered predicts numbers, and the label column holds text.")
        # Bounds are for its certificate, which speaks of predictions: the notes of the model keep them.
        return _made(estimators.LayeredCoClusteringRegressor, wish, {**said, "bounds": None})
    if wish.model == "bayesian":
        return _made(estimators.BayesianCoClustering, wish, said)
    kind = estimators.CoClusteringClassifier if choice.classify else estimators.CoClusteringRegressor
    inner = _made(kind, wish, said)
    return estimators.Committee(inner, random_state=wish.seed) if wish.model == "committee" else inner


def _made(kind: Any, wish: Wish, said: dict[str, Any]) -> Any:
    """An estimator with what was said; an option that it does not know is refused, not forgotten."""
    said = {**said, "n_init": wish.n_init, "max_iter": wish.max_iter}
    said = {name: value for name, value in said.items() if value is not None}
    known = inspect.signature(kind).parameters
    for name in said:
        if name not in known:
            option = {"n_init": "starts", "max_iter": "max-iter"}.get(name, name)
            raise GinghamError(f"--model {wish.model} has no use for --{option}: leave it out.")
    return kind(**said, random_state=wish.seed)


def parse_merges(listed: str | None) -> tuple[tuple[int, ...], ...] | None:
    """Merges of a tree from "0,1,6;2,3,6": children, then the number of clusters."""
    if listed is None or listed == "auto":
        return None
    try:
        return tuple(tuple(int(part) for part in merge.split(",")) for merge in listed.split(";") if merge)
    except ValueError:
        raise GinghamError(f"--merges {listed!r} must be whole numbers: --merges '0,1,6;2,3,6', or auto.") from None


def check_options(wish: Wish) -> None:
    """Refuse options that a kind has no use for, rather than forget them."""
    plain = Wish((), None)
    for name in UNUSED.get(wish.model, ()):
        if getattr(wish, name) != getattr(plain, name):
            raise GinghamError(f"--model {wish.model} has no use for --{name}: leave it out.")


def other_model(wish: Wish) -> Any:
    """An unfitted estimator of graphs, counts, features or views with all that was said."""
    kind, clusters = wish.model, wish.clusters
    said: dict[str, Any] = {"bounds": wish.bounds, "beta": wish.beta, "loss": wish.loss}
    if clusters is not None:
        size = "n_components" if kind == "pairwise" else "n_clusters"
        said[size] = clusters if kind == "cooccurrence" else clusters[0]
    if wish.alphabet is not None:
        said["alphabet"] = parse_alphabet(wish.alphabet, False)
    return _made(getattr(estimators, OTHERS[kind]), wish, said)


def fit_arguments(model: Any, **offered: object) -> dict[str, object]:
    """What the model's fit takes of what is offered: not every fit reports progress or keeps checkpoints."""
    taken = inspect.signature(model.fit).parameters
    return {name: value for name, value in offered.items() if name in taken}
