"""Model files of version 1, in which every model wrote its attributes in a way of its own: read, never written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gingham.core.problem import Posterior, Structure, Tree
from gingham.core.tree import TreeDensity, TreePosterior
from gingham.data import Alphabet, Mode
from gingham.errors import GinghamError
from gingham.storage import VALUES, State, restored


def model_of_version_1(kind: type | None, name: str, state: State) -> Any:
    """The model of a record of version 1: its class, the name of the class, its parameters and fitted state."""
    if name not in TRANSLATIONS:
        raise GinghamError(f"The file holds a model of unknown kind {name!r}. Update gingham.")
    old, params = state["fitted"], state["params"]
    return restored(kind, name, {"params": params, "fitted": {**old, **TRANSLATIONS[name](_frozen(old), params)}})


def _frozen(value: Any) -> Any:
    """Lists as the tuples that they were, and modes and alphabets as values again."""
    if isinstance(value, dict):
        kind = {("items", "name"): Mode, ("given", "values"): Alphabet}.get(tuple(sorted(value)), dict)
        return kind(**{key: _frozen(part) for key, part in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _own(name: str, /, **state: Any) -> Any:
    """A value of a family's own class, which came with the class of the model."""
    return restored(VALUES.get(name), name, state)


def _tree(old: State) -> Tree:
    return Tree(*(old[name] for name in ("modes", "factors", "frozen", "tables", "children", "price")))


def _parts(old: State) -> State:
    """Fields of a posterior, as a file of today has them."""
    plain = Structure(old["modes"], old["factors"], old.get("frozen", ())) if "tables" not in old else _tree(old)
    cells = list(zip(old["cells"], old["alphabets"]))
    return {"structure": plain, "cells": cells, "assign": old["assign"], "answers": old["answers"]}


def _grid(old: State, params: State) -> State:
    return {"posterior_": Posterior.from_file(_parts(old))}


def _graph(old: State, params: State) -> State:
    posterior, model = Posterior.from_file(_parts(old)), old["degree_model_"]
    return {
        "posterior_": posterior,
        "degree_model_": model and _own("DegreeModel", labels=posterior.labels[0], **model),
    }


def _trees(old: State, params: State) -> State:
    beta = {"beta_": params.get("beta", 2.0)}  # 2 was the default of version 1
    if "root_law" not in old:
        return {**beta, "posterior_": TreePosterior.from_file(_parts(old))}
    laws = (old[name] for name in ("labels", "widths", "leaf_laws", "inner_laws", "root_law"))
    return {**beta, "density_": TreeDensity(_tree(old), *laws)}




def _committee(old: State, params: State) -> State:
    from gingham import models  # the families' classes, imported when they are used

    members = tuple(model_of_version_1(getattr(models, name), name, record) for name, record in old["members"])
    return {"members_": members, "folds_": old["folds"], "fold_predictions_": old["fold_predictions"]}


def _views(old: State, params: State) -> State:
    functions = []
    for function in old["functions"]:
        kernel = _own("Kernel", function=function["kernel"], params=function["params"], name=function["name"])
        inputs = _own("ViewInputs", kernel=kernel, n_columns=function["n_columns"], anchors=function["anchors"])
        functions.append(_own("ScoreFunction", inputs=inputs, weights=function["weights"], offset=function["offset"]))
    return {"functions_": tuple(functions), "ridge_": old["ridge_"]}


def _same(old: State, params: State) -> State:
    return {}


TRANSLATIONS: dict[str, Callable[[State, State], State]] = {
    "CoClusteringClassifier": _grid,
    "CoClusteringRegressor": _grid,
    "CoOccurrenceClustering": _same,
    "Committee": _committee,
    "GraphClustering": _graph,
    "InformationClustering": _same,
    "JointCoClustering": _grid,
    "KernelCCA": _views,
    "PairwiseClusterAnalysis": _views,
    "TreeCoClustering": _trees,
}
