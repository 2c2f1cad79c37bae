"""Progressive validation: the formula by hand, exact failure probabilities, coverage, the stream, what is refused."""

from __future__ import annotations

import sys
from functools import partial
from itertools import product
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "papers"))

import coverage_progressive as coverage

from gingham import GinghamError, RefusedCertificate, storage
from gingham.certificates import Progressive
from gingham.certificates.losses import loss_scale, stated_loss
from gingham.certificates.progressive import (
    Plan,
    choose_nu,
    combined_losses,
    combined_variance,
    draws_in_order,
)
from gingham.losses import Pinball, TableLoss


def test_the_bound_by_hand():
    # Three losses of 0 and one of 1, ν = 2, δ = 1/2: 2 − exp{(3 ln 2 + ln 1 − ln 2)/4} = 2 − √2.
    certificate = Progressive(nu=2.0, delta=0.5).add([0.0, 0.0, 1.0, 0.0])
    assert certificate.value == pytest.approx(2 - 2**0.5, rel=1e-12)
    assert certificate.empirical == 0.25
    assert certificate.terms == {"confidence ln 1/δ": pytest.approx(log(2))}


def test_the_bound_in_the_unit_of_the_loss_and_with_candidates():
    stream = Progressive(nu=3.0, delta=0.1, low=1.0, range=4.0, candidates=5)
    certificate = stream.add([1.0, 3.0, 5.0] * 50)
    mean_log = (log(3) + log(2.5) + log(2)) / 3
    assert certificate.value == pytest.approx(1 + 4 * (3 - exp(mean_log - log(5 / 0.1) / 150)), rel=1e-12)
    assert certificate.empirical == pytest.approx(3.0)
    assert sum(certificate.terms.values()) == pytest.approx(log(50))


def test_the_choice_of_nu_by_hand():
    losses = np.array([0.0, 0.0, 0.0, 1.0])
    expected = 0.25 + np.sqrt(3) / 4 * np.sqrt(800 / (2 * log(20)))
    assert choose_nu(losses, 800, 0.05) == pytest.approx(expected)
    assert choose_nu(np.zeros(5), 800, 0.05) == 1.001


def test_references_by_hand():
    # One reference tested on four draws, members on the last two of them: Y = (2/4)·B first, then X − (1 − 2/4)·B.
    reference, members = np.array([1.0, 0.0, 0.5, 1.0]), np.array([0.25, 1.0])
    expected = [0.5, 0.0, 0.25 - 0.25, 1.0 - 0.5]
    np.testing.assert_allclose(combined_losses([reference, members]), expected)
    # Two references: n = 1 on the last draw; 1/3·B₀, then + 1/2·(B₁ − B₀), then + (X − B₁).
    second, last = np.array([0.5, 0.2]), np.array([0.1])
    np.testing.assert_allclose(
        combined_losses([reference[1:], second, last]),
        [0.0, 0.5 / 3 + (0.5 - 0.5) / 2, 1 / 3 + (0.2 - 1) / 2 + (0.1 - 0.2)],
    )
    certificate = Progressive(nu=2.0, delta=0.8).with_references([reference, members])
    mean_log = np.mean([log(2 - y) for y in expected])
    assert certificate.value == pytest.approx(2 * (2 - exp(mean_log - log(1 / 0.8) / 4)), rel=1e-12)
    assert certificate.value < 1
    assert certificate.empirical == pytest.approx(2 * np.mean(expected))
    assert not certificate.anytime
    assert any("each from the population" in a.text for a in certificate.assumptions)
    assert "Tests on 4 observations, 2 by the members themselves, estimate it at" in certificate.explain()
    assert certificate.n_observations == 4
    assert certificate.parameters["references"] == 1
    assert combined_variance([7]) == 7
    assert combined_variance([8, 4, 2]) == pytest.approx(4 * (1 / 8 + 0.2 / 4 + 0.2 / 2))
    assert choose_nu(np.array([0.0, 1.0]), [800, 400], 0.05) == pytest.approx(
        0.25 + 0.5 * np.sqrt(400**2 * (1 / 800 + 0.2 / 400) / (2 * log(20)))
    )


def test_without_references_nothing_changes():
    losses = np.random.default_rng(0).random(50)
    np.testing.assert_array_equal(combined_losses([losses]), losses)
    alone = Progressive(nu=2.0).with_references([losses])
    assert alone.value == pytest.approx(Progressive(nu=2.0).add(losses).value, rel=1e-12)


