"""What was read off the data is never called given, and nothing outside what was stated is moved inside.

Each test is an attack that had succeeded: a certificate on labels that happened to be observed, or on losses that had
been clipped into a range. benchmarks/robustness/attacks_cover.py measures how false they were.
"""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

import gingham as gg
from gingham.cells import Absolute, CellModel, Quadratic, TableLoss, make_cell
from gingham.certificates import certify, certify_predictions
from gingham.certificates.split import certify_prior
from gingham.cli.app import run
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Bounds, Mode, Moments
from gingham.data.graphs import from_graph

STARS = Alphabet.of(range(1, 6), given=True)
PAIRS = np.array(list(product(range(8), range(5))))


def single(cell, answer):
    """One item, one cluster, one answer."""
    return Posterior(Structure.grid((Mode("x", np.array([0])),)), (cell,), (np.ones((1, 1)),), (np.array([answer]),))


# bounds know whether they were given


def test_bounds_of_a_cell_are_as_given_as_what_they_come_from():
    assert Quadratic(bounds=(0, 1)).bounds == Bounds(0.0, 1.0, given=True)
    assert Quadratic(STARS).bounds.given
    read = Alphabet.of([1, 3], given=False)
    assert Quadratic(read).bounds == Bounds(1.0, 3.0, given=False)
    assert not Quadratic(read, bounds=(1, 3)).bounds.given  # as model files of earlier versions keep them
    assert Quadratic(read, bounds=(0, 5)).bounds.given
    low, high = Quadratic(bounds=(2, 4)).bounds
    assert (low, high) == (2.0, 4.0)
    for wrong in ((4, 2), (0, np.inf), (1,), "ab", 3):
        with pytest.raises(gg.GinghamError, match="bounds="):
            make_cell("quadratic", None, wrong)


def test_bounds_that_were_read_off_are_refused_and_stated_ones_serve(tmp_path):
    y = 1 + 4 * np.random.default_rng(0).random(len(PAIRS))
    stated = gg.CoClusteringRegressor(2, loss="quadratic", bounds=(0, 6), random_state=0).fit(PAIRS, y)
    stated.save(tmp_path / "m.gingham")
    again = gg.load(tmp_path / "m.gingham")
    assert again.posterior_.cells[0].bounds == Bounds(0.0, 6.0, given=True)
    assert certify(again, PAIRS, y).value == certify(stated, PAIRS, y).value
    observed = single(Quadratic(bounds=Bounds(y.min(), y.max(), given=False)), y.mean())
    with pytest.raises(gg.RefusedCertificate, match="inferred from the data"):
        certify(observed, np.zeros((len(y), 1), int), y)
    tree = gg.TreeCoClustering(2, loss="quadratic", bounds=(0, 6), random_state=0).fit(PAIRS, np.round(y))
    assert not tree.posterior_.cells[0].alphabet.given
    found = certify(tree, PAIRS, np.round(y))  # the bounds are given, whatever labels were seen between them
    assert any(a.text == "Labels lie between 0 and 6." and a.status == "given" for a in found.assumptions)


def test_the_command_line_does_not_make_labels_given(tmp_path, capsys):
    y = np.round(1 + 4 * np.random.default_rng(0).random(len(PAIRS)), 3)
    table, out = tmp_path / "t.csv", str(tmp_path / "m.gingham")
    table.write_text("user,film,value\n" + "".join(f"{u},{f},{v}\n" for (u, f), v in zip(PAIRS, y)))
    fit = ["fit", str(table), "--axes", "user,film", "--label", "value", "--clusters", "2", "--loss", "quadratic", "-q"]
    for more in ([], ["--holdout", "0"]):
        assert run([*fit, *more, "-o", out]) == 0
        model = gg.load(out)
        bounds, label_values = model.posterior_.cells[0].bounds, model.posterior_.cells[0].alphabet
        assert bounds is None or not bounds.given
        assert label_values is None or not label_values.given
        with pytest.raises(gg.RefusedCertificate):
            certify(model, PAIRS, y)
        assert run(["certify", out, str(table)]) == 2
    assert run([*fit, "--bounds", "0,6", "-o", out]) == 0
    assert gg.load(out).posterior_.cells[0].bounds == Bounds(0.0, 6.0, given=True)
    capsys.readouterr()


# weights of a graph


def zeros_and_ones():
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((12, 12)) < 0.5, 1)
    return (upper | upper.T).astype(float)


def test_zeros_and_ones_of_a_weighted_graph_are_not_given():
    matrix, labels = zeros_and_ones(), np.arange(12) % 2
    weighted = nx.from_numpy_array(matrix)  # every edge has weight 1.0
    listed = [(int(i), int(j), 1.0) for i, j in np.argwhere(np.triu(matrix))]
    for graph in (matrix, matrix.astype(int), sparse.csr_array(matrix), weighted, listed):
        with pytest.raises(gg.RefusedCertificate, match=r"State the possible weights.*alphabet=\(0, 1\)"):
            certify(labels, graph)
        assert certify(labels, graph, alphabet=(0, 1)).value > 0
        for loss in ("auto", "quadratic"):
            model = gg.GraphClustering(2, loss=loss, random_state=0).fit(graph)
            assert not model.posterior_.cells[0].alphabet.given
            with pytest.raises(gg.RefusedCertificate, match="inferred from the data"):
                certify(model, model.sample(graph))
            assert certify(model, model.sample(graph), alphabet=(0, 1)).value > 0


