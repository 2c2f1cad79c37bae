"""``gingham recommend``: what each user wants next, as a table or a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gingham.cli import options
from gingham.errors import GinghamError, suggestion
from gingham.files import Reads, Writes


def recommend(
    model: options.ModelFile,
    of: Annotated[
        str | None, typer.Argument(metavar="[item]", help="Id or title of an item, for models other than rankings.")
    ] = None,
    users: Annotated[str | None, typer.Option(help="Users of the training data to recommend for: 17,23.")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Recommend for all users, without reasons.")] = False,
    basket: Annotated[str | None, typer.Option(help="Items in the basket of a new user: beer,nuts.")] = None,
    n: Annotated[int, typer.Option("-n", help="Length of each list.", min=1)] = 20,
    seen: Annotated[bool, typer.Option("--seen", help="Include items that the user has already.")] = False,
    page: Annotated[Path | None, typer.Option(help="HTML page to write, with groups and reasons."), Writes()] = None,
    items: Annotated[str | None, typer.Option(help="Items to explain on the page: beer,nuts.")] = None,
    item: Annotated[str | None, typer.Option(help="The same as naming the item after the model.")] = None,
    side: Annotated[str | None, typer.Option(help="Axis of the item, if the id occurs on several axes.")] = None,
    label: Annotated[str | None, typer.Option(help="For text labels: the label that is wanted.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Table of observed rows, which are left out of the list."), Reads()
    ] = None,
    only: Annotated[str | None, typer.Option(help="List only these items, as in beer,nuts.")] = None,
    exclude: Annotated[str | None, typer.Option(help="Leave out these items, as in beer,nuts.")] = None,
    at_most: Annotated[
        list[str] | None,
        typer.Option(
            help="Maximum number of items per list that share a value of a column, or have one value, as in brand=3 or "
            "brand:Acme=1. A number below 1 is a share of the list."
        ),
    ] = None,
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            help="Minimum number of items per list with a yes in a column, or with one value, as in new=2, "
            "brand:Acme=1 or long_tail=0.2 (unpopular items)."
        ),
    ] = None,
    info: Annotated[
        str | None, typer.Option(help="Table of the items with the columns named in the rules."), Reads()
    ] = None,
    out: options.OutTable = None,
    format: options.Format = None,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """Rank what each user does not have yet, with scores and reasons; or list the best partners of an item.

    Examples
    --------
    gingham recommend model.gingham --users 17,23 -n 10
    gingham recommend model.gingham --all --out lists.parquet
    gingham recommend model.gingham --basket 'beer,nuts'
    gingham recommend model.gingham --users 17 --items beer --page page.html
    gingham recommend model.gingham Fargo --data ratings.csv
    """
    if of is not None and item is not None and of != item:
        raise GinghamError(f"Two items are named, {of!r} and {item!r}: name one per command.")
    item = of if item is None else item
    if item is not None:
        best_partners(model, item, n, side, label, data, not seen, (out, format, spreadsheet_safe))
        return
    if sum((users is not None, everybody, basket is not None)) != 1 and page is None:
        raise GinghamError("Name the users: --users 17,23, --all, or --basket beer,nuts for a new user.")
    from gingham.cli.table_files import write_table
    from gingham.models.base import load

    ranker = load(model)
    ruled = (only, exclude, at_most, at_least, info)
    if not hasattr(ranker, "recommend_for"):
        raise GinghamError(f"{model!r} is not a ranking. Name an item, as in gingham recommend {model} ITEM.")
    rules = {} if not any(ruled) else read_rules(ranker, *ruled)
    chosen = [] if users is None else known(users, ranker, "user")
    if page is not None:
        from gingham.report import ranking

        explained = [] if items is None else known(items, ranker, "item")
        ranking.write(ranker, page, chosen, explained, n=min(n, 20), title=f"Ranking by {Path(model).name}")
    if basket is not None:
        mine = known(basket, ranker, "item")
        write_table(ranker.recommend_for(mine, n, not seen, backend="polars", **rules), out, format, spreadsheet_safe)
    elif everybody:
        lists = ranker.recommend(ranker.users_, n, not seen, reasons=False, backend="polars", **rules)
        write_table(lists, out, format, spreadsheet_safe)
    elif chosen:
        write_table(ranker.recommend(chosen, n, not seen, backend="polars", **rules), out, format, spreadsheet_safe)


def read_rules(
    ranker: Any, only: str | None, exclude: str | None, at_most: list[str] | None, at_least: list[str] | None,
    info: str | None,
) -> dict[str, Any]:  # fmt: skip
    """The rules of the command line as arguments of `BasketRanker.recommend`."""
    rules: dict[str, Any] = {}
    for name, listed in (("items", only), ("exclude", exclude)):
        if listed is not None:
            rules[name] = known(listed, ranker, "item")
    for option, name, given in (("--at-most", "at_most", at_most), ("--at-least", "at_least", at_least)):
        if given:
            rules[name] = dict(limit_of(option, one) for one in given)
    if info is not None:
        from gingham.cli.tables.adapter import table_about

        side = ranker.side_names_[1]
        rules["item_info"] = table_about(side, info, ranker.items_.tolist())
    return rules


def limit_of(option: str, listed: str) -> tuple[str | tuple[str, str], float]:
    """A column, or a column and one of its values, with a number: brand=3, brand:Acme=1."""
    left, sign, number = listed.rpartition("=")
    column, colon, value = left.partition(":")
    try:
        count = float(number)
    except ValueError:
        sign = ""
    if not sign or not column:
        raise GinghamError(
            f"{option} {listed!r} must have the form COLUMN=NUMBER or COLUMN:VALUE=NUMBER, for example brand=3."
        )
    return ((column.strip(), value.strip()) if colon else column.strip()), count


def best_partners(
    model: str,
    item: str,
    n: int,
    side: str | None,
    label: str | None,
    data: str | None,
    exclude_seen: bool,
    target: tuple[str | None, str | None, bool],
) -> None:
    """The partners with the highest predictions for one item of a model that is no ranking."""
    from gingham.cli.describe import read_model
    from gingham.cli.table_files import table_for, write_table
    from gingham.cli.tables.columns import need_columns

    fitted = read_model(model)
    if hasattr(fitted, "recommend_for"):
        raise GinghamError(f"{model!r} is a ranking. Name the users with --users, --all or --basket.")
    rows = None if data is None else table_for(fitted, data)
    if rows is not None and fitted._record is not None:
        need_columns(rows, fitted._record.axes, "The model")
        rows = rows.select(fitted._record.axes)
    found = fitted.recommend(item, n, side=side, label=label, seen=rows, exclude_seen=exclude_seen, backend="polars")
    write_table(found, *target)


def known(listed: str, ranker: Any, what: str) -> list[object]:
    """Ids from text, as the model knows them (a number is one there, not text), or from titles."""
    from gingham.models.base import has_summary

    ids = (ranker.users_ if what == "user" else ranker.items_).tolist()
    table = {str(one): one for one in ids}
    titles: dict[str, str] = {}
    if has_summary(ranker):
        sides = [side for side in ranker.summary_.sides if side.name == ranker.side_names_[what == "item"]]
        titles = {title: str(one) for side in sides for title, one in zip(side.names, side.items.tolist())}
    whole = listed.strip()
    wanted = [whole] if whole in titles else [name.strip() for name in listed.split(",") if name.strip()]
    for name in wanted:
        if name not in table and name not in titles:
            raise GinghamError(
                f"The model has no {what} {name!r}; it has {len(table):,}, such as {next(iter(table))}."
                f"{suggestion(name, (*titles, *table))}"
            )
    return [table[name if name in table else titles[name]] for name in wanted]
