"""The JSON writer and data finder of the benchmark scripts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import common


def test_write_leaves_the_five_keys_and_no_path(tmp_path: Path) -> None:
    args = argparse.Namespace(out=tmp_path / "deep" / "x.json", seed=3, quick=True)
    common.write(args, {"m": np.int64(4)}, {"a": np.array([1.0, np.nan]), "b": (np.float32(0.5), None)})
    document = json.loads(args.out.read_text())
    assert set(document) == {"versions", "seed", "machine", "settings", "results"}
    assert document["results"] == {"a": [1.0, None], "b": [0.5, None]}
    assert document["settings"] == {"quick": True, "m": 4}
    assert str(tmp_path) not in args.out.read_text()
    assert [p.name for p in args.out.parent.iterdir()] == ["x.json"]


def test_missing_data_is_a_sentence_with_its_source(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"ml100k\.npz.*grouplens"):
        common.data_file(tmp_path, "ml100k.npz")
    with pytest.raises(SystemExit, match="--data"):
        common.data_file(None, "ml100k.npz")


def test_clock_and_best_of_measure() -> None:
    took: dict[str, float] = {}
    with common.clock(took, "fit_"):
        sum(range(1000))
    assert set(took) == {"fit_wall_s", "fit_cpu_s"}
    assert common.best_of(lambda: None, repeats=2) >= 0


def arguments(monkeypatch: pytest.MonkeyPatch, *given: str) -> argparse.Namespace:
    monkeypatch.setattr(sys, "argv", ["script.py", *given])
    return common.arguments("words", "made_up", lambda parser: common.peer_option(parser, "sib", "--sib"))


def test_quick_runs_begin_anew_and_leave_results_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert arguments(monkeypatch).out == common.RESULTS / "made_up.json"
    assert arguments(monkeypatch, "--quick").out == common.QUICK / "made_up.json"
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"results": {"a": 1}}))
    assert common.previous(arguments(monkeypatch, "--out", str(old))) == {"a": 1}
    assert common.previous(arguments(monkeypatch, "--quick", "--out", str(old))) == {}


def test_peers_are_named_by_variables_or_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GINGHAM_SIB", "/some/python")
    assert arguments(monkeypatch).sib == "/some/python"
    monkeypatch.delenv("GINGHAM_SIB")
    assert arguments(monkeypatch).sib is None
    assert common.importable("sib", "numpy")
    assert not common.importable("sib", "no_such_module")
    assert capsys.readouterr().out == "left out: sib-clustering (GINGHAM_SIB names no Python)\n"
