"""Arrays that lie in files: what is computed from columns larger than memory goes to a file as well.

Where an array lies is a fact of the array. A fit of mapped columns runs the same code as any other: the system brings
in the pages that a sum reads, and writes out those it has no room for. Files have no name and vanish with their array.
"""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray

BLOCK = 2**22  # rows that are computed at a time


def in_file(array: object) -> bool:
    """Whether an array is a view of a mapped file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap.mmap | memoryview)


def room(shape: int | Sequence[int], dtype: npt.DTypeLike, like: object) -> AnyArray:
    """Equivalent to ``np.empty(shape, dtype)``; in a file of its own where ``like`` lies in one."""
    if not in_file(like) or np.prod(shape) == 0:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="gingham-") as file:
        file.truncate(int(np.prod(shape)) * np.dtype(dtype).itemsize)
        return mapped(file, dtype, shape)


def mapped(file: Any, dtype: npt.DTypeLike, shape: int | Sequence[int]) -> AnyArray:
    """The content of an open file as an array, a plain one: compiled code knows no other."""
    return np.memmap(file, dtype, "r+", shape=tuple(np.atleast_1d(shape).tolist())).view(np.ndarray)


def by_blocks(make: Callable[[slice], AnyArray], n: int, like: object) -> AnyArray:
    """Equivalent to ``make(slice(0, n))`` of rows; made in blocks, to a file, where ``like`` lies in one."""
    if not in_file(like) or n <= BLOCK:
        first = make(slice(0, n))
        if not in_file(like):
            return first
    else:
        first = make(slice(0, BLOCK))
    out = room((n, *first.shape[1:]), first.dtype, like)
    out[: len(first)] = first
    for start in range(len(first), n, BLOCK):
        out[start : start + BLOCK] = make(slice(start, min(start + BLOCK, n)))
    return out


def gathered(values: AnyArray, order: AnyArray, dtype: npt.DTypeLike | None = None) -> AnyArray:
    """Equivalent to ``values[order].astype(dtype)``; made in blocks, to a file, where ``values`` lie in one."""
    kind = values.dtype if dtype is None else dtype
    return by_blocks(lambda rows: values[order[rows]].astype(kind, copy=False), len(order), values)


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, of its control group, of its own limits."""
    found = [2**63 - 1]
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found.append(1024 * int(line.split()[1]))
    for line in _lines("/proc/self/cgroup"):
        _, kind, name = line.split(":", 2)
        base, limit, used = (
            ("/sys/fs/cgroup", "memory.max", "memory.current")
            if not kind
            else ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        )
        if kind in ("", "memory"):
            for folder in (f"{base}{name}", base):  # within a container, the group is the root of what is seen
                most, now = _lines(f"{folder}/{limit}"), _lines(f"{folder}/{used}")
                if most and now and most[0].isdigit():
                    found.append(max(0, int(most[0]) - int(now[0])))
                    break
    try:
        import resource
    except ImportError:  # not on Windows
        return min(found)
    for which, used in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        most_bytes = resource.getrlimit(which)[0]
        if most_bytes != resource.RLIM_INFINITY:
            taken = [1024 * int(line.split()[1]) for line in _lines("/proc/self/status") if line.startswith(used)]
            found.append(max(0, most_bytes - sum(taken)))
    return min(found)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
