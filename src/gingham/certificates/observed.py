"""What a theorem needs to know of a model and of rows: the posterior, the stated labels, and that both go together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from gingham.arrays import AnyArray, Floats, TableLike, on_host
from gingham.cells import CellModel
from gingham.cells.contract import need_convex
from gingham.certificates.assumptions import Assumption, checked, drawn_rows, given, labels_given
from gingham.core.problem import Posterior, find_posterior
from gingham.data import Alphabet, Bounds, Mode, Sample
from gingham.data.adapt import check_order, id_columns
from gingham.data.draws import whole_counts
from gingham.data.fit_rows import numbers_of_rows, repeated_share
from gingham.data.sample import checked_labels, sample_kind, tuples
from gingham.engine.place import Work
from gingham.engine.project import STEP_BYTES, row_blocks
from gingham.engine.threads import over_blocks
from gingham.errors import GinghamError, RefusedCertificate

Population = Sequence[int] | Mapping[str, int]  # how many items there are of each mode
FEW, MANY = 10, 100  # so few users who hold half of so many rows are named: their rows are hardly independent draws
REPEATED = 0.01  # a larger share of rows that repeat others is named


def posterior_of(model: object) -> Posterior:
    """The posterior of a fitted estimator, or the posterior itself."""
    if getattr(model, "_degree_model", None) is not None:
        raise RefusedCertificate(
            "This model corrects its predictions for degrees, which no bound here covers. Certify its blocks alone "
            "(model.posterior_), or its predictions on other pairs (certify_predictions)."
        )
    posterior = find_posterior(model)
    if posterior is None:
        raise GinghamError(
            f"{type(model).__name__} has no posterior_: fit it first, or pass a Posterior. For any other predictor use "
            "certify_predictions on rows it was not fitted on."
        )
    return posterior


def posteriors_of(model: object) -> list[Posterior]:
    """The posterior of a model, or those of the members of a committee, which have to have the same items."""
    members = getattr(model, "members_", None)
    if members is None:
        return [posterior_of(model)]
    if getattr(model, "shares_", None) is not None:  # a bound on a committee counts all members alike
        raise RefusedCertificate(
            f"{type(model).__name__} weights its members and has a certificate already. Certify it on other rows with "
            "certify_predictions."
        )
    known = [posterior for posterior in map(find_posterior, members) if posterior is not None]
    if not known or len(known) < len(members):
        raise RefusedCertificate(
            "The members of this committee have no posterior over co-clusterings, so that no Gibbs bound covers them. "
            "Certify the committee's predictions with certify_predictions."
        )
    for posterior in known[1:]:
        for one, other in zip(known[0].structure.columns(), posterior.structure.columns()):
            if one.n_items != other.n_items or (one.items != other.items).any():
                raise RefusedCertificate(
                    "The members of this committee have not seen the same items, so that no Gibbs bound covers them "
                    "together. Certify the committee's predictions with certify_predictions."
                )
    return known


def stated_labels(cell: CellModel, alphabet: Iterable[object] | None) -> Assumption:
    """What was stated of the labels; refuses labels that were read off the data without a word."""
    label_values, bounds = cell.alphabet, Bounds.of(cell.bounds, given=True)
    if label_values is None or (alphabet is None and not label_values.given and bounds is not None and bounds.given):
        if bounds is None:
            raise unbounded(cell)
        if not bounds.given:
            raise RefusedCertificate(
                "The smallest and largest label were inferred from the data, but a guarantee needs the range that can "
                "occur. State it: bounds=(smallest, largest) when fitting."
            )
        return labels_given(bounds)
    if alphabet is not None:
        stated = Alphabet.of(alphabet, given=True)
        if stated.size != label_values.size or (stated.values != label_values.values).any():
            raise GinghamError(
                f"alphabet= names {stated.size} labels, the model was fitted with {label_values.size}: "
                "fit the model with the same alphabet=."
            )
        label_values = stated
    if not label_values.given:
        raise RefusedCertificate(
            "The possible labels were inferred from the data, but a guarantee needs all labels that can occur. State "
            "them: certify(..., alphabet=(...)), or alphabet=(...) when fitting."
        )
    return labels_given(label_values)


def unbounded(cell: CellModel) -> RefusedCertificate:
    """What to say of a loss that no theorem covers."""
    return RefusedCertificate(
        f"{type(cell).__name__}: the loss is unbounded, and no theorem covers an unbounded loss. "
        "Give alphabet= (the possible labels) or bounds=(smallest, largest) to the model."
    )


def sample_of(
    posterior: Posterior,
    X: TableLike | Sample,
    y: npt.ArrayLike | None,
    weights: npt.ArrayLike | None,
    relation: int,
    backend: str = "compiled",
) -> Sample:
    """The observations in the posterior's own numbering; items it does not know have the number −1."""
    if isinstance(X, Sample):
        if y is not None or weights is not None:
            raise GinghamError("A Sample already has labels and weights: leave y and sample_weight out.")
        return X
    columns = id_columns(X)
    positions = posterior.structure.columns(relation)
    if len(columns.columns) != len(positions):
        raise GinghamError(f"X has {len(columns.columns)} columns, but the model has {len(positions)} modes.")
    check_order(columns.names, [mode.name for mode in positions])
    if y is None:
        raise GinghamError("A certificate needs the labels y.")
    y = checked_labels(y)
    alphabet, kind = posterior.label_cell(relation).alphabet, Sample
    if alphabet is not None and type(posterior) is Posterior and not posterior.structure.repeats:
        sizes = tuple(q.shape[1] for q in posterior.factor(relation))
        items = tuple(mode.n_items for mode in positions)
        kind = sample_kind(backend, lambda: Work(len(columns.columns[0]), items, sizes, alphabet.size, 1))
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


