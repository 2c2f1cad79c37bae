"""``gingham compare``: two models on the same rows, which is better, and for whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, atomic, need_model

if TYPE_CHECKING:
    from gingham.certificates import Audit

LISTED = 5  # parts at either end that are listed


def compare(
    model: options.ModelFile,
    other: Annotated[str, typer.Argument(help="The model to compare with."), Reads(need_model)],
    file: options.File,
    label: options.OtherLabel = None,
    loss: Annotated[str, typer.Option(help="absolute, quadratic, zero-one.")] = "absolute",
    alphabet: options.OtherAlphabet = None,
    bounds: options.Bounds = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of independent groups, such as users, if the rows are not independent.")
    ] = None,
    at: Annotated[int, typer.Option(help="Of rankings: number of items of each list that count.", min=1)] = 20,
    measure: Annotated[str, typer.Option(help="Of rankings: ndcg or miss.")] = "ndcg",
    delta: options.Delta = 0.05,
    plot: Annotated[Path | None, typer.Option(help="Picture to write, .png or .pdf."), Writes()] = None,
    drop_missing: options.DropMissing = False,
    format: options.Format = None,
    json: options.Json = False,
) -> None:
    """Say which of two models is better on rows that neither has learned from, and for which groups, with proof.

    The groups are those of the first model.

    Examples
    --------
    gingham compare ours.gingham theirs.gingham held-out.csv --alphabet 1..5
    gingham compare ours.gingham theirs.gingham hidden-pairs.csv --at 20 --plot who-wins.png
    """
    from gingham.cli.table_files import table_for
    from gingham.models.base import load

    models = {"first": load(model), "second": load(other)}
    names = [Path(name).stem for name in (model, other)]
    names = names if names[0] != names[1] else [f"{names[0]} (first)", f"{names[1]} (second)"]
    ranked = [hasattr(one, "recommend_for") for one in models.values()]
    table = table_for(models["first"], file, format)
    if all(ranked):
        found = of_rankings(dict(zip(names, models.values())), table, at, measure, delta)
    elif any(ranked):
        raise GinghamError("A ranking and a model of labels cannot be compared: they answer different questions.")
    else:
        found = of_predictions(
            dict(zip(names, models.values())), table, label, loss, alphabet, bounds, groups, delta, drop_missing
        )
    if plot is not None:
        from gingham.plots import comparison

        with atomic(plot) as stream:
            comparison(found).figure.savefig(stream, format=plot.suffix.lstrip(".") or "png", bbox_inches="tight")
        console.say_note(f"The picture is {plot}.")
    if json:
        console.print_json(found.to_dict())
        return
    show(found)


def of_rankings(models: dict[str, Any], table: Any, at: int, measure: str, delta: float) -> Audit:
    """Pairs that were hidden from both; users by the groups of the first ranking."""
    from gingham.certificates import audit_rankings
    from gingham.cli.tables.adapter import id_columns
    from gingham.cli.tables.columns import need_columns

    first = next(iter(models.values()))
    columns = id_columns(first)
    need_columns(table, columns, "The model")
    name = columns[0]
    side = first.summary_.sides[0]
    titles, labels = group_names(first.summary_, 0)
    by = {name: {item: titles[label] for item, label in zip(side.items.tolist(), labels.tolist())}}
    return audit_rankings(table.select(columns), models, by=by, at=at, measure=measure, delta=delta)


def of_predictions(
    models: dict[str, Any], table: Any, label: str | None, loss: str, alphabet: str | None, bounds: str | None,
    groups: str | None, delta: float, drop_missing: bool,
) -> Audit:  # fmt: skip
    """Rows with labels; those that one of the models has learned from are refused."""
    import numpy as np

    from gingham.certificates.audit import audit
    from gingham.cli.tables.adapter import id_columns, predicted
    from gingham.cli.tables.arguments import PredictOptions, parse_alphabet, parse_bounds
    from gingham.cli.tables.columns import need_columns, without_missing
    from gingham.cli.tables.kinds import kind_of
    from gingham.data.sample import tuples

    first = next(iter(models.values()))
    for one in models.values():
        kind = kind_of(one)
        if kind.data != "labels":
            raise GinghamError(f"A model of the kind {kind.name} predicts no labels that could be compared.")
    label = label or (None if first._record is None else first._record.label)
    if label is None:
        raise GinghamError("Name the column of labels: --label.")
    ids = list(id_columns(first))
    need_columns(table, [*ids, label, *([groups] if groups else [])], "The comparison")
    kept = without_missing(table, [*ids, label, *([groups] if groups else [])], drop_missing)
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
            titles, labels = group_names(first.summary_, at)
            known = {str(item): titles[own] for item, own in zip(side.items.tolist(), labels.tolist())}
            by[side.name] = np.array([known.get(str(i), "not in the model") for i in kept[side.name].to_list()], object)
    stated: dict[str, Any] = {"label_bounds": parse_bounds(bounds)}
    if alphabet is not None:
        stated["alphabet"] = np.asarray(parse_alphabet(alphabet, not numbers)).tolist()
    return audit(
        kept[label].to_numpy(), guesses, by=by, loss=loss if numbers else "zero-one", delta=delta,
        groups=None if groups is None else kept[groups].to_numpy(), **stated,
    )  # fmt: skip


def group_names(summary: Any, at: int) -> tuple[list[str], Any]:
    """The numbered names of the groups of a side, and the group of each item."""
    side, k = summary.sides[at], summary.size[at]
    return [f"{number}: {cluster.name}" for number, cluster in enumerate(side.cut(k), 1)], side.labels(k)


def show(found: Audit) -> None:
    """Tables for the terminal."""
    whole = found.differences[0]

    def row(name: str, n: int, one: Any) -> list[str]:
        return [
            name,
            f"{n:,}",
            *(console.text(v) for v in (one.observed, one.low, one.high)),
            one.better or "not proved",
        ]

    header = ["", found.unit, "measured", "from", "to", "better"]
    title = f"{found.measure} of {whole.first} less that of {whole.second}"
    console.grid(title, header, [row("everywhere", found.n_rows, whole)])
    for name, parts in found.parts.items():
        rows = [row(one.part, one.n, one.difference) for one in parts]
        if len(rows) > 2 * LISTED:
            rows = [*rows[:LISTED], ["…", *[""] * 5], *rows[-LISTED:]]
        if rows:
            console.grid(f"By groups of {name}", header, rows)
    console.paragraphs(
        f"All of these statements hold simultaneously with confidence {100 * (1 - found.delta):g} %. It rests on:\n"
        + "\n".join(f"  [{one.status}] {one.text}" for one in found.assumptions)
    )
