"""gingham path: one table over a range of β, cross-validated and certified where the kind allows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gingham.cli.console import side
from gingham.cli.data import Rows
from gingham.cli.fit_options import Wish
from gingham.cli.kinds import tuple_model
from gingham.cli.label_kind import choose
from gingham.errors import GinghamError
from gingham.selection import BetaPath, PathPoint, PathProgress, beta_path

ON_TUPLES = ("coclustering", "tree")
REFUSED = {
    "layered": "Layers have no β: their noise is measured, not chosen.",
    "committee": "A committee shares the β of its members: look at --model coclustering.",
    "bayesian": "Bayesian co-clustering has no β: its concentrations are validated by gingham fit.",
    "joint": "Every table of a joint model has its own β; set them in Python (beta={relation: …}).",
    "information": "Clusters of features have no β: only their number is chosen (--clusters).",
    "pairwise": "Views have no β: gingham fit chooses ridge and components on objects set aside.",
}


def check_path(kind: str) -> None:
    """Refuse kinds without a trade-off, each with its reason."""
    if kind in REFUSED:
        raise GinghamError(REFUSED[kind])


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
    if data.weight is not None:
        raise GinghamError("gingham path does not take weights; write each row as often as it counts.")
    model = tuple_model(wish, choose(data.y, wish.loss, wish.alphabet))
    certified = 0.0 if wish.alphabet is None else delta
    with progress(quiet) as report:
        return beta_path(
            model, data.X, data.y, betas, cv=cv, delta=certified, random_state=wish.seed, n_jobs=jobs, callback=report
        )


def other_path(table: pl.DataFrame, wish: Wish, betas: list[float] | None, delta: float, quiet: bool) -> BetaPath:
    """The path of a graph or of counts, soft memberships, each fit from the one before; no cross-validation."""
    points: list[PathPoint] = []
    make = graph_points if wish.model == "graph" else count_points
    with progress(quiet) as report:
        for done, (point, total) in enumerate(make(table, wish, betas, delta)):
            points.append(point)
            report(PathProgress(done + 1, total, "point"))
    return BetaPath(tuple(points), tuple(mode.name for mode in points[0].posterior.structure.modes))


def graph_points(
    table: pl.DataFrame, wish: Wish, betas: list[float] | None, delta: float
) -> Iterator[tuple[PathPoint, int]]:
    from gingham.cli.of_graphs import OfGraph, frame_of
    from gingham.cli.session import Asked
    from gingham.models.graph.estimator import GraphClustering

    frame = frame_of(table, wish.axes, wish.weight or wish.label)
    k: Any = "auto" if wish.clusters is None else wish.clusters[0]
    start = GraphClustering(k, random_state=wish.seed).fit(frame)
    k, previous = start.n_clusters_, start.posterior_
    ordered = in_order(betas, float(start.beta_))
    for beta in ordered:
        settings: dict[str, Any] = {"schedule": "constant", "solver": "nodewise", "random_state": wish.seed}
        model = GraphClustering(k, beta=beta, start=previous, **settings).fit(frame)
        previous = model.posterior_
        model.notes_ = {}
        sample = model.sample(frame)
        try:
            certificate = next(iter(OfGraph(model, sample, "").certificates(Asked(delta)).values()))
        except GinghamError:  # weights without stated bounds
            certificate = None
        loss = previous.gibbs_loss(sample)
        yield PathPoint(beta, previous, loss, np.nan, np.nan, np.nan, certificate), len(ordered)


def count_points(
    table: pl.DataFrame, wish: Wish, betas: list[float] | None, delta: float
) -> Iterator[tuple[PathPoint, int]]:
    from gingham.cli.columns import numbered
    from gingham.cli.of_counts import matrix, tokens
    from gingham.errors import RefusedCertificate
    from gingham.models.counts.estimator import CoOccurrenceClustering

    kept, weights = tokens(table, wish.axes, wish.weight or wish.label)
    modes, codes = numbered(kept, wish.axes)
    counts = matrix(codes, weights, [mode.n_items for mode in modes])
    clusters: Any = "auto" if wish.clusters is None else wish.clusters
    start = CoOccurrenceClustering(clusters, random_state=wish.seed).fit(counts)
    labels = (start.row_labels_, start.column_labels_)
    ordered = in_order(betas, 1.0)
    for beta in ordered:
        model = CoOccurrenceClustering(start.n_clusters_, beta, "concave", labels, random_state=wish.seed).fit(counts)
        try:
            certificate = model.certify(counts, delta)
        except RefusedCertificate:  # weights that are no counts
            certificate = None
        yield PathPoint(beta, model.posterior_, -model.information_, np.nan, np.nan, np.nan, certificate), len(ordered)


def in_order(betas: list[float] | None, scale: float) -> list[float]:
    """Largest first; eight values around a scale where none are given."""
    if betas is None:
        return [float(scale * b) for b in np.geomspace(3.0, 0.1, 8)]
    if min(betas) <= 0 or not np.isfinite(betas).all():
        raise GinghamError("--betas needs finite numbers above 0.")
    return sorted(set(betas), reverse=True)


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
