"""Cards for notebooks: small, self-contained pieces of HTML. What comes from data is text in them, never markup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

# Colours of the notebook's theme where it names them (JupyterLab, VS Code); else dark on white, whatever is around.
INK = "var(--jp-content-font-color1,var(--vscode-editor-foreground,#22303c))"
GREY = "var(--jp-content-font-color2,var(--vscode-descriptionForeground,#66727e))"
PAPER = "var(--jp-layout-color0,var(--vscode-editor-background,#fff))"
LINE = "#8884"


def card(title: str, body: str) -> str:
    """A frame with a title."""
    style = (
        f"border:1px solid {LINE};border-radius:6px;padding:.7em 1em;max-width:58em;color:{INK};background:{PAPER};"
        "overflow-x:auto;box-sizing:border-box;font-family:system-ui,sans-serif;font-size:13px;line-height:1.45"
    )
    return f'<div style="{style}"><div style="font-weight:600;font-size:14px">{escape(title)}</div>{body}</div>'


def paragraph(text: str, quiet: bool = False) -> str:
    return f'<p style="margin:.45em 0{";color:" + GREY if quiet else ""}">{escape(text)}</p>'


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cell = f"padding:.15em .8em .15em 0;text-align:left;vertical-align:top;font-size:13px;border:0;background:{PAPER}"

    def line(tag: str, style: str, values: Sequence[object]) -> str:
        cells = (f'<{tag} style="{cell};{style}">{escape(str(value))}</{tag}>' for value in values)
        return f"<tr>{''.join(cells)}</tr>"

    head = line("th", f"color:{GREY};font-weight:400", header)
    body = "".join(line("td", f"color:{INK}", row) for row in rows)
    style = "border-collapse:collapse;margin:.4em 0"
    return f'<table style="{style}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def certificate_card(
    value: float,
    at_least: bool,
    unit: str,
    text: str,
    beside: Mapping[str, float | None],
    assumptions: Sequence[tuple[str, str]],
) -> str:
    """A guarantee: its number with a unit, what it says in plain words, numbers beside it, and what it rests on."""
    first = text.strip().split("\n")[0]
    number = escape(f"{'≥' if at_least else '≤'} {value:.4g}")
    what = f'<span style="font-size:13px;color:{GREY}">{escape(unit)}</span>'
    body = f'<div style="font-size:22px;margin:.2em 0">{number} {what}</div>' + paragraph(first)
    known = [[name, f"{number:.4g}"] for name, number in beside.items() if number is not None]
    body += table(["to compare with", unit], known)
    body += table(["it rests on", ""], [[claim, status] for claim, status in assumptions])
    return card("Certificate", body)
