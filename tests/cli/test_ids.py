"""Ids in a text file keep their text: in a fit, in predictions and in what is written back."""

from __future__ import annotations

import csv
import datetime
import io
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham import storage

ALIKE = ["017", "17", "17.0", "+17", " 17", "1.7e1", "0017"]  # one number, seven ids
HUGE = [str(2**63), str(2**63 + 1), "-1", str(2**64), str(2**64 + 1), "5", str(-(2**70))]
NUL = ["a", "a\0", "a\0\0", "\0", "b"]
KINDS = {
    "coclustering": ("--label", "rating", "--clusters", "2,2", "--beta", "1"),
    "graph": ("--clusters", "2"),
    "cooccurrence": ("--clusters", "2,2"),
    "ranking": (),
}


def rows(users) -> list[tuple[str, str, int]]:
    """Every user rates every film, each in a way of their own."""
    return [(user, f"film {m}", 1 + (u * (m + 1) + m) % 5) for u, user in enumerate(users) for m in range(6)]


def write(path, users, separator=","):
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=separator)
        writer.writerow(["user", "movie", "rating"])
        writer.writerows(rows(users))
    return path


def fitted(gingham, table, out, kind="coclustering", *more):
    ran = gingham("fit", table, "--axes", "user,movie", "--model", kind, *KINDS[kind], "-q", "--out", out, *more)
    assert ran.code == 0, ran.err
    return gg.load(out)


def listed(gingham, model, axis="user") -> list[str]:
    """The items of an axis, as the table of groups has them."""
    ran = gingham("describe", model, "--items")
    assert ran.code == 0, ran.err
    return sorted(row["item"] for row in csv.DictReader(io.StringIO(ran.out)) if row["side"] == axis)


@pytest.mark.parametrize("users", [ALIKE, HUGE, NUL], ids=["alike", "huge", "nul"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("graph", "ranking")])
def test_ids_of_a_text_file_stay_apart(gingham, kind, users, tmp_path):
    table, out, told = write(tmp_path / "t.csv", users), tmp_path / "m.gingham", tmp_path / "p.csv"
    fitted(gingham, table, out, kind, *(("--holdout", "0") if kind == "coclustering" else ()))
    assert listed(gingham, out) == sorted(users)
    ran = gingham("predict", out, table, "--out", told)
    assert ran.code == 0, ran.err
    assert "not seen" not in ran.err
    with told.open(newline="", encoding="utf-8") as stream:
        assert [row["user"] for row in csv.DictReader(stream)] == [user for user, _, _ in rows(users)]


@pytest.mark.parametrize("kind", ["graph", "ranking"])
def test_nodes_and_products_stay_apart(gingham, kind, tmp_path):
    table, out = tmp_path / "t.tsv", tmp_path / "m.gingham"
    with table.open("w", newline="", encoding="utf-8") as stream:
        pairs = [(u, v) for u in ALIKE for v in ALIKE if u != v and hash((len(u), len(v))) % 3]
        csv.writer(stream, delimiter="\t").writerows([("user", "movie"), *pairs])
    fitted(gingham, table, out, kind)
    assert set(listed(gingham, out, "movie" if kind == "ranking" else "node")) == {v for pair in pairs for v in pair}


def test_each_has_its_own_prediction(gingham, tmp_path):
    table, out = tmp_path / "t.csv", tmp_path / "m.gingham"
    three = [("017", 1), ("17", 3), ("17.0", 5)]
    lines = [f"{user},{m},{r}" for user, r in three for m in range(5) for _ in range(20)]
    table.write_text("user,movie,rating\n" + "\n".join(lines))
    fitted(gingham, table, out, "coclustering", "--clusters", "3,1", "--beta", "5")
    (tmp_path / "p.csv").write_text("movie,user\n" + "\n".join(f"1,{user}" for user, _ in three))
    ran = gingham("predict", out, tmp_path / "p.csv")
    told = {row["user"]: float(row["predicted_rating"]) for row in csv.DictReader(io.StringIO(ran.out))}
    assert {user: round(rating) for user, rating in told.items()} == dict(three)


def test_other_spellings_of_a_known_number_are_unseen(gingham, tmp_path):
    table, out = write(tmp_path / "t.csv", ["17", "18", "19"]), tmp_path / "m.gingham"
    model = fitted(gingham, table, out)
    assert model.items_[0].tolist() == [17, 18, 19]  # numbers, as ever, where no text is lost by it
    assert model.predict(pl.DataFrame({"user": [17], "movie": ["film 1"]})).shape == (1,)
    spelled = ["017", "17.0", "17"]
    ran = gingham("predict", out, write(tmp_path / "other.csv", spelled))
    assert "12 in 'user', of 18 rows" in ran.err
    assert [row["user"] for row in csv.DictReader(io.StringIO(ran.out))] == [user for user, _, _ in rows(spelled)]
    whole = pl.DataFrame({"user": [17.0, 18.0], "movie": ["film 1", "film 2"]})  # numbers have no spelling
    whole.write_parquet(tmp_path / "whole.parquet")
    assert "not seen" not in gingham("predict", out, tmp_path / "whole.parquet").err


