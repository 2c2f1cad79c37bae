"""How far memberships move at once: a step in the log domain, halved until the objective falls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from gingham.arrays import Floats
from gingham.core.posterior import Posterior
from gingham.core.problem import Objective
from gingham.fitting.checkpoint import Memory

LEAST = -1e5  # of a log-membership: a dead cluster stays dead, and no step has an infinity


class Damping:
    """The length of the step, from one sweep to the next: halved where it fails, raised by half where it helps."""

    def __init__(self, smallest: float) -> None:
        self.smallest, self.step = smallest, 1.0

    @property
    def memory(self) -> Memory:
        """What a resumed fit must know."""

        def recall(value: float) -> None:
            self.step = value

        return Memory(lambda: self.step, recall)

    def move(
        self,
        assign: Floats,
        target: Floats,
        attempt: Callable[[Floats], tuple[Posterior, Objective]],
        helps: Callable[[Objective], bool],
    ) -> tuple[Posterior, Objective] | None:
        """The first of ever shorter steps from ``assign`` (n, m) towards exp(target) that helps, or None."""
        target = np.maximum(target - target.max(axis=1, keepdims=True), LEAST)
        old = np.log(np.maximum(assign, 1e-300))
        while self.step > self.smallest:
            moved, after = attempt(softmax((1.0 - self.step) * old + self.step * target, axis=1))
            if helps(after):
                self.step = min(1.0, 1.5 * self.step)
                return moved, after
            self.step /= 2.0
        self.step = 1.0
        return None
