"""What every model promises, whatever its family: the models are found by walking `gingham.models`."""

from __future__ import annotations

import contextlib
import warnings

import numba
import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import gingham as gg
from gingham.errors import GinghamError
from model_examples import discovered, examples

EXAMPLES = examples()
ALL = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
EXCUSED = {id(e.checked): e.excused for e in EXAMPLES if isinstance(e.checked, BaseEstimator)}


@pytest.fixture(autouse=True)
def _unseen_ids_are_expected():
    # scikit-learn's checks predict rows they never fitted; the warning that says so is tested elsewhere.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.UnseenItemsWarning)
        yield


def test_every_model_that_is_found_has_an_example():
    assert set(discovered()) == {type(example.model).__name__ for example in EXAMPLES}


def test_every_model_goes_through_scikit_learns_checks_or_says_why_not():
    said = {type(example.model).__name__ for example in EXAMPLES if example.checked is not None}
    assert said == set(discovered())


def test_models_are_found():
    assert len(discovered()) >= 13


def test_names_of_examples_differ():
    names = [example.name for example in EXAMPLES]
    assert len(set(names)) == len(names)


@parametrize_with_checks(
    [example.checked for example in EXAMPLES if isinstance(example.checked, BaseEstimator)],
    expected_failed_checks=lambda model: EXCUSED.get(id(model), {}),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@ALL
def test_saved_and_loaded_it_says_the_same(example, tmp_path):
    model = example.fit()
    model.save(tmp_path / "model.gingham")
    loaded = gg.load(tmp_path / "model.gingham")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(example.answers(loaded), example.answers(model))
    loaded.save(tmp_path / "again.gingham")
    assert (tmp_path / "again.gingham").read_bytes() == (tmp_path / "model.gingham").read_bytes()


@ALL
def test_same_seed_same_result_on_one_thread_and_on_two(example):
    before = numba.get_num_threads()
    answers = []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            answers.append(example.answers(example.fit()))
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(*answers)


@ALL
def test_tiny_data_are_fitted_or_refused_in_a_sentence(example):
    for data in example.tiny.values():
        with contextlib.suppress(GinghamError):  # anything else, a warning included, is a failure
            clone(example.model).fit(*data)


@ALL
def test_parameters_come_back_and_fitting_leaves_them_alone(example):
    before = example.model.get_params(deep=False)
    copy = clone(example.model)
    copy.fit(*example.data)
    after = copy.get_params(deep=False)
    assert set(before) == set(after)
    for name, value in before.items():
        np.testing.assert_equal(after[name], value, err_msg=name) if not hasattr(value, "get_params") else None
