"""``gingham audit``: predictions or ranked lists of any models, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes

if TYPE_CHECKING:
    import polars as pl

    from gingham.certificates import Audit


def audit(
    file: options.File,
    label: Annotated[str | None, typer.Option(help="Column with the labels.")] = None,
    prediction: Annotated[
        list[str] | None,
        typer.Option("--prediction", "-p", help="Column of predictions. Repeat the option to compare several."),
    ] = None,
    lists: Annotated[
        list[str] | None,
        typer.Option(help="Table of ranked lists (user, item; best item first). FILE then holds the held-out pairs."),
        Reads(names=lambda given: given),
    ] = None,
    loss: Annotated[str, typer.Option(help="absolute, quadratic, zero-one, log.")] = "absolute",
    alphabet: options.Alphabet = None,
    bounds: options.Bounds = None,
    strata: Annotated[
        list[str] | None, typer.Option(help="Column of strata: the error is shown for each value.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="Columns of ids, user,item: the error is shown for frequent and rare ids.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of independent groups, such as users, if the rows are not independent.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column of times: tests whether the loss has changed")] = None,
    at: Annotated[int, typer.Option(help="With --lists: number of items of each list that count.", min=1)] = 20,
    delta: options.Delta = 0.05,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Page to write.", show_default=False), Writes()
    ] = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Audit predictions of any program: certified error, which model is better, where, and since when.

    No model is needed, only a table with labels and predictions that were made without them. All that is said holds
    together with confidence 1 − delta.

    Examples
    --------
    gingham audit predictions.csv --label rating --prediction ours --prediction theirs --alphabet 1..5
    gingham audit predictions.csv --label y --prediction p --bounds 0,1 --loss quadratic --groups user --strata age
        --ids user,item --time at -o audit.html
    gingham audit hidden.csv --ids user,item --lists ours.csv --lists theirs.csv --at 20
    """
    from gingham.data.table_files import read_table

    table = read_table(file, format)
    if lists:
        found = of_lists(table, lists, ids, at, delta, format)
    elif label is None or not prediction:
        raise GinghamError("Name the columns: --label and --prediction, or ranked lists with --lists and --ids.")
    else:
        columns = [] if ids is None else [name.strip() for name in ids.split(",")]
        found = of_predictions(
            table, label, prediction, loss, alphabet, bounds, [*(strata or [])], columns, groups, time, delta,
            drop_missing,
        )  # fmt: skip
    if out is not None:
        from gingham.report import audit as page

        page.write(found, out, title or f"Audit of {Path(file).name}")
        console.say_note(f"The page is {out}.")
    if json:
        console.print_json(found.to_dict())
        return
    show(found)


def of_predictions(
    table: pl.DataFrame,
    label: str,
    predictions: list[str],
    loss: str,
    alphabet: str | None,
    bounds: str | None,
    strata: list[str],
    ids: list[str],
    groups: str | None,
    time: str | None,
    delta: float,
    drop_missing: bool,
) -> Audit:
    """The audit of columns of a table."""
    import numpy as np
    import polars as pl

    from gingham.certificates.audit import audit as audited
    from gingham.certificates.audit import hot_or_cold
    from gingham.cli.tables.arguments import parse_alphabet, parse_bounds
    from gingham.cli.tables.columns import need_columns, without_missing

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
    return audited(
        kept[label].to_numpy(), {name: kept[name].to_numpy() for name in predictions},
        loss="zero-one" if names else loss, strata=divisions,
        alphabet=None if alphabet is None else np.asarray(parse_alphabet(alphabet, names)).tolist(),
        label_bounds=parse_bounds(bounds), groups=None if groups is None else kept[groups].to_numpy(),
        ordered=time is not None, delta=delta,
    )  # fmt: skip


def of_lists(
    table: pl.DataFrame, lists: list[str], ids: str | None, at: int, delta: float, format: str | None
) -> Audit:
    """The audit of ranked lists by hidden pairs."""
    import polars as pl

    from gingham.certificates.audit import audit_rankings
    from gingham.cli.tables.columns import need_columns
    from gingham.data.table_files import read_table

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


def show(found: Audit) -> None:
    """Tables for the terminal."""
    from gingham.certificates.assumptions import rests_on
    from gingham.summary.measure import in_unit, unit_of

    for title, heads, rows in found.tables(unit_of, in_unit):
        console.grid(title, heads, rows)
    console.paragraphs(
        f"All of these statements hold simultaneously with confidence {100 * (1 - found.delta):g} %. "
        + "\n".join(rests_on(found.assumptions))
    )
