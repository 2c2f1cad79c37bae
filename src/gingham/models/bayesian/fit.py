"""Variational EM for Bayesian co-clustering (P2 §4): two modes, any exponential family, missing entries untouched.

One mode that stands in both columns is the mixed-membership stochastic blockmodel (Airoldi et al. 2008): given q(π) the
best q(z_1, z_2) of an entry is the same, and π of an item counts its entries in either column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import ClassVar, NamedTuple, cast

import numpy as np
from scipy.special import digamma, softmax, xlogy

from gingham.arrays import Floats
from gingham.cells.families import Family
from gingham.cells.losses import FAMILIES, Need, refuse_unmet
from gingham.core.problem import Objective, Posterior, Problem, Structure, check_table
from gingham.data import Sample
from gingham.engine.place import USUAL_SWEEPS, Work, chosen
from gingham.engine.project import project, project_cost
from gingham.errors import GinghamError, one_of
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, fixed_point
from gingham.fitting.schedules import Constant, Schedule
from gingham.models.bayesian import per_entry_estep as entries
from gingham.models.bayesian.dirichlet import (
    MIN_CONCENTRATION,
    DirichletPosterior,
    expected_log_posterior,
    expected_log_prior,
    fit_concentration,
    mean_memberships,
)

APPROXIMATIONS = ("per_entry", "shared")
INNER_STEPS = 10  # of (4) and (6) between two passes over the data
INNER_TOL = 1e-3  # entries by which γ may still move


@dataclass(frozen=True)
class EvidenceBound(Objective):
    """The evidence bound, term by term (P2 Table 1, both modes added up); ``total`` is −ELBO."""

    terms: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, terms: Mapping[str, float]) -> EvidenceBound:
        information = tuple(-value for name, value in terms.items() if name != "likelihood")
        return cls((-terms["likelihood"],), information, (1.0,), terms)

    @property
    def elbo(self) -> float:
        return -self.total


class Expectation(NamedTuple):
    """What an E-step hands to the M-step."""

    counts: Sequence[Floats]  # expected entries of each item in each cluster, by mode
    statistics: Floats  # (m_1, m_2, K)
    entropy: float  # −E ln q(z)


@dataclass(frozen=True)
class Variational:
    """Coordinate ascent on the evidence bound; without tempering the bound never falls."""

    needs: ClassVar[tuple[Need, ...]] = (FAMILIES,)

    # "per_entry": a joint q(z_1, z_2) for every entry, the tighter bound and the better predictions.
    # "shared": one q(z) for all entries of an item, P2's equations (4)-(7), the fast variant.
    approximation: str = "per_entry"
    learn_concentration: bool = False  # in the M-step; on sparse data that drives memberships to the flat point
    learn_parameters: bool = True  # False for inference on new entries with everything else given
    # Its factor is the temperature t of P2 §4.1.1; it must begin finite (t = ∞ is a saddle).
    schedule: Schedule = field(default_factory=Constant)
    tol: float = 1e-5
    max_iter: int = 100
    backend: str = "auto"

    def __post_init__(self) -> None:
        one_of("approximation", self.approximation, APPROXIMATIONS)

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        """Improve a start made by `begin`."""
        sample, family = _checked(problem)
        if self.approximation == "shared" and len(problem.structure.modes) == 1:
            raise GinghamError("Where both columns hold the same items, approximation='per_entry' is needed.")
        if not isinstance(start, DirichletPosterior):
            raise GinghamError("Variational needs a start with Dirichlet memberships; make one with `begin`.")
        check_table([q.shape[1] for q in start.factor()], family.features.size)
        base = _log_base(family, sample)
        parts: list[entries.Part] = []
        if self.approximation == "per_entry":
            n_cells = 0 if start.frozen[-1] else prod(q.shape[1] for q in start.factor())
            parts = entries.layout(family, sample, n_cells)
        totals = tuple(sample.counts(axis) for axis in range(2))
        backend = self.backend
        if self.approximation == "shared" and not start.frozen[-1]:  # else there are loops that stay on the cores
            work = Work(sample.n_rows, sample.shape, start.n_clusters, family.features.size, USUAL_SWEEPS)
            backend = chosen(backend, lambda: work)

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            q = cast(DirichletPosterior, posterior)
            if self.approximation == "per_entry":
                expectation = _per_entry(q, family, parts, base, factor, backend)
            else:
                expectation = _shared(q, family, sample, totals, factor, backend)
            return self._maximise(q, family, expectation, base)

        return fixed_point(sweep, start, self.schedule, self.tol, self.max_iter, report, checkpoint)

    def _maximise(
        self, q: DirichletPosterior, family: Family, expectation: Expectation, base: float
    ) -> tuple[DirichletPosterior, EvidenceBound]:
        """q(π), then θ and α, each at its best for the expected counts (P2 §4.1.2)."""
        gamma = tuple(a + c for a, c in zip(q.alpha, expectation.counts))  # (6), (7)
        new = replace(
            q,
            assign=tuple(old if f else mean_memberships(g) for old, g, f in zip(q.assign, gamma, q.frozen)),
            answers=(family.answer(expectation.statistics),) if self.learn_parameters else q.answers,
            gamma=gamma,
            counts=tuple(expectation.counts),
        )
        if self.learn_concentration:
            new = replace(new, alpha=tuple(map(fit_concentration, q.alpha, new.log_memberships)))
        return new, bound(new, family, expectation, base)


def begin(problem: Problem, start: Posterior, alpha: Sequence[float | Floats]) -> DirichletPosterior:
    """Dirichlet memberships around the memberships of any start: γ = α + m q, with answers to match."""
    sample, family = _checked(problem)
    frozen = 1 in problem.structure.frozen
    sizes = [0 if mode in problem.structure.frozen else q.shape[1] for mode, q in enumerate(start.assign)]
    alphas = tuple(np.full(m, a, dtype=np.float64) for m, a in zip(sizes, alpha))
    for a in alphas:
        if a.size and not (np.isfinite(a).all() and a.min() >= MIN_CONCENTRATION):
            raise GinghamError(
                f"concentration={a.min():g} is invalid: it must be a finite number ≥ {MIN_CONCENTRATION}."
            )
    counts = by_mode(problem.structure, [sample.counts(axis)[:, None] * q for axis, q in enumerate(start.factor())])
    answers = start.answers
    if frozen:
        counts[1] = np.zeros((sample.shape[1], 0))
        statistics = project(sample.rows(1, family.features), [start.assign[0]])
        answers = (family.answer(np.moveaxis(statistics, 2, 0)),)
    gamma = tuple(a + c for a, c in zip(alphas, counts))
    return DirichletPosterior(
        structure=problem.structure,
        cells=problem.cells,
        assign=tuple(mean_memberships(g) if g.size else np.eye(len(g)) for g in gamma),
        answers=answers,
        alpha=alphas,
        gamma=gamma,
        counts=tuple(counts),
    )


def bound(q: DirichletPosterior, family: Family, expectation: Expectation, base: float) -> EvidenceBound:
    """The evidence bound at q with the given q(z)."""
    logs = q.log_memberships
    return EvidenceBound.of(
        {
            "prior of memberships": sum(map(expected_log_prior, q.alpha, logs)),
            "clusters": sum(float((c * e).sum()) for c, e in zip(q.counts, logs)),
            "likelihood": base - float((family.coef(q.answers[0]) * expectation.statistics).sum()),
            "entropy of memberships": -sum(map(expected_log_posterior, q.gamma, logs)),
            "entropy of clusters": expectation.entropy,
            "prior of parameters": family.log_prior(q.answers[0]),
        }
    )


def _per_entry(
    q: DirichletPosterior, family: Family, parts: list[entries.Part], base: float, temperature: float, backend: str
) -> Expectation:
    at = q.structure.factors[0]
    logs = q.log_memberships[at[0]], q.log_memberships[at[1]]
    each, statistics, log_z = entries.e_step(parts, family, q.answers[0], logs, temperature, backend)
    counts = by_mode(q.structure, each)
    # ln q(z) of an entry is [E ln π_1 + E ln π_2 + ln p(y|θ)]/t − ln z
    energy = base - float((family.coef(q.answers[0]) * statistics).sum())
    energy += sum(float((c * e).sum()) for c, e in zip(counts, q.log_memberships))
    return Expectation(counts, statistics, log_z - energy / temperature)


def by_mode(structure: Structure, tables: Sequence[Floats]) -> list[Floats]:
    """Tables of the two positions, added up where both hold the same items."""
    return list(tables) if len(structure.modes) == 2 else [tables[0] + tables[1]]


def _shared(
    q: DirichletPosterior,
    family: Family,
    sample: Sample,
    totals: tuple[Floats, ...],
    temperature: float,
    backend: str,
) -> Expectation:
    """P2's (4)-(7): rows, then columns, each iterated to rest before the data is read again."""
    coef = family.coef(q.answers[0])
    phi = [_shares(c, total) for c, total in zip(q.counts, totals)]
    rows, columns = (sample.rows(axis, family.features) for axis in range(2))
    if q.frozen[1]:
        m, n_columns, size = coef.shape
        # Every column brings its own coefficients: of A[x, k, (k', i)] the diagonal k = k' is wanted.
        own = np.moveaxis(coef, 0, 2).reshape(n_columns, size * m)
        met = project(rows, [own], backend=backend).reshape(-1, size, size, m)
        gain = -np.einsum("xkki->xi", met)
    else:
        gain = -project_cost(rows, [phi[1]], coef.transpose(0, 2, 1).reshape(len(coef), -1), backend)
    phi[0] = _rest(gain, totals[0], q.alpha[0], q.gamma[0], phi[0], temperature)
    if q.frozen[1]:
        statistics = np.moveaxis(project(columns, [phi[0]], backend=backend), 2, 0)
    else:
        met = project(columns, [phi[0]], backend=backend)
        gain = -np.einsum("xki,ijk->xj", met, coef, optimize=True)
        phi[1] = _rest(gain, totals[1], q.alpha[1], q.gamma[1], phi[1], temperature)
        statistics = np.einsum("xki,xj->ijk", met, phi[1], optimize=True)
    counts = tuple(total[:, None] * p for total, p in zip(totals, phi))
    entropy = -sum(float((xlogy(p, p).sum(1) * total).sum()) for p, total in zip(phi, totals))
    return Expectation((counts[0], counts[1]), statistics, entropy)


