"""Planted data with known answers, and loaders for public sets. Names are imported when first used."""

from importlib import import_module
from typing import Any

# public name → module of this package
MODULES = {
    "Loaded": "public",
    "PlantedCounts": "grids",
    "PlantedGraph": "graphs",
    "PlantedGrid": "grids",
    "PlantedRelations": "shared",
    "PlantedViews": "shared",
    "data_folder": "fetch",
    "load_biogrid": "public",
    "load_foodmart": "public",
    "load_jester": "public",
    "load_king": "graphs",
    "load_movielens": "public",
    "load_newsgroups": "public",
    "make_sequences": "trees",
    "make_tree": "trees",
    "planted_counts": "grids",
    "planted_graph": "graphs",
    "planted_grid": "grids",
    "planted_relations": "shared",
    "planted_views": "shared",
    "similarities": "graphs",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(MODULES)
