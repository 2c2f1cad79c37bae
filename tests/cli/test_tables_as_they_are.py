"""Tables as people have them: heavy tails, points in time, tables about items, zeros that mean nothing."""

from __future__ import annotations

import io
import json
import shlex

import numpy as np
import polars as pl

import gingham as gg

COLUMNS = ("--axes", "user,movie", "--label", "rating")
BOARD = ("--clusters", "2", "--beta", "1", "--no-summary", "-q")
QUICK = ("--effort", "fast", "--no-summary", "-q")


def test_times_and_side_tables_are_those_of_python(gingham, planted, tmp_path):
    day = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 12, 31), eager=True).gather(range(365))
    table = planted(300).with_columns(day=day.sample(300, seed=0, with_replacement=True))
    users = pl.DataFrame({"user": range(20), "odd": ["yes" if u % 2 else "no" for u in range(20)]})
    path, about, out = tmp_path / "t.csv", tmp_path / "users.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    users.write_csv(about)
    fit = ("fit", path, *COLUMNS, "--alphabet", "1..5", "--model", "layered", *QUICK, "--out", out)
    ran = gingham(*fit, "--time", "day", "--side", f"user={about}", "--json")
    assert ran.code == 0, ran.err
    assert f"All 20 users have a row in {str(about)!r}." in ran.err
    assert json.loads(ran.out)["guaranteed"]["at_most"] > json.loads(ran.out)["errors"]["scores"][0][1]
    here = gg.LayeredCoClusteringRegressor(
        alphabet=range(1, 6), time="day", side={"user": users}, effort="fast", random_state=0
    ).fit(table.select("user", "movie", "day"), table["rating"])
    dated = pl.read_csv(io.StringIO(gingham("predict", out, path).out))["predicted_rating"]
    np.testing.assert_allclose(dated, here.predict(table.select("user", "movie", "day")), rtol=1e-6)
    table.drop("day").write_csv(path)
    plain = pl.read_csv(io.StringIO(gingham("predict", out, path).out))["predicted_rating"]
    np.testing.assert_allclose(plain, here.predict(table.select("user", "movie")), rtol=1e-6)
    ran = gingham("certify", out, path)
    assert ran.code == 2
    assert "a column 'day'" in ran.err
    table.write_csv(path)
    assert gingham("certify", out, path).code == 0
    assert "does not hold tables of --side" in gingham("certify", out, path, "--progressive").err
    ran = gingham("fit", path, *COLUMNS, "--model", "coclustering", "--time", "day")
    assert "no use for --time" in ran.err
    ran = gingham("fit", path, *COLUMNS, "--model", "layered", "--time", "movie")
    assert "must hold numbers or dates" in ran.err


def test_a_heavy_tail_is_predicted_by_its_logarithm(gingham, planted, tmp_path):
    table = (
        planted(400).with_columns(hours=(pl.col("rating") * 2.5 + pl.int_range(400) / 400).exp() / 10).drop("rating")
    )
    path, out = tmp_path / "hours.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    found = json.loads(gingham("look", path, "--json").out)
    assert found["label"] == "log(hours)"
    words = shlex.split(found["command"])
    assert gingham(*words[1:], *QUICK, "--bounds=-10,20", "--out", out).code == 0
    predicted = pl.read_csv(io.StringIO(gingham("predict", out, path).out))["predicted_log(hours)"]
    assert (predicted - table["hours"].log()).abs().mean() < 2
    assert "root mean square error" in gingham("certify", out, path).out
    table.with_columns(hours=pl.col("hours") - pl.col("hours").min()).write_csv(path)
    assert "log1p takes zeros" in gingham("fit", path, *COLUMNS[:2], "--label", "log(hours)", "--out", out).err
    assert json.loads(gingham("look", path, "--json").out)["label"] == "log1p(hours)"


