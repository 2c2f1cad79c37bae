"""``gingham models``: the kinds of models, what each is for, and a command that fits one."""

from __future__ import annotations

from gingham.cli import console, options


def models(json: options.Json = False) -> None:
    """List the kinds of models with what each is for and an example."""
    from gingham.cli.tables.kinds import KINDS

    found = {name: {"about": kind.about, "example": kind.example} for name, kind in KINDS.items()}
    if json:
        console.print_json(found)
        return
    console.paragraphs("gingham fit takes the kind that fits the data; --model names another.\n")
    for kind, said in found.items():
        console.paragraphs(f"{kind}: {said['about']}\n  {said['example']}")
