"""gingham audit: predictions of any program on one page."""

from __future__ import annotations

import json

import numpy as np
import polars as pl


def test_predictions_of_any_program(gingham, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y, at = rng.integers(1, 6, 900), np.arange(900)
    table = {"user": rng.integers(0, 50, 900), "age": np.where(at % 3, "old", "<young>"), "stars": y, "at": at,
             "ours": np.clip(y + 0.25, 1, 5), "theirs": np.clip(y + 1.5 * (at > 450), 1, 5)}  # fmt: skip
    pl.DataFrame(table).sample(fraction=1, shuffle=True, seed=1).write_csv("p.csv")
    said = ("audit", "p.csv", "--label", "stars", "-p", "ours", "-p", "theirs", "--alphabet", "1..5")
    ran = gingham(*said, "--strata", "age", "--ids", "user", "--time", "at", "-o", "a.html", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["winner"] == "ours"
    assert {one["name"]: one["verdict"] for one in found["changes"]} == {"ours": "no change is proved",
                                                                          "theirs": "worse"}  # fmt: skip
    assert set(found["breakdowns"]) == {"age", "user, by how often it occurs"}
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<young>" not in page
    assert "&lt;young&gt;" in page
    assert "is proved to be better than every other one" in page
    assert "<polyline" in page
    ran = gingham(*said, "--groups", "user", "--loss", "quadratic")
    assert "root mean square error" in ran.out
    assert "The 50 groups were drawn independently" in ran.out


def test_ranked_lists(gingham, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users = np.arange(200)
    pl.DataFrame({"user": users, "item": users % 4}).write_csv("hidden.csv")
    lists = {"good": [u % 4 for u in users], "poor": [u % 4 if u < 9 else 9 for u in users]}
    for name, first in lists.items():
        pl.DataFrame({"user": np.repeat(users, 2), "item": np.ravel([[one, 8] for one in first])}).write_csv(
            f"{name}.csv"
        )
    ran = gingham(
        "audit", "hidden.csv", "--ids", "user,item", "--lists", "good.csv", "--lists", "poor.csv", "--at", "2"
    )
    assert ran.code == 0, ran.err
    assert "miss rate at 2" in ran.out
    assert "good less poor" in ran.out


def test_what_an_audit_needs(gingham, ratings):
    for arguments, sentence in (
        ((), "--prediction"),
        (("--label", "rating", "-p", "rating"), "predictions are another column"),
        (("--label", "rating", "-p", "user"), "State the possible labels"),
        (("--label", "rating", "-p", "guess", "--alphabet", "1..5"), "--prediction"),
        (("--lists", ratings, "--ids", "user"), "needs two columns"),
    ):
        ran = gingham("audit", ratings, *arguments)
        assert ran.code == 2
        assert sentence in ran.err
