"""beta_path: one model over a range of β, each fit started from the one before, with cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from gingham.arrays import AnyArray, Floats, TableLike
from gingham.cards import card, table
from gingham.certificates.bounds import checked_delta
from gingham.certificates.certificate import Certificate
from gingham.certificates.certify import certify
from gingham.core.problem import Posterior
from gingham.data import Sample
from gingham.data.adapt import frame_of
from gingham.engine.threads import one_library_thread, side_by_side
from gingham.errors import GinghamError
from gingham.fitting.interruption import interruptible
from gingham.selection.auto import held_out_losses

CRITERIA = ("cv", "certificate", "one-se")
LINES = (  # of a picture: column, label, style
    ("certificate", "certificate", "-"),
    ("cv_loss", "held out (Gibbs)", "-"),
    ("cv_prediction", "held out (prediction)", "--"),
    ("loss", "training (Gibbs)", ":"),
)
FREE = " on a path of β; the bound holds for all posteriors at once, so the choice is free."


class PathProgress(NamedTuple):
    """What a callback is told after every fold and every point."""

    done: int
    total: int
    what: str


class PathPoint(NamedTuple):
    """One β of a path; losses on held-out folds are NaN without cross-validation."""

    beta: float
    posterior: Posterior  # fitted to all the data
    loss: float  # empirical Gibbs loss L̂
    cv_loss: float  # Gibbs loss on held-out folds: mean
    cv_error: float  # and standard error
    cv_prediction: float  # of the median (or mean, or commonest) prediction on held-out folds
    certificate: Certificate | None


@dataclass(frozen=True, eq=False)
class BetaPath:
    """Fits at decreasing β with their losses, information and certificates.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> path = gg.beta_path(gg.CoClusteringRegressor(2, alphabet=[1, 5]), X, y, betas=[2.0, 1.0], cv=0)
    >>> [point.beta for point in path.points], path.best().beta
    ([2.0, 1.0], 2.0)
    """

    points: tuple[PathPoint, ...]
    names: tuple[str, ...]  # of the modes

    def best(self, by: str = "certificate") -> PathPoint:
        """The point that the criterion chooses.

        Parameters
        ----------
        by : {"cv", "certificate", "one-se"}
            Least cross-validated Gibbs loss; least certificate (choosing by it costs nothing: it holds for
            all posteriors at once); or the smallest β within one standard error of the best.
        """
        if by not in CRITERIA:
            raise GinghamError(f"best({by!r}) is unknown; choose one of {', '.join(CRITERIA)}.")
        if by == "certificate":
            if any(p.certificate is None for p in self.points):
                raise GinghamError("This path has no certificates: state the possible labels (alphabet=) in the model.")
            lowest = min(self.points, key=lambda p: p.certificate.value if p.certificate else np.inf)
            if lowest.certificate is None or len(self.points) == 1:
                return lowest
            chosen = replace(lowest.certificate, chosen_from=len(self.points), choice=FREE)
            return lowest._replace(certificate=chosen)
        if not all(np.isfinite(p.cv_loss) for p in self.points):
            raise GinghamError("This path was not cross-validated; give cv=5.")
        lowest = min(self.points, key=lambda p: p.cv_loss)
        if by == "cv":
            return lowest
        within = [p for p in self.points if p.cv_loss <= lowest.cv_loss + lowest.cv_error]
        return min(within, key=lambda p: p.beta)

    @property
    def table(self) -> dict[str, Floats]:
        """One array per column, one entry per β, largest first."""
        numbers = ("beta", "loss", "cv_loss", "cv_error", "cv_prediction")
        columns: dict[str, Any] = {name: [getattr(p, name) for p in self.points] for name in numbers}
        columns["certificate"] = [np.nan if p.certificate is None else p.certificate.value for p in self.points]
        for mode, name in enumerate(self.names):
            columns[f"information {name}"] = [p.posterior.information[mode] for p in self.points]
        return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}

    def to_frame(self, backend: str | None = None) -> Any:
        """The table as a pandas, polars or pyarrow frame; the first that is installed by default."""
        return frame_of({name: column.tolist() for name, column in self.table.items()}, backend)

    def __str__(self) -> str:
        table = self.table
        head = "  ".join(f"{name:>14}" for name in table)
        rows = ["  ".join(f"{value:>14.4f}" for value in row) for row in zip(*table.values())]
        return "\n".join([head, *rows])

    def _repr_html_(self) -> str:
        """A card for notebooks: one row per β."""
        columns = {name: column for name, column in self.table.items() if np.isfinite(column).any()}
        rows = [[f"{value:.4g}" for value in row] for row in zip(*columns.values())]
        return card("Path of β", table([name.replace("_", " ") for name in columns], rows))

    def plot(self, axes: Any = None) -> Any:
        """Losses and certificate above, information of each mode below, against β (P0 Figures 3 to 6)."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(2, 1, sharex=True, figsize=(6, 6), height_ratios=(2, 1), layout="constrained")
        above, below = axes
        table = self.table
        for name, label, style in LINES:
            if np.isfinite(table[name]).any():
                above.plot(table["beta"], table[name], style, marker=".", label=label)
        if np.isfinite(table["cv_loss"]).any():
            low, high = table["cv_loss"] - table["cv_error"], table["cv_loss"] + table["cv_error"]
            above.fill_between(table["beta"], low, high, alpha=0.2, color="C1", linewidth=0)
        for name in self.names:
            below.plot(table["beta"], table[f"information {name}"], marker=".", label=name)
        above.set(xscale="log", ylabel="loss")
        below.set(xlabel="β", ylabel="information, nats")
        above.legend()
        below.legend()
        return axes


