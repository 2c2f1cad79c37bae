"""``gingham fit``: from options to a fitted model, the notes stored with it, and the facts to show."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl

from gingham.cli.checkpoint import checkpoint_of, forget, identity
from gingham.cli.columns import fingerprint
from gingham.cli.console import say_note, sweeps
from gingham.cli.data import Rows, split
from gingham.cli.fit_options import Wish
from gingham.cli.kinds import MODULES, fit_arguments, other_model, tuple_model
from gingham.cli.label_kind import choose
from gingham.cli.of_tuples import errors, loss_name
from gingham.fitting.checkpoint import kept_in
from gingham.fitting.loop import NO_CHECKPOINT, Checkpoint

HOLDOUT = 0.1  # of labelled rows, where nothing is said

Fitted = tuple[Any, dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Keeping:
    """Where checkpoints go, whether to go on from one, and how often to write them."""

    path: Path | None = None
    resume: bool = False
    every: float = 10.0

    @contextmanager
    def of(self, key: str) -> Iterator[Checkpoint]:
        if self.path is None:
            yield NO_CHECKPOINT
            return
        with kept_in(self.path, key, self.resume, self.every) as (checkpoint, known):
            if known is not None:
                say_note(f"Going on after {known} sweeps.")
            yield checkpoint


def save(model: Any, out: Path, notes: dict[str, Any]) -> None:
    """Write the model; its checkpoint goes when the fit has come to its end, and stays when Ctrl-C has ended it."""
    model.save(out, notes)
    if model.interrupted_:
        say_note("The model so far was saved; the same command with --resume goes on.")
    else:
        forget(checkpoint_of(out))


def fit(data: Rows, wish: Wish, quiet: bool = False, keeping: Keeping | None = None) -> Fitted:
    """A fitted model of labelled tuples, the notes to store with it, and the facts to show."""
    began = time.perf_counter()
    share = HOLDOUT if wish.holdout is None else wish.holdout
    learn, held = split(len(data), share, wish.seed)
    training = data.take(learn)
    model = tuple_model(wish, choose(training.y, wish.loss, wish.alphabet, wish.bounds))
    key = identity(data.fingerprint, asdict(wish))
    with (keeping or Keeping()).of(key) as checkpoint, sweeps("co-clustering", quiet) as callback:
        more = fit_arguments(model, callback=callback, checkpoint=checkpoint)
        model.fit(training.X, training.y, training.weight, **more)
    notes = {
        "axes": list(wish.axes),
        "label": wish.label,
        "weight": wish.weight,
        "holdout": share,
        "seed": wish.seed,
        "fingerprint": data.fingerprint,
        "bounds": None if wish.bounds is None else list(wish.bounds),
    }
    facts = {"rows": len(training), **model_facts(model, wish.model)}
    if "posterior_" in vars(model) and wish.model != "bayesian":
        facts["loss"], facts["beta"] = loss_name(model), model.beta_
    if held.any():
        facts["held_out_rows"] = int(held.sum())
        facts.update({f"held_out_{name}": value for name, value in errors(model, data.take(held)).items()})
    facts["seconds"] = round(time.perf_counter() - began, 2)
    return model, notes, facts


def fit_other(table: pl.DataFrame, wish: Wish, quiet: bool = False, keeping: Keeping | None = None) -> Fitted:
    """A fitted model of rows without a label to predict, the notes to store with it, and the facts to show."""
    began = time.perf_counter()
    model = other_model(wish)
    names = [name for name in [*wish.axes, wish.label, wish.weight] if name is not None and name in table.columns]
    key = identity(fingerprint(table, names), asdict(wish))
    with (keeping or Keeping()).of(key) as checkpoint, sweeps("clustering", quiet) as callback:
        more = fit_arguments(model, callback=callback, checkpoint=checkpoint)
        notes, own = import_module(f"gingham.cli.{MODULES[wish.model]}").fit(table, wish, model, more)
    notes = {"axes": list(wish.axes), "label": None, "weight": None, "seed": wish.seed, "model": wish.model, **notes}
    facts = {"rows": table.height, **model_facts(model, wish.model), **own}
    facts["seconds"] = round(time.perf_counter() - began, 2)
    return model, notes, facts


def model_facts(model: Any, kind: str) -> dict[str, Any]:
    """What a summary says of any fitted model."""
    facts: dict[str, Any] = {"model": kind}
    posterior = vars(model).get("posterior_")
    if posterior is not None:
        facts["axes"] = {mode.name: mode.n_items for mode in posterior.structure.modes}
        facts["clusters"] = posterior.n_clusters
        facts["effective_clusters"] = tuple(round(e, 1) for e in posterior.effective_clusters)
    elif hasattr(model, "_modes"):
        facts["axes"] = {mode.name: mode.n_items for mode in model._modes()}
    for name, shown in (("n_iter_", "sweeps"), ("converged_", "converged")):
        if hasattr(model, name):
            facts[shown] = getattr(model, name)
    return facts
