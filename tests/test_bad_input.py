"""More than sixty kinds of bad input through Python: each is refused with a sentence."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import gingham as gg
from gingham.data import Alphabet, Sample
from gingham.errors import GinghamError

R, C = gg.CoClusteringRegressor, gg.CoClusteringClassifier
X = np.column_stack([np.arange(40) % 8, np.arange(40) % 5])
Y = np.arange(40) % 3
NINE = np.arange(900).reshape(-1, 9) % 25
NAN, INF = float("nan"), float("inf")


def fitted(**more):
    return R(2, alphabet=range(3), max_iter=5, random_state=0, **more).fit(X, Y)


def frame_with_null():
    return pl.DataFrame({"a": [1, None, 3], "b": [1, 2, 3]})


def masked(values):
    """The same with everything in row 3 masked."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[3] = True
    return np.ma.array(values, mask=mask)


def joint(X, y):
    return gg.JointCoClustering({"a": 2, "b": 2}).fit({("a", "b"): (X, y)})


def views(*matrices):
    return gg.PairwiseClusterAnalysis(1, ridge=0.1).fit(list(matrices))


CASES = {
    # X
    "one-dimensional X": (lambda: R().fit([1, 2, 3], [1, 2, 3]), "2D"),
    "three-dimensional X": (lambda: R().fit(np.zeros((2, 2, 2)), [1, 2]), "2D|3D"),
    "no rows": (lambda: R().fit(np.zeros((0, 2)), []), "0 sample"),
    "no columns": (lambda: R().fit(np.zeros((3, 0)), [1, 2, 3]), "0 feature"),
    "sparse X": (lambda: R().fit(sparse.eye(3).tocsr(), [1, 2, 3]), "from_matrix"),
    "complex ids": (lambda: R().fit(np.ones((3, 2)) * 1j, [1, 2, 3]), "Complex"),
    "NaN ids": (lambda: R().fit([[1.0, NAN], [2.0, 1.0]], [1, 2]), "NaN in row 0"),
    "infinite ids": (lambda: R().fit([[1.0, INF], [2.0, 1.0]], [1, 2]), "infinity"),
    "None as id": (lambda: R().fit([("a", None), ("b", "c")], [1, 2]), "missing id"),
    "null in a polars frame": (lambda: R().fit(frame_with_null(), [1, 2, 3]), "missing id"),
    "NaN in a pandas frame": (lambda: R().fit(pd.DataFrame({"a": [1, NAN], "b": [1, 2]}), [1, 2]), "missing id|NaN"),
    "ragged rows": (lambda: R().fit([(1, 2), (1, 2, 3)], [1, 2]), "different lengths"),
    "dictionaries as ids": (lambda: R().fit([({}, 1), ({}, 2)], [1, 2]), "hashable"),
    "ids in lists": (lambda: R().fit([([1], 1), ([2], 2)], [1, 2]), "hashable"),
    # y
    "no y": (lambda: R().fit(X, None), "requires y"),
    "y too short": (lambda: R().fit(X, Y[:5]), "inconsistent"),
    "y too long": (lambda: R().fit(X, np.append(Y, 1)), "inconsistent"),
    "y is a matrix": (lambda: R().fit(X, np.ones((40, 2))), "1d|shape"),
    "NaN in y": (lambda: R().fit(X, np.where(Y == 1, NAN, Y)), "NaN in row 1"),
    "infinite y": (lambda: R().fit(X, np.where(Y == 1, INF, Y)), "infinity"),
    "words for a regressor": (lambda: R().fit(X, np.array(["a", "b"] * 20)), "must be numbers"),
    "measurements for a classifier": (lambda: C().fit(X, np.linspace(0, 1, 40)), "continuous|Unknown label"),
    "too many labels": (lambda: R(loss="absolute").fit(np.arange(3000).reshape(-1, 2), np.arange(1500)), "1000"),
    "label outside the alphabet": (lambda: R(alphabet=(0, 1)).fit(X, Y), "not in the alphabet"),
    # weights
    "negative weight": (lambda: R().fit(X, Y, -np.ones(40)), "weights must be finite and ≥ 0"),
    "NaN weight": (lambda: R().fit(X, Y, np.full(40, NAN)), "nan in row 0"),
    "weights too short": (lambda: R().fit(X, Y, np.ones(3)), "shape|inconsistent"),
    "zero weights": (lambda: R().fit(X, Y, np.zeros(40)), "zero"),
    # parameters
    "no clusters": (lambda: R(n_clusters=0).fit(X, Y), "integer"),
    "half a cluster": (lambda: R(n_clusters=1.5).fit(X, Y), "integer"),
    "true clusters": (lambda: R(n_clusters=True).fit(X, Y), "integer"),
    "sizes for three modes": (lambda: R(n_clusters=(2, 2, 2)).fit(X, Y), "3 entries"),
    "clusters in words": (lambda: R(n_clusters="many").fit(X, Y), "unknown"),
    "unknown loss": (lambda: R(loss="hinge").fit(X, Y), "loss='hinge'"),
    "table of the wrong shape": (lambda: R(loss=np.zeros((2, 2)), alphabet=range(3)).fit(X, Y), "table|shape"),
    "quadratic classifier": (lambda: C(loss="quadratic").fit(X, Y), "Regressor"),
    "negative beta": (lambda: R(beta=-1).fit(X, Y), "beta=-1"),
    "NaN beta": (lambda: R(beta=NAN).fit(X, Y), "beta=nan"),
    "infinite beta": (lambda: R(beta=INF).fit(X, Y), "beta=inf"),
    "empty alphabet": (lambda: R(alphabet=()).fit(X, Y), "at least one"),
    "NaN alphabet": (lambda: R(alphabet=(1.0, NAN)).fit(X, Y), "finite"),
    "unknown start": (lambda: R(start="magic").fit(X, Y), "start='magic'"),
    "labels of the wrong length": (lambda: R(start=[[0], [1]]).fit(X, Y), "must be 8 integers"),
    "labels for one mode": (lambda: R(start=[np.zeros(8, int)]).fit(X, Y), "2 modes"),
    "no restarts": (lambda: R(n_init=0).fit(X, Y), "n_init"),
    "no sweeps": (lambda: R(max_iter=0).fit(X, Y), "max_iter"),
    "negative tolerance": (lambda: R(tol=-1).fit(X, Y), "tol"),
    "unknown objective": (lambda: R(objective="fame").fit(X, Y), "objective='fame'"),
    "unknown backend": (lambda: R(backend="abacus").fit(X, Y), "backend"),
    "bad seed": (lambda: R(random_state="x").fit(X, Y), "seed"),
    "too many cells": (
        lambda: R(n_clusters=20).fit(np.arange(900).reshape(-1, 9) % 25, np.arange(100) % 3),
        "GiB|cells",
    ),
    # predictions
    "predict unfitted": (lambda: R().predict(X), "not fitted"),
    "predict three modes": (lambda: fitted().predict(np.zeros((2, 3), int)), "features|columns"),
    "unknown rule": (lambda: fitted().predict(X, rule="best"), "rule='best'"),
    "distribution of numbers": (lambda: R(2, loss="quadratic").fit(X, Y).predict_distribution(X), "not with a distr"),
    # matrices and frames
    "matrix without a word on zeros": (lambda: gg.from_matrix(np.eye(2)), "missing="),
    "implicit in a dense matrix": (lambda: gg.from_matrix(np.eye(2), missing="implicit"), "sparse"),
    "nan in a sparse matrix": (lambda: gg.from_matrix(sparse.eye(3).tocsr(), missing="nan"), "ambiguous"),
    "empty matrix": (lambda: gg.from_matrix(np.zeros((0, 3)), missing="nan"), "empty"),
    "nothing observed": (lambda: gg.from_matrix(np.full((2, 2), NAN), missing="nan"), "No entry"),
    "infinity in a matrix": (lambda: gg.from_matrix(np.array([[INF]]), missing="nan"), "inf"),
    "NaN that is not missing": (lambda: gg.from_matrix(np.array([[NAN]]), missing="none"), "missing='nan'"),
    "column gone": (lambda: gg.from_frame(pl.DataFrame({"a": [1]}), ["a"], "b"), "no column 'b'"),
    "clusters into a list": (lambda: gg.to_anndata(fitted(), [1, 2]), "AnnData"),
    "clusters of nothing": (lambda: gg.to_anndata(R(), SimpleNamespace(obs_names=[], var_names=[])), "two modes"),
    # masks
    "masked ids": (lambda: R().fit(masked(X), Y), "X is masked in row 3, column 0"),
    "masked labels": (lambda: R().fit(X, masked(Y)), "y is masked in row 3"),
    "masked labels of a joint model": (lambda: joint(X, masked(Y)), "y is masked in row 3"),
    "masked weights": (lambda: R().fit(X, Y, masked(Y)), "sample_weight is masked in row 3"),
    "masked counts": (lambda: gg.CoOccurrenceClustering(2).fit(masked(np.eye(6))), "X is masked in row 3, column 0"),
    "masked views": (lambda: views(masked(np.eye(6)), np.eye(6)), "view 0 is masked in row 3"),
    "masked where all was observed": (lambda: gg.from_matrix(masked(np.eye(4)), "none"), "Entry .3, 0. is masked"),
    "masked pairs of all": (lambda: gg.GraphClustering(2).fit(masked(np.eye(4))), "pairs='listed'"),
    # numbers beyond all others
    "labels of 1e308": (lambda: R().fit(X, np.where(Y == 1, 1e308, -1e308)), "Label .*1e.308 in row"),
    "labels of a joint model": (lambda: joint(X, np.where(Y == 1, 1e308, -1e308)), "Label .*1e.308 in row"),
    "labels of layers": (lambda: gg.LayeredCoClusteringRegressor().fit(X, Y * 1e20), "the limit is 1e.15"),
    "an alphabet of 1e308": (lambda: R(alphabet=(-1e308, 1e308)).fit(X, Y), "Label"),
    "edges of 1e308": (lambda: gg.GraphClustering(2).fit([(0, 1, 1e308), (1, 2, 1.0)]), "Weight 1e.308 in row 0"),
    "counts of 1e308": (lambda: gg.CoOccurrenceClustering(2).fit(np.eye(3) * 1e308), "2..53"),
    "weights of 1e308": (lambda: R().fit(X, Y, np.full(40, 1e308)), "2..53"),
    "weights of a ranking": (lambda: gg.BasketRanker().fit(X, sample_weight=np.full(40, 1e308)), "2..53"),
    "beta of 1e308": (lambda: R(2, beta=1e308).fit(X, Y), "beta=1e.308 is too large"),
    "beta of a graph": (
        lambda: gg.GraphClustering(2, beta=1e308, solver="nodewise").fit([(0, 1), (1, 2)]),
        "too large",
    ),
    "an alphabet of two billion": (lambda: R(alphabet=range(2 * 10**9)).fit(X, Y), "2,000,000,000"),
    "an alphabet without end": (lambda: R(alphabet=range(10**30)).fit(X, Y), "at most 100,000"),
    "a seed of 23 digits": (lambda: R(random_state=10**22).fit(X, Y), "Seed must be between"),
    # files
    "no file": (lambda: gg.load("absent.gingham"), "no model file"),
    "save unfitted": (lambda: R().save("x.gingham"), "not fitted"),
    "save into nowhere": (lambda: fitted().save("no/where/x.gingham"), "does not exist"),
    # certificates
    "certify unfitted": (lambda: gg.certify(R(), X, Y), "fit it first"),
    "certify without y": (lambda: gg.certify(fitted(), X), "needs the labels"),
    "certify read-off labels": (lambda: gg.certify(R(2).fit(X, Y), X, Y), "State them"),
    "certify an unbounded loss": (
        lambda: gg.certify(R(2, loss="quadratic").fit(X, Y + 0.5), X, Y + 0.5),
        "unbounded|State",
    ),
    "delta of zero": (lambda: gg.certify(fitted(), X, Y, delta=0), "between 0 and 1"),
    "unknown bound": (lambda: gg.certify(fitted(), X, Y, bound="magic"), "magic"),
    "median by Gibbs": (lambda: gg.certify(fitted(), X, Y, predictor="median"), "holdout"),
    "fractional counts": (lambda: gg.certify(fitted(), X, Y, sample_weight=np.full(40, 0.5)), "integers"),
    "unseen items": (lambda: gg.certify(fitted(), X + 100, Y), "none of the ids is among"),
    "clusters for one mode": (lambda: gg.certify([np.zeros(8)], X, Y, alphabet=range(3)), "one per"),
    "clusters without alphabet": (lambda: gg.certify([np.zeros(8), np.zeros(5)], X, Y), "State the possible"),
    # below the door
    "two labels for one alphabet row": (lambda: Sample.of([[1, 2]], [1]), "rows"),
    "nested alphabet": (lambda: Alphabet.of(np.zeros((2, 2)), given=True), "flat"),
}


def test_there_are_sixty_cases():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error")  # no overflow on the way to the sentence
def test_bad_input_gets_its_sentence(name):
    call, sentence = CASES[name]
    # ValueError and TypeError are what scikit-learn's contracts ask for; GinghamError is a ValueError
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        call()
    assert len(str(caught.value)) > 15


ANYTHING = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=3), st.booleans(), st.binary(max_size=2)
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(ANYTHING, ANYTHING), max_size=6), st.lists(ANYTHING, max_size=6))
@pytest.mark.filterwarnings("ignore")
def test_whatever_comes_is_fitted_or_refused_in_words(rows, labels):
    # GinghamError, or scikit-learn's word on targets; anything else would come through
    with contextlib.suppress(ValueError, TypeError):
        C(2, max_iter=2, random_state=0).fit(rows, labels)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_are_a_model_by_accident(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "x.gingham"
    path.write_bytes(content)
    with pytest.raises(GinghamError):
        gg.load(path)
