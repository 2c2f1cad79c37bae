"""Model files: round trips, damage, strangers, interruptions."""

import gc
import json
import multiprocessing
import os
import signal
import sys
import time
import zipfile
from dataclasses import dataclass

import numpy as np
import pytest

from gingham import files, storage
from gingham.errors import GinghamError

STATE = {
    "array": np.arange(6.0).reshape(2, 3),
    "strings": np.array(["a", "ü", "long"]),
    "objects": np.array([1, "one", ("x", 2), None], dtype=object),
    "nested": {"list": [1, 2.5, None, True], "tuple": (1, ("a",)), "nan": float("inf")},
    "range": range(1, 6),
    "map": {("viewer", "movie"): 3},
}


def same(a, b):
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype.kind == b.dtype.kind and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


def test_round_trip(tmp_path):
    path = tmp_path / "m"
    storage.write(path, "Some", STATE)
    kind, state = storage.read(path)
    assert kind == "Some"
    assert same(state, STATE)
    assert not same(state, {**STATE, "array": np.zeros((2, 3))})


def test_equal_models_are_equal_files(tmp_path):
    for name in "ab":
        storage.write(tmp_path / name, "Some", STATE)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@storage.savable
@dataclass(frozen=True, eq=False)
class Pair:
    left: object
    right: object


class Secret:
    def _to_file(self):
        return {"word": "sesame"}

    @classmethod
    def _from_file(cls, state):
        raise AssertionError("a class that was not registered was made")


def test_registered_values_are_kept_by_their_fields(tmp_path):
    path, array = tmp_path / "m", np.arange(1000.0)
    storage.write(path, "Some", {"pair": Pair((array, 1), Pair(None, array))})
    pair = storage.read(path)[1]["pair"]
    assert isinstance(pair, Pair)
    assert isinstance(pair.right, Pair)
    assert pair.left[0].tolist() == array.tolist()
    assert pair.left[0] is pair.right.right  # an array that stands in two places is written once
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["0000.npy", "manifest.json"]


def test_values_of_unknown_classes_are_refused(tmp_path):
    path = tmp_path / "m"
    storage.write(path, "Some", {"x": Secret()})
    with pytest.raises(GinghamError, match="unknown kind 'Secret'"):
        storage.read(path)


def test_a_name_belongs_to_one_class():
    with pytest.raises(TypeError, match="two classes named Pair"):
        storage.savable(type("Pair", (), {}))
    assert storage.VALUES["Pair"] is Pair


def test_a_model_keeps_its_declared_attributes_and_is_refused_without_one(tmp_path):
    from gingham import CoClusteringRegressor, load

    path, model = tmp_path / "m", CoClusteringRegressor(2, beta=1.0, random_state=0)
    model.fit([(u, i) for u in range(4) for i in range(4)], [(u + i) % 2 for u in range(4) for i in range(4)])
    model.save(path)
    assert load(path).converged_ == model.converged_
    assert not load(path).interrupted_
    model.interrupted_ = True
    model.save(path)
    assert load(path).interrupted_

    def change(parts):
        manifest = json.loads(parts["manifest.json"])
        del manifest["state"]["model"]["items"]["fitted"]["posterior_"]
        parts["manifest.json"] = json.dumps(manifest).encode()

    rewritten(path, change)
    with pytest.raises(GinghamError, match="damaged"):
        load(path)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a stream that is forgotten closes itself
def test_ctrl_c_at_any_line_of_writing(tmp_path, monkeypatch):
    """Of zipfile too: the old file or the new one is there, and whoever called hears of Ctrl-C and of nothing else."""
    path, new, heard = tmp_path / "m.gingham", tmp_path / "new", []
    monkeypatch.setattr(sys, "unraisablehook", heard.append)
    storage.write(path, "x", {"a": 1})
    storage.write(new, "x", {"a": np.arange(9)})
    whole = {path.read_bytes(), new.read_bytes()}
    new.unlink()

    def lines_until_ctrl_c(number):
        """Lines run; the one with that number is interrupted."""
        count = 0

        def at(frame, event, argument):
            nonlocal count
            if frame.f_code.co_filename not in (storage.__file__, zipfile.__file__, files.__file__):
                return None
            if event == "line":
                count += 1
                if count == number:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return at

        before = sys.gettrace()
        sys.settrace(at)
        try:
            storage.write(path, "x", {"a": np.arange(9)})
        finally:
            sys.settrace(before)
        return count

    lines = lines_until_ctrl_c(None)
    assert lines > 100
    for number in range(1, lines):  # the last one is when the archive is forgotten: signals come again from there
        with pytest.raises(KeyboardInterrupt):
            lines_until_ctrl_c(number)
        gc.collect(0)
        assert not heard, number
        assert path.read_bytes() in whole
        files.atomic.forget_unfinished()  # as at the end of the process
        assert list(tmp_path.iterdir()) == [path], number


