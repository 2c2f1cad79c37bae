"""Graphs as observed pairs of nodes (in hypergraphs, sets of nodes), and the readers of every form of a graph.

Sparse and dense matrices, networkx graphs, edge lists and frames are read. Absent pairs are counted, never listed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import comb, factorial
from numbers import Real
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

import numpy as np
from scipy import sparse

from gingham.arrays import AnyArray, Floats, Ints, MatrixLike
from gingham.data.adapt import added_up, as_frame, id_columns, is_frame, typed
from gingham.data.fit_rows import FitRows
from gingham.data.sample import Alphabet, Features, Mode, Sample, need_moderate
from gingham.data.sources import is_stream, opened
from gingham.errors import GinghamError, GinghamWarning

if TYPE_CHECKING:
    import narwhals as nw

LETTERS = ascii_lowercase  # names of positions in einsum
PAIRS = ("all", "listed")
NODE = "node"
ASK = "say hyperedges=True if each row is a set of nodes"
Ids = Sequence[object] | AnyArray
Weight = str | Sequence[float] | AnyArray | None


@dataclass(frozen=True, eq=False)
class PairSample(Sample):
    """Labelled pairs of nodes, each stored once, none with itself.

    Attributes
    ----------
    directed : bool
        Whether (i, j) and (j, i) are two pairs. If not, i < j, and block (a, b) is block (b, a).
    complete : bool
        Whether every pair was observed: those that are not listed have label 0. Their sums are totals
        minus listed ones, so that nothing of size n² is ever held.
    weighted : bool
        Whether pairs have weights. If not, a pair is joined or it is not, and 0 and 1 are all there is; of weights 0
        and 1 may be all that was seen.
    """

    pairs_once: ClassVar[bool] = True

    directed: bool = False
    complete: bool = True
    weighted: bool = True

    @property
    def n_nodes(self) -> int:
        return self.modes[0].n_items

    @property
    def n_observations(self) -> float:
        """N: observed pairs (sets of d nodes in a hypergraph), absent ones counted where all were observed."""
        if not self.complete:
            return Sample.n_observations.fget(self)  # type: ignore[attr-defined]
        pairs = comb(self.n_nodes, self.n_modes)
        return float(pairs * factorial(self.n_modes) if self.directed else pairs)

    def take(self, rows: AnyArray) -> PairSample:
        """Only the given rows of the list; absent pairs are left behind."""
        return replace(super().take(rows), complete=False)

    def fit_rows(self) -> FitRows:
        return FitRows.of(self, symmetric=not self.directed, complete=self.complete)

    def listed(self) -> PairSample:
        """The listed pairs alone."""
        return self.take(np.arange(self.n_rows))

    def absent_features(self, features: Features) -> Floats:
        """t(0), the statistics of one absent pair, shape (K,)."""
        zero = np.zeros(1)
        return features.evaluate(zero, None if self.alphabet is None else self.alphabet.encode(zero))[0]

    def completed(self, table: Floats, assigns: Sequence[Floats], features: Features) -> Floats:
        """Cell statistics of all observed pairs from those of the listed ones, shape (m, …, m, K).

        S_0 = (s sᵀ − QᵀQ)/2 pairs meet in each block, s = Σ_x q(·|x); what is not listed has t(0).
        """
        table = self._symmetric(table)
        if not self.complete:
            return table
        return self._with_absent(table, all_pairs(assigns[0], self.n_modes, self.directed), features)

    def block_statistics(self, labels: Ints, k: int, features: Features) -> Floats:
        """Cell statistics (k, …, k, K) of a hard partition: one pass over the listed pairs, and the sizes of clusters.

        Equivalent to ``sums(features).table([np.eye(k)[labels]] * n_modes)``.
        """
        d, shape = self.n_modes, (k,) * self.n_modes
        cell = labels[self.codes[0]].astype(np.int64)
        for code in self.codes[1:]:
            cell *= k
            cell += labels[code]
        if features.one_hot:
            if self.label_codes is None:
                raise GinghamError("This cell model needs labels on an alphabet.")
            cell = cell * features.size + self.label_codes
            table: Floats = np.bincount(cell, self.weights, minlength=k**d * features.size).astype(np.float64)
        else:
            columns = features.evaluate(np.ones(self.n_rows) if self.labels is None else self.labels).T
            weighted = columns if self.weights is None else columns * self.weights
            table = np.stack([np.bincount(cell, column, minlength=k**d) for column in weighted], axis=-1)
        table = self._symmetric(table.reshape(*shape, features.size))
        if not self.complete:
            return table
        return self._with_absent(table, all_pairs_hard(np.bincount(labels, minlength=k), d, self.directed), features)

    def _symmetric(self, table: Floats) -> Floats:
        """Blocks (a, b) and (b, a) of an undirected graph are one: its pairs are spread evenly over both."""
        if self.directed:
            return table
        d = self.n_modes
        orders = [(*order, d) for order in permutations(range(d))]
        mean: Floats = np.mean([table.transpose(order) for order in orders], axis=0)
        return mean

    def _with_absent(self, table: Floats, pairs: Floats, features: Features) -> Floats:
        """Statistics with those of the pairs that are not listed, where ``pairs`` meet in each block."""
        absent = np.maximum(pairs - features.count(table), 0.0)
        return table + absent[..., None] * self.absent_features(features)


def all_pairs(assign: Floats, d: int = 2, directed: bool = False) -> Floats:
    """How many tuples of d different nodes meet in each block, shape (m, …, m).

    Ordered observations when directed; otherwise each set once, spread evenly over the d! orders of its blocks.
    """
    q = np.asarray(assign, dtype=np.float64)
    return _over_coincidences(d, directed, q.shape[1], lambda group: same_node(q, group))


def all_pairs_hard(sizes: Ints, d: int = 2, directed: bool = False) -> Floats:
    """`all_pairs` of a hard partition, from the sizes of its clusters."""
    k = len(sizes)

    def together(group: str) -> Floats:
        """Nodes at several positions at once are in one cluster."""
        table = np.zeros((k,) * len(group))
        table[(np.arange(k),) * len(group)] = sizes
        return table

    return _over_coincidences(d, directed, k, together)


def _over_coincidences(d: int, directed: bool, k: int, same: Callable[[str], Floats]) -> Floats:
    axes = LETTERS[:d]
    tuples = np.zeros((k,) * d)
    for weight, groups in coincidences(axes):
        tuples += weight * np.einsum(",".join(groups) + "->" + axes, *[same(group) for group in groups])
    return tuples if directed else tuples / factorial(d)


def coincidences(positions: str) -> Iterator[tuple[int, list[str]]]:
    """Ways in which nodes at some positions can be equal, weighted so that only sums over different nodes remain.

    Inclusion and exclusion over the partitions of the positions into groups, Π (−1)^{|group|−1} (|group| − 1)!.
    """
    if not positions:
        yield 1, []
        return
    for weight, groups in coincidences(positions[:-1]):
        yield weight, [*groups, positions[-1]]
        for at, group in enumerate(groups):
            yield -weight * len(group), [*groups[:at], group + positions[-1], *groups[at + 1 :]]


def same_node(assign: Floats, group: str, keep: str = "") -> Floats:
    """Σ_x Π_j q(c_j|x) over a group of positions, shape (m, …, m); ``keep="X"`` keeps the node, (n, m, …, m)."""
    factors = ",".join("X" + position for position in group)
    return np.einsum(f"{factors}->{keep}{group}", *[assign] * len(group), optimize=True)


class Edges(NamedTuple):
    """Listed pairs as node codes, their weights, the nodes, and whether order matters (None: not known)."""

    ends: Ints  # (E, d)
    weights: Floats  # (E,)
    mode: Mode
    directed: bool | None
    weighted: bool  # if not, all weights are 1


def from_graph(
    graph: object,
    *,
    pairs: str | MatrixLike = "all",
    directed: bool | None = None,
    weight: Weight = "weight",
    nodes: Ids | None = None,
    hyperedges: bool = False,
) -> PairSample:
    """The observed pairs of a graph.

    Parameters
    ----------
    graph : scipy sparse matrix or array, square ndarray, networkx graph, edge list, or frame
        An edge list is a list of tuples or an (E, 2) or (E, 3) array; a frame has two columns of node ids. A third
        column holds the weights, numbers. A path or the address of a query is read as a frame; a PairSample is
        passed on.
    pairs : {"all", "listed"} or mask
        Which pairs were observed. "all": every pair, and one that is not listed has weight 0. "listed":
        those in the list only (in a dense matrix, those that are not NaN; in a sparse one, those that
        are stored, zeros too). A mask is a square matrix that is not zero where a pair was observed, or
        a (P, 2) array of node ids; a masked pair without an edge has weight 0.
    directed : bool or None
        None reads it off the graph: networkx says so, a matrix is directed if it is not symmetric,
        a list or frame is taken as undirected (with a warning where some pairs are listed in both orders and
        others in one).
    weight : str, sequence of numbers or None
        Name of the weight attribute or column; None takes every edge with weight 1. A matrix of numbers has weights,
        one of booleans has none. Numbers are the weights of the rows of a list or frame, of sets of nodes too.
    nodes : sequence, optional
        All node ids, for lists and frames in which some node has no edge.
    hyperedges : bool
        Whether each row of a list or frame is a set of nodes, two or more: then all columns are nodes, but for the
        column of a frame that ``weight`` names. Weights of the rows of a list are given as ``weight``.

    Examples
    --------
    >>> import gingham as gg
    >>> pairs = gg.from_graph([(0, 1), (1, 2)])
    >>> pairs.n_nodes, pairs.n_observations  # the pair (0, 2) was observed, too: it is not joined
    (3, 3.0)
    >>> gg.from_graph([("a", "b", 9), ("b", "c", 2)]).labels  # the third column holds weights
    array([9., 2.])
    >>> gg.from_graph([("a", "b", "c"), ("b", "c", "d")], hyperedges=True, weight=[9, 2]).labels
    array([9., 2.])
    """
    if isinstance(graph, PairSample):
        return graph
    if is_stream(graph):
        graph = opened(graph, whole=True).X
    edges = _read(graph, weight, nodes, isinstance(pairs, str) and pairs == "listed", hyperedges)
    edges = _without_loops(edges)
    if directed is None:
        directed = bool(edges.directed)
        if edges.directed is None:
            _announce_direction(edges)
    if not np.isfinite(edges.weights).all():
        at = int(np.flatnonzero(~np.isfinite(edges.weights))[0])
        raise GinghamError(f"The weight of pair {_names(edges, at)} is {edges.weights[at]}; weights must be finite.")
    need_moderate(edges.weights, "Weight")
    edges = _once(edges, directed)
    if edges.mode.n_items < 2 or len(edges.ends) == 0:
        raise GinghamError(
            f"The graph has {edges.mode.n_items} nodes and {len(edges.ends)} edges; at least two nodes and one edge "
            "are needed."
        )
    if not isinstance(pairs, str):
        return _masked(edges, directed, pairs)
    if pairs not in PAIRS:
        raise GinghamError(f"pairs={pairs!r} is unknown; choose 'all', 'listed', or give a mask of observed pairs.")
    return _sample(edges, directed, complete=pairs == "all")


def with_alphabet(sample: PairSample, alphabet: Alphabet) -> PairSample:
    """The same pairs with their labels numbered on an alphabet."""
    codes = None if sample.labels is None else alphabet.encode(sample.labels)
    return replace(sample, alphabet=alphabet, label_codes=codes)


def label_values(sample: PairSample) -> Floats:
    """The different labels of the observed pairs, 0 included where absent pairs were observed."""
    listed = np.unique(np.ones(1) if sample.labels is None else sample.labels)
    return np.unique(np.append(listed, 0.0)) if sample.complete else listed


def _sample(edges: Edges, directed: bool, complete: bool) -> PairSample:
    d = edges.ends.shape[1]
    return PairSample(
        modes=(edges.mode,) * d,
        codes=tuple(np.ascontiguousarray(edges.ends[:, j], dtype=np.int32) for j in range(d)),
        labels=edges.weights,
        directed=directed,
        complete=complete,
        weighted=edges.weighted,
    )


def _read(graph: object, weight: Weight, nodes: Ids | None, listed: bool, hyperedges: bool) -> Edges:
    if weight is not None and not isinstance(weight, str):
        given = np.asarray(weight)
        listed_edges = _read(graph, None, nodes, listed, hyperedges)
        many = len(listed_edges.ends)
        if listed_edges.directed is not None:
            raise GinghamError(
                "Numbers as weight= belong to the rows of a list or frame, but this graph already has weights."
            )
        if given.shape != (many,) or given.dtype.kind not in "biuf":
            raise GinghamError(f"weight= has shape {given.shape}; it needs a number for each of the {many} rows.")
        return listed_edges._replace(weights=given.astype(np.float64), weighted=given.dtype.kind != "b")
    if is_frame(graph):
        return _from_frame(as_frame(graph), weight, nodes, hyperedges)
    known = sparse.issparse(graph) or hasattr(graph, "is_directed")
    if hyperedges and known:
        raise GinghamError("A matrix or networkx graph has pairs; hyperedges=True is for lists and frames of sets.")
    if sparse.issparse(graph):
        return _from_sparse(graph, nodes, weight)
    if hasattr(graph, "adj") and hasattr(graph, "is_directed"):
        return _from_networkx(graph, weight)
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[0] == graph.shape[1] and not hyperedges:
        return _from_dense(graph, nodes, listed, weight)
    return _from_list(graph, weight, nodes, hyperedges)


def _from_sparse(matrix: sparse.sparray, nodes: Ids | None, weight: str | None) -> Edges:
    if matrix.shape[0] != matrix.shape[1]:
        raise GinghamError(f"An adjacency matrix must be square, but this one has shape {matrix.shape}.")
    entries = added_up(matrix)
    difference = (matrix != matrix.T).nnz if matrix.shape[0] else 0
    values = np.ones(entries.nnz) if weight is None else np.asarray(entries.data, dtype=np.float64)
    return Edges(
        np.column_stack([entries.row, entries.col]).astype(np.int64),
        values,
        _mode(nodes, matrix.shape[0]),
        bool(difference),
        weight is not None and matrix.dtype.kind != "b",
    )


def _from_dense(matrix: AnyArray, nodes: Ids | None, listed: bool, weight: str | None) -> Edges:
    weighted = weight is not None and matrix.dtype.kind != "b"
    matrix = np.ma.filled(matrix.astype(np.float64), np.nan)  # masked pairs were not observed
    missing = np.isnan(matrix)
    if missing.any() and not listed:
        i, j = np.argwhere(missing)[0]
        raise GinghamError(
            f"Entry ({i}, {j}) is NaN. If NaN marks unobserved pairs, set pairs='listed'; with pairs='all' every entry "
            "needs a number."
        )
    ends = np.argwhere(~missing if listed else matrix != 0)
    symmetric = bool(np.array_equal(matrix, matrix.T, equal_nan=True))
    weights = matrix[ends[:, 0], ends[:, 1]] if weight is not None else np.ones(len(ends))
    return Edges(ends, weights, _mode(nodes, len(matrix)), not symmetric, weighted)


def _from_networkx(graph: Any, weight: str | None) -> Edges:
    mode = Mode.of(_objects(list(graph.nodes)), NODE)
    listed = list(graph.edges(data=weight, default=1.0) if weight else ((u, v, 1.0) for u, v in graph.edges()))
    ends = np.array(
        [mode.encode(_objects([edge[j] for edge in listed])) for j in (0, 1)], dtype=np.int64
    ).T.reshape(-1, 2)  # fmt: skip
    weighted = weight is not None and any(weight in data for _, _, data in graph.edges(data=True))
    weights = np.array([edge[2] for edge in listed], dtype=np.float64)
    return Edges(ends, weights, mode, bool(graph.is_directed()), weighted)


def _from_frame(frame: nw.DataFrame[Any], weight: str | None, nodes: Ids | None, hyperedges: bool) -> Edges:
    names = list(frame.columns)
    values = None
    if weight is not None and weight in names:
        values = frame[weight].to_numpy().astype(np.float64)
        names.remove(weight)
    elif not hyperedges and len(names) == 3 and frame[names[2]].dtype.is_numeric():
        values = None if weight is None else frame[names[2]].to_numpy().astype(np.float64)
        names = names[:2]
    if len(names) > 2 and not hyperedges:
        raise GinghamError(
            f"Besides two columns of nodes the table has {', '.join(map(repr, names[2:]))}. Keep at most one of "
            f"them, numbers that are weights, as the third column or named by weight=; or {ASK}."
        )
    if len(names) < 2:
        raise GinghamError(
            f"A table of edges needs two columns of node ids; this one has {', '.join(map(repr, names))}."
        )
    return _encoded(id_columns(frame.select(names).to_native()).columns, values, nodes)


def _from_list(graph: object, weight: str | None, nodes: Ids | None, hyperedges: bool) -> Edges:
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.dtype.kind in "iuf" and graph.shape[1] in (2, 3):
        ends = graph if hyperedges else graph[:, :2]
        if ends.dtype.kind == "f" and np.array_equal(ends, np.floor(ends)):
            ends = ends.astype(np.int64)
        weighted = ends.shape[1] < graph.shape[1] and weight is not None
        return _encoded(list(ends.T), graph[:, 2].astype(np.float64) if weighted else None, nodes)
    if isinstance(graph, np.ndarray) and graph.dtype.kind not in "iuOUS":
        raise GinghamError(
            f"An array of shape {graph.shape} is neither a square matrix nor a list of edges (two columns of ids, or "
            "three with the weight)."
        )
    try:
        rows = [tuple(row) for row in cast("Iterable[Iterable[object]]", graph)]
    except TypeError:
        raise GinghamError(
            "Unsupported graph: give a scipy sparse matrix, a square array, a networkx graph, a list of edges "
            "or a frame."
        ) from None
    widths = {len(row) for row in rows}
    if not rows:
        raise GinghamError("The list of edges is empty.")
    if len(widths) != 1 or min(widths) < 2:
        raise GinghamError(f"The edges have {sorted(widths)[:4]} entries; all need the same number, at least two.")
    width = widths.pop()
    weights = None
    if not hyperedges and width > 2:
        wrong = next((at for at, row in enumerate(rows) if width > 3 or not isinstance(row[2], Real)), None)
        if wrong is not None:
            many = f"{width} entries" if width > 3 else "a third entry that is no number"
            raise GinghamError(
                f"Edge {wrong}, {rows[wrong]}, has {many}: an edge has two nodes and optionally a weight. Remove other "
                f"entries, or {ASK}."
            )
        weights, width = None if weight is None else np.array([row[2] for row in rows], dtype=np.float64), 2
    return _encoded([_objects([row[j] for row in rows]) for j in range(width)], weights, nodes)


def _encoded(columns: Sequence[AnyArray], weights: Floats | None, nodes: Ids | None) -> Edges:
    given = list(columns) if nodes is None else [_objects(list(nodes))]
    mode = Mode.of(_objects([value for column in given for value in np.asarray(column).tolist()]), NODE)
    ends = np.column_stack([mode.encode(column) for column in columns]).astype(np.int64)
    if len(ends) and ends.min() < 0:
        row = int(np.flatnonzero(ends.min(axis=1) < 0)[0])
        raise GinghamError(f"Edge {row} has a node that is not among nodes=.")
    return Edges(ends, np.ones(len(ends)) if weights is None else weights, mode, None, weights is not None)


def _mode(nodes: Ids | None, n: int) -> Mode:
    if nodes is None:
        return Mode(NODE, np.arange(n))
    column = _objects(list(nodes))
    if len(column) != n or len(set(column.tolist())) != n:
        raise GinghamError(f"nodes= must name each of the {n} rows of the matrix once; it has {len(column)} names.")
    return Mode(NODE, column)


def _objects(values: list[Any]) -> AnyArray:
    """An array of ids: of numbers or strings if all have one type, of objects otherwise."""
    kinds = {type(value) for value in values}
    column = np.empty(len(values), dtype=object)
    column[:] = values
    alike = kinds <= {int} or kinds <= {str} or all(issubclass(kind, np.integer) for kind in kinds)
    return typed(column) if alike else column


def _without_loops(edges: Edges) -> Edges:
    ordered = np.sort(edges.ends, axis=1)
    loops = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if not loops.any():
        return edges
    nonzero = int((loops & (edges.weights != 0) & ~np.isnan(edges.weights)).sum())
    if nonzero:
        warnings.warn(
            f"{nonzero} self loops were dropped: a pair has two different nodes.", GinghamWarning, stacklevel=3
        )
    return edges._replace(ends=edges.ends[~loops], weights=edges.weights[~loops])


def _announce_direction(edges: Edges) -> None:
    """Warn where a list that is read as undirected looks directed: some pairs in both orders, others in one."""
    if edges.ends.shape[1] != 2:
        return
    n = edges.mode.n_items
    ordered = np.unique(edges.ends[:, 0] * n + edges.ends[:, 1])
    both = len(ordered) - len(np.unique(np.sort(np.column_stack(np.divmod(ordered, n)), axis=1) @ [n, 1]))
    one = len(ordered) - 2 * both
    if both and one:
        warnings.warn(
            f"{both:,} pairs are listed in both orders and {one:,} in one, as in a directed graph. The order is "
            "ignored: set directed=True (--directed) if it matters, or directed=False (--undirected) if it does not.",
            GinghamWarning,
            stacklevel=4,
        )


def _once(edges: Edges, directed: bool) -> Edges:
    """Each pair once; a pair listed again with the same weight is dropped, with another one refused."""
    n = edges.mode.n_items
    ends = edges.ends if directed else np.sort(edges.ends, axis=1)
    if n ** ends.shape[1] < 2**62:
        key = np.ravel_multi_index(tuple(ends.T), (n,) * ends.shape[1]) if len(ends) else np.zeros(0, np.int64)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    differs = edges.weights[first][inverse.ravel()] != edges.weights
    if differs.any():
        at = int(np.flatnonzero(differs)[0])
        raise GinghamError(
            f"Pair {_names(edges, at)} is listed twice with different weights. Combine them first"
            + ("." if directed else ", or say directed=True if the order of the two nodes matters.")
        )
    return edges._replace(ends=ends[first], weights=edges.weights[first])


def _names(edges: Edges, at: int) -> str:
    return "(" + ", ".join(str(name) for name in edges.mode.items[edges.ends[at]].tolist()) + ")"


def _masked(edges: Edges, directed: bool, mask: MatrixLike) -> PairSample:
    """The pairs of a mask, with weight 0 where the graph has no edge."""
    n = edges.mode.n_items
    if getattr(mask, "shape", None) == (n, n) and hasattr(mask, "nonzero"):
        chosen = np.array(mask.nonzero()).T.astype(np.int64)
    else:
        table = np.asarray(mask)
        if table.ndim != 2 or table.shape[1] != edges.ends.shape[1]:
            raise GinghamError(
                f"pairs= has shape {table.shape}; a mask is a {n} × {n} matrix or a list of pairs of node ids."
            )
        chosen = np.column_stack([edges.mode.encode(table[:, j]) for j in range(table.shape[1])]).astype(np.int64)
        if len(chosen) and chosen.min() < 0:
            row = int(np.flatnonzero(chosen.min(axis=1) < 0)[0])
            raise GinghamError(f"pairs=, row {row}: {table[row].tolist()} has a node that is not in the graph.")
    blank = Edges(chosen, np.zeros(len(chosen)), edges.mode, directed, edges.weighted)
    wanted = _once(_without_loops(blank), directed)
    if len(wanted.ends) == 0:
        raise GinghamError("The mask of observed pairs is empty.")
    shape = (n,) * edges.ends.shape[1]
    known = np.ravel_multi_index(tuple(edges.ends.T), shape)
    asked = np.ravel_multi_index(tuple(wanted.ends.T), shape)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)  # `_once` sorted both
    weights = np.where(known[at] == asked, edges.weights[at], 0.0)
    return _sample(wanted._replace(weights=weights), directed, complete=False)
