"""What a fitted Bayesian co-clustering says: memberships, predictions with their uncertainty, pictures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import DensityMixin

from gingham.arrays import AnyArray, Floats
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.models.base import GridModel
from gingham.models.bayesian import coembedding, predictive
from gingham.models.bayesian.dirichlet import DirichletPosterior
from gingham.models.bayesian.fit import Variational

PROTOCOLS = ("held-out", "paper", "paper-bound")


class MixedMemberships(DensityMixin, GridModel):
    """Everything about `BayesianCoClustering` that comes after the fit."""

    beliefs_: DirichletPosterior
    _sample: Sample

    def _solver(self) -> Variational:
        raise NotImplementedError  # pragma: no cover

    # what was found

    @property
    def concentration_(self) -> tuple[Floats, ...]:
        return self.beliefs_.alpha

    @property
    def parameters_(self) -> AnyArray:
        return self.beliefs_.answers[0]

    def membership_interval(self, level: float = 0.9) -> tuple[tuple[Floats, Floats], ...]:
        """(lower, upper) ends of the central credible interval of every membership, for each mode."""
        _check_level(level)
        return tuple(self.beliefs_.interval(mode, level) for mode in range(2))

    def embed(self, n_components: int = 2, n_neighbors: int = 15, joint: bool = True) -> tuple[Floats, Floats]:
        """Co-embedding of rows and columns, arrays (n_rows, n_components) and (n_columns, n_components).

        ``joint`` puts both in one picture, in which a row lies in the direction of the columns it prefers;
        otherwise each mode's memberships are embedded on their own, as P2 does.
        """
        return coembedding.co_embedding(self.beliefs_, n_components, n_neighbors, joint)

    def signatures(self, X: Any = None, y: Any = None) -> tuple[Floats, Floats]:
        """What each item's labels in the clusters of the other mode add up to, unit length (P2 §5.2.2)."""
        return coembedding.signature_table(self.beliefs_, self._training() if X is None else self.sample(X, y))

    # predictions

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean label of each row of X; where labels are names, the most probable one.

        ``return_std`` adds the standard deviation of that mean under the posterior of the memberships.
        """
        codes = self._codes(X)
        alphabet = self.beliefs_.cells[0].alphabet
        if alphabet is not None and not alphabet.numeric:
            return alphabet.values[self.beliefs_.predict_distribution(codes).argmax(axis=1)]
        mean, std = predictive.mean_and_std(self.beliefs_, codes)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Floats, Floats]:
        """Ends of the central interval in which a new label falls with at least this probability."""
        _check_level(level)
        codes = self._codes(X)
        return predictive.interval(self.beliefs_, codes, level)

    def predict_distribution(self, X: Any, labels: Any = None) -> Floats:
        """Probability (density) of each of the labels for each row of X, shape (N, n_labels).

        ``labels`` are the alphabet by default; Gaussian and Poisson families need them given.
        """
        codes = self._codes(X)
        if labels is None:
            return self.beliefs_.predict_distribution(codes)
        labels = np.asarray(labels)
        columns = [self._log_density(codes, np.full(len(codes[0]), label)) for label in labels]
        return np.exp(np.stack(columns, axis=1))

    def score_samples(self, X: Any, y: Any) -> Floats:
        """ln p(y|x) of each entry, with memberships from the training entries only."""
        codes = self._codes(X)
        return self._log_density(codes, np.asarray(y))

    def _log_density(self, codes: Any, y: AnyArray) -> Floats:
        family: Any = self.beliefs_.cells[0]
        label_codes = None if family.alphabet is None else family.alphabet.encode(y)
        labels = y.astype(np.float64) if family.alphabet is None else family.alphabet.numbers[label_codes]
        family.check(labels)
        modes = self.beliefs_.structure.modes
        sample = Sample(modes, tuple(codes), labels, family.alphabet, label_codes)
        return predictive.log_density(self.beliefs_, sample, codes)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Mean ln p(y|x)."""
        return float(np.average(self.score_samples(X, y), weights=sample_weight))

    def perplexity(self, X: Any, y: Any, protocol: str = "held-out") -> float:
        """exp(−mean ln p(y|x)); 1 is certainty, and no discrete model can be below.

        Parameters
        ----------
        X, y : entries and their labels
        protocol : {"held-out", "paper", "paper-bound"}
            "held-out": memberships from the training entries only: the number to compare.
            "paper": P2 §5.2.1, memberships inferred from training *and* test entries, so the test
            labels leak into them. "paper-bound": exp(−ELBO/N) over training and test entries together.
        """
        if protocol not in PROTOCOLS:
            raise GinghamError(f"protocol={protocol!r} is unknown; choose one of {', '.join(PROTOCOLS)}.")
        if protocol == "held-out":
            return float(np.exp(-self.score(X, y)))
        train = self._training()
        columns = self._columns(X, reset=False).columns
        ids = [np.concatenate([mode.decode(c), new]) for mode, c, new in zip(train.modes, train.codes, columns)]
        family: Any = self.beliefs_.cells[0]
        known = train.labels if family.alphabet is None else family.alphabet.decode(train.label_codes)
        weights = None if train.weights is None else np.concatenate([train.weights, np.ones(len(columns[0]))])
        both = Sample.of(ids, np.concatenate([known, np.asarray(y)]), weights, alphabet=family.alphabet)
        found = predictive.infer(self.beliefs_, both, self._solver())
        if protocol == "paper-bound":
            return float(np.exp(found.objective.total / both.n_tuples))
        test = np.arange(train.n_rows, both.n_rows)
        moved = replace(both.take(test), modes=found.posterior.structure.modes)
        codes = [mode.encode(c[test]) for mode, c in zip(moved.modes, ids)]
        return float(np.exp(-predictive.log_density(found.posterior, moved, codes).mean()))

    def _training(self) -> Sample:
        if not hasattr(self, "_sample"):
            raise GinghamError("A loaded model has no training entries; fit it again, or pass X and y where possible.")
        return self._sample


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise GinghamError(f"level={level} must lie strictly between 0 and 1.")
