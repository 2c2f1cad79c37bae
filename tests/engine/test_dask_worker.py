"""A worker's process keeps freed memory while it holds a part of a fit, and is as it was before afterwards."""

from types import SimpleNamespace

import pandas as pd
import pytest

from gingham.engine import dask_worker as workers
from gingham.engine.threads import available_threads


@pytest.fixture
def asked(monkeypatch):
    """What glibc is asked for, in order."""
    calls = []
    monkeypatch.setattr(workers, "_held", set())  # another test's cluster may have run in this process
    libc = SimpleNamespace(
        mallopt=lambda what, value: calls.append((what, value)), malloc_trim=lambda rest: calls.append("trim")
    )
    monkeypatch.setattr(workers.ctypes, "CDLL", lambda _: libc)
    monkeypatch.setattr(workers.sys, "platform", "linux")
    return calls


def test_freed_memory_is_kept_while_any_part_is_held(asked, monkeypatch):
    monkeypatch.setenv(workers.TRIM, "65536")
    frame, other = pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]})
    workers.hold(frame)
    workers.hold(frame)
    workers.hold(other)
    kept = [(workers.MMAP_THRESHOLD, workers.KEPT), (workers.TRIM_THRESHOLD, 2 * workers.KEPT)]
    assert asked == kept
    del frame
    assert asked == kept
    del other
    assert asked[2:] == [(workers.MMAP_THRESHOLD, 2**17), (workers.TRIM_THRESHOLD, 65536), "trim"]


def test_memory_is_left_alone_where_no_threshold_was_set(asked, monkeypatch):
    monkeypatch.delenv(workers.TRIM, raising=False)
    frame = pd.DataFrame({"a": [1]})
    workers.hold(frame)
    del frame
    assert asked == []


def test_a_task_has_one_thread_and_its_result_is_held(monkeypatch):
    kept = []
    monkeypatch.setattr(workers, "_keep", kept.append)
    monkeypatch.setattr(workers, "_held", set())  # another test's cluster may have run in this process

    def made(_part):
        return pd.DataFrame({"threads": [available_threads()]})

    result = workers.on_one_thread(made, (1, 2))  # an observation cannot be watched, and need not be
    assert result["threads"].tolist() == [1]
    assert kept == [True]
    del result
    assert kept == [True, False]
