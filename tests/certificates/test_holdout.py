from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from gingham import (
    CoClusteringClassifier,
    CoClusteringRegressor,
    Committee,
    GinghamError,
    RefusedCertificate,
)
from gingham.certificates import certify, certify_predictions, held_out_part
from gingham.certificates.holdout import betting
from gingham.losses import TableLoss


def planted(n=40, m=30, size=2400, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, size), rng.integers(0, m, size)])
    y = np.where((X[:, 0] < n // 2) == (X[:, 1] < m // 3), 5, 2)
    return X, np.where(rng.random(size) < noise, rng.integers(1, 6, size), y)


@pytest.fixture(scope="module")
def parts():
    X, y = planted()
    model = CoClusteringRegressor((3, 3), alphabet=range(1, 6), start="means", random_state=0).fit(X[:1800], y[:1800])
    return model, X[:1800], y[:1800], X[1800:], y[1800:]


@pytest.mark.parametrize("predictor", ["gibbs", "mean", "median", "mode"])
def test_holdout_covers_every_predictor_as_used(parts, predictor):
    model, _, _, X, y = parts
    certificate = certify(model, X, y, bound="holdout", predictor=predictor)
    if predictor == "gibbs":
        used = model.posterior_.gibbs_loss(model.sample(X, y))
    else:
        used = np.abs(model.predict(X, rule=predictor) - y).mean()
    assert certificate.empirical == pytest.approx(used)
    assert used < certificate.value < 4
    assert any(a.code == "not fitted on these" for a in certificate.assumptions)


def test_candidates_cost_their_share(parts):
    model, _, _, X, y = parts
    one = certify(model, X, y, bound="holdout", predictor="median")
    ten = certify(model, X, y, bound="holdout", predictor="median", candidates=10)
    assert ten.value == pytest.approx(certify(model, X, y, bound="holdout", predictor="median", delta=0.005).value)
    assert ten.value > one.value
    with pytest.raises(GinghamError, match="integer"):
        certify(model, X, y, bound="holdout", candidates=0)


def test_a_method_that_is_not_known_is_refused():
    with pytest.raises(GinghamError, match="unknown"):
        certify_predictions([0, 1], [0, 1], loss="zero-one", alphabet=(0, 1), method="guess")


def test_rows_of_several_groups_are_tested_where_they_share_none():
    rng = np.random.default_rng(0)
    pairs = np.array([(a, b) for a in range(31) for b in range(a)])
    y = rng.integers(0, 2, len(pairs))
    options = {"loss": "zero-one", "alphabet": (0, 1), "random_state": 3}
    found = certify_predictions(y, np.zeros(len(y), int), groups=pairs, **options)
    assert found.n_observations <= 15  # of 31 nodes no more pairs are disjoint
    assert found.assumptions[0].code == "rows that share no group"
    assert "new groups" in found.explain()
    assert found.value == certify_predictions(y, np.zeros(len(y), int), groups=pairs, **options).value
    alone = np.arange(2 * len(y)).reshape(-1, 2)  # nothing is shared: every row is tested
    assert certify_predictions(y, np.zeros(len(y), int), groups=alone, **options).n_observations == len(y)


def test_losses_of_real_predictions():
    y, y_pred = np.array([1.0, 2.0, 5.0]), np.array([1.5, 2.0, 3.0])
    assert certify_predictions(y, y_pred, loss="quadratic", label_bounds=(1, 5)).empirical == pytest.approx(4.25 / 3)
    absolute = certify_predictions(y, y_pred, loss="absolute", alphabet=(1, 2, 3, 4, 5))
    assert absolute.empirical == pytest.approx(2.5 / 3)
    pinball = certify_predictions(y, y_pred, loss="pinball", label_bounds=(1, 5))
    assert pinball.empirical == pytest.approx(2.5 / 6)
    weighted = certify_predictions(y, y_pred, label_bounds=(1, 5), sample_weight=[1, 0, 3])
    assert weighted.empirical == pytest.approx(6.5 / 4)
    assert weighted.n_observations == 4


def test_predictions_that_no_theorem_covers():
    y = np.array([1, 2, 3])
    with pytest.raises(RefusedCertificate, match="unbounded"):
        certify_predictions(y, y)
    with pytest.raises(RefusedCertificate, match="Clip"):
        certify_predictions(y, y + 9, label_bounds=(1, 5))
    with pytest.raises(RefusedCertificate, match="integers"):
        certify_predictions(y, y, label_bounds=(1, 5), sample_weight=[0.5, 1, 1])
    with pytest.raises(GinghamError, match="rows"):
        certify_predictions(y[:2], y, label_bounds=(1, 5))
    with pytest.raises(RefusedCertificate, match="needs alphabet"):
        certify_predictions(y, y, loss="zero-one", label_bounds=(1, 5))
    with pytest.raises(RefusedCertificate, match="distributions"):
        certify_predictions(y, np.eye(3), loss="log", alphabet=(1, 2, 3))


def test_log_loss_of_predicted_distributions():
    y = np.array([1, 2, 3])
    flat = np.full((3, 3), 1 / 3)
    assert certify_predictions(y, flat, loss="log", alphabet=(1, 2, 3)).empirical == pytest.approx(np.log(3))


def test_named_classes(parts):
    _, X, y, _, _ = parts
    names = np.array(["bad", "good"])[(y > 3).astype(int)]
    model = CoClusteringClassifier((2, 2), "zero-one", alphabet=("bad", "good"), random_state=0)
    model.fit(X[:1200], names[:1200])
    certificate = certify(model, X[1200:], names[1200:], bound="holdout", predictor="mode")
    assert certificate.empirical == pytest.approx((model.predict(X[1200:]) != names[1200:]).mean())
    with pytest.raises(RefusedCertificate, match="names"):
        certify(model, X[1200:], names[1200:], bound="holdout", predictor="median")


@pytest.mark.parametrize("method", ["holdout", "prior"])
def test_split_in_one_call(parts, method):
    _, X, y, _, _ = parts
    model = CoClusteringRegressor((3, 3), alphabet=range(1, 6), start="means", random_state=0)
    certificate = certify(model, X, y, bound="split", fraction=0.6, method=method, random_state=0)
    assert not hasattr(model, "posterior_")
    assert certificate.model.posterior_ is not None
    assert certificate.n_observations <= 0.41 * len(y)
    assert certificate.empirical < certificate.value < 2
    assert certificate.posterior is not None or method == "holdout"


def test_split_prior_is_below_holdout_plus_nothing_when_the_prior_is_kept(parts):
    """With much faith in the first part the posterior may stay at the prior: the price stays small."""
    _, X, y, _, _ = parts
    model = CoClusteringRegressor((3, 3), alphabet=range(1, 6), start="means", random_state=0)
    certificate = certify(model, X, y, bound="split", method="prior", random_state=0)
    assert certificate.terms["answers kept or changed"] < 9 * np.log(40)
    gibbs = certify(model, X, y, bound="split", method="holdout", predictor="gibbs", random_state=0)
    assert certificate.value < gibbs.value + 0.05


def test_split_refuses_nonsense(parts):
    _, X, y, _, _ = parts
    model = CoClusteringRegressor((2, 2), loss="quadratic", alphabet=range(1, 6), random_state=0)
    with pytest.raises(RefusedCertificate, match="on an alphabet"):
        certify(model, X, y, bound="split", method="prior")
    assert certify(model, X, y, bound="split", predictor="mean", random_state=0).value < 16
    with pytest.raises(GinghamError, match="unknown"):
        certify(model, X, y, bound="split", method="hope")
    for rows, labels in ((X, None), (model.fit(X, y).sample(X, y), y)):
        with pytest.raises(GinghamError, match="give the rows of ids X and their labels y"):
            certify(model, rows, labels, bound="split")
    with pytest.raises(GinghamError, match="fraction"):
        certify(model, X, y, bound="split", fraction=1.0)
    with pytest.raises(GinghamError, match="no posterior_"):
        certify(BaseEstimator(), X, y)


def test_gain_over_a_constant_is_proven_on_planted_data_and_not_on_noise(parts):
    model, X, y, _, _ = parts
    gain = certify(model, X, y, bound="gain")
    assert gain.value < 0
    # It holds against every constant, so it is the one against the constant that is hardest to beat.
    constant = gain.parameters["empirical loss of the constant"]
    assert min(abs(np.abs(y - r).mean() - constant) for r in range(1, 6)) < 1e-9
    gibbs = model.posterior_.gibbs_loss(model.sample(X, y))
    assert gain.empirical == pytest.approx(gibbs - constant)
    rng = np.random.default_rng(5)
    assert "the co-clustering is better" in gain.explain()
    noise = rng.integers(1, 6, len(y))
    nothing = CoClusteringRegressor(
        (3, 3), alphabet=range(1, 6), beta=3, start="means", offsets=False, random_state=0
    ).fit(X, noise)
    unproven = certify(nothing, X, noise, bound="gain")
    assert unproven.value > 0
    assert "proves no gain" in unproven.explain()


@pytest.mark.parametrize("loss", ["quadratic", "log"])
def test_gain_with_answers_from_a_continuum(parts, loss):
    _, X, y, _, _ = parts
    model = CoClusteringRegressor((2, 2), loss=loss, alphabet=range(1, 6), start="means", random_state=0).fit(X, y)
    gain = certify(model, X, y, bound="gain")
    assert gain.empirical < 0
    assert gain.empirical < gain.value < (0 if loss == "quadratic" else 0.1)  # the log loss ranges far


def test_cross_committee(parts):
    model, X, y, _, _ = parts
    committee = Committee(model, n_members=4, cross=True, random_state=0).fit(X, y)
    certificate = certify(committee, y=y, alphabet=range(1, 6), bound="folds")
    single = [
        certify_predictions(
            y[committee.folds_ == j],
            committee.fold_predictions_[committee.folds_ == j],
            alphabet=range(1, 6),
            delta=0.05 / 4,
        )
        for j in range(4)
    ]
    assert certificate.value == pytest.approx(np.mean([c.value for c in single]))
    assert certificate.empirical < certificate.value < 4
    assert certificate.posterior is None
    assert len(certificate.compare()) == 1
    assert "member" in certificate.explain().lower()
    with pytest.raises(RefusedCertificate, match="cross-committee"):
        held_out_part(certificate, 10_000)
    with pytest.raises(RefusedCertificate, match="convex"):
        certify(committee, y=y, loss="zero-one", alphabet=range(1, 6), bound="folds")
    with pytest.raises(GinghamError, match="cross=True"):
        certify(model, y=y, alphabet=range(1, 6), bound="folds")
    with pytest.raises(GinghamError, match="rows"):
        certify(committee, y=y[:5], alphabet=range(1, 6), bound="folds")
    with pytest.raises(RefusedCertificate, match="Row 0 of y is"):
        certify(committee, y=6 - y, alphabet=range(1, 6), bound="folds")
    assert certify(committee, bound="folds").value == certificate.value  # the labels are its own
    committee.fold_in([(X[0, 0], 10**6)], [5])
    with pytest.raises(GinghamError, match="fold_in"):
        certify(committee, y=y, bound="folds")


def test_folds_divide_draws_and_keep_their_weights(parts):
    model, X, y, _, _ = parts
    rows, counts = np.unique(np.column_stack([X % 4, y]), axis=0, return_counts=True)
    committee = Committee(model, n_members=3, cross=True, random_state=0).fit(rows[:, :2], rows[:, 2], counts)
    assert committee.fold_counts_.sum() == len(y)
    table = np.zeros((len(rows), 3))
    np.add.at(table, (committee.fold_rows_, committee.folds_), committee.fold_counts_)
    assert (table.sum(axis=1) == counts).all()
    assert np.ptp(table.sum(axis=0)) <= 1
    assert (table > 0).all(axis=1)[counts > 30].all()  # a heavy row is in every fold
    certificate = certify(committee, bound="folds")
    assert certificate.n_observations == len(y)
    assert any(a.text.startswith("A row of weight w stands for w") and a.status == "given"
               for a in certificate.assumptions)  # fmt: skip
    for fold, member in enumerate(committee.members_):
        mine = committee.folds_ == fold
        expected = member.predict(rows[committee.fold_rows_[mine], :2])
        assert committee.fold_predictions_[mine] == pytest.approx(expected)
    with pytest.raises(RefusedCertificate, match="integers"):
        Committee(model, n_members=3, cross=True).fit(X, y, np.full(len(y), 0.5))


def test_folds_are_judged_by_the_members_own_convex_loss(parts):
    _, X, y, _, _ = parts
    stars = np.arange(1, 6)
    squares = np.subtract.outer(stars, stars) ** 2.0
    convex = partial(TableLoss, table=squares, convex=True)
    model = CoClusteringRegressor((3, 3), loss=convex, alphabet=stars, random_state=0)
    committee = Committee(model, n_members=2, cross=True, random_state=0).fit(X, y)
    certificate = certify(committee, bound="folds")
    assert certificate.loss == "table"
    assert certificate.worst == 16
    between = [np.interp(p, stars, row) for p, row in zip(committee.fold_predictions_, squares[y - 1])]
    assert certificate.empirical == pytest.approx(np.mean([np.mean(np.array(between)[committee.folds_ == j])
                                                           for j in range(2)]))  # fmt: skip
    assert certify(committee, loss=convex, alphabet=stars, bound="folds").value == certificate.value
    with pytest.raises(RefusedCertificate, match="not known to be convex"):
        certify(committee, loss=squares, alphabet=stars, bound="folds")


def test_a_split_divides_draws(parts):
    model, X, y, _, _ = parts
    rows, counts = np.unique(np.column_stack([X % 4, y]), axis=0, return_counts=True)
    certificate = certify(
        model, rows[:, :2], rows[:, 2], bound="split", sample_weight=counts, fraction=0.75, random_state=1
    )
    assert certificate.n_observations == len(y) - round(0.75 * len(y))
    facts = certificate.record.facts()
    assert (facts["counts"] <= counts[facts["rows"]]).all()
    assert (facts["counts"] < counts[facts["rows"]]).any()
    assert certificate.parameters["seed"] == 1
    texts = {a.text: a.status for a in certificate.assumptions}
    assert texts["A row of weight w stands for w independent draws."] == "given"
    assert not any("whole counts" in text for text in texts)
    with pytest.raises(RefusedCertificate, match="integers"):
        certify(model, X, y, bound="split", sample_weight=np.full(len(y), 0.5))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((range(100), range(50, 200)), "names row 50 twice"),
        ((range(100), [*range(100, 150), 149]), "names row 149 twice"),
        ((range(100), [-1]), "names row -1"),
        ((range(100), [10**9]), "there are rows 0 to"),
        ((range(100), []), "needs two parts"),
        ((range(100), [1.5]), "needs two parts"),
    ],
)
def test_rows_of_a_split_are_named_once(parts, rows, message):
    model, X, y, _, _ = parts
    with pytest.raises(GinghamError, match=message):
        certify(model, X, y, bound="split", rows=tuple(np.asarray(part) for part in rows))


