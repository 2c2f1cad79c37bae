"""Which kinds of models the command line knows; asking imports none of them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from gingham import models


def kinds() -> dict[str, str]:
    """What ``--model`` calls each family that has tables, and the package of the family.

    A package says it by ``KIND``; that of one that does not is asked of its tables.
    """
    found = {}
    for name in (f"{models.__name__}.{one.name}" for one in iter_modules(models.__path__) if one.ispkg):
        if find_spec(f"{name}.tables"):
            kind = getattr(import_module(name), "KIND", None)
            found[kind or import_module(f"{name}.tables").TABLES.kind] = name
    return found
