"""Refitting a model with what is new: groups keep their numbers and names, and the changes are told and tested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gingham.arrays import Bools
from gingham.errors import GinghamError
from gingham.models.listed import Listed
from gingham.summary.changes import Changes, Fit, changes_after_update, renamed
from gingham.summary.make_summary import summarize_observed


def update(model: Any, new: Listed, old: Listed | None = None, seed: int = 0) -> Any:
    """Fit a model anew to its rows and new ones, and say in ``changes_`` what became of its groups.

    ``old`` are the rows of the fit, where the model does not remember them.
    """
    check_is_fitted(model)
    if model._lost_parameters:
        raise GinghamError(
            f"The model file could not hold {', '.join(f'{name}=' for name in model._lost_parameters)}: set it again "
            "(set_params) before the update."
        )
    past = model._listed_rows(None) if old is None else old
    observed = model._observed() if old is None else model._observed(*model._arguments_of(old)[0])
    has_own = old is None or model._summary is not None
    before = Fit(observed, model.summary_ if has_own else summarize_observed(observed))
    fitted = _fitted(model, past.with_rows(new))
    changes, summary = compared(before, fitted, new, seed)
    valid = _without_moved(past, fitted, changes)
    if not valid.all():
        fitted = _fitted(model, past.take(valid).with_rows(new))
        size = tuple(min(k, side.n_leaves) for k, side in zip(summary.size, fitted.summary_.sides))
        summary = renamed(replace(fitted.summary_, size=size), before.summary)
    for name in [name for name in vars(model) if name.endswith("_") or name in ("_data", "_times", "_seen")]:
        delattr(model, name)
    for name, value in vars(fitted).items():
        setattr(model, name, value)
    model.changes_, model._summary = changes, summary
    return model


def _fitted(model: Any, rows: Listed) -> Any:
    """The same estimator, fitted to some rows."""
    new = clone(model)
    arguments, named = new._arguments_of(rows, model)
    return new.fit(*arguments, item_info=model._item_info, **named)


def _without_moved(past: Listed, fitted: Any, changes: Changes) -> Bools:
    """The rows before, but those of items that are proven to have moved since: they speak of where these were."""
    observed = fitted._observed()
    valid = np.ones(len(past.ids[0]), dtype=bool)
    for side, column in zip(observed.relations[0].sides, past.ids):
        mode = observed.modes[side]
        gone = [at for one in changes.proven if one.kind == "moved" and one.side == mode.name for at in one.positions]
        valid &= ~np.isin(mode.encode(column), gone)
    return valid if valid.any() else ~valid


def compared(before: Fit, fitted: Any, new: Listed, seed: int) -> tuple[Changes, Any]:
    """The changes to a model that has learned from further rows, and its summary with the groups that were kept.

    A side is shown in as many groups as before, unless a group is proven to be born, split off or gone.
    """
    summary = fitted.summary_
    later = Fit(fitted._observed(), renamed(summary, before.summary))
    rows = fitted._observed(*fitted._arguments_of(new)[0])
    changes = changes_after_update(before, later, rows, seed=seed)
    other = {one.side for one in changes.proven if one.kind != "moved"}
    size = tuple(
        k if side.name in other else min(old, side.n_leaves)
        for side, k, old in zip(summary.sides, summary.size, before.summary.size)
    )
    if size != summary.size:
        later = Fit(later.observed, renamed(replace(summary, size=size), before.summary))
        changes = changes_after_update(before, later, rows, seed=seed)
    return changes, later.summary