def test_named_rows_of_weight_two_are_refused(parts):
    model, X, y, _, _ = parts
    half = np.arange(len(y)) < len(y) // 2
    named = (np.flatnonzero(half), np.flatnonzero(~half))
    assert certify(model, X, y, bound="split", rows=named).n_observations == (~half).sum()
    assert certify(model, X, y, bound="split", rows=(half, ~half)).n_observations == (~half).sum()
    with pytest.raises(RefusedCertificate, match="stands for 2 draws"):
        certify(model, X, y, bound="split", rows=named, sample_weight=np.full(len(y), 2))


def test_betting_by_hand_and_in_any_order():
    """Two observations, the bets written out; sorted rows give what shuffled rows give on average."""
    few = np.array([0.2, 0.6] + [0.1] * 30)
    paid, level = np.log(20.0), betting(few, 0.0, 0.05, 3).value
    orders = np.random.default_rng(3).permuted(np.tile(few, (32, 1)), axis=1)

    def wealth(x):
        """One order, bet by bet."""
        total = 1.0
        for t, loss in enumerate(x):
            mean = (0.5 + x[:t].sum()) / (t + 1)
            before = np.cumsum(x[:t]) + 0.5
            spread = (0.25 + ((x[:t] - before / (np.arange(t) + 2)) ** 2).sum()) / (t + 1)
            nu = max(mean + np.sqrt(spread * len(x) / (2 * paid)), 1.001)
            total *= (nu - loss) / (nu - level)
        return total

    assert level < 1
    assert np.mean([wealth(order) for order in orders]) == pytest.approx(20.0)
    losses = np.random.default_rng(1).binomial(4, 0.15, 4000) / 4
    shuffled, ordered = betting(losses, 0.0, 0.05, 0).value, betting(np.sort(losses), 0.0, 0.05, 0).value
    assert shuffled == pytest.approx(ordered, abs=1e-3)
    assert betting(losses, np.log(10), 0.05, 0).value == pytest.approx(betting(losses, 0.0, 0.005, 0).value)
    assert betting(np.ones(5), 0.0, 0.05, 0).value == 1.0


