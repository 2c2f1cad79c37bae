"""Every cell model: one list of instances, many properties."""

from functools import partial

import numpy as np
import pytest

from gingham.cells import (
    LOSSES,
    Absolute,
    Logarithmic,
    Mass,
    Pinball,
    Quadratic,
    RankedProbability,
    TableLoss,
    ZeroOne,
    make_cell,
    register_loss,
)
from gingham.cells.contract import _alternatives, check_loss
from gingham.cells.losses import cell_from_state, cell_state, loss_kind
from gingham.data import Alphabet, OneHot
from gingham.errors import GinghamError
from problems import FIVE, all_cells

CELLS = all_cells()
REGISTERED = [make_cell(name, FIVE) for name in LOSSES]
each_cell = pytest.mark.parametrize("cell", CELLS, ids=lambda c: type(c).__name__)


def statistics_of(cell, labels, weights):
    t = cell.features.of_labels(FIVE.numbers)[labels]
    return (t * weights[:, None]).sum(axis=0)


@each_cell
def test_coef_is_the_loss_of_each_label(cell):
    """⟨coef(θ), t(y)⟩ is the loss of y, written out by hand for each model."""
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 5, 12), np.ones(12)
    answer = cell.answer(statistics_of(cell, labels, weights)[None])[0]
    costs = cell.features.of_labels(FIVE.numbers) @ cell.coef(np.asarray(answer))
    y = FIVE.numbers
    by_hand = {
        ZeroOne: lambda: (np.arange(5) != answer).astype(float),
        Absolute: lambda: np.abs(y - y[answer]),
        Pinball: lambda: np.where(y >= y[answer], 0.8 * (y - y[answer]), 0.2 * (y[answer] - y)),
        TableLoss: lambda: cell.table[:, answer],
        Logarithmic: lambda: -np.log(answer),
        RankedProbability: lambda: sum((answer[: k + 1].sum() - (y <= y[k])) ** 2 for k in range(4)) / 4,
        Quadratic: lambda: (y - answer) ** 2,
    }[type(cell)]()
    np.testing.assert_allclose(costs, by_hand, atol=1e-12)


@each_cell
def test_answer_beats_every_alternative(cell):
    rng = np.random.default_rng(1)
    for _ in range(50):
        s = statistics_of(cell, rng.integers(0, 5, 9), rng.integers(1, 4, 9).astype(float))
        if cell.n_answers:
            others = np.arange(cell.n_answers)
        elif isinstance(cell, Quadratic):
            others = np.linspace(1, 5, 401)
        else:
            floor = cell.smoothing / 5
            others = floor + (1 - cell.smoothing) * rng.dirichlet(np.ones(5), 400)
        assert cell.envelope(s[None])[0] <= cell.loss(others, np.broadcast_to(s, (len(others), len(s)))).min() + 1e-9


@each_cell
def test_envelope_is_the_loss_of_the_answer_and_weight_two_is_twice(cell):
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 5, 8)
    doubled = statistics_of(cell, labels, np.full(8, 2.0))
    twice = statistics_of(cell, np.concatenate([labels, labels]), np.ones(16))
    np.testing.assert_allclose(doubled, twice)
    once = statistics_of(cell, labels, np.ones(8))[None]
    np.testing.assert_allclose(cell.envelope(doubled[None]), 2 * cell.envelope(once))
    np.testing.assert_allclose(cell.loss(cell.answer(once), once), cell.envelope(once))


@each_cell
def test_losses_stay_within_the_range(cell):
    rng = np.random.default_rng(3)
    s = np.array([statistics_of(cell, rng.integers(0, 5, 3), np.ones(3)) for _ in range(40)])
    costs = cell.coef(cell.answer(s)) @ cell.features.of_labels(FIVE.numbers).T
    assert costs.min() >= -1e-12
    assert costs.max() <= cell.range + 1e-12


@each_cell
def test_empty_cells_answer_like_all_together(cell):
    s = np.array([statistics_of(cell, np.array([0, 4, 4]), np.ones(3)), np.zeros(cell.features.size)])
    answers = cell.answer(s)
    np.testing.assert_allclose(answers[1], cell.answer(s.sum(0)[None])[0])


