"""The pages on extending gingham, executed literally: their blocks in order, each page in one fresh process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "extend"


def python_blocks(name: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (PAGES / name).read_text(encoding="utf-8"), re.S | re.M)


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", [page.name for page in sorted(PAGES.glob("*.md")) if python_blocks(page.name)])
def test_the_page_runs_in_a_fresh_process(tmp_path, name):
    (tmp_path / "page.py").write_text("\n".join(python_blocks(name)), encoding="utf-8")
    done = run(tmp_path, "page.py")
    assert done.returncode == 0, done.stderr


def test_the_pages_that_must_be_executable_are():
    assert all(python_blocks(name) for name in ("loss.md", "family.md", "bound.md"))
    assert captioned_blocks("model_family.md")
    assert captioned_blocks("backend.md")


def test_the_commands_of_the_page_on_losses_run_with_its_module(tmp_path):
    """The file that the page says to write, and the commands it gives, on a small table."""
    page = (PAGES / "loss.md").read_text(encoding="utf-8")
    (tmp_path / "tolerant.py").write_text(python_blocks("loss.md")[0], encoding="utf-8")
    rows = [(i, j, 1 + (i + j) % 2 * 3) for i in range(12) for j in range(12)]
    lines = ["user,movie,rating", *(f"u{i},m{j},{y}" for i, j, y in rows)]
    (tmp_path / "ratings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (commands,) = re.findall(r"^```bash\n(.*?)^```$", page, re.S | re.M)
    for line in commands.strip().splitlines():
        program, *arguments = line.split()
        assert program == "gingham"
        done = run(tmp_path, "-m", "gingham", *arguments)
        assert done.returncode == 0, done.stderr
    # Without the module the name is unknown, to a fit and to the file alike.
    refused = run(tmp_path, "-m", "gingham", *commands.splitlines()[0].split()[3:])
    assert refused.returncode == 2
    assert "--plugin" in refused.stderr
    refused = run(tmp_path, "-m", "gingham", "certify", "m.gingham", "ratings.csv")
    assert refused.returncode == 2
    assert "--plugin" in refused.stderr


def captioned_blocks(name: str) -> list[tuple[str, str]]:
    """(caption, code) of the blocks of a page that name the file they belong to."""
    page = (PAGES / name).read_text(encoding="utf-8")
    return re.findall(r"^```\{code-block\} python\n:caption: (.*?)\n\n(.*?)^```$", page, re.S | re.M)


def copy_of_the_project(folder: Path) -> None:
    for part in ("src", "tests"):
        # with what was compiled already; files that another process is writing at this moment are left out
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.tmp.*", "*.pyc.*"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def run_tests(folder: Path, file: str, chosen: str) -> str:
    """What pytest prints for some tests of a copy of the project, which must pass."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    arguments = ["-m", "pytest", "-vv", "-n", "0", "-p", "no:cacheprovider", file, "-k", chosen]
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_page_on_backends_followed_in_a_copy_of_the_project(tmp_path):
    """One new file, and one name in one other."""
    copy_of_the_project(tmp_path)
    (file, code), (place, name) = captioned_blocks("backend.md")
    assert not (tmp_path / file).exists()
    (tmp_path / file).write_text(code, encoding="utf-8")
    target = tmp_path / place.partition(", into ")[0]
    before = target.read_text(encoding="utf-8")
    assert before.count("BACKENDS = (") == 1
    target.write_text(before.replace("BACKENDS = (", f"BACKENDS = ({name.strip()} "), encoding="utf-8")
    assert "numpy" in run_tests(tmp_path, "tests/engine/test_project.py", "numpy and (line or tuples or products)")
    lines = (
        "import numpy as np, gingham as gg",
        "X = np.random.default_rng(0).integers(0, 20, (400, 2))",
        "fits = [gg.CoClusteringRegressor(2, beta=1.0, alphabet=(0, 1), offsets=False, random_state=0,",
        "  solver=gg.fitting.Projection(backend=name)).fit(X, X.sum(1) % 2) for name in ('numpy', 'compiled')]",
        "np.testing.assert_allclose(fits[0].objective_.total, fits[1].objective_.total, rtol=1e-9)",
    )
    (tmp_path / "fits.py").write_text("\n".join(lines), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    subprocess.run([sys.executable, "fits.py"], cwd=tmp_path, env=environment, check=True)


def test_the_page_on_families_of_models_followed_in_a_copy_of_the_project(tmp_path):
    """New files are written as the page has them; it may touch two files outside of the new folders."""
    copy_of_the_project(tmp_path)
    touched = []
    for caption, code in captioned_blocks("model_family.md"):
        file, _, table = caption.partition(", into ")
        target = tmp_path / file
        if not table:
            assert not target.exists()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(code, encoding="utf-8")
            continue
        touched.append(file)
        before = target.read_text(encoding="utf-8")
        opening = f"{table} = {{\n"
        assert before.count(opening) == 1
        target.write_text(before.replace(opening, opening + code), encoding="utf-8")
    assert len(touched) == 2
    printed = run_tests(tmp_path, "tests/models/test_contracts.py", "ItemAverages or averages or found")
    assert "test_scikit_learn_contract[ItemAverages()" in printed
    assert "test_saved_and_loaded_it_says_the_same[averages of items] PASSED" in printed
