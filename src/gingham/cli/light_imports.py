"""scikit-learn and scipy without what they import at their beginning and no command asks for.

Importing this module before scikit-learn saves a good half second of every command: pandas, scipy.stats and numpy.f2py
are hidden while it is imported for the first time, and scipy does not write its help texts anew. Whoever asks for one
of them later gets it.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import numpy


class Parameter(NamedTuple):
    """Of a function, in a help text."""

    name: str
    type: str
    desc: list[str]


class HelpText(defaultdict[str, list[Any]]):
    """In the place of scipy's reader of help texts, which takes each apart to add a note: the text stays as it is."""

    def __init__(self, function: object) -> None:
        super().__init__(list)
        self.text = function.__doc__ or ""

    def __str__(self) -> str:
        return f"\n{self.text}"  # scipy drops the first line, where its own reader has the signature


HELP_TEXTS = ModuleType("scipy._lib._docscrape")
HELP_TEXTS.FunctionDoc = HELP_TEXTS.ClassDoc = HELP_TEXTS.NumpyDocString = HelpText  # type: ignore[attr-defined]
HELP_TEXTS.Parameter = Parameter  # type: ignore[attr-defined]
HIDDEN: dict[str, ModuleType | None] = {
    "pandas": None,
    **{name: ModuleType(name) for name in ("scipy.stats", "numpy.f2py")},
    HELP_TEXTS.__name__: HELP_TEXTS,
}
ROTATIONS: dict[str, ModuleType | None] = {"scipy.spatial.transform": ModuleType("scipy.spatial.transform")}


@contextmanager
def without(modules: dict[str, ModuleType | None]) -> Iterator[None]:
    """Modules that were not imported so far are hidden: None for one that is to be missing, or what stands for it."""
    hidden = {name: stub for name, stub in modules.items() if name not in sys.modules}
    sys.modules.update(hidden)  # type: ignore[arg-type]
    if "numpy.f2py" in hidden:
        numpy.f2py = ModuleType("numpy.f2py")  # numpy imports it when it is asked for its names
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]
        if "numpy.f2py" in hidden:
            del numpy.f2py


def import_scikit_learn() -> None:
    """Import it lightly; a version that needs what is hidden is imported as a whole when it is next asked for."""
    with without(HIDDEN):
        try:
            import sklearn.base  # noqa: F401
        except ImportError:
            for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
                del sys.modules[name]


def import_trees() -> None:
    """scipy's trees of clusters, which come with rotations in space."""
    with without(ROTATIONS):
        try:
            import scipy.cluster.hierarchy  # noqa: F401
        except ImportError:
            for name in [name for name in sys.modules if name.startswith(("scipy.cluster", "scipy.spatial"))]:
                del sys.modules[name]


if "sklearn" not in sys.modules:
    import_scikit_learn()
