"""What a person sees: a progress bar, notes, errors and summary tables (all on standard error but the tables)."""

from __future__ import annotations

import json
import math
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from gingham.fitting.loop import Progress as Sweep
    from gingham.summary.values import Errors


# What could steer a terminal, or turn the direction of writing: column names, ids and file names come from anywhere.
STEERING = (*range(32), *range(127, 160), *range(0x2028, 0x202F), *range(0x2066, 0x206A))
SHOWN = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in STEERING}
SHOWN_IN_TEXT = {code: shown for code, shown in SHOWN.items() if code not in (9, 10)}
SHOWN_IN_JSON = {code: f"\\u{code:04x}" for code in SHOWN_IN_TEXT}


def output() -> Console:
    """Standard output, looked up at the time of writing."""
    return Console(highlight=False, emoji=False)


def messages() -> Console:
    """Standard error: progress, notes and errors never mix with results."""
    return Console(stderr=True, highlight=False, emoji=False)


def plainly(text: str, shown: Mapping[int, str] = SHOWN_IN_TEXT) -> str:
    """Text without characters that steer a terminal, and without those that no encoding has."""
    return text.translate(shown).encode("utf-8", "backslashreplace").decode("utf-8")


def say_error(sentence: str) -> None:
    messages().print(f"[bold red]Error:[/] {escape(plainly(sentence))}", soft_wrap=True)


def say_note(sentence: str) -> None:
    messages().print(f"[yellow]Note:[/] {escape(plainly(sentence))}", soft_wrap=True)


def say(text: str) -> None:
    """Text on standard output, as it is written."""
    output().print(plainly(text), markup=False, soft_wrap=True)


def paragraphs(text: str) -> None:
    """Lines on standard output, folded between words at the width of the terminal; commands to paste stay whole."""
    width = max(40, output().width)
    for line in plainly(text).split("\n"):
        if not line.startswith("  gingham "):
            indent = " " * (len(line) - len(line.lstrip(" ")))
            line = textwrap.fill(line, width, subsequent_indent=f"{indent}  " if indent else "")
        output().print(line, markup=False, soft_wrap=True)


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Warnings become one-line notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", "The number of unique classes")  # of scikit-learn; certificates judge that
        said: set[str] = set()

        def once(message: Warning | str, *rest: object, **more: object) -> None:
            if str(message) not in said:
                said.add(str(message))
                say_note(str(message))

        warnings.showwarning = once
        yield


class Phases:
    """What a long command is doing, on a line that is there from its first moment on."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.task = bar.add_task("", total=None, state="")

    def begin(self, name: str) -> None:
        """A phase whose end is not known begins."""
        self.bar.update(self.task, description=escape(plainly(name, SHOWN)), total=None, state="", refresh=True)

    def sweep(self, sweep: Sweep) -> None:
        """The callback of a fit: how far it is of its starts and sweeps, which may settle sooner than the last."""
        done = sweep.restart * sweep.max_iter + sweep.iteration + 1
        state = f"objective {sweep.objective.total:,.1f}"
        total = sweep.n_restarts * sweep.max_iter
        self.bar.update(self.task, description="sweeping", total=total, completed=done, state=state)


class TimeLeft(TimeRemainingColumn):
    """The time left, with the word."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else Text("at most ") + super().render(task) + Text(" left")


@contextmanager
def phases(quiet: bool = False) -> Iterator[Phases]:
    """A line with the phase of a command, the time it took and, in sweeps, the time left."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TimeLeft(),
        console=messages(),
        disable=quiet,
        transient=True,
    )
    with bar:
        yield Phases(bar)


def show(facts: Mapping[str, object], as_json: bool, title: str) -> None:
    """A summary as a title and lines, or as one JSON object for scripts."""
    if as_json:
        print_json(facts)
        return
    output().print(f"[bold]{cell(title)}[/]", soft_wrap=True)
    width = max(map(len, facts), default=0)
    for name, value in facts.items():  # not folded: files can be copied
        output().print(f"  [cyan]{name.replace('_', ' '):{width}}[/]  {cell(value)}", soft_wrap=True)


def heading(title: str) -> None:
    output().print(f"\n[bold]$ {cell(title)}[/]", soft_wrap=True)


def grid(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table with a header, as wide as the terminal at most: long cells are folded."""
    table = Table(
        title=cell(title) or None,
        title_justify="left",
        title_style="bold",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        header_style="none",
    )
    columns = []
    for at, name in enumerate(header):
        values = [row[at] for row in rows]
        numbers = all(value is None or isinstance(value, (int, float)) for value in values)
        table.add_column(cell(name).replace("_", " "), justify="right" if numbers else "left", overflow="fold")
        columns.append(aligned(values))
    for row in zip(*columns):
        table.add_row(*map(cell, row))
    output().print(table)


def aligned(values: Sequence[object]) -> Sequence[object]:
    """The values of a column; floats with as many decimals as give the largest four digits."""
    floats = [abs(value) for value in values if isinstance(value, float) and math.isfinite(value)]
    if not floats or not all(value is None or isinstance(value, float) for value in values):
        return ["–" if value is None else value for value in values]
    largest = max(floats)
    if 0 < largest < 1e-3 or largest >= 1e15:
        return ["–" if value is None else value for value in values]
    whole = all(value == math.floor(value) for value in floats)
    decimals = 0 if whole or largest == 0 else max(0, min(6, 3 - math.floor(math.log10(largest))))
    return ["–" if value is None else f"{value:,.{decimals}f}" for value in values]


def errors(found: Errors) -> None:
    """What was measured, in the measure of the loss and in others, beside what simple rules reach."""
    by_unit = {found.unit: found.scores, **found.others}
    rows = [(name, *(scores[name] for scores in by_unit.values())) for name in found.scores]
    grid("Error on held-out rows", ["", *by_unit], rows)
    paragraphs(f"{found.how[:1].upper()}{found.how[1:]}.")


def print_json(facts: Mapping[str, object]) -> None:
    """One JSON object on standard output."""
    written = json.dumps(plain(facts), ensure_ascii=False, indent=2)
    output().print(plainly(written, SHOWN_IN_JSON), soft_wrap=True, markup=False)


def cell(value: object) -> str:
    """A value in a table for people."""
    return escape(plainly(text(value), SHOWN))


def text(value: object) -> str:
    """A value for people: four digits, thousands marked."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.{0 if value.is_integer() else 1}f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {text(v)}" for name, v in value.items())
    if isinstance(value, (list, tuple)):
        return " × ".join(text(v) for v in value)
    return str(value)


def plain(value: object) -> object:
    """A value for JSON; NaN and infinities become null."""
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(v) for name, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value
