"""Tables in partitions on a dask cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from gingham.arrays import AnyArray
from gingham.data.adapt import from_frame, id_columns, need_columns
from gingham.data.sample import Alphabet, Mode, Sample, distinct, joined_ids
from gingham.data.sources import is_scattered, with_columns
from gingham.engine.dask_worker import Client, Future
from gingham.errors import GinghamError
from gingham.lazy import lazy_module

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.typing import IntoDataFrame
else:
    nw = lazy_module("narwhals")

MOST_LABELS = 1001  # different labels of a partition that are told


class Names(NamedTuple):
    """The columns of a table that are used; without axes, all but the label ("" is none) and the weight are ids."""

    axes: tuple[str, ...]
    label: str
    weight: str | None

    def among(self, columns: Sequence[str]) -> Names:
        """The same with the axes of a table of these columns."""
        return self if self.axes else self._replace(axes=tuple(c for c in columns if c not in self[1:]))

    def read(self, frame: IntoDataFrame) -> tuple[IntoDataFrame, AnyArray, AnyArray | None]:
        """Ids, labels and weights of a frame."""
        return from_frame(frame, *self.among(nw.from_native(frame, eager_only=True).columns))


@dataclass(frozen=True, eq=False)
class PartitionedTable:
    """A table on a dask cluster.

    Parameters
    ----------
    source : dask frame, paths of Parquet or CSV files, list of delayed frames
        A frame, a folder and files are shuffled so that a partition owns its items of the first axis. Delayed parts
        must already be partitioned so; parts that share an item are refused.
    names : Names
        The column of labels, that of counts; all others are ids.
    client : dask client
    """

    source: Any
    names: Names
    client: Any

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, labelled: bool = True) -> Self | None:
        """The table of a fit that runs on a cluster; None where it does not. ``labelled`` says that it needs labels.

        That is where a dask client is current, for a dask frame, with the labels beside it or in it, a list of delayed
        frames, and paths.
        """
        client = _current_client()
        if client is None or not (is_scattered(X) or is_path(X)):
            return None
        X, label, weight = with_columns(X, label=y, weight=sample_weight)
        if label is None and labelled:
            raise GinghamError("The labels of a table on a cluster are a column of it: give its name as y.")
        return cls(X, Names((), label or "", weight), client)

    def frames(self, shuffled: bool = True) -> tuple[list[Future[IntoDataFrame]], int]:
        """Futures of frames, and how many groups they may form.

        Each frame has its own items of the first axis, unless they are not ``shuffled``.
        """
        parts: Any = [self.source] if isinstance(self.source, str | PathLike) else self.source
        if isinstance(parts, list | tuple) and is_path(parts):
            parts = _read_paths([fspath(path) for path in parts])
        if hasattr(parts, "to_delayed"):
            need_columns(list(parts.columns), [name for name in self.names[1:] if name])
            (first, *_) = self.names.among(list(parts.columns)).axes or ("",)
            need_columns(list(parts.columns), [first])
            parts = (parts.shuffle(on=first) if shuffled else parts).to_delayed()
        # Tasks are tied to no worker: one that comes back after all were lost would not be given tied ones.
        return list(self.client.compute(list(parts))), max(1, sum(self.client.nthreads().values()))


class PartitionFacts(NamedTuple):
    """What is known of a partition before it is encoded: its size, its distinct ids, and labels where not told."""

    n_rows: int
    n_observations: float
    axes: tuple[str, ...]
    items: list[AnyArray]
    labels: AnyArray


def facts_of(frame: IntoDataFrame, names: Names, told: bool) -> PartitionFacts:
    """Facts of a partition; ``told`` says that the labels are known."""
    table = nw.from_native(frame, eager_only=True)
    axes = names.among(table.columns).axes
    if table.shape[0] == 0:
        return PartitionFacts(0, 0.0, axes, [], np.zeros(0))
    X, y, w = names.read(frame)
    items = [Mode.of(column, name).items for column, name in zip(id_columns(X).columns, axes)]
    labels = np.asarray(y)[:1].copy() if told else distinct(np.asarray(y), names.label)[:MOST_LABELS]
    return PartitionFacts(len(y), float(len(y) if w is None else np.sum(w)), axes, items, labels)


def modes_of(facts: Sequence[PartitionFacts]) -> tuple[list[Mode], list[AnyArray]]:
    """The modes of all partitions together, and the items of the first that each partition has."""
    filled = [fact for fact in facts if fact.n_rows]
    if not filled:
        raise GinghamError("The partitions are empty.")
    axes = filled[0].axes
    own = [fact.items[0] if fact.n_rows else filled[0].items[0][:0] for fact in facts]
    first = joined_ids(own)
    if Mode.of(first, axes[0]).n_items < len(first):
        raise GinghamError(
            f"Two partitions share items of the first axis {axes[0]!r}. Partition the table by that column "
            "(a dask frame is shuffled for you)."
        )
    return [Mode.of(joined_ids([fact.items[j] for fact in filled]), name) for j, name in enumerate(axes)], own


def encoded(
    names: Names, others: list[Mode], alphabet: Alphabet | None, numbers: bool, *frames_and_facts: Any
) -> Sample:
    """One Sample of some frames; their facts follow them, in the same order.

    ``numbers`` says whether labels are needed beside their codes.
    """

    def one(frame: IntoDataFrame, fact: PartitionFacts) -> Sample:
        if fact.n_rows == 0:
            empty = np.zeros(0, dtype=np.int32)
            modes = (Mode(fact.axes[0], np.zeros(0)), *others)
            return Sample(
                modes, (empty,) * len(modes), np.zeros(0), alphabet, None if alphabet is None else empty, None
            )
        X, y, w = names.read(frame)
        own = Mode(fact.axes[0], fact.items[0])
        return Sample.of(id_columns(X).columns, y, w, modes=[own, *others], alphabet=alphabet, numbers=numbers)

    n = len(frames_and_facts) // 2
    return joined([one(*pair) for pair in zip(frames_and_facts[:n], frames_and_facts[n:])])


def joined(parts: Sequence[Sample]) -> Sample:
    """Partitions, each with items of its own in the first mode, as one."""
    filled = [part for part in parts if part.n_rows]
    if len(filled) <= 1:
        return (filled or parts)[0]
    first = Mode(filled[0].modes[0].name, joined_ids([part.modes[0].items for part in filled]))
    begins = np.cumsum([0, *(part.shape[0] for part in filled)])[:-1]
    codes = [np.concatenate([part.codes[0] + begin for part, begin in zip(filled, begins.astype(np.int32))])]
    codes += [np.concatenate([part.codes[j] for part in filled]) for j in range(1, filled[0].n_modes)]

    def column(name: str) -> AnyArray | None:
        columns = [getattr(part, name) for part in filled]
        return None if columns[0] is None else np.concatenate(columns)

    return Sample(
        (first, *filled[0].modes[1:]), tuple(codes), column("labels"), filled[0].alphabet, column("label_codes"),
        column("weights"),
    )  # fmt: skip


def drawn(
    client: Client, frames: Sequence[Future[IntoDataFrame]], names: Names, share: float, seed: int
) -> tuple[IntoDataFrame, AnyArray, AnyArray | None]:
    """X, y and weights of a share of the tuples of every partition, here."""
    parts = client.gather([client.submit(_draw, f, min(1.0, share), seed + i) for i, f in enumerate(frames)])
    return names.read(nw.concat([nw.from_native(frame, eager_only=True) for frame in parts]).to_native())


def _draw(frame: IntoDataFrame, share: float, seed: int) -> IntoDataFrame:
    return nw.from_native(frame, eager_only=True).sample(fraction=share, seed=seed).to_native()


def _current_client() -> Any:
    """The dask client of this process, None where there is none."""
    if "distributed" not in sys.modules:  # whoever has a client has imported it
        return None
    from distributed import get_client

    try:
        return get_client()
    except ValueError:
        return None


def is_path(X: object) -> bool:
    """Whether X is a path or several."""
    parts = X if isinstance(X, list | tuple) else [X]
    return bool(parts) and all(isinstance(part, str | PathLike) and "://" not in str(part) for part in parts)


def _read_paths(paths: list[str]) -> Any:
    """A dask frame of Parquet files (or folders of them), or of CSV files."""
    import dask.dataframe as dd

    for path in paths:
        if "://" not in path and "*" not in path and not Path(path).exists():
            raise GinghamError(f"There is no file or folder {path!r}.")
    kinds = {Path(path).suffix.lower() or ".parquet" for path in paths}
    if kinds == {".csv"}:
        return dd.read_csv(paths)
    if kinds <= {".parquet", ".pq"}:
        return dd.read_parquet(paths)
    raise GinghamError(
        f"Files of one table are all Parquet or all CSV; these end in {', '.join(sorted(kinds))}. "
        "Read others with dask and give the frame."
    )
