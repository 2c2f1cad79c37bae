"""Runs side by side on threads: the results of one after another, whatever the number of threads."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import pytest

import gingham as gg
from gingham.engine import threads
from gingham.errors import InterruptedWarning
from gingham.fitting import loop
from gingham.fitting.loop import Interrupted, ctrl_c_in_locks, side_by_side
from gingham.models.counts import fit as counts
from gingham.models.counts.fit import choose_n_clusters

OBJECTIVE: Any = None


@dataclass
class Ended:
    number: int
    interrupted: bool = False
    thread: threading.Thread | None = None


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets how many threads there are, more than numba would allow included."""

    def set_threads(n: int) -> None:
        monkeypatch.setattr(loop, "available_threads", lambda: n)

    return set_threads


def steady(number: int, n_sweeps: int = 3, pause: float = 0.0) -> Callable[[Any], Ended]:
    def job(report: Any) -> Ended:
        try:
            for sweep in range(n_sweeps):
                time.sleep(pause)
                report(sweep, 1.0, OBJECTIVE)
        except KeyboardInterrupt:
            return Ended(number, True, threading.current_thread())
        return Ended(number, False, threading.current_thread())

    return job


def interrupting(number: int) -> Callable[[Any], Ended]:
    """A job during which the user presses Ctrl-C."""

    def job(report: Any) -> Ended:
        time.sleep(0.05)
        _thread.interrupt_main()
        return steady(number, 10_000, 0.001)(report)

    return job


def run(jobs: Any, n_jobs: int, tell: Any = lambda *facts: None) -> list[Ended]:
    return list(side_by_side(jobs, n_jobs, tell))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_results_and_reports_come_in_order_on_the_calling_thread(use: Any, n: int) -> None:
    use(n)
    told, asked = [], []

    def jobs() -> Iterator[Any]:
        for number in range(5):
            asked.append(threading.current_thread())
            yield steady(number, 5 - number, 0.002)

    def tell(number: int, sweep: int, *rest: Any) -> None:
        told.append((number, sweep, threading.current_thread()))

    results = run(jobs(), 5, tell)
    here = threading.current_thread()
    assert [result.number for result in results] == list(range(5))
    assert told == [(number, sweep, here) for number in range(5) for sweep in range(5 - number)]
    assert asked == [here] * 5
    assert (results[0].thread is here) == (n == 1)


def test_no_more_jobs_at_once_than_threads(use: Any) -> None:
    use(2)
    now, most = [0], [0]

    def job(report: Any) -> Ended:
        now[0] += 1
        most[0] = max(most[0], now[0])
        time.sleep(0.005)
        now[0] -= 1
        return Ended(0)

    assert len(run([job] * 6, 6)) == 6
    assert most[0] == 2


def test_ctrl_c_ends_the_jobs_with_what_they_have(use: Any) -> None:
    use(2)
    begun = []

    def jobs() -> Iterator[Any]:
        for job in (steady(0, 10_000, 0.001), interrupting(1), steady(2)):
            begun.append(job)
            yield job

    results: list[Ended] = []
    with pytest.raises(Interrupted):
        results.extend(side_by_side(jobs(), 3))
    assert [(result.number, result.interrupted) for result in results] == [(0, True), (1, True)]
    assert len(begun) == 2


