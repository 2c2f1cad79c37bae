"""From the name of a loss to its cell model, and from a cell model to what a model file keeps of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from gingham.arrays import Floats
from gingham.cells.base import CellModel
from gingham.cells.families import FAMILIES
from gingham.cells.losses import Absolute, Logarithmic, Pinball, Quadratic, TableLoss, ZeroOne
from gingham.cells.mass import Mass
from gingham.data import Alphabet
from gingham.errors import GinghamError

Loss = str | Floats | Callable[..., CellModel]
Kind = TypeVar("Kind", bound=type[CellModel])
LOSSES: dict[str, type[CellModel]] = {}  # what loss= and --loss take by name
UNNAMED: dict[str, type[CellModel]] = {kind.name: kind for kind in (TableLoss, Mass)}  # known to model files alone


def register_loss(kind: Kind) -> Kind:
    """Give a loss its ``name``: ``loss=``, ``gingham fit --loss`` and model files know it from then on.

    A class decorator for subclasses of `CellModel`. The name is the class's own in small letters with hyphens
    (``ZeroOne``: "zero-one") unless the class states another. A program that loads a model with this loss imports
    the module that registers it first; the command line does so with ``gingham --plugin MODULE``.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> @gg.register_loss
    ... class Forgiving(gg.TableLoss):
    ...     def __init__(self, alphabet, width=1.0):
    ...         self.width = width
    ...         gap = np.abs(np.subtract.outer(alphabet.numbers, alphabet.numbers))
    ...         super().__init__(alphabet, np.maximum(gap - width, 0.0))
    >>> model = gg.CoClusteringRegressor(n_clusters=2, loss="forgiving")
    """
    if not (isinstance(kind, type) and issubclass(kind, CellModel)):
        raise GinghamError(f"register_loss takes a subclass of CellModel, not {kind!r}.")
    known = {**LOSSES, **UNNAMED, **FAMILIES}.get(kind.name, kind)
    # A module that is run again (in a notebook, say) brings the same class anew.
    if (known.__module__, known.__qualname__) != (kind.__module__, kind.__qualname__):
        raise GinghamError(f"There is a loss called {kind.name!r} already; give yours another name.")
    LOSSES[kind.name] = kind
    return kind


for _kind in (Absolute, ZeroOne, Logarithmic, Pinball, Quadratic):
    register_loss(_kind)


def loss_kind(loss: Any) -> Any:
    """The class behind a loss, whose facts hold for every alphabet; other callables stand for themselves."""
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise GinghamError(
                f"loss={loss!r} is unknown; choose one of {', '.join(LOSSES)}, give a table, or import the module "
                "that registers it (gingham --plugin MODULE on the command line)."
            )
        return LOSSES[loss]
    return loss.func if isinstance(loss, partial) else loss if callable(loss) else TableLoss


def needs_alphabet(loss: Any) -> bool:
    """Whether the loss is defined on a finite set of labels only."""
    return bool(getattr(loss_kind(loss), "needs_alphabet", True))


def make_cell(loss: Any, alphabet: Alphabet | None, bounds: tuple[float, float] | None = None) -> CellModel:
    """The cell model of a loss: a name, a table (true label × answer), or a callable that takes the alphabet.

    Losses on numbers take the alphabet, or None, and ``bounds``, the smallest and largest label, or None.
    """
    kind = loss_kind(loss)
    if needs_alphabet(loss) and alphabet is None:
        raise GinghamError(f"loss={loss!r} needs a finite set of labels: give alphabet=, the possible label values.")
    make = kind if isinstance(loss, str) else loss
    if not callable(make):
        return TableLoss(alphabet, np.asarray(loss, dtype=np.float64))  # type: ignore[arg-type]
    cell = make(alphabet) if needs_alphabet(loss) or bounds is None else make(alphabet, bounds=bounds)
    if not isinstance(cell, CellModel):
        raise GinghamError(f"loss={loss!r} must return a CellModel, not {type(cell).__name__}.")
    return cell


def cell_state(cell: CellModel) -> dict[str, Any]:
    """What a model file keeps of a cell model, besides the alphabet: its name and what its constructor takes.

    Refuses cells that would come back as something else.
    """
    kind = type(cell)
    if _known(cell.name) is not kind:
        raise GinghamError(
            f"{kind.__name__} cells cannot be saved in a model file, since nothing says by which name to find their "
            f"class again: register it (gingham.register_loss({kind.__name__})), then save."
        )
    missing = [key for key in _parameters(kind) if not hasattr(cell, key)]
    if missing:
        raise GinghamError(
            f"{kind.__name__} cells cannot be saved in a model file: their constructor takes {missing[0]!r} and does "
            f"not keep it as self.{missing[0]}."
        )
    state = {"loss": cell.name, **{key: getattr(cell, key) for key in _parameters(kind)}}
    again = vars(cell_from_state(state, cell.alphabet))
    lost = [key for key, value in vars(cell).items() if key not in again or not _same(value, again[key])]
    if lost:
        raise GinghamError(
            f"{kind.__name__} cells cannot be saved in a model file: self.{lost[0]} does not follow from what the "
            "constructor takes, so that it would be lost. Make it an argument of the constructor."
        )
    return state


def cell_from_state(state: dict[str, Any], alphabet: Alphabet | None) -> CellModel:
    """The cell model that `cell_state` described; files of older versions say less and call families "family"."""
    loss = loss_from_state(state)
    cell: CellModel = loss() if alphabet is None else loss(alphabet)
    return cell


def loss_from_state(state: dict[str, Any]) -> partial[CellModel]:
    """What makes the described cell of an alphabet."""
    name = state["family"] if state["loss"] == "family" else state["loss"]
    kind = _known(name)
    if kind is None:
        raise GinghamError(
            f"The model uses the loss {name!r}, which nothing has registered: import the module that does first "
            "(gingham --plugin MODULE on the command line)."
        )
    return partial(kind, **{key: state[key] for key in _parameters(kind) if key in state})


def _known(name: str) -> type[CellModel] | None:
    return {**LOSSES, **UNNAMED, **FAMILIES}.get(name)


def _parameters(kind: type[CellModel]) -> list[str]:
    """What the constructor takes besides the alphabet."""
    return [key for key in signature(kind).parameters if key != "alphabet"]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    return one is other or (type(one) is type(other) and bool(one == other))
