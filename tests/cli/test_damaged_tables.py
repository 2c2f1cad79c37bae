"""Damaged and odd tables end with a sentence; benchmarks/robustness/files.py tries hundreds."""

from __future__ import annotations

import io
import random
import re

import polars as pl
import pytest

from gingham.cli.tables.kinds import KINDS
from gingham.data import table_files

FIT = ("--axes", "user,movie", "--label", "rating", "-q")


@pytest.fixture
def parquet(planted) -> bytes:
    stream = io.BytesIO()
    planted(200).write_parquet(stream)
    return stream.getvalue()


def test_damaged_parquet(gingham, parquet, tmp_path):
    rng = random.Random(1)
    for _ in range(4):
        changed = bytearray(parquet)
        for _ in range(30):
            changed[rng.randrange(len(changed))] ^= rng.randrange(1, 256)
        (tmp_path / "t.parquet").write_bytes(changed)
        ran = gingham("fit", tmp_path / "t.parquet", *FIT, "--out", tmp_path / "m.gingham")
        assert ran.code == 2
        assert "cannot be read as parquet" in ran.err
        assert "panicked" not in ran.err


@pytest.mark.parametrize("death", ["import os; os.abort()", "raise BaseException", "import sys; sys.exit(9)"])
def test_parquet_that_takes_its_reader_down(gingham, parquet, tmp_path, monkeypatch, death):
    (tmp_path / "t.parquet").write_bytes(parquet)
    monkeypatch.setattr(table_files, "TRY_PARQUET", death)
    ran = gingham("fit", tmp_path / "t.parquet", *FIT, "--out", tmp_path / "m.gingham")
    assert ran.code == 2
    assert "cannot be read as parquet: it is damaged" in ran.err


def test_a_panic_is_a_sentence(gingham, ratings, tmp_path, monkeypatch):
    class PanicException(BaseException):
        """As the library below polars raises it."""

    def panics(*args, **more):
        raise PanicException("called `Option::unwrap()` on a `None` value")

    monkeypatch.setattr(pl, "read_csv", panics)
    ran = gingham("fit", ratings, *FIT, "--out", tmp_path / "m.gingham")
    assert ran.code == 2
    assert "cannot be read as csv: called `Option::unwrap()`" in ran.err


ODD = {
    "UTF-16": ("user,movie,rating\n1,a,3\n".encode("utf-16"), "is in UTF-16"),
    "a byte order mark": (b"\xef\xbb\xbfuser,movie,rating\n1,a,3\n2,b,4\n", None),
    "carriage returns": (b"user,movie,rating\r\n1,a,3\r\n2,b,4\r\n", None),
    "old Mac line ends": (b"user,movie,rating\r1,a,3\r2,b,4\r", "no rows"),
    "quotes and line ends in ids": (b'user,movie,rating\n1,"a\nb",3\n2,"a ""b""",4\n', None),
    "an open quote": (b'user,movie,rating\n1,"a,3\n2,b,4\n', "cannot be read|missing|no rows"),
    "a column twice": (b"user,user,movie,rating\n1,1,a,3\n", "'user' twice"),
    "semicolons": (b"user;movie;rating\n1;a;3\n2;b;4\n", None),
    "huge numbers": (b"user,movie,rating\n1,a,1e400\n2,b,4\n", "infinite"),
    "labels beyond 64 bits": (b"user,movie,rating\n1,a,99999999999999999999999\n2,b,4\n", None),
    "one row": (b"user,movie,rating\n1,a,3\n", None),
    "one text as long as a book": (b"user,movie,rating\n" + b"x" * 10**6 + b",a,3\n2,b,4\n", None),
    "a gzip file within a gzip file": (b"\x1f\x8b" * 20, "damaged gzip"),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_csv(gingham, tmp_path, name):
    content, words = ODD[name]
    (tmp_path / "t.csv").write_bytes(content)
    ran = gingham("fit", tmp_path / "t.csv", *FIT, "--out", tmp_path / "m.gingham")
    assert ran.code == (0 if words is None else 2), ran.err
    assert re.search(words or "", ran.err)
    assert "empty slice" not in ran.err
    assert "Internal error" not in ran.err


@pytest.mark.parametrize("kind", KINDS)
def test_one_row(gingham, tmp_path, kind):
    (tmp_path / "t.csv").write_text("user,movie,rating\n1,a,3\n")
    label = () if kind in ("graph", "cooccurrence", "ranking") else ("--label", "rating")
    fit = ("fit", tmp_path / "t.csv", "--axes", "user,movie", *label, "--model", kind, "-q")
    ran = gingham(*fit, "--out", tmp_path / "m.gingham")
    assert ran.code in (0, 2)
    assert "slice" not in ran.err
    assert "encountered" not in ran.err
