"""Compiled kernels are found again after an upgrade of gingham, and compiled anew when a kernel within them changes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gingham
from gingham.kernels.compile import KernelLocator, stamp

SOURCE = Path(gingham.__file__).parent
CALL = """
from gingham.kernels import double_kernel
assert double_kernel.quadruple(3.0) == {expected}, double_kernel.quadruple(3.0)
"""
TWICE = """
from gingham.kernels.compile import njit
FACTOR = 2.0

@njit(cache=True)
def twice(x):
    return FACTOR * x
"""
DOUBLE = """
from gingham.kernels.compile import njit
from gingham.kernels.twice_kernel import twice

@njit(cache=True)
def quadruple(x):
    return twice(twice(x))
"""


@pytest.fixture
def installed(tmp_path):
    """gingham in a folder of its own, with two kernels more, one of which calls the other."""
    place = tmp_path / "site" / "gingham"
    for name in ("__init__.py", "lazy.py", "kernels/__init__.py", "kernels/compile.py"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / name, place / name)
    (place / "kernels" / "twice_kernel.py").write_text(TWICE)
    (place / "kernels" / "double_kernel.py").write_text(DOUBLE)
    return place


def ran(place: Path, expected: float) -> str:
    """What numba says of its cache."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment["PYTHONPATH"] = str(place.parent)
    environment["XDG_CACHE_HOME"] = str(place.parents[1] / "cache")
    environment["NUMBA_DEBUG_CACHE"] = "1"
    call = [sys.executable, "-c", CALL.format(expected=expected)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="where the user's cache lies differs")
def test_an_upgrade_keeps_what_did_not_change_and_nothing_else(installed):
    assert "data saved" in ran(installed, 12.0)
    assert "data saved" not in ran(installed, 12.0)
    # An upgrade: the files are new, other modules have changed, nothing is left beside the sources.
    for cache in installed.rglob("__pycache__"):
        shutil.rmtree(cache)
    for file in installed.rglob("*.py"):
        file.touch()
    with (installed / "lazy.py").open("a") as stream:
        stream.write("# newer\n")
    again = ran(installed, 12.0)
    assert "data loaded" in again
    assert "data saved" not in again
    # A kernel that is called from another file, or a constant of it, changes.
    (installed / "kernels" / "twice_kernel.py").write_text(TWICE.replace("2.0", "3.0"))
    assert "data saved" in ran(installed, 27.0)


def test_every_kernel_of_the_package_is_known():
    kernels = [file for file in SOURCE.rglob("*.py") if "@njit" in file.read_text(encoding="utf-8")]
    kernels = [file for file in kernels if file.name != "compile.py"]
    assert len(kernels) > 8
    for file in kernels:
        assert "from numba import njit" not in file.read_text(encoding="utf-8"), file
    assert len({stamp(file) for file in kernels}) == len(kernels)


def test_functions_of_others_are_left_to_numba(tmp_path):
    assert KernelLocator.from_function(ran, str(tmp_path / "mine.py")) is None
