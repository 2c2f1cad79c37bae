"""How much ridge, and how many components? Objects that were not seen decide: do their views find one another?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.model_selection import KFold

from gingham.arrays import Floats, Ints
from gingham.engine.threads import one_blas_thread, over_blocks
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.models.views.fit import Method, max_components, mean_correlations, solve
from gingham.models.views.representations import Representation
from gingham.models.views.retrieval import component_weights, mean_reciprocal_ranks

RIDGES = (0.01, 0.1, 0.3, 1.0, 10.0)
MOST_COMPONENTS = 300  # tried when their number is to be found
FINALISTS = 3  # ridges at most that go on after the first fold
NEARLY = 0.01  # MRR by which a ridge may be behind the best to go on
SINGLE_FROM = 400  # objects from which the folds are solved in single precision, at a third of the cost
ROUNDINGS = 10.0  # how many times the rounding of single precision a ridge must be for that


@dataclass(frozen=True, eq=False)
class RidgeChoice:
    """The ridge by which held-out objects find their mates best, and how many components correlate with it."""

    ridges: tuple[float, ...]  # per view
    n_components: int
    candidates: tuple[tuple[float, ...], ...]  # the ridges that were tried
    # ρ of each component on held-out objects, averaged over pairs of views and folds, (n_candidates, most_components);
    # NaN for ridges that were left after the first fold
    correlations: Floats
    # MRR of held-out mates, averaged likewise, for each of the numbers of components in ``counts``, which is the given
    # one alone where it was given
    counts: tuple[int, ...]
    mates: Floats


def choose(
    representations: Sequence[Representation],
    candidates: Sequence[tuple[float, ...]],
    n_components: int | None,
    seed: int,
    method: Method,
    cv: int,
    weighting: float,
    checkpoint: Checkpoint = NO_CHECKPOINT,
) -> RidgeChoice:
    """Try every ridge on ``cv`` folds and take the one by which held-out objects find their mates best.

    The kernels of the fit serve all folds and ridges, and after the first fold only the ridges that were nearly the
    best go on. Correlations would choose too little ridge: they do not see that a query's mate must beat all other
    documents. They say how many components there are: one counts by how far its held-out correlation exceeds 2/√n,
    what chance alone may give, and more are taken while they add to that total. A number that is given is kept.

    Single precision does where its rounding is small beside every ridge.
    """
    n = len(representations[0].present)
    if not 2 <= cv <= n // 2:
        raise GinghamError(
            f"Choosing ridge or n_components needs 2 to n/2 folds with 2 objects or more each: cv={cv}, {n} objects. "
            "Give both ridge and n_components, or more objects."
        )

    rounding = n * float(np.finfo(np.float32).eps)  # the largest eigenvalue of a kernel is n at most
    single = n >= SINGLE_FROM and min(map(min, candidates)) >= ROUNDINGS * rounding
    held = [r.in_single_precision() if single else r for r in representations]
    splits = list(KFold(cv, shuffle=True, random_state=seed).split(np.empty(n)))
    tried = min(n_components or MOST_COMPONENTS, *(max_components(held, train) for train, _ in splits))
    counts = (tried,) if n_components is not None else ladder(tried)

    def fold(train: Ints, test: Ints, going: Sequence[int]) -> dict[str, Floats]:
        """ρ and MRR on the test objects for every ridge that is still in, by the number of components."""
        parts, scorers = zip(*(r.part(train, test) for r in held))

        def one(candidate: int) -> tuple[Floats, Floats]:
            shared = solve(parts, candidates[candidate], tried, seed, method)
            scores = [
                np.where(r.present[test, None], score(own), np.nan)
                for r, score, own in zip(held, scorers, shared.coefficients)
            ]
            weights = component_weights(shared.strengths, weighting)
            return mean_correlations(scores), mean_reciprocal_ranks([each * weights for each in scores], counts)

        correlations, mates = (np.full((len(candidates), width), np.nan) for width in (tried, len(counts)))
        with one_blas_thread():  # the ridges are the threads: matrices of this size are not worth those of BLAS
            for at, found in zip(going, over_blocks(one, going)):
                correlations[at], mates[at] = found
        return {"held": correlations, "mates": mates}

    going: Sequence[int] = range(len(candidates))
    folds: list[dict[str, Floats]] = []
    for number, (train, test) in enumerate(splits):
        folds.append(checkpoint.stage(f"fold {number + 1}").result(partial(fold, train, test, going)))
        if not number:
            first = folds[0]["mates"].max(axis=1)
            order = np.argsort(-first, kind="stable")[:FINALISTS]
            going = sorted(order[first[order] >= first.max() - NEARLY].tolist())
    mean, mates = (np.mean([each[name] for each in folds], axis=0) for name in ("held", "mates"))
    best = int(np.nanargmax(mates.max(axis=1)))
    found = n_components or int(np.argmax(np.cumsum(mean[best] - 2.0 / np.sqrt(n)))) + 1
    return RidgeChoice(candidates[best], found, tuple(candidates), mean, counts, mates)


def ladder(most: int) -> tuple[int, ...]:
    """1, 2, 4, … and the most: the numbers of components at which retrieval is measured."""
    return (*(2**step for step in range(most.bit_length()) if 2**step < most), most)
