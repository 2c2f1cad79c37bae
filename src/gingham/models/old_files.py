"""Model files of version 1, in which every model wrote its attributes in a way of its own: read, never written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gingham.cells import Logarithmic, Quadratic
from gingham.core.posterior import Posterior
from gingham.core.structure import Structure, Tree
from gingham.core.tree_density import TreeDensity
from gingham.core.tree_posterior import TreePosterior
from gingham.data import Alphabet, Mode
from gingham.errors import GinghamError
from gingham.storage import VALUES, State, restored

KEPT_WHERE_KNOWN = ("n_features_in_", "feature_names_in_")


def model_of_version_1(kind: type | None, name: str, state: State) -> Any:
    """The model of a record of version 1: its class, the name of the class, its parameters and fitted state."""
    if name not in TRANSLATIONS:
        raise GinghamError(f"The file holds a model of unknown kind {name!r}. Update gingham.")
    old, params = state["fitted"], state["params"]
    fitted = {**{key: old.get(key) for key in KEPT_WHERE_KNOWN}, **TRANSLATIONS[name](old, params)}
    return restored(kind, name, {"params": params, "fitted": fitted})


def _own(name: str, /, **state: Any) -> Any:
    """A value of a family's own class, which came with the class of the model."""
    return restored(VALUES.get(name), name, state)


def _named(old: State, *names: str) -> State:
    return {name: old[name] for name in names}


def _modes(old: State) -> tuple[Mode, ...]:
    return tuple(Mode(mode["name"], mode["items"]) for mode in old["modes"])


def _alphabet(old: State | None) -> Alphabet | None:
    return None if old is None else Alphabet(old["values"], old["given"])


def _structure(old: State) -> Structure:
    if "tables" in old:
        return _tree(old)
    return Structure(_modes(old), _nested(old["factors"]), tuple(old.get("frozen", ())))


def _tree(old: State) -> Tree:
    tables, children = tuple(old["tables"]), _nested(old["children"])
    return Tree(_modes(old), _nested(old["factors"]), tuple(old["frozen"]), tables, children, old["price"])


def _nested(lists: list[list[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(values) for values in lists)


def _parts(old: State) -> State:
    """Fields of a posterior, as a file of today has them."""
    return {
        "structure": _structure(old),
        "cells": list(zip(old["cells"], map(_alphabet, old["alphabets"]))),
        "assign": tuple(old["assign"]),
        "answers": tuple(old["answers"]),
    }


def _grid(old: State, params: State) -> State:
    return {"posterior_": Posterior.from_file(_parts(old)), **_named(old, "n_iter_", "converged_", "beta_")}


def _joint(old: State, params: State) -> State:
    relations = tuple(tuple(relation) for relation in old["relations_"])
    found = {"posterior_": Posterior.from_file(_parts(old)), **_named(old, "n_iter_", "converged_")}
    return {**found, "relations_": relations}


def _graph(old: State, params: State) -> State:
    posterior, model = Posterior.from_file(_parts(old)), old["degree_model_"]
    return {
        "posterior_": posterior,
        "degree_model_": model and _own("DegreeModel", labels=posterior.labels[0], **model),
        **_named(old, "beta_", "n_iter_", "converged_", "directed_"),
    }


def _trees(old: State, params: State) -> State:
    common = {"merges_": old["merges_"], "beta_": params.get("beta", 2.0)}  # 2 was the default of version 1
    if "root_law" not in old:
        found = {"posterior_": TreePosterior.from_file(_parts(old)), **_named(old, "n_iter_", "converged_")}
        return {**common, **found}
    labels, widths, leaves, inner = (tuple(old[name]) for name in ("labels", "widths", "leaf_laws", "inner_laws"))
    density = TreeDensity(_tree(old), labels, widths, leaves, inner, old["root_law"])
    return {**common, "density_": density}


def _bayesian(old: State, params: State) -> State:
    own = {name: tuple(old[name]) for name in ("alpha", "gamma", "counts")}
    beliefs = _own("DirichletPosterior", **_parts(old), **own)
    alphabet = beliefs.cells[0].alphabet
    cell = Quadratic(bounds=params.get("bounds")) if alphabet is None else Logarithmic(alphabet)
    return {
        "beliefs_": beliefs,
        "posterior_": Posterior(beliefs.structure, (cell,), beliefs.assign, (old["checkerboard"],)),
        **_named(old, "n_iter_", "converged_", "elbo_", "elbo_terms_"),
    }


def _layers(old: State, params: State) -> State:
    model: Any = old["model"]
    if "members" in model:
        model = tuple(
            _own(
                "SoftLayers",
                mean=member["mean"],
                offsets=tuple(member["offsets"]),
                assign=tuple(tuple(layer) for layer in member["assign"]),
                cells=tuple(member["cells"]),
            )
            for member in model["members"]
        )
    else:
        sizes = {name: tuple(model[name]) for name in ("n_items", "n_clusters")}
        model = _own("Draws", **{**model, **sizes})
    return {
        "model_": model,
        "modes_": _modes(old),
        "alphabet_": _alphabet(old["alphabet"]),
        "cuts_": old["cuts"],
        "noise_": old["noise"],
        "scatter_": old["scatter"],
        "range_": tuple(old["range"]),
        "traces_": tuple(old["traces"]),
    }


def _committee(old: State, params: State) -> State:
    from gingham import models  # the families' classes, imported when they are used

    members = tuple(model_of_version_1(getattr(models, name), name, record) for name, record in old["members"])
    return {"members_": members, "folds_": old["folds"], "fold_predictions_": old["fold_predictions"]}


def _views(old: State, params: State) -> State:
    functions = []
    for function in old["functions"]:
        kernel = _own("Kernel", function=function["kernel"], params=function["params"], name=function["name"])
        reading = _own("Reading", kernel=kernel, **_named(function, "n_columns", "anchors"))
        functions.append(_own("ScoreFunction", reading=reading, **_named(function, "weights", "offset")))
    return {**old, "functions_": tuple(functions), "ridge_": tuple(old["ridge_"])}


def _same(old: State, params: State) -> State:
    return old


TRANSLATIONS: dict[str, Callable[[State, State], State]] = {
    "BayesianCoClustering": _bayesian,
    "CoClusteringClassifier": _grid,
    "CoClusteringRegressor": _grid,
    "CoOccurrenceClustering": _same,
    "Committee": _committee,
    "GraphClustering": _graph,
    "InformationClustering": _same,
    "JointCoClustering": _joint,
    "KernelCCA": _views,
    "LayeredCoClusteringRegressor": _layers,
    "PairwiseClusterAnalysis": _views,
    "TreeCoClustering": _trees,
}
