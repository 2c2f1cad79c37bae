"""A model file that was tampered with loads as a model or is refused in words; nothing in it is executed."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile

import numpy as np
import pytest

import gingham as gg
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
            at[last] = rng.choice(VALUES)
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
