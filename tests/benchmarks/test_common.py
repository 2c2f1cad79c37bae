"""The JSON writer and data finder of the benchmark scripts."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import urllib.error
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import common
import prepare


def test_write_leaves_the_five_keys_and_no_path(tmp_path: Path) -> None:
    args = argparse.Namespace(out=tmp_path / "deep" / "x.json", seed=3, quick=True)
    common.write(args, {"m": np.int64(4)}, {"a": np.array([1.0, np.nan]), "b": (np.float32(0.5), None)})
    document = json.loads(args.out.read_text())
    assert set(document) == {"versions", "seed", "machine", "settings", "results"}
    assert document["results"] == {"a": [1.0, None], "b": [0.5, None]}
    assert document["settings"] == {"quick": True, "m": 4}
    assert str(tmp_path) not in args.out.read_text()
    assert [p.name for p in args.out.parent.iterdir()] == ["x.json"]


def test_missing_data_is_a_sentence_with_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*given: object, **more: object) -> None:
        raise urllib.error.URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    with pytest.raises(SystemExit, match=r"ml100k\.npz.*grouplens.*prepare\.py ml100k"):
        common.data_file(tmp_path, "ml100k.npz")
    with pytest.raises(SystemExit, match=r"yeast.*thebiogrid.*--data"):
        common.data_file(tmp_path, "yeast_biogrid.npz")


def test_movielens_is_fetched_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher's archive, three ratings in its format, becomes the files that the scripts read."""
    pairs = [(1, 2), (2, 1), (1, 1)]
    ratings = "".join(f"{user}\t{movie}\t{stars}\t88000000{stars}\n" for (user, movie), stars in zip(pairs, (3, 5, 1)))
    flags = "|".join(["0", "1", *["0"] * 17])
    with zipfile.ZipFile(tmp_path / "ml-100k.zip", "w") as archive:
        archive.writestr("ml-100k/u.data", ratings)
        archive.writestr("ml-100k/u.item", "".join(f"{m}|Title {m} (1995)|01-Jan-1995||url|{flags}\n" for m in (1, 2)))
        archive.writestr("ml-100k/u.user", "1|24|M|technician|85711\n2|53|F|other|94043\n")
        for part in range(1, 6):
            archive.writestr(f"ml-100k/u{part}.base", "".join(ratings.splitlines(keepends=True)[1:]))
            archive.writestr(f"ml-100k/u{part}.test", ratings.splitlines()[0])
    remote = prepare.FILES["movielens-100k"]
    monkeypatch.setitem(prepare.FILES, "movielens-100k", replace(remote, md5=None))
    data = common.load(tmp_path, "ml100k.npz")
    assert data["rows"].tolist() == [0, 1, 0]
    assert data["cols"].tolist() == [1, 0, 0]
    assert data["vals"].tolist() == [3, 5, 1]
    assert data["timestamps"].tolist() == [880000003, 880000005, 880000001]
    assert data["u3_base_idx"].tolist() == [1, 2]
    assert data["u3_test_idx"].tolist() == [0]
    assert data["genres"].shape == (2, 19)
    with gzip.open(tmp_path / "ml100k_items.csv.gz", "rt") as stream:
        assert stream.read().splitlines()[1].startswith("0,Title 1 (1995),01-Jan-1995,0,1,")


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
