"""Facts of a loss stand at the cells: other rooms do not ask which class it is."""

from __future__ import annotations

import re
from pathlib import Path

import gingham.cells

CELLS = Path(gingham.cells.__file__).parent
KINDS = "TableLoss|Quadratic|Logarithmic|Mass|Pinball|Absolute|ZeroOne|OneHot|Moments|Gaussian|Poisson|Bernoulli|Family"


def questions(text: str) -> int:
    return len(re.findall(rf"isinstance\([^()]*,[^)]*\b(?:{KINDS})\b", text))


def test_nobody_else_asks_which_class_a_cell_is():
    root = CELLS.parent
    found = {
        str(path.relative_to(root)): questions(path.read_text(encoding="utf-8"))
        for path in root.rglob("*.py")
        if CELLS not in path.parents
    }
    assert {name: n for name, n in found.items() if n} == {}


def test_a_question_would_be_found():
    assert questions("if isinstance(cell, Quadratic) and not isinstance(cell.features, (Moments, OneHot)):") == 2
