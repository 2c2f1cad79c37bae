"""The runner finds every benchmark and keeps to its budget."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import run


def test_every_script_that_takes_options_is_found_and_described() -> None:
    names = {path.name for path in run.scripts()}
    assert {"growth.py", "all_peers.py", "graph_latencies.py"} <= names
    assert not {"peer_fit.py", "graph_peers.py", "graph_folds.py"} & names  # run by others
    assert all(run.purpose(path) for path in run.scripts())


def test_quick_runs_share_ten_minutes() -> None:
    left = float(run.QUICK_BUDGET)
    for at in range(40):  # every script takes all it is given
        limit = run.quick_limit(left, 40 - at)
        assert run.LEAST_SECONDS <= limit <= run.QUICK_SECONDS
        left -= limit
    assert left > -run.QUICK_BUDGET / 3


def test_a_script_that_is_stopped_takes_its_children_along(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    child = "import time; time.sleep(300)"
    script.write_text(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    state, seconds = run.run(script, quick=True, limit=1.0)  # returns only when the pipes are closed
    assert state == "stopped after 1 s"
    assert seconds < 60
    script.write_text("raise SystemExit('no data here')")
    assert run.run(script, quick=True, limit=30.0)[0] == "passed over: no data here"
