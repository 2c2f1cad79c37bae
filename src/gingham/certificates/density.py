"""Density certificates: the code length, on new observations, of the density a co-clustering defines.

P0's Theorem 12 fails for soft posteriors (its last inequality is false), and its first form (35) is not
a density. Repaired (docs/theory/density): the density is the second line of (35),

    p̃(x_1, …, x_d) = Σ_c p̃(c) Π_i p̃(x_i) q(c_i|x_i)/p̃(c_i),

and Jensen's inequality splits its code length into a part that sees cells only and one part per mode,
each maximised over the ball of distributions that the sample allows. Both hold for every smoothing at
once, so the smoothing is chosen by the bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from typing import cast

import numpy as np
import numpy.typing as npt

from gingham.arrays import Floats, Ints, TableLike
from gingham.certificates.assumptions import given
from gingham.certificates.bounds import ln_shtarkov, log_inverse, whole
from gingham.certificates.certificate import Certificate
from gingham.certificates.divergence import ball_maxima, ball_maximum
from gingham.certificates.observed import (
    Population,
    check_items,
    fixed_clusters,
    in_full_precision,
    rows_as_draws,
    stated_population,
    with_unseen,
)
from gingham.certificates.prices import Complexity, of_partitions
from gingham.certificates.record import Record, posterior_facts
from gingham.core.problem import Posterior, Structure, Tree, contract, find_posterior
from gingham.core.tree import TreeDensity, clusters_of
from gingham.data import Moments, Sample
from gingham.data.adapt import check_order, id_columns
from gingham.data.draws import whole_counts
from gingham.data.sample import default_names
from gingham.errors import GinghamError, RefusedCertificate

NO_CODE = (
    "A density must cover every item that can occur, and the items were read from the data: state how many items each "
    "mode has in all, population= (the shape of a matrix that has a row and a column for each, say) or, on the command "
    "line, --population."
)
DRAWN = given("independent or without replacement")
code_length = partial(
    Certificate, bound="density", predictor="density", loss="code length (nats)", worst=float("inf")
)  # what all certificates of densities say
SMOOTHINGS = np.geomspace(1e-6, 1.0, 25)  # shares of the uniform distribution that are tried


@dataclass(frozen=True, eq=False)
class CoClusterDensity:
    """p̃(x_1, …, x_d) = Σ_c p̃(c) Π_i p̃(x_i) q(c_i|x_i)/p̃(c_i): sums to one over all observations."""

    assigns: tuple[Floats, ...]  # (n_i, m_i)
    cells: Floats  # (m_1, …, m_d), p̃(c)
    items: tuple[Floats, ...]  # (n_i,), p̃(x_i)

    @property
    def clusters(self) -> tuple[Floats, ...]:
        """p̃(c_i) = Σ_x p̃(x) q(c_i|x)."""
        return tuple(p @ q for p, q in zip(self.items, self.assigns))

    def log_density(self, codes: Sequence[Ints]) -> Floats:
        """ln p̃ of tuples given by their codes, shape (N,); items that were never seen come after the others."""
        factors = [
            np.divide(q, c[None, :], out=np.zeros_like(q), where=c[None, :] > 0)
            for q, c in zip(self.assigns, self.clusters)
        ]
        mixed = contract(list(codes), factors, self.cells[..., None])[:, 0]
        return np.log(mixed) + sum(np.log(p[code]) for p, code in zip(self.items, codes))


def of_density(
    model: object,
    X: TableLike | Sample,
    y: None = None,
    *,
    delta: float,
    sample_weight: npt.ArrayLike | None = None,
    population: Population | None = None,
) -> Certificate:
    """bound="density": the expected code length −E ln p̃ (nats per observation); ``model`` is the density it is about.

    Parameters
    ----------
    model : fitted estimator with ``posterior_`` (or a density tree), Posterior, or sequence of (n_i, m_i) assignments
        With bare assignments, X holds codes 0, …, n_i − 1.
    X : ids (N, d), one row per observed co-occurrence, or a Sample
    population : sequence of int, or mapping from mode to int
        How many items of each mode there are in all: a code needs a word for each. Items beyond those that the model
        knows belong to clusters by the urn and share what smoothing leaves. Bare assignments have a row for each.
    """
    if y is not None:
        raise GinghamError("Densities describe rows without labels: leave y out.")
    fitted = getattr(model, "density_", None)
    if isinstance(fitted, TreeDensity):
        sample = (
            X
            if isinstance(X, Sample)
            else Sample.of(id_columns(X).columns, None, sample_weight, modes=fitted.tree.columns())
        )
        _check_leaves(fitted.tree, population)
        return certify_tree_density(fitted, sample, delta)
    posterior, sample = _prepare(model, X, sample_weight)
    bare = find_posterior(model) is None
    sizes = (
        {mode: len(q) for mode, q in enumerate(posterior.assign)} if bare else stated_population(posterior, population)
    )
    if not all(mode in sizes for mode in posterior.structure.factors[0]):
        raise RefusedCertificate(NO_CODE)
    d = sample.n_modes
    n = whole(sample.n_observations)
    posterior = in_full_precision(posterior)
    modes = posterior.structure.factors[0]
    names = posterior.structure.titles(modes)
    learned = {
        name: posterior.assign[mode] for name, mode in zip(names, modes) if mode not in posterior.structure.frozen
    }
    price = Complexity(of_partitions(learned, "exact"))  # the urn pays for the items that nobody has seen
    counts = posterior.statistics(sample, 0, Moments(0))[..., 0]
    share = log(d + 1) + log_inverse(delta)
    assigns = with_unseen(posterior, sizes).factor()
    concentration = ln_shtarkov(counts.size, n)
    epsilon = (price.total + concentration + share) / n
    terms = {**price.terms, f"concentration ln C({counts.size}, N)": concentration}
    cell_part, cells = _best_smoothing(counts.ravel() / n, epsilon)
    parts, items = [], []
    for i, q in enumerate(assigns):
        observed = np.bincount(sample.codes[i], sample.weights, minlength=len(q)) / n
        ln_c = ln_shtarkov(len(q), n)
        terms[f"{names[i]}: concentration ln C({len(q)}, N)"] = ln_c
        value, smooth = _best_smoothing(observed, (ln_c + share) / n, q)
        parts.append(value)
        items.append(smooth)
    terms[f"confidence ln {d + 1}/δ, {d + 1} times"] = (d + 1) * share
    density = CoClusterDensity(assigns, cells.reshape(counts.shape), tuple(items))
    weights = np.ones(sample.n_rows) if sample.weights is None else sample.weights
    empirical = float(-(weights @ density.log_density(sample.codes)) / n)
    facts = partial(_facts, posterior, [len(q) for q in assigns])
    known = given("population", sizes={name: len(q) for name, q in zip(names, assigns)})
    return code_length(
        value=cell_part + sum(parts),
        empirical=empirical,
        delta=delta,
        n_observations=n,
        terms=terms,
        assumptions=(DRAWN, *rows_as_draws(sample), *fixed_clusters(posterior, modes), known),
        parameters={
            "cells": cell_part, **dict(zip(names, parts)), "uniform": float(sum(log(len(q)) for q in assigns)),
        },
        model=density,
        record=Record("density", X, None, sample_weight, facts),
        text="With probability at least 1 − δ, for all posteriors and all smoothings at once: the expected code "
        "length is at most the largest mean of −ln p̃(c) over the cell distributions that the sample allows, plus, "
        "per mode, the largest mean of −ln p̃(x) + Σ_c q(c|x) ln p̃(c) over the item distributions that it allows.",
        reference="gingham, docs/theory/density; repairs Seldin and Tishby 2010, Theorem 12",
    )  # fmt: skip


def _facts(posterior: Posterior, population: list[int]) -> dict[str, object]:
    return {"posterior": posterior_facts(posterior), "population": population}


def _check_leaves(tree: Tree, population: Population | None) -> None:
    """A density tree gives items that it has not seen no probability: somebody must say that there are none."""
    if population is None:
        raise RefusedCertificate(NO_CODE)
    leaves = [tree.modes[at] for at in dict.fromkeys(tree.tables[: tree.n_leaves])]
    named = population if isinstance(population, Mapping) else None
    said = list(population) if named is None else [named.get(mode.name) for mode in leaves]
    if said != [mode.n_items for mode in leaves]:
        known = ", ".join(f"{mode.n_items:,} of {mode.name!r}" for mode in leaves)
        raise RefusedCertificate(
            f"A density tree gives unseen items no probability. It knows {known}; population={population!r}."
        )


def _best_smoothing(observed: Floats, epsilon: float, assign: Floats | None = None) -> tuple[float, Floats]:
    """The smoothing with the lowest largest mean code length; of items (``assign``) their clusters take some back."""
    smooth = _smoothed(observed)
    lengths = -np.log(smooth)
    if assign is not None:
        clusters = smooth @ assign
        lengths += np.log(clusters, out=np.zeros_like(clusters), where=clusters > 0) @ assign.T  # dead: q = 0 there
    values = ball_maxima(observed, lengths, epsilon)
    best = int(values.argmin())
    return float(values[best]), smooth[best]


def _smoothed(observed: Floats) -> Floats:
    """A distribution mixed with the uniform one, a row for each share that is tried."""
    shares = SMOOTHINGS[:, None]
    return np.asarray((1 - shares) * observed + shares / len(observed))


def _prepare(model: object, X: TableLike | Sample, sample_weight: npt.ArrayLike | None) -> tuple[Posterior, Sample]:
    posterior = find_posterior(model)
    if posterior is not None and type(posterior) is not Posterior:
        raise RefusedCertificate("The density certificate is for grids.")
    columns, names = ([], []) if isinstance(X, Sample) else id_columns(X)
    if posterior is None:
        from gingham.cells import Quadratic
        from gingham.data import Mode

        assigns = tuple(np.asarray(q, dtype=np.float64) for q in cast("Sequence[npt.ArrayLike]", model))
        modes = tuple(Mode(name, np.arange(len(q))) for name, q in zip(default_names(len(assigns)), assigns))
        posterior = Posterior(Structure.grid(modes), (Quadratic(),), assigns, (np.zeros(0),))
    if posterior.structure.repeats:
        raise RefusedCertificate("The density certificate needs each mode once.")
    if isinstance(X, Sample) and sample_weight is not None:
        raise GinghamError("A Sample already has weights: leave sample_weight out.")
    check_order(names, [mode.name for mode in posterior.structure.columns()])
    sample = (
        X if isinstance(X, Sample) else Sample.of(columns, None, sample_weight, modes=posterior.structure.columns())
    )
    whole_counts(sample.weights)
    check_items(posterior.structure.columns(), sample)
    return posterior, sample


def certify_tree_density(density: TreeDensity, sample: Sample, delta: float = 0.05) -> Certificate:
    """A guarantee on −E ln p(x), nats per observation, of the very density that was fitted.

    The code length is a sum of one term per node: items given their cluster, combinations given theirs,
    root cells. Each is a function of one variable with finitely many values, whose distribution lies within a KL
    ball around what was observed: of radius ln C(K, N)/N for the items of a leaf, and with the price of
    all clusterings below it for an inner node or the roots. Shared clusterings are hard, and paid once.
    """
    whole_counts(sample.weights)
    check_items(density.tree.columns(), sample)
    tree, n = density.tree, whole(sample.n_observations)
    d = tree.n_leaves
    at, items = clusters_of(tree, density.labels, sample.codes, density.widths)
    prices = {
        mode: of_partitions({tree.modes[mode].name: np.eye(m)[labels]}, "exact")
        for mode, labels, m in (
            (mode, labels, density.widths[tree.tables.index(mode)]) for mode, labels in enumerate(density.labels)
        )
        if mode not in tree.frozen
    }
    below: list[set[int]] = [set() for _ in range(d)]  # modes clustered strictly below each node
    for children in tree.children:
        below.append({tree.tables[c] for c in children}.union(*(below[c] for c in children)))
    everything = {tree.tables[r] for r in tree.roots}.union(*(below[r] for r in tree.roots))
    share = log(len(tree.tables) + 1) + log_inverse(delta) + tree.price  # the statements hold for all trees at once
    terms = {name: nats for mode in sorted(everything) for name, nats in prices.get(mode, {}).items()}
    value, empirical, parts = 0.0, 0.0, {}
    shape = density.roots.shape
    variables = [
        *((f"node {v}", items[v], -density.conditional[v], below[v]) for v in range(len(tree.tables))),
        ("roots", np.ravel_multi_index([at[r] for r in tree.roots], shape), -np.log(density.roots).ravel(), everything),
    ]
    for name, codes, lengths, learned in variables:
        observed = np.bincount(codes, sample.weights, minlength=len(lengths)) / n
        concentration = ln_shtarkov(len(lengths), n)
        terms[f"{name}: concentration ln C({len(lengths)}, N)"] = concentration
        price = max(0.0, sum(sum(prices[mode].values()) for mode in learned if mode in prices))
        parts[name] = ball_maximum(observed, lengths, (price + concentration + share) / n)
        value += parts[name]
        empirical += float(observed @ lengths)
    terms[f"confidence{' and choice of the tree' if tree.price else ''}, {len(variables)} times"] = (
        len(variables) * share
    )
    return code_length(
        value=value,
        empirical=empirical,
        delta=delta,
        n_observations=n,
        terms=terms,
        assumptions=(DRAWN, *rows_as_draws(sample), given("known items only")),
        parameters={**parts, "uniform": float(sum(log(mode.n_items) for mode in tree.columns()))},
        model=density,
        text="With probability at least 1 − δ, for all hard clusterings of this tree and all distributions at once: "
        "the expected code length is at most the sum over nodes of the largest mean code length over the "
        "distributions that the sample allows.",
        reference="gingham, docs/theory/trees",
    )