def test_no_combined_loss_is_above_one():
    rng = np.random.default_rng(1)
    for _ in range(200):
        sizes = sorted(rng.choice(np.arange(1, 40), 4, replace=False), reverse=True)
        tests = [rng.integers(0, 2, size).astype(float) for size in sizes]
        y = combined_losses(tests)
        assert y.max() <= 1 + 1e-12
        assert y.min() >= -1 - 1e-12


@pytest.mark.parametrize("tests", [[[0.5, 0.5], [0.5, 0.5]], [[0.5], [0.5, 0.5]], [[0.5, 0.5], []]])
def test_references_are_tested_on_more_draws_than_the_next(tests):
    with pytest.raises(GinghamError, match="more draws"):
        Progressive(nu=2.0).with_references([np.array(t) for t in tests])


def test_references_need_a_stream_of_their_own_and_end_it():
    stream = Progressive(nu=2.0)
    stream.add([0.5])
    with pytest.raises(GinghamError, match="of their own"):
        stream.with_references([[0.5, 0.5], [0.5]])
    stream = Progressive(nu=2.0)
    stream.with_references([[0.5, 0.5], [0.5]])
    with pytest.raises(GinghamError, match="of their own"):  # or the lowest of many would stand
        stream.with_references([[0.0, 0.0], [0.0]])
    with pytest.raises(GinghamError, match="has ended"):
        stream.add([0.0])
    with pytest.raises(RefusedCertificate, match="No observation"):
        stream.certificate  # noqa: B018


def test_references_take_lists_and_refuse_masks_and_nothing():
    with pytest.raises(GinghamError, match="mask"):
        Progressive(nu=2.0).with_references([np.ma.masked_array([0.1, 0.2, 0.3], [0, 1, 0]), [0.1]])
    with pytest.raises(GinghamError, match="more draws"):
        Progressive(nu=2.0).with_references([])
    with pytest.raises(RefusedCertificate, match="outside the range"):
        Progressive(nu=2.0).with_references([[0.1, float("nan"), 0.3], [0.1]])


def failure_with_references(delta, price, nu, reference_risk, joint, n_before, n_members):
    """The exact probability of a failure, over all worlds.

    ``joint(past)`` gives for each world the probabilities of (X, B) = (0, 0), (0, 1), (1, 0), (1, 1) at the next
    draw of the members, with P(B = 1) always ``reference_risk``: the members are chosen by what happened.
    """
    outcomes = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])
    total = 0.0
    worlds = np.array(list(product(range(4), repeat=n_members)))
    first = np.array(list(product((0, 1), repeat=n_before)))
    for begin in first:
        chance = np.prod(np.where(begin == 1, reference_risk, 1 - reference_risk))
        probability, risk = np.full(len(worlds), chance), np.zeros(len(worlds))
        for t in range(n_members):
            distribution = joint(outcomes[worlds[:, :t]], begin)
            np.testing.assert_allclose(distribution[:, 1] + distribution[:, 3], reference_risk)
            probability *= distribution[np.arange(len(worlds)), worlds[:, t]]
            risk += distribution[:, 2] + distribution[:, 3]
        x, b = outcomes[worlds][:, :, 0], outcomes[worlds][:, :, 1]
        n, many = n_members, n_before + n_members
        before = np.log(nu - n / many * begin).sum()
        logs = before + np.log(nu - (x - n_before / many * b)).sum(axis=1)
        value = many / n * (nu - np.exp((logs - price) / many))
        total += float(probability[value < risk / n - 1e-12].sum())
        check = Progressive(nu=nu, delta=delta).with_references(
            [np.concatenate([begin, b[0]]).astype(float), x[0].astype(float)]
        )
        if price == log(1 / delta):
            assert check.value == pytest.approx(min(1.0, value[0]))
    return total


def independent_members(risk):
    def joint(past, begin):
        distribution = np.outer([1 - risk, risk], [0.5, 0.5]).ravel()
        return np.tile(distribution, (len(past), 1))

    return joint


def spiteful_members(past, begin):
    """Bad members after a lucky time, which fail where the reference does not."""
    lucky = past[:, :, 0].sum(axis=1) + begin.sum() <= (past.shape[1] + len(begin)) / 2
    return np.where(lucky[:, None], [[0.0, 0.5, 0.5, 0.0]], [[0.45, 0.5, 0.05, 0.0]])


def copying_members(past, begin):
    """Members that do what the reference does while it was unlucky, and are noise otherwise."""
    unlucky = begin.mean() >= 0.5
    return np.tile([0.5, 0.0, 0.0, 0.5] if unlucky else [0.05, 0.05, 0.45, 0.45], (len(past), 1))


