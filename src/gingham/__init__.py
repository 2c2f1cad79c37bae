"""gingham clusters both sides of the data at once, predicts what is missing, and proves how far to trust it."""

__version__ = "0.1.0"
