"""AnnData (observations × variables) to tuples, and clusters back: by its attributes, the package is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from gingham.data.adapt import Tuples, from_matrix
from gingham.errors import GinghamError


def from_anndata(data: Any, missing: str | None = None, layer: str | None = None) -> Tuples:
    """Observed entries of an AnnData object as tuples (observation name, variable name) and values.

    Parameters
    ----------
    data : AnnData
    missing : {"implicit", "nan", "none"}
        What an absent entry means; see :func:`gingham.from_matrix`.
    layer : str, optional
        A layer in the place of ``data.X``.
    """
    for name in ("X", "obs_names", "var_names"):
        if not hasattr(data, name):
            raise GinghamError(f"{type(data).__name__} has no {name}; an AnnData object is needed.")
    if layer is not None and layer not in data.layers:
        raise GinghamError(f"There is no layer {layer!r}; there are {', '.join(map(repr, data.layers)) or 'none'}.")
    positions, values = from_matrix(data.X if layer is None else data.layers[layer], missing)
    X = np.empty(positions.shape, dtype=object)
    X[:, 0] = np.asarray(data.obs_names, dtype=object)[positions[:, 0]]
    X[:, 1] = np.asarray(data.var_names, dtype=object)[positions[:, 1]]
    return Tuples(X, values)


def to_anndata(model: Any, data: Any, key: str = "gingham") -> Any:
    """Write the clusters of a fitted model into an AnnData object, beside what it holds; returns the object.

    ``obs[key]`` and ``var[key]`` get the most probable clusters (−1 for names the model has never seen),
    ``obsm[key]`` and ``varm[key]`` the memberships (rows of NaN for those).

    Parameters
    ----------
    model : model of two modes fitted on `from_anndata` tuples, or CoOccurrenceClustering fitted on ``data.X``
    data : AnnData
    key : str
    """
    for name in ("obs_names", "var_names"):
        if not hasattr(data, name):
            raise GinghamError(f"{type(data).__name__} has no {name}; an AnnData object is needed.")
    sides = (("obs", "obsm", data.obs_names), ("var", "varm", data.var_names))
    for (table, matrices, names), (items, memberships) in zip(sides, _sides(model, data)):
        place = {str(item): at for at, item in enumerate(items)}
        at = np.array([place.get(str(name), -1) for name in names], dtype=np.int64)
        found = np.full((len(at), memberships.shape[1]), np.nan)
        found[at >= 0] = memberships[at[at >= 0]]
        clusters = np.full(len(at), -1, dtype=np.int64)
        clusters[at >= 0] = memberships.argmax(axis=1)[at[at >= 0]]
        getattr(data, table)[key] = clusters
        getattr(data, matrices)[key] = found
    return data


def _sides(model: Any, data: Any) -> list[tuple[Any, Any]]:
    """(items, memberships) of both modes."""
    if hasattr(model, "row_memberships_"):
        columns = model.column_memberships_
        if columns is None:
            raise GinghamError("Columns were left by themselves: there are no clusters of variables to write.")
        shape = (len(model.row_memberships_), len(columns))
        if shape != tuple(data.shape):
            raise GinghamError(f"The model was fitted on {shape[0]} × {shape[1]} counts; the data is {data.shape}.")
        return [(data.obs_names, model.row_memberships_), (data.var_names, columns)]
    posterior = getattr(model, "posterior_", None)
    if posterior is None or len(posterior.assign) != 2:
        raise GinghamError(f"{type(model).__name__} has no clusters of two modes to write into an AnnData object.")
    return [
        (mode.items, np.asarray(q, dtype=np.float64)) for mode, q in zip(posterior.structure.modes, posterior.assign)
    ]
