"""Planted problems whose truth is known exactly, and posteriors that try to break a bound on them.

Every problem hides a weak pattern of signs: a tuple's label is high with probability ½ + a where the signs of its
items multiply to +1, and low where they multiply to −1. The rest is noise, and noise is what a posterior over-fits.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

import numpy as np
from scipy.special import expit
from scipy.stats import beta, binom

from gingham.cells import Absolute
from gingham.certificates.divergence import kl
from gingham.core.problem import Posterior, Structure
from gingham.data import Alphabet, Mode, Sample
from gingham.data.graphs import PairSample

DELTA = 0.05
MANY = 128  # hypotheses among which "best of many" chooses


@dataclass(frozen=True, eq=False)
class Planted:
    """A law of labelled tuples: ``codes`` (Z,) per position, ``law`` (Z, |Y|), the planted ``signs`` per mode."""

    name: str
    structure: Structure
    cell: Absolute
    codes: tuple[np.ndarray, ...]
    law: np.ndarray
    signs: tuple[np.ndarray, ...]
    n_observations: int

    @property
    def factor(self) -> tuple[int, ...]:
        return self.structure.factors[0]

    @property
    def population(self) -> tuple[int, ...]:
        """All items there are: the papers' price needs to be told."""
        return tuple(mode.n_items for mode in self.structure.modes)

    @cached_property
    def charges(self) -> np.ndarray:
        """+1 for the highest label, −1 for the lowest, 0 between, (|Y|,)."""
        numbers = self.cell.alphabet.numbers
        return 2 * (numbers - numbers.min()) / np.ptp(numbers) - 1

    def draw(self, rng: np.random.Generator, n: int | None = None) -> np.ndarray:
        """How often each labelled tuple was drawn, (Z, |Y|)."""
        counts = rng.multinomial(self.n_observations if n is None else n, self.law.ravel())
        return counts.reshape(self.law.shape).astype(np.float64)

    def sample(self, counts: np.ndarray) -> Sample:
        at, labels = np.nonzero(counts)
        modes = [self.structure.modes[mode] for mode in self.factor]
        letters = self.cell.alphabet
        codes, weights = [c[at] for c in self.codes], counts[at, labels]
        sample = Sample.of(codes, letters.values[labels], weights, modes=modes, alphabet=letters)
        if not self.structure.repeats:
            return sample
        parts = (sample.modes, sample.codes, sample.labels, sample.alphabet, sample.label_codes, sample.weights)
        return PairSample(*parts, directed=False, complete=False)

    def loss(self, posterior: Posterior, weights: np.ndarray | None = None) -> float:
        """Gibbs loss under the law, or under counts (Z, |Y|)."""
        weights = self.law if weights is None else weights
        answers = posterior.predict_distribution(self.codes)  # (Z, A)
        return float((weights * (answers @ self.cell.table.T)).sum() / weights.sum())

    def loss_of(self, predictions: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Loss of one number for each tuple, (Z,)."""
        weights = self.law if weights is None else weights
        gaps = np.abs(self.cell.alphabet.numbers[None, :] - predictions[:, None])
        return float((weights * gaps).sum() / weights.sum())

    def pattern(self, signs: tuple[np.ndarray, ...]) -> np.ndarray:
        """The product of the signs of each tuple's items, (Z,)."""
        return np.prod([signs[mode][code] for mode, code in zip(self.factor, self.codes)], axis=0)

    def posterior(self, ups: tuple[np.ndarray, ...]) -> Posterior:
        """Two clusters a mode, ``ups`` (n,) the share of each item in the first; cells answer by their sign."""
        assign = tuple(np.column_stack([up, 1 - up]) for up in ups)
        high = self.cell.alphabet.size - 1
        signs = np.prod(np.array(list(product((1, -1), repeat=len(self.factor)))), axis=1)
        answers = np.where(signs > 0, high, 0).reshape((2,) * len(self.factor))
        return Posterior(self.structure, (self.cell,), assign, (answers,))


def flipped(posterior: Posterior) -> Posterior:
    """The opposite answers: what fits too well now fits too badly."""
    high = posterior.cells[0].alphabet.size - 1  # type: ignore[attr-defined]
    return replace(posterior, answers=(high - posterior.answers[0],))


def planted(
    name: str,
    sizes: tuple[int, ...],
    n_observations: int,
    labels: tuple[int, ...] = (0, 1),
    advantage: float = 0.03,
    middle: float = 0.0,
    graph: bool = False,
    seed: int = 0,
) -> Planted:
    rng = np.random.default_rng(seed)
    modes = tuple(Mode(f"mode {i}", np.arange(size)) for i, size in enumerate(sizes))
    if graph:
        structure = Structure(modes, ((0, 0),))
        codes = tuple(np.triu_indices(sizes[0], 1))
    else:
        structure = Structure.grid(modes)
        codes = tuple(c.ravel() for c in np.indices(sizes))
    signs = tuple(rng.permutation(np.where(np.arange(size) % 2, 1, -1)) for size in sizes)
    cell = Absolute(Alphabet.of(labels, given=True))
    problem = Planted(name, structure, cell, codes, np.zeros(0), signs, n_observations)
    high = (1 - middle) / 2 + advantage * problem.pattern(signs)
    columns = [1 - middle - high, high] if len(labels) == 2 else [1 - middle - high, np.full(len(high), middle), high]
    return replace(problem, law=np.column_stack(columns) / len(high))


def problems() -> dict[str, Planted]:
    """The three kinds of data: one mode, a matrix, a graph; and a third grid for what graphs do not have."""
    return {
        "d = 1": planted("d = 1", (150,), 150),
        "d = 2": planted("d = 2", (40, 40), 80, labels=(0, 1, 2), middle=0.1, seed=1),
        "graph": planted("graph", (60,), 75, graph=True, seed=2),
        "d = 3": planted("d = 3", (12, 10, 8), 60, seed=3),
    }


def fields(problem: Planted, weights: np.ndarray, signs: list[np.ndarray], only: int | None = None) -> list[np.ndarray]:
    """Σ over tuples of an item: charge · signs of the other items, one array per mode (zeros but for ``only``)."""
    force = weights @ problem.charges
    used = np.flatnonzero(force)
    return _fields(problem, force[used], [code[used] for code in problem.codes], signs, only)


def _fields(
    problem: Planted, force: np.ndarray, codes: list[np.ndarray], signs: list[np.ndarray], only: int | None = None
) -> list[np.ndarray]:
    result = [np.zeros(len(s)) for s in signs]
    values = [signs[mode][code] for mode, code in zip(problem.factor, codes)]
    for i, mode in enumerate(problem.factor):
        if only is None or mode == only:
            push = force
            for j, value in enumerate(values):
                push = push * value if j != i else push
            result[mode] += np.bincount(codes[i], push, len(signs[mode]))
    return result


def deepest(problem: Planted, counts: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Signs that fit a sample as well as can be found; 0 for items the sample does not tell."""
    force = counts @ problem.charges
    used = np.flatnonzero(force)
    seen = force[used], [code[used] for code in problem.codes]
    best: tuple[float, list[np.ndarray]] = (-np.inf, [])
    for start in range(2):
        if start == 0 and len(problem.factor) == 2:
            signs = forest(problem, counts)
        else:
            signs = [rng.choice([-1, 1], len(s)) for s in problem.signs]
        for _ in range(8):
            moved = False
            for mode in range(len(signs)):
                # A mode that meets itself is moved half at a time, or two neighbours would move at once.
                for part in (0, 1) if problem.structure.repeats else (None,):
                    wrong = signs[mode] * _fields(problem, *seen, signs, mode)[mode] < 0
                    if part is not None:
                        wrong &= np.arange(len(wrong)) % 2 == part
                    moved |= bool(wrong.any())
                    signs[mode] = np.where(wrong, -signs[mode], signs[mode])
            if not moved:
                break
        score = float(signs[0] @ _fields(problem, *seen, signs, 0)[0])
        if score > best[0]:
            best = (score, signs)
    told = _fields(problem, *seen, best[1])
    return [np.where(f == 0, 0, s) for s, f in zip(best[1], told)]


def forest(problem: Planted, counts: np.ndarray) -> list[np.ndarray]:
    """Signs that satisfy a spanning forest of the observed pairs: every tuple that closes no cycle is fitted."""
    sizes = [len(s) for s in problem.signs]
    shift = [0, 0] if problem.structure.repeats else [0, sizes[0]]
    total = sum(sizes)
    root, parity = list(range(total)), [1] * total

    def find(x: int) -> tuple[int, int]:
        sign = 1
        while root[x] != x:
            sign *= parity[x]
            x = root[x]
        return x, sign

    force = counts @ problem.charges
    for z in np.flatnonzero(force):
        a, b = int(problem.codes[0][z]) + shift[0], int(problem.codes[1][z]) + shift[1]
        (ra, sa), (rb, sb) = find(a), find(b)
        if ra != rb:
            root[ra] = rb
            parity[ra] = sa * sb * (1 if force[z] > 0 else -1)
    signs = np.array([find(x)[1] for x in range(total)])
    return [signs] if problem.structure.repeats else [signs[: sizes[0]], signs[sizes[0] :]]


def against(
    problem: Planted, signs: list[np.ndarray], hidden: np.ndarray | None = None, rounds: int = 2
) -> list[np.ndarray]:
    """The items that a sample leaves open are set where the truth (or what is hidden) loses most by it."""
    weights = problem.law if hidden is None else hidden
    result = [np.where(s == 0, 1, s) for s in signs]
    for _ in range(rounds):
        for mode, s in enumerate(signs):
            pull = fields(problem, weights, result, mode)[mode]
            result[mode] = np.where(s == 0, np.where(pull > 0, -1, 1), s)
    return result


def skewed(problem: Planted, high: float) -> Planted:
    """The same tuples with labels that say nothing, of which a share ``high`` is high and the others are low."""
    low = np.zeros_like(problem.law)
    low[:, 0], low[:, -1] = 1 - high, high
    return replace(problem, name=f"{problem.name}, skewed", law=low / len(low))


def many_items() -> dict[str, Planted]:
    """Skewed noise on very many items that come once or never: what a posterior fits there, it has made up.

    The gain over a constant is bounded for the worst constant. With balanced labels, and items that come once, half of
    KL(Q‖P) is still enough: for both constants together the logarithms of the wealth sum to N [ln 2 − H(label|answer)]
    at most, and KL(Q‖P) = N [ln 2 − H(answer|label)], so that half of it, twice, is short by N [H(answer) − H(label)]
    ≤ 0. With skewed labels the worse constant is out of the race, and the mistake shows.
    """
    one = planted("d = 1", (300,), 300, advantage=0.0)
    two = planted("d = 2", (300, 2), 300, advantage=0.0, seed=1)
    graph = planted("graph", (301,), 300, advantage=0.0, graph=True, seed=2)
    spokes = graph.codes[0] == 0  # all pairs of one hub
    star = replace(graph, codes=tuple(code[spokes] for code in graph.codes), law=graph.law[spokes])
    return {"d = 1, skewed": skewed(one, 0.15), "d = 2, skewed": skewed(two, 0.15), "graph, skewed": skewed(star, 0.15)}


def made_up(problem: Planted, counts: np.ndarray, strength: float) -> Posterior:
    """Items drawn towards the labels they showed, ``strength`` times as hard as the wealth at ν ≈ 1 asks for.

    Only the items of the last tuple position but one, or the only one, are free; all others are in the first cluster.
    """
    free = problem.factor[-1] if problem.structure.repeats else 0
    code = problem.codes[-1] if problem.structure.repeats else problem.codes[0]
    shares = [np.ones(len(s)) for s in problem.signs]
    high, low = (np.bincount(code, counts[:, label], len(shares[free])) for label in (-1, 0))
    shares[free] = expit(strength * (high * np.log(1.95) + low * np.log(0.05)))
    if problem.structure.repeats:
        shares[free][0] = 1.0  # the hub
    return problem.posterior(tuple(shares))


def best_of_many(
    problem: Planted,
    counts: np.ndarray,
    rng: np.random.Generator,
    truth: np.ndarray | None = None,
    n_patterns: int = MANY,
) -> list[np.ndarray]:
    """Of many random patterns the one whose loss on the sample is most surprisingly low."""
    truth = problem.law if truth is None else truth
    many = [2 * rng.integers(0, 2, (n_patterns, len(s)), dtype=np.int8) - 1 for s in problem.signs]
    patterns = np.prod(
        [many[mode][:, code] for mode, code in zip(problem.factor, problem.codes)], axis=0, dtype=np.int8
    )
    patterns = patterns.astype(np.float32)
    seen, true = (
        np.clip(0.5 - patterns @ (w @ problem.charges).astype(np.float32) / (2 * w.sum()), 0, 1)
        for w in (counts, truth)
    )
    surprise = np.where(seen < true, kl(seen, np.clip(true, 1e-12, 1 - 1e-12)), -1.0)
    return [signs[int(np.argmax(surprise))] for signs in many]


def ups(signs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Shares in the first cluster: +1, −1, and ½ for items left open."""
    return tuple((1 + s) / 2 for s in signs)


def soft(problem: Planted, counts: np.ndarray, signs: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The cheapest way to fit noise: what the sample does not tell stays undecided and costs nothing."""
    if len(problem.factor) == 1:
        return (expit(3.0 * fields(problem, counts, signs)[0]),)
    return ups(signs)


ADVERSARIES = ("deepest fit", "against the complement", "best of many")


def adversary(
    name: str, problem: Planted, counts: np.ndarray, rng: np.random.Generator, hidden: np.ndarray | None = None
) -> Posterior:
    """A posterior chosen in view of the sample and of the truth (the hidden part of a population).

    The samples take turns: each adversary meets a third of them.
    """
    if name == "best of many":
        truth = None if hidden is None else hidden + counts
        return problem.posterior(ups(best_of_many(problem, counts, rng, truth)))
    signs = deepest(problem, counts, rng)
    if name == "against the complement":
        return problem.posterior(ups(against(problem, signs, hidden)))
    return problem.posterior(soft(problem, counts, signs))


ALL = "all"


@dataclass
class Tally:
    """How often a bound failed: bound → adversary (and all of them together) → [failures, samples]."""

    counts: dict[str, dict[str, list[int]]] = field(default_factory=dict)

    def note(self, bound: str, adversary: str, failed: bool) -> None:
        for name in (adversary, ALL):
            entry = self.counts.setdefault(bound, {}).setdefault(name, [0, 0])
            entry[0] += int(failed)
            entry[1] += 1

    def above(self, bound: str, adversary: str, truth: float, value: float) -> None:
        """Note a bound from above."""
        self.note(bound, adversary, truth > value + 1e-12)

    def rows(self) -> dict[str, dict[str, dict[str, float]]]:
        """Failures, samples, rate and the upper limit of the rate."""
        return {
            bound: {adversary: summary(*entry) for adversary, entry in row.items()}
            for bound, row in self.counts.items()
        }


def summary(failures: float, samples: float) -> dict[str, float]:
    """With the 99.9 % upper limit of Clopper and Pearson."""
    upper = float(beta.ppf(0.999, failures + 1, samples - failures)) if failures < samples else 1.0
    return {"failures": failures, "samples": samples, "rate": failures / samples, "upper": upper}


def allowed(n_samples: float, delta: float = DELTA) -> int:
    """The number of failures that a bound failing with probability δ exceeds once in a thousand."""
    return int(binom.ppf(0.999, n_samples, delta))
