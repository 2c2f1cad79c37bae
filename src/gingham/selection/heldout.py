"""Losses on tuples that a posterior was not fitted to; items it has not seen are drawn from the masses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.core.posterior import Posterior
from gingham.data import Sample


def held_out_losses(posterior: Posterior, codes: Sequence[Ints], sample: Sample) -> tuple[float, float]:
    """Average loss of the Gibbs prediction and of the deterministic one.

    ``codes`` number the items as the posterior does, −1 where it has not seen them; ``sample`` has the labels
    and weights of the same rows.
    """
    cell = posterior.cells[0]
    coef = posterior._contract(codes, cell.coef(posterior.answers[0]), 0)  # E_Q of ⟨coef, t(y)⟩ is linear in coef
    gibbs = np.einsum("ek,ek->e", coef, cell.features.evaluate(sample.labels, sample.label_codes))
    predicted = prediction_losses(posterior, codes, sample)
    return float(np.average(gibbs, weights=sample.weights)), float(np.average(predicted, weights=sample.weights))


def prediction_losses(posterior: Posterior, codes: Sequence[Ints], sample: Sample) -> Floats:
    """Loss of the deterministic prediction on each tuple, (N,): median, mean or commonest label as the loss asks."""
    cell, labels = posterior.cells[0], np.asarray(sample.labels)
    if cell.table is not None:
        # The answer that would lose least if labels followed the predicted distribution.
        answer = np.argmin(posterior.predict_distribution(codes) @ cell.table, axis=1)
        return cell.table[sample.label_codes, answer]
    if cell.answers == "number" and cell.of_gap(np.zeros(0)) is None:
        losses: Floats = np.einsum("ek,ek->e", cell.coef(posterior.predict(codes)), cell.features.evaluate(labels))
        return losses
    if cell.ordered:
        squares: Floats = (labels - posterior.predict(codes)) ** 2
        return squares
    probabilities = posterior.predict_distribution(codes)[np.arange(len(labels)), sample.label_codes]
    return -np.log(np.maximum(probabilities, 1e-300))
