"""What is divided, and how: structures, posteriors, problems and solutions as frozen values."""

from gingham.lazy import lazy_names

MODULES = {"Posterior": "problem"}  # public name → module of this package
__getattr__, __dir__ = lazy_names(__name__, MODULES)
