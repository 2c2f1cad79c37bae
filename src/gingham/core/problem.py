"""The frozen values of a fit: which modes meet where, the posterior Q, and what is to be minimised.

A `Structure` says how the data is divided. A `Posterior` is Q: soft assignments of items to clusters and the answers of
the cells, with what follows from them. A `Problem` is samples × structure × cells × β, its `Objective` the named terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log, prod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import xlogy

from gingham.arrays import AnyArray, Floats, Ints, beside, namespace, nearest, on_host, vstack
from gingham.cells import CellModel
from gingham.cells.losses import ZeroOne, cell_from_state, cell_state
from gingham.data import Bounds, Features, Mode, OneHot, Sample
from gingham.engine.project import BLOCK_BYTES, row_blocks
from gingham.engine.sums import Sums
from gingham.errors import GinghamError
from gingham.storage import State, fields_of, savable


@savable
@dataclass(frozen=True, eq=False)
class Structure:
    """Named modes, each clustered once, and the relations (factors) in which they meet."""

    # Whether a mode that stands at several positions is drawn anew at each, independently of the others.
    drawn_apart: ClassVar[bool] = False

    modes: tuple[Mode, ...]
    # For each relation, which mode stands at each of its positions. A grid has one factor (0, 1, …, d − 1); a graph
    # has one factor (0, 0); shared matrices have several.
    factors: tuple[tuple[int, ...], ...]
    # Modes whose assignments are given beforehand (every item its own cluster, say) and never move; they carry no
    # information about the data and cost nothing.
    frozen: tuple[int, ...] = ()

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

    def column_modes(self, relation: int = 0) -> tuple[int, ...]:
        """Which mode stands in each column of a relation's observations."""
        return self.factors[relation]

    def columns(self, relation: int = 0) -> tuple[Mode, ...]:
        """The mode of each column of a relation's observations."""
        return tuple(self.modes[mode] for mode in self.column_modes(relation))

    def is_graph(self, relation: int = 0) -> bool:
        """Whether the relation is one mode that meets itself."""
        factor = self.factors[relation]
        return not self.drawn_apart and len(factor) == 2 and factor[0] == factor[1]

    def choices(self) -> dict[str, float]:
        """What a prior pays for the structure itself, in nats, by name."""
        return {}

    def clusterings(self, assign: Sequence[Floats], relation: int, sizes: Mapping[int, int]) -> dict[str, Floats]:
        """The clusterings that one relation's guarantee pays for, by name; frozen ones were not learned.

        ``sizes`` are numbers of items that are known, of some modes.
        """
        modes = [mode for mode in dict.fromkeys(self.factors[relation]) if mode not in self.frozen]
        names = self.titles(modes) if len(modes) > 1 else ["items"]
        return {name: assign[mode] for name, mode in zip(names, modes)}

    def titles(self, modes: Sequence[int]) -> list[str]:
        """Names of some modes; their numbers where two have one name."""
        names = [self.modes[mode].name for mode in modes]
        return names if len(set(names)) == len(names) else [f"mode {mode}" for mode in modes]

    def uses(self, mode: int) -> list[tuple[int, int]]:
        """(relation, position) pairs at which a mode stands."""
        return [
            (relation, position)
            for relation, factor in enumerate(self.factors)
            for position, at in enumerate(factor)
            if at == mode
        ]


