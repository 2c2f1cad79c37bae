"""Evidence: everything a bound may know of a posterior and a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log, prod

import numpy as np

from gingham.arrays import Floats
from gingham.cells import CellModel
from gingham.certificates.bounds import GibbsLaw
from gingham.certificates.complexity import Complexity, of_partitions, renamings
from gingham.certificates.quantise_answers import QuantisedAnswers, quantise_answers
from gingham.core.posterior import Posterior
from gingham.core.structure import Tree
from gingham.core.tree import TreePosterior
from gingham.data import Moments, OneHot, Sample
from gingham.data.graphs import PairSample
from gingham.errors import GinghamError, RefusedCertificate
from gingham.kernels.project import row_blocks

MAX_SUPPORT = 1000  # possible losses up to which type-KL and split-kl are offered
BINS = 2**16  # of |y − answer| for labels without an alphabet; losses are rounded up, so never understated


@dataclass(frozen=True, eq=False)
class Evidence:
    """The law of the Gibbs loss on a sample, and the price of the posterior.

    Attributes
    ----------
    law : GibbsLaw
        Of (loss − low)/range.
    low, range : float
        In the loss's own unit.
    n_tuples : int
        N.
    prices : mapping from "exact" and "papers" to Complexity
    covered : Posterior or None
        The very model that is covered; its answers are rounded where they came from a continuum.
    """

    law: GibbsLaw
    low: float
    range: float
    n_tuples: int
    prices: Mapping[str, Complexity]
    covered: Posterior | None = None
    n_answers: float = 0.0
    rounded: bool = False

    def in_unit(self, scaled: float) -> float:
        """A scaled loss in the loss's own unit."""
        return self.low + self.range * scaled

    @property
    def empirical(self) -> float:
        """L̂(Q) in the loss's own unit."""
        return self.in_unit(self.law.mean)


def collect(
    posterior: Posterior, sample: Sample, relation: int = 0, population: Sequence[int] | None = None
) -> Evidence:
    """The evidence a sample gives about one relation of a posterior.

    ``population`` is the number of items of each mode that could have been drawn, where it is more than
    the model knows; the others belong to clusters by the mode's masses, as in prediction.
    """
    posterior = in_full_precision(posterior)
    check_sample(posterior, sample, relation)
    cell = posterior.cells[relation]
    if not (np.isfinite(cell.range) and cell.range >= 0):
        raise RefusedCertificate(
            f"{type(cell).__name__}: the loss is unbounded, and no theorem covers an unbounded loss. "
            "Give alphabet= (the possible labels) or bounds=(smallest, largest) to the model."
        )
    covered, quantised, accounts = quantised_and_priced(posterior, sample, relation, population)
    low, scale = loss_scale(cell)
    if sample.alphabet is not None:
        losses, support = loss_table(cell, quantised, sample)
        joint = answer_label_counts(covered, sample, quantised, relation)
        law = GibbsLaw.of(
            np.clip((losses - low) / scale, 0.0, 1.0), joint, None if support is None else (support - low) / scale
        )
    else:
        law = continuous_law(covered, sample, relation)
    return Evidence(
        law=law,
        low=low,
        range=scale,
        n_tuples=int(sample.n_tuples),
        prices=accounts,
        covered=covered,
        n_answers=quantised.n_answers,
        rounded=quantised.rounded,
    )


def quantised_and_priced(
    posterior: Posterior, sample: Sample, relation: int, population: Sequence[int] | None = None
) -> tuple[Posterior, QuantisedAnswers, dict[str, Complexity]]:
    """The posterior with answers a prior can pay for, these answers, and both accounts of the price."""
    answers = list(posterior.answers)
    undirected = is_graph(posterior, relation)
    table = answers[relation]
    symmetric = undirected and bool((table == np.swapaxes(table, 0, 1)).all())
    is_tree = isinstance(posterior.structure, Tree)
    if type(posterior) is not Posterior and not is_tree:
        raise RefusedCertificate(
            f"gingham does not know what {type(posterior).__name__} costs. Certify its predictions on tuples it was "
            "not fitted on: certify_predictions."
        )
    cell = posterior.cells[relation]
    # Labels need no rounding, and so no look at the cells.
    statistics = np.zeros(0) if cell.answers == "label" else posterior.statistics(sample, relation)
    quantised = quantise_answers(cell, table, statistics, symmetric)
    answers[relation] = quantised.answers
    covered = replace(posterior, answers=tuple(answers))
    if is_tree and population is not None:
        raise RefusedCertificate("population= is for grids and graphs.")
    return covered, quantised, prices(with_unseen(covered, population), quantised, relation, undirected)