MEMBERS = {"independent": independent_members(0.6), "spiteful": spiteful_members, "copying": copying_members}


@pytest.mark.parametrize("members", MEMBERS)
@pytest.mark.parametrize("nu", [1.05, 1.5, 4.0])
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_the_exact_failure_probability_with_a_reference_is_at_most_delta(members, nu, delta):
    assert failure_with_references(delta, log(1 / delta), nu, 0.5, MEMBERS[members], 4, 5) <= delta


def test_the_enumeration_with_a_reference_would_find_a_bound_without_its_price():
    found = [failure_with_references(0.2, 0.0, nu, 0.5, m, 4, 5) for m in MEMBERS.values() for nu in (1.5, 4.0)]
    assert max(found) > 0.4


def test_a_reference_makes_the_bound_tighter():
    rng = np.random.default_rng(2)
    hard = rng.random(40_000)
    losses = [np.clip(hard * 0.6 + rng.normal(0, 0.05, len(hard)), 0, 1) for _ in range(2)]
    tests, nu = [losses[0], losses[1][-5_000:]], choose_nu(losses[0][:500], [40_000, 5_000], 0.05)
    with_it = Progressive(nu=nu).with_references(tests).value
    without = Progressive(nu=choose_nu(losses[0][:500], 5_000, 0.05)).add(tests[1]).value
    assert 0.3 < with_it < without
    assert with_it - 0.3 < 0.6 * (without - 0.3)


def worst_failure(delta: float, price: float, nu: float, length: int, choose) -> float:
    """The exact probability that the bound is below the average expected loss at some time, over all 2^T worlds."""
    worlds = np.array(list(product((0, 1), repeat=length)))
    probability, failed = np.ones(len(worlds)), np.zeros(len(worlds), bool)
    risk, logs = np.zeros(len(worlds)), np.zeros(len(worlds))
    for t in range(length):
        expected = choose(worlds[:, :t])
        probability *= np.where(worlds[:, t] == 1, expected, 1 - expected)
        risk += expected
        logs += np.log(nu - worlds[:, t])
        failed |= nu - np.exp((logs - price) / (t + 1)) < risk / (t + 1) - 1e-12
    assert probability.sum() == pytest.approx(1.0)
    return float(probability[failed].sum())


ADVERSARIES = {
    "constant": lambda past: np.full(len(past), 0.7),
    "worse when lucky": lambda past: np.where(past.sum(axis=1) <= 0.5 * past.shape[1], 0.9, 0.2),
    "better when lucky": lambda past: np.where(past.sum(axis=1) <= 0.5 * past.shape[1], 0.3, 0.95),
    "by parity": lambda past: np.where(past.sum(axis=1) % 2 == 0, 0.85, 0.4),
}


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("nu", [1.05, 1.5, 4.0])
@pytest.mark.parametrize("delta", [0.2, 0.05])
def test_the_exact_failure_probability_at_the_worst_time_is_at_most_delta(adversary, nu, delta):
    assert worst_failure(delta, log(1 / delta), nu, 12, ADVERSARIES[adversary]) <= delta


def test_the_enumeration_would_find_a_bound_without_its_price():
    found = [worst_failure(0.2, 0.0, nu, 12, choose) for choose in ADVERSARIES.values() for nu in (1.05, 1.5, 4.0)]
    assert max(found) > 0.5
    halved = [worst_failure(0.2, log(1 / 0.2) / 3, 1.5, 12, choose) for choose in ADVERSARIES.values()]
    assert max(halved) > 0.2


def test_streams_against_adversaries_at_the_worst_time():
    found = coverage.streams(400, 7)
    for case, row in found.items():
        assert row["progressive"]["failures"] <= coverage.allowed(400), case
    for broken in ("broken: no δ", "broken: ν of hindsight"):
        assert max(row[broken]["failures"] for row in found.values()) > coverage.allowed(400), broken


def test_sorted_tables_with_adversarial_members():
    runs = 400 // 6
    found = coverage.tables(runs, 7)
    sound = [row[key]["failures"] for row in found.values() for key in row if not key.startswith("broken")]
    assert sum(sound) <= coverage.allowed(runs * len(sound))
    for broken in ("broken: sorted rows", "broken: seen"):
        assert max(row[broken]["failures"] for row in found.values()) > coverage.allowed(runs), broken


