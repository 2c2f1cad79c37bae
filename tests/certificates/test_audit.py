"""An audit of anybody's predictions: losses, differences, strata and change, all together."""

import numpy as np
import pytest

import gingham as gg
from gingham.certificates import audit, audit_rankings, hot_or_cold
from gingham.certificates.bounds import LossDistribution, log_wealth
from gingham.errors import GinghamError


def test_shares_by_hand():
    """Two models, two divisions: a third of δ over 2 · 2 bounds of levels, one pair with two sides, 2 · 4 of time."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    said = {"a": np.where(rng.random(400) < 0.9, y, 1 - y), "b": np.where(rng.random(400) < 0.6, y, 1 - y)}
    strata = {"kind": np.arange(400) % 3, "half": np.arange(400) % 2}
    found = audit(y, said, loss="zero-one", alphabet=[0, 1], strata=strata, ordered=True, delta=0.06)
    losses = {name: (guess != y).astype(float) for name, guess in said.items()}
    for name in "ab":
        alone = gg.certify_predictions(y, said[name], loss="zero-one", alphabet=[0, 1], strata=strata["half"],
                                       delta=0.02 / 4)  # fmt: skip
        assert [p.value for p in found.breakdowns["half"][name].strata.parts] == [p.value for p in alone.strata.parts]
    one = found.differences[0]
    gap = losses["a"] - losses["b"]
    assert one.observed == pytest.approx(gap.mean())
    assert one.high == pytest.approx(log_wealth(LossDistribution.of(gap, np.ones(400)), 0.0, 400, 0.01).value)
    assert one.low == pytest.approx(-log_wealth(LossDistribution.of(-gap, np.ones(400)), 0.0, 400, 0.01).value)
    change = found.changes[0]
    sides = [losses["a"][:200], losses["a"][200:]]
    ends = [
        (1 - log_wealth(LossDistribution.of(1 - x, np.ones(200)), 0.0, 200, 0.02 / 8).value,
         log_wealth(LossDistribution.of(x, np.ones(200)), 0.0, 200, 0.02 / 8).value)
        for x in sides
    ]  # fmt: skip
    assert (change.low, change.high) == pytest.approx((ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]))
    assert found.winner == "a"
    assert "a is better" in found.explain()
    assert found.to_dict()["winner"] == "a"


def test_groups_are_the_unit_everywhere():
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(60), 20)
    y = rng.integers(1, 6, 1200)
    worse = np.clip(y + 2.0 * (user % 2), 1, 5)
    found = audit(y, {"a": y.astype(float), "b": worse}, alphabet=range(1, 6), groups=user)
    assert found.models["a"].n_observations == 60
    assert found.winner == "a"
    assert found.changes == ()


def test_nothing_is_said_where_nothing_is_proved():
    rng = np.random.default_rng(2)
    y = rng.integers(1, 6, 300)
    said = {name: np.clip(y + rng.normal(0, 1, 300), 1, 5) for name in "abc"}
    found = audit(y, said, alphabet=range(1, 6), ordered=True)
    assert found.winner is None
    assert len(found.differences) == 3
    assert {one.verdict for one in found.changes} == {"no change is proved"}
    assert audit(y, {"a": said["a"]}, alphabet=range(1, 6)).winner is None
    with pytest.raises(GinghamError, match="no predictions"):
        audit(y, {}, alphabet=range(1, 6))


def test_rankings():
    hidden = np.array([(user, user % 2) for user in range(300)])
    good = {user: [user % 2, 5, 6] for user in range(300)}
    poor = {user: [7, 8, user % 2 if user % 5 == 0 else 9] for user in range(300)}
    found = audit_rankings(hidden, {"good": good, "poor": poor}, at=3)
    assert found.winner == "good"
    assert found.models["good"].delta == 0.0125
    assert found.differences[0].low < found.differences[0].observed < found.differences[0].high < 0


def test_hot_ids_hold_half_of_the_rows():
    ids = np.repeat(["a", "b", "c", "d"], [5, 3, 1, 1])
    assert hot_or_cold(ids).tolist() == ["hot"] * 5 + ["cold"] * 5
    assert hot_or_cold(np.repeat(["a", "b"], [9, 1])).tolist() == ["hot"] * 9 + ["cold"]


def test_all_statements_hold_together():
    """500 samples of two models that are equally good, in a stratum each, and that do not change."""
    rng, failures, n = np.random.default_rng(3), 0, 80
    for _ in range(500):
        kind, y = rng.integers(0, 2, n), np.zeros(n, dtype=int)
        rates = np.array([[0.1, 0.5], [0.5, 0.1]])
        said = {name: (rng.random(n) < rates[row, kind]).astype(int) for row, name in enumerate("ab")}
        found = audit(y, said, loss="zero-one", alphabet=[0, 1], strata={"kind": kind}, ordered=True, delta=0.3)
        wrong = [one.value < 0.3 for one in found.models.values()]
        wrong += [
            part.value < rates[row, int(part.name)]
            for row, one in enumerate(found.breakdowns["kind"].values()) for part in one.strata.parts
        ]  # fmt: skip
        wrong += [not one.low <= 0 <= one.high for one in (*found.differences, *found.changes)]
        failures += any(wrong)
    assert failures <= 180
