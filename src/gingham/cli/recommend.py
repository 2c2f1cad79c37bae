"""``gingham recommend``: what each user wants next, as a table or a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gingham.cli import options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes

if TYPE_CHECKING:
    from gingham.arrays import AnyArray


def recommend(
    model: options.ModelFile,
    of: Annotated[
        str | None, typer.Argument(metavar="[item]", help="For models other than rankings: an id or a title.")
    ] = None,
    users: Annotated[str | None, typer.Option(help="Users of the training data to recommend for: 17,23.")] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Recommend for all users, without reasons, which take longer.")
    ] = False,
    basket: Annotated[str | None, typer.Option(help="Items in the basket of a new user: beer,nuts.")] = None,
    n: Annotated[int, typer.Option("-n", help="Length of each list.", min=1)] = 20,
    seen: Annotated[bool, typer.Option("--seen", help="Also list what the user has already.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="HTML page to write, with the board and the reasons."), Writes()
    ] = None,
    items: Annotated[str | None, typer.Option(help="Items to explain on the page: beer,nuts.")] = None,
    item: Annotated[str | None, typer.Option(help="The same as naming the item after the model.")] = None,
    side: Annotated[str | None, typer.Option(help="The axis of the item, if the id occurs on several.")] = None,
    label: Annotated[str | None, typer.Option(help="For labels that are names: the label that is wanted.")] = None,
    data: Annotated[
        str | None, typer.Option(help="Table with what was observed already, which is then left out."), Reads()
    ] = None,
    out: options.OutTable = None,
    format: options.Format = None,
    spreadsheet_safe: options.SpreadsheetSafe = False,
) -> None:
    """Rank what each user does not have yet, with scores and reasons; or list the best partners of an item."""
    if of is not None and item is not None and of != item:
        raise GinghamError(f"Two items are named, {of!r} and {item!r}: one a command.")
    item = of if item is None else item
    if item is not None:
        best_partners(model, item, n, side, label, data, not seen, (out, format, spreadsheet_safe))
        return
    if sum((users is not None, everybody, basket is not None)) != 1 and page is None:
        raise GinghamError("Say for whom: --users 17,23, --all, or --basket beer,nuts for somebody new.")
    from gingham.cli.table_files import write_table
    from gingham.models.base import load

    ranker = load(model)
    if not hasattr(ranker, "recommend_for"):
        raise GinghamError(
            f"{model!r} is no ranking: ask it for the best partners of an item, as in gingham recommend {model} ITEM."
        )
    chosen = [] if users is None else known(users, ranker.users_, "user")
    if page is not None:
        from gingham.report import ranking

        explained = [] if items is None else known(items, ranker.items_, "item")
        ranking.write(ranker, page, chosen, explained, n=min(n, 20), title=f"Ranking by {Path(model).name}")
    if basket is not None:
        mine = known(basket, ranker.items_, "item")
        write_table(ranker.recommend_for(mine, n, not seen, backend="polars"), out, format, spreadsheet_safe)
    elif everybody:
        write_table(
            ranker.recommend(ranker.users_, n, not seen, reasons=False, backend="polars"), out, format, spreadsheet_safe
        )
    elif chosen:
        write_table(ranker.recommend(chosen, n, not seen, backend="polars"), out, format, spreadsheet_safe)


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

    fitted = read_model(model)
    if hasattr(fitted, "recommend_for"):
        raise GinghamError(f"{model!r} is a ranking: say for whom with --users, --all or --basket.")
    axes = () if fitted.record_ is None else fitted.record_.axes
    rows = None if data is None else table_for(fitted, data)
    if rows is not None and axes:
        for name in axes:
            if name not in rows.columns:
                raise GinghamError(f"{data!r} has no column {name!r}, which the model was fitted with.")
        rows = rows.select(list(axes))
    found = fitted.recommend(item, n, side=side, label=label, seen=rows, exclude_seen=exclude_seen, backend="polars")
    write_table(found, *target)


def known(listed: str, ids: AnyArray, what: str) -> list[object]:
    """Ids from text, as the model knows them (a number is one there, not text)."""
    table = {str(item): item for item in ids.tolist()}
    wanted = [name.strip() for name in listed.split(",") if name.strip()]
    for name in wanted:
        if name not in table:
            raise GinghamError(
                f"The model knows no {what} {name!r}; it has {len(table):,}, such as {next(iter(table))}."
            )
    return [table[name] for name in wanted]
