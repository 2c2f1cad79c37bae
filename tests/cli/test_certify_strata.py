"""gingham certify --strata: parts of the rows, and the mix of rows without labels."""

from __future__ import annotations

import json

import polars as pl
import pytest


@pytest.mark.parametrize("strata", ["known/new", "age"])
def test_strata_of_a_table_and_the_mix_of_another(gingham, planted, tmp_path, monkeypatch, strata):
    monkeypatch.chdir(tmp_path)
    rows = planted(900).with_columns(age=pl.when(pl.col("user") < 8).then(pl.lit("young")).otherwise(pl.lit("old")))
    rows.write_csv("r.csv")
    new = rows.head(4).drop("rating").with_columns(user=pl.Series([1, 2, 3, 99]))
    new.write_csv("new.csv")
    assert gingham("fit", "r.csv", "--axes", "user,movie", "--label", "rating", "--alphabet", "1..5", "--model",
                   "coclustering", "--clusters", "2,2", "--out", "m.gingham").code == 0  # fmt: skip
    said = ("certify", "m.gingham", "r.csv", "--strata", strata, "--mix", "new.csv")
    ran = gingham(*said, "--json", "--save", "c.json", "--save-predictor", "p.gingham")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    parts = {part["name"]: part["value"] for part in found["progressive_tests"]["strata"]}
    mix = found["mix"]["value"]
    if strata == "age":
        assert set(parts) == {"young", "old"}
        shares = dict(new["age"].value_counts().iter_rows())
        assert mix == pytest.approx(sum(shares[name] * value / 4 for name, value in parts.items()))
    else:
        assert set(parts) == {"known", "new user", "new movie", "new user + movie"}
        assert mix >= parts["known"] * 0.75
    assert gingham("verify", "c.json", "p.gingham", "r.csv").code == 0
    ran = gingham(*said)
    assert "Strata, which hold simultaneously" in ran.out
    assert "In the mix of new.csv" in ran.err + ran.out
    assert gingham("report", "m.gingham", "r.csv", "--strata", strata, "-o", "page.html").code == 0
    assert '"strata":[{"name":' in (tmp_path / "page.html").read_text("utf-8")


def test_what_strata_do_not_go_with(gingham, model, ratings):
    for arguments, sentence in (
        (("--strata", "nothing"), "does not have"),
        (("--mix", ratings), "--strata"),
        (("--strata", "movie", "--no-progressive"), "--strata needs progressive tests"),
        (("--strata", "movie", "--references", "2"), "remove --no-progressive and --references"),
    ):
        ran = gingham("certify", model, ratings, *arguments)
        assert ran.code == 2
        assert sentence in ran.err
