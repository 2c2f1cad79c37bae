"""Evidence: what a bound may use of a posterior and a sample, the distribution of the Gibbs loss and the price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gingham.arrays import AnyArray, Floats, Ints
from gingham.cells import CellModel
from gingham.certificates.bounds import LossDistribution, mixture
from gingham.certificates.losses import ROUNDING, loss_scale, scaled_losses
from gingham.certificates.observed import Population, check_sample, in_full_precision, unbounded
from gingham.certificates.prices import SINGLE_PRECISION, Complexity, pooled_answers, quantised_and_priced
from gingham.core.problem import Posterior
from gingham.data import Alphabet, Bounds, Moments, OneHot, Sample
from gingham.engine.project import row_blocks
from gingham.errors import GinghamError, RefusedCertificate

MAX_SUPPORT = 1000  # possible losses up to which type-KL and split-kl are offered
BINS = 2**16  # of |y − answer| for labels without an alphabet; losses are rounded up, so never understated


@dataclass(frozen=True, eq=False)
class Evidence:
    """The distribution of the Gibbs loss on a sample, and the price of the posterior."""

    distribution: LossDistribution  # of (loss − low)/range
    low: float  # in the loss's own unit
    range: float
    n_observations: int  # N
    prices: Mapping[str, Complexity]  # by "exact" and "papers"
    # the very model that is covered; its answers are rounded where they came from a continuum
    covered: Posterior | None = None
    n_answers: float = 0.0
    rounded: bool = False
    share: float = 1.0  # of δ that a bound on it may spend, where it was chosen among other evidence

    @classmethod
    def of(
        cls,
        distribution: LossDistribution,
        cell: CellModel,
        n: int,
        price: Complexity,
        covered: Posterior | None = None,
    ) -> Evidence:
        """With one price, whoever asks for it."""
        return cls(distribution, *loss_scale(cell), n, {"exact": price, "papers": price}, covered)

    def in_unit(self, scaled: float) -> float:
        """A scaled loss in the loss's own unit."""
        return self.low + self.range * scaled

    @property
    def empirical(self) -> float:
        """L̂(Q) in the loss's own unit."""
        return self.in_unit(self.distribution.mean)


def collect(posterior: Posterior, sample: Sample, relation: int = 0, population: Population | None = None) -> Evidence:
    """The evidence a sample gives about one relation of a posterior, whose unseen items are drawn from the urn.

    ``population`` says how many items there are, see `stated_population`.
    """
    posterior = in_full_precision(posterior)
    check_sample(posterior, sample, relation)
    cell = posterior.cells[relation]
    if not (np.isfinite(cell.range) and cell.range >= 0):
        raise unbounded(cell)
    covered, quantised, accounts = quantised_and_priced(posterior, sample, relation, population)
    low, scale = loss_scale(cell)
    if sample.alphabet is not None:
        distribution = distribution_on_alphabet(covered, sample, quantised.distinct, quantised.index, relation)
    else:
        distribution = continuous_distribution(covered, sample, relation)
    return Evidence(
        distribution=distribution,
        low=low,
        range=scale,
        n_observations=int(sample.n_observations),
        prices=accounts,
        covered=covered,
        n_answers=quantised.n_answers,
        rounded=quantised.rounded,
    )


def distinct_answers(posterior: Posterior, relation: int) -> tuple[AnyArray, Ints]:
    """The different answers of a relation's cells, and which of them each cell gives."""
    answers = posterior.answers[relation]
    return pooled_answers(answers, answers.ndim - len(posterior.structure.factors[relation]))


def answer_losses(cell: CellModel, answers: AnyArray, alphabet: Alphabet) -> Floats:
    """The loss of each answer on each label, shape (A, |Y|)."""
    numbers = alphabet.numbers
    by_gap = cell.of_gap(numbers[None, :] - answers[:, None]) if cell.answers == "number" else None
    return cell.coef(answers) @ cell.features.of_labels(numbers).T if by_gap is None else by_gap


def distribution_on_alphabet(
    posterior: Posterior, sample: Sample, distinct: AnyArray, index: Ints, relation: int
) -> LossDistribution:
    """The distribution of the scaled loss; ``distinct`` are the answers, ``index`` says which one a cell gives."""
    cell, label_values = posterior.cells[relation], sample.alphabet
    if label_values is None:
        raise RefusedCertificate("This loss needs labels on an alphabet.")  # pragma: no cover - callers have asked
    support = None if cell.table is None else np.unique(cell.table)  # all losses that could occur
    support = support if support is None or len(support) <= MAX_SUPPORT else None
    joint = answer_label_counts(posterior, sample, distinct, index, relation)
    losses = scaled_losses(answer_losses(cell, distinct, label_values), cell)
    return LossDistribution.of(losses, joint, None if support is None else scaled_losses(support, cell))


