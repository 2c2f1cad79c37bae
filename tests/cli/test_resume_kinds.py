"""Every kind of model goes on from its checkpoint and ends with the model of the uninterrupted fit."""

from __future__ import annotations

import pytest

from gingham import storage
from gingham.cli.tables.kinds import KINDS as ALL_KINDS
from gingham.files import checkpoint_of
from gingham.fitting.checkpoints import CheckpointFile
from model_files import contents
from model_kinds import DISTILLED, write_tables

KINDS = tuple(kind for kind in ALL_KINDS if kind != "ranking")  # its fit is short and keeps no checkpoint


class Stopped(MemoryError):
    """What ends a fit in the middle, as a full memory would."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("kinds"))


def stop_after(monkeypatch, writes: int) -> None:
    """Let the process die right after so many checkpoints."""
    write, done = CheckpointFile.write, []

    def counted(keeper):
        write(keeper)
        done.append(1)
        if len(done) == writes:
            raise Stopped

    monkeypatch.setattr(CheckpointFile, "write", counted)


@pytest.mark.parametrize("kind", KINDS)
def test_resumed_equals_uninterrupted(gingham, cases, kind, tmp_path, monkeypatch):
    whole, out = tmp_path / "whole.gingham", tmp_path / "m.gingham"
    options = ["--clusters", "auto"] if kind == "cooccurrence" else []
    options += ["--no-summary"] if kind in DISTILLED else []
    options += ["--starts", "4"] if kind == "graph" else []  # one alone is done before it is interrupted
    assert gingham(*cases[kind].fit(whole, *options)).code == 0
    fit = cases[kind].fit(out, *options)
    with monkeypatch.context() as patch:
        stop_after(patch, 3)
        assert gingham(*fit, "--checkpoint-every", "0").code == 2
    assert not out.exists()
    assert checkpoint_of(out).exists()
    known = storage.read(checkpoint_of(out))[1]["stages"]
    assert known
    ran = gingham(*fit, "--resume")
    assert ran.code == 0, ran.err
    assert "Continuing after" in ran.err
    assert contents(out) == contents(whole)
    assert not checkpoint_of(out).exists()


@pytest.mark.parametrize("kind", ["graph", "ranking"])
def test_resume_without_a_checkpoint_begins_at_the_beginning(gingham, cases, kind, tmp_path):
    out = tmp_path / "m.gingham"
    ran = gingham(*cases[kind].fit(out, "--resume"))
    assert ran.code == 0
    assert "no checkpoint" in ran.err
