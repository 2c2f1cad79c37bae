"""Every kind of model × every command: each cell works, or says in a sentence why it cannot and what does."""

from __future__ import annotations

import io
import json
import re

import polars as pl
import pytest

import gingham as gg
from gingham.cli.app import run
from gingham.cli.tables.kinds import KINDS
from model_kinds import write_tables

GRIDS = ("coclustering", "layered", "committee", "bayesian", "tree", "joint")

# where a command has no meaning for a kind: what it says
REFUSED = {
    ("simplify", "layered"): "Its layers add up",
    ("simplify", "committee"): "Each member has its own clusters",
    ("simplify", "bayesian"): "memberships are mixed",
    ("simplify", "tree"): "merges are the coarser levels",
    ("simplify", "joint"): "share clusters",
    ("predict", "ranking"): "gingham recommend",
    ("simplify", "ranking"): "fewer n_groups",
    ("simplify", "survey"): "Its layers add up",
    ("predict", "survey"): "needs a column 'question'",  # the table of the fit is wide
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
    if kind == "cooccurrence":  # of others the model keeps what was measured
        assert data["held_out"], "nothing was set aside"
    assert any(best for best in data["sides"][0]["items"]["best"])
    if data["certificates"] and kind not in ("graph", "ranking", "survey"):  # these have no constant beside them
        assert data["guarantee"]["better"] is not None


@pytest.mark.parametrize("kind", KINDS)
def test_certify(gingham, cases, models, kind):
    stated = cases[kind].stated
    if stated:
        ran = gingham("certify", models[kind], cases[kind].file)
        assert ran.code == 2
        assert "population=" in ran.err or "--alphabet no,yes" in ran.err
    slow = ["--no-progressive"] if kind in ("layered", "committee") else []  # many fits of many parts
    ran = gingham("certify", models[kind], cases[kind].file, "--json", *slow, *stated)
    if refused(ran, "certify", kind):
        return
    assert ran.code == 0, ran.err
    for facts in json.loads(ran.out).values():
        assert facts["delta"] in (0.05, 0.05 / 2, 0.05 / 3)  # shared by what is shown
        if facts.get("bound") == "gain":
            assert facts["value"] < 0  # the planted blocks provably help
        elif facts.get("at_least"):
            assert 0 <= facts["value"] < facts["empirical"]
        else:
            assert facts["empirical"] < facts["value"] < (facts.get("worst") or 1e9)
    ran = gingham("certify", models[kind], cases[kind].file, "--no-progressive", *stated)
    assert ran.code == 0
    assert "It assumes:" in ran.out


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
    assert after[new[0]].null_count() == 0
    if kind in GRIDS:
        assert (after["predicted_rating"] - after["rating"]).abs().mean() < 1.0


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
    assert gg.load(out)._record.axes == gg.load(models[kind])._record.axes


@pytest.mark.parametrize("kind", ["joint", "graph", "cooccurrence"])
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
    commands = {"report", "certify", "predict", "simplify"}
    assert all(command in commands and kind in cases for command, kind in REFUSED)


def test_layers_are_not_certified_on_the_rows_of_their_fit(gingham, cases, tmp_path):
    case, out = cases["layered"], tmp_path / "m.gingham"
    assert gingham(*case.fit(out, "--holdout", "0")).code == 0
    ran = gingham("certify", out, case.file, "--no-progressive")
    assert ran.code == 2
    assert "held-out rows" in ran.err.replace("\n", " ")


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
    assert "from the training rows" in ran.out
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
