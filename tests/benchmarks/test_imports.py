"""What a script of the benchmarks takes from the tests and from other scripts is still there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.glob("*/*.py"))


def folders_of(script: Path, tree: ast.Module) -> list[Path]:
    """Where a script looks for modules: its own folder, and what it adds to ``sys.path``."""
    found = [script.parent]
    for node in ast.walk(tree):
        added = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "sys.path.insert":
            added = f"[{ast.unparse(node.args[1])}]"
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "sys.path[:0]":
            added = ast.unparse(node.value)
        if added is not None:
            found += map(Path, eval(added, {"Path": Path, "str": str, "__file__": str(script)}))
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_script_finds_what_it_imports_from_its_neighbours(script):
    tree = ast.parse(script.read_text(encoding="utf-8"))
    folders = folders_of(script, tree)
    assert all(folder.is_dir() for folder in folders), folders
    for node in ast.walk(tree):
        names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            files = [folder / f"{name}.py" for folder in folders if (folder / f"{name}.py").exists()]
            own = any(path.stem == name for path in BENCHMARKS.rglob("*.py")) or name.startswith("test_")
            assert files or not own, f"{script.name} does not find {name}"
            if files and isinstance(node, ast.ImportFrom):
                there = ast.parse(files[0].read_text(encoding="utf-8"))
                known = {getattr(part, "name", "") for part in there.body}
                known |= {n.id for part in there.body for n in ast.walk(part) if isinstance(n, ast.Name)}
                known |= {
                    a.asname or a.name for part in there.body if isinstance(part, ast.ImportFrom) for a in part.names
                }
                assert {alias.name for alias in node.names} <= known, f"{name} has not what {script.name} imports"


def test_the_check_would_find_a_module_that_has_moved(tmp_path):
    script = tmp_path / "moved.py"
    script.write_text("from test_somewhere_else import helper\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="does not find test_somewhere_else"):
        test_a_script_finds_what_it_imports_from_its_neighbours(script)