def beta_path(
    model: Any,
    X: TableLike,
    y: AnyArray,
    betas: Sequence[float] | None = None,
    *,
    cv: int = 5,
    delta: float = 0.05,
    random_state: int = 0,
    n_jobs: int | None = None,
    callback: Callable[[PathProgress], None] | None = None,
) -> BetaPath:
    """Fit a model at each β, from the largest down, and measure every point.

    Parameters
    ----------
    model : CoClusteringRegressor or CoClusteringClassifier
    betas : sequence of float, optional
        Twelve values between 3 and .1 times ``model.beta`` by default; where that is not a number, times the β that a
        fit of the model chooses.
    cv : int
        Folds; 0 for none.
    delta : float
        Certificates hold with probability 1 − delta, at all β at once; 0 for none.
    n_jobs : int, optional
        Folds, and the path on all the data, that run side by side on the cores; all by default. No result depends
        on it.
    callback : callable, optional
        Called with a PathProgress as the work goes on.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> path = gg.beta_path(gg.CoClusteringRegressor(2, alphabet=[1, 5]), X, y, betas=[2.0, 1.0], cv=3)
    >>> [round(point.loss, 2) for point in path.points]
    [0.0, 0.0]
    """
    from sklearn.model_selection import KFold  # a large package, and no other fit needs it

    if not hasattr(model, "_fitted_along"):
        raise GinghamError(
            f"beta_path takes a CoClusteringRegressor or CoClusteringClassifier, not {type(model).__name__}."
        )
    if delta != 0:
        checked_delta(delta)
    if betas is None:
        scale = model.beta if isinstance(model.beta, (int, float)) else clone(model).fit(X, y).beta_
        betas = [scale * float(b) for b in np.geomspace(3.0, 0.1, 12)]
    ordered = sorted({float(b) for b in betas}, reverse=True)
    if not ordered or ordered[-1] < 0:
        raise GinghamError("betas= needs at least one value, none negative.")
    n_rows = len(y)
    folds: list[Any] = []
    if cv:
        if not 2 <= cv <= n_rows:
            raise GinghamError(f"cv={cv} must be 0, or between 2 and the number of rows ({n_rows}).")
        folds = list(KFold(cv, shuffle=True, random_state=random_state).split(np.arange(n_rows)))
    done = 0

    def notify(number: int) -> None:
        nonlocal done
        done += 1
        if callback is not None:  # the path on all the data comes after the folds
            callback(PathProgress(done, len(folds) + len(ordered), "fold" if number < len(folds) else "point"))

    jobs: list[Callable[..., list[Any]]] = [partial(_fold, model, X, y, ordered, seen, rest) for seen, rest in folds]
    jobs.append(partial(_points, model, X, y, ordered, delta))
    alone = model._goes_to_device(X, y)  # a GPU has one job at a time
    at_once = 1 if alone else len(folds) + 1 if n_jobs is None or n_jobs < 0 else n_jobs
    with interruptible(), one_library_thread():  # for all jobs together: each alone would undo what others rely on
        *held, points = list(side_by_side(jobs, at_once, notify))
    weights = np.array([len(rest) for _, rest in folds])
    for at, point in enumerate(points if folds else ()):
        gibbs, predicted = (np.array([fold[at][which] for fold in held]) for which in (0, 1))
        points[at] = point._replace(
            cv_loss=float(np.average(gibbs, weights=weights)),
            cv_error=float(gibbs.std(ddof=1) / np.sqrt(len(gibbs))),
            cv_prediction=float(np.average(predicted, weights=weights)),
        )
    modes = points[0].posterior.structure.modes
    return BetaPath(tuple(points), tuple(mode.name for mode in modes))


