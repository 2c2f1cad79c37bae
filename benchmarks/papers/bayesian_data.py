"""The six data sets of Shan & Banerjee (2008), their folds, and the models BCC is compared with."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import load

SETS = ("ml_binary", "ml", "jester_binary", "jester", "foodmart_binary", "foodmart")
RIDGES = (50.0, 20.0, 10.0, 5.0, 2.0, 1.0)
N_FOLDS = 10


@dataclass(frozen=True)
class Table:
    """Observed entries of one data set with the family and the grid that P2 uses for it."""

    name: str
    X: np.ndarray  # (N, 2)
    y: np.ndarray
    family: str
    n_clusters: tuple[int, int]
    shift: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.X[:, 0].max()) + 1, int(self.X[:, 1].max()) + 1

    @property
    def alphabet(self) -> list | None:
        return np.unique(self.y).tolist() if self.family in ("bernoulli", "categorical") else None

    def part(self, share: float) -> Table:
        """A random part of the entries."""
        kept = np.random.default_rng(0).random(len(self.y)) < share
        return replace(self, X=self.X[kept], y=self.y[kept])

    def fold(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the training and the test entries of fold k, the same in every run."""
        part = np.random.default_rng(0).permutation(len(self.y)) % N_FOLDS
        return np.flatnonzero(part != k), np.flatnonzero(part == k)


def table(name: str, data: str | None) -> Table:
    if name.startswith("ml"):
        d = load(data, "ml100k.npz")
        X, y = np.column_stack([d["rows"], d["cols"]]).astype(np.int64), d["vals"].astype(np.int64)
        if name == "ml_binary":
            return Table(name, X, (y > 3).astype(np.int64), "bernoulli", (10, 20))
        return Table(name, X, y, "categorical", (10, 20))
    if name.startswith("jester"):
        X, y = _jester(data)
        if name == "jester_binary":
            return Table(name, X, (y >= 0).astype(np.int64), "bernoulli", (10, 5))
        return Table(name, X, y, "gaussian", (10, 5))
    X, y = _foodmart(data)
    if name == "foodmart_binary":
        return Table(name, X, (y >= np.median(y)).astype(np.int64), "bernoulli", (10, 10))
    return Table(name, X, y, "poisson", (10, 10), shift=1.0)


