"""Certify clusters that another program found: ``gingham certify --labels rows.csv,columns.csv ratings.csv``."""

from __future__ import annotations

from typing import Any

from gingham.certificates import Certificate, certify_labels
from gingham.cli.tables import read_table
from gingham.errors import GinghamError


def certify_own_labels(
    file: str,
    labels: str,
    *,
    label: str,
    axes: str | None = None,
    loss: str = "absolute",
    alphabet: Any = None,
    kind: str | None = None,
    graph: bool = False,
    delta: float = 0.05,
    bound: str = "log-wealth",
    predictor: str = "gibbs",
) -> Certificate:
    """A certificate for clusters given as files with two columns, item and cluster, one file per axis.

    Parameters
    ----------
    file : table of observed tuples
    labels : names of the cluster files, separated by commas, in the order of the axes
    label : column of ``file`` with the labels
    axes : columns of ``file`` with the ids, separated by commas; the first columns by default
    """
    names = [name for name in labels.split(",") if name]
    table = read_table(file, kind)
    wanted = 2 if graph else len(names)
    columns = axes.split(",") if axes else [c for c in table.columns if c != label][:wanted]
    for column in (*columns, label):
        if column not in table.columns:
            raise GinghamError(f"{file!r} has no column {column!r}; it has {', '.join(table.columns)}.")
    if len(columns) != wanted:
        raise GinghamError(f"{len(names)} files of clusters were given for {len(columns)} axes ({', '.join(columns)}).")
    positions = columns[:1] if graph else columns
    clusters = [_clusters(name, table[column].dtype.is_numeric()) for name, column in zip(names, positions)]
    return certify_labels(
        clusters,
        table.select(columns),
        table[label].to_numpy(),
        loss=loss,
        alphabet=alphabet,
        graph=graph,
        delta=delta,
        bound=bound,
        predictor=predictor,
    )


def _clusters(file: str, numeric: bool) -> dict[Any, str]:
    """Item → cluster from the first two columns of a table; items get the type of the ids."""
    table = read_table(file)
    if table.width < 2:
        raise GinghamError(f"{file!r} needs two columns, item and cluster.")
    items, clusters = table.columns[:2]
    if numeric and not table[items].dtype.is_numeric():
        raise GinghamError(f"The items in {file!r} are names, but the ids in the data are numbers.")
    keys = table[items].to_list() if numeric else [str(item) for item in table[items].to_list()]
    if len(set(keys)) < len(keys):
        raise GinghamError(f"{file!r} names an item twice.")
    return dict(zip(keys, (str(cluster) for cluster in table[clusters].to_list())))
