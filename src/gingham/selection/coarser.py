"""Coarser checkerboards from a fitted model: prune, merge, simplify; each returns a new fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from gingham.cells import Mass
from gingham.certificates import certify
from gingham.core.posterior import Posterior
from gingham.core.problem import Problem
from gingham.data.graphs import PairSample
from gingham.errors import GinghamError
from gingham.fitting import coarsen
from gingham.fitting.coarsen import Rung
from gingham.fitting.starts import from_labels
from gingham.models.counts.starts import merge as merge_counts
from gingham.models.graph.degrees import DegreeModel
from gingham.models.graph.fit import graph_problem, search_problem
from gingham.models.graph.merging import merge_greedily
from gingham.models.graph.partition import compact, finder
from gingham.models.graph.solvers import answered


def prune(model: Any, least: float = 0.5) -> Any:
    """The model without clusters that expect fewer than ``least`` items."""
    return _with(model, coarsen.prune(_posterior(model), least))


def merge(
    model: Any, X: Any, y: Any, sample_weight: Any = None, by: str = "tradeoff", bound: str = "log-wealth"
) -> Any:
    """The model with clusters merged, the cheapest pair first, as long as that pays.

    Parameters
    ----------
    model : fitted model with one grid
    X, y : the training tuples
    by : {"tradeoff", "certificate"}
        What must fall: the trade-off with the price of the cells, or the certificate of the merged model on
        these tuples. The bounds hold for all posteriors at once, so that choosing by them costs nothing.
    bound : str
        Which certificate.
    """
    if by == "tradeoff":
        return simplify(model, X, y, sample_weight=sample_weight)
    if by != "certificate":
        raise GinghamError(f"by={by!r} is unknown; choose tradeoff or certificate.")
    sample = model.sample(X, y, sample_weight)
    rungs = steps(model, X, y, sample_weight)
    return _with(model, min((rung.posterior for rung in rungs), key=lambda q: certify(q, sample, bound=bound).value))


def simplify(
    model: Any,
    X: Any,
    y: Any,
    max_clusters: int | Sequence[int] | None = None,
    max_loss: float | None = None,
    sample_weight: Any = None,
) -> Any:
    """A coarser checkerboard from one fit.

    Parameters
    ----------
    model : fitted model with one grid
    X, y : the training tuples
    max_clusters : int or one int per mode, optional
        Go on merging, the cheapest pair first, until no mode has more clusters.
    max_loss : float, optional
        Go on as long as the empirical Gibbs loss stays at or below this. With both limits, a checkerboard that
        is small enough but loses more is refused.

    Returns
    -------
    A new fitted model of the same kind. Without limits: the one where merging no longer pays.
    """
    posterior = coarsen.prune(_posterior(model))
    problem = problem_of(model, X, y, sample_weight)
    n_tuples = problem.samples[0].n_tuples
    if max_clusters is None:
        rungs = list(coarsen.ladder(problem, posterior))
        if max_loss is None:
            return _with(model, min(rungs, key=lambda rung: rung.total).posterior)
        low = [rung for rung in rungs if rung.loss(n_tuples) <= max_loss]
        if not low:
            raise GinghamError(
                f"max_loss={max_loss:g} cannot be kept: the model itself loses {rungs[0].loss(n_tuples):.4g}."
            )
        return _with(model, low[-1].posterior)
    limits = [int(m) for m in np.broadcast_to(np.asarray(max_clusters), (len(posterior.assign),))]
    if min(limits) < 1:
        raise GinghamError(f"max_clusters={max_clusters!r}: at least one cluster per mode is needed.")
    *_, last = coarsen.ladder(problem, posterior, limits)
    if max_loss is not None and last.loss(n_tuples) > max_loss:
        raise GinghamError(
            f"max_loss={max_loss:g} cannot be kept: {max_clusters} clusters lose {last.loss(n_tuples):.4g}."
        )
    return _with(model, last.posterior)


def steps(model: Any, X: Any, y: Any, sample_weight: Any = None) -> list[Rung]:
    """Every checkerboard from the model's own down to a single cell, cheapest merge first."""
    return list(coarsen.ladder(problem_of(model, X, y, sample_weight), coarsen.prune(_posterior(model))))


def problem_of(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Problem:
    """The trade-off that the model was fitted to."""
    posterior = _posterior(model)
    beta = getattr(model, "beta_", model.beta)
    return Problem(posterior.structure, (model.sample(X, y, sample_weight),), posterior.cells, (float(beta),))


def _posterior(model: Any) -> Posterior:
    posterior = getattr(model, "posterior_", None)
    if not isinstance(posterior, Posterior) or len(posterior.structure.factors) != 1:
        raise GinghamError(f"{type(model).__name__} is not a fitted model with one grid; fit it first.")
    return posterior


def _with(model: Any, posterior: Posterior) -> Any:
    new = copy(model)
    new.posterior_ = posterior
    return new


def simplify_graph(model: Any, sample: PairSample, n_clusters: int | None = None) -> Any:
    """A coarser clustering of a graph: clusters merged to a number, or while the description length falls."""
    problem = graph_problem(sample, model.posterior_.cells[0], float(model.beta_))
    search = finder(search_problem(problem), model.backend)
    labels, k = compact(model.labels_)
    labels, k = compact(merge_greedily(search.blocks(labels, k), search.code, n_clusters)[labels])
    new = _with(model, answered(problem, from_labels(problem, [labels], [k]))[0])
    if model.degree_model_ is not None:
        new.degree_model_ = DegreeModel.of(sample, labels, k)
    return new


def simplify_counts(model: Any, n_clusters: Sequence[int]) -> Any:
    """Coarser blocks of counts: row clusters, then column clusters, merged where least information is lost."""
    if model.column_memberships_ is None:
        raise GinghamError("Columns were left by themselves: fit with column clusters, or with fewer row clusters.")
    new = copy(model)
    table, memberships = model.blocks_, [model.row_memberships_, model.column_memberships_]
    for axis, wanted in enumerate(n_clusters):
        profiles = table.T if axis == 0 else table  # one column a cluster of this side
        size = profiles.shape[1]
        into = np.eye(min(wanted, size))[merge_counts(profiles, np.arange(size), min(wanted, size))]
        table = into.T @ table if axis == 0 else table @ into
        memberships[axis] = memberships[axis] @ into
    new.blocks_, (new.row_memberships_, new.column_memberships_) = table, memberships
    new.row_labels_, new.column_labels_ = (q.argmax(axis=1) for q in memberships)
    before = model.information_
    new.information_ = -float(Mass().envelope(table[..., None]).sum() / table.sum())
    new.information_kept_ = model.information_kept_ * (new.information_ / before if before > 0 else 1.0)
    return new