@savable
@dataclass(frozen=True, eq=False)
class Tree(Structure):
    """Leaves that merge step by step, as in P0 Fig. 8: only the nodes left at the top meet the labels.

    Leaves are nodes 0, …, d − 1. Inner node d + i has children ``children[i]``; its items are the
    combinations of their clusters, which it clusters in turn. The nodes without a parent are the roots:
    their clusters form the grid of cells (the single relation). Modes are what is clustered: items of leaves, then
    cells of inner nodes.
    """

    drawn_apart: ClassVar[bool] = True

    tables: tuple[int, ...] = ()  # which mode stands at each node; nodes that share a clustering name the same mode
    children: tuple[tuple[int, ...], ...] = ()  # nodes below each inner node
    price: float = 0.0  # −ln of the prior of this tree, nats, when it was chosen by looking at the data; else 0

    @classmethod
    def build(
        cls,
        modes: Sequence[Mode],
        n_clusters: Sequence[int],
        merges: Sequence[Sequence[int | None]],
        tied: Sequence[Sequence[int]] = (),
        price: float = 0.0,
    ) -> tuple[Tree, tuple[int, ...]]:
        """A tree from the modes and sizes of its leaves, and the number of clusters of each of its modes.

        Merge i, (child, …, child, D), makes node d + i with D clusters; D = None keeps every combination by itself.
        ``tied`` are groups of nodes that share one clustering: leaves that hold the same Mode, or inner nodes that
        merge equal sizes.
        """
        d = len(modes)
        check_merges(d, merges)
        sizes = list(n_clusters)
        items = [mode.n_items for mode in modes]
        group = {node: min(nodes) for nodes in tied for node in nodes}
        found: list[Mode] = []
        tables: list[int] = []
        widths, frozen = [], []
        for node in range(d + len(merges)):
            if node >= d:
                *below, width = merges[node - d]
                cells = prod(sizes[child] for child in below if child is not None)
                items.append(cells)
                sizes.append(cells if width is None else width)
            first = group.get(node, node)
            if first < node:
                if (items[first], sizes[first]) != (items[node], sizes[node]) or (first < d) != (node < d):
                    raise GinghamError(
                        f"Nodes {first} and {node} cannot share a clustering: {items[first]} items in "
                        f"{sizes[first]} clusters against {items[node]} in {sizes[node]}."
                    )
                tables.append(tables[first])
                continue
            if node >= d and merges[node - d][-1] is None:
                frozen.append(len(found))
            tables.append(len(found))
            name = "·".join(str(child) for child in merges[node - d][:-1]) if node >= d else ""
            found.append(modes[node] if node < d else Mode(f"merge {name}", np.arange(items[node])))
            widths.append(sizes[node])
        children = tuple(tuple(int(c) for c in merge[:-1] if c is not None) for merge in merges)
        below_any = {child for nodes in children for child in nodes}
        roots = tuple(node for node in range(d + len(merges)) if node not in below_any)
        tree = cls(tuple(found), (tuple(tables[r] for r in roots),), tuple(frozen), tuple(tables), children, price)
        return tree, tuple(widths)

    def column_modes(self, relation: int = 0) -> tuple[int, ...]:
        return self.tables[: self.n_leaves]  # inner nodes have no column

    def choices(self) -> dict[str, float]:
        found = {"choice of the tree": self.price} if self.price > 0 else {}
        n_tied = sum(mode not in self.frozen for mode in self.tied)
        if n_tied:  # which of the two is decided by looking at the memberships
            found["tied tables, drawn once or at each node"] = n_tied * log(2)
        return found

    def clusterings(self, assign: Sequence[Floats], relation: int, sizes: Mapping[int, int]) -> dict[str, Floats]:
        """The tables that the guarantee of a tree pays for, leaves and inner nodes alike (P0 eq. 51: B1 + B2).

        A clustering that several nodes share is paid once when it is hard and no item is missing in it. A soft one is
        drawn anew at each node (its Gibbs loss is the product over nodes), and so are unseen items: it is paid for at
        each. The prior draws it once or at each node with probability ½, which costs ln 2 (see `choices`). Frozen
        tables were not learned and cost nothing.
        """
        tables = {}
        for mode, q in enumerate(assign):
            if mode in self.frozen:
                continue
            nodes = [node for node, at in enumerate(self.tables) if at == mode]
            known = nodes[0] >= self.n_leaves or sizes.get(mode) == len(q)
            hard = bool(((q == 0) | (q == 1)).all())
            for node in nodes[:1] if hard and known else nodes:
                tables[f"node {node} ({self.modes[mode].name})"] = q
        return tables

    @property
    def n_leaves(self) -> int:
        return len(self.tables) - len(self.children)

    @property
    def roots(self) -> tuple[int, ...]:
        """Nodes without a parent; their clusters span the cells."""
        below = {child for nodes in self.children for child in nodes}
        return tuple(node for node in range(len(self.tables)) if node not in below)

    @property
    def tied(self) -> tuple[int, ...]:
        """Modes that stand at several nodes; the loss is not linear in their assignments."""
        return tuple(mode for mode in range(self.n_modes) if self.tables.count(mode) > 1)


