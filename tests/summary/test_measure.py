"""Held-out rows, simple rules on them, and losses side by side."""

from __future__ import annotations

import numpy as np
import pytest

from gingham.arrays import Floats, Ints
from gingham.summary.measure import SHRINKAGES, baselines, errors_of, folds_of, in_unit
from gingham.summary.values import MODEL, Relation

LABELS, NAMES = 3, ("user", "film")


@pytest.mark.parametrize("n_rows", [2, 3, 7, 100, 20_000])
def test_few_rows_are_all_held_out_in_turn(n_rows: int) -> None:
    folds = folds_of(n_rows, 3)
    assert len(folds) == min(5, n_rows)
    assert (np.sum(folds, axis=0) == 1).all()
    assert all(0 < held.sum() < n_rows for held in folds)


def test_a_tenth_of_many_rows_is_held_out() -> None:
    (held,) = folds_of(20_010, 0)
    assert held.sum() == 2001
    assert not np.array_equal(held, folds_of(20_010, 1)[0])
    assert np.array_equal(held, folds_of(20_010, 0)[0])


def test_a_share_that_is_asked_for_is_held_out_once() -> None:
    (held,) = folds_of(100, 0, 0.3)
    assert held.sum() == 30
    assert folds_of(100, 0, 0.0) == folds_of(1, 0) == []


def numbers(noise: float, per_item: int, seed: int = 0) -> tuple[list[Ints], tuple[int, int], Floats]:
    """Two sides with effects of standard deviation 1."""
    rng = np.random.default_rng(seed)
    shape = (60, 50)
    codes = [rng.integers(0, n, per_item * 55) for n in shape]
    y = sum(rng.normal(size=n)[code] for n, code in zip(shape, codes)) + noise * rng.normal(size=len(codes[0]))
    return codes, shape, np.asarray(y)


def rows_of(codes, y, weights=None, labels="", both_ways=False) -> Relation:
    kind = "labels" if labels else "difference"
    return Relation((0, 1), tuple(codes), kind, y, weights, labels=tuple(labels), both_ways=both_ways)


def squares(codes: list[Ints], shape: tuple[int, int], y: Floats) -> dict[str, float]:
    seen = ~folds_of(len(y), 0)[0]
    said = baselines(rows_of(codes, y), shape, seen, NAMES)
    return {name: float(np.mean((y[~seen] - guess) ** 2)) for name, guess in said.items()}


def test_averages_of_both_sides_are_the_best_simple_rule_of_two_effects() -> None:
    found = squares(*numbers(0.5, 40))
    assert list(found) == ["one constant", "user averages", "film averages", "both averages"]
    assert found["both averages"] < 0.45 < 0.9 < found["user averages"] < found["one constant"]


def test_the_shrinkage_is_chosen_on_the_training_rows() -> None:
    """No single shrinkage does as well on clean and on noisy labels as the one that is chosen for each."""
    ridge = {}
    for noise in (0.1, 20.0):
        codes, shape, y = numbers(noise, 8)
        seen = ~folds_of(len(y), 0)[0]
        design = np.zeros((len(y), sum(shape)))
        design[np.arange(len(y)), codes[0]] = design[np.arange(len(y)), shape[0] + codes[1]] = 1.0
        base = y[seen].mean()
        ridge[noise] = {}
        for by in SHRINKAGES:
            A = design[seen].T @ design[seen] + by * np.eye(sum(shape))
            effects = np.linalg.solve(A, design[seen].T @ (y[seen] - base))
            said = np.clip(base + design[~seen] @ effects, y[seen].min(), y[seen].max())
            ridge[noise][by] = float(np.mean((y[~seen] - said) ** 2))
        assert squares(codes, shape, y)["both averages"] <= 1.03 * min(ridge[noise].values())
    assert ridge[0.1][50.0] > 1.2 * ridge[0.1][1.0]
    assert ridge[20.0][1.0] > 1.05 * ridge[20.0][50.0]


def test_predictions_stay_within_the_labels_that_were_seen() -> None:
    codes, shape, y = numbers(0.5, 20)
    y = np.clip(np.round(y + 3), 1, 5)
    seen = ~folds_of(len(y), 0)[0]
    for guess in baselines(rows_of(codes, y), shape, seen, NAMES).values():
        assert guess.min() >= 1
        assert guess.max() <= 5


