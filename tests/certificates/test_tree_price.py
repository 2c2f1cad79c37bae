"""P0 (51) by hand, the exact price, the price of choosing a tree, and coverage."""

from dataclasses import replace
from math import log

import numpy as np
import pytest

from gingham.cells import Quadratic, ZeroOne
from gingham.certificates.certify import certify
from gingham.certificates.evidence import collect
from gingham.certificates.prices import partition_exact, sequence_price
from gingham.core.problem import Posterior, Structure, Tree
from gingham.core.tree import TreePosterior
from gingham.data import Alphabet, Mode, Sample

ALPHABET = Alphabet.of([0, 1, 2], given=True)


def hard(labels, m):
    return np.eye(m)[np.asarray(labels)]


def small_tree(cell=None):
    modes = [Mode(f"x{j}", np.arange(4)) for j in range(4)]
    tree, _ = Tree.build(modes, (2, 2, 2, 2), [(0, 1, 2), (2, 3, 3)])
    assign = (*[hard([0, 0, 1, 1], 2)] * 4, hard([0, 1, 1, 0], 2), hard([0, 1, 2, 2], 3))
    answers = np.array([[0, 1, 2], [2, 1, 0]])
    return TreePosterior(tree, (cell or ZeroOne(ALPHABET),), assign, (answers,))


def some_sample(posterior, n=400, seed=0, alphabet=ALPHABET):
    rng = np.random.default_rng(seed)
    columns = posterior.structure.columns()
    codes = tuple(rng.integers(0, mode.n_items, n).astype(np.int32) for mode in columns)
    labels = rng.integers(0, alphabet.size, n)
    return Sample(columns, codes, labels.astype(float), alphabet, labels.astype(np.int32))


def no_others(posterior):
    """The statement that there are no other items than the model knows."""
    tree = posterior.structure
    return [tree.modes[at].n_items for at in dict.fromkeys(tree.tables[: tree.n_leaves])]


def papers_price(posterior):
    return collect(posterior, some_sample(posterior), 0, no_others(posterior)).prices["papers"].total


def test_equation_51_by_hand():
    # Leaves: 4 items halved, n I = 4 ln 2, m ln n = 2 ln 4. Inner: (1/2, 1/2) of 4 cells, and (1/4, 1/4, 1/2).
    b1 = 4 * (4 * log(2) + 2 * log(4))
    b2 = 4 * log(2) + 2 * log(4) + 4 * (0.5 * log(4) + 0.5 * log(2)) + 3 * log(4)
    assert papers_price(small_tree()) == pytest.approx(b1 + b2 + 6 * log(3))


def test_bound_51_inverts_the_kl_by_hand():
    posterior = small_tree()
    sample = some_sample(posterior)
    certificate = certify(posterior, sample, bound="theorem-7", population=(4, 4, 4, 4))
    loss, value = posterior.gibbs_loss(sample), certificate.value
    assert certificate.empirical == pytest.approx(loss)
    kl = loss * log(loss / value) + (1 - loss) * log((1 - loss) / (1 - value))
    assert kl == pytest.approx((papers_price(posterior) + 0.5 * log(4 * 400) + log(1 / 0.05)) / 400, rel=1e-6)


def test_shared_clusterings_are_paid_once_when_hard_and_at_each_node_when_soft():
    mode = Mode("x", np.arange(6))
    tied, _ = Tree.build([mode] * 2, (2, 2), [], tied=[(0, 1)])
    free, _ = Tree.build([mode] * 2, (2, 2), [])
    cell, answers = (ZeroOne(ALPHABET),), (np.zeros((2, 2), dtype=int),)
    q = hard([0, 1, 0, 1, 0, 1], 2)
    once = papers_price(TreePosterior(tied, cell, (q,), answers))
    twice = papers_price(TreePosterior(free, cell, (q, q), answers))
    labels = 4 * log(3)
    assert 2 * (once - labels - log(2)) == pytest.approx(twice - labels)
    soft = 0.9 * q + 0.05
    assert papers_price(TreePosterior(tied, cell, (soft,), answers)) == pytest.approx(
        papers_price(TreePosterior(free, cell, (soft, soft), answers)) + log(2)
    )
    posterior = TreePosterior(tied, cell, (q,), answers)  # unseen items are drawn at each node by itself
    known = collect(posterior, some_sample(posterior), 0, no_others(posterior)).prices["exact"].terms
    others = collect(posterior, some_sample(posterior)).prices["exact"].terms
    where = [name for name in others if "who belongs where" in name]
    assert len(where) == 2
    assert [name for name in known if "who belongs where" in name] == where[:1]


