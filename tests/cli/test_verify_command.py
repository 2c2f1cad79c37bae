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
