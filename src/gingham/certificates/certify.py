"""The door: check what a theorem assumes, collect the evidence, return the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gingham.arrays import Anything, Floats
from gingham.cells import CellModel, Logarithmic, Quadratic, TableLoss, make_cell
from gingham.certificates import bounds as all_bounds
from gingham.certificates.certificate import Assumption, Certificate, worst_of
from gingham.certificates.complexity import Complexity
from gingham.certificates.evidence import Evidence, collect
from gingham.certificates.law import mixture
from gingham.certificates.theorems import find
from gingham.data import Alphabet, Mode, Sample
from gingham.data.adapt import id_columns
from gingham.errors import GinghamError, RefusedCertificate
from gingham.posterior import Posterior
from gingham.structure import Structure

INDEPENDENT = Assumption(
    "The tuples were drawn independently of each other from the population that new tuples will come from "
    "(or at random without replacement from it).",
    "given",
)


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    bound: str = "log-wealth",
    delta: float = 0.05,
    predictor: str = "gibbs",
    sample_weight: Any = None,
    alphabet: Any = None,
    anytime: bool = False,
    lower: bool = False,
    relation: int = 0,
    population: Sequence[int] | None = None,
    **options: Any,
) -> Certificate:
    """A guarantee on the loss of a co-clustering on new tuples.

    Parameters
    ----------
    model : fitted estimator with ``posterior_``, Posterior, or committee (``members_``)
        It may have been fitted on the same tuples: the theorems hold for all posteriors at once.
    X, y : ids (N, d) and labels (N,), or a Sample
    bound : str
        "log-wealth" (default), "type-kl", "kl", "split-kl", "bernstein", "theorem-1", "theorem-7" (also
        "eq-18", "eq-53"). "holdout" covers any predictor on tuples that the fit has not seen; "split"
        splits, fits an unfitted estimator, and certifies.
    delta : float
        The guarantee holds with probability at least 1 − delta.
    predictor : {"gibbs", "mean", "median", "mode"}
        What is covered. Mean follows from Gibbs for convex losses; median and mode need "holdout".
    sample_weight : array of whole numbers, optional
        Counts.
    alphabet : sequence, optional
        States the possible labels when the model read them off the data.
    anytime : bool
        State that the certificate is looked at again and again while data arrive (log-wealth only).
    lower : bool
        Also bound the loss from below; each side then holds with delta/2.
    relation : int
        Which relation of a model with several (shared matrices).
    population : sequence of int, optional
        How many items of each mode could have been drawn, where the model knows fewer: tuples with items it
        has never seen are then covered too (they are predicted with the mode's masses).
    **options
        Of "holdout" and "split".

    Returns
    -------
    Certificate

    Raises
    ------
    RefusedCertificate
        Where no theorem covers what was asked.
    """
    if bound == "split":
        from gingham.certificates.split import certify_split

        return certify_split(model, X, y, delta=delta, predictor=predictor, sample_weight=sample_weight, **options)
    members = committee_members(model)
    posterior = posterior_of(members[0] if members else model)
    cell, statement = stated_cell(posterior.cells[relation], alphabet)
    posterior = with_cell(posterior, cell, relation)
    sample = sample_of(posterior, X, y, sample_weight, relation)
    if bound == "holdout" and members:
        raise RefusedCertificate("Certify a committee's finished predictions with certify_predictions.")
    if bound == "holdout":
        from gingham.certificates.holdout import certify_posterior

        return certify_posterior(posterior, sample, statement, delta, predictor, relation=relation, **options)
    if options:
        raise GinghamError(f"certify() got unknown options {', '.join(options)} for bound={bound!r}.")
    theorem = find(bound)
    covered = covered_predictor(cell, predictor)
    if anytime and not theorem.anytime:
        raise RefusedCertificate(
            f"bound={theorem.name!r} holds for one sample size fixed beforehand; only log-wealth holds for all at once."
        )
    if members:
        same_cells = [with_cell(member, cell, relation) for member in members]
        evidence = pooled([collect(member, sample, relation, population) for member in same_cells])
    else:
        evidence = collect(posterior, sample, relation, population)
    assumptions = (INDEPENDENT, statement, *item_assumptions(posterior, relation, population), *_scale(evidence))
    if anytime:
        assumptions += (Assumption("Items, labels and loss were fixed before the first tuple arrived.", "given"),)
    certificate = from_theorem(bound, evidence, delta / 2 if lower else delta, covered, assumptions, loss_name(cell))
    certificate = replace(certificate, anytime=anytime, delta=delta)
    if lower:
        certificate = replace(certificate, lower=_lower(theorem.name, theorem.price, evidence, delta / 2))
    return certificate


def certify_labels(
    labels: Sequence[Any],
    X: Any,
    y: Any,
    *,
    loss: Any = "absolute",
    alphabet: Any = None,
    label_bounds: tuple[float, float] | None = None,
    items: Sequence[Any] | None = None,
    sample_weight: Any = None,
    graph: bool = False,
    **options: Any,
) -> Certificate:
    """A guarantee for clusters from any library: each cell answers what fits its tuples best.

    Parameters
    ----------
    labels : sequence with one entry per mode
        A mapping from item id to cluster, or an array of cluster labels for the mode's items. An array goes
        with ``items`` (ids in the same order) or, without it, with the sorted distinct ids of the column or
        the ids 0, 1, …, n − 1.
    X, y : ids (N, d) and labels (N,)
    loss : name, table or callable, as for the estimators
    alphabet : sequence
        The possible labels; needed, except for the quadratic loss with ``label_bounds``.
    graph : bool
        Both columns of X are ends of an undirected edge, and ``labels`` has one entry.
    **options
        As for :func:`certify`.
    """
    columns = id_columns(X)
    d = len(columns.columns)
    wanted = 1 if graph else d
    if len(labels) != wanted:
        raise GinghamError(f"labels has {len(labels)} entries; this data needs {wanted}, one per clustered mode.")
    if alphabet is None and label_bounds is None:
        raise RefusedCertificate(
            "State the possible labels: alphabet=(1, 2, 3, 4, 5), say. Labels read off the data would make the "
            "guarantee depend on what happened to be observed."
        )
    letters = None if alphabet is None else Alphabet.of(alphabet, given=True)
    cell = make_cell(loss, letters, label_bounds)
    modes, assigns = [], []
    for at, given in enumerate(labels):
        seen = np.concatenate(columns.columns) if graph else columns.columns[at]
        mode, assign = _hard_mode(given, seen, None if items is None else items[at], columns.names[at])
        modes.append(mode)
        assigns.append(assign)
    structure = Structure((modes[0],), ((0, 0),)) if graph else Structure.grid(modes)
    positions = [structure.modes[i] for i in structure.factors[0]]
    sample = Sample.of(columns.columns, y, sample_weight, modes=positions, alphabet=letters)
    blank = Posterior(structure, (cell,), tuple(assigns), (np.zeros(0),))
    statistics = blank.statistics(sample)
    if graph:
        statistics = statistics + np.swapaxes(statistics, 0, 1)
    posterior = replace(blank, answers=(cell.answer(statistics),))
    return certify(posterior, sample, **options)


def from_theorem(
    bound: str,
    evidence: Evidence,
    delta: float,
    predictor: str,
    assumptions: tuple[Assumption, ...],
    loss: str,
) -> Certificate:
    """The certificate that one theorem gives on collected evidence."""
    theorem = find(bound)
    price = evidence.prices[theorem.price]
    result = theorem.function(evidence.law, price.total, evidence.n_tuples, delta)
    return Certificate(
        value=evidence.in_unit(result.value),
        empirical=evidence.empirical,
        bound=theorem.name,
        predictor=predictor,
        delta=delta,
        n_tuples=evidence.n_tuples,
        terms={**price.terms, **result.price},
        assumptions=assumptions,
        worst=worst_of(evidence),
        evidence=evidence,
        parameters=result.parameters,
        loss=loss,
        text=theorem.text,
        latex=theorem.latex,
        reference=theorem.reference,
    )


def _lower(name: str, price: str, evidence: Evidence, delta: float) -> float:
    complexity = evidence.prices[price].total
    function = all_bounds.log_wealth_lower if name == "log-wealth" else all_bounds.maurer_lower
    return evidence.in_unit(function(evidence.law, complexity, evidence.n_tuples, delta).value)


def committee_members(model: Any) -> list[Posterior]:
    """The posteriors of a committee, if the model is one and all its members have the same items."""
    members = getattr(model, "members_", None)
    if members is None or isinstance(model, Posterior):
        return []
    posteriors = [posterior_of(member) for member in members]
    for posterior in posteriors[1:]:
        for one, other in zip(posteriors[0].structure.columns(), posterior.structure.columns()):
            if one.n_items != other.n_items or (one.items != other.items).any():
                raise RefusedCertificate(
                    "The members of this committee have not seen the same items, so that no Gibbs bound covers them "
                    "together. Certify the committee's predictions with certify_predictions."
                )
    return posteriors


def pooled(parts: Sequence[Evidence]) -> Evidence:
    """The evidence about a committee: draw a member, then its co-clustering.

    KL(mixture‖P) ≤ mean of the members' KL (convexity, no ln K), and the law of the Gibbs loss is the
    average law.
    """
    first = parts[0]
    prices = {}
    for kind in first.prices:
        names = dict.fromkeys(name for part in parts for name in part.prices[kind].terms)
        prices[kind] = Complexity(
            {name: sum(part.prices[kind].terms.get(name, 0.0) for part in parts) / len(parts) for name in names}
        )
    law = mixture([part.law for part in parts])
    return replace(first, law=law, prices=prices, covered=None, n_answers=max(part.n_answers for part in parts))


def posterior_of(model: Any) -> Posterior:
    """The posterior of a fitted estimator, or the posterior itself."""
    if getattr(model, "degree_model_", None) is not None:
        raise RefusedCertificate(
            "This model corrects its predictions for degrees, which no bound here covers. Certify its blocks alone "
            "(model.posterior_), or its predictions on other pairs (certify_predictions)."
        )
    posterior = model if isinstance(model, Posterior) else getattr(model, "posterior_", None)
    if not isinstance(posterior, Posterior):
        raise GinghamError(
            f"{type(model).__name__} has no posterior_: fit it first, or pass a Posterior. For any other predictor use "
            "certify_predictions on tuples it was not fitted on."
        )
    return posterior


def stated_cell(cell: CellModel, alphabet: Any) -> tuple[CellModel, Assumption]:
    """The cell model on stated labels; refuses labels that were read off the data without a word."""
    letters: Alphabet | None = getattr(cell, "alphabet", None)
    if letters is None:
        bounds = getattr(cell, "bounds", None)
        if bounds is None:
            raise RefusedCertificate(
                f"{type(cell).__name__}: the loss is unbounded, and no theorem covers an unbounded loss. "
                "Give alphabet= (the possible labels) or bounds=(smallest, largest) to the model."
            )
        return cell, Assumption(f"Labels lie between {bounds[0]:g} and {bounds[1]:g}.", "given")
    if alphabet is not None:
        stated = Alphabet.of(alphabet, given=True)
        if stated.size != letters.size or (stated.values != letters.values).any():
            raise GinghamError(
                f"alphabet= names {stated.size} labels, the model was fitted with {letters.size}: "
                "fit the model with the same alphabet=."
            )
        letters = stated
    if not letters.given:
        raise RefusedCertificate(
            "The possible labels were read off the data, and a guarantee must not depend on what happened to be "
            "observed. State them: certify(..., alphabet=(...)), or alphabet=(...) when fitting."
        )
    shown = ", ".join(str(v) for v in letters.values[:8]) + (", …" if letters.size > 8 else "")
    return cell, Assumption(f"Labels are among {shown}.", "given")


def with_cell(posterior: Posterior, cell: CellModel, relation: int) -> Posterior:
    cells = list(posterior.cells)
    cells[relation] = cell
    return replace(posterior, cells=tuple(cells))


def sample_of(posterior: Posterior, X: Any, y: Any, weights: Any, relation: int) -> Sample:
    """The tuples in the posterior's own numbering; items it does not know are refused."""
    if isinstance(X, Sample):
        return X
    columns = id_columns(X)
    positions = posterior.structure.columns(relation)
    if len(columns.columns) != len(positions):
        raise GinghamError(f"X has {len(columns.columns)} columns, the model {len(positions)} modes.")
    if y is None:
        raise GinghamError("A certificate needs the labels y of the tuples.")
    return Sample.of(
        columns.columns, y, weights, modes=positions, alphabet=getattr(posterior.cells[relation], "alphabet", None)
    )


def covered_predictor(cell: CellModel, predictor: str) -> str:
    """What a bound on the Gibbs loss covers; refuses the rest."""
    if predictor == "gibbs":
        return predictor
    if predictor == "mean":
        if not cell.convex:
            raise RefusedCertificate(
                f"{type(cell).__name__} is not convex in the prediction, so that a Gibbs bound says nothing about the "
                "mean prediction. Use predictor='gibbs', or bound='holdout' on tuples the fit has not seen."
            )
        return predictor
    if predictor in ("median", "mode"):
        raise RefusedCertificate(
            f"The {predictor} prediction can lose up to twice what the randomised predictor loses, and no Gibbs bound "
            "covers it. Use predictor='gibbs' or 'mean', or bound='holdout' on tuples the fit has not seen."
        )
    raise GinghamError(f"predictor={predictor!r} is unknown; choose gibbs, mean, median or mode.")


def item_assumptions(
    posterior: Posterior, relation: int, population: Sequence[int] | None = None
) -> tuple[Assumption, ...]:
    modes = posterior.structure.columns(relation)
    sizes = dict(zip(posterior.structure.modes, population or [m.n_items for m in posterior.structure.modes]))
    counts = ", ".join(f"{sizes[mode]:,} of {mode.name!r}" for mode in dict.fromkeys(modes))
    rest = "; tuples with other items are not covered" if population is None else ""
    return (
        Assumption(f"The items ({counts}) were fixed before the tuples were drawn{rest}.", "given"),
        Assumption("Every tuple's items are known to the model, and weights are whole counts.", "checked"),
    )


def _scale(evidence: Evidence) -> tuple[Assumption, ...]:
    facts = [Assumption(f"The loss lies between {evidence.low:g} and {worst_of(evidence):g}.", "checked")]
    if evidence.rounded:
        facts.append(
            Assumption(
                f"The cells' answers are rounded to {evidence.n_answers:,.0f} possible ones; certificate.posterior is "
                "the model with these answers.",
                "checked",
            )
        )
    return tuple(facts)


def loss_name(cell: CellModel) -> str:
    """A readable name of the loss."""
    names: dict[type[CellModel], str] = {Quadratic: "quadratic", Logarithmic: "log", TableLoss: "table"}
    name = type(cell).__name__
    return names.get(type(cell), "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-"))