def answer_label_counts(posterior: Posterior, sample: Sample, distinct: AnyArray, index: Ints, relation: int) -> Floats:
    """Expected number of observations (A, |Y|) with each answer and each label."""
    size = sample.alphabet.size if sample.alphabet is not None else 1
    histogram = posterior.statistics(sample, relation, OneHot(size)).reshape(-1, size)
    counts = np.zeros((len(distinct), size))
    np.add.at(counts, index.ravel(), histogram)
    return counts


def continuous_distribution(posterior: Posterior, sample: Sample, relation: int) -> LossDistribution:
    """The distribution of the loss for labels without an alphabet, observation by observation.

    The cell's `miss` (|y − answer| for squares) is rounded up to one of 2^16 steps, so that no loss is understated.
    """
    posterior, sample = posterior.at_root(sample)
    cell = posterior.cells[relation]
    bounds = Bounds.of(cell.bounds, given=True)
    if bounds is None or sample.labels is None:
        raise RefusedCertificate("A certificate needs numeric labels between known bounds.")
    if sample.complete and not bounds.low <= 0 <= bounds.high:
        raise GinghamError(f"Absent pairs have label 0, which lies outside bounds=({bounds.low:g}, {bounds.high:g}).")
    bounds.check(sample.labels, "The label of row")
    answers = posterior.answers[relation].ravel()
    bounds.check(answers, "The answer of cell", SINGLE_PRECISION)
    distinct, at = np.unique(answers, return_inverse=True)
    total = np.zeros(BINS + 1)
    listed = np.zeros(len(distinct))
    order = np.argsort(at, kind="stable")
    starts = np.flatnonzero(np.diff(at[order], prepend=-1))
    for start, stop in row_blocks(sample.n_rows, 4 * len(at)):
        cells = posterior.cell_distributions([code[start:stop] for code in sample.codes], relation)
        by_answer = np.add.reduceat(cells[:, order], starts, axis=1)
        if sample.weights is not None:
            by_answer *= sample.weights[start:stop, None]
        listed += by_answer.sum(axis=0)
        bins = _bins(cell, sample.labels[start:stop, None], distinct[None, :])
        total += np.bincount(bins.ravel(), by_answer.ravel(), minlength=BINS + 1)
    # A sample may have observations that it does not list, all with label 0 (absent edges).
    everything = posterior.statistics(sample, relation, Moments(0)).ravel()
    absent = np.bincount(at.ravel(), everything, minlength=len(distinct)) - listed
    if absent.sum() > 1e-6:
        total += np.bincount(_bins(cell, np.zeros(1), distinct), np.maximum(absent, 0.0), minlength=BINS + 1)
    seen = total > 0
    return LossDistribution.of(cell.loss_of_miss(np.arange(BINS + 1)[seen] / BINS), total[seen])


def _bins(cell: CellModel, labels: Floats, answers: Floats) -> Ints:
    """Which of the steps a miss is rounded up to."""
    miss = cell.miss(labels, answers)
    if miss.size and not (miss.min() >= -ROUNDING and miss.max() <= 1 + SINGLE_PRECISION):
        raise GinghamError(
            f"A {cell.name} loss lies outside its stated range ({type(cell).__name__}.miss goes from "
            f"{miss.min():.6g} to {miss.max():.6g}, not from 0 to 1): range or bounds are wrong."
        )
    return np.ceil(np.minimum(np.maximum(miss, 0.0), 1.0) * BINS * (1 - 1e-12)).astype(np.int64)


def pooled(parts: Sequence[Evidence]) -> Evidence:
    """The evidence about a committee: draw a member, then its co-clustering.

    KL(mixture‖P) ≤ mean of the members' KL (convexity, no ln K), and the distribution of the Gibbs loss is the
    average distribution.
    """
    first, prices = parts[0], {}
    if len(parts) == 1:
        return first
    for kind in first.prices:
        names = dict.fromkeys(name for part in parts for name in part.prices[kind].terms)
        prices[kind] = Complexity(
            {name: sum(part.prices[kind].terms.get(name, 0.0) for part in parts) / len(parts) for name in names}
        )
    distribution = mixture([part.distribution for part in parts])
    return replace(
        first, distribution=distribution, prices=prices, covered=None, n_answers=max(part.n_answers for part in parts)
    )
