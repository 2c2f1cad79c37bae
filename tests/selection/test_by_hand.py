"""Numbers by which sizes and β are chosen, computed a second time by hand."""

from __future__ import annotations

import re
from math import log

import numpy as np
import pytest

import gingham as gg
from gingham.cells import Absolute, Logarithmic, Quadratic, TableLoss, ZeroOne
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.errors import GinghamError
from gingham.fitting.starts import expand_clusters
from gingham.selection import BetaPath, PathPoint
from gingham.selection.auto import (
    FACTORS,
    _item_means,
    average,
    beta_of_item_means,
    choose_beta,
    explained,
    held_out_losses,
    prediction_losses,
    tenths,
)
from gingham.selection.coarser import problem_of

LETTERS = Alphabet.of((0, 1, 2), given=True)


def test_sizes_from_the_data():
    """About 40 observations a cell, at most 20 clusters, and two unless there are many modes."""
    assert expand_clusters("auto", (100, 100, 100), 40 * 27) == (3, 3, 3)
    assert expand_clusters("auto", (100, 100), 40 * 16) == (4, 4)
    assert expand_clusters("auto", (100, 100), 10**6) == (20, 20)
    assert expand_clusters("auto", (100, 100), 10) == (2, 2)
    assert expand_clusters("auto", (9,) * 12, 10) == (2,) * 12
    assert expand_clusters("auto", (9,) * 13, 10) == (1,) * 13
    assert expand_clusters(np.int64(4), (100, 3), 10) == (4, 3)
    assert expand_clusters((1, 7), (100, 100), 10) == (1, 7)


@pytest.mark.parametrize("wrong", ["many", 0, True, 2.0, (2, 0), (2, 2, 2), (2,), None])
def test_sizes_that_are_none(wrong):
    with pytest.raises(GinghamError, match="n_clusters"):
        expand_clusters(wrong, (9, 9), 100)


def test_which_tuples_are_held_out_is_the_same_in_every_version():
    X = np.array([(i, j) for i in range(12) for j in range(10)])
    assert np.flatnonzero(tenths(Sample.of(X.T, np.zeros(120))) == 0).tolist() == [0, 1, 34, 38, 42, 66, 80, 95]
    many = np.random.default_rng(0).integers(0, 3000, (20_000, 3))
    assert (tenths(Sample.of(many.T, np.zeros(20_000))) == 0).mean() == pytest.approx(0.1, abs=0.005)


@pytest.mark.parametrize("weight", [None, 2.0])
def test_item_means_begin_from_five_tuples_of_the_average(weight):
    modes = [Mode("a", np.arange(2)), Mode("b", np.arange(2))]
    weights = None if weight is None else np.full(3, weight)
    seen = Sample.of([[0, 0, 1], [0, 1, 0]], np.array([1.0, 2.0, 6.0]), weights, modes=modes)
    held = Sample.of([[1, 0], [1, 0]], np.zeros(2), modes=modes)
    w = weight or 1.0
    first = [w * -3 / (2 * w + 5), w * 3 / (w + 5)]  # the average is 3
    rest = [-2 - first[0], -1 - first[0], 3 - first[1]]
    second = [w * (rest[0] + rest[2]) / (2 * w + 5), w * rest[1] / (w + 5)]
    expected = [3 + first[1] + second[1], 3 + first[0] + second[0]]
    assert _item_means(seen, held, seen.labels).tolist() == pytest.approx(expected)


