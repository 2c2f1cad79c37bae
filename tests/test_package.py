"""What people install: the source archive and the wheel are built, hold what they must, and the wheel works."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gingham

ROOT = Path(__file__).parents[1]


def test_the_top_level_is_small_and_the_rest_lies_in_public_modules():
    assert len(gingham.__all__) <= 40
    assert set(gingham.losses.__all__) <= set(dir(gingham.losses))
    assert not set(gingham.losses.__all__) & set(gingham.__all__)
    assert {"losses", "datasets", "plots", "selection"} <= set(dir(gingham))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with both archives; the build needs neither the network nor an environment of its own."""
    pytest.importorskip("hatchling")
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return out


def test_the_wheel_holds_the_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "gingham",
        next(n for n in names if "dist-info" in n).split("/")[0],
    }
    assert "gingham/py.typed" in names
    package = ROOT / "src" / "gingham"
    here = {str(path.relative_to(ROOT / "src")) for path in (*package.rglob("*.py"), *package.glob("datasets/files/*"))}
    assert here <= set(names)


def test_the_source_archive_holds_what_a_build_needs(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/gingham/__init__.py", "tests/test_package.py"} <= names
    assert not any(name.endswith((".nbi", ".nbc", ".pyc", ".gingham")) for name in names)


def test_the_wheel_fits_a_model_where_it_is_installed(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    script = (
        "import gingham as gg; print(gg.__file__);"
        "print(gg.CoClusteringRegressor(2, solver='sweep', random_state=0)"
        ".fit([(u, i) for u in range(4) for i in range(4)], [u // 2 + i // 2 for u in range(4) for i in range(4)])"
        ".predict([(0, 3)]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert str(tmp_path) in ran.stdout
    assert "1." in ran.stdout
