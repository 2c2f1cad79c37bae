"""Labels in half steps, in a stated range, and a file in another encoding: what people have, and what is printed."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from gingham.cli.tables.arguments import parse_alphabet
from gingham.errors import GinghamError


def test_a_range_may_have_a_step():
    np.testing.assert_array_equal(parse_alphabet("0..2:0.5", False), [0, 0.5, 1, 1.5, 2])
    assert parse_alphabet("0..1:.1", False).tolist() == [i / 10 for i in range(11)]
    assert parse_alphabet("1..5", False).dtype.kind == "i"
    for wrong in ("1..5:0.3", "5..1", "1..5:0", "1..5:-1", "1..x", "1..5:", "1..9999999", "0..inf"):
        with pytest.raises(GinghamError, match="--alphabet"):
            parse_alphabet(wrong, False)


def test_a_stated_range_is_enough_for_layers(gingham, planted, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.gingham"
    planted(400).with_columns(pl.col("rating") / 2).write_csv(path)
    columns = ("--axes", "user,movie", "--label", "rating", "--model", "layered", "--effort", "fast", "--no-summary")
    ran = gingham("fit", path, *columns, "--out", out, "--json")
    assert ran.code == 0, ran.err
    assert "at_most" not in json.loads(ran.out).get("guaranteed", {})
    assert gingham("certify", out, path).code == 2  # nobody has said which labels are possible
    ran = gingham("certify", out, path, "--bounds", "0,3", "--no-progressive", "--json")
    assert ran.code == 0, ran.err
    ran = gingham("fit", path, *columns, "--bounds", "0,3", "--out", tmp_path / "n.gingham", "--json")
    assert json.loads(ran.out)["guaranteed"]["at_most"] > json.loads(ran.out)["errors"]["scores"][0][1]
    assert gingham("certify", out, path, "--bounds", "1,2", "--no-progressive").code == 2  # labels lie outside


def test_another_encoding_is_named(gingham, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("Jury;Käse;Punkte\na;b;3\n".encode("latin-1"))
    ran = gingham("look", path)
    assert ran.code == 2
    assert "not encoded in UTF-8" in ran.err


def test_values_apart_by_spaces_and_a_table_of_other_columns(gingham, ratings, model, tmp_path):
    ran = gingham("fit", ratings, "--clusters", "4", "5")
    assert ran.code == 2
    assert "commas and no spaces" in ran.err
    assert "fit [OPTIONS] FILE" in ran.err
    other = tmp_path / "other.csv"
    pl.read_csv(ratings).rename({"user": "viewer"}).write_csv(other)
    assert "The model needs a column 'user'" in gingham("predict", model, other).err
    assert "Did you mean 'film" in gingham("similar", model, "ilm").err