def test_a_stream_is_the_same_however_it_is_cut():
    losses = np.random.default_rng(0).random(300)
    whole = Progressive(nu=2.0).add(losses)
    parts = Progressive(nu=2.0)
    for part in np.array_split(losses, 7):
        certificate = parts.add(part)
    assert certificate.value == pytest.approx(whole.value, rel=1e-12)
    assert certificate.n_observations == 300
    assert certificate.anytime
    counted = Progressive(nu=2.0).add([0.0, 1.0], counts=np.array([7, 3]))
    assert counted.value == Progressive(nu=2.0).add([0.0] * 7 + [1.0] * 3).value


def test_tables_with_references_and_adversarial_members():
    runs = 60
    found = coverage.references(runs, 7)
    sound = [row[key]["failures"] for row in found.values() for key in row if not key.startswith("broken")]
    assert sum(sound) <= coverage.allowed(runs * len(sound))
    assert max(row["broken: drifting draws"]["failures"] for row in found.values()) > coverage.allowed(runs)


def test_a_plan_with_references():
    plan = Plan.of(1000, 0.8, 4, references=3)
    assert plan.references == (200, 400, 600)
    assert plan.pilot == 200
    assert plan.counted == 220
    assert plan.n_tests == (780, 600, 400, 200)
    assert Plan.of(1000, 0.8, 4).n_tests == (200,)
    for wrong in (-1, True, 1.5, "two"):
        with pytest.raises(GinghamError, match="references="):
            Plan.of(1000, 0.8, 4, references=wrong)
    with pytest.raises(GinghamError, match="share a warm-up"):
        Plan.of(10, 0.8, 1, references=3)


def test_nothing_tested_yet_is_refused():
    with pytest.raises(RefusedCertificate, match="No observation"):
        Progressive(nu=2.0).certificate  # noqa: B018


@pytest.mark.parametrize("losses", [[1.1], [-0.1], [0.2, float("nan")]])
def test_losses_outside_their_range_are_an_error_and_not_counted(losses):
    stream = Progressive(nu=2.0)
    with pytest.raises(RefusedCertificate, match="outside the range"):
        stream.add(losses)
    assert stream.n_observations == 0


@pytest.mark.parametrize("nu", [1.0, 0.5, float("nan"), float("inf")])
def test_nu_is_checked(nu):
    with pytest.raises(GinghamError, match="above 1"):
        Progressive(nu=nu)


def test_draws_are_divided_and_not_lines():
    counts = np.array([3, 0, 1, 1000])
    draws = draws_in_order(4, counts, "shuffle", 3)
    assert (np.bincount(draws, minlength=4) == counts).all()
    first = np.bincount(draws[:500], minlength=4)
    assert 0 < first[3] < 1000  # the heavy line stands on both sides
    assert (draws == draws_in_order(4, counts, "shuffle", 3)).all()
    assert (draws_in_order(4, counts, "arrival", 3) == np.repeat([0, 2, 3], [3, 1, 1000])).all()
    with pytest.raises(GinghamError, match="order="):
        draws_in_order(4, counts, "as it stands", 3)


def test_a_plan_tests_every_draw_after_the_warm_up_once():
    plan = Plan.of(103, 0.7, 6)
    assert plan.edges[0] == 72
    assert plan.edges[-1] == 103
    assert plan.sizes.sum() == plan.n_tested == 31
    assert plan.sizes.max() - plan.sizes.min() <= 1
    assert 0 < plan.pilot < 72
    for wrong in ({"warm_up": 0}, {"warm_up": 1.0}, {"warm_up": float("nan")}, {"blocks": 0}, {"blocks": 40}):
        with pytest.raises(GinghamError):
            Plan.of(103, **{"warm_up": 0.7, "blocks": 6, **wrong})


def test_losses_of_single_predictions():
    y, guess = np.array([1, 5, 3]), np.array([2.0, 5.0, 1.5])
    stars = range(1, 6)
    assert stated_loss("absolute", stars).losses(y, guess).tolist() == [1.0, 0.0, 1.5]
    assert stated_loss("quadratic", None, (0, 10)).scaled(y, guess) == pytest.approx([0.01, 0, 0.0225])
    assert stated_loss(partial(Pinball, quantile=0.9), stars).losses(y, guess) == pytest.approx([0.1, 0, 1.35])
    assert stated_loss("zero-one", "abc").losses(np.array(["a", "b"]), np.array(["a", "c"])).tolist() == [0.0, 1.0]
    table = stated_loss([[0, 2], [-1, 0]], (0, 1))
    assert (*loss_scale(table.cell), table.convex) == (-1.0, 3.0, False)
    assert table.scaled(np.array([0, 1, 1]), np.array([1, 0, 1])) == pytest.approx([1.0, 0.0, 1 / 3])
    log_loss = stated_loss("log", (0, 1))
    assert log_loss.losses(np.array([1]), np.array([[0.2, 0.8]])) == pytest.approx([-log(0.8)])
    assert log_loss.cell.range == pytest.approx(log(200))


