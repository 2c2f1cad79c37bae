"""AnnData (observations × variables) to tuples, by its attributes: the package itself is not needed."""

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
