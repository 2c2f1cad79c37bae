"""``gingham look`` and ``gingham fit`` with nothing set: the command to paste runs, and says what it took."""

from __future__ import annotations

import json
import shlex

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.cli.tables.kinds import KINDS


def tables() -> dict[str, tuple[pl.DataFrame, str]]:
    """A small table of each sort, and the kind of model that fits it."""
    rng = np.random.default_rng(0)
    n = 500
    user, movie = rng.integers(0, 25, n), rng.integers(0, 20, n)
    rating = np.clip(3 + np.where(user % 2 == movie % 2, 1, -1) + rng.integers(-1, 2, n), 1, 5)
    ends = rng.integers(0, 30, (400, 2))
    ends = ends[(ends[:, 0] % 2 == ends[:, 1] % 2) & (ends[:, 0] != ends[:, 1])]
    grid = np.where(np.arange(30)[:, None] % 2 == np.arange(10) % 2, 5.0, 2.0) + rng.integers(-1, 2, (30, 10))
    grid[rng.random(grid.shape) < 0.15] = np.nan
    survey = pl.DataFrame(grid, schema=[f"q{k}" for k in range(10)]).fill_nan(None)
    return {
        "ratings": (pl.DataFrame({"user": user, "movie": [f"film {m}" for m in movie], "rating": rating}), "layered"),
        "counts": (
            pl.DataFrame({"document": user, "word": [f"w{m}" for m in movie], "n": rng.geometric(0.1, n) ** 2}),
            "cooccurrence",
        ),
        "purchases": (pl.DataFrame({"customer": user, "product": [f"p{m}" for m in movie]}), "cooccurrence"),
        "edges": (pl.DataFrame({"from": ends[:, 0], "to": ends[:, 1]}).unique(maintain_order=True), "graph"),
        "survey": (survey.insert_column(0, pl.Series("person", [f"p{k}" for k in range(30)])), "layered"),
        "votes": (
            pl.DataFrame({"member": user, "bill": movie, "vote": np.where(user % 2 == movie % 2, "yes", "no")}),
            "layered",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["ratings", "counts", "purchases", "edges", "survey", "votes"])
def test_the_command_that_look_gives_runs(gingham, tmp_path, name):
    table, kind = tables()[name]
    path, out = tmp_path / f"{name} of ours.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    found = json.loads(gingham("look", path, "--json").out)
    assert found["model"] == kind
    said = gingham("look", path)
    assert found["command"] in said.out
    words = shlex.split(found["command"])
    assert words[:2] == ["gingham", "fit"]
    ran = gingham(*words[1:], "--out", out, "-q", "--no-summary")
    assert ran.code == 0, ran.err
    record = gg.load(out)._record
    # With nothing set the same is fitted, and said.
    again = tmp_path / "again.gingham"
    ran = gingham("fit", path, "--out", again, "-q", "--no-summary", "--json")
    assert ran.code == 0, ran.err
    if kind == "layered":  # better than what averages alone say
        facts = json.loads(ran.out)
        (_, own), *others = facts["errors"]["scores"]
        assert own < min(value for _, value in others)
    assert f"Model: {kind}" in ran.err
    assert (gg.load(again)._record.axes, gg.load(again)._record.fingerprint) == (record.axes, record.fingerprint)
    for _, command in found["others"]:
        ran = gingham(*shlex.split(command)[1:], "--out", out, "-q", "--no-summary")
        assert ran.code == 0, ran.err


def test_a_wide_table_stays_one_for_all_commands(gingham, tmp_path):
    table, _ = tables()["survey"]
    path, out, page = tmp_path / "survey.csv", tmp_path / "m.gingham", tmp_path / "page.html"
    table.write_csv(path, null_value="NA")
    options = ("--wide", "--axes", "person,question", "--label", "answer", "--alphabet", "1..6", "-q")
    assert gingham("fit", path, *options, "--model", "coclustering", "--clusters", 2, "--out", out).code == 0
    assert gg.load(out)._record.axes == ("person", "question")
    ran = gingham("certify", out, path, "--no-progressive")
    assert ran.code == 0, ran.err
    assert "cross-fitted rows" in ran.out
    assert gingham("report", out, path, "--out", page).code == 0
    asked = tmp_path / "asked.csv"
    asked.write_text("person,question\np1,q3\n")
    assert "predicted_answer" in gingham("predict", out, asked).out


def questionnaire(n=60):
    """People of two kinds: words of a scale, names, numbers and measurements; some have not answered."""
    rng, kind = np.random.default_rng(0), np.arange(n) % 2
    words = np.array(["disagree", "neutral", "agree"])
    columns = {f"trust {k}": words[np.clip(2 * kind + rng.integers(-1, 2, n), 0, 2)].astype(object) for k in range(4)}
    columns |= {
        "bus": np.array(["yes", "no"])[kind].astype(object),
        "days": (1 + kind + rng.integers(2, size=n)).astype(object),
    }
    for column in columns.values():
        column[rng.random(n) < 0.1] = "Prefer not to say"
    people = pl.DataFrame({"person": [f"p{k}" for k in range(n)], **{k: list(map(str, v)) for k, v in columns.items()}})
    return people, pl.Series("income", np.round(np.exp(9 + kind + rng.normal(0, 0.3, n)), 2))


def test_a_table_of_answers_is_a_survey(gingham, tmp_path):
    table, income = questionnaire()
    path, out, page = tmp_path / "survey.csv", tmp_path / "m.gingham", tmp_path / "page.html"
    table.write_csv(path)
    found = json.loads(gingham("look", path, "--json").out)
    assert (found["model"], found["axes"], found["label"]) == ("survey", ["person", "question"], "answer")
    ran = gingham("fit", path, "--wide", "--effort", "fast", "--out", out, "-q", "--json")
    assert ran.code == 0, ran.err
    (_, own), *others = json.loads(ran.out)["errors"]["scores"]
    assert own < min(value for _, value in others)
    assert "Prefer not to say" not in gg.load(out).classes_
    stated = "1,2,3,agree,disagree,neutral,no,yes"
    ran = gingham("certify", out, path, "--no-progressive", "--alphabet", stated)
    assert ran.code == 0, ran.err
    assert "wrong labels" in ran.out
    assert gingham("report", out, path, "--out", page, "--alphabet", stated, "--no-progressive").code == 0
    asked = tmp_path / "asked.csv"
    asked.write_text("person,question\np0,trust 1\np1,trust 1\n")
    said = [line.rpartition(",")[2] for line in gingham("predict", out, asked).out.splitlines()[1:]]
    assert said[0] in ("disagree", "neutral")
    assert said[1] in ("neutral", "agree")
    # Steps that were chosen from the rows are no labels that somebody states.
    table.with_columns(income).write_csv(path)
    assert gingham("fit", path, "--wide", "--effort", "fast", "--out", out, "-q", "--no-summary").code == 0
    ran = gingham("certify", out, path, "--no-progressive", "--alphabet", ",".join(gg.load(out).classes_))
    assert ran.code == 2
    assert "steps that stand for the numbers of income" in ran.err


def test_options_of_one_checkerboard_ask_for_one(gingham, tmp_path):
    table, _ = tables()["ratings"]
    path, out = tmp_path / "ratings.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    ran = gingham("fit", path, "--clusters", "2,2", "--out", out, "-q")
    assert "because --clusters is an option of one" in ran.err
    assert type(gg.load(out)).__name__ == "CoClusteringRegressor"
    assert gingham("fit", path, "--model", "coclustering", "--out", out, "-q").code == 0
    assert type(gg.load(out)).__name__ == "CoClusteringRegressor"


def test_what_was_read_off_the_data_is_not_stated(gingham, tmp_path):
    """A fit with nothing set must not lend the labels it saw to a certificate."""
    table, _ = tables()["ratings"]
    path, out = tmp_path / "ratings.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    assert gingham("fit", path, "--out", out, "-q", "--no-summary").code == 0
    ran = gingham("certify", out, path)
    assert ran.code == 2
    assert "--alphabet 1..5" in ran.err
    assert gingham("certify", out, path, "--alphabet", "1..5", "--no-progressive").code == 0


def test_advice_is_a_note(gingham, tmp_path):
    table, _ = tables()["counts"]
    path, out = tmp_path / "counts.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    options = ("--clusters", 2, "--beta", 0.1, "--max-iter", 3, "-q", "--out", out)
    ran = gingham("fit", path, "--model", "coclustering", "--axes", "document,word", "--label", "n", *options)
    assert ran.code == 0, ran.err
    assert "Note: The labels look like counts" in ran.err
    rng = np.random.default_rng(0)
    columns = {
        "user": rng.integers(0, 30, 1500),
        "movie": rng.integers(0, 20, 1500),
        "rating": rng.integers(1, 6, 1500),
    }
    pl.DataFrame(columns).write_csv(path)
    ran = gingham("fit", path, *options)
    assert ran.code == 0, ran.err
    assert "No structure was found" in ran.out


def test_a_table_without_two_sides_is_refused_with_what_to_do(gingham, tmp_path):
    path = tmp_path / "heights.csv"
    pl.DataFrame({"name": ["a", "b", "c"] * 30, "height": np.linspace(1, 2, 90)}).write_csv(path)
    ran = gingham("fit", path, "--out", tmp_path / "m.gingham")
    assert ran.code == 2
    assert "two sides" in ran.err
    assert gingham("look", path).code == 0


def test_help_is_in_groups_and_explains_every_kind(gingham):
    shown = gingham("fit", "--help").out
    places = [shown.index(f"─ {group} ─") for group in ("Data", "Model", "Output", "Advanced")]
    assert places == sorted(places)
    for kind, said in KINDS.items():
        assert f"{kind}: {said.about[:20]}" in shown


def test_a_label_that_stands_for_a_missing_one_is_dropped(gingham, tmp_path):
    table, _ = tables()["ratings"]
    path, out = tmp_path / "ratings.csv", tmp_path / "m.gingham"
    table.with_columns(rating=pl.when(pl.int_range(pl.len()) % 5 == 0).then(-1).otherwise("rating")).write_csv(path)
    assert "Does -1 mean that there is no rating?" in gingham("look", path).out
    options = ("--model", "coclustering", "--clusters", "2,2", "--alphabet", "1..5", "-q", "--out", out)
    ran = gingham("fit", path, *options, "--missing", "-1", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["rows"] == 400
    assert gingham("certify", out, path, "--no-progressive").code == 0
    assert "must be a number" in gingham("fit", path, *options, "--missing", "none").err
