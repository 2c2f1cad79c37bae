"""The tables of validation.md, written from the JSON files whenever the documentation is built.

They show the attacks on certificates, the bounds with a mistake that the simulations must detect, the mutants that the
tests must kill, and the damaged files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from measured import results


def percent(row: dict[str, Any] | None, digits: int = 1) -> str:
    return "" if row is None else f"{100 * row['rate']:.{digits}f} %"


def attacks() -> Iterator[str]:
    """One line per attack: the outcome, how often it is false, and how often it is false without the rule."""
    found, cover = results("attacks"), results("attacks_cover")
    summary = found["summary"]
    yield (
        f"{summary['attacks']} attacks: {summary['refused']} refused, {summary['true']} true, with at most "
        f"{percent(summary['most failures'])} failures in {summary['samples']:,} samples (δ = 5 %). On who is covered "
        f"and what is given: {cover['summary']['attacks']} attacks, {cover['summary']['refused or true']} refused or "
        f"true, at most {100 * cover['summary']['worst']:.1f} % failures (`attacks`, `attacks_cover`)."
    )
    yield ""
    yield "| attack | outcome | false in | without the rule |"
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


def coverage() -> Iterator[str]:
    """The most failures of sound bounds, of a bound with a mistake, and along streams."""
    found = results("certificate_coverage")
    streams = found["anytime"]
    sound = [
        (row["rate"], bound)
        for part, problems in found.items()
        if part not in ("anytime", "summary")
        for bounds in problems.values()
        for bound, rows in bounds.items()
        if not bound.startswith("broken")
        for row in rows.values()
    ]
    fewest, most = (
        choose(
            max(row["samples"] for row in rows.values())
            for part, problems in found.items()
            if part != "summary"
            for bounds in problems.values()
            for rows in bounds.values()
        )
        for choose in (min, max)
    )
    worst, of = max(sound)
    mistake = "broken: log-wealth, half the KL, no δ"
    in_sample = [
        found["summary"]["broken bounds"][f"in_sample, {kind}"][mistake] for kind in ("d = 1", "d = 2", "graph")
    ]

    def range_of(bound: str) -> str:
        rates = [max(row["rate"] for row in problem[bound].values()) for problem in streams.values()]
        return f"{100 * min(rates):.1f} to {100 * max(rates):.1f} %"

    yield (
        f"In {fewest:,} to {most:,} samples per problem no bound failed in more than {100 * worst:.2g} % against any "
        f"adversary ({of})."
    )
    yield (
        "Bounds with a mistake run along: log-wealth with half of KL and δ forgotten fails in "
        f"{', '.join(percent(row) for row in in_sample)} of the samples on the three problems."
    )
    yield (
        "Along streams, with the posterior refitted after every observation and the worst moment to stop, log-wealth "
        f"fails in {range_of('log-wealth')} of 2,000 streams; a kl bound that is sound for one sample size fixed "
        f"beforehand (Occam's, for single hypotheses) fails in {range_of('kl of a fixed sample size (Occam)')}."
    )
    yield (
        f"The kl bound with ξ(N) fails in {range_of('kl')}: its ½ ln N happens to cover the looking, but no proof says "
        "so."
    )


def broken() -> Iterator[str]:
    """One line per mistake: the most failures on each problem, and which of them are more than chance allows."""
    by_bound: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for place, bounds in results("certificate_coverage")["summary"]["broken bounds"].items():
        part, problem = place.split(", ", 1)
        part = "in sample" if part == "gain" else part  # the same bound, on problems of its own
        for bound, row in bounds.items():
            title = f"{part.replace('_', ' ')}: {bound.removeprefix('broken: ')}"
            by_bound.setdefault(title, []).append((problem, row))
    every = [row for rows in by_bound.values() for _, row in rows]
    caught = sum(row["caught"] for row in every)
    never = [title for title, rows in by_bound.items() if not any(row["caught"] for _, row in rows)]
    yield (
        f"{len(every)} cases, {caught} detected; {len(by_bound)} mistakes, of which "
        f"{len(by_bound) - len(never)} are detected on at least one problem."
    )
    yield ""
    yield "| bound with a mistake | detected: failures | not detected: failures |"
    yield "|---|---|---|"
    for title, rows in by_bound.items():
        shown = [
            ", ".join(f"{problem} {percent(row)}" for problem, row in rows if row["caught"] is which)
            for which in (True, False)
        ]
        yield f"| {title} | {shown[0]} | {shown[1]} |"


def files() -> Iterator[str]:
    """How many damaged files and signals were tried, and how they ended."""
    found, kills = results("files"), results("kills")
    named = {
        "one byte": "model files with one byte changed",
        "model files": "model files cut, filled and mixed",
        "parquet": "damaged Parquet files",
        "csv": "odd CSV files",
        "SIGINT": "moments of Ctrl-C, imports included",
        "SIGTERM": "moments of SIGTERM",
    }
    yield "| tried | how often | ended with a sentence | went on | failures |"
    yield "|---|---|---|---|---|"
    for key, title in named.items():
        if key in found:
            row = found[key]
            went_on = row["ends"].get("exit code 0", 0)
            yield f"| {title} | {row['tried']:,} | {row['tried'] - went_on:,} | {went_on:,} | {row['failures']} |"
    saves, fits = kills["save"], [row for key, row in kills.items() if key != "save"]
    yield f"| kill -9 while a model is saved | {saves['kills']} | – | – | {saves['kills'] - saves['whole_files']} |"
    unequal = sum(not row["equal_at_the_end"] for row in fits)
    yield f"| kill -9 during a fit, then `--resume` | {sum(row['kills'] for row in fits)} | – | – | {unequal} |"
    yield ""
    same = found["one byte"]["loaded_as_the_same_model"]
    yield (
        "A file that went on was whole in all that counts: the "
        f"{same:,} model files that still loaded are the same model (`files`, `kills`)."
    )


def mutants() -> Iterator[str]:
    """The score of each room, and what survives."""
    found = results("mutation")
    yield "| room | mutants | sampled | killed at first | killed | equivalent | score | 95 % interval |"
    yield "|---|---|---|---|---|---|---|---|"
    for room, row in found.items():
        low, high = row["interval"]
        yield (
            f"| `{room}/` | {row['mutants']:,} | {row['sampled']} | {row['killed at first']} | {row['killed']} | "
            f"{row['equivalent']} | "
            f"{100 * row['score']:.1f} % | {100 * low:.1f} to {100 * high:.1f} % |"
        )
    yield ""
    yield "| survivor | changed to | why it survives |"
    yield "|---|---|---|"
    for row in (one for room in found.values() for one in room["survivors"]):
        before, after = (f"`{row[key].replace('|', '¦')}`" if row[key] else "(removed)" for key in ("before", "after"))
        yield f"| {row['file']}: {before} | {after} | {row['reason'] or 'no test yet'} |"


def tomorrow() -> Iterator[str]:
    """How often guarantees about tomorrow fail, and how soon a broken promise is noticed."""
    found = results("tomorrow")
    yield "| what | runs | failures | allowed |"
    yield "|---|---|---|---|"
    for title, row in found["failures"].items():
        yield f"| {title} | {row['runs']:,} | {percent(row, 2)} | {100 * row['allowed']:g} % |"
    yield ""
    yield "| loss above the promise | median rows until the alarm | after 5,000 kept rows | bets from the start |"
    yield "|---|---|---|---|"
    for title, row in found["delays"].items():
        late = row["median rows, after 5,000 that were kept"]
        yield f"| {title.removesuffix(' above')} | {row['median rows']:,.0f} | {late:,.0f} | {row['beside']:,} |"


def tampering() -> Iterator[str]:
    """How many changed files were found, and honest ones verified."""
    found = results("tampering")["summary"]
    yield (
        f"{found['kinds']} kinds of tampering, {found['found']} found; {found['honest runs']} honest runs, "
        f"{found['honest runs verified']} verified."
    )


def happened() -> Iterator[str]:
    """Promises beside what happened, of films, articles and coats."""
    time, coat = results("in_time"), results("chosen_ratings")
    films, articles = time["films"], time["articles"]

    def ended(row: dict[str, Any]) -> str:
        if "watch" not in row:
            return ""
        after, n = row["watch"]["ended after rows"], row["watch"]["of rows"]
        return f"no alarm in {n:,}" if after is None else f"{after:,} of {n:,}"

    yield "| certificate | promised | observed | happened | alarm after |"
    yield "|---|---|---|---|---|"
    for title, rows, names in (
        ("films, absolute error", films, ("ordinary", "in the order of arrival", "stratified")),
        ("articles, miss rate at 20", articles, ("ordinary",)),
    ):
        for name in names:
            row = rows[name]
            yield (
                f"| {title}: {name} | {row['promised']:.3f} | {row['observed']:.3f} | {row['happened']:.3f} | "
                f"{ended(row)} |"
            )
        row = rows["re-weighted"]
        happened = f"{row['happened']:.3f} | {ended(row)}"
        yield f"| {title}: re-weighted to the later mix | {row['promised']:.3f} | | {happened} |"
    yield ""
    yield "| stratum | share before | after | promised | happened |"
    yield "|---|---|---|---|---|"
    for title, strata in (("films", films["stratified"]["strata"]), ("articles", articles["stratified"])):
        for name, row in strata.items():
            shares = f"{100 * row['share before']:.1f} % | {100 * row['share after']:.1f} %"
            yield f"| {title}: {name} | {shares} | {row['promised']:.3f} | {row['happened']:.3f} |"
    yield ""
    chosen, shown = coat["chosen"], coat["at random"]
    effect, weighted = coat["effect by coats shown at random"], coat["effect by propensities"]
    bounds = ", ".join(f"{row['promised']:.2f} for {name}" for name, row in coat["by propensities"].items())
    bias, random = chosen["labels less predictions"], shown["labels less predictions"]
    lines = [
        f"Coat: labels exceed predictions by {bias:.2f} on ratings that people chose and by {random:.2f} on coats",
        f"shown at random: an effect of {effect['observed']:.2f} ({effect['low']:.2f} to {effect['high']:.2f}), which",
        "is proved.",
        f"By propensities alone it is estimated at {weighted['observed']:.2f} ({weighted['low']:.2f} to",
        f"{weighted['high']:.2f}). The certificate of chosen ratings promises {coat['ordinary']['promised']:.3f}; by",
        f"propensities the whole catalogue is promised {bounds}; the mean absolute error on coats shown at random is",
        f"{shown['loss']:.3f}.",
    ]
    yield " ".join(lines)


def named_mutants() -> Iterator[str]:
    """Mistakes that were put back, and the test that notices each."""
    yield "| mistake | noticed |"
    yield "|---|---|"
    for name, row in results("named_mutants").items():
        if name != "summary":
            yield f"| {name} | {'yes' if row['killed'] else 'no'} |"


TABLES = {
    "tomorrow": tomorrow,
    "tampering": tampering,
    "happened": happened,
    "named_mutants": named_mutants,
    "attacks": attacks,
    "coverage": coverage,
    "broken_bounds": broken,
    "mutants": mutants,
    "files": files,
}
