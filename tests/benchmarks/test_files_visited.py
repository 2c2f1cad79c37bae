"""A call stays a short walk: how many of gingham's files and functions it enters, and how deep calls nest."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "structure"))

import files_visited

MOST = {"grid fit": 29, "graph fit": 24, "layered fit": 22, "counts fit": 22, "gingham fit": 54, "gingham report": 41}

DEEPEST = {"grid fit": (290, 20)}  # functions, and those that are active at once


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return files_visited.calls(tmp_path_factory.mktemp("walk"), seed=0)


@pytest.mark.parametrize("name", MOST)
def test_a_call_enters_few_files(calls, name):
    if name == "gingham report":
        calls["gingham fit"]()  # the model that it is about
    found = files_visited.visited(calls[name])
    assert 3 < found["files"] <= MOST[name], found["walk"]
    functions, depth = DEEPEST.get(name, (found["functions"], found["depth"]))
    assert found["functions"] <= functions
    assert found["depth"] <= depth
