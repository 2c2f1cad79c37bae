"""Sums of checkerboards over items, over their baskets and over side information."""

from gingham.lazy import lazy_names

KIND = "layered"  # what the command line calls it
ABOUT = "checkerboards and averages that add up; the best prediction of numbers."
EXAMPLE = "gingham fit ratings.csv --model layered --axes user,movie --label rating"

__getattr__, __dir__ = lazy_names(__name__, {"Sampler": "design"})
