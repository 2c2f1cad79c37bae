import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from gingham import CoOccurrenceClustering, RefusedCertificate
from gingham.certificates import certify

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "papers"))

from statements import theorem12


def planted_counts(n=30, m=24, size=4000, seed=0):
    rng = np.random.default_rng(seed)
    p = np.where((np.arange(n)[:, None] < n // 2) == (np.arange(m)[None, :] < m // 2), 4.0, 1.0)
    p *= rng.gamma(3, size=(n, 1)) * rng.gamma(3, size=(1, m))
    p /= p.sum()
    drawn = rng.choice(n * m, size, p=p.ravel())
    return p, np.column_stack(np.unravel_index(drawn, (n, m)))


def assigns(n=30, m=24, firmness=1.0):
    rows, columns = np.eye(2)[(np.arange(n) < n // 2) * 1], np.eye(2)[(np.arange(m) < m // 2) * 1]
    return [firmness * q + (1 - firmness) / 2 for q in (rows, columns)]


@pytest.mark.parametrize("firmness", [1.0, 0.7])
def test_density_sums_to_one_and_the_bound_holds(firmness):
    p, X = planted_counts()
    certificate = certify(assigns(firmness=firmness), X, bound="density")
    density = certificate.model
    codes = np.array(list(product(range(30), range(24)))).T
    log_p = density.log_density(list(codes))
    assert np.exp(log_p).sum() == pytest.approx(1.0)
    true = float(-(p.ravel() @ log_p))
    assert true <= certificate.value
    assert certificate.empirical == pytest.approx(-density.log_density(list(X.T)).mean())
    assert "code length" in certificate.explain()


def test_the_bound_beats_uniform_coding_with_enough_data():
    _, X = planted_counts(size=60_000)
    certificate = certify(assigns(), X, bound="density")
    assert certificate.value < certificate.parameters["uniform"]


def test_terms_have_the_names_of_the_modes():
    _, X = planted_counts()
    table = np.zeros((30, 24))
    np.add.at(table, tuple(X.T), 1.0)
    for names, axes in ((None, ["row", "column"]), ({"document": range(30), "word": range(24)}, ["document", "word"])):
        model = CoOccurrenceClustering((2, 2), random_state=0).fit(table, names=names)
        named = [f"{axis}: {what}" for axis in axes for what in ("who belongs where", "H(x)")]
        printed = theorem12(
            model.posterior_.assign,
            model.blocks_ / len(X),
            [table.sum(1) / len(X), table.sum(0) / len(X)],
            len(X),
            0.05,
            axes,
        )
        terms = [*model.certify(table, population=table.shape).terms, *printed.terms]
        assert set(named) <= set(terms)
        assert not any(term.startswith("mode ") for term in terms)


def test_weights_count_and_three_modes_work():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (200, 3))
    q = np.eye(2)[[0, 0, 1, 1]]
    once = certify([q, q, q], X, bound="density")
    distinct, counts = np.unique(X, axis=0, return_counts=True)
    weighted = certify([q, q, q], distinct, sample_weight=counts, bound="density")
    assert weighted.value == pytest.approx(once.value)
    with pytest.raises(RefusedCertificate, match="integers"):
        certify([q, q, q], X, sample_weight=np.full(200, 0.3), bound="density")


def test_a_code_needs_a_word_for_every_item_and_has_one_for_those_never_seen():
    p, X = planted_counts(size=400)
    rows, columns = (np.unique(X[:, j]) for j in (0, 1))  # some items were never drawn
    assert len(rows) + len(columns) < 54
    table = np.zeros((30, 24))
    np.add.at(table, tuple(X.T), 1.0)
    seen = table[np.ix_(rows, columns)]
    model = CoOccurrenceClustering((2, 2), random_state=0).fit(seen)
    with pytest.raises(RefusedCertificate, match="read from the data"):
        model.certify(seen)
    certificate = model.certify(seen, population=(30, 24))
    assert any("30 of 'row', 24 of 'column'" in a.text and a.status == "given" for a in certificate.assumptions)
    density = model.density_
    order = [[*items, *np.setdiff1d(np.arange(n), items)] for items, n in ((rows, 30), (columns, 24))]
    log_p = density.log_density(list(np.array(list(product(range(30), range(24)))).T))
    assert np.exp(log_p).sum() == pytest.approx(1.0)
    true = -float(p[np.ix_(*order)].ravel() @ log_p)
    assert certificate.empirical < true <= certificate.value
    assert certificate.value > model.certify(seen, population=seen.shape).value


def test_the_papers_bound_is_for_hard_posteriors_and_looser():
    _, X = planted_counts(size=60_000)
    certificate = certify(assigns(), X, bound="density")
    table = np.zeros((30, 24))
    np.add.at(table, tuple(X.T), 1 / len(X))
    rows, columns = assigns()
    printed = theorem12([rows, columns], rows.T @ table @ columns, [table.sum(1), table.sum(0)], len(X), 0.05)
    assert printed.value > certificate.value
    with pytest.raises(RefusedCertificate, match="soft"):
        theorem12(assigns(firmness=0.9), rows.T @ table @ columns, [table.sum(1), table.sum(0)], len(X), 0.05)
