"""Watching a promise: the alarm, the interval, rows that were counted before, and the state between runs."""

from itertools import product
from math import log

import numpy as np
import pytest

import gingham as gg
from gingham import plots, storage
from gingham.certificates import Watch
from gingham.certificates.watch import BETS, FIRST, Track
from gingham.errors import GinghamError, RefusedCertificate

pytestmark = pytest.mark.filterwarnings("ignore:Ids not seen")


def certificate(n=2000, seed=0, **how):
    y = np.random.default_rng(seed).integers(1, 6, n)
    return gg.certify_predictions(y, np.clip(y + 0.5, 1, 5), alphabet=range(1, 6), **how)


def share(row):
    return FIRST if row == 1 else (1 - FIRST) / ((row - 1) * row)


def wealth_by_hand(losses, promise):
    """The wealth from its definition: every bet, begun at every row, and what has not been bet."""
    n = len(losses)
    bets = [
        share(first) * np.prod([1 + bet / promise * (loss - promise) for loss in losses[first - 1 :]]) / len(BETS)
        for bet in BETS
        for first in range(1, n + 1)
    ]
    return sum(bets) + 1 - sum(share(first) for first in range(1, n + 1))


def test_wealth_by_hand():
    losses, promise = np.random.default_rng(0).beta(2, 4, 40), 0.25
    track = Track("all", promise)
    found = np.concatenate([track.evidence(losses[:1]), track.evidence(losses[1:9]), track.evidence(losses[9:])])
    assert found == pytest.approx([log(wealth_by_hand(losses[:n], promise)) for n in range(1, 41)])
    assert track.log_wealth == pytest.approx(found[-1])
    assert (track.n, track.total) == (40, pytest.approx(losses.sum()))


def test_the_wealth_is_a_supermartingale_whatever_comes_next():
    """Over all sequences of losses 0 and 1 with mean at the promise, the mean of the wealth is 1 after every row."""
    promise, n = 0.3, 7
    for length in range(1, n + 1):
        mean = sum(
            wealth_by_hand(np.array(rows, dtype=float), promise) * promise ** sum(rows) * 0.7 ** (length - sum(rows))
            for rows in product((0, 1), repeat=length)
        )
        assert mean == pytest.approx(1.0)


def test_the_interval_is_where_the_bets_meet_the_price():
    losses = np.random.default_rng(1).beta(2, 4, 300)
    track, price = Track("all", 0.3), log(40)
    track.evidence(losses)
    low, high = track.interval(price)

    def against(level, sign):
        nu = 0.3 * (1 / BETS - 1) if sign > 0 else 0.3 + 0.7 / BETS
        return np.mean(np.exp((np.log(nu + sign * losses[:, None]) - np.log(nu + sign * level)).sum(axis=0)))

    assert against(low, 1) == pytest.approx(40, rel=1e-6)
    assert against(high, -1) == pytest.approx(40, rel=1e-6)
    assert low < losses.mean() < high
    assert Track("all", 0.3).interval(price) == (0.0, 1.0)


def adversary(past, promise, rng):
    """The next loss for each run, with mean at the promise: wild where the wealth is low, timid where it is high."""
    top = np.where(past < 0.0, 1.0, np.minimum(1.0, promise * 1.2))
    return np.where(rng.random(len(past)) < promise / top, top, 0.0)


def test_false_alarms_against_somebody_who_sees_the_wealth():
    """250 runs of 300 rows, watched after every row: at most α of them may ever ring."""
    rng, promise, alpha, runs = np.random.default_rng(2), 0.2, 0.1, 250
    tracks = [Track("all", promise) for _ in range(runs)]
    highest, missed = np.zeros(runs), np.zeros(runs, dtype=bool)
    for _ in range(60):
        block = np.array([adversary(np.full(5, track.log_wealth), promise, rng) for track in tracks])
        highest = np.maximum(highest, [track.evidence(losses).max() for track, losses in zip(tracks, block)])
        missed |= [not low <= promise <= high for low, high in (track.interval(log(20)) for track in tracks)]
    assert (highest >= log(1 / alpha)).mean() <= alpha + 0.04
    assert missed.mean() <= alpha + 0.04