def _points(
    model: Any, X: TableLike, y: AnyArray, betas: Sequence[float], delta: float, report: Callable[[], None]
) -> list[PathPoint]:
    """The path on all the data, without what folds say."""
    points = []
    for beta, (fitted, sample) in zip(betas, _descend(model, X, y, betas)):
        posterior: Posterior = fitted.posterior_
        certificate = _certificate(fitted, sample, X, y, delta) if delta else None
        points.append(PathPoint(beta, posterior, posterior.gibbs_loss(sample), np.nan, np.nan, np.nan, certificate))
        report()
    return points


def _descend(model: Any, X: TableLike, y: AnyArray, betas: Sequence[float]) -> Iterator[tuple[Any, Sample]]:
    """Fitted models at falling β, each started where the last one ended, with the observations of its fit."""
    for fitted, sample in model._fitted_along(X, y, betas):
        if fitted.interrupted_:  # half a path would choose wrongly
            raise KeyboardInterrupt
        yield fitted, sample


def _fold(
    model: Any, X: TableLike, y: AnyArray, betas: Sequence[float], seen: Any, rest: Any, report: Callable[[], None]
) -> list[tuple[float, float]]:
    """Held-out losses of the Gibbs and of the deterministic prediction at each β."""
    X_seen, y_seen = _safe_indexing(X, seen), _safe_indexing(y, seen)
    X_rest, y_rest = _safe_indexing(X, rest), np.asarray(_safe_indexing(y, rest))
    losses = [_held_out(fitted, X_rest, y_rest) for fitted, _ in _descend(model, X_seen, y_seen, betas)]
    report()
    return losses


def _held_out(fitted: Any, X: TableLike, y: AnyArray) -> tuple[float, float]:
    posterior: Posterior = fitted.posterior_
    columns = fitted._columns(X, reset=False).columns
    alphabet = getattr(posterior.label_cell(), "alphabet", None)
    if alphabet is not None:
        known = np.isin(y, alphabet.values)  # a label that never occurred in training cannot be scored
        columns, y = [column[known] for column in columns], y[known]
    if len(y) == 0:
        return np.nan, np.nan
    sample = Sample.of(columns, y, modes=fitted._item_modes(), alphabet=alphabet, unseen=True)
    return held_out_losses(posterior, sample)


def _certificate(fitted: Any, sample: Sample, X: TableLike, y: AnyArray, delta: float) -> Certificate | None:
    cell = fitted.posterior_.label_cell()
    alphabet = getattr(cell, "alphabet", None)
    if not np.isfinite(cell.range) or (alphabet is not None and not alphabet.given):
        return None
    certificate = certify(fitted, sample, delta=delta)
    record = certificate.record and replace(certificate.record, X=X, y=y)  # a file names the rows as they were given
    return replace(certificate, record=record)
