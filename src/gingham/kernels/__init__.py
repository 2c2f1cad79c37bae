"""The only compiled code: `project`, on which soft solvers run, and `sweep`, on which hard moves run."""

from gingham.kernels.layout import BACKENDS, Rows, project
from gingham.kernels.moves import Board, board_cost, make_board, size_cost, sweep

__all__ = ["BACKENDS", "Board", "Rows", "board_cost", "make_board", "project", "size_cost", "sweep"]