def _jester(data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """1000 of the users who rated all 100 jokes."""
    d = load(data, "jester1.npz")
    counts = np.bincount(d["rows"])
    picked = np.sort(np.random.default_rng(0).choice(np.flatnonzero(counts == 100), 1000, replace=False))
    number = np.full(len(counts), -1)
    number[picked] = np.arange(1000)
    kept = number[d["rows"]] >= 0
    return np.column_stack([number[d["rows"][kept]], d["cols"][kept]]).astype(np.int64), d["vals"][kept].astype(float)


def _foodmart(data: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Units bought by customer and product, January to November 1998; at least 10 entries a row and column."""
    d = load(data, "foodmart_sales.npz")
    kept = (d["day"] >= 19980101) & (d["day"] <= 19981130)
    pairs = np.column_stack([d["customer_id"][kept], d["product_id"][kept]]).astype(np.int64)
    X, at = np.unique(pairs, axis=0, return_inverse=True)
    y = np.bincount(at.ravel(), d["units"][kept].astype(float))
    while True:
        for axis in range(2):
            X[:, axis] = np.unique(X[:, axis], return_inverse=True)[1]
        enough = np.all([np.bincount(X[:, a])[X[:, a]] >= 10 for a in range(2)], axis=0)
        if enough.all():
            return X, y
        X, y = X[enough], y[enough]


# comparisons: log densities of test entries


def global_log_density(t: Table, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """One distribution for all entries."""
    y, z = t.y[train], t.y[test]
    if t.family == "gaussian":
        return _normal(z, y.mean(), y.var())
    if t.family == "poisson":
        rate = (y - t.shift).mean()
        return (z - t.shift) * np.log(rate) - rate - gammaln(z - t.shift + 1)
    values, counts = np.unique(y, return_counts=True)
    return np.log((counts / counts.sum())[np.searchsorted(values, z)])


def additive_log_density(t: Table, train: np.ndarray, test: np.ndarray, rng: np.random.Generator, ridges=RIDGES):
    """Row and column effects on the natural parameter; ridge (and kind of variance) chosen on 5 % of the training."""
    order = rng.permutation(train)
    held, kept = order[: len(order) // 20], order[len(order) // 20 :]
    kinds = ("one variance", "variance per row") if t.family == "gaussian" else ("",)
    choices = [(ridge, kind) for ridge in ridges for kind in kinds]
    scores, start = [], None
    for choice in choices:  # strong ridges first: each fit starts from the one before
        logs, start = _additive(t, kept, held, *choice, start)
        scores.append(logs.mean())
    best = choices[int(np.argmax(scores))]
    return _additive(t, train, test, *best, start)[0], best


def _additive(t: Table, train: np.ndarray, test: np.ndarray, ridge: float, kind: str, start):
    """Log densities of the test entries, and the fitted effects."""
    y, z = t.y[train], t.y[test]
    if t.family == "gaussian":
        return _additive_gaussian(t, train, test, ridge, kind), None
    n1, n2 = t.shape
    design, new = (
        sparse.csr_array(
            (np.ones(2 * len(rows)), (np.repeat(np.arange(len(rows)), 2), (t.X[rows] + [0, n1]).ravel())),
            shape=(len(rows), n1 + n2),
        )
        for rows in (train, test)
    )
    back = design.T.tocsr()
    if t.family == "poisson":
        counts, offset = y - t.shift, np.log((y - t.shift).mean())

        def loss(b):
            eta = offset + design @ b
            rate = np.exp(eta)
            return (rate - counts * eta).sum() + 0.5 * ridge * (b @ b), back @ (rate - counts) + ridge * b

        start = np.zeros(n1 + n2) if start is None else start
        b = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}, tol=1e-5).x
        eta = offset + new @ b
        return (z - t.shift) * eta - np.exp(eta) - gammaln(z - t.shift + 1), b
    values = np.unique(t.y)
    one_hot = (y[:, None] == values).astype(float)
    offset, size = np.log(one_hot.mean(0)), len(values)

    def loss(b):
        effects = b.reshape(n1 + n2, size)
        eta = offset + design @ effects
        logs = eta - logsumexp(eta, axis=1, keepdims=True)
        gradient = back @ (np.exp(logs) - one_hot) + ridge * effects
        return -(logs * one_hot).sum() + 0.5 * ridge * (b @ b), gradient.ravel()

    start = np.zeros((n1 + n2) * size) if start is None else start
    b = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60}, tol=1e-5).x
    eta = offset + new @ b.reshape(n1 + n2, size)
    return (eta - logsumexp(eta, axis=1, keepdims=True))[np.arange(len(z)), np.searchsorted(values, z)], b


def _additive_gaussian(t: Table, train: np.ndarray, test: np.ndarray, ridge: float, kind: str) -> np.ndarray:
    (n1, n2), y, mean = t.shape, t.y[train], t.y[train].mean()
    (r, c), effect_r, effect_c = t.X[train].T, np.zeros(n1), np.zeros(n2)
    for _ in range(20):
        effect_r = np.bincount(r, y - mean - effect_c[c], n1) / (np.bincount(r, minlength=n1) + ridge)
        effect_c = np.bincount(c, y - mean - effect_r[r], n2) / (np.bincount(c, minlength=n2) + ridge)
    square = (y - mean - effect_r[r] - effect_c[c]) ** 2
    variance = np.full(n1, square.mean())
    if kind == "variance per row":
        variance = (np.bincount(r, square, n1) + 5 * square.mean()) / (np.bincount(r, minlength=n1) + 5)
    r, c = t.X[test].T
    return _normal(t.y[test], mean + effect_r[r] + effect_c[c], variance[r])


def _normal(y: np.ndarray, mean, variance) -> np.ndarray:
    return -0.5 * np.log(2 * np.pi * variance) - 0.5 * (y - mean) ** 2 / variance
