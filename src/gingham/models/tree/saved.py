"""Trees and their densities as plain values and arrays, for model files."""

from __future__ import annotations

from typing import Any

from gingham.core.structure import Structure, Tree
from gingham.core.tree_density import TreeDensity
from gingham.data import Mode
from gingham.errors import GinghamError


def tree_state(tree: Structure) -> dict[str, Any]:
    """What a tree has beside modes, factors and frozen modes."""
    if not isinstance(tree, Tree):
        raise GinghamError("This structure is no tree.")
    return {
        "tables": list(tree.tables),
        "children": [list(nodes) for nodes in tree.children],
        "price": tree.price,
    }


def tree_from_state(state: dict[str, Any], modes: tuple[Mode, ...]) -> Tree:
    """The tree that `tree_state` (with factors and frozen modes) described."""
    return Tree(
        modes,
        tuple(tuple(factor) for factor in state["factors"]),
        tuple(state["frozen"]),
        tuple(state["tables"]),
        tuple(tuple(nodes) for nodes in state["children"]),
        state["price"],
    )


def density_state(density: TreeDensity) -> dict[str, Any]:
    """A density tree as plain values and arrays."""
    tree = density.tree
    return {
        **tree_state(tree),
        "modes": [{"name": mode.name, "items": mode.items} for mode in tree.modes],
        "factors": [list(factor) for factor in tree.factors],
        "frozen": list(tree.frozen),
        "labels": list(density.labels),
        "widths": list(density.widths),
        "leaf_laws": list(density.leaves),
        "inner_laws": list(density.inner),
        "root_law": density.roots,
    }


def density_from_state(state: dict[str, Any]) -> TreeDensity:
    """The density that `density_state` described."""
    modes = tuple(Mode(mode["name"], mode["items"]) for mode in state["modes"])
    return TreeDensity(
        tree_from_state(state, modes),
        tuple(state["labels"]),
        tuple(state["widths"]),
        tuple(state["leaf_laws"]),
        tuple(state["inner_laws"]),
        state["root_law"],
    )