def _shares(counts: Floats, totals: Floats) -> Floats:
    """φ = counts/m; items without entries have no say, so theirs is anything: even."""
    safe = np.where(totals > 0, totals, 1.0)[:, None]
    return np.where(totals[:, None] > 0, counts / safe, 1.0 / max(counts.shape[1], 1))


def _rest(gain: Floats, totals: Floats, alpha: Floats, gamma: Floats, phi: Floats, temperature: float) -> Floats:
    """Alternate φ ∝ exp(Ψ(γ) + gain/m) (4), (5) and γ = α + m φ (6), (7) on the items that still move."""
    phi = phi.copy()
    active = np.flatnonzero(totals > 0)
    mean_gain = gain[active] / totals[active, None]
    weight, gamma = totals[active, None], gamma[active]
    for _ in range(INNER_STEPS):
        new = softmax((digamma(gamma) + mean_gain) / temperature, axis=1)
        phi[active] = new
        moved = alpha + weight * new
        still = np.abs(moved - gamma).max(axis=1, initial=0.0) > INNER_TOL
        if not still.any():
            break
        active, mean_gain, weight, gamma = active[still], mean_gain[still], weight[still], moved[still]
    return phi


def _checked(problem: Problem) -> tuple[Sample, Family]:
    """The one sample and its family; anything else is refused."""
    if problem.structure.factors not in (((0, 1),), ((0, 0),)) or 0 in problem.structure.frozen:
        raise GinghamError("Bayesian co-clustering needs a table of two modes, whose columns may be frozen.")
    refuse_unmet("Bayesian co-clustering", Variational.needs, problem.cells[:1])
    return problem.samples[0], cast(Family, problem.cells[0])


def _log_base(family: Family, sample: Sample) -> float:
    """Σ_e w_e ln p_0(y_e)."""
    if family.alphabet is not None or sample.labels is None:
        return 0.0
    logs = family.log_base(sample.labels)
    return float(logs.sum() if sample.weights is None else sample.weights @ logs)
