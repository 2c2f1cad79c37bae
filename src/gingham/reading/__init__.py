"""Reading a model: a coarse, named version of it for people, by page, notebook, command line and pictures alike."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "Board": "values",
    "Cluster": "values",
    "Fact": "values",
    "Observed": "values",
    "Reading": "values",
    "Refit": "values",
    "Relation": "values",
    "read": "make_reading",
    "read_observed": "make_reading",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
