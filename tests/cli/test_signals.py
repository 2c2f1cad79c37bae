"""Ctrl-C and SIGTERM in a process of their own; benchmarks/robustness/files.py tries forty moments."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

import gingham as gg
from gingham.files import checkpoint_of

COMMAND = [sys.executable, "-m", "gingham"]


def begun(*arguments, **more):
    return subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def only_sentences(text: str) -> bool:
    return not any(word in text for word in ("Traceback", "Exception ignored", "panicked", "Internal error"))


@pytest.fixture
def long_fit(planted, tmp_path):
    """A fit that takes minutes and keeps a checkpoint all the time."""
    planted(5_000).write_csv(tmp_path / "t.csv")
    options = ["--axes", "user,movie", "--label", "rating", "--clusters", "6,5", "--beta", "1", "--starts", "100000"]
    return ["fit", tmp_path / "t.csv", *options, "--checkpoint-every", "0", "--out", tmp_path / "m.gingham"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_fit_keeps_what_it_has(long_fit, tmp_path, number):
    out = tmp_path / "m.gingham"
    child = begun(*long_fit)
    while child.poll() is None and not checkpoint_of(out).exists():
        time.sleep(0.02)
    time.sleep(0.2)
    child.send_signal(number)
    _, said = child.communicate(timeout=120)
    assert only_sentences(said.decode()), said
    assert checkpoint_of(out).exists()
    if child.returncode == 0:
        assert gg.load(out).interrupted_
        assert "--resume to continue" in said.decode()
    else:
        assert child.returncode == 128 + number
        assert not out.exists()
    assert not list(tmp_path.glob(".*.part"))


LISTENING = """
import sys
from gingham.cli import main
from gingham.cli.signals import SIGNALS
SIGNALS.install()
sys.stdout.write("ready\\n"); sys.stdout.flush()
main()
"""


@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.0])
def test_a_signal_during_imports(long_fit, tmp_path, seconds):
    """From the moment on at which Python has come to gingham's first line."""
    command = [sys.executable, "-c", LISTENING, *map(str, long_fit)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=120)
    assert child.returncode in (0, 130)
    assert only_sentences(said.decode()), said
    assert not list(tmp_path.glob(".*.part"))


def test_the_second_signal_ends_at_once_and_leaves_no_part(tmp_path):
    """In a fit that hears nothing of the first one, and writes a file."""
    code = f"""
import sys, time
from gingham.cli.signals import SIGNALS
from gingham.files import atomic
from gingham.fitting.interruption import interrupted, interruptible
SIGNALS.install()
with SIGNALS.interrupt_fit(), interruptible(), atomic({str(tmp_path / "x")!r}) as stream:
    for asked in (False, True):
        while interrupted() != asked:
            time.sleep(0.01)
        sys.stdout.write("ready\\n"); sys.stdout.flush()
    time.sleep(60)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(2):
        assert child.stdout.readline() == b"ready\n"
        assert len(list(tmp_path.iterdir())) == 1
        child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 128 + signal.SIGTERM
    assert said.decode() == "Error: Terminated.\n"
    assert not list(tmp_path.iterdir())


def test_a_signal_that_is_switched_off_stays_so():
    code = """
import signal
from gingham.cli.signals import SIGNALS
signal.signal(signal.SIGINT, signal.SIG_IGN)
SIGNALS.install()
signal.raise_signal(signal.SIGINT)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_phase_is_shown_within_a_second(long_fit):
    """On a terminal: summary before anything heavy is imported, then starting, then sweeping with the time left."""
    terminal, end = pty.openpty()
    child = subprocess.Popen([*COMMAND, *map(str, long_fit)], stdout=subprocess.PIPE, stderr=end)
    seen, shown = "", {}
    try:
        while "left" not in shown and child.poll() is None:
            if select.select([terminal], [], [], 0.05)[0]:
                seen += os.read(terminal, 65536).decode()
            for word in ("reading", "starting", "sweeping", "left"):
                if word in seen and word not in shown:
                    shown[word] = _cpu_seconds(child.pid)
    finally:
        child.kill()
        child.communicate()
        os.close(terminal)
        os.close(end)
    assert set(shown) == {"reading", "starting", "sweeping", "left"}
    assert shown["reading"] < 1, shown
    assert shown["reading"] < shown["sweeping"]


def _cpu_seconds(pid: int) -> float:
    """CPU time of a process so far: what a clock on the wall would show on an idle machine."""
    with contextlib.suppress(OSError, IndexError):
        with open(f"/proc/{pid}/stat") as stream:  # noqa: PTH123
            fields = stream.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
