"""Graphs on the command line: degree correction, direction, and a certificate of the groups that are shown."""

import json

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.datasets import planted_graph


@pytest.fixture
def hubs(tmp_path):
    matrix = planted_graph(300, 2, inside=20, outside=4, exponent=2.3, seed=1).adjacency.tocoo()
    rows, columns = (ends[matrix.row < matrix.col] for ends in (matrix.row, matrix.col))
    table = pl.DataFrame({"from": [f"n{i}" for i in rows], "to": [f"n{j}" for j in columns]})
    path = tmp_path / "edges.csv"
    table.write_csv(path)
    return path


@pytest.mark.parametrize(
    ("options", "corrected", "words"),
    [
        ([], True, "degree-corrected: "),
        (["--degree-correction", "yes"], True, "degree-corrected, as asked for"),
        (["--degree-correction", "no"], False, "plain, as asked for"),
        (["--directed"], False, "needs an undirected graph"),
    ],
)
def test_degree_correction_and_direction(gingham, hubs, options, corrected, words):
    out = hubs.with_name("m.gingham")
    ran = gingham("fit", hubs, "--model", "graph", "--out", out, "--json", *options)
    assert words in json.loads(ran.out)["degrees"]
    model = gg.load(out)
    assert model.degree_choice_.corrected is corrected
    assert model.directed_ is ("--directed" in options)


def test_other_words_and_other_models_are_refused(gingham, hubs):
    out = hubs.with_name("m.gingham")
    ran = gingham("fit", hubs, "--model", "graph", "--out", out, "--degree-correction", "maybe")
    assert ran.code != 0
    assert "choose auto, yes or no" in ran.err
    ran = gingham("fit", hubs, "--model", "cooccurrence", "--axes", "from,to", "--out", out, "--directed")
    assert ran.code != 0
    assert "has no use for --directed" in ran.err


@pytest.mark.parametrize("options", [(), ("--clusters", 12)])
def test_the_certificate_is_of_the_groups_that_are_shown(gingham, hubs, options):
    out = hubs.with_name("m.gingham")
    assert gingham("fit", hubs, "--model", "graph", *options, "--out", out).code == 0
    found = json.loads(gingham("certify", out, hubs, "--json").out)
    model, table = gg.load(out), pl.read_csv(hubs)
    sample = model.sample(table)
    summary = gg.summarize(model, sample)
    shown = summary.sides[0].labels_at(summary.size[0])
    # The squared error of the blocks of the groups that are shown, computed pair by pair. The guarantee rounds the
    # answers of the blocks, which adds a little.
    n = len(shown)
    adjacency = np.zeros((n, n))
    adjacency[sample.codes] = 1.0
    adjacency += adjacency.T
    blocks = np.eye(summary.size[0])[shown]
    pairs = blocks.sum(axis=0)[:, None] * blocks.sum(axis=0) - np.diag(blocks.sum(axis=0))
    expected = (blocks.T @ adjacency @ blocks / np.maximum(pairs, 1))[shown][:, shown]
    squares = ((adjacency - expected) ** 2)[np.triu_indices(n, 1)]
    assert squares.mean() <= found["pairs_of_nodes"]["empirical"] < squares.mean() + 0.003
    assert found["pairs_of_nodes"]["value"] < 1
