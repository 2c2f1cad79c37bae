"""Pictures: each function takes a value and returns matplotlib Axes. Imported when first used."""

import sys
from importlib import import_module
from types import ModuleType

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


class _Plots(ModuleType):
    """The package, whose names are functions even where a module of the same name was imported."""

    def __dir__(self) -> list[str]:
        return sorted(MODULES)


def _lazily(name: str) -> property:
    # Importing a module sets it as an attribute of its package; the setter lets that pass.
    return property(lambda self: getattr(import_module(f"{__name__}.{MODULES[name]}"), name), lambda self, value: None)


for _name in MODULES:
    setattr(_Plots, _name, _lazily(_name))
sys.modules[__name__].__class__ = _Plots
