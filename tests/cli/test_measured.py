"""What fit measures, what certify and the page say of it, and that the same question has the same answer."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import gingham as gg
from gingham.cli.tables.adapter import TableSource, opened
from gingham.cli.tables.labelled_rows import labelled_rows

AXES = ("--axes", "user,movie", "--label", "rating", "--alphabet", "1..5")
BOARD = (*AXES, "--model", "coclustering", "--clusters", "2,2", "--beta", "1")


def measured(model, table) -> tuple[list, dict]:
    """The parts that measured a model, and what its file keeps."""
    kept = model._record.measured
    rows = labelled_rows(table, ["user", "movie"], model._record.label)
    return rows.folds(kept.share, kept.seed), kept


@pytest.mark.parametrize("holdout", [(), ("--holdout", ".2")])
@pytest.mark.parametrize("kind", ["coclustering", "layered", "tree", "bayesian", "committee"])
def test_the_error_is_that_of_the_same_model_without_the_rows(gingham, ratings, tmp_path, kind, holdout):
    out = tmp_path / "m.gingham"
    options = (*AXES, "--model", kind, "--clusters", "2,2", *holdout)
    options += ("--members", "3") if kind == "committee" else ()
    facts = json.loads(gingham("fit", ratings, *options, "--out", out, "--json").out)
    model, table = gg.load(out), pl.read_csv(ratings)
    parts, kept = measured(model, table)
    assert len(parts) == (1 if holdout else 5)
    power = 2 if facts["errors"]["unit"].startswith("root") else 1
    said, labels = [], []
    for training, held in parts:
        assert len(training) + len(held) == 600
        once = clone(model).fit(training.X, training.y)
        said.append(np.asarray(once.predict(held.X)))
        labels.append(held.y)
    said, labels = np.concatenate(said), np.concatenate(labels)
    assert np.allclose(said, kept.predictions)
    direct = np.mean(np.abs(said - labels) ** power) ** (1 / power)
    assert facts["errors"]["scores"][0] == ["this model", pytest.approx(direct, rel=1e-3)]
    assert model._errors.model == pytest.approx(direct)


def test_the_saved_model_is_that_of_all_rows(gingham, ratings, tmp_path):
    out, table = tmp_path / "m.gingham", pl.read_csv(ratings)
    assert gingham("fit", ratings, *BOARD, "--out", out).code == 0
    X = table.select("user", "movie")
    whole = gg.CoClusteringRegressor((2, 2), beta=1.0, alphabet=range(1, 6), random_state=0).fit(X, table["rating"])
    assert np.allclose(gg.load(out).predict(X), whole.predict(X))


def test_models_say_surprise_where_they_were_fitted_by_it(gingham, planted, tmp_path):
    path, out = tmp_path / "votes.csv", tmp_path / "m.gingham"
    planted(600).with_columns(pl.col("rating").replace_strict({1: "no", 2: "no", 3: "so", 4: "yes", 5: "yes"})
    .alias("vote")).drop("rating").write_csv(path)  # fmt: skip
    options = (
        "--axes",
        "user,movie",
        "--label",
        "vote",
        "--alphabet",
        "no,so,yes",
        "--loss",
        "log",
        "--clusters",
        "2,2",
    )
    errors = json.loads(gingham("fit", path, *options, "--out", out, "--json").out)["errors"]
    assert errors["unit"] == "nats per label"
    assert errors["others"][0][0] == "share of wrong labels"
    found = dict(errors["scores"])
    assert found["this model"] < found["label shares by user and movie"] < 1.1
    certificates = json.loads(gingham("certify", out, path, "--json").out)
    assert {one["loss"] for one in certificates.values()} == {"log"}
    assert certificates["cross-fitted_rows"]["empirical"] == pytest.approx(found["this model"], rel=2e-3)


@pytest.mark.parametrize("kind", ["coclustering", "layered"])
def test_the_same_question_has_the_same_answer(gingham, ratings, tmp_path, kind):
    out, page = tmp_path / "m.gingham", tmp_path / "r.html"
    assert gingham("fit", ratings, *AXES, "--model", kind, "--out", out).code == 0
    first, second = (json.loads(gingham("certify", out, ratings, "--json").out) for _ in range(2))
    assert first == second
    assert gingham("report", out, ratings, "--out", page).code == 0
    found = re.search(r'id="data">(.*?)</script>', page.read_text("utf-8"), re.S).group(1)
    shown = {one["name"].replace(" ", "_"): one["value"] for one in json.loads(found)["certificates"]}
    assert shown == {name: pytest.approx(one["value"]) for name, one in first.items()}


def test_an_order_that_somebody_chose_is_another_candidate(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    assert gingham("fit", ratings, *BOARD, "--out", out).code == 0
    drawn = gg.load(out)._record.order
    found = {
        name: json.loads(gingham("certify", out, ratings, "--json", *seed).out)["progressive_tests"]
        for name, seed in {"recorded": ("--progressive",), "same": ("--seed", drawn), "other": ("--seed", 5)}.items()
    }
    assert found["recorded"] == found["same"]
    assert found["recorded"]["parameters"]["candidates"] == 1
    assert found["other"]["terms"]["union over candidates"] == pytest.approx(np.log(2))
    ran = gingham("certify", out, ratings, "--seed", 5)
    assert "was chosen by you" in ran.err


def test_a_certificate_of_held_out_rows_is_not_of_rows_of_the_model(gingham, ratings, tmp_path):
    """What tested is the model without the rows; the saved one has seen them all, and no holdout is made of it."""
    out = tmp_path / "m.gingham"
    assert gingham("fit", ratings, *BOARD, "--out", out, "--holdout", ".2").code == 0
    found = json.loads(gingham("certify", out, ratings, "--no-progressive", "--json").out)
    aside, model, table = found["held-out_rows"], gg.load(out), pl.read_csv(ratings)
    (((_, held),), kept) = measured(model, table)
    assert aside["n_observations"] == 120
    assert aside["predictor"] == "the same model with the same settings, fitted on the other 480 rows"
    assert aside["empirical"] == pytest.approx(np.mean(np.abs(kept.predictions - held.y)))
    with pytest.raises(gg.RefusedCertificate, match="fitted on"):
        gg.certify(model, held.X, held.y, bound="holdout")
    # A model that has learned from other rows since is another one.
    model.fold_in(held.X.with_columns(user=pl.lit(99)), held.y)
    with pytest.warns(gg.GinghamWarning, match="the error measured then does not apply"):
        beside = opened(model, TableSource(table))
    assert beside.tested is None


def test_measured_and_guaranteed_stand_side_by_side_in_one_measure(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    ran = gingham("fit", ratings, *AXES, "--model", "layered", "--out", out)
    assert "root mean square error" in ran.out
    assert "mean absolute error" in ran.out
    assert "5-fold cross-fitting" in ran.out
    ran = gingham("certify", out, ratings, "--no-progressive")
    lines = {line.split("  ")[0].strip(): line for line in ran.out.splitlines()}
    model = float(re.findall(r"\d*\.\d+", lines["this model"])[0])
    tested, bound = (float(v) for v in re.findall(r"\d*\.\d+", lines["certified from the cross-fitted rows"]))
    assert tested == pytest.approx(model, rel=1e-3)
    assert model < bound < 4
    assert "both averages" in lines
    value = json.loads(gingham("certify", out, ratings, "--no-progressive", "--json").out)
    assert bound == pytest.approx(value["cross-fitted_rows"]["value"] ** 0.5, rel=1e-3)


def test_ten_divisions_of_a_small_table_agree(gingham, planted, tmp_path):
    path, found = tmp_path / "t.csv", []
    planted(2000).write_csv(path)
    for seed in range(10):
        facts = json.loads(
            gingham("fit", path, *BOARD, "--seed", seed, "--out", tmp_path / "m.gingham", "--no-summary", "--json").out
        )
        found.append(facts["errors"]["scores"][0][1])
    assert max(found) < 1.01 * min(found)


@pytest.mark.parametrize(("interaction", "effort"), [(1.0, "default"), (0.0, "fast")])
def test_a_longer_fit_is_made_where_it_pays(gingham, tmp_path, monkeypatch, interaction, effort):
    """Where averages explain all, a quick fit is as good; an effort that is named is not chosen."""
    monkeypatch.setattr("gingham.cli.tables.labels.FEW_ROWS", 1000)
    path, out = tmp_path / "r.csv", tmp_path / "m.gingham"
    rng = np.random.default_rng(0)
    user, movie = rng.integers(0, 30, (2, 1500))
    blocks = interaction * np.where(user % 2 == movie % 2, 1.0, -1.0)
    rating = np.clip(np.round(3 + user % 3 - 1 + blocks + rng.normal(0, 0.4, 1500)), 1, 5).astype(int)
    pl.DataFrame({"user": user, "movie": movie, "rating": rating}).write_csv(path)
    fit = ("fit", path, "--model", "layered", "--axes", "user,movie", "--label", "rating", "--no-summary", "-q")
    assert gingham(*fit, "--out", out).code == 0
    assert gg.load(out).effort == effort
    assert gingham(*fit, "--effort", "best" if effort == "fast" else "fast", "--out", out).code == 0
    assert gg.load(out).effort == ("best" if effort == "fast" else "fast")
    ran = gingham("fit", path, "--model", "coclustering", *fit[4:], "--effort", "fast", "--out", out)
    assert ran.code == 2
    assert "has no use for --effort" in ran.err
