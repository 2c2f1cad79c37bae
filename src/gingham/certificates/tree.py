"""What a tree costs: which clusterings are paid for (P0 eq. 51), and the price of having chosen the tree."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, log

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.structure import Tree
from gingham.errors import RefusedCertificate


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


def sequence_price(n_leaves: int, merges: Sequence[Sequence[object]]) -> float:
    """−ln P(tree) when pairs are merged one after the other: with f nodes at the top, stop or pick a pair.

    The C(f, 2) pairs and stopping are equally likely, so the prior sums to one over all merge histories
    and a bound may hold for all of them at once (P0 §7.2).
    """
    price, top = 0.0, n_leaves
    for _ in merges:
        price += log(comb(top, 2) + 1)
        top -= 1
    return price + (log(comb(top, 2) + 1) if top > 1 else 0.0)
