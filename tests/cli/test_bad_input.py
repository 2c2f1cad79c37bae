"""More than sixty kinds of bad input: each ends with its sentence and exit code 2, none with a traceback."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gingham import storage

FIT = ["--axes", "user,movie", "--label", "rating", "-q", "--out", "out.gingham"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, ratings, model) -> Path:
    """Tables and model files that are wrong in one way each."""
    here = tmp_path_factory.mktemp("bad")
    good = pl.read_csv(ratings)
    (here / "good.csv").write_bytes(ratings.read_bytes())
    (here / "good.gingham").write_bytes(model.read_bytes())
    (here / "empty.csv").write_text("")
    (here / "blank.csv").write_text("\n\n")
    (here / "header.csv").write_text("user,movie,rating\n")
    (here / "ragged.csv").write_text("user,movie,rating\n1,a,3\n2,b,4,5,6\n")
    (here / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (here / "latin.csv").write_bytes("user,movie,rating\n1,caf\xe9,3\n".encode("latin-1"))
    (here / "mystery.dat").write_text("user,movie,rating\n1,a,3\n")
    (here / "notparquet.parquet").write_text("hello")
    (here / "cut.parquet").write_bytes(_parquet(good)[:300])
    (here / "broken.ndjson").write_text('{"user": 1, "movie": "a", "rating": 3}\n{"user": 2, "mov')
    (here / "nested.ndjson").write_text('{"user": [1, 2], "movie": "a", "rating": 3}\n')
    (here / "nestedlabel.ndjson").write_text('{"user": 1, "movie": "a", "rating": {"stars": 3}}\n')
    (here / "cut.csv.gz").write_bytes(gzip.compress(ratings.read_bytes())[:200])
    good.with_columns(rating=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("rating")).write_csv(
        here / "holes.csv"
    )
    good.with_columns(user=pl.when(pl.int_range(pl.len()) == 7).then(None).otherwise("user")).write_csv(
        here / "noid.csv"
    )
    good.with_columns(rating=pl.lit(None, dtype=pl.Int64)).write_csv(here / "nolabels.csv")
    good.with_columns(rating=pl.lit(float("inf"))).write_parquet(here / "infinite.parquet")
    good.with_columns(rating=pl.lit(float("nan"))).write_parquet(here / "nan.parquet")
    good.with_columns(rating=pl.date(2020, 1, 1)).write_parquet(here / "dates.parquet")
    good.with_columns(rating=pl.format("w{}", pl.int_range(pl.len()) * 7)).head(600).write_csv(here / "texts.csv")
    pl.DataFrame({"user": range(1200), "movie": range(1200), "rating": [f"w{k}" for k in range(1200)]}).write_csv(
        here / "manytexts.csv"
    )
    good.with_columns(n=pl.lit(-1)).write_csv(here / "negative.csv")
    good.with_columns(n=pl.lit(0)).write_csv(here / "zero.csv")
    good.with_columns(n=pl.lit("two")).write_csv(here / "wordweight.csv")
    good.with_columns(n=pl.lit(0.5)).write_csv(here / "halves.csv")
    good.select("user", "rating").write_csv(here / "nomovie.csv")
    good.with_columns(rating=pl.col("rating") + 7).write_csv(here / "shifted.csv")
    good.with_columns(movie=pl.format("{} remake", "movie")).write_csv(here / "remakes.csv")
    good.with_columns(rating=pl.when(pl.col("rating") > 2).then(1e308).otherwise(-1e308)).write_csv(here / "vast.csv")
    good.with_columns(n=pl.lit(1e308)).write_csv(here / "vastweights.csv")
    (here / "text.gingham").write_text("not a zip")
    (here / "void.gingham").write_bytes(b"")
    (here / "cut.gingham").write_bytes(model.read_bytes()[:400])
    _flip(model, here / "flipped.gingham")
    _rewrite(model, here / "newer.gingham", lambda m: m.update(version=99))
    _rewrite(model, here / "alien.gingham", lambda m: m.update(format="other"))
    _rewrite(model, here / "kind.gingham", lambda m: (m.update(kind="Exploit"), _model(m).update(name="Exploit")))
    _rewrite(model, here / "load.gingham", lambda m: (m.update(kind="load"), _model(m).update(name="load")))
    _rewrite(model, here / "two_kinds.gingham", lambda m: m.update(kind="GraphClustering"))
    _rewrite(model, here / "stateless.gingham", lambda m: m.update(state={}))
    _rewrite(model, here / "params.gingham", lambda m: _model(m)["items"]["params"].update(surprise=1))
    strange = {"$": "python", "items": []}
    _rewrite(model, here / "tag.gingham", lambda m: _model(m)["items"]["fitted"].update(beta_=strange))
    _rewrite(model, here / "lost.gingham", lambda m: m["checksums"].update({"9999.npy": "00"}))
    with zipfile.ZipFile(here / "zip.gingham", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with zipfile.ZipFile(here / "json.gingham", "w") as archive:
        archive.writestr("manifest.json", "{")
    storage.write(here / "foreign.gingham", "CoClusteringRegressor", {"params": {}, "fitted": {"x": np.zeros(2)}})
    (here / "file").write_text("a file")
    return here


def _model(manifest: dict) -> dict:
    """What a manifest says of the model itself."""
    return manifest["state"]["model"]


def _parquet(table: pl.DataFrame) -> bytes:
    import io

    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


def _rewrite(model: Path, target: Path, change) -> None:
    """A model file with a changed manifest and valid arrays."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "manifest.json":
                manifest = json.loads(data)
                change(manifest)
                data = json.dumps(manifest).encode()
            new.writestr(name, data)


