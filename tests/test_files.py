"""What is written: whole or not at all, with the right permissions, and never over an input, a device or a link."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from gingham.errors import GinghamError
from gingham.files import atomic, need_target

NOBODY = 65534
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, pipes and permissions of Unix")


def write(path, content=b"new"):
    with atomic(path) as stream:
        stream.write(content)


def test_permissions_follow_the_umask(tmp_path):
    for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(umask)
        try:
            write(tmp_path / f"{umask}")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / f"{umask}").stat().st_mode) == mode


def test_a_file_that_is_replaced_hands_on_its_permissions(tmp_path):
    path = tmp_path / "m"
    write(path)
    path.chmod(0o640)
    write(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_names_of_any_length_that_the_system_takes(tmp_path):
    write(tmp_path / ("n" * 255))
    assert [len(p.name) for p in tmp_path.iterdir()] == [255]
    with pytest.raises(GinghamError, match="cannot be written: File name too long"):
        need_target(tmp_path / ("n" * 256))


def test_links_devices_pipes_and_folders_are_refused(tmp_path):
    precious, link, dangling, pipe = (tmp_path / name for name in ("precious", "link", "dangling", "pipe"))
    precious.write_text("precious")
    link.symlink_to(precious)
    dangling.symlink_to(tmp_path / "nowhere")
    os.mkfifo(pipe)
    refused = {
        link: "is a link to", dangling: "is a link to", pipe: "device or a pipe", tmp_path: "is a folder",
        "/dev/null": "device or a pipe", tmp_path / "no" / "m": "does not exist",
    }  # fmt: skip
    for path, words in refused.items():
        for attempt in (need_target, write):
            with pytest.raises(GinghamError, match=words):
                attempt(path)
    assert precious.read_text() == "precious"
    assert link.is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["dangling", "link", "pipe", "precious"]


def test_inputs_are_refused_through_links(tmp_path):
    table, soft, hard = tmp_path / "t.csv", tmp_path / "soft.csv", tmp_path / "hard.csv"
    table.write_text("a,b\n1,2\n")
    soft.symlink_to(table)
    hard.hardlink_to(table)
    for source in (table, soft, hard, tmp_path / "." / "t.csv"):
        with pytest.raises(GinghamError, match="also an input of this command"):
            need_target(table, tmp_path / "other.csv", source)
    need_target(tmp_path / "out.csv", table, soft, tmp_path / "absent.csv")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.fixture
def own_folder():
    """A folder of somebody who is not root: root may write everywhere."""
    with tempfile.TemporaryDirectory() as name:
        root = os.geteuid() == 0
        if root:
            os.chown(name, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


def test_write_protected_places_are_refused(own_folder):
    path = own_folder / "m"
    path.write_text("x")
    path.chmod(0o444)
    with pytest.raises(GinghamError, match="write-protected"):
        need_target(path)
    own_folder.chmod(0o555)
    with pytest.raises(GinghamError, match="Permission denied"):
        need_target(own_folder / "new")
    own_folder.chmod(0o755)