def check_merges(n_leaves: int, merges: Sequence[Sequence[int | None]]) -> None:
    """Refuse merges that are no tree: every node below at most one merge, children before parents."""
    used: dict[int, int] = {}
    for i, merge in enumerate(merges):
        if len(merge) < 2:
            raise GinghamError(f"merges[{i}]={tuple(merge)} needs at least one child and the number of clusters.")
        *below, width = merge
        if width is not None and (not isinstance(width, int | np.integer) or width < 1):
            raise GinghamError(f"merges[{i}] asks for {width!r} clusters; give a positive number or None.")
        for child in below:
            if not isinstance(child, int | np.integer) or not 0 <= child < n_leaves + i:
                raise GinghamError(
                    f"merges[{i}] names node {child!r}; before it there are nodes 0 to {n_leaves + i - 1} "
                    f"(leaves 0 to {n_leaves - 1}, then one node per merge)."
                )
            if child in used:
                raise GinghamError(f"Node {child} is merged twice, in merges[{used[child]}] and merges[{i}].")
            used[int(child)] = i


TABLE_BYTES = 2**32  # largest table of cell statistics
DEVICE_BYTES = 2**32  # of a temporary on a GPU
RULES = ("mean", "median", "mode")


class LossLaw(NamedTuple):
    """The distribution of the Gibbs loss: the predictor draws a partition from Q, the data draws an observation.

    ``values`` in the loss's own unit, ``weights`` sum to one.
    """

    values: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        return float(self.values @ self.weights)


@savable
@dataclass(frozen=True, eq=False)
class Offsets:
    """Additive effects beside the checkerboard: base + Σ_i effects_i[x_i].

    Attributes
    ----------
    base : float
    effects : tuple of arrays of shape (n_items,), one per position of the relation
        An unseen item (code −1) adds 0.
    shrink : float
        Observations with effect 0 that the mean of every item starts from.
    cell : CellModel, optional
        The loss on the labels themselves, with their alphabet and bounds; the posterior's own cells answer with what
        the offsets leave over.
    bounds : Bounds, optional
        Smallest and largest label, to which predictions are clipped.
    """

    base: float
    effects: tuple[Floats, ...]
    shrink: float = 5.0
    cell: CellModel | None = None
    bounds: Bounds | None = None

    def _to_file(self) -> State:
        """What a model file keeps: all fields, the cell as its registered name and parameters."""
        cell = None if self.cell is None else (cell_state(self.cell), self.cell.alphabet)
        return {**fields_of(self), "cell": cell}

    @classmethod
    def _from_file(cls, state: State) -> Self:
        return cls(**{**state, "cell": None if state["cell"] is None else cell_from_state(*state["cell"])})

    def at(self, codes: Sequence[Ints]) -> Floats:
        """The sum of the effects for each row, (N,), where the codes lie."""
        first = codes[0]
        total = beside(np.full(len(first), self.base), first)
        for effect, code in zip(self.effects, codes):
            total = total + beside(np.append(effect, 0.0), first)[code]
        return total  # type: ignore[no-any-return]

    def clipped(self, values: Floats) -> Floats:
        """Predictions within the range of the labels."""
        if self.bounds is None:
            return values
        return values.clip(self.bounds.low, self.bounds.high)

    def rest(self, sample: Sample, cell: CellModel) -> Sample:
        """The observations with what the offsets leave over for labels, on the values that a cell answers with."""
        left = sample.numbers() - self.at(sample.codes)
        if cell.alphabet is None:
            return replace(sample, labels=left, label_codes=None, alphabet=None)
        codes = nearest(left, cell.alphabet.numbers)
        return replace(sample, labels=left, label_codes=codes, alphabet=cell.alphabet)

    def law_of_labels(self, distribution: Floats, values: Floats, codes: Sequence[Ints]) -> Floats:
        """The distribution of the label, (N, |Y|), from that of what is left over, whose numbers are ``values``.

        A number between two labels becomes one of them at random, so that its mean stays.
        """
        numbers = self.cell.alphabet.numbers  # type: ignore[union-attr]
        base, rows = on_host(self.at(codes)), np.arange(len(distribution))
        result = np.zeros((len(distribution), len(numbers)))
        widths = np.append(np.diff(numbers), 1.0)
        for value, share in zip(values, on_host(distribution).T):
            reached = np.clip(base + value, numbers[0], numbers[-1])
            below = np.clip(np.searchsorted(numbers, reached, side="right") - 1, 0, len(numbers) - 1)
            above = (reached - numbers[below]) / widths[below]
            result[rows, below] += share * (1.0 - above)
            result[rows, np.minimum(below + 1, len(numbers) - 1)] += share * above
        return np.asarray(result) if isinstance(distribution, np.ndarray) else beside(result, distribution)


