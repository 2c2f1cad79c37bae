"""With nothing set: β from the noise that held-out observations show, the number of clusters by merging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from gingham.arrays import AnyArray, Floats, beside, log, namespace, on_host
from gingham.cards import card, paragraph, table
from gingham.cells import CellModel
from gingham.cells.losses import total_statistics
from gingham.core.problem import Posterior, Problem
from gingham.data import Sample
from gingham.errors import GinghamError
from gingham.fitting.checkpoints import NO_CHECKPOINT, Checkpoint
from gingham.fitting.loop import Solution, completed
from gingham.fitting.merging import merge_while_it_pays, prune
from gingham.fitting.projection import Projection
from gingham.fitting.schedules import Constant
from gingham.fitting.starts import Start, make_start
from gingham.fitting.sweep import Sweep

FACTORS = (2.0, 1.4, 1.0, 0.7, 0.5, 0.35)  # of the β that the noise suggests, from the largest down
SHARE = 0.1  # of the observations that are held out to choose β
FEWEST = 100  # observations below which nothing can be held out
N_ROUNDS = 5  # of merging and settling
LOWERED = 0.7  # β of labels on a scale: a checkerboard does better than the means whose error sets it
SHRINK = 5.0  # observations with the average label that every item mean starts from
MOST_CLASSES = 64  # labels that item shares are computed for
HASH = np.array([0, 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93], dtype=np.uint64)  # where it begins, and its factors

Beta = tuple[float, tuple[tuple[float, float], ...], str]  # β, the values tried with their held-out losses, and why


@dataclass(frozen=True)
class Selection:
    """What was chosen, and why.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor("auto", alphabet=[1, 5], random_state=0).fit(X, y)
    >>> model.selection_.n_clusters
    (2, 2)
    """

    beta: float
    n_clusters: tuple[int, ...]
    started_with: tuple[int, ...]  # clusters before merging
    tried: tuple[tuple[float, float], ...]  # β and its held-out loss
    reason: str

    def __str__(self) -> str:
        return self.reason

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        rows = [[f"{beta:.4g}", f"{loss:.4g}"] for beta, loss in self.tried]
        return card("Selection", paragraph(self.reason) + (table(["β", "held-out loss"], rows) if rows else ""))


class Pilot(NamedTuple):
    """How observations are fitted to choose β on those that are held out."""

    n_clusters: Sequence[int]
    start: Start
    solver: Projection
    rng: np.random.Generator
    checkpoint: Checkpoint = NO_CHECKPOINT
    merged: bool = False  # whether the fit will merge clusters while that pays


def divided(sample: Sample, held: AnyArray) -> tuple[Sample, Sample] | None:
    """The observations that candidates are fitted to, and those that judge them; None where there are too few."""
    if sample.n_rows < FEWEST or not bool(held.any()) or bool(held.all()):
        return None
    return sample.take(~held), sample.take(held)


def choose_beta(wanted: float | str | None, sample: Sample, cell: CellModel, pilot: Pilot | None = None) -> Beta:
    """The β of a fit: as given; "auto" compares a few on held-out observations; None takes it from the item means."""
    if wanted is None:
        beta, why = beta_of_item_means(sample, cell)
        return beta, (), why
    if not isinstance(wanted, str):
        return wanted, (), f"β = {wanted:.3g}, as given"
    if wanted != "auto" or pilot is None:
        raise GinghamError(f"beta={wanted!r} is unknown; give a number{' or ' + repr('auto') if pilot else ''}.")
    return compare_betas(sample, cell, pilot)


def compare_betas(sample: Sample, cell: CellModel, pilot: Pilot) -> Beta:
    """The smallest of a few β, around the noise of held-out observations, that is not clearly worse than the best.

    Where the fit will merge clusters, it is the merged checkerboard that must not be clearly worse: at a small β the
    last merges can pay that throw the structure away, while the soft checkerboard before them still predicts well.
    """
    n_clusters, start, solver, rng, checkpoint, merged_later = pilot
    merged = sample.merged()
    constant = float(cell.envelope(total_statistics(cell, merged)) / merged.n_observations)
    parts = divided(merged, rng.random(merged.n_rows) < SHARE)
    if parts is None:
        beta = cell.beta_of_noise(constant)
        why = f"β = {beta:.3g} from the loss of a constant ({constant:.3g}): too few observations to hold any out"
        return beta, (), why
    seen, rest = parts

    # Around the noise of item means: at the β of a constant's loss, two classes all but vanish in one cluster.
    problem = Problem.grid(seen, cell, beta_of_item_means(seen, cell)[0])
    begun, stage = make_start(start, problem, n_clusters, rng), checkpoint.stage("beta/pilot")
    posterior = completed(solver.solve(problem, begun, checkpoint=stage)).posterior
    middle = cell.beta_of_noise(average(prediction_losses(posterior, rest), rest.weights))
    least, most = cell.beta_factors
    boards: list[tuple[Problem, Posterior]] = []
    for factor in (f for f in FACTORS if least <= f <= most):
        problem = replace(problem, betas=(factor * middle,))
        stage = checkpoint.stage(f"beta/{factor:g} times the noise")
        if boards:
            solver = replace(solver, schedule=Constant())
        else:
            posterior = make_start(start, problem, n_clusters, rng)
        posterior = completed(solver.solve(problem, posterior, checkpoint=stage)).posterior
        boards.append((problem, posterior))
    losses = [prediction_losses(posterior, rest) for _, posterior in boards]
    tried = tuple((problem.betas[0], average(own, rest.weights)) for (problem, _), own in zip(boards, losses))
    lowest = int(np.argmin([loss for _, loss in tried]))

    def kept(at: int) -> bool:
        """Whether a fit at this β predicts about as well as at the best."""
        if clearly_worse(losses[at] - losses[lowest], rest.weights):
            return False
        if not merged_later:
            return True
        problem, posterior = boards[at]
        ended = merge_while_it_pays(problem, prune(posterior))
        return not clearly_worse(prediction_losses(ended, rest) - losses[lowest], rest.weights)

    # The smallest β that is not clearly worse: what the held-out observations cannot tell apart, the prior decides.
    beta, loss = tried[next((at for at in reversed(range(len(tried))) if kept(at)), lowest)]
    why = (
        f"β = {beta:.3g} is the smallest of {len(tried)} values that is not clearly worse than the best on "
        f"{rest.n_rows:,} held-out observations (loss {loss:.4g}, best {tried[lowest][1]:.4g})"
    )
    return beta, tried, why


def beta_of_item_means(sample: Sample, cell: CellModel) -> tuple[float, str]:
    """β from the error of item means on a tenth of the observations that the means have not seen, and why.

    Under a Laplace or Gaussian noise of that size these are the natural exchange rates between loss and
    information: 1/scale, lowered a little because a checkerboard does better than means, and 1/(2 σ²). One pass
    over the data, in whatever unit the labels are; the items say which observations are held out, so that the same
    observations have the same β whatever the seed and the order of the rows.
    """
    if cell.code_length:
        return 1.0, "β = 1: the loss is a log likelihood"
    held = tenths(sample) == 0
    if held.any() and not held.all():
        error = _error_of_item_means(cell, sample.take(~held), sample.take(held))
    else:
        error = _error_of_item_means(cell, sample, sample)
    if cell.ordered:
        rate = cell.noise_rate * (LOWERED if cell.needs_alphabet else 1.0)
        beta = rate / error if error > 0 else 1.0
    else:
        beta = 1.0 / max(error, 0.02 * cell.range) if cell.range > 0 else 1.0
    return beta, f"β = {beta:.3g} from the held-out loss of item means ({error:.3g})"


def tenths(sample: Sample) -> AnyArray:
    """A number from 0 to 9 per observation, by a hash of its items; repetitions of an observation have the same one."""
    low = 0xFFFFFFFF  # products wrap around; shifted numbers keep their sign, of which these bits are free
    zero, step, last = beside(HASH.view(np.int64)[:, None], sample.codes[0])
    key: AnyArray = 0 * sample.codes[0] + zero
    for code in sample.codes:
        key = (key ^ code) * step
        key = key ^ ((key >> 32) & low)
    found: AnyArray = ((key * last >> 32) & low) // int(SHARE * 2**32)
    return found


def _error_of_item_means(cell: CellModel, seen: Sample, held: Sample) -> float:
    """Average held-out loss: of the mean for losses of numbers, of the best answer to label shares for others."""
    if cell.ordered:
        miss = held.numbers() - _item_means(seen, held, seen.numbers())
        own = cell.of_gap(miss)
        return average(abs(miss) if own is None else own, held.weights)
    n_labels = cell.features.size
    columns = [
        _item_means(seen, held, 1.0 * (seen.label_codes == label)) if label < MOST_CLASSES else 0.0 * held.codes[0]  # type: ignore[arg-type]
        for label in range(n_labels)
    ]
    shares = namespace(held.codes[0]).stack(columns, axis=1).clip(1e-12)
    placed = cell.placed(lambda array: beside(array, shares))
    losses = placed.coef(placed.answer(shares))[beside(np.arange(held.n_rows), shares), held.label_index]
    return average(losses, held.weights)


def _item_means(seen: Sample, held: Sample, y: Floats) -> Floats:
    """Global mean plus shrunken item means of a column of seen observations, for the held ones, (N,)."""
    xp = namespace(seen.codes[0])
    counts = xp.ones_like(y) if seen.weights is None else seen.weights
    base = average(y, seen.weights)
    rest = y - base
    predicted: Floats = xp.full_like(held.codes[0], base, dtype=xp.float64)
    for axis, (code, asked) in enumerate(zip(seen.codes, held.codes)):
        sums, weights = seen.totals(axis, [counts * rest, counts]).T
        means = sums / (weights + SHRINK)
        rest = rest - means[code]
        predicted = predicted + means[asked]
    return predicted


def average(values: Floats, weights: Floats | None) -> float:
    """Equivalent to ``np.average(values, weights=weights)``, for arrays and tensors."""
    return float(values.mean() if weights is None else (values * weights).sum() / weights.sum())


def clearly_worse(excess: Floats, weights: Floats | None) -> bool:
    """Whether an excess loss, observation by observation, is on average more than one standard error above zero."""
    mean = average(excess, weights)
    n = len(excess) if weights is None else float(weights.sum())
    return mean > sqrt(average((excess - mean) ** 2, weights) / n)


def merge_and_settle(
    problem: Problem, solution: Solution, solver: Projection | Sweep, checkpoint: Checkpoint = NO_CHECKPOINT
) -> Solution:
    """Merge clusters while it pays and let the items settle, until nothing changes."""
    settle = replace(solver, schedule=Constant()) if isinstance(solver, Projection) else solver
    for number in range(N_ROUNDS):
        if solution.interrupted:
            break
        before = prune(solution.posterior)
        merged = merge_while_it_pays(problem, before)
        if merged.n_clusters == before.n_clusters:
            return replace(solution, posterior=before)
        solution = settle.solve(problem, merged, checkpoint=checkpoint.stage(f"merged {number + 1}"))
    return replace(solution, posterior=prune(solution.posterior))


def explained(
    beta: float,
    tried: tuple[tuple[float, float], ...],
    reason: str,
    started_with: Sequence[int],
    found: Sequence[int],
    judge: str | None,
) -> Selection:
    """The selection with its reasons in one sentence; ``judge`` is what fell while clusters were merged."""
    began = " × ".join(str(m) for m in started_with)
    why = "clusters, as given" if judge is None else f"clusters: started with {began}, merged while {judge} fell"
    reason = f"{' × '.join(str(m) for m in found)} {why}; {reason}."
    return Selection(beta, tuple(found), tuple(started_with), tried, reason)


def held_out_losses(posterior: Posterior, sample: Sample) -> tuple[float, float]:
    """Average loss of the Gibbs prediction and of the deterministic one, on rows numbered as the posterior's items."""
    cell, rest = posterior.cells[0], posterior.rest(sample)
    # E_Q of ⟨coef, t(y)⟩ is linear in coef
    coef = posterior.expectation(sample.codes, cell.coef(posterior.answers[0]), 0)
    gibbs = (coef * rest.features_of(cell.features)).sum(axis=1)
    return average(gibbs, sample.weights), average(prediction_losses(posterior, sample), sample.weights)


def prediction_losses(posterior: Posterior, sample: Sample) -> Floats:
    """Loss of the deterministic prediction on each observation, (N,): median, mean or mode, as the loss asks.

    The codes of the sample number the items as the posterior does, −1 where it has not seen them.
    """
    codes = sample.codes
    cell = posterior.label_cell()
    if cell.table is not None:
        # The answer that would lose least if labels followed the predicted distribution.
        expected = posterior.predict_distribution(codes)
        table = beside(cell.table, expected)
        return table[sample.label_index, (expected @ table).argmin(axis=1)]  # type: ignore[no-any-return]
    labels = sample.numbers()
    if cell.answers == "number" and cell.of_gap(np.zeros(0)) is None:
        coef = beside(cell.coef(on_host(posterior.predict(codes))), codes[0])
        return (coef * cell.features.evaluate(labels)).sum(axis=1)  # type: ignore[no-any-return]
    if cell.ordered:
        return (labels - posterior.predict(codes)) ** 2
    expected = posterior.predict_distribution(codes)
    probabilities = expected[beside(np.arange(sample.n_rows), expected), sample.label_index]
    return -log(probabilities.clip(1e-300))