def test_once_or_at_each_node_is_a_choice_that_the_prior_pays_for():
    """All pairs of tables of a tied clustering, priced as one table where equal and as two: the prior sums to one.

    Without the ln 2 it would sum to nearly two, and Q could take whichever half suits the sample.
    """
    mode = Mode("x", np.arange(3))
    tied, _ = Tree.build([mode] * 2, (2, 2), [], tied=[(0, 1)])
    cell, answers = (ZeroOne(ALPHABET),), (np.zeros((2, 2), dtype=int),)
    q = hard([0, 1, 0], 2)
    evidence = collect(TreePosterior(tied, cell, (q,), answers), some_sample(TreePosterior(tied, cell, (q,), answers)))
    paid = evidence.prices["exact"].terms["tied tables, drawn once or at each node"]
    tables = [hard(labels, 2) for labels in np.ndindex(2, 2, 2)]
    # −ln of the prior of one table, given the number of clusters
    prices = [sum(partition_exact(table).values()) - log(2 * 3) for table in tables]
    once = np.exp(-np.array(prices)).sum()
    assert once == pytest.approx(1.0)
    assert np.exp(-paid) * (once + once**2) == pytest.approx(1.0)


def test_frozen_tables_cost_nothing_and_a_chosen_tree_costs_its_price():
    modes = [Mode(f"x{j}", np.arange(4)) for j in range(2)]
    tree, widths = Tree.build(modes, (2, 2), [(0, 1, None)], price=1.5)
    assign = (hard([0, 0, 1, 1], 2), hard([0, 1, 0, 1], 2), np.eye(widths[2]))
    posterior = TreePosterior(tree, (ZeroOne(ALPHABET),), assign, (np.zeros(4, dtype=int),))
    assert list(posterior.structure.clusterings(posterior.assign, 0, {})) == ["node 0 (x0)", "node 1 (x1)"]
    assert collect(posterior, some_sample(posterior)).prices["exact"].terms["choice of the tree"] == 1.5


def test_a_tree_without_merges_is_certified_as_the_grid():
    modes = [Mode(f"x{j}", np.arange(5)) for j in range(2)]
    tree, _ = Tree.build(modes, (2, 3), [])
    assign = tuple(np.random.default_rng(0).dirichlet(np.ones(m), 5) for m in (2, 3))
    by_tree = TreePosterior(tree, (ZeroOne(ALPHABET),), assign, (np.array([[0, 1, 2], [2, 1, 0]]),))
    by_grid = Posterior(Structure.grid(modes), by_tree.cells, assign, by_tree.answers)
    sample = some_sample(by_tree)
    assert certify(by_tree, sample).value == pytest.approx(certify(by_grid, sample).value)


def test_numeric_labels_are_covered_through_the_roots():
    posterior = small_tree(Quadratic(bounds=(0.0, 2.0)))
    posterior = replace(posterior, answers=(posterior.answers[0] * 1.0,))
    sample = some_sample(posterior)
    numeric = replace(sample, alphabet=None, label_codes=None)
    certificate = certify(posterior, numeric)
    assert certificate.empirical == pytest.approx(posterior.gibbs_loss(numeric), rel=1e-3)
    assert certificate.empirical < certificate.value


def test_prior_over_merge_histories_sums_to_one():
    def mass(top, so_far):
        total = np.exp(-sequence_price(4, so_far))  # stop here
        if top > 1:
            total += top * (top - 1) // 2 * mass(top - 1, [*so_far, (0, 0, 1)])
        return total

    # A history that ends with one node has no choice left to stop.
    assert mass(4, []) == pytest.approx(1.0)


def test_bound_covers_the_true_loss_of_a_chosen_tree():
    """The tree that fits the past best among random ones: the bound may fail in 5 % of samples."""
    rng = np.random.default_rng(0)
    base = small_tree()
    alphabet = Alphabet.of([0, 1], given=True)
    failures = 0
    for seed in range(100):
        # Labels are coin flips, so every predictor errs half the time.
        sample = some_sample(base, 60, seed, alphabet)
        best = None
        for _ in range(8):
            assign = tuple(hard(rng.integers(0, q.shape[1], len(q)), q.shape[1]) for q in base.assign)
            candidate = TreePosterior(base.structure, (ZeroOne(alphabet),), assign, (np.zeros(0),)).refit(sample)
            if best is None or candidate.gibbs_loss(sample) < best.gibbs_loss(sample):
                best = candidate
        failures += certify(best, sample).value < 0.5
    assert failures <= 5
