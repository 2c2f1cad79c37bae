"""What ``gingham fit`` says at its end: what was found, how well it predicts, what is guaranteed, what comes next."""

from __future__ import annotations

from dataclasses import replace
from shlex import join
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from gingham.arrays import Floats
from gingham.cli import console
from gingham.cli.tables.adapter import FitTask, TableSource, opened
from gingham.cli.tables.arguments import CertificateRequest
from gingham.errors import GinghamError
from gingham.models.base import has_summary
from gingham.models.questions import signed
from gingham.summary.finding import finding
from gingham.summary.look import (
    SCALE,
    Facts,
    missing_options,
    none_meant,
    proposed_alphabet,
    proposed_bounds,
    short_exact,
)
from gingham.summary.measure import in_unit, unit_of
from gingham.summary.values import Cluster, plural

MOST_GROUPS, MOST_ITEMS = 8, 3  # that are listed of a side, and of a group


def guarantee(task: FitTask, model: Any) -> dict[str, Any]:
    """The first certificate that ``gingham certify`` shows, where it needs nothing more; else why there is none."""
    if model.interrupted_ or model._record.measured is None:
        return {}
    wide = model._record.wide
    if task.options.alphabet is None and task.options.bounds is None and not (wide and wide.steps):
        asked = to_state(task.table[str(model._record.label)])
        return {"refusal": "There is no guarantee yet, because the possible labels were not stated.", **asked}

    request = CertificateRequest(progressive=False)
    source = TableSource(task.table, drop_missing=task.options.drop_missing, axes=task.options.axes)
    try:
        name, first = next(iter(opened(model, source).certificates(request).items()))
    except GinghamError as refusal:
        return {"refusal": f"Nothing is guaranteed. {refusal}"}
    return {
        "unit": unit_of(first.loss), "at_most": in_unit(float(first.value), first.loss),
        "confidence": 1 - request.delta, "from": name,
    }  # fmt: skip


def to_state(labels: pl.Series) -> dict[str, str]:
    """What a certificate needs to be told of labels, as far as they show it: an option and its value.

    Labels that may stand for a missing one come as a question, with the options of a fit without them.
    """
    one = Facts.of(labels.name, nw.from_native(labels, series_only=True))
    if one.kind != "number":
        return {"--alphabet": proposed_alphabet(labels.drop_nulls().unique().to_numpy())}

    def proposed(values: Floats) -> dict[str, str]:
        if len(values) <= SCALE:
            return {"--alphabet": proposed_alphabet(values)}
        return {"--bounds": proposed_bounds(float(values[0]), float(values[-1]))}

    found = proposed(one.values)
    if len(one.sentinels) == 0:
        return found
    rest = proposed(np.setdiff1d(one.values, one.sentinels))
    said = missing_options([short_exact(value) for value in one.sentinels])
    said += [part for option, value in rest.items() if value for part in (option, value)]
    return {**found, "is_missing": none_meant(one.sentinels, "label"), "without": join(said)}


def show(model: Any, facts: dict[str, Any], sure: dict[str, Any], file: str, as_json: bool) -> None:
    """All of it, for people or as one JSON object for scripts."""
    measured = model._errors
    if as_json:
        if measured is not None:
            facts["errors"] = measured.to_dict()
        console.print_json(facts | ({"guaranteed": sure} if sure else {}))
        return
    console.show(facts, False, f"Co-clustering of {file}")
    show_groups(model, facts["file"])
    if measured is not None:
        console.errors(measured)
    if "at_most" in sure:
        console.paragraphs(
            f"Guaranteed with confidence {sure['confidence']:.0%}: the {sure['unit']} on new data from the same source "
            f"is at most {console.text(sure['at_most'])} (certified from the {sure['from']})."
        )
    elif sure:
        console.paragraphs(sure["refusal"])
    if file != "-" and not model.interrupted_:
        show_next(facts["file"], file, sure)


def show_groups(model: Any, out: str) -> None:
    """The groups of each side by name, the first ones where there are many."""
    if not has_summary(model):
        return
    summary = model.summary_
    said = (finding(summary, model._record.label or model._record.weight), summary.verdict, summary.distilled)
    console.paragraphs("\n" + " ".join(part for part in said if part))
    for at, (side, k) in enumerate(zip(summary.sides, summary.size)):
        groups = side.cut(k)
        if k < 2:
            continue
        other = summary.sides[1 - at].name if len(summary.sides) == 2 else ""
        rows = [
            (number, one.name, one.size, ", ".join(apart(one, other)))
            for number, one in enumerate(groups[:MOST_GROUPS], start=1)
        ]
        console.grid(f"Groups of {plural(side.name)}", ["", "group", plural(side.name), "set apart by"], rows)
        if k > MOST_GROUPS:
            console.paragraphs(f"and {k - MOST_GROUPS} more:\n  {join(['gingham', 'describe', out])}\n")


def apart(group: Cluster, other: str) -> list[str]:
    """What sets a group apart, besides the items that it is named after; a number is said with its side."""
    marks = [mark for mark in group.distinctive if mark.item not in group.name][:MOST_ITEMS]
    named = (replace(mark, item=f"{other} {mark.item}") if mark.item.isdigit() else mark for mark in marks)
    return [*map(str, group.facts[:1]), *map(signed, named)]


def show_next(out: str, file: str, sure: dict[str, Any]) -> None:
    """The commands that come next, to be pasted."""
    console.paragraphs(
        f"\nTo write a page with the groups, errors and guarantees:\n  {join(['gingham', 'report', out, file])}"
    )
    if "at_most" in sure:
        console.paragraphs(f"To see the assumptions of the guarantee:\n  {join(['gingham', 'certify', out, file])}")
    if asked := sure.get("is_missing"):
        console.paragraphs(f"{asked} Then fit again with {sure['without']}.")
    seem = "Otherwise, the" if asked else "The"
    for option, scale in (("--alphabet", "look like"), ("--bounds", "lie within")):
        if value := sure.get(option):
            command = join(["gingham", "certify", out, file, option, value])
            console.paragraphs(
                f"{seem} observed labels {scale} {value}. If these are all possible labels, this command prints a "
                f"guarantee:\n  {command}"
            )
