"""gingham.certify: one function for fitted models, for anybody's clusters and for graphs; the bound says how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import TableLike
from gingham.certificates import bounds as all_bounds
from gingham.certificates.assumptions import checked, given
from gingham.certificates.bounds import Theorem, checked_delta, find
from gingham.certificates.certificate import Certificate, from_theorem
from gingham.certificates.density import of_density
from gingham.certificates.evidence import Evidence, collect, pooled
from gingham.certificates.gain import over_constants
from gingham.certificates.holdout import of_folds, on_other_rows
from gingham.certificates.labels import posterior_of_labels
from gingham.certificates.observed import (
    Population,
    check_population,
    coverage,
    covered_predictor,
    posteriors_of,
    sample_of,
    source,
    stated_labels,
)
from gingham.certificates.record import Record, grid_facts
from gingham.certificates.split import on_a_split
from gingham.core.problem import find_posterior
from gingham.data import Sample
from gingham.errors import RefusedCertificate

INDEPENDENT = given("independent or without replacement")
# A sample without replacement is no martingale: what is looked at again and again must be independent.
ARRIVING = (given("arriving"), given("fixed before arrival"))
# bound= that are no theorem for all posteriors at once, but a procedure with options of its own
PROCEDURES: Mapping[str, Callable[..., Certificate]] = {
    "holdout": on_other_rows,
    "split": on_a_split,
    "folds": of_folds,
    "gain": over_constants,
    "density": of_density,
}


def certify(
    model: object,
    X: TableLike | Sample | object = None,
    y: npt.ArrayLike | None = None,
    *,
    bound: str = "log-wealth",
    delta: float = 0.05,
    predictor: str | None = None,
    sample_weight: npt.ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    **options: Any,
) -> Certificate:
    """A guarantee on the loss of a co-clustering on new observations, whether or not their items were seen.

    Parameters
    ----------
    model : fitted estimator with ``posterior_``, Posterior, committee (``members_``), or labels
        A model may have been fitted on the same rows: the theorems hold for all posteriors at once. Labels are the
        clusters of any program: a list with one entry per column of X, or a single entry for the nodes of a graph; an
        entry is a mapping from item to cluster, or an array in the order of ``items`` (the sorted ids by default).
        Each cell answers what fits its observations best.
    X, y : ids (N, d) and labels (N,), or a Sample
        With labels of nodes, X is the graph, see ``from_graph``, or holds pairs whose labels are y.
    bound : str
        On the rows of the fit: "log-wealth" (default), "type-kl", "kl", "split-kl", "bernstein", "theorem-1",
        "theorem-7" (also "eq-18", "eq-53"). "gain": the loss less that of a constant; below zero, co-clustering
        provably predicts better. "holdout": any predictor of the model, on rows that the fit has
        not seen. "split": fits an unfitted estimator on a part of the rows. "folds": a committee of which member j has
        not seen fold j (``Committee(…, cross=True)``, which keeps its rows). "density": the code length of X.
    delta : float
        The guarantee holds with probability at least 1 − delta.
    predictor : {"gibbs", "mean", "median", "mode"}
        What is covered, "gibbs" (randomised) by default. Mean follows from Gibbs for convex losses; median and mode
        need "holdout".
    sample_weight : array of whole numbers, optional
        A row of weight w stands for w draws.
    alphabet : sequence, optional
        States the possible labels when the model read them off the data; needed for labels of clusters.
    **options
        Of the rows of the fit: ``anytime`` (the certificate is inspected while observations arrive; log-wealth only),
        ``lower`` (also bound the loss from below, each side with delta/2), ``relation`` (of a model with several
        tables), ``population`` (how many items of each mode there are in all, as a sequence or by name; the papers'
        bounds and "density" need it). Of "holdout": ``candidates``, ``method``, ``strata``, ``random_state``. Of
        "split": ``fraction``, ``method`` ("holdout", "prior"), ``random_state``, ``candidates``, ``rows``. Of "folds":
        ``loss``, ``label_bounds``. Of labels: ``loss``, ``label_bounds``, ``items``; of graphs ``pairs`` and
        ``directed``, as for ``from_graph``.

    Returns
    -------
    Certificate
        With "split" its ``model`` is the one that was fitted, with "density" the density that is covered.

    Raises
    ------
    RefusedCertificate
        Where no theorem covers what was asked.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> certificate = gg.certify(model, X, y)
    >>> round(certificate.value, 2), round(certificate.empirical, 2)
    (0.36, 0.0)
    >>> gg.certify(model, X, y, bound="gain").value < 0  # provably better than any constant
    True
    >>> parity = {item: item % 2 for item in range(30)}  # clusters that some other program found
    >>> round(gg.certify([parity, parity], X, y, alphabet=[1, 5]).value, 2)
    0.35
    """
    checked_delta(delta)
    common = {"predictor": predictor, "sample_weight": sample_weight, "alphabet": alphabet}
    asked = {name: value for name, value in common.items() if value is not None} | options
    if options.get("population", 0) is None:
        del asked["population"]
    if isinstance(model, (Mapping, list, tuple, np.ndarray)) and bound != "density":  # clusters of items
        if bound in PROCEDURES and bound != "gain":
            raise RefusedCertificate(
                f"bound={bound!r} tests a finished predictor on other rows, but here the answers of the cells are "
                "fitted to these rows: leave bound= out (log-wealth pays for the answers)."
            )
        stated = {name: asked.pop(name) for name in signature(posterior_of_labels).parameters if name in asked}
        model, X = posterior_of_labels(model, X, y, **stated)
        y = None
    procedure = PROCEDURES.get(bound) or partial(on_rows_of_the_fit, find(bound))
    known = signature(procedure).parameters
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise RefusedCertificate(
            f"bound={bound!r} does not take {unknown[0]}=; its options are "
            f"{', '.join(name for name in known if known[name].kind is known[name].KEYWORD_ONLY)}."
        )
    return procedure(model, X, y, delta=delta, **asked)


def on_rows_of_the_fit(
    theorem: Theorem,
    model: object,
    X: TableLike | Sample,
    y: npt.ArrayLike | None,
    *,
    delta: float,
    predictor: str = "gibbs",
    sample_weight: npt.ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    anytime: bool = False,
    lower: bool = False,
    relation: int = 0,
    population: Population | None = None,
) -> Certificate:
    """What a theorem for all posteriors says, on rows that the model may have been fitted on."""
    members = posteriors_of(model)
    posterior, cell = members[0], members[0].label_cell(relation)
    statement = stated_labels(cell, alphabet)
    sample = sample_of(posterior, X, y, sample_weight, relation, getattr(model, "backend", "auto"))
    if population is not None and sample.has_unseen and not isinstance(X, Sample):
        check_population(posterior, X, sample, relation, population)
    covered = covered_predictor(cell, predictor)
    if lower and covered != "gibbs":
        raise RefusedCertificate(
            f"lower=True bounds the randomised predictor from below (predictor='gibbs'): the {covered} prediction may "
            "lose less than that."
        )
    if anytime and not theorem.anytime:
        raise RefusedCertificate(
            f"bound={theorem.name!r} holds for one sample size that was fixed beforehand; only log-wealth holds for "
            "all sample sizes."
        )
    same_cells = (replace(member, cells=posterior.cells) for member in members)
    evidence = pooled([collect(member, sample, relation, population) for member in same_cells])
    assumptions = (
        *source(posterior, relation, sample, *(ARRIVING if anytime else (INDEPENDENT,))),
        statement,
        *coverage(posterior, relation, population),
        checked("range", low=float(evidence.low), high=float(evidence.in_unit(1.0))),
        *((checked("rounded answers", n=evidence.n_answers),) if evidence.rounded else ()),
    )
    certificate = from_theorem(theorem, evidence, delta / 2 if lower else delta, covered, assumptions, cell.name)
    certificate = replace(certificate, anytime=anytime, delta=delta)
    if lower:
        certificate = replace(certificate, lower=_lower(theorem, evidence, delta / 2))
    if evidence.covered is None or find_posterior(model) is None:
        return certificate
    stated = {"n_answers": evidence.n_answers, "rounded": evidence.rounded, "population": population}
    facts = partial(grid_facts, evidence.covered, relation, **stated)
    return replace(certificate, record=Record("in sample", X, y, sample_weight, facts))


def _lower(theorem: Theorem, evidence: Evidence, delta: float) -> float:
    complexity = evidence.prices[theorem.price].total
    function = all_bounds.log_wealth_lower if theorem.name == "log-wealth" else all_bounds.maurer_lower
    return evidence.in_unit(function(evidence.distribution, complexity, evidence.n_observations, delta).value)
