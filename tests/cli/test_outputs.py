"""A command never writes over what it reads, a device, a pipe or a link; what cannot be saved is refused first."""

from __future__ import annotations

import os
import sys

import polars as pl
import pytest

import gingham as gg
from gingham.cli.fit import checkpoint_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and pipes of Unix")
FIT = ("--axes", "user,movie", "--label", "rating", "-q")


@pytest.fixture
def here(ratings, model, tmp_path, monkeypatch):
    """A folder with a table and a model, each under three names: its own, and a link of either kind."""
    (tmp_path / "r.csv").write_bytes(ratings.read_bytes())
    (tmp_path / "m.gingham").write_bytes(model.read_bytes())
    (tmp_path / "soft.csv").symlink_to("r.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "r.csv")
    (tmp_path / "hard.gingham").hardlink_to(tmp_path / "m.gingham")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


OVER_AN_INPUT = {
    "fit": ("fit", "r.csv", *FIT, "--out", "r.csv"),
    "fit, a soft link is read": ("fit", "soft.csv", *FIT, "--out", "r.csv"),
    "fit, a hard link is written": ("fit", "r.csv", *FIT, "--out", "hard.csv"),
    "fit, another table": (
        "fit", "r.csv", *FIT, "--model", "joint", "-r", "movie,user=rating:hard.csv", "--out", "hard.csv",
    ),
    "predict over its table": ("predict", "m.gingham", "r.csv", "--out", "r.csv"),
    "predict over its model": ("predict", "m.gingham", "r.csv", "--out", "m.gingham"),
    "predict, a hard link": ("predict", "m.gingham", "soft.csv", "--out", "hard.csv"),
    "clusters": ("clusters", "m.gingham", "--out", "hard.gingham"),
    "simplify": ("simplify", "m.gingham", "r.csv", "--clusters", "1,1", "--out", "m.gingham"),
    "report": ("report", "m.gingham", "r.csv", "--out", "m.gingham"),
    "path": ("path", "r.csv", "--axes", "user,movie", "--label", "rating", "--plot", "r.csv"),
    "recommend": ("recommend", "m.gingham", "--all", "--page", "m.gingham"),
}  # fmt: skip


@pytest.mark.parametrize("case", OVER_AN_INPUT)
def test_an_output_is_never_an_input(gingham, here, case):
    before = contents(here)
    ran = gingham(*OVER_AN_INPUT[case])
    assert ran.code == 2
    assert "is also read by this command" in ran.err
    assert contents(here) == before


def test_standard_input_is_an_input(gingham, here):
    before = contents(here)
    table = os.open("r.csv", os.O_RDONLY)
    own = os.dup(0)
    os.dup2(table, 0)
    try:
        ran = gingham("fit", "-", *FIT, "--out", "r.csv")
    finally:
        os.dup2(own, 0)
    assert "is also read by this command" in ran.err
    assert contents(here) == before


@pytest.mark.parametrize("command", ["fit", "predict", "report", "clusters", "path"])
def test_links_devices_and_pipes_stay(gingham, here, command):
    os.mkfifo("pipe")
    (here / "precious").write_text("precious")
    (here / "link").symlink_to("precious")
    start = {
        "fit": ("fit", "r.csv", *FIT, "--out"), "predict": ("predict", "m.gingham", "r.csv", "--out"),
        "report": ("report", "m.gingham", "r.csv", "--out"), "clusters": ("clusters", "m.gingham", "--out"),
        "path": ("path", "r.csv", "--axes", "user,movie", "--label", "rating", "--plot"),
    }[command]  # fmt: skip
    before = contents(here)
    for target, words in (("pipe", "a pipe"), ("link", "is a link"), ("/dev/null", "a device")):
        ran = gingham(*start, target)
        assert ran.code == 2
        assert words in ran.err
    assert contents(here) == before
    assert (here / "link").is_symlink()


def test_a_checkpoint_takes_nobodys_place(gingham, here):
    kept = checkpoint_of(here / "new.gingham")
    kept.write_text("a diary")
    ran = gingham("fit", "r.csv", *FIT, "--out", "new.gingham")
    assert ran.code == 2
    assert "that file is something else" in ran.err
    assert kept.read_text() == "a diary"
    kept.rename("r.csv.checkpoint")
    ran = gingham("fit", "r.csv.checkpoint", *FIT, "--format", "csv", "--out", "r.csv")
    assert "is also read by this command" in ran.err


def test_what_cannot_be_saved_is_refused_before_the_fit(gingham, here, monkeypatch):
    monkeypatch.setattr(gg.CoClusteringRegressor, "fit", lambda *_: pytest.fail("the fit began"))
    ran = gingham("fit", "r.csv", *FIT, "--out", "n" * 256)
    assert "File name too long" in ran.err
    ran = gingham("fit", "r.csv", *FIT, "--out", "n" * 250)  # there is no room for the name of the checkpoint
    assert "File name too long" in ran.err
    pl.read_csv("r.csv").with_columns(user=pl.lit(b"\xff").cast(pl.Binary)).write_parquet("binary.parquet")
    ran = gingham("fit", "binary.parquet", *FIT, "--out", "new.gingham")
    assert ran.code == 2
    assert "Column 'user' holds Binary" in ran.err
