"""Counts of more than two sides: by brute force, in every form, through a file and its certificate."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import xlogy
from sklearn.metrics import adjusted_rand_score

import gingham as gg

SIDES = tuple(np.arange(n) % m for n, m in ((18, 3), (15, 3), (8, 2)))
RATES = np.random.default_rng(1).gamma(0.4, 1.0, (3, 3, 2))


def planted(seed=0, scale=2.0):
    return np.random.default_rng(seed).poisson(scale * RATES[np.ix_(*SIDES)])


def information(table):
    """I(C_1; …; C_d) cell by cell."""
    p, total = table / table.sum(), 0.0
    margins = [p.sum(axis=tuple(j for j in range(p.ndim) if j != i)) for i in range(p.ndim)]
    for cell in product(*map(range, p.shape)):
        total += xlogy(p[cell], p[cell] / max(np.prod([m[c] for m, c in zip(margins, cell)]), 1e-300))
    return total


def blocks(X, labels):
    table = np.zeros([max(of) + 1 for of in labels])
    for cell, count in np.ndenumerate(X):
        table[tuple(of[x] for of, x in zip(labels, cell))] += count
    return table


@pytest.mark.parametrize("start", ["merged", "profiles", "random"])
def test_planted_blocks_of_three_sides_are_found(start):
    model = gg.CoOccurrenceClustering((3, 3, 2), start=start, n_init=5, random_state=0).fit(planted())
    assert [adjusted_rand_score(*pair) for pair in zip(SIDES, model.labels_)] == [1.0] * 3
    assert model.n_clusters_ == (3, 3, 2)


def test_facts_are_those_of_brute_force_and_no_single_move_helps():
    X = planted(2)
    model = gg.CoOccurrenceClustering((3, 3, 2), tol=0.0, random_state=0).fit(X)
    np.testing.assert_array_equal(model.blocks_, blocks(X, model.labels_))
    assert model.information_ == pytest.approx(information(model.blocks_))
    assert model.information_kept_ == pytest.approx(model.information_ / information(X))
    assert model.trace_.totals[-1] == pytest.approx(-X.sum() * model.information_)
    for side, labels in enumerate(model.labels_):
        for x, c in product(range(len(labels)), range(model.n_clusters_[side])):
            moved = [of.copy() for of in model.labels_]
            moved[side][x] = c
            assert information(blocks(X, moved)) <= model.information_ + 1e-9


@pytest.mark.parametrize("options", [{}, {"solver": "concave", "beta": 1.0}], ids=["hard", "soft"])
def test_the_density_sums_to_one_and_predicts_new_counts(options):
    X, fresh = planted(), planted(5)
    model = gg.CoOccurrenceClustering((3, 3, 2), random_state=0, **options).fit(X)
    every = np.argwhere(np.ones(X.shape, bool))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0)
    alone = sum(model._log_item_density(side)[every[:, side]] for side in range(3))
    assert model.score(fresh) > float(fresh.ravel() @ alone) / fresh.sum()


def test_all_forms_are_one(tmp_path):
    X = planted(3)
    at = np.argwhere(X)
    names = ["customer", "product", "month"]
    frame = pd.DataFrame({name: [f"{name}{i:02d}" for i in code] for name, code in zip(names, at.T)})
    frame["n"] = X[tuple(at.T)]
    model = gg.CoOccurrenceClustering(2, random_state=0)
    tensor = sparse.coo_array((X[tuple(at.T)].astype(float), tuple(at.T)), shape=X.shape)
    one = gg.CoOccurrenceClustering(2, random_state=0).fit(X)
    model.fit(frame, axes=names, weight="n")
    again = gg.CoOccurrenceClustering(2, random_state=0).fit(frame.loc[frame.index.repeat(frame["n"])], axes=names)
    for other in (model, again):
        for mine, theirs in zip(one.labels_, other.labels_):
            np.testing.assert_array_equal(mine, theirs)
    assert one.score(X) == pytest.approx(model.score(frame)) == pytest.approx(model.score(tensor))
    assert [mode.name for mode in model.modes_] == names
    two = gg.CoOccurrenceClustering(2, random_state=0).fit(frame, axes=names[:2], weight="n")
    plain = gg.CoOccurrenceClustering(2, random_state=0).fit(X.sum(axis=2))
    np.testing.assert_array_equal(two.blocks_, plain.blocks_)
    assert "customer" in str(model.describe())
    model.save(tmp_path / "counts.gingham")
    loaded = gg.load(tmp_path / "counts.gingham")
    assert loaded.score(frame) == model.score(frame)


def test_sizes_are_found_for_all_sides_at_once():
    sides = tuple(np.arange(n) % 2 for n in (30, 26, 22))
    rates = np.random.default_rng(3).gamma(0.3, 1.0, (2, 2, 2))
    X = np.random.default_rng(0).poisson(rates[np.ix_(*sides)])
    model = gg.CoOccurrenceClustering(random_state=0).fit(X)
    assert model.n_clusters_ == (2, 2, 2)
    assert "best among" in model._size_reason
    noise = np.random.default_rng(1).poisson(0.3, (20, 20, 20))
    assert gg.CoOccurrenceClustering(random_state=0).fit(noise).n_clusters_ == (1, 1, 1)


def test_a_certificate_of_three_sides_holds_and_can_be_checked(tmp_path):
    X = planted(0, scale=20.0)
    model = gg.CoOccurrenceClustering((3, 3, 2), random_state=0).fit(X)
    certificate = model.certify(X, population=X.shape)
    truth = RATES[np.ix_(*SIDES)] / RATES[np.ix_(*SIDES)].sum()
    expected = -float((truth.ravel() * model.density_.log_density(np.argwhere(truth > -1).T)).sum())
    assert certificate.empirical < expected < certificate.value < np.log(X.size)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: gg.CoOccurrenceClustering((2, 2)).fit(planted()), "one for each of the 3 sides"),
        (lambda: gg.CoOccurrenceClustering((2, 2, None)).fit(planted()), "one for each of the 3 sides"),
        (
            lambda: gg.CoOccurrenceClustering(2).fit(-planted()),
            r"-\d+ in cell \(0, 0, \d+\). Counts are never negative",
        ),
        (lambda: gg.CoOccurrenceClustering(2).fit(np.where(planted() > 0, np.nan, 0.0)), r"NaN \(cell"),
        (lambda: gg.CoOccurrenceClustering(2).fit(1e16 * planted()), "more than 2\\*\\*53"),
        (lambda: gg.CoOccurrenceClustering(2).fit(0 * planted()), "are zero"),
        (lambda: gg.CoOccurrenceClustering(2).fit(pd.DataFrame({"a": ["x"]}), axes=["a", "b"]), "two columns or more"),
        (lambda: gg.CoOccurrenceClustering(2).fit(planted()).predict(planted()), "more than two sides"),
        (lambda: gg.CoOccurrenceClustering(2).fit(planted()).factors_, "tri-factorisation"),
        (lambda: gg.CoOccurrenceClustering(2).fit(planted()).score_samples([[0, 0]]), r"shape \(N, 3\)"),
    ],
)
def test_what_has_no_meaning_is_refused(call, words):
    with pytest.raises(gg.GinghamError, match=words):
        call()