def test_the_order_of_the_bets_is_drawn_afresh_and_recorded():
    """Who writes the rows down cannot know in which order bets will be made; a given seed is a given assumption."""
    x = np.random.default_rng(5).binomial(4, 0.2, 60) / 4
    options = {"label_bounds": (0, 1), "method": "betting"}
    found = [certify_predictions(np.zeros(60), x, **options) for _ in range(4)]
    assert len({c.parameters["seed"] for c in found}) == 4
    assert len({c.value for c in found}) == 4
    assert all(any("drawn afresh" in a.text and a.status == "checked" for a in c.assumptions) for c in found)
    again = certify_predictions(np.zeros(60), x, **options, random_state=int(found[0].parameters["seed"]))
    assert again.value == found[0].value
    assert any("without looking at the rows" in a.text and a.status == "given" for a in again.assumptions)
    # Averaged over orders, the seed decides little: there is little to search for.
    spread = [betting(x, 0.0, 0.05, seed).value for seed in range(40)]
    assert np.std(spread) < 0.1 * (np.mean(spread) - x.mean())


def test_betting_is_tighter_than_log_wealth_and_holds():
    """The bound lies above the true mean in at least 1 − δ of the samples, and below log-wealth in nearly all."""
    rng = np.random.default_rng(0)
    values, distribution = np.arange(5), np.array([0.45, 0.4, 0.1, 0.04, 0.01])
    above, below = 0, 0
    for _ in range(300):
        y = rng.choice(values, size=600, p=distribution)
        bets, grid = (
            certify_predictions(y, np.zeros(600), label_bounds=(0, 4), method=m).value
            for m in ("betting", "log-wealth")
        )
        above += bets >= values @ distribution
        below += bets < grid
    assert above >= 285
    assert below >= 290
    # A bound that forgets the price of confidence would fail the first of these.
    cheap = sum(
        betting(rng.choice(values, size=600, p=distribution) / 4, -2.9, 0.05, 0).value >= values @ distribution / 4
        for _ in range(300)
    )
    assert cheap < 285


def test_betting_covers_single_predictions_of_independent_tuples_only(parts):
    model, _, _, X, y = parts
    with pytest.raises(RefusedCertificate, match="deterministic"):
        certify(model, X, y, bound="holdout", method="betting")
    bets = certify(model, X, y, bound="holdout", predictor="median", method="betting")
    assert bets.empirical < bets.value < certify(model, X, y, bound="holdout", predictor="median").value
    with pytest.raises(RefusedCertificate, match="independent"):
        held_out_part(bets, 10_000)
    twice = certify_predictions(
        y[::-1] + 0.0, y + 0.0, label_bounds=(1, 5), method="betting", sample_weight=[2] * len(y)
    )
    assert twice.n_observations == 2 * len(y)
