"""Planted data with known answers, bundled sets, and a loader of MovieLens. Names are imported when first used."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "Films": "films",
    "Loaded": "public",
    "PlantedCounts": "planted",
    "PlantedGraph": "planted",
    "PlantedGrid": "planted",
    "Texts": "bundled",
    "data_folder": "public",
    "load_bible": "bundled",
    "load_elections": "bundled",
    "load_films": "films",
    "load_movielens": "public",
    "load_senate": "bundled",
    "make_sequences": "planted",
    "make_tree": "planted",
    "planted_counts": "planted",
    "planted_graph": "planted",
    "planted_grid": "planted",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
