"""A coarser checkerboard from a fitted model, as a new fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from gingham.core.problem import Posterior, Problem, find_posterior
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.fitting import merging


class OneGrid(Protocol):
    """What merging asks of a fitted model with one grid, beside its β: ``beta_``, or ``beta`` as it was given."""

    posterior_: Posterior

    def sample(self, X: object, y: object, sample_weight: object = None) -> Sample:
        """Labelled observations in the model's own numbering."""

    def _with_posterior(self, posterior: Posterior, problem: Problem | None = None) -> Self:
        """The same model with other memberships and answers; ``problem`` has the observations that decided them."""


@runtime_checkable
class MergesItself(Protocol):
    """A fitted model that merges its clusters in a way of its own, as graphs, counts and layers do."""

    def _simplified(
        self,
        X: object,
        y: object = None,
        max_clusters: int | Sequence[int] | None = None,
        max_loss: float | None = None,
        sample_weight: object = None,
    ) -> Self:
        """A coarser model; the arguments are those of `simplify`."""


Model = TypeVar("Model", bound=OneGrid | MergesItself)


def simplify(
    model: Model,
    X: object,
    y: object = None,
    max_clusters: int | Sequence[int] | None = None,
    max_loss: float | None = None,
    sample_weight: object = None,
) -> Model:
    """A coarser checkerboard from one fit.

    Parameters
    ----------
    model : fitted model with one grid, of a graph or of counts; layers or a committee
    X, y : the training observations; the graph or the counts that were fitted, and no y
    max_clusters : int or one int per mode, optional
        Go on merging, the cheapest pair first, until no mode has more clusters.
    max_loss : float, optional
        Go on as long as the empirical Gibbs loss stays at or below this. With both limits, a checkerboard that
        is small enough but loses more is refused.

    Returns
    -------
    A new fitted model of the same kind, without empty clusters. Without limits: the one where merging no longer pays.
    Of layers and committees, whose clusterings are many: the one checkerboard that is distilled from their predictions,
    of the readable size without limits, as a `CoClusteringRegressor` or `CoClusteringClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(6, beta=3.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> gg.simplify(model, X, y, max_clusters=2).posterior_.answers[0].shape
    (2, 2)
    """
    if isinstance(model, MergesItself):
        return model._simplified(X, y, max_clusters, max_loss, sample_weight)
    posterior = merging.prune(_posterior(model))
    problem = problem_of(model, X, y, sample_weight)
    n_observations = problem.samples[0].n_observations
    if max_clusters is None:
        rungs = list(merging.ladder(problem, posterior))
        if max_loss is None:
            return model._with_posterior(min(rungs, key=lambda rung: rung.total).posterior, problem)
        low = [rung for rung in rungs if rung.loss(n_observations) <= max_loss]
        if not low:
            raise GinghamError(
                f"max_loss={max_loss:g} cannot be kept: the model itself loses {rungs[0].loss(n_observations):.4g}."
            )
        return model._with_posterior(low[-1].posterior, problem)
    limits = [int(m) for m in np.broadcast_to(np.asarray(max_clusters), (len(posterior.assign),))]
    if min(limits) < 1:
        raise GinghamError(f"max_clusters={max_clusters!r}: at least one cluster per mode is needed.")
    *_, last = merging.ladder(problem, posterior, limits)
    if max_loss is not None and last.loss(n_observations) > max_loss:
        raise GinghamError(
            f"max_loss={max_loss:g} cannot be kept: {max_clusters} clusters lose {last.loss(n_observations):.4g}."
        )
    return model._with_posterior(last.posterior, problem)


def problem_of(model: OneGrid, X: object, y: object, sample_weight: object = None) -> Problem:
    """The trade-off that the model was fitted to."""
    posterior = _posterior(model)
    beta = float(getattr(model, "beta_", getattr(model, "beta", np.nan)))
    return Problem(posterior.structure, (model.sample(X, y, sample_weight),), posterior.cells, (beta,))


def _posterior(model: OneGrid) -> Posterior:
    posterior = find_posterior(model) if hasattr(model, "_with_posterior") else None
    if posterior is None or len(posterior.structure.factors) != 1:
        raise GinghamError(f"{type(model).__name__} is not a fitted model with one grid; fit it first.")
    return posterior
