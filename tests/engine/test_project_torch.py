"""The torch backend on the CPU: equal to the reference, whatever the slices, runs and blocks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from test_project import FAST, agrees, numpy_line, problem  # noqa: E402

from gingham import CoClusteringRegressor, Committee  # noqa: E402
from gingham.cells import Mass  # noqa: E402
from gingham.core.problem import Problem  # noqa: E402
from gingham.data import Sample  # noqa: E402
from gingham.engine import project_torch as accelerated  # noqa: E402
from gingham.errors import GinghamError  # noqa: E402
from gingham.fitting import projection  # noqa: E402
from gingham.fitting import projection_torch as device  # noqa: E402
from gingham.fitting.projection import Projection  # noqa: E402
from gingham.fitting.schedules import Down  # noqa: E402
from gingham.fitting.starts import from_labels, random  # noqa: E402
from problems import all_cells, random_problem  # noqa: E402


def test_the_contract_of_project_covers_torch():
    assert "torch" in FAST


ON_DEVICE = [cell for cell in all_cells() if cell.device_arrays is not None]


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("one_hot", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_runs_slices_and_blocks_change_nothing(monkeypatch, d, one_hot, weighted):
    rows, assigns = problem(d, one_hot, weighted, "float64")
    monkeypatch.setattr(accelerated, "RUN", 7)
    monkeypatch.setattr(accelerated, "CACHE_BYTES", 64)
    n = int(rows.indptr[-1])
    item = torch.from_numpy(np.repeat(np.arange(rows.n_items), np.diff(rows.indptr)))
    tensor = lambda a: None if a is None else torch.from_numpy(a[:n])  # noqa: E731
    tuples = accelerated.device_rows(
        item, [torch.from_numpy(c) for c in rows.others],
        tensor(rows.labels), tensor(rows.features), tensor(rows.weights),
        rows.n_items, 3, [q.shape[1] for q in assigns], [len(q) for q in assigns], block_bytes=100,
    )  # fmt: skip
    assert len(tuples.blocks) > 1
    parts = [
        accelerated.project_block(tuples, b, [torch.from_numpy(q) for q in assigns]).numpy() for b in tuples.blocks
    ]
    assert np.allclose(np.concatenate(parts), numpy_line(rows, assigns), rtol=1e-12, atol=1e-10)
    assert not agrees(np.concatenate(parts) + 1, numpy_line(rows, assigns))


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("cell", ON_DEVICE, ids=lambda c: type(c).__name__)
def test_a_fit_through_torch_equals_the_compiled_one(cell, d):
    rng = np.random.default_rng(d)
    grid = random_problem(rng, cell, d, n_rows=60)
    start = random(grid, [3, 2, 2][:d], rng)
    compiled, through_torch = (
        Projection(Down(), max_iter=25, backend=b).solve(grid, start) for b in ("compiled", "torch")
    )
    for a, b in zip(compiled.posterior.assign, through_torch.posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert through_torch.objective.total == pytest.approx(compiled.objective.total, rel=1e-8)
    assert through_torch.objective.total == pytest.approx(grid.objective(through_torch.posterior).total, rel=1e-6)


@pytest.mark.parametrize("dtype", [None, "float64", "float32"])
def test_the_start_is_not_written_to(dtype):
    rng = np.random.default_rng(0)
    grid = random_problem(rng, all_cells()[0], 2, n_rows=60)
    start = random(grid, [3, 2], rng)
    before = [q.copy() for q in start.assign]
    alone = Projection(Down(), max_iter=5, backend="torch", dtype=dtype).solve(grid, start)
    together = device.solve_together(grid, [start, start], Down(), 1e-6, 5, dtype)
    for mode, q in enumerate(start.assign):
        np.testing.assert_array_equal(q, before[mode])
        assert not np.allclose(alone.posterior.assign[mode], q)
        np.testing.assert_allclose(together[1].posterior.assign[mode], alone.posterior.assign[mode], atol=1e-4)


@pytest.mark.parametrize(("backend", "calls"), [("auto", 0), ("compiled", 0), ("torch", 1)])
def test_a_sample_on_the_cores_is_fitted_there_unless_torch_is_asked_for(backend, calls, monkeypatch):
    rng = np.random.default_rng(0)
    grid = random_problem(rng, all_cells()[1], 2)
    start, counted, solve = random(grid, [2, 2], rng), [], device.solve
    monkeypatch.setattr(device, "solve", lambda *arguments: counted.append(1) or solve(*arguments))
    Projection(max_iter=2, backend=backend).solve(grid, start)
    assert len(counted) == calls
    placed = type(grid)(grid.structure, (grid.samples[0].placed(),), grid.cells, grid.betas)
    Projection(max_iter=2).solve(placed, start)
    assert len(counted) == calls + 1


def test_torch_refuses_what_it_cannot():
    rng = np.random.default_rng(0)
    grid = random_problem(rng, all_cells()[1], 2)
    start = random(grid, [2, 2], rng)
    with pytest.raises(GinghamError, match="a single grid"):
        device.solve(
            type(grid)(grid.structure, grid.samples * 2, grid.cells * 2, grid.betas * 2), start, Down(), 0, 1, None
        )


def blocks(rng, d):
    """Observations of items that meet within halves, and a start with one cluster too many, some items misplaced."""
    half = rng.integers(0, 2, 300)
    columns = [np.where(rng.random(300) < 0.9, half, 1 - half) * 3 + rng.integers(0, 3, 300) for _ in range(d)]
    grid = Problem.grid(Sample.of(columns, np.ones(300)), Mass(), 1.0)
    labels = [np.where(rng.random(6) < 0.8, np.arange(6) // 3, 2) for _ in range(d)]
    return grid, from_labels(grid, labels, [3] * d, 0.9)


@pytest.mark.parametrize("cell", [*ON_DEVICE, None], ids=lambda c: type(c).__name__)
def test_members_side_by_side_end_where_each_would_have_ended_alone(monkeypatch, cell):
    monkeypatch.setattr(accelerated, "RUN", 7)
    rng = np.random.default_rng(3)
    if cell is None:  # densities
        grid, start = blocks(rng, 2)
        starts = [start, blocks(rng, 2)[1], blocks(rng, 2)[1]]
    else:
        grid = random_problem(rng, cell, 2, n_rows=80)
        starts = [random(grid, [3, 2], rng) for _ in range(3)]
    plan = (Down(), 1e-4, 60)
    together = device.solve_together(grid, starts, *plan)
    for start, found in zip(starts, together):
        alone = Projection(*plan, backend="compiled").solve(grid, start)
        assert found.n_iter == alone.n_iter
        assert found.converged == alone.converged
        assert found.objective.total == pytest.approx(alone.objective.total, rel=1e-8)
        for a, b in zip(found.posterior.assign, alone.posterior.assign):
            np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_densities_through_torch_equal_the_compiled_ones(d):
    grid, start = blocks(np.random.default_rng(d), d)
    compiled, through_torch = (Projection(max_iter=25, backend=b).solve(grid, start) for b in ("compiled", "torch"))
    assert through_torch.objective.total == pytest.approx(compiled.objective.total, rel=1e-8, abs=1e-9)
    for a, b in zip(compiled.posterior.assign, through_torch.posterior.assign):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_committee_on_the_device_is_the_same_committee():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (300, 2))
    y = np.where((X[:, 0] < 6) == (X[:, 1] < 6), 5, 1)
    predictions = []
    for backend in ("compiled", "torch"):
        model = Committee(
            CoClusteringRegressor(3, start="random", solver=Projection(backend=backend)), n_members=3, random_state=0
        )
        predictions.append(model.fit(X, y).predict(X))
        assert [member.n_iter_ for member in model.members_] == [len(m.trace_.totals) for m in model.members_]
    np.testing.assert_allclose(*predictions, atol=1e-6)
    auto = Committee(
        CoClusteringRegressor("auto", solver=Projection(backend="torch")), n_members=2, random_state=0
    ).fit(X, y)
    assert len(auto.members_) == 2  # a size to be chosen is chosen member by member


def test_a_committee_of_hard_moves_stays_hard_where_there_is_a_device(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (300, 2))
    y = np.where((X[:, 0] < 6) == (X[:, 1] < 6), 5, 1) - (rng.random(300) < 0.2)
    plain = CoClusteringRegressor(3, start="random", solver="sweep")
    expected = Committee(plain, n_members=3, random_state=0).fit(X, y)
    monkeypatch.setattr(projection, "goes_to_device", lambda backend, work: backend != "compiled")  # a GPU that pays
    found = Committee(plain, n_members=3, random_state=0).fit(X, y)
    for member, alone in zip(found.members_, expected.members_):
        assert all(((q == 0) | (q == 1)).all() for q in member.posterior_.assign)
        assert [list(q) for q in member.labels_] == [list(q) for q in alone.labels_]
        assert str(member.selection_) == str(alone.selection_)


def test_a_committee_refuses_what_its_members_refuse():
    X, y = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y")], [1, 2, 2, 1]
    for wrong in ({"loss": "huber"}, {"solver": "guess"}):
        member = CoClusteringRegressor(2, **{"solver": Projection(backend="torch"), **wrong})
        with pytest.raises(GinghamError) as alone:
            member.fit(X, y)
        with pytest.raises(GinghamError) as together:
            Committee(member, n_members=2).fit(X, y)
        assert str(together.value) == str(alone.value)
