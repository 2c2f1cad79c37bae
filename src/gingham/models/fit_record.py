"""What the command line notes with a model: from which columns it was fitted, and what was set aside."""

from __future__ import annotations

from dataclasses import dataclass

from gingham.arrays import AnyArray
from gingham.storage import savable
from gingham.summary.values import WideTable


@savable
@dataclass(frozen=True, eq=False)
class Measured:
    """How rows were held out (a share of None chooses folds by their number), and what was predicted of them."""

    seed: int
    share: float | None
    predictions: AnyArray


@savable
@dataclass(frozen=True, eq=False)
class FitRecord:
    """The table that a model was fitted to, as ``gingham fit`` has understood it.

    Attributes
    ----------
    axes : tuple of str
        The columns of ids.
    label, weight : str or None
        Columns.
    seed : int
        Of the fit, and of what it set aside.
    holdout : float
        The share of entries set aside by a model that learns from the others only.
    fingerprint : str
        Of the columns, by which the table is recognised.
    bounds : (float, float), optional
        The smallest and largest possible label, where somebody stated them.
    order : int, optional
        Seed of the order of progressive tests: drawn once, so that the same question has the same answer.
    measured : Measured, optional
    missing : tuple of str
        Labels that stand for a missing one.
    looks : int
        How many models were fitted to this table and file one after the other, with an error on held-out rows shown of
        each; certificates count them as candidates.
    wide : WideTable, optional
        How the table had one side in its columns.
    relations : tuple of (axes, label)
        The further tables of a joint model.
    side : tuple of str
        Sides with tables of properties that the model predicts with.
    """

    axes: tuple[str, ...] = ()
    label: str | None = None
    weight: str | None = None
    seed: int = 0
    holdout: float = 0.0
    fingerprint: str = ""
    bounds: tuple[float, float] | None = None
    order: int | None = None
    measured: Measured | None = None
    missing: tuple[str, ...] = ()
    looks: int = 1
    wide: WideTable | None = None
    relations: tuple[tuple[tuple[str, ...], str], ...] = ()
    side: tuple[str, ...] = ()
