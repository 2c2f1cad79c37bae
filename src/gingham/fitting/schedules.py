"""How β approaches its value."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2
from typing import ClassVar

from gingham.errors import GinghamError
from gingham.storage import savable


@savable
@dataclass(frozen=True)
class Constant:
    """β from the first sweep on.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, solver=gg.fitting.Projection(gg.fitting.Constant()))
    """

    noise: ClassVar[float] = 0.0
    n_steps: int = 0

    def factor(self, iteration: int) -> float:
        return 1.0


@savable
@dataclass(frozen=True)
class Down:
    """From ``start``·β geometrically down to β in ``n_steps`` sweeps, then constant.

    Coming down lets clusters form before information is charged for; going up loses clusters, and an empty cluster does
    not come back.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, solver=gg.fitting.Projection(gg.fitting.Down(start=3.0, n_steps=10)))
    """

    noise: ClassVar[float] = 0.0
    start: float = 5.0
    n_steps: int = 20

    def factor(self, iteration: int) -> float:
        if iteration >= self.n_steps:
            return 1.0
        return float(self.start ** (1.0 - iteration / self.n_steps))


@dataclass(frozen=True)
class Up:
    """From ``start``·β up to β by doubling, with ``hold`` sweeps at each value, then constant.

    Solvers of graphs replace the share ``noise`` of all memberships by random ones whenever β rises; others have no
    noise. P1 anneals graphs with many clusters in this way, from β = 1/N on.

    Examples
    --------
    >>> import gingham as gg
    >>> [gg.fitting.Up(start=0.25, hold=2).factor(sweep) for sweep in range(6)]
    [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]
    """

    start: float = 1e-5
    hold: int = 5
    noise: float = 0.01

    @property
    def n_steps(self) -> int:
        return self.hold * max(ceil(-log2(self.start)), 0)

    def factor(self, iteration: int) -> float:
        return min(1.0, self.start * 2.0 ** (iteration // self.hold))


Schedule = Constant | Down | Up


def checked_schedule(schedule: object) -> Schedule:
    """A schedule, and nothing else."""
    if not isinstance(schedule, Constant | Down | Up):
        raise GinghamError(f"schedule={schedule!r} is unknown; choose Down(...), Up(...) or Constant().")
    return schedule