def prices(posterior: Posterior, quantised: QuantisedAnswers, relation: int, undirected: bool) -> dict[str, Complexity]:
    """KL(Q‖P) exactly and as in the papers, for the modes that meet in one relation."""
    names = clusterings(posterior, relation)
    exact = {**of_partitions(names, "exact"), **quantised.price}
    if undirected:
        exact["directed or undirected"] = log(2)
    saved = renamings(list(names.values()))
    if saved > 0:
        exact["renamings of clusters"] = -saved
    papers = {**of_partitions(names, "papers"), **quantised.price_papers}
    if isinstance(posterior.structure, Tree) and posterior.structure.price > 0:
        exact["choice of the tree"] = papers["choice of the tree"] = posterior.structure.price
    return {"exact": Complexity(exact), "papers": Complexity(papers)}


def clusterings(posterior: Posterior, relation: int) -> dict[str, Floats]:
    """The clusterings that one relation's guarantee pays for, by name; frozen ones were not learned."""
    if isinstance(posterior.structure, Tree):
        return tree_clusterings(posterior)
    modes = [m for m in dict.fromkeys(posterior.structure.factors[relation]) if m not in posterior.structure.frozen]
    names = posterior.structure.titles(modes) if len(modes) > 1 else ["items"]
    return {name: posterior.assign[i] for name, i in zip(names, modes)}


def tree_clusterings(posterior: Posterior) -> dict[str, Floats]:
    """The tables that the guarantee of a tree pays for, leaves and inner nodes alike (P0 eq. 51: B1 + B2).

    A clustering that several nodes share is paid once when it is hard. A soft one is drawn anew at each
    node (its Gibbs loss is the product over nodes), and so it is paid for at each. Frozen tables were
    not learned and cost nothing.
    """
    tree = posterior.structure
    if not isinstance(tree, Tree):
        raise RefusedCertificate("This is the price of a tree, and the posterior is none.")
    tables = {}
    for mode, q in enumerate(posterior.assign):
        if mode in tree.frozen:
            continue
        nodes = [node for node, at in enumerate(tree.tables) if at == mode]
        hard = bool(((q == 0) | (q == 1)).all())
        for node in nodes[:1] if hard else nodes:
            tables[f"node {node} ({tree.modes[mode].name})"] = q
    return tables


def with_unseen(posterior: Posterior, population: Sequence[int] | None) -> Posterior:
    """The posterior with rows for items that were never seen, which follow the masses."""
    if population is None:
        return posterior
    if len(population) != len(posterior.assign):
        raise GinghamError(f"population has {len(population)} entries, the model {len(posterior.assign)} modes.")
    assign = []
    for size, q, mass, mode in zip(population, posterior.assign, posterior.mass, posterior.structure.modes):
        if size < len(q):
            raise GinghamError(f"population says {size} items of {mode.name!r}, but the model knows {len(q)}.")
        assign.append(np.vstack([q, np.tile(mass / mass.sum(), (size - len(q), 1))]))
    return replace(posterior, assign=tuple(assign))


def loss_scale(cell: CellModel) -> tuple[float, float]:
    """(low, range): every loss lies between low and low + range; a constant loss gets range 1."""
    return cell.low, float(cell.range) if cell.range > 0 else 1.0


def loss_table(cell: CellModel, quantised: QuantisedAnswers, sample: Sample) -> tuple[Floats, Floats | None]:
    """Losses (A, |Y|) of the distinct answers on each label, and all losses that could occur."""
    if sample.alphabet is None:
        raise GinghamError("A table of losses needs labels on an alphabet.")
    losses = cell.coef(quantised.distinct) @ cell.features.of_labels(sample.alphabet.numbers).T
    support = None
    if cell.table is not None:
        support = np.unique(cell.table)
        support = support if len(support) <= MAX_SUPPORT else None
    return losses, support


def answer_label_counts(posterior: Posterior, sample: Sample, quantised: QuantisedAnswers, relation: int) -> Floats:
    """Expected number of tuples (A, |Y|) with each answer and each label."""
    size = sample.alphabet.size if sample.alphabet is not None else 1
    histogram = posterior.statistics(sample, relation, OneHot(size)).reshape(-1, size)
    counts = np.zeros((len(quantised.distinct), size))
    np.add.at(counts, quantised.index.ravel(), histogram)
    return counts


