"""``gingham explain``: why a model says what it says of a row, or where an item belongs."""

from __future__ import annotations

from typing import Annotated

import typer

from gingham.cli import console, options


def explain(
    model: options.ModelFile,
    row: Annotated[list[str], typer.Argument(help="Ids of a row in the order of the axes, or one item.")],
    label: Annotated[str | None, typer.Option(help="For text labels: the label to explain.")] = None,
) -> None:
    """Explain a prediction: where the items belong, what was observed there, and what is predicted.

    Examples
    --------
    gingham explain model.gingham 17 Fargo
    gingham explain model.gingham Fargo
    """
    from gingham.cli.describe import read_model

    fitted = read_model(model)
    ids: list[object] = list(row)
    if len(row) == len(fitted.summary_.sides):  # "7" is 7 where ids are numbers
        places = [side.find(one) for side, one in zip(fitted.summary_.sides, row)]
        known = zip(ids, fitted.summary_.sides, places)
        ids = [one if at is None else side.items[at : at + 1].tolist()[0] for one, side, at in known]
    asked = ids[0] if len(ids) == 1 else tuple(ids)
    told = fitted.explain(asked) if label is None else fitted.explain(asked, label=label)
    console.output().print(str(told), markup=False, soft_wrap=True)
