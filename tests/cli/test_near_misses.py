"""The page on the command line lists the most common mistakes, and what is printed for each."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
MISTAKES = dict(re.findall(r"^\| `(gingham [^`]*)` \| (.*) \|$", PAGE.split("## Common mistakes")[1], re.M))


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_gets_the_right_suggestion(gingham, ratings, model, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.csv").write_bytes(ratings.read_bytes())
    (tmp_path / "model.gingham").write_bytes(model.read_bytes())
    ran = gingham(*shlex.split(command)[1:])
    assert ran.code == 2
    for part in MISTAKES[command].split("…"):
        assert part.strip() in " ".join(ran.err.split())


def test_there_are_ten_and_nothing_is_suggested_where_nothing_is_near(gingham, ratings):
    assert len(MISTAKES) >= 10
    ran = gingham("fit", ratings, "--axes", "user,movie", "--label", "xyz")
    assert "Did you mean" not in ran.err
