"""Pictures: each function takes a value and returns matplotlib Axes. Imported when first used."""

from importlib import import_module
from typing import Any

# public name → module of this package
MODULES = {
    "characteristic": "characteristic",
    "checkerboard": "checkerboard",
    "coembedding": "embedding",
    "contingency": "tables",
    "information_plane": "tables",
    "path": "path",
    "stream": "certificate",
    "tree": "tree",
    "waterfall": "certificate",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{MODULES[name]}"), name)
    globals()[name] = value  # the function, also where its module has the same name
    return value


def __dir__() -> list[str]:
    return sorted(MODULES)
