"""The code length of a density tree on new tuples: one term a node (the factorised analogue of P0's (36))."""

from __future__ import annotations

from math import log

import numpy as np

from gingham.certificates.certificate import Certificate
from gingham.certificates.code_length import check_counts, code_length_certificate
from gingham.certificates.complexity import of_partitions
from gingham.certificates.divergence import ball_maximum, ln_shtarkov, whole
from gingham.core.tree_density import TreeDensity, clusters_of
from gingham.data import Sample


def certify_tree_density(density: TreeDensity, sample: Sample, delta: float = 0.05) -> Certificate:
    """A guarantee on −E ln p(x), nats a tuple, of the very density that was fitted.

    The code length is a sum of one term per node: items given their cluster, combinations given theirs,
    root cells. Each is a function of one variable with finitely many values, whose law lies within a KL
    ball around what was observed: of radius ln C(K, N)/N for the items of a leaf, and with the price of
    all clusterings below it for an inner node or the roots. Shared clusterings are hard, and paid once.
    """
    check_counts(sample)
    tree, n = density.tree, whole(sample.n_tuples)
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
    share = log((len(tree.tables) + 1) / delta)
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
    terms[f"confidence, {len(variables)} times"] = len(variables) * share
    return code_length_certificate(
        value,
        empirical,
        delta,
        n,
        terms,
        {**parts, "uniform": float(sum(log(mode.n_items) for mode in tree.columns()))},
        fixed="The items of every leaf, and the tree, were",
        text="With probability at least 1 − δ, for all hard clusterings of this tree and all laws at once: the "
        "expected code length is at most the sum over nodes of the largest mean code length over the laws "
        "the sample allows.",
        latex=r"-\mathbb E \ln p \le \sum_v \sup_{\mathrm{KL}(\hat p_v\|p)\le\varepsilon_v} \sum_z p(z)(-\ln p_v(z)),"
        r"\quad \varepsilon_v = \frac{\mathrm{KL}_{\text{below } v} + \ln C(K_v, N) + \ln(T/\delta)}{N}",
        reference="gingham, docs/theory/trees",
    )