@savable
@dataclass(frozen=True, eq=False)
class Posterior:
    """A distribution over checkerboards.

    Attributes
    ----------
    structure : Structure
    cells : tuple of CellModel, one per relation
    assign : tuple of arrays of shape (n_items, n_clusters), one per mode
        q(c|x); rows sum to one.
    answers : tuple of arrays of shape (m_1, …, m_d) or (m_1, …, m_d, |Y|), one per relation
    offsets : Offsets, optional
        Effects of single items that the first relation adds to its checkerboard; its cells and answers are then those
        of what the offsets leave over, and samples still hold labels.

    Examples
    --------
    >>> import numpy as np
    >>> import gingham as gg
    >>> X = np.random.default_rng(0).integers(0, 30, (600, 2))
    >>> y = 1.0 + 4 * ((X[:, 0] + X[:, 1]) % 2)
    >>> model = gg.CoClusteringRegressor(2, beta=1.0, alphabet=[1, 5], random_state=0).fit(X, y)
    >>> [rows.shape for rows in model.posterior_.assign], model.posterior_.answers[0].shape
    ([(30, 2), (30, 2)], (2, 2))
    """

    structure: Structure
    cells: tuple[CellModel, ...]
    assign: tuple[Floats, ...]
    answers: tuple[AnyArray, ...]
    offsets: Offsets | None = field(default=None, kw_only=True)
    # Sums over the assignments, once known. Not an argument: `replace` begins with none, for others have other sums.
    _sums: dict[str, tuple[Any, ...]] = field(default_factory=dict, init=False, repr=False)

    def _to_file(self) -> State:
        """What a model file keeps: all fields, the cells as their registered names and parameters."""
        return {
            **fields_of(self),
            "cells": [(cell_state(cell), getattr(cell, "alphabet", None)) for cell in self.cells],
        }

    @classmethod
    def _from_file(cls, state: State) -> Self:
        cells = tuple(cell_from_state(*cell) for cell in state["cells"])
        posterior = cls(**{**state, "cells": cells})
        for mode, q in zip(posterior.structure.modes, posterior.assign):
            if q.ndim != 2 or len(q) != mode.n_items:
                raise GinghamError(f"The model file is damaged: mode {mode.name!r} has memberships of shape {q.shape}.")
        return posterior

    @property
    def has_known_price(self) -> bool:
        """Whether KL(Q‖P) is that of its tables and answers; classes that add something to it say so themselves."""
        return type(self) is Posterior

    def label_cell(self, relation: int = 0) -> CellModel:
        """The loss on the labels of a relation: that of its cells, unless these answer with what offsets leave over."""
        offsets = self._offsets(relation)
        return self.cells[relation] if offsets is None or offsets.cell is None else offsets.cell

    def _offsets(self, relation: int) -> Offsets | None:
        return self.offsets if relation == 0 else None

    def rest(self, sample: Sample, relation: int = 0) -> Sample:
        """The observations as the cells see them: without the offsets."""
        offsets = self._offsets(relation)
        return sample if offsets is None else offsets.rest(sample, self.cells[relation])

    def at_root(self, sample: Sample, named: bool = False) -> tuple[Posterior, Sample]:
        """The same predictor as a grid, and the sample in its terms; ``named`` gives readable names, for pictures."""
        return self, sample

    # facts about the assignments

    @property
    def n_clusters(self) -> tuple[int, ...]:
        """m_i, the clusters provided for each mode."""
        return tuple(q.shape[1] for q in self.assign)

    @property
    def mass(self) -> tuple[Floats, ...]:
        """qbar_i(c) = mean_x q_i(c|x)."""
        if "mass" not in self._sums:
            self._sums["mass"] = tuple(q.mean(axis=0, dtype=np.float64) for q in self.assign)
        return self._sums["mass"]

    @property
    def unseen_rows(self) -> tuple[Floats, ...]:
        """Memberships of an item of each mode that nobody has seen: (n qbar(c) + 1)/(n + m).

        The exact prior of a certificate (cluster sizes, then who belongs where) is Pólya's urn: having placed n items
        it draws the next one into a cluster of N_c items with probability (N_c + 1)/(n + m). So an item that is
        placed like that adds nothing to KL(Q‖P), however many there are (docs/theory/complexity).
        """
        sizes = ((*q.shape, mass) for q, mass in zip(self.assign, self.mass))
        return tuple((n * mass + 1.0) / (n + m) for n, m, mass in sizes)

    @property
    def information(self) -> tuple[float, ...]:
        """Ī_i = (1/n_i) Σ_x Σ_c q ln(q/qbar), nats, uniform over items (P0 §3.2)."""
        if "information" not in self._sums:
            self._sums["information"] = tuple(
                max(0.0, float(xlogy(q, q).sum(dtype=np.float64) / len(q) - xlogy(m, m).sum()))
                for q, m in zip(self.assign, self.mass)
            )
        return self._sums["information"]

    @property
    def known_sums(self) -> dict[str, tuple[Any, ...]]:
        """Those of ``mass`` and ``information`` that are known: a solver's own differ in the last bit."""
        return dict(self._sums)

    def with_sums(self, sums: Mapping[str, tuple[Any, ...]]) -> Posterior:
        """The same posterior, whose ``mass`` and ``information`` (those that are given) need not be summed again."""
        same = replace(self)
        same._sums.update(sums)
        return same

    def moved(
        self, mode: int, assign: Floats, mass: Floats, neg_entropy: float, answers: tuple[AnyArray, ...]
    ) -> Posterior:
        """The posterior after one mode's step; ``mass`` and Σ q ln q/n of that mode are known and kept."""
        swap = lambda values, new: (*values[:mode], new, *values[mode + 1 :])  # noqa: E731
        after = replace(self, assign=swap(self.assign, assign), answers=answers)
        information = max(0.0, float(neg_entropy - xlogy(mass, mass).sum()))
        return after.with_sums({"mass": swap(self.mass, mass), "information": swap(self.information, information)})

    @property
    def effective_clusters(self) -> tuple[float, ...]:
        """exp Ī_i: how many clusters the information would fill evenly."""
        return tuple(float(np.exp(i)) for i in self.information)

    @property
    def labels(self) -> tuple[Ints, ...]:
        """The most probable cluster of each item, one array per mode."""
        return tuple(q.argmax(axis=1) for q in self.assign)

    def by_label(self) -> Posterior:
        """The same clusters where each cell answers with its most probable label, which is right or wrong.

        So that models of the log loss can have their error rate certified, too.
        """
        cell = self.cells[0]
        if cell.answers != "distribution" or cell.alphabet is None:
            return self
        cells, answers = (ZeroOne(cell.alphabet), *self.cells[1:]), (self.answers[0].argmax(axis=-1), *self.answers[1:])
        return replace(self, cells=cells, answers=answers)

    def refit(self, sample: Sample, relation: int = 0) -> Posterior:
        """The same assignments with the best answers for a sample."""
        answers = list(self.answers)
        answers[relation] = self.cells[relation].answer(self.statistics(sample, relation))
        return replace(self, answers=tuple(answers))

    # sums over a sample

    def factor(self, relation: int = 0) -> tuple[Floats, ...]:
        """The assignments at the positions of a relation."""
        return tuple(self.assign[mode] for mode in self.structure.factors[relation])

    def statistics(
        self, sample: Sample, relation: int = 0, features: Features | None = None, backend: str = "auto"
    ) -> Floats:
        """S[c_1, …, c_d, k] = Σ_e w_e t_k(y_e) Π_j q_j(c_j|x_j): what each cell sees of a sample."""
        features = self.cells[relation].features if features is None else features
        sample = self.rest(sample, relation)
        assigns = self.factor(relation)
        check_table(tuple(q.shape[1] for q in assigns), features.size)
        backend = "compiled" if backend == "auto" else backend
        if not sample.has_unseen:
            return sample.sums(features).table(assigns, backend)
        wide = tuple(self.with_unseen(mode) for mode in self.structure.factors[relation])
        table = sample.with_others().sums(features).table(wide, backend)
        return table + self._statistics_shared(sample, features, relation) if self.shares_urn(relation) else table

    def gibbs_loss(self, sample: Sample, relation: int = 0) -> float:
        """L̂(Q): expected loss on a tuple of the sample when the partition is drawn from Q."""
        total = self.cells[relation].loss(self.answers[relation], self.statistics(sample, relation))
        return float(total.sum() / sample.n_observations)

    def loss_law(self, sample: Sample, relation: int = 0) -> LossLaw:
        """Values of the Gibbs loss and their weights, from label histograms of the cells."""
        if sample.alphabet is None:
            raise GinghamError(
                "The distribution of the loss needs labels on an alphabet: give alphabet= (the possible label values)."
            )
        cell = self.cells[relation]
        size = sample.alphabet.size
        histogram = self.statistics(sample, relation, OneHot(size))
        # Equal answers cost the same, so cells that share an answer are pooled.
        answers = self.answers[relation]
        tail = answers.shape[histogram.ndim - 1 :]
        distinct, inverse = np.unique(answers.reshape(-1, *tail), axis=0, return_inverse=True)
        pooled = np.zeros((len(distinct), size))
        np.add.at(pooled, inverse.ravel(), histogram.reshape(-1, size))
        losses = cell.coef(distinct) @ cell.features.of_labels(sample.alphabet.numbers).T
        values, at = np.unique(losses, return_inverse=True)
        weights = np.bincount(at.ravel(), pooled.ravel(), minlength=len(values))
        return LossLaw(values, weights / weights.sum())

    # predictions

    def predict_distribution(self, codes: Sequence[Ints], relation: int = 0) -> Floats:
        """Distribution of the Gibbs answer over the alphabet for each observation, shape (N, |Y|).

        Unseen items (code −1) belong to clusters by `unseen_rows`.
        """
        table = self.cells[relation].distribution(self.answers[relation])
        if table is None:
            raise GinghamError(
                f"{type(self.cells[relation]).__name__} cells answer with a number, not with a distribution "
                "over labels: use predict, or a loss on an alphabet (absolute, zero-one, log)."
            )
        distribution = self.expectation(codes, table, relation)
        offsets = self._offsets(relation)
        if offsets is None:
            return distribution
        return offsets.law_of_labels(distribution, self.cells[relation].values(np.arange(distribution.shape[1])), codes)

    def predict(self, codes: Sequence[Ints], rule: str = "mean", relation: int = 0) -> Floats:
        """One number per observation: mean of the answers, or the median or commonest label."""
        if rule not in RULES:
            raise GinghamError(f"rule={rule!r} is unknown; choose one of {', '.join(RULES)}.")
        cell = self.cells[relation]
        if rule == "mean":
            mean = self.expectation(codes, cell.values(self.answers[relation])[..., None], relation)[:, 0]
            offsets = self._offsets(relation)
            return mean if offsets is None else offsets.clipped(offsets.at(codes) + mean)
        cell = self.label_cell(relation)
        distribution = self.predict_distribution(codes, relation)
        labels = cell.values(np.arange(distribution.shape[1])) if cell.n_answers else None
        numbers = getattr(cell, "alphabet").numbers if labels is None else labels  # noqa: B009
        numbers = beside(numbers, distribution)
        if rule == "mode":
            return numbers[distribution.argmax(axis=1)]  # type: ignore[no-any-return]
        half = 0.5 * (1 - 1e-12)  # rounding must not push an exact half over to the next label
        return numbers[(distribution.cumsum(1) < half).sum(axis=1)]  # type: ignore[no-any-return]

    def factors(self, relation: int = 0) -> tuple[Any, ...]:
        """The tri-factorisation behind the mean prediction (P0 eqs. 43-48), in one layout.

        Two positions: (Q1, F, Q2) with A ≈ Q1 F Q2ᵀ; Q has shape (n_items, n_clusters), rows sum to one, and F
        holds the cells' answers as numbers. Otherwise Tucker's (F, (Q1, …, Qd)) with
        A ≈ F ×₁ Q1 ×₂ … ×_d Qd. ``predict`` evaluates single entries of A without forming it.
        """
        core = self.cells[relation].values(self.answers[relation])
        sides = self.factor(relation)
        return (sides[0], core, sides[1]) if len(sides) == 2 else (core, sides)

    def cell_distributions(self, codes: Sequence[Ints], relation: int = 0) -> Floats:
        """P(the items of an observation fall into the cell) for each observation and cell, shape (N, Π m_j)."""
        distributions = np.ones((len(codes[0]), 1))
        for mode, code in zip(self.structure.factors[relation], codes):
            distributions = (distributions[:, :, None] * self.with_unseen(mode)[code][:, None, :]).reshape(
                len(distributions), -1
            )
        if self.shares_urn(relation) and (unseen := np.minimum(*codes) < 0).any():
            m = self.factor(relation)[0].shape[1]
            each_cell = np.eye(m * m).reshape(m, m, -1)
            distributions[unseen] += self._contract_shared([code[unseen] for code in codes], each_cell, relation)
        return distributions

    def expectation(self, codes: Sequence[Ints], table: Floats, relation: int) -> Floats:
        """Σ_c P(cell c | tuple) table[c_1, …, c_d, :] for each observation; the modes of a grid are independent."""
        factors = [beside(self.with_unseen(mode), codes[0]) for mode in self.structure.factors[relation]]
        result = contract(codes, factors, beside(table, codes[0]))
        if self.shares_urn(relation):
            result += beside(self._contract_shared([on_host(code) for code in codes], table, relation), result)
        return result

    def with_unseen(self, mode: int) -> Floats:
        """Memberships of a mode's items, with those of an unseen item (code −1) in the last row."""
        q = self.assign[mode]
        return vstack([q, beside(self.unseen_rows[mode], q)])

    # Both ends of a pair of a graph are drawn from one urn, an unseen end after the other. With S = n·qbar:
    #   one end unseen:  P(a, c) = q(a|x) (S_c − q(c|x) + [a = c] + 1)/(n + m)
    #   both unseen:     P(a, c) = {(S_a + 1)(S_c + 1 + [a = c]) + cov(N_a, N_c)}/((n + m)(n + m + 1))
    # The functions below add what these differ from the product of the two ends' rows.

    def shares_urn(self, relation: int = 0) -> bool:
        """Whether unseen items at the two positions of a relation are drawn from one urn, as in a graph."""
        factor = self.structure.factors[relation]
        return len(factor) == 2 and factor[0] == factor[1]

    def _contract_shared(self, codes: Sequence[Ints], table: Floats, relation: int) -> Floats:
        """What a shared urn adds to Σ_ac (row of one end)_a (row of the other)_c table[a, c, :] for each pair."""
        q = self.factor(relation)[0]
        n_unseen = np.add(*[np.asarray(code) < 0 for code in codes], dtype=np.int64)
        one, both = n_unseen == 1, n_unseen == 2
        result = np.zeros((len(n_unseen), table.shape[-1]))
        if one.any():
            seen = np.maximum(*codes)[one]
            alike = q[seen] @ np.einsum("aak->ak", table)
            result[one] = (alike - contract([seen, seen], [q, q], table)) / sum(q.shape)
        if both.any():
            result[both] = np.tensordot(self._both_unseen(relation), table, 2)
        return result

    def _statistics_shared(self, sample: Sample, features: Features, relation: int) -> Floats:
        """What a shared urn adds to the statistics of the pairs of a sample, shape (m, m, K)."""
        q = np.asarray(self.factor(relation)[0], dtype=np.float64)
        n_unseen = np.add(*[code < 0 for code in sample.codes], dtype=np.int64)
        one, both = n_unseen == 1, n_unseen == 2
        sums = features.evaluate(sample.labels, sample.label_codes)
        if sample.weights is not None:
            sums = sums * sample.weights[:, None]
        at_node = np.zeros((len(q), features.size))
        np.add.at(at_node, np.maximum(*sample.codes)[one], sums[one])
        result = -np.einsum("xa,xc,xk->ack", q, q, at_node, optimize=True)
        result[np.diag_indices(q.shape[1])] += q.T @ at_node
        total: Floats = result / sum(q.shape) + self._both_unseen(relation)[..., None] * sums[both].sum(axis=0)
        return total

    def _both_unseen(self, relation: int) -> Floats:
        """The distribution of the clusters of two unseen ends less the product of their rows, shape (m, m)."""
        q = np.asarray(self.factor(relation)[0], dtype=np.float64)
        n, m = q.shape
        sizes = q.sum(axis=0)
        together = np.outer(sizes + 1, sizes + 1) + np.diag(2 * sizes + 1) - q.T @ q  # cov = [a = c] S_a − (qᵀq)_ac
        row = self.unseen_rows[self.structure.factors[relation][0]]
        distribution: Floats = together / ((n + m) * (n + m + 1)) - np.outer(row, row)
        return distribution


