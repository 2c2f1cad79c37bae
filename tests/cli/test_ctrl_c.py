"""Ctrl-C at any sweep of any kind of model: the checkpoint stays, and the resumed fit ends as if nothing had been."""

from __future__ import annotations

import pkgutil

import pytest

import gingham as gg
from ctrl_c import press_ctrl_c
from gingham import storage
from gingham.cli.tables.kinds import KINDS as ALL_KINDS
from gingham.files import checkpoint_of
from gingham.fitting.checkpoints import CheckpointFile
from model_files import contents
from model_kinds import DISTILLED, write_tables

KINDS = tuple(kind for kind in ALL_KINDS if kind != "ranking")  # its fit is short and keeps no checkpoint
INTERRUPTED = 130  # the exit code where there is no model yet
AUTO = {
    "graph": ["--starts", "4"],
    "cooccurrence": ["--clusters", "auto"],
    **{kind: ["--no-summary"] for kind in DISTILLED},
}
# What has several stages: sizes and β that are chosen, several starts, certificates, trees that are compared.
STAGES = {
    "coclustering": ["--clusters", "auto", "--starts", "2", "--objective", "certificate"],
    "tree": ["--merges", "auto"],
    "graph": ["--clusters", "auto", "--starts", "3"],
    "joint": ["--starts", "2"],
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("kinds"))


class CtrlC:
    """Presses Ctrl-C, once, when a fit has offered its state so many times."""

    def __init__(self, monkeypatch, after: int | None) -> None:
        self.after, self.offers = after, 0
        keep = CheckpointFile.keep

        def offered(keeper, run, state, finished, *more):
            self.offers += 1
            if self.offers == self.after:
                press_ctrl_c()
            keep(keeper, run, state, finished, *more)

        monkeypatch.setattr(CheckpointFile, "keep", offered)


def offers_of(gingham, monkeypatch, fit) -> int:
    """How often an undisturbed fit offers its state; its model stays in the file."""
    with monkeypatch.context() as patch:
        watched = CtrlC(patch, None)
        assert gingham(*fit).code == 0
    return watched.offers


def interrupted_and_resumed(gingham, monkeypatch, fit, out, press, after: int, last: bool = False) -> None:
    """Fit, press Ctrl-C on the way, and go on; ``last`` says that the fit may have come to its end by then."""
    with monkeypatch.context() as patch:
        press(patch, after)
        ran = gingham(*fit)
    kept = checkpoint_of(out)
    if last and ran.code == 0 and not gg.load(out).interrupted_:
        assert not kept.exists()
        return
    assert kept.exists(), (after, ran)
    assert storage.read(kept)[1]["stages"] is not None
    if ran.code == 0:
        assert "--resume to continue" in ran.err
        assert gg.load(out).interrupted_
    else:
        assert ran.code == INTERRUPTED, ran.err
        assert not out.exists()
    ran = gingham(*fit, "--resume")
    assert ran.code == 0, ran.err
    assert not kept.exists()
    assert not gg.load(out).interrupted_


@pytest.mark.parametrize(
    ("kind", "options"),
    [*((kind, AUTO.get(kind, [])) for kind in KINDS), *STAGES.items()],
    ids=[*KINDS, *(f"{kind}-stages" for kind in STAGES)],
)
def test_ctrl_c_between_sweeps(gingham, cases, kind, options, tmp_path, monkeypatch):
    whole = tmp_path / "whole.gingham"
    n = offers_of(gingham, monkeypatch, cases[kind].fit(whole, *options))
    assert n >= 3
    for after in sorted({1, 2, n // 2, n}):
        last = after == n
        out = tmp_path / f"{after}.gingham"
        interrupted_and_resumed(gingham, monkeypatch, cases[kind].fit(out, *options), out, CtrlC, after, last)
        assert contents(out) == contents(whole), (after, n)


@pytest.mark.parametrize(
    ("kind", "options", "within"),
    [
        ("coclustering", [], "gingham.fitting.projection.half_step"),
        ("coclustering", ["--solver", "sweep", "--starts", "2"], "gingham.fitting.sweep.size_cost"),
        ("graph", ["--starts", "2"], "gingham.models.graph.solvers.hard_answers"),
    ],
    ids=["coclustering", "hard moves", "graph"],
)
def test_ctrl_c_in_the_middle_of_a_sweep(gingham, cases, kind, options, within, tmp_path, monkeypatch):
    whole = tmp_path / "whole.gingham"
    assert gingham(*cases[kind].fit(whole, *options)).code == 0
    function = pkgutil.resolve_name(within)

    def pressed(patch, after):
        calls = []

        def listens(*args, **more):
            calls.append(1)
            if len(calls) == after:
                press_ctrl_c()
            return function(*args, **more)

        patch.setattr(within, listens)

    for after in (2,) if kind == "graph" else (2, 3):  # a graph makes one posterior a start
        out = tmp_path / f"{after}.gingham"
        interrupted_and_resumed(gingham, monkeypatch, cases[kind].fit(out, *options), out, pressed, after)
        assert contents(out) == contents(whole), after
