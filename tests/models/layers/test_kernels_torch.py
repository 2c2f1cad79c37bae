"""Sampled layers in torch: each step against the plain reference with the same random numbers, then whole chains."""

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import gingham as gg  # noqa: E402
from gingham.data import Sample  # noqa: E402
from gingham.errors import GinghamError  # noqa: E402
from gingham.models import LayeredCoClusteringRegressor  # noqa: E402
from gingham.models.layers import kernels_reference as layers_reference  # noqa: E402
from gingham.models.layers import kernels_torch as device_layers  # noqa: E402
from gingham.models.layers.data import LayerData, strides_of  # noqa: E402
from gingham.models.layers.model import Draws  # noqa: E402
from gingham.models.layers.sampled import Shape, TorchChains, run_chain, run_chains, use_torch  # noqa: E402
from gingham.models.layers.side import SideTable  # noqa: E402

N_ITEMS, N_CLUSTERS = (30, 20), (4, 3)


def planted(n=1500, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, 30, n), rng.integers(0, 20, n)
    y = 3.0 + 1.5 * ((rows % 2) == (columns % 2)) + 0.3 * rng.standard_normal(n)
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    return Sample.of([rows, columns], y, weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mode", [0, 1])
def test_one_mode_equals_the_reference(weighted, mode, monkeypatch):
    monkeypatch.setattr("gingham.engine.project_torch.RUN", 16)  # items with several runs
    data = LayerData.of(planted(weighted=weighted))
    chains = TorchChains(data, Shape(1, N_CLUSTERS), 0.4, [1, 2], device="cpu")
    state, rng = chains.state, np.random.default_rng(5)
    m, rest, n = N_CLUSTERS[mode], N_CLUSTERS[1 - mode], N_ITEMS[mode]
    cells = rng.standard_normal((2, m, rest)).astype(np.float32)
    uniforms = rng.random((2, n))
    items = device_layers.histograms(
        state.layouts[mode], state.labels[1 - mode][0], state.residual, state.weights, rest
    )
    now = state.labels[mode][0].clone()
    new = device_layers.draw_labels(items, torch.as_tensor(cells), now, 0.4, torch.as_tensor(uniforms))
    tables = device_layers.table(new, items, m)
    for b in range(2):
        labels = np.zeros(sum(N_ITEMS) + 2, dtype=np.uint8)
        for j, start in enumerate(data.first):
            labels[start : start + N_ITEMS[j]] = state.labels[j][0, b].numpy()
        members = np.bincount(now[b].numpy(), minlength=m)
        counts, sums = np.empty((m, rest)), np.empty((m, rest))
        group = data.groups[mode]
        layers_reference.draw_labels(
            group.indptr, group.others, group.order, np.delete(data.first, mode), strides_of([rest]),
            np.ones(1) if data.weights is None else data.weights, data.weights is None,
            state.residual[b].numpy(), cells[b], 1.0 / 0.4, np.log((members + 1.0) / (n + m)), np.zeros((0, 0)),
            uniforms[b], int(data.first[mode]), labels, counts, sums,
        )  # fmt: skip
        start = data.first[mode]
        np.testing.assert_array_equal(new[b].numpy(), labels[start : start + n])
        np.testing.assert_allclose(tables[b, 0].numpy(), counts, rtol=1e-5)
        np.testing.assert_allclose(tables[b, 1].numpy(), sums, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_offsets_and_residuals_equal_the_reference(weighted):
    data = LayerData.of(planted(weighted=weighted))
    state = TorchChains(data, Shape(1, N_CLUSTERS), 0.4, [1], device="cpu").state
    residual, offsets = state.residual[0].numpy().copy(), np.zeros(20)
    normals = np.random.default_rng(1).standard_normal(20)
    layers_reference.draw_offsets(
        data.codes[1], np.ones(1) if data.weights is None else data.weights,
        data.weights is None, residual, 1 / 0.4, 1.0 / state.offset_variance[1][0], normals, offsets,
    )  # fmt: skip
    state.draw_offsets(1, [torch.as_tensor(normals)])
    np.testing.assert_allclose(state.offsets[1][0].numpy(), offsets, atol=1e-5)
    np.testing.assert_allclose(state.residual[0].numpy(), residual, atol=1e-5)


def test_residuals_stay_labels_minus_prediction():
    sample = planted()
    data = LayerData.of(sample)
    chains = TorchChains(data, Shape(3, N_CLUSTERS), 0.2, [4, 9], device="cpu")
    for _ in range(6):
        chains.sweep()
    for b in range(2):
        predicted = chains.draw(b).predict(data.codes).mean
        np.testing.assert_allclose(data.labels - predicted, chains.state.residual[b].numpy(), atol=5e-3)


def test_a_chain_does_not_depend_on_its_neighbours_and_finds_what_is_planted():
    data, test = LayerData.of(planted()), planted(seed=1)
    plan = (data, Shape(2, N_CLUSTERS), 0.1)
    seeds = [np.random.SeedSequence(k) for k in (3, 8)]
    both, alone = (list(map(Draws.join, run_chains(*plan, some, 25, 10))) for some in (seeds, seeds[1:]))
    assert np.array_equal(both[1].labels, alone[0].labels)
    assert not np.array_equal(both[0].labels, both[1].labels)
    error = lambda draws: np.sqrt(np.mean((draws.predict(test.codes).mean - test.labels) ** 2))  # noqa: E731
    assert error(both[0]) < 0.36  # the noise is .3
    assert error(both[0]) == pytest.approx(error(Draws.join(run_chain(*plan, seeds[0], 25, 10))), abs=0.03)


def test_the_estimator_takes_the_device_when_asked():
    sample = planted()
    X = np.column_stack(sample.codes)
    model = LayeredCoClusteringRegressor(n_layers=2, n_clusters=3, n_chains=2, n_sweeps=20, burn_in=10, n_pilots=1)
    fits = [
        model.set_params(backend=backend, random_state=0).fit(X, sample.labels).predict(X)
        for backend in ("torch", "torch", "compiled")
    ]
    assert np.array_equal(fits[0], fits[1])
    assert np.abs(fits[0] - fits[2]).mean() < 0.1


def test_what_does_not_fit_is_refused():
    data = LayerData.of(planted(), [SideTable(np.ones((30, 2)), np.ones(30, bool), 1.0), None])
    with pytest.raises(GinghamError, match="without side information"):
        use_torch("torch", data, Shape(2, N_CLUSTERS))
    assert not use_torch("auto", data, Shape(2, N_CLUSTERS))
    with pytest.raises(GinghamError, match="backend='cuda' is unknown"):
        use_torch("cuda", data, Shape(2, N_CLUSTERS))


def test_predictions_by_torch_are_those_of_the_compiled_code(monkeypatch):
    """The same sums of cells and offsets, unseen items and items that were folded in included."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, (40, 30), (3000, 2))
    y = X[:, 0] % 3 + 0.5 * (X[:, 1] % 2) + 0.1 * rng.standard_normal(3000)
    model = gg.LayeredCoClusteringRegressor(3, 4, n_chains=2, n_sweeps=40, n_pilots=1, baskets=None, random_state=0)
    old = (X[:, 0] < 35) & (X[:, 1] < 28)
    model.fit(X[old], y[old]).fold_in(X[~old][::2], y[~old][::2])
    asked = np.vstack([X[~old], [[99, 0], [0, 99]]])
    with pytest.warns(gg.UnseenItemsWarning):
        compiled = model.predict(asked)
    monkeypatch.setattr("gingham.models.layers.model.on_device", lambda n_cells: True)
    monkeypatch.setattr(device_layers, "PREDICTED", 100)
    with pytest.warns(gg.UnseenItemsWarning):
        np.testing.assert_allclose(model.predict(asked), compiled, rtol=1e-6)


def test_layers_are_fitted_without_numba(tmp_path):
    """Machines with a GPU often have torch but no compiler of ours."""
    code = """
import sys, importlib.util
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ImportError(name, name=name)
sys.meta_path.insert(0, Missing())
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "numba" else found(name, *more)
import numpy as np, gingham as gg
X = np.random.default_rng(0).integers(0, (30, 20), (4000, 2))
y = X[:, 0] % 3 + 0.5 * (X[:, 1] % 2)
model = gg.LayeredCoClusteringRegressor(3, 4, n_chains=1, n_sweeps=40, n_pilots=1, backend="torch", random_state=0)
error = np.abs(model.fit(X[:3000], y[:3000]).predict(X[3000:]) - y[3000:]).mean()
assert error < 0.1, error
"""
    subprocess.run([sys.executable, "-c", code], check=True)
