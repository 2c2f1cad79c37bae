"""A whole fit through torch: the same model as the compiled one, and neither numba nor narwhals in the process."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from gingham import CoClusteringClassifier, CoClusteringRegressor, load  # noqa: E402
from gingham.core.problem import Problem  # noqa: E402
from gingham.errors import UnseenItemsWarning  # noqa: E402
from gingham.fitting.projection import Projection  # noqa: E402
from gingham.fitting.starts import item_embeddings, make_start, means_tell  # noqa: E402
from problems import all_cells, random_problem  # noqa: E402

ALONE = """
import sys
import sklearn  # newer ones import narwhals themselves
[sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "narwhals"]

class Absent:
    def find_spec(self, name, path=None, target=None):
        asking = sys._getframe(1)
        while "importlib" in asking.f_code.co_filename:
            asking = asking.f_back
        ours = asking.f_globals.get("__name__", "").startswith("gingham")
        if ours and name.split(".")[0] == "narwhals":
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Absent())
sys.modules["numba"] = sys.modules["llvmlite"] = None  # not installed
import numpy as np
import gingham as gg
X = np.random.default_rng(0).integers(0, 20, (500, 2))
y = 1 + X[:, 0] % 2 + X[:, 1] % 2
torch = gg.fitting.Projection(backend="torch")
for settings in ({"n_clusters": 2, "beta": 2.0, "alphabet": range(1, 6)}, {}):
    model = gg.CoClusteringRegressor(solver=torch, random_state=0, **settings).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 0.1, settings
    gg.certify(model, X, y, alphabet=(1, 2, 3) if not settings else None)
names = np.array(["low", "middle", "high"])[y - 1]
assert (gg.CoClusteringClassifier(2, beta=3.0, solver=torch, random_state=0).fit(X, names).predict(X) == names).all()
member = gg.CoClusteringRegressor(2, beta=2.0, solver=torch)
assert np.abs(gg.Committee(member, n_members=2, random_state=0).fit(X, y).predict(X) - y).max() < 0.1
for name in ("TreeCoClustering", "BayesianCoClustering", "InformationClustering", "JointCoClustering", "KernelCCA"):
    getattr(gg, name)
assert sys.modules["numba"] is sys.modules["llvmlite"] is None
"""


def test_a_fit_through_torch_needs_neither_numba_nor_narwhals() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def ratings(n: int = 1500, d: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (n, d))
    table = rng.integers(1, 6, (3,) * d)
    return X, np.where(rng.random(n) < 0.2, rng.integers(1, 6, n), table[tuple(X.T % 3)])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_clusters": (4, 3)},
        {"n_clusters": 3, "loss": "quadratic"},
        {"n_clusters": 3, "loss": "zero-one", "start": "means"},
        {"n_clusters": 3, "loss": "log", "beta": "auto"},
        {"n_clusters": 3, "loss": "pinball", "start": "random", "n_init": 2},
        {"n_clusters": 3, "start": "singular", "dtype": "float32"},
        {"n_clusters": "auto", "objective": "certificate", "alphabet": range(1, 6), "max_iter": 20},
    ],
    ids=str,
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_same_model_as_the_compiled_one(settings: dict[str, object], weighted: bool) -> None:
    X, y = ratings()
    weights = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    settings = dict(settings)
    dtype = settings.pop("dtype", None)
    compiled, device = (
        CoClusteringRegressor(solver=Projection(backend=backend, dtype=dtype), random_state=0, **settings).fit(
            X, y, weights
        )
        for backend in ("compiled", "torch")
    )
    exact = dtype is None
    assert device.beta_ == pytest.approx(compiled.beta_, rel=1e-9)
    assert device.objective_.total == pytest.approx(compiled.objective_.total, rel=1e-7 if exact else 1e-4)
    assert str(device.selection_) == str(compiled.selection_)
    asked = np.vstack([X, [(99, 0)]])
    with pytest.warns(UnseenItemsWarning):
        found = device.predict(asked) - compiled.predict(asked)
    np.testing.assert_allclose(found, 0.0, atol=1e-5 if exact else 1e-2)
    for one, other in zip(device.posterior_.mass, compiled.posterior_.mass):  # clusters may be named differently
        np.testing.assert_allclose(np.sort(one), np.sort(other), atol=1e-5 if exact else 1e-2)


def test_names_and_three_modes() -> None:
    X, y = ratings(d=3)
    words = np.char.add("item", X.astype(str))
    labels = np.array(list("abcdef"))[y]
    compiled, device = (
        CoClusteringClassifier(3, solver=Projection(backend=backend), random_state=0).fit(words, labels)
        for backend in ("compiled", "torch")
    )
    assert device.objective_.total == pytest.approx(compiled.objective_.total, rel=1e-7)
    np.testing.assert_array_equal(device.predict(words), compiled.predict(words))
    np.testing.assert_allclose(device.predict_proba(words), compiled.predict_proba(words), atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("cell", all_cells(), ids=lambda c: type(c).__name__)
def test_one_definition_of_a_start(cell: object, d: int) -> None:
    """Embeddings agree to 1e-9, up to the sign of a vector, and so do the starts."""
    host = random_problem(np.random.default_rng(d), cell, d, n_rows=200)
    device = Problem.grid(host.samples[0].placed(), host.cells[0], host.betas[0])
    assert means_tell(host) == means_tell(device)
    if d > 1:
        pairs = zip(*(item_embeddings(problem, 2, np.random.default_rng(0)) for problem in (host, device)))
        for (points, weights), (tensor, masses) in pairs:
            np.testing.assert_allclose(np.abs(tensor.numpy()), np.abs(points), atol=1e-9)
            np.testing.assert_allclose(masses.numpy(), weights, rtol=1e-12)
    for start in ("spectral", "means", "random", "singular")[: 4 if d == 2 else 3]:
        one, other = (make_start(start, p, [2, 3, 2][:d], np.random.default_rng(0)) for p in (host, device))
        for q, tensor in zip(one.assign, other.assign):
            np.testing.assert_allclose(np.asarray(tensor), q, atol=1e-9)
        np.testing.assert_allclose(other.answers[0], one.answers[0], atol=1e-9)


def test_a_model_that_was_fitted_on_the_device_is_read_and_saved(tmp_path):
    X = np.array([(u, i) for u in range(12) for i in range(10)])
    y = np.where((X[:, 0] < 6) == (X[:, 1] < 5), 5.0, 1.0)
    models = [
        CoClusteringRegressor(
            2, beta=2.0, alphabet=range(1, 6), solver=Projection(backend=backend), random_state=0
        ).fit(X, y)
        for backend in ("torch", "compiled")
    ]
    assert models[0].summary_.size == models[1].summary_.size
    models[0].save(tmp_path / "m.gingham")
    np.testing.assert_allclose(load(tmp_path / "m.gingham").predict(X), models[1].predict(X), atol=1e-9)
