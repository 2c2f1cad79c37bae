"""The door: check what a theorem assumes, collect the evidence, return the certificate, once or along a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, Ints, TableLike
from gingham.cells import CellModel
from gingham.certificates import bounds as all_bounds
from gingham.certificates.bounds import find
from gingham.certificates.certificate import Assumption, Certificate, drawn_rows, from_theorem
from gingham.certificates.confidence import checked_delta
from gingham.certificates.evidence import (
    Evidence,
    Population,
    check_order,
    collect,
    stated_population,
    unbounded,
)
from gingham.certificates.holdout import certify_held_out, committee_members, pooled, without_rows_of_the_fit
from gingham.certificates.record import Record, cell_facts, posterior_facts
from gingham.certificates.row_losses import stated_labels
from gingham.core.problem import Posterior, find_posterior
from gingham.data import Alphabet, Bounds, Sample
from gingham.data.adapt import id_columns
from gingham.data.fit_rows import need_rows_once
from gingham.data.sample import checked_labels, sample_kind
from gingham.engine.place import Work
from gingham.errors import GinghamError, RefusedCertificate

INDEPENDENT = Assumption(
    "The tuples were drawn independently of each other from the population that new tuples will come from "
    "(or at random without replacement from it).",
    "given",
)
# A sample without replacement is no martingale: what is looked at again and again must be independent.
ARRIVING = (
    Assumption(
        "The tuples arrived one by one, independently of each other, from the population that new tuples will come "
        "from; all that arrived are counted.",
        "given",
    ),
    Assumption(
        "Labels, loss and delta were fixed before the first tuple arrived. The model may be refitted, its size "
        "changed, and the certificate looked at after every tuple, and one may stop whenever one likes.",
        "given",
    ),
)


def certify(
    model: object,
    X: TableLike | Sample,
    y: npt.ArrayLike | None = None,
    *,
    bound: str = "log-wealth",
    delta: float = 0.05,
    predictor: str = "gibbs",
    sample_weight: npt.ArrayLike | None = None,
    alphabet: Iterable[object] | None = None,
    anytime: bool = False,
    lower: bool = False,
    relation: int = 0,
    population: Population | None = None,
    **options: Any,
) -> Certificate:
    """A guarantee on the loss of a co-clustering on new tuples, whether or not their items were seen.

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
        State that the certificate is inspected repeatedly while data arrive (log-wealth only).
    lower : bool
        Also bound the loss of the randomised predictor from below; each side then holds with delta/2.
    relation : int
        Which relation of a model with several (shared matrices).
    population : sequence of int, or mapping from mode to int, optional
        How many items of each mode there are in all, those included that the model has never seen. The papers'
        bounds ("theorem-7", "theorem-1") need it; the others cover any number of items without it.
    **options
        Of "holdout" and "split".

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
    """
    checked_delta(delta)
    if bound in ("split", "holdout") and (anytime or lower or population is not None):
        raise RefusedCertificate(
            f"bound={bound!r} tests a finished predictor from above, once: anytime=, lower= and population= are for "
            "bounds on the rows of the fit (bound='log-wealth')."
        )
    if bound == "split":
        from gingham.certificates.split import certify_split

        return certify_split(
            model, *_rows_and_labels(X, y), delta=delta, predictor=predictor, sample_weight=sample_weight, **options
        )
    members = committee_members(model) if hasattr(model, "members_") else []
    posterior = posterior_of(members[0] if members else model)
    cell, statement = stated_cell(posterior.label_cell(relation), alphabet)
    if bound == "holdout" and members:
        rows = _rows_and_labels(X, y)
        options.update(delta=delta, sample_weight=sample_weight)
        certificate = certify_held_out(model, cell, *rows, predictor, **options)
        sample = sample_of(posterior, *rows, sample_weight, relation)
        need_rows_once(sample)
        known = without_rows_of_the_fit(model, sample)
        return replace(certificate, assumptions=(*certificate.assumptions, *known))
    if posterior.offsets is None:
        posterior = with_cell(posterior, cell, relation)
    backend = "compiled" if bound == "holdout" else getattr(model, "backend", "auto")
    sample = sample_of(posterior, X, y, sample_weight, relation, backend)
    if population is not None and sample.has_unseen and not isinstance(X, Sample):
        _check_population(posterior, id_columns(X).columns, sample, relation, population)
    if bound == "holdout":
        from gingham.certificates.holdout import certify_posterior

        certificate, test = certify_posterior(
            posterior, sample, statement, delta, predictor, relation=relation, **options
        )
        known = without_rows_of_the_fit(model, sample, relation)
        if posterior.offsets is None:
            record = Record("holdout", X, y, sample_weight, partial(grid_facts, posterior, relation, **test))
            certificate = replace(certificate, record=record)
        return replace(certificate, assumptions=(*certificate.assumptions, *known))
    if options:
        raise GinghamError(f"certify() got unknown options {', '.join(options)} for bound={bound!r}.")
    theorem = find(bound)
    covered = covered_predictor(cell, predictor)
    if lower and covered != "gibbs":
        raise RefusedCertificate(
            f"lower=True bounds the randomised predictor from below (predictor='gibbs'): the {covered} prediction may "
            "lose less than that."
        )
    if anytime and not theorem.anytime:
        raise RefusedCertificate(
            f"bound={theorem.name!r} holds for one sample size fixed beforehand; only log-wealth holds for all at once."
        )
    if members:
        same_cells = [with_cell(member, cell, relation) for member in members]
        evidence = pooled([collect(member, sample, relation, population) for member in same_cells])
    else:
        evidence = collect(posterior, sample, relation, population)
    drawn = (*(ARRIVING if anytime else (INDEPENDENT,)), *drawn_rows(sample.weights))
    assumptions = (*drawn, statement, *coverage(posterior, relation, population), *_scale(evidence))
    certificate = from_theorem(theorem, evidence, delta / 2 if lower else delta, covered, assumptions, cell.name)
    certificate = replace(certificate, anytime=anytime, delta=delta)
    if lower:
        certificate = replace(certificate, lower=_lower(theorem.name, theorem.price, evidence, delta / 2))
    if members or evidence.covered is None:
        return certificate
    stated = {"n_answers": evidence.n_answers, "rounded": evidence.rounded, "population": population}
    facts = partial(grid_facts, evidence.covered, relation, **stated)
    return replace(certificate, record=Record("in sample", X, y, sample_weight, facts))


def grid_facts(posterior: Posterior, relation: int = 0, **stated: object) -> dict[str, object]:
    """What a certificate file says of a posterior: loss, memberships and answers, the bets ν, and what is stated."""
    cell = posterior.cells[relation]
    return {
        "loss": cell_facts(cell),
        "posterior": posterior_facts(posterior, relation),
        "nu_grid": all_bounds.GRID,
        **stated,
    }


def _rows_and_labels(X: TableLike | Sample, y: npt.ArrayLike | None) -> tuple[TableLike, npt.ArrayLike]:
    """Rows of ids and their labels, for what fits or predicts anew."""
    if isinstance(X, Sample) or y is None:
        raise GinghamError("This certificate fits or predicts anew: give the rows of ids X and their labels y.")
    return X, y


def _check_population(
    posterior: Posterior, columns: Sequence[AnyArray], sample: Sample, relation: int, population: Population
) -> None:
    """The tuples may not name more items than there are said to be."""
    sizes, places = stated_population(posterior, population), posterior.structure.column_modes(relation)
    for mode in dict.fromkeys(places):
        new = [column[code < 0] for at, column, code in zip(places, columns, sample.codes) if at == mode]
        named = len(posterior.assign[mode]) + len(np.unique(np.concatenate(new)))
        if named > sizes.get(mode, named):
            name = posterior.structure.modes[mode].name
            raise GinghamError(f"population says {sizes[mode]} items of {name!r}, but the tuples have {named}.")


def _lower(name: str, price: str, evidence: Evidence, delta: float) -> float:
    complexity = evidence.prices[price].total
    function = all_bounds.log_wealth_lower if name == "log-wealth" else all_bounds.maurer_lower
    return evidence.in_unit(function(evidence.law, complexity, evidence.n_tuples, delta).value)


def posterior_of(model: object) -> Posterior:
    """The posterior of a fitted estimator, or the posterior itself."""
    if getattr(model, "degree_model_", None) is not None:
        raise RefusedCertificate(
            "This model corrects its predictions for degrees, which no bound here covers. Certify its blocks alone "
            "(model.posterior_), or its predictions on other pairs (certify_predictions)."
        )
    posterior = find_posterior(model)
    if posterior is None:
        raise GinghamError(
            f"{type(model).__name__} has no posterior_: fit it first, or pass a Posterior. For any other predictor use "
            "certify_predictions on tuples it was not fitted on."
        )
    return posterior


def stated_cell(cell: CellModel, alphabet: Iterable[object] | None) -> tuple[CellModel, Assumption]:
    """The cell model on stated labels; refuses labels that were read off the data without a word."""
    letters, bounds = cell.alphabet, Bounds.of(cell.bounds, given=True)
    if letters is None or (alphabet is None and not letters.given and bounds is not None and bounds.given):
        if bounds is None:
            raise unbounded(cell)
        if not bounds.given:
            raise RefusedCertificate(
                "The smallest and largest label were read off the data, and a guarantee must not depend on what "
                "happened to be observed. State them: bounds=(smallest, largest) when fitting."
            )
        return cell, Assumption(f"Labels lie between {bounds.low:g} and {bounds.high:g}.", "given")
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
    return cell, Assumption(stated_labels(letters), "given")


def with_cell(posterior: Posterior, cell: CellModel, relation: int) -> Posterior:
    cells = list(posterior.cells)
    cells[relation] = cell
    return replace(posterior, cells=tuple(cells))


def sample_of(
    posterior: Posterior,
    X: TableLike | Sample,
    y: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    relation: int,
    backend: str = "compiled",
) -> Sample:
    """The tuples in the posterior's own numbering; items it does not know have the number −1."""
    if isinstance(X, Sample):
        if y is not None or weights is not None:
            raise GinghamError("A Sample has labels and weights of its own: leave y and sample_weight out.")
        return X
    columns = id_columns(X)
    positions = posterior.structure.columns(relation)
    if len(columns.columns) != len(positions):
        raise GinghamError(f"X has {len(columns.columns)} columns, the model {len(positions)} modes.")
    check_order(columns.names, positions)
    if y is None:
        raise GinghamError("A certificate needs the labels y of the tuples.")
    y = checked_labels(y)
    alphabet, kind = posterior.label_cell(relation).alphabet, Sample
    if alphabet is not None and type(posterior) is Posterior and not posterior.structure.repeats:
        sizes = tuple(q.shape[1] for q in posterior.factor(relation))
        items = tuple(mode.n_items for mode in positions)
        kind = sample_kind(backend, Work(len(columns.columns[0]), items, sizes, alphabet.size, 1))
    sample = kind.of(columns.columns, y, weights, modes=positions, alphabet=alphabet, unseen=True)
    for mode, code in zip(positions, sample.codes):
        if len(code) and (code < 0).all():
            raise GinghamError(
                f"Column {mode.name!r}: none of the ids is among the items of the model. Are they written as they were "
                "when it was fitted?"
            )
    if sample.has_unseen and sample.on_device:  # urns are drawn from on the host
        sample = Sample.of(columns.columns, y, weights, modes=positions, alphabet=alphabet, unseen=True)
    if sample.has_unseen and posterior.shares_urn(relation) and (columns.columns[0] == columns.columns[1]).any():
        raise RefusedCertificate("A pair has the same unseen node at both ends; leave such pairs out.")
    return sample


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


