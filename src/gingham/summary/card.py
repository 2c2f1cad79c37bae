"""The summary of a model as a card: what was found, the named checkerboard, the error beside baselines."""

from __future__ import annotations

from html import escape

from gingham.cards import GREY, INK, PAPER, card, paragraph, table
from gingham.summary.values import Board, Errors, Summary, counted

RED, BLUE, WHITE = (200, 85, 61), (47, 102, 144), (248, 246, 241)
CELLS = 8  # a side of a small board
NAME = 48  # letters of a name


def colour(strength: float) -> str:
    """The colour of a block: white where it is as expected, red above, blue below; shades of red for label shares."""
    share, end = (0.85 * strength, RED) if strength >= 0 else (-0.6 * strength, BLUE)
    mixed = [round(w + (e - w) * share) for w, e in zip(WHITE, end)]
    return f"rgb({mixed[0]},{mixed[1]},{mixed[2]})"


def small_board(board: Board) -> str:
    """The named checkerboard as a table with coloured cells."""
    strengths = board.strengths
    rows, columns = board.rows[:CELLS], board.columns[:CELLS]
    cell = f"padding:.35em .5em;text-align:center;border:2px solid {PAPER};color:#22303c;font-size:13px"
    name = f"padding:.2em .6em;max-width:14em;color:{INK};font-weight:600;background:{PAPER};font-size:13px"
    head = "".join(f'<th style="{name};vertical-align:bottom">{escape(_short(c.name))}</th>' for c in columns)
    corner = (
        f'<th style="{name};color:{GREY};font-weight:400">{escape(board.row_name)} ↓ {escape(board.column_name)} →</th>'
    )
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(
            f'<td style="{cell};background:{colour(float(strengths[i, j]))}">{escape(board.text(i, j))}</td>'
            for j in range(len(columns))
        )
        lines.append(f'<tr><th style="{name};text-align:right">{escape(_short(row.name))}</th>{cells}</tr>')
    return f'<table style="border-collapse:collapse;margin:.6em 0"><tr>{corner}{head}</tr>{"".join(lines)}</table>'


def errors_table(errors: Errors) -> str:
    """The model's error beside the baselines, in the measure of the loss and in others."""
    by_unit = {errors.unit: errors.scores, **errors.others}
    rows = [[name, *(f"{scores[name]:.4g}" for scores in by_unit.values())] for name in errors.scores]
    note = ""
    if errors.useful is False and errors.best_baseline is not None:
        note = paragraph(f"It predicts no better than {errors.best_baseline[0]} do: interpret it with care.")
    how = paragraph(f"{errors.how[:1].upper()}{errors.how[1:]}.", quiet=True) if errors.how else ""
    return table(["on held-out entries", *by_unit], rows) + note + how


def summary_body(summary: Summary) -> str:
    """What was found, the named checkerboard, and how well the model predicts."""
    body = paragraph(summary.verdict)
    if summary.found and all(k > 1 for k in summary.size[:1]):
        body += small_board(summary.board())
    body += paragraph(summary.distilled) if summary.distilled else ""
    if summary.known is not None:
        body += paragraph(summary.known.text)
    body += paragraph(summary.why, quiet=True)
    return body + ("" if summary.errors is None else errors_table(summary.errors))


def summary_card(summary: Summary, title: str = "Summary") -> str:
    """What was observed, what was found, and how well the model predicts."""
    items = " × ".join(counted(side.n_items, side.name) for side in summary.sides)
    return card(title, paragraph(f"{items}; {summary.n_observed:,.0f} observed.", quiet=True) + summary_body(summary))


def _short(name: str) -> str:
    """A name of a few words, which ends between two items where it can."""
    if len(name) <= NAME:
        return name
    kept, comma, _ = name[: NAME - 1].rpartition(", ")
    return f"{kept} …" if comma else f"{name[: NAME - 1]}…"
