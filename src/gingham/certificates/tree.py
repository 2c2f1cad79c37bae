"""What a tree costs: P0's (51) for any tree, its exact form, and the price of having chosen the tree."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, log

from gingham.certificates import bounds
from gingham.certificates.bounds import Bound
from gingham.certificates.complexity import Complexity, of_posterior
from gingham.certificates.law import GibbsLaw
from gingham.data import Sample
from gingham.errors import RefusedCertificate
from gingham.posterior import Posterior
from gingham.structure import Tree


def tree_complexity(posterior: Posterior, kind: str = "exact", structure_price: float = 0.0) -> Complexity:
    """KL(Q‖P) of a tree, leaves and inner nodes alike (P0 eq. 51: B1 + B2 + |D1||D2| ln|Y|).

    Parameters
    ----------
    posterior : TreePosterior
    kind : {"exact", "papers"}
        "papers": Σ_tables (items·Ī + clusters·ln items) + root cells·ln|Y|.
    structure_price : float
        −ln prior of the tree itself, when it was chosen by looking at the data.

    A clustering that several nodes share is paid once when it is hard. A soft one is drawn anew at each
    node (its Gibbs loss is the product over nodes), and so it is paid for at each. Frozen tables were
    not learned and cost nothing.
    """
    tree = posterior.structure
    if not isinstance(tree, Tree):
        raise RefusedCertificate("This is the price of a tree, and the posterior is none.")
    n_answers = posterior.cells[0].n_answers
    if n_answers is None:
        raise RefusedCertificate(
            "The price of a tree is known for answers from a finite set: use loss='zero-one', 'absolute', "
            "'pinball' or a table."
        )
    assigns = {}
    for mode, q in enumerate(posterior.assign):
        if mode in tree.frozen:
            continue
        nodes = [node for node, at in enumerate(tree.tables) if at == mode]
        hard = bool(((q == 0) | (q == 1)).all())
        for node in nodes[:1] if hard else nodes:
            assigns[f"node {node} ({tree.modes[mode].name})"] = q
    cost = of_posterior(assigns, posterior.answers[0], n_answers, kind=kind)
    return cost.plus(choice_of_the_tree=structure_price) if structure_price else cost


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


def tree_bound(
    posterior: Posterior,
    sample: Sample,
    delta: float = 0.05,
    bound: str = "log-wealth",
    structure_price: float = 0.0,
) -> Bound:
    """A bound on the expected Gibbs loss of a tree, scaled by the loss's range to [0, 1].

    ``bound`` is "log-wealth" with the exact complexity, or "theorem7" for P0's (51) as printed.
    """
    law = posterior.loss_law(sample)
    scale = posterior.cells[0].range
    scaled = GibbsLaw.of(law.values / scale, law.weights)
    kind = "papers" if bound == "theorem7" else "exact"
    complexity = tree_complexity(posterior, kind, structure_price).total
    theorem = bounds.theorem7 if bound == "theorem7" else bounds.log_wealth
    return theorem(scaled, complexity, int(sample.n_tuples), delta)