def test_zeros_of_a_wide_table_are_asked_about(gingham, planted, tmp_path):
    wide = planted(120).unique(["user", "movie"]).pivot("movie", index="user", values="rating").fill_null(0)
    path = tmp_path / "wide.csv"
    wide.with_columns(user=pl.format("u{}", "user")).write_csv(path)
    ran = gingham("look", path)
    assert "Does 0 mean that there is no value? Then add --missing 0." in ran.out
    assert "--wide --axes user,column --label value --missing 0" in ran.out


def test_sides_have_several_rows_per_item(gingham, tmp_path):
    rng = np.random.default_rng(0)
    baskets = pl.DataFrame({"household_id": rng.integers(0, 40, 900), "basket_id": np.arange(900) * 4 // 5})
    baskets.with_columns(product_id=pl.Series(rng.integers(0, 60, 900))).write_csv(tmp_path / "b.csv")
    assert json.loads(gingham("look", tmp_path / "b.csv", "--json").out)["axes"] == ["household_id", "product_id"]


def test_a_sentinel_is_no_label_that_fit_proposes(gingham, planted, tmp_path):
    path, out = tmp_path / "r.csv", tmp_path / "m.gingham"
    kept = pl.when(pl.int_range(pl.len()) % 4 > 0)
    planted(300).with_columns(rating=kept.then("rating").otherwise(-9)).write_csv(path)
    ran = gingham("fit", path, *COLUMNS, *BOARD, "--out", out)
    words = " ".join(ran.out.split())
    assert "Does -9 mean that there is no label? Then fit again with --missing -9 --alphabet 1..5." in words
    assert "Otherwise, the observed labels look like -9,1,2,3,4,5." in words
    assert "Does -9 mean that there is no label? Then fit with --missing -9." in gingham("certify", out, path).err
    ran = gingham("fit", path, *COLUMNS, *BOARD, "--missing", "-9", "--alphabet", "1..5", "--out", out)
    assert "Guaranteed with confidence 95%" in ran.out, ran.err


def test_two_labels_stand_for_a_missing_one(gingham, planted, tmp_path):
    path, out = tmp_path / "r.csv", tmp_path / "m.gingham"
    part = pl.int_range(pl.len()) % 5
    planted(300).with_columns(rating=pl.when(part > 1).then("rating").otherwise(part - 9)).write_csv(path)
    looked = " ".join(gingham("look", path).out.split())
    assert "Do -9 and -8 mean that there is no rating? Then add --missing -9 --missing -8." in looked
    ran = gingham("fit", path, *COLUMNS, *BOARD, "--out", out)
    words = " ".join(ran.out.split())
    assert "Then fit again with --missing -9 --missing -8 --alphabet 1..5." in words
    assert "Then fit with --missing -9 --missing -8." in " ".join(gingham("certify", out, path).err.split())
    ran = gingham(
        "fit", path, *COLUMNS, *BOARD, "--missing", "-9", "--missing", "-8", "--alphabet", "1..5", "--out", out
    )
    assert "Guaranteed with confidence 95%" in ran.out, ran.err
    assert gg.load(out)._record.missing == ("-9", "-8")
    assert gingham("certify", out, path, "--no-progressive").code == 0


def test_only_english_nouns_are_inflected(gingham, planted, tmp_path):
    path = tmp_path / "noten.csv"
    planted(300).rename({"user": "Benutzer"}).write_csv(path)
    words = " ".join(gingham("look", path).out.split())
    assert "20 ids in 'Benutzer' × 15 movies" in words
    ran = gingham("fit", path, "--clusters", "2", "--beta", "1", "-q", "--out", tmp_path / "m.gingham")
    assert "Groups of Benutzer" in ran.out
    assert "Benutzers" not in ran.out + ran.err


def test_heavy_counts_are_predicted_by_their_logarithm(gingham, planted, tmp_path):
    path = tmp_path / "plays.csv"
    plays = (pl.col("rating") * 2.5 + pl.int_range(300) / 300).exp().round().cast(pl.Int64)
    planted(300).with_columns(plays=plays).drop("rating").write_csv(path)
    assert "--label 'log(plays)'" in gingham("look", path).out
