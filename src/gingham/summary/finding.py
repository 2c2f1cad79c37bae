"""The clearest block of a checkerboard as a sentence: what a person reads first."""

from __future__ import annotations

import numpy as np

from gingham.summary.names import telling
from gingham.summary.values import Cluster, Side, Summary, counted, listed, plural

NEARLY_ALL, HALF = 0.9, 0.5  # shares inside and outside by which a property names a group
EXAMPLES = 2  # items that stand for a group


def finding(summary: Summary, label: str | None = None) -> str:
    """What the block says that is hardest to explain by chance; empty without groups.

    ``label`` is what was observed.
    """
    board, table = summary.board(), summary.tables[0]
    n, values = np.asarray(board.counts), np.asarray(board.values)
    if not summary.found or values.size < 2:
        return ""
    if table.measure == "difference":
        strength = np.abs(values)
    elif table.measure == "lift":
        strength = np.abs(np.log(np.maximum(values, 1e-9)))
    else:
        overall = dict(zip(table.labels, (table.sums.sum(axis=(0, 1)) / table.sums.sum()).tolist()))
        shares = np.array([[overall[label] for label in row] for row in board.labels or ()])
        strength = np.abs(values - shares)
    i, j = np.unravel_index(np.argmax(strength * np.sqrt(n)), strength.shape)
    first, second = (summary.sides[at] for at in table.sides)
    what = label or table.label
    rows, columns, value = group_words(board.rows[i], first), group_words(board.columns[j], second), values[i, j]
    if table.measure == "difference":
        how = f"{table.rule.text(abs(value))[1:]} {'higher' if value > 0 else 'lower'} than averages predict"
        if what == "rating":
            return f"{rows} rate {columns} {how}."
        return f"The mean {what} of {rows} and {columns} is {how}."
    if table.measure == "lift":
        if first is second:
            who = f"{rows} are linked to {'each other' if i == j else columns}"
        else:
            who = f"{rows} and {columns} occur together"
        often = f"{value:.2g} times as often as" if value >= 1 else f"{1 / max(value, 1e-9):.2g} times less often than"
        return f"{who} {often} chance predicts."
    name = (board.labels or [])[i][j]
    share = f"{value:.0%} are {name}, against {overall[name]:.0%} overall"
    return f"Of the {plural(what)} of {rows} and {columns}, {share}."


def group_words(group: Cluster, side: Side) -> str:
    """A group by its size and by a property that names it, or by examples where names say something."""
    for fact in group.facts:
        if fact.inside >= NEARLY_ALL and fact.outside <= HALF and fact.text.isalpha():
            return f"{group.size:,} {fact.text} {plural(side.name)}"
    whole = counted(group.size, side.name)
    names = [mark.item for mark in group.typical[:EXAMPLES]]
    return f"{whole} such as {listed(names)}" if names and group.size > len(names) and telling(side.names) else whole
