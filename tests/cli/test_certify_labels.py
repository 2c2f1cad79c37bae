"""gingham certify --labels: clusters from another program."""

from __future__ import annotations

import json

import polars as pl
import pytest


@pytest.fixture
def clusters(ratings, tmp_path):
    table = pl.read_csv(ratings)
    files = []
    for axis in ("user", "movie"):
        items = sorted(set(table[axis].to_list()))
        file = tmp_path / f"{axis}.csv"
        pl.DataFrame({"item": items, "cluster": [i * 2 // len(items) for i in range(len(items))]}).write_csv(file)
        files.append(str(file))
    return ",".join(files)


def test_clusters_from_elsewhere(gingham, ratings, clusters):
    ran = gingham("certify", "--labels", clusters, ratings, "--label", "rating", "--alphabet", "1..5")
    assert ran.code == 0
    assert "Guarantee" in ran.out
    ran = gingham(
        "certify", "--labels", clusters, ratings, "--label", "rating", "--alphabet", "1..5", "--axes", "user,movie",
        "--json",
    )  # fmt: skip
    facts = json.loads(ran.out)
    assert facts["empirical"] < facts["value"] <= 4
    assert {"user", "movie"} <= {name.split(":")[0] for name in facts["terms"]}


def test_what_is_missing_is_said(gingham, ratings, clusters, tmp_path):
    assert gingham("certify", "--labels", clusters, ratings).code == 2
    one = clusters.split(",")[0]
    options = ("--label", "rating", "--alphabet", "1..5")
    assert gingham("certify", "--labels", f"{clusters},{one}", ratings, "--axes", "user,movie", *options).code == 2
    assert gingham("certify", "--labels", clusters, ratings, "--axes", "user,film", *options).code == 2
    twice = tmp_path / "twice.csv"
    twice.write_text("item,cluster\n" + "a,0\na,1\n")
    assert gingham("certify", "--labels", f"{twice},{one}", ratings, *options).code == 2
    narrow = tmp_path / "narrow.csv"
    narrow.write_text("item\na\n")
    assert gingham("certify", "--labels", f"{narrow},{one}", ratings, *options).code == 2
    assert gingham("certify", "model-without-table").code == 2