def test_ctrl_c_while_a_thread_starts_is_ctrl_c(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock that the main thread waits with makes a RuntimeError of it."""
    use(2)
    submit, calls = ThreadPoolExecutor.submit, []

    def interrupted(pool: ThreadPoolExecutor, *task: Any) -> Any:
        calls.append(task)
        if len(calls) == 1:
            return submit(pool, *task)
        try:
            raise KeyboardInterrupt
        finally:
            Lock().release()

    monkeypatch.setattr(ThreadPoolExecutor, "submit", interrupted)
    results: list[Ended] = []
    with pytest.raises(Interrupted):
        results.extend(side_by_side([steady(0, 10_000, 0.001), steady(1)], 2))
    assert [(result.number, result.interrupted) for result in results] == [(0, True)]


def test_ctrl_c_does_not_take_away_what_a_job_has_found(use: Any) -> None:
    """It comes when the first job has swept and puts its result together, which asks how many threads there are."""
    use(2)
    pressed = threading.Event()

    def found(report: Any) -> Ended:
        course = loop.iterate(
            lambda place, factor: (place, OBJECTIVE),
            0,
            loop.Constant(),
            to_state=lambda place: {},
            from_state=lambda state: 0,
            converges=lambda seen: True,
            max_iter=1,
        )
        pressed.wait(5)
        while not threads._this_thread.budget.stopped:  # type: ignore[union-attr]
            time.sleep(0.001)
        threads.available_threads()
        return Ended(0, course.interrupted)

    def pressing(report: Any) -> Ended:
        _thread.interrupt_main()
        pressed.set()
        return steady(1, 10_000, 0.001)(report)

    results: list[Ended] = []
    with pytest.raises(Interrupted):
        results.extend(side_by_side([found, pressing], 2))
    assert results[:1] == [Ended(0)]  # the other one may not have begun


def test_an_error_of_a_lock_without_ctrl_c_is_none() -> None:
    with pytest.raises(RuntimeError, match="unlocked"), ctrl_c_in_locks():
        Lock().release()


def test_a_job_that_had_not_yet_begun_to_sweep_leaves_nothing(use: Any) -> None:
    use(2)

    def starting(report: Any) -> Ended:
        while True:  # a start asks how many threads it may use between its steps
            threads.available_threads()
            time.sleep(0.001)

    results: list[Ended] = []
    with pytest.raises(Interrupted):
        results.extend(side_by_side([starting, interrupting(1)], 2))
    assert [result.number for result in results] == [1]


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


def test_jobs_share_the_cores() -> None:
    budget, before = threads.ThreadBudget(4, busy=2), threads.available_threads()
    with budget.on_this_thread():
        assert threads.available_threads() == 2
        budget.busy = 3
        assert threads.available_threads() == 1
        budget.stopped = True
        with pytest.raises(KeyboardInterrupt):
            threads.available_threads()
    assert threads.available_threads() == before


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
        {"n_clusters": 4, "start": "spectral"},
        {"n_clusters": 3, "beta": 0.5, "solver": "concave"},
    ],
    ids=str,
)
def test_blocks_are_the_same_for_any_number_of_threads(use: Any, settings: dict[str, Any]) -> None:
    same_for_all_threads(use, lambda: blocks(settings, table()))


def test_starts_go_side_by_side_and_none_is_made_twice(use: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = counts.start_labels

    def watched(*args: Any) -> Any:
        made.append(threading.current_thread())
        return original(*args)

    monkeypatch.setattr(counts, "start_labels", watched)
    use(2)
    for start in ("merged", "profiles"):
        for columns in (4, None):
            made.clear()
            blocks({"n_clusters": (4, columns), "start": start, "n_init": 4}, table())
            assert len(made) == 4
            assert threading.current_thread() not in made


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
def test_progress_is_told_in_order_whatever_the_number_of_threads(use: Any, n: int) -> None:
    use(1)
    alone: list[Any] = []
    gg.CoOccurrenceClustering(4, n_init=3, random_state=0).fit(table(), callback=alone.append)
    use(n)
    seen: list[Any] = []
    gg.CoOccurrenceClustering(4, n_init=3, random_state=0).fit(table(), callback=seen.append)
    assert seen == alone


@pytest.mark.parametrize("n", [1, 2])
def test_interrupted_starts_keep_the_best_so_far(use: Any, n: int) -> None:
    use(n)
    seen = []

    def impatient(progress: Any) -> None:
        seen.append(progress)
        if progress.restart == 1:
            raise KeyboardInterrupt

    with pytest.warns(InterruptedWarning, match="best solution so far"):
        model = gg.CoOccurrenceClustering(4, n_init=6, random_state=0).fit(table(), callback=impatient)
    assert max(progress.restart for progress in seen) == 1
    assert model.objective_.total <= [p for p in seen if p.restart == 0][-1].objective.total


def test_an_interruption_is_not_lost_where_nobody_asks_for_the_rest(use):
    use(2)

    def pressed(*facts: Any) -> None:
        raise KeyboardInterrupt

    results = side_by_side([steady(0), steady(1)], 2, pressed)
    assert next(results).number == 0
    with pytest.raises(Interrupted):
        results.close()