def _flip(model: Path, target: Path) -> None:
    """One array is another one than the manifest's checksum says."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data[:-1] + bytes([data[-1] ^ 1]) if name == "0000.npy" else data)


def fit(file: str, *more: str, drop: tuple[str, ...] = ()) -> list[str]:
    options = list(FIT)
    for name in drop:
        at = options.index(name)
        del options[at : at + 2]
    return ["fit", file, *options, *more]


CASES: dict[str, tuple[list[str], str]] = {
    # the file
    "no such file": (fit("absent.csv"), "There is no file 'absent.csv'"),
    "a folder": (fit("."), "is a folder"),
    "empty": (fit("empty.csv"), "is empty"),
    "blank lines": (fit("blank.csv"), "is empty"),
    "header only": (fit("header.csv"), "no rows"),
    "ragged": (fit("ragged.csv"), "cannot be read as csv"),
    "binary": (fit("binary.csv"), "cannot be read as csv"),
    "latin-1": (fit("latin.csv"), "is not encoded in UTF-8"),
    "unknown suffix": (fit("mystery.dat"), "add --format"),
    "unknown format": (fit("good.csv", "--format", "xls"), "--format 'xls' is unknown"),
    "wrong format": (fit("good.csv", "--format", "parquet"), "cannot be read as parquet"),
    "not parquet": (fit("notparquet.parquet"), "cannot be read as parquet"),
    "cut parquet": (fit("cut.parquet"), "cannot be read as parquet"),
    "broken ndjson": (fit("broken.ndjson"), "cannot be read as ndjson"),
    "cut gzip": (fit("cut.csv.gz"), "damaged gzip"),
    # the columns
    "unknown axis": (fit("good.csv", "--axes", "user,film", drop=("--axes",)), "a column 'film'"),
    "axis twice": (fit("good.csv", "--axes", "user,user", drop=("--axes",)), "names a column twice"),
    "no axis": (fit("good.csv", "--axes", ",", drop=("--axes",)), "--axes is empty"),
    "axes missing": (fit("nomovie.csv", drop=("--axes",)), "gingham needs two sides"),
    "label missing": (fit("good.csv", "--model", "coclustering", drop=("--label",)), "name it with --label"),
    "unknown label": (fit("good.csv", "--label", "stars", drop=("--label",)), "a column 'stars'"),
    "label is an axis": (fit("good.csv", "--label", "user", drop=("--label",)), "both an axis and the label"),
    "unknown weight": (fit("good.csv", "--weight", "n"), "--weight names a column 'n'"),
    # the values
    "missing labels": (fit("holes.csv"), "--drop-missing"),
    "missing ids": (fit("noid.csv"), "--drop-missing"),
    "no labels at all": (fit("nolabels.csv", "--drop-missing"), "No row is left"),
    "infinite labels": (fit("infinite.parquet"), "infinite in row 0"),
    "nan labels": (fit("nan.parquet"), "missing value"),
    "dates as labels": (fit("dates.parquet"), "labels are numbers or text"),
    "lists as ids": (fit("nested.ndjson"), "holds lists or objects"),
    "objects as labels": (fit("nestedlabel.ndjson"), "labels are numbers or text"),
    "thousands of texts": (fit("manytexts.csv"), "at most 1000"),
    "text for a numeric loss": (fit("texts.csv", "--loss", "absolute"), "needs numeric labels"),
    "measurements for a loss of classes": (
        fit("halves.csv", "--label", "n", "--loss", "log", drop=("--label",)),
        "classes",
    ),
    "text for numbers of a joint model": (
        fit("texts.csv", "--model", "joint", "--loss", "quadratic"),
        "needs numeric labels",
    ),
    "negative weights": (fit("negative.csv", "--weight", "n"), "weights must be finite and ≥ 0"),
    "zero weights": (fit("zero.csv", "--weight", "n"), "All weights are zero"),
    "words as weights": (fit("wordweight.csv", "--weight", "n"), "must be numeric"),
    # the options
    "unknown option": (fit("good.csv", "--colour", "red"), "No such option"),
    "unknown loss": (fit("good.csv", "--loss", "hinge"), "--loss 'hinge' is unknown"),
    "clusters not numbers": (fit("good.csv", "--clusters", "many"), "must be integers"),
    "too many sizes": (fit("good.csv", "--clusters", "2,2,2"), "3 numbers for 2 axes"),
    "zero clusters": (fit("good.csv", "--clusters", "0,2"), "must be an integer ≥ 1"),
    "negative clusters": (fit("good.csv", "--clusters", "-3"), "must be an integer ≥ 1"),
    "too many cells": (fit("good.csv", "--clusters", "2", "--axes", "user,movie,rating", drop=("--axes",)), "both an"),
    "negative beta": (fit("good.csv", "--beta", "-1"), "must be a finite number"),
    "beta not a number": (fit("good.csv", "--beta", "big"), "--beta"),
    "beta nan": (fit("good.csv", "--beta", "nan"), "must be a finite number"),
    "label outside the alphabet": (fit("good.csv", "--alphabet", "1..3"), "not in the alphabet"),
    "empty alphabet": (fit("good.csv", "--alphabet", ","), "--alphabet is empty"),
    "words in the alphabet": (fit("good.csv", "--alphabet", "one,two"), "must list numbers"),
    "bad range": (fit("good.csv", "--alphabet", "1..x"), "a range is written as 1..5"),
    "backward range": (fit("good.csv", "--alphabet", "5..1"), "has 0 values"),
    "unknown objective": (fit("good.csv", "--objective", "fame"), "objective='fame' is unknown"),
    "unknown solver": (fit("good.csv", "--solver", "luck"), "solver='luck' is unknown"),
    "no starts": (fit("good.csv", "--starts", "0"), "--starts"),
    "no sweeps": (fit("good.csv", "--max-iter", "0"), "--max-iter"),
    "all held out": (fit("good.csv", "--holdout", "1"), "must be at least 0 and below 1"),
    "negative holdout": (fit("good.csv", "--holdout", "-0.2"), "must be at least 0 and below 1"),
    "negative seed": (fit("good.csv", "--seed", "-1"), "--seed"),
    "seed of 23 digits": (fit("good.csv", "--seed", "12345678901234567890123"), "--seed"),
    "labels of 1e308": (fit("vast.csv"), "is too large"),
    "weights of 1e308": (fit("vastweights.csv", "--weight", "n"), "more than 2**53"),
    "beta of 1e308": (fit("good.csv", "--beta", "1e308"), "is too large"),
    "an alphabet of two billion": (fit("good.csv", "--alphabet", "1..2000000000"), "has 2,000,000,000 values"),
    "an alphabet without end": (fit("good.csv", "--alphabet", "1..99999999999999999999999"), "values; 1 to"),
    "target is a folder": (fit("good.csv", "--out", ".", drop=("--out",)), "is a folder"),
    "target folder is absent": (fit("good.csv", "--out", "no/where.gingham", drop=("--out",)), "does not exist"),
    "target under a file": (fit("good.csv", "--out", "file/x.gingham", drop=("--out",)), "does not exist"),
    # model files
    "no model": (["predict", "absent.gingham", "good.csv"], "There is no model file"),
    "model is a folder": (["predict", ".", "good.csv"], "There is no model file"),
    "model is text": (["predict", "text.gingham", "good.csv"], "not a gingham model file"),
    "model is empty": (["predict", "void.gingham", "good.csv"], "not a gingham model file"),
    "model is a table": (["predict", "good.csv", "good.csv"], "not a gingham model file"),
    "cut model": (["predict", "cut.gingham", "good.csv"], "not a gingham model file"),
    "flipped bit": (["predict", "flipped.gingham", "good.csv"], "does not match its checksum"),
    "newer model": (["predict", "newer.gingham", "good.csv"], "format version 99"),
    "another program's zip": (["predict", "alien.gingham", "good.csv"], "not a gingham model file"),
    "zip without manifest": (["predict", "zip.gingham", "good.csv"], "damaged"),
    "manifest is not JSON": (["predict", "json.gingham", "good.csv"], "damaged"),
    "unknown kind": (["predict", "kind.gingham", "good.csv"], "unknown kind 'Exploit'"),
    "kind is a function": (["predict", "load.gingham", "good.csv"], "unknown kind 'load'"),
    "kind of another model": (["predict", "two_kinds.gingham", "good.csv"], "contains another model"),
    "no state": (["predict", "stateless.gingham", "good.csv"], "damaged or foreign"),
    "unknown parameter": (["predict", "params.gingham", "good.csv"], "damaged"),
    "unknown kind of value": (["predict", "tag.gingham", "good.csv"], "unknown kind of value"),
    "lost part": (["predict", "lost.gingham", "good.csv"], "missing or broken"),
    "foreign state": (["predict", "foreign.gingham", "good.csv"], "damaged or foreign"),
    # predict, certify, report
    "predict without a column": (["predict", "good.gingham", "nomovie.csv"], "a column 'movie'"),
    "unknown rule": (["predict", "good.gingham", "good.csv", "--rule", "best"], "rule='best' is unknown"),
    "unknown target": (["predict", "good.gingham", "good.csv", "--out", "x.doc"], "add --format"),
    "unknown bound": (["certify", "good.gingham", "good.csv", "--bound", "magic"], "magic"),
    "delta of one": (["certify", "good.gingham", "good.csv", "--delta", "1"], "strictly between 0 and 1"),
    "delta of zero": (["certify", "good.gingham", "good.csv", "--delta", "0"], "strictly between 0 and 1"),
    "median under a Gibbs bound": (["certify", "good.gingham", "good.csv", "--predictor", "median"], "holdout"),
    "unknown predictor": (["certify", "good.gingham", "good.csv", "--predictor", "oracle"], "'oracle' is unknown"),
    "other alphabet": (["certify", "good.gingham", "good.csv", "--alphabet", "1..9"], "same alphabet"),
    "labels outside": (["certify", "good.gingham", "shifted.csv"], "not in the alphabet"),
    "items unknown": (["certify", "good.gingham", "remakes.csv"], "none of the ids is among the items"),
    "label column gone": (["certify", "good.gingham", "good.csv", "--label", "stars"], "a column 'stars'"),
    "report to a folder": (["report", "good.gingham", "good.csv", "--out", "."], "is a folder"),
    "report of nothing": (["report", "good.gingham", "absent.csv"], "There is no file"),
    "report without model": (["report", "absent.gingham", "good.csv"], "There is no model file"),
    # other models
    "unknown model": (fit("good.csv", "--model", "magic"), "--model 'magic' is unknown"),
    # several tables
    "relation half said": (fit("good.csv", "--model", "joint", "-r", "movie,genre"), "AXES=LABEL:FILE"),
    "relation without its file": (fit("good.csv", "--model", "joint", "-r", "movie,genre=has:no.csv"), "no file"),
    "relation without its column": (fit("good.csv", "--model", "joint", "-r", "movie,genre=n:zero.csv"), "'genre'"),
    "relation twice": (fit("good.csv", "--model", "joint", "-r", "user,movie=n:zero.csv"), "the table itself"),
    "relation of another kind": (
        fit("good.csv", "--model", "tree", "-r", "user,movie=n:zero.csv"),
        "add --model joint",
    ),
    "joint clusters in words": (fit("good.csv", "--model", "joint", "--clusters", "user=many"), "mode=number"),
    "joint clusters of nobody": (fit("good.csv", "--model", "joint", "--clusters", "actor=3"), "mode 'actor'"),
    "no clusters of a mode": (fit("good.csv", "--model", "joint", "--clusters", "user=0"), "mode=number"),
    "cold start of a grid": (fit("good.csv", "--model", "coclustering", "--cold-start"), "no use for --cold-start"),
    # bounds
    "bounds in words": (fit("good.csv", "--bounds", "low,high"), "must be two numbers"),
    "one bound": (fit("good.csv", "--bounds", "3"), "must be two numbers"),
    "bounds upside down": (fit("good.csv", "--bounds", "5,1"), "below the largest"),
    "bounds too narrow": (fit("good.csv", "--bounds", "2,4"), "the labels go from 1 to 5"),
    "bounds and alphabet": (fit("good.csv", "--bounds", "1,5", "--alphabet", "1..5"), "others have --alphabet"),
    "bounds of words": (fit("texts.csv", "--bounds", "0,1"), "others have --alphabet"),
    # what a kind has no use for
    "bounds of counts": (
        fit("good.csv", "--model", "cooccurrence", "--bounds", "0,1", drop=("--label",)),
        "no use for --bounds",
    ),
    "beta of layers": (fit("good.csv", "--model", "layered", "--beta", "1"), "no use for --beta"),
    "objective of a tree": (fit("good.csv", "--model", "tree", "--objective", "certificate"), "no use for --objective"),
    "merges of a grid": (fit("good.csv", "--model", "coclustering", "--merges", "0,1,2"), "no use for --merges"),
    "loss of a Bayesian model": (fit("good.csv", "--model", "bayesian", "--loss", "absolute"), "no use for --loss"),
    "held-out pairs": (
        fit("good.csv", "--model", "graph", "--holdout", ".1", drop=("--label",)),
        "remove --holdout",
    ),
    "all tokens held out": (
        fit("good.csv", "--model", "cooccurrence", "--holdout", "1", drop=("--label",)),
        "at least 0 and below 1",
    ),
    "counts of three": (
        fit("good.csv", "--model", "cooccurrence", "--axes", "user,movie,rating", drop=("--axes", "--label")),
        "two columns of ids",
    ),
    "rule of a joint model": (["predict", "good.gingham", "good.csv", "--axes", "user,movie"], "of a joint model"),
    "report with bad bounds": (["report", "good.gingham", "good.csv", "--bounds", "x"], "must be two numbers"),
    "layers of too many words": (fit("texts.csv", "--model", "layered"), "layers take at most 255"),
    "graph of three": (
        fit("good.csv", "--model", "graph", "--axes", "user,movie,rating", drop=("--axes", "--label")),
        "two columns of ids",
    ),
    "graph without its column": (
        fit("good.csv", "--model", "graph", "--axes", "user,friend", drop=("--axes", "--label")),
        "a column 'friend'",
    ),
    "graph with words as weights": (
        fit("good.csv", "--model", "graph", "--axes", "user,rating", "--weight", "movie", drop=("--axes", "--label")),
        "finite numbers",
    ),
    "negative counts": (
        fit("negative.csv", "--model", "cooccurrence", "--weight", "n", drop=("--label",)),
        "counts are at least 0",
    ),
    "simplify to nothing": (["simplify", "good.gingham", "good.csv", "--clusters", "0,1"], "must be an integer ≥ 1"),
    "simplify below the loss": (["simplify", "good.gingham", "good.csv", "--max-loss", "0"], "cannot be kept"),
    "unknown data set": (["datasets", "netflix"], "There is no data set 'netflix'"),
    "groups of nothing": (["describe", "absent.gingham"], "There is no model file"),
    # the command itself
    "unknown command": (["frobnicate"], "No such command"),
    "too many arguments": (["predict", "a", "b", "c"], "unexpected extra argument"),
    "too few arguments": (["predict", "a"], "Missing argument"),
}


def test_there_are_sixty_cases():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_bad_input_gets_its_sentence(gingham, folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    arguments, sentence = CASES[name]
    ran = gingham(*arguments)
    assert ran.code == 2, ran.err
    assert sentence in " ".join(ran.err.split())
    assert "Traceback" not in ran.err + ran.out
    assert "Internal error" not in ran.err
    assert not (folder / "out.gingham").exists()


def test_unstated_labels_are_not_certified(gingham, ratings, tmp_path):
    out = tmp_path / "m.gingham"
    gingham("fit", ratings, *FIT[:4], "-q", "--out", out)
    ran = gingham("certify", out, ratings)
    assert ran.code == 2
    assert "--alphabet 1..5" in ran.err
    assert gingham("certify", out, ratings, "--alphabet", "1..5", "--no-progressive").code == 0


def test_a_surprise_is_one_sentence_too(gingham, ratings, monkeypatch, tmp_path):
    def broken(*_, **__):
        raise RuntimeError("out of cheese")

    monkeypatch.setattr("gingham.cli.tables.adapter.read_table", broken)
    ran = gingham("fit", ratings, *FIT[:4], "--out", tmp_path / "m.gingham")
    assert ran.code == 1
    assert "out of cheese" in ran.err
    assert "Traceback" not in ran.err
