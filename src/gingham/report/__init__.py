"""From a fitted model to one self-contained page: `summarize` makes plain values, `render` makes HTML of them."""

from gingham.report.model_page import write_model
from gingham.report.page import render, write
from gingham.report.summary import summarize

__all__ = ["render", "summarize", "write", "write_model"]
