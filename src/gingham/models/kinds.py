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


def about_kinds() -> dict[str, str]:
    """What each kind is for, in a line, as its package says by ``ABOUT`` (or by its own first line)."""
    found = {}
    for kind, name in kinds().items():
        package = import_module(name)
        found[kind] = getattr(package, "ABOUT", None) or str(package.__doc__ or "").partition("\n")[0]
    return found


def example_of(kind: str) -> str:
    """A command that fits a model of a kind, as its package says by ``EXAMPLE``."""
    return str(getattr(import_module(kinds()[kind]), "EXAMPLE", f"gingham fit table.csv --model {kind}"))
