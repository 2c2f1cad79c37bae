"""Tables in guide/guarantees.md, from their JSON files: ``python docs/attack_results.py`` renews them.

The attacks on certificates, and the bounds with a mistake in them that the simulations must find out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guide" / "guarantees.md"


def percent(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{100 * row['rate']:.1f} %"


def attacks() -> Iterator[str]:
    """One line an attack: what it gets, how often that is false, and how often it was without the rule."""
    found, cover = results("attacks"), results("attacks_cover")
    summary = found["summary"]
    yield (
        f"{summary['attacks']} attacks: {summary['refused']} refused, {summary['true']} true, with at most "
        f"{percent(summary['most failures'])} failures in {summary['samples']:,} samples (δ = 5 %). On who is covered "
        f"and what is given: {cover['summary']['attacks']} attacks, {cover['summary']['refused or true']} refused or "
        f"true, at most {100 * cover['summary']['worst']:.1f} % failures (`attacks`, `attacks_cover`)."
    )
    yield ""
    yield "| attack | what it gets | false in | without the rule that stops it |"
    yield "|---|---|---|---|"
    for group, by_title in found.items():
        if group == "summary":
            continue
        yield f"| *{group}* | | | |"
        for title, row in by_title.items():
            yield line(title, row["verdict"], row, row.get("without the rule"))
    yield "| *who is covered, what is given* | | | |"
    for group, by_title in cover.items():
        if group == "summary":
            continue
        for title, row in by_title.items():
            yield line(f"{group}: {title}", row["outcome"], row, row.get("read as it was"))


def line(title: str, verdict: str, row: dict[str, Any], without: dict[str, Any] | None) -> str:
    rate = percent(row) if "rate" in row else ""
    return f"| {title.replace('|', '/')} | {verdict} | {rate} | {percent(without)} |"


def broken() -> Iterator[str]:
    """One line a mistake: the most failures on each problem, and which of them are more than chance allows."""
    by_bound: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for place, bounds in results("certificate_coverage")["summary"]["broken bounds"].items():
        part, problem = place.split(", ", 1)
        for bound, row in bounds.items():
            title = f"{part.replace('_', ' ')}: {bound.removeprefix('broken: ')}"
            by_bound.setdefault(title, []).append((problem, row))
    every = [row for rows in by_bound.values() for _, row in rows]
    caught = sum(row["caught"] for row in every)
    never = [title for title, rows in by_bound.items() if not any(row["caught"] for _, row in rows)]
    yield (
        f"{len(every)} cases, {caught} found out; {len(by_bound)} mistakes, of which "
        f"{len(by_bound) - len(never)} are found out on at least one problem."
    )
    yield ""
    yield "| bound with a mistake | found out: failures | not found out: failures |"
    yield "|---|---|---|"
    for title, rows in by_bound.items():
        shown = [
            ", ".join(f"{problem} {percent(row)}" for problem, row in rows if row["caught"] is which)
            for which in (True, False)
        ]
        yield f"| {title} | {shown[0]} | {shown[1]} |"


def results(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["results"]


def renew() -> str:
    """The page with fresh tables."""
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("attacks", attacks), ("broken bounds", broken)):
        begin, end = f"<!-- {name}: python docs/attack_results.py -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = before + begin + "\n\n" + "\n".join(table()) + "\n\n" + end + rest.split(end)[1]
    return text


if __name__ == "__main__":
    PAGE.write_text(renew(), encoding="utf-8")
