"""How the data is divided: which modes there are, and which of them meet in each relation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gingham.data import Mode


@dataclass(frozen=True, eq=False)
class Structure:
    """Named modes, each clustered once, and the relations (factors) in which they meet.

    Attributes
    ----------
    modes : tuple of Mode
    factors : tuple of tuples of int
        For each relation, which mode stands at each of its positions. A grid has one factor
        (0, 1, …, d − 1); a graph has one factor (0, 0); shared matrices have several factors.
    """

    modes: tuple[Mode, ...]
    factors: tuple[tuple[int, ...], ...]

    @classmethod
    def grid(cls, modes: Sequence[Mode]) -> Structure:
        """One relation in which every mode stands once: the checkerboard of P0."""
        return cls(tuple(modes), (tuple(range(len(modes))),))

    @property
    def n_modes(self) -> int:
        return len(self.modes)

    @property
    def repeats(self) -> bool:
        """Whether some relation meets a mode twice; its loss is then not linear in that assignment."""
        return any(len(set(factor)) < len(factor) for factor in self.factors)

    def uses(self, mode: int) -> list[tuple[int, int]]:
        """(relation, position) pairs at which a mode stands."""
        return [
            (relation, position)
            for relation, factor in enumerate(self.factors)
            for position, at in enumerate(factor)
            if at == mode
        ]
