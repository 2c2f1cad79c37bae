"""The summary of a model as a card: what was found, the named checkerboard, the error beside baselines."""

from __future__ import annotations

import math
from html import escape

from gingham.cards import GREY, INK, paragraph, table
from gingham.summary.values import Board, Errors, Summary

RED, BLUE, WHITE = (200, 85, 61), (47, 102, 144), (248, 246, 241)
CELLS = 8  # a side of a small board
NAME = 48  # letters of a name


def colour(value: float, measure: str, limit: float) -> str:
    """White where a block is as expected, red above, blue below; one red for the share of a label."""
    strength = math.log(max(value, 1e-9)) if measure == "lift" else value
    share = max(-1.0, min(1.0, strength / limit)) if limit > 0 else 0.0
    end = RED if share >= 0 else BLUE
    mixed = [round(w + (e - w) * abs(share) * (0.85 if share >= 0 else 0.6)) for w, e in zip(WHITE, end)]
    return f"rgb({mixed[0]},{mixed[1]},{mixed[2]})"


def small_board(board: Board) -> str:
    """The named checkerboard as a table with coloured cells."""
    values = board.values
    if board.measure == "lift":
        limit = max(math.log(max(float(values.max()), 1.0)), 0.2)
    elif board.measure == "difference":
        limit = max(float(abs(values).max()), 1e-12)
    else:
        limit = 1.0
    rows, columns = board.rows[:CELLS], board.columns[:CELLS]
    cell = "padding:.35em .5em;text-align:center;border:2px solid #fff"
    name = f"padding:.2em .6em;max-width:14em;color:{INK};font-weight:600;background:#fff"
    head = "".join(f'<th style="{name};vertical-align:bottom">{escape(_short(c.name))}</th>' for c in columns)
    corner = (
        f'<th style="{name};color:{GREY};font-weight:400">{escape(board.row_name)} ↓ {escape(board.column_name)} →</th>'
    )
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(
            f'<td style="{cell};background:{colour(float(values[i, j]), board.measure, limit)}">'
            f"{escape(board.text(i, j))}</td>"
            for j in range(len(columns))
        )
        lines.append(f'<tr><th style="{name};text-align:right">{escape(_short(row.name))}</th>{cells}</tr>')
    return f'<table style="border-collapse:collapse;margin:.6em 0"><tr>{corner}{head}</tr>{"".join(lines)}</table>'


def errors_table(errors: Errors) -> str:
    """The model's error beside the baselines."""
    rows = [[score.name, f"{score.value:.4g}"] for score in errors.scores]
    note = ""
    if errors.useful is False and errors.best_baseline is not None:
        note = paragraph(
            f"It predicts no better than {errors.best_baseline.name} do: read its numbers with that in mind."
        )
    how = paragraph(f"{errors.how[:1].upper()}{errors.how[1:]}.", quiet=True) if errors.how else ""
    others = [
        table([unit, ""], [[score.name, f"{score.value:.4g}"] for score in scores]) for unit, scores in errors.others
    ]
    return table([f"{errors.unit} on entries that were held out", ""], rows) + note + how + "".join(others)


def summary_body(summary: Summary) -> str:
    """What was found, the named checkerboard, and how well the model predicts."""
    body = paragraph(summary.verdict)
    if summary.found and all(k > 1 for k in summary.size[:1]):
        body += small_board(summary.board())
    if summary.known is not None:
        body += paragraph(summary.known.text)
    body += paragraph(summary.why, quiet=True)
    return body + ("" if summary.errors is None else errors_table(summary.errors))


def _short(name: str) -> str:
    return name if len(name) <= NAME else name[: NAME - 1] + "…"