@each_cell
def test_state_round_trip(cell):
    again = cell_from_state(cell_state(cell), cell.alphabet)
    s = np.random.default_rng(4).random((6, cell.features.size)) + 0.1
    np.testing.assert_array_equal(again.coef(again.answer(s)), cell.coef(cell.answer(s)))
    assert again.range == cell.range
    assert again.convex == cell.convex


@pytest.mark.parametrize("cell", [*CELLS, *REGISTERED], ids=lambda c: c.name)
def test_shipped_and_registered_losses_keep_the_contract_that_others_are_checked_by(cell):
    check_loss(cell)


class TooLow(Absolute):
    """Claims a range that its losses leave."""

    name = "too-low"

    def __init__(self, alphabet):
        super().__init__(alphabet)
        self.range = 1.0


class Worse(Absolute):
    """Answers with the highest label, whatever the statistics."""

    name = "worse"

    def answer(self, statistics, fallback=None):
        return np.full(statistics.shape[:-1], 4)


class Bent(TableLoss):
    """Claims to be convex."""

    name = "bent"

    def __init__(self, alphabet):
        gap = np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers))
        super().__init__(alphabet, np.sqrt(gap), convex=True)


@pytest.mark.parametrize(("kind", "words"), [(TooLow, "leave low"), (Worse, "beats answer"), (Bent, "not convex")])
def test_the_contract_finds_a_loss_that_breaks_it(kind, words):
    with pytest.raises(GinghamError, match=words):
        check_loss(kind(FIVE))


def test_two_losses_cannot_have_one_name():
    class Other(Absolute):
        name = "absolute"

    with pytest.raises(GinghamError, match="already"):
        register_loss(Other)
    with pytest.raises(GinghamError, match="subclass of CellModel"):
        register_loss(lambda alphabet: Absolute(alphabet))


def test_convex_is_true_of_the_losses_that_claim_it():
    """Jensen: the loss of the mean prediction is at most the mean loss (tables: on the label grid)."""
    y = FIVE.numbers
    for cell in CELLS:
        if isinstance(cell, TableLoss) and cell.convex:
            for row in cell.table:
                slopes = np.diff(row) / np.diff(y)
                assert (np.diff(slopes) >= -1e-12).all()
    assert not ZeroOne(FIVE).convex
    assert not TableLoss(FIVE, 1 - np.eye(5)).convex


def test_quadratic_without_bounds_is_unbounded():
    assert Quadratic().range == np.inf
    assert Quadratic(bounds=(0, 3)).range == 9


def test_ties_go_to_the_lowest_label():
    assert Absolute(FIVE).answer(np.array([[1.0, 0, 0, 0, 1.0]]))[0] == 0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: make_cell("absolut", FIVE), "unknown"),
        (lambda: make_cell("absolute", None), "alphabet"),
        (lambda: make_cell(np.ones((3, 3)), FIVE), "each of the 5 labels"),
        (lambda: make_cell(np.full((5, 5), np.nan), FIVE), "NaN"),
        (lambda: Pinball(FIVE, 1.5), "between 0 and 1"),
        (lambda: Logarithmic(FIVE, 0.0), "between 0 and 1"),
        (lambda: Alphabet.of([], True), "at least one"),
        (lambda: Alphabet.of([1.0, np.nan], True), "NaN"),
    ],
)
def test_bad_requests_get_a_sentence(make, words):
    with pytest.raises(GinghamError, match=words):
        make()


def test_make_cell_takes_names_tables_and_callables():
    assert isinstance(make_cell("zero-one", FIVE), ZeroOne)
    assert make_cell(np.eye(5), FIVE).features == OneHot(5)
    assert make_cell(lambda a: Pinball(a, 0.9), FIVE).quantile == 0.9


def test_lifts_of_three_modes_are_shares_over_the_product_of_all_margins():
    """With two modes a margin over the wrong axis goes unnoticed: the product has both of them anyway."""
    counts = np.arange(1.0, 13.0).reshape(2, 3, 2)
    p = counts / 78
    margins = [p.sum(axis=(1, 2)), p.sum(axis=(0, 2)), p.sum(axis=(0, 1))]
    expected = p / np.einsum("a,b,c->abc", *margins)
    np.testing.assert_allclose(Mass().answer(counts[..., None]), expected)
    envelope = float(Mass().loss(expected, counts[..., None]).sum()) / 78
    assert envelope == pytest.approx(-float((p * np.log(expected)).sum()))  # −I(C_1; C_2; C_3)
    np.testing.assert_allclose(Mass().answer(np.array([[2.0], [6.0]])), [1.0, 1.0])  # one mode alone has none