def test_unsavable_values_leave_the_old_file_whole(tmp_path):
    path = tmp_path / "m"
    storage.write(path, "Some", {"x": 1})
    before = path.read_bytes()
    with pytest.raises(GinghamError, match="cannot be saved"):
        storage.write(path, "Some", {"x": object()})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_failure_while_writing_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "m"
    storage.write(path, "Some", {"x": 1})
    before = path.read_bytes()

    def full(*args):
        raise OSError("disk full")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        storage.write(path, "Some", {"x": 2})
    assert path.read_bytes() == before


def damaged(tmp_path, change):
    path = tmp_path / "m"
    storage.write(path, "Some", STATE)
    return rewritten(path, change)


def rewritten(path, change):
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


def edit(**changes):
    def change(parts):
        manifest = json.loads(parts["manifest.json"])
        manifest.update(changes)
        parts["manifest.json"] = json.dumps(manifest).encode()

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda parts: parts.update({"0000.npy": b"garbage"}), "checksum"),
        (lambda parts: parts.pop("0000.npy"), "missing or broken"),
        (lambda parts: parts.pop("manifest.json"), "manifest"),
        (lambda parts: parts.update({"manifest.json": b"{"}), "manifest"),
        (edit(format="other"), "not a gingham model"),
        (edit(version=99), "version 99"),
        (edit(state={"$": "code", "items": []}), "unknown kind"),
        (edit(state=None, checksums=None), "damaged"),
    ],
)
def test_damaged_files_get_a_sentence(tmp_path, change, words):
    with pytest.raises(GinghamError, match=words):
        storage.read(damaged(tmp_path, change))


def test_truncated_missing_and_foreign_files_get_a_sentence(tmp_path):
    path = tmp_path / "m"
    storage.write(path, "Some", STATE)
    whole = path.read_bytes()
    for cut in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:cut])
        with pytest.raises(GinghamError, match=r"not a gingham model file|damaged"):
            storage.read(path)
    with pytest.raises(GinghamError, match="no model file"):
        storage.read(tmp_path / "absent")
    with pytest.raises(GinghamError, match=r"folder .* does not exist"):
        storage.write(tmp_path / "no" / "m", "Some", {})


def test_pickled_arrays_are_never_loaded(tmp_path):
    import hashlib
    import io

    stream = io.BytesIO()
    np.save(stream, np.array([print], dtype=object), allow_pickle=True)
    data = stream.getvalue()

    def change(parts):
        parts["0000.npy"] = data
        manifest = json.loads(parts["manifest.json"])
        manifest["checksums"]["0000.npy"] = hashlib.sha256(data).hexdigest()
        parts["manifest.json"] = json.dumps(manifest).encode()

    with pytest.raises(GinghamError, match="damaged"):
        storage.read(damaged(tmp_path, change))


def test_load_refuses_what_is_not_a_model(tmp_path):
    from gingham import load

    path = tmp_path / "m"
    storage.write(path, "load", {"model": 3})
    with pytest.raises(GinghamError, match="contains another model"):
        load(path)
    storage.write(path, "Unheard", {"params": {}, "fitted": {}})
    with pytest.raises(GinghamError, match="foreign model file"):
        load(path)
    storage.write(path, "CoClusteringRegressor", {"params": {"colour": 3}, "fitted": {}})
    with pytest.raises(GinghamError, match="damaged or foreign"):
        load(path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork beside idle threads: the child uses none of theirs
def test_kill_nine_during_save_leaves_a_whole_file(tmp_path):
    """Eight kills here; benchmarks/robustness/kills.py does fifty, and fits of every kind."""
    path, rng = tmp_path / "m.gingham", np.random.default_rng(0)
    states = [{"assign": rng.random((60_000, 4)), "version": version} for version in (1, 2)]
    contents = []
    for state in states:
        storage.write(path, "Test", state)
        contents.append(path.read_bytes())

    def write_again_and_again():
        while True:
            for state in states:
                storage.write(path, "Test", state)

    context = multiprocessing.get_context("fork")
    for _ in range(8):
        child = context.Process(target=write_again_and_again)
        child.start()
        time.sleep(float(rng.uniform(0.0, 0.3)))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        assert path.read_bytes() in contents
