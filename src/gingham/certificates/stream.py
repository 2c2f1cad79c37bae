"""Certificates along a stream: look after every batch, stop at will."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gingham.arrays import Floats, Ints, TableLike
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.core.posterior import Posterior
from gingham.data.adapt import id_columns
from gingham.errors import GinghamError, RefusedCertificate


@dataclass(frozen=True, eq=False)
class Stream:
    """Certificates at growing sample sizes, all valid together with probability at least 1 − delta.

    Attributes
    ----------
    sizes : int array
    certificates : tuple of Certificate
    models : tuple
        The model of each size (the same one where it was given fitted).
    """

    sizes: Ints
    certificates: tuple[Certificate, ...]
    models: tuple[object, ...]

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    @property
    def values(self) -> Floats:
        return np.array([certificate.value for certificate in self.certificates])

    @property
    def empirical(self) -> Floats:
        return np.array([certificate.empirical for certificate in self.certificates])

    @property
    def best(self) -> Certificate:
        """The lowest certificate so far: stopping there is allowed, because all hold at once."""
        return self.certificates[int(np.argmin(self.values))]


def certify_stream(
    model: object,
    X: TableLike,
    y: npt.ArrayLike,
    *,
    sizes: Sequence[int] | None = None,
    population: Sequence[int] | None = None,
    delta: float = 0.05,
    predictor: str = "gibbs",
    **options: Any,
) -> Stream:
    """Certify the first n tuples for growing n, with one δ for all of them.

    Parameters
    ----------
    model : estimator (refitted on every prefix) or Posterior (kept)
    X, y : tuples in the order in which they arrived
    sizes : increasing sample sizes; ten from N/100 to N by default
    population : number of items of each mode
        Known beforehand; needed when the model is refitted, because the items of a prefix are not all items.
    """
    y = np.asarray(y)
    columns = id_columns(X).columns
    n = len(y)
    steps = np.unique(np.geomspace(max(10, n // 100), n, 10).astype(int)) if sizes is None else np.asarray(sizes)
    if len(steps) == 0 or (np.diff(steps) <= 0).any() or steps[0] < 1 or steps[-1] > n:
        raise GinghamError(f"sizes must increase from at least 1 to at most N = {n}.")
    fixed = isinstance(model, Posterior)
    if not fixed and population is None:
        raise RefusedCertificate(
            "State how many items each mode has (population=): along a stream the items must be fixed beforehand, "
            "and a prefix has not seen them all."
        )
    certificates, models = [], []
    for size in steps:
        part = np.empty((size, len(columns)), dtype=object)
        for j, column in enumerate(columns):
            part[:, j] = column[:size]
        fitted = model if fixed else clone(model).fit(part, y[:size])
        models.append(fitted)
        certificates.append(
            certify(
                fitted,
                part,
                y[:size],
                delta=delta,
                predictor=predictor,
                anytime=True,
                population=None if fixed else population,
                **options,
            )
        )
    return Stream(steps, tuple(certificates), tuple(models))
