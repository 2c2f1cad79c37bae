"""gingham path: one table over a range of β, cross-validated and certified."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gingham.cli.data import Rows
from gingham.cli.defaults import choose
from gingham.cli.fitting import Wish
from gingham.cli.screen import side
from gingham.errors import GinghamError
from gingham.estimators.base import expand_clusters
from gingham.estimators.coclustering import CoClusteringClassifier, CoClusteringRegressor
from gingham.selection import BetaPath, PathProgress, beta_path


def parse_betas(listed: str | None) -> list[float] | None:
    """Numbers from "2,1,.5"; None for the default range."""
    if listed is None:
        return None
    try:
        return [float(part) for part in listed.split(",")]
    except ValueError:
        raise GinghamError(f"--betas {listed!r} must be numbers: --betas 2,1,.5,.2.") from None


def path(data: Rows, wish: Wish, betas: list[float] | None, cv: int, delta: float, jobs: int, quiet: bool) -> BetaPath:
    """The path of the model that ``gingham fit`` would fit; certificates where the labels were stated."""
    columns = [data.X[name].to_numpy() for name in wish.axes]
    choice = choose(columns, data.y, wish.loss, wish.beta, wish.alphabet, np.random.default_rng(wish.seed))
    sizes = [len(np.unique(column)) for column in columns]
    settings: dict[str, Any] = {
        "n_clusters": expand_clusters("auto" if wish.clusters is None else wish.clusters, sizes, len(data)),
        "loss": choice.loss,
        "beta": choice.beta,
        "alphabet": choice.alphabet,
        "random_state": wish.seed,
        "max_iter": wish.max_iter,
    }
    if data.weight is not None:
        raise GinghamError("gingham path does not take weights; write each row as often as it counts.")
    model: Any = (
        CoClusteringClassifier(**settings)
        if choice.classify
        else CoClusteringRegressor(bounds=choice.bounds, **settings)
    )
    certified = 0.0 if wish.alphabet is None else delta
    with progress(quiet) as report:
        return beta_path(
            model, data.X, data.y, betas, cv=cv, delta=certified, random_state=wish.seed, n_jobs=jobs, callback=report
        )


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[PathProgress], None]]:
    """A bar over folds and points."""
    from rich.progress import Progress

    with Progress(console=side(), disable=quiet, transient=True) as bar:
        task = bar.add_task("path of β", total=None)
        yield lambda step: bar.update(task, total=step.total, completed=step.done)


def save_plot(found: BetaPath, target: Path) -> None:
    """Losses, certificate and information against β, as a picture."""
    found.plot()[0].figure.savefig(target, dpi=120)