def contract(codes: Sequence[Ints], factors: Sequence[Floats], table: Floats) -> Floats:
    """Σ_c Π_j factors_j[codes_j, c_j] table[c_1, …, c_d, :] for each observation, shape (N, K), where the codes lie."""
    xp = namespace(codes[0])
    n, width = len(codes[0]), table.shape[-1]
    rest = prod(table.shape[1:])
    first = factors[0]
    flat, budget = table.reshape(len(table), rest), BLOCK_BYTES if xp is np else DEVICE_BYTES
    flat = flat.astype(np.float64, copy=False) if xp is np else flat.to(first.dtype)  # type: ignore[attr-defined]
    # Contract the first mode once an item where items are fewer than observations.
    per_item = len(first) <= n and len(first) * rest * 8 <= budget
    shared = first @ flat if per_item else None
    out = np.empty((n, width)) if xp is np else first.new_empty((n, width), dtype=xp.float64)  # type: ignore[attr-defined]
    for start, stop in row_blocks(n, rest, budget):
        block = [code[start:stop] for code in codes]
        part = shared[block[0]] if shared is not None else first[block[0]] @ flat
        for j in range(1, len(factors)):
            part = part.reshape(stop - start, table.shape[j], -1)
            part = xp.einsum("em,emr->er", factors[j][block[j]], part)
        out[start:stop] = part
    return out


