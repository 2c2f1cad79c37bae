"""Model files: a zip of .npy arrays and one JSON manifest with checksums. No pickle, nothing is executed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gingham.errors import GinghamError

FORMAT = "gingham-model"
VERSION = 1
MANIFEST = "manifest.json"


def write(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write a nested state of plain values and arrays; the file appears whole or not at all."""
    arrays: dict[str, bytes] = {}
    tree = _pack(state, arrays)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "state": tree,
        "checksums": {name: hashlib.sha256(data).hexdigest() for name, data in arrays.items()},
    }
    with atomic(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(MANIFEST), json.dumps(manifest, ensure_ascii=False, allow_nan=True))
        for name, data in arrays.items():
            archive.writestr(_entry(name), data)


def read(path: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """The kind and state of a model file; a damaged or foreign file is refused with a sentence."""
    name = Path(path)
    if not name.is_file():
        raise GinghamError(f"There is no model file {str(name)!r}.")
    try:
        with zipfile.ZipFile(name) as archive:
            return _read(archive, str(name))
    except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile, NotImplementedError, OSError):
        raise GinghamError(f"{str(name)!r} is not a gingham model file, or it is damaged (truncated?).") from None
    except GinghamError:
        raise
    except MemoryError:
        raise GinghamError(f"{str(name)!r} does not fit into memory.") from None
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, RecursionError):
        raise GinghamError(f"{str(name)!r} is a damaged gingham model file: its manifest is not readable.") from None


def _read(archive: zipfile.ZipFile, name: str) -> tuple[str, dict[str, Any]]:
    manifest = json.loads(archive.read(MANIFEST))
    if manifest.get("format") != FORMAT:
        raise GinghamError(f"{name!r} is a zip file, but not a gingham model file.")
    if manifest["version"] > VERSION:
        raise GinghamError(
            f"{name!r} has format version {manifest['version']}; this gingham reads up to {VERSION}. Update gingham."
        )
    arrays = {}
    for entry, checksum in manifest["checksums"].items():
        try:
            data = archive.read(entry)
        except (KeyError, zipfile.BadZipFile):
            raise GinghamError(f"{name!r} is damaged: part {entry!r} is missing or broken.") from None
        if hashlib.sha256(data).hexdigest() != checksum:
            raise GinghamError(f"{name!r} is damaged: part {entry!r} does not match its checksum.")
        arrays[entry] = np.load(io.BytesIO(data), allow_pickle=False)
    state = _unpack(manifest["state"], arrays)
    return str(manifest["kind"]), state


def _entry(name: str) -> zipfile.ZipInfo:
    """A fixed date, so that equal models are equal files."""
    entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class atomic:
    """A binary stream whose content replaces ``path`` only when all of it has been written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __enter__(self) -> io.BufferedWriter:
        folder = self.path.parent
        if not folder.is_dir():
            raise GinghamError(f"The folder {str(folder)!r} does not exist.")
        handle, self.temporary = tempfile.mkstemp(dir=folder, prefix=f".{self.path.name}.", suffix=".part")
        self.stream = os.fdopen(handle, "wb")
        return self.stream

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.stream.flush()
                os.fsync(self.stream.fileno())
        finally:
            self.stream.close()
        if kind is None:
            Path(self.temporary).chmod(0o644)
            Path(self.temporary).replace(self.path)
        else:
            Path(self.temporary).unlink(missing_ok=True)


def _pack(value: Any, arrays: dict[str, bytes]) -> Any:
    """Plain JSON with references to arrays; tuples and mixed ids keep their types."""
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        name = f"{len(arrays):04d}.npy"
        stream = io.BytesIO()
        np.save(stream, value, allow_pickle=False)
        arrays[name] = stream.getvalue()
        return {"$": "array", "name": name}
    if isinstance(value, np.ndarray):
        return {"$": "objects", "items": [_pack(v, arrays) for v in value.tolist()]}
    if isinstance(value, np.generic):
        return _pack(value.item(), arrays)
    if isinstance(value, tuple):
        return {"$": "tuple", "items": [_pack(v, arrays) for v in value]}
    if isinstance(value, range):
        return {"$": "range", "items": [value.start, value.stop, value.step]}
    if isinstance(value, list):
        return [_pack(v, arrays) for v in value]
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key != "$" for key in value):
            return {"$": "map", "items": [[_pack(k, arrays), _pack(v, arrays)] for k, v in value.items()]}
        return {key: _pack(v, arrays) for key, v in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise GinghamError(f"A value of type {type(value).__name__} cannot be saved in a model file: {value!r}.")


def _unpack(value: Any, arrays: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(v, arrays) for v in value]
    if not isinstance(value, dict):
        return value
    tag = value.get("$")
    if tag is None:
        return {key: _unpack(v, arrays) for key, v in value.items()}
    if tag == "array":
        return arrays[value["name"]]
    items = value["items"]
    if tag == "tuple":
        return tuple(_unpack(v, arrays) for v in items)
    if tag == "range":
        return range(*items)
    if tag == "map":
        return {_unpack(k, arrays): _unpack(v, arrays) for k, v in items}
    if tag == "objects":
        array = np.empty(len(items), dtype=object)
        array[:] = [_unpack(v, arrays) for v in items]
        return array
    raise GinghamError(f"The model file contains an unknown kind of value, {tag!r}.")
