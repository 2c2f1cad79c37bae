"""Several relations that share modes (P0 eqs. 46-48): where the fit begins, how it descends, where cold items go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import softmax

from gingham.arrays import Floats
from gingham.core.problem import (
    Objective,
    Posterior,
    Problem,
    Structure,
    check_table,
    find_posterior,
    information_terms,
)
from gingham.engine.place import USUAL_SWEEPS, Work, chosen
from gingham.engine.project import project_cost
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Report, Solution, fixed_point
from gingham.fitting.projection import coef_by_mode, damped, half_step
from gingham.fitting.schedules import Down, Schedule
from gingham.fitting.starts import (
    FIRMNESS,
    RANK,
    Start,
    from_posterior,
    item_embeddings,
    k_means,
    random,
    with_best_answers,
)

STARTS = ("means", "spectral", "random")
WARM = 10  # tuples from which on an item's own data speak for it
COLD = 1.0  # how much more than β_r the properties of an item without other tuples weigh


@dataclass(frozen=True)
class Joint:
    """Block descent on Σ_r β_r N_r L̂_r + Σ_modes n Ī, one mode after the other.

    A mode that stands at most once in every relation is minimised exactly (the costs of its relations
    add up). A mode that stands twice in a relation takes a damped step, kept only when the objective
    falls. So at constant β the objective never rises, whatever the structure.
    """

    schedule: Schedule = field(default_factory=Down)
    tol: float = 1e-6
    max_iter: int = 200
    backend: str = "auto"

    def solve(
        self, problem: Problem, start: Posterior, report: Report | None = None, checkpoint: Checkpoint = NO_CHECKPOINT
    ) -> Solution:
        structure = problem.structure
        for relation, cell in enumerate(problem.cells):
            check_table(sizes(start, relation), cell.features.size)
        moving = [m for m in range(structure.n_modes) if m not in structure.frozen and structure.uses(m)]
        works = [
            Work(sample.n_rows, sample.shape, sizes(start, relation), cell.features.size, USUAL_SWEEPS)
            for relation, (sample, cell) in enumerate(zip(problem.samples, problem.cells))
        ]
        backend = chosen(self.backend, max(works, key=lambda work: work.gathered))
        repeated = {m for factor in structure.factors for m in factor if factor.count(m) > 1}

        def sweep(posterior: Posterior, factor: float) -> tuple[Posterior, Objective]:
            losses = dict.fromkeys(range(len(problem.samples)), 0.0)
            for mode in moving:
                if mode in repeated:
                    posterior, changed = damped_step(problem, posterior, mode, factor, backend)
                else:
                    posterior, changed = half_step(problem, posterior, mode, factor, self.backend)
                losses |= changed
            return posterior, Objective(
                tuple(losses[r] for r in range(len(problem.samples))), information_terms(posterior), problem.betas
            )

        return fixed_point(sweep, start, self.schedule, self.tol, self.max_iter, report, checkpoint)


def sizes(posterior: Posterior, relation: int) -> tuple[int, ...]:
    """Clusters at each position of a relation."""
    return tuple(q.shape[1] for q in posterior.factor(relation))


def mode_cost(problem: Problem, posterior: Posterior, mode: int, backend: str = "auto") -> Floats:
    """Σ_r β_r N_r ∂L̂_r/∂q(c|x), shape (n, m), over all places at which the mode stands."""
    cost = np.zeros(posterior.assign[mode].shape)
    for relation, position in problem.structure.uses(mode):
        rows = problem.samples[relation].rows(position, problem.cells[relation].features)
        others = [q for j, q in enumerate(posterior.factor(relation)) if j != position]
        coef = coef_by_mode(posterior, relation, position)
        cost += problem.betas[relation] * project_cost(rows, others, coef, backend)
    return cost


def damped_step(
    problem: Problem, posterior: Posterior, mode: int, factor: float = 1.0, backend: str = "auto"
) -> tuple[Posterior, dict[int, float]]:
    """Move one mode along its gradient step in the log domain, halving it until the objective falls.

    Where a mode meets itself the loss is not linear in its memberships, and the full step may overshoot
    (P1's parallel update oscillates). Returns the new posterior and N_r L̂_r of its relations.
    """
    relations = sorted({relation for relation, _ in problem.structure.uses(mode)})

    def settled(q: Floats) -> tuple[Posterior, dict[int, float], float]:
        """The posterior with these memberships and best answers, its losses, and what of F depends on them."""
        assign = list(posterior.assign)
        assign[mode] = q
        answers, losses = list(posterior.answers), {}
        moved = replace(posterior, assign=tuple(assign))
        for relation in relations:
            cell = problem.cells[relation]
            cells = moved.statistics(problem.samples[relation], relation, backend=backend)
            answers[relation] = cell.answer(cells)
            losses[relation] = float(cell.loss(answers[relation], cells).sum())
        moved = replace(moved, answers=tuple(answers))
        total = factor * sum(problem.betas[r] * loss for r, loss in losses.items()) + information_terms(moved)[mode]
        return moved, losses, total

    old = posterior.assign[mode]
    stay = settled(old)
    with np.errstate(divide="ignore"):  # a dead cluster stays dead
        target = softmax(np.log(posterior.mass[mode]) - factor * mode_cost(problem, posterior, mode, backend), axis=1)
    steps = (settled(q) for q in damped(old, target))
    moved, losses, _ = next((found for found in steps if found[2] <= stay[2]), stay)
    return moved, losses


def joint_start(start: Start, problem: Problem, n_clusters: Sequence[int], rng: np.random.Generator) -> Posterior:
    """A posterior to begin with; frozen modes are identities."""
    given = find_posterior(start)
    if given is not None:
        return from_posterior(problem, given)
    if not isinstance(start, str) or start not in STARTS:
        raise GinghamError(f"start={start!r} is unknown; choose one of {', '.join(STARTS)}, or a posterior.")
    frozen = problem.structure.frozen
    if start == "random":
        drawn = random(problem, n_clusters, rng)
        return replace(
            drawn, assign=tuple(np.eye(q.shape[1]) if mode in frozen else q for mode, q in enumerate(drawn.assign))
        )
    rank = RANK if start == "spectral" else 0
    embedded = item_embeddings(problem, rank, rng)
    own = _own_relations(problem)
    found = item_embeddings(own, rank, rng) if own is not None else embedded
    assign: list[Floats] = []
    for mode, m in enumerate(n_clusters):
        if mode in frozen:
            assign.append(np.eye(m))
            continue
        spoken_of = own is not None and bool(own.structure.uses(mode))
        labels = k_means(*(found if spoken_of else embedded)[mode], m, rng)
        assign.append(FIRMNESS * np.eye(m)[labels] + (1.0 - FIRMNESS) / m)
    return with_best_answers(problem, assign)


def _own_relations(problem: Problem) -> Problem | None:
    """The problem without its relations of properties, which would outvote the others; None if all are."""
    frozen = set(problem.structure.frozen)
    kept = [r for r, factor in enumerate(problem.structure.factors) if not frozen & set(factor)]
    if not kept or len(kept) == len(problem.samples):
        return problem if kept else None
    pick = lambda values: tuple(values[r] for r in kept)  # noqa: E731
    structure = Structure(problem.structure.modes, pick(problem.structure.factors), problem.structure.frozen)
    return Problem(structure, pick(problem.samples), pick(problem.cells), pick(problem.betas))


def place_cold(problem: Problem, posterior: Posterior) -> Posterior:
    """Memberships of items with fewer than WARM tuples outside relations of properties, placed anew.

    q(c|x) ∝ mass(c) exp(−Σ_r β_r G_r[x, c] − Σ_p β_x G_p[x, c]) with r over ordinary relations and p over
    relations of properties. Three things differ from the fit: masses are weighted by tuples, since a new
    tuple is about an item in proportion to its tuples; tables of properties are estimated from items with
    tuples of their own, weighted n_x/(n_x + 10), lest cold items define what they are compared with; and
    β_x = β_p + 1/(1 + n_x), since properties are all that speaks for an item without tuples.
    Answers of the cells stay as fitted.
    """
    structure = problem.structure
    tables = posterior
    trusted = reweighted(problem, lambda n, beta: n / (n + WARM))
    for relation in property_relations(problem):
        if trusted.samples[relation].n_tuples > 0:
            tables = tables.refit(trusted.samples[relation], relation)
    told = reweighted(problem, lambda n, beta: 1.0 + COLD / (1.0 + n) / max(beta, 1e-12))
    assign = list(posterior.assign)
    for mode in range(structure.n_modes):
        n = own_tuples(problem, mode)
        cold = n < WARM
        if mode in structure.frozen or not cold.any() or n.sum() <= 0:
            continue
        q = posterior.assign[mode]
        with np.errstate(divide="ignore"):  # a dead cluster stays dead
            log_mass = np.log(n @ q / n.sum())
        placed = softmax(log_mass - mode_cost(told, tables, mode), axis=1)
        assign[mode] = np.where(cold[:, None], placed, q)
    return replace(posterior, assign=tuple(assign))


def property_relations(problem: Problem) -> list[int]:
    """Relations in which a frozen mode stands: they describe the items of another."""
    frozen = set(problem.structure.frozen)
    return [r for r, factor in enumerate(problem.structure.factors) if frozen & set(factor) and set(factor) - frozen]


def own_tuples(problem: Problem, mode: int) -> Floats:
    """n_x: tuples of each item of a mode outside relations of properties, (n_items,)."""
    counts = np.zeros(problem.structure.modes[mode].n_items)
    described = property_relations(problem)
    for relation, position in problem.structure.uses(mode):
        if relation not in described:
            counts += problem.samples[relation].counts(position)
    return counts


def reweighted(problem: Problem, weigh: Callable[[Floats, float], Floats]) -> Problem:
    """Tuples of property relations weighted by ``weigh(n_x, β_r)`` of the item they describe."""
    samples = list(problem.samples)
    for relation in property_relations(problem):
        factor, sample = problem.structure.factors[relation], samples[relation]
        position = next(j for j, mode in enumerate(factor) if mode not in problem.structure.frozen)
        weights = weigh(own_tuples(problem, factor[position]), problem.betas[relation])[sample.codes[position]]
        weights = weights if sample.weights is None else weights * sample.weights
        samples[relation] = replace(sample, weights=weights)
    return replace(problem, samples=tuple(samples))