@pytest.mark.parametrize(("excess", "most"), [(1.5, 80), (1.2, 320)])
def test_a_broken_promise_is_noticed(excess, most):
    rng, promise, delays = np.random.default_rng(3), 0.18, []
    for _ in range(60):
        mean = promise * excess
        found = Track("all", promise).evidence(rng.beta(4 * mean, 4 * (1 - mean), 4000))
        over = np.flatnonzero(found >= log(100))
        delays.append(over[0] if len(over) else 4000)
    assert np.median(delays) <= most


def test_a_promise_that_breaks_late_is_noticed():
    """20,000 rows far below the promise would cost whoever bet from the first row on all of the wealth."""
    rng, track = np.random.default_rng(4), Track("all", 0.3)
    assert track.evidence(rng.beta(1, 9, 20_000)).max() < log(100)
    assert (track.evidence(rng.beta(4.5, 5.5, 2000)) >= log(100)).any()


def test_three_verdicts():
    watch = certificate().watch(alpha=0.05)
    assert watch.verdict == "no proof against it"
    assert watch.add(np.zeros(400)).verdict == "holds"
    assert "of these rows it is proved" in watch.explain()
    assert watch.add(np.full(400, 3.0)).verdict == "ended"
    assert 400 < watch.ended <= 800
    assert watch.add(np.zeros(10_000)).verdict == "ended"  # what has ended stays so
    assert "false alarm has at most 5 %" in watch.explain()
    assert watch.last["high"] < 0.3
    assert len(watch.history) <= 400
    assert plots.evidence(watch).get_title().endswith("ended")


def test_each_stratum_is_watched_and_the_price_is_shared():
    y, kind = np.arange(3000) % 5 + 1, np.repeat(["a", "b"], [2000, 1000])
    found = gg.certify_predictions(y, np.clip(y + (kind == "b"), 1, 5), alphabet=range(1, 6), strata=kind)
    watch = found.watch(alpha=0.01)
    # The mix changes: strata keep their promises, and all rows together do not.
    watch.add(np.repeat([0.8, 0.0], [600, 10]), strata=np.repeat(["b", "a"], [600, 10]))
    ended = {row["name"]: row["ended_after"] for row in watch.rows()}
    assert ended["a"] is None
    assert ended["b"] is None
    assert ended["all rows"] is not None
    assert watch.tracks[1].n == 10
    alone = found.watch(alpha=0.01)
    alone.add(np.full(60, 4.0), strata=np.full(60, "a"))
    assert alone.tracks[1].ended > certificate_delay(alone.tracks[1].promise, log(100))
    with pytest.raises(GinghamError, match="give strata="):
        found.watch().update(np.arange(4).reshape(2, 2), [1, 2], predictions=[1, 2])


def certificate_delay(promise, price):
    return int(np.argmax(Track("one", promise).evidence(np.ones(60)) >= price))


def model_and_rows(**how):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (1500, 2))
    y = np.where(X.sum(axis=1) % 2 == 0, 5, 1)
    grid = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=0)
    found = gg.certify_progressive(grid, X, y, random_state=1, **how)
    later = np.column_stack([rng.integers(0, 40, 400), rng.integers(40, 4000, 400)])
    return X, y, found, later, np.where(later.sum(axis=1) % 2 == 0, 5, 1)


def test_rows_are_evidence_once(tmp_path):
    X, y, found, later, labels = model_and_rows()
    watch = found.watch(alpha=0.05)
    watch.update(later[:100], labels[:100])
    before = watch.to_dict()
    for rows, names, said in (
        (later[40:80], labels[40:80], "counted before"),
        (later[90:200], labels[90:200], r"10 of the 110 rows \(row 0"),
        (X[:200], y[:200], "are of the fit"),
        (np.tile(later[100:200], (2, 1)), np.tile(labels[100:200], 2), "Every row occurs 2 times"),
    ):
        with pytest.raises(RefusedCertificate, match=said):
            watch.update(rows, names)
    assert watch.to_dict() == before
    watch.save(tmp_path / "w.json")
    again = Watch.load(tmp_path / "w.json", found.model)
    with pytest.raises(RefusedCertificate, match="counted before"):
        again.update(later[40:80], labels[40:80])
    assert again.update(later[100:], labels[100:]).to_dict() == watch.update(later[100:], labels[100:]).to_dict()


