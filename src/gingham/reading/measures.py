"""What a block says, by kind of data: counts against chance, numbers against averages, labels against their shares.

Each measure works on sums over blocks, (…, columns, K), and is linear in them once the blocks are known: what an entry
gains by being in its block is ⟨coefficients of the block, statistics of the entry⟩. Trees, held-out gains, typical
members and the numbers on a board are all made of that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from gingham.arrays import Floats, Ints
from gingham.errors import GinghamError

SMOOTHING = 1.0  # counts that an average block is filled up with, in proportion to what chance expects
SHRINK = 5.0  # observations with nothing to say that every block of numbers or labels starts from


class Measure(ABC):
    """Sums of a block are an array (…, K)."""

    name: ClassVar[str]
    unit: ClassVar[str]  # of a gain

    @abstractmethod
    def explained(self, sums: Floats) -> Floats:
        """What rows of blocks (…, columns, K) explain, shape (…): never more for a union than for its parts."""

    @abstractmethod
    def coefficients(self, sums: Floats) -> Floats:
        """What each unit of each statistic gains in its block, over saying nothing; (rows, columns, K)."""

    @abstractmethod
    def shown(self, sums: Floats) -> tuple[Floats, Ints | None]:
        """The numbers on a board (rows, columns), and which label they are of where labels are names."""

    @abstractmethod
    def text(self, value: float, label: str | None = None) -> str:
        """A number on a board, for people."""

    @abstractmethod
    def constants(self) -> dict[str, float]:
        """What somebody needs to work out `shown` from the sums."""

    @abstractmethod
    def deviations(self, profiles: Floats) -> Floats:
        """How items (n, columns, K) differ from all of them together, shrunken: a vector each, (n, …)."""

    def nats(self, noise: float) -> float:
        """Nats that one unit of a gain is worth, where entries scatter with this variance around their blocks."""
        return 1.0

    def observed(self, sums: Floats) -> Floats:
        """How many observations lie behind sums (…, K), shape (…)."""
        return np.asarray(sums.sum(axis=-1))

    def structure(self, sums: Floats) -> float:
        """What a table of blocks explains beyond a single one: nats, or squares."""
        one = sums.sum(axis=(0, 1), keepdims=True)
        return float(self.explained(sums).sum() - self.explained(one).sum() - self._margins(sums))

    def _margins(self, sums: Floats) -> float:
        """What the columns explain alone, where that is no structure."""
        return 0.0


class Lift(Measure):
    """Counts: a block is there more or less often than its row and its column lead one to expect."""

    name = "lift"
    unit = "nats a count"

    def explained(self, sums: Floats) -> Floats:
        n = sums[..., 0]
        # Σ_d n_d ln n_d − n ln n: with it, a merge loses N times the weighted Jensen-Shannon divergence.
        return np.asarray(xlogy(n, n).sum(axis=-1) - xlogy(n.sum(axis=-1), n.sum(axis=-1)))

    def _margins(self, sums: Floats) -> float:
        columns, total = sums[..., 0].sum(axis=0), float(sums.sum())
        return float(xlogy(columns, columns).sum() - xlogy(total, total))

    def lift(self, sums: Floats) -> Floats:
        """p(c, d)/p(c) p(d), filled up in proportion to chance: an empty block tends to "as expected"."""
        n = sums[..., 0]
        expected = n.sum(axis=1, keepdims=True) * n.sum(axis=0) / max(float(n.sum()), 1e-300)
        extra = SMOOTHING * expected / max(float(expected.mean()), 1e-300)
        return np.asarray((n + extra) / np.maximum(expected + extra, 1e-300))

    def coefficients(self, sums: Floats) -> Floats:
        return np.log(np.maximum(self.lift(sums), 1e-300))[..., None]

    def shown(self, sums: Floats) -> tuple[Floats, Ints | None]:
        return self.lift(sums), None

    def text(self, value: float, label: str | None = None) -> str:
        factor = value if value >= 1 else 1 / max(value, 1e-9)
        if factor < 1.15:
            return "·"
        if value < 1 and factor >= 99.5:
            return "almost none"
        return (
            f"{'×' if value > 1 else '÷'}{factor:.1f}" if factor < 9.95 else f"{'×' if value > 1 else '÷'}{factor:.0f}"
        )

    def deviations(self, profiles: Floats) -> Floats:
        n = profiles[..., 0].astype(np.float64)
        share = n.sum(axis=0) / max(float(n.sum()), 1e-300)
        own = (n + SHRINK * share) / (n.sum(axis=1, keepdims=True) + SHRINK)
        return np.asarray((own - share) / np.sqrt(np.maximum(share, 1e-12)))

    def constants(self) -> dict[str, float]:
        return {"smoothing": SMOOTHING}


class Difference(Measure):
    """Numbers: a block is higher or lower than the averages of row and column say. K = 2: how many, their sum."""

    name = "difference"
    unit = "squares a number"

    def explained(self, sums: Floats) -> Floats:
        n, s = sums[..., 0], sums[..., 1]
        return np.asarray(np.divide(s * s, n, out=np.zeros_like(s), where=n > 0).sum(axis=-1))

    def mean(self, sums: Floats) -> Floats:
        return np.asarray(sums[..., 1] / (sums[..., 0] + SHRINK))

    def coefficients(self, sums: Floats) -> Floats:
        mean = self.mean(sums)
        return np.stack([-mean * mean, 2 * mean], axis=-1)  # Σ e² − (e − mean)²

    def shown(self, sums: Floats) -> tuple[Floats, Ints | None]:
        return self.mean(sums), None

    def text(self, value: float, label: str | None = None) -> str:
        rounded = (
            f"{abs(value):.2g}" if abs(value) < 0.05 else f"{abs(value):.1f}" if abs(value) < 100 else f"{value:.0f}"
        )
        return "·" if float(rounded) == 0 else f"{'+' if value > 0 else '−'}{rounded}"

    def observed(self, sums: Floats) -> Floats:
        return np.asarray(sums[..., 0])

    def deviations(self, profiles: Floats) -> Floats:
        weight = profiles[..., 0].sum(axis=0) / max(float(profiles[..., 0].sum()), 1e-300)
        return self.mean(profiles.astype(np.float64)) * np.sqrt(weight)

    def nats(self, noise: float) -> float:
        return 0.5 / max(noise, 1e-12)  # squares against the variance of a Gaussian

    def constants(self) -> dict[str, float]:
        return {"shrink": SHRINK}


class Labels(Measure):
    """Names: which label a block has, against their shares overall. K = |Y|: how many of each."""

    name = "labels"
    unit = "nats a label"

    def explained(self, sums: Floats) -> Floats:
        n = sums.sum(axis=-1)
        return np.asarray((xlogy(sums, sums).sum(axis=-1) - xlogy(n, n)).sum(axis=-1))

    def share(self, sums: Floats) -> Floats:
        overall = sums.sum(axis=(0, 1)) / max(float(sums.sum()), 1e-300)
        return np.asarray((sums + SHRINK * overall) / (sums.sum(axis=-1, keepdims=True) + SHRINK))

    def coefficients(self, sums: Floats) -> Floats:
        overall = sums.sum(axis=(0, 1)) / max(float(sums.sum()), 1e-300)
        return np.log(np.maximum(self.share(sums), 1e-300) / np.maximum(overall, 1e-300))

    def shown(self, sums: Floats) -> tuple[Floats, Ints | None]:
        share = self.share(sums)
        return share.max(axis=-1), share.argmax(axis=-1)

    def deviations(self, profiles: Floats) -> Floats:
        n = profiles.astype(np.float64)
        weight = n.sum(axis=(0, 2)) / max(float(n.sum()), 1e-300)
        overall = n.sum(axis=(0, 1)) / max(float(n.sum()), 1e-300)
        share = (n + SHRINK * overall) / (n.sum(axis=-1, keepdims=True) + SHRINK)
        return np.asarray(((share - overall) * np.sqrt(weight)[:, None]).reshape(len(n), -1))

    def text(self, value: float, label: str | None = None) -> str:
        return f"{label} {value:.0%}"

    def constants(self) -> dict[str, float]:
        return {"shrink": SHRINK}


MEASURES: dict[str, Measure] = {kind.name: kind() for kind in (Lift, Difference, Labels)}


def measure_named(name: str) -> Measure:
    """A measure by its name."""
    if name not in MEASURES:
        raise GinghamError(f"There is no measure {name!r}; there are {', '.join(MEASURES)}.")
    return MEASURES[name]
