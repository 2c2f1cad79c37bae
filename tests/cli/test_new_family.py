"""A family that lies beside the others is known to every command: no file of the command line names it."""

from __future__ import annotations

import io
import sys

import polars as pl
import pytest

from gingham import models
from gingham.models.tables import families, tables_of_kind

ESTIMATOR = """
from gingham.models.grid.estimator import CoClusteringRegressor

class TwoByTwo(CoClusteringRegressor):
    pass
"""
TABLES = """
from gingham.models.grid.tables import GridTables

class TwoByTwoTables(GridTables):
    kind = "two-by-two"
    estimators = ("TwoByTwo",)
    unused = ("clusters",)
    no_path = "Two clusters a side have no path."

    def estimator(self, options, labels):
        from gingham.models.two.estimator import TwoByTwo

        return TwoByTwo(2, beta=options.beta, random_state=options.seed)

TABLES = TwoByTwoTables()
"""


@pytest.fixture
def family(tmp_path, monkeypatch):
    folder = tmp_path / "two"
    folder.mkdir()
    for name, text in (("__init__", ""), ("estimator", ESTIMATOR), ("tables", TABLES)):
        (folder / f"{name}.py").write_text(text)
    before = set(sys.modules)
    monkeypatch.setattr(models, "__path__", [*models.__path__, str(tmp_path)])
    monkeypatch.setitem(models.MODULES, "TwoByTwo", "two.estimator")
    yield "two-by-two"
    tables_of_kind.cache_clear()  # families do not leave a process elsewhere
    for name in set(sys.modules) - before:
        if name.startswith("gingham.models.two"):
            del sys.modules[name]


def test_commands_find_a_new_family(gingham, ratings, family, tmp_path):
    assert family in families()
    out = tmp_path / "m.gingham"
    fit = ["fit", ratings, "--axes", "user,movie", "--label", "rating", "--model", family, "-q", "--out", out]
    ran = gingham(*fit)
    assert ran.code == 0, ran.err
    ran = gingham("predict", out, ratings)
    assert "predicted_rating" in pl.read_csv(io.StringIO(ran.out)).columns
    assert gingham("clusters", out).code == 0
    assert gingham("certify", out, ratings, "--alphabet", "1..5").code == 0
    assert gingham("report", out, ratings, "--out", tmp_path / "r.html").code == 0
    assert family in gingham("fit", "--help").out
    ran = gingham(*fit, "--clusters", "3")
    assert "has no use for --clusters" in ran.err
    ran = gingham("path", ratings, "--axes", "user,movie", "--label", "rating", "--model", family)
    assert "have no path" in ran.err


def test_a_kind_that_nobody_declares_is_refused(gingham, ratings):
    ran = gingham("fit", ratings, "--axes", "user,movie", "--label", "rating", "--model", "two-by-two")
    assert ran.code == 2
    assert "coclustering" in ran.err
