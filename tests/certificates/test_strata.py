"""Strata: each part of the rows has a guarantee of its own, and any mix of them follows."""

import json
from math import exp, log

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham import verify
from gingham.certificates.progressive import Progressive, choose_nu
from gingham.certificates.strata import all_known_or_new, as_written, known_or_new, set_aside, texts_of, which_known
from gingham.data import Mode
from gingham.errors import GinghamError, RefusedCertificate


def parity(n, seed=0, items=60):
    X = np.random.default_rng(seed).integers(0, items, (n, 2))
    return X, np.where(X.sum(axis=1) % 2 == 0, 5, 1)


GRID = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=0)


@pytest.mark.parametrize("method", ["log-wealth", "betting"])
def test_strata_are_the_certificates_of_their_rows(method):
    """Three strata and all rows share δ: each value is that of its own rows with δ/4."""
    rng = np.random.default_rng(0)
    y, p, kind = rng.integers(1, 6, 900), rng.integers(1, 6, 900), np.repeat(["a", "b", "c"], [100, 300, 500])
    how = {"alphabet": range(1, 6), "method": method, "random_state": 3}
    found = gg.certify_predictions(y, p, strata=kind, delta=0.04, **how)
    assert found.value == pytest.approx(gg.certify_predictions(y, p, delta=0.01, **how).value, abs=1e-9)
    for name in "abc":
        mine = kind == name
        alone = gg.certify_predictions(y[mine], p[mine], delta=0.01, **how)
        assert found.strata[name].value == pytest.approx(alone.value, abs=1e-9)
        assert found.strata[name].empirical == alone.empirical
        assert found.strata[name].n_observations == mine.sum()
    assert found.delta == 0.04
    assert found.terms["union over strata"] == pytest.approx(log(4))


def test_groups_count_once_within_each_stratum():
    rng = np.random.default_rng(1)
    y, p, user = rng.integers(0, 2, 600), rng.integers(0, 2, 600), np.repeat(np.arange(60), 10)
    kind = np.where(rng.random(600) < 0.5, "a", "b")
    found = gg.certify_predictions(y, p, loss="zero-one", alphabet=[0, 1], strata=kind, groups=user)
    for name in "ab":
        mine = kind == name
        means = [np.mean(y[mine & (user == u)] != p[mine & (user == u)]) for u in np.unique(user[mine])]
        assert found.strata[name].empirical == pytest.approx(np.mean(means))
        assert found.strata[name].n_observations == len(means)


def test_a_mix_is_the_sum_of_its_strata():
    rng = np.random.default_rng(2)
    y, p, kind = rng.integers(1, 6, 600), rng.integers(1, 6, 600), np.repeat([0, 1], 300)
    found = gg.certify_predictions(y, p, alphabet=range(1, 6), strata=kind)
    values = {part.name: part.value for part in found.strata.parts}
    rows = [0, 0, 0, 1, 2]  # the last was never tested: at most 4
    mixed = found.for_mix(rows)
    assert mixed.value == pytest.approx(0.6 * values["0"] + 0.2 * values["1"] + 0.2 * 4)
    assert mixed.value == pytest.approx(found.for_mix({"0": 0.6, "1": 0.2, "2": 0.2}).value)
    assert "60 % '0'" in mixed.explain()
    assert mixed.delta == found.delta
    with pytest.raises(GinghamError, match="does not store"):
        mixed.save("mixed.json")
    with pytest.raises(GinghamError, match="sum to 1"):
        found.for_mix({"0": 0.6})
    with pytest.raises(RefusedCertificate, match="no strata"):
        gg.certify_predictions(y, p, alphabet=range(1, 6)).for_mix(rows)


def test_strata_are_named_for_every_row():
    y = np.arange(20) % 5 + 1
    for strata, said in (([1] * 19, "shape"), ([None, *[1] * 19], "missing in row 0"), ([np.nan] * 20, "missing")):
        with pytest.raises(GinghamError, match=said):
            gg.certify_predictions(y, y, alphabet=range(1, 6), strata=strata)
    with pytest.raises(RefusedCertificate, match="at most 1,000"):
        gg.certify_predictions(np.arange(2000) % 5 + 1, np.ones(2000), alphabet=range(1, 6), strata=np.arange(2000))


