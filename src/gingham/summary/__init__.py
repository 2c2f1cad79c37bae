"""Summaries: the coarse, named version of a model that page, notebook, command line and pictures show."""

from gingham.lazy import lazy_names

# public name → module of this package
MODULES = {
    "Board": "values",
    "Cluster": "values",
    "Fact": "values",
    "Observed": "values",
    "Summary": "values",
    "Refit": "values",
    "Relation": "values",
    "summarize": "make_summary",
    "summarize_observed": "make_summary",
}
__getattr__, __dir__ = lazy_names(__name__, MODULES)
