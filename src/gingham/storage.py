"""Model files: a zip of .npy arrays and one JSON manifest with checksums. No pickle, nothing is executed.

A file holds plain values, arrays, and values of classes that were registered by `savable`, each by its name and its
fields. Reading makes values of registered classes only, whatever a file says.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from gingham.arrays import AnyArray
from gingham.errors import GinghamError
from gingham.files import FORMAT, MANIFEST, atomic, need_model

VERSION = 1
LEVEL = 3  # of compression: the usual 6 takes four times as long and saves a fiftieth of a model
ENCRYPTED = 1  # a flag of a part of a zip file
SMALL = 2**24  # bytes: parts up to this size are read whatever they are
MOST_PACKED = 1100  # times that deflate makes anything smaller; what claims more is forged
MOST_PACKED_TEXT = 200  # times that it makes a manifest smaller

VALUES: dict[str, type] = {}  # by the names that stand in files
Kind = TypeVar("Kind", bound=type)
State = dict[str, Any]  # what a file keeps, by name: plain values, arrays, registered values


def savable(kind: Kind) -> Kind:
    """Let model files hold values of a frozen dataclass, by its fields. A class decorator.

    A class that keeps something else than its fields says what, see `Storable`.
    """
    if VALUES.setdefault(kind.__name__, kind) is not kind:
        raise TypeError(f"two classes named {kind.__name__} are savable: {VALUES[kind.__name__]} and {kind}")
    return kind


def fields_of(value: Any) -> State:
    """The fields of a dataclass by name, but for those that it works out itself."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


@runtime_checkable
class Storable(Protocol):
    """A value that says itself what a file keeps of it."""

    def _to_file(self) -> State:
        """What a file keeps, by name."""

    @classmethod
    def _from_file(cls, state: State) -> object:
        """The value again."""


def restored(kind: type | None, name: str, state: State) -> Any:
    """A value of a registered class from what a file keeps of it."""
    if kind is None:
        raise GinghamError(f"The model file holds a value of unknown kind {name!r}. Update gingham.")
    return kind._from_file(state) if issubclass(kind, Storable) else kind(**state)


def write(path: str | os.PathLike[str], kind: str, state: State) -> None:
    """Write a nested state of plain values, arrays and registered values; the file appears whole or not at all."""
    writing = _Writing()
    manifest = {"format": FORMAT, "version": VERSION, "kind": kind, "state": writing.packed(state)}
    arrays = writing.arrays
    manifest["checksums"] = {name: hashlib.sha256(data).hexdigest() for name, data in arrays.items()}
    with atomic(path) as stream, _NewArchive(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_entry(MANIFEST), json.dumps(manifest, ensure_ascii=False, allow_nan=True))
        for name, data in arrays.items():
            archive.writestr(_entry(name), data, compresslevel=LEVEL)


def digest(value: object) -> str:
    """SHA-256 of a value as a model file holds it: its JSON, then its arrays; a file of it has the same."""
    writing = _Writing()
    found = hashlib.sha256(json.dumps(writing.packed(value), sort_keys=True).encode())
    for data in writing.arrays.values():
        found.update(hashlib.sha256(data).digest())
    return found.hexdigest()


def read(path: str | os.PathLike[str], find: Callable[[str], type | None] = VALUES.get) -> tuple[str, State]:
    """The kind and state of a model file; a damaged or foreign file is refused with a sentence.

    ``find`` names the classes whose values the file may hold.
    """
    name = Path(path)
    need_model(name)
    try:
        with zipfile.ZipFile(name) as archive:
            _check_parts(archive, str(name))
            return _read(archive, str(name), find)
    except GinghamError:
        raise
    except (zipfile.BadZipFile, EOFError, zipfile.LargeZipFile, OSError):
        raise GinghamError(f"{str(name)!r} is not a gingham model file, or it is damaged (truncated?).") from None
    except MemoryError:
        raise GinghamError(f"{str(name)!r} does not fit into memory.") from None
    except Exception:  # whatever a damaged file makes zlib, json, numpy or the class of a value say
        raise GinghamError(f"{str(name)!r} is a damaged gingham model file: its manifest is not readable.") from None


class _NewArchive(zipfile.ZipFile):
    """An archive that is being written. Where Ctrl-C comes before it is closed, it is thrown away with its file.

    The base class would try to write its end all the same, when it is left or forgotten, and say what goes wrong then
    in place of the interruption.
    """

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()

    def __del__(self) -> None:
        pass


def _check_parts(archive: zipfile.ZipFile, name: str) -> None:
    """Refuse what gingham does not write, and sizes that memory does not hold: before anything is unpacked."""
    parts = archive.infolist()
    for part in parts:
        if part.flag_bits & ENCRYPTED:
            raise GinghamError(f"{name!r} is encrypted or damaged.")
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise GinghamError(f"{name!r} is not compressed as gingham model files are, or it is damaged.")
        most = MOST_PACKED_TEXT if part.filename == MANIFEST else MOST_PACKED
        if part.file_size > max(SMALL, most * part.compress_size):
            raise GinghamError(f"{name!r} is damaged: part {part.filename!r} would have an implausible size.")
        if part.filename != MANIFEST and part.file_size > SMALL:
            _check_array(archive, part, name)
    needed, memory = sum(part.file_size for part in parts), memory_bytes()
    if memory is not None and needed > memory:
        raise GinghamError(
            f"{name!r} would need {needed / 2**30:,.1f} GiB of memory, but this machine has {memory / 2**30:,.1f} GiB."
        )


