"""Every attack on a certificate ends in a sentence, or what it gets is true.

A thousand samples of each are in benchmarks/robustness/attacks.py; here a few, and that they are attacks at all.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "robustness"))

import attacks

FEW = 6


@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.title)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_no_attack_succeeds(attack):
    found = attacks.tried(attack, 0, FEW)
    if attack.kind == "refused":
        assert found["verdict"] == "refused"
        assert found["sentence"].endswith(".")
    elif attack.kind == "shown":
        assert found["verdict"] == "true", found
    else:  # two of six would happen in 3 % of the runs of a certificate that fails as often as it may
        assert found["failures"] <= 1


def test_without_the_rule_they_succeed():
    """Splits, folds and rows set aside that divide rows, a shuffle that everybody knows, another loss in its place."""
    told = {
        'bound="split" with counts as weights': 3,
        "a cross-fitted committee with counts as weights": FEW,
        "the command line's rows set aside, with --weight": 3,
        "rows arranged against a shuffle that everybody knows, betting": FEW,
        "a convex table of losses of one's own": FEW,
    }
    for attack in attacks.ATTACKS:
        if attack.title in told:
            assert attacks.tried(attack, 0, FEW)["without the rule"]["failures"] >= told[attack.title], attack.title


def test_an_attack_that_gets_through_is_reported():
    through = attacks.Attack("other doors", "nothing stops it", "refused", lambda: 1)
    assert attacks.tried(through, 0, 1)["verdict"] == "SUCCEEDED"
    lucky = attacks.Attack("other doors", "always", "simulated", lambda rng: attacks.Outcome(True))
    assert attacks.tried(lucky, 0, 20)["verdict"] == "FALSE"
    assert not attacks.summary({"other doors": {"always": attacks.tried(lucky, 0, 20)}})["all refused or true"]
