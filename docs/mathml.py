"""Formulas as MathML, which browsers render themselves: a built page needs no network."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def mathml(latex: str, display: str) -> str:
    """One formula; the LaTeX source becomes its description."""
    plain = re.sub(r"\\label\{[^}]*\}|\\[Bb]igg?[lrm]?(?![a-z])", "", latex)  # browsers stretch delimiters themselves
    plain = re.sub(r"\\(mathbb|mathcal) ([A-Z])", r"\\\1{\2}", plain)  # with braces, letters become those of Unicode
    markup = convert(plain.replace(r"\{", r"\lbrace ").replace(r"\}", r"\rbrace "), display=display)
    markup = re.sub(r"<mi>(&#x0007[BD];)</mi>", r"<mo>\1</mo>", markup)  # operators grow with what they enclose
    return markup.replace("<math ", f'<math aria-label="{escape(latex, quote=True)}" ', 1)


def visit_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
