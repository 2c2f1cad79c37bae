"""Examples of the gallery run and draw; the demo has its own test, and long ones run with the documentation."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
LONG = {"demo.py", "plot_purchases.py", "plot_pictures.py"}
SHORT = sorted(path for path in EXAMPLES.glob("*.py") if path.name not in LONG)


@pytest.mark.parametrize("path", SHORT, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path, capsys):
    plt.close("all")
    runpy.run_path(str(path), run_name="__main__")
    assert plt.get_fignums()
    plt.close("all")