def check_alphabet(cell: CellModel, sample: Sample) -> None:
    """Label codes mean the same to the sample and to the cells."""
    label_values = cell.alphabet
    if label_values is None or sample.alphabet is None:
        if cell.table is not None:
            raise GinghamError("The sample has no alphabet, and the loss needs one.")
        return
    if label_values.size != sample.alphabet.size or (label_values.values != sample.alphabet.values).any():
        raise GinghamError("The sample's labels are numbered by another alphabet than the model's.")


def check_items(columns: Sequence[Mode], sample: Sample) -> None:
    """Codes of items mean the same to the sample and to the model."""
    if len(columns) != sample.n_modes:
        raise GinghamError(f"The sample has {sample.n_modes} columns of ids, but the model has {len(columns)}.")
    items = tuple(mode.n_items for mode in columns)
    if sample.shape != items:
        raise GinghamError(
            f"The sample counts {sample.shape} items, but the model has {items}: number both in the same way."
        )
    for mode, own in zip(columns, sample.modes):
        if own is not mode and not np.array_equal(own.items, mode.items):
            raise GinghamError(
                f"The sample numbers the items of {mode.name!r} otherwise than the model: number both in the same way, "
                "as model.sample(X, y) does, or give the rows themselves."
            )


def check_pairs_once(ends: Sequence[AnyArray], labels: AnyArray | None, weights: Floats | None) -> None:
    """Refuse pairs of an undirected graph that are listed in both directions: each was observed once."""
    _, codes = np.unique(np.concatenate(ends), return_inverse=True)
    one, other = codes.reshape(2, -1)
    facts = [
        np.zeros(len(one)) if column is None else np.unique(column, return_inverse=True)[1].ravel()
        for column in (labels, weights)
    ]
    apart = one != other
    there, back = (np.stack([*ends, *facts])[:, apart] for ends in ((one, other), (other, one)))
    there, back = (rows[:, np.lexsort(rows)] for rows in (there, back))
    if len(np.unique(there[:2], axis=1).T) > 4 and np.array_equal(there, back):
        raise RefusedCertificate(
            "Every pair is listed in both directions, (a, b) and (b, a), and would count twice. List each pair once."
        )


def check_rows(posterior: Posterior, sample: Sample, relation: int) -> None:
    """Labels and items are numbered as in the model, weights count draws, and pairs of a graph are listed once."""
    check_alphabet(posterior.label_cell(relation), sample)
    whole_counts(sample.weights)
    check_items(posterior.structure.columns(relation), sample)
    if not sample.pairs_once and posterior.structure.is_graph(relation):
        check_pairs_once(sample.codes, sample.labels, sample.weights)


def check_sample(posterior: Posterior, sample: Sample, relation: int) -> None:
    """Refuse posteriors and samples that no theorem speaks of."""
    if posterior.offsets is not None and relation == 0:
        raise RefusedCertificate(
            "This model adds effects of single items (offsets) to its checkerboard, and no bound here covers them on "
            "rows that may be those of the fit. Test it on other rows (bound='holdout', bound='split'), by "
            "certify_progressive, or fit with offsets=False."
        )
    check_rows(posterior, sample, relation)
    factor = posterior.structure.factors[relation]
    if len(set(factor)) < len(factor) and not posterior.structure.drawn_apart:
        for a in range(len(factor)):
            for b in range(a):
                same = (sample.codes[a] == sample.codes[b]) & (sample.codes[a] >= 0)
                if factor[a] == factor[b] and same.any():
                    raise RefusedCertificate(
                        "The graph has self loops, for which both ends fall into one cluster together; "
                        "leave them out before certifying."
                    )


