"""Partitions by known columns are offered where they predict clearly better than the groups that were found."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import gingham as gg
from gingham.data import Mode
from gingham.summary.item_tables import properties_of
from gingham.summary.known_columns import best_known
from gingham.summary.values import Observed, Relation

N, M = 120, 90


def ratings(rng, strength):
    """Few ratings of each item, higher where the kinds of both sides agree: too few to find groups by themselves."""
    X = np.column_stack([rng.integers(0, N, 2500), rng.integers(0, M, 2500)])
    kinds = rng.integers(0, 2, N), rng.integers(0, 2, M)
    same = kinds[0][X[:, 0]] == kinds[1][X[:, 1]]
    y = 3 + rng.normal(size=N)[X[:, 0]] + np.where(same, strength, -strength) + rng.normal(size=len(X))
    return X, y, kinds


def info(rng, kinds):
    words = np.array(["women", "men"])
    return {
        "user": pl.DataFrame({"user": np.arange(N), "gender": words[kinds[0]], "age": rng.integers(18, 60, N)}),
        "film": pl.DataFrame({"film": np.arange(M), "made for": words[kinds[1]], "colour": rng.integers(0, 4, M)}),
    }


def observed(X, measure, values=None, labels=()):
    modes = Mode("user", np.arange(N)), Mode("film", np.arange(M))
    relation = Relation((0, 1), (X[:, 0], X[:, 1]), measure, values, labels=labels)
    return Observed(modes, (relation,), (None, None))


def offered(of, about):
    known = {at: properties_of(about[mode.name], mode).partitions for at, mode in enumerate(of.modes)}
    return best_known(of, known, 0, 0.0, 0.0, None)


def test_columns_that_predict_are_offered_and_called_what_they_are() -> None:
    rng = np.random.default_rng(0)
    X, y, kinds = ratings(rng, 0.25)
    about = info(rng, kinds)
    model = gg.CoClusteringRegressor((1, 1), loss="quadratic", random_state=0).fit(
        pl.DataFrame({"user": X[:, 0], "film": X[:, 1]}), y
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, bare = gg.summarize(model, item_info=about), gg.summarize(model)
    assert found.known.columns == (("user", "gender"), ("film", "made for"))
    assert found.known.n_candidates == 4
    assert found.known.gain > 7 * found.known.error / 2
    assert "by the column 'gender'" in str(found)
    assert not found.found
    assert "No structure" not in str(found)
    assert found.to_dict()["known"] == found.known.text
    assert bare.known is None
    assert "No structure" in bare.verdict


def test_the_error_in_the_sentence_is_a_direct_computation() -> None:
    """Of a single partition: averages of the seen entries, then means of the blocks of what they leave over."""
    from gingham.summary.measure import additive_effects, folds_of

    X, y, kinds = ratings(np.random.default_rng(0), 0.4)
    squares, before = [], []
    for held in folds_of(len(y), 0):
        rest = y - additive_effects(X[~held].T, (N, M), y[~held], None).at(X.T)
        block = 2 * kinds[0][X[:, 0]] + kinds[1][X[:, 1]]
        means = np.bincount(block[~held], rest[~held]) / (np.bincount(block[~held]) + 5.0)
        squares.append((rest - means[block])[held] ** 2)
        before.append(rest[held] ** 2)
    found = best_known(observed(X, "difference", y), {0: {"a": kinds[0]}, 1: {"b": kinds[1]}}, 0, 0.0, 0.0, None)
    assert found.gain == pytest.approx(np.concatenate(before).mean() - np.concatenate(squares).mean())
    assert f"{np.sqrt(np.concatenate(squares).mean()):.4g}" in found.text


@pytest.mark.parametrize(("measure", "draws", "least"), [("difference", 50, 48), ("labels", 25, 24), ("lift", 25, 24)])
def test_columns_that_say_nothing_are_not_offered(measure, draws, least) -> None:
    silent = 0
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        X, y, kinds = ratings(rng, 0.25)
        about = info(rng, tuple(rng.permutation(own) for own in kinds))
        values = {"difference": y, "labels": (y > 3).astype(int), "lift": None}[measure]
        silent += offered(observed(X, measure, values, ("low", "high")), about) is None
    assert silent >= least


def test_labels_and_counts_have_known_columns_too() -> None:
    rng = np.random.default_rng(0)
    X, _, kinds = ratings(rng, 0.0)
    same = kinds[0][X[:, 0]] == kinds[1][X[:, 1]]
    values = (rng.random(len(X)) < np.where(same, 0.65, 0.35)).astype(int)
    assert "nats less" in offered(observed(X, "labels", values, ("no", "yes")), info(rng, kinds)).text
    kept = rng.random(len(X)) < np.where(same, 0.9, 0.4)
    assert offered(observed(X[kept], "lift"), info(rng, kinds)).columns[0] == ("user", "gender")


def test_groups_that_predict_as_well_are_not_outdone() -> None:
    X, y, kinds = ratings(np.random.default_rng(0), 0.4)
    of, known = observed(X, "difference", y), {0: {"a": kinds[0]}, 1: {"b": kinds[1]}}
    alone = best_known(of, known, 0, 0.0, 0.0, None)
    assert best_known(of, known, 0, alone.gain, alone.error, None) is None
    assert best_known(of, known, 0, alone.gain / 2, alone.error, None).gain_found == alone.gain / 2
