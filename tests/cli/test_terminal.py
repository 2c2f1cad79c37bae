"""What stands in a table or a file's name neither steers a terminal nor runs in a spreadsheet, and nothing is lost."""

from __future__ import annotations

import csv
import io
import json
import os
import sys

import polars as pl
import pytest

from gingham.cli import console, table_files

EVIL = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202emoc.exe\x7f"
FIT = ("--axes", f"user{EVIL},movie", "--label", "rating", "--clusters", "2,2", "--beta", "1", "-q")


def steers(text: str) -> bool:
    return any(ord(c) in console.SHOWN and c not in "\n\t" for c in text)


@pytest.fixture
def evil(planted, tmp_path):
    path = tmp_path / "t.csv"
    table = planted(200).with_columns(movie=pl.col("movie") + EVIL)
    table.rename({"user": f"user{EVIL}"}).write_csv(path)
    return path


def test_names_and_ids_lose_what_steers_a_terminal(gingham, evil, tmp_path):
    out = tmp_path / "m.gingham"
    ran = gingham("fit", evil, *FIT, "--out", out)
    assert ran.code == 0, ran.err
    assert r"user\x1b[31mred" in ran.out
    assert not steers(ran.out + ran.err)
    for more in (("--label", f"no{EVIL}"), ("--axes", f"no{EVIL},movie"), ("--loss", EVIL)):
        ran = gingham("fit", evil, *FIT, *more, "--out", out)
        assert ran.code == 2
        assert not steers(ran.out + ran.err)
    ran = gingham("certify", out, evil, "--alphabet", "1..5")
    assert ran.code == 0, ran.err
    assert not steers(ran.out + ran.err)


def test_json_keeps_every_character(gingham, evil, tmp_path):
    ran = gingham("fit", evil, *FIT, "--json", "--out", tmp_path / "m.gingham")
    assert not steers(ran.out)
    assert f"user{EVIL}" in json.loads(ran.out)["axes"]


def test_a_table_on_a_terminal_and_in_a_pipe(evil, monkeypatch, capsysbinary):
    table_files.write_table(pl.read_csv(evil).head(2), None)
    piped = capsysbinary.readouterr().out
    assert EVIL in piped.decode()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    table_files.write_table(pl.read_csv(evil).head(2), None)
    shown = capsysbinary.readouterr().out.decode()
    assert not steers(shown)
    assert "film" in shown
    with pytest.raises(table_files.GinghamError, match="cannot be printed to a terminal"):
        table_files.write_table(pl.read_csv(evil), None, "parquet")


def test_parquet_goes_through_a_pipe(capsysbinary):
    table = pl.DataFrame({"a": [1, 2]})
    table_files.write_table(table, "-", "parquet")
    assert pl.read_parquet(io.BytesIO(capsysbinary.readouterr().out)).equals(table)


def test_nothing_is_taken_for_a_smiley(gingham, planted, tmp_path):
    planted(200).rename({"user": ":smile:"}).write_csv(tmp_path / "t.csv")
    ran = gingham("fit", tmp_path / "t.csv", "--axes", ":smile:,movie", "--label", "rating", "--out", tmp_path / "m")
    assert ":smile:" in ran.out


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode there")
def test_file_names_that_are_not_utf_8(gingham, ratings, tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")
    ran = gingham("fit", odd, *FIT)
    assert ran.code == 2
    assert r"caf\udce9.csv" in ran.err
    with open(odd, "wb") as stream:  # noqa: PTH123
        stream.write(ratings.read_bytes())
    model = os.fsdecode(os.fsencode(tmp_path) + b"/mod\xe8le.gingham")
    ran = gingham("fit", odd, "--axes", "user,movie", "--label", "rating", "--clusters", "2", "--out", model)
    assert ran.code == 0, ran.err
    assert r"mod\udce8le" in ran.out
    for command in (
        ("predict", model, odd),
        ("certify", model, odd, "--alphabet", "1..5"),
        ("describe", model, "--items"),
    ):
        assert gingham(*command).code == 0
    ran = gingham("report", model, odd, "--out", tmp_path / "r.html")
    assert ran.code == 0, ran.err


FORMULAS = ["=1+1", "+A1", "-2+3", "@SUM(A1)", "\t=1", "plain", "a=b", "5"]


def test_spreadsheets_run_nothing_on_request(gingham, tmp_path):
    table = pl.DataFrame({"user": FORMULAS * 6, "=movie": [*"abcdef"] * 8, "rating": [-1.5, 2.0, 3.0] * 16})
    table.write_csv(tmp_path / "t.csv")
    fit = ("fit", tmp_path / "t.csv", "--axes", "user,=movie", "--label", "rating", "--clusters", "2", "-q")
    assert gingham(*fit, "--out", tmp_path / "m.gingham").code == 0
    for command in (
        ("predict", tmp_path / "m.gingham", tmp_path / "t.csv"),
        ("describe", tmp_path / "m.gingham", "--items"),
    ):
        as_it_is = gingham(*command).out
        assert "'" not in as_it_is
        ran = gingham(*command, "--spreadsheet-safe")
        cells = [cell for row in csv.reader(io.StringIO(ran.out)) for cell in row]
        for text in FORMULAS[:5]:
            assert f"'{text}" in cells
            assert text not in cells
        for text in FORMULAS[5:]:
            assert text in cells
    assert (
        "-1.5" in gingham("predict", *command[1:2], tmp_path / "t.csv", "--spreadsheet-safe").out
    )  # a number runs not


def test_predictions_overwrite_no_column(gingham, ratings, model, tmp_path):
    first = tmp_path / "p.csv"
    assert gingham("predict", model, ratings, "--out", first).code == 0
    ran = gingham("predict", model, first)
    assert ran.code == 2
    assert "has a column 'predicted_rating' already" in ran.err
    pl.read_csv(ratings).with_columns(p_3=pl.lit("mine")).write_csv(first)
    ran = gingham("predict", model, first, "--proba")
    assert ran.code == 2
    assert "has a column 'p_3' already" in ran.err