def test_a_convex_table_is_judged_by_itself():
    stars = np.arange(1, 6)
    squares = np.subtract.outer(stars, stars) ** 2.0
    loss = stated_loss(partial(TableLoss, table=squares, convex=True), stars)
    assert (loss.name, loss.convex, loss.cell.range) == ("table", True, 16.0)
    assert loss.losses(np.array([1, 5, 3]), np.array([1.5, 5.0, 1.0])) == pytest.approx([0.5, 0.0, 4.0])
    assert loss.inside(np.array([0.0, 7.0])).tolist() == [1.0, 5.0]
    with pytest.raises(RefusedCertificate, match=r"prediction 5\.5 in row 0"):
        loss.losses(np.array([5]), np.array([5.5]))
    with pytest.raises(GinghamError, match="label 1 is not convex"):
        stated_loss(partial(TableLoss, table=np.sqrt(np.abs(np.subtract.outer(stars, stars))), convex=True), stars)


@pytest.mark.parametrize("name", ["absolute", "quadratic", "pinball"])
def test_losses_never_exceed_their_range(name):
    loss = stated_loss(partial(Pinball, quantile=0.3) if name == "pinball" else name, None, (-2, 3))
    y, guess = (a.ravel() for a in np.meshgrid(np.linspace(-2, 3, 21), np.linspace(-2, 3, 21)))
    scaled = loss.scaled(y, guess)
    assert scaled.min() >= 0
    assert scaled.max() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "y", "guess", "words"),
    [
        ({"loss": "absolute", "alphabet": (1, 2, 3)}, [1, 4], [1, 1], "not in the alphabet"),
        ({"loss": "absolute", "alphabet": (1, 2, 3)}, [1, 2], [1, 3.5], "prediction 3.5 in row 1"),
        ({"loss": "absolute", "label_bounds": (0, 1)}, [0.5, 1.5], [0, 0], "label 1.5 in row 1"),
        ({"loss": "absolute", "label_bounds": (0, 1)}, [0.5, 1], [0, float("nan")], "row 1 is nan"),
        ({"loss": "zero-one", "alphabet": (0, 1)}, [0, 1], [0, 0.5], "not in the alphabet"),
        ({"loss": "log", "alphabet": (0, 1)}, [0, 1], [[1.0, 0.0], [0.5, 0.5]], "at least"),
        ({"loss": "log", "alphabet": (0, 1)}, [0, 1], [[0.9, 0.9], [0.5, 0.5]], "sum to one"),
    ],
)
def test_what_lies_outside_is_an_error_never_moved_inside(options, y, guess, words):
    loss = stated_loss(options["loss"], options.get("alphabet"), options.get("label_bounds"))
    with pytest.raises(GinghamError, match=words):
        loss.losses(np.array(y), np.array(guess))


def test_the_range_must_be_stated_and_contain_the_alphabet():
    with pytest.raises(RefusedCertificate, match="State the possible labels"):
        stated_loss("absolute")
    with pytest.raises(GinghamError, match="lies outside bounds"):
        stated_loss("absolute", (0, 5), (0, 4))
    with pytest.raises(GinghamError, match="smaller one first"):
        stated_loss("absolute", None, (4, 0))
    with pytest.raises(GinghamError, match="unknown"):
        stated_loss("cubic", (0, 1))
    with pytest.raises(RefusedCertificate, match="needs alphabet"):
        stated_loss("zero-one", None, (0, 1))


def test_a_loss_survives_a_file(tmp_path):
    for loss in (
        stated_loss("absolute", (1, 2)),
        stated_loss("quadratic", None, (0, 3)),
        stated_loss([[0, 1], [2, 0]], "ab"),
    ):
        storage.write(tmp_path / "loss", "StatedLoss", {"loss": loss})
        again = storage.read(tmp_path / "loss")[1]["loss"]
        assert {k: np.asarray(v).tolist() for k, v in again.facts().items()} == {
            k: np.asarray(v).tolist() for k, v in loss.facts().items()
        }