def in_full_precision(posterior: Posterior) -> Posterior:
    """Assignments in float64 with rows that sum to one."""
    assign = []
    for mode, kept in zip(posterior.structure.modes, posterior.assign):
        q = np.empty(kept.shape)

        def run(block: tuple[int, int], kept: Floats = kept, q: Floats = q) -> bool:
            part = np.asarray(kept[block[0] : block[1]], dtype=np.float64)
            rows = part.sum(axis=1, keepdims=True)
            np.divide(part, np.where(rows > 0, rows, 1.0), out=q[block[0] : block[1]])
            # A sum that is not finite is not near one, and what is below zero is not above it.
            return bool((np.abs(rows - 1) < 1e-3).all() and part.min() >= 0)

        if not all(over_blocks(run, row_blocks(len(kept), kept.shape[1], STEP_BYTES))):
            raise GinghamError(f"The memberships of mode {mode.name!r} are not distributions over clusters.")
        assign.append(q)
    return replace(posterior, assign=tuple(assign))


def stated_population(posterior: Posterior, population: Population | None) -> dict[int, int]:
    """How many items there are of each mode, where somebody said so: one number a mode, or by the modes' names."""
    if population is None:
        return {}
    modes = sorted(
        {mode for at in range(len(posterior.structure.factors)) for mode in posterior.structure.column_modes(at)}
    )
    names = dict(zip(posterior.structure.titles(modes), modes))
    if isinstance(population, Mapping):
        unknown = [name for name in population if name not in names]
        if unknown:
            raise GinghamError(f"population names {unknown[0]!r}; the modes are {', '.join(names)}.")
        said = {names[name]: size for name, size in population.items()}
    else:
        if len(population) != len(modes):
            raise GinghamError(f"population has {len(population)} entries, but the model has {len(modes)} modes.")
        said = dict(zip(modes, population))
    for mode, size in said.items():
        known, name = len(posterior.assign[mode]), posterior.structure.modes[mode].name
        if not float(size).is_integer() or size < known:
            raise GinghamError(f"population says {size} items of {name!r}, but the model knows {known}.")
    return {mode: int(size) for mode, size in said.items()}


def checked_population(
    posterior: Posterior, sample: Sample, relation: int, population: Population | None
) -> dict[int, int]:
    """The stated numbers of items; refuses items outside the urn, and observations that contradict them."""
    sizes, structure, places = (
        stated_population(posterior, population),
        posterior.structure,
        posterior.structure.column_modes(relation),
    )
    drawn_apart = structure.drawn_apart or posterior.shares_urn(relation) or len(set(places)) == len(places)
    for mode, code in zip(places, sample.codes):
        name, known = structure.modes[mode].name, len(posterior.assign[mode])
        if sizes.get(mode) == known:
            if (code < 0).any():
                raise GinghamError(f"population says {known} items of {name!r}, but the data have more.")
        elif mode in structure.frozen or not drawn_apart:
            why = (
                "occurs more than once in a relation of more than two columns"
                if mode not in structure.frozen
                else "is not clustered"
            )
            raise RefusedCertificate(
                f"{name!r} {why}, and unseen items are not covered. If there are no items but the "
                f"{known:,} that the model knows, state this with population=."
            )
    return sizes


def check_population(posterior: Posterior, X: TableLike, sample: Sample, relation: int, population: Population) -> None:
    """The rows may not name more items than there are said to be."""
    columns = id_columns(X).columns
    sizes, places = stated_population(posterior, population), posterior.structure.column_modes(relation)
    for mode in dict.fromkeys(places):
        new = [column[code < 0] for at, column, code in zip(places, columns, sample.codes) if at == mode]
        named = len(posterior.assign[mode]) + len(np.unique(np.concatenate(new)))
        if named > sizes.get(mode, named):
            name = posterior.structure.modes[mode].name
            raise GinghamError(f"population says {sizes[mode]} items of {name!r}, but the data have {named}.")


