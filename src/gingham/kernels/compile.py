"""``njit`` for kernels: compiled code outlives an upgrade of gingham that changes no kernel, and never its source.

numba keeps compiled code beside the source, and looks at that one file alone: an installer may remove it, although no
kernel has changed, and a kernel that calls one of another file keeps the old one within it when only that file changes.
Here it lies in the user's cache (or in NUMBA_CACHE_DIR), in a folder that is named after the text of the file and of
all kernels and constants that it imports.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import caching, config
from numba.misc.appdirs import AppDirs

PACKAGE = Path(__file__).parents[1]
IMPORTED = re.compile(r"^\s*from (gingham[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
MOST_KEPT = 8  # versions of a file whose compiled code stays
__all__ = ["njit"]


@cache
def stamp(file: Path) -> str:
    """A name for the text of a file and of all files whose kernels or constants may be part of its compiled code."""
    texts: dict[Path, str] = {}
    waiting = [file]
    while waiting:
        one = waiting.pop()
        if one not in texts and one.is_file():
            texts[one] = one.read_text(encoding="utf-8")
            waiting += imported(texts[one])
    digest = sha256()
    for one in sorted(texts):
        digest.update(f"{one.name}\0{texts[one]}\0".encode())
    return digest.hexdigest()[:16]


def imported(text: str) -> list[Path]:
    """The files of gingham that a file imports kernels or constants from."""
    found = []
    for module, names in IMPORTED.findall(text):
        home = PACKAGE.joinpath(*module.split(".")[1:])
        own, listed = home.with_suffix(".py"), re.findall(r"\w+", names)
        constants = any(name.isupper() for name in listed)
        if own.is_file() and (constants or "@njit" in own.read_text(encoding="utf-8")):
            found.append(own)
        found += [home / f"{name}.py" for name in listed]  # where a package was named
    return found


class KernelLocator:
    """Where numba keeps the compiled functions of one file of gingham: what it asks of a locator."""

    def __init__(self, py_func: Callable[..., Any], file: Path) -> None:
        self.line = py_func.__code__.co_firstlineno
        self.stamp = stamp(file)
        root = Path(config.CACHE_DIR or AppDirs(appname="gingham", appauthor=False).user_cache_dir)
        versions = f"numba-{numba.__version__}-py{sys.version_info[0]}{sys.version_info[1]}"
        self.folder = root / versions / ".".join(file.relative_to(PACKAGE).with_suffix("").parts)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> KernelLocator | None:
        """One for kernels of gingham; numba looks on for others, and where nothing can be written."""
        file = Path(py_file)
        if not (file.is_relative_to(PACKAGE) and file.is_file()):
            return None
        try:
            locator = cls(py_func, file)
            locator.ensure_cache_path()
        except OSError:
            return None
        return locator

    def get_cache_path(self) -> str:
        return str(self.folder / self.stamp)

    def get_source_stamp(self) -> str:
        return self.stamp

    def get_disambiguator(self) -> str:
        return str(self.line)

    def ensure_cache_path(self) -> None:
        """Make the folder, the oldest go; raises OSError where nothing can be written."""
        path = self.folder / self.stamp
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            versions = sorted(self.folder.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
            for old in versions[MOST_KEPT:]:
                shutil.rmtree(old, ignore_errors=True)
        tempfile.TemporaryFile(dir=path).close()


for _kind in (caching.CompileResultCacheImpl, caching.CodeLibraryCacheImpl):
    if KernelLocator not in getattr(_kind, "_locator_classes", [KernelLocator]):  # a numba without keeps to its own way
        _kind._locator_classes = [KernelLocator, *_kind._locator_classes]
