"""The table of attacks in guide/guarantees.md, from its JSON file: ``python docs/attack_results.py`` renews it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guide" / "guarantees.md"
BEGIN, END = "<!-- attacks: python docs/attack_results.py -->", "<!-- end of attacks -->"


def percent(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{100 * row['rate']:.1f} %"


def table(results: dict[str, Any]) -> Iterator[str]:
    """One line an attack: what it gets, how often that is false, and how often it was without the rule."""
    summary = results["summary"]
    yield (
        f"{summary['attacks']} attacks: {summary['refused']} refused, {summary['true']} true, with at most "
        f"{percent(summary['most failures'])} failures in {summary['samples']:,} samples (δ = 5 %)."
    )
    yield ""
    yield "| attack | what it gets | false in | without the rule that stops it |"
    yield "|---|---|---|---|"
    for group, by_title in results.items():
        if group == "summary":
            continue
        yield f"| *{group}* | | | |"
        for title, row in by_title.items():
            rate = percent(row) if "rate" in row else ""
            yield f"| {title.replace('|', '/')} | {row['verdict']} | {rate} | {percent(row.get('without the rule'))} |"
    yield ""


def others(summary: dict[str, Any]) -> str:
    """The attacks on who is covered and what is given, which have a page of results of their own."""
    return (
        "On who is covered (items nobody has seen) and what is given (alphabets, bounds): "
        f"{summary['attacks']} attacks, {summary['refused or true']} refused or true, "
        f"at most {100 * summary['worst']:.1f} % failures (`attacks_cover`)."
    )


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["results"]


def renew() -> str:
    """The page with a fresh table."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    lines = [*table(results("attacks")), others(results("attacks_cover")["summary"])]
    return before + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(renew(), encoding="utf-8")
