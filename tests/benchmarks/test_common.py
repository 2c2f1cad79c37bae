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
