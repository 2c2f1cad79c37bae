"""Runs side by side on threads: the results of one after another, whatever the number of threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gingham as gg
from ctrl_c import press_ctrl_c
from gingham.engine import threads
from gingham.engine.threads import side_by_side
from gingham.errors import InterruptedWarning
from gingham.models.counts import fit as counts
from gingham.models.counts.fit import choose_n_clusters

OBJECTIVE: Any = None


@dataclass
class Ended:
    number: int
    thread: threading.Thread | None = None


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many threads there are, more than numba would allow included."""

    def set_threads(n: int) -> None:
        monkeypatch.setattr(threads, "available_threads", lambda: n)

    return set_threads


def steady(number: int, n_sweeps: int = 3, pause: float = 0.0) -> Callable[[Any], Ended]:
    def job(report: Any) -> Ended:
        for sweep in range(n_sweeps):
            time.sleep(pause)
            report(sweep, 1.0, OBJECTIVE)
        return Ended(number, threading.current_thread())

    return job


def run(jobs: Any, n_jobs: int, tell: Any = lambda *facts: None) -> list[Ended]:
    return list(side_by_side(jobs, n_jobs, tell))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_results_come_in_order_and_reports_one_at_a_time(use: Any, n: int) -> None:
    use(n)
    told = []

    def tell(number: int, sweep: int, *rest: Any) -> None:
        told.append((number, sweep))

    results = run([steady(number, 5 - number, 0.002) for number in range(5)], 5, tell)
    assert [result.number for result in results] == list(range(5))
    for number in range(5):
        assert [sweep for job, sweep in told if job == number] == list(range(5 - number))
    assert (results[0].thread is threading.current_thread()) == (n == 1)


@pytest.mark.parametrize("n", [1, 2])
def test_an_exception_in_a_job_reaches_the_caller(use: Any, n: int) -> None:
    use(n)

    def failing(report: Any) -> Ended:
        raise ZeroDivisionError("in a job")

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="in a job"):
        run([steady(0), failing, steady(2, 10_000, 0.001)][: n + 1], 3)
    assert threading.active_count() == before


def test_an_exception_in_a_callback_reaches_the_caller_and_ends_the_jobs(use: Any) -> None:
    use(2)

    def tell(number: int, sweep: int, *rest: Any) -> None:
        raise ZeroDivisionError("in a callback")

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError, match="in a callback"):
        run([steady(number, 10_000, 0.001) for number in range(3)], 3, tell)
    assert threading.active_count() == before


def test_jobs_end_when_nobody_waits_for_more_results(use: Any) -> None:
    use(2)
    before = threading.active_count()
    results = side_by_side([steady(0), steady(1, 10_000, 0.001), steady(2, 10_000, 0.001)], 3, lambda *facts: None)
    assert next(results).number == 0
    results.close()
    assert threading.active_count() == before


# the estimators


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    dense = rng.poisson(rng.gamma(0.5, 1.5, (70, 50))).astype(float)
    dense[:, 0] += 1.0
    dense[0] += 1.0
    return dense


def blocks(settings: dict[str, Any], X: np.ndarray) -> tuple[np.ndarray, ...]:
    model = gg.CoOccurrenceClustering(random_state=3, **settings).fit(X)
    return model.row_labels_, model.column_labels_, model.trace_.totals


def same_for_all_threads(use: Any, fit: Callable[[], tuple[np.ndarray, ...]]) -> None:
    found = []
    for n in (1, 2, 3):
        use(n)
        found.append(fit())
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_clusters": 4},
        {"n_clusters": (5, 3), "start": "profiles", "n_init": 5},
        {"n_clusters": (5, None), "n_init": 4},
        {"n_clusters": 4, "start": "random", "weighting": "uniform"},
        {"n_clusters": 3, "beta": 0.5, "solver": "concave"},
    ],
    ids=str,
)
def test_blocks_are_the_same_for_any_number_of_threads(use: Any, settings: dict[str, Any]) -> None:
    same_for_all_threads(use, lambda: blocks(settings, table()))


def test_every_start_has_a_seed_of_its_own(use: Any) -> None:
    X, solver = counts.sparse.csr_array(table()), counts.CountSolver(start="random")
    sizes: list[tuple[int, int | None]] = [(4, 4), (4, 4), (4, 3), (3, 4)]
    runs = []
    for n in (1, 3):
        use(n)
        runs.append(list(solver.fit_sizes(X, sizes, np.random.default_rng(0))))
    fewer = list(solver.fit_sizes(X, sizes[:2], np.random.default_rng(0)))
    for alone, together, first in zip(runs[0], runs[1], [*fewer, *runs[0][2:]]):
        np.testing.assert_array_equal(alone.labels[0], together.labels[0])
        np.testing.assert_array_equal(alone.trace.totals, together.trace.totals)
        np.testing.assert_array_equal(alone.labels[0], first.labels[0])  # a third start changes nothing before it
    assert len({blocks.objective.total for blocks in runs[0]}) == 4
    best = solver.best(X, (4, 4), 2, np.random.default_rng(0))
    assert best.objective.total == min(blocks.objective.total for blocks in runs[0][:2])


@pytest.mark.parametrize("criterion", ["held-out", "certificate"])
def test_the_size_is_chosen_alike_and_the_generator_left_alike(use: Any, criterion: str) -> None:
    X, tried = counts.sparse.csr_array(table()), (2, 3, 4, 5, 6, 7, 8)
    found = []
    for n in (1, 2, 3):
        use(n)
        rng = np.random.default_rng(0)
        found.append((choose_n_clusters(criterion, X, counts.CountSolver(), rng, tried), rng.bit_generator.state))
    assert len(found[0][0][1]) < 8  # the search ended before the last size
    assert found == [found[0]] * 3


def test_information_is_the_same_for_any_number_of_threads(use: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (50, 12)).astype(float)
    X[rng.random(X.shape) < 0.3] = np.nan

    def fit() -> tuple[np.ndarray, ...]:
        model = gg.InformationClustering(4, n_init=4, random_state=0).fit(X)
        return model.labels_, model.trace_.totals, model.feature_information_, np.array(model.chance_information_)

    same_for_all_threads(use, fit)


@pytest.mark.parametrize("start", ["random", "spectral"])
def test_hard_grids_are_the_same_for_any_number_of_threads(use: Any, start: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.integers(0, 25, (500, 2))
    y = (X[:, 0] % 3 + X[:, 1] % 2 + rng.integers(0, 2, 500)) % 4

    def fit() -> tuple[np.ndarray, ...]:
        settings = {"solver": "sweep", "loss": "log", "start": start, "n_init": 4, "random_state": 0}
        model = gg.CoClusteringClassifier(n_clusters=(4, 3), **settings).fit(X, y)
        return (*model.posterior_.assign, model.trace_.totals)

    same_for_all_threads(use, fit)


@pytest.mark.parametrize("n", [1, 2])
def test_interrupted_starts_keep_the_best_so_far(use: Any, n: int) -> None:
    use(n)
    seen = []

    def impatient(progress: Any) -> None:
        seen.append(progress)
        if progress.restart == 1:
            press_ctrl_c()

    with pytest.warns(InterruptedWarning, match="best solution so far"):
        model = gg.CoOccurrenceClustering(4, n_init=30, random_state=0).fit(table(), callback=impatient)
    assert max(progress.restart for progress in seen) < 29  # the others did not begin
    assert model.interrupted_
    assert model.trace_.totals[-1] <= [p for p in seen if p.restart == 0][-1].objective.total
