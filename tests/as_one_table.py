"""Estimators of pairs and of several views, as scikit-learn's checks can fit them: the checks bring one table."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

import gingham as gg
from gingham.data.adapt import Columns, id_columns

WIDTHS = "X has exactly two columns of ids, and this check fits one of another width"
REFUSED = (
    "check_fit_score_takes_y", "check_dont_overwrite_parameters", "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit", "check_estimators_dtypes", "check_sample_weights_list",
    "check_sample_weight_equivalence_on_dense_data", "check_dtype_object", "check_pipeline_consistency",
    "check_estimators_nan_inf", "check_estimators_pickle", "check_f_contiguous_array_estimator",
    "check_methods_sample_order_invariance", "check_methods_subset_invariance", "check_fit2d_1sample",
    "check_dict_unchanged", "check_fit2d_predict1d", "check_all_zero_sample_weights_error",
)  # fmt: skip
EXCUSED = dict.fromkeys(REFUSED, WIDTHS)


class _FirstTwo:
    """Of wider tables the first two columns are read; all else is the estimator's own."""

    def _columns(self, X, reset):
        columns = id_columns(X)
        if len(columns.columns) < 3:
            return super()._columns(X, reset)
        validate_data(self, X, skip_check_array=True, reset=reset)
        return Columns(columns.columns[:2], columns.names[:2])


class BayesianOfFirstTwo(_FirstTwo, gg.BayesianCoClustering):
    """Bayesian co-clustering of the first two columns."""


class RankerOfFirstTwo(_FirstTwo, gg.BasketRanker):
    """A ranking of the first two columns."""


class _Halves:
    """The two halves of a table's columns are the views, and their scores stand side by side."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags

    def _halves(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype="numeric")
        return [X[:, : X.shape[1] // 2], X[:, X.shape[1] // 2 :]]

    def fit(self, X, y=None):
        X = validate_data(self, X, dtype="numeric", ensure_min_samples=3, ensure_min_features=2)
        table = {name: vars(self)[name] for name in ("n_features_in_", "feature_names_in_") if name in vars(self)}
        super().fit([X[:, : X.shape[1] // 2], X[:, X.shape[1] // 2 :]])
        del self.feature_names_in_
        vars(self).update(table)
        return self

    def transform(self, X):
        return np.hstack(super().transform(self._halves(X)))

    def fit_transform(self, X, y=None):
        return self.fit(X).transform(X)

    def predict(self, X):
        return super().predict(self._halves(X))

    def fit_predict(self, X, y=None):
        return self.fit(X).labels_

    def score(self, X, y=None):
        return super().score(self._halves(X))

    def get_feature_names_out(self, input_features=None):
        names = super().get_feature_names_out()
        return np.array([f"{half}_{name}" for half in range(2) for name in names], dtype=object)

    def _framed(self, scores, view):
        return scores


class PairwiseOfHalves(_Halves, gg.PairwiseClusterAnalysis):
    """Pairwise cluster analysis of the halves of one table."""


class CCAOfHalves(_Halves, gg.KernelCCA):
    """Kernel CCA of the halves of one table."""
