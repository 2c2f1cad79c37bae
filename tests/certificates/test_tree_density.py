from math import log

import numpy as np
import pytest

import gingham as gg
from gingham.certificates.bounds import ln_shtarkov
from gingham.certificates.density import certify_tree_density
from gingham.certificates.divergence import ball_maximum
from gingham.core.tree import clusters_of
from gingham.data import Sample
from gingham.datasets.planted import make_sequences

KNOWN = (16,)  # residues, one clustering for all positions


@pytest.fixture(scope="module")
def fitted():
    data = make_sequences(30000, n_residues=4, n_clusters=3, n_inner=2, random_state=0)
    model = gg.TreeCoClustering(
        3, ((0, 1, 2), (2, 3, 2)), tied=((0, 1, 2, 3), (4, 5)), loss="density", n_init=2, random_state=0
    ).fit(data.X[:10000])
    return model, data


def test_code_length_is_observed_covered_and_below_uniform(fitted):
    model, data = fitted
    certificate = gg.certify(model, data.X[:10000], population=KNOWN, bound="density")
    density = certificate.model
    assert density is model.density_
    assert certificate.empirical == pytest.approx(-model.score(data.X[:10000]))
    assert -model.score(data.X[10000:]) < certificate.value < certificate.parameters["uniform"]


def test_parts_by_hand(fitted):
    """The items of a leaf pay for no clustering, the roots for all of them; each ball has its share of δ."""
    model, data = fitted
    density, rows, n = model.density_, data.X[:1000], 1000
    certificate = gg.certify(model, rows, population=KNOWN, bound="density", delta=0.1)
    tree = density.tree
    at, items = clusters_of(tree, density.labels, list(rows.T), density.widths)
    share = log(len(tree.tables) + 1) + log(1 / 0.1) + tree.price
    paid = sum(nats for name, nats in certificate.terms.items() if "concentration" not in name and "times" not in name)
    roots = np.ravel_multi_index([at[r] for r in tree.roots], density.roots.shape)
    for name, codes, lengths, price in (
        ("node 0", items[0], -density.conditional[0], 0.0),
        ("roots", roots, -np.log(density.roots).ravel(), paid),
    ):
        observed = np.bincount(codes, minlength=len(lengths)) / n
        epsilon = (price + ln_shtarkov(len(lengths), n) + share) / n
        assert certificate.parameters[name] == pytest.approx(ball_maximum(observed, lengths, epsilon))


def test_a_sample_is_certified_like_its_rows(fitted):
    model, data = fitted
    rows = data.X[:1000]
    sample = Sample.of(list(rows.T), None, modes=model.density_.tree.columns())
    assert (
        gg.certify(model, sample, population=KNOWN, bound="density").value
        == gg.certify(model, rows, population=KNOWN, bound="density").value
    )


def test_shared_clusterings_are_paid_once_and_more_data_costs_less(fitted):
    model, data = fitted
    few = gg.certify(model, data.X[:1000], population=KNOWN, bound="density")
    many = gg.certify(model, data.X[:10000], population=KNOWN, bound="density")
    assert many.value - many.empirical < few.value - few.empirical
    assert sum("who belongs where" in name for name in many.terms) == 2  # one table of leaves, one of merges


def test_a_tree_has_no_word_for_items_it_has_not_seen(fitted):
    model, data = fitted
    for population in (None, (17,), {"residue": 16}):
        with pytest.raises(gg.RefusedCertificate, match=r"must cover every item|gives unseen items no probability"):
            gg.certify(model, data.X[:100], population=population, bound="density")


def test_weights_must_be_counts(fitted):
    model, data = fitted
    tree = model.density_.tree
    sample = Sample.of(list(data.X[:50].T), None, np.full(50, 0.5), modes=tree.columns())
    with pytest.raises(gg.RefusedCertificate, match="integers"):
        certify_tree_density(model.density_, sample)
