"""Rules that keep the house walkable. Each count may fall, never rise: lower the number here when it falls."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "gingham"
FILES = sorted(SOURCE.rglob("*.py"))

MOST_ANY = 550  # the word Any in the source
MOST_ASKED_CELLS = 1  # isinstance on a cell outside cells/
MOST_ASKED_MODELS = 2  # isinstance on a model outside its own family
MOST_ASKED_POSTERIORS = 3  # isinstance on a posterior or a structure outside its own room
MOST_PRIVATE = 7  # private attributes of an object of another room
MOST_DEVICE_TESTS = 66  # tests for torch or an array module outside engine/ and models/layers
# What other rooms ask of a fitted model: the underscore keeps these names off the list that a user sees.
ASKED_OF_MODELS = {
    "_errors", "_fit_rows", "_fitted_along", "_from_file", "_goes_to_device", "_item_modes", "_made_readable",
    "_observed", "_predict_codes", "_prediction_factors", "_record", "_simplified", "_to_file", "_with_posterior",
}  # fmt: skip
OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}  # public in spite of their names


def room(file: Path) -> str:
    """The folder of a file, one folder a family: "cells", "models/graph", "fitting"."""
    parts = file.relative_to(SOURCE).parts
    if len(parts) == 1:
        return parts[0].removesuffix(".py")
    return "/".join(parts[:2]) if parts[0] == "models" and len(parts) > 2 else parts[0]


def classes_below(*bases: str) -> dict[str, str]:
    """Classes that inherit from one of the bases, by name, with the room that defines them."""
    parents: dict[str, tuple[set[str], str]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
                parents[node.name] = (names, room(file))
    found = {base: parents[base][1] for base in bases if base in parents}
    grown = True
    while grown:
        grown = False
        for name, (names, home) in parents.items():
            if name not in found and names & set(found):
                found[name], grown = home, True
    return found


def asked(text: str, classes: dict[str, str], here: str) -> list[int]:
    """Lines of a file in which isinstance names one of the classes, all of which live elsewhere."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            names |= {part.attr for part in ast.walk(node.args[1]) if isinstance(part, ast.Attribute)}
            if any(name in classes and classes[name] != here for name in names):
                lines.append(node.lineno)
    return lines


def private(text: str, own: set[str]) -> list[str]:
    """Private attributes of other objects that are not defined in this room."""
    found = []
    for node in ast.walk(ast.parse(text)):
        named = isinstance(node, ast.Attribute) and re.fullmatch(r"_[a-z]\w*", node.attr) is not None
        if named and node.attr not in own | OF_NAMED_TUPLES | ASKED_OF_MODELS:
            holder = node.value
            if not (isinstance(holder, ast.Name) and holder.id in ("self", "cls")) and not isinstance(holder, ast.Call):
                found.append(f"{node.lineno}: {node.attr}")
    return found


def defined_privately(text: str) -> set[str]:
    """Private names that a file defines: functions, attributes of self, fields of classes."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_the_word_any_is_rare():
    assert sum(len(re.findall(r"\bAny\b", file.read_text(encoding="utf-8"))) for file in FILES) <= MOST_ANY


@pytest.mark.parametrize(
    ("bases", "most"),
    [
        (("CellModel",), MOST_ASKED_CELLS),
        (("Persistent",), MOST_ASKED_MODELS),
        (("Posterior", "Structure"), MOST_ASKED_POSTERIORS),
    ],
    ids=["cells", "models", "posteriors"],
)
def test_nobody_asks_which_class_it_is(bases, most):
    classes = classes_below(*bases)
    assert len(classes) > 3
    found = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in FILES
        for line in asked(file.read_text(encoding="utf-8"), classes, room(file))
    ]
    assert len(found) <= most, found


def test_rooms_leave_the_private_attributes_of_others_alone():
    own: dict[str, set[str]] = {}
    for file in FILES:
        own.setdefault(room(file), set()).update(defined_privately(file.read_text(encoding="utf-8")))
    found = [
        f"{file.relative_to(SOURCE)}:{place}"
        for file in FILES
        for place in private(file.read_text(encoding="utf-8"), own[room(file)])
    ]
    assert len(found) <= MOST_PRIVATE, found


def test_no_hidden_channel_steers_a_fit():
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert "ContextVar" not in text, file
        assert not re.search(r"^\s*global ", text, re.M), file
        assert not re.search(r"__dict__\[|vars\(\w+\)\.update|vars\(\w+\)\[", text), file


DEVICE_TEST = re.compile(
    r"import torch|(find_spec|import_module|modules\.get)\(\"torch|== \"torch\"|on_device\b|namespace\(|on_host\("
)


def test_few_ask_where_an_array_lies():
    found = [
        f"{file.relative_to(SOURCE)}: {match[0]}"
        for file in FILES
        if room(file) not in ("engine", "models/layers", "arrays")
        for match in DEVICE_TEST.finditer(file.read_text(encoding="utf-8"))
    ]
    assert len(found) <= MOST_DEVICE_TESTS, found


def test_the_picture_shows_every_room_and_family():
    picture = (SOURCE.parent.parent / "docs" / "_static" / "house.svg").read_text(encoding="utf-8")
    rooms = [f"{folder.name}/" for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()]
    families = [folder.name for folder in (SOURCE / "models").iterdir() if (folder / "__init__.py").exists()]
    assert [name for name in (*rooms, *families) if f">{name}" not in picture] == []


def test_the_rules_see_what_they_forbid():
    classes = {"Table": "cells"}
    assert asked("isinstance(cell, (int, Table))", classes, "models/grid") == [1]
    assert asked("isinstance(cell, Table)", classes, "cells") == []
    assert private("model._secret", set()) == ["1: _secret"]
    assert private("self._own; model._known", {"_known"}) == []
    assert defined_privately("class A:\n    def _b(self): self._c = 1") == {"A", "_b", "_c"}