def test_the_contract_looks_at_all_labels_between_bounds():
    class High(Quadratic):
        """Right for the highest label alone."""

        def answer(self, statistics, fallback=None):
            return np.full(statistics.shape[:-1], self.bounds.high)

    with pytest.raises(GinghamError, match="beats answer"):
        check_loss(High(bounds=(0, 10)))


def test_the_contract_tries_other_distributions():
    class Even(Logarithmic):
        def answer(self, statistics, fallback=None):
            return np.full(statistics.shape, 1 / statistics.shape[-1])

    with pytest.raises(GinghamError, match="beats answer"):
        check_loss(Even(FIVE))


def test_the_contract_is_as_exact_as_rounding_allows():
    class Nearly(Absolute):
        """Answers that lose a little more than the best, on cells with much weight."""

        def loss(self, answer, statistics):
            extra = np.where(np.asarray(answer) == super().answer(statistics), self.slack, 0.0)
            return super().loss(answer, statistics) + extra * statistics.sum(axis=-1)

    cell = Nearly(FIVE)
    cell.slack = 1e-11
    with pytest.raises(GinghamError, match="cannot be saved"):  # the next thing that is looked at
        check_loss(cell)
    cell.slack = 1e-6
    with pytest.raises(GinghamError, match="beats answer"):
        check_loss(cell)


def test_a_loss_keeps_its_name_whichever_comes_first_in_the_alphabet():
    for title in ("Aaa", "Zzz"):
        other = type(title, (Absolute,), {"name": "absolute", "__module__": Absolute.__module__})
        with pytest.raises(GinghamError, match="already"):
            register_loss(other)
        assert LOSSES["absolute"] is Absolute


@pytest.mark.parametrize("quantile", [-0.5, 0.0, 1.0])
def test_quantiles_lie_between_0_and_1(quantile):
    with pytest.raises(GinghamError, match="between 0 and 1"):
        Pinball(FIVE, quantile)


@pytest.mark.parametrize("smoothing", [-0.5, 1.0, 1.5])
def test_smoothing_lies_between_0_and_1(smoothing):
    with pytest.raises(GinghamError, match="between 0 and 1"):
        Logarithmic(FIVE, smoothing)


def test_one_label_is_an_alphabet_within_bounds():
    one = Alphabet.of([3], given=True)
    assert Quadratic(one, bounds=(0, 5)).range == 25
    with pytest.raises(GinghamError, match="do not contain the alphabet"):
        Quadratic(one, bounds=(4, 5))


def test_a_callable_stands_for_itself_and_a_table_for_tables():
    made = lambda alphabet: Absolute(alphabet)  # noqa: E731
    assert loss_kind(made) is made
    assert loss_kind(np.eye(5)) is TableLoss
    assert loss_kind("pinball") is Pinball
    assert loss_kind(partial(Pinball, quantile=0.9)) is Pinball


def test_convexity_is_judged_by_slopes_between_labels_that_lie_unevenly():
    apart = Alphabet.of([0, 1, 4], given=True)
    gap = np.abs(np.subtract.outer(apart.numbers, apart.numbers))
    assert TableLoss(apart, gap, convex=True).convex
    steps = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])  # as if the labels were 0, 1, 2
    with pytest.raises(GinghamError, match="of label 0 is not convex"):
        TableLoss(apart, steps, convex=True)
    gap[0], gap[2] = [0, 0.35, 1.4], [2e12, 3e12, 0]  # the first row is straight but for rounding
    with pytest.raises(GinghamError, match="of label 4 is not convex"):
        TableLoss(apart, gap, convex=True)


def test_a_cell_whose_answers_are_of_its_own_kind_has_no_alternatives_to_beat(monkeypatch):
    monkeypatch.setattr(Quadratic, "answers", None)
    assert _alternatives(Quadratic(bounds=(0, 10)), np.arange(3.0), np.random.default_rng(0)) == []
