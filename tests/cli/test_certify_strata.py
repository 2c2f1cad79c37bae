"""gingham certify --strata: parts of the rows, and the mix of rows without labels."""

from __future__ import annotations

import json

import polars as pl
import pytest


def test_a_table_with_times_is_told_how_later_rows_differ(gingham, planted, tmp_path, monkeypatch):
    """New users come with time: a fifth of the rows at random has none of them."""
    monkeypatch.chdir(tmp_path)
    rows = planted(900).sort("user").with_row_index("timestamp").sample(fraction=1, shuffle=True, seed=0)
    rows.write_csv("r.csv")
    said = ("--axes", "user,movie", "--label", "rating", "--alphabet", "1..5", "--model", "coclustering")
    assert gingham("fit", "r.csv", *said, "--clusters", "2,2", "--out", "m.gingham").code == 0
    ran = gingham("certify", "m.gingham", "r.csv", "--no-progressive")
    assert ran.code == 0, ran.err
    assert "'timestamp' holds points in time" in " ".join(ran.err.split())
    new = float(ran.err.split("of the last fifth ")[1].split(" %")[0])
    users = rows.sort("timestamp")["user"].to_list()
    assert new == pytest.approx(100 * sum(user not in users[:720] for user in users[720:]) / 180, rel=0.01)
    assert new > 80
    rows.drop("timestamp").write_csv("r.csv")
    assert "points in time" not in gingham("certify", "m.gingham", "r.csv", "--no-progressive").err


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