def with_unseen(posterior: Posterior, sizes: Mapping[int, int]) -> Posterior:
    """The posterior with a row for every item that was never seen, where there are so many items in all."""
    assign = list(posterior.assign)
    for mode, size in sizes.items():
        assign[mode] = np.vstack([assign[mode], np.tile(posterior.unseen_rows[mode], (size - len(assign[mode]), 1))])
    return replace(posterior, assign=tuple(assign))


def covered_predictor(cell: CellModel, predictor: str) -> str:
    """What a bound on the Gibbs loss covers; refuses the rest."""
    if predictor == "gibbs":
        return predictor
    if predictor == "mean":
        if not cell.convex:
            raise RefusedCertificate(
                f"{type(cell).__name__} is not convex in the prediction, so a Gibbs bound does not cover the mean "
                "prediction. Use predictor='gibbs', or bound='holdout' on rows the fit has not seen."
            )
        need_convex(cell)
        return predictor
    if predictor in ("median", "mode"):
        raise RefusedCertificate(
            f"The {predictor} prediction can lose up to twice what the randomised predictor loses, and no Gibbs bound "
            "covers it. Use predictor='gibbs' or 'mean', or bound='holdout' on rows the fit has not seen."
        )
    raise GinghamError(f"predictor={predictor!r} is unknown; choose gibbs, mean, median or mode.")


def coverage(posterior: Posterior, relation: int, population: Population | None = None) -> tuple[Assumption, ...]:
    """Who is covered: all tuples of the source, with what was said of the number of their items."""
    sizes, modes = stated_population(posterior, population), posterior.structure.modes
    found = []
    if sizes:
        found.append(given("population", sizes={modes[mode].name: size for mode, size in sizes.items()}))
    places = dict.fromkeys(posterior.structure.column_modes(relation))
    if any(sizes.get(mode) != len(posterior.assign[mode]) for mode in places):
        found.append(checked("urn"))
    return (*found, *fixed_clusters(posterior, places))


def fixed_clusters(posterior: Posterior, places: Iterable[int]) -> tuple[Assumption, ...]:
    """What has to be believed of clusters that were not learned, for which nothing is paid.

    That every item is a cluster of its own says nothing of the rows.
    """
    frozen = [mode for mode in places if mode in posterior.structure.frozen]
    names = [
        posterior.structure.modes[mode].name
        for mode in frozen
        if not np.array_equal(posterior.assign[mode], np.eye(len(posterior.assign[mode])))
    ]
    return (given("clusters fixed beforehand", names=names),) if names else ()


def source(posterior: Posterior, relation: int, sample: Sample, *drawn: Assumption) -> tuple[Assumption, ...]:
    """How the rows are said to have come; pairs that share a node of a graph are drawn among its nodes."""
    if posterior.structure.is_graph(relation):
        n = len(posterior.assign[posterior.structure.factors[relation][0]])
        drawn = (*drawn[1:], given("pairs among these nodes", n=n))
    return (*drawn, *rows_as_draws(sample))


def sample_of_rows(X: TableLike, labels: AnyArray, weights: Floats | None = None) -> Sample | None:
    """Rows as tuples for themselves, whoever predicts them; None where they hold no ids."""
    try:
        columns = [numbers_of_rows([X.tocsr()])] if hasattr(X, "tocsr") else id_columns(X).columns
        return tuples(columns, labels, weights)
    except (GinghamError, TypeError, ValueError):  # rows of other libraries need not hold ids
        return None


def rows_as_draws(sample: Sample, of_items: bool = True) -> tuple[Assumption, ...]:
    """What has to be believed for rows to be draws: of weights, of repetitions, of items that hold most rows.

    Refuses a table of copies. The columns of other libraries' models need not be ids (``of_items``).
    """
    share, crowded = repeated_share(sample), []
    for mode, codes in zip(sample.modes, sample.codes) if of_items and not sample.pairs_once else ():
        known = codes >= 0
        weights = None if sample.weights is None else sample.weights[known]
        held = np.sort(on_host(np.bincount(codes[known], weights)))[: -FEW - 1 : -1].cumsum()
        if len(held) and 2 * held[-1] >= sample.n_observations > MANY:
            n = int(np.searchsorted(2 * held, sample.n_observations)) + 1
            crowded.append((n, given("few hold most", n=n, of=mode.n_items, mode=mode.name)))
    return (
        *drawn_rows(sample.weights),
        *((given("repetitions", share=round(share, 3)),) if share >= REPEATED else ()),
        *(assumption for _, assumption in sorted(crowded, key=lambda one: one[0])[:1]),
    )