def coverage(posterior: Posterior, relation: int, population: Population | None = None) -> tuple[Assumption, ...]:
    """Who is covered: all tuples of the source, with what was said of the number of their items."""
    sizes, modes = stated_population(posterior, population), posterior.structure.modes
    found = []
    if sizes:
        counts = ", ".join(f"{size:,} of {modes[mode].name!r}" for mode, size in sizes.items())
        found.append(Assumption(f"There are so many items in all: {counts}.", "given"))
    if any(sizes.get(mode) != len(posterior.assign[mode]) for mode in posterior.structure.column_modes(relation)):
        urn = (
            "All tuples of the source are covered: an item that the model has not seen falls into cluster c with "
            "probability (n·q̄(c) + 1)/(n + m), as in predict."
        )
        found.append(Assumption(urn, "checked"))
    return tuple(found)


def _scale(evidence: Evidence) -> tuple[Assumption, ...]:
    facts = [f"The loss lies between {evidence.low:g} and {evidence.in_unit(1.0):g}."]
    if evidence.rounded:
        facts.append(
            f"The cells' answers are rounded to {evidence.n_answers:,.0f} possible ones; certificate.posterior is the "
            "model with these answers."
        )
    return tuple(Assumption(fact, "checked") for fact in facts)


@dataclass(frozen=True, eq=False)
class Stream:
    """Certificates at growing sample sizes, all valid together with probability at least 1 − delta."""

    sizes: Ints
    certificates: tuple[Certificate, ...]
    models: tuple[object, ...]  # the model of each size (the same one where it was given fitted)

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
        lowest = self.certificates[int(np.argmin(self.values))]
        return replace(lowest, chosen_from=len(self), choice=" along a stream; all hold at once, for the same δ.")