def check_table(n_clusters: Sequence[int], n_features: int) -> None:
    """Refuse a table of cell statistics that cannot be held."""
    size = 8 * n_features * prod(n_clusters)
    if size > TABLE_BYTES:
        shape = "×".join(str(m) for m in n_clusters)
        raise GinghamError(
            f"A {shape} grid has {prod(n_clusters):,} cells; their statistics need {size / 2**30:,.1f} GiB "
            f"(limit {TABLE_BYTES / 2**30:.0f}). Use fewer clusters per mode, or a tree instead of a grid."
        )


MOST_BETA = 1e100


@dataclass(frozen=True)
class Objective:
    """F(Q, β) = Σ_r β_r N_r L̂_r(Q) + Σ_i n_i Ī_i, term by term (P0 eq. 19)."""

    losses: tuple[float, ...]  # N_r L̂_r, in the loss's own unit
    information: tuple[float, ...]  # n_i Ī_i, nats
    betas: tuple[float, ...]

    @property
    def total(self) -> float:
        return float(np.dot(self.betas, self.losses) + sum(self.information))


@dataclass(frozen=True, eq=False)
class Problem:
    """What was observed, how it is divided, what cells cost, and how loss trades against information.

    Samples, cells and betas have one entry per relation.
    """

    structure: Structure
    samples: tuple[Sample, ...]
    cells: tuple[CellModel, ...]
    betas: tuple[float, ...]  # per unit of the loss as it stands (stars, say), not of the loss scaled to [0, 1]

    def __post_init__(self) -> None:
        for beta in self.betas:
            if not (np.isfinite(beta) and beta >= 0):
                raise GinghamError(f"beta={beta} must be a finite number ≥ 0.")
            if beta > MOST_BETA:
                raise GinghamError(f"beta={beta:g} is too large: from {MOST_BETA:g} on, products with losses overflow.")

    @classmethod
    def grid(cls, sample: Sample, cell: CellModel, beta: float) -> Problem:
        return cls(Structure.grid(sample.modes), (sample,), (cell,), (beta,))

    def sums(self, relation: int) -> Sums:
        """Sums over the tuples of a relation, which are all that a start asks of them."""
        return self.samples[relation].sums(self.cells[relation].features)

    def objective(self, posterior: Posterior) -> Objective:
        """Every term of F at a posterior, from scratch."""
        return Objective(
            losses=tuple(
                posterior.gibbs_loss(sample, relation) * sample.n_observations
                for relation, sample in enumerate(self.samples)
            ),
            information=information_terms(posterior),
            betas=self.betas,
        )


def information_terms(posterior: Posterior) -> tuple[float, ...]:
    """n_i Ī_i of each mode, nats; a frozen mode was not learned and counts nothing."""
    return tuple(
        0.0 if mode in posterior.structure.frozen else len(q) * i
        for mode, (q, i) in enumerate(zip(posterior.assign, posterior.information))
    )


def find_posterior(model: object) -> Posterior | None:
    """The posterior that something is, or has as ``posterior_``; None where it has none, or one of another kind."""
    found = getattr(model, "posterior_", model)
    return found if isinstance(found, Posterior) else None
