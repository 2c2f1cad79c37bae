"""The pages of the papers: the table of verdicts comes from the pages themselves.

Every section of a page is a numbered item of its paper, and begins with its verdict.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

VERDICTS = ("reproduced", "partial", "repaired", "refuted", "not reproducible here")
PAGES = ("p0", "p1", "p2", "p3", "p4")
SECTION = re.compile(r"^### (.+)\n\n\*\*(\w[\w ]*)\.\*\*", re.MULTILINE)


class Item(NamedTuple):
    """A numbered item of a paper and what became of it."""

    page: str
    title: str
    verdict: str


def items(folder: Path) -> list[Item]:
    """All items of all pages, in the papers' order."""
    found = []
    for page in PAGES:
        text = (folder / f"{page}.md").read_text(encoding="utf-8")
        found += [Item(page, title, verdict.lower()) for title, verdict in SECTION.findall(text)]
    return found


def write_verdicts(folder: Path) -> None:
    """The table that opens the part."""
    every = items(folder)
    counts = Counter((item.page, item.verdict) for item in every)
    lines = ["| paper | " + " | ".join(VERDICTS) + " | all |", "|---|" + "---:|" * (len(VERDICTS) + 1)]
    for page in PAGES:
        row = [counts[page, verdict] for verdict in VERDICTS]
        lines.append(f"| [{page.upper()}]({page}.md) | " + " | ".join(map(str, row)) + f" | {sum(row)} |")
    totals = [sum(counts[page, verdict] for page in PAGES) for verdict in VERDICTS]
    lines += ["| all | " + " | ".join(map(str, totals)) + f" | {sum(totals)} |", ""]
    lines += ["| paper | item | verdict |", "|---|---|---|"]
    lines += [f"| {item.page.upper()} | {item.title} | {item.verdict} |" for item in every]
    (folder / "verdicts.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")