def test_the_constant_is_the_best_one_for_the_loss() -> None:
    y = np.array([0.0, 0.0, 1.0, 10.0, 5.0])
    codes, seen = [np.zeros(5, dtype=int)] * 2, np.array([True, True, True, True, False])
    for loss, best in (("absolute", 0.0), ("quadratic", 2.75)):
        assert baselines(rows_of(codes, y), (1, 1), seen, NAMES, loss)["one constant"] == [best]


def test_a_weight_of_two_is_the_row_twice() -> None:
    codes, shape, y = numbers(0.5, 5)
    weights = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    seen = ~folds_of(len(y), 0)[0]
    twice = np.repeat(np.arange(len(y)), weights.astype(int))
    for loss in ("absolute", "quadratic"):
        one = baselines(rows_of(codes, y, weights), shape, seen, NAMES, loss)["one constant"]
        other = baselines(rows_of(codes, y).take(twice), shape, seen[twice], NAMES, loss)["one constant"]
        assert one[0] == pytest.approx(other[0])


def named(seed: int = 0) -> tuple[list[Ints], tuple[int, int], Ints]:
    rng = np.random.default_rng(seed)
    shape = (40, 30)
    codes = [rng.integers(0, n, 4000) for n in shape]
    score = sum(2 * rng.normal(size=(n, LABELS))[code] for n, code in zip(shape, codes))
    return codes, shape, (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def test_shares_of_both_sides_are_the_best_simple_rule_for_names() -> None:
    codes, shape, y = named()
    seen = ~folds_of(len(y), 0)[0]
    said = baselines(rows_of(codes, y, labels="abc"), shape, seen, NAMES, "log")
    assert all(np.allclose(distribution.sum(axis=1), 1) and (distribution > 0).all() for distribution in said.values())
    nats = errors_of(y[~seen], None, said, "log", "")
    assert list(nats.scores) == [
        "label shares", "label shares of each user", "label shares of each film", "label shares by user and film",
    ]  # fmt: skip
    shares, _, of_films, of_both = nats.scores.values()
    assert of_both < of_films < shares
    wrong = errors_of(
        y[~seen], None, baselines(rows_of(codes, y, labels="abc"), shape, seen, NAMES, "zero-one"), "zero-one", ""
    )
    commonest = wrong.scores["the commonest label"]
    assert commonest == pytest.approx(np.mean(y[~seen] != np.bincount(y[seen]).argmax()))
    assert nats.others["share of wrong labels"]["label shares"] == commonest


def test_a_node_has_one_average_at_both_ends() -> None:
    rng = np.random.default_rng(0)
    effect = rng.normal(size=30)
    ends = [rng.integers(0, 30, 2000) for _ in range(2)]
    y = effect[ends[0]] + effect[ends[1]]
    seen = ~folds_of(len(y), 0)[0]
    said = baselines(rows_of(ends, y, both_ways=True), (30, 30), seen, ("node", "node"))
    assert list(said) == ["one constant", "both averages"]
    assert np.mean((y[~seen] - said["both averages"]) ** 2) < 0.05


def test_errors_are_in_the_unit_of_the_loss_and_the_others_beside() -> None:
    y, said = np.array([1.0, 2.0, 3.0]), {MODEL: np.array([1.0, 2.0, 5.0]), "one constant": np.full(3, 2.0)}
    weights = np.array([1.0, 1.0, 2.0])
    found = errors_of(y, weights, said, "quadratic", "all rows, in turn")
    assert (found.unit, found.n_held, found.how) == ("root mean square error", 4.0, "all rows, in turn")
    assert found.model == pytest.approx(np.sqrt(2))
    assert found.best_baseline[1] == pytest.approx(np.sqrt(0.75))
    assert found.useful is False
    assert found.others == {"mean absolute error": {MODEL: 1.0, "one constant": 0.75}}
    assert in_unit(2.0, "quadratic") == found.model
    assert in_unit(2.0, "absolute") == 2.0
    other = errors_of(y, None, said, "pinball", "", lambda labels, guess: np.full(len(labels), 7.0))
    assert (other.unit, other.model) == ("pinball loss", 7.0)
    assert len(other.others) == 2
    counts = errors_of(np.zeros(2), None, {MODEL: np.log([0.5, 0.25])}, "mass", "")
    assert counts.unit == "nats per count"
    assert counts.model == pytest.approx(1.5 * np.log(2))
    assert not counts.others