def test_a_graph_without_weights_has_zero_and_one():
    matrix, labels = zeros_and_ones(), np.arange(12) % 2
    edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix))]
    plain = nx.Graph(edges)
    for graph in (matrix > 0, sparse.csr_array(matrix > 0), plain, edges):
        assert not from_graph(graph).weighted
        assert certify(labels, graph).value > 0
        assert gg.GraphClustering(2, random_state=0).fit(graph).posterior_.cells[0].alphabet.given
    assert not from_graph(matrix, weight=None).weighted
    assert not from_graph(sparse.csr_array(matrix), weight=None).weighted
    assert from_graph(matrix).take(np.array([0, 1])).weighted
    assert not from_graph(edges, pairs=np.array(edges[:5])).weighted


def test_a_graph_of_an_earlier_version_is_asked_for_its_weights(tmp_path):
    model = gg.GraphClustering(2, random_state=0).fit(zeros_and_ones() > 0)
    model.save(tmp_path / "g.gingham")
    assert gg.load(tmp_path / "g.gingham").posterior_.cells[0].alphabet.given


# nothing is moved into its range


def test_bounds_must_contain_the_alphabet_and_the_labels():
    y = np.tile([1.0, 5.0], 20)
    for model in (
        gg.CoClusteringRegressor(2, loss="quadratic", alphabet=range(1, 6), bounds=(2, 4)),
        gg.TreeCoClustering(2, loss="quadratic", alphabet=range(1, 6), bounds=(2, 4)),
    ):
        with pytest.raises(gg.GinghamError, match="do not contain the alphabet, which goes from 1 to 5"):
            model.fit(PAIRS, y)
    many = y + np.linspace(0, 0.5, len(y))  # measurements
    for model in (
        gg.CoClusteringRegressor(2, loss="quadratic", bounds=(2, 6)),
        gg.BayesianCoClustering(2, family="gaussian", bounds=(2, 6)),
    ):
        with pytest.raises(gg.GinghamError, match=r"label of row 0 is 1 and lies outside bounds=\(2, 6\)"):
            model.fit(PAIRS, many)
    with pytest.raises(gg.GinghamError, match="The weight of pair 1 is 7"):
        gg.GraphClustering(2, loss="quadratic", bounds=(0, 2)).fit([(0, 1, 0.5), (1, 2, 7.0)])
    with pytest.raises(gg.GinghamError, match="alphabet's label 0 is 1"):
        certify_predictions(y, y, loss="quadratic", alphabet=(1, 5), label_bounds=(2, 4))
    wide = certify_predictions(y, y, loss="quadratic", alphabet=(1, 5), label_bounds=(0, 6))
    assert wide.worst == 36.0
    with pytest.raises(gg.RefusedCertificate, match="label_bounds= is for losses of numbers"):
        certify_predictions(y, y, loss="zero-one", alphabet=(1, 5), label_bounds=(0, 6))


def test_answers_outside_the_bounds_are_an_error():
    X, y = np.zeros((50, 1), int), np.tile([1.5, 4.5], 25)
    outside = single(Quadratic(bounds=(1, 5)), 9.0)
    for options in ({}, {"bound": "holdout", "predictor": "gibbs"}):
        with pytest.raises(gg.GinghamError, match="answer of cell 0 is 9"):
            certify(outside, X, y, **options)
    with pytest.raises(gg.RefusedCertificate, match=r"prediction 9\.0 in row 0"):
        certify(outside, X, y, bound="holdout", predictor="mean")
    on_alphabet = single(Quadratic(STARS), 9.0)
    for call in (
        lambda: certify(on_alphabet, X, np.round(y)),
        lambda: certify(on_alphabet, X, np.round(y), bound="holdout", predictor="gibbs"),
        lambda: certify(on_alphabet, X, np.round(y), bound="gain"),
    ):
        with pytest.raises(gg.GinghamError, match="lies outside"):
            call()
    rounded = single(Quadratic(bounds=(1, 5)), np.float32(5.0000005))  # single precision
    assert certify(rounded, X, y).posterior.answers[0][0] == 5.0


class Understated(TableLoss):
    """Says that no loss is above 1; the largest is 4."""

    name = "understated"

    def __init__(self, alphabet):
        super().__init__(alphabet, np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers)))
        self.range = 1.0


class Overshooting(CellModel):
    """(y − f)² of numbers, said to be at most a quarter of what it can be."""

    name = "overshooting"
    features = Moments(2)
    convex, answers, needs_alphabet, n_answers = True, "number", False, None

    def __init__(self, alphabet=None, bounds=(0.0, 2.0)):
        self.bounds, self.range = bounds, 1.0

    answer, coef, values, distribution = (
        Quadratic.answer,
        Quadratic.coef,
        Quadratic.values,
        Quadratic.distribution,
    )


def test_losses_beyond_their_range_are_an_error():
    X, y = np.zeros((50, 1), int), np.tile([1, 5], 25)
    posterior = single(Understated(STARS), 0)
    sample_of_it = gg.data.Sample.of([X[:, 0]], y, modes=posterior.structure.modes, alphabet=STARS)
    stated = gg.certificates.Assumption("Labels are stars.", "given")
    for call in (
        lambda: certify(posterior, X, y),
        lambda: certify(posterior, X, y, bound="holdout", predictor="gibbs"),
        lambda: certify(posterior, X, y, bound="holdout", predictor="median"),
        lambda: certify(posterior, X, y, bound="gain"),
        lambda: certify_prior(posterior, sample_of_it, 0.05, stated),
        lambda: certify_predictions(y, 6 - y, loss=Understated, alphabet=range(1, 6)),
    ):
        with pytest.raises(gg.GinghamError, match=r"understated loss of 4 lies outside the range .* 0 to 1"):
            call()
    numbers = single(Overshooting(), 0.5)
    with pytest.raises(gg.GinghamError, match="overshooting loss lies outside its stated range"):
        certify(numbers, X, np.tile([0.25, 2.0], 25))
    honest = single(Absolute(STARS), 0)
    assert certify(honest, X, y).worst == 4.0
