"""Pictures: each function takes a value and returns matplotlib Axes. Imported when first used."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "alluvial": "change",
    "checkerboard": "board",
    "coembedding": "board",
    "comparison": "change",
    "contingency": "charts",
    "evidence": "charts",
    "information_plane": "charts",
    "named_board": "named",
    "tree": "charts",
    "waterfall": "charts",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