def test_beta_from_the_error_of_item_means():
    """Observations none of which is held out (see above) are predicted by means that have seen them."""
    X, modes = [[0, 1, 1, 1], [2, 1, 2, 3]], [Mode("a", np.arange(2)), Mode("b", np.arange(4))]
    assert not (tenths(Sample.of(X, np.zeros(4), modes=modes)) == 0).any()
    numbers = Sample.of(X, np.array([0.0, 1.0, 2.0, 2.0]), modes=modes)
    miss = numbers.labels - _item_means(numbers, numbers, numbers.labels)
    assert beta_of_item_means(numbers, Quadratic())[0] == pytest.approx(0.5 / np.mean(miss**2))
    label_values = Sample.of(X, [0, 1, 2, 2], modes=modes, alphabet=LETTERS)
    assert beta_of_item_means(label_values, Absolute(LETTERS))[0] == pytest.approx(0.7 / np.mean(np.abs(miss)))
    assert beta_of_item_means(label_values, Logarithmic(LETTERS))[0] == 1.0
    same = Sample.of(X, [1, 1, 1, 1], modes=modes, alphabet=LETTERS)
    assert beta_of_item_means(same, Absolute(LETTERS))[0] == 1.0  # no error at all
    assert beta_of_item_means(same, ZeroOne(LETTERS))[0] == pytest.approx(50.0)  # a fiftieth of the range at least
    alone = Alphabet.of((1,), given=True)
    assert beta_of_item_means(Sample.of(X, [1] * 4, modes=modes, alphabet=alone), ZeroOne(alone))[0] == 1.0
    shares = np.array(
        [_item_means(label_values, label_values, 1.0 * (label_values.label_codes == k)) for k in range(3)]
    ).T
    wrong = np.mean(shares.argmax(axis=1) != label_values.label_codes)
    assert beta_of_item_means(label_values, ZeroOne(LETTERS))[0] == pytest.approx(1 / max(wrong, 0.02))


def soft_board(cell, answers):
    """One item a cluster in the first mode, an item half in each in the second."""
    modes = (Mode("a", np.arange(2)), Mode("b", np.arange(1)))
    return Posterior(Structure.grid(modes), (cell,), (np.eye(2), np.full((1, 2), 0.5)), (answers,))


def test_held_out_losses_of_what_is_drawn_and_of_what_is_predicted():
    codes = [np.array([0, 0, 1]), np.array([0, 0, 0])]
    weights = np.array([1.0, 1.0, 2.0])
    labelled = Sample.of(codes, [0, 2, 1], weights, modes=[Mode("a", np.arange(2)), Mode("b", np.arange(1))],
                         alphabet=LETTERS)  # fmt: skip
    board = soft_board(Absolute(LETTERS), np.array([[0, 2], [1, 1]]))
    gibbs, predicted = held_out_losses(board, labelled)
    assert gibbs == pytest.approx((1 + 1 + 0) / 4)
    assert prediction_losses(board, labelled).tolist() == [0.0, 2.0, 0.0]  # the lowest of equal answers
    assert predicted == pytest.approx(2 / 4)
    board = soft_board(Logarithmic(LETTERS), np.array([[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], [[0.2, 0.6, 0.2]] * 2]))
    assert prediction_losses(board, labelled) == pytest.approx([-log(0.3), -log(0.5), -log(0.6)])
    gibbs, _ = held_out_losses(board, labelled)
    assert gibbs == pytest.approx(-(log(0.5) + log(0.1) + log(0.2) + log(0.8) + 4 * log(0.6)) / 2 / 4)
    board = soft_board(Quadratic(LETTERS), np.array([[0.0, 2.0], [1.5, 1.5]]))
    assert prediction_losses(board, labelled).tolist() == [1.0, 1.0, 0.25]
    assert held_out_losses(board, labelled) == pytest.approx(((2 + 2 + 2 * 0.25) / 4, (1 + 1 + 0.5) / 4))
    assert average(np.array([1.0, 4.0]), np.array([3.0, 1.0])) == 1.75


def test_beta_is_as_given_or_compared():
    sample = Sample.of([[0], [0]], [1.0])
    assert choose_beta(0.25, sample, Quadratic()) == (0.25, (), "β = 0.25, as given")
    with pytest.raises(GinghamError, match=r"beta='auto' is unknown; give a number\.$"):
        choose_beta("auto", sample, Quadratic())
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (400, 2))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1) + rng.normal(0, 1, 400).round()
    for loss, factors in (("quadratic", [2.0, 1.4, 1.0, 0.7]), ("absolute", [2.0, 1.4, 1.0, 0.7, 0.5, 0.35])):
        model = gg.CoClusteringRegressor(2, loss=loss, beta="auto", max_iter=3, random_state=0).fit(X, y)
        betas, losses = np.array(model.selection_.tried).T
        assert (betas / betas[2]).tolist() == pytest.approx(factors)
        chosen = losses[np.flatnonzero(betas == model.beta_)[0]]
        assert chosen >= losses.min()


