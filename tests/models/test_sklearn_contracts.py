"""scikit-learn's own contracts, with no exception."""

import warnings

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import gingham as gg


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    # The checks predict rows they never fitted; the warning that says so is tested elsewhere.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


@parametrize_with_checks(
    [
        gg.CoClusteringRegressor(max_iter=3, random_state=0),
        gg.CoClusteringRegressor(loss="quadratic", max_iter=3),
        gg.CoClusteringClassifier(max_iter=20),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
