import numpy as np
import pytest

from gingham.core.problem import Structure, Tree
from gingham.data import Mode
from gingham.errors import GinghamError


def modes(*sizes):
    return [Mode(f"m{j}", np.arange(n)) for j, n in enumerate(sizes)]


def test_tree_numbers_nodes_modes_and_roots():
    tree, widths = Tree.build(modes(9, 8, 7), (4, 3, 2), [(0, 1, 5), (3, 2, 6)])
    assert tree.tables == (0, 1, 2, 3, 4)
    assert tree.roots == (4,)
    assert tree.factors == ((4,),)
    assert widths == (4, 3, 2, 5, 6)
    assert [mode.n_items for mode in tree.modes] == [9, 8, 7, 12, 10]


def test_singleton_merge_is_frozen_and_keeps_every_combination():
    tree, widths = Tree.build(modes(5, 5), (2, 3), [(0, 1, None)])
    assert tree.frozen == (2,)
    assert widths[2] == 6


def test_tied_nodes_share_a_mode():
    same = [Mode("letter", np.arange(6))] * 4
    tree, widths = Tree.build(same, (3,) * 4, [(0, 1, 2), (2, 3, 2)], tied=[(0, 1, 2, 3), (4, 5)])
    assert tree.tables == (0, 0, 0, 0, 1, 1)
    assert tree.tied == (0, 1)
    assert widths == (3, 2)


@pytest.mark.parametrize(
    ("merges", "says"),
    [
        ([(0, 1, 2), (1, 2, 2)], "merged twice"),
        ([(0, 0, 2)], "merged twice"),
        ([(0, 5, 2)], "nodes 0 to 2"),
        ([(0, 1, 0)], "positive"),
        ([(3,)], "at least one child"),
    ],
)
def test_merges_that_are_no_tree_are_refused(merges, says):
    with pytest.raises(GinghamError, match=says):
        Tree.build(modes(4, 4, 4), (2, 2, 2), merges)


def test_ties_of_unequal_sizes_are_refused():
    with pytest.raises(GinghamError, match="cannot share"):
        Tree.build(modes(4, 5), (2, 2), [], tied=[(0, 1)])


def test_titles_are_names_or_numbers_where_two_are_alike():
    modes = [Mode(name, np.arange(2)) for name in ("viewer", "movie", "viewer")]
    assert Structure.grid(modes).titles((0, 1)) == ["viewer", "movie"]
    assert Structure.grid(modes).titles((0, 2)) == ["mode 0", "mode 2"]
