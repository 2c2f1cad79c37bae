"""What every model promises, whatever its family: the models are found by walking `gingham.models`."""

from __future__ import annotations

import contextlib
import re
import signal
import warnings

import numba
import numpy as np
import pytest
from sklearn.base import (
    BaseEstimator,
    BiclusterMixin,
    ClassifierMixin,
    ClusterMixin,
    DensityMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

import gingham as gg
from gingham.errors import GinghamError, InterruptedWarning
from gingham.fitting.checkpoints import CheckpointFile, kept_in
from model_examples import discovered, examples

EXAMPLES = examples()
ALL = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
SCIKIT_LEARN = (
    BaseEstimator, BiclusterMixin, ClassifierMixin, ClusterMixin, DensityMixin, RegressorMixin, TransformerMixin,
)  # fmt: skip
CONVENTIONAL = {
    "fit", "predict", "predict_proba", "score", "transform", "inverse_transform", "fit_predict", "fit_transform",
    "partial_fit", "score_samples", "decision_function", "get_feature_names_out", "n_features_in_",
    "feature_names_in_", "classes_", "n_iter_", "labels_", "converged_", "row_labels_", "column_labels_", "rows_",
    "columns_", "n_clusters_", "engine_", "perplexity", "lower_bound_",
}  # fmt: skip
# Public names of a fitted model beyond scikit-learn's own: at most 25; those with more may fall, never rise.
MOST_NAMES = {
    "BasketRanker": 31,
}
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


def own_names(model) -> list[str]:
    """Public attributes and methods of a fitted model beyond scikit-learn's own and its parameters."""
    usual = {name for kind in SCIKIT_LEARN for name in dir(kind)} | CONVENTIONAL | set(model.get_params(deep=False))
    shown = {name for name in (*dir(type(model)), *vars(model)) if not name.startswith("_")}
    return sorted(name for name in shown - usual if not re.fullmatch(r"set_\w+_request", name))


@ALL
def test_an_estimator_has_at_most_twelve_parameters(example):
    parameters = example.model.get_params(deep=False)
    assert len(parameters) <= 12, sorted(parameters)


@ALL
def test_a_fitted_model_shows_few_names(example):
    names = own_names(example.fit())
    assert len(names) <= MOST_NAMES.get(type(example.model).__name__, 25), names


STARTED = [example for example in EXAMPLES if "n_init" in example.model.get_params(deep=False)]


@pytest.mark.parametrize("n_init", [0, 1.5, "many", True])
@pytest.mark.parametrize("example", STARTED, ids=lambda example: example.name)
def test_a_number_of_starts_that_is_none_is_refused_with_a_sentence(example, n_init):
    with pytest.raises(GinghamError, match=re.escape(f"n_init={n_init!r} must be an integer ≥ 1")):
        clone(example.model).set_params(n_init=n_init).fit(*example.data)


def ladder(kind: type) -> int:
    """The longest line of gingham's classes above a class."""
    return max((1 + ladder(base) for base in kind.__bases__ if base.__module__.startswith("gingham.")), default=0)


@pytest.mark.parametrize("name", discovered())
def test_at_most_three_classes_stand_between_an_estimator_and_scikit_learn(name):
    assert ladder(discovered()[name]) <= 3
    assert name != "CoClusteringRegressor" or ladder(discovered()[name]) == 3  # the test sees what it counts


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


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.keeps_nothing is None], ids=lambda example: example.name)
def test_after_ctrl_c_a_fit_goes_on_and_ends_where_it_would_have_ended(example, tmp_path, monkeypatch):
    path, keep = tmp_path / "fit.checkpoint", CheckpointFile.keep

    def kept(press_at: int) -> int:
        """A fit that is interrupted when it offers its state for that time; how often it did."""
        offers = []

        def press(file, *offer):
            offers.append(1)
            if len(offers) == press_at:
                signal.raise_signal(signal.SIGINT)
            keep(file, *offer)

        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore", InterruptedWarning)
            patch.setattr(CheckpointFile, "keep", press)
            with contextlib.suppress(KeyboardInterrupt), kept_in(path, "this fit", False, 0.0) as (checkpoint, known):
                assert known is None
                example.fit(checkpoint=checkpoint)
        return len(offers)

    whole = example.answers(example.fit())
    n_offers = kept(press_at=0)
    assert n_offers
    path.unlink(missing_ok=True)
    kept(press_at=min(2, n_offers))
    assert path.exists()
    with kept_in(path, "this fit", True, 0.0) as (checkpoint, known):
        assert known is not None
        resumed = example.fit(checkpoint=checkpoint)
    assert not resumed.interrupted_
    np.testing.assert_array_equal(example.answers(resumed), whole)
    # What was kept is of this data and these settings: a fit with others must not take it for its own.
    for other in example.tiny.values():
        with kept_in(path, "this fit", True, 0.0) as (checkpoint, _), pytest.raises(GinghamError):
            clone(example.model).fit(*other, checkpoint=checkpoint)
    if "random_state" in example.model.get_params():
        reseeded = clone(example.model).set_params(random_state=4321)
        with kept_in(path, "this fit", True, 0.0) as (checkpoint, _), pytest.raises(GinghamError, match="other data"):
            reseeded.fit(*example.data, checkpoint=checkpoint)


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