def test_reasons_in_a_sentence():
    found = explained(0.5, ((0.5, 1.0),), "β, as given", (4, 6), (2, 3), None)
    assert str(found) == "2 × 3 clusters, as given; β, as given."
    assert (found.beta, found.n_clusters, found.started_with, found.tried) == (0.5, (2, 3), (4, 6), ((0.5, 1.0),))
    merged = explained(0.5, (), "why", (4, 6), (2, 3), "the trade-off").reason
    assert merged == "2 × 3 clusters: started with 4 × 6, merged while the trade-off fell; why."


def test_the_trade_off_of_a_model_has_the_beta_it_was_fitted_with():
    X = np.argwhere(np.ones((6, 6)))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    model = gg.CoClusteringRegressor(2, beta=0.75, random_state=0).fit(X, y)
    assert problem_of(model, X, y).betas == (0.75,)
    with pytest.raises(GinghamError, match="not a fitted model with one grid"):
        gg.simplify(gg.CoClusteringRegressor(2), X, y)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_clusters": 0}, "at least one cluster"),
        ({"max_loss": 0.001}, "the model itself loses"),
        ({"max_clusters": 1, "max_loss": 0.5}, "1 clusters lose"),
    ],
)
def test_simplifying_too_far_is_refused(options, words):
    X = np.argwhere(np.ones((6, 6)))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    y[0] = 3
    model = gg.CoClusteringRegressor(2, beta=2.0, random_state=0).fit(X, y)
    with pytest.raises(GinghamError, match=words):
        gg.simplify(model, X, y, **options)
    small = gg.simplify(model, X, y, max_clusters=(1, 2))
    assert tuple(small.posterior_.n_clusters) == (1, 2)
    assert tuple(gg.simplify(model, X, y, max_loss=2.0).posterior_.n_clusters) == (1, 1)


def test_a_path_takes_what_it_is_given_and_refuses_the_rest():
    X = np.argwhere(np.ones((6, 6)))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    model = gg.CoClusteringRegressor(2, alphabet=(1, 5), random_state=0)
    with pytest.raises(GinghamError, match="none negative"):
        gg.beta_path(model, X, y, [-1.0], cv=0)
    with pytest.raises(GinghamError, match="at least one value"):
        gg.beta_path(model, X, y, [], cv=0)
    for folds in (1, 37):
        with pytest.raises(GinghamError, match="between 2 and the number of rows"):
            gg.beta_path(model, X, y, [1.0], cv=folds)
    path = gg.beta_path(model, X, y, [1.0, 1.0, 0.0], cv=2)
    assert path.table["beta"].tolist() == [1.0, 0.0]
    assert len(gg.beta_path(model.set_params(beta=2.0), X, y, cv=0).points) == 12
    ends = gg.beta_path(model, X, y, cv=0, delta=0).table
    assert (ends["beta"][0], ends["beta"][-1]) == pytest.approx((6.0, 0.2))
    assert np.isnan(ends["certificate"]).all()


def planted(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (400, 2))
    return X, np.where(X.sum(axis=1) % 2 == 0, 5.0, 1.0) + rng.normal(0, 0.3, 400)


def test_a_tenth_is_held_out_and_the_largest_factor_is_tried():
    X, numbers = planted()
    model = gg.CoClusteringRegressor(2, loss="quadratic", beta="auto", max_iter=3, random_state=0).fit(X, numbers)
    held = int(re.search(r"on (\d+) held-out observations", model.selection_.reason).group(1))
    assert 20 <= held <= 60
    names = np.where(numbers > 3, "yes", "no")
    model = gg.CoClusteringClassifier(2, loss="log", beta="auto", max_iter=3, random_state=0).fit(X, names)
    betas = np.array(model.selection_.tried)[:, 0]
    assert len(betas) == sum(factor <= 1.0 for factor in FACTORS)  # a likelihood is not weighed more than once


def test_words_that_are_no_beta():
    X, y = planted()
    for word in ("aaa", "zzz"):
        with pytest.raises(GinghamError, match=f"beta='{word}' is unknown; give a number or 'auto'"):
            gg.CoClusteringRegressor(2, beta=word).fit(X, y)


