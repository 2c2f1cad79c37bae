"""Where items with few observations go, by their properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from gingham.arrays import Floats
from gingham.core.problem import Posterior, Problem
from gingham.fitting.projection import mode_cost

WARM = 10  # observations from which on an item's own data speak for it
COLD = 1.0  # how much more than β_r the properties of an item without other observations weigh


def place_cold(problem: Problem, posterior: Posterior) -> Posterior:
    """Memberships of items with fewer than WARM observations outside relations of properties, placed anew.

    q(c|x) ∝ mass(c) exp(−Σ_r β_r G_r[x, c] − Σ_p β_x G_p[x, c]) with r over ordinary relations and p over
    relations of properties. Three things differ from the fit: masses are weighted by observations, since a new
    observation is about an item in proportion to its observations; tables of properties are estimated from items with
    tuples of their own, weighted n_x/(n_x + 10), lest cold items define what they are compared with; and
    β_x = β_p + 1/(1 + n_x), since properties are all that speaks for an item without observations.
    Answers of the cells stay as fitted.
    """
    structure = problem.structure
    tables = posterior
    trusted = reweighted(problem, lambda n, beta: n / (n + WARM))
    for relation in property_relations(problem):
        if trusted.samples[relation].n_observations > 0:
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
    """Observations of property relations weighted by ``weigh(n_x, β_r)`` of the item they describe."""
    samples = list(problem.samples)
    for relation in property_relations(problem):
        factor, sample = problem.structure.factors[relation], samples[relation]
        position = next(j for j, mode in enumerate(factor) if mode not in problem.structure.frozen)
        weights = weigh(own_tuples(problem, factor[position]), problem.betas[relation])[sample.codes[position]]
        weights = weights if sample.weights is None else weights * sample.weights
        samples[relation] = replace(sample, weights=weights)
    return replace(problem, samples=tuple(samples))
