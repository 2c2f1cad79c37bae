"""Where a fit runs when nobody says."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from gingham.engine import place
from gingham.engine.place import Work, goes_to_device

RATINGS = Work(100_000_000, (480_000, 17_770), (64, 64), 5, 50)
HUNDRED_THOUSAND = Work(100_000, (943, 1_682), (13, 6), 5, 50)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine with a GPU that has been used before; nothing of it is needed to choose."""
    cuda = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, __spec__=object()))
    monkeypatch.setattr(place, "DRIVERS", ("/",))
    return cuda


def goes(backend: str, work: Work) -> bool:
    return goes_to_device(backend, lambda: work)


def test_large_fits_go_to_a_gpu_and_small_ones_stay(gpu: SimpleNamespace) -> None:
    assert goes("auto", RATINGS)
    assert goes("auto", RATINGS._replace(n_rows=1_000_000))  # few rows, many items and clusters
    assert not goes("auto", HUNDRED_THOUSAND)
    assert not goes("compiled", RATINGS)
    assert goes("torch", HUNDRED_THOUSAND)
    gpu.is_available = lambda: False
    assert not goes("auto", RATINGS)


def test_waking_a_gpu_counts(gpu: SimpleNamespace) -> None:
    sizes = [Work(n, (n // 100, n // 1000), (16, 16), 5, 50) for n in (10**4, 10**5, 10**6, 10**7, 10**8)]
    awake = [goes("auto", work) for work in sizes]
    gpu.is_initialized = lambda: False
    asleep = [goes("auto", work) for work in sizes]
    assert awake == sorted(awake)
    assert awake[-1]
    assert sum(asleep) <= sum(awake)
    assert sizes[0].device_seconds(False) - sizes[0].device_seconds(True) == pytest.approx(place.WAKE)


def test_without_a_driver_nobody_imports_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "DRIVERS", ("/no/such/device",))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(place, "import_module", None)
    assert not goes_to_device("auto", lambda: pytest.fail("nobody asks what the work is"))


def test_costs_grow_with_everything() -> None:
    for name, more in {"n_rows": 10**9, "n_items": (10**7, 10**6), "n_clusters": (99, 99), "n_sweeps": 99}.items():
        larger = RATINGS._replace(**{name: more})
        assert larger.core_seconds(4) > RATINGS.core_seconds(4)
        assert larger.device_seconds(True) > RATINGS.device_seconds(True)
    assert RATINGS.core_seconds(16) < RATINGS.core_seconds(2)