def _check_array(archive: zipfile.ZipFile, part: zipfile.ZipInfo, name: str) -> None:
    """Refuse a large array whose head does not tell its size."""
    with archive.open(part) as stream:
        read_head = {
            (1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0,
        }[np.lib.format.read_magic(stream)]  # fmt: skip
        shape, _, dtype = read_head(stream)
        if stream.tell() + math.prod(shape) * dtype.itemsize != part.file_size:
            raise GinghamError(f"{name!r} is damaged: part {part.filename!r} is not an array of the stated size.")


def memory_bytes() -> int | None:
    """The memory of this machine, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _read(archive: zipfile.ZipFile, name: str, find: Callable[[str], type | None]) -> tuple[str, State]:
    manifest = json.loads(archive.read(MANIFEST))
    if manifest.get("format") != FORMAT:
        raise GinghamError(f"{name!r} is a zip file, but not a gingham model file.")
    if manifest["version"] != VERSION:
        raise GinghamError(
            f"{name!r} has format version {manifest['version']}; this gingham reads version {VERSION}. Update gingham."
        )
    arrays = {}
    for entry, checksum in manifest["checksums"].items():
        try:
            data = archive.read(entry)
        except (KeyError, zipfile.BadZipFile, zlib.error):
            raise GinghamError(f"{name!r} is damaged: part {entry!r} is missing or broken.") from None
        if hashlib.sha256(data).hexdigest() != checksum:
            raise GinghamError(f"{name!r} is damaged: part {entry!r} does not match its checksum.")
        arrays[entry] = np.load(io.BytesIO(data), allow_pickle=False)
    return str(manifest["kind"]), _unpacked(manifest["state"], arrays, find)


def _entry(name: str) -> zipfile.ZipInfo:
    """A fixed date, so that equal models are equal files."""
    entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


class _Writing:
    """Plain JSON with references to arrays; an array that stands in several places is written once."""

    def __init__(self) -> None:
        self.arrays: dict[str, bytes] = {}
        self._names: dict[int, str] = {}
        self._alive: list[object] = []  # an id belongs to an array only as long as the array lives

    def packed(self, value: object) -> object:
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, Storable):
            return self._value(type(value).__name__, value._to_file())
        if VALUES.get(type(value).__name__) is type(value):
            return self._value(type(value).__name__, fields_of(value))
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return self.packed(value.item())
        if isinstance(value, tuple):
            return {"$": "tuple", "items": [self.packed(v) for v in value]}
        if isinstance(value, range):
            return {"$": "range", "items": [value.start, value.stop, value.step]}
        if isinstance(value, list):
            return [self.packed(v) for v in value]
        if isinstance(value, dict):
            if not all(isinstance(key, str) and key != "$" for key in value):
                return {"$": "map", "items": [[self.packed(k), self.packed(v)] for k, v in value.items()]}
            return {key: self.packed(v) for key, v in value.items()}
        if isinstance(value, (int, float, str)):  # subclasses, such as members of an enumeration
            return value
        raise GinghamError(f"A value of type {type(value).__name__} cannot be saved in a model file: {value!r}.")

    def _value(self, name: str, state: State) -> object:
        return {"$": "value", "name": name, "items": self.packed(state)}

    def _array(self, value: AnyArray) -> object:
        if value.dtype.kind == "O":
            return {"$": "objects", "items": [self.packed(v) for v in value.tolist()]}
        if id(value) not in self._names:
            stream = io.BytesIO()
            np.save(stream, value, allow_pickle=False)
            self._names[id(value)] = f"{len(self.arrays):04d}.npy"
            self._alive.append(value)
            self.arrays[self._names[id(value)]] = stream.getvalue()
        return {"$": "array", "name": self._names[id(value)]}


def _unpacked(value: Any, arrays: dict[str, AnyArray], find: Callable[[str], type | None]) -> Any:
    if isinstance(value, list):
        return [_unpacked(v, arrays, find) for v in value]
    if not isinstance(value, dict):
        return value
    tag = value.get("$")
    if tag is None:
        return {key: _unpacked(v, arrays, find) for key, v in value.items()}
    if tag == "array":
        return arrays[value["name"]]
    if tag == "value":
        kind = find(value["name"])  # first: a model brings the classes of the values that it holds
        return restored(kind, value["name"], _unpacked(value["items"], arrays, find))
    items = value["items"]
    if tag == "tuple":
        return tuple(_unpacked(v, arrays, find) for v in items)
    if tag == "range":
        return range(*items)
    if tag == "map":
        return {_unpacked(k, arrays, find): _unpacked(v, arrays, find) for k, v in items}
    if tag == "objects":
        array = np.empty(len(items), dtype=object)
        array[:] = [_unpacked(v, arrays, find) for v in items]
        return array
    raise GinghamError(f"The model file contains an unknown kind of value, {tag!r}.")