def continuous_law(posterior: Posterior, sample: Sample, relation: int) -> GibbsLaw:
    """The law of the loss for labels without an alphabet, tuple by tuple.

    The cell's `miss` (|y − answer| for squares) is rounded up to one of 2^16 steps, so that no loss is understated.
    """
    if isinstance(posterior, TreePosterior):  # a grid at its roots
        posterior, sample = posterior.at_root(sample)
    cell = posterior.cells[relation]
    bounds = cell.bounds
    if bounds is None or sample.labels is None:
        raise RefusedCertificate("A certificate needs numeric labels between known bounds.")
    low, high = bounds
    if isinstance(sample, PairSample) and sample.complete and not low <= 0 <= high:
        raise GinghamError(f"Absent pairs have label 0, which lies outside bounds=({low}, {high}).")
    outside = (sample.labels < low) | (sample.labels > high)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise GinghamError(f"Label {sample.labels[row]:.6g} in row {row} lies outside bounds=({low}, {high}).")
    answers = posterior.answers[relation].ravel()
    distinct, at = np.unique(answers, return_inverse=True)
    factors = posterior.factor(relation)
    total = np.zeros(BINS + 1)
    listed = np.zeros(len(distinct))
    order = np.argsort(at, kind="stable")
    starts = np.flatnonzero(np.diff(at[order], prepend=-1))
    n_cells = prod(q.shape[1] for q in factors)
    for start, stop in row_blocks(sample.n_rows, 4 * n_cells):
        cells = np.ones((stop - start, 1))
        for q, codes in zip(factors, sample.codes):
            cells = (cells[:, :, None] * q[codes[start:stop]][:, None, :]).reshape(stop - start, -1)
        by_answer = np.add.reduceat(cells[:, order], starts, axis=1)
        if sample.weights is not None:
            by_answer *= sample.weights[start:stop, None]
        listed += by_answer.sum(axis=0)
        miss = cell.miss(sample.labels[start:stop, None], distinct[None, :])
        bins = np.ceil(miss * BINS * (1 - 1e-12)).astype(np.int64)
        total += np.bincount(np.minimum(bins, BINS).ravel(), by_answer.ravel(), minlength=BINS + 1)
    # A sample may have observed tuples that it does not list, all with label 0 (absent edges).
    everything = posterior.statistics(sample, relation, Moments(0)).ravel()
    absent = np.bincount(at.ravel(), everything, minlength=len(distinct)) - listed
    if absent.sum() > 1e-6:
        bins = np.ceil(cell.miss(np.zeros(1), distinct) * BINS * (1 - 1e-12)).astype(np.int64)
        total += np.bincount(np.minimum(bins, BINS), np.maximum(absent, 0.0), minlength=BINS + 1)
    seen = total > 0
    return GibbsLaw.of(cell.loss_of_miss(np.arange(BINS + 1)[seen] / BINS), total[seen])


def in_full_precision(posterior: Posterior) -> Posterior:
    """Assignments in float64 with rows that sum to one."""
    assign = []
    for mode, q in zip(posterior.structure.modes, posterior.assign):
        q = np.asarray(q, dtype=np.float64)
        rows = q.sum(axis=1, keepdims=True)
        if not (np.isfinite(q).all() and (q >= 0).all() and (np.abs(rows - 1) < 1e-3).all()):
            raise GinghamError(f"The memberships of mode {mode.name!r} are not distributions over clusters.")
        assign.append(q / rows)
    return replace(posterior, assign=tuple(assign))


def is_graph(posterior: Posterior, relation: int) -> bool:
    """Whether one mode meets itself."""
    factor = posterior.structure.factors[relation]
    # Nodes of a tree that share a clustering draw it independently of each other.
    return len(factor) == 2 and factor[0] == factor[1] and not isinstance(posterior.structure, Tree)


def check_alphabet(cell: CellModel, sample: Sample) -> None:
    """Label codes mean the same to the sample and to the cells."""
    letters = cell.alphabet
    if letters is None or sample.alphabet is None:
        if cell.table is not None:
            raise GinghamError("The sample has no alphabet, and the loss needs one.")
        return
    if letters.size != sample.alphabet.size or (letters.values != sample.alphabet.values).any():
        raise GinghamError("The sample's labels are numbered by another alphabet than the model's.")


def check_sample(posterior: Posterior, sample: Sample, relation: int) -> None:
    """Refuse samples that no theorem speaks of."""
    check_alphabet(posterior.cells[relation], sample)
    if not sample.has_counts:
        raise RefusedCertificate(
            "Some weights are not whole numbers. A certificate counts independent tuples, so weights must be counts; "
            "certify the unweighted rows, or round the weights to counts."
        )
    columns = posterior.structure.columns(relation)
    if len(columns) != sample.n_modes:
        raise GinghamError(f"The sample has {sample.n_modes} columns of ids, the model {len(columns)}.")
    items = tuple(mode.n_items for mode in columns)
    if sample.shape != items:
        raise GinghamError(f"The sample counts {sample.shape} items, the model {items}: number both alike.")
    factor = posterior.structure.factors[relation]
    if len(set(factor)) < len(factor) and not isinstance(posterior.structure, Tree):
        for a in range(len(factor)):
            for b in range(a):
                if factor[a] == factor[b] and (sample.codes[a] == sample.codes[b]).any():
                    raise RefusedCertificate(
                        "The graph has self loops, for which both ends fall into one cluster together; "
                        "leave them out before certifying."
                    )