def test_a_model_of_numbers_and_a_model_of_text_take_each_others_tables(gingham, tmp_path):
    text = write(tmp_path / "t.csv", ["17", "18", "x"])
    numbers = pl.DataFrame(rows([17, 18, 19]), schema=["user", "movie", "rating"], orient="row")
    numbers.write_parquet(tmp_path / "n.parquet")
    fitted(gingham, text, tmp_path / "t.gingham")
    fitted(gingham, tmp_path / "n.parquet", tmp_path / "n.gingham")
    assert "6 in 'user', of 18 rows" in gingham("predict", tmp_path / "t.gingham", tmp_path / "n.parquet").err
    assert "6 in 'user', of 18 rows" in gingham("predict", tmp_path / "n.gingham", text).err


def test_a_model_made_in_python_keeps_text(gingham, tmp_path):
    table = write(tmp_path / "t.csv", ["017", "17", "18"])
    model = gg.CoClusteringRegressor(2, beta=1.0, random_state=0)
    X = [(user, movie) for user, movie, _ in rows(["017", "17", "18"])]
    model.fit(pl.DataFrame(X, schema=["user", "movie"], orient="row"), [1, 2, 3] * 6)
    model.save(tmp_path / "m.gingham")
    ran = gingham("predict", tmp_path / "m.gingham", table)
    assert ran.code == 0, ran.err
    assert "not seen" not in ran.err


def test_a_word_for_missing_among_numbers_is_a_missing_id(gingham, tmp_path):
    table = write(tmp_path / "t.csv", ["17", "NaN", "18"])
    ran = gingham("fit", table, "--axes", "user,movie", "--label", "rating", "--out", tmp_path / "m.gingham")
    assert ran.code == 2
    assert "6 of 18 rows have a missing value (column 'user'" in ran.err
    fitted(gingham, write(tmp_path / "n.csv", ["x", "NaN", "18"]), tmp_path / "m.gingham")
    assert listed(gingham, tmp_path / "m.gingham") == ["18", "NaN", "x"]


COLUMNS = {
    "decimal": ([Decimal("17.00"), Decimal("17.01"), Decimal("12345678901234567890.12")], pl.Decimal(38, 2)),
    "date": ([datetime.date(2020, 1, day) for day in (1, 2, 3)], pl.Date),
    "datetime": ([datetime.datetime(2020, 1, 1, 0, 0, 0, us) for us in (1, 2, 3)], pl.Datetime("us")),
    "time": ([datetime.time(1, 2, 3, us) for us in (1, 2, 3)], pl.Time),
    "128 bits": ([2**63, 2**63 + 1, -1], pl.Int128),
    "unsigned": ([2**63, 2**63 + 1, 1], pl.UInt64),
    "categories": (["a", "b", "c"], pl.Categorical),
    "truth": ([True, False, True], pl.Boolean),
    "numbers": ([1.5, 2.5, 3.5], pl.Float64),
}


@pytest.mark.parametrize("kind", ["coclustering", "cooccurrence"])
@pytest.mark.parametrize("name", COLUMNS)
def test_ids_of_other_types_stay_apart(gingham, name, kind, tmp_path):
    values, dtype = COLUMNS[name]
    table = pl.DataFrame(rows("xyz"), schema=["user", "movie", "rating"], orient="row").with_columns(
        pl.Series("user", np.repeat(np.array(values, dtype=object), 6).tolist(), dtype=dtype)
    )
    path, out, told = tmp_path / "t.parquet", tmp_path / "m.gingham", tmp_path / "p.parquet"
    table.write_parquet(path)
    fitted(gingham, path, out, kind)
    assert len(listed(gingham, out)) == len(set(values))
    assert storage.read(out, gg.models.base._class_named)
    ran = gingham("predict", out, path, "--out", told)
    assert ran.code == 0, ran.err
    assert "not seen" not in ran.err
    assert pl.read_parquet(told)["user"].equals(table["user"])  # as it came


@pytest.mark.parametrize(("value", "kind"), [(b"a\0", "Binary"), (datetime.timedelta(1), "Duration")])
def test_ids_without_a_text_of_their_own_are_refused_by_name(gingham, value, kind, tmp_path):
    table = pl.DataFrame({"user": [value] * 8, "movie": [*"abcd"] * 2, "rating": [1, 2] * 4})
    table.write_parquet(tmp_path / "t.parquet")
    for model in ("coclustering", "cooccurrence", "ranking"):
        more = () if model == "ranking" else ("--label", "rating")
        ran = gingham("fit", tmp_path / "t.parquet", "--axes", "user,movie", "--model", model, *more)
        assert ran.code == 2
        assert f"Column 'user' holds {kind}" in ran.err
