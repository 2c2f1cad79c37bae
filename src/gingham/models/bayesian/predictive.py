"""What fitted mixed memberships say of an entry: density, mean with its uncertainty, intervals; new evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import CellModel, Logarithmic, Quadratic
from gingham.cells.families import Family
from gingham.cells.losses import floored
from gingham.core.problem import Posterior, Problem, Structure
from gingham.data import Mode, Sample
from gingham.data.sample import joined_ids
from gingham.engine.project import row_blocks
from gingham.fitting.loop import Solution
from gingham.models.bayesian import per_entry_estep as entries
from gingham.models.bayesian.dirichlet import DirichletPosterior, mean_memberships
from gingham.models.bayesian.fit import Variational

BISECTIONS = 60


def log_density(q: Posterior, sample: Sample, codes: Sequence[Ints] | None = None) -> Floats:
    """ln Σ_ij E[π_1](i) E[π_2](j) p(y|θ_ij) of each observation, shape (N,), from training memberships only.

    ``codes`` may replace the sample's own: −1 is an unseen item.
    """
    q = cast(DirichletPosterior, q)
    memberships = tuple(q.with_unseen(mode) for mode in q.structure.factors[0])
    found = sample.codes if codes is None else codes
    known = [np.where(code < 0, len(m) - 1, code).astype(np.int32) for code, m in zip(found, memberships)]
    modes = tuple(Mode(mode.name, np.arange(len(m))) for mode, m in zip(q.structure.columns(), memberships))
    sample = replace(sample, modes=modes, codes=tuple(known))
    # A frozen column speaks for itself; an unseen one is any of them, a mixture over all.
    alone = np.full(sample.n_rows, q.frozen[-1]) & (known[1] < len(memberships[1]) - 1)
    out = np.empty(sample.n_rows)
    for rows, frozen in ((np.flatnonzero(alone), True), (np.flatnonzero(~alone), False)):
        if len(rows):
            family = cast(Family, q.cells[0])
            n_cells = 0 if frozen else memberships[0].shape[1] * memberships[1].shape[1]
            parts = entries.layout(family, sample.take(rows), n_cells)
            out[rows] = entries.log_densities(parts, family, q.answers[0], memberships, frozen)
    return out


def mean_and_std(q: DirichletPosterior, codes: Sequence[Ints]) -> tuple[Floats, Floats]:
    """Mean of E[y|π_1, π_2] and its standard deviation over q(π), in closed form, two arrays (N,).

    With Dirichlet π of mean s and concentration Γ, E ππᵀ = (Γ ssᵀ + diag s)/(Γ + 1), and the two modes are
    independent. An unseen item is in one cluster for good, drawn from the memberships of unseen items.
    """
    values = q.cells[0].values(q.answers[0])
    modes = q.structure.factors[0]
    factors = [q.with_unseen(mode) for mode in modes]
    # Γ/(Γ + 1), the weight of ssᵀ: a frozen item is certain, an unseen one not at all.
    certain = [
        np.append(np.ones(len(g)) if not g.size else g.sum(1) / (g.sum(1) + 1.0), 0.0)
        for g in (q.gamma[mode] for mode in modes)
    ]
    mean, std = np.empty(len(codes[0])), np.empty(len(codes[0]))
    for start, stop in row_blocks(len(mean), 4 * sum(values.shape)):
        rows, columns = codes[0][start:stop], codes[1][start:stop]
        s1, s2, a, b = factors[0][rows], factors[1][columns], certain[0][rows], certain[1][columns]
        by_row, by_column = s1 @ values, s2 @ values.T
        first = (by_row * s2).sum(1)
        second = (
            a * b * first**2
            + (1 - a) * b * (s1 * by_column**2).sum(1)
            + a * (1 - b) * (s2 * by_row**2).sum(1)
            + (1 - a) * (1 - b) * ((s1 @ values**2) * s2).sum(1)
        )
        mean[start:stop], std[start:stop] = first, np.sqrt(np.maximum(second - first**2, 0.0))
    return mean, std


def interval(q: DirichletPosterior, codes: Sequence[Ints], level: float) -> tuple[Floats, Floats]:
    """Central interval of the predictive distribution of a new label, two arrays of shape (N,)."""
    tail = (1.0 - level) / 2.0
    family = cast(Family, q.cells[0])
    if family.alphabet is not None:
        numbers = family.alphabet.numbers
        below = np.cumsum(q.predict_distribution(codes), axis=1)
        # Rounding must not push a sum that equals p over to the next label.
        low, high = ((below < p * (1 - 1e-12)).sum(axis=1) for p in (tail, 1.0 - tail))
        return numbers[low], numbers[np.minimum(high, len(numbers) - 1)]
    return _quantile(q, codes, tail), _quantile(q, codes, 1.0 - tail)


def _quantile(q: DirichletPosterior, codes: Sequence[Ints], p: float) -> Floats:
    """The p-quantile of each observation's mixture over cells, by bisection."""
    family, answers = cast(Family, q.cells[0]), q.answers[0]
    low, high = family.bracket(answers)
    rows, columns = (q.with_unseen(mode) for mode in q.structure.factors[0])
    flat = answers.reshape(rows.shape[1] * columns.shape[1], *answers.shape[2:])
    out = np.empty(len(codes[0]))
    for start, stop in row_blocks(len(out), 4 * len(flat)):
        weights = rows[codes[0][start:stop], :, None] * columns[codes[1][start:stop], None, :]
        weights = weights.reshape(stop - start, -1)
        below, above = np.full(len(weights), low), np.full(len(weights), high)
        for _ in range(BISECTIONS):
            middle = 0.5 * (below + above)
            reached = (weights * family.cdf(flat, middle[:, None])).sum(1) >= p
            below, above = np.where(reached, below, middle), np.where(reached, middle, above)
        out[start:stop] = above
    return np.ceil(out - 1e-9) if family.whole else out


