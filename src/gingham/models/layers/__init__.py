"""Sums of checkerboards over items, over their baskets and over side information."""

from gingham.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {"Sampler": "design"})
