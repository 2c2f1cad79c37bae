"""Names for array types, used in every signature, and what lets one formula serve numpy and torch."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Floats = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]

ArrayLike = npt.ArrayLike  # numbers or names: arrays, series, lists
Seed = int | np.random.RandomState | None  # what scikit-learn calls random_state


class Frame(Protocol):
    """A data frame of any library, with named columns."""

    @property
    def columns(self) -> object: ...

    def __len__(self) -> int: ...


STAGE = 2**26  # bytes that are copied to or from a device at a time


TableLike: TypeAlias = ArrayLike | Sequence[Sequence[object]] | Frame
"""Rows of a table: an array, a list of tuples, or a pandas, polars or pyarrow frame."""
MatrixLike: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix | Frame
"""One number per row and column: an array, a scipy sparse matrix or a frame."""


def namespace(array: Any) -> Any:
    """numpy or torch, whichever the array belongs to; torch understands numpy's ``axis`` and ``keepdims``."""
    return sys.modules["torch"] if type(array).__module__ == "torch" else np


def beside(values: Any, array: Any) -> Any:
    """Values of any kind as an array of the kind of another, in the same place and of their own type."""
    xp = namespace(array)
    return np.asarray(values) if xp is np else xp.as_tensor(values, device=array.device)


def where(condition: AnyArray, values: AnyArray, otherwise: AnyArray | float) -> AnyArray:
    """Equivalent to ``np.where(condition, values, otherwise)``."""
    return namespace(condition).where(condition, values, otherwise)


def log(values: AnyArray) -> AnyArray:
    """Equivalent to ``np.log(values)``."""
    return namespace(values).log(values)


def hstack(arrays: Sequence[AnyArray]) -> AnyArray:
    """Equivalent to ``np.hstack(arrays)``."""
    return namespace(arrays[0]).hstack(arrays)


def vstack(arrays: Sequence[AnyArray]) -> AnyArray:
    """Equivalent to ``np.vstack(arrays)``."""
    return namespace(arrays[0]).vstack(arrays)


def nearest(values: Floats, numbers: Floats) -> Ints:
    """The position of the nearest of increasing numbers for each value, where the values lie; the lower one of two."""
    found: Any = namespace(values).searchsorted(beside((numbers[1:] + numbers[:-1]) / 2, values), values)
    return found.astype(np.int32) if isinstance(found, np.ndarray) else found.int()


def on_host(array: Any) -> AnyArray:
    """A numpy array of what may be a tensor."""
    if namespace(array) is np:
        return np.asarray(array)
    if not array.is_cuda or array.nbytes < 2 * STAGE:
        return array.cpu().numpy()
    source = array.contiguous().reshape(-1)
    result = namespace(array).empty(source.shape, dtype=source.dtype)
    copy_in_stages(source, result)
    return result.numpy().reshape(tuple(array.shape))


def copy_in_stages(source: Any, result: Any) -> None:
    """Copy a tensor between host and device through memory that the device can reach: several times faster.

    Host memory is read and written by all cores while the device copies the stage before.
    """
    torch = namespace(source)
    step = max(1, STAGE // max(1, source[:1].nbytes))
    rooms = [torch.empty((step, *source.shape[1:]), dtype=source.dtype, pin_memory=True) for _ in range(2)]
    done = [torch.cuda.Event() for _ in rooms]
    waiting: list[tuple[int, Any, Any]] = []  # stages on their way to the host

    def arrive() -> None:
        turn, room, goal = waiting.pop(0)
        done[turn].synchronize()
        goal.copy_(room)

    for number, start in enumerate(range(0, len(source), step)):
        turn = number % 2
        part, goal = source[start : start + step], result[start : start + step]
        room = rooms[turn][: len(part)]
        if source.is_cuda:
            if len(waiting) == 2:
                arrive()
            room.copy_(part, non_blocking=True)
            waiting.append((turn, room, goal))
        else:
            done[turn].synchronize()  # the stage before the last has left the room
            room.copy_(part)
            goal.copy_(room, non_blocking=True)
        done[turn].record()
    while waiting:
        arrive()
    torch.cuda.synchronize()
