"""``gingham compare``: two models on the same rows, which is better, and for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gingham.cli import console, options
from gingham.errors import GinghamError
from gingham.files import Reads, Writes, atomic, need_model


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
    from gingham.cli.tables import audits
    from gingham.models.base import load

    names = [Path(name).stem for name in (model, other)]
    names = names if names[0] != names[1] else [f"{names[0]} (first)", f"{names[1]} (second)"]
    models = dict(zip(names, (load(model), load(other))))
    ranked = [hasattr(one, "recommend_for") for one in models.values()]
    table = table_for(models[names[0]], file, format)
    if all(ranked):
        found = audits.of_rankings(models, table, at, measure, delta)
    elif any(ranked):
        raise GinghamError("A ranking and a model of labels cannot be compared: they answer different questions.")
    else:
        found = audits.of_models(models, table, label, loss, (alphabet, bounds), groups, delta, drop_missing)
    if plot is not None:
        from gingham.plots import comparison

        with atomic(plot) as stream:
            comparison(found).figure.savefig(stream, format=plot.suffix.lstrip(".") or "png", bbox_inches="tight")
        console.say_note(f"The picture is {plot}.")
    if json:
        console.print_json(found.to_dict())
        return
    audits.show_comparison(found)
