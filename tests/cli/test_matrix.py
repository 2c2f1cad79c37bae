"""Every kind of model × every command: each cell works, or says in a sentence why it cannot and what does."""

from __future__ import annotations

import io
import json
import re

import polars as pl
import pytest

import gingham as gg
from gingham.cli.app import run
from gingham.cli.tables.kinds import KINDS as ALL_KINDS
from model_kinds import write_tables

KINDS = tuple(ALL_KINDS)
GRIDS = ("coclustering", "layered", "committee", "bayesian", "tree", "joint")

# where a command has no meaning for a kind: what it says
REFUSED = {
    ("simplify", "layered"): "Its layers add up",
    ("simplify", "committee"): "clusters of its own",
    ("simplify", "bayesian"): "memberships are mixed",
    ("simplify", "tree"): "merges are the coarser levels",
    ("simplify", "joint"): "share clusters",
    ("simplify", "information"): "fewer --clusters",
    ("simplify", "pairwise"): "order of their strength",
    ("certify", "ranking"): "gg.certify_ranking",
    ("predict", "ranking"): "gingham recommend",
    ("simplify", "ranking"): "do not take a ranking",
    ("path", "ranking"): "no β",
    ("path", "layered"): "no β",
    ("path", "committee"): "--model coclustering",
    ("path", "bayesian"): "no β",
    ("path", "joint"): "its own β",
    ("path", "information"): "no β",
    ("path", "pairwise"): "no β",
    ("clusters", "committee"): "clusters of its own",
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    found = write_tables(tmp_path_factory.mktemp("kinds"))
    assert set(found) == set(KINDS)
    return found


@pytest.fixture(scope="module")
def models(cases):
    paths = {}
    for kind, case in cases.items():
        paths[kind] = case.file.with_name(f"{kind}.gingham")
        assert run(case.fit(paths[kind])) == 0, kind
    return paths


def refused(ran, command, kind):
    """Whether the command has no meaning for the kind; it must then have said so."""
    if (command, kind) not in REFUSED:
        return False
    assert ran.code == 2
    assert REFUSED[command, kind] in " ".join(ran.err.split())
    return True


def page_data(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text("utf-8"), re.S)
    return json.loads(found.group(1))


@pytest.mark.parametrize("kind", KINDS)
def test_report(gingham, cases, models, kind, tmp_path):
    page = tmp_path / "r.html"
    ran = gingham("report", models[kind], cases[kind].file, "--out", page, "--no-progressive", *cases[kind].stated)
    if refused(ran, "report", kind):
        assert not page.exists()
        return
    assert ran.code == 0, ran.err
    data = page_data(page)
    assert data["certificates"] or kind == "ranking", ran.err
    assert data["guarantee"]["sentence"]
    assert data["facts"]
    for side in data["sides"]:
        items, leaves = side["items"], side["clusters"][: side["n_leaves"]]
        assert len(items["names"]) == side["n_items"] == len(items["near"]) == len(items["x"])
        assert sum(leaf["size"] for leaf in leaves) == side["n_items"]
        assert any(leaf["typical"] for leaf in leaves)
    assert data["tables"][0]["sums"][0][0]
    assert data["picture"]["groups"].startswith("data:image/png")
    if kind in ("cooccurrence", "information", "pairwise"):  # of others the model keeps what was measured
        assert data["held_out"], "nothing was set aside"
    if kind != "pairwise":  # every value of every object is in the table
        assert any(best for best in data["sides"][0]["items"]["best"])
    if data["certificates"] and kind != "graph":  # a graph has a certificate of its gain
        assert data["guarantee"]["better"] is not None


@pytest.mark.parametrize("kind", KINDS)
def test_certify(gingham, cases, models, kind):
    stated = cases[kind].stated
    if stated:
        ran = gingham("certify", models[kind], cases[kind].file)
        assert ran.code == 2
        assert "population=" in ran.err
    slow = ["--no-progressive"] if kind in ("layered", "committee") else []  # many fits of many parts
    ran = gingham("certify", models[kind], cases[kind].file, "--json", *slow, *stated)
    if refused(ran, "certify", kind):
        return
    assert ran.code == 0, ran.err
    for facts in json.loads(ran.out).values():
        assert facts["delta"] in (0.05, 0.05 / 2, 0.05 / 3)  # shared by what is shown
        if facts["bound"] == "gain":
            assert facts["value"] < 0  # the planted blocks provably help
        elif facts.get("at_least"):
            assert 0 <= facts["value"] < facts["empirical"]
        else:
            assert facts["empirical"] < facts["value"] < (facts["worst"] or 1e9)
    ran = gingham("certify", models[kind], cases[kind].file, "--no-progressive", *stated)
    assert ran.code == 0
    assert "It rests on" in ran.out


@pytest.mark.parametrize("kind", KINDS)
def test_predict(gingham, cases, models, kind):
    ran = gingham("predict", models[kind], cases[kind].file)
    if refused(ran, "predict", kind):
        return
    assert ran.code == 0, ran.err
    before, after = pl.read_csv(cases[kind].file), pl.read_csv(io.StringIO(ran.out))
    assert after.height == before.height
    new = [name for name in after.columns if name not in before.columns]
    assert new
    assert after[new[0]].null_count() <= (0 if kind != "information" else after.height // 2)
    if kind in GRIDS:
        assert (after["predicted_rating"] - after["rating"]).abs().mean() < 1.0
    if kind == "information":
        known = after.drop_nulls()
        assert (known["predicted_value"] == known["value"]).mean() > 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_clusters(gingham, models, kind):
    ran = gingham("clusters", models[kind])
    assert ran.code == 0, ran.err
    table = pl.read_csv(io.StringIO(ran.out))
    assert table.columns == ["axis", "item", "cluster", "name", "share"]
    assert table["cluster"].min() == 1
    ran = gingham("clusters", models[kind], "--own")
    if refused(ran, "clusters", kind):
        return
    assert ran.code == 0, ran.err
    table = pl.read_csv(io.StringIO(ran.out))
    assert table.columns == ["axis", "item", "cluster", "share"]
    assert table["cluster"].min() >= (0 if kind == "pairwise" else 1)  # views have a background


@pytest.mark.parametrize("kind", KINDS)
def test_simplify(gingham, cases, models, kind, tmp_path):
    out = tmp_path / "small.gingham"
    ran = gingham("simplify", models[kind], cases[kind].file, "--clusters", 2, "--out", out, "--json")
    if refused(ran, "simplify", kind):
        assert not out.exists()
        return
    assert ran.code == 0, ran.err
    facts = json.loads(ran.out)
    assert facts["clusters"] in (2, [2, 2])
    if kind in ("cooccurrence", "graph", "coclustering"):  # without a size as well
        assert gingham("simplify", models[kind], cases[kind].file, "--out", tmp_path / "other.gingham").code == 0
    assert gingham("predict", out, cases[kind].file).code == 0
    assert gingham("certify", out, cases[kind].file, *cases[kind].stated).code == 0
    assert gg.load(out).record_.axes == gg.load(models[kind]).record_.axes


@pytest.mark.parametrize("kind", KINDS)
def test_path(gingham, cases, kind):
    case = cases[kind]
    wanted = [o for o in case.options if o not in ("--beta", "1", "--max-iter", "20", "--holdout", ".1", ".4")]
    if "-r" in wanted:
        at = wanted.index("-r")
        del wanted[at : at + 2]
    wanted += case.stated
    ran = gingham("path", case.file, "--model", kind, *wanted, "--betas", "3,1", "--cv", 2, "--json", "-q")
    if refused(ran, "path", kind):
        return
    assert ran.code == 0, ran.err
    facts = json.loads(ran.out)
    assert facts["path"]["beta"] == [3.0, 1.0]
    assert "certificate" in facts["best"]


@pytest.mark.parametrize("kind", ["joint", "graph", "cooccurrence", "pairwise"])
def test_file_and_columns_are_enough(gingham, cases, kind, tmp_path):
    """Sizes and settings are chosen where nothing is said; coclustering and its like are tested in test_commands."""
    wanted = [o for o in cases[kind].options if o not in ("--alphabet", "1..5", "--holdout", ".1", ".4")]
    at = wanted.index("--clusters")
    del wanted[at : at + 2]
    out, page = tmp_path / "m.gingham", tmp_path / "r.html"
    assert gingham("fit", cases[kind].file, "--model", kind, *wanted, "-q", "--out", out).code == 0
    assert gingham("report", out, cases[kind].file, "--out", page).code == 0
    assert page_data(page)["sides"][0]["n_leaves"] >= 1


def test_every_refusal_is_of_a_cell(cases):
    commands = {"report", "certify", "predict", "simplify", "path", "clusters"}
    assert all(command in commands and kind in cases for command, kind in REFUSED)


@pytest.mark.parametrize("kind", ["information", "pairwise"])
def test_what_was_seen_certifies_nothing(gingham, cases, kind, tmp_path):
    """Without features or objects set aside there is no certificate, but a page."""
    case, out, page = cases[kind], tmp_path / "m.gingham", tmp_path / "r.html"
    assert gingham(*case.fit(out, "--holdout", "0")).code == 0
    ran = gingham("certify", out, case.file)
    assert ran.code == 2
    assert "--holdout .3" in ran.err
    assert gingham("report", out, case.file, "--out", page).code == 0
    assert "--holdout .3" in page_data(page)["refusal"]


def test_layers_are_not_certified_on_the_rows_of_their_fit(gingham, cases, tmp_path):
    case, out = cases["layered"], tmp_path / "m.gingham"
    assert gingham(*case.fit(out, "--holdout", "0")).code == 0
    ran = gingham("certify", out, case.file, "--no-progressive")
    assert ran.code == 2
    assert "rows set aside" in ran.err.replace("\n", " ")


def test_other_objects_are_certified_too(gingham, cases, models, tmp_path):
    other = tmp_path / "other.csv"
    pl.read_csv(cases["pairwise"].file).sample(fraction=1.0, shuffle=True, seed=1).write_csv(other)
    ran = gingham("certify", models["pairwise"], other)
    assert ran.code == 0
    assert "contradicted" in ran.out


def test_measured_labels_want_stated_bounds(gingham, tmp_path, cases):
    table = pl.read_csv(cases["coclustering"].file).with_columns(rating=pl.col("rating") + pl.int_range(pl.len()) / 1e4)
    path, out = tmp_path / "measured.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    options = ["fit", path, "--axes", "user,movie", "--label", "rating", "--clusters", "2", "-q", "--out", out]
    assert gingham(*options).code == 0
    ran = gingham("certify", out, path, "--no-progressive")
    assert ran.code == 2
    assert "--bounds" in ran.err
    ran = gingham("certify", out, path, "--no-progressive", "--bounds", "0,6")  # stated afterwards
    assert ran.code == 0
    assert "From the training rows" in ran.out
    assert gingham("certify", out, path, "--no-progressive", "--bounds", "2,4").code == 2
    assert gingham(*options, "--model", "layered", "--bounds", "0,6").code == 0
    assert gingham("certify", out, path, "--no-progressive").code == 0
    assert gingham(*options, "--bounds", "0,6").code == 0
    assert gingham("certify", out, path, "--no-progressive").code == 0
    ran = gingham("certify", out, path, "--no-progressive", "--bounds", "0,9")
    assert ran.code == 2
    assert "fit with --bounds" in ran.err.replace("\n", " ")


def test_labels_that_are_names_stay_names(gingham, tmp_path, cases):
    """With three or more names, what stands between two of them is not the one in the middle."""
    names = {1: "bad", 2: "dull", 3: "fair", 4: "good", 5: "superb"}
    table = pl.read_csv(cases["coclustering"].file).with_columns(pl.col("rating").replace_strict(names))
    path, out, page = tmp_path / "named.csv", tmp_path / "m.gingham", tmp_path / "r.html"
    table.write_csv(path)
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "2", "--alphabet", ",".join(names.values())]
    assert gingham("fit", path, *options, "-q", "--out", out).code == 0
    assert gingham("report", out, path, "--out", page).code == 0
    data = page_data(page)
    model = gg.load(out)
    items, partners = (side["items"]["names"] for side in data["sides"])
    for name, best in zip(items[:5], data["sides"][0]["items"]["best"]):
        for place, share, _, label in best:
            pair = pl.DataFrame({"user": [int(name)], "movie": [partners[place]]})
            assert data["tables"][0]["labels"][label] == model.predict(pair)[0]
            assert share == pytest.approx(model.predict_proba(pair).max(), rel=1e-3)
