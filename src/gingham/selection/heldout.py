"""Losses on tuples that a posterior was not fitted to; items it has not seen are drawn from the masses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gingham.arrays import Floats, Ints
from gingham.cells import TableLoss
from gingham.data import Mode, Sample
from gingham.posterior import Posterior
from gingham.structure import Structure


def held_out_losses(posterior: Posterior, codes: Sequence[Ints], sample: Sample) -> tuple[float, float]:
    """Average loss of the Gibbs prediction and of the deterministic one.

    ``codes`` number the items as the posterior does, −1 where it has not seen them; ``sample`` has the labels
    and weights of the same rows.
    """
    placed = tuple(np.where(code < 0, len(q), code).astype(np.int32) for code, q in zip(codes, posterior.assign))
    wide = _with_unseen(posterior)
    gibbs = wide.gibbs_loss(replace(sample, modes=wide.structure.columns(), codes=placed, _layouts={}))
    return gibbs, float(np.average(prediction_losses(posterior, codes, sample), weights=sample.weights))


def prediction_losses(posterior: Posterior, codes: Sequence[Ints], sample: Sample) -> Floats:
    """Loss of the deterministic prediction on each tuple, (N,): median, mean or commonest label as the loss asks."""
    cell, labels = posterior.cells[0], np.asarray(sample.labels)
    if isinstance(cell, TableLoss):
        # The answer that would lose least if labels followed the predicted distribution.
        answer = np.argmin(posterior.predict_distribution(codes) @ cell.table, axis=1)
        return cell.table[sample.label_codes, answer]
    if cell.ordered:
        squares: Floats = (labels - posterior.predict(codes)) ** 2
        return squares
    probabilities = posterior.predict_distribution(codes)[np.arange(len(labels)), sample.label_codes]
    return -np.log(np.maximum(probabilities, 1e-300))


def _with_unseen(posterior: Posterior) -> Posterior:
    """The posterior with one more item in each mode, whose memberships are the masses."""
    modes = tuple(Mode(mode.name, np.arange(mode.n_items + 1)) for mode in posterior.structure.modes)
    assign = tuple(np.vstack([q, mass]) for q, mass in zip(posterior.assign, posterior.mass))
    return replace(posterior, structure=Structure(modes, posterior.structure.factors), assign=assign)
