"""The only compiled code: `project`, on which soft solvers run, and `sweep`, on which hard moves run."""

from gingham.kernels.layout import (
    BACKENDS,
    BLOCK_BYTES,
    Rows,
    on_device,
    project,
    project_cost,
    project_table,
    projector,
    row_blocks,
)
from gingham.kernels.moves import Board, board_cost, effort_of, group_size, make_board, size_cost, sweep

__all__ = [
    "BACKENDS",
    "BLOCK_BYTES",
    "Board",
    "Rows",
    "board_cost",
    "effort_of",
    "group_size",
    "make_board",
    "on_device",
    "project",
    "project_cost",
    "project_table",
    "projector",
    "row_blocks",
    "size_cost",
    "sweep",
]
