"""A command never writes over what it reads, a device, a pipe or a link; what cannot be saved is refused first."""

from __future__ import annotations

import os
import re
import sys
from itertools import combinations
from pathlib import Path
from typing import get_type_hints
from zipfile import ZipFile

import polars as pl
import pytest
from typer.main import get_command

import gingham as gg
from gingham.cli.app import GROUPS, app, command_of, roles_of
from gingham.files import Reads, Writes, checkpoint_of
from gingham.fitting.checkpoints import CheckpointFile

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


COMMANDS = {name: command_of(name) for names in GROUPS.values() for name in names.split()}
# How files stand in these options.
FORMS = {"relation": "a,b=c:{}", "info": "a={}", "side": "a={}", "labels": "{},other.csv"}
# Words in the help of an option that names a file, and the options that have them and name none.
OF_FILES = re.compile(r"\b(files?|tables?|page|picture|standard (in|out)put)\b", re.IGNORECASE)
NO_FILES = {"format", "items", "title", "axes", "time"}


def form(command: str, parameter: str) -> str:
    return "{}" if (command, parameter) == ("recommend", "info") else FORMS.get(parameter, "{}")


def parts(command):
    """What a command reads, and what it writes, by the name of its parameter."""
    roles = roles_of(COMMANDS[command])
    return tuple([name for name, role in roles.items() if isinstance(role, kind)] for kind in (Reads, Writes))


def arguments(command, named):
    """A command line in which the given parameters name the given files, and others what they must."""
    line = [command]
    for parameter in get_command(app).commands[command].params:
        name = parameter.name
        if name in named:
            value = form(command, name).format(named[name])
        elif parameter.required or (command == "certify" and name == "file"):
            value = "other.csv"
        else:
            continue
        line += [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]
    return line


READ_AND_WRITTEN = [(c, read, written) for c in COMMANDS for read in parts(c)[0] for written in parts(c)[1]]
WRITTEN_TWICE = [(c, *pair) for c in COMMANDS for pair in combinations(parts(c)[1], 2)]