def test_the_interval_of_the_last_rows_shares_alpha_with_all_calls():
    """Call k has α/(k (k + 1)), half of it on either side; all calls together have α."""
    rng, watch = np.random.default_rng(5), certificate().watch(alpha=0.02)
    for k in (1, 2, 3):
        losses, alone = rng.choice([0.0, 1.0, 3.0], 60), Track("alone", watch.tracks[0].promise)
        alone.evidence(losses / 4)
        low, high = alone.interval(log(2 * k * (k + 1) / 0.02))
        last = watch.add(losses).last
        assert (last["low"], last["high"]) == pytest.approx((4 * low, 4 * high))
        assert last["loss"] == pytest.approx(losses.mean())


def test_rows_are_known_again_by_how_their_ids_are_written():
    """Finished predictions: numbers in one table may be texts in the next."""
    rng, watch = np.random.default_rng(4), certificate().watch()
    X, y = rng.integers(0, 90, (200, 2)), rng.integers(1, 6, 200)
    watch.update(X, y, predictions=y)
    for again in (X.astype(str), X.astype(float), X.astype(object)):
        with pytest.raises(RefusedCertificate, match=r"200 of the 200 rows .* were counted before"):
            watch.update(again, y, predictions=y)
    assert watch.update(X.astype(str) + np.array("x"), y, predictions=y).n == 400


def test_strata_by_items_are_judged_by_the_model():
    _, _, found, later, labels = model_and_rows(strata="known/new")
    watch = found.watch()
    watch.update(later[:50], labels[:50])
    assert {row["name"]: row["rows"] for row in watch.rows() if row["rows"]}.get("known") is None
    with pytest.raises(GinghamError, match="leave strata= out"):
        watch.update(later[50:], labels[50:], strata=["known"] * len(later[50:]))


def test_a_state_goes_on_with_the_certified_model_only(tmp_path):
    _, _, found, later, labels = model_and_rows()
    _, _, other, _, _ = model_and_rows(blocks=3)
    found.watch().update(later, labels).save(tmp_path / "w.json")
    assert Watch.load(tmp_path / "w.json", found.model).n == 400
    with pytest.raises(RefusedCertificate, match="not the one that was certified"):
        Watch.load(tmp_path / "w.json", other.model)


def test_what_cannot_be_watched():
    X, y, found, later, labels = model_and_rows()
    grid = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=0).fit(X, y)
    with pytest.raises(RefusedCertificate, match="no single predictions"):
        gg.certify(grid, X, y).watch()
    with pytest.raises(RefusedCertificate, match="randomised"):
        gg.certify(grid, later % 45, labels, bound="holdout").watch(grid).update(later, labels)
    with pytest.raises(RefusedCertificate, match="not the one that was certified"):
        found.watch(grid)
    other = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=1).fit(X, y[::-1])
    with pytest.raises(RefusedCertificate, match="not the one that was certified"):
        gg.certify(grid, later % 45, labels, bound="holdout", predictor="median").watch(other)
    with pytest.raises(RefusedCertificate, match="nothing can break it"):
        gg.certify_predictions([1] * 9, [5] * 9, alphabet=range(1, 6), sample_weight=9).watch()
    with pytest.raises(RefusedCertificate, match="does not store"):
        certificate(groups=np.arange(2000) // 2).watch()
    with pytest.raises(GinghamError, match="give predictions="):
        certificate().watch().update(later, labels)
    with pytest.raises(GinghamError, match="strictly between 0 and 1"):
        certificate().watch(alpha=0.0)
    some = later % [40, 80]
    own = gg.certify(grid, some % 45, labels, bound="holdout", predictor="median").watch(grid)
    assert own.update(np.add(later, [80, 0]), labels).n == 400


def test_a_state_that_is_none(tmp_path):
    watch, path = certificate().watch(), tmp_path / "w.json"
    watch.save(path)
    good = path.read_bytes()
    kind, state = storage.read(path)
    for broken in (b"{", good[:-50], good[:200] + b"x" + good[201:]):
        path.write_bytes(broken)
        with pytest.raises(GinghamError, match="no state of a watch"):
            Watch.load(path)
    for name, others in (("model", {}), (kind, {"more": 1}), (kind, {"chain": None})):
        kept = {key: value for key, value in state.items() if others.get(key, 0) is not None}
        storage.write(path, name, {**kept, **{key: value for key, value in others.items() if value is not None}})
        with pytest.raises(GinghamError, match="no state of a watch"):
            Watch.load(path)
    with pytest.raises(GinghamError, match="no model file"):
        Watch.load(tmp_path / "nowhere")
