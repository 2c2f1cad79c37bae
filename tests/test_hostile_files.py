"""A model file that was tampered with loads as a model or is refused in words; nothing in it is executed."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from copy import deepcopy

import numpy as np
import pytest

import gingham as gg
from gingham import storage
from gingham.errors import GinghamError

VALUES = [None, True, -1, 0, 3, 10**30, 0.5, "", "x", "../../etc", [], {}, [1, [2]], {"$": "tuple", "items": 3},
          {"$": "array", "name": "0000.npy"}, {"$": "array", "name": "missing.npy"}, {"$": "objects", "items": [{}]},
          {"$": "value", "name": "Mode", "items": {"name": 3}}, {"$": "value", "name": "Popen", "items": {}},
          {"$": "value", "name": "Committee", "items": {"params": {}, "fitted": {}}}, {"$": "value", "name": []},
          {"$": "map", "items": [1]}, {"$": "pickle", "items": []}]  # fmt: skip


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Manifest and arrays of a good model file."""
    X = np.column_stack([np.arange(60) % 9, np.arange(60) % 7])
    model = gg.CoClusteringRegressor(2, alphabet=range(3), max_iter=5, random_state=0).fit(X, np.arange(60) % 3)
    path = tmp_path_factory.mktemp("good") / "m.gingham"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, manifest, parts, **arrays):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", manifest if isinstance(manifest, (str, bytes)) else json.dumps(manifest))
        for name, data in {**parts, **arrays}.items():
            if name != "manifest.json":
                archive.writestr(name, data)


def places(value, found, where=()):
    """Every place in a nested value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        found.append((*where, key))
        places(part, found, (*where, key))
    return found


@pytest.mark.parametrize("seed", range(150))
def test_tampered_manifests(parts, tmp_path, seed):
    rng = random.Random(seed)
    manifest = json.loads(parts["manifest.json"])
    for _ in range(rng.choice([1, 1, 2, 4])):
        *where, last = rng.choice(places(manifest, []))
        at = manifest
        for key in where:
            at = at[key]
        if rng.random() < 0.3 and isinstance(at, dict):
            del at[last]
        else:
            at[last] = deepcopy(rng.choice(VALUES))
    path = tmp_path / "m.gingham"
    write(path, manifest, parts)
    try:
        gg.load(path)
    except GinghamError as error:
        assert len(str(error)) > 20  # noqa: PT017


def test_pickles_are_not_read(parts, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("executed",))

    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    bomb = stream.getvalue() + pickle.dumps(np.array([Bomb()], dtype=object))
    manifest = json.loads(parts["manifest.json"])
    import hashlib

    name = next(iter(manifest["checksums"]))
    manifest["checksums"][name] = hashlib.sha256(bomb).hexdigest()
    path = tmp_path / "m.gingham"
    write(path, manifest, {**parts, name: bomb})
    with pytest.raises(GinghamError):
        gg.load(path)


@pytest.mark.parametrize(
    "manifest", ["[" * 100_000, "{}", "[]", "3", '"x"', "nul", b"\xff\xfe", '{"format": "gingham-model"}']
)
def test_odd_manifests(parts, tmp_path, manifest):
    path = tmp_path / "m.gingham"
    write(path, manifest, parts)
    with pytest.raises(GinghamError):
        gg.load(path)


@pytest.fixture(scope="module")
def good(parts, tmp_path_factory):
    """The bytes of a good model file, as gingham writes it."""
    path = tmp_path_factory.mktemp("whole") / "m.gingham"
    write(path, parts["manifest.json"], parts)
    gg.load(path).save(path)
    return path.read_bytes()


def test_one_byte_changed(good, tmp_path):
    """A hundred changes here; benchmarks/robustness/files.py does two thousand, with every other kind of damage."""
    path, rng = tmp_path / "m.gingham", random.Random(0)
    refused = 0
    for at in sorted(rng.sample(range(len(good)), 60)) + list(range(40)):
        changed = bytearray(good)
        changed[at] ^= rng.randrange(1, 256)
        path.write_bytes(changed)
        try:
            model = gg.load(path)
        except GinghamError:
            refused += 1
        else:  # a byte that nobody reads, the date of a part say
            model.save(path)
            assert path.read_bytes() == good, at
    assert refused > 60


def test_encrypted_files_are_refused(good, tmp_path):
    changed = bytearray(good)
    changed[good.index(b"PK\x01\x02") + 8] |= 1  # a flag of the first part
    (tmp_path / "m.gingham").write_bytes(changed)
    with pytest.raises(GinghamError, match="is encrypted"):
        gg.load(tmp_path / "m.gingham")


@pytest.mark.parametrize("packing", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_packings_are_refused(parts, tmp_path, packing):
    with zipfile.ZipFile(tmp_path / "m.gingham", "w", packing) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(GinghamError, match="not compressed as"):
        gg.load(tmp_path / "m.gingham")


def bomb(path, parts, name, size, head=b""):
    """A part of a model file that is unpacked to ``size`` zeros (or spaces) after its head."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for known, data in parts.items():
            if known != name:
                archive.writestr(known, data)
        with archive.open(name, "w", force_zip64=True) as stream:
            stream.write(head)
            for _ in range(size // 2**24):
                stream.write((b" " if name == "manifest.json" else b"\0") * 2**24)


@pytest.mark.parametrize("name", ["manifest.json", "0000.npy"])
def test_bombs_are_not_unpacked(parts, tmp_path, name, monkeypatch):
    path = tmp_path / "m.gingham"
    bomb(path, parts, name, 2**28, b"\x93NUMPY\x01\x00")
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was unpacked"))
    with pytest.raises(GinghamError, match="damaged"):
        gg.load(path)


def test_files_that_memory_does_not_hold(good, tmp_path, monkeypatch):
    (tmp_path / "m.gingham").write_bytes(good)
    monkeypatch.setattr(storage, "memory_bytes", lambda: 1000)
    with pytest.raises(GinghamError, match="this machine has"):
        gg.load(tmp_path / "m.gingham")
