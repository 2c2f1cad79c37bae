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


# Corrected sections and the verdict of an earlier edition of the pages: the same one where only the evidence or the
# text was wrong, "" where there was no such section.
EARLIER = {
    ("p0", "Theorem 11, (28)–(30): convergence of cells and margins"): "reproduced",
    ("p0", "Equation (31): convergence of the joint distribution"): "refuted",
    ("p0", "Equations (32)–(35): the density estimator"): "repaired",
    ("p0", "Algorithm 1, (42)–(44): alternating projections"): "reproduced",
    ("p0", "Equation (51): the bound for a tree"): "reproduced",
    ("p0", "Theorem 7, (18): the bound for co-clustering"): "repaired",
    ("p0", "Figures 3, 4, 5: bound and error against β"): "reproduced",
    ("p0", "Figure 6: the information at the best error"): "reproduced",
    ("p0", "Theorem 13, (53): the bound for graphs"): "repaired",
    ("p0", "Appendix B: quantised answers"): "repaired",
    ("p1", "Theorem 1, (1)–(6): co-clustering"): "repaired",
    ("p1", "Theorem 2, (10): the bound"): "repaired",
    ("p1", "A single iteration, and annealing β upwards with noise"): "refuted",
    ("p1", "Equation (15): the bound for quantised weights"): "repaired",
    ("p1", "Figure 1 (a): latencies, bound and loss against β"): "not reproducible here",
    ("p1", "Figure 2: the matrix in order of its clusters"): "not reproducible here",
    ("p1", "Figure 3 (a): yeast, bound and loss against β"): "reproduced",
    ("p1", 'Figure 3 (b): "clustering does not help in modelling this dataset"'): "refuted",
    ("p1", "Footnote 3: sets of nodes"): "",
    ("p2", "Naive Bayes, latent Dirichlet allocation and the blockmodel as special cases"): "repaired",
    ("p2", "Figure 2: the variational family"): "repaired",
    ("p2", "Table 1 and (3): the terms of the bound"): "repaired",
    ("p2", "Figure 3: parameters found"): "reproduced",
    ("p2", "Table 3: co-clustering against naive Bayes and LDA"): "repaired",
    ("p3", "Equations (9)–(10): the constrained problem"): "partial",
    ("p3", "Equations (24)–(28): pairs of clusters and their contradiction"): "partial",
    ("p3", "Equations (30)–(31): functions instead of clusters"): "repaired",
    ("p3", "Figure 5: the paper's method on synthetic data"): "repaired",
    ("p3", "Equations (41)–(42): average precision"): "repaired",
    ("p3", "Table 2: two languages"): "refuted",
    ("p3", "Table 3: three languages"): "refuted",
    ("p3", "Table 4: four languages"): "refuted",
    ("p4", "Theorem 1, (1)–(4): a bound without the number of instances"): "repaired",
    ("p4", "Theorem 2, (5): IobMax is nearly the best"): "repaired",
}


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


def table_of_verdicts(every: list[Item]) -> str:
    """How many verdicts of each kind each paper has, and all of them; those that were corrected are marked."""
    counts = Counter((item.page, item.verdict) for item in every)
    lines = ["| paper | " + " | ".join(VERDICTS) + " | all |", "|---|" + "---:|" * (len(VERDICTS) + 1)]
    for page in PAGES:
        row = [counts[page, verdict] for verdict in VERDICTS]
        lines.append(f"| [{page.upper()}]({page}.md) | " + " | ".join(map(str, row)) + f" | {sum(row)} |")
    totals = [sum(counts[page, verdict] for page in PAGES) for verdict in VERDICTS]
    lines += ["| all | " + " | ".join(map(str, totals)) + f" | {sum(totals)} |", ""]
    lines += ["| paper | item | verdict | |", "|---|---|---|---|"]
    for item in every:
        earlier = EARLIER.get((item.page, item.title))
        change = "evidence corrected" if earlier == item.verdict else f"was {earlier}" if earlier else "new section"
        mark = "" if earlier is None else f"**changed**: {change}"
        lines.append(f"| {item.page.upper()} | {item.title} | {item.verdict} | {mark} |")
    return "\n".join(lines) + "\n"


def write_verdicts(folder: Path) -> None:
    """The table in the overview of the papers."""
    (folder / "verdicts.inc").write_text(table_of_verdicts(items(folder)), encoding="utf-8")
