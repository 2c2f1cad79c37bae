"""Groups over time: votes of senators from 1997 to 2021, and documents of the Epub sessions.

One model per congress, with two groups of senators; a member of both parties' caucuses over time is one person, by
name. The check: senators who changed their party (Jeffords in 2001, Specter in 2009) move to the other group, and are
proven to; how many others are called proven. Epub: groups of documents that are read together, every two years.
"""

from __future__ import annotations

import csv
import gzip
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import gingham as gg
from common import arguments, load, previous, write
from gingham.data.adapt import frame_of
from gingham.report import timeline as page
from gingham.summary.timeline import COLOURS, Timeline, timeline

FIGURES = {"switchers that are proven to move": "senate/switchers proven", "CPU seconds": "*/cpu_s"}
SWITCHERS = {"JEFFORDS": "2001", "SPECTER": "2009"}  # first year of the congress in which they changed their party
RED, BLUE = "#c8553d", "#3b6fb6"
BLOCKS = 8  # of bills
EPUB_FROM, EPUB_STEP = 2003, 2


def table(folder, file):
    with gzip.open(Path(folder) / file, "rt", encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def year(congress):
    """The first year of a congress."""
    return str(1787 + 2 * int(congress))


def senate(folder):
    """One fit per congress, by its first year, and the parties of each senator in each congress."""
    found = load(folder, "senate105_116.npz")
    members = table(folder, "senate105_116_members.csv.gz")
    person = {int(row["icpsr"]): row["bioname"] for row in members}
    party = {}  # of a person in a congress: all they had
    for row in members:
        party.setdefault((year(row["congress"]), row["bioname"]), set()).add(row["party_code"])
    who = np.array([person[int(i)] for i in found["icpsr"]])[found["rows"]]
    bill = found["rollcall"][found["cols"]]
    congress, fits = bill // 10_000, {}
    for one in np.unique(congress):
        mine = congress == one
        X = np.empty((int(mine.sum()), 2), dtype=object)
        X[:, 0], X[:, 1] = who[mine], bill[mine]
        model = gg.CoClusteringClassifier(n_clusters=(2, BLOCKS), random_state=0)
        model.fit(frame_of({"senator": X[:, 0].tolist(), "bill": X[:, 1].tolist()}), found["vals"][mine])
        fits[year(one)] = model
    return fits, party


def epub(folder):
    """One fit per two years of sessions × documents."""
    rows = table(folder, "epub_sessions.csv.gz")
    period = np.array([(int(row["time"][:4]) - EPUB_FROM) // EPUB_STEP for row in rows])
    fits = {}
    for one in np.unique(period):
        mine = [row for row, own in zip(rows, period) if own == one]
        docs, counts = np.unique([row["doc"] for row in mine], return_counts=True)
        often = set(docs[counts >= 5].tolist())
        pairs = [(row["session"], row["doc"]) for row in mine if row["doc"] in often]
        frame = frame_of({"session": [a for a, _ in pairs], "doc": [b for _, b in pairs]})
        model = gg.BasketRanker(n_boards=1, n_groups=6, backend="compiled", random_state=0).fit(frame)
        fits[f"{EPUB_FROM + EPUB_STEP * int(one)}"] = model
    return fits


def with_names(period, parties):
    """The period with groups of senators that are called by their majority's party."""
    first, *others = period.sides
    named = replace(first, names=[f"mostly {parties[identity]}" for identity in period.identity[0]])
    return replace(period, sides=(named, *others))


def facts(line, side):
    moved = line.moved(side)
    return {
        "periods": [period.name for period in line.periods],
        "groups": [period.sides[line.side(side)].n for period in line.periods],
        "moved": len(moved),
        "proven": [{"period": at, "who": one.items[0], "p": one.p} for at, one in moved if one.verdict == "proven"],
    }


def main() -> None:
    def options(parser):
        parser.add_argument("--only", default="senate,epub")
        parser.add_argument("--pages", type=Path, help="folder for the pages and pictures")

    args = arguments(__doc__ or "", "summary_timelines", options)
    warnings.simplefilter("ignore")
    results = previous(args)
    for name in args.only.split(","):
        began = time.process_time()
        if name == "senate":
            fits, party = senate(args.data)
            line, side = timeline(dict(list(fits.items())[-3:]) if args.quick else fits), "senator"
            found = facts(line, side)
            purity, democrats = [], []
            for period in line.periods:
                own = period.sides[0]
                known = [(label, min(party[period.name, who])) for who, label in zip(own.mode.items, own.labels)
                         if label >= 0 and party.get((period.name, who), set()) in ({"100"}, {"200"})]  # fmt: skip
                counts = np.array(
                    [[sum(k == pair for k in known) for pair in ((g, "100"), (g, "200"))] for g in (0, 1)]
                )
                purity.append(float(counts.max(axis=1).sum() / max(counts.sum(), 1)))
                democrats.append(int(period.identity[0][counts[:, 0].argmax()]))
            parties = ["Democrats" if identity in democrats else "Republicans" for identity in range(2)]
            colours = [BLUE if party == "Democrats" else RED for party in parties]
            line = Timeline(tuple(with_names(period, parties) for period in line.periods))
            found["share in the group of their party"] = purity
            for last, at in SWITCHERS.items():
                moves = [(p, one) for p, one in line.moved(side) if one.items[0].startswith(last)]
                found[last] = [{"period": p, "verdict": one.verdict, "p": one.p} for p, one in moves]
                found.setdefault("switchers proven", 0)
                found["switchers proven"] += any(one.verdict == "proven" and p == at for p, one in moves)
        else:
            line, side, colours = timeline(epub(args.data)), "doc", COLOURS
            found = facts(line, side)
        found["cpu_s"] = time.process_time() - began
        results[name] = found
        print(name, found, flush=True)
        if args.pages is not None:
            args.pages.mkdir(parents=True, exist_ok=True)
            page.write(line, args.pages / f"{name}.html", side, f"{name.title()}: groups over time")
            drawn = gg.plots.alluvial(line, side, colours=colours)
            drawn.set_xlabel("first year of the period")
            drawn.set_title(f"{name.title()}: groups over time")
            drawn.figure.savefig(args.pages / f"{name}-timeline.png", dpi=130, bbox_inches="tight")
        write(args, {"blocks": BLOCKS}, results)


if __name__ == "__main__":
    main()
