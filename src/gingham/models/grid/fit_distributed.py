"""The door to a dask cluster: partitions of a table in, the same fitted estimator out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from narwhals.typing import IntoDataFrame
from sklearn.base import clone
from sklearn.utils import check_random_state

from gingham.arrays import AnyArray
from gingham.cells import CellModel
from gingham.core.problem import Objective, Posterior, Problem, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import from_frame, id_columns
from gingham.data.sample import distinct, joined_ids
from gingham.engine.dask_worker import Client, Future, submit
from gingham.engine.files import OutOfCore
from gingham.engine.partition_sums import State
from gingham.engine.partitions import Partitions, ScatteredSums
from gingham.engine.sums import Sums
from gingham.errors import GinghamError
from gingham.fitting.interruption import interruptible
from gingham.fitting.loop import Callback, Report, Restart, Solution, best_of, fixed_point
from gingham.fitting.schedules import Constant, Schedule, make_schedule
from gingham.fitting.starts import expand_clusters, make_start

GROUP_TUPLES = 20_000_000  # of partitions that are swept as one


def fit_distributed(
    model: Any,
    source: Any,
    *,
    axes: Sequence[str],
    label: str,
    weight: str | None = None,
    client: Any = None,
    start: Any = None,
    pilot: int = 200_000,
    callback: Callback | None = None,
) -> Any:
    """Fit a CoClusteringRegressor or CoClusteringClassifier on partitions of a table that may not fit on one machine.

    Partitions are fitted without offsets: ``offsets="auto"`` stands for False.

    Parameters
    ----------
    model : unfitted estimator
        Its parameters are used; the fitted clone is returned.
    source : dask frame, path or paths of Parquet or CSV files, or list of delayed frames
        A frame, folder or files are shuffled so that a partition owns its items of the first axis. Delayed parts must
        already be partitioned so; parts that share an item are refused.
    axes, label, weight : column names
    client : distributed.Client or OutOfCore, optional
        The current dask client by default. With an ``OutOfCore`` the partitions are a list of Parquet or CSV paths,
        sorted once to disk and streamed on this machine.
    start : start, optional
        In place of the model's own: a name, label arrays (one per axis, in the order of the sorted ids) or a Posterior.
    pilot : int
        With ``n_clusters="auto"`` and a named start, sizes, start and β are those of the same model fitted here on
        about so many tuples drawn from all partitions; where β alone is left open, these tuples choose it.
    callback : callable, optional
        Called with a ``Progress`` after every sweep.

    Returns
    -------
    The fitted clone; ``posterior_`` covers all items. Where sizes are given it equals ``fit`` in memory, with the
    same start, seed and schedule, up to rounding.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import polars as pl
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> rows = pl.DataFrame({"user": X[:, 0], "movie": X[:, 1], "stars": 1.0 + 4 * (X.sum(axis=1) % 2)})
    >>> with tempfile.TemporaryDirectory() as folder, gg.OutOfCore() as disk:
    ...     path = os.path.join(folder, "ratings.parquet")
    ...     rows.write_parquet(path)
    ...     board = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0)
    ...     model = gg.fit_distributed(board, [path], axes=["user", "movie"], label="stars", client=disk)
    >>> model.posterior_.answers[0].shape
    (2, 2)
    """
    if client is None:
        if find_spec("distributed") is None:
            raise GinghamError("Fitting on a cluster needs dask: pip install gingham[dask].")
        from distributed import get_client

        try:
            client = get_client()
        except ValueError:
            raise GinghamError(
                "There is no cluster: start one with distributed.Client(), or give client=gg.OutOfCore() to fit from "
                "files on this machine."
            ) from None
    model = clone(model)
    if model.solver != "projection" or model.objective != "tradeoff":
        raise GinghamError(
            "Partitions are fitted with solver='projection' and objective='tradeoff' only; this model asks for "
            f"solver={model.solver!r} and objective={model.objective!r}."
        )
    if "offsets" in model.get_params():
        if model.offsets is True:
            raise GinghamError("Partitions are fitted without offsets: leave offsets='auto' or set offsets=False.")
        model.set_params(offsets=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # messages are as large as they are
        frames, n_groups = _frames(source, axes[0], client)
        out_of_core = isinstance(client, OutOfCore)
        names = Names(tuple(axes), label, weight)
        known = [submit(client, out_of_core, _facts, f, names, model.alphabet is not None) for f in frames]
        facts = client.gather(known)
        modes, items, alphabet, cell = _modes(facts, axes, model)
        groups = _groups([fact.n_rows for fact in facts], n_groups)
        items = [joined_ids([items[at] for at in group]) for group in groups]
        numbers = not cell.features.one_hot
        parts = []
        for group in groups:
            tables = [futures[at] for futures in (frames, known) for at in group]
            parts.append(submit(client, out_of_core, _encode, names, modes[1:], alphabet, numbers, *tables))
        learned = [submit(client, out_of_core, Sample.fit_rows, part) for part in parts]
        if out_of_core:
            for at, rows in enumerate(learned):  # one part in memory at a time
                rows.result()
                parts[at] = client.keep(parts[at], cell.features)
        n_tuples = float(sum(fact.n_tuples for fact in facts))
        data = Partitions(client, parts, [modes[0].encode(own) for own in items], len(modes), out_of_core)
        start, schedule, n_init = model.start if start is None else start, make_schedule(model.schedule), model.n_init
        sizes = expand_clusters(model.n_clusters, [mode.n_items for mode in modes], n_tuples)
        share = pilot / max(1.0, sum(fact.n_rows for fact in facts))
        beta = model.beta
        if isinstance(start, str) and isinstance(model.n_clusters, str):
            # Clusters are not merged on partitions, so a smaller fit chooses how many; β has come down there already.
            fitted = clone(model).fit(*_drawn(model, client, frames, names, share))
            if fitted.interrupted_:  # half a pilot must not choose
                raise KeyboardInterrupt
            start, beta, schedule, n_init = fitted.posterior_, fitted.beta_, Constant(), 1
        elif beta is None or isinstance(beta, str):
            X, y, w = _drawn(model, client, frames, names, share)
            drawn = Sample.of(id_columns(X).columns, np.asarray(y), w, names=list(axes), alphabet=alphabet)
            beta = model._beta_of(drawn, cell)[0]
        first, *others = client.gather(learned)
        frames.clear()  # what has been encoded need not stay; it is read again if a worker is lost
        known.clear()
        rng = np.random.default_rng(check_random_state(model.random_state).randint(2**31 - 1))
        problem = problem_of(data, modes, cell, float(beta), alphabet)
        solver = ScatteredProjection(data, schedule, model.tol, model.max_iter)

        def solve(restart: Restart) -> Solution:
            return solver.solve(problem, make_start(start, problem, sizes, restart.rng), restart.report)

        with interruptible():
            solution = best_of(solve, n_init, rng, max_iter=model.max_iter, callback=callback)
    model._set_solution(solution)
    model.beta_ = float(beta)
    model.fit_rows_ = (first.with_rows(*others),)
    model.n_features_in_ = len(axes)
    model.feature_names_in_ = np.array(axes, dtype=object)
    return model


@dataclass(frozen=True, eq=False)
class ScatteredProblem(Problem):
    """A grid whose observations are in partitions; it has no samples, only their sums."""

    scattered: ScatteredSums

    def sums(self, relation: int) -> Sums:
        return self.scattered


def problem_of(
    data: Partitions, modes: Sequence[Mode], cell: CellModel, beta: float, alphabet: Alphabet | None
) -> ScatteredProblem:
    """What starts need to know of partitioned observations."""
    sums = ScatteredSums(data, cell, None if alphabet is None else alphabet.numbers)
    return ScatteredProblem(Structure.grid(tuple(modes)), (), (cell,), (beta,), sums)


@dataclass(frozen=True, eq=False)
class ScatteredProjection:
    """`Projection` over the partitions of a `ScatteredProblem`: the same descent from the same start."""

    data: Partitions
    schedule: Schedule = field(default_factory=Constant)
    tol: float = 1e-6
    max_iter: int = 200

    def solve(self, problem: Problem, start: Posterior, report: Report | None = None) -> Solution:
        (cell,), (beta,) = problem.cells, problem.betas
        first = State(start.assign[1:], start.answers[0], start.mass, (0.0,) * self.data.n_modes, 0.0)
        descent = self.data.descent(cell, first, self.max_iter)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            loss, information = descent.sweep(beta * factor)
            return posterior, Objective((loss,), information, (beta,))

        solution = fixed_point(sweep, start, self.schedule, self.tol, self.max_iter, report)
        ends = descent.end()
        if ends is None:
            return solution
        rows, final = self.data.memberships(ends)
        return replace(
            solution, posterior=Posterior(problem.structure, (cell,), (rows, *final.others), (final.answers,))
        )


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


def _frames(source: Any, first: str, client: Any) -> tuple[list[Future[IntoDataFrame]], int]:
    """Futures of in-memory frames, each with its own items of the first axis, and how many groups they may form."""
    if isinstance(client, OutOfCore):
        if not isinstance(source, list | tuple) or not source:
            raise GinghamError("OutOfCore takes a list of Parquet or CSV paths (or of callables that return a frame).")
        for part in source:
            if not callable(part) and not Path(part).is_file():
                raise GinghamError(f"There is no file {fspath(part)!r}.")
        return list(client.tables([part if callable(part) else partial(_read, part) for part in source])), len(source)
    paths = [source] if isinstance(source, str | PathLike) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | PathLike) for path in paths):
        source = _read_paths([fspath(path) for path in paths])
    if hasattr(source, "to_delayed"):
        if first not in source.columns:
            raise GinghamError(f"There is no column {first!r}; the table has {', '.join(map(repr, source.columns))}.")
        source = source.shuffle(on=first).to_delayed()
    if not isinstance(source, list | tuple) or not source:
        raise GinghamError("source must be a dask frame, paths of Parquet or CSV files, or a list of delayed frames.")
    # Tasks are tied to no worker: one that comes back after all were lost would not be given tied ones.
    return list(client.compute(list(source))), max(1, sum(client.nthreads().values()))


def _read(path: str | PathLike[str]) -> IntoDataFrame:
    """The table of a CSV file, or of a Parquet file whatever its name."""
    read = nw.read_csv if Path(path).suffix.lower() == ".csv" else nw.read_parquet
    for backend in ("polars", "pyarrow", "pandas"):
        try:
            return read(str(path), backend=backend).to_native()
        except ImportError:
            continue
    raise GinghamError("Reading files needs polars, pyarrow or pandas: pip install gingham[cli].")


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


def _groups(n_rows: Sequence[int], n_groups: int) -> list[AnyArray]:
    """Consecutive partitions that are swept as one: a task costs more than many tuples, so few and large ones."""
    wanted = max(n_groups, -(-sum(n_rows) // GROUP_TUPLES))
    groups = np.array_split(np.arange(len(n_rows)), min(wanted, len(n_rows)))
    return [group for group in groups if len(group)]


class Names(NamedTuple):
    """The columns of a table that are used."""

    axes: tuple[str, ...]
    label: str
    weight: str | None


class PartitionFacts(NamedTuple):
    """What is known of a partition before it is encoded: its size, its distinct ids, and labels where not told."""

    n_rows: int
    n_tuples: float
    items: list[AnyArray]
    labels: AnyArray


def _facts(frame: IntoDataFrame, names: Names, told: bool) -> PartitionFacts:
    if nw.from_native(frame, eager_only=True).shape[0] == 0:
        return PartitionFacts(0, 0.0, [], np.zeros(0))
    X, y, w = from_frame(frame, *names)
    items = [Mode.of(column, name).items for column, name in zip(id_columns(X).columns, names.axes)]
    labels = np.asarray(y)[:1].copy() if told else distinct(np.asarray(y), names.label)[:1001]
    return PartitionFacts(len(y), float(len(y) if w is None else np.sum(w)), items, labels)


def _modes(
    facts: Sequence[PartitionFacts], axes: Sequence[str], model: Any
) -> tuple[list[Mode], list[AnyArray], Alphabet | None, CellModel]:
    """The modes of all partitions together, the first mode's items of each, the alphabet and the cell model."""
    filled = [fact for fact in facts if fact.n_rows]
    if not filled:
        raise GinghamError("The partitions hold no tuples.")
    own = [fact.items[0] if fact.n_rows else filled[0].items[0][:0] for fact in facts]
    first = joined_ids(own)
    if Mode.of(first, axes[0]).n_items < len(first):
        raise GinghamError(
            f"Two partitions share items of the first axis {axes[0]!r}. Partition the table by that column "
            "(a dask frame is shuffled for you)."
        )
    modes = [Mode.of(joined_ids([fact.items[j] for fact in filled]), name) for j, name in enumerate(axes)]
    labels = np.unique(np.concatenate([fact.labels for fact in filled]))
    alphabet = model._alphabet(labels)
    return modes, own, alphabet, model._cell(alphabet, labels)


