"""gingham compare, gingham update, gingham timeline."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from gingham.cli.app import run


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Ratings of three periods by two groups of users, and pairs of a shop."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    n = 3000
    user, item, year = rng.integers(0, 40, n), rng.integers(0, 30, n), np.repeat([2001, 2002, 2003], n // 3)
    liked = user % 2 == item % 2
    rating = np.where(rng.random(n) < 0.9, np.where(liked, 5, 1), 3)
    day = [f"{y}-06-{1 + k % 28:02d}" for k, y in enumerate(year)]
    table = pl.DataFrame({"user": user, "item": item, "rating": rating, "day": day})
    table.write_csv(folder / "all.csv")
    for name, part in (("train", table[:1500]), ("held", table[1500:2500]), ("new", table[2500:])):
        part.drop("day").write_csv(folder / f"{name}.csv")
    buyer = rng.integers(0, 120, 3000)
    product = 2 * rng.integers(0, 15, 3000) + np.where(rng.random(3000) < 0.9, buyer % 2, rng.integers(0, 2, 3000))
    pairs = pl.DataFrame({"user": buyer, "item": product}).unique(maintain_order=True)
    pairs[: pairs.height * 3 // 4].write_csv(folder / "pairs.csv")
    pairs[pairs.height * 3 // 4 :].write_csv(folder / "hidden.csv")
    return folder


@pytest.fixture(scope="module")
def models(tables):
    for name, clusters in (("two", "2,2"), ("one", "1,1")):
        assert run(["fit", str(tables / "train.csv"), "--axes", "user,item", "--label", "rating", "--alphabet", "1,3,5",
                    "--clusters", clusters, "--out", str(tables / f"{name}.gingham")]) == 0  # fmt: skip
    for name, seed in (("first", "0"), ("second", "1")):
        assert run(["fit", str(tables / "pairs.csv"), "--model", "ranking", "--axes", "user,item", "--seed", seed,
                    "--out", str(tables / f"{name}.gingham")]) == 0  # fmt: skip
    return tables


def test_the_better_model_wins_everywhere(models, gingham):
    ran = gingham("compare", str(models / "two.gingham"), str(models / "one.gingham"), str(models / "held.csv"),
                  "--alphabet", "1,3,5", "--plot", str(models / "who.png"), "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["winner"] == "two"
    assert {one["better"] for one in found["parts"]["user"]} == {"two"}
    assert (models / "who.png").stat().st_size > 1000


def test_rows_of_the_fit_are_refused(models, gingham):
    ran = gingham("compare", str(models / "two.gingham"), str(models / "one.gingham"), str(models / "train.csv"))
    assert ran.code == 2
    assert "has learned from" in ran.err


def test_rankings_are_compared_by_hidden_pairs(models, gingham):
    ran = gingham("compare", str(models / "first.gingham"), str(models / "second.gingham"), str(models / "hidden.csv"),
                  "--at", "5")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "not proved" in ran.out
    ran = gingham("compare", str(models / "first.gingham"), str(models / "one.gingham"), str(models / "hidden.csv"))
    assert ran.code == 2


def test_a_model_is_updated(models, gingham):
    out, changes = models / "later.gingham", models / "changes.csv"
    ran = gingham("update", str(models / "two.gingham"), str(models / "new.csv"), "--data", str(models / "train.csv"),
                  "--out", str(out), "--changes", str(changes))  # fmt: skip
    assert ran.code == 0, ran.err
    assert "kept their identity" in ran.out
    assert out.exists()
    assert changes.exists()
    ran = gingham("update", str(models / "two.gingham"), str(models / "new.csv"), "--out", str(out))
    assert ran.code == 2
    assert "--data" in ran.err
    ran = gingham("update", str(models / "first.gingham"), str(models / "hidden.csv"), "--out", str(out))
    assert ran.code == 0, ran.err


def test_a_table_over_time_becomes_a_page(models, gingham):
    page, members = models / "t.html", models / "members.csv"
    ran = gingham("timeline", str(models / "all.csv"), "--axes", "user,item", "--label", "rating", "--alphabet",
                  "1,3,5", "--clusters", "2,2", "--time", "day", "--every", "year", "-o", str(page), "--members",
                  str(members), "--json")  # fmt: skip
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["periods"] == ["2001", "2002", "2003"]
    assert "<svg" in page.read_text()
    assert pl.read_csv(members)["period"].n_unique() == 3
    ran = gingham("timeline", str(models / "all.csv"), "--axes", "user,item", "--label", "rating")
    assert ran.code == 2
    assert "--time" in ran.err


def test_models_in_a_row_become_a_page(models, gingham):
    page = models / "m.html"
    ran = gingham("timeline", str(models / "two.gingham"), str(models / "one.gingham"), "-o", str(page))
    assert ran.code == 0, ran.err
    assert "<svg" in page.read_text()
