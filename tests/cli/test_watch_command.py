"""gingham watch: a promise beside a table that grows, from run to run."""

from __future__ import annotations

import json

import numpy as np
import polars as pl


def test_a_watch_over_several_runs(gingham, planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    everything = planted(1400).unique(["user", "movie"], keep="first", maintain_order=True)
    rows, new = everything[:180], everything[180:].with_columns(at=pl.int_range(pl.len()))
    rows.write_csv("r.csv")
    assert gingham("fit", "r.csv", "--axes", "user,movie", "--label", "rating", "--alphabet", "1..5", "--model",
                   "coclustering", "--clusters", "2,2", "--out", "m.gingham").code == 0  # fmt: skip
    ran = gingham("certify", "m.gingham", "r.csv", "--save", "c.json", "--save-predictor", "p.gingham")
    assert ran.code == 0, ran.err
    n = new.height
    broken = planted(500, seed=8).with_columns(rating=6 - pl.col("rating"), at=pl.int_range(500) + n)
    new.head(60).write_csv("w.csv")
    said = ("watch", "c.json", "p.gingham", "w.csv", "--state", "w.json", "--alpha", "0.05")
    ran = gingham(*said)
    assert (ran.code, "60 rows so far" in ran.out) == (0, True), ran.err
    new.write_csv("w.csv")  # the table has grown
    ran = gingham(*said, "--json")
    assert (ran.code, ran.out.count("\n")) == (0, 1)
    assert json.loads(ran.out)["rows"] == n
    assert "first 60 rows" in ran.err
    kept = (tmp_path / "w.json").read_bytes()
    ran = gingham(*said, "--json")  # nothing new
    assert json.loads(ran.out)["rows"] == n
    new[50:80].write_csv("w.csv")
    ran = gingham(*said)
    assert ran.code == 2
    assert "counted before" in ran.err
    assert (tmp_path / "w.json").read_bytes() == kept
    broken.write_csv("w.csv")
    ran = gingham(*said, "--plot", "e.png")
    assert ran.code == 3, ran.out + ran.err
    assert "has ended, with proof" in ran.out
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")
    ran = gingham(*said, "--json")
    assert (ran.code, json.loads(ran.out)["verdict"]) == (3, "ended")
    ran = gingham(*said[:-1], "0.01")
    assert ran.code == 2
    assert "with another alpha" in ran.err
    assert gingham("watch", "c.json", "m.gingham", "w.csv").code == 2  # another model


def test_finished_predictions_are_watched_without_a_model(gingham, tmp_path, monkeypatch):
    import gingham as gg

    monkeypatch.chdir(tmp_path)
    y = np.random.default_rng(0).integers(0, 2, 800)
    certificate = gg.certify_predictions(y, np.where(np.arange(800) % 10, y, 1 - y), loss="zero-one", alphabet=[0, 1])
    certificate.save("c.json")
    pl.DataFrame({"id": range(900, 1200), "said": y[:300], "was": 1 - y[:300]}).write_csv("w.csv")
    ran = gingham("watch", "c.json", "-", "w.csv", "--prediction", "said", "--label", "was")
    assert ran.code == 3, ran.err
    ran = gingham("watch", "c.json", "-", "w.csv")
    assert (ran.code, "--prediction" in ran.err) == (2, True)
