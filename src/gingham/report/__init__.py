"""From a fitted model to one self-contained page: `summarize` makes plain values, `render` makes HTML of them."""

from gingham.report.page import predictor, render, write, write_model
from gingham.report.summary import summarize

__all__ = ["predictor", "render", "summarize", "write", "write_model"]