def test_by_hand_members_that_meet_a_stratum_unequally():
    """Two members predict half and half; the stratum has one test of the first and three of the second."""
    stream = Progressive(nu=3.0, delta=0.1, shares=2)
    one = stream.of_blocks([np.array([0.5]), np.array([0.0, 0.3, 0.6])], np.array([0.5, 0.5]))
    weighted = [2 * 0.5, 0.0, 2 / 3 * 0.3, 2 / 3 * 0.6]  # share · n/n_b = .5 · 4/1 and .5 · 4/3
    bound = 3.0 - exp((sum(log(3.0 - x) for x in weighted) - log(2 / 0.1)) / 4)
    assert one.value == pytest.approx(min(bound, 1.0))
    assert one.empirical == pytest.approx((0.5 + 0.3) / 2)  # the mean of the members' means
    # A member that nobody tested may lose everything: half of the predictions.
    with pytest.raises(GinghamError, match="one of its own"):
        stream.of_blocks([np.ones(9)], np.ones(1))
    with pytest.raises(RefusedCertificate, match="No observation of the stratum"):
        Progressive(nu=3.0).of_blocks([np.zeros(0)], np.ones(1))
    stream = Progressive(nu=3.0, delta=0.1, shares=2)
    alone = stream.of_blocks([np.zeros(400), np.zeros(0)], np.array([0.5, 0.5]))
    assert alone.value == pytest.approx(0.5 + 3.0 - exp((400 * log(3.0) - log(20)) / 400), abs=1e-12)


@pytest.mark.parametrize("order", ["shuffle", "arrival"])
def test_members_never_learn_from_items_that_stand_for_new_ones(order):
    X, y = parity(1500)
    X[700:, 0] += np.where(np.arange(800) % 10 == 0, 60, 0)  # some users come late
    learned = []

    def fit(model, rows, labels, counts):
        learned.append(rows)
        return model.fit(rows, labels)

    found = gg.certify_progressive(GRID, X, y, strata="known/new", order=order, random_state=5, fit=fit)
    last = np.concatenate(learned)
    names = found.strata.judge(X)
    for column, title in enumerate(("row", "column")):
        new = [title in name for name in names]
        assert not np.isin(X[new][:, column], last[:, column]).any()
        assert np.isin(X[~np.array(new)][:, column], last[:, column]).all()
    assert {part.name for part in found.strata.parts} == set(all_known_or_new(["row", "column"]))
    assert found.for_mix([(10**6, X[names == "known"][0, 1])]).value == found.strata["new row"].value
    texts = [np.array([str(v) for v in column]) for column in X.T]
    aside = set_aside(texts, 5)
    assert [len(ids) for ids in aside] == [round(0.05 * len(np.unique(column))) for column in texts]
    if order == "shuffle":
        assert all((names[np.isin(column, ids)] != "known").all() for column, ids in zip(texts, aside))


def test_equal_names_are_written_alike():
    """1 and 1.0 are one group or stratum; "1" is another name for both, and joins them."""
    assert texts_of(np.array([1, "1", 2.5, "a"], dtype=object), "groups").tolist() == ["1", "1", "2.5", "a"]
    with pytest.raises(GinghamError, match=r"groups names 1 and 1\.0, which are equal"):
        texts_of(np.array([1, "b", 1.0], dtype=object), "groups")


def test_ids_in_another_type_are_no_new_ones():
    """Texts are no numbers to a model; new ids of the same type, and whole numbers as floats, are what they are."""
    users = Mode.of([1, 2, 30], "user")
    assert which_known([np.array([2.0, 7.0])], [users])[0].tolist() == [True, False]
    assert not which_known([np.array([7, 8])], [users])[0].any()
    assert not which_known([np.array(["u7", "u8"])], [users])[0].any()
    assert as_written(np.array([5, 5.0, "5", 2.5], dtype=object)).tolist() == ["5", "5", "5", "2.5"]
    for ids, modes in ((np.array(["30", "7"]), users), (np.array([30, 7]), Mode.of(["30", "x"], "user"))):
        with pytest.raises(GinghamError, match="Column 'user': the predictor knows these ids in another type"):
            which_known([ids], [modes])


def test_a_table_of_losses_has_its_rows_in_the_order_of_the_labels():
    y, costs = np.resize(["ill", "ill", "well"], 300), [[0.0, 5.0], [1.0, 0.0]]
    told = {"loss": costs, "alphabet": ["ill", "well"]}
    assert gg.certify_predictions(y, np.full(300, "well"), **told).empirical == pytest.approx(5 * 2 / 3)
    with pytest.raises(GinghamError, match="another order than the rows of a table of losses have: ill, well"):
        gg.certify_predictions(y, np.full(300, "well"), **told | {"alphabet": ["well", "ill"]})
    # Other losses do not depend on the order, nor do labels that were read off the data.
    swapped = gg.certify_predictions(y, np.full(300, "well"), loss="zero-one", alphabet=["well", "ill"])
    assert swapped.empirical == pytest.approx(2 / 3)
    assert gg.data.Alphabet.of(y[::-1], given=False).listed_in_order


