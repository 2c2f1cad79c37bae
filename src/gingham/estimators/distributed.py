"""The door to a dask cluster: partitions of a table in, the same fitted estimator out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from os import PathLike
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import clone

from gingham.arrays import Anything
from gingham.cells import CellModel
from gingham.data import Alphabet, Mode, OneHot, Sample
from gingham.data.adapt import from_frame, id_columns
from gingham.data.modes import distinct
from gingham.errors import GinghamError
from gingham.posterior import Posterior
from gingham.solvers import distributed
from gingham.solvers.loop import Callback, Progress
from gingham.solvers.shares import joined
from gingham.solvers.streaming import OutOfCore
from gingham.solvers.workers import submit
from gingham.starts import from_items

GROUP_TUPLES = 20_000_000  # of partitions that are swept as one


def fit_distributed(
    model: Any,
    source: Any,
    *,
    axes: Sequence[str],
    label: str,
    weight: str | None = None,
    client: Any = None,
    start: Posterior | None = None,
    pilot: int = 200_000,
    callback: Callback | None = None,
) -> Any:
    """Fit a CoClusteringRegressor or CoClusteringClassifier on partitions that no single machine need hold.

    Parameters
    ----------
    model : unfitted estimator
        Its parameters are used; the fitted clone is returned.
    source : dask frame, path of a Parquet folder, or list of delayed frames
        A frame or folder is shuffled so that a partition owns its items of the first axis. Delayed parts must
        already be partitioned so; parts that share an item are refused.
    axes, label, weight : column names
    client : distributed.Client or OutOfCore, optional
        The current dask client by default. With an ``OutOfCore`` the partitions are a list of Parquet paths, sorted
        once to disk and streamed on this machine.
    start : Posterior, optional
        By default a pilot: the same model fitted here on about ``pilot`` tuples drawn from all partitions. β and
        sizes that are not given are those the pilot chooses; with a start, these tuples choose β alone.
    callback : callable, optional
        Called with a ``Progress`` after every sweep.

    Returns
    -------
    The fitted clone; ``posterior_`` covers all items. It equals the single-machine fit from the same start.
    """
    if client is None:
        if find_spec("distributed") is None:
            raise GinghamError("Fitting on a cluster needs dask: pip install gingham[dask].")
        from distributed import get_client

        client = get_client()
    model = clone(model)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # messages are as large as they are
        frames, n_groups = _frames(source, axes[0], client)
        out_of_core = isinstance(client, OutOfCore)
        told = model.alphabet is not None
        known = [submit(client, out_of_core, _facts, f, tuple(axes), label, weight, told) for f in frames]
        facts = client.gather(known)
        modes, items, alphabet, cell = _modes(facts, axes, model)
        groups = _groups([fact["n_rows"] for fact in facts], n_groups)
        items = [np.concatenate([items[at] for at in group]) for group in groups]
        parts = [
            submit(
                client,
                out_of_core,
                _encode,
                tuple(axes),
                label,
                weight,
                modes[1:],
                alphabet,
                not isinstance(cell.features, OneHot),
                *(frames[at] for at in group),
                *(known[at] for at in group),
            )
            for group in groups
        ]
        if out_of_core:
            parts = [client.keep(part, cell.features) for part in parts]
        n_tuples = float(sum(fact["n_tuples"] for fact in facts))
        data = distributed.Partitions(client, parts, items, modes[1:], axes[0], n_tuples, all_threads=out_of_core)
        share = pilot / max(1.0, sum(f["n_rows"] for f in facts))
        beta = model.beta
        if start is None:
            fitted = clone(model).fit(*_drawn(model, client, frames, axes, label, weight, share))
            start, beta = fitted.posterior_, fitted.beta_
        elif beta is None or isinstance(beta, str):
            X, y, w = _drawn(model, client, frames, axes, label, weight, share)
            drawn = Sample.of(id_columns(X).columns, np.asarray(y), w, names=list(axes), alphabet=alphabet)
            beta = model._beta_of(drawn, cell)[0]
        start = from_items(start, modes)
        frames.clear()  # what has been encoded need not stay; it is read again if a worker is lost
        known.clear()

        def report(iteration: int, factor: float, objective: Any) -> None:
            if callback is not None:
                callback(Progress(0, 1, iteration, model.max_iter, factor, objective))

        solution = distributed.solve(
            data, cell, float(beta), start, tol=model.tol, max_iter=model.max_iter, report=report
        )
    model._set_solution(solution)
    model.beta_ = float(beta)
    model.n_features_in_ = len(axes)
    model.feature_names_in_ = np.array(axes, dtype=object)
    return model


def _frames(source: Any, first: str, client: Any) -> tuple[list[Any], int]:
    """Futures of in-memory frames, each with its own items of the first axis, and how many groups they may form."""
    if isinstance(client, OutOfCore):
        if not isinstance(source, list | tuple) or not source:
            raise GinghamError("OutOfCore takes a list of Parquet paths (or of callables that return a frame).")
        return list(client.frames(source)), len(source)
    if isinstance(source, str | PathLike):
        import dask.dataframe as dd

        source = dd.read_parquet(source)
    if hasattr(source, "to_delayed"):
        if first not in source.columns:
            raise GinghamError(f"There is no column {first!r}; the table has {', '.join(map(repr, source.columns))}.")
        source = source.shuffle(on=first).to_delayed()
    if not isinstance(source, list | tuple) or not source:
        raise GinghamError("source must be a dask frame, the path of a Parquet folder, or a list of delayed frames.")
    # Tasks are tied to no worker: one that comes back after all were lost would not be given tied ones.
    return list(client.compute(list(source))), max(1, sum(client.nthreads().values()))


def _groups(n_rows: Sequence[int], n_groups: int) -> list[Anything]:
    """Consecutive partitions that are swept as one: a task costs more than many tuples, so few and large ones."""
    wanted = max(n_groups, -(-sum(n_rows) // GROUP_TUPLES))
    groups = np.array_split(np.arange(len(n_rows)), min(wanted, len(n_rows)))
    return [group for group in groups if len(group)]


def _facts(frame: Any, axes: tuple[str, ...], label: str, weight: str | None, told: bool) -> dict[str, Any]:
    """The distinct ids of a partition, and labels where they are not told, and how many tuples it has."""
    if nw.from_native(frame, eager_only=True).shape[0] == 0:
        return {"n_rows": 0, "n_tuples": 0.0, "items": None, "labels": None}
    X, y, w = from_frame(frame, axes, label, weight)
    items = [Mode.of(column, name).items for column, name in zip(id_columns(X).columns, axes)]
    return {
        "n_rows": len(y),
        "n_tuples": float(len(y) if w is None else np.sum(w)),
        "items": items,
        "labels": np.asarray(y)[:1].copy() if told else distinct(np.asarray(y), label)[:1001],
    }


def _modes(
    facts: Sequence[dict[str, Any]], axes: Sequence[str], model: Any
) -> tuple[list[Mode], list[Anything], Alphabet | None, CellModel]:
    """The modes of all partitions together, the first mode's items of each, the alphabet and the cell model."""
    filled = [fact for fact in facts if fact["n_rows"]]
    if not filled:
        raise GinghamError("The partitions hold no tuples.")
    own = [fact["items"][0] if fact["n_rows"] else filled[0]["items"][0][:0] for fact in facts]
    together = np.concatenate(own)
    if len(np.unique(together)) < len(together):
        raise GinghamError(
            f"Two partitions share items of the first axis {axes[0]!r}. Partition the table by that column "
            "(a dask frame is shuffled for you)."
        )
    modes = [Mode.of(np.concatenate([f["items"][j] for f in filled]), name) for j, name in enumerate(axes)]
    labels = np.unique(np.concatenate([fact["labels"] for fact in filled]))
    alphabet = model._alphabet(labels)
    return modes, own, alphabet, model._cell(alphabet, labels)


