"""CellModel: features → statistics → answer, coef, envelope; all else about a loss as facts, which solvers may need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from gingham.arrays import AnyArray, Floats, namespace
from gingham.data.modes import Alphabet, Bounds, Features
from gingham.errors import GinghamError


class CellModel(ABC):
    """A cost that is linear in a few statistics of the labels: cost(y; θ) = ⟨coef(θ), t(y)⟩.

    Statistics have the features on the last axis, shape (…, K); the leading axes are cells.
    A new loss or family is one subclass that states the facts below and answers two questions:
    the best answer for given statistics, and the coefficients of an answer. Nobody else asks which class it is.

    Attributes
    ----------
    name : str
        What the loss is called in messages, in ``loss=`` and in model files.
    features : Features
        t(y): one-hot labels or moments.
    range, low : float
        Every loss of one tuple lies between ``low`` and ``low + range``, in the loss's own unit; ``range`` is
        ``inf`` when the loss is unbounded.
    convex : bool
        Whether the loss is convex in the (numeric) prediction, so that Jensen's inequality carries a
        Gibbs guarantee over to the mean prediction.
    answers : {"label", "number", "distribution"} or None
        What an answer is, which tells a certificate how to round and price it: one of ``n_answers`` columns of
        ``table``, a number between ``bounds``, or a distribution over the alphabet with every probability at
        least ``smoothing``/|Y|. None where a certificate cannot round it.
    n_answers : int or None
        How many different answers a cell can give; None for a continuum.
    table : ndarray of shape (|Y|, n_answers) or None
        The losses of all answers on all labels, where they are finitely many.
    smoothing : float
        Share of the uniform distribution in every answer that is a distribution.
    alphabet, bounds
        The possible labels, or the smallest and largest, as far as they are known.
    needs_alphabet : bool
        Whether the loss is defined on a finite set of labels only.
    ordered : bool
        Whether labels count as numbers, so that near labels are alike.
    code_length : bool
        Whether the loss is −ln p(y), the length of a code, whose natural β is 1.
    noise_rate : float
        β = noise_rate / (average loss) makes exp(−β·loss) the likelihood of the noise.
    beta_factors : (float, float)
        Smallest and largest share of that β that is worth a try when β is chosen on held-out tuples.
    moves : {"mass", "log", "table", "moments"} or None
        How hard moves score a cell; None where they cannot.
    device_arrays : tuple of str or None
        The arrays that `answer` and `coef` need beside their arguments, where both are written for numpy and
        torch alike (see `arrays.namespace`); None where torch does not serve the cell.

    The constructor keeps each of its arguments as an attribute of the same name, as scikit-learn's estimators do:
    they are what a model file keeps of a cell.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> cell = gg.Quadratic(bounds=(0, 10))
    >>> isinstance(cell, gg.CellModel), cell.convex
    (True, True)
    """

    name: str
    features: Features
    range: float
    low: float = 0.0
    convex: bool
    answers: ClassVar[str | None] = None
    n_answers: int | None
    table: Floats | None = None
    alphabet: Alphabet | None = None
    bounds: Bounds | None = None
    smoothing: float = 0.0
    needs_alphabet: ClassVar[bool] = True
    ordered: bool = False
    code_length: ClassVar[bool] = False
    noise_rate: ClassVar[float] = 1.0
    beta_factors: ClassVar[tuple[float, float]] = (0.0, np.inf)
    moves: str | None = None
    device_arrays: ClassVar[tuple[str, ...] | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" not in vars(cls):
            words = "".join(f"-{c.lower()}" if c.isupper() else c for c in cls.__name__)
            cls.name = words.lstrip("-")

    @abstractmethod
    def answer(self, statistics: Floats, fallback: Floats | None = None) -> AnyArray:
        """θ* = argmin_θ ⟨coef(θ), S⟩ of each cell; empty cells answer as ``fallback`` statistics do.

        Returns shape (…) (a label index or a number) or (…, |Y|) (a distribution).
        """

    @abstractmethod
    def coef(self, answer: AnyArray) -> Floats:
        """Coefficients of given answers, shape (…, K)."""

    @abstractmethod
    def values(self, answer: AnyArray) -> Floats:
        """Numeric predictions of given answers, shape (…)."""

    @abstractmethod
    def distribution(self, answer: AnyArray) -> Floats | None:
        """Predicted label distributions of given answers, (…, |Y|); None without an alphabet."""

    def loss(self, answer: AnyArray, statistics: Floats) -> Floats:
        """Total loss of answers on cells with the given statistics: ⟨coef(θ), S⟩."""
        return np.einsum("...k,...k->...", self.coef(answer), statistics)

    def envelope(self, statistics: Floats) -> Floats:
        """min_θ ⟨coef(θ), S⟩, the least possible loss of each cell."""
        return self.loss(self.answer(statistics), statistics)

    def of_gap(self, gap: Floats) -> Floats | None:
        """The loss as a function of y − prediction, for any numbers; None where it is no such function.

        Where torch serves the cell (see ``device_arrays``) gaps may be tensors.
        """
        return None

    def miss(self, labels: Floats, answers: Floats) -> Floats:
        """A number between 0 and 1 that grows with the loss of answers on numeric labels; see `loss_of_miss`.

        By default the loss itself, scaled: (⟨coef(θ), t(y)⟩ − low)/range. Labels and answers are broadcast. A loss
        that leaves its range is found out by whoever asks.
        """
        labels, answers = np.broadcast_arrays(labels, answers)
        losses = np.einsum("...k,...k->...", self.coef(answers), self.features.evaluate(labels.ravel()).reshape(
            *labels.shape, self.features.size
        ))  # fmt: skip
        return (losses - self.low) / (self.range if self.range > 0 else 1.0)

    def loss_of_miss(self, miss: Floats) -> Floats:
        """The scaled loss, (loss − low)/range, of what `miss` returns."""
        return miss

    def beta_of_noise(self, loss: float) -> float:
        """The β at which exp(−β·loss) is the likelihood of noise with this average loss."""
        if self.code_length:
            return 1.0
        scale = max(loss, 1e-3 * (self.range if np.isfinite(self.range) else loss), 1e-12)
        return self.noise_rate / scale

    def placed(self, put: Callable[[Floats], Any]) -> Self:
        """The same cell with its own arrays where ``put`` brings them, on a GPU say."""
        new = copy(self)
        for name in self.device_arrays or ():
            setattr(new, name, put(getattr(self, name)))
        return new


def filled(statistics: Floats, fallback: Floats | None) -> Floats:
    """Statistics in which empty cells stand for the fallback (all cells together by default)."""
    total = statistics.reshape(-1, statistics.shape[-1]).sum(0) if fallback is None else fallback
    empty = statistics.sum(-1) <= 0
    return namespace(statistics).where(empty[..., None], total, statistics)


@dataclass(frozen=True)
class Need:
    """A fact that cells must state."""

    attribute: str  # of the cell; it must be there and not be None
    fitting: str  # cells that have it, in words
    values: tuple[Any, ...] = ()  # where given, the attribute must be one of these

    def met(self, cell: CellModel) -> bool:
        value = getattr(cell, self.attribute, None)
        return value in self.values if self.values else value is not None


TABLE = Need("table", "a loss given by a table on an alphabet (absolute, zero-one, pinball, a table of your own)")
HARD_MOVES = Need("moves", "cells that say what they cost at best: mass, log, table or quadratic cells")
DENSITIES = Need("moves", "densities (mass cells); use projection for labels", ("mass",))
FAMILIES = Need("estimate", "cells of an exponential family (families.Family)")
ON_DEVICE = Need("device_arrays", "table, quadratic or log loss or densities: use backend='compiled' for others")


def unmet(needs: Sequence[Need], cells: Iterable[CellModel]) -> tuple[Need, CellModel] | None:
    """The first need that a cell does not meet."""
    return next(((need, cell) for cell in cells for need in needs if not need.met(cell)), None)


def refuse_unmet(
    who: str, needs: Sequence[Need], cells: Iterable[CellModel], error: type[GinghamError] = GinghamError
) -> None:
    """Refuse cells that lack what somebody needs, with what would fit."""
    found = unmet(needs, cells)
    if found is not None:
        need, cell = found
        raise error(
            f"{who} needs {need.fitting}, not {cell.name!r} cells ({type(cell).__name__}.{need.attribute} is "
            f"{getattr(cell, need.attribute, None)!r})."
        )