def test_names_of_new_items():
    known = [np.array([True, False, True, False]), np.array([True, True, False, False])]
    assert known_or_new(known, ["user", "film"]).tolist() == ["known", "new user", "new film", "new user + film"]
    assert all_known_or_new(["user", "film"]) == ["known", "new film", "new user", "new user + film"]


def test_holdout_knows_which_items_are_new():
    X, y = parity(1200, items=30)
    model = gg.CoClusteringRegressor(2, alphabet=range(1, 6), random_state=0).fit(X, y)
    other = np.random.default_rng(3).integers(20, 40, (400, 2))
    labels = np.where(other.sum(axis=1) % 2 == 0, 5, 1)
    found = gg.certify(model, other, labels, bound="holdout", predictor="mean", strata="known/new")
    mine = (other < 30).all(axis=1)
    assert found.strata["known"].n_observations == mine.sum()
    alone = gg.certify(model, other[mine], labels[mine], bound="holdout", predictor="mean", delta=0.05 / 5)
    assert found.strata["known"].value == pytest.approx(alone.value, abs=1e-9)
    assert found.for_mix(other[mine]).value == found.strata["known"].value
    with pytest.raises(GinghamError, match="unknown"):
        gg.certify(model, other, labels, bound="holdout", predictor="mean", strata="new/known")


def test_references_do_not_go_with_strata():
    X, y = parity(900)
    with pytest.raises(RefusedCertificate, match="references"):
        gg.certify_progressive(GRID, X, y, strata=X[:, 0] % 2, references=2, random_state=0)


@pytest.mark.parametrize("strata", ["known/new", "column"])
def test_the_checker_counts_strata_itself(tmp_path, strata):
    X, y = parity(1200)
    column = None if strata == "known/new" else X[:, 0] % 3
    found = gg.certify_progressive(GRID, X, y, strata=strata if column is None else column, random_state=1)
    found.save(tmp_path / "c.json")
    found.model.save(tmp_path / "m.gingham")
    named = {"user": X[:, 0], "film": X[:, 1]} | ({} if column is None else {"stratum": column})
    pl.DataFrame(named | {"label": y}).write_csv(tmp_path / "d.csv")

    def checked(change=None):
        document = json.loads((tmp_path / "c.json").read_text())
        if change is not None:
            change(document)
        (tmp_path / "other.json").write_text(json.dumps(document))
        return verify.main(tmp_path / "other.json", tmp_path / "m.gingham", tmp_path / "d.csv")

    def left_out(document):
        document["certificate"]["strata"] = document["certificate"]["strata"][1:]

    def lower(document):
        document["certificate"]["strata"][0]["value"] *= 0.9

    def untested(document):
        document["certificate"]["strata"].append({"name": "z", "value": 0.1, "empirical": None, "n_observations": 0})

    def all_gone(document):
        document["certificate"]["strata"] = None

    def anytime(document):
        document["certificate"]["anytime"] = True

    assert checked() == 0
    assert [checked(change) for change in (left_out, lower, untested, all_gone, anytime)] == [1] * 5
    if column is not None:
        pl.DataFrame(named | {"stratum": np.roll(column, 1), "label": y}).write_csv(tmp_path / "d.csv")
        assert checked() == 1


def test_coverage_of_the_worst_mix():
    """1,000 samples: the mix that is furthest above its guarantee, chosen by somebody who knows the truth."""
    rng, truth, failures = np.random.default_rng(7), {"0": 0.02, "1": 0.2, "2": 0.5}, 0
    for _ in range(1000):
        kind = rng.integers(0, 3, 60)
        losses = rng.random(60) < np.array(list(truth.values()))[kind]
        one = gg.certify_predictions(losses.astype(int), np.zeros(60, int), loss="zero-one", alphabet=[0, 1],
                                     strata=kind, delta=0.2)  # fmt: skip
        failures += any(truth[part.name] > part.value for part in one.strata.parts)
    assert failures <= 230  # 200 expected at most; the standard deviation is 12.6


def test_coverage_with_members_that_get_worse_on_new_rows():
    """Members whose loss on a stratum differs, met unequally: the mean of the members stays below the guarantee."""
    rng, failures = np.random.default_rng(8), 0
    means, shares = np.array([0.1, 0.3, 0.6]), np.full(3, 1 / 3)
    for _ in range(2000):
        sizes = rng.multinomial(40, [0.7, 0.25, 0.05])
        tests = [(rng.random(n) < mean).astype(float) for n, mean in zip(sizes, means)]
        stream = Progressive(choose_nu(rng.random(30) < 0.2, 40, 0.1), delta=0.1)
        failures += stream.of_blocks(tests, shares).value < means.mean()
    assert failures <= 230
