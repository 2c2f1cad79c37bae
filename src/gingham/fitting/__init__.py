"""How a posterior is found: one loop, schedules, starts, restarts, checkpoints, the shared solvers."""

from gingham.lazy import lazy_names

MODULES = {
    "Constant": "schedules",
    "Down": "schedules",
    "Projection": "projection",
    "Sweep": "sweep",
    "Up": "schedules",
}  # public name → module of this package
__getattr__, __dir__ = lazy_names(__name__, MODULES)