def checkerboard(q: DirichletPosterior, bounds: tuple[float, float] | None) -> Posterior:
    """The memberships as a distribution over checkerboards, whose cells answer what the families say.

    Every item is drawn into one cluster for all its entries. The loss is −ln p on an alphabet (smoothed, so
    that it is bounded) and the square elsewhere: what a certificate can cover.
    """
    family = cast(Family, q.cells[0])
    cell: CellModel
    if family.alphabet is None:
        cell, answers = Quadratic(bounds=bounds), family.values(q.answers[0])
    else:
        cell = Logarithmic(family.alphabet)
        answers = floored(cast(Floats, family.distribution(q.answers[0])), cell.smoothing / family.alphabet.size)
    return Posterior(q.structure, (cell,), q.assign, (answers,))


def infer(q: DirichletPosterior, sample: Sample, solver: Variational) -> Solution:
    """Memberships for a sample (old and new items) with θ and α as they are: the E-step alone (P2 §5.2.1)."""
    factor = q.structure.factors[0]
    modes = tuple(
        Mode.of(joined_ids([old.items, *(new.items for new, of in zip(sample.modes, factor) if of == mode)]), old.name)
        for mode, old in enumerate(q.structure.modes)
    )
    at = [old.encode(mode.items) for old, mode in zip(q.structure.modes, modes)]
    columns = tuple(modes[mode] for mode in factor)
    known = Sample.of([mode.decode(code) for mode, code in zip(sample.modes, sample.codes)], modes=columns)
    sample = replace(sample, modes=columns, codes=known.codes)
    structure = Structure(modes, q.structure.factors, q.structure.frozen)
    gamma = tuple(np.vstack([g, a])[i] for g, a, i in zip(q.gamma, q.alpha, at))
    counts = tuple(np.vstack([c, np.zeros(c.shape[1])])[i] for c, i in zip(q.counts, at))
    assign, answers = tuple(map(mean_memberships, gamma)), q.answers
    if q.frozen[-1]:
        # A new column has its own cells, of which only the prior is known.
        unknown = cast(Family, q.cells[0]).answer(np.zeros((len(q.answers[0]), 1, q.cells[0].features.size)))
        answers = (np.concatenate([q.answers[0], unknown], axis=1)[:, at[1]],)
        assign = (assign[0], np.eye(modes[1].n_items))
    start = replace(q, structure=structure, gamma=gamma, counts=counts, assign=assign, answers=answers)
    problem = Problem(structure, (sample,), q.cells, (1.0,))
    return replace(solver, learn_parameters=False, learn_concentration=False).solve(problem, start)
