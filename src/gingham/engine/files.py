"""One machine, more tuples than memory: partitions are sorted once to disk and streamed through every sweep."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic

import numpy as np

from gingham.arrays import Floats
from gingham.engine.dask_worker import Future, Value
from gingham.engine.project import Rows
from gingham.engine.sums import Features, Grouped
from gingham.errors import GinghamError

_ARRAYS = ("indptr", "others", "labels", "features", "weights", "runs")


class Later(Generic[Value]):
    """A call that is made when its value is asked for; a forgetful one is made again every time."""

    def __init__(self, call: Callable[..., Value], arguments: tuple[object, ...], forgetful: bool = False) -> None:
        self.call, self.arguments, self.forgetful = call, arguments, forgetful
        self.values: list[Value] = []  # one, when it was made

    def result(self) -> Value:
        if self.values:
            return self.values[0]
        value = self.call(*(a.result() if isinstance(a, Later) else a for a in self.arguments))
        if not self.forgetful:
            self.values, self.arguments = [value], ()  # what it was made from may go
        return value


class OutOfCore:
    """Takes the place of the dask client in `fit_distributed`: the same fit with the data on disk, not in memory.

    Parameters
    ----------
    scratch : path, optional
        Folder for the sorted partitions; a temporary one by default, removed when this object is closed.

    Examples
    --------
    >>> client = OutOfCore()  # fit_distributed(model, ["part0.parquet", …], …, client=client)
    >>> client.submit(sum, [1, 2]).result()
    3
    >>> client.close()
    """

    def __init__(self, scratch: str | os.PathLike[str] | None = None) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="gingham-") if scratch is None else None
        self.folder = Path(self._temporary.name if self._temporary else scratch or ".")
        if not self.folder.is_dir():
            raise GinghamError(f"The scratch folder {str(self.folder)!r} does not exist.")
        self._count = 0

    def close(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def __enter__(self) -> OutOfCore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def submit(self, call: Callable[..., Value], *arguments: object, **scheduling: object) -> Later[Value]:
        return Later(call, arguments)

    def gather(self, futures: Sequence[Future[Value]]) -> list[Value]:
        return [future.result() for future in futures]

    def tables(self, readers: Sequence[Callable[[], Value]]) -> list[Later[Value]]:
        """Tables that are read whenever they are needed, never kept."""
        return [Later(reader, (), forgetful=True) for reader in readers]

    def keep(self, part: Later[Grouped], features: Features) -> Spilled:
        """Sort a partition for every mode, write it to the scratch folder, and forget it."""
        sample = part.result()
        part.values.clear()
        self._count += 1
        return Spilled.of(sample, features, self.folder / f"part{self._count:05d}")


class Spilled:
    """A partition whose sorted observations are memory-mapped files."""

    def __init__(self, folder: Path, n_modes: int, features: Features) -> None:
        self.folder, self.n_modes, self.features = folder, n_modes, features

    @classmethod
    def of(cls, sample: Grouped, features: Features, folder: Path) -> Spilled:
        folder.mkdir()
        for axis in range(sample.n_modes):
            rows = sample.rows(axis, features)
            for name in _ARRAYS:
                array = getattr(rows, name)
                if array is not None:
                    np.save(folder / f"{axis}-{name}.npy", array)
        return cls(folder, sample.n_modes, features)

    def tiles(self, axis: int, features: Features, row_bytes: int) -> None:
        """None: the disk is what takes time."""

    def completed(self, table: Floats, assigns: Sequence[Floats], features: Features) -> Floats:
        """The table: all observed tuples are listed."""
        return table

    def rows(self, axis: int, features: Features) -> Rows:
        def mapped(name: str) -> Any:
            path = self.folder / f"{axis}-{name}.npy"
            # Copy on write, never written: the kernels are compiled for writable arrays.
            return np.load(path, mmap_mode="c").view(np.ndarray) if path.exists() else None

        return Rows(n_features=features.size, **{name: mapped(name) for name in _ARRAYS})
