"""What a newcomer sees first: the list of commands, their help, and a demo that needs neither data nor a network."""

from __future__ import annotations

import re
import shlex

import pytest

import gingham as gg
from gingham.cli.app import GROUPS

COMMANDS = [name for names in GROUPS.values() for name in names.split()]


def test_commands_stand_in_groups_and_the_documentation_is_named(gingham, monkeypatch):
    links = {"Project-URL": ["Documentation, https://docs.invalid/gingham"]}
    monkeypatch.setattr("importlib.metadata.metadata", lambda name: type("", (), {"get_all": links.get}))
    shown = gingham("--help").out
    places = [shown.index(f"─ {group} ─") for group in ("Explore", "Fit", "Understand", "Trust")]
    assert places == sorted(places)
    assert "Documentation: https://docs.invalid/gingham" in shown


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_ends_with_examples(gingham, command):
    said, _, examples = gingham(command, "--help").out.partition("Examples")
    assert f"gingham {command}" in examples
    assert "--------" not in said + examples


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)], ids=" ".join)
def test_no_help_shows_types_of_python(gingham, command):
    assert re.findall(r"<(?:str|bool|int|float|list|file|path)[^>]*>", gingham(*command, "--help").out) == []


def test_the_demo_makes_a_page_and_shows_commands_that_run(gingham, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = gingham("demo")
    assert ran.code == 0, ran.err
    assert "<html" in (tmp_path / "gingham-demo" / "report.html").read_text(encoding="utf-8")
    assert "3 groups of viewers" in ran.out
    fit = next(line for line in ran.out.splitlines() if line.startswith("$ gingham fit gingham-demo"))
    words = shlex.split(fit)[2:]
    before = gg.load("gingham-demo/model.gingham")
    assert "--info" in words
    assert before.effort == "fast"
    again = gingham("demo")
    assert again.code == 2
    assert "Name a new folder" in again.err
