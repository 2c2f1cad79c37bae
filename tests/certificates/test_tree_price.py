"""P0 (51) by hand, the exact price, the price of choosing a tree, and coverage."""

from math import log

import numpy as np
import pytest

from gingham.cells import Quadratic, ZeroOne
from gingham.certificates.tree import sequence_price, tree_bound, tree_complexity
from gingham.data import Alphabet, Mode, Sample
from gingham.errors import RefusedCertificate
from gingham.structure import Tree
from gingham.trees import TreePosterior

ALPHABET = Alphabet.of([0, 1, 2], given=True)


def hard(labels, m):
    return np.eye(m)[np.asarray(labels)]


def small_tree(cell=None):
    modes = [Mode(f"x{j}", np.arange(4)) for j in range(4)]
    tree, _ = Tree.build(modes, (2, 2, 2, 2), [(0, 1, 2), (2, 3, 3)])
    assign = (*[hard([0, 0, 1, 1], 2)] * 4, hard([0, 1, 1, 0], 2), hard([0, 1, 2, 2], 3))
    answers = np.array([[0, 1, 2], [2, 1, 0]])
    return TreePosterior(tree, (cell or ZeroOne(ALPHABET),), assign, (answers,))


def test_equation_51_by_hand():
    # Leaves: 4 items halved, n I = 4 ln 2, m ln n = 2 ln 4. Inner: (1/2, 1/2) of 4 cells, and (1/4, 1/4, 1/2).
    b1 = 4 * (4 * log(2) + 2 * log(4))
    b2 = 4 * log(2) + 2 * log(4) + 4 * (0.5 * log(4) + 0.5 * log(2)) + 3 * log(4)
    assert tree_complexity(small_tree(), "papers").total == pytest.approx(b1 + b2 + 6 * log(3))


def test_bound_51_inverts_the_kl_by_hand():
    rng = np.random.default_rng(0)
    posterior = small_tree()
    codes = tuple(rng.integers(0, 4, 400).astype(np.int32) for _ in range(4))
    labels = rng.integers(0, 3, 400)
    sample = Sample(posterior.structure.columns(), codes, labels.astype(float), ALPHABET, labels.astype(np.int32))
    value = tree_bound(posterior, sample, 0.05, "theorem7").value
    loss = posterior.gibbs_loss(sample)
    kl = loss * log(loss / value) + (1 - loss) * log((1 - loss) / (1 - value))
    total = tree_complexity(posterior, "papers").total
    assert kl == pytest.approx((total + 0.5 * log(4 * 400) + log(1 / 0.05)) / 400, rel=1e-6)


def test_shared_clusterings_are_paid_once_when_hard_and_at_each_node_when_soft():
    mode = Mode("x", np.arange(6))
    tied, _ = Tree.build([mode] * 2, (2, 2), [], tied=[(0, 1)])
    free, _ = Tree.build([mode] * 2, (2, 2), [])
    cell, answers = (ZeroOne(ALPHABET),), (np.zeros((2, 2), dtype=int),)
    q = hard([0, 1, 0, 1, 0, 1], 2)
    once = tree_complexity(TreePosterior(tied, cell, (q,), answers), "papers").total
    twice = tree_complexity(TreePosterior(free, cell, (q, q), answers), "papers").total
    labels = 4 * log(3)
    assert 2 * (once - labels) == pytest.approx(twice - labels)
    soft = 0.9 * q + 0.05
    assert tree_complexity(TreePosterior(tied, cell, (soft,), answers), "papers").total == pytest.approx(
        tree_complexity(TreePosterior(free, cell, (soft, soft), answers), "papers").total
    )


def test_frozen_tables_cost_nothing():
    modes = [Mode(f"x{j}", np.arange(4)) for j in range(2)]
    tree, widths = Tree.build(modes, (2, 2), [(0, 1, None)])
    assign = (hard([0, 0, 1, 1], 2), hard([0, 1, 0, 1], 2), np.eye(widths[2]))
    posterior = TreePosterior(tree, (ZeroOne(ALPHABET),), assign, (np.zeros(4, dtype=int),))
    names = tree_complexity(posterior).terms
    assert not any(name.startswith("node 2") for name in names)


def test_prior_over_merge_histories_sums_to_one():
    def mass(top, so_far):
        total = np.exp(-sequence_price(4, so_far))  # stop here
        if top > 1:
            total += top * (top - 1) // 2 * mass(top - 1, [*so_far, (0, 0, 1)])
        return total

    # A history that ends with one node has no choice left to stop.
    assert mass(4, []) == pytest.approx(1.0)


def test_answers_from_a_continuum_are_refused():
    with pytest.raises(RefusedCertificate, match="finite set"):
        tree_complexity(small_tree(Quadratic(ALPHABET)))


def test_bound_covers_the_true_loss_of_a_chosen_tree():
    """The worst tree for the future among those that fit the past: the bound may fail in 5 % of samples."""
    rng = np.random.default_rng(0)
    base = small_tree()
    alphabet = Alphabet.of([0, 1], given=True)
    failures = 0
    for _ in range(100):
        codes = rng.integers(0, 4, (4, 60))
        labels = rng.integers(0, 2, 60)  # labels are coin flips, so every predictor errs half the time
        sample = Sample(base.structure.columns(), tuple(codes.astype(np.int32)), labels.astype(float), alphabet,
                        labels.astype(np.int32))  # fmt: skip
        best = None
        for _ in range(8):
            assign = tuple(hard(rng.integers(0, q.shape[1], len(q)), q.shape[1]) for q in base.assign)
            candidate = TreePosterior(base.structure, (ZeroOne(alphabet),), assign, (np.zeros(0),)).refit(sample)
            if best is None or candidate.gibbs_loss(sample) < best.gibbs_loss(sample):
                best = candidate
        failures += tree_bound(best, sample, 0.05).value < 0.5
    assert failures <= 5
