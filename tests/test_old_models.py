"""Model files of earlier versions load, and say what they said when they were written."""

from __future__ import annotations

import json
import warnings
from importlib import util
from pathlib import Path

import numpy as np
import pytest

import gingham as gg

FOLDER = Path(__file__).parent / "old_models"
FILES = sorted(FOLDER.glob("*.gingham"))

_spec = util.spec_from_file_location("old_models_make", FOLDER / "make.py")
make = util.module_from_spec(_spec)
_spec.loader.exec_module(make)


def same(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(same(f, e) for f, e in zip(found, expected))
    if isinstance(expected, float):
        return bool(np.isclose(found, expected, rtol=1e-9, atol=1e-12, equal_nan=True))
    return found == expected


def check(model, said):
    for method, given, expected in said["calls"]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gg.UnseenItemsWarning)
            found = make.plain(getattr(model, method)(*make.arguments(model, given)))
        assert same(found, expected), method
    for name, expected in said["attributes"].items():
        assert same(make.plain(getattr(model, name)), expected), name


def test_there_is_a_file_of_every_kind():
    kinds = {type(gg.load(path)).__name__ for path in FILES}
    assert kinds >= {
        "CoClusteringClassifier", "CoClusteringRegressor", "CoOccurrenceClustering",
        "Committee", "GraphClustering", "InformationClustering", "JointCoClustering", "KernelCCA",
        "PairwiseClusterAnalysis", "TreeCoClustering",
    }  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_old_file_says_what_it_said(path, tmp_path):
    said = json.loads(path.with_suffix(".json").read_text())
    model = gg.load(path)
    check(model, said)
    assert model.notes_ == {"name": path.stem}
    again = tmp_path / "again.gingham"
    model.save(again)
    check(gg.load(again), said)
    assert gg.load(again).notes_ == {"name": path.stem}


def test_a_wrong_answer_would_be_noticed():
    said = json.loads((FOLDER / "regressor.json").read_text())
    said["calls"][0][2][0] += 0.01
    with pytest.raises(AssertionError):
        check(gg.load(FOLDER / "regressor.gingham"), said)
