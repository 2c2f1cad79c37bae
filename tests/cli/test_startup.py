"""What a command imports before it has looked at what it was given; times are in benchmarks/speed/startup.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "polars", "sklearn", "scipy", "numba", "narwhals", "pandas")
CALL = """
import sys
from gingham.cli.app import run
code = run({arguments!r})
found = [name for name in {heavy!r} if name in sys.modules]
assert not found, found
sys.exit(code)
"""


def imported(arguments: list[str], heavy=HEAVY) -> int:
    call = CALL.format(arguments=arguments, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, check=False)
    assert "AssertionError" not in done.stderr, done.stderr
    return done.returncode


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["fit", "--help"], 0),
        (["fit", "absent.csv", "--axes", "a,b", "--label", "c"], 2),
        (["predict", "absent.gingham", "absent.csv"], 2),
        (["certify", "absent.gingham", "absent.csv"], 2),
        (["report", "absent.gingham", "absent.csv"], 2),
        (["verify", "absent.json", "absent.gingham", "absent.csv"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_help_and_wrong_names_import_nothing_heavy(arguments, code):
    assert imported(arguments) == code


def test_a_fit_does_without_what_it_never_uses(ratings, tmp_path):
    fit = ["fit", str(ratings), "--axes", "user,movie", "--label", "rating", "--clusters", "2", "-q"]
    unused = (
        "matplotlib",
        "jinja2",
        "torch",
        "dask",
        "sklearn.model_selection",
        "gingham.models.graph.estimator",
    )
    assert imported([*fit, "--out", str(tmp_path / "m.gingham")], unused) == 0


def test_a_fit_of_layers_does_without_certificates(ratings, tmp_path):
    fit = ["fit", str(ratings), "--axes", "user,movie", "--label", "rating", "--model", "layered", "-q"]
    unused = ("gingham.certificates", "gingham.selection.beta_path")
    assert imported([*fit, "--out", str(tmp_path / "m.gingham")], unused) == 0


def test_everything_is_written_before_the_process_ends(ratings, model, tmp_path):
    """What waits in a stream, or for the end, comes before the exit code."""
    (tmp_path / "late.py").write_text("import atexit, sys\natexit.register(lambda: sys.stdout.write('the end'))\n")
    command = [sys.executable, "-m", "gingham", "--plugin", "late", "predict", str(model), str(ratings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("user,movie,rating,")
    assert done.stdout.endswith("the end")
    gone = subprocess.Popen([*command[:3], *command[5:]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    gone.stdout.close()  # the reader goes before anything is written
    assert gone.wait() == 0
    assert gone.stderr.read() == b""
    gone.stderr.close()