@pytest.fixture
def precious(tmp_path, monkeypatch):
    """Files that no command can read, so that a sentence about what is in one shows that it was opened."""
    (tmp_path / "precious.csv").write_bytes(b"\x00precious")
    (tmp_path / "other.csv").write_bytes(b"\x00other")
    (tmp_path / "soft.csv").symlink_to("precious.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "precious.csv")
    (tmp_path / "folder").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_parameter_that_names_a_file_says_whether_it_is_read_or_written():
    for name, command in get_command(app).commands.items():
        roles, hints = roles_of(COMMANDS[name]), get_type_hints(COMMANDS[name])
        for parameter in command.params:
            kind, said = str(hints.get(parameter.name)), OF_FILES.search(getattr(parameter, "help", None) or "")
            if "Path" in kind or ("str" in kind and said and parameter.name not in NO_FILES):
                assert parameter.name in roles, (name, parameter.name, parameter.help)
        for parameter in parts(name)[0]:
            value = form(name, parameter).format("f")
            assert "f" in roles[parameter].names([value] if "list" in str(hints[parameter]) else value), parameter


def test_the_search_finds_what_commands_read_and_write():
    assert ("recommend", "data", "out") in READ_AND_WRITTEN
    assert ("fit", "info", "out") in READ_AND_WRITTEN
    assert sorted(WRITTEN_TWICE) == [
        ("certify", "save", "save_predictor"),
        ("recommend", "page", "out"),
        ("timeline", "out", "members"),
        ("update", "out", "changes"),
        ("watch", "state", "plot"),
    ]


@pytest.mark.parametrize(("command", "read", "written"), READ_AND_WRITTEN)
@pytest.mark.parametrize(
    "names",
    [
        ("precious.csv", "precious.csv"), ("precious.csv", "./precious.csv"), ("precious.csv", "folder/precious.csv"),
        ("soft.csv", "precious.csv"), ("precious.csv", "hard.csv"), ("precious.csv", "soft.csv"),
    ],
)  # fmt: skip
def test_an_output_is_never_an_input(gingham, precious, command, read, written, names):
    before = contents(precious)
    ran = gingham(*arguments(command, {read: names[0], written: names[1]}))
    assert ran.code == 2
    assert re.search("is also an input of this command|is a link to", ran.err), ran.err
    assert contents(precious) == before


@pytest.mark.parametrize(("command", "first", "second"), WRITTEN_TWICE)
@pytest.mark.parametrize("names", [("new.csv", "new.csv"), ("new.csv", "./new.csv"), ("precious.csv", "hard.csv")])
def test_two_outputs_are_two_files(gingham, precious, command, first, second, names):
    before = contents(precious)
    ran = gingham(*arguments(command, {first: names[0], second: names[1]}))
    assert ran.code == 2
    assert "use separate files" in ran.err
    assert contents(precious) == before


def test_recommend_leaves_its_table_alone(gingham, here):
    before = contents(here)
    ran = gingham("recommend", "m.gingham", "film 1", "--data", "r.csv", "--out", "r.csv")
    assert "is also an input of this command" in ran.err
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
    assert "is also an input of this command" in ran.err
    assert contents(here) == before


@pytest.mark.parametrize("command", ["fit", "predict", "report", "describe"])
def test_links_devices_and_pipes_stay(gingham, here, command):
    os.mkfifo("pipe")
    (here / "precious").write_text("precious")
    (here / "link").symlink_to("precious")
    start = {
        "fit": ("fit", "r.csv", *FIT, "--out"), "predict": ("predict", "m.gingham", "r.csv", "--out"),
        "report": ("report", "m.gingham", "r.csv", "--out"), "describe": ("describe", "m.gingham", "--out"),
    }[command]  # fmt: skip
    before = contents(here)
    for target, words in (("pipe", "a pipe"), ("link", "is a link"), ("/dev/null", "a device")):
        ran = gingham(*start, target)
        assert ran.code == 2
        assert words in ran.err
    assert contents(here) == before
    assert (here / "link").is_symlink()


def foreign_zip(path):
    with ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", '{"format": "another program", "kind": "Checkpoint"}')


FOREIGN = {
    "a text": lambda path: path.write_text("a diary"),
    "nothing": lambda path: path.touch(),
    "a zip file": foreign_zip,
    "a model": lambda path: path.write_bytes(Path("m.gingham").read_bytes()),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_checkpoint_takes_nobodys_place(gingham, here, kind, resume):
    kept = checkpoint_of(here / "new.gingham")
    FOREIGN[kind](kept)
    before = contents(here)
    ran = gingham("fit", "r.csv", *FIT, "--out", "new.gingham", *resume)
    assert ran.code == 2
    assert "is not a checkpoint of gingham" in ran.err
    assert contents(here) == before


def test_a_checkpoint_that_gingham_wrote_is_begun_again(gingham, here):
    kept = checkpoint_of(here / "new.gingham")
    CheckpointFile(kept, "another fit", 0).write()
    assert gingham("fit", "r.csv", *FIT, "--clusters", "2,2", "--beta", "1", "--out", "new.gingham").code == 0
    assert not kept.exists()


def test_a_file_that_takes_the_place_of_a_checkpoint_during_the_fit_stays(gingham, here, monkeypatch):
    kept, save = checkpoint_of(here / "new.gingham"), gg.CoClusteringRegressor.save
    monkeypatch.setattr(gg.CoClusteringRegressor, "save", lambda *args: (kept.write_text("a diary"), save(*args)))
    assert gingham("fit", "r.csv", *FIT, "--clusters", "2,2", "--beta", "1", "--out", "new.gingham").code == 0
    assert kept.read_text() == "a diary"


def test_a_checkpoint_is_no_input(gingham, here):
    (here / "r.csv").rename(here / "r.csv.checkpoint")
    ran = gingham("fit", "r.csv.checkpoint", *FIT, "--format", "csv", "--out", "r.csv")
    assert "is also an input of this command" in ran.err


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
