"""The runner finds every benchmark, reads what it says of itself, and tells done from passed over and failed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import page
import run

SCRIPT = """'''What it measures.'''
import argparse, json, pathlib
FIGURES = {"ratio": "rows/*/ratio", "right": "right/*"}
FULL = ["--part one", "--part 'two'"]
parser = argparse.ArgumentParser()
parser.add_argument("--out", type=pathlib.Path)
parser.add_argument("--quick", action="store_true")
parser.add_argument("--part", default="whole")
args = parser.parse_args()
def arguments(description, name): ...
arguments("words", name="made_up")
before = json.loads(args.out.read_text())["results"]["rows"] if args.out.exists() else []
if args.part == "two" and (args.out.parent / "broken").exists():
    raise ValueError("broken")
print("left out: a peer")
results = {"rows": [*before, {"ratio": 0.5 + len(before), "part": args.part}], "right": [True, False]}
args.out.write_text(json.dumps({"results": results}))
args.out.with_suffix(".png").write_text("picture")
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of benchmarks with one script."""
    monkeypatch.setattr(run, "HERE", tmp_path)
    monkeypatch.setattr(run, "TIMES", tmp_path / "times.json")
    for folder in ("speed", "results"):
        (tmp_path / folder).mkdir()
    (tmp_path / "speed" / "made_up.py").write_text(SCRIPT)
    return tmp_path


def ended(folder: Path, code: str, limit: float = 60.0) -> str:
    """How a script of this code ends."""
    script = folder / "speed" / "other.py"
    script.write_text(f"{code}\narguments('words', 'other')")
    return run.run(run.Script(script), [], folder, limit)[0]


def test_every_script_that_takes_options_is_found_and_described() -> None:
    names = {script.path.name for script in run.scripts()}
    assert {"growth.py", "all_peers.py", "graph_latencies.py", "gpu_sweep.py"} <= names
    assert not {"peer_fit.py", "graph_peers.py", "graph_folds.py"} & names  # run by others
    assert [script.path.name for script in run.scripts(["speed/growth", "kills"])] == ["growth.py", "kills.py"]
    for script in run.scripts():
        assert script.purpose, script.title
        assert script.stated("FIGURES", None), script.title
        assert isinstance(script.stated("FULL", [""]), list), script.title
        text = script.path.read_text(encoding="utf-8")
        assert script.stated("ONLY_FULL", None) or "quick" in text, script.title


def test_main_figures_of_the_results_are_found() -> None:
    for script in run.scripts():
        if (run.HERE / "results" / f"{script.name}.json").exists():
            named = script.stated("FIGURES", {})
            found = script.figures(run.HERE / "results").split("; ")
            assert len(found) == len(named), f"{script.title}: {found}"


def test_small_versions_leave_files_and_print_their_figures(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # nothing of the first run is kept
        assert run.quick(run.scripts())
    assert json.loads((bench / "quick" / "made_up.json").read_text())["results"]["rows"] == [
        {"ratio": 0.5, "part": "whole"}
    ]
    assert not list((bench / "results").iterdir())
    printed = capsys.readouterr().out
    assert "done; left out: a peer" in printed
    assert "ratio 0.5; right 1 of 2" in printed
    assert "ratio 0.5; right 1 of 2" in (bench / "quick" / "index.html").read_text(encoding="utf-8")
    (bench / "speed" / "made_up.py").write_text(SCRIPT.replace("FULL = ", "ONLY_FULL = 'it is long'; FULL = "))
    assert run.quick(run.scripts())
    assert "only full: it is long" in capsys.readouterr().out
    assert not list((bench / "quick").glob("*.json"))


def test_full_runs_go_on_where_they_stopped(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (bench / "speed" / "another.py").write_text(SCRIPT.replace("made_up", "another"))
    (bench / "full" / "made_up").mkdir(parents=True)
    (bench / "full" / "made_up" / "broken").touch()
    assert not run.full(run.scripts(), everything=True)
    assert [row["part"] for row in json.loads((bench / "results" / "another.json").read_text())["results"]["rows"]] == [
        "one", "two",
    ]  # fmt: skip
    assert (bench / "results" / "another.png").exists()
    assert not (bench / "results" / "made_up.json").exists()
    (bench / "full" / "made_up" / "broken").unlink()
    (bench / "results" / "another.json").write_text("kept")
    assert run.full(run.scripts(), everything=True)
    assert "1 scripts were finished before" in capsys.readouterr().out
    assert (bench / "results" / "another.json").read_text() == "kept"
    rows = json.loads((bench / "results" / "made_up.json").read_text())["results"]["rows"]
    assert [row["part"] for row in rows] == ["one", "one", "two"]  # the script was handed what it had
    assert not (bench / "full").exists()
    assert list(json.loads((bench / "times.json").read_text())) == ["speed/another.py"]  # the other was interrupted


def test_passed_over_is_a_sentence_and_failed_is_not(bench: Path) -> None:
    assert ended(bench, "raise SystemExit('no data here')") == "passed over: no data here"
    some = f"import pathlib; pathlib.Path({str(bench / 'other.json')!r}).touch(); "
    assert ended(bench, some + "raise SystemExit('no data here')") == "in part: no data here"
    assert ended(bench, "print('some'); raise ValueError('a bug')") == "FAILED: ValueError: a bug"
    assert ended(bench, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)").startswith("FAILED")


def test_the_page_shows_who_is_ahead_and_by_how_much(tmp_path: Path) -> None:
    row = {"task": "ratings", "data": "<b>", "peer": "other", "version": "1", "gingham_cpu_s": 1.0, "peer_cpu_s": 10.0}
    ahead = {**row, "measure": "MAE", "gingham": 0.7, "peer_quality": 0.8, "times_faster": 10.0}
    behind = {**row, "measure": "NMI", "gingham": 0.7, "peer_quality": 0.8, "times_faster": 0.01}
    (tmp_path / "peers_all.json").write_text(json.dumps({"results": {"ratings": [ahead, behind]}}))
    found = page.page(tmp_path, [("a.py", "What.", "passed over: ml100k.npz is missing", "")]).read_text()
    assert found.count("<b>0.700</b>") == 1  # lower is better for an error only
    assert 'class="good" style="left:50%;width:25.0%"' in found
    assert 'class="bad" style="left:0.0%;width:50.0%"' in found
    assert "&lt;b&gt;" in found
    assert "ml100k.npz is missing" in found
