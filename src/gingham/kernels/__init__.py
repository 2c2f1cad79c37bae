"""The only compiled code: `project`, on which every soft solver runs, behind one door per backend."""

from gingham.kernels.layout import BACKENDS, Rows, project

__all__ = ["BACKENDS", "Rows", "project"]
