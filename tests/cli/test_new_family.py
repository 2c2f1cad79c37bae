"""A kind of model is one record: with it, every command knows the kind."""

from __future__ import annotations

import io

import polars as pl
import pytest

from gingham import models
from gingham.cli.tables.kinds import KINDS, Kind
from gingham.models.grid.estimator import CoClusteringRegressor


class TwoByTwo(CoClusteringRegressor):
    """A checkerboard of its own kind."""


@pytest.fixture
def kind(monkeypatch):
    monkeypatch.setitem(vars(models), "TwoByTwo", TwoByTwo)
    monkeypatch.setitem(models.MODULES, "TwoByTwo", "grid.estimator")
    record = Kind(
        "two-by-two", "two clusters per side.", "labels", ("TwoByTwo",),
        unused=("clusters",), needs_label=True,
    )  # fmt: skip
    monkeypatch.setitem(KINDS, record.name, record)
    return record.name


def test_commands_find_a_new_kind(gingham, ratings, kind, tmp_path):
    out = tmp_path / "m.gingham"
    fit = ["fit", ratings, "--axes", "user,movie", "--label", "rating", "--model", kind, "-q", "--out", out]
    ran = gingham(*fit)
    assert ran.code == 0, ran.err
    ran = gingham("predict", out, ratings)
    assert "predicted_rating" in pl.read_csv(io.StringIO(ran.out)).columns
    assert gingham("describe", out).code == 0
    assert gingham("certify", out, ratings, "--alphabet", "1..5").code == 0
    assert gingham("report", out, ratings, "--out", tmp_path / "r.html").code == 0
    assert kind in gingham("fit", "--help").out
    ran = gingham(*fit, "--clusters", "3")
    assert "has no use for --clusters" in ran.err


def test_a_kind_that_nobody_declares_is_refused(gingham, ratings):
    ran = gingham("fit", ratings, "--axes", "user,movie", "--label", "rating", "--model", "two-by-two")
    assert ran.code == 2
    assert "coclustering" in ran.err
