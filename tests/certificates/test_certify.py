import json
from dataclasses import replace
from itertools import product
from math import comb, factorial, log

import numpy as np
import pytest

from gingham import (
    CoClusteringClassifier,
    CoClusteringRegressor,
    Committee,
    GinghamError,
    GraphClustering,
    RefusedCertificate,
    UnseenItemsWarning,
)
from gingham.cells import Absolute, Logarithmic, Quadratic, ZeroOne
from gingham.certificates import certify, transductive
from gingham.certificates import prices as cx
from gingham.certificates.bounds import log_wealth_lower
from gingham.certificates.evidence import collect
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode, Sample

STARS = Alphabet.of((1, 2, 3, 4, 5), given=True)


def planted(n=30, m=25, size=600, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, n, size), rng.integers(0, m, size)])
    X[: max(n, m)] = np.column_stack([np.arange(max(n, m)) % n, np.arange(max(n, m)) % m])
    y = np.where((X[:, 0] < n // 2) == (X[:, 1] < m // 3), 5, 2)
    return X, np.where(rng.random(size) < 0.15, rng.integers(1, 6, size), y)


@pytest.fixture(scope="module")
def fitted():
    X, y = planted()
    return CoClusteringRegressor((3, 3), alphabet=range(1, 6), start="means", random_state=0).fit(X, y), X, y


def test_certificate_of_a_fit(fitted):
    model, X, y = fitted
    certificate = certify(model, X, y)
    assert certificate.bound == "log-wealth"
    assert certificate.empirical < certificate.value < 4
    assert certificate.empirical == pytest.approx(model.posterior_.gibbs_loss(model.sample(X, y)))
    assert not certificate.vacuous
    assert {a.status for a in certificate.assumptions} == {"checked", "given"}
    text = certificate.explain()
    assert f"at most {certificate.value:.4g}" in text
    assert "95 %" in text
    assert "randomised" in text
    assert json.loads(json.dumps(certificate.to_dict()))["value"] == certificate.value


def test_comparison_holds_every_bound(fitted):
    model, X, y = fitted
    exact = {"log-wealth", "type-kl", "kl", "split-kl", "bernstein"}
    assert {c.bound for c in certify(model, X, y).compare()} == exact
    table = certify(model, X, y, population=(30, 25)).compare()
    assert {c.bound for c in table} == {*exact, "theorem-1", "theorem-7"}
    assert [c.value for c in table] == sorted(c.value for c in table)
    known = {"population": (30, 25)}
    assert table["eq-18"].value == pytest.approx(certify(model, X, y, bound="eq-18", delta=0.05 / 7, **known).value)
    single = certify(model, X, y, **known).compare(together=False)
    assert single["eq-18"].value == pytest.approx(certify(model, X, y, bound="eq-18", **known).value)
    assert "theorem-7" in str(table)
    assert len(table.rows) == len(table) == 7
    assert table["eq-18"].terms["cell answers"] == pytest.approx(9 * log(5))


def test_certificate_equals_enumeration_of_all_partitions():
    """4 × 4 items, 2 × 2 clusters: distribution and divergence by listing every hypothesis."""
    rng = np.random.default_rng(3)
    assign = [rng.dirichlet(np.ones(2), 4), rng.dirichlet(np.ones(2), 4)]
    answers = np.array([[0, 1], [2, 1]])
    alphabet = Alphabet.of((0, 1, 2), given=True)
    modes = (Mode("row", np.arange(4)), Mode("column", np.arange(4)))
    posterior = Posterior(Structure.grid(modes), (Absolute(alphabet),), tuple(assign), (answers,))
    X = np.array(list(product(range(4), range(4))))
    y = rng.integers(0, 3, 16)
    weights = {0: 0.0, 1: 0.0, 2: 0.0}
    divergence = 0.0
    labels = 1 / comb(4 + 2, 2) / (factorial(4) / (1 * 2 * 1))  # counts (1, 2, 1) of 4 cells, 3 answers
    for rows, columns in product(product(range(2), repeat=4), repeat=2):
        q = np.prod([assign[0][x, c] for x, c in enumerate(rows)] + [assign[1][x, c] for x, c in enumerate(columns)])
        prior = labels
        for part in (rows, columns):
            prior *= 1 / 6 / comb(5, 1) / comb(4, sum(part))
        divergence += q * log(q / prior)
        for (i, j), label in zip(X, y):
            weights[abs(label - answers[rows[i], columns[j]])] += q / 16
    certificate = certify(posterior, X, y, bound="kl")
    evidence = certificate.evidence
    assert evidence.prices["exact"].total == pytest.approx(divergence, abs=1e-10)
    for value, weight in zip(evidence.distribution.values, evidence.distribution.weights):
        assert weights[round(2 * value)] == pytest.approx(weight, abs=1e-12)


def test_two_sided(fitted):
    model, X, y = fitted
    both = certify(model, X, y, lower=True)
    assert both.lower < both.empirical < both.value
    assert both.value > certify(model, X, y).value
    assert both.value == pytest.approx(certify(model, X, y, delta=0.025).value)
    of = both.evidence
    by_hand = log_wealth_lower(of.distribution, of.prices["exact"].total, of.n_observations, 0.025)
    assert both.lower == pytest.approx(of.in_unit(by_hand.value))
    assert "at least" in both.explain()


def test_anytime_is_stated_and_only_for_log_wealth(fitted):
    model, X, y = fitted
    certificate = certify(model, X, y, anytime=True)
    assert certificate.anytime
    assert any("before the first observation" in a.text for a in certificate.assumptions)
    assert "stop at any time" in certificate.explain()
    with pytest.raises(RefusedCertificate, match="all sample sizes"):
        certify(model, X, y, bound="kl", anytime=True)


def test_mean_follows_from_gibbs_for_convex_losses_only(fitted):
    model, X, y = fitted
    assert certify(model, X, y, predictor="mean").value == certify(model, X, y).value
    assert "Jensen" in certify(model, X, y, predictor="mean").explain()
    for predictor in ("median", "mode"):
        with pytest.raises(RefusedCertificate, match="holdout"):
            certify(model, X, y, predictor=predictor)
    with pytest.raises(GinghamError, match="unknown"):
        certify(model, X, y, predictor="oracle")
    classifier = CoClusteringClassifier((2, 2), "zero-one", alphabet=range(1, 6), random_state=0).fit(X, y)
    assert certify(classifier, X, y).loss == "zero-one"
    with pytest.raises(RefusedCertificate, match="not convex"):
        certify(classifier, X, y, predictor="mean")


def test_labels_read_off_the_data_are_refused_until_stated(fitted):
    _, X, y = fitted
    model = CoClusteringRegressor((2, 2), random_state=0).fit(X, y)
    with pytest.raises(RefusedCertificate, match="State them"):
        certify(model, X, y)
    assert certify(model, X, y, alphabet=(1, 2, 3, 4, 5)).value < 4
    with pytest.raises(GinghamError, match="same alphabet"):
        certify(model, X, y, alphabet=(1, 2, 3, 4, 5, 6))


def test_unbounded_losses_and_odd_weights_are_refused(fitted):
    model, X, y = fitted
    free = CoClusteringRegressor((2, 2), loss="quadratic", random_state=0).fit(X, y + np.linspace(0, 0.4, len(y)))
    with pytest.raises(RefusedCertificate, match="unbounded"):
        certify(free, X, y)
    with pytest.raises(RefusedCertificate, match="integers"):
        certify(model, X, y, sample_weight=np.full(len(y), 0.5))
    with pytest.raises(GinghamError, match="unknown"):
        certify(model, X, y, bound="magic")
    with pytest.raises(GinghamError, match="fit it first"):
        certify(CoClusteringRegressor(), X, y)
    with pytest.raises(GinghamError, match="does not take fraction="):
        certify(model, X, y, fraction=0.5)


def test_weights_are_counts(fitted):
    model, X, y = fitted
    twice = certify(model, np.vstack([X, X[:100]]), np.concatenate([y, y[:100]]))
    weights = np.ones(len(y))
    weights[:100] = 2
    assert certify(model, X, y, sample_weight=weights).value == pytest.approx(twice.value)


def test_the_papers_price_needs_a_stated_population(fitted):
    model, X, y = fitted
    with pytest.raises(RefusedCertificate, match="read from the data: state how many"):
        certify(model, X, y, bound="theorem-7")
    known = certify(model, X, y, bound="theorem-7", population=(30, 25))
    larger = certify(model, X, y, bound="theorem-7", population={"column": 25, "row": 40})
    assert known.value < larger.value < known.value + 0.1
    assert any("40 of 'row'" in a.text and a.status == "given" for a in larger.assumptions)
    with pytest.raises(RefusedCertificate, match="state how many"):
        certify(model, X, y, bound="theorem-7", population={"row": 40})  # of the other mode nothing is known
    q = np.vstack([model.assign_[0], np.tile(model.posterior_.unseen_rows[0], (10, 1))])
    assert larger.terms["row: information n·I"] == pytest.approx(cx.partition_information(q))


def test_the_exact_price_covers_any_number_of_items(fitted):
    model, X, y = fitted
    plain = certify(model, X, y)
    assert certify(model, X, y, population=(40, 25)).value == plain.value
    assert any(a.code == "urn" for a in plain.assumptions)
    assert not any("not covered" in a.text or "fixed before" in a.text for a in plain.assumptions)
    all_known = certify(model, X, y, population=(30, 25))
    assert not any(a.code == "urn" for a in all_known.assumptions)
    with pytest.raises(GinghamError, match="knows 30"):
        certify(model, X, y, population=(20, 25))
    with pytest.raises(GinghamError, match="2 modes"):
        certify(model, X, y, population=(40, 25, 3))
    with pytest.raises(GinghamError, match="the modes are row, column"):
        certify(model, X, y, population={"user": 40})


def test_tuples_with_unseen_items_are_counted_as_they_are_predicted(fitted):
    model, X, y = fitted
    odd = np.vstack([X, [[99, 3], [2, 77], [99, 98]]])
    labels = np.append(y, [5, 2, 1])
    certificate = certify(model, odd, labels)
    by_row = np.abs(labels[:, None] - np.arange(1, 6))
    with pytest.warns(UnseenItemsWarning):
        expected = (model.predict_distribution(odd) * by_row).sum(axis=1).mean()
    assert certificate.empirical == pytest.approx(expected)
    assert certificate.complexity - certify(model, X, y).complexity == pytest.approx(0, abs=1)  # the grid of ν only
    with pytest.raises(GinghamError, match="population says 30 items of 'row', but the data have 31"):
        certify(model, odd, labels, population=(30, 25))
    with pytest.raises(RefusedCertificate, match=r"600 of the 603 rows \(row 0, 1, 2, 3, 4, …\) are rows that"):
        certify(model, odd, labels, bound="holdout", predictor="gibbs")
    holdout = certify(model.posterior_, odd, labels, bound="holdout", predictor="gibbs")  # it knows no rows
    assert holdout.empirical == pytest.approx(expected)


def quadratic_posterior(seed=0, alphabet=None, bounds=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    modes = (Mode("a", np.arange(6)), Mode("b", np.arange(5)))
    assign = (rng.dirichlet(np.ones(2), 6), rng.dirichlet(np.ones(3), 5))
    cell = Quadratic(alphabet, None if alphabet is not None else bounds)
    return Posterior(Structure.grid(modes), (cell,), assign, (rng.random((2, 3)),))


@pytest.mark.parametrize("weighted", [False, True])
def test_quadratic_law_of_continuous_labels(weighted):
    rng = np.random.default_rng(1)
    posterior = quadratic_posterior()
    X = np.array(list(product(range(6), range(5))))
    y = rng.random(30)
    weights = rng.integers(1, 4, 30).astype(float) if weighted else None
    sample = Sample.of(X.T, y, weights, modes=posterior.structure.modes)
    evidence = collect(posterior, sample)
    assert evidence.rounded
    rounded = evidence.covered
    assert np.abs(rounded.answers[0] - posterior.answers[0]).max() <= 0.25
    exact = rounded.gibbs_loss(sample)
    assert exact <= evidence.empirical <= exact + 2 / 2**16
    assert "choice of the answers' grid" in evidence.prices["exact"].terms


def test_quadratic_on_an_alphabet_is_exact():
    posterior = quadratic_posterior(alphabet=Alphabet.of((0.0, 0.5, 1.0), given=True))
    X = np.array(list(product(range(6), range(5))))
    y = np.random.default_rng(2).choice([0.0, 0.5, 1.0], 30)
    certificate = certify(posterior, X, y)
    sample = Sample.of(X.T, y, modes=posterior.structure.modes, alphabet=posterior.cells[0].alphabet)
    assert certificate.empirical == pytest.approx(certificate.posterior.gibbs_loss(sample))
    assert any("rounded" in a.text for a in certificate.assumptions)


def test_finer_data_buys_a_finer_grid():
    posterior = quadratic_posterior()
    X = np.array(list(product(range(6), range(5))))
    y = (X[:, 0] + 10 * X[:, 1]) / 50  # the best answers of the cells differ
    sizes = []
    for copies in (1, 10_000):
        sample = Sample.of(X.T, y, np.full(30, float(copies)), modes=posterior.structure.modes)
        sizes.append(collect(posterior.refit(sample), sample).n_answers)
    assert sizes[1] > sizes[0]


def test_log_loss_answers_are_cut_into_parts(fitted):
    _, X, y = fitted
    model = CoClusteringClassifier((2, 2), loss="log", alphabet=range(1, 6), random_state=0).fit(X, y)
    certificate = certify(model, X, y)
    cell = model.posterior_.cells[0]
    assert isinstance(cell, Logarithmic)
    assert certificate.worst == pytest.approx(cell.range)
    answers = certificate.posterior.answers[0]
    np.testing.assert_allclose(answers.sum(-1), 1)
    assert answers.min() >= cell.smoothing / 5 * (1 - 1e-12)
    assert certificate.empirical < certificate.value < cell.range


def graph_sample(n=20, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(n) for j in range(i)])
    same = (pairs[:, 0] < n // 2) == (pairs[:, 1] < n // 2)
    return pairs, (rng.random(len(pairs)) < np.where(same, 0.9, 0.1)).astype(int)


def test_graph_labels_pay_once_for_the_mode_and_half_the_cells():
    pairs, y = graph_sample()
    labels = (np.arange(20) < 10).astype(int)
    certificate = certify(labels, pairs, y, loss="zero-one", alphabet=(0, 1))
    exact = certificate.evidence.prices["exact"].terms
    assert exact["renamings of clusters"] == pytest.approx(-log(2))
    assert exact["directed or undirected"] == pytest.approx(log(2))
    assert exact["answer counts"] == pytest.approx(log(4))  # three cells, two answers
    by_hand = sum(cx.partition_exact(np.eye(2)[labels]).values()) + log(4) + log(3)
    assert certificate.evidence.prices["exact"].total == pytest.approx(by_hand)
    flipped = certify(labels, pairs[:, ::-1], y, loss="zero-one", alphabet=(0, 1))
    assert flipped.value == pytest.approx(certificate.value)
    with pytest.raises(RefusedCertificate, match="self loops"):
        certify(labels, np.vstack([pairs, [3, 3]]), np.append(y, 1), alphabet=(0, 1))


def test_labels_from_any_library(fitted):
    _, X, y = fitted
    rows, columns = (np.arange(30) < 15).astype(int), np.where(np.arange(25) < 8, "early", "late")
    certificate = certify([rows, columns], X, y, alphabet=range(1, 6))
    as_mapping = certify(
        [dict(zip(range(30), rows.tolist())), dict(zip(range(25), columns.tolist()))], X, y, alphabet=range(1, 6)
    )
    assert as_mapping.value == pytest.approx(certificate.value)
    shuffled = np.random.default_rng(0).permutation(30)
    with_items = certify([rows[shuffled], columns], X, y, alphabet=range(1, 6), items=[shuffled, np.arange(25)])
    assert with_items.value == pytest.approx(certificate.value)
    trivial = certify([np.zeros(30), np.zeros(25)], X, y, alphabet=range(1, 6))
    assert certificate.value < trivial.value
    with pytest.raises(RefusedCertificate, match="possible labels"):
        certify([rows, columns], X, y)
    with pytest.raises(GinghamError, match="30 different items but 7"):
        certify([rows[:7], columns], X, y, alphabet=range(1, 6))
    with pytest.raises(GinghamError, match="needs 2"):
        certify([rows], X, y, alphabet=range(1, 6))
    with pytest.raises(GinghamError, match="twice"):
        certify([rows, columns], X, y, alphabet=range(1, 6), items=[np.zeros(30), np.arange(25)])


def test_labels_with_items_never_seen_in_the_sample(fitted):
    _, X, y = fitted
    rows = (np.arange(35) < 15).astype(int)  # five more users than the sample has
    certificate = certify([rows, np.zeros(25)], X, y, alphabet=range(1, 6))
    assert len(certificate.posterior.assign[0]) == 35
    assert certificate.posterior.unseen_rows[0] == pytest.approx([21 / 37, 16 / 37])


def test_unknown_items_and_wrong_shapes_are_refused(fitted):
    model, X, y = fitted
    with pytest.raises(GinghamError, match="none of the ids is among the items"):
        certify(model, X + 100, y)
    with pytest.raises(GinghamError, match="modes"):
        certify(model, X[:, :1], y)
    with pytest.raises(GinghamError, match="labels y"):
        certify(model, X)


def test_a_constant_loss_costs_nothing_to_bound():
    one = Alphabet.of((7,), given=True)
    modes = (Mode("a", np.arange(3)),)
    posterior = Posterior(Structure.grid(modes), (ZeroOne(one),), (np.ones((3, 1)),), (np.zeros(1, int),))
    certificate = certify(posterior, np.array([[0], [1], [2]]), np.full(3, 7))
    assert certificate.empirical == 0


def test_float32_memberships_are_brought_to_full_precision(fitted):
    model, X, y = fitted
    single = replace(model.posterior_, assign=tuple(q.astype(np.float32) for q in model.posterior_.assign))
    assert certify(single, X, y).value == pytest.approx(certify(model, X, y).value, abs=1e-4)
    wrong = replace(model.posterior_, assign=tuple(2 * q for q in model.posterior_.assign))
    with pytest.raises(GinghamError, match="not distributions"):
        certify(wrong, X, y)


def test_committee_pays_the_mean_and_no_union(fitted):
    model, X, y = fitted
    committee = Committee(model, n_members=3, random_state=0).fit(X, y)
    certificate = certify(committee, X, y)
    singles = [certify(member, X, y) for member in committee.members_]
    totals = [c.evidence.prices["exact"].total for c in singles]
    assert certificate.evidence.prices["exact"].total == pytest.approx(np.mean(totals))
    assert certificate.empirical == pytest.approx(np.mean([c.empirical for c in singles]))
    assert certificate.value <= max(c.value for c in singles) + 1e-9
    with pytest.raises(RefusedCertificate, match="'mean', 'median' or 'mode'"):
        certify(committee, X, y, bound="holdout")  # which of its predictions?
    with pytest.raises(RefusedCertificate, match="the rows that the model was fitted on"):
        certify(committee, X, y, bound="holdout", predictor="median")
    new = np.random.default_rng(1).permutation(y)  # exactly what it predicts, on new observations
    held_out = certify(committee, X, new, bound="holdout", predictor="median", candidates=3)
    assert held_out.empirical == pytest.approx(np.abs(committee.predict(X, rule="median") - new).mean())
    assert held_out.predictor == "median"
    assert held_out.value > held_out.empirical


@pytest.mark.parametrize("binary", [True, False])
def test_absent_pairs_of_a_graph_count(binary):
    """All pairs of a graph, absent ones not listed, give the certificate of the full list."""
    rng = np.random.default_rng(0)
    n = 24
    weights = np.triu(rng.random((n, n)) < 0.3, 1) * (1.0 if binary else rng.random((n, n)))
    model = GraphClustering(2, loss="quadratic", solver="nodewise", beta=2.0, bounds=(0.0, 1.0), random_state=0)
    model.fit(weights + weights.T)
    pairs = np.array(np.triu_indices(n, 1)).T
    by_graph = certify(model, model.sample(weights + weights.T))
    by_list = certify(model, pairs, weights[pairs[:, 0], pairs[:, 1]])
    assert by_graph.n_observations == by_list.n_observations == n * (n - 1) // 2
    assert by_graph.empirical == pytest.approx(by_list.empirical, abs=1e-9)
    assert by_graph.value == pytest.approx(by_list.value, abs=1e-9)
    with pytest.raises(RefusedCertificate, match="listed"):
        certify(model, model.sample(weights + weights.T), bound="holdout", predictor="mean")


def test_degree_corrections_are_not_covered():
    model = GraphClustering(2, random_state=0).fit([("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")])
    model._degree_model = object()
    with pytest.raises(RefusedCertificate, match="degrees"):
        certify(model, [("a", "b")], [1])


@pytest.mark.parametrize("seed", range(4))
def test_hard_price_is_never_below_the_true_one(seed):
    """−ln of the prior of all hypotheses that predict alike, by listing them (2 × 2 and 3 × 2 clusters)."""
    rng = np.random.default_rng(seed)
    n_rows, n_columns, m = 4, 3, (2 + seed % 2, 2)
    rows, columns = rng.integers(0, m[0], n_rows), rng.integers(0, m[1], n_columns)
    rows[:2], columns[:2] = (0, 1), (0, 1)
    answers = rng.integers(0, 2, m)
    alphabet = Alphabet.of((0, 1), given=True)
    modes = (Mode("row", np.arange(n_rows)), Mode("column", np.arange(n_columns)))
    assign = (np.eye(m[0])[rows], np.eye(m[1])[columns])
    posterior = Posterior(Structure.grid(modes), (ZeroOne(alphabet),), assign, (answers,))
    X = np.array(list(product(range(n_rows), range(n_columns))))
    price = certify(posterior, X, rng.integers(0, 2, len(X))).evidence.prices["exact"].total
    predicted = answers[np.ix_(rows, columns)]

    def partition(where, k):
        ways = factorial(len(where)) / np.prod([factorial(where.count(c)) for c in range(k)])
        return 1 / (k * (k + 1)) / comb(len(where) + k - 1, k - 1) / ways

    alike = 0.0
    for one, other in product(product(range(m[0]), repeat=n_rows), product(range(m[1]), repeat=n_columns)):
        for flat in product(range(2), repeat=m[0] * m[1]):
            table = np.array(flat).reshape(m)
            if (table[np.ix_(one, other)] == predicted).all():
                cells, ones = len(flat), sum(flat)
                labels = 1 / comb(cells + 1, 1) / comb(cells, ones)
                alike += partition(one, m[0]) * partition(other, m[1]) * labels
    assert price >= -log(alike) - 1e-9


def test_samples_with_another_alphabet_or_numbering_are_refused(fitted):
    model, X, y = fitted
    modes = model.posterior_.structure.modes
    other = Sample.of(X.T, y, modes=modes, alphabet=Alphabet.of((0, 1, 2, 3, 4, 5), given=True))
    for options in ({}, {"bound": "holdout", "predictor": "median"}):
        with pytest.raises(GinghamError, match="another alphabet"):
            certify(model, other, **options)
    fewer = Sample.of(X[X[:, 0] < 20].T, y[X[:, 0] < 20], alphabet=model.posterior_.cells[0].alphabet)
    with pytest.raises(GinghamError, match="number both in the same way"):
        certify(model, fewer)
    halves = np.full(len(y), 0.5)
    with pytest.raises(RefusedCertificate, match="integers"):
        certify(model, X, y, bound="holdout", sample_weight=halves)


def test_only_the_randomised_predictor_is_bounded_from_below(fitted):
    """The mean prediction may lose less than the randomised one: Jensen's inequality has one side."""
    model, X, y = fitted
    both = certify(model, X, y, lower=True)
    assert both.lower < both.empirical < both.value
    with pytest.raises(RefusedCertificate, match="from below"):
        certify(model, X, y, lower=True, predictor="mean")


@pytest.mark.parametrize("bound", ["holdout", "split"])
@pytest.mark.parametrize("options", [{"lower": True}, {"anytime": True}, {"population": (30, 25)}])
def test_what_a_holdout_cannot_do_is_refused_and_not_forgotten(fitted, bound, options):
    model, X, y = fitted
    with pytest.raises(RefusedCertificate, match="does not take"):
        certify(model, X, y, bound=bound, **options)


@pytest.mark.parametrize("bound", ["log-wealth", "holdout"])
def test_a_sample_that_numbers_items_otherwise_is_refused(fitted, bound):
    model, X, y = fitted
    sample = model.sample(X, y)
    assert certify(model.posterior_, sample, bound=bound).value == pytest.approx(
        certify(model.posterior_, X, y, bound=bound).value
    )
    rows, columns = sample.modes
    turned = Mode(rows.name, rows.items[::-1].copy())
    other = replace(sample, modes=(turned, columns), codes=(turned.encode(X[:, 0]), sample.codes[1]))
    with pytest.raises(GinghamError, match="numbers the items"):
        certify(model, other, bound=bound)
    with pytest.raises(GinghamError, match="numbers the items"):
        certify(model, other, bound="gain")
    with pytest.raises(GinghamError, match="numbers the items"):
        certify(model, other, bound="density")


def test_weights_are_believed_and_not_checked(fitted):
    model, X, y = fitted
    for bound in ("log-wealth", "gain"):
        weighted = certify(model, X, y, bound=bound, sample_weight=np.full(len(y), 2))
        texts = {a.text: a.status for a in weighted.assumptions}
        assert texts["A row of weight w stands for w independent draws."] == "given"
        assert not any("counts" in text for text in texts)
        once = certify(model, X, y, bound=bound, sample_weight=np.ones(len(y)))
        assert not any("weight" in a.text for a in once.assumptions)
    density = certify(
        model, X, sample_weight=np.full(len(y), 2), population=[len(q) for q in model.assign_], bound="density"
    )
    assert any(a.text.startswith("A row of weight w") and a.status == "given" for a in density.assumptions)


def test_the_smallest_of_many_bounds_pays_for_all_of_them(fitted, tmp_path):
    model, X, y = fitted
    one = certify(model, X, y, population=[len(q) for q in model.assign_])  # the papers' bounds need it
    table = one.compare()
    assert table.delta == pytest.approx(0.05)
    assert all(c.delta == pytest.approx(0.05 / 7) for c in table)
    assert "All 7 hold together with confidence 95 %" in str(table)
    best = table.best
    assert (best.delta, best.chosen_from) == (pytest.approx(0.05), 7)
    assert best.value == table.certificates[0].value > one.value
    assert "smallest of 7 certificates that were compared" in best.explain()
    assert best.to_dict()["chosen_from"] == 7
    best.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["facts"]["candidates"] == 7
    # Made one by one with the whole δ, they may fail seven times as often.
    each = one.compare(together=False)
    assert each.delta == pytest.approx(0.35)
    assert each.best.delta == pytest.approx(0.35)
    assert each.best.value == one.value
    other = certify(model, X, y, delta=0.2)
    assert one.compare(other, bounds=()).delta == pytest.approx(0.25)
    with pytest.raises(GinghamError, match="the smallest of them has no guarantee"):
        other.compare(*[other] * 5, bounds=()).best  # noqa: B018
    assert certify(model, X, y).compare(bounds=()).best.chosen_from == 1


def test_what_is_made_of_the_smallest_pays_for_the_others_too(fitted):
    """Other bounds on the evidence that looked best among ten have a tenth of δ, at most."""
    model, X, y = fitted
    others = [certify(model, X, y, delta=0.005) for _ in range(9)]
    one = certify(model, X, y, delta=0.005)
    best = one.compare(*others, bounds=["log-wealth"]).best
    assert (best.chosen_from, best.delta) == (10, pytest.approx(0.05))
    for name in ("kl", "log-wealth"):
        made = best.compare(bounds=["kl"])[name]
        assert made.value == pytest.approx(one.compare(bounds=["kl"])[name].value)
        assert (made.chosen_from, made.delta) == (10, pytest.approx(0.025))
    size = 3 * best.n_observations
    assert transductive(best, size).value == pytest.approx(transductive(one, size).value)
    assert transductive(best, size).delta == pytest.approx(0.05)


def test_clusters_that_were_handed_in_as_fixed_are_given_and_not_paid(fitted):
    """A frozen clustering costs nothing: that it was made without a look at the labels is somebody's word."""
    y = np.random.default_rng(0).integers(0, 2, 300)
    modes = (Mode("users", np.arange(300)), Mode("films", np.arange(1)))
    cell = ZeroOne(Alphabet.of((0, 1), given=True))
    assigns = (np.eye(2)[y], np.ones((1, 1)))  # each user lies where the label is

    def certified(frozen, first=assigns[0]):
        structure = Structure(modes, ((0, 1),), frozen)
        posterior = Posterior(structure, (cell,), (first, assigns[1]), (np.arange(first.shape[1])[:, None] % 2,))
        return certify(posterior, np.column_stack([np.arange(300), np.zeros(300, int)]), y, population=(300, 1))

    told = [one for one in certified((0,)).assumptions if one.code == "clusters fixed beforehand"]
    assert [(one.status, one.facts["names"]) for one in told] == [("given", ["users"])]
    assert certified(()).value > 0.5
    structure = Structure(modes, ((0, 1),), (0,))
    grid = Posterior(structure, (cell,), assigns, (np.array([[0], [1]]),))
    rows = np.column_stack([np.arange(300), np.zeros(300, int)])
    density = certify(grid, rows, bound="density", population=(300, 1))
    assert "clusters fixed beforehand" in {one.code for one in density.assumptions}
    for plain in (certified(()), certified((0,), np.eye(300))):
        assert "clusters fixed beforehand" not in {one.code for one in plain.assumptions}


def test_the_rows_of_the_fit_are_known_in_any_order(fitted):
    model, X, y = fitted
    other = np.random.default_rng(0).permutation(len(y))
    for rows in (np.arange(len(y)), other):
        with pytest.raises(RefusedCertificate, match="fitted on"):
            certify(model, X[rows], y[rows], bound="holdout", predictor="gibbs")
