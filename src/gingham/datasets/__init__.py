"""Planted data with known answers, and loaders for public sets. Names are imported when first used."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "Loaded": "public",
    "PlantedCounts": "planted",
    "PlantedGraph": "planted",
    "PlantedGrid": "planted",
    "PlantedRelations": "planted",
    "PlantedViews": "planted",
    "data_folder": "public",
    "load_biogrid": "public",
    "load_foodmart": "public",
    "load_jester": "public",
    "load_king": "public",
    "load_movielens": "public",
    "load_newsgroups": "public",
    "make_sequences": "planted",
    "make_tree": "planted",
    "planted_counts": "planted",
    "planted_graph": "planted",
    "planted_grid": "planted",
    "planted_relations": "planted",
    "planted_views": "planted",
    "similarities": "public",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
