"""Names and modules that are imported when they are first used, so that importing the package is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package; ``modules`` says in which of its modules each public name is.

    The ``submodules`` are attributes of the package, too, without having been imported.
    """

    def get(name: str) -> Any:
        if name in submodules:
            return import_module(f"{package}.{name}")
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted([*modules, *submodules])


def lazy_module(name: str) -> ModuleType:
    """A module that is imported when something of it is first asked for: compiled code, and frames.

    For those who read types it is imported as ever, below ``TYPE_CHECKING``.
    """
    return _Later(name)


class _Later(ModuleType):
    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self.__name__), attribute)
        setattr(self, attribute, value)  # asked for once: import_module takes as long as a small kernel
        return value
