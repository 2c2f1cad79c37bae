"""Pictures: each function takes a value and returns matplotlib Axes. Imported when first used."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "characteristic": "charts",
    "checkerboard": "board",
    "coembedding": "board",
    "contingency": "charts",
    "information_plane": "charts",
    "named_board": "named",
    "path": "charts",
    "stream": "charts",
    "tree": "charts",
    "waterfall": "charts",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
