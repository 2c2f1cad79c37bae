"""Groups over time: identities last, changes are told where they happen, pictures and pages show them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import gingham as gg
from gingham.report import timeline as page
from gingham.summary.timeline import alluvial, timeline

N, M = 40, 30


def period(member_of, seed, names=None):
    """A fit to labels of items × columns of one period; columns are new in each."""
    rng = np.random.default_rng(seed)
    i, j = rng.integers(0, N, 5000), rng.integers(0, M, 5000)
    likes = member_of[i] == j % 2
    y = np.where(rng.random(5000) < 0.9, likes, ~likes).astype(int)
    ids = np.arange(N) if names is None else names
    frame = pd.DataFrame({"item": ids[i], "column": 1000 * seed + j})
    return gg.CoClusteringClassifier(n_clusters=2, random_state=seed).fit(frame, y)


@pytest.fixture(scope="module")
def line():
    before = np.arange(N) % 2
    after = before.copy()
    after[:2] = 1 - after[:2]
    return timeline({"2001": period(before, 1), "2002": period(before, 2), "2003": period(after, 3)})


def test_groups_keep_their_numbers(line):
    frame = line.to_frame("pandas")
    items = frame[frame["side"] == "item"].pivot(index="item", columns="period", values="group")
    assert (items["2001"] == items["2002"]).all()
    changed = items["2002"] != items["2003"]
    assert sorted(items.index[changed].astype(int)) == [0, 1]


def test_planted_movers_are_proven_and_nobody_else(line):
    moved = [(at, one.items[0]) for at, one in line.moved("item") if one.verdict == "proven"]
    assert sorted(moved) == [("2003", "0"), ("2003", "1")]


def votes(sides, seed):
    """A fit to votes of one session, by how often each member agrees with the motions of the first group."""
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((N, 200)) < 0.9)
    agrees = rng.random(len(i)) < np.where(j % 2 == 0, sides[i], 1 - sides[i])
    frame = pd.DataFrame({"item": i, "column": 1000 * seed + j})
    return gg.CoClusteringClassifier(n_clusters=(2, 4), random_state=0).fit(frame, agrees.astype(int))


def sides_of(moderates, share):
    sides = np.where(np.arange(N) % 2 == 0, 0.9, 0.1)
    sides[moderates] = share
    return sides


def test_moderates_whose_group_is_chance_are_not_proven_to_move():
    moderates = [0, 1, 2, 3, 4, 5]
    line = timeline({str(seed): votes(sides_of(moderates, 0.5), seed) for seed in range(1, 5)})
    assert any(one.kind == "moved" for _, one in line.moved("item"))  # they are shown in other groups
    assert all(period.changes.proven == () for period in line.periods[1:])


def test_the_periods_before_prove_the_move_of_a_member_who_had_come_near_the_middle():
    steps = [sides_of([0], share) for share in (0.85, 0.75, 0.56, 0.1)]
    line = timeline({str(seed): votes(sides, seed) for seed, sides in enumerate(steps, 1)})
    proven = [(at, one.items[0]) for at, one in line.moved("item") if one.verdict == "proven"]
    assert proven == [("4", "0")]
    last_two = timeline({str(seed): votes(sides, seed) for seed, sides in list(enumerate(steps, 1))[2:]})
    assert all(one.verdict != "proven" for _, one in last_two.moved("item"))  # the last period before says too little


def test_the_side_whose_items_stay_is_shown(line):
    assert line.side_names[line.side()] == "item"
    with pytest.raises(gg.GinghamError, match="There is no side 'colour'"):
        line.side("colour")


def test_bands_hold_every_item_that_two_periods_share(line):
    boxes, flows = alluvial(line)
    for column in (0, 1):
        assert sum(flow.size for flow in flows if flow.column == column) == N
    assert sum(flow.size for flow in flows if flow.column == 1 and not flow.stays) == 2
    for column in (0, 1, 2):
        own = sorted((box.low, box.high) for box in boxes if box.column == column)
        assert all(a[1] <= b[0] for a, b in pairwise(own))
        assert sum(box.size for box in boxes if box.column == column) == N


def test_the_page_and_the_picture_show_it(line, tmp_path):
    page.write(line, tmp_path / "t.html", title="<Members>")
    text = (tmp_path / "t.html").read_text()
    assert "&lt;Members&gt;" in text
    assert "<script" not in text
    assert text.count("proven</td>") == 2
    ax = gg.plots.alluvial(line, colours=("#123456", "#654321"))
    assert len(ax.patches) == 6  # a box per group and period
    said = {text.get_text() for text in ax.texts}
    assert {"0", "1"} & said  # proven movers are named
    assert ax.patches[0].get_facecolor()[:3] in {
        (0x12 / 255, 0x34 / 255, 0x56 / 255),
        (0x65 / 255, 0x43 / 255, 0x21 / 255),
    }


def test_names_and_order_of_items_do_not_matter():
    """With other ids, in another order, the same items stand together and the same ones move."""
    rng = np.random.default_rng(0)
    order, before = rng.permutation(N), np.arange(N) % 2
    names = np.array([f"x{place:02d}" for place in order])
    after = np.where(np.arange(N) < 2, 1 - before, before)
    line = timeline({"a": period(before, 1, names), "b": period(after, 3, names)})
    moved = {one.items[0] for _, one in line.moved("item") if one.verdict == "proven"}
    assert moved == {names[0], names[1]}


def test_one_period_is_not_a_timeline(line):
    with pytest.raises(gg.GinghamError, match="two periods"):
        timeline({"2001": period(np.arange(N) % 2, 1)})
