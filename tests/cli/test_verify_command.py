"""gingham verify: the checker as a command."""

from __future__ import annotations

import json

import numpy as np
import polars as pl

import gingham as gg


def test_a_true_certificate_is_verified_and_a_false_one_is_not(gingham, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"user": rng.integers(0, 9, 400), "movie": rng.integers(0, 7, 400)})
    table = table.with_columns(rating=pl.Series(np.where((table["user"] + table["movie"]) % 2, 5, 2)))
    table.write_csv("ratings.csv")
    X, y = table.select("user", "movie"), table["rating"].to_numpy()
    model = gg.CoClusteringRegressor(2, beta=2.0, alphabet=range(1, 6), random_state=0).fit(X, y)
    model.save("model.gingham")
    gg.certify(model, X, y).save("c.json")
    ran = gingham("verify", "c.json", "model.gingham", "ratings.csv")
    assert ran.code == 0, ran.out + ran.err
    assert "verified" in ran.out
    said = json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))

    def lowered(value):
        if isinstance(value, dict):
            return {k: (v - 0.01 if k == "value" and isinstance(v, float) else lowered(v)) for k, v in value.items()}
        return value

    (tmp_path / "false.json").write_text(json.dumps(lowered(said)), encoding="utf-8")
    ran = gingham("verify", "false.json", "model.gingham", "ratings.csv")
    assert ran.code == 1
    assert "differs" in ran.out or "not verified" in ran.out
    for wrong in (("absent.json", "model.gingham", "ratings.csv"), ("c.json", "absent.gingham", "ratings.csv"),
                  ("c.json", "model.gingham", "absent.csv")):  # fmt: skip
        ran = gingham("verify", *wrong)
        assert ran.code == 2
        assert "There is no" in ran.err


def test_a_table_with_a_side_in_its_columns_is_verified(gingham, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    cells = np.where((np.arange(30)[:, None] + np.arange(8)) % 2, 4.0, -1.0) + rng.normal(0, 0.2, (30, 8)).round(3)
    table = pl.DataFrame({"wine": [f"bottle {i}" for i in range(30)]} | {f"m{j}": cells[:, j] for j in range(8)})
    table = table.with_columns(pl.when(pl.col("m3") > 4).then(None).otherwise(pl.col("m3")).alias("m3"))
    table.with_columns(seller=pl.lit("a shop")).write_csv("wines.csv")
    named = ("--model", "coclustering", "--wide", "--axes", "wine,column", "--label", "value", "--bounds=-3,6")
    assert gingham("fit", "wines.csv", *named, "--clusters", "2", "--out", "m.gingham").code == 0
    ran = gingham("certify", "m.gingham", "wines.csv", "--no-progressive", "--save", "c.json")
    assert ran.code == 0, ran.err
    ran = gingham("verify", "c.json", "m.gingham", "wines.csv")
    assert ran.code == 0, ran.out + ran.err
    table.with_columns(pl.col("m1") + 1e-3).write_csv("changed.csv")
    assert gingham("verify", "c.json", "m.gingham", "changed.csv").code == 1
    layered = ("--model", "layered", *named[2:], "--holdout", "0.2")
    assert gingham("fit", "wines.csv", *layered, "--out", "l.gingham").code == 0
    assert gingham("certify", "l.gingham", "wines.csv", "--no-progressive", "--save", "aside.json").code == 0
    ran = gingham("verify", "aside.json", "l.gingham", "wines.csv")
    assert ran.code == 0, ran.out + ran.err
    assert "taken as it is stated" in " ".join(ran.err.split())
    # With rows set aside the progressive certificate speaks of all of them, and of the predictor that it comes with.
    ran = gingham("certify", "m.gingham", "wines.csv", "--progressive", "--save", "all.json")
    assert "--save-predictor" in ran.err
    assert "--save-predictor" in gingham("verify", "all.json", "m.gingham", "wines.csv").out
    gingham("certify", "m.gingham", "wines.csv", "--save", "all.json", "--save-predictor", "p.gingham")
    ran = gingham("verify", "all.json", "p.gingham", "wines.csv")
    assert ran.code == 0, ran.out + ran.err
