"""How β approaches its value."""

from __future__ import annotations

from dataclasses import dataclass

from gingham.errors import GinghamError


@dataclass(frozen=True)
class Constant:
    """β from the first sweep on.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, schedule=gg.fitting.Constant())
    """

    n_steps: int = 0

    def factor(self, iteration: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Down:
    """From ``start``·β geometrically down to β in ``n_steps`` sweeps, then constant.

    Coming down lets clusters form before information is charged for; going up loses clusters, and an empty cluster does
    not come back.

    Examples
    --------
    >>> import gingham as gg
    >>> model = gg.CoClusteringRegressor(3, schedule=gg.fitting.Down(start=3.0, n_steps=10))
    """

    start: float = 5.0
    n_steps: int = 20

    def factor(self, iteration: int) -> float:
        if iteration >= self.n_steps:
            return 1.0
        return float(self.start ** (1.0 - iteration / self.n_steps))


Schedule = Constant | Down


def make_schedule(schedule: object) -> Schedule:
    """A schedule by name ("down", "constant") or as it is."""
    if isinstance(schedule, (Constant, Down)):
        return schedule
    if schedule == "down":
        return Down()
    if schedule == "constant":
        return Constant()
    raise GinghamError(f"schedule={schedule!r} is unknown; choose 'down', 'constant', Down(...) or Constant().")
