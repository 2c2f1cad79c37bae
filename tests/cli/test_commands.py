"""What the commands do when all is well."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.cli import table_files


def test_fit_writes_a_model_and_a_summary(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    ran = gingham("fit", ratings, "--axes", "user,movie", "--label", "rating", "--clusters", "2,2", "--out", out)
    assert ran.code == 0
    assert "effective clusters" in ran.out
    assert out.exists()
    # What was found, what is guaranteed, and commands that run.
    assert "2 groups of users and 2 groups of movies" in ran.out
    assert "Groups of movies" in ran.out
    assert "There is no guarantee yet" in ran.out
    commands = [line.split()[1:] for line in ran.out.splitlines() if line.startswith("  gingham ")]
    assert [command[0] for command in commands] == ["report", "certify"]
    assert commands[1][-2:] == ["--alphabet", "1..5"]
    assert gingham(*commands[1]).code == 0


def test_fit_says_what_certify_guarantees(gingham, ratings, tmp_path):
    options = ("--axes", "user,movie", "--label", "rating", "--alphabet", "1..5", "--model", "coclustering", "-q")
    sure = json.loads(gingham("fit", ratings, *options, "--out", tmp_path / "m.gingham", "--json").out)["guaranteed"]
    found = json.loads(gingham("certify", tmp_path / "m.gingham", ratings, "--json").out)
    assert sure["from"].replace(" ", "_") == next(iter(found))
    assert sure["at_most"] == pytest.approx(next(iter(found.values()))["value"])


def test_fit_finds_the_planted_blocks_and_beats_a_constant(gingham, ratings, tmp_path):
    ran = gingham(
        "fit", ratings, "--axes", "user,movie", "--label", "rating", "--out", tmp_path / "m.gingham", "--json"
    )
    facts = json.loads(ran.out)
    errors = facts["errors"]
    found = dict(errors["scores"])
    assert errors["unit"] == "root mean square error"  # layers make squares small
    assert found["this model"] < 0.6 * found["one constant"]
    assert found["this model"] < found["both averages"]
    assert errors["n_held"] == 600  # every row is held out once
    assert "5-fold cross-fitting" in errors["how"]
    assert [unit for unit, _ in errors["others"]] == ["mean absolute error"]


def test_fit_by_description_length_gives_hard_clusters(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    options = ("--axes", "user,movie", "--label", "rating", "--loss", "log", "--solver", "sweep", "--out", out)
    assert gingham("fit", ratings, *options).code == 0
    assert all(((q == 0) | (q == 1)).all() for q in gg.load(out).posterior_.assign)


def test_model_remembers_its_columns(model):
    loaded = gg.load(model)
    assert loaded._record.axes == ("user", "movie")
    assert loaded._record.label == "rating"


def test_predict_adds_a_column(gingham, model, ratings, tmp_path):
    out = tmp_path / "p.csv"
    assert gingham("predict", model, ratings, "--out", out).code == 0
    table = pl.read_csv(out)
    expected = gg.load(model).predict(table.select("user", "movie"))
    assert table["predicted_rating"].to_list() == pytest.approx(expected.tolist())


def test_predict_to_standard_output_with_probabilities(gingham, model, ratings):
    ran = gingham("predict", model, ratings, "--proba")
    table = pl.read_csv(io.StringIO(ran.out))
    assert table.select(pl.sum_horizontal("p_1", "p_2", "p_3", "p_4", "p_5")).to_series().to_list() == pytest.approx(
        [1.0] * 600
    )


def test_ids_are_read_in_the_type_of_the_training_items(gingham, model, tmp_path):
    mixed = tmp_path / "mixed.csv"
    mixed.write_text("user,movie\n3,film 1\nsomeone else,film 1\n")
    ran = gingham("predict", model, mixed)
    assert ran.code == 0
    assert "1 in 'user'" in ran.err
    known = gg.load(model).predict(pl.DataFrame({"user": [3], "movie": ["film 1"]}))[0]
    assert pl.read_csv(io.StringIO(ran.out))["predicted_rating"][0] == pytest.approx(known)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet", "ndjson", "csv.gz"])
def test_every_format_is_read_and_written_alike(kind, planted, tmp_path):
    table = planted(50)
    path = str(tmp_path / f"t.{kind}")
    table_files.write_table(table, path)
    assert table_files.read_table(path).equals(table)
    assert kind.endswith("gz") == (Path(path).read_bytes()[:2] == b"\x1f\x8b")


def test_standard_input(gingham, planted, tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(planted(100).write_csv().encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    ran = gingham(
        "fit", "-", "--axes", "user,movie", "--label", "rating", "--out", tmp_path / "m.gingham", "--holdout", 0
    )
    assert ran.code == 0


def test_text_labels_are_classes(gingham, planted, tmp_path):
    table = planted(400).with_columns(
        pl.when(pl.col("rating") > 2).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("liked")
    )
    path = tmp_path / "votes.parquet"
    table.write_parquet(path)
    out = tmp_path / "m.gingham"
    ran = gingham("fit", path, "--axes", "user,movie", "--label", "liked", "--out", out, "--json")
    facts = json.loads(ran.out)
    assert facts["model"] == "layered"
    assert facts["errors"]["unit"] == "nats per label"
    assert facts["errors"]["scores"][0][1] == min(value for _, value in facts["errors"]["scores"])
    assert set(pl.read_csv(io.StringIO(gingham("predict", out, path).out))["predicted_liked"]) == {"yes", "no"}


def test_many_different_numbers_are_measurements(gingham, planted, tmp_path):
    table = planted(400).with_columns(price=pl.col("rating") * 1000.0 + pl.int_range(400))
    path = tmp_path / "prices.csv"
    table.write_csv(path)
    options = ["--axes", "user,movie", "--label", "price", "--model", "coclustering", "--out", tmp_path / "m.gingham"]
    facts = json.loads(gingham("fit", path, *options, "--json").out)
    assert facts["loss"] == "quadratic"
    assert facts["errors"]["unit"] == "root mean square error"
    found = dict(facts["errors"]["scores"])
    assert found["this model"] < 0.7 * found["one constant"]


def test_weights_are_counts(gingham, planted, tmp_path):
    table = planted(300).with_columns(n=pl.lit(2))
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    table.write_csv(once)
    pl.concat([table, table]).write_csv(twice)
    shared = ["--axes", "user,movie", "--label", "rating", "--beta", 1, "--clusters", 2, "--holdout", 0]
    gingham("fit", once, *shared, "--weight", "n", "--out", tmp_path / "a.gingham")
    gingham("fit", twice, *shared, "--out", tmp_path / "b.gingham")
    a, b = gg.load(tmp_path / "a.gingham"), gg.load(tmp_path / "b.gingham")
    X = table.select("user", "movie")
    assert a.predict(X) == pytest.approx(b.predict(X), abs=1e-6)


def test_same_seed_same_model(gingham, ratings, tmp_path):
    for name in ("a", "b"):
        gingham("fit", ratings, "--axes", "user,movie", "--label", "rating", "--out", tmp_path / name, "--seed", 3)
    one, other = (gg.load(tmp_path / name) for name in ("a", "b"))
    X = pl.read_csv(ratings).select("user", "movie")
    assert (one.predict(X) == other.predict(X)).all()
    # The order of tests is drawn afresh, so that nobody can look for a lucky one; the rows that measure go by the seed.
    assert one._record.order != other._record.order
    assert one._record.measured.seed == other._record.measured.seed == 3


@pytest.mark.parametrize("command", ["fit", "predict", "certify", "report", "simplify", "datasets", "describe"])
def test_help_has_examples(gingham, command):
    ran = gingham(command, "--help")
    assert ran.code == 0
    assert f"gingham {command}" in ran.out


def test_version(gingham):
    assert gg.__version__ in gingham("--version").out


def test_certify_explains_both_kinds_of_rows(gingham, model, ratings):
    ran = gingham("certify", model, ratings)
    assert ran.code == 0
    assert ran.out.startswith(
        "With 95 % confidence the mean absolute error on new data from the same source is at most"
    )
    assert "; for one constant it is" in ran.out.split("\n")[0]
    assert "It assumes:\n  The observations were drawn independently" in ran.out
    assert "who belongs where" not in ran.out
    ran = gingham("certify", model, ratings, "--verbose")
    assert "From the training rows" in ran.out
    assert "From the cross-fitted rows" in ran.out
    assert "who belongs where" in ran.out


def test_progressive_tests_come_first_and_all_certificates_hold_together(gingham, model, ratings, tmp_path):
    ran = gingham("certify", model, ratings, "--progressive", "--verbose")
    assert "3 certificates hold simultaneously with confidence 95 %" in ran.out
    assert ran.out.index("From the progressive tests") < ran.out.index("From the training rows")
    assert "with confidence 98.3333 %" in ran.out
    saved, predictor, out = tmp_path / "c.json", tmp_path / "p.gingham", tmp_path / "p.csv"
    options = ("--progressive", "--seed", 5, "--delta", 0.06, "--save", saved, "--save-predictor", predictor)
    facts = json.loads(gingham("certify", model, ratings, *options, "--json").out)
    assert list(facts) == ["progressive_tests", "cross-fitted_rows", "training_rows"]
    assert [one["delta"] for one in facts.values()] == pytest.approx([0.02] * 3)
    first = facts["progressive_tests"]
    assert (first["bound"], first["n_observations"], first["parameters"]["seed"]) == ("progressive", 180, 5)
    table = pl.read_csv(ratings)
    again = gg.certify_progressive(
        gg.CoClusteringRegressor((2, 2), alphabet=range(1, 6), random_state=0),
        table.select("user", "movie"), table["rating"], delta=0.02, random_state=5, candidates=2,
    )  # fmt: skip
    assert first["value"] == pytest.approx(again.value)
    assert gingham("verify", saved, predictor, ratings).code == 0
    assert gingham("predict", predictor, ratings, "--out", out).code == 0
    assert pl.read_csv(out)["predicted_rating"].to_list() == pytest.approx(
        again.model.predict(table.select("user", "movie")).tolist()
    )
    ran = gingham("certify", predictor, ratings)
    assert ran.code == 2
    assert "predictor" in ran.err


def test_references_make_progressive_tests_tighter_and_are_verified(gingham, model, ratings, tmp_path):
    saved, predictor = tmp_path / "c.json", tmp_path / "p.gingham"
    options = ("--references", 2, "--seed", 5, "--save", saved, "--save-predictor", predictor, "--json")
    first = json.loads(gingham("certify", model, ratings, *options).out)["progressive_tests"]
    assert first["parameters"]["references"] == 2
    ran = gingham("verify", saved, predictor, ratings)
    assert ran.code == 0
    assert "all alike" in ran.out
    ran = gingham("certify", model, ratings, "--references", 2, "--no-progressive")
    assert ran.code == 2
    assert "remove --no-progressive" in " ".join(ran.err.split())


def test_nothing_is_fitted_again_where_rows_were_held_out(gingham, model, ratings, tmp_path, monkeypatch):
    """Neither by certify nor by report; only --progressive, or what speaks of it, asks for more fits."""
    monkeypatch.setattr(gg.CoClusteringRegressor, "fit", lambda *rest, **more: pytest.fail("a fit was made"))
    facts = json.loads(gingham("certify", model, ratings, "--json").out)
    assert list(facts) == ["cross-fitted_rows", "training_rows"]
    assert gingham("report", model, ratings, "--out", tmp_path / "r.html").code == 0
    for asked in (["--progressive"], ["--seed", 3], ["--references", 1]):
        with pytest.raises(pytest.fail.Exception, match="a fit was made"):
            gingham("certify", model, ratings, *asked)


def test_candidates_share_delta(gingham, model, ratings):
    asked = ("certify", model, ratings, "--no-progressive", "--candidates", 4)
    facts = json.loads(gingham(*asked, "--json").out)
    assert [one["delta"] for one in facts.values()] == pytest.approx([0.05 / 4 / 2] * 2)
    assert "δ = 0.05 is shared among 4 candidates" in gingham(*asked).err
    assert gingham("certify", model, ratings, "--candidates", 0).code == 2


def test_without_progressive_tests_the_others_share(gingham, model, ratings, tmp_path):
    facts = json.loads(gingham("certify", model, ratings, "--no-progressive", "--json").out)
    assert [one["delta"] for one in facts.values()] == pytest.approx([0.025] * 2)
    for wrong in ("--save-predictor", "--progressive"):
        path = [tmp_path / "p"] if wrong == "--save-predictor" else []
        ran = gingham("certify", model, ratings, "--no-progressive", wrong, *path)
        assert (ran.code == 0) == (wrong == "--progressive")  # the last word counts


@pytest.mark.parametrize("option", ["--save", "--save-predictor"])
def test_what_certify_saves_never_takes_the_place_of_what_it_reads(gingham, model, ratings, tmp_path, option):
    before = model.read_bytes(), ratings.read_bytes()
    for target in (model, ratings, tmp_path, tmp_path / "absent" / "c.json"):
        assert gingham("certify", model, ratings, option, target).code == 2
    assert (model.read_bytes(), ratings.read_bytes()) == before
    both = ("--save", tmp_path / "same", "--save-predictor", tmp_path / "same")
    assert "use separate files" in gingham("certify", model, ratings, *both).err


def test_what_cannot_be_tested_row_by_row_says_so(gingham, tmp_path):
    path, out = tmp_path / "edges.csv", tmp_path / "g.gingham"
    pl.DataFrame({"from": [0, 0, 1, 2, 3], "to": [1, 2, 2, 3, 4]}).write_csv(path)
    assert gingham("fit", path, "--model", "graph", "--axes", "from,to", "--clusters", 2, "--out", out).code == 0
    assert gingham("certify", out, path).code == 0
    ran = gingham("certify", out, path, "--progressive")
    assert ran.code == 2
    assert "A graph is not tested row by row" in ran.err


def test_too_few_rows_for_tests_leave_the_other_certificates(gingham, planted, tmp_path):
    path, out = tmp_path / "few.csv", tmp_path / "m.gingham"
    planted(12).write_csv(path)
    options = ("--axes", "user,movie", "--label", "rating", "--alphabet", "1..5", "--clusters", 2, "--out", out)
    assert gingham("fit", path, *options, "--holdout", 0).code == 0
    ran = gingham("certify", out, path)
    assert ran.code == 0
    assert "There is no certificate from progressive tests" in ran.err
    assert "(from the training rows)" in ran.out.split("\n")[0]
    assert gingham("certify", out, path, "--progressive").code == 2


def test_certify_in_json_equals_the_library(gingham, model, ratings):
    facts = json.loads(gingham("certify", model, ratings, "--delta", 0.1, "--json").out)
    assert facts["training_rows"]["n_observations"] == facts["cross-fitted_rows"]["n_observations"] == 600
    assert facts["training_rows"]["empirical"] < facts["training_rows"]["value"] < 4


def test_certify_other_rows_are_not_split(gingham, model, planted, tmp_path):
    path = tmp_path / "other.csv"
    planted(200, seed=9).write_csv(path)
    facts = json.loads(gingham("certify", model, path, "--json", "--no-progressive").out)
    assert list(facts) == ["training_rows"]
    assert facts["training_rows"]["n_observations"] == 200


def test_report_is_one_page_without_addresses(gingham, model, ratings, tmp_path):
    page = tmp_path / "report.html"
    ran = gingham("report", model, ratings, "--out", page, "--title", "A & B <i>")
    assert ran.code == 0
    text = page.read_text(encoding="utf-8")
    assert "<title>A &amp; B &lt;i&gt;</title>" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


@pytest.mark.parametrize("options", [(), ("--model", "graph", "--axes", "from,to")])
def test_the_third_column_of_a_graph_holds_weights(gingham, tmp_path, options):
    rng = np.random.default_rng(0)
    side = np.arange(30) % 2
    first, second = np.triu_indices(30, 1)
    times = np.where(side[first] == side[second], 20, 3) + rng.integers(0, 3, len(first))
    names = np.array([f"n{i:02}" for i in range(30)])
    table, out = tmp_path / "edges.csv", tmp_path / "m.gingham"
    pl.DataFrame({"from": names[first], "to": names[second], "times": times}).write_csv(table)
    ran = gingham("fit", table, *options, "--clusters", 2, "--out", out)
    assert ran.code == 0
    assert "times" in ran.err
    model = gg.load(out)
    assert model._record.weight == "times"
    assert model.n_features_in_ == 30
    assert model.predict([("n00", "n02"), ("n00", "n01")]) == pytest.approx([21, 4], abs=0.5)


def test_times_of_a_graph_are_no_weights(gingham, tmp_path):
    table, out = tmp_path / "edges.csv", tmp_path / "m.gingham"
    pairs = [(i, j) for i in range(12) for j in range(i) if (i - j) % 2 == 0]
    frame = pl.DataFrame(pairs, schema=["from", "to"], orient="row")
    frame.with_columns(timestamp=1_500_000_000 + 86_400 * pl.int_range(pl.len())).write_csv(table)
    assert gingham("fit", table, "--model", "graph", "--axes", "from,to", "--clusters", 2, "--out", out).code == 0
    assert gg.load(out)._record.weight is None


def test_tables_and_certificates_fit_eighty_columns(gingham, model, ratings, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = [gingham("certify", model, ratings, "--no-progressive").out]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    shown.append(gingham("describe", model, "--items").out)
    for text in shown:
        assert text.strip()
        plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
        folded = [line for line in plain.split("\n") if not line.startswith("  gingham fit")]  # commands stay whole
        assert max(map(len, folded)) <= 80


def test_datasets_are_listed(gingham, monkeypatch, tmp_path):
    monkeypatch.setenv("GINGHAM_DATA", str(tmp_path))
    facts = json.loads(gingham("datasets", "--json").out)
    assert not facts["movielens-100k"]["here"]
    assert facts["films"]["here"]


def test_simplify_to_a_size(gingham, ratings, tmp_path):
    big, small = tmp_path / "big.gingham", tmp_path / "small.gingham"
    gingham("fit", ratings, "--axes", "user,movie", "--label", "rating", "--clusters", "5,5", "--out", big)
    facts = json.loads(gingham("simplify", big, ratings, "--clusters", "2,2", "--out", small, "--json").out)
    assert max(facts["clusters"]) <= 2
    assert gg.load(small)._record.label == "rating"
    assert gg.load(small)._errors is None  # those of the large model are not its own
    ran = gingham("certify", small, ratings, "--no-progressive", "--alphabet", "1..5")
    assert "from the training rows" in ran.out
    assert "-fitted rows" not in ran.out


def test_rows_set_aside_are_known_by_their_weights(gingham, planted, tmp_path):
    table, path, out = planted(400).with_columns(n=pl.lit(1)), tmp_path / "t.parquet", tmp_path / "m.gingham"
    table.write_parquet(path)
    options = (
        "--axes",
        "user,movie",
        "--label",
        "rating",
        "--clusters",
        "2,2",
        "--beta",
        "1",
        "--alphabet",
        "1..5",
        "-q",
    )
    assert gingham("fit", path, *options, "--weight", "n", "--out", out).code == 0
    assert "cross-fitted rows" in gingham("certify", out, path).out
    table.with_columns(n=pl.when(pl.int_range(pl.len()) == 3).then(2).otherwise(1)).write_parquet(path)
    assert "cross-fitted rows" not in gingham("certify", out, path).out


def test_draws_are_set_aside_and_not_rows(gingham, planted, tmp_path):
    """Equal observations as one row with a count: some draws of a row are learned from, others test."""
    table = planted(3000).group_by("user", "movie", "rating", maintain_order=True).len("n")
    path, out = tmp_path / "counts.csv", tmp_path / "m.gingham"
    table.write_csv(path)
    options = ("--axes", "user,movie", "--label", "rating", "--alphabet", "1..5", "--weight", "n", "--clusters", "2,2")
    facts = json.loads(gingham("fit", path, *options, "--out", out, "--json").out)
    assert facts["errors"]["n_held"] == 3000
    assert gingham("certify", out, path, "--no-progressive").code == 0
    facts = json.loads(gingham("fit", path, *options, "--out", out, "--json", "--holdout", ".1").out)
    assert facts["errors"]["n_held"] == 300
    assert facts["rows"] == table.height
    assert "fitted on the other 2,700" in facts["errors"]["how"]
    found = json.loads(gingham("certify", out, path, "--no-progressive", "--json").out)
    assert found["held-out_rows"]["n_observations"] == 300
    assert found["training_rows"]["n_observations"] == 3000  # of the model that was saved
    texts = {a["text"]: a["status"] for a in found["held-out_rows"]["assumptions"]}
    assert texts["A row of weight w stands for w independent draws."] == "given"
    # Other weights are other rows: nothing is taken for unseen.
    heavier = tmp_path / "heavier.csv"
    table.with_columns(pl.col("n") + 1).write_csv(heavier)
    other = json.loads(gingham("certify", out, heavier, "--no-progressive", "--json").out)
    assert "held-out_rows" not in other
    half = tmp_path / "half.csv"
    table.with_columns(pl.col("n") / 2).write_csv(half)
    ran = gingham("fit", half, *options, "--out", out)
    assert ran.code == 2
    assert "--holdout holds out draws" in ran.err
    assert gingham("fit", half, *options, "--out", out, "--holdout", 0).code == 0