def certify_stream(
    model: object,
    X: TableLike,
    y: npt.ArrayLike,
    *,
    sizes: Sequence[int] | None = None,
    population: Population | None = None,
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
    population : as for `certify`

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0)
    >>> stream = gg.certify_stream(model, X, y, sizes=[150, 300, 600])
    >>> [round(certificate.value, 2) for certificate in stream.certificates]
    [1.25, 0.68, 0.36]
    """
    from gingham.certificates.split import unfitted

    checked_delta(delta)
    y = checked_labels(y)
    columns = id_columns(X).columns
    n = len(y)
    steps = np.unique(np.geomspace(max(10, n // 100), n, 10).astype(int)) if sizes is None else np.asarray(sizes)
    if len(steps) == 0 or (np.diff(steps) <= 0).any() or steps[0] < 1 or steps[-1] > n:
        raise GinghamError(f"sizes must increase from at least 1 to at most N = {n}.")
    fixed = find_posterior(model) is model
    certificates, models = [], []
    for size in steps:
        part = np.empty((size, len(columns)), dtype=object)
        for j, column in enumerate(columns):
            part[:, j] = column[:size]
        fitted = model if fixed else unfitted(model).fit(part, y[:size])
        models.append(fitted)
        certificates.append(
            certify(
                fitted,
                part,
                y[:size],
                delta=delta,
                predictor=predictor,
                anytime=True,
                population=population,
                **options,
            )
        )
    return Stream(steps, tuple(certificates), tuple(models))
