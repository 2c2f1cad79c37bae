"""describe, similar, explain and recommend on files of every kind of model; side tables by --info."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import gingham as gg
from gingham.cli.app import run
from gingham.cli.tables.kinds import KINDS
from gingham.summary.values import plural
from model_kinds import write_tables

FIRST = {"graph": "n00", "cooccurrence": "w00"}
MANY = ("layered",)  # clusterings that add up: a summary distils one from them


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    found = {}
    for kind, case in write_tables(tmp_path_factory.mktemp("kinds")).items():
        path = case.file.with_name(f"{kind}.gingham")
        assert run(case.fit(path)) == 0, kind
        found[kind] = (path, case.file)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_described(gingham, models, kind):
    ran = gingham("describe", models[kind][0])
    assert ran.code == 0, ran.err
    table = pl.read_csv(io.StringIO(ran.out))
    assert {"side", "cluster", "name", "items"} <= set(table.columns)
    assert table["cluster"].min() == 1
    ran = gingham("describe", models[kind][0], "--items")
    assert {"item", "cluster", "membership"} <= set(pl.read_csv(io.StringIO(ran.out)).columns)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_answers_about_its_items(gingham, models, kind):
    path, file = models[kind]
    item = str(gg.load(path).summary_.sides[0].items[0])
    ran = gingham("similar", path, item, "-n", 3)
    assert ran.code == 0, ran.err
    assert pl.read_csv(io.StringIO(ran.out)).height >= 1
    ran = gingham("explain", path, item)
    assert ran.code == 0, ran.err
    assert "belongs to group" in ran.out
    ran = gingham("recommend", path, "--item", item, "-n", 3, *(["--data", file] if kind == "coclustering" else []))
    if kind == "ranking":
        assert ran.code == 2
        assert ("--users" if kind == "ranking" else "predicts nothing") in ran.err
    elif kind == "tree":
        assert ran.code == 2  # its roots are combinations that only the data know
        assert "Hand them over" in ran.err.replace("\n", " ")
    else:
        assert ran.code == 0, ran.err
        assert pl.read_csv(io.StringIO(ran.out))["place"][0] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_commands_show_the_clusters_of_the_model(gingham, models, kind, tmp_path):
    path, file = models[kind]
    model = gg.load(path)
    summary, labels = model.summary_, model.summary_.labels_at()
    items = pl.read_csv(io.StringIO(gingham("describe", path, "--items").out))
    assert (items["cluster"].to_numpy() - 1).tolist() == np.concatenate(labels).tolist()
    groups = pl.read_csv(io.StringIO(gingham("describe", path).out))
    assert groups["items"].to_list() == np.concatenate([np.bincount(own) for own in labels]).tolist()
    names = dict(zip(zip(groups["side"], groups["cluster"]), groups["name"]))
    assert items["name"].to_list() == [names[at] for at in zip(items["side"], items["cluster"])]
    for side, own in zip(summary.sides, labels):
        told = gingham("explain", path, str(side.items[0])).out
        assert f"belongs to group {own[0] + 1}, “{side.cut(own.max() + 1)[own[0]].name}”" in told
    out = tmp_path / "page.html"
    assert gingham("report", path, file, "--out", out).code == 0
    page = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', out.read_text(), re.S)[1])
    assert page["size"] == list(summary.size)
    for side, shown, own in zip(summary.sides, page["sides"], labels):
        leaves = np.array(shown["items"]["leaf"])
        assert side.groups(own.max() + 1)[leaves].tolist() == own[side.listed()].tolist()
    if kind not in MANY:
        fine = pl.read_csv(io.StringIO(gingham("describe", path, "--items", "--size", "all").out))
        for side in summary.sides:
            mine = fine.filter(pl.col("side") == side.name)["cluster"]
            assert adjusted_rand_score(mine, side.own) == 1.0


def test_side_tables_become_names_and_facts(gingham, models, tmp_path):
    file, out, info = models["coclustering"][1], tmp_path / "m.gingham", tmp_path / "films.csv"
    films = [f"film {m}" for m in range(15)]
    kinds = ["love" if m % 2 else "war" for m in range(15)]
    pl.DataFrame({"movie": films, "title": [f"{chr(97 + m) * 4} tale" for m in range(15)], "kind": kinds}).write_csv(
        info
    )
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "2", "--beta", "1", "-q", "--out", out]
    ran = gingham("fit", file, *options, "--info", f"movie={info}")
    assert ran.code == 0, ran.err
    ran = gingham("describe", out, "--size", "2")
    assert "tale" in ran.out
    assert "love 100%" in ran.out
    assert gingham("similar", out, "aaaa tale").code == 0
    assert gingham("fit", file, *options, "--info", "movie").code == 2
    ran = gingham("fit", file, *options, "--info", f"film={info}")
    assert ran.code == 2
    assert "'film'" in ran.err


def films(folder, ids):
    """Ratings of films with ids of seven figures, a table about some of them, and how the first is fitted."""
    rng, table, info = np.random.default_rng(0), folder / "ratings.csv", folder / "films.csv"
    user, film = rng.integers(0, 20, 400), rng.integers(0, 12, 400)
    texts = np.array([f"{10 ** (i % 7) + i:07}" for i in range(12)])
    pl.DataFrame({"user": user, "film": texts[film], "rating": 1 + (user + film) % 5}).write_csv(table)
    pl.DataFrame({"imdb": ids(texts), "title": [f"{chr(97 + i) * 4} tale" for i in range(len(ids(texts)))]}).write_csv(
        info
    )
    options = ["--axes", "user,film", "--label", "rating", "--clusters", "2", "--beta", "1", "--starts", "1", "-q"]
    return ["fit", table, *options, "--out", folder / "m.gingham", "--info", f"film={info}"]


def test_ids_of_side_tables_keep_their_text(gingham, tmp_path):
    ran = gingham(*films(tmp_path, lambda texts: texts))
    assert ran.code == 0, ran.err
    assert "All 12 films have a row in" in ran.err
    ran = gingham("describe", tmp_path / "m.gingham", "--items")
    shown = pl.read_csv(io.StringIO(ran.out)).filter(pl.col("side") == "film")
    assert shown["title"].str.ends_with("tale").all()
    ran = gingham(*films(tmp_path, lambda texts: texts[:5]))
    assert "5 of 12 films have a row in" in ran.err


def test_a_side_table_that_knows_nobody_is_refused_before_the_fit(gingham, tmp_path, monkeypatch):
    monkeypatch.setattr(gg.CoClusteringRegressor, "fit", lambda *_, **__: pytest.fail("the fit began"))
    ran = gingham(*films(tmp_path, lambda texts: [f"tt{text}" for text in texts]))
    assert ran.code == 2
    said = ran.err.replace("\n", " ")
    assert "The table of films contains none of them" in said
    assert "'0000001'" in said
    assert "'tt0000001'" in said
    ran = gingham(*films(tmp_path, lambda texts: texts)[:-1], f"movie={tmp_path / 'films.csv'}")
    assert "--info names the side 'movie'; there are 'user', 'film'" in ran.err


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "survey"])  # its sides are people and answers
def test_side_tables_are_matched_before_the_fit_of_every_kind(gingham, models, tmp_path, kind):
    """With the very items that the fitted model has."""
    case = write_tables(tmp_path)[kind]
    more, sides = [], gg.load(models[kind][0]).summary_.sides
    for side in sides:
        info = tmp_path / f"about {side.name}.csv"
        pl.DataFrame({"id": [str(item) for item in side.items.tolist()], "size": range(len(side.items))}).write_csv(
            info
        )
        more += ["--info", f"{side.name}={info}"]
    ran = gingham(*case.fit(tmp_path / "m.gingham", *more))
    assert ran.code == 0, ran.err
    for side in sides:
        said = re.search(rf"(\d+) {plural(side.name)} have a row in", ran.err)
        assert said, ran.err
        assert int(said[1]) >= len(side.items)


def test_a_file_without_a_summary_says_so(gingham, models, tmp_path):
    file, out = models["coclustering"][1], tmp_path / "m.gingham"
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "2", "-q", "--out", out]
    assert gingham("fit", file, *options, "--no-summary").code == 0
    ran = gingham("describe", out)
    assert ran.code == 2
    assert "has no summary" in ran.err


def test_a_wide_table_says_what_was_observed(gingham, tmp_path):
    file, out = tmp_path / "wines.csv", tmp_path / "m.gingham"
    kinds = np.arange(24) % 2
    measured = np.random.default_rng(0).normal(0, 0.1, (24, 6)) + np.where(
        kinds[:, None] == np.arange(6) % 2, 1.0, -1.0
    )
    table = pl.DataFrame({"wine": [f"bottle {i}" for i in range(24)]} | {f"m{j}": measured[:, j] for j in range(6)})
    table.with_columns(pl.when(pl.col("wine") == "bottle 7").then(None).otherwise(pl.col("m0")).alias("m0")).write_csv(
        file
    )
    ran = gingham("fit", file, "--model", "coclustering", "--wide", "--bounds=-2,2", "--clusters", "2", "--out", out)
    assert ran.code == 0, ran.err
    assert "gingham report" in ran.out
    ran = gingham("recommend", out, "m0", "--data", file)
    assert pl.read_csv(io.StringIO(ran.out))["item"].to_list() == ["bottle 7"]
    other = tmp_path / "other.csv"
    pl.DataFrame({"bottle": ["a"], "column": ["m0"]}).write_csv(other)
    ran = gingham("recommend", out, "m0", "--data", other)
    assert ran.code == 2
    assert "needs a column 'wine' that the table does not have" in ran.err
    assert "Two items are named" in gingham("recommend", out, "m0", "--item", "m1").err