def _encode(
    names: Names, others: list[Mode], alphabet: Alphabet | None, numbers: bool, *frames_and_facts: Any
) -> Sample:
    """One Sample of some frames; their facts follow them, in the same order.

    ``numbers`` says whether labels are needed beside their codes.
    """

    def one(frame: IntoDataFrame, fact: PartitionFacts) -> Sample:
        if fact.n_rows == 0:
            empty = np.zeros(0, dtype=np.int32)
            modes = (Mode(names.axes[0], np.zeros(0)), *others)
            return Sample(
                modes, (empty,) * len(modes), np.zeros(0), alphabet, None if alphabet is None else empty, None
            )
        X, y, w = from_frame(frame, *names)
        own = Mode(names.axes[0], fact.items[0])
        return Sample.of(id_columns(X).columns, y, w, modes=[own, *others], alphabet=alphabet, numbers=numbers)

    n = len(frames_and_facts) // 2
    return joined([one(*pair) for pair in zip(frames_and_facts[:n], frames_and_facts[n:])])


def _drawn(
    model: Any, client: Client, frames: Sequence[Future[IntoDataFrame]], names: Names, share: float
) -> tuple[IntoDataFrame, AnyArray, AnyArray | None]:
    """X, y and weights of a share of the tuples of every partition, here."""
    seed = model.random_state if isinstance(model.random_state, int) else 0
    drawn = client.gather([client.submit(_draw, f, min(1.0, share), seed + i) for i, f in enumerate(frames)])
    table = nw.concat([nw.from_native(frame, eager_only=True) for frame in drawn]).to_native()
    return from_frame(table, *names)


def _draw(frame: IntoDataFrame, share: float, seed: int) -> IntoDataFrame:
    return nw.from_native(frame, eager_only=True).sample(fraction=share, seed=seed).to_native()
