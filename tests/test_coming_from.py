"""The calls of gingham in the table of docs/coming_from.md run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import gingham as gg

PAGE = (Path(__file__).parents[1] / "docs" / "coming_from.md").read_text(encoding="utf-8")


def test_every_call_of_the_table_runs():
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.kron([[6, 1], [1, 6]], np.ones((24, 8))))
    edges = [(i, j) for i in range(12) for j in range(i) if i % 2 == j % 2]
    X, y = gg.from_matrix(counts, missing="none")
    names = {
        **{name: getattr(gg, name) for name in gg.__all__}, "counts": counts, "matrix": counts, "k": 2, "r": 2, "c": 2,
        "X": X, "y": y, "X_test": X[:5], "pairs": np.argwhere(counts > 3), "u": 0, "graph": edges,
        "views": [rng.normal(size=(40, 3)), rng.normal(size=(40, 4))],
    }  # fmt: skip
    rows = re.findall(r"^\| \S+ \|.*\| ([^|]+) \|$", PAGE, re.M)
    assert len(rows) >= 14
    ran = 0
    for row in rows:
        for call in re.findall(r"`((?:\w+\(|X, y = |model\.).*?)`", row):
            value = {}
            if call.startswith("X, y = "):
                exec(call, names)
            elif call.startswith("model."):
                value["found"] = eval(call, names)
            else:
                names["model"] = value["found"] = eval(call, names)
            assert value.get("found", True) is not None, call
            ran += 1
    assert ran >= 12
