"""How β approaches its value: schedules as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gingham.errors import GinghamError


@dataclass(frozen=True)
class Constant:
    """β from the first sweep on."""

    n_steps: int = 0

    def factor(self, iteration: int) -> float:
        return 1.0


@dataclass(frozen=True)
class Down:
    """From ``start``·β geometrically down to β in ``n_steps`` sweeps, then constant.

    Coming down lets clusters form before information is priced; going up loses clusters, and a
    cluster that has died does not come back.
    """

    start: float = 5.0
    n_steps: int = 20

    def factor(self, iteration: int) -> float:
        if iteration >= self.n_steps:
            return 1.0
        return float(self.start ** (1.0 - iteration / self.n_steps))


Schedule = Constant | Down


def make_schedule(schedule: Any) -> Schedule:
    """A schedule by name ("down", "constant") or as it is."""
    if isinstance(schedule, (Constant, Down)):
        return schedule
    if schedule == "down":
        return Down()
    if schedule == "constant":
        return Constant()
    raise GinghamError(f"schedule={schedule!r} is unknown; choose 'down', 'constant', Down(...) or Constant().")
