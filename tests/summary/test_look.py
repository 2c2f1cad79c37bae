"""What a table seems to be: roles of columns, findings, and a command that fits it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gingham as gg
from gingham.cli.tables.arguments import parse_alphabet
from gingham.summary.look import as_python, proposed_alphabet, proposed_bounds, sentinels_of


def ratings(n: int = 800) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    user, movie = rng.integers(0, 40, n), rng.integers(0, 30, n)
    rating = np.clip(2 + 2 * (user % 2) * (movie % 2) + rng.integers(-1, 2, n), 1, 5)
    return pl.DataFrame(
        {"userId": user, "movieId": movie, "rating": rating, "timestamp": 880_000_000 + rng.integers(0, 10**7, n)}
    )


def test_ratings_with_time_are_recognised():
    found = gg.look(ratings())
    assert {column.name: column.role for column in found.columns} == {
        "userId": "ids", "movieId": "ids", "rating": "rating", "timestamp": "time",
    }  # fmt: skip
    assert found.choice.kind == "layered"
    assert (found.choice.axes, found.choice.label) == (("userId", "movieId"), "rating")
    assert found.alphabet == "1..5"
    assert "--alphabet" not in found.command  # what was read off the data is for a person to state
    assert "set alphabet=range(1, 6)" in found.to_state
    assert "--alphabet 1..5" in gg.look(ratings(), file="t.csv").to_state
    spread = gg.look(ratings().with_columns(rating=pl.col("rating") * 1.37 + pl.int_range(pl.len())))
    assert "label_bounds=(0, 810) to gg.certify_predictions" in spread.to_state


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_of_all_libraries_look_alike(library):
    table = ratings(200)
    native = {"pandas": table.to_pandas, "polars": lambda: table, "pyarrow": table.to_arrow}[library]()
    assert gg.look(native).to_dict() == gg.look(table).to_dict()


def test_one_checkerboard_where_layers_would_take_hours(monkeypatch):
    monkeypatch.setattr("gingham.summary.look.LARGE", 500)
    assert gg.look(ratings()).choice.kind == "coclustering"


def test_counts_are_no_ratings():
    rng = np.random.default_rng(1)
    table = pl.DataFrame({
        "user": rng.integers(0, 50, 900), "artist": [f"band {k}" for k in rng.integers(0, 60, 900)],
        "plays": np.floor(np.exp(rng.normal(3, 1.5, 900))).astype(int) + 1,
    })  # fmt: skip
    found = gg.look(table)
    assert found.column("plays").role == "count"
    assert (found.choice.kind, found.choice.weight, found.choice.label) == ("cooccurrence", "plays", None)
    # The name says nothing here, the values do.
    assert gg.look(table.rename({"plays": "x"})).choice.weight == "x"


def test_purchases_are_pairs_without_labels():
    rng = np.random.default_rng(2)
    table = pl.DataFrame({
        "order_id": range(500), "customer": rng.integers(0, 40, 500),
        "product": [f"p{k}" for k in rng.integers(0, 25, 500)],
    })  # fmt: skip
    found = gg.look(table)
    assert (found.choice.kind, found.choice.axes, found.choice.label) == ("cooccurrence", ("customer", "product"), None)
    assert any("'order_id' has a new value in every row" in line for line in found.findings)
    assert "ranking" in found.others[0][1]


@pytest.mark.parametrize("names", [("from", "to"), ("source_id", "target_id"), ("protein_a", "protein_b"), ("x", "y")])
def test_edges_are_a_graph(names):
    rng = np.random.default_rng(3)
    ends = rng.integers(0, 40, (300, 2))
    text = [[f"n{k}" for k in column] for column in ends.T]
    assert gg.look(pl.DataFrame(dict(zip(names, text)))).choice.kind == "graph"
    if names != ("x", "y"):
        assert gg.look(pl.DataFrame(dict(zip(names, ends.T)))).choice.kind == "graph"


def test_users_and_movies_with_the_same_numbers_are_no_graph():
    assert gg.look(ratings().select("userId", "movieId")).choice.kind == "cooccurrence"


def test_classes_are_told_from_ids():
    table = ratings().select("userId", "movieId").with_columns(vote=pl.Series(["yes", "no", "absent", "yes"] * 200))
    found = gg.look(table)
    assert (found.choice.kind, found.choice.label, found.alphabet) == ("layered", "vote", "absent,no,yes")


def test_a_property_of_a_side_is_no_side():
    table = (
        ratings()
        .with_columns(genre=pl.format("g{}", pl.col("movieId") % 25))
        .select("genre", "userId", "movieId", "rating")
    )
    found = gg.look(table)
    assert found.choice.axes == ("userId", "movieId")
    assert any("'genre' is a property of 'movieId'" in line for line in found.findings)


def wide(holes: bool = True) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    cells = rng.integers(1, 8, (60, 12)).astype(float)
    if holes:
        cells[rng.random(cells.shape) < 0.2] = np.nan
    table = pl.DataFrame(cells, schema=[f"question {k}" for k in range(12)]).fill_nan(None)
    return table.insert_column(0, pl.Series("person", [f"p{k}" for k in range(60)]))


def test_a_wide_table_has_a_side_in_its_columns():
    found = gg.look(wide())
    assert found.wide.axes == ("person", "column")
    assert found.choice.kind == "layered"
    assert len(found.wide.columns) == 12
    assert "--wide" in found.command
    assert any("empty" in line for line in found.findings)
    numbered = gg.look(wide().with_columns(person=pl.int_range(pl.len())))
    assert numbered.wide.axes == ("person", "column")
    without = gg.look(wide().drop("person"))
    assert without.wide.axes == ("row", "column")


def test_a_wide_table_of_counts():
    rng = np.random.default_rng(5)
    counts = rng.poisson(0.4, (50, 20)) * rng.geometric(0.2, (50, 20))
    found = gg.look(pl.DataFrame(counts, schema=[f"w{k}" for k in range(20)]))
    assert (found.choice.kind, found.wide.zeros) == ("cooccurrence", False)


def test_what_has_no_two_sides_is_said():
    found = gg.look(pl.DataFrame({"name": ["a", "b", "c"] * 30, "height": np.linspace(1, 2, 90)}))
    assert (found.choice, found.command) == (None, "")
    assert "two sides" in found.advice[0]


def test_one_row_an_item_is_said():
    table = ratings().with_columns(userId=pl.int_range(pl.len()))
    found = gg.look(table)
    assert any("one row per 'userId'" in line for line in found.advice)
    assert found.choice is None  # unless somebody says that it is a side
    assert gg.look(table, axes=["userId", "movieId"]).choice.label == "rating"


def test_a_table_about_items_is_none_of_who_met_what():
    rng = np.random.default_rng(6)
    people = {
        "user": range(300),
        "age": rng.integers(18, 80, 300),
        "job": [f"job {k}" for k in rng.integers(0, 21, 300)],
    }
    found = gg.look(pl.DataFrame(people))
    assert found.choice is None
    assert "item_info=" in found.advice[-1]
    assert "--info" in gg.look(pl.DataFrame(people), file="t.csv").advice[-1]


def test_missing_values_duplicates_and_skew_are_said():
    table = ratings().with_columns(rating=pl.when(pl.int_range(pl.len()) % 50 == 0).then(None).otherwise("rating"))
    table = pl.concat([table, table.head(30)])
    text = str(gg.look(table))
    assert "missing" in text
    assert "repeat an earlier pair" in text
    assert "of the pairs occur" in text
    assert "--drop-missing" in gg.look(table).command
    busy = pl.concat([ratings(), *[ratings(60).with_columns(userId=pl.lit(1, pl.Int64))] * 30])
    assert "busiest 10%" in str(gg.look(busy))


def test_what_is_known_need_not_be_guessed():
    found = gg.look(ratings(), axes=["userId", "timestamp"], label="movieId")
    assert (found.choice.axes, found.choice.label) == (("userId", "timestamp"), "movieId")
    with pytest.raises(gg.GinghamError, match="no column 'stars'"):
        gg.look(ratings(), label="stars")


def test_it_shows_in_a_notebook_and_takes_no_array():
    assert "<table" in gg.look(ratings())._repr_html_()
    assert gg.look(ratings()).to_frame("polars").columns == ["name", "role", "n_values", "n_missing", "says"]
    with pytest.raises(gg.GinghamError, match="takes a frame"):
        gg.look(np.zeros((3, 2)))
    with pytest.raises(gg.GinghamError, match="empty"):
        gg.look(pl.DataFrame({"a": []}))


def labelled(name: str, values: np.ndarray) -> pl.DataFrame:
    rng = np.random.default_rng(7)
    ids = {"user": rng.integers(0, 60, len(values)), "game": [f"g{k}" for k in rng.integers(0, 40, len(values))]}
    return pl.DataFrame(ids | {name: values})


@pytest.mark.parametrize(("apart", "share"), [(-1, 0.2), (0, 0.77), (99, 0.1)])
def test_a_number_apart_from_the_scale_is_asked_about(apart, share):
    rng = np.random.default_rng(8)
    rating = np.where(rng.random(900) < share, apart, rng.integers(1, 11, 900))
    found = gg.look(labelled("rating", rating), file="t.csv")
    assert f"Does {apart} mean that there is no rating?" in found.advice[-1]
    assert found.alphabet == "1..10"
    assert "--missing" not in found.command
    assert f"--missing {apart}" in found.others[-1][1]
    assert not gg.look(labelled("rating", rng.integers(0, 11, 900))).advice  # a zero now and then is a rating


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ("1 2 3 4 5 -8 -9", "-9 -8"), ("0 1 2 3 4 5 6 7 8 9 10 -8 -9", "-9 -8"), ("0 1 -8 -9", "-9 -8"),
        ("1 2 3 4 5 -1 -9", "-9 -1"), ("1 2 3 4 5 98 99", "98 99"), ("1 2 3 4 5 77 88 99", "77 88 99"),
        ("1 2 3 4 5 -9 99", "-9 99"), ("-3 -2 -1 0 1 2 3 -99", "-99"), ("-1 0 1 -9", "-9"),
        (".5 1 1.5 2 -8 -9", "-9 -8"),
        ("-1 0 1", ""), ("-1 1", ""), ("-2 -1 1 2", ""), ("-2 -1 0 1 2", ""), ("-2 0 2", ""), ("-9 -3 3 9", ""),
        ("-3 -2 -1 1 2 3 4 5", ""), ("1 2 3 4 5 8 9", ""), ("-1 -.5 0 .5 1 1.5", ""), ("-.5 0 .5 1", ""),
        ("1 2 97 98 99 96", ""),
    ],
)  # fmt: skip
def test_which_numbers_may_stand_for_a_missing_label(values, codes):
    scale = np.unique(np.array(values.split(), dtype=float))
    assert sentinels_of(scale).tolist() == [float(code) for code in codes.split()]


def test_two_numbers_apart_are_asked_about_together():
    rng = np.random.default_rng(8)
    drawn = rng.random(900)
    rating = np.select([drawn < 0.1, drawn < 0.3], [-9, -8], rng.integers(1, 6, 900))
    table = labelled("rating", rating)
    found = gg.look(table, file="t.csv")
    assert "Do -9 and -8 mean that there is no rating? Then add --missing -9 --missing -8." in found.advice[-1]
    assert found.alphabet == "1..5"
    assert found.others[-1][0] == "If -9 and -8 stand for a missing rating:"
    assert found.others[-1][1].endswith("--missing -9 --missing -8")
    assert "no rating? Then leave these rows out of the frame." in gg.look(table).advice[-1]


def test_a_frame_is_answered_in_python():
    """Whatever is said of a frame, it names no option of a terminal."""
    rng = np.random.default_rng(12)
    coded = labelled("rating", np.where(rng.random(900) < 0.3, -9, rng.integers(1, 6, 900)))
    scales = pl.DataFrame({f"q{k}": rng.normal(0, 10.0**k, 60) for k in range(6)})
    tables = {
        "time": ratings(), "codes": coded, "texts": labelled("vote", np.array(["yes", "no, never", "no"] * 300)),
        "missing": ratings().with_columns(rating=pl.when(pl.col("userId") > 3).then("rating")),
        "property": ratings().with_columns(genre=pl.format("g{}", pl.col("movieId") % 25)),
        "third": ratings().with_columns(store_id=pl.Series(rng.integers(0, 9, 800))),
        "wide": wide().fill_null(-9), "scales": scales, "facts": ratings().with_columns(userId=pl.int_range(pl.len())),
    }  # fmt: skip
    for name, table in tables.items():
        found = gg.look(table)
        assert "--" not in str(found), name
        assert "--" not in found._repr_html_().replace("var(--", ""), name
        here, there = gg.look(table).to_dict(), gg.look(table, file="t.csv").to_dict()
        assert {key for key in here if here[key] != there[key]} <= {
            "findings", "advice", "to_state", "command", "others",
        }, name  # fmt: skip
    assert "with missing values." in gg.look(tables["wide"]).advice[-1]
    assert "gg.SurveyCoClustering" in gg.look(scales).advice[0]
    assert "set time='timestamp'" in str(gg.look(ratings()))


def test_a_heavy_tail_is_said():
    hours = np.exp(np.random.default_rng(9).normal(1, 2, 900)).round(1)
    assert "heavy tail" in gg.look(labelled("hours", hours)).advice[-1]
    assert not gg.look(labelled("hours", np.log1p(hours))).advice


def test_weeks_are_no_labels_and_litres_no_counts():
    rng = np.random.default_rng(10)
    table = pl.DataFrame({
        "household": rng.integers(0, 200, 4000), "product": rng.integers(0, 80, 4000),
        "week": rng.integers(1, 53, 4000), "store_id": rng.integers(1, 30, 4000),
    })  # fmt: skip
    found = gg.look(table)
    assert (found.choice.kind, found.choice.axes, found.choice.label) == (
        "cooccurrence",
        ("household", "product"),
        None,
    )
    assert found.column("week").role == "time"
    assert gg.look(table.select("household", "week", x="product")).choice.axes == ("household", "x")
    panel = pl.DataFrame(
        {"state": rng.integers(0, 30, 600), "year": 1900 + rng.integers(0, 20, 600), "share": rng.random(600)}
    )
    assert gg.look(panel).choice[:3] == ("layered", ("state", "year"), "share")
    fuel = pl.DataFrame(
        {
            "car": rng.integers(0, 200, 4000),
            "driver": rng.integers(0, 80, 4000),
            "litres": rng.gamma(5, 8, 4000).round(),
        }
    )
    assert gg.look(fuel).choice[:3] == ("layered", ("car", "driver"), "litres")


@pytest.mark.parametrize(
    "table",
    [
        labelled("rating", np.arange(900) % 5 + 1),
        labelled("liked", np.array(["yes", "no", "no"] * 300)),
        labelled("plays", np.floor(np.exp(np.random.default_rng(1).normal(3, 1.5, 900))) + 1),
        pl.DataFrame({"from": np.arange(60) % 20, "to": 20 - np.arange(60) % 21}).filter(pl.col("from") < pl.col("to")),
    ],
    ids=["ratings", "classes", "counts", "edges"],
)
def test_the_code_of_a_frame_runs(table):
    found = gg.look(table)
    names = {"gg": gg, "frame": table}
    exec(found.code.replace("()", "(random_state=0)"), names)
    assert names["model"].summary_.n_observed
    assert found.code.splitlines()[-1] in str(found)


numbers = st.one_of(st.integers(-(10**6), 10**6).map(float), st.floats(-1e12, 1e12))


@settings(deadline=None, max_examples=50)
@given(st.lists(numbers, min_size=1, max_size=80))
def test_a_proposed_alphabet_is_one_that_is_taken(values):
    listed = proposed_alphabet(np.array(values))
    if listed:
        assert np.isin(np.array(values), parse_alphabet(listed, False)).all()


@settings(deadline=None, max_examples=50)
@given(numbers, numbers)
def test_proposed_bounds_are_ones_that_are_taken(one, other):
    from gingham.cli.tables.arguments import parse_bounds

    low, high = parse_bounds(proposed_bounds(min(one, other), max(one, other)))
    assert low <= min(one, other) <= max(one, other) <= high


@pytest.mark.parametrize("listed", ["1..5", "0..5:0.5", "0.5,1,4.5", "-1,0,7", "0.1..0.7:0.1"])
def test_an_alphabet_means_the_same_in_python(listed):
    assert list(eval(as_python(listed, texts=False))) == list(parse_alphabet(listed, False))


def test_an_alphabet_of_texts_in_python():
    assert as_python("no,1..3,it's", texts=True) == str(["no", "1..3", "it's"])


def test_proposals_are_short():
    assert proposed_alphabet(np.array([1, 2, 4, 5])) == "1..5"
    assert proposed_alphabet(np.array([0.5, 1.0, 4.5])) == "0.5,1,4.5"
    assert proposed_alphabet(np.array([0.5, 1.0, 1.5, 2.5, 3.0])) == "0.5..3:0.5"
    assert proposed_alphabet(np.array([0.1, 0.2, 0.3, 0.7])) == "0.1..0.7:0.1"  # 0.3, not 0.30000000000000004
    assert proposed_alphabet(np.array([0.1, 0.25, 0.3, 0.7])) == "0.1,0.25,0.3,0.7"
    assert proposed_alphabet(np.array(["b", "a"])) == "a,b"
    assert proposed_alphabet(np.array(["a,b", "c"])) == ""
    assert proposed_bounds(-9.95, 9.97) == "-10,10"
    assert proposed_bounds(0, 816) == "0,820"
    assert proposed_bounds(3, 3) == "0,6"


def test_a_table_of_facts_and_dates_are_recognised():
    names = [f"cheese {i}" for i in range(26)]
    facts = pl.DataFrame({"cheese": names, "milk": ["cow", "goat, raw"] * 13, "rind": ["white", "blue"] * 13})
    assert "one row per 'cheese'" in gg.look(facts).advice[-1]
    for day in ("08.07.2023", "8/7/2023", "2023-07-08"):
        dated = ratings().with_columns(day=pl.lit(day)).with_row_index()
        dated = dated.with_columns(
            day=pl.when(pl.col("index") % 2 == 0).then("day").otherwise(pl.lit(day[::-1][::-1].replace("7", "6", 1)))
        )
        assert gg.look(dated.drop("index")).column("day").role == "time", day
