"""Audits of predictions and of ranked lists, whatever made them: the columns that they need, and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gingham.certificates import Audit, audit_rankings
from gingham.certificates.assumptions import rests_on
from gingham.certificates.audit import audit, hot_or_cold
from gingham.cli import console
from gingham.cli.tables.adapter import id_columns, predicted
from gingham.cli.tables.arguments import PredictOptions, parse_alphabet, parse_bounds
from gingham.cli.tables.columns import need_columns, without_missing
from gingham.cli.tables.kinds import kind_of
from gingham.data.sample import tuples
from gingham.data.table_files import read_table
from gingham.errors import GinghamError
from gingham.summary.measure import in_unit, unit_of
from gingham.summary.values import Summary

LISTED = 5  # parts at either end that are listed


def stated(alphabet: str | None, bounds: str | None, names: bool) -> dict[str, Any]:
    """The possible labels as an audit takes them."""
    values = None if alphabet is None else np.asarray(parse_alphabet(alphabet, names)).tolist()
    return {"alphabet": values, "label_bounds": parse_bounds(bounds)}


def of_predictions(
    table: pl.DataFrame,
    label: str,
    predictions: list[str],
    loss: str,
    possible: tuple[str | None, str | None],
    strata: list[str],
    ids: list[str],
    groups: str | None,
    time: str | None,
    delta: float,
    drop_missing: bool,
) -> Audit:
    """The audit of columns of a table; ``possible`` are the labels as --alphabet and --bounds state them."""
    others = [*ids, *([groups] if groups else []), *([time] if time else [])]
    need_columns(table, [label], "--label")
    need_columns(table, predictions, "--prediction")
    if label in predictions:
        raise GinghamError(f"The column {label!r} holds the labels, and predictions are another column: --prediction.")
    need_columns(table, [*strata, *others], "--strata, --ids, --groups and --time")
    kept = without_missing(table, list(dict.fromkeys([label, *predictions, *others])), drop_missing)
    if time is not None:
        kept = kept.sort(time, maintain_order=True)
    names = not kept[label].dtype.is_numeric()
    divisions: dict[str, Any] = {name: kept[name].cast(pl.String).fill_null("missing").to_numpy() for name in strata}
    divisions |= {f"{name}, by how often it occurs": hot_or_cold(kept[name].cast(pl.String).to_numpy()) for name in ids}
    return audit(
        kept[label].to_numpy(), {name: kept[name].to_numpy() for name in predictions},
        loss="zero-one" if names else loss, strata=divisions, **stated(*possible, names),
        groups=None if groups is None else kept[groups].to_numpy(), ordered=time is not None, delta=delta,
    )  # fmt: skip


def of_lists(
    table: pl.DataFrame, lists: list[str], ids: str | None, at: int, delta: float, format: str | None
) -> Audit:
    """The audit of ranked lists by hidden pairs."""
    columns = [name.strip() for name in (ids or "user,item").split(",")]
    if len(columns) != 2:
        raise GinghamError(f"--ids {ids!r} needs two columns, users and items: --ids user,item.")
    need_columns(table, columns, "--ids")
    user, item = columns
    rankings = {}
    for name in lists:
        ranked = read_table(name, format)
        need_columns(ranked, columns, "--ids")
        texts = ranked.select(pl.col(columns).cast(pl.String))
        listed = texts.group_by(user, maintain_order=True).agg(pl.col(item))
        shown: dict[object, list[object]] = {who: [] for who in table[user].cast(pl.String).unique().to_list()}
        rankings[Path(name).stem] = shown | dict(listed.iter_rows())
    if len(rankings) < len(lists):
        raise GinghamError("Two files of lists have the same name: rename one of them.")
    return audit_rankings(table.select(pl.col(columns).cast(pl.String)), rankings, at=at, delta=delta)


def of_rankings(models: dict[str, Any], table: pl.DataFrame, at: int, measure: str, delta: float) -> Audit:
    """Pairs that were hidden from two rankings; users by the groups of the first ranking."""
    first = next(iter(models.values()))
    columns = id_columns(first)
    need_columns(table, columns, "The model")
    by = {columns[0]: group_names(first.summary_, 0)}
    return audit_rankings(table.select(columns), models, by=by, at=at, measure=measure, delta=delta)


def of_models(
    models: dict[str, Any],
    table: pl.DataFrame,
    label: str | None,
    loss: str,
    possible: tuple[str | None, str | None],
    groups: str | None,
    delta: float,
    drop_missing: bool,
) -> Audit:
    """Rows with labels; those that one of two models has learned from are refused."""
    first = next(iter(models.values()))
    for one in models.values():
        kind = kind_of(one)
        if kind.data != "labels":
            raise GinghamError(f"A model of the kind {kind.name} predicts no labels that could be compared.")
    label = label or (None if first._record is None else first._record.label)
    if label is None:
        raise GinghamError("Name the column of labels: --label.")
    wanted = [*id_columns(first), label, *([groups] if groups else [])]
    need_columns(table, wanted, "The comparison")
    kept = without_missing(table, wanted, drop_missing)
    numbers = kept[label].dtype.is_numeric()
    guesses = {}
    for name, one in models.items():
        sample = tuples([kept[column].to_numpy() for column in id_columns(one)], kept[label].to_numpy())
        for met in (rows.met(sample) for rows in one._fit_rows[:1]):
            if met.seen:
                raise GinghamError(
                    f"{name} has learned from {met.n_same:,} of these rows: compare on rows that are new to both."
                )
        guesses[name] = predicted(one, kept.drop(label), PredictOptions()).to_series(-1).to_numpy()
    by = {}
    for at, side in enumerate(first.summary_.sides):
        if side.name in kept.columns:
            known = {str(item): name for item, name in group_names(first.summary_, at).items()}
            by[side.name] = np.array([known.get(str(i), "not in the model") for i in kept[side.name].to_list()], object)
    return audit(
        kept[label].to_numpy(), guesses, by=by, loss=loss if numbers else "zero-one", delta=delta,
        groups=None if groups is None else kept[groups].to_numpy(), **stated(*possible, not numbers),
    )  # fmt: skip


def group_names(summary: Summary, at: int) -> dict[object, str]:
    """The numbered name of the group of each item of a side."""
    side, k = summary.sides[at], summary.size[at]
    names = [f"{number}: {cluster.name}" for number, cluster in enumerate(side.cut(k), 1)]
    return {item: names[label] for item, label in zip(side.items.tolist(), side.labels(k).tolist())}


def show(found: Audit) -> None:
    """Tables for the terminal."""
    for title, heads, rows in found.tables(unit_of, in_unit):
        console.grid(title, heads, rows)
    show_premises(found)


def show_comparison(found: Audit) -> None:
    """The first difference as tables for the terminal, everywhere and by groups."""
    whole = found.differences[0]

    def row(name: str, n: int, one: Any) -> list[str]:
        return [name, f"{n:,}", *map(console.text, (one.observed, one.low, one.high)), one.better or "not proved"]

    header = ["", found.unit, "measured", "from", "to", "better"]
    title = f"{found.measure} of {whole.first} less that of {whole.second}"
    console.grid(title, header, [row("everywhere", found.n_rows, whole)])
    for name, parts in found.parts.items():
        rows = [row(one.part, one.n, one) for one in parts]
        if len(rows) > 2 * LISTED:
            rows = [*rows[:LISTED], ["…", *[""] * 5], *rows[-LISTED:]]
        if rows:
            console.grid(f"By groups of {name}", header, rows)
    show_premises(found)


def show_premises(found: Audit) -> None:
    console.paragraphs(
        f"All of these statements hold simultaneously with confidence {100 * (1 - found.delta):g} %. "
        + "\n".join(rests_on(found.assumptions))
    )