def _hard_mode(given: Any, seen: Anything, items: Any, name: str) -> tuple[Mode, Floats]:
    """A mode with hard assignments from a mapping or an array of cluster labels."""
    if hasattr(given, "items") and callable(given.items) and not hasattr(given, "dtype"):
        pairs = dict(given)
        mode = Mode.of(np.array(list(pairs)), name)
        clusters = np.array([pairs[item] for item in mode.items.tolist()])
    else:
        clusters = np.asarray(given)
        if clusters.ndim != 1:
            raise GinghamError(f"Cluster labels of {name!r} must be a flat array, not of shape {clusters.shape}.")
        if items is not None:
            ids = np.asarray(items)
            if len(ids) != len(clusters):
                raise GinghamError(f"{name!r} has {len(ids)} items but {len(clusters)} cluster labels.")
            mode = Mode.of(ids, name)
            if mode.n_items != len(ids):
                raise GinghamError(f"items= of {name!r} names an item twice.")
            clusters = clusters[np.argsort(mode.encode(ids), kind="stable")]
        else:
            mode = _implicit_mode(seen, len(clusters), name)
    _, codes = np.unique(clusters, return_inverse=True)
    return mode, np.eye(int(codes.max()) + 1)[codes]


def _implicit_mode(seen: Anything, n_labels: int, name: str) -> Mode:
    distinct = Mode.of(seen, name)
    if distinct.n_items == n_labels:
        return distinct
    if seen.dtype.kind in "iu" and distinct.items.min() >= 0 and distinct.items.max() < n_labels:
        return Mode(name, np.arange(n_labels))
    raise GinghamError(
        f"{name!r} has {distinct.n_items} different items but {n_labels} cluster labels. Give items= (the ids in the "
        "order of the labels), or a mapping from id to cluster."
    )