def test_names_with_a_wide_loss_have_a_fiftieth_of_its_range():
    X, modes = [[0, 1, 1, 1], [2, 1, 2, 3]], [Mode("a", np.arange(2)), Mode("b", np.arange(4))]
    same = Sample.of(X, [1, 1, 1, 1], modes=modes, alphabet=LETTERS)
    assert beta_of_item_means(same, TableLoss(LETTERS, 5 * (1 - np.eye(3))))[0] == pytest.approx(1 / 0.1)


def test_folds_come_before_the_last_point_and_labels_need_no_alphabet():
    X, y = planted()
    model = gg.CoClusteringRegressor(2, loss="quadratic", beta=1.0, max_iter=3, random_state=0)
    told = []
    path = gg.beta_path(model, X, y, [1.0, 0.5], cv=2, n_jobs=1, callback=told.append)
    assert [one.what for one in told] == ["fold", "fold", "point", "point"]
    assert [one.done for one in told] == [1, 2, 3, 4]
    assert ((path.table["cv_loss"] > 0) & (path.table["cv_loss"] < 5)).all()


def test_one_point_was_not_chosen():
    X, y = planted()
    model = gg.CoClusteringRegressor(2, alphabet=(1, 5), beta=1.0, max_iter=3, random_state=0)
    labels = np.where(y > 3, 5, 1)
    one = gg.beta_path(model, X, labels, [1.0], cv=0)
    assert one.best("certificate") is one.points[0]
    two = gg.beta_path(model, X, labels, [1.0, 0.5], cv=0).best("certificate").certificate
    assert two.chosen_from == 2
    assert two.record.X is X  # a file names the rows as they were given
    assert two.record.y is labels


def test_the_band_of_a_plot_is_one_standard_error_wide():
    plt = pytest.importorskip("matplotlib.pyplot")
    board = soft_board(Absolute(LETTERS), np.array([[0, 2], [1, 1]]))
    path = BetaPath(tuple(PathPoint(b, board, 1.0, b + 1, 0.25, 1.0, None) for b in (4.0, 2.0)), ("a", "b"))
    axes = path.plot()
    heights = axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (2.75, 5.25)
    assert all(ax.get_position().height > 0.1 for ax in axes)
    plt.close("all")


def test_labels_beyond_the_most_common_ones_have_no_share(monkeypatch):
    X, modes = [[0, 1, 1, 1, 0], [2, 1, 2, 3, 2]], [Mode("a", np.arange(2)), Mode("b", np.arange(4))]
    sample = Sample.of(X, [2, 2, 2, 2, 0], modes=modes, alphabet=LETTERS)
    assert beta_of_item_means(sample, ZeroOne(LETTERS))[0] == pytest.approx(1 / 0.2)
    monkeypatch.setattr("gingham.selection.auto.MOST_CLASSES", 2)  # the third is never predicted
    assert beta_of_item_means(sample, ZeroOne(LETTERS))[0] == pytest.approx(1 / 0.8)


def test_a_loss_of_numbers_that_is_none_of_the_gap_is_that_of_the_cell():
    class Tripled(Quadratic):
        def of_gap(self, gap):
            return None

        def coef(self, answer):
            return 3 * super().coef(answer)

    codes = [np.array([0, 0, 1]), np.array([0, 0, 0])]
    board = soft_board(Tripled(LETTERS), np.array([[0.0, 2.0], [1.5, 1.5]]))
    sample = Sample.of(codes, [0.0, 2.0, 1.0], modes=board.structure.modes)
    assert prediction_losses(board, sample).tolist() == [3.0, 3.0, 0.75]


def test_a_loss_that_is_just_kept_is_kept():
    X = np.argwhere(np.ones((6, 6)))
    y = np.ones(36, dtype=int)
    model = gg.CoClusteringRegressor(3, beta=2.0, alphabet=(1, 5), random_state=0).fit(X, y)
    assert gg.simplify(model, X, y, max_clusters=1, max_loss=0.0).posterior_.n_clusters == (1, 1)