def _encode(
    axes: tuple[str, ...],
    label: str,
    weight: str | None,
    others: list[Mode],
    alphabet: Alphabet | None,
    numbers: bool,
    *frames_and_facts: Any,
) -> Sample:
    """One Sample of some frames; their facts follow them, in the same order.

    ``numbers`` says whether labels are needed beside their codes.
    """

    def one(frame: Any, fact: dict[str, Any]) -> Sample:
        if fact["n_rows"] == 0:
            empty = np.zeros(0, dtype=np.int32)
            modes = (Mode(axes[0], np.zeros(0)), *others)
            return Sample(modes, (empty,) * len(axes), np.zeros(0), alphabet, None if alphabet is None else empty, None)
        X, y, w = from_frame(frame, axes, label, weight)
        own = Mode(axes[0], fact["items"][0])
        return Sample.of(id_columns(X).columns, y, w, modes=[own, *others], alphabet=alphabet, numbers=numbers)

    n = len(frames_and_facts) // 2
    return joined([one(*pair) for pair in zip(frames_and_facts[:n], frames_and_facts[n:])])


def _drawn(
    model: Any, client: Any, frames: Sequence[Any], axes: Sequence[str], label: str, weight: str | None, share: float
) -> tuple[Any, Any, Any]:
    """X, y and weights of a share of the tuples of every partition, here."""
    seed = model.random_state if isinstance(model.random_state, int) else 0
    drawn = client.gather([client.submit(_draw, f, min(1.0, share), seed + i) for i, f in enumerate(frames)])
    table = nw.concat([nw.from_native(frame, eager_only=True) for frame in drawn]).to_native()
    return from_frame(table, axes, label, weight)


def _draw(frame: Any, share: float, seed: int) -> Any:
    return nw.from_native(frame, eager_only=True).sample(fraction=share, seed=seed).to_native()
